"""The inner problem (C): a quadratic over the ball of the dual norm.

    minimise  ½ θᵀHθ - cᵀθ   subject to  ‖θ‖_* ≤ r

This is the β-step of every ADMM variant here.  H is fixed (ZᵀWZ in the coordinates of ``admm``)
and only c changes, so everything that depends on H alone is computed once.  All solvers start from
the last θ and stop on the duality gap ``⟨g, θ⟩ + r‖g‖``, ``g = Hθ - c``; with ``tol=0`` they stop
when rounding hides further progress.

The paper's three solvers (its Appendix B; the first and the third for the box only):

    ``coordinate_minimization``  the remark after Algorithm 6 (Hsieh et al. 2008)
    ``projected_gradient``       Algorithm 5, any norm: for well-conditioned H
    ``active_set_cg``            Algorithm 6 (Cheng et al. 2014): for ill-conditioned H

``scaled_gradient`` is Algorithm 5 with each coordinate in a unit of its own.  It serves the ball of
the ℓ1 norm (unscaled columns of the tests, LP-ADMM to 1e-7: under 1 s instead of 75 s).

Two more for the box that the paper does not have: ``coordinate_newton`` takes Newton steps on the
face between sweeps, and needs the matrix H; ``coordinate_anderson`` extrapolates after every ten
sweeps.  One for the Euclidean ball: ``secular_equation`` takes the eigenvectors of H once, and then
the root of a function of one variable, whatever the condition of H.  Algorithms 5 and 6 need
products ``Hθ`` only, and sweeps the columns of the data, so these work for any number of columns.

``auto`` takes ``coordinate_newton`` for the box where the matrix is at hand.  Sweeps are compiled,
do not depend on the units of the columns, and find the face that θ is on.  They are slow to reach
the minimum of a face where columns are collinear; a Newton step goes there at once, and its factor
is mostly at hand because faces seldom change between β-steps (a4a and w2a by LP-ADMM to 1e-5: 0.2
and 0.6 s; sweeps alone 0.8 and 4.6 s; Algorithm 6, 2.5 and 10 s).  Without the matrix it takes
``coordinate_anderson``: on farm-ads (54,877 columns) 100 sweeps leave a gap of 6e-3 of a typical
β-step, with extrapolation 5e-4.  200 conjugate gradients leave 0.2: nearly all coordinates are off
their bounds, and the gap is the sum of all errors of the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csc_array, issparse
from scipy.sparse.linalg import LinearOperator, eigsh

from ..problem.norms import Norm, get_norm
from ..rows.arrays import BoolArray, FloatArray
from ._coordinates import sweep, sweep_columns

#: Rounding of the gap of (C), relative to ``r‖c‖``.  H and c are sums over N samples, so that they
#: agree on the null space of H to some ten thousand units in the last place.
_ROUNDING = 1e-11

#: Added to the diagonal of a face, relative to its largest entry: far above the rounding of H, so
#: that dependent columns do not drift, and so small that a Newton step or two go all the way (made
#: data, a4a, a8a, w2a, mushrooms: 1e-10 takes a tenth fewer sweeps, 1e-7 a third more).
_RIDGE = 1e-8

#: Steps after which an inner solver returns what it has; the next β-step continues from there.
#: Without the matrix H a step is a pass over the data.
_MAX_STEPS, _MAX_PASSES = 10_000, 1000


#: Up to so many columns H is formed: it has 200 MB then, and its factors as much again.
DENSE_LIMIT = 5000


class Columns(NamedTuple):
    """``H = AᵀA - left rightᵀ`` by the columns of A, for coordinate minimisation."""

    A: csc_array
    left: FloatArray
    right: FloatArray
    diagonal: FloatArray

    @classmethod
    def of(cls, A: Any, left: FloatArray, right: FloatArray) -> Columns:
        A = csc_array(A)
        A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
        squares = np.asarray(A.multiply(A).sum(axis=0)).ravel()
        return cls(A, left, right, squares - np.einsum("jf,jf->j", left, right))


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``½ θᵀHθ``: the matrix, or only products with it, and what is computed of H once."""

    matrix: FloatArray | None = None
    apply: Any = None  # the function θ ↦ Hθ, where there is no matrix
    size: int = 0  # rows of H, where there is no matrix
    make_columns: Callable[[], Columns] | None = None  # a copy of the data, made when needed
    factors: dict[bytes, Any] = field(default_factory=dict)  # of the last face

    def product(self, theta: FloatArray) -> FloatArray:
        """``Hθ``."""
        return np.asarray(self.apply(theta) if self.matrix is None else self.matrix @ theta)

    def gradient(self, theta: FloatArray, c: FloatArray) -> FloatArray:
        """``Hθ - c``."""
        return self.product(theta) - c

    def max_steps(self, tol: float) -> int:
        """Limit on the steps of a solver; exact ones (``tol`` 0) are not cut short."""
        return _MAX_STEPS if self.matrix is not None or tol == 0.0 else _MAX_PASSES

    @cached_property
    def columns(self) -> Columns:
        """H by columns of the data."""
        assert self.make_columns is not None, "without a matrix there are columns"
        return self.make_columns()

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of H."""
        return self.columns.diagonal if self.matrix is None else np.diagonal(self.matrix)

    def sweep(
        self, theta: FloatArray, gradient: FloatArray, c: FloatArray, radius: float, tol: float,
        count: int,
    ) -> int:  # fmt: skip
        """Sweeps over the coordinates of ``theta``, in place, at most ``count``; their number."""
        if self.matrix is not None:
            matrix = np.ascontiguousarray(self.matrix)
            return int(sweep(matrix, gradient, theta, radius, tol, count))
        A, left, right, diagonal = self.columns
        return int(sweep_columns(
            A.data, A.indices, A.indptr, left, right, diagonal, c, radius, tol, count,
            theta, A @ theta, right.T @ theta,
        ))  # fmt: skip

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

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues, negative rounding removed, and eigenvectors of H."""
        values, vectors = eigh(self.matrix)
        return np.maximum(values, 0.0), vectors

    @cached_property
    def largest_eigenvalue(self) -> float:
        """``λ_max(H)``, positive and rounded up."""
        if self.matrix is not None:
            top = 1.0001 * float(self.eigen[0].max(initial=0.0))
        else:
            # Lanczos approaches λ_max from below; its error is at most the residual, 1 %.
            operator = LinearOperator((self.size, self.size), matvec=self.product, dtype=np.float64)
            first = np.random.default_rng(0).standard_normal(self.size)
            top = 1.02 * float(eigsh(operator, 1, v0=first, tol=1e-2)[0][0])
        return max(top, np.finfo(float).tiny)

    @cached_property
    def scaled(self) -> tuple[float, FloatArray]:
        """``λ_max(MH)``, and M: the inverse of the diagonal of H."""
        metric = 1.0 / np.where(self.diagonal > 0.0, self.diagonal, 1.0)
        scaled = np.asarray(self.matrix) * np.sqrt(np.outer(metric, metric))
        return Quadratic(scaled).largest_eigenvalue, metric


