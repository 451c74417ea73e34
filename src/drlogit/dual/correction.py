"""The correction of s that makes a dual point meet its equations, by a quadratic model.

For given flip shares the best ``s = 1/(1+e^{Zx})`` belongs to the x that solves

    minimise  Σ w h(z·x) + a·Zx + r ‖β/c‖_*    over x,   r = ε - κ Σ w a     (for (P)),
    minimise  Σ w h(z·x) + a·Zx                over ‖β/c‖_* ≤ λ              (for fixed λ).

With ``g = Σ w (s - a) z`` and the logistic Hessian H at x, a model of either is

    minimise over t    ½ tᵀHt - (g + Hx)ᵀt    with the same penalty or constraint.

At its solution ``g - H(t - x)`` is zero on free columns and lies in the ball of radius r, and it is
what g becomes when s moves by ``-s(1-s) Z(t - x)``.  So this step makes the point feasible and
loses second order; another way into the ball would lose ``x·(g - ĝ)``, first order in the error of
x.

The model has no samples: ADMM on it, in the metric of H's diagonal, costs no pass over the data.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf

from ..rows.arrays import FloatArray
from ._certificate import IN_NORM, Coordinates

#: ADMM: penalty relative to the diagonal of H, over-relaxation, and its ends.
_RHO = 0.1
_RELAXATION = 1.6
_MAX_ITER = 1000
_MULTIPLICATIONS = 1e8
_TOLERANCE = 1e-12

#: Mean curvature ``Σ w s(1-s)`` (at most 1/4) that counts as none.
_FLAT = 1e-20

#: Added to a unit diagonal so that duplicated and empty columns factor.
_SHIFTS = (1e-14, 1e-11, 1e-8, 1e-4)


class Correction:
    """The model with H as an array."""

    def __init__(self, coordinates: Coordinates, hessian: FloatArray) -> None:
        self.norm, self.inside = coordinates.norm, coordinates.in_norm
        self.costs = np.where(coordinates.kind == IN_NORM, coordinates.costs, 1.0)
        self.hessian = self.costs[:, None] * hessian * self.costs
        # Not below what is nothing against the column itself, where all s are 0 or 1.
        least = _FLAT * (self.costs * coordinates.size) ** 2
        diagonal = np.maximum(np.diagonal(self.hessian), np.where(least > 0.0, least, 1.0))
        self.metric = np.where(coordinates.kind == IN_NORM, _RHO * diagonal, 0.0)
        matrix = self.hessian + np.diag(self.metric)
        diagonal = np.diagonal(matrix)
        # At a unit diagonal one shift suits all columns.
        self.unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        self.factor = _factor(self.unit[:, None] * matrix * self.unit)

    def step(
        self, gradient: FloatArray, x: FloatArray, radius: float, lam: float | None = None
    ) -> FloatArray:
        """``t - x`` for the solution t of the model; ``radius`` is r, ``lam`` is λ if fixed."""
        inside, theta = self.inside, x / self.costs
        inverse = self._shifted(np.eye(x.size)[:, inside])[inside]
        right = self.costs * gradient + self.hessian @ theta
        rho = self.metric[inside]
        solved = self.solved(right)
        if not (np.isfinite(solved).all() and np.isfinite(inverse).all()):
            return np.full_like(solved, np.inf)  # all samples decided: there is no such step
        start = solved[inside]
        z, y = theta[inside], (self.costs * gradient)[inside]
        enough = _TOLERANCE * max(float(np.abs(y).sum()), radius)
        n_iter = min(_MAX_ITER, max(250, int(_MULTIPLICATIONS / max(inside.size, 1) ** 2)))
        for k in range(n_iter if inside.size else 0):
            t = start + inverse @ (rho * z - y)
            v, before = _RELAXATION * t + (1.0 - _RELAXATION) * z + y / rho, z
            if lam is None:
                y = self.norm.project(rho * v, radius, rho)
                z = v - y / rho
            else:
                z = self.norm.project_dual(v, lam, 1.0 / rho)
                y = rho * (v - z)
            if k % 10 == 0 and np.abs(rho * (z - before)).sum() <= enough:
                break
        right[inside] += rho * z - y
        return np.asarray(self.costs * (self.solved(right) - theta))

    def solved(self, right: FloatArray) -> FloatArray:
        """What H and the metric take to ``right``, refined once."""
        matrix = self.hessian
        with np.errstate(over="ignore", invalid="ignore"):  # no such step will be taken
            first = self._shifted(right)
            left = right - matrix @ first - self.metric * first
            return np.asarray(first + self._shifted(left))

    def _shifted(self, right: FloatArray) -> FloatArray:
        """What the factored matrix takes to ``right``, or to each of its columns."""
        unit = self.unit if right.ndim == 1 else self.unit[:, None]
        return np.asarray(unit * cho_solve((self.factor, True), unit * right, check_finite=False))


def _factor(matrix: FloatArray) -> FloatArray:
    """The lower Cholesky factor after the smallest shift that lets one exist."""
    for shift in (*_SHIFTS, 2.0 * len(matrix)):  # the last is larger than all else together
        shifted = matrix.copy()
        np.fill_diagonal(shifted, 1.0 + shift)
        factor, failed = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if not failed:
            break
    return np.asarray(factor)
