"""The inner problem (C): a quadratic over the ball of the dual norm.

    minimise  ½ θᵀHθ - cᵀθ   subject to  ‖θ‖_* ≤ r

The β-step of every ADMM variant here, with H fixed (ZᵀWZ in the coordinates of ``admm``)
and only c moving, so that everything that depends on H alone is worked out once.  All solvers
start from the last θ and stop on the duality gap ``⟨g, θ⟩ + r‖g‖``, ``g = Hθ - c``.

The paper's three (its Appendix B; the first two for the box only), and one for the ball that the
paper does not have:

    ``coordinate_minimization``  the remark after Algorithm 6 (Hsieh et al. 2008)
    ``active_set_cg``            Algorithm 6 (Cheng et al. 2014): for ill-conditioned H
    ``projected_gradient``       Algorithm 5, any norm: for well-conditioned H
    ``secular_equation``         Euclidean ball: eigenvectors once, then a root in one variable

``auto`` takes coordinates for the box: a sweep is compiled, and does not mind the units of the
columns (a9a by LP-ADMM to 1e-5: 0.9 s; with Algorithms 5 and 6, 2.1 and 5.6 s).

Deviations: Algorithm 5 takes the gradient at the extrapolated point and the step ``1/λ_max(H)``
(the listing has the gradient at ``x^k`` and ``1/λ_max(A)``), and drops its momentum when that
points uphill (O'Donoghue and Candès 2015), without which it is not linear.  Algorithm 6 goes
to the first bound only when projecting the whole step would raise the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import eigh

from ..problem.norms import Norm
from ..rows.arrays import FloatArray
from ._coordinates import sweep

#: Rounding of the gap of (C), relative to ``r‖c‖``.  H and c are sums over N samples, so that they
#: agree on the null space of H to a few thousand units in the last place.
_ROUNDING = 1e-12

#: Steps after which an inner solver hands over what it has; the next β-step goes on from there.
_MAX_STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``½ θᵀHθ``, and what solvers want to know of H once."""

    matrix: FloatArray

    def gradient(self, theta: FloatArray, c: FloatArray) -> FloatArray:
        """``Hθ - c``."""
        return self.matrix @ theta - c

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, negative rounding removed, and eigenvectors of H."""
        values, vectors = eigh(self.matrix)
        return np.maximum(values, 0.0), vectors

    @property
    def largest_eigenvalue(self) -> float:
        """``λ_max(H)``, positive and rounded up."""
        top = float(self.eigen[0].max(initial=0.0))
        return max(1.0001 * top, np.finfo(float).tiny)


class NormBall(NamedTuple):
    """The set ``‖θ‖_* ≤ radius``."""

    norm: Norm
    radius: float

    def project(self, theta: FloatArray) -> FloatArray:
        return self.norm.project_dual(theta, self.radius)

    def gap(self, gradient: FloatArray, theta: FloatArray) -> float:
        """Gap of (C): ``⟨g, θ⟩ + r‖g‖`` for ``g = Hθ - c``."""
        return float(gradient @ theta) + self.radius * self.norm.value(gradient)

    def rounding(self, c: FloatArray) -> float:
        """The gap below which rounding decides: nothing is gained by asking for less."""
        return _ROUNDING * self.radius * self.norm.value(c)


#: ``(c, ball, start, tol) -> θ``, made once per H.
InnerSolver: TypeAlias = Callable[[FloatArray, NormBall, FloatArray, float], FloatArray]


def projected_gradient(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Accelerated projected gradient (Algorithm 5), for every norm."""
    step = 1.0 / H.largest_eigenvalue
    theta = ball.project(start)
    point, momentum = theta, 0
    for k in range(_MAX_STEPS):
        gradient = H.gradient(point, c)
        previous, theta = theta, ball.project(point - step * gradient)
        if float(gradient @ (theta - previous)) > 0.0:
            momentum = 0
        point = theta + (momentum / (momentum + 3)) * (theta - previous)
        momentum += 1
        # The gap wants the gradient at θ itself: look at it only now and then.
        if k % 10 == 0 and ball.gap(H.gradient(theta, c), theta) <= tol:
            break
    return theta


