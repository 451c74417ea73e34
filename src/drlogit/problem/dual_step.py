"""The step from a dual candidate to the best feasible one, by a quadratic model.

For given flip shares ``a`` the best ``s = 1/(1+e^{Zβ̃})`` belongs to the β̃ that solves

    minimise  Σ w_i [h(u_i) + a_i u_i] + r ‖β̃/c‖_*      for (P), with r = ε - κ Σ w_i a_i,
    minimise  Σ w_i [h(u_i) + a_i u_i]  over ‖β̃/c‖_* ≤ λ      for (B).

With ``g = Σ w_i (s_i - a_i) z_i`` and the logistic Hessian H at β̃, a model of either is

    minimise over x    ½ xᵀHx - (g + Hβ̃)ᵀx    with the same penalty, or constraint.

At its solution the vector ``g - H(x - β̃)`` is zero on free columns and for (P) lies in the ball
of radius r, and it is what ``g`` becomes when ``s`` moves by ``-s(1-s) Z(x - β̃)``.  So this step
makes ``(s, a)`` feasible and leaves a bound whose loss is of second order.  Projecting ``g`` on the
ball in some other way would lose ``βᵀ(g* - g)``, first order in the error of β̃.

The model has the size of the coefficients and no samples: ADMM on it costs no pass over the
data.  Splitting off the norm in the metric of the diagonal of H makes it indifferent to the
scales of the columns, and a singular H is as good as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .conjugate_gradients import conjugate_gradients
from .problem import Problem
from .shifted_cholesky import ScaledFactor

#: ADMM: penalty relative to the diagonal of H, over-relaxation, and its ends.
_RHO = 0.1
_RELAXATION = 1.6
_MAX_ITER = 250
_TOLERANCE = 1e-12
_CHECK = 10

#: Change of margins, by root mean squares of columns, after which precision is wasted.
_FAR = 10.0

#: Mean curvature ``Σ w s(1-s)`` (at most 1/4) that counts as none.
_FLAT = 1e-20

#: Added to a unit diagonal so that duplicated and empty columns factor.
_SHIFTS = (1e-12, 1e-8, 1e-4)

#: CG: curvature added to penalised coefficients, relative to their own, and its ends.
_RIDGE = 1e-6
_CG_MAX_ITER = 200
_CG_TOLERANCE = 1e-10


class DualModel(Protocol):
    """What the certificate asks of a quadratic model."""

    def step(
        self, gradient: FloatArray, coefficients: FloatArray, radius: float, lam: float | None
    ) -> FloatArray:
        """``x - β̃`` for the solution x of the model; ``radius`` is r, ``lam`` is λ for (B)."""
        ...

    def among(self, columns: IndexArray) -> FloatArray:
        """The rows and columns of H that belong to these (free) columns."""
        ...

    def free_step(self, excess: FloatArray) -> FloatArray:
        """A step in the free coefficients alone, after which ``g`` has lost ``excess`` there."""
        ...


class DenseModel:
    """The model with H as an array."""

    def __init__(self, problem: Problem, hessian: FloatArray) -> None:
        self.norm = problem.norm
        self.free = np.flatnonzero(problem.free)
        self.kept = np.flatnonzero(problem.penalised)
        self.costs = np.where(problem.penalised, problem.costs, 1.0)
        self.hessian = self.costs[:, None] * hessian * self.costs
        # Not below what is nothing against the column itself, where all s are 0 or 1.
        self.scale = self.costs * problem.rows.column_scale
        least = _FLAT * self.scale**2
        diagonal = np.maximum(np.diagonal(self.hessian), np.where(least > 0.0, least, 1.0))
        self.metric = np.where(problem.penalised, _RHO * diagonal, 0.0)
        self.factor = _factor(self.hessian + np.diag(self.metric))
        self.inverse = self.factor.inverse(self.kept)

    def step(
        self, gradient: FloatArray, coefficients: FloatArray, radius: float, lam: float | None
    ) -> FloatArray:
        kept, norm = self.kept, self.norm
        theta = coefficients / self.costs
        right = self.costs * gradient + self.hessian @ theta
        # x = start + inverse (ρz - y): the penalised part of (H + ρ)⁻¹ (right + ρz - y).
        inverse, rho = self.inverse, self.metric[kept]
        start = _solved(self.factor, right)[kept]
        z, y = theta[kept], (self.costs * gradient)[kept]
        enough = _TOLERANCE * max(norm.value(y), radius)
        for k in range(_MAX_ITER if kept.size else 0):
            x = start + inverse @ (rho * z - y)
            v = _RELAXATION * x + (1.0 - _RELAXATION) * z + y / rho
            before = z
            if lam is None:
                y = norm.project(rho * v, radius, rho)
                z = v - y / rho
            else:
                z = norm.project_dual(v, lam, 1.0 / rho)
                y = rho * (v - z)
            # Done when what will be missing to the ball is small; and where margins change more
            # than a linear step can follow, a rough step is as good as a precise one.
            if k == _CHECK and np.linalg.norm(self.scale[kept] * (x - theta[kept])) > _FAR:
                break
            if k % _CHECK == 0 and norm.value(rho * (z - before)) <= enough:
                break
        right[kept] += rho * z - y
        return np.asarray(self.costs * (_solved(self.factor, right) - theta))

    def among(self, columns: IndexArray) -> FloatArray:
        return np.asarray(self.hessian[np.ix_(columns, columns)])

    def free_step(self, excess: FloatArray) -> FloatArray:
        step = np.zeros_like(excess)
        block = self.hessian[np.ix_(self.free, self.free)]
        step[self.free] = _solved(_factor(block), excess[self.free])
        return step


class ImplicitModel:
    """The model when H is too large to form: one conjugate gradient solve, not the best step.

    ``product`` is ``v ↦ Hv``, one pass over the data; ``diagonal`` is that of H.
    """

    def __init__(
        self, problem: Problem, diagonal: FloatArray, product: Callable[[FloatArray], FloatArray]
    ) -> None:
        self.problem = problem
        self.diagonal = diagonal
        self.product = product

    def step(
        self, gradient: FloatArray, coefficients: FloatArray, radius: float, lam: float | None
    ) -> FloatArray:
        problem = self.problem
        excess = np.where(problem.free, gradient, 0.0)
        if lam is not None:
            return self.free_step(excess)
        kept, costs = problem.penalised, problem.costs[problem.penalised]
        moved = gradient[kept] * costs
        excess[kept] = (moved - problem.norm.project(moved, radius)) / costs
        return self._solve(excess, np.ones(excess.size, dtype=bool))

    def among(self, columns: IndexArray) -> FloatArray:
        units = np.eye(self.diagonal.size)[columns]
        return np.array([self.product(unit)[columns] for unit in units])

    def free_step(self, excess: FloatArray) -> FloatArray:
        return self._solve(excess, self.problem.free)

    def _solve(self, right: FloatArray, among: BoolArray) -> FloatArray:
        """``x`` with ``(H + ridge) x = right`` in the coordinates ``among``, zero elsewhere."""
        ridge = np.where(self.problem.penalised, _RIDGE * self.diagonal, 0.0)
        positive = among & (self.diagonal > 0.0)
        inverse = np.where(positive, 1.0 / np.where(positive, self.diagonal + ridge, 1.0), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # the certificate takes no such steps
            return conjugate_gradients(
                lambda v: self.product(v) + ridge * v,
                lambda r: inverse * r,
                right,
                rtol=_CG_TOLERANCE,
                max_steps=_CG_MAX_ITER,
            )


def _factor(matrix: FloatArray) -> ScaledFactor:
    """A factor, whatever the matrix: the last shift is larger than all else together."""
    found = ScaledFactor.of(matrix, (*_SHIFTS, 2.0 * len(matrix)))
    assert found is not None
    return found


def _solved(factor: ScaledFactor, right: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # the certificate does not take such steps
        return factor.solve(right)
