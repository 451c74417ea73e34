"""A promise about new data: how bad a model can be on the population that unseen rows come from.

The worst-case loss of a fit is about the rows that it was fitted to.  For rows that the model has
not seen, weak duality at a λ that was fixed without them gives

    sup { E_Q loss : W(Q, P) ≤ ε }  ≤  ελ + E_P[R_λ]

for the unknown distribution P of the rows, where ``R_λ`` is what the adversary gets of a row at
the price λ.  ``E_P[R_λ]`` is the mean of independent numbers, one per row, so it has an upper
confidence limit.  The error has one, too, with a price γ and ``(1 - γ d)_+`` in place of ``R_λ``;
d is the cost of making the prediction of a row wrong.  These numbers lie in [0, 1], so their limit
holds for every number of rows.  So does the limit of the loss where every feature has categories
or stated bounds; elsewhere it is an approximate one (:mod:`.unseen_rows`).

λ is the fit's own if the ball is; otherwise λ is chosen on a part of the rows, as γ always is, and
that part takes no part in the limits.

Users without a hold-out set can have the statement *out of fold*: the model is fitted again without
each fold in turn, λ and γ come from the rows it was fitted to, and the ``R_λ`` of all rows, each
from the model that has not seen it, are pooled.  The limit is one of the mean over these models.
Folds share training rows, so the pooled numbers are only about independent: cross-validation has a
central limit theorem where leaving out a row changes a model little (Bayle, Bayle, Janson and
Mackey 2020, Adv. Neural Inf. Process. Syst. 33), as it does where the fit is robust.  Where these
rows have also chosen among M pairs (ε, κ), each limit takes a confidence of ``1 - α/M``: with that,
all M hold at once, so the one of the pair chosen does.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.tables.frames import rows_of
from ..problem.label_costs import StatedKappa, flips_in_words
from ..problem.norms import Norm
from ..rows.arrays import FloatArray, IndexArray
from .adversary import Adversary
from .audit_problem import audit_problem
from .extremes import Extremes
from .measured_model import own_fit, radius_of_fit
from .metric_promises import MetricPromise, promise_of, split_rows
from .metrics import metric_of
from .subgroups import Subgroup, subgroups
from .unseen_rows import LEAST_ROWS, PricedRows, best_prices, constant_model, own_lambda

#: The share of the rows on which prices are chosen; it costs the limits a tenth of their precision.
_CHOOSING = 0.2

_ASSUMED = "Assumed: the rows are independent, of one population"


@dataclass(frozen=True)
class Guarantee:
    """What holds for a model with a stated confidence, on the population of rows it has not seen.

    Attributes
    ----------
    loss, error : float
        Upper limits of the expected log-loss and of the share of wrong predictions, under every
        distribution within ``epsilon`` of the one that the rows come from.  Both hold at once.
        The loss is infinite if these rows give no limit; ``no_limit`` says why.
    confidence : float
        Of both together.
    n : int
        Rows that it rests on.
    epsilon, kappa : float, or κ by label, or "by sample"
        The radius and what a flipped label costs.
    mean_loss, mean_error : float
        Of the model on these rows, as they are.
    constant_loss, constant_error : float
        The limits of a model that ignores the features, at the same confidence.  A limit that is
        no lower says nothing about the model.
    exact_loss : bool
        Whether the limit of the loss holds for every number of rows, given what is ``assumed``.
        Otherwise it is approximate, or rests on bounds that were found in rows.
    assumed : str
        What the limits rest on, in words.
    no_limit : str
        Why there is no limit of the loss; empty if there is one.
    group : str
        The part of the rows that it is about; empty for all of them.
    groups : tuple of Guarantee
        The same for each part, if ``groups`` was given; the confidence is that of all of them.
    folds, tried : int
        The number of models that it is about, if it is out of fold (0: the model itself); and the
        number of candidates among which the rows have chosen.
    """

    loss: float
    error: float
    confidence: float
    n: int
    epsilon: float
    kappa: StatedKappa
    mean_loss: float
    mean_error: float
    constant_loss: float
    constant_error: float
    exact_loss: bool
    assumed: str
    no_limit: str = ""
    group: str = ""
    groups: tuple[Guarantee, ...] = ()
    folds: int = 0
    tried: int = 1

    @property
    def limits(self) -> str:
        """Both limits in words."""
        loss = f"log-loss <= {self.loss:.4f}"
        if self.no_limit:
            loss = f"no limit of the log-loss ({self.no_limit})"
        return f"{loss}, error <= {self.error:.1%}"

    @property
    def says_nothing(self) -> str:
        """A warning if a model that ignores the features has limits as low; else empty."""
        found, better = {}, True
        if math.isfinite(self.loss) and self.loss >= self.constant_loss:
            found["log-loss"] = f"log-loss <= {self.constant_loss:.4f}"
            better &= self.mean_loss < self.constant_loss
        if self.error >= self.constant_error:
            found["error"] = f"error <= {self.constant_error:.1%}"
            better &= self.mean_error < self.constant_error
        if not found:
            return ""
        limit = "These limits say" if len(found) > 1 else f"The limit of the {min(found)} says"
        helps = "More rows or a smaller epsilon would help."
        if not better:
            helps = "On these rows as they are, the model is no better than that either."
        return (
            f"{limit} nothing about the model: one that ignores the features has "
            f"{' and '.join(found.values())} with the same confidence. {helps}"
        )

    def __str__(self) -> str:
        whose = f" with {self.group}" if self.group else ""
        loss = f"has no limit: {self.no_limit}" if self.no_limit else f"<= {self.loss:.4f}"
        lines = [
            f"With {self.confidence:.0%} confidence, for every distribution within epsilon = "
            f"{self.epsilon:g} ({flips_in_words(self.epsilon, self.kappa)}) of the one that these "
            f"{self.n} rows{whose} come from:",
            f"  expected log-loss {loss}   (on the rows as they are: {self.mean_loss:.4f})",
            f"  error             <= {self.error:.1%}    (on the rows as they are: "
            f"{self.mean_error:.1%})",
        ]
        for part in self.groups:
            nothing = "; no better than a model that ignores the features"
            said = f"  {part.group} ({part.n} rows): {part.limits}"
            lines.append(said + (nothing if part.says_nothing else ""))
        if self.folds:
            lines.append(
                f"This is about {self.folds} models, on average, each fitted without a fold and "
                "judged by it; the model of all rows is not among them."
            )
        if self.tried > 1:
            lines.append(f"The choice among {self.tried} candidates by these rows is allowed for.")
        return "\n".join([*lines, *filter(None, [self.says_nothing]), self.assumed])


def guarantee(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float | None = None,
    kappa: Any = None,
    confidence: float = 0.95,
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    groups: Any = None,
    cv: Any = None,
    parts: ArrayLike | None = None,
    random_state: int = 0,
    metric: Any = None,
    threshold: Any = 0.5,
) -> Guarantee | MetricPromise:
    """How bad a model can be on the population that unseen rows come from, at a confidence.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case_loss`.
    X, y : the rows
        Rows that the model was **not** fitted to, nor chosen by, unless there are folds.
    epsilon, kappa : optional
        The radius and what a flipped label costs, also by label or by sample; by default the
        model's own (a model that has no radius needs one; κ = 1 if it has none).
    confidence : float
        Of the two limits together, between 0 and 1.
    norm, feature_costs, categories, bounds, space, sample_weight
        As in :func:`drlogit.worst_case_loss`.  Weights say how many rows of the population a row
        stands for.  Where a row can have a 1 in none of a group's columns, put None into that
        group of ``categories``: these rows may not show it.
    largest_weight : float, optional
        No row of the population has a larger ``sample_weight``.  By default the largest one of
        these rows is taken for it, and the statement says so.
    groups : optional
        Parts of the rows to have limits of their own, as in :func:`drlogit.audit`; the confidence
        is then that of all statements together.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn, for users without a hold-out set: these are then the rows of the
        fit, and the statement is about models that are fitted again without each fold, each in the
        ball of its own fit.  For a search (ours or scikit-learn's) it is about the candidate
        chosen, and the limits allow for the choice among all that were tried.
    parts : array of shape (n_samples,), optional
        The hospital, year or region of each row, for splitters such as ``LeaveOneGroupOut``.  The
        statement pools the rows of all parts and says so; what the next part may bring is
        :func:`drlogit.radius_from_parts`.
    random_state : int
        Which rows choose the prices, where the model does not know them.
    metric, threshold : optional
        Another number to limit in place of loss and error, as in :func:`drlogit.worst_case`.

    Returns
    -------
    Guarantee, or MetricPromise if a metric is given
        ``loss`` and ``error``, upper limits; ``str()`` is the statement in words, with what it
        assumes.  The loss has no limit (infinity) if a feature has neither categories nor stated
        bounds and fewer than ten rows have the rare labels.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    if epsilon is None:
        epsilon = radius_of_fit(model)
    if largest_weight is not None:
        most = np.max(1.0 if sample_weight is None else np.asarray(sample_weight))
        if not most <= largest_weight < math.inf:
            raise ValueError(
                f"largest_weight must be finite and at least the largest sample_weight, {most:g}, "
                f"got {largest_weight!r}"
            )
    ball = {
        "epsilon": epsilon, "kappa": kappa, "norm": norm, "feature_costs": feature_costs,
        "categories": categories, "bounds": bounds, "space": space,
    }  # fmt: skip
    if metric is not None:
        if cv is not None or groups is not None or largest_weight is not None:
            raise ValueError("metric cannot be combined with cv, groups or largest_weight")
        audit = audit_problem(model, X, y, sample_weight=sample_weight, **ball)
        asked = Extremes(audit, metric_of(audit, metric, threshold))
        return promise_of(asked, confidence, *split_rows(audit.weights, random_state))
    if cv is not None:
        apart = subgroups(groups, X, np.size(y))
        weights = sample_weight, largest_weight
        return _out_of_fold(model, X, y, weights, cv, parts, ball, confidence, apart, random_state)
    if parts is not None:
        raise ValueError("parts are for folds: give a splitter such as cv=LeaveOneGroupOut()")
    audit = audit_problem(model, X, y, sample_weight=sample_weight, **ball)
    apart = subgroups(groups, X, audit.weights.size)
    if largest_weight is not None:  # the audit's weights sum to one
        given = np.ones(audit.weights.size) if sample_weight is None else sample_weight
        largest_weight = float(largest_weight / np.sum(given))
    return guarantee_of(audit, confidence, apart, random_state, largest_weight)


def guarantee_of(
    audit: Adversary,
    confidence: float = 0.95,
    parts: tuple[Subgroup, ...] = (),
    random_state: int = 0,
    largest_weight: float | None = None,
) -> Guarantee:
    """The guarantee of a model on the rows of an audit that it has not seen.

    Any λ that is known before the rows gives a valid limit, in every ball.  The fit's own gives a
    good one where radius, κ and norm are its own.
    """
    order = _in_random_order(audit.weights, random_state)
    choosing, rest = np.split(order, [max(int(_CHOOSING * order.size), 2)])
    (best, gamma), lam = best_prices(audit, choosing), own_lambda(audit)
    judged = rest if lam is None else order  # a λ that was known before the rows needs none of them
    priced = PricedRows.of(audit, best if lam is None else lam, gamma)
    priced = replace(priced, largest_weight=largest_weight)
    if judged is order and audit.measured.fit is not None:
        own = audit.measured.fit.result_.objective
        value = float(priced.shares_of(order) @ (priced.robust + priced.radius_loss)[order])
        if math.isclose(value, own, rel_tol=1e-9, abs_tol=1e-9):
            warnings.warn(
                "these look like the rows that the model was fitted to: a guarantee is about a "
                "population only if the model has not seen its rows",
                UserWarning,
                stacklevel=3,
            )
    constant = constant_model(audit, audit, order)
    ignoring = PricedRows.of(constant, *best_prices(constant, choosing))
    return _stated(priced, ignoring, audit, judged, rest, confidence, parts)


def _out_of_fold(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: tuple[Any, float | None],
    cv: Any,
    by_part: Any,
    ball: dict[str, Any],
    confidence: float,
    parts: tuple[Subgroup, ...],
    random_state: int,
) -> Guarantee:
    """The guarantee of models that are fitted without each fold, pooled."""
    from sklearn.model_selection import check_cv

    learner, tried = refittable(model)
    last = f"{learner.steps[-1][0]}__" if hasattr(learner, "steps") else ""
    labels = np.asarray(y)
    weights = None if sample_weight[0] is None else np.asarray(sample_weight[0])
    found, ignoring, tested = [], [], []
    for train, test in check_cv(cv, labels, classifier=True).split(X, labels, by_part):
        own = {} if weights is None else {f"{last}sample_weight": weights[train]}
        fitted = clone(learner).fit(rows_of(X, train), labels[train], **own)
        seen, unseen = (
            audit_problem(
                fitted, rows_of(X, some), labels[some], **ball,
                sample_weight=None if weights is None else weights[some],
            )
            for some in (train, test)
        )  # fmt: skip
        counted = np.flatnonzero(seen.weights > 0.0)
        best, gamma = best_prices(seen, counted)
        lam = own_lambda(unseen)
        found.append(PricedRows.of(unseen, best if lam is None else lam, gamma))
        prices = best_prices(constant_model(seen, seen, counted), counted)
        ignoring.append(PricedRows.of(constant_model(unseen, seen, counted), *prices))
        tested.append(np.arange(labels.size)[test])
    where = np.concatenate(tested)
    if np.unique(where).size < where.size:
        raise ValueError("cv must hold out no row twice: such rows are not independent")
    given = None if weights is None else weights[where]
    pooled, others = (PricedRows.pooled(each, given) for each in (found, ignoring))
    pooled = replace(pooled, largest_weight=sample_weight[1])
    order = _in_random_order(pooled.weights, random_state)
    place = np.full(labels.size, -1)
    place[where] = np.arange(where.size)
    parts = tuple(replace(part, members=place[part.members]) for part in parts)
    stated = _stated(
        pooled, others, unseen, order, order, confidence, parts, folds=len(found), tried=tried
    )
    if by_part is None:
        return stated
    said = "The rows of all parts are pooled, so the spread between parts is ignored."
    return replace(stated, assumed=f"{stated.assumed} {said}")


def refittable(model: Any) -> tuple[Any, int]:
    """What to fit again, and among how many candidates it was chosen."""
    if not hasattr(model, "fit"):
        raise ValueError(f"cv is for a model that can be fitted again, got {type(model).__name__}")
    fit = own_fit(model)
    if fit is not None and isinstance(fit.kappa_, str):
        raise ValueError("cv is for one kappa, or one for each label, not for each sample")
    tried = len(getattr(model, "cv_results_", {}).get("params", (model,)))
    if isinstance(model, DRLogisticRegressionCV):
        known = DRLogisticRegression().get_params().keys() - {"n_jobs", "verbose"}
        given = {n: v for n, v in model.get_params(deep=False).items() if n in known}
        chosen = {"epsilon": model.epsilon_, "kappa": model.kappa_}
        return DRLogisticRegression(**(given | chosen)), tried
    return getattr(model, "best_estimator_", model), tried


def _in_random_order(weights: FloatArray, random_state: int) -> IndexArray:
    """The rows that count, if they are enough."""
    some = np.flatnonzero(weights > 0.0)
    if some.size < LEAST_ROWS:
        raise ValueError(
            f"a guarantee needs at least {LEAST_ROWS} rows of positive weight, got {some.size}"
        )
    return np.random.default_rng(random_state).permutation(some)


def _stated(
    rows: PricedRows,
    constant: PricedRows,
    audit: Adversary,
    judged: IndexArray,
    rest: IndexArray,
    confidence: float,
    parts: tuple[Subgroup, ...],
    *,
    folds: int = 0,
    tried: int = 1,
) -> Guarantee:
    """The limits of all rows and of each part; ``rest`` are the rows that did not choose γ.

    All limits hold at once (a union bound): each may fail with an equal share of what the
    confidence leaves.
    """
    alpha = (1.0 - confidence) / (2 * (1 + len(parts)) * tried)
    found_in_rows = audit.measured.bounds_from_rows
    exact = math.isfinite(rows.most) and not folds and not found_in_rows
    assumed = _assumptions(rows, folds, found_in_rows=found_in_rows)
    constant, found = replace(constant, largest_weight=rows.largest), []
    for name, members in (("", judged), *((f"{p.column} = {p.value}", p.members) for p in parts)):
        mine, others = (each[np.isin(each, members)] for each in (judged, rest))
        w = rows.shares_of(mine)
        one = Guarantee(
            rows.limit_of_loss(mine, alpha), rows.limit_of_error(others, alpha), confidence,
            int(mine.size), audit.problem.epsilon, audit.kappa, float(w @ rows.losses[mine]),
            float(w @ rows.wrong[mine]),
            # Guessing among K labels has these, whatever the rows.
            min(constant.limit_of_loss(mine, alpha), math.log(len(rows.classes))),
            min(constant.limit_of_error(others, alpha), 1.0 - 1.0 / len(rows.classes)),
            exact, assumed, rows.why_no_limit(mine), name, folds=folds, tried=tried,
        )  # fmt: skip
        found.append(one)
    return replace(found[0], groups=tuple(found[1:]))


def _assumptions(rows: PricedRows, folds: int, *, found_in_rows: bool) -> str:
    """What the limits rest on, in words."""
    said = [_ASSUMED]
    weights = rows.weights[rows.weights > 0.0]
    if rows.largest_weight is None and weights.max() > weights.min() * (1.0 + 1e-9):
        said.append("no row of that population has a larger weight than the largest of these")
    if math.isfinite(rows.most):
        where = (
            "bounds that were found in rows" if found_in_rows else "stated categories and bounds"
        )
        said.append(f"it keeps to the {where}")
    if folds:
        return f"{', '.join(said)}, and leaving out one changes a model little."
    exact = "Both limits hold for every number of rows."
    if found_in_rows or not math.isfinite(rows.most):
        loss = "is approximate: rare rows with large losses can make it too low"
        if math.isfinite(rows.most):
            loss = "is as good as these bounds"
        exact = f"The limit of the error holds for every number of rows; that of the loss {loss}."
    return f"{', '.join(said)}, and the model was fixed before they were looked at. {exact}"
