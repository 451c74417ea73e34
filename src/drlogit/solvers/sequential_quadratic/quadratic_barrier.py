"""The quadratic program of one step, by the barrier of the interior point.

    minimise    ε'λ + gᵀd + ½ dᵀHd + Σ_B w_i (u_i + z_iᵀd - κλ)_+     over d = β - β₀ and λ
    subject to  ‖β‖_* ≤ λ

The samples B are few and in memory; their weights sum to one, and ε', g and H are in units of
what they weighed before.  Without samples (κ = ∞) only cone and quadratic are left.  Hinge and cone
are treated as in ``interior_point.barrier``; the quadratic takes the place of the log-loss, so
an iteration is one Gram matrix of B and one Cholesky factorisation.

The start is a point close to the solution, opened at a complementarity to match.  Where that is
too little for the distance that is left (Newton's decrement says so), more of it is given, with
more room between β and the boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError

from ...rows.arrays import FloatArray
from ..interior_point.barrier_samples import HingeSamples
from ..interior_point.predictor_corrector import CORRECTIONS, Conditions, Linearised, Point
from ..interior_point.scaled import Scaled
from .no_samples import NoSamples

#: λ opens above the start's by this share, at least ‖β‖_*.
_ROOM = 0.01

#: Complementarity at the start, per unit of degree, as a share of ε'λ.
_START_MU = 0.05

#: A start is opened wider while the decrement exceeds this multiple of the complementarity, by
#: their ratio within these limits, and not more often than this.
_TOO_FAR = 2.0
_LEAST_FACTOR, _MOST_FACTOR = 3.0, 30.0
_MOST_OPENINGS = 5

#: Above this complementarity per unit of degree directions need not be exact.
_ROUGH_MU = 1e-4

#: Steps stop short of the boundary by a share between the first and the last, by less the
#: closer the solution is.
_FARTHEST, _CLOSE, _CLOSEST = 0.1, 1e-2, 1e-3

#: From so many coefficients on, a factorisation takes longer than corrections, which save a few.
#: With fewer, a tenth more iterations take a sixth less time (a1a, phishing, (10000, 100)).
_MANY_COEFFICIENTS = 300

#: Above this complementarity per unit of degree a step may leave samples behind at the cost of this
#: share of what there is: a tenth fewer iterations.  Below it some would stand still (a1a, w8a).
_TOGETHER_MU = 1e-3
_BEHIND = 0.01

#: After a step shorter than this the next one only leads back to the central path.
_SHORT = 0.3


@dataclass(frozen=True, eq=False)
class Expansion:
    """``gᵀd + ½dᵀHd`` of the step d from ``centre``, in the user's coordinates."""

    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray

    def added_to(self, samples: Conditions, coefficients: FloatArray) -> Conditions:
        """The samples' Gram matrix, gradient and loss with those of the quadratic."""
        d = coefficients - self.centre
        image = self.hessian @ d
        return samples._replace(
            gram=samples.gram + self.hessian,
            gradient=samples.gradient + self.gradient + image,
            loss=samples.loss + float(self.gradient @ d + 0.5 * (image @ d)),
        )


@dataclass(frozen=True, eq=False)
class Waypoint:
    """A point on the way, with the gap it would have if it were dual feasible."""

    estimate: float
    x: FloatArray
    lam: float


@dataclass(frozen=True, eq=False)
class QuadraticSolution:
    """Where it ended: scaled coefficients, λ, flip shares of B, and the way there."""

    x: FloatArray
    lam: float
    flip_share: FloatArray
    converged: bool
    iterations: int
    way: list[Waypoint]


def opening(scaled: Scaled, x: FloatArray, lam: float) -> tuple[FloatArray, float, float]:
    """Where to open for a start ``(x, λ)``: the point, λ, and the complementarity."""
    lam = max(lam, scaled.dual_norm(x)) * (1.0 + _ROOM)
    return x, lam, max(_START_MU * scaled.epsilon * lam, 1e-12)


