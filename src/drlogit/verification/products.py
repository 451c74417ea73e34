"""Products ``X v`` and ``Xᵀ r`` of a few rows, with bounds on their errors.

In two ways.  *Plain*: one product with X and one with its sizes; the error of a sum of m products,
in whatever order BLAS forms it, is at most ``γ_m`` times the sum of their sizes.  *Sharp*: X and
the vector are cut into slices of so few bits that sums of products of slices need no rounding at
all, again in whatever order (Ozaki, Ogita, Oishi and Rump, Numer. Algorithms 59, 2012).  Numbers of
one size take three slices, and up to six leave an error around 2⁻¹²⁰ of the largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray, Matrix
from .rounding import SLICES, TINY, UNIT, UP, Enclosed, Pair, Total, cut, gamma, powers_above


@dataclass(frozen=True, eq=False)
class EnclosedRows:
    """Some rows of X in double precision, dense or CSR, of which ``shift`` has been subtracted.

    Subtraction must have been exact, as it is near the shift (Sterbenz).
    """

    X: Matrix

    @classmethod
    def of(cls, X: Matrix, shift: FloatArray) -> EnclosedRows:
        """Rows as they are stored, in double precision and shifted."""
        if sp.issparse(X):
            data = X.data.astype(np.float64) - shift[X.indices]
            return cls(sp.csr_array((data, X.indices, X.indptr), shape=X.shape))
        wide = np.asarray(X, dtype=np.float64)
        return cls(wide - shift if shift.any() else wide)

    @cached_property
    def sizes(self) -> Matrix:
        """``|X|``."""
        return abs(self.X)

    @cached_property
    def column_sizes(self) -> FloatArray:
        """Largest entry of each column, by size."""
        if not sp.issparse(self.X):
            return np.asarray(self.sizes.max(axis=0, initial=0.0))
        found = np.zeros(self.X.shape[1])
        np.maximum.at(found, self.X.indices, self.sizes.data)
        return found

    def margins(self, v: FloatArray, offset: Pair, *, sharp: bool) -> Enclosed:
        """``X v`` and a number, given as a sum of two."""
        if not sharp:
            size = np.asarray(self.sizes @ np.abs(v))
            value = self.X @ v + offset[0]
            error = gamma(v.size) * size + 2.0 * UNIT * (np.abs(value) + np.abs(offset[0]))
            return Enclosed(np.asarray(value), error * UP + TINY)
        scaled = v * powers_above(self.column_sizes)
        terms, rest = self._terms(self._slices, scaled)
        total = Total(self.X.shape[0])
        for term in (*terms, *offset):
            total.add(term)
        total.add(np.zeros(1), rest)
        return total.enclosed()

    def add_adjoint(self, total: Total, r: FloatArray, *, sharp: bool) -> None:
        """Add ``Xᵀ r`` to a total; unless ``sharp``, r may lack two roundings of its entries."""
        if not sharp:
            size = np.asarray(self.sizes.T @ np.abs(r))
            total.add(np.asarray(self.X.T @ r), gamma(r.size + 3) * size * UP + TINY)
            return
        powers = powers_above(self.column_sizes)
        terms, rest = self._terms([x.T for x in self._slices], r)
        for term in terms:
            total.add(term * powers)
        total.add(np.zeros(1), rest * powers)

    def _terms(self, slices: list[Matrix], v: FloatArray) -> tuple[list[FloatArray], float]:
        """Products of slices, each of them exact, and a bound on those left out."""
        unit = float(powers_above(np.max(np.abs(v), initial=0.0)))
        parts, _ = cut(v, unit, self._bits)
        pairs = [(k, j) for k in range(len(slices)) for j in range(len(parts)) if k + j < SLICES]
        terms = [np.asarray(slices[k] @ parts[j]) for k, j in pairs]
        # Slice k is below 2^(-k bits), half of that for k > 0, and so is what is left after k of
        # them: left out are products of altogether six slices, seven at most, and smaller ones.
        return terms, v.size * unit * 2.0 ** (4 - SLICES * self._bits)

    def only(self, which: IndexArray) -> EnclosedRows:
        """Some columns."""
        return self if which.size == self.X.shape[1] else EnclosedRows(self.X[:, which])

    def columns(self, which: IndexArray) -> FloatArray:
        """Some columns as a dense array."""
        part = self.X[:, which]
        return np.asarray(part.toarray() if sp.issparse(part) else part)

    @cached_property
    def _bits(self) -> int:
        """Bits of a slice: as many as sums over rows and over columns can do without rounding."""
        return (53 - math.ceil(math.log2(max(*self.X.shape, 2)))) // 2

    @cached_property
    def _slices(self) -> list[Matrix]:
        """X over a power of two for each column, so that its entries are at most one, in slices."""
        powers = powers_above(self.column_sizes)
        if not sp.issparse(self.X):
            return cut(self.X / powers, 1.0, self._bits)[0]
        X = self.X
        parts, _ = cut(X.data / powers[X.indices], 1.0, self._bits)
        return [sp.csr_array((part, X.indices, X.indptr), shape=X.shape) for part in parts]


def add_scattered(total: Total, places: NDArray[Any], values: FloatArray) -> None:
    """Add values at these places of a total, without rounding: in slices, as above."""
    if not places.size:
        return
    bits = 52 - math.ceil(math.log2(places.size + 1))
    unit = float(powers_above(np.max(np.abs(values))))
    for part in cut(values, unit, bits)[0]:
        total.add(np.bincount(places, part, minlength=total.size).astype(np.float64))
    total.add(np.zeros(1), places.size * unit * 2.0 ** (-SLICES * bits))
