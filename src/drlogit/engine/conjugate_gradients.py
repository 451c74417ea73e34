"""Preconditioned conjugate gradients, one step at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..rows.arrays import FloatArray

#: Directions that curve less, beside the preconditioner, do so by rounding: no step is right.
_LEAST_CURVATURE = 1e-13


class ConjugateGradients:
    """``A x ≈ right``: ``product`` is ``v ↦ A v``, ``precondition`` is ``r ↦ M⁻¹ r``.

    SciPy's ``cg`` ends at a residual of ``rtol ‖b‖``.  Here columns differ in scale by many orders
    of magnitude and a system may be singular, so the residual is measured in the norm of the
    preconditioner, ``ρ = rᵀ M⁻¹ r``, which does not depend on scales, and a direction without
    curvature is not taken.
    """

    def __init__(
        self,
        product: Callable[[FloatArray], FloatArray],
        precondition: Callable[[FloatArray], FloatArray],
        right: FloatArray,
    ) -> None:
        self.product, self.precondition = product, precondition
        self.x, self.left = np.zeros_like(right), right
        self.direction = precondition(right)
        self.rho = self.first = float(right @ self.direction)
        self.steps, self.gain, self.gained = 0, 0.0, 0.0  # of the quadratic, last and in all

    def step(self) -> bool:
        """Take a step; whether there was one to take."""
        image = self.product(self.direction)
        curvature = float(self.direction @ image)
        if not curvature > _LEAST_CURVATURE * self.rho:
            return False
        alpha = self.rho / curvature
        self.x = self.x + alpha * self.direction
        self.left = self.left - alpha * image
        self.gain = alpha * self.rho
        self.gained += self.gain
        z = self.precondition(self.left)
        before, self.rho = self.rho, float(self.left @ z)
        self.direction = z + (self.rho / before) * self.direction
        self.steps += 1
        return True
