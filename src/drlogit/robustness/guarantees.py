"""Confidence limits for new data: the worst-case loss and error in the population of unseen rows.

The worst-case loss of a fit describes the rows that it was fitted to.  Limits for the population
(:mod:`.promises`) use rows that the model has not seen (:mod:`.unseen_rows`), at a dual price that
was fixed without them.

The price λ of the loss is that of the fit if the ball is that of the fit.  Otherwise λ is chosen on
a part of the rows, as the price of the error always is, and that part is left out of the limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .audit_problem import BallOptions, audit_problem
from .measured_model import fitted_ball
from .old_adversary import Adversary
from .old_metrics import metric_of
from .promises import Guarantee, MetricPromise, loss_and_error, promise_of
from .subgroups import subgroups
from .unseen_rows import UnseenRows

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
    random_state: int = 0,
    **ball: Unpack[BallOptions],
) -> Guarantee | MetricPromise:
    """Limit the loss and the error of a model in the population that unseen rows come from.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case_loss`.
    X, y : the rows
        Rows that were used neither to fit nor to choose the model.
    epsilon, kappa : optional
        The radius and the cost of a flipped label, also by label or by sample; by default those of
        the model's fit (κ = 1 for other models, which need an epsilon).
    confidence : float
        The probability with which all limits hold together, between 0 and 1.
    metric, threshold : optional
        Another number to limit instead of loss and error, as in :func:`drlogit.worst_case`.
    groups : optional
        Groups of rows that get limits of their own, as in :func:`drlogit.audit`.
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
    if weights is not None and np.ptp(weights) > 0.0:
        raise ValueError("a guarantee needs rows of equal sample_weight, got unequal ones")
    stated = {**ball, "epsilon": epsilon, "kappa": kappa}
    apart = subgroups(groups, X, np.size(y))
    rows = UnseenRows.held_out(audit_problem(model, X, y, **stated), random_state)
    if metric is not None:
        return promise_of(rows, metric_of(rows.audit, metric, threshold), confidence, apart)
    return loss_and_error(rows, confidence, apart)


def guarantee_of(audit: Adversary, confidence: float) -> Guarantee:
    """The guarantee of a model on rows that it has not seen and that all count alike."""
    rows = UnseenRows.held_out(audit, 0)
    return loss_and_error(rows, confidence, ())
