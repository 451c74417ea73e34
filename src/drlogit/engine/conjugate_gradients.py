"""Preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..rows.arrays import FloatArray


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    *,
    rtol: float,
    max_steps: int,
) -> FloatArray:
    """``x`` with ``A x ≈ right``: ``product`` is ``v ↦ A v``, ``precondition`` is ``r ↦ M⁻¹ r``.

    SciPy's ``cg`` ends at a residual of ``rtol ‖b‖``.  Here columns differ in scale by many orders
    of magnitude and a system may be singular, so the residual is measured in the norm of the
    preconditioner, ``√(rᵀ M⁻¹ r)``, which does not depend on scales, and the method ends at a
    direction without curvature instead of dividing by it.
    """
    x = np.zeros_like(right)
    r = right.copy()
    z = precondition(r)
    if rtol >= 1.0:
        return z
    direction = z
    rho = first = float(r @ z)
    for _ in range(max_steps):
        if not rho > rtol**2 * first:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            break
        alpha = rho / curvature
        x += alpha * direction
        r -= alpha * image
        z = precondition(r)
        rho, previous = float(r @ z), rho
        direction = z + (rho / previous) * direction
    return x
