"""Duality gaps: how far from optimal a point can be, whoever produced it.

The dual of (P), with ``s, a ∈ [0,1]^N`` and ``H`` the binary entropy, is

    maximise    Σ w_i H(s_i)
    subject to  ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε      (transport norm)
                Σ w_i (s_i - a_i) z_i = 0                          (free columns)

so every feasible ``(s, a)`` bounds the optimum from below.  A dual candidate is a share ``a``
per sample and a coefficient vector ``β̃``, which stands for ``s = 1/(1+e^{Zβ̃})``: near a
solution ``β̃ = β`` is a good one.  A solver that has a Newton step δ at β̃ may hand that over as
well: ``s - s(1-s) Zδ`` is feasible but for what rounding and clipping do to it, because that
is what the step's equations say.  Or it hands over s itself, from a step taken elsewhere or
from an earlier fit.  Candidates are made feasible in two moves:

*Correct.*  Move s so that ``g = Σ w_i (s_i - a_i) z_i`` becomes zero on free columns and fits into
the ball that the constraint allows, at the least cost to the bound.  The step comes from a
quadratic model with the logistic Hessian (:mod:`drlogit.problem.dual_step`); it is linear in s, so
that the equations hold exactly, as long as s stays in [0, 1], and damped and in β̃ where it does
not.  The bound then loses second order in the error of β̃.

*Balance and scale.*  Shrink ``(s, a)`` of one class until the intercept's equation holds, then
of both until the norm constraint does (its left side is positively homogeneous).  This
needs no linear algebra and always ends feasible, ``s = a = 0`` with bound 0 at worst, but
costs a share of the value.

At fixed λ the norm constraint becomes the term ``-λ(‖…‖ + κ Σ w_i a_i)`` and only the free
columns' equations remain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ..rows.arrays import BoolArray, FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Max, Min, Reduction, Sum
from .dual_step import DenseModel, ImplicitModel, Model
from .free_equations import (
    FreeEquations,
    charges,
    free_equations,
    intercept_equation,
    rounding_of_pairwise_sum,
    rounding_of_sum,
)
from .losses import entropy, flip_probability
from .norms import Norm
from .problem import Problem

#: Up to this many coefficients the correction factors the Hessian; beyond, it uses CG.
DIRECT_LIMIT = 3000

#: Steps in β̃ before the linear one; near a solution none is needed.
_MAX_MOVES = 3

#: Rounds in which samples are taken out where free equations cannot be met, and the share of
#: its ``s`` that the step must leave to a sample for it to stay.
_ROUNDS = 6
_LEFT = 1e-2

#: If that is not enough, samples whose ``w s`` and ``w a`` are below this share of the mean weight
#: go first: beside others they are too light for the Hessian to see them.
_LIGHT = (0.0, 1e-9, 1e-7, 1e-5)

#: Share of the mean weight below which ``w s`` is what rounding left of nothing.
_LEFTOVER = 1e-12

#: A free equation counts as met when this much of it is left, relative to the product of the root
#: mean squares; what is left is paid for in any case.
_MET = 1e-13

#: Largest value of ``s(1-s) log²(s/(1-s))``, rounded up.
_MOST_SQUARE = 0.4393

#: Free columns whose matrix is put together by products with it where no Hessian is formed.
_FEW_FREE = 64

#: A bound above the value of a point, by more than rounding explains, is no bound.
_ALARM = 1e-9


@dataclass(frozen=True, eq=False)
class Certificate:
    """Primal value, certified lower bound, and the dual point that proves it.

    ``gap = primal - dual`` bounds the suboptimality; ``primal`` includes what rounding may have
    taken from the margins, and ``dual`` has been charged for what it left of the free equations.
    ``doubt`` and ``flip_share`` are the feasible ``s`` and ``a``, as states of the rows.
    """

    primal: float
    dual: float
    lam: float
    doubt: State
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
    dual_step: FloatArray | None = None,
    doubt: State | None = None,
    tol: float = 0.0,
) -> Certificate:
    """Certificate of ``coefficients`` for (P), or for (B) at fixed ``lam``.

    Work on the bound ends as soon as the gap is within ``tol``; with ``tol=0`` the best
    bound that the corrections reach is returned.
    """
    margins = problem.margins(coefficients)
    level = problem.best_lambda(coefficients, margins) if lam is None else lam
    primal = primal_value(problem, coefficients, margins, level)
    if lam is not None and not problem.allows(coefficients, lam):
        primal = math.inf
    if flip_share is None:
        flip_share = flip_shares_of(problem, margins, level)
    start = coefficients if dual_coefficients is None else dual_coefficients
    bound = dual_bound(
        problem, start, flip_share, step=dual_step, doubt=doubt, lam=lam, wanted=primal - tol
    )
    if bound.value > primal + _ALARM * max(1.0, primal):
        bound = replace(bound, value=0.0)
    doubt, _ = problem.rows.run(_first_of, bound.point)
    return Certificate(
        primal, bound.value, level, doubt, bound.flip_share(problem), bound.coefficients
    )


def primal_value(problem: Problem, coefficients: FloatArray, margins: State, lam: float) -> float:
    """The objective, and what rounding of the margins may hide of it: its slope is one at most."""
    size = float(np.abs(coefficients) @ problem.rows.column_scale)
    return problem.objective_at(margins, lam) + rounding_of_sum(coefficients.size) * size


@dataclass(frozen=True, eq=False)
class DualBound:
    """A feasible dual point: its value, ``(s, a)`` as pairs per block, and the β̃ it came from."""

    value: float
    point: State
    coefficients: FloatArray

    def flip_share(self, problem: Problem) -> State:
        """``a`` alone."""
        return problem.rows.run(_second_of, self.point)[0]


def dual_bound(
    problem: Problem,
    coefficients: FloatArray,
    flip_share: State,
    *,
    step: FloatArray | None = None,
    doubt: State | None = None,
    lam: float | None = None,
    wanted: float = math.inf,
) -> DualBound:
    """Best lower bound from the candidate ``(β̃, a)``, stopping early once it is ``wanted``.

    With ``step`` the candidate is the one that a linear step from β̃ leads to; with ``doubt`` its s
    is given, and β̃ only stands for it.
    """
    if math.isinf(problem.kappa):
        flip_share, _ = problem.rows.run(_zero_like, flip_share)
    if doubt is None:
        candidate = _Candidate.at(problem, coefficients, flip_share, step)
    else:
        candidate = _Candidate.given(problem, coefficients, doubt, flip_share)
    if lam is None:
        candidate = candidate.within_budget(problem)
    best = candidate.bound(problem, lam)
    if best.value >= wanted:
        return best
    candidate = first = candidate.with_curvature(problem)
    model = _quadratic_model(problem, candidate.state)
    equations = _equations(problem, model, candidate.state)
    if equations is not None:  # now that there is a way to pay for them
        best = _better(best, candidate.bound(problem, lam, equations))
        if best.value >= wanted:
            return best
    shifted = None
    for _ in range(_MAX_MOVES + 1):
        step = model.step(
            candidate.gradient, candidate.coefficients, candidate.budget(problem), lam
        )
        shifted = candidate.shifted(problem, step)
        if shifted is not None:
            break
        damped = _damped(problem, step)
        if damped is None:
            break
        candidate = candidate.moved(problem, damped)
        best = _better(best, candidate.bound(problem, lam, equations))
        if best.value >= wanted:
            return best
    best = _settled(problem, model, equations, shifted, best, lam, wanted)
    if best.value > 0.0 or best.value >= wanted or problem.free.sum() == problem.fit_intercept:
        return best
    # Free equations that could not be met: the bound is still the trivial one.
    for light in _LIGHT:
        fewer = first.without_light(problem, light) if light else first
        best = _without_separated_samples(problem, fewer, best, lam, wanted)
        if best.value > 0.0:
            break
    return best


def _without_separated_samples(
    problem: Problem, candidate: _Candidate, best: DualBound, lam: float | None, wanted: float
) -> DualBound:
    """The correction after separated samples were taken out of the free equations.

    If free columns separate some samples and are constant on the others (quasi-separation), the
    equations force ``s = 0`` on the former.  The step says so by leaving next to nothing, or less,
    of their s; but no step from ``s > 0`` ends at 0 exactly.
    """
    for _ in range(_ROUNDS):
        model = _quadratic_model(problem, candidate.state)
        step = model.step(
            candidate.gradient, candidate.coefficients, candidate.budget(problem), lam
        )
        shifted = candidate.shifted(problem, step)
        if shifted is not None:
            equations = _equations(problem, model, candidate.state)
            return _settled(problem, model, equations, shifted, best, lam, wanted)
        fewer = candidate.emptied(problem, step)
        if fewer is None:
            break
        candidate = fewer
    return best


def _settled(
    problem: Problem,
    model: Model,
    equations: FreeEquations | None,
    shifted: _Candidate | None,
    best: DualBound,
    lam: float | None,
    wanted: float,
) -> DualBound:
    """The bound of a shifted candidate, after what is left of the free equations is removed."""
    # Rounding, and a model without H, leave something of the free equations.
    candidate = None
    for _ in range(3):
        if shifted is None:
            break
        candidate = shifted
        best = _better(best, candidate.bound(problem, lam, equations))
        imbalance = candidate.imbalance(problem)
        if best.value >= wanted or not imbalance.any():
            break
        shifted = candidate.shifted(problem, model.free_step(imbalance))
    if candidate is None or equations is None or best.value > 0.0:
        return best
    # After a long shift the curvature at its start says nothing about the room that is left, and
    # samples that the shift meant to empty may have kept the last digits of their s.
    for light in (0.0, _LEFTOVER):
        fresh = candidate.without_light(problem, light).with_curvature(problem)
        model = _quadratic_model(problem, fresh.state)
        equations = _equations(problem, model, fresh.state)
        best = _better(best, fresh.bound(problem, lam, equations))
        if best.value > 0.0:
            break
    return best


def _better(one: DualBound, other: DualBound) -> DualBound:
    return other if other.value > one.value else one


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
    size: float  # root of Σ w (s + a)²: what rounding is measured against
    curvature: float  # Σ w s(1-s)

    @classmethod
    def at(
        cls,
        problem: Problem,
        coefficients: FloatArray,
        flip_share: State,
        step: FloatArray | None = None,
    ) -> _Candidate:
        """The candidate ``(β̃, a)`` with its sums: one pass over the data."""
        state, sums = problem.rows.run(_start, flip_share, coefficients, step)
        there = coefficients if step is None else coefficients + step
        return cls._from_sums(there, state, *sums)

    @classmethod
    def given(
        cls, problem: Problem, coefficients: FloatArray, doubt: State, flip_share: State
    ) -> _Candidate:
        """The candidate ``(s, a)`` with its sums: one pass over the data."""
        state, sums = problem.rows.run(_given, problem.rows.pair(doubt, flip_share))
        return cls._from_sums(coefficients, state, *sums)

    @classmethod
    def _from_sums(
        cls,
        coefficients: FloatArray,
        state: State,
        gradients: FloatArray,
        flips: FloatArray,
        square: float,
        curvature: float,
    ) -> _Candidate:
        return cls(coefficients, state, gradients, flips, math.sqrt(square), curvature)

    @property
    def gradient(self) -> FloatArray:
        """``g = Zᵀ W (s - a)``."""
        return np.asarray(self.gradients.sum(axis=1))

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
            there = self.coefficients + step
        if not (least >= 0.0 and greatest <= 1.0):
            return None
        return self._from_sums(there, state, *sums)

    def emptied(self, problem: Problem, step: FloatArray) -> _Candidate | None:
        """The candidate with ``s = a = 0`` where the shift leaves little of s; None if nowhere."""
        with np.errstate(over="ignore", invalid="ignore"):
            state, (count, *sums) = problem.rows.run(_emptied, self.state, step)
        return self._from_sums(self.coefficients, state, *sums) if count else None

    def without_light(self, problem: Problem, light: float) -> _Candidate:
        """The candidate with ``s = a = 0`` for samples that hardly count."""
        state, sums = problem.rows.run(_without_light, self.state, light / problem.rows.n_samples)
        return self._from_sums(self.coefficients, state, *sums)

    def spent(self, problem: Problem) -> float:
        """``κ Σ w a``, and 0 rather than ∞·0 when labels cannot flip."""
        flips = float(self.flips.sum())
        return problem.kappa * flips if flips > 0.0 else 0.0

    def rounding(self, problem: Problem) -> FloatArray:
        """What rounding alone may leave of each coordinate of the gradient."""
        n = problem.rows.n_samples
        noise = np.full(problem.costs.size, rounding_of_sum(n))
        if problem.fit_intercept:
            noise[-1] = rounding_of_pairwise_sum(n)
        return noise * self.size * problem.rows.column_scale

    def within_budget(self, problem: Problem) -> _Candidate:
        """Shrink ``a`` so that flips alone do not exceed ε."""
        spent = self.spent(problem)
        if spent <= problem.epsilon:
            return self
        state, sums = problem.rows.run(_fewer_flips, self.state, problem.epsilon / spent)
        return self._from_sums(self.coefficients, state, *sums)

    def budget(self, problem: Problem) -> float:
        """What flips leave of ε, less a hair so that rounding does not call for scaling."""
        return max(problem.epsilon - self.spent(problem), 0.0) * (1.0 - 1e-13)

    def imbalance(self, problem: Problem) -> FloatArray:
        """What is left of the free columns' equations, where it is more than rounding."""
        rounding = np.maximum(self.rounding(problem), _MET * self.size * problem.rows.column_scale)
        wrong = problem.free & (np.abs(self.gradient) > rounding)
        return np.where(wrong, self.gradient, 0.0)

    def bound(
        self, problem: Problem, lam: float | None, equations: FreeEquations | None = None
    ) -> DualBound:
        """Value after balancing and scaling, and after the free equations were paid for.

        ``equations`` are those of several free columns; without them the bound is the trivial one.
        """
        factors = np.ones(2)
        alone = problem.free.sum() == problem.fit_intercept
        if alone and problem.fit_intercept:
            noise = float(self.rounding(problem)[-1])
            factors = _balance(-self.gradients[-1, 0], self.gradients[-1, 1], noise)
        elif not alone and (equations is None or self.imbalance(problem).any()):
            factors = np.zeros(2)
        rounding = self.rounding(problem)
        if not alone:
            # Sizes of the samples that take part: others may have most of a column's.
            _, (squares, mass) = problem.rows.run(_sizes, self.state)
            size = np.sqrt(float(mass)) * np.sqrt(squares)
            rounding = np.minimum(rounding, rounding_of_sum(problem.rows.n_samples) * size)
        residual = np.abs(self.gradients @ factors) + rounding
        if alone and problem.fit_intercept:
            # f s (1 - f s) is at least f s(1-s).
            least = float(factors.min()) * float(self.curvature)
            equations = intercept_equation(least, problem.costs.size)
        elif alone:
            equations = FreeEquations.none()
        distance, move = 0.0, None
        if equations is None:
            factors = np.zeros(2)
        else:
            distance, move = equations.distance(residual)
        flips = float(self.flips @ factors)
        used = problem.transport_norm(self.gradients @ factors)
        used += problem.kappa * flips if flips > 0.0 else 0.0
        # What the exact point, and rounding, may add to the left side of the constraint.
        used += distance * problem.transport_norm(0.5 * problem.rows.column_scale)
        used += problem.transport_norm(rounding)
        if lam is None and used > problem.epsilon:
            factors = factors * (problem.epsilon / used)
        if alone:
            # With D = s(1-s), and the intercept's column of ones.
            state, (value,) = problem.rows.run(_value, self.state, factors)
            square, stiffness, furthest = _MOST_SQUARE, 1.0, 0.0 if move is None else move.max()
        else:
            state, (value, square, stiffness, furthest) = problem.rows.run(
                _charged_value, self.state, factors, move if distance > 0.0 else None
            )
        value = float(value) - math.sqrt(square) * distance - float(stiffness) * distance**2
        if lam is not None:
            value += lam * (problem.epsilon - used)
        if not (furthest <= 0.5 and value > 0.0):
            value = 0.0
        return DualBound(value, state, self.coefficients)