class NormBall(NamedTuple):
    """The set ``‖θ‖_* ≤ radius``."""

    norm: Norm
    radius: float

    def project(self, theta: FloatArray, metric: FloatArray | None = None) -> FloatArray:
        return self.norm.project_dual(theta, self.radius, metric)

    def gap(self, gradient: FloatArray, theta: FloatArray) -> float:
        """Gap of (C): ``⟨g, θ⟩ + r‖g‖`` for ``g = Hθ - c``."""
        return float(gradient @ theta) + self.radius * self.norm.value(gradient)

    def rounding(self, c: FloatArray) -> float:
        """The gap below which rounding decides: nothing is gained by asking for less."""
        return _ROUNDING * self.radius * self.norm.value(c)


#: ``(H, c, ball, start, tol) -> θ``: a solver of (C), ours or the user's.
InnerSolver: TypeAlias = Callable[[Quadratic, FloatArray, NormBall, FloatArray, float], FloatArray]

_EPS = float(np.finfo(float).eps)


def _size(x: FloatArray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def projected_gradient(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Accelerated projected gradient (Algorithm 5), for every norm."""
    return _projected_gradient(H, c, ball, start, tol, H.largest_eigenvalue, np.ones_like(c))


def scaled_gradient(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Algorithm 5 in the metric of the diagonal of H, which does not depend on column units."""
    return _projected_gradient(H, c, ball, start, tol, *H.scaled)


def _projected_gradient(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float, largest: float,
    metric: FloatArray,
) -> FloatArray:  # fmt: skip
    """Steps ``metric / largest`` times the gradient, projected in the norm of ``1/metric``."""
    theta = ball.project(start)
    point, momentum, root = theta, 0, np.sqrt(metric)
    for k in range(H.max_steps(tol)):
        gradient = H.gradient(point, c)
        previous, theta = theta, ball.project(point - metric * gradient / largest, metric)
        moved, hidden = _size((theta - point) / root), _size(root * c) / largest
        if moved <= 4.0 * _EPS * max(_size(theta / root), hidden):
            break
        if float(gradient @ (theta - previous)) > 0.0:
            momentum = 0
        point = theta + (momentum / (momentum + 3)) * (theta - previous)
        momentum += 1
        # The gap needs the gradient at θ itself: compute it only now and then.
        if tol > 0.0 and k % 10 == 0 and ball.gap(H.gradient(theta, c), theta) <= tol:
            break
    return theta


def coordinate_minimization(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float, newton: bool = False
) -> FloatArray:
    """Cyclic exact minimisation over one coordinate at a time, for the box (Hsieh et al. 2008).

    With ``newton`` (:func:`coordinate_newton`) there are Newton steps on the coordinates off the
    bounds between sweeps.  Such a step counts as a hundred sweeps.
    """
    theta = ball.project(start)
    gradient = H.gradient(theta, c)
    curved = H.diagonal > 0.0
    # Coordinates that change by less than this change by rounding.
    hidden = 4.0 * _EPS * _size(c[curved] / H.diagonal[curved])
    limit, k, change = H.max_steps(tol), 0, math.inf
    while k < limit and change > hidden and ball.gap(gradient, theta) > tol:
        before = theta.copy()
        k += H.sweep(theta, gradient, c, ball.radius, tol, 10)
        gradient = H.gradient(theta, c)  # formed afresh, which removes its drift
        free = (np.abs(theta) < ball.radius) & curved
        blocked = newton and ball.gap(gradient, theta) > tol
        while blocked and k < limit:
            # Go to the minimum of the face, which loses the coordinates that meet their bounds.
            k += 100
            with suppress(np.linalg.LinAlgError):
                step = H.newton_step(gradient, free)
                theta, gradient = _moved(H, c, ball, theta, gradient, step)
            last, free = free, free & (np.abs(theta) < (1.0 - 1e-12) * ball.radius)
            blocked = not np.array_equal(free, last)
        change = _size(theta - before)
    return theta


def coordinate_newton(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Coordinate minimisation with Newton steps on the coordinates off the bounds."""
    return coordinate_minimization(H, c, ball, start, tol, newton=True)


def coordinate_anderson(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float
) -> FloatArray:
    """Coordinate minimisation with an extrapolation after every ten sweeps (Anderson's method).

    The extrapolated point is the affine combination of the last five points whose moves nearly
    cancel (Bertrand and Massias 2021).  It counts only where it lowers the objective.
    """
    theta = ball.project(start)
    gradient = H.gradient(theta, c)
    limit, k = H.max_steps(tol), 0
    while k < limit and ball.gap(gradient, theta) > tol:
        points = [theta.copy()]
        for _ in range(5):
            k += H.sweep(theta, gradient, c, ball.radius, tol, 2)
            points.append(theta.copy())
        gradient = H.gradient(theta, c)
        moves = np.diff(points, axis=0)
        largest = _size(moves)
        if largest <= _EPS * _size(theta):
            break
        moves /= largest
        products = moves @ moves.T
        products[np.diag_indices(5)] += 1e-10 * np.trace(products)
        shares = np.linalg.solve(products, np.ones(5))
        extrapolated = ball.project((shares / shares.sum()) @ points[1:])
        slope = H.gradient(extrapolated, c)
        if float(extrapolated @ (slope - c)) < float(theta @ (gradient - c)):
            theta, gradient = extrapolated, slope
    return theta


def active_set_cg(
    H: Quadratic, c: FloatArray, ball: NormBall, start: FloatArray, tol: float,
    least_step: float = 0.0,
) -> FloatArray:  # fmt: skip
    """Conjugate gradients on the coordinates off the bounds (Algorithm 6), for the box.

    It also stops after a step of Euclidean length below ``least_step``.
    """
    radius = ball.radius
    theta = ball.project(start)
    gradient = H.gradient(theta, c)
    direction = np.zeros_like(theta)
    hidden = 64.0 * _EPS**2 * float(c @ c)  # what rounding leaves of ‖r‖²
    free, length, restart = np.zeros(theta.size, dtype=bool), 0.0, True
    for _ in range(H.max_steps(tol)):
        # A coordinate stays on its bound while the gradient presses it there.
        free, before = ~((np.abs(theta) >= radius) & (gradient * theta <= 0.0)), free
        residual = np.where(free, -gradient, 0.0)
        length, previous = float(residual @ residual), length
        if length <= hidden or (tol > 0.0 and ball.gap(gradient, theta) <= tol):
            break
        restart = restart or not np.array_equal(free, before)
        direction = residual if restart else residual + (length / previous) * direction
        product = H.product(direction)
        curvature = float(direction @ product)
        # Along a null direction of H the minimum is on the boundary.
        farthest = 2.0 * radius / _size(direction)
        alpha = min(length / curvature, farthest) if curvature > 0.0 else farthest
        target = theta + alpha * direction
        restart = not np.array_equal(ball.project(target), target)
        last = theta
        if restart:
            theta, gradient = _moved(H, c, ball, theta, gradient, alpha * direction)
        else:
            theta, gradient = target, gradient + alpha * product
        if least_step > 0.0 and float(np.linalg.norm(theta - last)) < least_step:
            break
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


#: The inner solvers by transport norm.  ``auto`` means the first, or the first of
#: :data:`MATRIX_FREE` where there is no matrix.
INNER_SOLVERS: dict[str, dict[str, InnerSolver]] = {
    "l1": {
        "coordinate-newton": coordinate_newton,
        "coordinate": coordinate_minimization,
        "coordinate-anderson": coordinate_anderson,
        "active-set-cg": active_set_cg,
        "projected-gradient": projected_gradient,
    },
    "l2": {"secular": secular_equation, "projected-gradient": projected_gradient},
    "linf": {"scaled-gradient": scaled_gradient, "projected-gradient": projected_gradient},
}

#: The inner solvers that do not need the matrix H, the best first.
MATRIX_FREE = ("coordinate-anderson", "coordinate", "active-set-cg", "projected-gradient")


def get_inner_solver(inner: str | InnerSolver, norm: Norm, *, matrix_free: bool) -> InnerSolver:
    """The inner solver of that name, the best one for ``"auto"``, or the callable itself."""
    if callable(inner):
        return inner
    solvers = INNER_SOLVERS[norm.name]
    known = [name for name in (MATRIX_FREE if matrix_free else solvers) if name in solvers]
    if inner != "auto" and inner not in known:
        names = ", ".join(map(repr, ("auto", *known)))
        where = " and this many columns" if matrix_free and inner in solvers else ""
        raise ValueError(
            f"inner must be one of {names} for norm {norm.name!r}{where}, or a function, got "
            f"{inner!r}"
        )
    return solvers[known[0] if inner == "auto" else inner]


def ball_least_squares(
    A: Any,
    b: FloatArray,
    lam: float,
    *,
    norm: str = "l1",
    inner: str | InnerSolver = "active-set-cg",
    start: FloatArray | None = None,
    tol: float = 0.0,
) -> FloatArray:
    """Problem (C): minimise ``½‖Ax - b‖₂²`` subject to ``‖x‖_* ≤ λ``.

    ``norm`` is the transport norm: ``"l1"`` is the box ``|x_j| ≤ λ`` of the paper.  ``inner`` is a
    name in :data:`INNER_SOLVERS` or a function ``inner(H, c, ball, start, tol)``; ``start`` is x¹,
    None for zero; ``tol`` is the duality gap at which to stop, 0 for rounding.  ``AᵀA`` is formed
    up to 5,000 columns.
    """
    columns, transport = int(A.shape[1]), get_norm(norm)
    matrix_free = columns > DENSE_LIMIT
    if matrix_free:
        none = np.zeros((columns, 0))
        H = Quadratic(None, lambda x: A.T @ (A @ x), columns, lambda: Columns.of(A, none, none))
    else:
        product = A.T @ A
        H = Quadratic(product.toarray() if issparse(product) else np.asarray(product))
    solver = get_inner_solver(inner, transport, matrix_free=matrix_free)
    first = np.zeros(columns) if start is None else np.asarray(start, dtype=np.float64)
    return solver(H, np.asarray(A.T @ b), NormBall(transport, lam), first, tol)
