"""Problem (C): least squares over the ball of the dual norm.

    minimise  ½‖Ax - b‖²   subject to  ‖x‖_* ≤ λ

The paper's three solvers (Appendix B; the last two for the box, which is ℓ1 transport):

    ``projected_gradient``       Algorithm 5, any norm, for well-conditioned A
    ``active_set_cg``            Algorithm 6 (Cheng et al. 2014), for ill-conditioned A
    ``coordinate_minimization``  the remark after Algorithm 6 (Hsieh et al. 2008), for N ≪ n

Three more: ``restarted_gradient`` is Algorithm 5 whose momentum starts again where it points
uphill (O'Donoghue and Candès 2015), ``coordinate_newton`` takes Newton steps between sweeps (box;
6 to 14 times faster than Algorithm 6), and ``secular`` solves the Euclidean ball at once.

A solver is a generator ``(H, c, ball, x) → (x, gradient)`` of its iterates, with ``H = AᵀA`` and
``c = Aᵀb``, and ends where rounding hides further progress.  The gradient ``Hx - c`` is None where
the iteration does not have it.  :func:`solve_qp` decides when to stop.

Deviations from the listings.  Algorithm 5: the gradient is at the extrapolated point and the step
is 1/λ_max(AᵀA); as printed (at xᵏ, 1/λ_max(A)) it does not converge.  Algorithm 6: along a
direction without curvature, where the listing divides by zero, it goes to the far bound; where the
direction points uphill, as it may after a step that the box cut short, conjugacy starts again;
where projecting the whole step would raise the objective, it goes to the first bound only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csc_array, issparse
from scipy.sparse.linalg import LinearOperator, eigsh

from ..rows.arrays import BoolArray, FloatArray, Matrix
from ._coordinates import sweep, sweep_columns
from .subproblem import TransportNorm, as_matrix, check, get_norm

#: Up to so many columns H is formed: it has 200 MB then, and its factors as much again.
DENSE_LIMIT = 5000

#: Steps after which a solver hands over what it has.
MAX_STEPS = 10_000

#: The released code ends Algorithm 6 after a step shorter than this.
RELEASED_STEP = 1e-5

#: Rounding of the gap of (C), relative to ``λ‖c‖``.  H and c are sums over N samples, so that they
#: agree on the null space of H to some ten thousand units in the last place.
_ROUNDING = 1e-11

#: Added to the diagonal of a face, relative to its largest entry: far above the rounding of H, so
#: that dependent columns do not drift, and so small that a Newton step or two go all the way (made
#: data, a4a, a8a, w2a, mushrooms: 1e-10 takes a tenth fewer sweeps, 1e-7 a third more).
_RIDGE = 1e-8

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``H = AᵀA``: the matrix, or products with it, and what is computed of H once."""

    A: Matrix
    factors: dict[bytes, Any] = field(default_factory=dict)  # of the last face

    @cached_property
    def matrix(self) -> FloatArray | None:
        """H, or None where it would be too large."""
        if self.A.shape[1] > DENSE_LIMIT:
            return None
        H = self.A.T @ self.A
        return np.ascontiguousarray(H.toarray() if issparse(H) else H)

    def __matmul__(self, x: FloatArray) -> FloatArray:
        """``Hx``."""
        return np.asarray(self.A.T @ (self.A @ x) if self.matrix is None else self.matrix @ x)

    @cached_property
    def columns(self) -> csc_array:
        """A by columns, for sweeps without the matrix."""
        A = csc_array(self.A)
        A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
        return A

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of H."""
        if self.matrix is not None:
            return np.diagonal(self.matrix)
        return np.asarray(self.columns.multiply(self.columns).sum(axis=0)).ravel()

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, negative rounding removed, and eigenvectors of H."""
        values, vectors = eigh(self.A.T @ self.A if self.matrix is None else self.matrix)
        return np.maximum(values, 0.0), vectors

    @cached_property
    def largest_eigenvalue(self) -> float:
        """``λ_max(H)``, positive and rounded up."""
        if self.matrix is not None:
            top = 1.0001 * float(self.eigen[0].max(initial=0.0))
        else:
            # Lanczos approaches λ_max from below; its error is at most the residual, 1 %.
            size = self.A.shape[1]
            operator = LinearOperator((size, size), matvec=self.__matmul__, dtype=np.float64)
            first = np.random.default_rng(0).standard_normal(size)
            top = 1.02 * float(eigsh(operator, 1, v0=first, tol=1e-2)[0][0])
        return max(top, np.finfo(float).tiny)

    def newton_step(self, gradient: FloatArray, free: BoolArray) -> FloatArray:
        """To the minimum over the free coordinates; ``LinAlgError`` where rounding hides it."""
        if free.tobytes() not in self.factors:
            assert self.matrix is not None, "only offered where the matrix is at hand"
            face = self.matrix[np.ix_(free, free)]
            face[np.diag_indices_from(face)] += _RIDGE * np.max(self.diagonal)
            self.factors.clear()
            self.factors[free.tobytes()] = cho_factor(face, overwrite_a=True, check_finite=False)
        step = np.zeros_like(gradient)
        step[free] = cho_solve(self.factors[free.tobytes()], -gradient[free], check_finite=False)
        return step