def _balance(negative: float, positive: float, noise: float) -> FloatArray:
    """Factors in [0, 1] per class after which ``Σ w (s - a)`` is the same for both.

    Where they agree within ``noise`` their ratio says nothing, and they are left alone.
    """
    if abs(negative - positive) <= noise:
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
        noise = rounding_of_pairwise_sum(problem.rows.n_samples)
        noise *= float(flips.sum() + np.abs(gradients[-1]).sum())
        factors = _balance(-gradients[-1, 0], gradients[-1, 1], noise)
    if problem.free.sum() > problem.fit_intercept:
        return np.zeros(2)
    spent = float(flips @ factors)
    used = problem.transport_norm(gradients @ factors)
    used += problem.kappa * spent if spent > 0.0 else 0.0
    return factors * (problem.epsilon / used) if used > problem.epsilon else factors


def _quadratic_model(problem: Problem, state: State) -> Model:
    """The model of a candidate with this state, with or without forming the Hessian."""
    if problem.rows.n_columns > DIRECT_LIMIT:
        _, (diagonal,) = problem.rows.run(_hessian_diagonal, state)

        def product(v: FloatArray) -> FloatArray:
            _, (image,) = problem.rows.run(_hessian_product, state, v)
            return np.asarray(image)

        return ImplicitModel(problem, diagonal, product)
    _, (hessian,) = problem.rows.run(_hessian, state)
    return DenseModel(problem, hessian)


