"""Sums over samples that a lower bound is made of, and what free columns make of them.

A dual point enters them through a coefficient ``r_i`` of each sample (in the plain ball ``ω_i (s_i
- a_i) y_i``) and a curvature ``D_i`` (there ``ω_i s_i (1-s_i)``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .few_samples import MOST_ENTRIES, Few
from .free_columns import Chosen, are_combinations, choose
from .given import Given
from .products import EnclosedRows
from .rounding import UNIT, UP, Enclosed, Total, exact_sum, gamma

#: Free columns from which no proof is attempted: the matrix would be too large.
MOST_FREE = 5000

#: The least normal number, and the largest: a free column of entries below the former among the
#: samples that take part is paid for instead of levelled.
_NORMAL = 2.0**-1022
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """``r_i`` as a sum of two doubles, and ``D_i``.

    As long as doubts are single doubles, ``|low| ≤ 2 u |high|``, about.
    ``missing`` bounds the sum of what is still missing from r; ``terms`` is how many roundings more
    than one there are in D.
    """

    high: FloatArray
    low: FloatArray
    missing: float
    curvature: FloatArray
    active: BoolArray  # samples that have a part in the equations
    terms: int


@dataclass(frozen=True, eq=False)
class Sums:
    """What a pass over the samples gives: the gradient, and what the free columns need."""

    gradient: Enclosed  # Σ r_i x_i; zero in the columns of groups
    balance: Enclosed  # Σ r_i, of which the intercept's equation wants 0
    column_sizes: FloatArray
    matrix: FloatArray  # M of the free columns, the constant last
    largest: FloatArray  # their largest entries among samples that take part
    terms: int

    @classmethod
    def of(cls, given: Given, r: Coefficients, *, sharp: bool) -> Sums:
        """The sums of coefficients."""
        n = given.coef.size
        balance = np.array([exact_sum(r.high, r.low)])
        which = np.flatnonzero(given.free)
        width = which.size + int(given.offset)
        measured = np.arange(n)
        if given.domain is not None:
            measured = np.setdiff1d(measured, given.domain.grouped)
        total = Total(measured.size)
        sizes, matrix = given.column_sizes, np.zeros((width, width))
        largest = np.zeros(width)
        count = 0
        for rows, part in given.rows():
            if measured.size:
                some = part.only(measured)
                some.add_adjoint(total, r.high[rows], sharp=sharp)
                if sharp:
                    some.add_adjoint(total, r.low[rows], sharp=False)
            count += 1
            if which.size and width <= MOST_FREE:
                Z = with_constant(given, part, which) / given.free_units
                matrix += Z.T @ (r.curvature[rows, None] * Z)
                sizes_there = np.abs(Z[r.active[rows]]).max(axis=0, initial=0.0)
                largest = np.maximum(largest, sizes_there)
        if measured.size:
            total.add(np.zeros(1), (r.missing + r.high.size * 1e-300) * sizes[measured])
        if not which.size and width:
            matrix[0, 0], largest[0] = exact_sum(r.curvature), float(r.active.any())
        found = total.enclosed()
        gradient = Enclosed(np.zeros(n), np.zeros(n))
        gradient.value[measured], gradient.error[measured] = found.value, found.error
        error = UNIT * np.abs(balance) + r.missing
        return cls(
            gradient, Enclosed(balance, error), sizes, matrix, largest,
            given.step + count + 8 + r.terms,
        )  # fmt: skip


def with_constant(given: Given, part: EnclosedRows, which: IndexArray) -> FloatArray:
    """Some columns of some rows, the constant one last if it is free."""
    Z = part.columns(which)
    return np.append(Z, np.ones((Z.shape[0], 1)), axis=1) if given.offset else Z


@dataclass(frozen=True)
class Correction:
    """What it takes from a dual point to satisfy the equations of free columns exactly.

    ``lost`` is taken from its value, and ``moved`` bounds what changes in its coefficients
    altogether, both per unit of weight; ``reach`` bounds the share of each that changes.
    """

    lost: float
    moved: float
    reach: float


@dataclass(frozen=True, eq=False)
class FreeColumns:
    """The free columns of the samples that take part."""

    given: Given
    active: BoolArray

    @cached_property
    def which(self) -> IndexArray:
        return np.flatnonzero(self.given.free)

    def parts(self) -> Iterator[tuple[slice, FloatArray]]:
        """Pieces of the columns."""
        for rows, part in self.given.rows():
            yield rows, with_constant(self.given, part, self.which) / self.given.free_units

    def chosen(self, sums: Sums) -> Chosen | None:
        """Columns whose equations imply those of all; None if there is no proof."""
        if sums.matrix.shape[0] > MOST_FREE:
            return None
        return self._spanning(sums.matrix, sums.largest, sums.terms)

    def few(self, sums: Sums, curvature: FloatArray) -> Few | None:
        """Samples that can take up what is left of the equations; None if there is no proof."""
        if self.active.sum() * sums.matrix.shape[0] > MOST_ENTRIES:
            return None
        Z = np.concatenate([Z[self.active[rows]] for rows, Z in self.parts()])
        samples = np.flatnonzero(self.active)
        # All columns, if they are independent: squares of them may not show it.
        present = np.flatnonzero(sums.largest >= _NORMAL)
        found = Few.of(Z[:, present], curvature[samples], samples, present)
        if found is not None:
            return found
        with np.errstate(over="ignore"):  # too large for a proof
            gram = Z.T @ Z
        chosen = self._spanning(gram, sums.largest, len(Z))
        if chosen is None:
            return None
        return Few.of(Z[:, chosen.columns], curvature[samples], samples, chosen.columns)

    def _spanning(self, matrix: FloatArray, largest: FloatArray, terms: int) -> Chosen | None:
        with np.errstate(all="ignore"):
            chosen = choose(matrix, largest >= _NORMAL, terms)
        # As many independent columns as samples: only s = a satisfies their equations, then all.
        if chosen is None or chosen.columns.size >= self.active.sum() or not chosen.others.size:
            return chosen
        spanned = all(are_combinations(Z[self.active[rows]], chosen) for rows, Z in self.parts())
        return chosen if spanned or self.are_few(chosen.columns.size) else None

    def are_few(self, rank: int) -> bool:
        """Whether so many independent columns span the rest: there are no more different rows."""
        different: set[bytes] = set()
        for rows, Z in self.parts():
            # Zero has two signs, which are the same number.
            different.update(row.tobytes() for row in Z[self.active[rows]] + 0.0 if row.any())
            if len(different) > rank:
                return False
        return True

    def charge_of_faint(self, mass: FloatArray, sums: Sums) -> float:
        """What coefficients of at most the largest double make of columns without an equation.

        ``mass`` bounds the sizes of the samples' coefficients.
        """
        faint = (sums.largest > 0.0) & (sums.largest < _NORMAL)
        if not faint.any():
            return 0.0
        given, lost = self.given, 0.0
        mass = 1.5 * mass * UP  # the exact point has no more
        for rows, Z in self.parts():
            active = self.active[rows]
            size = (np.abs(Z[np.ix_(active, faint)]) * _LARGEST).sum(axis=1)
            lost += float(mass[rows][active] @ size)
        return lost * (1.0 + 4.0 * given.signs.size * UNIT) / given.total_weight * UP

    def concerned(self, values: FloatArray, balance: FloatArray) -> FloatArray:
        """Those of all columns' values, and the constant's, that belong to free columns."""
        found = values[self.which]
        found = np.append(found, balance) if self.given.offset else found
        return np.asarray(found / self.given.free_units)

    def along(self, chosen: Chosen, sums: Sums) -> FloatArray:
        """About ``z_iF·c`` of the lemma."""
        c = chosen.correction(self.concerned(sums.gradient.value, sums.balance.value))
        along = np.empty(self.given.signs.size)
        for rows, Z in self.parts():
            along[rows] = Z @ c
        return along

    def correction_by_few(self, few: Few, sums: Sums, curvature: FloatArray) -> Correction | None:
        """The same if only some samples change; None without a proof."""
        residual = self.concerned(sums.gradient.size, sums.balance.size)
        with np.errstate(all="ignore"):
            moved = few.bounds(residual)
            shares = moved / curvature[few.samples] * (1.0 + 2.0 * gamma(sums.terms)) * UP
        if not (shares <= 0.5).all():
            return None
        given = self.given
        lost = 0.5 * exact_sum(given.weights[few.samples] * shares)
        reach = float(np.max(shares, initial=0.0))
        return Correction(
            lost / given.total_weight * UP, exact_sum(moved) / given.total_weight * UP, reach
        )

    def correction(self, chosen: Chosen | None, sums: Sums) -> Correction | None:
        """What the lemma takes: nothing if there are no free columns, None without a proof."""
        if chosen is None:
            return None
        residual = self.concerned(sums.gradient.size, sums.balance.size)
        sizes = self.concerned(sums.column_sizes, np.ones(1))
        with np.errstate(all="ignore"):
            c = chosen.solution(residual)
            reach = float(sizes[chosen.columns] @ c) * UP
            square = float(residual[chosen.columns] @ c) / self.given.total_weight * UP
        if not (reach <= 0.5 and math.isfinite(square)):
            return None
        root = math.sqrt(square) * UP
        share = 0.25
        if self.given.offset:  # the constant's entry of M is the sum of all curvatures
            share = float(sums.matrix[-1, -1]) * (1.0 + gamma(sums.terms)) / self.given.total_weight
        return Correction(
            min(0.5 * reach, 0.67 * root + square) * UP,
            min(share * reach, math.sqrt(share) * root) * UP * UP,
            reach,
        )
