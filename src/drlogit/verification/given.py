"""What the bounds of a fit are about: samples, ball and linear model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..problem.ball import Ball
from ..rows.arrays import BoolArray, FloatArray
from ..rows.pieces import pieces
from .domain import Domain
from .products import EnclosedRows
from .rounding import TINY, UNIT, UP, Enclosed, Pair, exact_sum, norm_of, powers_above

#: Rows at a time: sums over more of them would have larger errors, over fewer larger costs.
_ROWS = 4096

#: The least normal number.
_NORMAL = 2.0**-1022

#: Entries of a piece of the free columns, which are dense.
_ENTRIES = 1 << 22

#: A column further from zero than this many times its range is shifted, where an intercept makes up
#: for it; its differences from the shift are exact.
_FAR = 64.0


@dataclass(frozen=True, eq=False)
class Given:
    """Samples, ball, linear model, and what features can be if that is not any number."""

    X: Any  # checked, if it is in memory
    signs: FloatArray
    weights: FloatArray  # ω, at most one
    ball: Ball
    coef: FloatArray
    intercept: float
    domain: Domain | None = None

    @cached_property
    def total_weight(self) -> float:
        """Ω, rounded once."""
        return exact_sum(self.weights)

    @cached_property
    def costs(self) -> FloatArray:
        given = self.ball.feature_costs
        return np.ones(self.coef.size) if given is None else given

    @cached_property
    def free(self) -> BoolArray:
        """Features whose coefficients nothing bounds."""
        return np.isinf(self.costs) | (self.ball.epsilon == 0.0)

    @cached_property
    def kept(self) -> BoolArray:
        """Features that the norm is about."""
        kept = ~self.free
        if self.domain is not None:
            kept[self.domain.columns] = False
        return kept

    @property
    def offset(self) -> bool:
        """Whether the constant is among the free columns, or a sum of categories' columns."""
        return self.ball.fit_intercept or (self.domain is not None and self.domain.has_constant)

    @cached_property
    def step(self) -> int:
        """Rows at a time."""
        n_free = int(self.free.sum()) + 1
        return _ROWS if n_free == 1 else max(64, min(_ROWS, _ENTRIES // n_free))

    @cached_property
    def shift(self) -> FloatArray:
        """What is subtracted from features far from zero."""
        if not self.offset:
            return np.zeros(self.coef.size)
        low, high = self._ends
        with np.errstate(invalid="ignore"):  # infinite where not every entry is stored
            middle = 0.5 * low + 0.5 * high
            far = np.isfinite(middle) & (np.abs(middle) > _FAR * (high - low))
            # Whole numbers stay whole, and constants become zero.
            whole = (low == np.rint(low)) & (high == np.rint(high))
            centre = np.where(whole, np.rint(middle), middle)
        shift = np.where(far & (middle != 0.0), centre, 0.0)
        if self.domain is not None:
            shift[self.domain.grouped] = 0.0
        return shift

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest entry of each column, infinite where not every entry is stored."""
        low, high = np.full(self.coef.size, np.inf), np.full(self.coef.size, -np.inf)
        for piece in pieces(self.X, _ROWS, checked=True):
            least, most = _ranges(piece)
            low, high = np.minimum(low, least), np.maximum(high, most)
        return low, high

    @cached_property
    def column_sizes(self) -> FloatArray:
        """Largest entry of each column of the shifted samples, by size."""
        low, high = self._ends
        if np.isfinite(low).all():
            return np.maximum(np.abs(low - self.shift), np.abs(high - self.shift))
        found = np.zeros(self.coef.size)
        for _, part in self.rows():
            found = np.maximum(found, part.column_sizes)
        return found

    @cached_property
    def free_units(self) -> FloatArray:
        """Powers of two by which free columns are divided whose squares would leave the doubles."""
        sizes = self.column_sizes[self.free]
        extreme = ((sizes >= _NORMAL) & (sizes < 1e-100)) | (sizes > 1e100)
        return np.append(np.where(extreme, powers_above(sizes), 1.0), np.ones(int(self.offset)))

    def rows(self) -> Iterator[tuple[slice, EnclosedRows]]:
        """Pieces of the shifted samples."""
        first = 0
        for piece in pieces(self.X, self.step, checked=True):
            last = first + piece.shape[0]
            yield slice(first, last), EnclosedRows.of(piece, self.shift)
            first = last

    def margins(self, *, sharp: bool) -> Enclosed:
        """``y_i (x_i·β + b)``."""
        u, error = np.empty(self.signs.size), np.empty(self.signs.size)
        for rows, part in self.rows():
            found = part.margins(self.coef, self.shifted_intercept, sharp=sharp)
            u[rows], error[rows] = found.value, found.error
        # What rounding to two doubles took from the intercept.
        return Enclosed(u * self.signs, error + np.abs(self.shifted_intercept[1]) * UNIT + TINY)

    @cached_property
    def least_lambda(self) -> float:
        """``‖β/c‖_*``, rounded upwards."""
        size = np.abs(self.coef[self.kept]) / self.costs[self.kept]
        dual = {"l1": "linf", "linf": "l1", "l2": "l2"}[self.ball.norm]
        return norm_of(dual, size) * UP

    @cached_property
    def shifted_intercept(self) -> Pair:
        """``b + Σ shift_j β_j`` from exact fractions, as a sum of two."""
        exact = Fraction(self.intercept)
        for j in np.flatnonzero(self.shift):
            exact += Fraction(self.shift[j]) * Fraction(self.coef[j])
        high = float(exact)
        return np.array([high]), np.array([float(exact - Fraction(high))])


def _ranges(piece: Any) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest entry of each column; of sparse ones, only if all are stored."""
    if isinstance(piece, np.ndarray):
        return _folded(np.minimum, piece), _folded(np.maximum, piece)
    low, high = np.full(piece.shape[1], -np.inf), np.full(piece.shape[1], np.inf)
    full = np.flatnonzero(np.bincount(piece.indices, minlength=piece.shape[1]) == piece.shape[0])
    if full.size:
        part = piece[:, full].toarray()
        low[full], high[full] = part.min(axis=0), part.max(axis=0)
    return low, high


def _folded(function: np.ufunc, x: NDArray[Any]) -> FloatArray:
    """The least or largest entry of each column, rows by halves: 2.7 times as fast at 4096 × 20."""
    while len(x) > 32:
        half = len(x) // 2
        odd = x[2 * half :]
        x = function(x[:half], x[half : 2 * half])
        if len(odd):
            x[:1] = function(x[:1], odd)
    return np.asarray(function.reduce(x, axis=0), dtype=np.float64)