def _equations(problem: Problem, model: Model, state: State) -> FreeEquations | None:
    """What proves that the equations of several free columns can be met; None if nothing does."""
    free = np.flatnonzero(problem.free)
    if free.size == problem.fit_intercept:
        return None
    matrix = model.among(free) if free.size <= _FEW_FREE or isinstance(model, DenseModel) else None
    if matrix is None:
        return None
    active, _ = problem.rows.run(_active, state)
    return free_equations(problem.rows, free, matrix, active)


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

    fraction = _balancing_fraction(problem, gradient, on_kink)
    if fraction is None or left_side(fraction) > 1e-9 * problem.epsilon:
        # The left side is convex in the fraction: find its minimum, then the largest root.
        best = minimize_scalar(left_side, bounds=(0.0, 1.0), options={"xatol": 1e-13})
        fraction = float(best.x)
        if left_side(fraction) < 0.0:
            ends = (fraction, 1.0)
            fraction = 1.0 if left_side(1.0) <= 0.0 else float(brentq(left_side, *ends))
    return problem.rows.run(_kink_shares, margins, kink, width, fraction)[0]


def _balancing_fraction(
    problem: Problem, gradient: FloatArray, on_kink: FloatArray
) -> float | None:
    """The fraction that solves the free columns' equations best, if they depend on it."""
    scale = np.where(problem.rows.column_scale > 0.0, problem.rows.column_scale, 1.0)
    wanted, direction = (
        vector[problem.free] / scale[problem.free] for vector in (gradient, on_kink)
    )
    square = float(direction @ direction)
    return min(max(float(wanted @ direction) / square, 0.0), 1.0) if square > 1e-20 else None


