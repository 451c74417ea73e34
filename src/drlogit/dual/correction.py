"""The correction of s that makes a dual point meet its equations, by a quadratic model.

For given flip shares the best ``s = 1/(1+e^{Zx})`` belongs to the x that solves

    minimise  Σ w h(z·x) + a·Zx + r ‖β/c‖_*    over x,   r = ε - κ Σ w a .

With ``g = Σ w (s - a) z`` and the logistic Hessian H at x, a model of this is

    minimise over t    ½ tᵀHt - (g + Hx)ᵀt    with the same penalty.

At its solution ``g - H(t - x)`` is zero on free columns and lies in the ball of radius r.  It is
the value of g after s moves by ``-s(1-s) Z(t - x)``.  So this step makes the point feasible at a
loss of second order in the error of x; another projection onto the ball would lose ``x·(g - ĝ)``,
which is of first order.

The model does not involve the samples, so ADMM on it (in the metric of H's diagonal) needs no pass
over the data.

Solvers correct their own points.  That of a run that ends early, at an error of 1e-6, may still
prove nothing without this step.

Derivation: docs/algorithm.md, (12).
"""

from __future__ import annotations

import numpy as np

from ..rows.arrays import FloatArray
from ._certificate import IN_NORM, Coordinates
from .shifted_cholesky import ShiftedCholesky

#: ADMM: penalty relative to the diagonal of H, and its stopping rules.
_RHO = 0.1
_MAX_ITER = 500
_TOLERANCE = 1e-12


def correction(
    coordinates: Coordinates,
    hessian: FloatArray,
    gradient: FloatArray,
    x: FloatArray,
    radius: float,
) -> FloatArray:
    """``t - x`` for the solution t of the model; ``radius`` is r.

    The result is not finite if there is no such step.
    """
    norm, inside = coordinates.norm, coordinates.in_norm
    costs = np.where(coordinates.kind == IN_NORM, coordinates.costs, 1.0)
    matrix = costs[:, None] * hessian * costs
    theta, slope = x / costs, costs * gradient
    right = slope + matrix @ theta
    diagonal = np.diagonal(matrix)
    rho = _RHO * np.where(diagonal > 0.0, diagonal, 1.0)[inside]
    matrix[inside, inside] += rho
    shifted = ShiftedCholesky(matrix.copy())

    def solved(right: FloatArray) -> FloatArray:
        """Solve with the matrix itself, by one step of refinement."""
        first = shifted.solve(right)
        return first + shifted.solve(right - matrix @ first)

    start, inverse = solved(right), shifted.solve(np.eye(x.size)[:, inside])[inside]
    if not (np.isfinite(start).all() and np.isfinite(inverse).all()):
        return np.full_like(start, np.inf)  # every s is 0 or 1, so H is zero
    z, y = theta[inside], slope[inside]
    enough = _TOLERANCE * max(float(np.abs(y).sum()), radius)
    for k in range(_MAX_ITER if inside.size else 0):
        v, before = start[inside] + inverse @ (rho * z - y) + y / rho, z
        y = norm.project(rho * v, radius, rho)
        z = v - y / rho
        if k % 10 == 0 and np.abs(rho * (z - before)).sum() <= enough:
            break
    right[inside] += rho * z - y
    return np.asarray(costs * (solved(right) - theta))