class NormBall(NamedTuple):
    """The set ``‖x‖_* ≤ radius``."""

    norm: TransportNorm
    radius: float

    def project(self, x: FloatArray) -> FloatArray:
        """The nearest point of the ball."""
        return self.norm.project(x, self.radius)

    def gap(self, gradient: FloatArray, x: FloatArray) -> float:
        """Duality gap of (C): ``⟨g, x⟩ + λ‖g‖`` for ``g = Hx - c``."""
        return float(gradient @ x) + self.radius * self.norm.value(gradient)

    def rounding(self, c: FloatArray) -> float:
        """The gap below which rounding decides: nothing is gained by asking for less."""
        return _ROUNDING * self.radius * self.norm.value(c)


Steps: TypeAlias = Iterator[tuple[FloatArray, FloatArray | None]]


def _size(x: FloatArray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def projected_gradient(
    H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray, restarts: bool = False
) -> Steps:
    """Algorithm 5, accelerated projected gradient, for every norm."""
    step, k = 1.0 / H.largest_eigenvalue, 0
    x_old = x = ball.project(x)
    while True:
        k += 1
        y = x + k / (k + 3) * (x - x_old)
        x_old, x = x, ball.project(y - step * (H @ y - c))
        yield x, None
        if _size(x - y) <= 4.0 * _EPS * max(_size(x), step * _size(c)):
            return
        if restarts and float((y - x) @ (x - x_old)) > 0.0:
            k, x_old = 0, x


def restarted_gradient(H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray) -> Steps:
    """Algorithm 5 with a momentum that starts again where it points uphill."""
    return projected_gradient(H, c, ball, x, restarts=True)


def active_set_cg(H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray) -> Steps:
    """Algorithm 6, conjugate gradients on the coordinates off their bounds."""
    lam = ball.radius
    x = ball.project(x)
    g = H @ x - c
    hidden = 64.0 * _EPS**2 * float(c @ c)  # what rounding leaves of ‖r‖²
    free, p, length = np.zeros(0, dtype=bool), x, 0.0
    while True:
        # F: a coordinate stays on its bound while the gradient presses it there
        free, before = ~((np.abs(x) >= lam) & (g * x <= 0.0)), free
        r = np.where(free, -g, 0.0)
        length, length_before = float(r @ r), length
        if length <= hidden:
            return
        p = r + (length / length_before) * p if np.array_equal(free, before) else r
        if float(r @ p) <= 0.0:
            p = r
        Hp = H @ p
        curvature = float(p @ Hp)
        alpha = min(length / curvature, 1e150) if curvature > 0.0 else 2.0 * lam / _size(p)
        whole = x + alpha * p
        if np.array_equal(ball.project(whole), whole):
            x, g = whole, g + alpha * Hp
        else:
            x, g = _into_the_box(H, c, ball, x, g, alpha * p)
        yield x, g


def _into_the_box(
    H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray, g: FloatArray, step: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The end of a step that leaves the box, and the gradient there.

    Where the whole step, projected, would raise the objective, it goes as far as the first bound.
    """
    moved = ball.project(x + step)
    slope = H @ moved - c
    if float(moved @ (slope - c)) > float(x @ (g - c)):
        moving = np.abs(step) > 1e-150
        room = ball.radius - np.sign(step[moving]) * x[moving]
        moved = ball.project(x + np.min(room / np.abs(step[moving]), initial=1.0) * step)
        slope = H @ moved - c
    return moved, slope


def coordinate_minimization(
    H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray, newton: bool = False
) -> Steps:
    """Sweeps of exact minimisation over one coordinate at a time, for the box."""
    x = ball.project(x)
    g = H @ x - c
    curved = H.diagonal > 0.0
    # Coordinates that change by less than this change by rounding.
    hidden = 4.0 * _EPS * _size(c[curved] / H.diagonal[curved])
    change = math.inf
    while change > hidden:
        before, x = x, x.copy()
        if H.matrix is not None:
            sweep(H.matrix, g, x, ball.radius)
        else:
            A = H.columns
            sweep_columns(A.data, A.indices, A.indptr, H.diagonal, c, ball.radius, x, A @ x)
        g = H @ x - c  # formed afresh, which removes the drift of the sweeps
        if newton and ball.gap(g, x) > ball.rounding(c):
            x, g = _along_faces(H, c, ball, x, g, curved)
        change = _size(x - before)
        yield x, g


def coordinate_newton(H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray) -> Steps:
    """Coordinate minimisation with Newton steps on the coordinates off the bounds."""
    return coordinate_minimization(H, c, ball, x, newton=True)


def _along_faces(
    H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray, g: FloatArray, curved: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """To the minimum of the face of x, again while coordinates are lost to their bounds."""
    free, last = (np.abs(x) < ball.radius) & curved, None
    while last is None or not np.array_equal(free, last):
        with suppress(np.linalg.LinAlgError):
            x, g = _into_the_box(H, c, ball, x, g, H.newton_step(g, free))
        last, free = free, free & (np.abs(x) < (1.0 - 1e-12) * ball.radius)
    return x, g


def secular(H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray) -> Steps:
    """Euclidean ball: ``x = (H + τI)⁻¹c`` with ``τ ≥ 0`` and ``‖x‖ = λ`` unless ``τ = 0``.

    In the eigenvectors of H this is a root of ``1/‖x(τ)‖ - 1/λ``, nearly linear in τ, so
    that Newton's method from the left needs a few steps (Moré and Sorensen 1983).
    """
    values, vectors = H.eigen
    projections, radius = vectors.T @ c, ball.radius
    # Where H has no curvature, c has no component but rounding.
    flat = values <= 1e-13 * max(float(values[-1]), np.finfo(float).tiny)
    tau, inverse = 0.0, np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, values))
    x = inverse * projections
    for _ in range(100):
        length = float(np.linalg.norm(x))
        if length <= radius * (1.0 + 1e-15):
            break
        slope = float(x @ (inverse * x)) / length**2  # -d log‖x‖ / dτ
        tau += (length / radius - 1.0) / slope
        inverse = np.where(flat, 0.0, 1.0 / (np.where(flat, 1.0, values) + tau))
        x = inverse * projections
    yield ball.project(vectors @ x), None


#: The solvers of (C) by name.
METHODS: dict[str, Callable[[Quadratic, FloatArray, NormBall, FloatArray], Steps]] = {
    "projected-gradient": projected_gradient,
    "active-set-cg": active_set_cg,
    "coordinate": coordinate_minimization,
    "restarted-gradient": restarted_gradient,
    "coordinate-newton": coordinate_newton,
    "secular": secular,
}

#: The solvers that need a certain norm, and those that need the matrix.
_FOR_NORM = {"active-set-cg": "l1", "coordinate": "l1", "coordinate-newton": "l1", "secular": "l2"}
_WITH_MATRIX = ("coordinate-newton", "secular")

#: A name, or a function ``(H, c, ball, x) → x`` of the user.
Inner: TypeAlias = str | Callable[[Quadratic, FloatArray, NormBall, FloatArray], FloatArray]


def printed_method(norm: TransportNorm) -> str:
    """What the paper uses: Algorithm 6 for its box, else Algorithm 5."""
    return "active-set-cg" if norm.name == "l1" else "projected-gradient"


def fastest_method(norm: TransportNorm, columns: int) -> str:
    """The method to take where nothing is to be reproduced."""
    few = columns <= DENSE_LIMIT
    if norm.name == "l1":
        return "coordinate-newton" if few else "coordinate"
    return "secular" if norm.name == "l2" and few else "restarted-gradient"


def check_method(method: Inner, stop: str | float, norm: TransportNorm, columns: int) -> None:
    """``ValueError`` if there is no such solver or rule for this norm and size."""
    known = [name for name in METHODS if _FOR_NORM.get(name, norm.name) == norm.name]
    if columns > DENSE_LIMIT:
        known = [name for name in known if name not in _WITH_MATRIX]
    if not callable(method) and method not in known:
        raise ValueError(
            f"the solver of (C) must be one of {', '.join(map(repr, known))} for this norm and "
            f"{columns} columns, or a function, got {method!r}"
        )
    if stop not in ("exact", "released"):
        check("the rule of (C) must be 'exact', 'released' or a gap, which", stop, least=0.0)


def solve_qp(
    method: Inner, stop: str | float, H: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray
) -> FloatArray:
    """Run a solver of (C) from ``x`` until its rule says stop.

    ``"exact"``: until rounding hides further progress.  ``"released"``: until a step is shorter
    than 1e-5.  A number: until the duality gap of (C) is at most this.
    """
    if ball.radius == 0.0:
        return np.zeros_like(x)
    if callable(method):
        found = np.asarray(method(H, c, ball, x), dtype=np.float64)
        if found.shape != x.shape or not np.isfinite(found).all():
            raise ValueError(
                f"the solver of (C) must return {x.size} finite numbers, got shape {found.shape}"
            )
        return found
    tol = stop if isinstance(stop, float | int) else 0.0
    for k, (new, gradient) in zip(range(MAX_STEPS), METHODS[method](H, c, ball, x), strict=False):
        short = stop == "released" and float(np.linalg.norm(new - x)) < RELEASED_STEP
        x = new
        if short:
            break
        if tol > 0.0 and gradient is None and k % 10 == 9:
            gradient = H @ x - c  # computed now and then where the iteration does not have it
        if tol > 0.0 and gradient is not None and ball.gap(gradient, x) <= tol:
            break
    return x


def box_qp(
    A: Matrix,
    b: Any,
    lam: float,
    method: Inner | None = None,
    stop: str | float = "exact",
    *,
    norm: str | TransportNorm = "l1",
    start: Any = 0.0,
) -> FloatArray:
    """Problem (C): minimise ``½‖Ax - b‖₂²`` subject to ``‖x‖_* ≤ λ``.

    Parameters
    ----------
    A, b, lam
        The matrix, dense or sparse, the target, and the radius.
    method : str or callable, optional
        ``"projected-gradient"`` (Algorithm 5), ``"active-set-cg"`` (Algorithm 6), ``"coordinate"``,
        ``"restarted-gradient"``, ``"coordinate-newton"``, ``"secular"``, or a function
        ``(H, c, ball, x) → x`` with ``H = AᵀA`` and ``c = Aᵀb``.  None for Algorithm 6 under ℓ1
        transport, else Algorithm 5.
    stop : {"exact", "released"} or float
        Until rounding hides progress; as in the released code, until a step is shorter than 1e-5;
        or until the duality gap ``⟨g, x⟩ + λ‖g‖`` is at most a number.
    norm : {"l1", "l2", "linf"} or TransportNorm
        The transport norm: ``"l1"`` is the box ``|x_j| ≤ λ`` of the paper.
    start : float or array
        x¹.
    """
    check("lam", lam, least=0.0)
    A, b = as_matrix("A", A), np.asarray(b, dtype=np.float64)
    ball = NormBall(get_norm(norm), float(lam))
    method = printed_method(ball.norm) if method is None else method
    check_method(method, stop, ball.norm, A.shape[1])
    first = np.full(A.shape[1], start) if np.ndim(start) == 0 else np.array(start, np.float64)
    return solve_qp(method, stop, Quadratic(A), A.T @ b, ball, first)
