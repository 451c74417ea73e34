"""What the bounds of a fit are about, and sums over it whose rounding is known.

A double has a relative error of at most u = 2⁻⁵³ after each operation, and a sum of n products, in
any order, is wrong by at most γ_n = nu/(1-nu) of the sum of their sizes (Higham 2002, §3).  Here
few products are added up that way, and their sums without error.  ``log``, ``log1p`` and ``exp``
are taken to be within 4 units in the last place, as NumPy promises of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..problem.ball import Ball
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.pieces import pieces
from .domain import Domain

UNIT = 2.0**-53

#: A few roundings more than there are; bounds are themselves computed with rounding.
UP = 1.0 + 2.0**-46
DOWN = 1.0 - 2.0**-46

#: Relative error of entropies and losses computed as here, and of products with weights.
LOGARITHMS = 32.0 * UNIT

#: More than all that underflow takes.
TINY = 1e-290

#: Rows at a time, and those of a panel, whose products are added up before anything else.
_ROWS, _PANEL = 4096, 32

#: A column that is not centred counts as one whose standard deviation is at least its root mean
#: square over this.
_FAR = 64.0


def gamma(n: int) -> float:
    """Error of a sum of n products in any order, relative to the sum of their sizes."""
    return n * UNIT / (1.0 - n * UNIT) * UP


def exact_sum(x: FloatArray) -> float:
    """The sum of all entries, rounded once."""
    return math.fsum(x.ravel().tolist())


def sums_by_key(keys: IndexArray, values: FloatArray, n: int) -> FloatArray:
    """For each key the sum of its values, rounded once."""
    order = np.argsort(keys, kind="stable")
    ends = np.searchsorted(keys[order], np.arange(n + 1))
    listed = values[order].tolist()
    return np.array([math.fsum(listed[a:b]) for a, b in itertools.pairwise(ends)])


def norm_of(name: str, sizes: FloatArray) -> float:
    """A norm by name of sizes, rounded upwards."""
    largest = float(np.max(sizes, initial=0.0))
    if name == "linf" or not 0.0 < largest < math.inf:
        return largest * UP
    x = sizes / largest
    return largest * (exact_sum(x) if name == "l1" else math.sqrt(exact_sum(x * x))) * UP


class Enclosed(NamedTuple):
    """Numbers, and how wrong each can be."""

    value: FloatArray
    error: FloatArray

    @property
    def size(self) -> FloatArray:
        """No less than the size of each."""
        return (np.abs(self.value) + self.error) * UP


@dataclass(frozen=True, eq=False)
class Instance:
    """Samples, ball, linear model, and what features can be if that is not any number."""

    X: Any  # checked, if it is in memory
    signs: FloatArray
    weights: FloatArray  # ω, at most one; w = ω/Ω
    ball: Ball
    flip_costs: FloatArray  # κ of each sample
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
    def kept(self) -> BoolArray:
        """Features that the norm is about."""
        kept = np.isfinite(self.costs) & (self.ball.epsilon > 0.0)
        if self.domain is not None:
            kept[self.domain.columns] = False
        return np.asarray(kept)

    @cached_property
    def free(self) -> BoolArray:
        """Features whose coefficients nothing bounds, those of categories apart."""
        free = ~self.kept
        if self.domain is not None:
            free[self.domain.grouped] = False
        return free

    @property
    def offset(self) -> bool:
        """Whether the constant is a column, or the sum of those of a group that can change."""
        complete = self.domain is not None and not self.domain.with_none.all()
        return self.ball.fit_intercept or complete

    @cached_property
    def shift(self) -> FloatArray:
        """About the means, next to an intercept: of dense columns, and of full ones."""
        if not self.offset:
            return np.zeros(self.coef.size)
        total, full = np.zeros(self.coef.size), np.ones(self.coef.size, dtype=bool)
        for rows, part in self.parts():
            total += part.T @ self.weights[rows]
            if sp.issparse(part):
                full &= np.bincount(part.indices, minlength=full.size) == part.shape[0]
        if self.domain is not None:
            full[self.domain.grouped] = False
        return np.where(full, total / self.total_weight, 0.0)

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Some rows at a time, as they are."""
        first = 0
        for part in pieces(self.X, _ROWS, checked=True):
            yield slice(first, first + part.shape[0]), part.astype(np.float64, copy=False)
            first += part.shape[0]

    def rows(self) -> Iterator[tuple[slice, Any]]:
        """Some rows at a time, less the shift: each entry with one rounding more."""
        for rows, part in self.parts():
            if not self.shift.any():
                yield rows, part
            elif sp.issparse(part):
                data = part.data - self.shift[part.indices]
                yield rows, sp.csr_array((data, part.indices, part.indptr), shape=part.shape)
            else:
                yield rows, part - self.shift

    @cached_property
    def margins(self) -> Enclosed:
        """``y_i (x_i·β + b)``."""
        exact = Fraction(self.intercept)
        for j in np.flatnonzero(self.shift * self.coef):
            exact += Fraction(self.shift[j]) * Fraction(self.coef[j])
        offset = float(exact)
        u, size = np.empty(self.signs.size), np.empty(self.signs.size)
        for rows, part in self.rows():
            u[rows] = part @ self.coef + offset
            size[rows] = abs(part) @ np.abs(self.coef) + abs(offset)
        return Enclosed(u * self.signs, gamma(self.coef.size + 4) * size + TINY)

    @cached_property
    def least_lambda(self) -> float:
        """``‖β/c‖_*``, rounded upwards."""
        size = np.abs(self.coef[self.kept]) / self.costs[self.kept]
        return norm_of({"l1": "linf", "linf": "l1", "l2": "l2"}[self.ball.norm], size * UP)

    def columns(self, r: FloatArray, size: FloatArray, roundings: int) -> tuple[Enclosed, Columns]:
        """``Σ r_i x_i`` of the shifted samples, and their moments.

        r has so many roundings of ``size``.
        """
        n, w = self.coef.size, self.weights
        sums: list[list[FloatArray]] = [[], [], [], []]
        for rows, part in self.rows():
            for found, values, matrix in zip(
                sums,
                (r, size, w, w),
                (part, abs(part), part, part.multiply(part) if sp.issparse(part) else part**2),
                strict=True,
            ):
                found.append(_panels(matrix, values[rows]))
        adjoint, sizes, mean, squares = (
            sums_by_key(np.tile(np.arange(n), len(x)), x.ravel(), n)
            for x in (np.concatenate([*each, np.zeros((1, n))]) for each in sums)
        )
        error = gamma(_PANEL + 4 + roundings) * sizes * UP + TINY
        total = self.total_weight
        return Enclosed(adjoint, error), Columns.of(mean / total, squares / total, self.offset)