def solve_quadratic(
    scaled: Scaled,
    quadratic: Expansion,
    x: FloatArray,
    lam: float,
    mu: float,
    *,
    tol: float,
    max_iter: int,
) -> QuadraticSolution:
    """Solve to within ``tol`` from a point opened at ``mu``."""
    rows = scaled.problem.rows
    least = scaled.dual_norm(x)
    model: HingeSamples | NoSamples = NoSamples(rows)
    if rows.n_samples:
        model = HingeSamples(rows, scaled.kappa, linear=True)  # the log-loss is in the quadratic
    start, point = x, _opened(scaled, model, x, lam, mu)
    corrections = CORRECTIONS if x.size >= _MANY_COEFFICIENTS else 0
    openings, fresh, short, converged, iterations = 0, True, False, False, 0
    way: list[Waypoint] = []
    here: Linearised | None = None
    while iterations < max_iter:
        iterations += 1
        rough = (mu if here is None else here.mu) > _ROUGH_MU
        samples, conditions = model.linearise(point.samples, point.lam, rough)
        point = Point(point.x, point.lam, point.cone, samples)
        conditions = quadratic.added_to(conditions, scaled.coefficients(point.x))
        here = Linearised(scaled, model, point, conditions)
        if isinstance(model, HingeSamples) and here.mu > _TOGETHER_MU:
            price = _BEHIND * here.complementarity
            here.model = replace(model, behind=(price, price))
        if max(here.estimate, _unbalance(here)) <= tol:
            converged = True
            break
        try:
            system = here.system(refine=not rough)
        except LinAlgError:
            break
        if fresh and openings < _MOST_OPENINGS:
            excess = here.decrement(system) / here.estimate
            if excess > _TOO_FAR:
                factor = min(max(excess, _LEAST_FACTOR), _MOST_FACTOR)
                mu *= factor
                lam = least + min(max(lam - least, 1e-3 * lam) * factor, lam)
                point, here, openings = _opened(scaled, model, start, lam, mu), None, openings + 1
                continue
        fresh = False
        way.append(Waypoint(here.estimate, point.x, point.lam))
        predictor = here.predictor(system)
        if predictor is None:
            break
        if min(predictor.alphas) >= 1.0 and here.after(predictor) <= 0.5 * tol and not rough:
            # The whole step solves the equations: there is nothing left to centre.
            share = rows.gather(model.full_share(predictor.samples))
            x, lam = point.x + predictor.dx, point.lam + predictor.dlam
            return QuadraticSolution(x, lam, share, True, iterations, way)
        if short:
            centre, share_kept = here.mu, 0.0
        else:
            centre = here.centre(here.decrement(system), predictor)
            share_kept = min(predictor.alphas)
        step = here.corrected(system, predictor, centre, share_kept, corrections)
        if step is None:
            break
        reach = min(_FARTHEST, max(here.mu, min(_CLOSE, 100.0 * here.mu), _CLOSEST))
        primal, dual = ((1.0 - reach) * alpha if alpha < 1.0 else 1.0 for alpha in step.alphas)
        samples, _ = model.advance(step.samples, (primal, dual))
        point = point.moved(step, (primal, dual), samples)
        short = min(primal, dual) < _SHORT and not short
        if max(primal, dual) < 1e-9:
            break
    share = rows.gather(model.flip_share(point.samples))
    return QuadraticSolution(point.x, point.lam, share, converged, iterations, way)


def _opened(
    scaled: Scaled, model: HingeSamples | NoSamples, x: FloatArray, lam: float, mu: float
) -> Point:
    """The point ``(x, λ)`` with cone and samples centred at ``mu``."""
    samples = model.open(scaled.coefficients(x), lam, mu)
    return Point(x, lam, scaled.cone(x, lam, mu), samples)


def _unbalance(here: Linearised) -> float:
    """What is left of stationarity, in units of the objective."""
    scaled, point = here.scaled, here.point
    free = here.residual.copy()
    free[scaled.kept] = 0.0
    kept = scaled.problem.norm.value(here.residual[scaled.kept]) + abs(here.residual_lam)
    return float(kept * point.lam + np.abs(free) @ (1.0 + np.abs(point.x)))
