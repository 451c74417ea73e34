"""The inner problem (C) over the box or the ℓ1 ball by Newton's method on faces:

    minimise  ½ θᵀHθ - cᵀθ   subject to  |θ_j| ≤ r, or Σ|θ_j| ≤ r

A projected gradient step says which bounds hold, or which coordinates are zero; on that face
the minimum is a linear system.  Where a Newton step would leave the face, the face shrinks.  Both
kinds of step lower the objective.  In a warm-started sequence the face is mostly right at
once, and its factor is known from the last time.

Not in the paper, whose inner solvers are in ``ball_qp``.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import NamedTuple

import numpy as np

from ..problem.norms import Norm
from ..problem.shifted_cholesky import ScaledFactor, unit_scale
from ..rows.arrays import BoolArray, FloatArray
from .quadratic import Inner, NormBall, Quadratic

#: Shifts of the face's Hessian relative to its diagonal.  The first is enough for one-hot groups
#: and duplicated columns, and small enough for the second step to remove its error.
_SHIFTS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)

#: A gradient this small, relative to c, is rounding whatever the matrix.
_NOISE = 1e-15

#: Newton steps without a smaller gap after which rounding must be to blame.
_PATIENCE = 5

#: Numbers that the kept factors of faces may hold together.
_FACTOR_ENTRIES = 4_000_000


class Face(NamedTuple):
    """A face of the ball: which coordinates move on it, and the signs they keep (ℓ1 ball)."""

    free: BoolArray
    signs: FloatArray


class ActiveSetNewton:
    """The method for one H; keeps the factors of the last faces."""

    def __init__(self, H: Quadratic, norm: Norm) -> None:
        self.H = H
        self._box = norm.name == "l1"
        # Box: the diagonal metric keeps the projection simple and spares badly scaled columns.
        self._metric = H.row_sums if self._box else H.largest_eigenvalue
        self._factors: OrderedDict[bytes, ScaledFactor] = OrderedDict()
        self._kept_factors = max(1, _FACTOR_ENTRIES // max(H.size, 1) ** 2)

    def __call__(
        self, c: FloatArray, ball: NormBall, start: FloatArray, tol: float, max_iter: int = 1000
    ) -> Inner:
        # What has neither curvature nor slope (an empty column) is not worth any of the radius.
        idle = (np.diagonal(self.H.matrix) == 0.0) & (c == 0.0)
        theta = ball.project(np.where(idle, 0.0, start))
        gradient = self.H.product(theta) - c
        tol = max(tol, _NOISE * ball.radius * ball.norm.value(c))
        best = Inner(theta, math.inf, 0)
        for k in range(max_iter):
            gap = ball.gap(gradient, theta)
            if gap < best.gap:
                best = Inner(theta, gap, k)
            if gap <= tol or k > best.n_iter + _PATIENCE:
                return best
            # The gradient step lowers the objective, and so does what follows.
            theta = ball.project(theta - gradient / self._metric)
            gradient = self.H.product(theta) - c
            face = self._face_of(theta, ball)
            value = float(theta @ (gradient - c))
            moved, slope = self._minimise_on(face, theta, gradient, c, ball, bold=True)
            if float(moved @ (slope - c)) > value + 1e-15 * abs(value):
                moved, slope = self._minimise_on(face, theta, gradient, c, ball, bold=False)
            theta, gradient = moved, slope
        return best

    def _face_of(self, theta: FloatArray, ball: NormBall) -> Face:
        """The face that θ lies in: bounds that it is on, or coordinates that are zero."""
        free = np.abs(theta) < ball.radius if self._box else theta != 0.0
        return Face(free, np.sign(theta))

    def _minimise_on(
        self,
        face: Face,
        theta: FloatArray,
        gradient: FloatArray,
        c: FloatArray,
        ball: NormBall,
        bold: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Newton steps on a face, which shrinks as long as steps lead out of it.

        Bold: all coordinates that a step takes too far are fixed at once.  Otherwise only
        the first, so that the objective cannot rise.
        """
        step = self._box_step if self._box else self._diamond_step
        free = face.free.copy()
        while free.any():
            theta, stays = step(theta, gradient, Face(free, face.signs), ball, bold)
            gradient = self.H.product(theta) - c
            if stays.all():
                break
            free[free] = stays
        return theta, gradient

    def _box_step(
        self, theta: FloatArray, gradient: FloatArray, face: Face, ball: NormBall, bold: bool
    ) -> tuple[FloatArray, BoolArray]:
        """One step within the box, and which of the free coordinates stay off the bounds."""
        free, radius = face.free, ball.radius
        x, direction = theta[free], -self._solve(free, gradient[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (radius - np.sign(direction) * x) / np.abs(direction)
        reach[direction == 0.0] = np.inf
        alpha = 1.0 if bold else min(1.0, float(reach.min()))
        stays = reach > alpha
        moved = theta.copy()
        moved[free] = np.where(stays, x + alpha * direction, np.sign(direction) * radius)
        # A full step has arrived, whatever bound it happened to meet.
        return moved, stays if bold or alpha < 1.0 else np.ones_like(stays)

    def _diamond_step(
        self, theta: FloatArray, gradient: FloatArray, face: Face, ball: NormBall, bold: bool
    ) -> tuple[FloatArray, BoolArray]:
        """One step within the ℓ1 ball, and which of the free coordinates keep their sign."""
        free, signs = face.free, face.signs[face.free]
        x, direction = theta[free], -self._solve(free, gradient[free])
        room = max(ball.radius - float(np.abs(x).sum()), 0.0)
        rise = float(signs @ direction)
        if rise > room:
            # The minimum lies outside: go to the one on the face Σ|θ| = radius.  Taking the mean
            # pressure off the gradient first spares the digits of a small ball.
            along = self._solve(free, signs)
            direction = -self._solve(free, gradient[free] - np.mean(signs * gradient[free]) * signs)
            direction -= ((float(signs @ direction) - room) / float(signs @ along)) * along
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(signs * direction < 0.0, np.abs(x) / np.abs(direction), np.inf)
        alpha = 1.0 if bold else min(1.0, float(reach.min()))
        stays = reach > alpha
        moved = theta.copy()
        moved[free] = np.where(stays, x + alpha * direction, 0.0)
        if bold:  # which may leave the ball, and then loses more coordinates to the projection
            moved = ball.project(moved)
            return moved, moved[free] != 0.0
        return moved, stays if alpha < 1.0 else np.ones_like(stays)

    def _solve(self, free: BoolArray, r: FloatArray) -> FloatArray:
        """``H⁻¹ r`` on the free coordinates."""
        key = free.tobytes()
        if key in self._factors:
            self._factors.move_to_end(key)
        else:
            self._factors[key] = _factor(self.H.matrix[np.ix_(free, free)])
            if len(self._factors) > self._kept_factors:
                self._factors.popitem(last=False)
        return self._factors[key].solve(r)


def _factor(matrix: FloatArray) -> ScaledFactor:
    """Of a face: after the smallest shift that serves, and without curvature if none does."""
    found = ScaledFactor.of(matrix, _SHIFTS)
    return found or ScaledFactor(unit_scale(np.diagonal(matrix)), np.eye(len(matrix), order="F"))
