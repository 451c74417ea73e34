"""Radii of several classes: from which on the model is constant, and as large as sampling error.

With p(ε) the probabilities of the null model at ε (the best one without penalised features) and

    ψ(p) = max - Σ w [ p·s + max_k(-s_k - κ_k) ]  over ‖(B_j - B_k)/c‖_* ≤ 1, free columns free,

the least budget of moves and flips that explains p, the constant model is optimal at ε if and only
if ``ψ(p(ε)) ≤ ε``.  Where no label can change p does not depend on ε.  Otherwise p stops changing
at a radius that pays for levelling the classes; if ψ of that p is beyond it, it is ε_max.  If not,
ε_max is where ``ψ(p(ε)) > ε`` ends, found by bisection.
"""

from __future__ import annotations

import numpy as np

from ..dual.classes import ClassCoordinates
from ..engine.classes import least_budget, loss_hessian, null_model_of_classes
from ..problem.classes import ClassProblem, Scored
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from .solving import solve_problem

#: Relative accuracy of ε_max; a budget below this share of what a row measures is none.
_DIGITS = 1e-4
_NOTHING = 1e-9

#: Relative difference up to which budgets count as the same.
_SAME = 1e-6

#: Radii, in units of what rows and flips measure, at which nothing is left of any class.
_FAR, _NEAR = 1e3, 1e-6

#: Draws of the noise made at a time.
_CHUNK = 64


def epsilon_max_of_classes(problem: ClassProblem) -> float:
    """The radius from which on the model is constant; the problem's own ε plays no role."""
    problem = problem.with_radius(1.0)
    kept = problem.penalised
    typical = problem.norm.value((problem.rows.column_scale * problem.costs)[kept])
    if not (kept.any() and typical > 0.0):
        return 0.0
    size = typical + float(problem.flip_costs.max(initial=0.0))

    def budget(epsilon: float) -> float:
        here = problem.with_radius(epsilon)
        model = np.zeros((problem.n_classes, problem.costs.size))
        if problem.free.any():
            model = null_model_of_classes(here)
        return least_budget(here, problem.rows.run(_softmax, problem.scores(model))[0])

    found = budget(_FAR * size)
    if found <= _NOTHING * typical:
        return 0.0
    if not (problem.flips and problem.free.any()):
        return found

    def learns(epsilon: float) -> bool:
        return budget(epsilon) > epsilon * (1.0 + _SAME)

    high = found
    while learns(high):
        high *= 2.0
    low = (1.0 - 10.0 * _DIGITS) * high
    if learns(low):
        if high == found:
            return found
    else:  # constant below the radius that levels the classes, as where one of them is rare
        high, low = low, _NEAR * size
    while high > (1.0 + _DIGITS) * low and high > 2.0 * _NEAR * size:
        middle = np.sqrt(low * high)
        low, high = (middle, high) if learns(middle) else (low, middle)
    return float(high)


def suggested_radius_of_classes(
    problem: ClassProblem,
    confidence: float = 0.95,
    n_draws: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """The quantile of what it costs to level the score of the truth, as for two classes.

    The score is ``Σ w (p - e_y) xᵀ``; what fitting free coefficients takes from it is found from
    the Hessian.  Its cost N is exact for ℓ1 transport and at most 41 % too large for others.
    """
    problem = problem.with_radius(1.0, np.inf)
    if not problem.penalised.any():
        return 0.0
    seed = int(np.random.default_rng(random_state).integers(2**63))
    null = np.zeros((problem.n_classes, problem.costs.size))
    if problem.free.any():
        null = null_model_of_classes(problem)
    first = _quantile(problem, null, confidence, n_draws, seed)
    if first == 0.0:
        return 0.0
    fit = solve_problem(problem.with_radius(first))
    return _quantile(problem, problem.join(fit.coef, fit.intercept), confidence, n_draws, seed)


def _quantile(
    problem: ClassProblem, model: FloatArray, confidence: float, n_draws: int, seed: int
) -> float:
    rows, coordinates = problem.rows, ClassCoordinates(problem)
    K, m = model.shape
    free = np.tile(problem.free, K)
    profile = None
    if free.any():
        H = loss_hessian(problem, model)
        profile = np.linalg.lstsq(H[np.ix_(free, free)], H[free][:, ~free], rcond=None)[0]
    doubts = rows.run(_doubts, problem.scores(model))[0]
    state, sizes = rows.pair(doubts, rows.offsets), []
    for first in range(0, n_draws, _CHUNK):
        count = min(_CHUNK, n_draws - first)
        _, (draws, mean, mass) = rows.run(_noisy_scores, state, seed + first, count)
        G = draws.reshape(-1, K * m) - np.outer(mass, mean)
        if profile is not None:
            G[:, ~free] -= G[:, free] @ profile
            G[:, free] = 0.0
        sizes += [coordinates.used(g) for g in G]
    return float(np.quantile(sizes, confidence))


def _softmax(block: Block, scored: Scored) -> tuple[FloatArray, tuple[()]]:
    p = np.exp(scored[0] - scored[0].max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True)), ()


def _doubts(block: Block, scored: Scored) -> tuple[FloatArray, tuple[()]]:
    """``w (p - e_y)``."""
    q, _ = _softmax(block, scored)
    q[np.arange(scored[1].size), scored[1]] -= 1.0
    return block.weights[:, None] * q, ()


def _noisy_scores(
    block: Block, state: tuple[FloatArray, int], seed: int, count: int
) -> tuple[None, tuple[Sum, Sum, Sum]]:
    """``Σ e w g`` for normal e, one row for each draw; ``Σ w g`` and ``Σ e w`` of the scores g."""
    q, first = state
    noise = np.random.default_rng([seed, int(first)]).standard_normal((q.shape[0], count))
    found = [block.adjoint(q[:, k, None] * noise).T for k in range(q.shape[1])]
    mean = block.adjoint(q).T.ravel()
    return None, (Sum(np.stack(found, axis=1)), Sum(mean), Sum(block.weights @ noise))
