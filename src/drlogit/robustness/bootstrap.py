"""How much a fitted model would change with another sample: bootstrap intervals.

Each replication draws as many rows as there are, with replacement, and fits the model again.  A row
that is drawn k times gets k times its weight.  The table is encoded once: levels, replacements of
missing values, costs, and the earlier steps of a pipeline are those of all rows, so the
coefficients of all replications have the same unit.  The radius ε and all other parameters stay
those of the model, too.  Each fit starts from the model and reports the gap of the solver.

The intervals are about the *penalised* coefficients: those that the same fit would have on the
whole population.  A radius above 0 shrinks coefficients towards 0, and no interval around a shrunk
coefficient is one for the coefficient of a plain logistic model.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..estimators.robust_classifier import RobustLinearClassifier, set_result
from ..estimators.tables.frames import rows_of
from ..estimators.training_data import TrainingData, training_data, with_class_weights
from ..fitting.solving import solve_problem
from ..problem.label_costs import flip_costs
from ..problem.result import Result
from ..rows.arrays import FloatArray, IndexArray
from ..rows.checks import check_weights
from .guarantees import refittable
from .linear_model import without_searches
from .thresholds import NoThresholdError, choose_threshold


class Interval(NamedTuple):
    """An estimate with the limits of its bootstrap interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The result of :func:`bootstrap`; ``str()`` is a summary.

    Attributes
    ----------
    coefficients : pandas.DataFrame
        The table of ``model.coefficient_table()`` with the columns ``low`` and ``high``, the limits
        of each coefficient, and for two classes ``odds_ratio_low`` and ``odds_ratio_high``.
    worst_case_loss : Interval
        The worst-case loss of the fit.
    threshold : Interval or None
        The threshold that each refit would choose on the rows that it did not draw; the estimate is
        the median.  None unless costs or a limit are given.
    draws : array of shape (n, n_coefficients)
        The coefficients of each refit, in the order of the rows of ``coefficients``.
    n : int
        Number of refits.
    confidence : float
        Nominal coverage of each interval.
    without_threshold : int
        Number of refits in which no threshold keeps the limit.
    """

    coefficients: Any
    worst_case_loss: Interval
    threshold: Interval | None
    draws: FloatArray = field(repr=False)
    n: int
    confidence: float
    without_threshold: int = 0

    def __str__(self) -> str:
        shown = self.coefficients.drop(columns="cost").set_index("column")
        shown["level"] = shown["level"].fillna("")
        lines = [
            f"{self.confidence:.0%} intervals from {self.n} refits to resampled rows",
            shown.to_string(float_format="{:.3f}".format, na_rep=""),
            f"worst-case log-loss {self.worst_case_loss}",
        ]
        if self.threshold is not None:
            lines.append(f"threshold {self.threshold}")
        if self.without_threshold:
            lines.append(f"In {self.without_threshold} of {self.n} refits no threshold was found.")
        lines.append("The intervals are for penalised coefficients, not for those of a plain fit.")
        return "\n".join(lines)


def bootstrap(
    model: Any,
    X: Any,
    y: ArrayLike,
    n: int = 200,
    *,
    confidence: float = 0.95,
    sample_weight: ArrayLike | None = None,
    costs: Any = None,
    max_fpr: float | None = None,
    min_precision: float | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Bootstrap:
    """Compute bootstrap intervals of coefficients, odds ratios, worst-case loss and threshold.

    Parameters
    ----------
    model : DRLogisticRegression, DRLogisticRegressionCV, or a pipeline or search that ends in one
        A fitted model.  A search is fitted again with the parameters that it chose; the intervals
        do not account for the choice.
    X, y : the data of the fit
        The rows must be independent.
    n : int
        Number of refits.
    confidence : float
        Nominal coverage of each interval, between 0 and 1.
    sample_weight : array of shape (n_samples,), optional
        The weights of the fit.
    costs, max_fpr, min_precision : optional
        What to choose a threshold by, as in :func:`drlogit.choose_threshold`.  By default no
        threshold is chosen.
    random_state : int, numpy.random.Generator or None
        Seed of the draws.

    Returns
    -------
    Bootstrap
        ``.coefficients`` (a data frame), ``.worst_case_loss``, ``.threshold``; ``str()`` is a
        summary.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        Some refits have a duality gap above ``tol``.

    Notes
    -----
    Limits of coefficients are percentiles of the refits.  The worst-case loss of a fit is on
    average lower than that of the population, because the fit adapts to its rows, and refits are
    lower again by about as much; its interval is ``2·estimate - percentile``, which corrects for
    that.  The intervals are approximate; ``docs/inference.md`` has their coverage in simulations.

    Examples
    --------
    >>> import drlogit
    >>> table = drlogit.datasets.load_heart_disease()
    >>> table = table[table["hospital"] == "cleveland"]
    >>> model = drlogit.DRLogisticRegression(0.05, feature_costs="std")
    >>> model = model.fit(table[["age", "chest_pain"]], table["disease"])
    >>> found = drlogit.bootstrap(model, table[["age", "chest_pain"]], table["disease"], n=50)
    >>> found.coefficients[["column", "level"]].head(3).to_numpy().tolist()
    [['(intercept)', None], ['age', None], ['chest_pain', 'asymptomatic']]
    """
    if n < 2 or not 0.0 < confidence < 1.0:
        raise ValueError(
            f"n must be at least 2 and confidence between 0 and 1, got {n!r} and {confidence!r}"
        )
    fit = _last_step(model)
    learner = clone(_last_step(refittable(model)[0])).set_params(epsilon=fit.epsilon_)
    given = {"costs": costs, "max_fpr": max_fpr, "min_precision": min_precision}
    rule = {name: value for name, value in given.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model's own fit has given the same warnings
        X, labels = _at_last_step(model, X), np.asarray(y)
        data = training_data(learner, X, labels, sample_weight)
    weights = np.ones(labels.size)
    if sample_weight is not None:
        weights = check_weights(sample_weight, labels.size) * labels.size
    rng = np.random.default_rng(random_state)
    coefs, losses, thresholds, unproven = [], [], list[float](), 0
    for _ in range(n):
        counts = _resampled(rng, data.codes, weights, data.n_classes)
        result = _refit(learner, data, weights * counts, fit.result_)
        parts = [np.atleast_1d(result.intercept), np.atleast_2d(result.coef)]
        coefs.append(np.column_stack(parts[not fit.fit_intercept :]).ravel())
        losses.append(result.objective)
        unproven += not result.converged
        if rule:
            unseen, refit = np.flatnonzero(counts == 0), copy(fit)
            set_result(refit, result, fit.epsilon_, fit.kappa_)
            thresholds += _threshold(refit, rows_of(X, unseen), labels[unseen], rule)
    if unproven:
        warnings.warn(
            f"{unproven} of {n} refits have a duality gap above tol={fit.tol:g}",
            ConvergenceWarning,
            stacklevel=2,
        )
    draws, loss = np.array(coefs), float(fit.worst_case_loss_[0])
    tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    table = fit.coefficient_table()
    table["low"], table["high"] = np.quantile(draws, tails, axis=0)
    if "odds_ratio" in table:
        table["odds_ratio_low"], table["odds_ratio_high"] = (
            np.exp(table["low"]),
            np.exp(table["high"]),
        )
    high, low = (2.0 * loss - np.quantile(losses, tails)).tolist()
    chosen = None
    if thresholds:
        chosen = Interval(*np.quantile(thresholds, [0.5, *tails]).tolist())
    return Bootstrap(
        table, Interval(loss, low, high), chosen, draws, n, confidence,
        n - len(thresholds) if rule else 0,
    )  # fmt: skip


def _last_step(model: Any) -> RobustLinearClassifier:
    """The fitted classifier of ours that a model is or ends in."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not isinstance(last, RobustLinearClassifier):
        raise ValueError(
            "model must be a fitted DRLogisticRegression or DRLogisticRegressionCV, or a pipeline "
            f"that ends in one, got {type(last).__name__}"
        )
    return last


