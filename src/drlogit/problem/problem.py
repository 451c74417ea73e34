"""Problem (P): Wasserstein distributionally robust logistic regression, validated.

    minimise over β, b, λ    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ]
    subject to               ‖β / c‖_* ≤ λ,        u_i = y_i (x_i·β + b)

with ``h(u) = log(1 + e^{-u})``, weights that sum to one, feature costs ``c`` (infinite cost:
the coefficient is free, as the intercept always is) and the dual ``‖·‖_*`` of the transport
norm.  Its value is the worst expected log-loss over all distributions within Wasserstein
distance ε of the samples, where moving features costs ``‖c (x - x')‖`` and flipping a label
costs κ; ``ε/κ`` is therefore the largest share of labels the adversary may flip.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..rows.arrays import BoolArray, FloatArray
from ..rows.blocks import Block
from ..rows.building import build_rows
from ..rows.centring import centred, exact_dot
from ..rows.interface import Rows, State
from ..rows.reductions import Max, Min, Sum
from .losses import LAMBDA_CONSTANT, hinge, log_loss
from .norms import Norm, get_norm
from .parameters import check_costs, check_epsilon, check_kappa
from .transport import TransportCost

#: Bins of one pass of the weighted-quantile search: three passes resolve 2^30 steps.
_QUANTILE_BINS = 1024


@dataclass(frozen=True, eq=False)
class Problem:
    """One instance of (P).  Build it from data with :func:`build_problem`.

    Coefficients travel as one vector: features first, then the intercept if there is one.  Where
    the rows are shifted (see :mod:`drlogit.rows.centring`) it is the intercept of the shifted
    features; :meth:`split` and :meth:`join` are the way out and in.
    """

    rows: Rows
    epsilon: float
    cost: TransportCost
    fit_intercept: bool

    @property
    def norm(self) -> Norm:
        """The transport norm."""
        return self.cost.norm

    @property
    def costs(self) -> FloatArray:
        """What it costs to move each feature; ``inf`` for free coefficients."""
        return self.cost.costs

    @property
    def kappa(self) -> float:
        """What it costs to flip a label."""
        return self.cost.kappa

    @cached_property
    def free(self) -> BoolArray:
        """Which coefficients the norm constraint leaves alone (all of them at ε = 0)."""
        return np.ones_like(self.cost.free) if self.epsilon == 0.0 else self.cost.free

    @cached_property
    def penalised(self) -> BoolArray:
        """Which coefficients the norm constraint bounds."""
        return ~self.free

    @property
    def lambda_upper_bound(self) -> float:
        """Proposition 3.1: ``λ* ≤ 0.2785 / ε`` for every norm, weighting and intercept."""
        return LAMBDA_CONSTANT / self.epsilon if self.epsilon > 0.0 else math.inf

    def with_radius(self, epsilon: float, kappa: float | None = None) -> Problem:
        """The same samples under another ε (and κ); nothing is copied."""
        epsilon = check_epsilon(epsilon)
        if kappa is None:
            return replace(self, epsilon=epsilon)
        return replace(self, epsilon=epsilon, cost=replace(self.cost, kappa=check_kappa(kappa)))

    def with_signs(self, signs: Any) -> Problem:
        """The same samples under other labels, as ±1; nothing is checked again."""
        return replace(self, rows=self.rows.with_signs(signs))

    def split(self, coefficients: FloatArray) -> tuple[FloatArray, float]:
        """``(β, b)`` of a coefficient vector."""
        if not self.fit_intercept:
            return coefficients.copy(), 0.0
        beta, intercept = coefficients[:-1].copy(), float(coefficients[-1])
        if self.rows.shift is None:
            return beta, intercept
        return beta, exact_dot(np.append(-self.rows.shift, 1.0), coefficients)

    def join(self, coef: ArrayLike, intercept: float) -> FloatArray:
        """The coefficient vector of ``(β, b)``."""
        beta = np.array(coef, dtype=np.float64).ravel()
        vector = np.append(beta, intercept) if self.fit_intercept else beta
        if vector.size != self.costs.size:
            raise ValueError(
                f"expected {self.costs.size - self.fit_intercept} coefficients, got {beta.size}"
            )
        if self.fit_intercept and self.rows.shift is not None:
            vector[-1] = exact_dot(np.append(self.rows.shift, 1.0), vector)
        return vector

    def dual_norm(self, coefficients: FloatArray) -> float:
        """``‖β / c‖_*`` over the penalised coefficients: the least feasible λ (0 at ε = 0)."""
        return self.cost.dual_norm(coefficients) if self.epsilon > 0.0 else 0.0

    def allows(self, coefficients: FloatArray, lam: float) -> bool:
        """Whether ``‖β / c‖_* ≤ λ``, up to rounding."""
        return self.dual_norm(coefficients) * (1.0 - 1e-12) <= lam

    def transport_norm(self, gradient: FloatArray) -> float:
        """``‖c g‖`` over the penalised coordinates of a gradient-like vector."""
        return self.cost.move_norm(gradient) if self.epsilon > 0.0 else 0.0

    def margins(self, coefficients: FloatArray) -> State:
        """The margins ``Z v``, as a state of one vector per block."""
        return self.rows.run(_margins, None, coefficients)[0]

    def objective(self, coefficients: FloatArray, lam: float | None = None) -> float:
        """Value of (P) at ``(β, b)`` and ``lam``, by default at the best λ."""
        margins = self.margins(coefficients)
        if lam is None:
            lam = self.best_lambda(coefficients, margins)
        elif not self.allows(coefficients, lam):
            return math.inf
        return self.objective_at(margins, lam)

    def objective_at(self, margins: State, lam: float) -> float:
        """``ελ + Σ w_i [h(u_i) + (u_i - κλ)_+]`` for margins at hand."""
        _, (total,) = self.rows.run(_robust_loss, margins, self.kappa, lam)
        return float(total) + self.epsilon * lam

    def best_lambda(self, coefficients: FloatArray, margins: State | None = None) -> float:
        """The λ that minimises (P) for given coefficients: ``max(‖β‖_*, q/κ)``.

        ``q`` is the smallest margin with weight at most ``ε/κ`` strictly above it.
        """
        least = self.dual_norm(coefficients)
        if math.isinf(self.kappa):
            return least
        share = self.epsilon / self.kappa
        if margins is None:
            margins = self.margins(coefficients)
        _, (above,) = self.rows.run(_weight_above, margins, self.kappa * least)
        if above <= share:
            return least
        return max(least, self._upper_quantile(margins, share, self.kappa * least) / self.kappa)

    def _upper_quantile(self, margins: State, share: float, low: float) -> float:
        """Smallest margin of positive weight with weight at most ``share`` strictly above.

        More than that is above ``low``.  A histogram narrows the bracket a thousandfold per pass
        until a single value is left, so the search works on blocks anywhere and is exact.
        """
        high, above_high = math.inf, 0.0
        while True:
            # Only margins in (low, high] are still in question; above_high is the weight > high.
            _, (least, greatest) = self.rows.run(_range_within, margins, low, high)
            if least >= greatest:
                return float(greatest)
            edges = np.linspace(least, greatest, _QUANTILE_BINS + 1)
            edges[-1] = greatest
            _, (mass,) = self.rows.run(_histogram, margins, low, high, edges)
            # above[k]: weight strictly above edges[k+1], the upper end of bin k.
            above = above_high + np.concatenate([np.cumsum(mass[::-1])[-2::-1], [0.0]])
            k = int(np.flatnonzero(above <= share)[0])
            # The answer lies in bin k: (edges[k], edges[k+1]], with `least` itself in bin 0.
            above_high = float(above[k])
            low, high = (low if k == 0 else float(edges[k])), float(edges[k + 1])


def _margins(block: Block, _: None, coefficients: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return block.margins(coefficients), ()


def _robust_loss(
    block: Block, u: FloatArray, kappa: float, lam: float
) -> tuple[FloatArray, tuple[Sum]]:
    loss = log_loss(u)
    if math.isfinite(kappa):
        loss += hinge(u - kappa * lam)
    return u, (Sum(float(block.weights @ loss)),)


def _weight_above(block: Block, u: FloatArray, threshold: float) -> tuple[FloatArray, tuple[Sum]]:
    return u, (Sum(float(block.weights[u > threshold].sum())),)


def _range_within(
    block: Block, u: FloatArray, low: float, high: float
) -> tuple[FloatArray, tuple[Min, Max]]:
    inside = u[(u > low) & (u <= high) & (block.weights > 0.0)]
    return u, (Min(np.min(inside, initial=np.inf)), Max(np.max(inside, initial=-np.inf)))


def _histogram(
    block: Block, u: FloatArray, low: float, high: float, edges: FloatArray
) -> tuple[FloatArray, tuple[Sum]]:
    inside = (u > low) & (u <= high) & (block.weights > 0.0)  # as in _range_within
    # Bins are open below and closed above, except that the first holds its lower edge.
    index = np.searchsorted(edges, u[inside], side="left") - 1
    np.maximum(index, 0, out=index)
    return u, (Sum(np.bincount(index, block.weights[inside], minlength=edges.size - 1)),)


def build_problem(
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    kappa: float,
    norm: str | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    n_blocks: int | None = None,
) -> Problem:
    """Check the input and build the :class:`Problem`; ``ValueError`` says what is wrong.

    ``y`` holds two distinct labels; the one that sorts last is the positive class.
    """
    return pose_problem(
        partial(build_rows, X, y, sample_weight, n_jobs=n_jobs, n_blocks=n_blocks),
        epsilon=epsilon, kappa=kappa, norm=norm, fit_intercept=fit_intercept,
        feature_costs=feature_costs,
    )  # fmt: skip


def pose_problem(
    make_rows: Callable[..., Rows],
    *,
    epsilon: float,
    kappa: float,
    norm: str | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
) -> Problem:
    """The problem on the rows that ``make_rows(intercept=…)`` gives once the rest is checked."""
    epsilon = check_epsilon(epsilon)
    kappa = check_kappa(kappa)
    transport = get_norm(norm)
    if not isinstance(fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept must be True or False, got {fit_intercept!r}")
    rows = centred(make_rows(intercept=bool(fit_intercept)))
    costs = check_costs(feature_costs, rows.n_columns - int(fit_intercept))
    if fit_intercept:
        costs = np.append(costs, np.inf)
    return Problem(rows, epsilon, TransportCost(transport, costs, kappa), bool(fit_intercept))