def inner_gap(gradient: FloatArray, beta: FloatArray, radius: float, norm: Norm) -> float:
    """Gap of the inner problem (C), ``min ½βᵀHβ - cᵀβ`` over ``‖β‖_* ≤ radius``.

    ``gradient`` is ``Hβ - c``; the gap is ``⟨g, β⟩ + radius ‖g‖``.
    """
    return float(gradient @ beta) + radius * norm.value(gradient)


#: s, a and s(1-s) of a block's samples; the last is empty until a Hessian is wanted.
_Dual: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


def _dual_sums(block: Block, s: FloatArray, a: FloatArray) -> tuple[Sum, Sum, Sum, Sum]:
    difference = block.weights * (s - a)
    gradients = block.adjoint(block.by_class(difference))
    flips = block.by_class(block.weights * a).sum(axis=0)
    # Rounding of s - a is that of its operands, which may be far larger than the difference.
    square = float(block.weights @ np.square(s + a))
    curvature = float(block.weights @ (s * (1.0 - s)))
    return Sum(gradients), Sum(flips), Sum(square), Sum(curvature)


def _start(
    block: Block, a: FloatArray, coefficients: FloatArray, step: FloatArray | None
) -> tuple[_Dual, tuple[Sum, ...]]:
    s = flip_probability(block.margins(coefficients))
    if step is not None:
        s = np.clip(s - s * (1.0 - s) * block.margins(step), 0.0, 1.0)
    return (s, a, s[:0]), _dual_sums(block, s, a)


