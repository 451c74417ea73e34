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
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.linalg import LinAlgError

from ...problem.losses import flip_gain, log_loss, log_loss_terms
from ...problem.result import Status
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.interface import Rows, State
from ...rows.reductions import Sum
from .norm_cone import ConeStep, NormCone
from .predictor_corrector import (
    CORRECTIONS,
    Conditions,
    Lengths,
    Linearised,
    Move,
    Point,
    Predicted,
    Pull,
)
from .progress import Progress
from .scaled import Scaled
from .wide_system import wide

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
    point = _start(scaled, x)
    model = RoundedSamples(scaled.problem.rows, scaled.kappa, _START_WIDTH, scaled.hinge)
    constrained = scaled.epsilon > 0.0
    short, decrement, rough = 0, math.inf, constrained
    for _ in range(max_iter):
        state, conditions = model.linearise(point.samples, point.lam, rough)
        here = Linearised(scaled, model, Point(point.x, point.lam, point.cone, state), conditions)
        # At ε = 0 there is nothing but Newton's own decrement to tell how far it is.
        estimate = here.estimate if constrained else decrement
        rough = constrained and estimate > _ROUGH
        if progress.report(
            scaled.coefficients(point.x), here.primal, model.flip_share(state), estimate,
            point.lam / scaled.sigma,
        ):  # fmt: skip
            return progress.status
        try:
            system = here.system()
        except LinAlgError:
            return Status.STALLED
        predictor = here.predictor(system)
        if predictor is None:
            return Status.STALLED
        centre, move = 0.0, predictor
        if constrained:
            least = min(1.0, _LEAST_MU * progress.tol / here.complementarity)
            centre = here.centre(here.decrement(system), predictor, least)
        # The corrected direction; if it does not lead down, the plain one, which does.
        for share, corrections in ((min(predictor.alphas), CORRECTIONS), (0.0, 0)):
            if constrained:
                towards = here.corrected(system, predictor, centre, share, corrections)
                if towards is None:
                    return Status.STALLED
                move = towards
            line, slope = model.along(point, move, scaled)
            slope += _own_slope(here, move, centre)
            alpha = _line_search(here, model, line, move, centre, slope)
            if alpha > 0.0:
                break
        else:
            return Status.STALLED
        decrement = -slope
        after = here.point.cone.after(move.cone, move.alphas) + conditions.rounding
        if after < _PROMISING * progress.tol > decrement and progress.try_step(
            scaled.coefficients(point.x),
            scaled.coefficients(move.dx),
            alpha,
            model.full_share(line, point.lam + move.dlam),
        ):
            return progress.status
        dual = min(1.0, (1.0 - _CLOSEST) * move.alphas[1])
        if alpha < min(1.0, (1.0 - _CLOSEST) * move.alphas[0]):
            dual = min(dual, alpha)
        margins, rounding = model.advance(line, alpha, point.lam + alpha * move.dlam)
        point = point.moved(move, (alpha, dual), margins)
        wanted = max(_WIDTH_SHARE * point.cone.complementarity(), _WIDTH_TOL * progress.tol)
        if rounding > wanted and alpha > 0.5:
            model = replace(model, width=model.width * _WIDTH_FACTOR)
        short = short + 1 if alpha < _SHORT else 0
        if give_up and short >= _SHORT_STEPS:
            return Status.STALLED
    return Status.MAX_ITER


def _start(scaled: Scaled, x: FloatArray | None) -> Point:
    x = np.zeros(scaled.scale.size) if x is None else x.copy()
    lam = 0.0
    if scaled.epsilon > 0.0:
        # At θ = 0 the multiplier of λ is a constant over λ: make it ε.
        unit = -scaled.cone(np.zeros_like(x), 1.0, _START_MU).gradient()[1]
        lam = scaled.dual_norm(x) + unit / scaled.epsilon
    margins = scaled.problem.margins(scaled.coefficients(x))
    return Point(x, lam, scaled.cone(x, lam, _START_MU), margins)


def _own_slope(here: Linearised, move: Move, centre: float) -> float:
    """Slope along ``move`` of what the merit function has beside the samples."""
    barrier_slope = here.point.cone.barrier_slope(move.cone)
    return here.scaled.epsilon * move.dlam + centre * barrier_slope


def _own_value(here: Linearised, move: Move, centre: float, alpha: float) -> float:
    cone = here.point.cone
    return here.scaled.epsilon * alpha * move.dlam + centre * (
        cone.barrier(move.cone, alpha) - cone.barrier(move.cone, 0.0)
    )


def _line_search(
    here: Linearised,
    model: RoundedSamples,
    line: State,
    move: Move,
    centre: float,
    slope: float,
) -> float:
    """Largest halving of the longest step that decreases the merit function enough; 0 if none."""
    if slope > 0.0:
        return 0.0
    alpha = 1.0
    if here.scaled.epsilon > 0.0:
        alpha = min(1.0, (1.0 - _CLOSEST) * move.alphas[0])
        alpha = _held_back(here.point.cone, move.cone, alpha, centre)
    lams = here.point.lam, move.dlam
    start = model.merit(line, 0.0, *lams)
    # Rounding of the sums: below it a decrease cannot be seen.
    noise = 1e-14 * (1.0 + abs(start))
    for _ in range(_HALVINGS):
        change = model.merit(line, alpha, *lams) - start + _own_value(here, move, centre, alpha)
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


