"""The correction of s that makes a dual point meet its equations, by a quadratic model.

For given masses the best ``s = 1/(1+e^{Zx})`` belongs to the x that solves

    minimise  Σ q h(z·x) + r ‖β/c‖_*   over x within its cone,   r = ε - Σ q d     (for (P)),
    minimise  Σ q h(z·x)               over ‖β/c‖_* ≤ λ                            (for fixed λ),

where the cone says ``0 ≤ category ≤ high`` in groups and nothing elsewhere.  With ``g = Σ q s z``
and the logistic Hessian H at x, a model of either is

    minimise over t    ½ tᵀHt - (g + Hx)ᵀt    with the same penalty, constraint and cone.

At its solution ``g - H(t - x)`` is zero on free columns, lies in the ball of radius r and in the
polar of the cone, and it is what g becomes when s moves by ``-s(1-s) Z(t - x)``.  So this step
makes the point feasible and loses second order; another way into the ball would lose
``x·(g - ĝ)``, first order in the error of x.

The model has no samples: ADMM on it, in the metric of H's diagonal, costs no pass over the data.
"""

from __future__ import annotations

import numpy as np

from ..problem.shifted_cholesky import ScaledFactor
from ..rows.arrays import FloatArray
from .bound import IN_NORM, Coordinates

#: ADMM: penalty relative to the diagonal of H, over-relaxation, and its ends.
_RHO = 0.1
_RELAXATION = 1.6
_MAX_ITER = 1000
_MULTIPLICATIONS = 1e8
_TOLERANCE = 1e-12
_CHECK = 10

#: Change of margins, by root mean squares of columns, after which precision is wasted.
_FAR = 10.0

#: Mean curvature ``Σ w s(1-s)`` (at most 1/4) that counts as none.
_FLAT = 1e-20

#: Added to a unit diagonal so that duplicated and empty columns factor.
_SHIFTS = (1e-14, 1e-11, 1e-8, 1e-4)


class Correction:
    """The model with H as an array."""

    def __init__(self, coordinates: Coordinates, hessian: FloatArray) -> None:
        self.coordinates = coordinates
        self.inside = coordinates.in_norm
        self.kept = np.flatnonzero(coordinates.kind != 1)
        costs = np.where(coordinates.kind == IN_NORM, coordinates.costs, 1.0)
        self.costs = costs
        self.hessian = costs[:, None] * hessian * costs
        # Not below what is nothing against the column itself, where all s are 0 or 1.
        self.scale = costs * coordinates.size
        least = _FLAT * self.scale**2
        diagonal = np.maximum(np.diagonal(self.hessian), np.where(least > 0.0, least, 1.0))
        self.metric = np.zeros(costs.size)
        self.metric[self.kept] = _RHO * diagonal[self.kept]
        self.factor = _factor(self.hessian + np.diag(self.metric))
        self.inverse = self.factor.inverse(self.kept)
        place = np.zeros(costs.size, dtype=np.intp)
        place[self.kept] = np.arange(self.kept.size)
        self.norm_places = place[self.inside]
        self.groups = [(place[members], int(place[high])) for members, high in coordinates.groups]

    def step(
        self, gradient: FloatArray, x: FloatArray, radius: float, lam: float | None = None
    ) -> FloatArray:
        """``t - x`` for the solution t of the model; ``radius`` is r, ``lam`` is λ if fixed."""
        kept, norm = self.kept, self.coordinates.norm
        theta = x / self.costs
        right = self.costs * gradient + self.hessian @ theta
        rho = self.metric[kept]
        start = self.solved(right)[kept]
        z, y = theta[kept], (self.costs * gradient)[kept]
        enough = _TOLERANCE * max(float(np.abs(y).sum()), radius)
        inside = self.norm_places
        n_iter = min(_MAX_ITER, max(250, int(_MULTIPLICATIONS / max(kept.size, 1) ** 2)))
        for k in range(n_iter if kept.size else 0):
            t = start + self.inverse @ (rho * z - y)
            v = _RELAXATION * t + (1.0 - _RELAXATION) * z + y / rho
            before, z, y = z, v.copy(), np.zeros_like(v)
            if lam is None:
                y[inside] = norm.project((rho * v)[inside], radius, rho[inside])
                z[inside] = v[inside] - y[inside] / rho[inside]
            else:
                z[inside] = norm.project_dual(v[inside], lam, 1.0 / rho[inside])
                y[inside] = rho[inside] * (v[inside] - z[inside])
            for members, high in self.groups:
                places = np.append(members, high)
                z[places] = _ordered(v[members], float(v[high]), rho[members], float(rho[high]))
                y[places] = rho[places] * (v[places] - z[places])
            # Where margins change more than a linear step can follow, a rough one is as good.
            if k == _CHECK and np.linalg.norm(self.scale[kept] * (t - theta[kept])) > _FAR:
                break
            if k % _CHECK == 0 and np.abs(rho * (z - before)).sum() <= enough:
                break
        right[kept] += rho * z - y
        return np.asarray(self.costs * (self.solved(right) - theta))

    def solved(self, right: FloatArray) -> FloatArray:
        """What H and the metric take to ``right``, refined once."""
        matrix = self.hessian
        with np.errstate(over="ignore", invalid="ignore"):  # no such step will be taken
            first = self.factor.solve(right)
            left = right - matrix @ first - self.metric * first
            return np.asarray(first + self.factor.solve(left))


def _ordered(members: FloatArray, high: float, rho: FloatArray, rho_high: float) -> FloatArray:
    """The nearest point with ``0 ≤ member ≤ high``, in a metric; the last entry is high."""
    order = np.argsort(members)[::-1]
    sums = np.cumsum(np.append(rho_high * high, (rho * members)[order]))
    weights = np.cumsum(np.append(rho_high, rho[order]))
    # With the m largest members at the top, that is their mean; the first m that keeps the rest.
    tops = sums / weights
    beyond = np.append(members[order], -np.inf)
    top = max(float(tops[np.flatnonzero(beyond <= tops)[0]]), 0.0)
    return np.append(np.clip(members, 0.0, top), top)


def _factor(matrix: FloatArray) -> ScaledFactor:
    """A factor, whatever the matrix: the last shift is larger than all else together."""
    found = ScaledFactor.of(matrix, (*_SHIFTS, 2.0 * len(matrix)))
    assert found is not None
    return found