def _given(block: Block, pair: tuple[FloatArray, FloatArray]) -> tuple[_Dual, tuple[Sum, ...]]:
    s, a = pair
    return (s, a, s[:0]), _dual_sums(block, s, a)


def _curvature(block: Block, state: _Dual) -> tuple[_Dual, tuple[()]]:
    s, a, _ = state
    return (s, a, s * (1.0 - s)), ()


def _moved(block: Block, state: _Dual, coefficients: FloatArray) -> tuple[_Dual, tuple[Sum, ...]]:
    _, a, curvature = state
    s = flip_probability(block.margins(coefficients))
    return (s, a, curvature), _dual_sums(block, s, a)


def _shifted(block: Block, state: _Dual, step: FloatArray) -> tuple[_Dual, tuple[Reduction, ...]]:
    s, a, curvature = state
    s = s - curvature * block.margins(step)
    least, greatest = np.min(s, initial=1.0), np.max(s, initial=0.0)
    return (s, a, curvature), (Min(least), Max(greatest), *_dual_sums(block, s, a))


def _emptied(block: Block, state: _Dual, step: FloatArray) -> tuple[_Dual, tuple[Sum, ...]]:
    s, a, curvature = state
    out = (s > 0.0) & ~(s - curvature * block.margins(step) > _LEFT * s)
    s, a, curvature = (np.where(out, 0.0, values) for values in (s, a, curvature))
    return (s, a, curvature), (Sum(int(out.sum())), *_dual_sums(block, s, a))


