"""Duality gaps: how far from optimal a point can be, whoever produced it.

The dual of (P), with ``s, a ∈ [0,1]^N`` and ``H`` the binary entropy, is

    maximise    Σ w_i H(s_i)
    subject to  ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε      (transport norm)
                Σ w_i (s_i - a_i) z_i = 0                          (free columns)

so every feasible ``(s, a)`` bounds the optimum from below.  A dual candidate is a share ``a``
per sample and a coefficient vector ``β̃``, which stands for ``s = 1/(1+e^{Zβ̃})``: near a
solution ``β̃ = β`` is a good one.  Candidates are made feasible in two moves:

*Correct.*  Newton steps in β̃ on ``Σ w_i (s_i - a_i) z_i = ĝ``, with the logistic Hessian H.  On
free columns ĝ is zero.  On the others it is the projection of ``g + τβ̃`` on the ball that the
constraint allows (g is the left side; costs left out here): at the best s for this a, ``ĝ = g``
for every ``τ > 0``.  With ``τ = 0`` a g inside the ball or on the wrong face of it would stay
there, and the bound would lose ``βᵀ(g* - g)``, first order in the error of β̃; so it loses second
order only.  What Newton leaves unfinished, steps that are linear in s finish: ``s ← s - D Z c``
with ``D = diag(s(1-s))`` and ``H c = g - ĝ`` is exactly on the constraints, if s stays in [0, 1].

*Balance and scale.*  Shrink ``(s, a)`` of one class until the intercept's equation holds, then
of both until the norm constraint does (its left side is positively homogeneous).  This
needs no linear algebra and always ends feasible, ``s = a = 0`` with bound 0 at worst, but
costs a share of the value.

At fixed λ the norm constraint becomes the term ``-λ(‖…‖ + κ Σ w_i a_i)`` and only the free
columns' equations remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize_scalar

from .losses import FloatArray, entropy, flip_probability
from .norms import Norm
from .problem import Problem
from .rows import Block, Max, Min, Reduction, State, Sum

#: Up to this many coefficients the correction factors the Hessian; beyond, it uses CG.
DIRECT_LIMIT = 3000

#: Newton steps of one correction, all with one factor; near a solution one or two do.
_MAX_CORRECTIONS = 8

#: Corrections go on while one takes this share of what is missing to the wanted bound.
_WORTHWHILE = 0.01

#: τ as a share of the least curvature of a penalised coefficient.  Steps towards ĝ converge for
#: τ below twice the curvature; a small τ takes longer to find the right face of the ball.
_PULL = 0.3

#: Pivots of the Hessian, scaled to unit diagonal, that call it singular.
_SINGULAR = 1e-8

#: Rounding of a sum of products, relative to the product of their root mean squares.
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Certificate:
    """Primal value, certified lower bound, and the dual point that proves it.

    ``gap = primal - dual`` bounds the suboptimality rigorously, up to rounding.
    ``flip_share`` is the feasible ``a``, as a state of the rows.
    """

    primal: float
    dual: float
    lam: float
    flip_share: State
    dual_coefficients: FloatArray

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)


def certify(
    problem: Problem,
    coefficients: FloatArray,
    *,
    lam: float | None = None,
    flip_share: State | None = None,
    dual_coefficients: FloatArray | None = None,
    tol: float = 0.0,
) -> Certificate:
    """Certificate of ``coefficients`` for (P), or for (B) at fixed ``lam``.

    Work on the bound ends as soon as the gap is within ``tol``; with ``tol=0`` the best
    bound that the corrections reach is returned.
    """
    margins = problem.margins(coefficients)
    level = problem.best_lambda(coefficients, margins) if lam is None else lam
    primal = problem.objective_at(margins, level)
    if lam is not None and not problem.allows(coefficients, lam):
        primal = math.inf
    if flip_share is None:
        flip_share = flip_shares_of(problem, margins, level)
    start = coefficients if dual_coefficients is None else dual_coefficients
    bound = dual_bound(problem, start, flip_share, lam=lam, wanted=primal - tol)
    return Certificate(primal, bound.value, level, bound.flip_share, bound.coefficients)


@dataclass(frozen=True, eq=False)
class DualBound:
    """A feasible dual point: its value, its ``a``, and the β̃ it came from.

    ``balanced`` tells whether the candidate satisfied the free columns' equations; if not, the
    point is ``s = a = 0``.
    """

    value: float
    flip_share: State
    coefficients: FloatArray
    balanced: bool


def dual_bound(
    problem: Problem,
    coefficients: FloatArray,
    flip_share: State,
    *,
    lam: float | None = None,
    wanted: float = math.inf,
    hessian: FloatArray | None = None,
) -> DualBound:
    """Best lower bound from the candidate ``(β̃, a)``, stopping early once it is ``wanted``.

    ``hessian`` is ``Σ w_i s_i(1-s_i) z_i z_iᵀ`` at β̃ if the caller has it already.
    """
    if math.isinf(problem.kappa):
        flip_share, _ = problem.rows.run(_zero_like, flip_share)
    candidate = _Candidate.at(problem, coefficients, flip_share)
    if lam is None:
        candidate = candidate.within_budget(problem)
    best = candidate.bound(problem, lam)
    if best.value >= wanted or (lam is not None and not problem.free.any()):
        return best
    candidate = candidate.with_curvature(problem)
    newton = _Newton.at(problem, candidate.state, hessian)
    for _ in range(_MAX_CORRECTIONS):
        excess = candidate.excess(problem, lam, newton.pull)
        if not excess.any():
            return best
        step = _damped(problem, newton.solve(excess))
        if step is None:
            break
        candidate = candidate.moved(problem, step)
        bound = candidate.bound(problem, lam)
        gain = bound.value - best.value
        best = bound if gain > 0.0 else best
        if best.value >= wanted:
            return best
        if bound.balanced and gain < _WORTHWHILE * (wanted - best.value):
            break
    # Linear steps in s, the last ones for the free equations alone: what a singular Hessian
    # leaves of the others is for scaling to remove.
    for wanted_columns in (np.ones_like(problem.free), problem.free, problem.free):
        excess = np.where(wanted_columns, candidate.excess(problem, lam, newton.pull), 0.0)
        shifted = candidate.shifted(problem, newton.solve(excess)) if excess.any() else None
        if shifted is None:
            break
        candidate = shifted
        bound = candidate.bound(problem, lam)
        best = bound if bound.value > best.value else best
    return best


def _damped(problem: Problem, step: FloatArray) -> FloatArray | None:
    """The step, shortened where margins would change too much; None if it is not finite.

    For a largest change m of a margin, ``log(1+m)/m`` is the step length with which Newton's
    method on the log-loss converges from anywhere (Bach 2010, Sun and Tran-Dinh 2019).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if float(np.abs(step) @ problem.rows.column_scale) <= 0.1:
            return step
        _, (change,) = problem.rows.run(_largest_margin, None, step)
    if not math.isfinite(change):
        return None
    return step if change <= 0.5 else step * (math.log1p(change) / change)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A dual candidate with the sums that decide its feasibility.

    The two columns of ``gradients`` and entries of ``flips`` belong to the classes -1 and +1.
    """

    coefficients: FloatArray
    state: State  # per block: s, a, and the s(1-s) that the Hessian was built with
    gradients: FloatArray  # Zᵀ W (s - a) by class, shape (p, 2)
    flips: FloatArray  # Σ w a by class
    size: float  # root of Σ w (s - a)²: what rounding is measured against

    @classmethod
    def at(cls, problem: Problem, coefficients: FloatArray, flip_share: State) -> _Candidate:
        """The candidate ``(β̃, a)`` with its sums: one pass over the data."""
        state, sums = problem.rows.run(_start, flip_share, coefficients)
        return cls._from_sums(coefficients, state, *sums)

    @classmethod
    def _from_sums(
        cls,
        coefficients: FloatArray,
        state: State,
        gradients: FloatArray,
        flips: FloatArray,
        square: float,
    ) -> _Candidate:
        return cls(coefficients, state, gradients, flips, math.sqrt(square))

    def with_curvature(self, problem: Problem) -> _Candidate:
        """The same candidate, its state remembering ``s(1-s)``."""
        return replace(self, state=problem.rows.run(_curvature, self.state)[0])

    def moved(self, problem: Problem, step: FloatArray) -> _Candidate:
        """The candidate at ``β̃ + step``, with the same ``a``."""
        coefficients = self.coefficients + step
        state, sums = problem.rows.run(_moved, self.state, coefficients)
        return self._from_sums(coefficients, state, *sums)

    def shifted(self, problem: Problem, step: FloatArray) -> _Candidate | None:
        """The candidate with ``s - s(1-s) Z step``; None if that leaves [0, 1]."""
        with np.errstate(over="ignore", invalid="ignore"):
            state, (least, greatest, *sums) = problem.rows.run(_shifted, self.state, step)
        if not (least >= 0.0 and greatest <= 1.0):
            return None
        return self._from_sums(self.coefficients + step, state, *sums)

    def flip_share(self, problem: Problem) -> State:
        return problem.rows.run(_second, self.state)[0]

    def spent(self, problem: Problem) -> float:
        """``κ Σ w a``, and 0 rather than ∞·0 when labels cannot flip."""
        flips = float(self.flips.sum())
        return problem.kappa * flips if flips > 0.0 else 0.0

    def rounding(self, problem: Problem) -> FloatArray:
        """What rounding alone may leave of each coordinate of the gradient."""
        return _ROUNDING * self.size * problem.rows.column_scale

    def within_budget(self, problem: Problem) -> _Candidate:
        """Shrink ``a`` so that flips alone do not exceed ε."""
        spent = self.spent(problem)
        if spent <= problem.epsilon:
            return self
        share, _ = problem.rows.run(_scaled, self.flip_share(problem), problem.epsilon / spent)
        return _Candidate.at(problem, self.coefficients, share)

    def excess(self, problem: Problem, lam: float | None, pull: FloatArray) -> FloatArray:
        """``g - ĝ``: what the correction has to remove from the gradient; ``pull`` is τ."""
        gradient = self.gradients.sum(axis=1)
        excess = np.where(problem.free, gradient, 0.0)
        if lam is None and problem.penalised.any():
            kept, costs = problem.penalised, problem.costs[problem.penalised]
            moved = gradient[kept] * costs
            # A hair inside the ball, so that rounding does not call for scaling.
            radius = max(problem.epsilon - self.spent(problem), 0.0) * (1.0 - 1e-13)
            target = moved + pull[kept] * self.coefficients[kept] / costs
            excess[kept] = (moved - problem.norm.project(target, radius)) / costs
        excess[np.abs(excess) <= self.rounding(problem)] = 0.0
        return excess

    def bound(self, problem: Problem, lam: float | None) -> DualBound:
        """Value after balancing and scaling; 0 where the free equations do not hold."""
        factors = np.ones(2)
        open_equations = problem.free.copy()
        if problem.fit_intercept:
            factors = _balance(-self.gradients[-1, 0], self.gradients[-1, 1])
            open_equations[-1] = False
        gradient = self.gradients @ factors
        left = np.abs(gradient[open_equations])
        balanced = bool((left <= 100.0 * self.rounding(problem)[open_equations]).all())
        if not balanced:
            factors, left = np.zeros(2), np.zeros_like(left)
        flips = float(self.flips @ factors)
        used = problem.transport_norm(self.gradients @ factors)
        used += problem.kappa * flips if flips > 0.0 else 0.0
        if lam is None and used > problem.epsilon:
            factors = factors * (problem.epsilon / used)
        state, (value,) = problem.rows.run(_bound_value, self.state, factors)
        if lam is not None:
            value += lam * (problem.epsilon - used)
        # What rounding left of the free equations multiplies the free coefficients.
        value -= float(left @ np.abs(self.coefficients[open_equations]))
        return DualBound(max(value, 0.0), state, self.coefficients, balanced)


def _balance(negative: float, positive: float) -> FloatArray:
    """Factors in [0, 1] per class after which ``Σ w (s - a)`` is the same for both."""
    if negative == positive:
        return np.ones(2)
    if min(negative, positive) < 0.0 < max(negative, positive):
        return np.zeros(2)
    if abs(negative) < abs(positive):
        return np.array([1.0, negative / positive])
    return np.array([positive / negative, 1.0])


def feasible_factors(problem: Problem, gradients: FloatArray, flips: FloatArray) -> FloatArray:
    """Factors per class that make ``(s, a)`` feasible for (P), from its sums per class.

    Zeros (the trivial bound) where features are free: their equations need Newton steps.
    """
    factors = np.ones(2)
    if problem.fit_intercept:
        factors = _balance(-gradients[-1, 0], gradients[-1, 1])
    if problem.free.sum() > problem.fit_intercept:
        return np.zeros(2)
    spent = float(flips @ factors)
    used = problem.transport_norm(gradients @ factors)
    used += problem.kappa * spent if spent > 0.0 else 0.0
    return factors * (problem.epsilon / used) if used > problem.epsilon else factors


class _Newton(NamedTuple):
    """``solve``: ``g ↦ c`` with ``H c = g`` for the logistic Hessian H; ``pull``: τ.

    Where H is singular (more coefficients than samples, duplicated columns) or CG does not tell,
    τ is added to the curvature of the penalised coefficients.  Then steps towards a ĝ that no
    β̃ can reach stay bounded, and the equations of free columns are solved all the same.
    """

    solve: Callable[[FloatArray], FloatArray]
    pull: FloatArray

    @classmethod
    def at(cls, problem: Problem, state: State, hessian: FloatArray | None) -> _Newton:
        """Of the candidate with this state, by Cholesky or, when large, by CG."""
        if hessian is None and problem.rows.n_columns > DIRECT_LIMIT:
            _, (diagonal,) = problem.rows.run(_hessian_diagonal, state)
            pull, ridge = _pull(problem, diagonal)
            return cls(_conjugate_gradient_solver(problem, state, diagonal, ridge), pull)
        if hessian is None:
            _, (hessian,) = problem.rows.run(_hessian, state)
        pull, ridge = _pull(problem, np.diagonal(hessian))
        return cls(_cholesky_solver(hessian, ridge), pull)


def _pull(problem: Problem, diagonal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """τ per coefficient of ``β/c``, and the same as curvature per coefficient of β."""
    costs = np.where(problem.penalised, problem.costs, 1.0)
    curvature = np.where(problem.penalised, diagonal * costs**2, 0.0)
    moving = curvature > 0.0
    pull = np.where(moving, _PULL * np.min(curvature, where=moving, initial=np.inf), 0.0)
    return pull, pull / costs**2


def _cholesky_solver(hessian: FloatArray, ridge: FloatArray) -> Callable[[FloatArray], FloatArray]:
    diagonal = np.diagonal(hessian)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    # A unit diagonal plus a hair, so that duplicated and empty columns factor; a ridge if it
    # was needed.
    factor = None
    for added in (np.zeros_like(ridge), ridge * scale * scale):
        scaled = scale[:, None] * hessian * scale
        np.fill_diagonal(scaled, 1.0 + 1e-12 + added)
        try:
            factor = cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        if np.min(np.diagonal(factor[0])) ** 2 > _SINGULAR:
            break

    def solve(gradient: FloatArray) -> FloatArray:
        if factor is None:
            return np.zeros_like(gradient)
        with np.errstate(over="ignore", invalid="ignore"):  # such steps are not taken
            return np.asarray(scale * cho_solve(factor, scale * gradient, check_finite=False))

    return solve


def _conjugate_gradient_solver(
    problem: Problem,
    state: State,
    diagonal: FloatArray,
    ridge: FloatArray,
    max_iter: int = 200,
    rtol: float = 1e-10,
) -> Callable[[FloatArray], FloatArray]:
    """The same by conjugate gradients with a diagonal preconditioner, one pass a step."""
    positive = diagonal + ridge > 0.0
    inverse = np.where(positive, 1.0 / np.where(positive, diagonal + ridge, 1.0), 0.0)

    def solve(gradient: FloatArray) -> FloatArray:
        x = np.zeros_like(gradient)
        r = gradient.copy()
        direction = inverse * r
        rho = start = float(r @ direction)
        for _ in range(max_iter):
            if rho <= rtol**2 * start:
                break
            _, (product,) = problem.rows.run(_hessian_product, state, direction)
            product += ridge * direction
            curvature = float(direction @ product)
            if curvature <= 0.0:
                break
            alpha = rho / curvature
            x += alpha * direction
            r -= alpha * product
            scaled = inverse * r
            rho, previous = float(r @ scaled), rho
            direction = scaled + (rho / previous) * direction
        return x

    return solve


def flip_shares_of(problem: Problem, margins: State, lam: float) -> State:
    """A dual ``a`` from margins alone: 1 above the kink ``κλ``, 0 below.

    Samples on the kink share whatever the budget leaves; a solver that carries its own
    multipliers does better when there are many.
    """
    if math.isinf(problem.kappa):
        return problem.rows.run(_zero_like, margins)[0]
    kink = problem.kappa * lam
    width = 1e-7 * max(1.0, kink)
    _, sums = problem.rows.run(_kink_sums, margins, kink, width)
    gradient, on_kink, flips, flips_on_kink = sums

    def left_side(fraction: float) -> float:
        moved = problem.transport_norm(gradient - fraction * on_kink)
        spent = problem.kappa * float(flips + fraction * flips_on_kink)
        return moved + spent - problem.epsilon

    # The left side is convex in the fraction: find its minimum, then the largest root.
    best = minimize_scalar(left_side, bounds=(0.0, 1.0), method="bounded").x
    fraction = float(best)
    if left_side(fraction) < 0.0:
        ends = (fraction, 1.0)
        fraction = 1.0 if left_side(1.0) <= 0.0 else float(brentq(left_side, *ends))
    return problem.rows.run(_kink_shares, margins, kink, width, fraction)[0]


def inner_gap(gradient: FloatArray, beta: FloatArray, radius: float, norm: Norm) -> float:
    """Gap of the inner problem (C), ``min ½βᵀHβ - cᵀβ`` over ``‖β‖_* ≤ radius``.

    ``gradient`` is ``Hβ - c``; the gap is ``⟨g, β⟩ + radius ‖g‖``.
    """
    return float(gradient @ beta) + radius * norm.value(gradient)


def _by_class(block: Block, r: FloatArray) -> FloatArray:
    """``r`` in two columns, one per class, zero for the other class's samples."""
    columns = np.zeros((r.size, 2))
    columns[np.arange(r.size), (block.y > 0.0).astype(np.intp)] = r
    return columns