def _at_last_step(model: Any, X: Any) -> Any:
    """What the classifier at the end of a model receives."""
    model = without_searches(model)
    return model[:-1].transform(X) if hasattr(model, "steps") else X


def _resampled(
    rng: np.random.Generator, codes: IndexArray, weights: FloatArray, n_classes: int
) -> FloatArray:
    """How often each row is drawn; draws that lose a class are repeated."""
    while True:
        counts = rng.multinomial(codes.size, np.full(codes.size, 1.0 / codes.size))
        if np.bincount(codes, weights * counts, minlength=n_classes).all():
            return counts.astype(np.float64)


def _refit(learner: Any, data: TrainingData, weights: FloatArray, start: Result) -> Result:
    """The same fit with other weights of the rows."""
    classes, codes = data.classes, data.codes
    weighted = with_class_weights(weights, learner.class_weight, classes, codes)
    kappa = flip_costs(learner.kappa, classes, codes, weighted)
    drawn = replace(data, weights=weighted, kappa=kappa)
    result = solve_problem(
        drawn.pose(learner.epsilon, kappa, learner.n_jobs), solver=learner.solver, tol=learner.tol,
        max_iter=learner.max_iter, start=start, judged=False,
    )  # fmt: skip
    coef, intercept = drawn.reported(result.coef, result.intercept, learner.epsilon)
    return replace(result, coef=coef, intercept=intercept, dual=None)


def _threshold(refit: Any, X: Any, y: Any, rule: dict[str, Any]) -> list[float]:
    """The threshold that a refit chooses on rows that it did not draw, if there is one."""
    try:
        return [choose_threshold(refit, X, y, **rule).threshold]
    except NoThresholdError:
        return []