def _without_light(block: Block, state: _Dual, least: float) -> tuple[_Dual, tuple[Sum, ...]]:
    s, a, curvature = state
    light = block.weights * np.maximum(s, a) < least
    s, a, curvature = (np.where(light, 0.0, values) for values in (s, a, curvature))
    return (s, a, curvature), _dual_sums(block, s, a)


def _value(
    block: Block, state: _Dual, factors: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], tuple[Sum[float]]]:
    s, a, _ = state
    if (factors != 1.0).any():
        shrink = np.where(block.y > 0.0, factors[1], factors[0])
        s, a = shrink * s, shrink * a
    return (s, a), (Sum(float(block.weights @ entropy(s))),)


def _charged_value(
    block: Block, state: _Dual, factors: FloatArray, move: FloatArray | None
) -> tuple[tuple[FloatArray, FloatArray], tuple[Reduction, ...]]:
    point, (value,) = _value(block, state, factors)
    s, curvature = point[0], state[2]
    curvature = curvature if curvature.size else s * (1.0 - s)
    return point, (value, *charges(block, s, curvature, move))


def _first_of(block: Block, pair: tuple[Any, Any]) -> tuple[Any, tuple[()]]:
    return pair[0], ()


def _second_of(block: Block, pair: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, tuple[()]]:
    return pair[1], ()


def _sizes(block: Block, state: _Dual) -> tuple[_Dual, tuple[Sum, Sum]]:
    """``Σ w (s + a) z²`` per column and ``Σ w (s + a)``, which bound ``Σ w (s + a) |z|``."""
    s, a, _ = state
    mass = block.weights * (s + a)
    return state, (Sum(block.squared_columns(mass)), Sum(float(mass.sum())))


def _active(block: Block, state: _Dual) -> tuple[BoolArray, tuple[()]]:
    """Samples that take part in the equations."""
    s, a, _ = state
    return (s > 0.0) | (a > 0.0), ()


def _hessian(block: Block, state: _Dual) -> tuple[_Dual, tuple[Sum]]:
    return state, (Sum(block.gram(block.weights * state[2])),)


def _hessian_product(block: Block, state: _Dual, v: FloatArray) -> tuple[_Dual, tuple[Sum]]:
    return state, (Sum(block.adjoint(block.weights * state[2] * block.margins(v))),)


def _hessian_diagonal(block: Block, state: _Dual) -> tuple[_Dual, tuple[Sum]]:
    return state, (Sum(block.squared_columns(block.weights * state[2])),)


def _largest_margin(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Max]]:
    return None, (Max(np.max(np.abs(block.margins(v)), initial=0.0)),)


def _fewer_flips(block: Block, state: _Dual, factor: float) -> tuple[_Dual, tuple[Sum, ...]]:
    s, a, curvature = state
    return (s, factor * a, curvature), _dual_sums(block, s, factor * a)


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
