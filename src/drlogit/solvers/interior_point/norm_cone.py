"""The constraint ``‖θ‖_* ≤ λ`` inside the interior point: one class per norm.

A cone holds the slacks of the constraint and their multipliers, and answers what a
primal-dual step asks: what the multipliers add to the optimality conditions
(``gradient``), what the constraint adds to the reduced matrix (``curvature``) and, for a
given aim, to its right-hand side (``drive``); where a direction of (θ, λ) leads
(``direction``), how far one may go (``longest``), and where the products end (``after``).

An *aim* says how the products of slacks and multipliers are to change: to zero (``affine``),
to ``weight · centre`` (``centred``), the same with the second-order term of an earlier
step (``corrected``), or with outliers pulled back after a trial step (``recentred``).  The
``weight`` makes the whole cone count as much as the samples do together, whatever their
numbers, so that iterations do not grow with N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from ...rows.arrays import FloatArray

#: Products are pulled back into [_LOW, _HIGH] times their target by ``recentred``.
_LOW, _HIGH = 0.1, 10.0

Aim: TypeAlias = FloatArray

Cone = TypeVar("Cone", bound="LinearCone")


@dataclass(frozen=True, eq=False)
class Curvature:
    """``[diag(diagonal), coupling; couplingᵀ, corner] + weight·(column, 1)(column, 1)ᵀ`` on (θ, λ).

    Kept factored, so that the n×n reduced system can add it and the N×N one invert it.
    """

    diagonal: FloatArray
    coupling: FloatArray
    corner: float
    column: FloatArray
    weight: float


@dataclass(frozen=True, eq=False)
class ConeStep:
    """Directions of slacks and multipliers."""

    slack: FloatArray
    multiplier: FloatArray


class NormCone(Protocol):
    """What the interior point asks of a cone."""

    @property
    def degree(self) -> float: ...
    def gradient(self) -> tuple[FloatArray, float]: ...
    def curvature(self) -> Curvature: ...
    def affine(self) -> Aim: ...
    def centred(self, centre: float) -> Aim: ...
    def corrected(self, centre: float, step: ConeStep, share: float) -> Aim: ...
    def recentred(
        self, aim: Aim, step: ConeStep, alphas: tuple[float, float], centre: float
    ) -> Aim: ...
    def drive(self, aim: Aim) -> tuple[FloatArray, float]: ...
    def direction(self, dtheta: FloatArray, dlam: float, aim: Aim) -> ConeStep: ...
    def longest(self, step: ConeStep) -> tuple[float, float]: ...
    def complementarity(self) -> float: ...
    def after(self, step: ConeStep, alphas: tuple[float, float]) -> float: ...
    def moved(self, step: ConeStep, alphas: tuple[float, float]) -> Any: ...
    def barrier(self, step: ConeStep, alpha: float) -> float: ...
    def barrier_slope(self, step: ConeStep) -> float: ...


def longest_step(x: FloatArray, dx: FloatArray) -> float:
    """Largest α with ``x + α dx ≥ 0``, infinite if nothing shrinks."""
    return longest_in_proportion(dx / x)


def longest_in_proportion(*changes: FloatArray) -> float:
    """Largest α with ``1 + α c ≥ 0`` for all changes c, infinite if nothing shrinks."""
    steepest = min([change.min(initial=0.0) for change in changes])
    return -1.0 / float(steepest) if steepest < 0.0 else math.inf


def outlier_correction(products: FloatArray, target: float | FloatArray) -> FloatArray:
    """Gondzio's correction: what brings products into [0.1, 10] times their target."""
    inside = np.clip(products, _LOW * target, _HIGH * target)
    return np.maximum(inside - products, -_HIGH * target)


