"""The interior point for problems of numbers, of two labels or more: start and run.

Derivation: docs/algorithm.md, section 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import lambertw

from ..dual.label_points import LabelPoint, of_samples, probabilities
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution
from ..problem.transport import TransportCost
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..starts.start import Start
from ._newton import Newton
from .driver import Found, run
from .labels import LabelSamples, LabelScaling
from .protocols import Samples
from .settings import SETTINGS
from .truncated_samples import free_columns
from .wide import in_one_block

#: How exactly a gain is found, and what is clearly more than that (``_gain``).
_GAIN_TOL = 1e-9
_CLEAR_GAIN = 1e-3


def interior_point(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Start | None = None,
) -> Solution:
    """Solve (P) to a certified gap of ``tol``; ``start`` is a model to open near.

    ``max_iter`` limits Newton iterations, each one weighted Gram matrix for each pair of labels and
    one factorisation.
    """
    distinct, of_all = distinct_samples(problem, in_one_block)
    scaling = LabelScaling(distinct)
    info: dict[str, Any] = {"distinct_samples": distinct.rows.n_samples}
    if problem.several:
        info = {"classes": problem.n_classes}
        info |= {} if problem.as_given else {"as_numbers": True}
    newton, samples, found = solve_scaled(scaling, tol, max_iter, start, monitor)
    best = newton.best_model()
    info |= {
        "solver": "interior-point",
        "grams": found.n_iter,
        "visits": samples.visits,
        "products": 0 if newton.wide is None else newton.wide.products,
    }
    return Solution(
        scaling.of_all(best),
        found.status,
        found.n_iter,
        None if found.point is None else of_all(found.point),
        info=info,
        lam=float(best[-1]),
        proven=(newton.best, newton.dual),
    )


def distinct_samples(
    problem: Problem, together: Callable[[Rows], Rows] = lambda rows: rows
) -> tuple[Problem, Callable[[LabelPoint], LabelPoint]]:
    """The problem without repeated samples, and how a dual point of it becomes one of all samples.

    ``together`` joins the blocks of the rows, if a method needs them as one.  The samples of
    several labels stay as they are.
    """
    given = problem.rows
    if problem.several:
        return problem, lambda point: point
    rows, origin = given.compact or (given, None)
    if (joined := together(rows)) is not rows:
        rows, origin = joined, np.arange(rows.n_samples) if origin is None else origin
    problem = problem if rows is given else replace(problem, rows=rows)

    def of_all(point: LabelPoint) -> LabelPoint:
        return point if origin is None else of_samples(given, origin, rows, point)

    return problem, of_all


def solve_scaled(
    scaling: LabelScaling,
    tol: float,
    max_iter: int,
    start: Start | None,
    monitor: Monitor,
) -> tuple[Newton, LabelSamples, Found[LabelPoint]]:
    """The driver on all samples."""
    newton = scaling.newton(scaling.problem.epsilon)
    samples = LabelSamples(scaling.problem, newton)
    x, mu = _opening(scaling, start)
    newton.open(x, mu)
    found = run(samples, newton, mu, tol, max_iter, monitor)
    return newton, samples, found


def _opening(scaling: LabelScaling, start: Start | None) -> tuple[FloatArray, float]:
    """(x, λ) and μ to open with."""
    problem, x = scaling.problem, np.zeros(scaling.scale.size)
    epsilon, mu = problem.epsilon, SETTINGS.start_mu
    if start is None:
        x[-1] = 0.0 if epsilon == 0.0 else SETTINGS.start_lambda * mu / epsilon * scaling.sigma
        return x, mu
    model = np.vstack([0.0 * start.model, start.model]) if start.model.ndim == 1 else start.model
    model = model[1:] - model[0]
    if epsilon > 0.0:
        mu, size = SETTINGS.near_mu, problem.dual_norm(start.model)
        # No optimal λ is above this but for .08 (two labels: .2785/ε, Proposition 3.1).
        most = 1.08 * float(lambertw(len(model) / math.e).real) / epsilon
        lam = min(max(size, SETTINGS.start_lambda * mu / epsilon, start.lam), most)
        model[:, problem.penalised] *= min(lam / size, 1.0) if size > 0.0 else 1.0
        x[-1] = (1.0 + SETTINGS.start_room) * lam * scaling.sigma
    x[:-1] = model.ravel() / scaling.scale[:-1]
    return x, mu


def null_model(problem: Problem, tol: float = 1e-12) -> FloatArray:
    """Coefficients of the best model of the free columns alone."""
    scaling = LabelScaling(free_part(problem))
    newton, _, _ = solve_scaled(scaling, tol, 200, None, Monitor(None, 0))
    found = scaling.of_all(newton.best_model())
    null = np.zeros((*found.shape[:-1], problem.costs.size))
    null[..., problem.free] = found[..., 1:]
    return null


def free_part(problem: Problem) -> Problem:
    """The problem of the free columns; a column of zeros is in place of all others."""
    free, n_features = np.flatnonzero(problem.free), problem.costs.size - problem.fit_intercept
    features, _ = problem.rows.run(_beside_zeros, None, free[free < n_features])
    costs = np.append(1.0, np.full(free.size, np.inf))
    return replace(
        problem,
        rows=problem.rows.with_features(features, costs.size),
        cost=TransportCost(problem.norm, costs, problem.cost.labels),
        constant_sum=None,
        matrix=None,
    )


def _beside_zeros(block: Block, _: None, features: IndexArray) -> tuple[FloatArray, tuple[()]]:
    some = block.y[:, None] * free_columns(block, features, np.ones(features.size))
    return np.hstack([np.zeros((block.y.size, 1)), some]), ()


def flip_budget(problem: Problem, null: FloatArray, *, free_only: bool = False) -> float:
    """The least budget of moves and flips that explains the probabilities p of a model.

    ``max - Σ w [p·s + max_k(-s_k - κ_k)]`` over ``‖(B_j - B_k)/c‖_* ≤ 1`` and free columns; of two
    labels ``max Σ w [s u - (u - κ)_+]``.  This is (P) with a linear loss at a fixed λ, λ times as
    large.  With ``free_only`` penalised features are left out.
    """
    typical = LabelScaling(problem).sigma
    if not problem.several:
        problem = replace(problem, rows=in_one_block(problem.rows))
    slopes, _ = problem.rows.run(probabilities, problem.scores(null))
    costs = problem.flip_costs[problem.flip_costs > 0.0]
    return _gain(free_part(problem) if free_only else problem, slopes, typical, *costs)


def _gain(problem: Problem, slopes: State, *costs: float) -> float:
    """The greatest gain of a linear loss per λ.

    The gain may be as large as the largest of these costs of moves and flips, or as small as the
    least: costs are divided by the largest, then by less, until the gain is clearly more than the
    tolerance.
    """
    unit, mu = max(costs), SETTINGS.start_mu
    while True:
        newton = LabelScaling(problem, unit=unit).newton(0.0)
        x = np.zeros(newton.size)
        x[-1] = 1.0
        newton.open(x, mu)
        samples = LabelSamples(problem, newton, slopes)
        gain = gain_at_fixed_lambda(samples, newton, mu, _GAIN_TOL)
        if gain >= _CLEAR_GAIN or unit <= min(costs):
            return gain * unit
        unit = max(1e-3 * unit, min(costs))


def gain_at_fixed_lambda(samples: Samples[Any], newton: Newton, mu: float, tol: float) -> float:
    """The greatest gain at the λ that the system was opened with."""
    newton.pinned = True
    run(samples, newton, mu, tol, 200)
    return max(-float(newton.best), 0.0)


def slopes_at(block: Block, _: None, null: FloatArray) -> tuple[FloatArray, tuple[()]]:
    """Dual probabilities of a model of two labels: slopes of a loss that is linear there."""
    return flip_probability(block.margins(null)), ()
