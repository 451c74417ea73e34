"""The joint problem (P) with the hinge kept exact by a barrier: predictor-corrector.

    minimise    ελ + Σ w_i [ h(u_i) + t_i ],     u = Zβ
    subject to  t_i ≥ 0,  r_i = t_i - u_i + κλ ≥ 0,  ‖β‖_* ≤ λ

with multipliers ``c_i`` of ``t_i ≥ 0`` and ``a_i`` of ``r_i ≥ 0`` (both times ``w_i``), so that
``c_i + a_i = 1``; ``a`` is the dual variable of the certificate.  Both are kept: forming one as
1 minus the other loses all its digits where they matter.  Eliminating everything of size N
leaves one linear system of size n + 1 (see ``reduced_system``) with the weights
``h''(u_i) + ω_i``, ``ω = (a/r)(c/t) / (a/r + c/t)``.

An iteration is Mehrotra's predictor-corrector followed by up to two of Gondzio's centrality
corrections, with primal and dual step lengths of their own: one weighted Gram matrix, one
Cholesky factorisation, and a few products with Z and Zᵀ.  These rules are made for constraints and
know nothing of a curved objective: a sample with a large margin has next to no curvature, so a
Newton step may carry it across to the wrong side, where it has none either and every step after
that is too long by orders of magnitude.  Hence steps are cut where the log-loss rises, and leaves
its parabola, by more than the step is good for.  What happens to the samples is in
``barrier_samples``; here is the driver, which never sees one of them.

Reference: S. Mehrotra, SIAM J. Optim. 2 (1992); J. Gondzio, Comput. Optim. Appl. 6 (1996).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.linalg import LinAlgError

from ...problem.result import Status
from ...rows.arrays import FloatArray
from ...rows.interface import State
from .barrier_samples import (
    Conditions,
    Predicted,
    advance,
    correct,
    flip_share,
    follow_aims,
    full_share,
    gram_weights,
    linearise,
    open_samples,
    parabola,
    predict,
    pull_back,
)
from .norm_cone import ConeStep, NormCone, norm_cone
from .scaled import Scaled
from .wide_system import System, reduced_system, wide

#: Complementarity per unit of degree at the start.
_START_MU = 0.05

#: Steps stop short of the boundary by this share at least.
_CLOSEST = 1e-2

#: While μ is above this, directions need not be exact and the Gram matrix may be in single
#: precision; residuals never are.
_ROUGH_MU = 1e-4

#: Centring never aims below this share of the present complementarity ...
_LEAST_SIGMA = 0.01

#: ... nor below this share of the Newton decrement, the distance from the central path in
#: units of the objective: complementarity that runs ahead of the residuals blocks all steps.
#: Where it did, centring aims above the present complementarity, by at most this factor.
_DECREMENT_SHARE = 0.1
_MOST_SIGMA = 10.0

#: The log-loss may rise, and exceed Newton's parabola, by this share of what there is to gain: the
#: decrement or the complementarity.  Anything from 0.1 to 2 serves the nearly separable alike.
_EXCESS = 0.5
#: What rounding makes of the difference, for an objective of one.
_ROUNDING = 1e-14
#: A cut leaves between these shares of a step.
_SHORTEST_CUT = 0.1
_LONGEST_CUT = 0.7

#: The predictor's point is looked at when it should leave a gap within this multiple of tol.
_PROMISING = 5.0

#: Centrality corrections per iteration, how much further they try to go, and how much
#: longer the steps must get (summed) for one to be kept.
CORRECTIONS = 2
_REACH = 0.3
_WORTHWHILE = 0.05

#: Non-zeros per row below which a Gram matrix is too cheap for corrections to pay: each costs
#: two products with the data.
_CHEAP_GRAM = 60


@dataclass(frozen=True, eq=False)
class Point:
    """The driver's half of an iterate; the samples' half lives with the rows."""

    x: FloatArray
    lam: float
    cone: NormCone
    samples: State


@dataclass(frozen=True, eq=False)
class Step:
    """One direction of everything, with the longest steps it allows."""

    dx: FloatArray
    dlam: float
    cone: ConeStep
    samples: State
    alphas: tuple[float, float]
    predicted: Predicted | None = None


class Judge(Protocol):
    """Who decides when the run is over: :class:`~.progress.Progress` for (P)."""

    tol: float
    status: Status

    def report(
        self,
        coefficients: FloatArray,
        primal: float,
        flip_share: State,
        estimate: float,
        lam: float,
    ) -> bool: ...

    def try_step(
        self, coefficients: FloatArray, step: FloatArray, length: float, flip_share: State
    ) -> bool: ...


def solve_with_barrier(
    scaled: Scaled,
    progress: Judge,
    *,
    max_iter: int,
    x: FloatArray | None = None,
    lam: float | None = None,
    null: FloatArray | None = None,
) -> Status:
    """Run the method until ``progress`` is satisfied; the result is in ``progress``.

    With ``lam`` the method keeps λ fixed there, and with ``null`` it replaces the log-loss by its
    slope at these coefficients' margins, ``-s u``: what ``epsilon_max`` asks for.
    """
    point, mu = _start(scaled, x, lam, null), _START_MU
    rows = scaled.problem.rows
    for _ in range(max_iter):
        # Where are we?  One pass gives sums, gradient and weighted Gram matrix.
        rough = mu > _ROUGH_MU
        samples, (conditions,) = rows.run(
            linearise, point.samples, scaled.kappa, point.lam, wide(rows), rough
        )
        point = Point(point.x, point.lam, point.cone, samples)
        here = Linearised(scaled, point, conditions, fixed=lam is not None)
        mu = here.mu
        share, _ = rows.run(flip_share, samples)
        if progress.report(
            scaled.coefficients(point.x), here.primal, share, here.estimate,
            point.lam / scaled.sigma,
        ):  # fmt: skip
            return progress.status
        # Predictor: all products to zero.
        try:
            system = here.system(refine=not rough)
        except LinAlgError:
            return Status.STALLED
        affine_aim = point.cone.affine()
        dx, dlam = here.solve(system, affine_aim, here.hinge_affine, here.samples.flips_affine)
        predictor = direction(scaled, point, dx, dlam, affine_aim, predict, None)
        if predictor is None:
            return Status.STALLED
        if here.after(predictor) < _PROMISING * progress.tol and progress.try_step(
            scaled.coefficients(point.x),
            scaled.coefficients(dx),
            predictor.alphas[0],
            rows.run(full_share, predictor.samples)[0],
        ):
            return progress.status
        # Corrector: towards the central path, as far along as the predictor suggests.
        decrement = here.decrement(system)
        worth = rows.n_nonzeros >= _CHEAP_GRAM * rows.n_samples
        step = corrected(
            here, system, predictor, here.centre(decrement, predictor), min(predictor.alphas),
            CORRECTIONS if worth else 0,
        )  # fmt: skip
        if step is None:
            return Status.STALLED
        # Go.
        point, alphas = _moved(here, step, max(decrement, here.estimate), null is not None)
        if max(alphas) < 1e-9:
            return Status.STALLED
    return Status.MAX_ITER


def _start(
    scaled: Scaled, x: FloatArray | None, fixed: float | None, null: FloatArray | None
) -> Point:
    """On the central path of λ at β = 0 (or at ``x``): ``ε = κ Σ w a + (multiplier of λ)``."""
    problem, mu = scaled.problem, _START_MU
    x = np.zeros(problem.costs.size) if x is None else x.copy()
    theta = x[scaled.kept]
    # At θ = 0 the cone's multiplier of λ is a constant over λ; flips fall with λ as well.
    unit = -norm_cone(problem.norm.name, np.zeros_like(theta), 1.0, mu).gradient()[1]

    def surplus(lam: float) -> float:
        kink = scaled.kappa * lam
        slack = 0.5 * (2.0 * mu + kink + math.hypot(kink, 2.0 * mu))
        return unit / lam + scaled.kappa * mu / slack - scaled.epsilon

    if fixed is None:
        low, high = 1e-3 * unit / scaled.epsilon, 1e3 * (unit + mu) / scaled.epsilon
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if surplus(middle) > 0.0 else (low, middle)
        lam = problem.norm.dual(theta) + high
    else:
        lam = fixed * scaled.sigma
    cone = norm_cone(problem.norm.name, theta, lam, mu)
    samples, _ = problem.rows.run(
        open_samples, None, scaled.coefficients(x), scaled.kappa * lam, mu, null
    )
    return Point(x, lam, cone, samples)


class Linearised:
    """The optimality conditions at a point, linearised, in scaled coordinates."""

    def __init__(self, scaled: Scaled, point: Point, samples: Conditions, fixed: bool) -> None:
        self.scaled = scaled
        self.point = point
        self.samples = samples
        self.fixed = fixed  # λ does not move
        self.hinge_affine = scaled.scaled(samples.affine_adjoint)
        self.hinge_centre = scaled.scaled(samples.centre_adjoint)
        gradient_theta, gradient_lam = point.cone.gradient()
        # Residuals of stationarity in x and λ.
        self.residual = scaled.scaled(samples.gradient)
        self.residual[scaled.kept] += gradient_theta
        self.residual_lam = scaled.epsilon - scaled.kappa * samples.flips + gradient_lam

    @property
    def primal(self) -> float:
        """Objective of (P) at this point, at its own λ."""
        return float(self.scaled.epsilon * self.point.lam + self.samples.loss + self.samples.excess)

    @property
    def estimate(self) -> float:
        """What the gap would be if the point were exactly dual feasible."""
        return float(self.samples.products) + self.point.cone.complementarity()

    @property
    def mu(self) -> float:
        return float(self.estimate / (2.0 + self.point.cone.degree))

    def system(self, refine: bool) -> System:
        rows, samples = self.scaled.problem.rows, self.point.samples
        return reduced_system(
            self.scaled, self.samples.gram, lambda: rows.run(gram_weights, samples)[0],
            self.samples.omega_adjoint, self.samples.omega, self.point.cone.curvature(), self.fixed,
            refine=refine,
        )  # fmt: skip

    def right_side(
        self, aim: FloatArray, hinge_adjoint: FloatArray, flips: float
    ) -> tuple[FloatArray, float]:
        drive, drive_lam = self.point.cone.drive(aim)
        rhs = -self.residual - hinge_adjoint
        rhs[self.scaled.kept] -= drive
        if self.fixed:
            return rhs, 0.0
        return rhs, -(self.residual_lam - self.scaled.kappa * flips + drive_lam)

    def solve(
        self, system: System, aim: FloatArray, hinge_adjoint: FloatArray, flips: float
    ) -> tuple[FloatArray, float]:
        return system.solve(*self.right_side(aim, hinge_adjoint, flips))

    def after(self, predictor: Step) -> float:
        """Complementarity after the longest predictor step."""
        primal, dual = predictor.alphas
        assert predictor.predicted is not None
        first, second = predictor.predicted[:2]
        # Σ w (t dc + r da) is what is missing from minus the products.
        hinge_part = float(
            (1.0 - dual) * self.samples.products + (primal - dual) * first + primal * dual * second
        )
        return hinge_part + self.point.cone.after(predictor.cone, predictor.alphas)

    def decrement(self, system: System) -> float:
        """Newton's decrement, squared: what a step to the central path should gain."""
        mu = self.mu
        rhs, rhs_lam = self.right_side(
            self.point.cone.centred(mu),
            self.hinge_affine + mu * self.hinge_centre,
            self.samples.flips_affine + mu * self.samples.flips_centre,
        )
        dx, dlam = system.solve(rhs, rhs_lam)
        return float(rhs @ dx) + rhs_lam * dlam

    def centre(self, decrement: float, predictor: Step) -> float:
        """The complementarity per unit of degree to aim at."""
        ratio = max(self.after(predictor), 0.0) / self.estimate
        sigma = max(
            min(1.0, ratio**3),
            _LEAST_SIGMA,
            min(_MOST_SIGMA, _DECREMENT_SHARE * decrement / self.estimate),
        )
        return sigma * self.mu


