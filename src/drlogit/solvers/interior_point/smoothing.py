"""The joint problem (P) with the hinge smoothed: Newton's method with a line search.

    minimise    ελ + Σ w_i [ h(u_i) + φ_δ(u_i - κλ) ],     u = Zβ
    subject to  ‖β‖_* ≤ λ

where ``φ_δ`` is the hinge with its kink rounded over a width δ (a parabola there).  The slope
of ``φ_δ`` is the dual variable ``a``, so the certificate sees the true problem, and the price of
rounding is at most ``δ/16`` times the weight of the samples on the rounded part.

When samples are many compared with coefficients, a width at which that price is negligible
still covers enough samples for the sum to behave like a smooth function, and Newton's method
needs a handful of steps whatever N is; when they are few, it crawls from sample to sample and
``barrier`` is the better choice.  Without a hinge (κ = ∞, or ε = 0) this is the method
of choice at any size.

The norm constraint is kept by the same primal-dual cone as in ``barrier``; predictor,
corrector and centrality corrections concern the cone alone and cost no pass over the
samples, so an iteration is one Gram matrix, one product with Zᵀ and one with Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from ...problem.losses import hinge, log_loss, log_loss_terms
from ...problem.result import Status
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.interface import State
from ...rows.reductions import Sum
from .norm_cone import ConeStep, NormCone, norm_cone
from .progress import Progress
from .scaled import Scaled
from .wide_system import System, reduced_system, wide

_START_MU = 0.2
_START_WIDTH = 0.5

#: The width shrinks by this factor while rounding costs more than these shares of the cone's
#: complementarity and of tol.
_WIDTH_FACTOR = 0.2
_WIDTH_SHARE = 0.3
_WIDTH_TOL = 0.2

#: While the gap should be above this, the Gram matrix may be in single precision.
_ROUGH = 1e-4

#: The point after a step is looked at when it should leave a gap within this multiple of tol.
_PROMISING = 1.0

#: The cone's complementarity is not driven below this share of tol.
_LEAST_MU = 0.1
_LEAST_SIGMA = 0.01

#: As in ``barrier``: residuals that are left behind call complementarity back.
_DECREMENT_SHARE = 0.1
_MOST_SIGMA = 10.0

_CORRECTIONS = 2
_REACH = 0.3
_WORTHWHILE = 0.05

_CLOSEST = 5e-3
_SUFFICIENT = 1e-4

#: A step leaves at least this share of the complementarity that it aims at, or is cut.
_LEAST_SHARE = 0.1
_HOLD = 0.7

#: Enough for weights over twelve orders of magnitude, where full steps can be as much too long.
_HALVINGS = 40

#: Consecutive iterations with short steps after which samples, not curvature, are in the way.
_SHORT_STEPS = 4
_SHORT = 0.3


@dataclass(frozen=True, eq=False)
class Point:
    """The driver's half of an iterate; margins live with the rows."""

    x: FloatArray
    lam: float
    cone: NormCone | None
    margins: State


