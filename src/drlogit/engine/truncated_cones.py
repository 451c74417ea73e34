"""Norm constraints of the truncated interior point, behind products.

A cone sees the scaled coefficients x, (1 or K, penalised columns), and λ.  With K rows the
constraint is on the difference of every two of them.  In the Newton system it adds a matrix that is
known by products, and it supplies the preconditioner, which completes a diagonal of the samples.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..rows.arrays import FloatArray
from .preconditioners import Preconditioner
from .truncated_samples import KEPT, LENGTHS, book, pairs

#: Multipliers of pairs of rows, as combinations of differences of x and of z: (α, β, x, z).
Flow: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


class RoundCone:
    """ℓ2 transport: ``σ = λ - ‖d‖²/λ ≥ 0`` for the difference d of every two rows, multiplier m.

    All that is kept is of the number of pairs: every vector is a combination of the rows of x, so
    that norms and products of differences follow from products of rows.
    """

    def __init__(self, x: FloatArray, lam: float, budget: float) -> None:
        n_rows = len(x)
        one, other = pairs(n_rows)
        self.E = np.eye(n_rows)[one] - np.eye(n_rows)[other] if n_rows > 1 else np.ones((1, 1))
        self.degree = len(self.E)
        self.m = np.full(self.degree, 0.5 * budget / self.degree)

    def _products(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """Products of the differences of x with those of z, pair by pair."""
        return np.asarray(((self.E @ (x @ z.T)) * self.E).sum(axis=1))

    def _laplacian(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """``Eᵀ diag(weights) E x``."""
        return np.asarray(((self.E.T * weights) @ self.E) @ x)

    def place(self, x: FloatArray, lam: float) -> None:
        """Look at a point."""
        self.x, self.lam, self.squares = x, lam, self._products(x, x)
        self.slack = lam - self.squares / lam
        self.rate = 1.0 + self.squares / lam**2  # of the slack, in λ
        self.size = max(float(np.sqrt(self.squares.max())), 1e-300)
        self.complementarity = float(self.m @ self.slack)

    def force(self, mu: float) -> tuple[FloatArray, float]:
        """What multipliers μ/σ add to the gradient in x and to the budget of λ."""
        self.mu = mu
        aimed = mu / self.slack
        return self._laplacian(2.0 * aimed / self.lam, self.x), float(aimed @ self.rate)

    def product(self, z: FloatArray, dlam: float) -> tuple[FloatArray, float]:
        """The cone's part of the system times a step."""
        lam, m = self.lam, self.m
        along = self._products(self.x, z)
        pull = (m / self.slack) * (self.rate * dlam - 2.0 * along / lam)
        bend = 2.0 * m / lam
        image = self._laplacian(bend, z)
        image -= self._laplacian((2.0 / lam) * pull + (dlam / lam) * bend, self.x)
        return image, float(pull @ self.rate + bend @ (self.squares * dlam / lam - along) / lam)

    def diagonal(self) -> FloatArray:
        """The diagonal of the cone's part but for its slacks, (rows,) of x."""
        return np.asarray((self.E * self.E).T @ (2.0 * self.m / self.lam))[:, None]

    def prepare(self, base: Preconditioner, corner: float) -> None:
        """Complete the preconditioner by the part of σ's gradients, by Woodbury's identity."""
        lam, E, m = self.lam, self.E, self.m
        self.base = base
        self.corner = corner + float(2.0 * m @ self.squares) / lam**3 + 1e-6 * m.sum() / lam
        inner = np.outer(self.rate, self.rate) / self.corner
        for column, weighed in zip(E.T, base.span(self.x), strict=True):
            inner += (4.0 / lam**2) * np.outer(column, column) * (E @ weighed @ E.T)
        inner[np.diag_indices_from(inner)] += self.slack / m
        self.inner = np.linalg.pinv(inner, hermitian=True)

    def precondition(self, r: FloatArray, rlam: float) -> tuple[FloatArray, float]:
        z, zlam = self.base.solve(r), rlam / self.corner
        along = self._products(self.x, z[:, self.base.kept])
        y = self.inner @ (self.rate * zlam - (2.0 / self.lam) * along)
        z += self.base.combined((self.E.T * ((2.0 / self.lam) * y)) @ self.E)
        return z, zlam - float(y @ self.rate) / self.corner

    def norm(self, gradient: FloatArray) -> float:
        """At least the transport norm of a gradient, its flow spread over all pairs."""
        K = len(gradient)
        squares = np.maximum(self._products(gradient, gradient), 0.0)
        return float(np.sqrt(squares).sum()) / K

    def used(self, gradient: FloatArray, z: FloatArray, dlam: float) -> tuple[float, Flow | None]:
        """At least the transport norm of a gradient, by the multipliers after a step.

        They are a flow between the rows, and what it misses of the gradient is spread evenly.
        """
        if len(gradient) == 1:
            return float(np.linalg.norm(gradient)), None
        lam, x, K = self.lam, self.x, len(gradient)
        beta = 2.0 * self.m / lam
        change = (self.m / self.slack) * (self.rate * dlam - 2.0 * self._products(x, z) / lam)
        alpha = 2.0 * (self.mu / self.slack - change) / lam - beta * dlam / lam
        rest = gradient + self._laplacian(alpha, x) + self._laplacian(beta, z)
        parts = np.vstack([x, z, rest])
        combined = np.hstack([-alpha[:, None] * self.E, -beta[:, None] * self.E, self.E / K])
        squares = ((combined @ (parts @ parts.T)) * combined).sum(axis=1)
        return float(np.sqrt(np.maximum(squares, 0.0)).sum()), (alpha, beta, x, z)

    def flows(self, flow: Flow) -> FloatArray:
        """The flow itself, a row for each pair."""
        alpha, beta, x, z = flow
        return np.asarray(-alpha[:, None] * (self.E @ x) - beta[:, None] * (self.E @ z))

    def follow(self, z: FloatArray, dlam: float, booked: FloatArray) -> float:
        """Changes along a step; the longest step that keeps the slacks positive."""
        along, squares = self._products(self.x, z), self._products(z, z)
        change = self.rate * dlam - 2.0 * along / self.lam
        self.dm = (self.mu - self.m * change) / self.slack - self.m
        for length in LENGTHS[::-1]:
            lam = self.lam + length * dlam
            if lam > 0.05 * self.lam:
                after = self.squares + length * (2.0 * along + length * squares)
                if (lam - after / lam >= 0.05 * self.slack).all():
                    return float(length)
        return float(LENGTHS[0])

    def move(self, length: float) -> None:
        self.m = np.maximum(self.m + length * self.dm, KEPT * self.m)

    def inside(self, x: FloatArray, lam: float) -> None:
        """Nothing: no step passes this boundary."""


