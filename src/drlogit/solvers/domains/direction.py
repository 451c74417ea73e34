"""One direction of the interior point with pieces: predictor, corrector, centrality correction."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...rows.arrays import FloatArray
from ...rows.interface import Rows, State
from .newton_system import NewtonSystem, Step
from .piece_samples import correct, follow_aims, predict, pull_back

#: The least share of the complementarity to aim at, and of the longest step to take.
_LEAST_SIGMA = 0.02
_SHORT = 0.98


def direction(rows: Rows, here: NewtonSystem, centred: float) -> Step | None:
    """Predictor, corrector, and one centrality correction if steps are short.

    ``centred`` is a share of the complementarity below which not to aim.  None if not finite.
    """
    point = here.point
    aims = (point.cone.affine(), point.rows.affine())
    dx, dlam = here.solve(aims, here.affine)
    first = _follow(rows, here, dx, dlam, aims, predict, point.samples)
    if first is None:
        return None
    predictor, products, pull = first
    alphas = predictor.alphas
    after = here.after(predictor, products)
    kept = min(alphas) ** 2
    sigma = min(1.0, max((max(after, 0.0) / here.complementarity) ** 3, centred, _LEAST_SIGMA))
    if min(alphas) < 0.1:
        sigma = max(sigma, 0.3)
    centre = sigma * here.mu
    aims = (
        point.cone.corrected(centre, predictor.cone, kept),
        point.rows.corrected(centre, predictor.rows, kept),
    )
    response = here.affine + centre * here.centring + kept * pull
    dx, dlam = here.solve(aims, response)
    found = _follow(rows, here, dx, dlam, aims, correct, predictor.samples, centre, kept)
    if found is None:
        return None
    step: Step = found[0]
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
        longer = _follow(rows, here, dx, dlam, aims, follow_aims, pulled)
        if longer is not None and min(longer[0].alphas) >= 1.05 * length:
            step = longer[0]
    if min(step.alphas) < 0.1:
        # Plain centring is safe.
        centre = max(centre, 0.5 * here.mu)
        aims = (point.cone.centred(centre), point.rows.centred(centre))
        dx, dlam = here.solve(aims, here.affine + centre * here.centring)
        safe = _follow(rows, here, dx, dlam, aims, correct, predictor.samples, centre, 0.0)
        if safe is not None:
            step = safe[0]
    primal, dual = (min(1.0, _SHORT * alpha) for alpha in step.alphas)
    return replace(step, alphas=(primal, dual))


def _follow(
    rows: Rows,
    here: NewtonSystem,
    dx: FloatArray,
    dlam: float,
    aims: tuple[FloatArray, FloatArray],
    function: Any,
    samples: State,
    *arguments: float,
) -> tuple[Any, ...] | None:
    """The step that goes with ``(dx, dλ)``, and what else the block function sums."""
    if not (np.isfinite(dx).all() and math.isfinite(dlam)):
        return None
    point, layout = here.point, here.layout
    cone = point.cone.direction(dx[layout.kept] / layout.costs, dlam, aims[0])
    linear = point.rows.direction(dx, dlam, aims[1])
    new, (primal, dual, *rest) = rows.run(function, samples, dx, dlam, *arguments)
    for longest in (point.cone.longest(cone), point.rows.longest(linear)):
        primal, dual = min(primal, longest[0]), min(dual, longest[1])
    step = Step(dx, dlam, cone, linear, new, (min(1.0, float(primal)), min(1.0, float(dual))))
    return (step, *rest)
