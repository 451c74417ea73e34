"""Problem (P): Wasserstein distributionally robust logistic regression, K ≥ 2 labels, validated.

    minimise over B, b, λ    ελ + Σ w_i [ lse(s_i) + max_k ( -s_ik - κ(y_i, k) λ ) ]
    subject to               ‖(B_j - B_k) / c‖_* ≤ λ  for every two labels,   s_i = B x_i + b

with weights that sum to one, feature costs ``c`` (infinite cost: the coefficient is free, as the
intercept always is) and the dual ``‖·‖_*`` of the transport norm.  Its value is the worst expected
log-loss over all distributions within Wasserstein distance ε of the samples, where moving features
costs ``‖c (x - x')‖`` and turning the label y into k costs ``κ(y, k) ≥ 0``.  If κ differs between
samples (:mod:`.label_costs`), the rows hold multiples of it.

Only differences between labels matter.  With two labels the problem depends on ``β = B_2 - B_1``
through the margins ``u_i = y_i (x_i·β + b)``, with labels y = ±1 that the rows have as signs:

    minimise over β, b, λ    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ]    subject to   ‖β / c‖_* ≤ λ

with ``h(u) = log(1 + e^{-u})``; ``ε/κ`` is the largest share of labels the adversary may flip.
With several labels the signs are all +1, and the labels are beside the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.centring import centred, exact_dot
from ..rows.interface import Rows, State
from ..rows.local import LocalRows
from ..rows.reductions import Max
from .ball import ColumnBall
from .domains import Domains, check_domains, domains_of
from .label_costs import FlipCosts, with_flip_costs
from .losses import Codes, label_loss
from .norms import Norm, get_norm
from .parameters import check_cost_matrix, check_epsilon, check_kappa
from .robust_loss import RobustLoss
from .transport import TransportCost


@dataclass(frozen=True, eq=False)
class Problem:
    """One instance of (P): samples, radius and ground cost.

    Coefficients are one vector, or one row for each of several labels: the features, then the
    intercept if there is one.  :meth:`split` and :meth:`join` convert between them and ``(β, b)``
    of the original features.

    If the rows are shifted (:mod:`drlogit.rows.centring`), the intercept belongs to the shifted
    features.  Without an intercept, the coefficients of a group that has a 1 in every row
    (``constant_sum``) absorb the shift.  With a cost ``matrix`` LLᵀ the rows hold the features
    ``Lᵀx``, for which the matrix is the identity.

    The norm does not bound the columns that have a domain (:mod:`drlogit.problem.domains`); their
    part of the loss is in :mod:`drlogit.problem.domain_loss`.  With several labels, categories and
    bounds are treated as numbers (:attr:`as_numbers`), and ``as_given`` is false.  That adversary
    is stronger, so the worst case is an upper bound.

    ``codes`` is a state of the rows that holds several labels as positions; None with two.
    ``stated`` is the :class:`~drlogit.problem.ball.ColumnBall` that the problem was posed with; it
    knows where "none of these columns" is a category.
    """

    rows: Rows
    epsilon: float
    cost: TransportCost
    fit_intercept: bool
    constant_sum: IndexArray | None = None
    matrix: FloatArray | None = None
    n_classes: int = 2
    codes: Any = None
    as_given: bool = True
    stated: Any = None

    @property
    def several(self) -> bool:
        """Whether labels are beside the rows, and coefficients have a row for each."""
        return self.codes is not None

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
    def ball(self) -> ColumnBall:
        """The ball in plain numbers, for the original features."""
        stated: ColumnBall = self.stated
        return replace(stated, epsilon=self.epsilon, kappa=self.cost.labels)

    @property
    def dearest_flip(self) -> float:
        """The largest finite cost of a flip as the rows have them; 0 if there is none."""
        return float(self.rows.run(_dearest_flip, None, self.kappa)[1][0])

    @cached_property
    def flip_costs(self) -> FloatArray:
        """The finite costs of flips; if samples differ, their unit and their largest cost."""
        labels = self.cost.labels
        by_sample = isinstance(labels.multiples, str)
        found = np.ravel([self.kappa, self.dearest_flip] if by_sample else labels.kappa)
        return np.asarray(found[np.isfinite(found)])

    @property
    def least_flip_cost(self) -> float:
        """The least positive cost of a flip, infinite if there is none."""
        return float(self.flip_costs[self.flip_costs > 0.0].min(initial=np.inf))

    @property
    def flips(self) -> bool:
        """Whether any label can flip; at ε = 0 none can."""
        return self.epsilon > 0.0 and self.cost.flips

    @cached_property
    def free(self) -> BoolArray:
        """Which coefficients the norm does not bound (at ε = 0 all of them)."""
        return np.ones_like(self.cost.free) if self.epsilon == 0.0 else self.cost.free

    @cached_property
    def penalised(self) -> BoolArray:
        """Which coefficients the norm bounds."""
        return ~self.free

    def with_radius(self, epsilon: float, kappa: float | FlipCosts | None = None) -> Problem:
        """The same samples under another ε (and κ); nothing is copied.

        A number is another unit of the flip costs.
        """
        labels = self.cost.labels if kappa is None else kappa
        if not isinstance(labels, FlipCosts):
            labels = FlipCosts(check_kappa(labels), self.cost.labels.multiples)
        cost = replace(self.cost, labels=labels)
        return replace(self, epsilon=check_epsilon(epsilon), cost=cost)

    def with_columns(self, features: IndexArray) -> Problem:
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

    @property
    def as_numbers(self) -> Problem:
        """The problem without domains: its adversary has all the moves at no higher cost."""
        domains = self.domains
        if domains is None:
            return self
        costs = self.costs.copy()
        # A change of category is a move of two columns.
        costs[domains.columns] = domains.costs_as_numbers
        return replace(self, cost=replace(self.cost, costs=costs, domains=None))

    def split(self, coefficients: FloatArray) -> tuple[FloatArray, Any]:
        """``(β, b)`` of the original features; of several labels a row each, which sum to zero."""
        model = coefficients - coefficients.mean(axis=0) if self.several else coefficients[None]
        given = np.array([self.moved(row, -1.0) for row in model])
        if not self.fit_intercept:
            given = np.column_stack([given, np.zeros(len(model))])
        coef, intercept = given[:, :-1].copy(), given[:, -1].copy()
        return (coef, intercept) if self.several else (coef[0], float(intercept[0]))

    def join(self, coef: ArrayLike, intercept: Any) -> FloatArray:
        """The coefficients of ``(β, b)``."""
        model = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        if self.fit_intercept:
            model = np.column_stack([model, np.ravel(intercept)])
        if model.shape[1] != self.costs.size:
            raise ValueError(
                f"expected {self.costs.size - self.fit_intercept} coefficients, got {np.size(coef)}"
            )
        rows = [self.moved(row, 1.0) for row in model]
        return np.array(rows) if self.several else rows[0]

    def dual_norm(self, coefficients: FloatArray) -> float:
        """The least feasible λ (0 at ε = 0): ``‖β / c‖_*`` over the penalised coefficients.

        With several labels it is that of the two labels that differ most.
        """
        if self.epsilon == 0.0:
            return 0.0
        if not self.several:
            return self.cost.dual_norm(coefficients)
        return max(self.cost.dual_norm(one - other) for one, other in combinations(coefficients, 2))

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

    def differences(self, coefficients: FloatArray) -> FloatArray:
        """The coefficients of all labels but the first, less the first's: (labels - 1, columns)."""
        return coefficients[1:] - coefficients[0] if self.several else coefficients[None]

    def scores(self, coefficients: FloatArray) -> State:
        """The scores of all labels but the first, (labels - 1, samples) per block."""
        return self.rows.run(_scores, None, self.differences(coefficients))[0]

    @property
    def positions(self) -> State:
        """The positions of several labels, or the blocks' offsets: of two all are the second."""
        return self.codes if self.several else self.rows.offsets

    def robust_loss(
        self, coefficients: FloatArray, floor: float = 0.0, scores: State | None = None
    ) -> RobustLoss:
        """The objective of a model as a function of λ ≥ ``floor``; ``scores`` if known."""
        if self.domains is not None:
            from .domain_loss import domain_loss  # compiled: imported only when needed

            return domain_loss(self.rows, self.cost, coefficients, floor)
        scores = self.scores(coefficients) if scores is None else scores
        scored = self.rows.pair(scores, self.positions)
        return label_loss(self.rows, self.cost, scored, self.dual_norm(coefficients))

    def objective(self, coefficients: FloatArray, lam: float | None = None) -> float:
        """The worst-case loss of a model at ``lam``, by default at the best λ."""
        return self.robust_loss(coefficients).value(self.epsilon, lam)

    def best_lambda(self, coefficients: FloatArray) -> float:
        """The λ that minimises the objective for given coefficients."""
        return self.robust_loss(coefficients).best(self.epsilon)[0]


