"""Problem (P): Wasserstein distributionally robust logistic regression, validated.

    minimise over β, b, λ    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ]
    subject to               ‖β / c‖_* ≤ λ,        u_i = y_i (x_i·β + b)

with ``h(u) = log(1 + e^{-u})``, weights that sum to one, feature costs ``c`` (infinite cost:
the coefficient is free, as the intercept always is) and the dual ``‖·‖_*`` of the transport
norm.  Its value is the worst expected log-loss over all distributions within Wasserstein
distance ε of the samples, where moving features costs ``‖c (x - x')‖`` and flipping a label
costs κ; ``ε/κ`` is therefore the largest share of labels the adversary may flip.  If κ differs
between samples (:mod:`.label_costs`), the rows hold multiples of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.building import build_rows, labels_of
from ..rows.centring import centred, exact_dot
from ..rows.interface import Rows, State
from ..rows.local import LocalRows
from ..rows.reductions import Max
from .domains import Declared, Domains, check_domains, domains_of
from .label_costs import FlipCosts, flip_costs, is_stated_singly, with_flip_costs
from .losses import flip_loss
from .norms import Norm, get_norm
from .parameters import check_cost_matrix, check_costs, check_epsilon, check_kappa
from .robust_loss import RobustLoss
from .transport import ResultBall, TransportCost

Same = TypeVar("Same", bound="PosedProblem")


@dataclass(frozen=True, eq=False)
class PosedProblem:
    """The part that two and several classes share: samples, radius, ground cost.

    If the rows are shifted (:mod:`drlogit.rows.centring`), the intercept belongs to the shifted
    features.  Without an intercept, the coefficients of a group that has a 1 in every row
    (``constant_sum``) absorb the shift.  With a cost ``matrix`` LLᵀ the rows hold the features
    ``Lᵀx``, for which the matrix is the identity; ``split`` and ``join`` convert coefficients.
    """

    rows: Rows
    epsilon: float
    cost: TransportCost
    fit_intercept: bool
    constant_sum: IndexArray | None = None
    matrix: FloatArray | None = None

    @property
    def norm(self) -> Norm:
        """The transport norm."""
        return self.cost.norm

    @property
    def costs(self) -> FloatArray:
        """The cost of moving each feature; ``inf`` for free coefficients."""
        return self.cost.costs

    @property
    def kappa(self) -> float:
        """The cost of flipping a label; the unit, if flips differ in cost."""
        return self.cost.kappa

    @property
    def domains(self) -> Domains | None:
        """Categories and bounds; None if every feature may be any number."""
        return self.cost.domains

    @property
    def ball(self) -> ResultBall:
        """The ball in plain numbers, for the original features."""
        costs = (self.costs[:-1] if self.fit_intercept else self.costs).copy()
        stated = {} if self.domains is None else self.domains.stated(costs)
        plain = self.matrix if (costs == 1.0).all() else costs
        return ResultBall(
            self.epsilon,
            self.cost.labels,
            self.norm.name,
            plain,
            self.fit_intercept,
            **stated,
        )

    @property
    def dearest_flip(self) -> float:
        """The largest finite cost of a flip as the rows have them; 0 if there is none."""
        return float(self.rows.run(_dearest_flip, None, self.kappa)[1][0])

    @cached_property
    def free(self) -> BoolArray:
        """Which coefficients the norm does not bound (at ε = 0 all of them)."""
        return np.ones_like(self.cost.free) if self.epsilon == 0.0 else self.cost.free

    @cached_property
    def penalised(self) -> BoolArray:
        """Which coefficients the norm bounds."""
        return ~self.free

    def with_radius(self: Same, epsilon: float, kappa: float | FlipCosts | None = None) -> Same:
        """The same samples under another ε (and κ); nothing is copied.

        A number is another unit of the flip costs.
        """
        labels = self.cost.labels if kappa is None else kappa
        if not isinstance(labels, FlipCosts):
            labels = FlipCosts(check_kappa(labels), self.cost.labels.multiples)
        cost = replace(self.cost, labels=labels)
        return replace(self, epsilon=check_epsilon(epsilon), cost=cost)

    def with_columns(self: Same, features: IndexArray) -> Same:
        """The problem restricted to some features; it must have no domains.

        The coefficients belong to the features of the rows, shifted as they are.
        """
        kept = np.append(features, self.costs.size - 1) if self.fit_intercept else features
        cost = replace(self.cost, costs=self.costs[kept])
        return replace(self, rows=self.rows.with_columns(features), cost=cost)

    def moved(self, coefficients: FloatArray, sign: float) -> FloatArray:
        """Convert one class from original features to those of the rows (sign 1) or back (-1)."""
        if self.matrix is None:
            return self._shifted(coefficients, sign)
        factor, n = np.linalg.cholesky(self.matrix), len(self.matrix)
        moved = self._shifted(coefficients, sign) if sign > 0.0 else coefficients.copy()
        moved[:n] = (
            factor @ moved[:n] if sign < 0.0 else (solve_triangular(factor, moved[:n], lower=True))
        )
        return moved if sign > 0.0 else self._shifted(moved, sign)

    def _shifted(self, coefficients: FloatArray, sign: float) -> FloatArray:
        """The part of :meth:`moved` that undoes the shift."""
        moved, shift = coefficients.copy(), self.rows.shift
        if shift is None:
            return moved
        if self.fit_intercept:
            moved[-1] = exact_dot(np.append(sign * shift, 1.0), coefficients)
        else:
            assert self.constant_sum is not None  # otherwise the rows would not be shifted
            factors = np.append(sign * shift, 1.0)
            for j in self.constant_sum:  # rounded once, as the sum may cancel
                moved[j] = exact_dot(factors, np.append(coefficients, coefficients[j]))
        return moved

    def robust_loss(self, coefficients: FloatArray, floor: float = 0.0) -> RobustLoss:
        """The objective of a model as a function of λ ≥ ``floor``."""
        raise NotImplementedError

    def objective(self, coefficients: FloatArray, lam: float | None = None) -> float:
        """The worst-case loss of a model at ``lam``, by default at the best λ."""
        return self.robust_loss(coefficients).value(self.epsilon, lam)

    def best_lambda(self, coefficients: FloatArray) -> float:
        """The λ that minimises the objective for given coefficients."""
        return self.robust_loss(coefficients).best(self.epsilon)[0]


@dataclass(frozen=True, eq=False)
class Problem(PosedProblem):
    """One instance of (P).  Build it from data with :func:`build_problem`.

    Coefficients are one vector: the features, then the intercept if there is one.  :meth:`split`
    and :meth:`join` convert between this vector and ``(β, b)`` of the original features.

    The norm does not bound the columns that have a domain (:mod:`drlogit.problem.domains`); their
    part of the loss is in :mod:`drlogit.problem.domain_loss`.
    """

    n_classes = 2
    several = False

    @property
    def flips(self) -> bool:
        """Whether any label can flip; at ε = 0 none can."""
        return self.epsilon > 0.0 and self.cost.flips

    @property
    def as_numbers(self) -> Problem:
        """The problem without domains: its adversary has all the moves at no higher cost."""
        domains = self.domains
        if domains is None:
            return self
        costs = self.costs.copy()
        # A change of category is a move of two columns.
        share = np.append(np.full(domains.group_of.size, 0.5), np.ones(domains.bounded.size))
        costs[domains.columns] = share * domains.column_costs
        return replace(self, cost=replace(self.cost, costs=costs, domains=None))

    def split(self, coefficients: FloatArray) -> tuple[FloatArray, float]:
        """``(β, b)`` of a coefficient vector."""
        given = self.moved(coefficients, -1.0)
        return (given[:-1], float(given[-1])) if self.fit_intercept else (given, 0.0)

    def join(self, coef: ArrayLike, intercept: float) -> FloatArray:
        """The coefficient vector of ``(β, b)``."""
        beta = np.asarray(coef, dtype=np.float64).ravel()
        vector = np.concatenate([beta, [intercept]]) if self.fit_intercept else beta
        if vector.size != self.costs.size:
            raise ValueError(
                f"expected {self.costs.size - self.fit_intercept} coefficients, got {beta.size}"
            )
        return self.moved(vector, 1.0)

    def dual_norm(self, coefficients: FloatArray) -> float:
        """``‖β / c‖_*`` over the penalised coefficients: the least feasible λ (0 at ε = 0)."""
        return self.cost.dual_norm(coefficients) if self.epsilon > 0.0 else 0.0

    def allows(self, coefficients: FloatArray, lam: float) -> bool:
        """Whether ``‖β / c‖_* ≤ λ``, up to rounding."""
        return self.dual_norm(coefficients) * (1.0 - 1e-12) <= lam

    def transport_norm(self, gradient: FloatArray) -> float:
        """``‖c g‖`` over the penalised coordinates of a gradient-like vector."""
        kept = self.penalised
        return self.norm.value(gradient[kept] * self.costs[kept])

    def margins(self, coefficients: FloatArray) -> State:
        """The margins ``Z v``, one vector per block."""
        return self.rows.run(_margins, None, coefficients)[0]

    def robust_loss(self, coefficients: FloatArray, floor: float = 0.0) -> RobustLoss:
        """The objective of a model as a function of λ; with domains, λ ≥ ``floor``."""
        if self.domains is not None:
            from .domain_loss import domain_loss  # compiled: imported only when needed

            return domain_loss(self.rows, self.cost, coefficients, floor)
        return self.flip_loss(coefficients, self.margins(coefficients))

    def flip_loss(self, coefficients: FloatArray, margins: State) -> RobustLoss:
        """The same from known margins, for features without domains."""
        return flip_loss(self.rows, self.cost, margins, self.dual_norm(coefficients))


def _dearest_flip(block: Block, _: None, unit: float) -> tuple[None, tuple[Max]]:
    costs = block.flip_costs(unit)
    return None, (Max(np.max(costs[np.isfinite(costs)], initial=0.0)),)


def _margins(block: Block, _: None, coefficients: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return block.margins(coefficients), ()


def build_problem(
    X: Any,
    y: ArrayLike,
    *,
    kappa: Any,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    **model: Any,
) -> Problem:
    """Check the input and build the :class:`Problem`; ``ValueError`` says what is wrong.

    ``y`` holds two distinct labels; the one that sorts last is the positive class.  The other
    parameters are those of :func:`drlogit.solve`.
    """
    if not is_stated_singly(kappa):
        kappa = flip_costs(kappa, labels_of(y))
    rows = partial(build_rows, X, y, sample_weight, n_jobs=n_jobs)
    return pose_problem(rows, kappa=kappa, names=column_names(X), **model)


def pose_problem(
    make_rows: Callable[..., Rows],
    *,
    epsilon: float,
    kappa: Any,
    norm: str | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
    categories: Any = None,
    bounds: Any = None,
    names: Sequence[Any] | None = None,
    for_numbers: bool = False,
) -> Problem:
    """Check the parameters, call ``make_rows(intercept=…)`` and pose the problem on its rows.

    ``kappa`` is a number or the result of :func:`~.label_costs.flip_costs`.  With ``for_numbers``
    the caller treats categories as numbers and penalises their coefficients, so that no group can
    replace an intercept.
    """
    epsilon = check_epsilon(epsilon)
    if is_stated_singly(kappa):
        check_kappa(kappa)
    transport = get_norm(norm)
    if not isinstance(fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept must be True or False, got {fit_intercept!r}")
    rows, labels = with_flip_costs(make_rows(intercept=bool(fit_intercept)), kappa)
    n_features = rows.n_columns - int(fit_intercept)
    matrix = check_cost_matrix(
        feature_costs, n_features, transport.name, bool(categories) or bounds is not None
    )
    costs = check_costs(feature_costs if matrix is None else None, n_features)
    rows, cost = ground_cost(
        rows,
        transport,
        costs,
        labels,
        check_domains(categories, bounds, costs.size, names),
        names,
        for_numbers=for_numbers,
    )
    if matrix is not None:
        if not isinstance(rows, LocalRows):
            raise ValueError(
                "a matrix of feature_costs needs X in memory; for Dask collections pass one cost "
                "for each feature"
            )
        rows = rows.turned(np.asarray(np.linalg.cholesky(matrix), np.float64))
    constant = None if cost.domains is None else cost.domains.constant_sum
    return Problem(rows, epsilon, cost, bool(fit_intercept), constant, matrix)


def ground_cost(
    rows: Rows,
    norm: Norm,
    costs: FloatArray,
    labels: FlipCosts,
    declared: Declared,
    names: Sequence[Any] | None,
    *,
    for_numbers: bool = False,
) -> tuple[Rows, TransportCost]:
    """The centred rows and the ground cost, with domains checked against the rows.

    ``costs`` has one entry per feature; the cost of the intercept is infinite.
    """
    domains = still = None
    if declared.groups or np.isfinite([declared.lower, declared.upper]).any():
        domains, costs = domains_of(declared, costs, rows, names)
        still = np.concatenate([np.empty(0, dtype=np.intp), *declared.groups])
    constant = not for_numbers and domains is not None and domains.constant_sum is not None
    rows = centred(rows, still, constant=constant)
    if domains is not None:
        costs[domains.columns] = np.inf
        domains = domains if rows.shift is None else domains.shifted(rows.shift)
    costs = np.concatenate([costs, [np.inf]]) if rows.intercept else costs
    return rows, TransportCost(norm, costs, labels, domains)


def column_names(X: Any) -> list[Any] | None:
    """The names of the columns, if X has them."""
    columns = getattr(X, "feature_names", None) or getattr(X, "columns", None)
    return None if columns is None or callable(columns) else list(columns)