@dataclass(frozen=True, eq=False)
class LinearCone:
    """Slacks that are linear in the variables; products are taken entry by entry."""

    slack: FloatArray
    multiplier: FloatArray
    weight: float

    @property
    def degree(self) -> float:
        return self.weight * self.slack.size

    def affine(self) -> Aim:
        return -self.slack * self.multiplier

    def centred(self, centre: float) -> Aim:
        return centre * self.weight - self.slack * self.multiplier

    def corrected(self, centre: float, step: ConeStep, share: float) -> Aim:
        return self.centred(centre) - share * step.slack * step.multiplier

    def recentred(
        self, aim: Aim, step: ConeStep, alphas: tuple[float, float], centre: float
    ) -> Aim:
        primal, dual = alphas
        products = (self.slack + primal * step.slack) * (self.multiplier + dual * step.multiplier)
        return aim + outlier_correction(products, centre * self.weight)

    def longest(self, step: ConeStep) -> tuple[float, float]:
        return longest_step(self.slack, step.slack), longest_step(self.multiplier, step.multiplier)

    def complementarity(self) -> float:
        return float(np.vdot(self.slack, self.multiplier))

    def after(self, step: ConeStep, alphas: tuple[float, float]) -> float:
        primal, dual = alphas
        return float(
            np.vdot(self.slack + primal * step.slack, self.multiplier + dual * step.multiplier)
        )

    def moved(self: Cone, step: ConeStep, alphas: tuple[float, float]) -> Cone:
        primal, dual = alphas
        return replace(
            self,
            slack=self.slack + primal * step.slack,
            multiplier=self.multiplier + dual * step.multiplier,
        )

    def barrier(self, step: ConeStep, alpha: float) -> float:
        return -self.weight * float(np.log(self.slack + alpha * step.slack).sum())

    def barrier_slope(self, step: ConeStep) -> float:
        return -self.weight * float((step.slack / self.slack).sum())


@dataclass(frozen=True, eq=False)
class BoxCone(LinearCone):
    """``|θ_j| ≤ λ`` (ℓ1 transport): slacks λ-θ_j and λ+θ_j in two rows."""

    @classmethod
    def at(cls, theta: FloatArray, lam: float, mu: float) -> BoxCone:
        slack = np.stack([lam - theta, lam + theta])
        weight = 1.0 / slack.size
        return cls(slack, weight * mu / slack, weight)

    def gradient(self) -> tuple[FloatArray, float]:
        return self._onto(self.multiplier)

    def curvature(self) -> Curvature:
        upper, lower = self.multiplier / self.slack
        total = upper + lower
        return Curvature(total, lower - upper, float(total.sum()), np.zeros_like(total), 0.0)

    def drive(self, aim: Aim) -> tuple[FloatArray, float]:
        return self._onto(aim / self.slack)

    def direction(self, dtheta: FloatArray, dlam: float, aim: Aim) -> ConeStep:
        slack = np.stack([dlam - dtheta, dlam + dtheta])
        return ConeStep(slack, (aim - self.multiplier * slack) / self.slack)

    @staticmethod
    def _onto(pair: FloatArray) -> tuple[FloatArray, float]:
        return pair[0] - pair[1], -float(pair.sum())


@dataclass(frozen=True, eq=False)
class HalfLine(LinearCone):
    """``λ ≥ 0``, where no coefficient is bounded."""

    @classmethod
    def at(cls, theta: FloatArray, lam: float, mu: float) -> HalfLine:
        slack = np.array([lam])
        return cls(slack, mu / slack, 1.0)

    def gradient(self) -> tuple[FloatArray, float]:
        return np.empty(0), -float(self.multiplier[0])

    def curvature(self) -> Curvature:
        corner = float(self.multiplier[0] / self.slack[0])
        return Curvature(np.empty(0), np.empty(0), corner, np.empty(0), 0.0)

    def drive(self, aim: Aim) -> tuple[FloatArray, float]:
        return np.empty(0), -float(aim[0] / self.slack[0])

    def direction(self, dtheta: FloatArray, dlam: float, aim: Aim) -> ConeStep:
        slack = np.array([dlam])
        return ConeStep(slack, (aim - self.multiplier * slack) / self.slack)