def coordinate_minimization(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Cyclic exact minimisation over one coordinate at a time, for the box."""
    theta = ball.project(start)
    gradient = H.gradient(theta, c)
    k = 0
    while ball.gap(gradient, theta) > tol and k < _MAX_STEPS:
        # Ten sweeps at a time; the gradient is then formed afresh, which removes its drift.
        k += sweep(np.ascontiguousarray(H.matrix), gradient, theta, ball.radius, tol, 10)
        gradient = H.gradient(theta, c)
    return theta


def active_set_cg(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Conjugate gradients on the coordinates off the bounds (Algorithm 6), for the box."""
    radius = ball.radius
    theta = ball.project(start)
    gradient = H.gradient(theta, c)
    direction = np.zeros_like(theta)
    free, length, restart = np.zeros(theta.size, dtype=bool), 0.0, True
    for k in range(_MAX_STEPS):
        if ball.gap(gradient, theta) <= tol:
            break
        # A coordinate stays on its bound while the gradient presses it there.
        free, before = ~((np.abs(theta) >= radius) & (gradient * theta <= 0.0)), free
        residual = np.where(free, -gradient, 0.0)
        length, previous = float(residual @ residual), length
        if length == 0.0:
            break
        restart = restart or k % 100 == 0 or not np.array_equal(free, before)
        direction = residual if restart else residual + (length / previous) * direction
        product = H.matrix @ direction
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
        slope = H.gradient(moved, c)
        if float(moved @ (slope - c)) > value:
            # Only as far as the first bound, which is some way as long as the direction is
            # that of the residual; another one may lead out of the box at once.
            first = _longest(radius - np.sign(direction) * theta, np.abs(direction))
            if first <= 0.0:
                restart = True
                continue
            moved = ball.project(theta + first * direction)
            slope = H.gradient(moved, c)
        theta, gradient, restart = moved, slope, True
    return theta


def _longest(room: FloatArray, speed: FloatArray) -> float:
    """Largest α with ``α · speed ≤ room``."""
    moving = speed > 0.0
    return float(np.min(room[moving] / speed[moving], initial=np.inf))


def secular_equation(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Euclidean ball: ``θ = (H + τI)⁻¹c`` with ``τ ≥ 0`` and ``‖θ‖ = r`` unless ``τ = 0``.

    In the eigenvectors of H this is a root of ``1/‖θ(τ)‖ - 1/r``, nearly linear in τ, so
    that Newton's method from the left needs a few steps (Moré and Sorensen 1983).
    """
    values, vectors = H.eigen
    projections = vectors.T @ c
    radius = ball.radius
    # Where H has no curvature, c has no component but rounding.
    flat = values <= 1e-13 * max(float(values[-1]), np.finfo(float).tiny)
    tau = 0.0
    inverse = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, values))
    theta = inverse * projections
    for _ in range(_MAX_STEPS):
        length = float(np.linalg.norm(theta))
        if length <= radius * (1.0 + 1e-15):
            break
        slope = float(theta @ (inverse * theta)) / length**2  # -d log‖θ‖ / dτ
        tau += (length / radius - 1.0) / slope
        inverse = np.where(flat, 0.0, 1.0 / (np.where(flat, 1.0, values) + tau))
        theta = inverse * projections
    return ball.project(vectors @ theta)


#: The inner solvers by transport norm; the first is what ``auto`` means.
INNER_SOLVERS: dict[str, dict[str, Callable[..., FloatArray]]] = {
    "l1": {
        "coordinate": coordinate_minimization,
        "active-set-cg": active_set_cg,
        "projected-gradient": projected_gradient,
    },
    "l2": {"secular": secular_equation, "projected-gradient": projected_gradient},
    "linf": {"projected-gradient": projected_gradient},
}


def make_inner_solver(name: str, H: Quadratic, norm: Norm) -> InnerSolver:
    """The inner solver of that name for H, or the best one for ``"auto"``."""
    known = INNER_SOLVERS[norm.name]
    if name != "auto" and name not in known:
        raise ValueError(
            f"inner must be one of {', '.join(map(repr, ('auto', *known)))} for norm"
            f" {norm.name!r}, got {name!r}"
        )
    return partial(next(iter(known.values())) if name == "auto" else known[name], H)