def solve_with_smoothing(
    scaled: Scaled,
    progress: Progress,
    *,
    max_iter: int,
    x: FloatArray | None = None,
    give_up: bool = False,
) -> Status:
    """Run the method until ``progress`` is satisfied; the result is in ``progress``.

    With ``give_up`` the run ends as STALLED once steps stay short, for another method to go on.
    """
    rows = scaled.problem.rows
    point = _start(scaled, x)
    width, short, decrement = _START_WIDTH, 0, math.inf
    rough = point.cone is not None
    for _ in range(max_iter):
        state, (conditions,) = rows.run(
            _linearise, point.margins, scaled.kappa * point.lam, width, scaled.hinge, wide(rows),
            rough,
        )  # fmt: skip
        here = _Linearised(scaled, point, conditions, state)
        # At ε = 0 there is nothing but Newton's own decrement to tell how far it is.
        estimate = here.estimate if point.cone is not None else decrement
        rough = point.cone is not None and estimate > _ROUGH
        share, _ = rows.run(_flip_share, state)
        if progress.report(
            scaled.coefficients(point.x), here.primal, share, estimate,
            point.lam / scaled.sigma,
        ):  # fmt: skip
            return progress.status
        try:
            system = here.system()
        except LinAlgError:
            return Status.STALLED
        # The corrected direction; if it does not lead down, the plain one, which does.
        alpha = 0.0
        centre, corrected = _search_direction(here, system, progress.tol)
        plain = here.point.cone.centred(centre) if here.point.cone else None
        for move in (corrected, here.move(system, plain)):
            if move is None:
                return Status.STALLED
            line, (slope,) = rows.run(
                _along, point.margins, scaled.coefficients(move.dx), scaled.kappa * point.lam,
                scaled.kappa * move.dlam, width, scaled.hinge,
            )  # fmt: skip
            slope += here.own_slope(move, centre)
            alpha = _line_search(here, line, move, centre, width, slope)
            if alpha > 0.0:
                break
        else:
            return Status.STALLED
        decrement = -slope
        if here.after(move) < _PROMISING * progress.tol > decrement:
            kink = scaled.kappa * (point.lam + move.dlam)
            share, _ = rows.run(_full_share, line, kink, width, scaled.hinge)
            if progress.try_step(
                scaled.coefficients(point.x), scaled.coefficients(move.dx), alpha, share
            ):
                return progress.status
        dual = min(1.0, (1.0 - _CLOSEST) * move.alphas[1])
        if alpha < min(1.0, (1.0 - _CLOSEST) * move.alphas[0]):
            dual = min(dual, alpha)
        margins, (rounding,) = rows.run(
            _advance, line, alpha, scaled.kappa * (point.lam + alpha * move.dlam), width,
            scaled.hinge,
        )  # fmt: skip
        cone = point.cone.moved(move.cone, (alpha, dual)) if point.cone and move.cone else None
        point = Point(point.x + alpha * move.dx, point.lam + alpha * move.dlam, cone, margins)
        wanted = max(
            _WIDTH_SHARE * point.cone.complementarity() if point.cone else 0.0,
            _WIDTH_TOL * progress.tol,
        )
        if rounding > wanted and alpha > 0.5:
            width *= _WIDTH_FACTOR
        short = short + 1 if alpha < _SHORT else 0
        if give_up and short >= _SHORT_STEPS:
            return Status.STALLED
    return Status.MAX_ITER


def _start(scaled: Scaled, x: FloatArray | None) -> Point:
    problem = scaled.problem
    x = np.zeros(problem.costs.size) if x is None else x.copy()
    if scaled.epsilon == 0.0:
        return Point(x, 0.0, None, problem.margins(scaled.coefficients(x)))
    theta = x[scaled.kept]
    # At θ = 0 the multiplier of λ is a constant over λ: make it ε.
    unit = -norm_cone(problem.norm.name, np.zeros_like(theta), 1.0, _START_MU).gradient()[1]
    lam = problem.norm.dual(theta) + unit / scaled.epsilon
    cone = norm_cone(problem.norm.name, theta, lam, _START_MU)
    return Point(x, lam, cone, problem.margins(scaled.coefficients(x)))


@dataclass(frozen=True, eq=False)
class Move:
    """A direction of (x, λ) and of the cone, with the longest primal and dual steps."""

    dx: FloatArray
    dlam: float
    cone: ConeStep | None
    alphas: tuple[float, float]


class Conditions(NamedTuple):
    """What the optimality conditions ask of the samples, summed over them.

    ``gradient`` is ``Zᵀ w (a - s)``, ``omega_adjoint`` is ``Zᵀω``, and ``rounding`` what the kink
    costs by being rounded.
    """

    gram: FloatArray  # or its diagonal
    gradient: FloatArray
    omega_adjoint: FloatArray
    loss: float
    excess: float
    rounding: float
    flips: float
    omega: float