#: Flip shares and Gram weights of a block; margins and their direction.
_Here: TypeAlias = tuple[FloatArray, FloatArray]
_Line: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class RoundedSamples:
    """The samples with their hinges rounded over ``width``: no products, nothing to predict.

    Without ``has_hinge`` only the log-loss is left.  Each pass over the data is a block function of
    the same name.
    """

    rows: Rows
    kappa: float
    width: float
    has_hinge: bool

    degree = 0.0

    def linearise(self, margins: State, lam: float, rough: bool) -> tuple[State, Conditions]:
        here, (conditions,) = self.rows.run(
            _linearise, margins, *self._hinge(lam), wide(self.rows), rough
        )
        return here, conditions

    def _hinge(self, lam: float) -> tuple[float, float, bool]:
        return self.kappa * lam, self.width, self.has_hinge

    def gram_weights(self, here: State) -> State:
        return self.rows.run(_gram_weights, here)[0]

    def flip_share(self, here: State) -> State:
        return self.rows.run(_flip_share, here)[0]

    # The samples have no slacks: they allow any step and add nothing to its right-hand side.

    def predict(
        self, here: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths, Predicted]:
        return here, (math.inf, math.inf), Predicted(0.0, 0.0, np.zeros_like(dcoefficients), 0.0)

    def correct(
        self, predictor: State, dcoefficients: FloatArray, dlam: float, centre: float, share: float
    ) -> tuple[State, Lengths]:
        return predictor, (math.inf, math.inf)

    def pull_back(self, step: State, trial: Lengths, centre: float) -> tuple[State, Pull]:
        return step, Pull(np.zeros(self.rows.n_columns), 0.0)

    def follow(
        self, pulled: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths]:
        return pulled, (math.inf, math.inf)

    def along(self, point: Point, move: Move, scaled: Scaled) -> tuple[State, float]:
        line, (slope,) = self.rows.run(
            _along, point.samples, scaled.coefficients(move.dx), self.kappa * move.dlam,
            *self._hinge(point.lam),
        )  # fmt: skip
        return line, slope

    def merit(self, line: State, alpha: float, lam: float, dlam: float) -> float:
        _, (value,) = self.rows.run(_merit, line, alpha, self.kappa * dlam, *self._hinge(lam))
        return float(value)

    def full_share(self, line: State, lam: float) -> State:
        return self.rows.run(_full_share, line, *self._hinge(lam))[0]

    def advance(self, line: State, alpha: float, lam: float) -> tuple[State, float]:
        margins, (rounding,) = self.rows.run(_advance, line, alpha, *self._hinge(lam))
        return margins, rounding


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
) -> tuple[_Here, tuple[Sum[Conditions]]]:
    """Flip shares and Gram weights as state; Gram matrix, gradients and sums."""
    w = block.weights
    loss = log_loss_terms(u)
    v = u - kink
    a, omega, excess = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    if has_hinge:
        a = _rounded(v, width)
        omega = np.where((a > 0.0) & (a < 1.0), w / width, 0.0)
        excess = flip_gain(u, kink)
    d = w * loss.curvature + omega
    columns = np.stack([w * (a - loss.slope), omega]).T
    if diagonal_only:
        gram, adjoints = block.squared_columns(d), block.adjoint(columns)
    else:
        gram, adjoints = block.gram_and_adjoint(d, columns, rough=rough)
    gradient, omega_adjoint = adjoints.T
    nothing = np.zeros_like(gradient)
    sums = w @ loss.value, w @ excess, 0.0, w @ (excess - a * v), w @ a, omega.sum(), 0.0, 0.0
    conditions = Conditions(gram, gradient, omega_adjoint, nothing, nothing, *map(float, sums))
    return (a, d), (Sum(conditions),)


def _gram_weights(block: Block, state: _Here) -> tuple[tuple[FloatArray, None], tuple[()]]:
    return (state[1], None), ()


def _flip_share(block: Block, state: _Here) -> tuple[FloatArray, tuple[()]]:
    return state[0], ()


def _along(
    block: Block,
    u: FloatArray,
    dcoefficients: FloatArray,
    dkink: float,
    kink: float,
    width: float,
    has_hinge: bool,
) -> tuple[_Line, tuple[Sum]]:
    """Margins and their direction as state; slope of the smoothed loss along it."""
    du = block.margins(dcoefficients)
    slope = -float(block.weights @ (log_loss_terms(u).slope * du))
    if has_hinge:
        slope += float(block.weights @ (_rounded(u - kink, width) * (du - dkink)))
    return (u, du), (Sum(slope),)


def _full_share(
    block: Block, line: _Line, kink: float, width: float, has_hinge: bool
) -> tuple[FloatArray, tuple[()]]:
    """Flip shares after a whole step to the kink ``kink``."""
    u = line[0] + line[1]
    return _rounded(u - kink, width) if has_hinge else np.zeros_like(u), ()


def _merit(
    block: Block,
    line: _Line,
    alpha: float,
    dkink: float,
    kink: float,
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
    line: _Line,
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
    return u, (Sum(float(block.weights @ (np.maximum(v, 0.0) - _rounded(v, width) * v))),)