#: s, a and s(1-s) of a block's samples; the last is empty until a Hessian is wanted.
_Dual: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


def _dual_sums(block: Block, s: FloatArray, a: FloatArray) -> tuple[Sum, Sum, Sum]:
    difference = block.weights * (s - a)
    gradients = block.adjoint(_by_class(block, difference))
    flips = _by_class(block, block.weights * a).sum(axis=0)
    return Sum(gradients), Sum(flips), Sum(float(difference @ (s - a)))


def _start(
    block: Block, a: FloatArray, coefficients: FloatArray
) -> tuple[_Dual, tuple[Sum, Sum, Sum]]:
    s = flip_probability(block.margins(coefficients))
    return (s, a, s[:0]), _dual_sums(block, s, a)


def _curvature(block: Block, state: _Dual) -> tuple[_Dual, tuple[()]]:
    s, a, _ = state
    return (s, a, s * (1.0 - s)), ()


def _moved(
    block: Block, state: _Dual, coefficients: FloatArray
) -> tuple[_Dual, tuple[Sum, Sum, Sum]]:
    _, a, curvature = state
    s = flip_probability(block.margins(coefficients))
    return (s, a, curvature), _dual_sums(block, s, a)


def _shifted(block: Block, state: _Dual, step: FloatArray) -> tuple[_Dual, tuple[Reduction, ...]]:
    s, a, curvature = state
    s = s - curvature * block.margins(step)
    least, greatest = np.min(s, initial=1.0), np.max(s, initial=0.0)
    return (s, a, curvature), (Min(least), Max(greatest), *_dual_sums(block, s, a))


