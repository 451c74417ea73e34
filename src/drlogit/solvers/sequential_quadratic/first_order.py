"""A start for features that hardly depend on each other: accelerated proximal gradients.

    minimise    F(β, λ) = ελ + Σ w_i [ h(u_i) + r(u_i - κλ) ],     u = Zβ
    subject to  ‖β‖_* ≤ λ

where r is the hinge, rounded over a ``width``.  A gradient step in the metric of the columns'
sizes, ``Σ_j D_j dβ_j² + ρ dλ²``, and the projection on the cone take two products with the data.
Where columns are nearly orthogonal, ten such steps lead closer than any sample does and cost less
than a few Gram matrices; where they are not, hundreds would not.  The first direction tells.

1. *Start*: the direction ``D⁻¹Zᵀw`` (the difference of the classes' means), as far along it as the
   objective falls, with the best λ.  Its mean square margin is its length in the metric if columns
   are orthogonal; much more means that they are not.
2. *Steps* with momentum, which starts anew where it leads back, and a length by the curvature that
   the steps before met.  One visit to the data for each.
3. *End* once margins hardly change: what is left is for the second order.

References: A. Beck, M. Teboulle, SIAM J. Imaging Sci. 2 (2009); B. O'Donoghue, E. Candès, Found.
Comput. Math. 15 (2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ...problem.losses import flip_probability, log_loss
from ...problem.problem import Problem
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.interface import State
from ...rows.reductions import Sum
from ..interior_point.scaled import Scaled
from .method import Guess

#: Mean square margin of the first direction, in units of its length, up to which columns are
#: nearly orthogonal: standard normal ones have 1 + n/N; phishing, a9a and MNIST have 9 to 80.
_DEPENDENT = 2.5

#: The hinge is rounded over this share of the kink's distance, and over so much at most.
_WIDTH, _WIDEST = 0.05, 0.1

#: Weight of λ in the metric, in units of κ², where flips alone hold it.
_LAMBDA_WEIGHT = 0.3

#: Curvature at the start, and how fast a larger one that was met is forgotten.
_CURVATURE, _RELAXED = 0.25, 0.9
#: Where the curvature was more than so many times what was expected, momentum starts anew.
_TOO_LONG = 2.0

#: Steps at most, and the root-mean-square change of margins at which they end: a Gram matrix of the
#: samples near the kink takes the longer the more coefficients there are.
_MOST_STEPS = 40
_CLOSE, _CLOSE_FEW = 0.003, 0.008

#: They are in vain if margins still change by this after some, or where the curvature exceeds this:
#: many samples then share a margin and reach the kink together, as under a nearly constant model.
#: They do not end while flips cost more than this many times ε too much.
_SOME_STEPS, _TOO_FAR, _STIFF, _OVERSPENT = 20, 0.03, 20.0, -1.0

#: How far the solution is then: so many changes of margins, and this share of the width.
_STEPS_LEFT, _ROUNDED = 12.0, 0.3


@dataclass(frozen=True, eq=False)
class Reached:
    """Where steps led to, the curvature they met, and how many they were."""

    guess: Guess
    curvature: float
    steps: int


def descend(
    scaled: Scaled, start: Reached | None = None, close: float | None = None
) -> Reached | None:
    """Steps from ``start``, or from nothing, until margins change by ``close``; None in vain."""
    close = close or max(_CLOSE, min(_CLOSE_FEW, 1.0 / scaled.scale.size))
    run = _Run(scaled)
    if start is None:
        opened = run.opening()
        if opened is None:
            return None
        x, lam = opened
    else:
        x, lam = start.guess.coefficients / scaled.scale, start.guess.lam * scaled.sigma
    width = min(_WIDEST, _WIDTH * scaled.kappa * lam) if scaled.hinge else 1.0
    ahead, ahead_lam, inertia = x, lam, 1.0
    curvature = _CURVATURE if start is None else start.curvature
    margins, here = run.visit(None, x, lam, 0.0, 0.0, width)
    run.weigh(here)
    for steps in range(1, _MOST_STEPS + 1):
        new, new_lam = run.proximal(ahead, ahead_lam, here, curvature)
        if new_lam <= 0.0:
            return None  # the model is constant
        dx, dlam = new - x, new_lam - lam
        back = run.product(new - ahead, new_lam - ahead_lam, dx, dlam) < 0.0
        grown = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * inertia**2))
        momentum, inertia = (0.0, 1.0) if back else ((inertia - 1.0) / grown, grown)
        margins, there = run.visit(margins, new, new_lam, momentum, dlam, width)
        x, lam = new, new_lam
        step, step_lam = x + momentum * dx - ahead, lam + momentum * dlam - ahead_lam
        bend = float((there.gradient - here.gradient) @ step)
        bend += (there.slope - here.slope) * step_lam
        square = run.product(step, step_lam, step, step_lam)
        met = bend / square if square > 0.0 else 0.0
        if met > _TOO_LONG * curvature:
            inertia = 1.0
        curvature = max(_RELAXED * curvature, met)
        ahead, ahead_lam, here = ahead + step, ahead_lam + step_lam, there
        change = math.sqrt(there.change)
        if curvature > _STIFF or (steps == _SOME_STEPS and change > _TOO_FAR):
            return None
        if change <= close and here.slope > _OVERSPENT * scaled.epsilon:
            spread = _STEPS_LEFT * change + (_ROUNDED * width if scaled.hinge else 0.0)
            guess = Guess(scaled.coefficients(x), lam / scaled.sigma, spread)
            return Reached(guess, curvature, steps)
    return None


class _Slopes(NamedTuple):
    """The gradient of F ahead of a point, and the mean square change of u - κλ up to the point."""

    gradient: FloatArray
    slope: float  # in λ
    change: float


class _Run:
    """What steps have in common."""

    def __init__(self, scaled: Scaled) -> None:
        self.scaled = scaled
        self.problem: Problem = scaled.problem
        self.rows = self.problem.rows
        self.weight = 0.0  # of λ in the metric

    def weigh(self, slopes: _Slopes) -> None:
        """Give λ its weight: it has curvature as far as flips hold it, and not the norm."""
        held = 1.0 - slopes.slope / self.scaled.epsilon
        self.weight = _LAMBDA_WEIGHT * self.scaled.kappa**2 * min(max(held, 0.0), 1.0)

    @cached_property
    def metric(self) -> FloatArray:
        squares = np.square(self.scaled.scale * self.rows.column_scale)
        return np.where(squares > 0.0, squares, 1.0)

    def product(self, x: FloatArray, lam: float, y: FloatArray, mu: float) -> float:
        """The inner product of the metric."""
        return float((self.metric * x) @ y) + self.weight * lam * mu

    def opening(self) -> tuple[FloatArray, float] | None:
        """The point on the first direction with the least objective; None for dependent columns."""
        scaled, problem = self.scaled, self.problem
        _, (gradient,) = self.rows.run(_at_zero)
        x = scaled.scaled(gradient) / self.metric
        coefficients = scaled.coefficients(x)
        margins = problem.margins(coefficients)
        _, (mean_square,) = self.rows.run(_mean_square, margins)
        if not 0.0 < mean_square <= _DEPENDENT * float((self.metric * x) @ x):
            return None
        lam = problem.best_lambda(coefficients, margins)  # in proportion to the coefficients
        cost = problem.objective_at(margins, lam) - float(self.rows.run(_loss, margins)[1][0])

        def slope(length: float) -> float:
            return cost + float(self.rows.run(_slope, margins, length)[1][0])

        end = 1.0
        while slope(end) < 0.0 and end < 1e6:
            end *= 4.0
        if not slope(0.0) < 0.0 <= slope(end):
            return None
        length = float(brentq(slope, 0.0, end, rtol=0.05))
        return length * x, length * lam * scaled.sigma

    def visit(
        self,
        margins: State | None,
        x: FloatArray,
        lam: float,
        momentum: float,
        dlam: float,
        width: float,
    ) -> tuple[State, _Slopes]:
        """The samples at a point, and at the one ahead of it."""
        scaled = self.scaled
        kinks = (scaled.kappa * lam, scaled.kappa * dlam) if scaled.hinge else (math.inf, 0.0)
        margins, (gradient, flips, change) = self.rows.run(
            _visit, margins, scaled.coefficients(x), *kinks, momentum, width
        )
        slope = scaled.epsilon - scaled.kappa * float(flips)
        return margins, _Slopes(scaled.scaled(gradient), slope, float(change))

    def proximal(
        self, x: FloatArray, lam: float, slopes: _Slopes, curvature: float
    ) -> tuple[FloatArray, float]:
        """The nearest point of the cone to where a gradient step leads, in the metric.

        The squared distance from the ball of radius λ falls with λ at twice the transport norm of
        what is cut off, which leaves one equation for λ.
        """
        norm, kept = self.problem.norm, self.scaled.kept
        metric = self.metric[kept]
        free = x - slopes.gradient / (curvature * self.metric)
        given = free[kept]

        def cut(level: float) -> FloatArray:
            return norm.project_dual(given, level, 1.0 / metric)

        def excess(level: float) -> float:
            pull = self.weight * (level - lam) + slopes.slope / curvature
            return float(pull - norm.value(metric * (given - cut(level))))

        least = norm.dual(given)
        if excess(least) <= 0.0:
            free_lam = lam - slopes.slope / (curvature * self.weight) if self.weight else lam
            return free, max(least, free_lam)
        level = 0.0 if excess(0.0) >= 0.0 else float(brentq(excess, 0.0, least, xtol=1e-9 * least))
        free[kept] = cut(level)
        return free, level


def _at_zero(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    """Minus the gradient of the log-loss at β = 0."""
    return None, (Sum(0.5 * block.adjoint(block.weights)),)


def _mean_square(block: Block, u: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    return u, (Sum(float(block.weights @ np.square(u))),)


def _loss(block: Block, u: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    return u, (Sum(float(block.weights @ log_loss(u))),)


def _slope(block: Block, u: FloatArray, length: float) -> tuple[FloatArray, tuple[Sum]]:
    """Slope of the log-loss along the margins."""
    return u, (Sum(-float((block.weights * u) @ flip_probability(length * u))),)


def _visit(
    block: Block,
    before: FloatArray | None,
    coefficients: FloatArray,
    kink: float,
    dkink: float,
    momentum: float,
    width: float,
) -> tuple[FloatArray, tuple[Sum, Sum, Sum]]:
    """Margins as state; gradient and weight of flips ahead of them, and the change up to them."""
    w = block.weights
    u = block.margins(coefficients)
    du = np.zeros_like(u) if before is None else u - before
    ahead = u + momentum * du
    r, flips = -flip_probability(ahead), 0.0
    if math.isfinite(kink):
        a = np.clip((ahead - (kink + momentum * dkink)) / width + 0.5, 0.0, 1.0)
        r += a
        flips = float(w @ a)
    du -= dkink
    return u, (Sum(block.adjoint(w * r)), Sum(flips), Sum(float(w @ np.square(du))))
