"""The inner problem (C): a quadratic over the ball of the dual norm.

    minimise  ½ θᵀHθ - cᵀθ   subject to  ‖θ‖_* ≤ r

The β-step of every ADMM variant here, with H fixed (ZᵀWZ in the coordinates of ``beta_step``)
and only c moving, so everything that depends on H alone is worked out once.  All solvers
start from the last θ and stop on the duality gap ``⟨g, θ⟩ + r‖g‖``, ``g = Hθ - c``.

The paper's three (its Appendix B; box only except the first):

    ``projected_gradient``       Algorithm 5, any norm: for well-conditioned H
    ``coordinate_minimization``  the remark after Algorithm 6 (Hsieh et al. 2008): for N ≪ n
    ``active_set_cg``            Algorithm 6 (Cheng et al. 2014): for ill-conditioned H

and two exact ones, which ``auto`` uses because they were faster at every size that was measured
(``benchmarks/paper_methods.py inner``), as H is small and has its factors kept:

    ``ActiveSetNewton``          box and ℓ1 ball: Newton on the face that a gradient step finds
    ``secular_equation``         Euclidean ball: eigenvectors once, then a root in one variable

Deviations: Algorithm 5 takes the gradient at the extrapolated point and the step
``1/λ_max(H)`` (the box in the appendix has the gradient at ``x^k`` and ``1/λ_max(A)``), and drops
its momentum when that points uphill (O'Donoghue and Candès 2015), without which it is not linear.
Algorithm 6 goes to the first bound only when projecting the whole step would raise the objective.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, eigvalsh

from ..certificate import inner_gap
from ..losses import FloatArray
from ..norms import Norm

#: Rounding of the gap, relative to ``r‖c‖``: no solver is asked for less.  H and c are sums over
#: N samples, so that they agree on the null space of H to a few thousand units in the last place.
_ROUNDING = 1e-12

#: Shift of the face's Hessian relative to its diagonal: enough for one-hot groups and
#: duplicated columns to factor, small enough for the second step to remove its error.
_SHIFT = 1e-10

#: A gradient this small, relative to c, is rounding whatever the matrix.
_NOISE = 1e-15

#: Newton steps without a smaller gap after which rounding must be to blame.
_PATIENCE = 20

#: Numbers that the kept factors of faces may hold together.
_FACTOR_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``½ θᵀHθ``: a matrix, or only its product with vectors if it is too large to keep."""

    size: int
    product: Callable[[FloatArray], FloatArray]
    matrix: FloatArray | None = None

    @classmethod
    def from_matrix(cls, matrix: FloatArray) -> Quadratic:
        return cls(matrix.shape[0], matrix.__matmul__, matrix)

    @cached_property
    def largest_eigenvalue(self) -> float:
        """An upper bound on ``λ_max(H)``, tight to a percent."""
        if self.size == 0:
            return 1.0
        if self.matrix is not None:
            last = self.size - 1
            top = float(eigvalsh(self.matrix, subset_by_index=[last, last])[0])
        else:
            top = self._power_iteration()
        return max(top * 1.0001, np.finfo(float).tiny)

    def _power_iteration(self, max_iter: int = 100) -> float:
        v = np.random.default_rng(0).standard_normal(self.size)
        value = 0.0
        for _ in range(max_iter):
            v /= np.linalg.norm(v)
            v, previous, value = self.product(v), value, 0.0
            value = float(np.linalg.norm(v))
            if value == 0.0 or abs(value - previous) <= 1e-3 * value:
                break
        return 1.01 * value

    @cached_property
    def row_sums(self) -> FloatArray:
        """``Σ_k |H_jk|``: the diagonal matrix of these is at least H."""
        sums = np.abs(self.dense).sum(axis=1)
        return np.where(sums > 0.0, sums, 1.0)

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, negative rounding removed, and eigenvectors of H."""
        values, vectors = eigh(self.dense)
        return np.maximum(values, 0.0), vectors

    @property
    def dense(self) -> FloatArray:
        if self.matrix is None:
            raise ValueError(
                f"this inner solver needs the {self.size}×{self.size} matrix H, which was not"
                " formed: use 'active-set-cg' (norm 'l1') or 'projected-gradient'"
            )
        return self.matrix


Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class Ball(NamedTuple):
    """The set ``‖θ‖_* ≤ radius``."""

    norm: Norm
    radius: float

    def project(self, theta: FloatArray) -> FloatArray:
        return self.norm.project_dual(theta, self.radius)

    def gap(self, gradient: FloatArray, theta: FloatArray) -> float:
        return inner_gap(gradient, theta, self.radius, self.norm)


class Inner(NamedTuple):
    """A solution of (C), its gap, and the steps it took."""

    theta: FloatArray
    gap: float
    n_iter: int


#: ``(c, ball, start, tol) -> Inner``, made once per H.
InnerSolver: TypeAlias = Callable[[FloatArray, Ball, FloatArray, float], Inner]


def projected_gradient(
    H: Quadratic, c: FloatArray, ball: Ball, start: FloatArray, tol: float, max_iter: int = 10_000
) -> Inner:
    """Accelerated projected gradient (Algorithm 5), for every norm."""
    step = 1.0 / H.largest_eigenvalue
    theta = ball.project(start)
    point, momentum = theta, 0
    for k in range(max_iter):
        gradient = H.product(point) - c
        previous, theta = theta, ball.project(point - step * gradient)
        if float(gradient @ (theta - previous)) > 0.0:
            momentum = 0
        point = theta + (momentum / (momentum + 3)) * (theta - previous)
        momentum += 1
        # The gap wants the gradient at θ itself: look at it only now and then.
        if k % 10 == 0:
            gap = ball.gap(H.product(theta) - c, theta)
            if gap <= tol:
                return Inner(theta, gap, k + 1)
    return Inner(theta, ball.gap(H.product(theta) - c, theta), max_iter)


def coordinate_minimization(
    H: Quadratic, c: FloatArray, ball: Ball, start: FloatArray, tol: float, max_iter: int = 10_000
) -> Inner:
    """Cyclic exact minimisation over one coordinate at a time, for the box."""
    from .coordinate_loop import sweep  # compiled: imported only when needed

    theta = ball.project(start)
    gradient = H.product(theta) - c
    gap, k = ball.gap(gradient, theta), 0
    while gap > tol and k < max_iter:
        # Ten sweeps at a time; the gradient is then formed afresh, which removes its drift.
        k += sweep(H.dense, gradient, theta, ball.radius, tol, min(10, max_iter - k))
        gradient = H.product(theta) - c
        gap = ball.gap(gradient, theta)
    return Inner(theta, gap, k)


def active_set_cg(
    H: Quadratic, c: FloatArray, ball: Ball, start: FloatArray, tol: float, max_iter: int = 10_000
) -> Inner:
    """Conjugate gradients on the coordinates off the bounds (Algorithm 6), for the box."""
    radius = ball.radius
    theta = ball.project(start)
    gradient = H.product(theta) - c
    direction = np.zeros_like(theta)
    free, length, restart = np.zeros(theta.size, dtype=bool), 0.0, True
    for k in range(max_iter):
        gap = ball.gap(gradient, theta)
        if gap <= tol:
            return Inner(theta, gap, k)
        # A coordinate stays on its bound while the gradient presses it there.
        free, before = ~((np.abs(theta) >= radius) & (gradient * theta <= 0.0)), free
        residual = np.where(free, -gradient, 0.0)
        length, previous = float(residual @ residual), length
        if length == 0.0:
            return Inner(theta, gap, k)
        restart = restart or k % 100 == 0 or not np.array_equal(free, before)
        direction = residual if restart else residual + (length / previous) * direction
        product = H.product(direction)
        curvature = float(direction @ product)
        # Along a null direction of H the minimum is on the boundary.
        farthest = 2.0 * radius / float(np.max(np.abs(direction)))
        alpha = min(length / curvature, farthest) if curvature > 0.0 else farthest
        target = theta + alpha * direction
        moved = ball.project(target)
        if np.array_equal(moved, target):
            theta, gradient, restart = moved, gradient + alpha * product, False
            continue
        value = float(theta @ (gradient - c))
        slope = H.product(moved) - c
        if float(moved @ (slope - c)) > value:
            # Only as far as the first bound, which is some way as long as the direction is
            # that of the residual; another one may lead out of the box at once.
            first = _longest(radius - np.sign(direction) * theta, np.abs(direction))
            if first <= 0.0:
                restart = True
                continue
            moved = ball.project(theta + first * direction)
            slope = H.product(moved) - c
        theta, gradient, restart = moved, slope, True
    return Inner(theta, ball.gap(H.product(theta) - c, theta), max_iter)


def _longest(room: FloatArray, speed: FloatArray) -> float:
    """Largest α with ``α · speed ≤ room``."""
    moving = speed > 0.0
    return float(np.min(room[moving] / speed[moving], initial=np.inf))


class Face(NamedTuple):
    """A face of the ball: which coordinates move on it, and the signs they keep (ℓ1 ball)."""

    free: Mask
    signs: FloatArray

    @property
    def key(self) -> bytes:
        return self.free.tobytes()


class ActiveSetNewton:
    """Newton's method on the face that a projected gradient step identifies.

    For the box and the ℓ1 ball.  Exact once the face is right, which in a warm-started
    sequence it mostly is at once; the factors of the last faces are kept.
    """

    def __init__(self, H: Quadratic, norm: Norm) -> None:
        self.H = H
        self._box = norm.name == "l1"
        # Box: the diagonal metric keeps the projection simple and spares badly scaled columns.
        self._metric = H.row_sums if self._box else H.largest_eigenvalue
        self._factors: OrderedDict[bytes, Any] = OrderedDict()
        self._kept_factors = max(1, _FACTOR_ENTRIES // max(H.size, 1) ** 2)

    def __call__(
        self, c: FloatArray, ball: Ball, start: FloatArray, tol: float, max_iter: int = 1000
    ) -> Inner:
        theta = ball.project(start)
        gradient = self.H.product(theta) - c
        size = ball.norm.value(c)
        tol = max(tol, _NOISE * ball.radius * size)
        last = b""
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
            moved, slope, reached = self._minimise_on(face, theta, gradient, c, ball, bold=True)
            if float(moved @ (slope - c)) > value + 1e-15 * abs(value):
                moved, slope, reached = self._minimise_on(
                    face, theta, gradient, c, ball, bold=False
                )
            theta, gradient = moved, slope
            if reached.key == last:
                # The same face again is its refinement; what is left to do is to leave it.
                face = self._released(reached, theta, gradient, ball, _NOISE * size)
                if face is reached:
                    return Inner(theta, ball.gap(gradient, theta), k + 1)
                theta, gradient, reached = self._minimise_on(
                    face, theta, gradient, c, ball, bold=False
                )
            last = reached.key
        return Inner(theta, ball.gap(gradient, theta), max_iter)

    def _face_of(self, theta: FloatArray, ball: Ball) -> Face:
        """The face that θ lies in: bounds that it is on, or coordinates that are zero."""
        free = np.abs(theta) < ball.radius if self._box else theta != 0.0
        return Face(free, np.sign(theta))

    def _released(
        self, face: Face, theta: FloatArray, gradient: FloatArray, ball: Ball, noise: float
    ) -> Face:
        """The face with one more free coordinate, the one that promises most; or the same.

        From the minimum on a face, a single coordinate always moves the right way.
        """
        if self._box:
            pull = np.where(face.free, 0.0, gradient * np.sign(theta))
        else:
            pressure = float(np.max(np.abs(gradient[face.free]), initial=0.0))
            tight = np.abs(theta).sum() >= ball.radius * (1.0 - 1e-12)
            pull = np.where(face.free, 0.0, np.abs(gradient) - (pressure if tight else 0.0))
        diagonal = np.diagonal(self.H.dense)
        gains = np.square(np.maximum(pull, 0.0)) / np.where(diagonal > 0.0, diagonal, np.inf)
        j = int(np.argmax(gains))
        if not pull[j] > noise:
            return face
        free, signs = face.free.copy(), face.signs.copy()
        free[j], signs[j] = True, -np.sign(gradient[j])
        return Face(free, signs)

    def _minimise_on(
        self,
        face: Face,
        theta: FloatArray,
        gradient: FloatArray,
        c: FloatArray,
        ball: Ball,
        bold: bool,
    ) -> tuple[FloatArray, FloatArray, Face]:
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
        return theta, gradient, Face(free, face.signs)

    def _box_step(
        self, theta: FloatArray, gradient: FloatArray, face: Face, ball: Ball, bold: bool
    ) -> tuple[FloatArray, Mask]:
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
        return moved, stays if alpha < 1.0 or bold else np.ones_like(stays)

    def _diamond_step(
        self, theta: FloatArray, gradient: FloatArray, face: Face, ball: Ball, bold: bool
    ) -> tuple[FloatArray, Mask]:
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
        moved = ball.project(moved)  # only a bold step can leave the ball
        return moved, (moved[free] != 0.0) if bold else (stays if alpha < 1.0 else stays | True)

    def _solve(self, free: Mask, r: FloatArray) -> FloatArray:
        key = free.tobytes()
        if key in self._factors:
            self._factors.move_to_end(key)
        else:
            inner = self.H.dense[np.ix_(free, free)]
            diagonal = np.diagonal(inner)
            shift = _SHIFT * np.where(diagonal > 0.0, diagonal, 1.0)
            inner[np.diag_indices_from(inner)] += shift
            factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
            self._factors[key] = factor
            if len(self._factors) > self._kept_factors:
                self._factors.popitem(last=False)
        return np.asarray(cho_solve(self._factors[key], r, check_finite=False))


def secular_equation(
    H: Quadratic, c: FloatArray, ball: Ball, start: FloatArray, tol: float, max_iter: int = 100
) -> Inner:
    """Euclidean ball: ``θ = (H + τI)⁻¹c`` with ``τ ≥ 0`` and ``‖θ‖ = r`` unless ``τ = 0``.

    In the eigenvectors of H this is a root of ``1/‖θ(τ)‖ - 1/r``, nearly linear in τ, so
    that Newton's method from the left needs a few steps (Moré and Sorensen 1983).
    """
    values, vectors = H.eigen
    projections = vectors.T @ c
    radius = ball.radius
    # Where H has no curvature, c has no component but rounding.
    flat = values <= 1e-13 * max(float(values[-1]), np.finfo(float).tiny)
    tau, k = 0.0, 0
    inverse = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, values))
    theta = inverse * projections
    while k < max_iter:
        length = float(np.linalg.norm(theta))
        if length <= radius * (1.0 + 1e-15):
            break
        k += 1
        slope = float(theta @ (inverse * theta)) / length**2  # -d log‖θ‖ / dτ
        tau += (length / radius - 1.0) / slope
        inverse = np.where(flat, 0.0, 1.0 / (np.where(flat, 1.0, values) + tau))
        theta = inverse * projections
    solution = ball.project(vectors @ theta)
    return Inner(solution, ball.gap(H.product(solution) - c, solution), k)


#: Names of the inner solvers by transport norm; the first is what ``auto`` means.
INNER_SOLVERS = {
    "l1": ("active-set-newton", "active-set-cg", "coordinate", "projected-gradient"),
    "l2": ("secular", "projected-gradient"),
    "linf": ("active-set-newton", "projected-gradient"),
}

_FUNCTIONS: dict[str, Callable[..., Inner]] = {
    "projected-gradient": projected_gradient,
    "coordinate": coordinate_minimization,
    "active-set-cg": active_set_cg,
    "secular": secular_equation,
}


def make_inner_solver(name: str, H: Quadratic, norm: Norm) -> InnerSolver:
    """The inner solver of that name for H, or the best one for ``"auto"``."""
    known = INNER_SOLVERS[norm.name]
    if name == "auto":
        matrix_free = "active-set-cg" if norm.name == "l1" else "projected-gradient"
        name = known[0] if H.matrix is not None else matrix_free
    if name not in known:
        raise ValueError(
            f"inner must be one of {', '.join(map(repr, ('auto', *known)))} for norm"
            f" {norm.name!r}, got {name!r}"
        )
    if name == "active-set-newton":
        return ActiveSetNewton(H, norm)
    function = _FUNCTIONS[name]

    def solve(c: FloatArray, ball: Ball, start: FloatArray, tol: float) -> Inner:
        return function(H, c, ball, start, tol)

    return solve


def rounding_of_gap(c: FloatArray, ball: Ball) -> float:
    """The gap below which rounding decides: nothing is gained by asking for less."""
    return _ROUNDING * ball.radius * ball.norm.value(c)
