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

``auto`` takes coordinates for the box: sweeps are compiled, do not mind the units of the columns,
and find the face that θ is on (a4a and w2a by LP-ADMM to 1e-5: 0.2 and 0.6 s; with Algorithm 6,
2.5 and 10 s).

Deviations: sweeps are slow to the minimum of a face where columns are collinear, so that Newton
steps between them go there at once; faces seldom change from one β-step to the next, and the factor
is mostly at hand (without: 0.8 and 4.6 s).  Algorithm 5 takes the gradient at the extrapolated
point and the step ``1/λ_max(H)`` (the listing has the gradient at ``x^k`` and ``1/λ_max(A)``), and
drops its momentum when that points uphill (O'Donoghue and Candès 2015), without which it is not
linear.  Algorithm 6 goes to the first bound only when projecting the whole step would raise the
objective.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from ..problem.norms import Norm
from ..rows.arrays import BoolArray, FloatArray
from ._coordinates import sweep

#: Rounding of the gap of (C), relative to ``r‖c‖``.  H and c are sums over N samples, so that they
#: agree on the null space of H to some ten thousand units in the last place.
_ROUNDING = 1e-11

#: Added to the diagonal of a face, relative to its largest entry: far above the rounding of H, so
#: that dependent columns do not drift, and so small that a Newton step or two go all the way (made
#: data, a4a, a8a, w2a, mushrooms: 1e-10 takes a tenth fewer sweeps, 1e-7 a third more).
_RIDGE = 1e-8

#: Steps after which an inner solver hands over what it has; the next β-step goes on from there.
_MAX_STEPS = 10_000


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``½ θᵀHθ``, and what solvers want to know of H once."""

    matrix: FloatArray
    factors: dict[bytes, Any] = field(default_factory=dict)  # of the last face

    def gradient(self, theta: FloatArray, c: FloatArray) -> FloatArray:
        """``Hθ - c``."""
        return self.matrix @ theta - c

    def newton_step(self, gradient: FloatArray, free: BoolArray) -> FloatArray:
        """To the minimum over the free coordinates; ``LinAlgError`` where rounding hides it."""
        if free.tobytes() not in self.factors:
            face = self.matrix[np.ix_(free, free)]
            face[np.diag_indices_from(face)] += _RIDGE * np.max(np.diagonal(self.matrix))
            self.factors.clear()
            self.factors[free.tobytes()] = cho_factor(face, overwrite_a=True, check_finite=False)
        step = np.zeros_like(gradient)
        step[free] = cho_solve(self.factors[free.tobytes()], -gradient[free], check_finite=False)
        return step

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
    """Cyclic exact minimisation over one coordinate at a time, for the box.

    Newton steps on the coordinates off the bounds, between sweeps, count as a hundred each.
    """
    theta = ball.project(start)
    gradient = H.gradient(theta, c)
    k = 0
    while ball.gap(gradient, theta) > tol and k < _MAX_STEPS:
        # Ten sweeps at a time; the gradient is then formed afresh, which removes its drift.
        k += sweep(np.ascontiguousarray(H.matrix), gradient, theta, ball.radius, tol, 10)
        gradient = H.gradient(theta, c)
        free = (np.abs(theta) < ball.radius) & (np.diagonal(H.matrix) > 0.0)
        blocked = ball.gap(gradient, theta) > tol
        while blocked and k < _MAX_STEPS:
            # To the minimum of the face, which loses those who meet their bounds on the way.
            k += 100
            with suppress(np.linalg.LinAlgError):
                step = H.newton_step(gradient, free)
                theta, gradient = _moved(H, c, ball, theta, gradient, step)
            before, free = free, free & (np.abs(theta) < (1.0 - 1e-12) * ball.radius)
            blocked = not np.array_equal(free, before)
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
        restart = not np.array_equal(ball.project(target), target)
        if restart:
            theta, gradient = _moved(H, c, ball, theta, gradient, alpha * direction)
        else:
            theta, gradient = target, gradient + alpha * product
    return theta


def _moved(
    H: Quadratic, c: FloatArray, ball: NormBall, theta: FloatArray, gradient: FloatArray,
    step: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """The end of a step into the box, and the gradient there.

    Where the whole step, projected, would raise the objective, it goes as far as the first bound.
    """
    moved = ball.project(theta + step)
    slope = H.gradient(moved, c)
    if float(moved @ (slope - c)) > float(theta @ (gradient - c)):
        moving = np.abs(step) > 1e-150
        room = ball.radius - np.sign(step[moving]) * theta[moving]
        moved = ball.project(theta + np.min(room / np.abs(step[moving]), initial=1.0) * step)
        slope = H.gradient(moved, c)
    return moved, slope


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