def _moved(
    here: Linearised, step: Step, gain: float, linear: bool
) -> tuple[Point, tuple[float, float]]:
    """The point after a step, cut where the loss leaves its parabola, and the lengths taken."""
    point, rows = here.point, here.scaled.problem.rows
    reach = max(_CLOSEST, min(0.1, here.mu))
    primal, dual = ((1.0 - reach) * alpha if alpha < 1.0 else 1.0 for alpha in step.alphas)
    allowed = max(_EXCESS * gain, _ROUNDING * (1.0 + abs(here.primal)))
    while True:
        samples, (loss,) = rows.run(advance, step.samples, primal, dual, linear)
        rise = float(loss - here.samples.loss)
        if not rise > allowed:
            break  # as most steps do, without another pass
        _, (slope, curvature) = rows.run(parabola, step.samples)
        excess = rise - primal * float(slope + 0.5 * primal * curvature)
        if not excess > allowed:
            break
        # The excess is of third order in the length.
        cut = (allowed / excess) ** (1.0 / 3.0)
        primal *= min(_LONGEST_CUT, max(_SHORTEST_CUT, cut))
        dual = min(dual, primal)
    alphas = (primal, dual)
    there = Point(
        point.x + primal * step.dx,
        point.lam + primal * step.dlam,
        point.cone.moved(step.cone, alphas),
        samples,
    )
    return there, alphas


