"""Confidence limits for new data: the worst-case loss and error in the population of unseen rows.

The worst-case loss of a fit describes the rows that it was fitted to.  Limits for the population
(:mod:`.promises`) use rows that the model has not seen (:mod:`.unseen_rows`), at a dual price that
was fixed without them.

The price λ of the loss is that of the fit if the ball is that of the fit.  Otherwise λ is chosen on
a part of the rows, as the price of the error always is, and that part is left out of the limits.

Without held-out rows, the limits can come from cross-validation: the model is fitted again without
each fold in turn, prices come from the rows it was fitted to, and the values of all rows, each from
the model that has not seen it, are pooled.  The limits are then those of the mean over these
models.  Folds share training rows, so the pooled values are only approximately independent:
cross-validation has a central limit theorem where leaving out a row changes a model little (Bayle,
Bayle, Janson and Mackey 2020, Adv. Neural Inf. Process. Syst. 33), as it does where the fit is
robust.  Where the same rows were used to compare M settings (ε, κ), each limit takes a confidence
of ``1 - α/M``: all M limits then hold at once, and with them the limit of the chosen setting.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.tables.frames import rows_of
from .adversary import Adversary
from .audit_problem import BallOptions, audit_problem
from .measured_model import fitted_ball, own_fit
from .metrics import metric_of
from .promises import Guarantee, MetricPromise, loss_and_error, promise_of
from .subgroups import Subgroup, subgroups
from .unseen_rows import Fold, UnseenRows, in_random_order

if TYPE_CHECKING:
    from typing_extensions import Unpack


def guarantee(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float | None = None,
    kappa: Any = None,
    confidence: float = 0.95,
    metric: Any = None,
    threshold: float = 0.5,
    groups: Any = None,
    cv: Any = None,
    parts: ArrayLike | None = None,
    largest_weight: float | None = None,
    random_state: int = 0,
    **ball: Unpack[BallOptions],
) -> Guarantee | MetricPromise:
    """Limit the loss and the error of a model in the population that unseen rows come from.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case_loss`.
    X, y : the rows
        Rows that were used neither to fit nor to choose the model, unless ``cv`` is given.
    epsilon, kappa : optional
        The radius and the cost of a flipped label, also by label or by sample; by default those of
        the model's fit (κ = 1 for other models, which need an epsilon).
    confidence : float
        The probability with which all limits hold together, between 0 and 1.
    metric, threshold : optional
        Another number to limit instead of loss and error, as in :func:`drlogit.worst_case`.
    groups : optional
        Groups of rows that get limits of their own, as in :func:`drlogit.audit`.
    cv : int, splitter or iterable, optional
        Without held-out rows, use cross-validation: X and y are then the rows of the fit, and the
        limits are about models that are fitted again without each fold, each in the ball of its
        own fit.  For a search (ours or scikit-learn's) they are about the chosen setting, and they
        are corrected for comparing all settings.
    parts : array of shape (n_samples,), optional
        The hospital, year or region of each row, for splitters such as ``LeaveOneGroupOut``.  The
        limits pool the rows of all parts; for limits on the next part, see
        :func:`drlogit.radius_from_parts`.
    largest_weight : float, optional
        An upper bound on ``sample_weight`` in the population.  By default the largest weight of
        these rows, which the statement then lists as an assumption.
    random_state : int
        Seed for drawing the rows that choose the dual prices.
    **ball
        ``norm``, ``feature_costs``, ``categories``, ``bounds``, ``space`` and ``sample_weight`` as
        in :func:`drlogit.worst_case_loss`.  A weight says how many rows of the population a row
        stands for.  Where a row can have a 1 in none of a category's columns, put None into that
        group of ``categories``: these rows may not show it.

    Returns
    -------
    Guarantee, or MetricPromise if a metric is given
        ``loss`` and ``error``, upper limits; ``str()`` is the statement in words, with its
        assumptions.  The loss has no limit (infinity) if a feature has neither categories nor
        stated bounds and fewer than ten rows have the rare labels.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(400, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.02, kappa=1.0).fit(X[:200], y[:200])
    >>> promised = drlogit.guarantee(model, X[200:], y[200:])
    >>> promised.error >= promised.mean_error
    True
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    epsilon = fitted_ball(model).radius if epsilon is None else epsilon
    weights = ball.pop("sample_weight", None)
    if largest_weight is not None:
        most = np.max(1.0 if weights is None else np.asarray(weights))
        if not most <= largest_weight < math.inf:
            raise ValueError(
                f"largest_weight must be finite and at least the largest sample_weight, {most:g}, "
                f"got {largest_weight!r}"
            )
    stated = {**ball, "epsilon": epsilon, "kappa": kappa}
    apart = subgroups(groups, X, np.size(y))
    if cv is not None:
        rows, apart = _out_of_fold(model, X, y, weights, cv, parts, stated, apart, random_state)
        rows = replace(rows, largest_weight=largest_weight)
    elif parts is not None:
        raise ValueError("parts needs a splitter, for example cv=LeaveOneGroupOut()")
    else:
        audit = audit_problem(model, X, y, sample_weight=weights, **stated)
        given = np.ones(audit.codes.size) if weights is None else weights
        rows = UnseenRows.held_out(audit, random_state, given, largest_weight)
    if metric is not None:
        return promise_of(rows, metric_of(rows.audit, metric, threshold), confidence, apart)
    return loss_and_error(rows, confidence, apart)


def guarantee_of(audit: Adversary, confidence: float) -> Guarantee:
    """The guarantee of a model on rows that it has not seen and that all count alike."""
    rows = UnseenRows.held_out(audit, 0, np.ones(audit.codes.size))
    return loss_and_error(rows, confidence, ())


def _out_of_fold(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    cv: Any,
    by_part: Any,
    stated: dict[str, Any],
    groups: tuple[Subgroup, ...],
    random_state: int,
) -> tuple[UnseenRows, tuple[Subgroup, ...]]:
    """The rows of all folds, each with a model that is fitted without it, and the groups there."""
    from sklearn.model_selection import check_cv

    learner, tried = refittable(model)
    last = f"{learner.steps[-1][0]}__" if hasattr(learner, "steps") else ""
    labels = np.asarray(y)
    weights = None if sample_weight is None else np.asarray(sample_weight)
    folds, tested = [], []
    for train, test in check_cv(cv, labels, classifier=True).split(X, labels, by_part):
        own = {} if weights is None else {f"{last}sample_weight": weights[train]}
        fitted = clone(learner).fit(rows_of(X, train), labels[train], **own)
        seen, unseen = (
            audit_problem(
                fitted, rows_of(X, some), labels[some], **stated,
                sample_weight=None if weights is None else weights[some],
            )
            for some in (train, test)
        )  # fmt: skip
        counted = np.flatnonzero(seen.weights > 0.0)
        folds.append(Fold(seen, counted, counted, unseen))
        tested.append(np.arange(labels.size)[test])
    where = np.concatenate(tested)
    if np.unique(where).size < where.size:
        raise ValueError("cv must hold out each row at most once: limits need independent rows")
    given = np.ones(where.size) if weights is None else weights[where]
    order = in_random_order(given, random_state)
    place = np.full(labels.size, -1)
    place[where] = np.arange(where.size)
    said = "The rows of all parts are pooled, which ignores differences between parts."
    rows = UnseenRows(
        tuple(folds), given, order, order, tried=tried, out_of_fold=True,
        assumed="" if by_part is None else said,
    )  # fmt: skip
    return rows, tuple(replace(group, members=place[group.members]) for group in groups)


def refittable(model: Any) -> tuple[Any, int]:
    """What to fit again, and among how many candidates it was chosen."""
    if not hasattr(model, "fit"):
        raise ValueError(f"cv needs a model with a fit method, got {type(model).__name__}")
    fit = own_fit(model)
    if fit is not None and isinstance(fit.kappa_, str):
        raise ValueError("cv needs one kappa or one for each label, got one for each sample")
    tried = len(getattr(model, "cv_results_", {}).get("params", (model,)))
    if isinstance(model, DRLogisticRegressionCV):
        known = DRLogisticRegression().get_params().keys() - {"n_jobs", "verbose"}
        given = {n: v for n, v in model.get_params(deep=False).items() if n in known}
        chosen = {"epsilon": model.epsilon_, "kappa": model.kappa_}
        return DRLogisticRegression(**(given | chosen)), tried
    return getattr(model, "best_estimator_", model), tried
