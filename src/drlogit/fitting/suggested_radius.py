"""A radius from theory: how large the score at the truth may be by chance.

With N samples of a logistic model ``(β*, b*)``, the score ``g = Σ w_i s_i z_i`` at the truth is not
zero but about ``N(0, Σ w_i² Cov(s z))``.  The samples, seen from the truth, are an accident of that
size; a ball of radius ``ε ≥ ‖c g‖`` (transport norm) contains a distribution for which the truth
is optimal.  So ε is the quantile of ``‖c G‖`` for a normal G with the estimated covariance: the
robust Wasserstein profile of Blanchet, Kang and Murthy (2019, arXiv:1610.05627) for logistic
loss and labels that cannot flip.  A finite κ makes the ball of the same radius larger.

Free coefficients (the intercept, those of immovable features) are not held at the truth but
fitted to the data, whatever the penalised ones are.  To first order this replaces the score by
``g_P - H_PF H_FF⁻¹ g_F``, with the logistic Hessian H; with an intercept, ε is then the same
wherever the origin of the features is.

*Features with domains* count beside the norm, as in their ground cost: a bounded one ``c_j |G_j|``,
and a category ``c_g`` times what has to change level, the larger of ``Σ(G_k)_+`` and ``Σ(-G_k)_+``.
A changed sample moves the score by its s; this takes those with s near 1, whom the model gets
wrong, and no notice of where bounds end: it is the least that may be needed.

*Weights* say how much a sample counts, not how many it stands for: ``Σ w_i²`` grows with unequal
ones.

*The preliminary model*, of whose scores the covariance is taken, is itself robust (κ = ∞), with the
radius that comes of the scores of the constant model, which are too large.  An unpenalised fit
would take chance for signal where features are many, make its ``s_i`` too small and vanish on
separable data.  What is suggested is therefore, if anything, a little too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh

from ..problem.classes import ClassProblem
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import BlockState, State
from ..rows.reductions import Sum
from .class_radii import suggested_radius_of_classes
from .null_model import constant_model
from .solving import solve_problem

#: Up to this many coefficients, draws come from the covariance matrix; beyond, from the samples.
_DIRECT_LIMIT = 2000

IntArray: TypeAlias = NDArray[np.intp]
Draw: TypeAlias = Callable[[np.random.Generator, int], FloatArray]
Effective: TypeAlias = Callable[[FloatArray], FloatArray]

#: Draws made, and columns of the Hessian formed, at a time.
_CHUNK = 64

#: Samples whose noise has a seed of its own.
_PAGE = 1024


def suggested_radius(
    problem: Problem | ClassProblem,
    confidence: float = 0.95,
    n_draws: int = 2000,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """The quantile for a problem; its own ε and κ play no role."""
    if isinstance(problem, ClassProblem):
        return suggested_radius_of_classes(problem, confidence, n_draws, random_state)
    problem = problem.with_radius(1.0, math.inf)
    if not problem.penalised.any() and problem.domains is None:
        return 0.0
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**63))  # the same draws both times
    first = _radius(problem, constant_model(problem), confidence, n_draws, seed)
    if first == 0.0:  # constant features: there is nothing to learn by chance
        return 0.0
    fit = solve_problem(problem.with_radius(first))
    coefficients = problem.join(fit.coef, fit.intercept)
    return _radius(problem, coefficients, confidence, n_draws, seed)


def _radius(
    problem: Problem, coefficients: FloatArray, confidence: float, n_draws: int, seed: int
) -> float:
    """The quantile of what it costs to level G, for scores at the given coefficients."""
    margins = problem.margins(coefficients)
    effective = _effective(problem, margins)
    few = problem.rows.n_columns <= min(_DIRECT_LIMIT, problem.rows.n_samples)
    draw = (_from_covariance if few else _from_samples)(problem, margins, effective)
    rng = np.random.default_rng(seed)
    sizes: list[float] = []
    while len(sizes) < n_draws:
        G = draw(rng, min(_CHUNK, n_draws - len(sizes)))
        sizes += [_cost(problem, g) for g in G.T]
    return float(np.quantile(sizes, confidence))


def _cost(problem: Problem, g: FloatArray) -> float:
    """What it costs to level scores that have been multiplied by the costs (:func:`_effective`)."""
    n_normed = int(problem.penalised.sum())
    cost = problem.norm.value(g[:n_normed]) if n_normed else 0.0
    if problem.domains is None:
        return cost
    places = np.split(g[n_normed:], np.cumsum([group.size for group in problem.domains.groups]))
    levels, bounded = places[:-1], places[-1]
    changes = (max(-G[G < 0.0].sum(), G[G > 0.0].sum()) for G in levels)
    return float(cost + sum(changes) + np.abs(bounded).sum())


def _effective(problem: Problem, margins: State) -> Effective:
    """The map ``g ↦ c (g_P - H_PF H_FF⁻¹ g_F)``, of each column of a matrix of scores.

    P are the columns that the norm moves, then those with domains.
    """
    kept = np.flatnonzero(problem.penalised)
    costs = problem.costs[kept, None]
    if problem.domains is not None:
        kept = np.append(kept, problem.domains.columns)
        costs = np.append(costs, problem.domains.column_costs)[:, None]
    free = np.setdiff1d(np.arange(problem.costs.size), kept)
    if free.size == 0:
        return lambda g: costs * g
    columns = [
        problem.rows.run(_hessian_columns, margins, free[i : i + _CHUNK])[1][0]
        for i in range(0, free.size, _CHUNK)
    ]
    H = np.hstack(columns)
    # Least squares: free columns may be collinear, as one-hot categories and a constant are.
    profile = np.linalg.lstsq(H[free], H[kept].T, rcond=None)[0].T
    return lambda g: np.asarray(costs * (g[kept] - profile @ g[free]))


def _from_covariance(problem: Problem, margins: State, effective: Effective) -> Draw:
    """Draws of ``N(0, Σ w_i² (g_i - ḡ)(g_i - ḡ)ᵀ)``, ``g_i = s_i z_i``, from that matrix."""
    _, (C, square, mean, squares) = problem.rows.run(_score_moments, margins)
    cross = np.outer(square, mean)
    C = C - cross - cross.T + squares * np.outer(mean, mean)
    values, vectors = eigh(effective(effective(C).T))
    # The symmetric root does not depend on which eigenvectors were found.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return lambda rng, count: root @ rng.standard_normal((root.shape[1], count))


def _from_samples(problem: Problem, margins: State, effective: Effective) -> Draw:
    """The same draws as ``Σ w_i e_i (g_i - ḡ)``, ``e ~ N(0, I)``, without forming the matrix.

    The noise is drawn where the samples are, so that nothing of their length is here.
    """
    rows = problem.rows
    state = rows.pair(margins, rows.offsets)

    def draw(rng: np.random.Generator, count: int) -> FloatArray:
        seed = int(rng.integers(2**63))
        _, (total, mean, mass) = rows.run(_noisy_scores, state, seed, count)
        return effective(total - np.outer(mean, mass))

    return draw


def _hessian_columns(block: Block, u: FloatArray, free: IntArray) -> tuple[FloatArray, tuple[Sum]]:
    """``Zᵀ W diag(s(1-s)) Z_F``."""
    Z = np.empty((u.size, free.size))
    features = free < block.X.shape[1]
    picked = block.X[:, free[features]]
    Z[:, features] = picked.toarray() if sp.issparse(picked) else picked
    Z[:, ~features] = 1.0
    s = flip_probability(u)
    d = block.weights * block.y * s * (1.0 - s)
    return u, (Sum(block.adjoint(d[:, None] * Z)),)


def _score_moments(block: Block, u: FloatArray) -> tuple[FloatArray, tuple[Sum, ...]]:
    """``Σ w² g gᵀ``, ``Σ w² g``, ``Σ w g`` and ``Σ w²`` of the scores ``g = s z``."""
    s, w = flip_probability(u), block.weights
    return u, (
        Sum(block.gram((w * s) ** 2)),
        Sum(block.adjoint(w**2 * s)),
        Sum(block.adjoint(w * s)),
        Sum(float(w @ w)),
    )


def _noisy_scores(
    block: Block, state: tuple[FloatArray, int], seed: int, count: int
) -> tuple[BlockState, tuple[Sum, ...]]:
    """``Σ w e g``, ``Σ w g`` and ``Σ w e`` for each column of the noise."""
    u, first = state
    s, w = flip_probability(u), block.weights
    noise = _noise(seed, first, u.size, count)
    return None, (
        Sum(block.adjoint((w * s)[:, None] * noise)),
        Sum(block.adjoint(w * s)),
        Sum(w @ noise),
    )


def _noise(seed: int, first: int, length: int, count: int) -> FloatArray:
    """Normal noise for consecutive samples, the same however the samples are cut into blocks.

    It comes in pages, each with a seed of its own, of which a block takes the rows it wants.
    """
    noise = np.empty((length, count))
    for page in range(first // _PAGE, -(-(first + length) // _PAGE)):
        start = page * _PAGE - first
        drawn = np.random.default_rng([seed, page]).standard_normal((_PAGE, count))
        noise[max(start, 0) : start + _PAGE] = drawn[max(-start, 0) : length - start]
    return noise
