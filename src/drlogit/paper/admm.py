"""What the ADMM variants for (B) share: units, starting points and the β-step.

All of them split off the margins, ``Zβ = μ``, with multiplier w.

Samples count by their weights everywhere: the penalty is ``(ρ/2) N Σ w_i (z_iβ - μ_i)²`` and the
multiplier is kept per unit of weight, as v, so that ``v_i = s_i - a_i`` at the optimum.  With equal
weights this is the paper's penalty to the letter.  In these units ``L_f = 1/(4N)`` whatever the
weights, a sample of weight two is a sample twice, and one of weight zero is none.
Options take ρ in the units of the paper; inside, it is N times that, and of natural size one.

The state of a block is a tuple that begins with (μ, v).

*The β-step* is (C) on all coefficients,

    minimise  ½ ‖Zβ - t‖²_W   subject to  ‖β/c‖_* ≤ λ

It depends on the samples only through ``H = ZᵀWZ`` and ``ZᵀWt``.  Up to 5,000
columns H is formed once; with more columns it is used through products ``ZᵀW(Zv)`` only.
Penalised coefficients are scaled to ``θ = β/c``.  The free ones F (the intercept, immovable
features) are eliminated, ``β_F = H_FF⁻¹ (ZᵀWt - H_FK β_K)``, which leaves a quadratic over a pure
norm ball for ``ball_qp``.  Neither step copies or scales the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csc_array

from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Result
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import BlockState, State
from ..rows.reductions import Sum
from ..starts.start import flip_shares_of_start
from .ball_qp import (
    DENSE_LIMIT,
    Columns,
    InnerSolver,
    NormBall,
    Quadratic,
    active_set_cg,
    get_inner_solver,
)

#: ``L_f`` per unit of sample weight: the largest curvature of the log-loss.
LIPSCHITZ = 0.25

#: The proven rate needs ρ above this (Proposition 4.1), per unit of sample weight.
PROVEN_PENALTY = (math.sqrt(3.0) + 1.0) * LIPSCHITZ

#: Inner gap where the matrix H is at hand, relative to the square of the last residual: an error
#: that the iteration dwarfs.
_INNER_SHARE = 1e-4

#: Inner gap without the matrix, where inner steps are what takes the time: relative to the last
#: residual, because the gap of an iterate is about as large as that.
_MATRIX_FREE_SHARE = 0.05


class AdmmStart(NamedTuple):
    """Where an ADMM run begins, and what a later one can begin from."""

    beta: FloatArray
    state: State  # per block: (mu, v)
    rho: float | None = None  # per unit of sample weight


#: A name (``"zeros"``, ``"ones"`` as in the released code, ``"random"``), three vectors
#: ``(x⁰, y⁰, w⁰)``, an earlier result, or None for the null model.
Start: TypeAlias = str | tuple[Any, Any, Any] | Result | AdmmStart | None


def first_point(
    problem: Problem, start: Start = None, rho: float | None = None, random_state: Any = None
) -> AdmmStart:
    """The null model, an earlier result, or ``(x⁰, y⁰, w⁰)``; ``rho`` in the units of the paper.

    For the null model the multiplier ``s - a`` is ½, as labels are not flipped at β = 0.
    """
    if rho is not None and not (math.isfinite(rho) and rho > 0.0):
        raise ValueError(f"rho must be finite and > 0, or None, got {rho!r}")
    rows, penalty = problem.rows, None if rho is None else rho * problem.rows.n_samples
    if isinstance(start, AdmmStart):
        return start._replace(rho=penalty)
    if isinstance(start, Result):
        beta = problem.join(start.coef, start.intercept)
        state, _ = rows.run(_warm_state, flip_shares_of_start(problem, start), beta)
        return AdmmStart(beta, state, penalty)
    if start is None:
        return AdmmStart(np.zeros(problem.costs.size), rows.run(_null_state)[0], penalty)
    x, y, w = _vectors(start, (problem.costs.size, rows.n_samples, rows.n_samples), random_state)
    state = rows.run(_given_state, rows.pair(rows.scatter(y), rows.scatter(w)))[0]
    return AdmmStart(problem.moved(x, 1.0), state, penalty)


def _vectors(start: Any, sizes: tuple[int, ...], random_state: Any) -> list[FloatArray]:
    """``x⁰, y⁰, w⁰`` by name or as given, checked."""
    random = np.random.default_rng(random_state)
    makers: dict[str, Callable[[int], FloatArray]] = {
        "zeros": np.zeros, "ones": np.ones, "random": random.standard_normal
    }  # fmt: skip
    if isinstance(start, str):
        if start not in makers:
            names = ", ".join(map(repr, makers))
            raise ValueError(f"start must be one of {names} or (x0, y0, w0), got {start!r}")
        return [makers[start](size) for size in sizes]
    vectors = [np.asarray(part, dtype=np.float64) for part in start]
    found = [part.shape for part in vectors]
    if found != [(size,) for size in sizes]:
        raise ValueError(
            f"start must be three vectors x0, y0, w0 of lengths {sizes}, got shapes {found}"
        )
    if not all(np.isfinite(part).all() for part in vectors):
        raise ValueError("start must be finite, got NaN or infinite entries")
    return vectors


def _null_state(block: Block, state: Any) -> tuple[Any, tuple[()]]:
    return (np.zeros(block.y.size), np.full(block.y.size, 0.5)), ()


def _warm_state(block: Block, a: FloatArray, beta: FloatArray) -> tuple[Any, tuple[()]]:
    u = block.margins(beta)
    return (u, flip_probability(u) - a), ()


def _given_state(block: Block, pair: tuple[FloatArray, FloatArray]) -> tuple[Any, tuple[()]]:
    y, w = pair
    return (y, np.divide(w, block.weights, out=np.zeros_like(w), where=block.weights > 0.0)), ()


#: The released code ends Algorithm 6 after a step shorter than this.
_RELEASED_STEP = 1e-5


def published_inner(
    inner: str | InnerSolver, inner_tol: float | None, problem: Problem
) -> str | InnerSolver:
    """``"auto"`` as in the paper's experiments: active-set CG, or Algorithm 5 for other norms.

    Without an ``inner_tol``, active-set CG ends as in the released code.
    """
    if inner != "auto":
        return inner
    if problem.norm.name != "l1":
        return "projected-gradient"
    if inner_tol is not None:
        return "active-set-cg"
    return partial(active_set_cg, least_step=_RELEASED_STEP)


#: Eigenvalues of ``H_FF``, scaled to unit diagonal and relative to the largest, that count as zero.
_RANK_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class BetaStep:
    """``target ↦ argmin ½βᵀHβ - targetᵀβ`` over the ball: everything that depends on H alone.

    It is made once and shared by all λ.
    """

    problem: Problem
    kept: IndexArray  # the penalised coefficients
    free: IndexArray  # the free ones
    scale: FloatArray  # costs of the penalised ones
    coupling: FloatArray  # H_FK, scaled
    inverse: FloatArray  # pseudo-inverse of H_FF
    quadratic: Quadratic
    inner: InnerSolver
    tol: float | None = None  # inner gap; None: in proportion to the residual of the iteration
    least_tol: float = 0.0  # an inner gap that is small enough for any iteration

    @classmethod
    def build(
        cls, problem: Problem, inner: str | InnerSolver = "auto", tol: float | None = None
    ) -> BetaStep:
        """For ``H = ZᵀWZ``, formed in one pass over the data or used through products."""
        if tol is not None and not (math.isfinite(tol) and tol >= 0.0):
            raise ValueError(f"inner_tol must be finite and >= 0, or None, got {tol!r}")
        kept, free = np.flatnonzero(problem.penalised), np.flatnonzero(problem.free)
        scale, dense = problem.costs[kept], problem.rows.n_columns <= DENSE_LIMIT
        solver = get_inner_solver(inner, problem.norm, matrix_free=not dense)
        H = gram(problem) if dense else None
        H_F = _free_columns(problem, free) if H is None else H[:, free]
        coupling, inverse = H_F[kept].T * scale, _pseudo_inverse(H_F[free])
        if H is not None:
            reduced = H[np.ix_(kept, kept)] * np.outer(scale, scale)
            if free.size:
                reduced -= coupling.T @ inverse @ coupling
                reduced = 0.5 * (reduced + reduced.T)
            quadratic = Quadratic(reduced)
            return cls(problem, kept, free, scale, coupling, inverse, quadratic, solver, tol)

        def product(theta: FloatArray) -> FloatArray:
            beta = np.zeros(problem.costs.size)
            beta[kept] = scale * theta
            direct = scale * normal_product(problem, beta)[kept]
            return direct - coupling.T @ (inverse @ (coupling @ theta))

        def columns() -> Columns:
            block = problem.rows.together()
            Z = csc_array(block.X, dtype=np.float64)[:, kept]
            signed = block.y * np.sqrt(block.weights)
            Z.data *= signed[Z.indices] * np.repeat(scale, np.diff(Z.indptr))
            return Columns.of(Z, coupling.T.copy(), (inverse @ coupling).T.copy())

        quadratic = Quadratic(None, product, kept.size, columns)
        return cls(problem, kept, free, scale, coupling, inverse, quadratic, solver, tol)

    def __call__(
        self, target: FloatArray, lam: float, beta: FloatArray, residual: float
    ) -> FloatArray:
        """The minimiser over ``‖β/c‖_* ≤ lam``, from ``beta``, after a residual ``‖Zβ - μ‖_W``."""
        result = np.zeros(self.problem.costs.size)
        theta = np.zeros(self.kept.size)
        unconstrained = self.inverse @ target[self.free]
        if lam > 0.0 and theta.size:
            c = self.scale * target[self.kept] - self.coupling.T @ unconstrained
            ball, start = NormBall(self.problem.norm, lam), beta[self.kept] / self.scale
            tol = self._inner_tol(min(residual, 1.0), ball.rounding(c))
            theta = np.asarray(self.inner(self.quadratic, c, ball, start, tol), dtype=np.float64)
            if theta.shape != c.shape or not np.isfinite(theta).all():
                raise ValueError(
                    f"inner must return {c.size} finite numbers, got an array of shape "
                    f"{theta.shape}"
                )
        result[self.kept] = self.scale * theta
        result[self.free] = unconstrained - self.inverse @ (self.coupling @ theta)
        return result

    def _inner_tol(self, residual: float, rounding: float) -> float:
        if self.tol is not None:
            return self.tol
        dense = self.quadratic.matrix is not None
        wanted = _INNER_SHARE * residual**2 if dense else _MATRIX_FREE_SHARE * residual
        return max(wanted, rounding, self.least_tol)


def gram(problem: Problem) -> FloatArray:
    """``ZᵀWZ``."""
    return np.asarray(problem.rows.run(_gram)[1][0])


def normal_product(problem: Problem, v: FloatArray) -> FloatArray:
    """``ZᵀWZ v``: one pass over the data, without the matrix."""
    return np.asarray(problem.rows.run(_normal_product, None, v)[1][0])


def _free_columns(problem: Problem, free: IndexArray) -> FloatArray:
    """The columns of ``ZᵀWZ`` of the free coefficients, by products."""
    if free.size > DENSE_LIMIT:
        raise ValueError(
            f"the paper's methods eliminate coefficients that are not penalised, at most "
            f"{DENSE_LIMIT}, got {free.size}: use solver='interior-point'"
        )
    columns = np.zeros((problem.costs.size, free.size))
    for k, j in enumerate(free):
        unit = np.zeros(problem.costs.size)
        unit[j] = 1.0
        columns[:, k] = normal_product(problem, unit)
    return columns


def _normal_product(
    block: Block, state: BlockState, v: FloatArray
) -> tuple[BlockState, tuple[Sum]]:
    return state, (Sum(block.adjoint(block.weights * block.margins(v))),)


def _gram(block: Block, state: BlockState) -> tuple[BlockState, tuple[Sum]]:
    return state, (Sum(block.gram(block.weights)),)


def _pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """Of a positive semidefinite matrix, with its rank judged at unit diagonal."""
    diagonal = np.diagonal(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    both, rank = np.outer(scale, scale), _RANK_TOLERANCE * diagonal.size
    return np.asarray(both * np.linalg.pinv(matrix * both, rcond=rank, hermitian=True))
