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

*Several classes* have the score ``Σ w (p - e_y) xᵀ``; what it costs to level it is exact for ℓ1
transport and at most 41 % too large for others.

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
from scipy.linalg import eigh
from scipy.special import ndtri, softmax

from ..dual.classes import ClassCoordinates
from ..engine.classes import loss_hessian
from ..engine.wide import DENSE_LIMIT
from ..problem.classes import ClassProblem, Scored
from ..problem.domains import least_move
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ..rows.threads import one_blas_thread
from ..starts.sample import places
from .null_model import constant_model, null_model
from .solving import solve_problem

Draw: TypeAlias = Callable[[np.random.Generator, int], FloatArray]
Effective: TypeAlias = Callable[[FloatArray], FloatArray]

#: Draws made at a time.
_CHUNK = 64


@one_blas_thread
def suggested_radius(
    problem: Problem | ClassProblem,
    confidence: float = 0.95,
    n_draws: int = 2000,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """The quantile for a problem; its own ε and κ play no role."""
    problem = problem.with_radius(1.0, math.inf)
    if not problem.penalised.any() and problem.domains is None:
        return 0.0
    rng = np.random.default_rng(random_state)
    seed = int(rng.integers(2**63))  # the same draws both times
    constant = null_model(problem) if isinstance(problem, ClassProblem) else constant_model(problem)
    first = _radius(problem, constant, confidence, n_draws, seed)
    if first == 0.0:  # constant features: there is nothing to learn by chance
        return 0.0
    fit = solve_problem(problem.with_radius(first))
    model = problem.join(fit.coef, fit.intercept)
    return _radius(problem, model, confidence, n_draws, seed)


def _radius(
    problem: Problem | ClassProblem, model: FloatArray, confidence: float, n_draws: int, seed: int
) -> float:
    """The quantile of what it costs to level G, for scores at the given coefficients."""
    if isinstance(problem, ClassProblem):
        draw, cost = _of_classes(problem, model)
    else:
        draw, cost = _of_pair(problem, model)
    rng = np.random.default_rng(seed)
    sizes: list[float] = []
    while len(sizes) < n_draws:
        G = draw(rng, min(_CHUNK, n_draws - len(sizes)))
        sizes += [cost(g) for g in G.T]
    return float(np.quantile(sizes, confidence))


def _of_classes(
    problem: ClassProblem, model: FloatArray
) -> tuple[Draw, Callable[[FloatArray], float]]:
    """Draws of the score of penalised coefficients, each a column, and the cost of one."""
    free = np.tile(problem.free, problem.n_classes)
    columns = np.flatnonzero(free)
    H = loss_hessian(problem, model)[:, columns] if columns.size else np.zeros((free.size, 0))
    effective = _effective(np.flatnonzero(~free), columns, np.ones((1, 1)), H)
    scores = problem.rows.run(_class_scores, problem.scores(model))[0]
    coordinates = ClassCoordinates(problem)

    def cost(g: FloatArray) -> float:
        whole = np.zeros(free.size)
        whole[~free] = g
        return coordinates.used(whole)

    return _from_samples(problem, scores, effective), cost


def _of_pair(problem: Problem, model: FloatArray) -> tuple[Draw, Callable[[FloatArray], float]]:
    """The same for two classes; P are the columns that the norm moves, then those with domains."""
    kept = np.flatnonzero(problem.penalised)
    n_normed, costs = kept.size, problem.costs[kept]
    groups: list[IndexArray] = []
    if problem.domains is not None:
        kept = np.append(kept, problem.domains.columns)
        costs = np.append(costs, problem.domains.column_costs)
        groups = [*problem.domains.groups]
    free = np.setdiff1d(np.arange(problem.costs.size), kept)
    margins, units = problem.margins(model), np.eye(1, problem.costs.size)[0]
    columns = [
        problem.rows.run(_hessian_column, margins, np.roll(units, j))[1][0] for j in free.tolist()
    ]
    H = np.reshape(columns, (free.size, problem.costs.size)).T
    effective = _effective(kept, free, costs[:, None], H)

    def cost(g: FloatArray) -> float:
        normed = problem.norm.value(g[:n_normed]) if n_normed else 0.0
        *levels, bounded = np.split(g[n_normed:], np.cumsum([group.size for group in groups]))
        changes = map(least_move, levels)
        return float(normed + sum(changes) + np.abs(bounded).sum())

    if problem.rows.n_columns <= min(DENSE_LIMIT, problem.rows.n_samples):
        return _from_covariance(problem, margins, effective), cost
    scores = problem.rows.run(_pair_scores, margins)[0]
    return _from_samples(problem, scores, effective), cost


def _effective(kept: IndexArray, free: IndexArray, costs: FloatArray, H: FloatArray) -> Effective:
    """The map ``g ↦ c (g_P - H_PF H_FF⁻¹ g_F)``, of each column of a matrix of scores."""
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


def _from_samples(problem: Problem | ClassProblem, scores: State, effective: Effective) -> Draw:
    """The same draws as ``Σ w_i e_i (g_i - ḡ)``, ``e ~ N(0, I)``, without forming the matrix.

    The noise is drawn where the samples are, so that nothing of their length is here.
    """
    rows = problem.rows
    state = rows.pair(scores, rows.offsets)

    def draw(rng: np.random.Generator, count: int) -> FloatArray:
        seed = int(rng.integers(2**63))
        _, (total, mean, mass) = rows.run(_noisy_scores, state, seed, count)
        return effective(total - np.outer(mean, mass))

    return draw


def _hessian_column(block: Block, u: FloatArray, unit: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    """``Zᵀ W diag(s(1-s)) Z e`` for a unit vector e."""
    s = flip_probability(u)
    return u, (Sum(block.adjoint(block.weights * s * (1.0 - s) * block.margins(unit))),)


def _score_moments(block: Block, u: FloatArray) -> tuple[FloatArray, tuple[Sum, ...]]:
    """``Σ w² g gᵀ``, ``Σ w² g``, ``Σ w g`` and ``Σ w²`` of the scores ``g = s z``."""
    s, w = flip_probability(u), block.weights
    return u, (
        Sum(block.gram((w * s) ** 2)),
        Sum(block.adjoint(w**2 * s)),
        Sum(block.adjoint(w * s)),
        Sum(float(w @ w)),
    )


def _pair_scores(block: Block, u: FloatArray) -> tuple[FloatArray, tuple[()]]:
    """``w s``, a column."""
    return (block.weights * flip_probability(u))[:, None], ()


def _class_scores(block: Block, scored: Scored) -> tuple[FloatArray, tuple[()]]:
    """``w (p - e_y)``, a column for each class."""
    q = softmax(scored[0], axis=1)
    q[np.arange(scored[1].size), scored[1]] -= 1.0
    return block.weights[:, None] * q, ()


def _noisy_scores(
    block: Block, state: tuple[FloatArray, int], seed: int, count: int
) -> tuple[None, tuple[Sum, ...]]:
    """``Σ w e g``, ``Σ w g`` and ``Σ w e`` for each column of the noise, class below class."""
    q, first = state
    noise = _noise(seed, first, q.shape[0], count)
    return None, (
        Sum(np.concatenate([block.adjoint(column[:, None] * noise) for column in q.T])),
        Sum(block.adjoint(q).T.ravel()),
        Sum(block.weights @ noise),
    )


def _noise(seed: int, first: int, length: int, count: int) -> FloatArray:
    """Normal noise for consecutive samples, the same however the samples are cut into blocks."""
    numbers = np.arange(first * count, (first + length) * count).astype(np.uint64)
    return np.asarray(ndtri(places(numbers + np.uint64(seed)) + 2.0**-54)).reshape(length, count)
