"""Coordinate minimisation over a box, as a compiled loop.

Each step depends on the one before, so NumPy cannot express it.  A module of its own,
because importing numba takes longer than most fits.
"""

from __future__ import annotations

import numba


@numba.njit(cache=True, nogil=True)
def sweep(H, gradient, theta, radius, tol, max_sweeps):  # type: ignore[no-untyped-def]
    """Sweeps over the coordinates, in place; stops within ``tol``; how many were done."""
    n = theta.size
    for done in range(1, max_sweeps + 1):
        for j in range(n):
            if H[j, j] <= 0.0:
                continue
            moved = min(max(theta[j] - gradient[j] / H[j, j], -radius), radius)
            change = moved - theta[j]
            if change != 0.0:
                theta[j] = moved
                for i in range(n):
                    gradient[i] += change * H[j, i]
        gap = 0.0
        for j in range(n):
            gap += gradient[j] * theta[j] + radius * abs(gradient[j])
        if gap <= tol:
            return done
    return max_sweeps