class Columns(NamedTuple):
    """Means and standard deviations, or root mean squares without an intercept."""

    mean: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, mean: FloatArray, squares: FloatArray, offset: bool) -> Columns:
        if not offset:
            return cls(np.zeros_like(mean), np.sqrt(squares))
        variance = np.maximum(squares - mean**2, squares / _FAR**2)
        return cls(mean, np.sqrt(variance))


def _panels(matrix: Any, r: FloatArray) -> FloatArray:
    """``Σ r_i x_i`` of every few rows."""
    if sp.issparse(matrix):
        panel = np.repeat(np.arange(matrix.shape[0]) // _PANEL, np.diff(matrix.indptr))
        shape = -(-matrix.shape[0] // _PANEL), matrix.shape[1]
        values = matrix.data * np.repeat(r, np.diff(matrix.indptr))
        places = panel * shape[1] + matrix.indices
        return np.bincount(places, values, minlength=shape[0] * shape[1]).reshape(shape)
    whole = len(r) // _PANEL * _PANEL
    batches = matrix[:whole].reshape(-1, _PANEL, matrix.shape[1])
    found = np.matmul(r[:whole].reshape(-1, 1, _PANEL), batches)[:, 0]
    return np.vstack([found, r[whole:] @ matrix[whole:]])
