"""Sums whose rounding is known.

A double has a relative error of at most u = 2⁻⁵³ after each operation, and a sum of n products, in
any order, is wrong by at most γ_n = nu/(1-nu) of the sum of their sizes (Higham 2002, §3).  Here
few products are added up that way, and their sums without error.  ``log``, ``log1p`` and ``exp``
are taken to be within 4 units in the last place, as NumPy promises of its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import FloatArray

UNIT = 2.0**-53

#: A few roundings more than there are; bounds are themselves computed with rounding.
UP = 1.0 + 2.0**-46
DOWN = 1.0 - 2.0**-46

#: Relative error of entropies and losses computed as here.
_LOGARITHMS = 32.0 * UNIT

#: More than all that underflow takes.
TINY = 1e-290

#: Rows of a panel, whose products are added up before anything else.
PANEL = 32


class Enclosed(NamedTuple):
    """Numbers, and how wrong each can be."""

    value: FloatArray
    error: FloatArray

    @property
    def size(self) -> FloatArray:
        """No less than the size of each."""
        return (np.abs(self.value) + self.error) * UP

    @property
    def upper(self) -> FloatArray:
        """No less than each, up to rounding."""
        return self.value + self.error

    def part(self, places: Any) -> Enclosed:
        """Some of them."""
        return Enclosed(self.value[places], self.error[places])

    def minus(self, factor: FloatArray | float, other: Enclosed) -> Enclosed:
        """Less a multiple of another."""
        value = self.value - factor * other.value
        error = self.error + np.abs(factor) * (other.error + 2.0 * UNIT * other.size)
        return Enclosed(value, (error + 2.0 * UNIT * np.abs(value)) * UP)


def gamma(n: int) -> float:
    """Error of a sum of n products in any order, relative to the sum of their sizes."""
    return n * UNIT / (1.0 - n * UNIT) * UP


def exact_sum(x: FloatArray) -> float:
    """The sum of all entries, rounded once; NaN, which proves nothing, if it overflows."""
    try:
        return math.fsum(x.ravel().tolist())
    except (OverflowError, ValueError):  # ValueError: infinite terms of both signs
        return math.nan


def entropy(s: FloatArray) -> FloatArray:
    """``-s log s - (1-s) log(1-s)``, zero at both ends, rounded downwards."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = -(s * np.log(s) + (1.0 - s) * np.log1p(-s)) * (1.0 - _LOGARITHMS)
    return np.where((s > 0.0) & (s < 1.0), inside, 0.0)


def log_loss(u: FloatArray) -> FloatArray:
    """``log(1 + e^{-u})``, rounded upwards."""
    loss = np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)
    return np.asarray(loss * (1.0 + _LOGARITHMS) * UP)


def norm_of(name: str, sizes: FloatArray) -> float:
    """A norm by name of sizes, rounded upwards."""
    largest = float(np.max(sizes, initial=0.0))
    if name == "linf" or not 0.0 < largest < math.inf:
        return largest * UP
    x = sizes / largest
    return largest * (exact_sum(x) if name == "l1" else math.sqrt(exact_sum(x * x))) * UP


class EnclosedSum:
    """``Σ r_i x_i`` of the rows of matrices, one after the other, and how wrong it can be.

    Products of a panel are added up in any order, the panels' sums without error: that of the whole
    is the error of a sum of ``PANEL`` products and a few more.
    """

    def __init__(self, n_columns: int) -> None:
        self.sums: list[FloatArray] = [np.zeros(n_columns)]
        self.size = np.zeros(n_columns)

    def add(self, r: FloatArray, size: FloatArray, matrix: Any) -> None:
        """Add the rows of a matrix, which may have fewer columns; r is of at most that size."""
        rows, n_columns = np.arange(r.size), matrix.shape[1]
        panels = sp.csr_array((r, (rows // PANEL, rows)), (-(-r.size // PANEL), r.size)) @ matrix
        found = np.zeros(self.size.size)
        found[:n_columns] = _column_sums(panels.toarray() if sp.issparse(panels) else panels)
        self.sums.append(found)
        self.size[:n_columns] += size @ abs(matrix)

    def value(self, roundings: int) -> Enclosed:
        """The sums, where each r carries this many rounding errors of its size."""
        # Sizes are sums in any order, with fewer than 10⁷ roundings.
        error = gamma(PANEL + 6 + roundings) * self.size * (1.0 + 1e-8) + TINY
        return Enclosed(_column_sums(np.array(self.sums)), error)


def _column_sums(x: FloatArray) -> FloatArray:
    """The sums of columns, each rounded once."""
    return np.array([exact_sum(column) for column in x.T])


def matrix_norm(matrix: FloatArray, vector: Enclosed) -> float:
    """At least ``√(vᵀMv)`` for every v that is enclosed."""
    size, sizes = np.abs(vector.value), np.abs(matrix)
    square = float(vector.value @ matrix @ vector.value)
    square += gamma(2 * size.size + 8) * float(size @ sizes @ size)
    error = float(vector.error @ sizes @ vector.error)
    return (math.sqrt(max(square, 0.0)) + math.sqrt(error) * UP) * UP


def dual_matrix_norm(matrix: FloatArray, vector: FloatArray) -> float:
    """At least ``√(vᵀM⁻¹v)``; infinite if rounding hides how far M is from singular.

    With ``v = Mx + r`` it is at most ``√(xᵀMx) + ‖r‖ / √μ``, where μ is no more than the least
    eigenvalue of M.  As ``M - δI`` has a Cholesky factor in doubles, μ is δ less the rounding
    of that factor (Rump 2006).
    """
    n = vector.size
    half = 0.5 * float(np.linalg.eigvalsh(matrix)[0])
    try:
        np.linalg.cholesky(matrix - half * np.eye(n))
    except np.linalg.LinAlgError:
        return math.inf
    least = half * DOWN - 2.0 * gamma(n + 4) * float(np.trace(matrix)) * UP
    if not least > 0.0:
        return math.inf
    x = np.asarray(np.linalg.solve(matrix, vector), np.float64)
    rest = np.abs(vector - matrix @ x) + gamma(n + 4) * (
        np.abs(matrix) @ np.abs(x) + np.abs(vector)
    )
    length = norm_of("l2", rest) / math.sqrt(least) * UP
    return (matrix_norm(matrix, Enclosed(x, np.zeros(n))) + length) * UP
