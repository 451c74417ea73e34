"""A linear model, the samples it is asked about, and the Wasserstein ball around them.

:func:`audit_problem` puts them together, in the space where distance is measured
(:mod:`drlogit.robustness.measured_model`); what the adversary can do follows from the
:meth:`~AuditProblem.breakpoints`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from ..estimators.tables.by_column import (
    CostsByKind,
    resolve_bounds,
    resolve_costs,
    standard_deviations,
)
from ..problem.classes import pose_classes
from ..problem.domain_loss import Prices, prices_of
from ..problem.domains import check_domains
from ..problem.label_costs import (
    StatedKappa,
    as_stated,
    flip_costs,
    is_stated_singly,
    own_kappa,
    with_flip_costs,
)
from ..problem.losses import log_loss
from ..problem.norms import Norm, get_norm
from ..problem.parameters import check_costs, check_epsilon, check_kappa
from ..problem.problem import Problem, ground_cost
from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ..rows.checks import check_features, check_label_column, check_labels, check_weights
from ..rows.interface import Rows, State
from ..rows.memory import MemoryRows
from ..rows.row_blocks import RowBlocks
from ..rows.stored import StoredRows
from .adversary import Adversary, Ends
from .breakpoints import Breakpoints
from .class_audit import ClassAudit
from .common_ball import CommonBall
from .crossing_costs import crossing_costs, is_exact
from .domain_breakpoints import changed_features, domain_breakpoints, item_costs
from .features import Feature, costs_by_feature, describe
from .linear_model import LinearModel, SoftmaxModel, rest_and_class
from .measured_model import ONE_HOT, MeasuredModel, last_step, measure

#: Rows on which a model's own scores are compared with those of the ``(β, b)`` found in it.
_CHECKED_ROWS = 64


@dataclass(frozen=True, eq=False)
class AuditProblem(Adversary):
    """That of a linear model of two classes; ``coefficients`` are β, then b.

    ``classes`` are the labels that the signs -1 and +1 stand for.
    """

    problem: Problem

    @cached_property
    def margins(self) -> State:
        """``u_i = y_i (x_i·β + b)``, as a state of the rows."""
        return self.problem.margins(self.coefficients)

    @cached_property
    def u(self) -> FloatArray:
        """The margins as one vector."""
        return np.asarray(self.problem.rows.gather(self.margins))

    @cached_property
    def signs(self) -> FloatArray:
        """The labels as ±1."""
        return self.problem.rows.signs()

    @cached_property
    def sensitivity(self) -> float:
        """``‖β/c‖_*``: by how much one unit of transport can lower a margin.

        That of features without a domain, if some have one.
        """
        return self.problem.cost.dual_norm(self.coefficients)

    @property
    def worst_loss(self) -> float:
        return float(self.problem.objective(self.coefficients))

    @cached_property
    def codes(self) -> IndexArray:
        return (self.signs > 0.0).astype(np.intp)

    @property
    def falling(self) -> int:
        return 1

    def costs_of_labels(self, index: IndexArray, codes: IndexArray) -> FloatArray:
        return np.where(codes == self.codes[index], 0.0, self.flip_costs[index])

    @cached_property
    def direction(self) -> FloatArray:
        """The move of cost one that changes the score most; zero where features cannot move."""
        return self.problem.cost.aligned_move(self.coefficients)[:-1]

    @cached_property
    def losses(self) -> FloatArray:
        """Log-losses of the samples as they are."""
        return log_loss(self.u)

    @cached_property
    def flip_costs(self) -> FloatArray:
        """What it costs to flip the label of each sample."""
        return self.problem.rows.flip_costs(self.problem.kappa)

    @property
    def flip_unit(self) -> float:
        return self.problem.kappa

    @property
    def kappa(self) -> StatedKappa:
        return as_stated(self.problem.cost, np.array(self.classes))

    @cached_property
    def domain_loss(self) -> Prices:
        """What the adversary makes of samples whose features have domains."""
        return prices_of(self.problem.rows, self.problem.cost, self.coefficients)

    def breakpoints(self, upto: float | None = None) -> Breakpoints:
        """Those of all samples, or at least those that a budget of ``upto`` pays for."""
        if self.problem.domains is not None:
            return domain_breakpoints(self.domain_loss, upto)
        u, kappa = self.u, self.flip_costs
        with np.errstate(divide="ignore", invalid="ignore"):  # a flip may cost nothing
            rate = u / kappa
        worth = (u > 0.0) & (rate >= self.sensitivity) & (self.weights > 0.0)
        own = np.flatnonzero(worth & np.isfinite(kappa))
        flipped = np.full(own.size, -1, dtype=np.intp)
        return Breakpoints.in_order(own, rate[own], kappa[own], u[own], flipped)

    def ends(self, index: IndexArray, piece: IndexArray) -> Ends:
        """Where these pieces of samples end; what moves on keeps its label.

        Moved by d, a margin of v loses ``h(-v) - h(L d - v)`` against the limit ``L d``.
        """
        signs = self.signs[index] * np.where(piece < 0, -1.0, 1.0)
        scores = (self.signs * self.u)[index]
        changes, distance = None, np.zeros(index.size)
        domains = self.problem.domains
        if domains is not None:
            changes = changed_features(self.domain_loss, domains, self.signs, index, piece)
            scores = scores + changes @ self.coefficients[:-1]
            distance = np.asarray(item_costs(domains, changes).sum(axis=1)).ravel()
        margins, codes = signs * scores, (signs > 0.0).astype(np.intp)
        limits = log_loss(-margins)

        def lost(some: IndexArray, far: float) -> FloatArray:
            return np.asarray(limits[some] - log_loss(self.sensitivity * far - margins[some]))

        tolls = np.zeros(index.size)
        return Ends(codes, log_loss(margins), distance, changes, codes, tolls, limits, lost)

    @cached_property
    def wrong(self) -> BoolArray:
        """Samples predicted wrong; on the boundary scikit-learn predicts the negative class."""
        return np.asarray((self.u < 0.0) | ((self.u == 0.0) & (self.signs > 0.0)))

    @property
    def predicted(self) -> IndexArray:
        return np.where(self.wrong, 1 - self.codes, self.codes)

    @property
    def nearest_class(self) -> IndexArray:
        return np.asarray(1 - self.codes)

    @property
    def cheapest_label(self) -> IndexArray:
        return np.asarray(1 - self.codes)

    @cached_property
    def costs_to_break(self) -> FloatArray:
        """Least cost of moves that take samples across the boundary, or a little less.

        For samples predicted right, whose label stays as it is; 0 for others.
        """
        return self._crossing_costs(self.u, 1.0)

    @cached_property
    def costs_to_mend(self) -> FloatArray:
        """The same for samples predicted wrong, to the right side."""
        return self._crossing_costs(-self.u, -1.0)

    @property
    def exact_crossings(self) -> bool:
        """Whether these are the least costs, and not a little below."""
        domains = self.problem.domains
        return domains is None or is_exact(domains.group_costs)

    def _crossing_costs(self, gap: FloatArray, label: float) -> FloatArray:
        """Least cost of moves that gain ``gap``.

        ``label`` is 1 if samples are to leave their own label's side, -1 if the other's.
        """
        if self.problem.domains is None:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                return np.asarray(np.maximum(gap, 0.0) / self.sensitivity)
        costs = self.problem.domains.group_costs
        return crossing_costs(self.domain_loss, costs, self.sensitivity, gap, label)

    def holding(self, columns: IndexArray) -> AuditProblem:
        """The same, if some features could not move."""
        cost = self.problem.cost
        costs = cost.costs.copy()
        costs[columns] = np.inf
        domains = None if cost.domains is None else cost.domains.without(columns)
        held = replace(self.problem, cost=replace(cost, costs=costs, domains=domains))
        return replace(self, problem=held)

    @property
    def move_shares(self) -> FloatArray:
        return np.asarray(self.coefficients[:-1] * self.direction / self.sensitivity)

    def paid_for_labels(self, found: Breakpoints) -> FloatArray:
        flipped = found.flipped()
        return flipped * np.where(flipped != 0.0, self.flip_costs[found.sample], 0.0)

    def observed(self, index: IndexArray) -> list[Any]:
        return list(self.labels(self.signs[index]).tolist())

    def labels(self, signs: FloatArray) -> np.ndarray[Any, Any]:
        """Signs as labels."""
        return np.asarray(self.classes)[(signs > 0.0).astype(np.intp)]


def audit_problem(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    kappa: Any,
    norm: str | Norm | None,
    feature_costs: Any,
    sample_weight: ArrayLike | None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    of_class: int | None = None,
    ball: CommonBall | None = None,
) -> Adversary:
    """Check everything and put it together; ``ValueError`` says what is wrong.

    What is None is measured as the model was fitted; the ℓ1 norm and κ = 1 if it does not know.
    ``of_class`` is the position in ``classes_`` of a class that is told from the rest; ``ball`` is
    that of another model, and goes before the fit's own.
    """
    measured = measure(model, X, space, categories, of_class)
    if of_class is not None:
        known = last_step(model).classes_
        kappa = own_kappa(measured.kappa) if kappa is None else kappa
        if not is_stated_singly(kappa):
            kappa = flip_costs(kappa, known, np.searchsorted(known, column_or_1d(y)))
        y = _one_of_several(y, known, of_class)
    epsilon = check_epsilon(epsilon)
    kappa = own_kappa(measured.kappa) if kappa is None else kappa
    if is_stated_singly(kappa):
        check_kappa(kappa)
    transport = get_norm((measured.norm or "l1") if norm is None else norm)
    linear, samples = measured.linear, measured.X
    blocks = isinstance(samples, RowBlocks)
    matrix = check_features(samples.block(samples.filled[0]) if blocks else samples)
    n_samples, n_features = samples.shape if blocks else matrix.shape
    if linear.coef.shape[-1] != n_features:
        raise ValueError(f"X has {n_features} features, but the model has {linear.coef.shape[-1]}")
    _check_scores(model, linear, X, of_class, matrix)
    weights = check_weights(sample_weight, n_samples)
    if categories is None or (isinstance(categories, str) and categories == ONE_HOT):
        declared, stated_categories = measured.categories, None
    else:
        declared = stated_categories = categories
    groups = check_domains(declared, None, n_features, measured.names).groups
    described = partial(describe, n_features, measured.names, groups, measured.features)
    space = measured.space
    if ball is not None:
        own_costs, own_bounds = ball.by_column(
            described(), n_features, for_bounds=feature_costs is not None
        )
        measured, space = replace(measured, costs=own_costs, bounds=own_bounds), ball.space
    costs = _costs(feature_costs, measured, matrix, weights, described)
    costs = check_costs(costs, n_features)
    stated_costs = costs.copy()
    stated = {"feature costs": feature_costs, "categories": stated_categories, "bounds": bounds}
    limits = measured.bounds if bounds is None else _bounds(bounds, measured, matrix)
    beyond = False
    if bounds is None and not blocks:
        limits, beyond = widened(limits, matrix, measured.names)
    given = " and ".join(word for word, value in stated.items() if value is not None)
    where = f"{space}, with the {given} given" if given and ball is None else space
    where += ", and bounds as wide as the data" if beyond else ""

    def rows_with(signs: FloatArray, *, intercept: bool) -> Rows:
        if blocks:
            return StoredRows(samples, signs, weights, intercept=intercept)
        return MemoryRows.from_arrays(matrix, signs, weights, intercept=intercept)

    if isinstance(linear, SoftmaxModel):
        codes, several = codes_of(y, n_samples, linear.classes)
        posed = pose_classes(
            partial(rows_with, np.ones(n_samples)), codes, np.asarray(several), epsilon=epsilon,
            kappa=kappa, norm=transport, fit_intercept=True, feature_costs=costs,
            categories=declared, bounds=limits, names=measured.names,
        )  # fmt: skip
        matrix_of = posed.join(linear.coef, linear.intercept)
        if not posed.as_given:
            where += "; categories and bounds as numbers, so worst cases are upper bounds"
        return ClassAudit(posed, matrix_of, several, where, described, stated_costs, limits)
    signs, classes = signs_of(y, n_samples, linear.classes)
    flips = flip_costs(kappa, np.asarray(classes), (signs > 0.0).astype(np.intp))
    rows, unit, trust = with_flip_costs(rows_with(signs, intercept=True), flips)
    rows, cost = ground_cost(rows, transport, costs, unit, declared, limits, measured.names)
    problem = Problem(rows, epsilon, replace(cost, trust=trust), fit_intercept=True)
    joined = problem.join(linear.coef, linear.intercept)
    return AuditProblem(problem, joined, classes, where, described, stated_costs, limits)


def _one_of_several(y: Any, classes: Any, k: int) -> Any:
    """Labels as one class and the rest."""
    labels = np.asarray(column_or_1d(y))
    _check_known(labels, classes)
    rest, chosen = rest_and_class(classes[k])
    return np.where(labels == classes[k], chosen, rest)


def _costs(
    given: Any,
    measured: MeasuredModel,
    matrix: Matrix,
    weights: FloatArray,
    described: Callable[[], tuple[Feature, ...]],
) -> Any:
    """Costs for each column of the matrix: those of the fit, or stated by column or otherwise."""
    if given is None:
        return measured.costs
    if isinstance(given, CostsByKind) and measured.encoding is None:
        return costs_by_feature(given, described(), standard_deviations(matrix, weights))
    if np.ndim(given) == 1 and np.size(given) == matrix.shape[1]:
        return given
    return resolve_costs(given, matrix, weights, _table_names(measured, matrix), measured.encoding)


def _bounds(given: Any, measured: MeasuredModel, matrix: Matrix) -> Any:
    return resolve_bounds(given, matrix, _table_names(measured, matrix), measured.encoding)


def widened(bounds: Any, matrix: Matrix, names: Sequence[Any] | None) -> tuple[Any, bool]:
    """The bounds of a fit, as wide as the data where rows lie beyond them, and whether any do.

    The ends of the training data are where other data may go on; a warning says so.
    """
    if bounds is None:
        return None, False
    n_columns = matrix.shape[1]
    lower, upper = (np.broadcast_to(np.asarray(end, float), n_columns) for end in bounds)
    least, most = (
        np.asarray(end.toarray() if sp.issparse(end) else end).ravel()
        for end in (matrix.min(axis=0), matrix.max(axis=0))
    )
    outside = np.flatnonzero((least < lower) | (most > upper))
    if not outside.size:
        return bounds, False
    shown = ", ".join(
        f"{j if names is None else names[j]!r:.40} ({least[j]:.4g} to {most[j]:.4g}, beyond "
        f"{lower[j]:.4g} to {upper[j]:.4g})"
        for j in outside[:3]
    )
    more = f" and {outside.size - 3} more" if outside.size > 3 else ""
    warnings.warn(
        f"rows lie beyond the bounds of the fit, which are widened to them: {shown}{more}",
        UserWarning,
        stacklevel=4,
    )
    return (np.minimum(lower, least), np.maximum(upper, most)), True


def _table_names(measured: MeasuredModel, matrix: Matrix) -> list[Any]:
    """What columns are called by who states something about them."""
    if measured.encoding is not None:
        return [column.name for column in measured.encoding.columns]
    return list(range(matrix.shape[1])) if measured.names is None else measured.names


def signs_of(
    y: Any, n_samples: int, classes: tuple[Any, Any] | None
) -> tuple[FloatArray, tuple[Any, Any]]:
    """Labels as ±1 and the two labels, those of the model if it knows them."""
    if classes is None:
        signs = check_labels(y, n_samples)
        low, high = np.unique(column_or_1d(y))
        return signs, (low, high)
    labels = check_label_column(y, n_samples)
    negative, positive = (np.asarray(labels == c, dtype=bool) for c in classes)
    unknown = ~(negative | positive)
    if unknown.any():
        known = " or ".join(repr(c) for c in np.asarray(classes).tolist())
        found = labels[unknown][:1].tolist()[0]
        raise ValueError(f"y must hold labels of the model, {known}, got {found!r}")
    return np.where(positive, 1.0, -1.0), classes


def codes_of(
    y: Any, n_samples: int, classes: tuple[Any, ...] | None
) -> tuple[IndexArray, tuple[Any, ...]]:
    """Labels as positions among the classes, those of the model if it knows them."""
    labels = check_label_column(y, n_samples)
    known = np.unique(labels) if classes is None else np.asarray(classes)
    _check_known(labels, known)
    return np.searchsorted(known, labels).astype(np.intp), tuple(known.tolist())


def _check_known(labels: Any, classes: Any) -> None:
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        known = ", ".join(repr(c) for c in np.asarray(classes).tolist()[:8])
        raise ValueError(
            f"y must hold labels of the model, {known}, got {labels[unknown][:1].tolist()[0]!r}"
        )


def _check_scores(
    model: Any, linear: LinearModel | SoftmaxModel, X: Any, of_class: int | None, matrix: Matrix
) -> None:
    """Compare the model's own scores with those of ``(β, b)``, on a few rows.

    A subclass that transforms differently, or a column order other than the one fitted, must
    not pass for the linear model we took it for.
    """
    if not hasattr(model, "decision_function"):
        return
    if isinstance(X, RowBlocks):  # of blocks that are elsewhere, the matrix is the first
        X = X.block(X.filled[0])
    few = matrix[:_CHECKED_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "X does not have valid feature names"
        first = (sp.csr_array(X) if sp.issparse(X) else X)[: few.shape[0]]
        scores = np.asarray(model.decision_function(first))
    if isinstance(linear, LinearModel):
        one = of_class is not None and scores.ndim == 2
        scores = scores[:, of_class] if one else scores.ravel()
    ours = few @ linear.coef.T + linear.intercept
    # Single precision, and cancellation: measured against the size of the terms of the sum.
    size = abs(few) @ np.abs(linear.coef.T) + np.abs(linear.intercept) + np.abs(scores)
    if scores.shape != ours.shape or (np.abs(scores - ours) > 1e-4 * size).any():
        raise ValueError(
            f"the scores of {type(model).__name__} are not x·coef + intercept of the model found "
            "in it: it is not linear in X. Transform the data first, or pass (coef, intercept)"
        )
