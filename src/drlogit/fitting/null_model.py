"""The best model without penalised features: what is left when nothing can be learnt from them.

    minimise over v_F, λ ≥ 0    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],        u = Z_F v_F

over the free columns F, the intercept and immovable features.  Its dual is that of (P) without the
norm: maximise ``Σ w_i H(s_i)`` subject to ``κ Σ w_i a_i ≤ ε`` and the equations of F.

With an intercept alone this is arithmetic.  Let p be the weight of the smaller class.  Flips take
from the larger class what makes it larger: the doubt ``s`` about its samples is ``p + ε/κ``, at
most one half, and 1 - s about the others; the value is the entropy ``H(s)`` and ``b`` is the logit.

Where flips can level the free columns altogether the model is zero, and its value log 2.  Its
predictions are then a matter of taste; the intercept, where there is one, keeps the sign of the
larger class, at a size that no objective can tell from zero.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..problem.losses import entropy, log_loss_terms
from ..problem.problem import Problem
from ..problem.result import Monitor, Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Max, Sum
from ..solvers.interior_point.barrier import solve_with_barrier
from ..solvers.interior_point.progress import Progress
from ..solvers.interior_point.scaled import Scaled
from ..solvers.interior_point.smoothing import solve_with_smoothing

#: Cost of moving a feature that makes its coefficient nothing: ‖β/c‖_* ≤ λ leaves it no room.
_NEXT_TO_NOTHING = 1e-300

#: Classes whose weights differ by less are of equal size but for rounding.
_EQUAL = 1e-12

#: An intercept that changes no objective in double precision.
_LEANING = 1e-18

#: Gap of the null model in nats, and iterations.
_TOL = 1e-13
_MAX_ITER = 200


def has_immovable_features(problem: Problem) -> bool:
    """Whether columns besides the intercept are free."""
    return int(problem.free.sum()) > int(problem.fit_intercept)


def weight_of_positives(problem: Problem) -> float:
    """The share of the positive class in the weights."""
    return float(problem.rows.class_weights[1])


def doubt(problem: Problem, positive: float) -> float:
    """``s`` about the larger class in the null model without immovable features."""
    if not problem.fit_intercept:
        return 0.5
    share = 0.0 if math.isinf(problem.kappa) else problem.epsilon / problem.kappa
    return min(min(positive, 1.0 - positive) + share, 0.5)


def constant_model(problem: Problem, positive: float) -> tuple[FloatArray, float]:
    """Coefficients and value of the null model without immovable features, in closed form."""
    s = doubt(problem, positive)
    v = levelled_model(problem, positive)
    if s < 0.5:
        v[-1] = math.copysign(math.log1p(-s) - math.log(s), positive - 0.5)
    return v, float(entropy(np.array([s]))[0])


def levelled_model(problem: Problem, positive: float) -> FloatArray:
    """No coefficients, and an intercept that does no more than lean to the larger class."""
    v = np.zeros(problem.costs.size)
    if problem.fit_intercept and abs(positive - 0.5) > _EQUAL:
        v[-1] = math.copysign(_LEANING, positive - 0.5)
    return v


def null_model(problem: Problem) -> FloatArray:
    """Coefficients of the null model of any problem."""
    if not has_immovable_features(problem):
        return constant_model(problem, weight_of_positives(problem))[0]
    if math.isinf(problem.kappa):
        return _plain_fit(problem)
    return _robust_fit(problem)


def _plain_fit(problem: Problem) -> FloatArray:
    """κ = ∞: Newton's method on the free columns, damped so that it converges from anywhere.

    For a largest change m of a margin, ``log(1+m)/m`` is such a step length (Bach 2010).
    Where free columns separate samples, coefficients grow until these samples' s vanish.
    """
    free = np.flatnonzero(problem.free)
    scale = problem.rows.column_scale[free]
    scale = np.where(scale > 0.0, scale, 1.0)
    v = np.zeros(problem.costs.size)
    for _ in range(_MAX_ITER):
        _, (gradient, hessian) = problem.rows.run(_newton_sums, None, v)
        gradient = gradient[free] / scale
        hessian = hessian[np.ix_(free, free)] / scale / scale[:, None]
        step = np.zeros_like(v)
        step[free] = np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
        if float(gradient @ step[free]) <= 1e-30:
            break
        step[free] /= scale
        _, (change,) = problem.rows.run(_largest_change, None, step)
        v += step if change <= 0.5 else step * (math.log1p(change) / change)
    return v


def _robust_fit(problem: Problem) -> FloatArray:
    """Finite κ: the interior point, with the penalised features out of its sight."""
    costs = np.where(problem.free, np.inf, _NEXT_TO_NOTHING)
    nothing = replace(problem, cost=replace(problem.cost, costs=costs))
    scaled = Scaled.of(problem)
    scaled = Scaled(nothing, np.where(problem.free, scaled.scale, 0.0), scaled.sigma)
    progress = Progress(nothing, _TOL, Monitor())
    with np.errstate(all="ignore"):
        if solve_with_barrier(scaled, progress, max_iter=_MAX_ITER) is Status.MAX_ITER:
            solve_with_smoothing(scaled, progress, max_iter=_MAX_ITER)
    return progress.coefficients


def _newton_sums(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Sum, Sum]]:
    loss = log_loss_terms(block.margins(v))
    return None, (
        Sum(block.adjoint(block.weights * loss.slope)),
        Sum(block.gram(block.weights * loss.curvature)),
    )


def _largest_change(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Max]]:
    return None, (Max(np.max(np.abs(block.margins(v)), initial=0.0)),)
