"""One direction of the interior point with pieces: predictor, corrector, centrality correction."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...rows.arrays import FloatArray
from ...rows.interface import Rows
from .newton_system import NewtonSystem, PieceStep
from .piece_samples import correct, follow_aims, predict, pull_back

#: The least share of the complementarity to aim at, and of the longest step to take.
_LEAST_SIGMA = 0.02
_SHORT = 0.98


def direction(rows: Rows, here: NewtonSystem, centred: float) -> PieceStep | None:
    """Predictor, corrector, and one centrality correction if steps are short.

    ``centred`` is a share of the complementarity below which not to aim.  None if not finite.
    """
    point, samples = here.point, here.samples
    aims = (point.cone.affine(), point.rows.affine())
    dx, dlam = here.solve(aims, samples.affine)
    if not _finite(dx, dlam):
        return None
    state, (primal, dual, predicted) = rows.run(predict, point.samples, dx, dlam)
    predictor = here.step(dx, dlam, aims, state, (primal, dual))
    length = min(predictor.alphas)
    ratio = max(here.after(predictor, predicted), 0.0) / here.complementarity
    sigma = min(1.0, max(ratio**3, centred, _LEAST_SIGMA))
    if length < 0.1:
        sigma = max(sigma, 0.3)
    centre, kept = sigma * here.mu, length**2
    aims = (
        point.cone.corrected(centre, predictor.cone, kept),
        point.rows.corrected(centre, predictor.rows, kept),
    )
    response = samples.affine + centre * samples.centring + kept * predicted.pull
    dx, dlam = here.solve(aims, response)
    if not _finite(dx, dlam):
        return None
    state, longest = rows.run(correct, predictor.samples, dx, dlam, centre, kept)
    step = here.step(dx, dlam, aims, state, longest)
    length = min(step.alphas)
    if length < 0.9:
        # Gondzio's correction: pull back the outliers of a longer step.
        reach = min(1.0, 1.5 * length + 0.1)
        pulled, (more,) = rows.run(pull_back, step.samples, reach, reach, centre)
        aims = (
            point.cone.recentred(aims[0], step.cone, (reach, reach), centre),
            point.rows.recentred(aims[1], step.rows, (reach, reach), centre),
        )
        dx, dlam = here.solve(aims, response + more)
        if _finite(dx, dlam):
            state, longest = rows.run(follow_aims, pulled, dx, dlam)
            longer = here.step(dx, dlam, aims, state, longest)
            if min(longer.alphas) >= 1.05 * length:
                step = longer
    if min(step.alphas) < 0.1:
        # Plain centring is safe.
        centre = max(centre, 0.5 * here.mu)
        aims = (point.cone.centred(centre), point.rows.centred(centre))
        dx, dlam = here.solve(aims, samples.affine + centre * samples.centring)
        if _finite(dx, dlam):
            state, longest = rows.run(correct, predictor.samples, dx, dlam, centre, 0.0)
            step = here.step(dx, dlam, aims, state, longest)
    primal, dual = (min(1.0, _SHORT * alpha) for alpha in step.alphas)
    return replace(step, alphas=(primal, dual))


def _finite(dx: FloatArray, dlam: float) -> bool:
    return bool(np.isfinite(dx).all()) and math.isfinite(dlam)