class _Linearised:
    """The optimality conditions of the smoothed problem at a point, linearised."""

    def __init__(self, scaled: Scaled, point: Point, samples: Conditions, state: State) -> None:
        self.scaled = scaled
        self.state = state
        self.point = point
        self.samples = samples
        self.residual = scaled.scaled(samples.gradient)
        self.residual_lam = 0.0
        if point.cone is not None:
            gradient, gradient_lam = point.cone.gradient()
            self.residual[scaled.kept] += gradient
            self.residual_lam = scaled.epsilon - scaled.kappa * samples.flips + gradient_lam

    @property
    def primal(self) -> float:
        return float(self.scaled.epsilon * self.point.lam + self.samples.loss + self.samples.excess)

    @property
    def products(self) -> float:
        return self.point.cone.complementarity() if self.point.cone is not None else 0.0

    @property
    def estimate(self) -> float:
        """What the gap would be if the point were exactly dual feasible."""
        return self.products + self.samples.rounding

    def after(self, move: Move) -> float:
        """What the gap would be after the longest step, if that were exactly dual feasible."""
        cone = self.point.cone
        if cone is None or move.cone is None:
            return 0.0
        return cone.after(move.cone, move.alphas) + self.samples.rounding

    def system(self) -> System:
        rows, cone = self.scaled.problem.rows, self.point.cone
        return reduced_system(
            self.scaled, self.samples.gram, lambda: rows.run(_gram_weights, self.state)[0],
            self.samples.omega_adjoint, self.samples.omega,
            cone.curvature() if cone is not None else None,
        )  # fmt: skip

    def right_side(self, aim: FloatArray | None) -> tuple[FloatArray, float]:
        rhs, rhs_lam = -self.residual, -self.residual_lam
        if self.point.cone is not None and aim is not None:
            drive, drive_lam = self.point.cone.drive(aim)
            rhs[self.scaled.kept] -= drive
            rhs_lam -= drive_lam
        return rhs, rhs_lam

    def move(self, system: System, aim: FloatArray | None) -> Move | None:
        dx, dlam = system.solve(*self.right_side(aim))
        if not (np.isfinite(dx).all() and math.isfinite(dlam)):
            return None
        cone = self.point.cone
        if cone is None or aim is None:
            return Move(dx, 0.0, None, (1.0, 1.0))
        step = cone.direction(dx[self.scaled.kept], dlam, aim)
        primal, dual = cone.longest(step)
        return Move(dx, dlam, step, (min(1.0, primal), min(1.0, dual)))

    def own_slope(self, move: Move, centre: float) -> float:
        """Slope along ``move`` of what the merit function has beside the samples."""
        cone = self.point.cone
        if cone is None or move.cone is None:
            return 0.0
        return self.scaled.epsilon * move.dlam + centre * cone.barrier_slope(move.cone)

    def own_value(self, move: Move, centre: float, alpha: float) -> float:
        cone = self.point.cone
        if cone is None or move.cone is None:
            return 0.0
        return self.scaled.epsilon * alpha * move.dlam + centre * (
            cone.barrier(move.cone, alpha) - cone.barrier(move.cone, 0.0)
        )


def _search_direction(here: _Linearised, system: System, tol: float) -> tuple[float, Move | None]:
    """Predictor, corrector and centrality corrections: all in the driver."""
    cone = here.point.cone
    if cone is None:
        return 0.0, here.move(system, None)
    mu = here.products / cone.degree
    predictor = here.move(system, cone.affine())
    if predictor is None or predictor.cone is None:
        return mu, None
    ratio = max(cone.after(predictor.cone, predictor.alphas), 0.0) / here.products
    rhs, rhs_lam = here.right_side(cone.centred(mu))
    dx, dlam = system.solve(rhs, rhs_lam)
    decrement = float(rhs @ dx) + rhs_lam * dlam
    sigma = max(
        min(1.0, ratio**3),
        _LEAST_SIGMA,
        min(_MOST_SIGMA, _DECREMENT_SHARE * decrement / here.products),
        min(1.0, _LEAST_MU * tol / here.products),
    )
    centre = sigma * mu
    aim = cone.corrected(centre, predictor.cone, min(predictor.alphas))
    move = here.move(system, aim)
    for _ in range(_CORRECTIONS):
        if move is None or move.cone is None or min(move.alphas) >= 0.95:
            break
        trial = (min(1.0, move.alphas[0] + _REACH), min(1.0, move.alphas[1] + _REACH))
        aim = cone.recentred(aim, move.cone, trial, centre)
        longer = here.move(system, aim)
        if longer is None or sum(longer.alphas) < sum(move.alphas) + _WORTHWHILE:
            break
        move = longer
    return centre, move


def _line_search(
    here: _Linearised, line: State, move: Move, centre: float, width: float, slope: float
) -> float:
    """Largest halving of the longest step that decreases the merit function enough; 0 if none."""
    scaled, point = here.scaled, here.point
    if slope > 0.0:
        return 0.0
    alpha = min(1.0, (1.0 - _CLOSEST) * move.alphas[0]) if move.cone else 1.0
    if point.cone is not None and move.cone is not None:
        alpha = _held_back(point.cone, move.cone, alpha, centre)
    kinks = (scaled.kappa * point.lam, scaled.kappa * move.dlam)
    _, (start,) = scaled.problem.rows.run(_merit, line, 0.0, *kinks, width, scaled.hinge)
    # Rounding of the sums: below it a decrease cannot be seen.
    noise = 1e-14 * (1.0 + abs(float(start)))
    for _ in range(_HALVINGS):
        _, (value,) = scaled.problem.rows.run(_merit, line, alpha, *kinks, width, scaled.hinge)
        change = float(value - start) + here.own_value(move, centre, alpha)
        if change <= _SUFFICIENT * alpha * slope + noise:
            return alpha
        alpha *= 0.5
    return 0.0


