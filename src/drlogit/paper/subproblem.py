"""The problems of Figure 1 in plain arrays, and how good a point of them is.

    (A)  minimise    ελ + (1/N) Σ [h(z_i·x) + (z_i·x - κλ)_+]   over x, λ
         subject to  ‖x‖_* ≤ λ

    (B)  minimise    F(x, y) = f(y) + P(y) + g(x)   over x, y, at fixed λ
         subject to  Zx - y = 0

with ``h(u) = log(1 + e^{-u})``, rows ``z_i`` = label times sample, and, for ``b = κλ``,

    f(y) = (1/N) Σ [h(y_i) + ½(y_i - b)],    P(y) = (1/2N) Σ |y_i - b|,    g(x) = 0 if ‖x‖_* ≤ λ.

Paper → code: A and Z → ``Z``, β and x → ``x``, μ and y → ``y``, w, ρ, γ, η, λ, κ, ε as they are.
At κ = ∞, f is the mean of h and P is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from ..problem.norms import project_l1_ball, project_l2_ball, project_linf_ball
from ..rows.arrays import FloatArray, Matrix

#: Proposition 3.1 as printed: λ* ≤ 0.2785/ε.
LAMBDA_CONSTANT = 0.2785


class TransportNorm(NamedTuple):
    """A transport norm: everything the algorithms need to know of it."""

    value: Callable[[FloatArray], float]  # ‖·‖, what moving a sample costs
    dual: Callable[[FloatArray], float]  # ‖·‖_*, which is at most λ
    project: Callable[[FloatArray, float], FloatArray]  # nearest point with ‖·‖_* ≤ radius
    name: str = "mine"


def _sum(x: FloatArray) -> float:
    return float(np.abs(x).sum())


def _length(x: FloatArray) -> float:
    return float(np.linalg.norm(x))


def _largest(x: FloatArray) -> float:
    return float(np.abs(x).max(initial=0.0))


NORMS = {
    "l1": TransportNorm(_sum, _largest, project_linf_ball, "l1"),
    "l2": TransportNorm(_length, _length, project_l2_ball, "l2"),
    "linf": TransportNorm(_largest, _sum, project_l1_ball, "linf"),
}


def get_norm(norm: str | TransportNorm) -> TransportNorm:
    """The norm of that name, or the norm itself."""
    if isinstance(norm, str):
        if norm not in NORMS:
            known = ", ".join(map(repr, NORMS))
            raise ValueError(f"norm must be one of {known} or a paper.TransportNorm, got {norm!r}")
        return NORMS[norm]
    return norm


class PaperIterate(NamedTuple):
    """One iterate of a method for (B), in the letters of Algorithm 1.

    ``rho`` is the penalty with which it was made, or the step length of a method that has none;
    such a method has ``y = Zx`` and residual 0.  ``-w`` tends to ∇f(y) + ∂P(y).
    """

    k: int  # from 1
    x: FloatArray
    y: FloatArray
    w: FloatArray
    rho: float
    residual: float  # ‖Zx - y‖₂
    F: float  # f(y) + P(y)


@dataclass(frozen=True, eq=False)
class Subproblem:
    """The functions of (B)."""

    Z: Matrix
    lam: float
    kappa: float
    norm: TransportNorm

    @classmethod
    def of(cls, Z: Matrix, lam: float, kappa: float, norm: str | TransportNorm) -> Subproblem:
        """(B) with checked numbers."""
        check("lam", lam, least=0.0)
        if not kappa > 0.0:
            raise ValueError(f"kappa must be > 0, got {kappa!r}")
        return cls(as_matrix("Z", Z), float(lam), float(kappa), get_norm(norm))

    @property
    def N(self) -> int:
        """The number of samples."""
        return int(self.Z.shape[0])

    @property
    def b(self) -> float:
        """κλ, where the kink is."""
        return self.kappa * self.lam if math.isfinite(self.kappa) else math.inf

    def gradient_f(self, y: FloatArray) -> FloatArray:
        """∇f(y)."""
        return np.asarray((0.5 * math.isfinite(self.b) - expit(-y)) / self.N)

    def prox_P(self, y: FloatArray, rho: float) -> FloatArray:
        """The argmin over p of P(p) + (ρ/2)‖p - y‖²: a shrinkage around b."""
        if math.isinf(self.b):
            return y
        shift = y - self.b
        shrunk = np.maximum(np.abs(shift) - 0.5 / (self.N * rho), 0.0)
        return np.asarray(self.b + np.sign(shift) * shrunk)

    def F(self, y: FloatArray) -> float:
        """f(y) + P(y)."""
        hinge = np.maximum(y - self.b, 0.0) if math.isfinite(self.b) else 0.0
        return float(np.mean(np.logaddexp(0.0, -y) + hinge))


#: ``(x⁰, y⁰, w⁰)``, or one number for all entries: 0, or 1 as in the released code.
Start: TypeAlias = float | tuple[Any, Any, Any]


def starting_point(start: Start, Z: Matrix) -> list[FloatArray]:
    """``x⁰, y⁰, w⁰``, checked and copied."""
    sizes = (Z.shape[1], Z.shape[0], Z.shape[0])
    parts = start if isinstance(start, tuple) else (start, start, start)
    try:
        vectors = [np.full(n, part, np.float64) for n, part in zip(sizes, parts, strict=True)]
    except ValueError:
        vectors = []
    if not vectors or not all(np.isfinite(vector).all() for vector in vectors):
        raise ValueError(
            f"start must be a finite number or (x0, y0, w0) of lengths {sizes}, got "
            f"{[np.shape(part) for part in parts]} or an entry that is not finite"
        )
    return vectors


def averages(
    iterates: Iterable[PaperIterate], Z: Matrix, lam: float, kappa: float
) -> Iterator[PaperIterate]:
    """The averages ``x̄^K = Σ x^k / K``, ``ȳ^K`` and ``w̄^K`` of Theorem 4.2, after each iterate."""
    problem = Subproblem.of(Z, lam, kappa, "l1")
    means: list[FloatArray] = []
    for K, iterate in enumerate(iterates, start=1):
        vectors = (iterate.x, iterate.y, iterate.w)
        means = [m + (v - m) / K for m, v in zip(means or vectors, vectors, strict=True)]
        x, y, w = means
        yield PaperIterate(K, x, y, w, iterate.rho, _length(problem.Z @ x - y), problem.F(y))


def worst_case_loss(
    Z: Matrix, x: FloatArray, epsilon: float, kappa: float, norm: TransportNorm
) -> tuple[float, float]:
    """The objective of (A) at x and the best λ for it, and that λ.

    In λ the objective is convex and piecewise linear: its minimum over ``λ ≥ ‖x‖_*`` is at
    ``‖x‖_*`` or where the share of margins above κλ falls to ε/κ.
    """
    u, lam = Z @ x, norm.dual(x)
    if math.isfinite(kappa):
        above = np.sort(u)[::-1]
        allowed = math.floor(min(epsilon / kappa, 1.0) * u.size * (1.0 + 4e-16))
        if allowed < u.size:
            lam = max(lam, float(above[allowed]) / kappa)
    problem = Subproblem(Z, lam, kappa, norm)
    return epsilon * lam + problem.F(u), lam


# --- input -----------------------------------------------------------------------------------


def signed_rows(X: Any, y: Any) -> Matrix:
    """Z: the rows of X times their labels; the label that sorts last counts as 1."""
    X, labels = as_matrix("X", X), np.asarray(y)
    classes = np.unique(labels)
    if labels.shape != (X.shape[0],) or classes.size != 2:
        raise ValueError(
            f"y must be {X.shape[0]} labels of two classes, got shape {labels.shape} and "
            f"{classes.size} classes"
        )
    return signed(X, np.where(labels == classes[1], 1.0, -1.0))


def signed(X: Matrix, y: FloatArray) -> Matrix:
    """Rows of X times ``y``."""
    return (sp.diags_array(y) @ X).tocsr() if sp.issparse(X) else y[:, None] * X


def as_matrix(name: str, X: Any) -> Matrix:
    """A float array or CSR matrix without NaN; ``ValueError`` for anything else."""
    X = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise ValueError(f"{name} must have at least two rows and a column, got shape {X.shape}")
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError(f"{name} must be finite, got NaN or infinite entries")
    return X


def check(name: str, value: Any, *, least: float, strict: bool = False) -> None:
    """``ValueError`` unless the value is a finite number that is large enough."""
    number = isinstance(value, int | float | np.number) and math.isfinite(value)
    if not number or value < least or (strict and value == least):
        raise ValueError(
            f"{name} must be finite and {'>' if strict else '>='} {least:g}, got {value!r}"
        )