def direction(
    scaled: Scaled,
    point: Point,
    dx: FloatArray,
    dlam: float,
    aim: FloatArray,
    function: Any,
    samples: State | None,
    *arguments: float,
) -> Step | None:
    """Follow (dx, dλ) into cone and samples; None if it is not finite."""
    if not (np.isfinite(dx).all() and math.isfinite(dlam)):
        return None
    cone_step = point.cone.direction(dx[scaled.kept], dlam, aim)
    state = point.samples if samples is None else samples
    new, sums = scaled.problem.rows.run(
        function, state, scaled.coefficients(dx), scaled.kappa * dlam, *arguments
    )
    primal, dual = point.cone.longest(cone_step)
    alphas = (min(1.0, primal, float(sums[0])), min(1.0, dual, float(sums[1])))
    return Step(dx, dlam, cone_step, new, alphas, sums[2] if function is predict else None)


def corrected(
    here: Linearised,
    system: System,
    predictor: Step,
    centre: float,
    share: float,
    corrections: int,
) -> Step | None:
    """The step towards ``centre``, with a share of the predictor's second-order terms."""
    scaled = here.scaled
    assert predictor.predicted is not None
    correction, flips = scaled.scaled(predictor.predicted.pull), predictor.predicted.flips
    return _towards(
        here, system, here.point.cone.corrected(centre, predictor.cone, share), centre, share,
        here.hinge_affine + centre * here.hinge_centre + share * correction,
        here.samples.flips_affine + centre * here.samples.flips_centre + share * flips,
        predictor.samples, corrections,
    )  # fmt: skip


