"""The joint problem (P) with the hinge kept exact by a barrier: predictor-corrector.

    minimise    ελ + Σ w_i [ h(u_i) + t_i ],     u = Zβ
    subject to  t_i ≥ 0,  r_i = t_i - u_i + κλ ≥ 0,  ‖β‖_* ≤ λ

with multipliers ``c_i`` of ``t_i ≥ 0`` and ``a_i`` of ``r_i ≥ 0`` (both times ``w_i``), so that
``c_i + a_i = 1``; ``a`` is the dual variable of the certificate.  Both are kept: forming one as
1 minus the other loses all its digits where they matter.  Eliminating everything of size N
leaves one linear system of size n + 1 (see ``reduced_system``) with the weights
``h''(u_i) + ω_i``, ``ω = (a/r)(c/t) / (a/r + c/t)``.

An iteration is Mehrotra's predictor-corrector followed by up to two of Gondzio's centrality
corrections (``predictor_corrector``), with primal and dual step lengths of their own: one weighted
Gram matrix, one Cholesky factorisation, and a few products with Z and Zᵀ.  These rules are made
for constraints and know nothing of a curved objective: a sample with a large margin has next to no
curvature, so a Newton step may carry it across to the wrong side, where it has none either and
every step after that is too long by orders of magnitude.  Hence steps are cut where the log-loss
rises, and leaves its parabola, by more than the step is good for.  What happens to the samples is
in ``barrier_samples``; here is the driver, which never sees one of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.linalg import LinAlgError

from ...problem.result import Status
from ...rows.arrays import FloatArray
from ...rows.interface import State
from .barrier_samples import HingeSamples
from .predictor_corrector import CORRECTIONS, Lengths, Linearised, Move, Point
from .scaled import Scaled

#: Complementarity per unit of degree at the start.
_START_MU = 0.05

#: Steps stop short of the boundary by this share at least.
_CLOSEST = 1e-2
#: ... and by this one if they are short: a slack that loses 99 % of itself while the others hardly
#: move blocks every step that follows.  Rooms from 0.1 to 0.5 serve alike; linear programs, which
#: the critical radius is made of, do without.
_SHORT = 0.2
_ROOM = 0.1

#: While μ is above this, directions need not be exact and the Gram matrix may be in single
#: precision; residuals never are.
_ROUGH_MU = 1e-4

#: A step may leave samples behind at the cost of this share of the complementarity.  Where none
#: are, steps are the shorter the more samples there are, since one or another holds them up: a1a
#: took 11 iterations and a9a 21, now 8 and 9.  Shares of 0.01 and 0.015 serve alike.  Multipliers
#: are held together in the end, when the bound rests on them; linear programs do without.
_BEHIND = 0.01

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

#: Non-zeros per row below which a Gram matrix is too cheap for corrections to pay: each costs
#: two products with the data.
_CHEAP_GRAM = 60


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
    together: bool = False,
) -> Status:
    """Run the method until ``progress`` is satisfied; the result is in ``progress``.

    With ``lam`` the method keeps λ fixed there, and with ``null`` it replaces the log-loss by its
    slope at these coefficients' margins, ``-s u``: what ``epsilon_max`` asks for.  ``together``
    leaves no sample behind.
    """
    rows = scaled.problem.rows
    model = HingeSamples(rows, scaled.kappa, linear=null is not None, null=null)
    point, mu = _start(scaled, model, x, lam), _START_MU
    for _ in range(max_iter):
        # Where are we?  One pass gives sums, gradient and weighted Gram matrix.
        rough = mu > _ROUGH_MU
        samples, conditions = model.linearise(point.samples, point.lam, rough)
        point = Point(point.x, point.lam, point.cone, samples)
        here = Linearised(scaled, model, point, conditions, fixed=lam is not None)
        mu = here.mu
        if not (model.linear or together):
            price = _BEHIND * here.complementarity
            here.model = replace(model, behind=(price, price if mu > _ROUGH_MU else 0.0))
        if progress.report(
            scaled.coefficients(point.x), here.primal, model.flip_share(samples), here.estimate,
            point.lam / scaled.sigma,
        ):  # fmt: skip
            return progress.status
        # Predictor: all products to zero.
        try:
            system = here.system(refine=not rough)
        except LinAlgError:
            return Status.STALLED
        predictor = here.predictor(system)
        if predictor is None:
            return Status.STALLED
        if here.after(predictor) < _PROMISING * progress.tol and progress.try_step(
            scaled.coefficients(point.x),
            scaled.coefficients(predictor.dx),
            predictor.alphas[0],
            model.full_share(predictor.samples),
        ):
            return progress.status
        # Corrector: towards the central path, as far along as the predictor suggests.
        decrement = here.decrement(system)
        worth = rows.n_nonzeros >= _CHEAP_GRAM * rows.n_samples
        step = here.corrected(
            system, predictor, here.centre(decrement, predictor), min(predictor.alphas),
            CORRECTIONS if worth else 0,
        )  # fmt: skip
        if step is None:
            return Status.STALLED
        # Go.
        point, alphas = _moved(here, model, step, max(decrement, here.estimate))
        if max(alphas) < 1e-9:
            return Status.STALLED
    return Status.MAX_ITER


def _start(scaled: Scaled, model: HingeSamples, x: FloatArray | None, fixed: float | None) -> Point:
    """On the central path of λ at β = 0 (or at ``x``): ``ε = κ Σ w a + (multiplier of λ)``."""
    mu = _START_MU
    x = np.zeros(scaled.scale.size) if x is None else x.copy()
    # At θ = 0 the cone's multiplier of λ is a constant over λ; flips fall with λ as well.
    unit = -scaled.cone(np.zeros_like(x), 1.0, mu).gradient()[1]
    kappa, epsilon = scaled.kappa, scaled.epsilon

    def surplus(lam: float) -> float:
        kink = kappa * lam
        slack = 0.5 * (2.0 * mu + kink + math.hypot(kink, 2.0 * mu))
        return unit / lam + kappa * mu / slack - epsilon

    if fixed is None:
        low, high = 1e-3 * unit / epsilon, 1e3 * (unit + mu) / epsilon
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if surplus(middle) > 0.0 else (low, middle)
        lam = scaled.dual_norm(x) + high
    else:
        lam = fixed * scaled.sigma
    samples = model.open(scaled.coefficients(x), lam, mu)
    return Point(x, lam, scaled.cone(x, lam, mu), samples)


def _moved(here: Linearised, model: HingeSamples, step: Move, gain: float) -> tuple[Point, Lengths]:
    """The point after a step, cut where the loss leaves its parabola, and the lengths taken."""
    reach = max(_CLOSEST, min(0.1, here.mu))
    room = reach if model.linear else _ROOM
    primal, dual = (
        1.0 if alpha == 1.0 else alpha * (1.0 - (reach if alpha > _SHORT else room))
        for alpha in step.alphas
    )
    allowed = max(_EXCESS * gain, _ROUNDING * (1.0 + abs(here.primal)))
    while True:
        samples, loss = model.advance(step.samples, (primal, dual))
        rise = float(loss - here.samples.loss)
        if not rise > allowed:
            break  # as most steps do, without another pass
        slope, curvature = model.parabola(step.samples)
        excess = rise - primal * float(slope + 0.5 * primal * curvature)
        if not excess > allowed:
            break
        # The excess is of third order in the length.
        cut = (allowed / excess) ** (1.0 / 3.0)
        primal *= min(_LONGEST_CUT, max(_SHORTEST_CUT, cut))
        dual = min(dual, primal)
    return here.point.moved(step, (primal, dual), samples), (primal, dual)