@dataclass(frozen=True, eq=False)
class NoCone(LinearCone):
    """Neither constraint nor λ (ε = 0)."""

    @classmethod
    def at(cls, theta: FloatArray, lam: float, mu: float) -> NoCone:
        return cls(np.empty(0), np.empty(0), 1.0)

    def gradient(self) -> tuple[FloatArray, float]:
        return self.slack, 0.0

    def curvature(self) -> Curvature:
        # One, so that λ stays where it is.
        return Curvature(self.slack, self.slack, 1.0, self.slack, 0.0)

    def drive(self, aim: Aim) -> tuple[FloatArray, float]:
        return aim, 0.0

    def direction(self, dtheta: FloatArray, dlam: float, aim: Aim) -> ConeStep:
        return ConeStep(aim, aim)


@dataclass(frozen=True, eq=False)
class CrossPolytopeCone(LinearCone):
    """``Σ|θ_j| ≤ λ`` (ℓ∞ transport): ``|θ_j| ≤ v_j``, ``Σ v_j ≤ λ``.

    Slacks v-θ, v+θ and λ-Σv, stacked; the bounds v are eliminated coordinate by coordinate,
    which leaves a diagonal plus one rank-one term.
    """

    @classmethod
    def at(cls, theta: FloatArray, lam: float, mu: float) -> CrossPolytopeCone:
        m = theta.size
        # Spread what λ leaves evenly over the 2m + 1 slacks' worth of room.
        room = (lam - float(np.abs(theta).sum())) / (m + 1.0)
        bounds = np.abs(theta) + room
        slack = np.concatenate([bounds - theta, bounds + theta, [room]])
        weight = 1.0 / slack.size
        # v is stationary when each pair of multipliers sums to the last one; scaling the
        # pairs keeps the products near their target and makes the equation exact.
        multiplier = weight * mu / slack
        last = multiplier[-1]
        pairs = multiplier[:m] + multiplier[m:-1]
        multiplier[:m] *= last / pairs
        multiplier[m:-1] *= last / pairs
        return cls(slack, multiplier, weight)

    def gradient(self) -> tuple[FloatArray, float]:
        upper, lower, last = self._parts(self.multiplier)
        return upper - lower, -last

    def curvature(self) -> Curvature:
        upper, lower, last = self._parts(self.multiplier / self.slack)
        total = upper + lower
        column = (lower - upper) / total
        weight = last / (1.0 + last * float((1.0 / total).sum()))
        return Curvature(4.0 * upper * (lower / total), np.zeros_like(total), 0.0, column, weight)

    def drive(self, aim: Aim) -> tuple[FloatArray, float]:
        upper, lower, last = self._parts(aim / self.slack)
        offset, drift = self._inner(aim)
        _, _, stiff = self._parts(self.multiplier / self.slack)
        total, column, shared = self._elimination
        # dv at dθ = dλ = 0 is offset/total - shared·drift/total.
        dv = (offset - shared * drift) / total
        return upper - lower + column * total * dv, -last - stiff * float(dv.sum())

    def direction(self, dtheta: FloatArray, dlam: float, aim: Aim) -> ConeStep:
        offset, drift = self._inner(aim)
        total, column, shared = self._elimination
        push = shared * (dlam + float(column @ dtheta) - drift)
        dv = (offset + push) / total - column * dtheta
        slack = np.concatenate([dv - dtheta, dv + dtheta, [dlam - float(dv.sum())]])
        return ConeStep(slack, (aim - self.multiplier * slack) / self.slack)

    @cached_property
    def _elimination(self) -> tuple[FloatArray, FloatArray, float]:
        """Diagonal of v's equations, ``E/T``, and the factor of the shared slack."""
        upper, lower, last = self._parts(self.multiplier / self.slack)
        total = upper + lower
        shared = last / (1.0 + last * float((1.0 / total).sum()))
        return total, (lower - upper) / total, shared

    def _inner(self, aim: Aim) -> tuple[FloatArray, float]:
        """Right-hand side of v's equations, and ``Σ rhs / T``."""
        upper, lower, last = self._parts(self.multiplier + aim / self.slack)
        total, _, _ = self._elimination
        offset = upper + lower - last
        return offset, float((offset / total).sum())

    def _parts(self, stacked: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        m = (stacked.size - 1) // 2
        return stacked[:m], stacked[m:-1], float(stacked[-1])


@dataclass(frozen=True, eq=False)
class SecondOrderCone:
    """``‖θ‖₂ ≤ λ`` (ℓ2 transport), in Nesterov-Todd scaling.

    ``slack`` is (λ, θ) and ``multiplier`` its dual point; with m = 0 this is ``λ ≥ 0``.
    The scaling ``W`` maps both to the same point ν; aims live in that scaled space.
    """

    slack: FloatArray
    multiplier: FloatArray

    @classmethod
    def at(cls, theta: FloatArray, lam: float, mu: float) -> SecondOrderCone:
        slack = np.concatenate([[lam], theta])
        return cls(slack, mu * _mirror(slack) / _determinant(slack))

    @property
    def degree(self) -> float:
        return 1.0

    def gradient(self) -> tuple[FloatArray, float]:
        return -self.multiplier[1:], -float(self.multiplier[0])

    def curvature(self) -> Curvature:
        w, eta = self._scaling
        m = w.size - 1
        # W⁻² = η⁻² (2 (Jw)(Jw)ᵀ - J), with (Jw)(Jw)ᵀ = w0² (column, 1)(column, 1)ᵀ.
        inverse = eta**-2
        return Curvature(
            np.full(m, inverse), np.zeros(m), -inverse, -w[1:] / w[0], 2.0 * inverse * w[0] ** 2
        )

    def affine(self) -> Aim:
        nu = self._point
        return -_product(nu, nu)

    def centred(self, centre: float) -> Aim:
        aim = self.affine()
        aim[0] += centre
        return aim

    def corrected(self, centre: float, step: ConeStep, share: float) -> Aim:
        w, eta = self._scaling
        primal = _scale_inverse(w, eta, step.slack)
        dual = _scale(w, eta, step.multiplier)
        return self.centred(centre) - share * _product(primal, dual)

    def recentred(
        self, aim: Aim, step: ConeStep, alphas: tuple[float, float], centre: float
    ) -> Aim:
        return aim  # one cone of degree one has no outliers

    def drive(self, aim: Aim) -> tuple[FloatArray, float]:
        w, eta = self._scaling
        pushed = _scale_inverse(w, eta, _divide(self._point, aim))
        return -pushed[1:], -float(pushed[0])

    def direction(self, dtheta: FloatArray, dlam: float, aim: Aim) -> ConeStep:
        w, eta = self._scaling
        slack = np.concatenate([[dlam], dtheta])
        pushed = _divide(self._point, aim) - _scale_inverse(w, eta, slack)
        return ConeStep(slack, _scale_inverse(w, eta, pushed))

    def longest(self, step: ConeStep) -> tuple[float, float]:
        # One length for both: a curved cone loses its centrality when they differ.
        alpha = min(
            _longest_in_cone(self.slack, step.slack),
            _longest_in_cone(self.multiplier, step.multiplier),
        )
        return alpha, alpha

    def complementarity(self) -> float:
        return float(self.slack @ self.multiplier)

    def after(self, step: ConeStep, alphas: tuple[float, float]) -> float:
        primal, dual = alphas
        return float(
            (self.slack + primal * step.slack) @ (self.multiplier + dual * step.multiplier)
        )

    def moved(self, step: ConeStep, alphas: tuple[float, float]) -> SecondOrderCone:
        primal, dual = alphas
        return SecondOrderCone(
            self.slack + primal * step.slack, self.multiplier + dual * step.multiplier
        )

    def barrier(self, step: ConeStep, alpha: float) -> float:
        return -0.5 * math.log(_determinant(self.slack + alpha * step.slack))

    def barrier_slope(self, step: ConeStep) -> float:
        return -float(_mirror(self.slack) @ step.slack) / _determinant(self.slack)

    @cached_property
    def _scaling(self) -> tuple[FloatArray, float]:
        """Unit scaling point w and factor η of the Nesterov-Todd scaling."""
        slack_size = math.sqrt(_determinant(self.slack))
        multiplier_size = math.sqrt(_determinant(self.multiplier))
        s, z = self.slack / slack_size, self.multiplier / multiplier_size
        gamma = math.sqrt(0.5 * (1.0 + float(s @ z)))
        w = (s + _mirror(z)) / (2.0 * gamma)
        w[0] = math.hypot(1.0, math.sqrt(float(w[1:] @ w[1:])))  # det w = 1 to rounding
        return w, math.sqrt(slack_size / multiplier_size)

    @cached_property
    def _point(self) -> FloatArray:
        w, eta = self._scaling
        return _scale(w, eta, self.multiplier)


def _mirror(x: FloatArray) -> FloatArray:
    """``J x``: the sign of all entries but the first changed."""
    return np.concatenate([x[:1], -x[1:]])


def _determinant(x: FloatArray) -> float:
    """``x0² - ‖x1‖²`` as a product, so that points near the boundary keep their digits."""
    length = math.sqrt(float(x[1:] @ x[1:]))
    return max((float(x[0]) - length) * (float(x[0]) + length), 1e-300)


def _product(x: FloatArray, y: FloatArray) -> FloatArray:
    """Jordan product."""
    return np.concatenate([[float(x @ y)], x[0] * y[1:] + y[0] * x[1:]])


def _divide(nu: FloatArray, x: FloatArray) -> FloatArray:
    """Solution y of ``ν ∘ y = x``."""
    first = float(_mirror(nu) @ x) / _determinant(nu)
    return np.concatenate([[first], (x[1:] - first * nu[1:]) / nu[0]])


def _scale(w: FloatArray, eta: float, x: FloatArray) -> FloatArray:
    """``W x``."""
    inner = float(w[1:] @ x[1:])
    rest = x[1:] + (x[0] + inner / (1.0 + w[0])) * w[1:]
    return eta * np.concatenate([[w[0] * x[0] + inner], rest])


def _scale_inverse(w: FloatArray, eta: float, x: FloatArray) -> FloatArray:
    """``W⁻¹ x``."""
    inner = float(w[1:] @ x[1:])
    rest = x[1:] + (-x[0] + inner / (1.0 + w[0])) * w[1:]
    return np.concatenate([[w[0] * x[0] - inner], rest]) / eta


def _longest_in_cone(x: FloatArray, dx: FloatArray) -> float:
    """Largest α with ``x + α dx`` in the second-order cone."""
    size = float(np.abs(dx).max())
    if not 0.0 < size < math.inf:
        return math.inf if size == 0.0 else 0.0
    dx = dx / size
    a = float(dx[0]) ** 2 - float(dx[1:] @ dx[1:])
    b = float(_mirror(x) @ dx)
    c = _determinant(x)
    bound = math.inf if dx[0] >= 0.0 else -float(x[0]) / float(dx[0])
    discriminant = b * b - a * c
    if discriminant < 0.0 or (a >= 0.0 and b >= 0.0):
        return bound / size
    root = math.sqrt(discriminant)
    # Smallest positive root of a α² + 2 b α + c, in the form that does not cancel.
    alpha = c / (-b + root) if -b + root > 0.0 else math.inf
    return min(bound, alpha) / size


def norm_cone(name: str, theta: FloatArray, lam: float, mu: float) -> NormCone:
    """The cone of the transport norm ``name`` at a point, centred at ``mu``."""
    if theta.size == 0:
        return HalfLine.at(theta, lam, mu)
    kinds: dict[str, Any] = {"l1": BoxCone, "l2": SecondOrderCone, "linf": CrossPolytopeCone}
    cone: NormCone = kinds[name].at(theta, lam, mu)
    return cone
