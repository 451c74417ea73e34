"""A promise about new data: how bad a model can be on the population that unseen rows come from.

The worst-case loss of a fit is about the rows that it was fitted to.  For rows that the model has
not seen, weak duality at a λ that was fixed without them gives

    sup { E_Q loss : W(Q, P) ≤ ε }  ≤  ελ + E_P[R_λ]

for the unknown distribution P behind the rows, ``R_λ`` being what the adversary gets of a row at
the price λ. ``E_P[R_λ]`` is the mean of independent numbers, one per row: it has an upper
confidence limit. So it is for the error, with a price γ and ``(1 - γ d)_+`` in place of ``R_λ``,
d being what it costs to make the prediction of a row wrong. These lie in [0, 1], so that their
limit holds for every number of rows; so does that of the loss where domains leave the adversary
nowhere far to go, and elsewhere it is Student's.

λ is the fit's own where the ball is; else it, like γ, is chosen on a part of the rows that then
takes no part in the limits.

Who has no rows to spare can have the statement *out of fold*: the model is fitted again without
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
from .measured_model import own_fit
from .metric_promises import MetricPromise, promise_of, split_rows
from .metrics import metric_of
from .subgroups import Subgroup, subgroups
from .unseen_rows import LEAST_ROWS, PricedRows, best_prices, own_lambda

#: The share of the rows on which prices are chosen; it costs the limits a tenth of their precision.
_CHOOSING = 0.2

#: Printed beside every guarantee that is not out of fold.
ASSUMED = (
    "Assumed: the rows are independent, of one population, and the model was fixed before they "
    "were looked at."
)


@dataclass(frozen=True)
class Guarantee:
    """What holds for a model with a stated confidence, on the population of rows it has not seen.

    Attributes
    ----------
    loss, error : float
        Upper limits of the expected log-loss and of the share of wrong predictions, under every
        distribution within ``epsilon`` of the one that the rows come from.  Both hold at once.
    confidence : float
        Of both together.
    n : int
        Rows that it rests on.
    epsilon, kappa : float, or κ by label, or "by sample"
        The radius and what a flipped label costs.
    mean_loss, mean_error : float
        Of the model on these rows, as they are.
    exact_loss : bool
        Whether the limit of the loss holds for every number of rows, as that of the error does;
        otherwise it is Student's, which wants means that are about normal.
    group : str
        The part of the rows that it speaks of; empty for all of them.
    groups : tuple of Guarantee
        The same for each part, if ``groups`` was given; the confidence is that of all of them.
    folds, tried : int
        Of how many models it speaks, if it is out of fold (0: of the model itself); and among how
        many candidates the rows have chosen.
    """

    loss: float
    error: float
    confidence: float
    n: int
    epsilon: float
    kappa: StatedKappa
    mean_loss: float
    mean_error: float
    exact_loss: bool
    group: str = ""
    groups: tuple[Guarantee, ...] = ()
    folds: int = 0
    tried: int = 1

    def __str__(self) -> str:
        whose = f" with {self.group}" if self.group else ""
        lines = [
            f"With {self.confidence:.0%} confidence, for every distribution within epsilon = "
            f"{self.epsilon:g} ({flips_in_words(self.epsilon, self.kappa)}) of the one that these "
            f"{self.n} rows{whose} come from:",
            f"  expected log-loss <= {self.loss:.4f}   (on the rows as they are: "
            f"{self.mean_loss:.4f})",
            f"  error             <= {self.error:.1%}    (on the rows as they are: "
            f"{self.mean_error:.1%})",
        ]
        lines += [
            f"  {part.group} ({part.n} rows): log-loss <= {part.loss:.4f}, "
            f"error <= {part.error:.1%}"
            for part in self.groups
        ]
        if self.folds:
            lines.append(
                f"It speaks of {self.folds} models, on average, each fitted without a fold and "
                "held against it; the model of all rows is not among them. Assumed: the rows are "
                "independent, of one population, and leaving out one changes a model little."
            )
            if self.tried > 1:
                lines.append(f"That these rows chose among {self.tried} candidates is allowed for.")
        elif self.exact_loss:
            lines.append(f"{ASSUMED} Both limits hold for every number of rows.")
        else:
            lines.append(
                f"{ASSUMED} The limit of the error holds for every number of rows, that of the "
                "loss is Student's."
            )
        return "\n".join(lines)


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
    groups: Any = None,
    cv: Any = None,
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
        stands for; unequal ones count as fewer rows.
    groups : optional
        Parts of the rows to speak of apart, as in :func:`drlogit.audit`; the confidence is then
        that of all statements together.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn, for who has no rows to spare: then these are the rows of the
        fit, and the statement is about models that are fitted again without each fold, each in the
        ball of its own fit.  Of a search (of ours or scikit-learn's) it is the candidate chosen,
        and the limits allow for the choice among all that were tried.
    random_state : int
        Which rows choose the prices, where the model does not know them.
    metric, threshold : optional
        Another number to limit in place of loss and error, as in :func:`drlogit.worst_case`.

    Returns
    -------
    Guarantee, or MetricPromise if a metric is given
        ``loss`` and ``error``, upper limits; ``str()`` is the statement in words, with what it
        assumes.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    if epsilon is None:
        fit = own_fit(model)
        if fit is None:
            raise ValueError("this model has no radius of its own: say which with epsilon=")
        epsilon = fit.epsilon_
    ball = {
        "epsilon": epsilon, "kappa": kappa, "norm": norm, "feature_costs": feature_costs,
        "categories": categories, "bounds": bounds, "space": space,
    }  # fmt: skip
    if metric is not None:
        if cv is not None or groups is not None:
            raise ValueError("metric cannot be combined with cv or groups")
        audit = audit_problem(model, X, y, sample_weight=sample_weight, **ball)
        asked = Extremes(audit, metric_of(audit, metric, threshold))
        return promise_of(asked, confidence, *split_rows(audit.weights, random_state))
    if cv is not None:
        parts = subgroups(groups, X, np.size(y))
        return _out_of_fold(model, X, y, sample_weight, cv, ball, confidence, parts, random_state)
    audit = audit_problem(model, X, y, sample_weight=sample_weight, **ball)
    parts = subgroups(groups, X, audit.weights.size)
    return guarantee_of(audit, confidence, parts, random_state)


def guarantee_of(
    audit: Adversary,
    confidence: float = 0.95,
    parts: tuple[Subgroup, ...] = (),
    random_state: int = 0,
) -> Guarantee:
    """The guarantee of a model on the rows of an audit that it has not seen.

    Any λ that is known before the rows are gives a valid limit, in every ball, and the fit's own a
    good one where radius, κ and norm are its own.
    """
    order = _in_random_order(audit.weights, random_state)
    choosing, rest = np.split(order, [max(int(_CHOOSING * order.size), 2)])
    (best, gamma), lam = best_prices(audit, choosing), own_lambda(audit)
    judged = rest if lam is None else order  # known before these rows were: all of them may speak
    priced = PricedRows.of(audit, best if lam is None else lam, gamma)
    if judged is order and audit.measured.fit is not None:
        own = audit.measured.fit.result_.objective
        value = float(priced.shares_of(order) @ (priced.robust + priced.radius_loss)[order])
        if math.isclose(value, own, rel_tol=1e-9, abs_tol=1e-9):
            warnings.warn(
                "these look like the rows that the model was fitted to: a guarantee speaks of a "
                "population only if the model has not seen its rows",
                UserWarning,
                stacklevel=3,
            )
    return _stated(priced, audit, judged, rest, confidence, parts)


def _out_of_fold(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    cv: Any,
    ball: dict[str, Any],
    confidence: float,
    parts: tuple[Subgroup, ...],
    random_state: int,
) -> Guarantee:
    """The guarantee of models that are fitted without each fold, pooled."""
    from sklearn.model_selection import check_cv

    learner, tried = _candidate(model)
    last = f"{learner.steps[-1][0]}__" if hasattr(learner, "steps") else ""
    labels = np.asarray(y)
    weights = None if sample_weight is None else np.asarray(sample_weight)
    found, tested = [], []
    for train, test in check_cv(cv, labels, classifier=True).split(X, labels):
        own = {} if weights is None else {f"{last}sample_weight": weights[train]}
        fitted = clone(learner).fit(rows_of(X, train), labels[train], **own)
        seen, unseen = (
            audit_problem(
                fitted, rows_of(X, some), labels[some], **ball,
                sample_weight=None if weights is None else weights[some],
            )
            for some in (train, test)
        )  # fmt: skip
        best, gamma = best_prices(seen, np.flatnonzero(seen.weights > 0.0))
        lam = own_lambda(unseen)
        found.append(PricedRows.of(unseen, best if lam is None else lam, gamma))
        tested.append(np.arange(labels.size)[test])
    where = np.concatenate(tested)
    if np.unique(where).size < where.size:
        raise ValueError("cv must hold out no row twice: such rows are not independent")
    pooled = PricedRows.pooled(found, None if weights is None else weights[where])
    order = _in_random_order(pooled.weights, random_state)
    place = np.full(labels.size, -1)
    place[where] = np.arange(where.size)
    parts = tuple(replace(part, members=place[part.members]) for part in parts)
    stated = _stated(pooled, unseen, order, order, confidence, parts, tried)
    return replace(stated, folds=len(found), exact_loss=False)


def _candidate(model: Any) -> tuple[Any, int]:
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
    audit: Adversary,
    judged: IndexArray,
    rest: IndexArray,
    confidence: float,
    parts: tuple[Subgroup, ...],
    tried: int = 1,
) -> Guarantee:
    """The limits of all rows and of each part; errors from ``rest``, where others chose γ."""
    alpha = (1.0 - confidence) / ((1 + len(parts)) * tried)
    found = []
    for name, members in (("", judged), *((f"{p.column} = {p.value}", p.members) for p in parts)):
        mine, others = (each[np.isin(each, members)] for each in (judged, rest))
        loss, error = rows.limits(mine, others, alpha)
        w = rows.shares_of(mine)
        one = Guarantee(
            loss, error, confidence, int(mine.size), audit.problem.epsilon, audit.kappa,
            float(w @ rows.losses[mine]), float(w @ rows.wrong[mine]),
            math.isfinite(rows.most), name, tried=tried,
        )  # fmt: skip
        found.append(one)
    return replace(found[0], groups=tuple(found[1:]))