def _held_back(cone: NormCone, step: ConeStep, alpha: float, centre: float) -> float:
    """A step no longer than the cone's complementarity can follow.

    Far from the solution the second-order term of a curved cone can eat up all of it at once, long
    before the residuals are gone; the boundary then blocks every step that follows.
    """
    now = cone.complementarity()
    while cone.after(step, (alpha, alpha)) < _LEAST_SHARE * (now + alpha * (centre - now)):
        alpha *= _HOLD
    return alpha


# ----------------------------------------------------------------------------------------
# Block functions: one pass over the samples each.


def _rounded(v: FloatArray, width: float) -> FloatArray:
    """Slope of the rounded hinge: 0, then a ramp over ``width``, then 1."""
    return np.clip(0.5 + v / width, 0.0, 1.0)


def _rounded_hinge(v: FloatArray, width: float) -> FloatArray:
    """The rounded hinge itself: ``max_a a v - (width/2)(a - ½)²`` over [0, 1], plus width/8."""
    a = _rounded(v, width)
    return a * v - 0.5 * width * np.square(a - 0.5) + 0.125 * width


def _linearise(
    block: Block,
    u: FloatArray,
    kink: float,
    width: float,
    has_hinge: bool,
    diagonal_only: bool,
    rough: bool,
) -> tuple[tuple[FloatArray, FloatArray], tuple[Sum[Conditions]]]:
    """Flip shares and Gram weights as state; Gram matrix, gradients and sums."""
    w = block.weights
    loss = log_loss_terms(u)
    v = u - kink
    a, omega, excess = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    if has_hinge:
        a = _rounded(v, width)
        omega = np.where((a > 0.0) & (a < 1.0), w / width, 0.0)
        excess = hinge(v)
    d = w * loss.curvature + omega
    columns = np.stack([w * (a - loss.slope), omega]).T
    if diagonal_only:
        gram, adjoints = block.squared_columns(d), block.adjoint(columns)
    else:
        gram, adjoints = block.gram_and_adjoint(d, columns, rough=rough)
    totals = w @ loss.value, w @ excess, w @ (excess - a * v), w @ a, omega.sum()
    return (a, d), (Sum(Conditions._make([gram, *adjoints.T, *map(float, totals)])),)


def _gram_weights(
    block: Block, state: tuple[FloatArray, FloatArray]
) -> tuple[tuple[FloatArray, None], tuple[()]]:
    return (state[1], None), ()


def _flip_share(block: Block, state: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, tuple[()]]:
    return state[0], ()


def _along(
    block: Block,
    u: FloatArray,
    dcoefficients: FloatArray,
    kink: float,
    dkink: float,
    width: float,
    has_hinge: bool,
) -> tuple[tuple[FloatArray, FloatArray], tuple[Sum]]:
    """Margins and their direction as state; slope of the smoothed loss along it."""
    du = block.margins(dcoefficients)
    slope = -float(block.weights @ (log_loss_terms(u).slope * du))
    if has_hinge:
        slope += float(block.weights @ (_rounded(u - kink, width) * (du - dkink)))
    return (u, du), (Sum(slope),)


def _full_share(
    block: Block, line: tuple[FloatArray, FloatArray], kink: float, width: float, has_hinge: bool
) -> tuple[FloatArray, tuple[()]]:
    """Flip shares after a whole step to the kink ``kink``."""
    u = line[0] + line[1]
    return _rounded(u - kink, width) if has_hinge else np.zeros_like(u), ()


def _merit(
    block: Block,
    line: tuple[FloatArray, FloatArray],
    alpha: float,
    kink: float,
    dkink: float,
    width: float,
    has_hinge: bool,
) -> tuple[Any, tuple[Sum]]:
    """Smoothed loss at a trial step."""
    u = line[0] + alpha * line[1]
    loss = log_loss(u)
    if has_hinge:
        loss += _rounded_hinge(u - (kink + alpha * dkink), width)
    return line, (Sum(float(block.weights @ loss)),)


def _advance(
    block: Block,
    line: tuple[FloatArray, FloatArray],
    alpha: float,
    kink: float,
    width: float,
    has_hinge: bool,
) -> tuple[FloatArray, tuple[Sum]]:
    """New margins, and what rounding costs there."""
    u = line[0] + alpha * line[1]
    if not has_hinge:
        return u, (Sum(0.0),)
    v = u - kink
    return u, (Sum(float(block.weights @ (hinge(v) - _rounded(v, width) * v))),)