def _dearest_flip(block: Block, _: None, unit: float) -> tuple[None, tuple[Max]]:
    costs = block.flip_costs(unit)
    return None, (Max(np.max(costs[np.isfinite(costs)], initial=0.0)),)


def _margins(block: Block, _: None, coefficients: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return block.margins(coefficients), ()


def _scores(block: Block, _: None, model: FloatArray) -> tuple[FloatArray, tuple[()]]:
    if len(model) == 1:
        return block.margins(model[0])[None], ()
    return np.ascontiguousarray(block.scores(model).T), ()


def _as_codes(_: Block, codes: FloatArray) -> tuple[Codes, tuple[()]]:
    return codes.astype(np.int32), ()


def pose_problem(
    rows: Rows,
    ball: ColumnBall,
    *,
    classes: np.ndarray[Any, Any] | None = None,
    codes: Any = None,
    names: Sequence[Any] | None = None,
) -> Problem:
    """Check the ball and pose the problem on the rows; ``ValueError`` says what is wrong.

    ``codes`` are several labels as positions among the ``classes``; the labels in the rows are all
    +1 then.  With two labels ``classes`` may be None if κ is one number.
    """
    names = None if isinstance(names, range) else names
    transport, several = get_norm(ball.norm), codes is not None
    epsilon, intercept = check_epsilon(ball.epsilon), rows.intercept
    codes = rows.run(_as_codes, rows.scatter(codes))[0] if several else None
    rows, labels = with_flip_costs(rows, ball.kappa, classes, codes)
    n_features, ends = rows.n_columns - int(intercept), (ball.lower, ball.upper)
    free_to_move = not (ball.groups or np.isfinite(ends).any())
    matrix = check_cost_matrix(ball.costs, n_features, transport.name, not free_to_move)
    costs = ball.costs if matrix is None else np.ones(n_features)
    domains = still = constant = None
    if not free_to_move:
        declared = check_domains(ball.groups or None, ends, n_features, names)
        domains, costs = domains_of(declared, costs, rows, names)
        still = np.concatenate([np.empty(0, dtype=np.intp), *declared.groups])
    if domains is not None:
        ball = replace(ball, groups=domains.with_none_stated(ball.groups))
        # Categories of several labels are penalised, so that no group replaces an intercept.
        constant = None if several else domains.constant_sum
    rows = centred(rows, still, constant=constant is not None)
    if domains is not None:
        costs[domains.columns] = np.inf
        domains = domains if rows.shift is None else domains.shifted(rows.shift)
    if matrix is not None:
        rows = _turned(rows, matrix, classes if several else None)
    costs = np.append(costs, np.inf) if intercept else costs
    cost = TransportCost(transport, costs, labels, domains)
    ball = replace(ball, fit_intercept=intercept)
    problem = Problem(rows, epsilon, cost, intercept, constant, matrix, stated=ball)
    if classes is None or not several:
        return problem
    return replace(
        problem.as_numbers,
        n_classes=int(classes.size),
        codes=codes,
        as_given=domains is None,
    )


def _turned(rows: Rows, matrix: FloatArray, several: Any) -> Rows:
    """The rows with features ``Lᵀx`` for a cost matrix LLᵀ."""
    if several is not None:
        raise ValueError(
            f"a matrix of feature_costs needs two classes, got {several.size}: pass one cost for "
            "each feature instead"
        )
    if not isinstance(rows, LocalRows):
        raise ValueError(
            "a matrix of feature_costs needs X in memory; for Dask collections pass one cost for "
            "each feature"
        )
    return rows.turned(np.asarray(np.linalg.cholesky(matrix), np.float64))