def _towards(
    here: Linearised,
    system: System,
    aim: FloatArray,
    centre: float,
    share: float,
    hinge_adjoint: FloatArray,
    flips: float,
    samples: State,
    corrections: int,
) -> Step | None:
    """The corrected direction, and centrality corrections while they lengthen the steps."""
    scaled, point = here.scaled, here.point
    dx, dlam = here.solve(system, aim, hinge_adjoint, flips)
    step = direction(scaled, point, dx, dlam, aim, correct, samples, centre, share)
    if step is None:
        return None
    rows = scaled.problem.rows
    for _ in range(corrections):
        if min(step.alphas) >= 0.95:
            break
        trial = (min(1.0, step.alphas[0] + _REACH), min(1.0, step.alphas[1] + _REACH))
        pulled, (adjoint, pulled_flips) = rows.run(pull_back, step.samples, *trial, centre)
        aim = point.cone.recentred(aim, step.cone, trial, centre)
        hinge_adjoint = hinge_adjoint + scaled.scaled(adjoint)
        flips = flips + pulled_flips
        dx, dlam = here.solve(system, aim, hinge_adjoint, flips)
        longer = direction(scaled, point, dx, dlam, aim, follow_aims, pulled)
        if longer is None or sum(longer.alphas) < sum(step.alphas) + _WORTHWHILE:
            break
        step = longer
    return step