class BoxCone:
    """ℓ1 transport: slacks ``hλ ± x ≥ 0`` with multipliers, h = 1, or ½ for K rows.

    Differences of K rows are at most λ where rows can be shifted into such a box.
    """

    def __init__(self, x: FloatArray, lam: float, budget: float) -> None:
        self.half = 1.0 if len(x) == 1 else 0.5
        self.c = np.full((2, *x.shape), 0.5 * budget / (2.0 * self.half * x.size))
        self.degree = self.c.size

    def place(self, x: FloatArray, lam: float) -> None:
        """Look at a point."""
        self.lam = lam
        self.slack = self.half * lam + np.stack([-x, x])
        self.size = float(np.abs(x).max(initial=0.0)) / self.half
        if len(x) > 1:
            self.size = float(np.ptp(x, axis=0).max(initial=0.0))
        self.complementarity = float((self.c * self.slack).sum())

    def force(self, mu: float) -> tuple[FloatArray, float]:
        """What multipliers μ/slack add to the gradient in x and to the budget of λ."""
        self.mu, self.stiff = mu, self.c / self.slack
        aimed = mu / self.slack
        return aimed[0] - aimed[1], self.half * float(aimed.sum())

    def product(self, z: FloatArray, dlam: float) -> tuple[FloatArray, float]:
        """The cone's part of the system times a step."""
        above, below = self.stiff
        bend, lean = above + below, self.half * (below - above)
        corner = self.half**2 * float(bend.sum())
        return bend * z + dlam * lean, float((lean * z).sum()) + corner * dlam

    def diagonal(self) -> FloatArray:
        """The diagonal of the cone's part, in x."""
        return np.asarray(self.stiff.sum(axis=0))

    def prepare(self, base: Preconditioner, corner: float) -> None:
        """Complete the preconditioner by λ, by its Schur complement."""
        above, below = self.stiff
        self.base, self.lean = base, np.zeros(base.shape)
        self.lean[:, base.kept] = self.half * (below - above)
        self.solved = base.solve(self.lean)
        corner += self.half**2 * float((above + below).sum())
        left = corner - float((self.lean * self.solved).sum())
        self.corner = max(left, 1e-12 * corner)

    def precondition(self, r: FloatArray, rlam: float) -> tuple[FloatArray, float]:
        z = self.base.solve(r)
        zlam = (rlam - float((self.lean * z).sum())) / self.corner
        z -= zlam * self.solved
        return z, zlam

    def norm(self, gradient: FloatArray) -> float:
        """The transport norm of a gradient."""
        return self.half * float(np.abs(gradient).sum())

    def used(self, gradient: FloatArray, z: FloatArray, dlam: float) -> tuple[float, Flow | None]:
        """The same; it is known without a flow."""
        return self.norm(gradient), None

    def flows(self, flow: Flow) -> FloatArray:
        raise NotImplementedError("the norm of a gradient is known without a flow")

    def follow(self, z: FloatArray, dlam: float, booked: FloatArray) -> float:
        """Changes along a step."""
        change = self.half * dlam + np.stack([-z, z])
        self.dc = (self.mu - self.c * change) / self.slack - self.c
        book(booked, self.slack, change, self.c * self.slack)
        return 1.0 if dlam > -0.95 * self.lam else 0.95 * self.lam / -dlam

    def move(self, length: float) -> None:
        self.c = np.maximum(self.c + length * self.dc, KEPT * self.c)

    def inside(self, x: FloatArray, lam: float) -> FloatArray | None:
        """Coordinates after a step, if some passed: these keep a share of their slack."""
        edge, keep = self.half * lam, KEPT * min(1.0, lam / self.lam)
        moved = edge - np.maximum(edge - x, keep * self.slack[0])
        moved = np.maximum(edge + moved, keep * self.slack[1]) - edge
        return moved if np.abs(moved - x).max(initial=0.0) > 1e-14 * lam else None


TruncatedCone: TypeAlias = RoundCone | BoxCone