def _bound_value(block: Block, state: _Dual, factors: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    s, a, _ = state
    shrink = np.where(block.y > 0.0, factors[1], factors[0])
    return shrink * a, (Sum(float(block.weights @ entropy(shrink * s))),)


def _hessian(block: Block, state: _Dual) -> tuple[_Dual, tuple[Sum]]:
    return state, (Sum(block.gram(block.weights * state[2])),)


def _hessian_product(block: Block, state: _Dual, v: FloatArray) -> tuple[_Dual, tuple[Sum]]:
    return state, (Sum(block.adjoint(block.weights * state[2] * block.margins(v))),)


def _hessian_diagonal(block: Block, state: _Dual) -> tuple[_Dual, tuple[Sum]]:
    return state, (Sum(block.squared_columns(block.weights * state[2])),)


def _largest_margin(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Max]]:
    return None, (Max(np.max(np.abs(block.margins(v)), initial=0.0)),)


def _second(block: Block, state: _Dual) -> tuple[FloatArray, tuple[()]]:
    return state[1], ()


def _scaled(block: Block, a: FloatArray, factor: float) -> tuple[FloatArray, tuple[()]]:
    return factor * a, ()


def _zero_like(block: Block, a: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return np.zeros_like(a), ()


def _kink_sums(
    block: Block, u: FloatArray, kink: float, width: float
) -> tuple[FloatArray, tuple[Sum, ...]]:
    above = (u > kink + width).astype(np.float64)
    on_kink = (np.abs(u - kink) <= width).astype(np.float64)
    s = flip_probability(u)
    columns = np.stack([block.weights * (s - above), block.weights * on_kink], axis=1)
    gradients = block.adjoint(columns)
    return u, (
        Sum(gradients[:, 0]),
        Sum(gradients[:, 1]),
        Sum(float(block.weights @ above)),
        Sum(float(block.weights @ on_kink)),
    )


def _kink_shares(
    block: Block, u: FloatArray, kink: float, width: float, fraction: float
) -> tuple[FloatArray, tuple[()]]:
    return np.where(np.abs(u - kink) <= width, fraction, (u > kink).astype(np.float64)), ()
