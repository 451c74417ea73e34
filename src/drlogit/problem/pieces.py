"""Pieces: samples after moves, as the rows of a linear program that never holds copies of rows.

A *piece* is a sample i, a label ``σ y_i`` and a set of items (:mod:`drlogit.problem.domains`). In
the coordinates ``(β, b, low, high)``, with the least and the greatest coefficient of each group
as variables of their own, its score is linear:

    (x_i + e)·(β, b, low, high),

e having, for each group that changes, -1 at the column of the present category and +1 at ``low``
(label +1) or ``high`` (label -1), and for each bounded feature that moves the distance to its
end. So a piece is the number of its sample, a sign and the few entries of e; products with pieces
are one product with the samples and one with the changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from .domains import Domains, ItemTable
from .worst_moves import Weighed, _loss, _sorted_items

#: Entries of the buffers that new pieces are written to.
_BUFFER = 1 << 20


class Changes(NamedTuple):
    """A sparse matrix by rows.  SciPy's takes longer to build than small products with it."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    entries: FloatArray
    width: int

    @classmethod
    def none(cls, n_rows: int, width: int) -> Changes:
        """No changes at all."""
        return cls(
            np.zeros(n_rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0), width
        )

    @classmethod
    def of(cls, dense: FloatArray, width: int) -> Changes:
        """The entries of a dense matrix that are not zero, in the first of ``width`` columns."""
        rows, columns = np.nonzero(dense)
        counts = np.bincount(rows, minlength=dense.shape[0])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(indptr, columns.astype(np.int32), dense[rows, columns], width)

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        out = np.empty(self.n_rows)
        _dot(self.indptr, self.columns, self.entries, vector, out)
        return out

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The product of the transpose."""
        out = np.zeros(self.width)
        _scatter(self.indptr, self.columns, self.entries, values, out)
        return out

    def picked(self, rows: IndexArray) -> Changes:
        """Some of the rows."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(self.indptr[:-1][rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        return Changes(indptr, self.columns[places], self.entries[places], self.width)

    def above(self, other: Changes) -> Changes:
        """These rows and those of another."""
        return Changes(
            np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.entries, other.entries]),
            self.width,
        )

    def dense(self) -> FloatArray:
        """All of it as an array."""
        out = np.zeros((self.n_rows, self.width))
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.indptr))
        np.add.at(out, (rows, self.columns), self.entries)
        return out


@numba.njit(cache=True, nogil=True)
def _dot(indptr, columns, entries, vector, out):  # type: ignore[no-untyped-def]
    for k in range(out.size):
        total = 0.0
        for t in range(indptr[k], indptr[k + 1]):
            total += entries[t] * vector[columns[t]]
        out[k] = total


@numba.njit(cache=True, nogil=True)
def _scatter(indptr, columns, entries, values, out):  # type: ignore[no-untyped-def]
    for k in range(values.size):
        for t in range(indptr[k], indptr[k + 1]):
            out[columns[t]] += entries[t] * values[k]


class Pieces(NamedTuple):
    """The pieces of a block, sample by sample.

    ``sign`` is the label, ``cost`` what it takes to get there from the sample, ``key`` a
    fingerprint of label and items, and ``changes`` the sparse matrix of e, one row per piece.
    """

    own: IndexArray
    sign: FloatArray
    cost: FloatArray
    key: NDArray[np.uint64]
    changes: Changes

    def totals(self, values: FloatArray, n_samples: int) -> FloatArray:
        """Sums over the pieces of each sample."""
        return np.bincount(self.own, values, minlength=n_samples).astype(np.float64)

    def starts(self, n_samples: int) -> NDArray[np.int64]:
        """Where the pieces of each sample begin, and the end."""
        counts = np.bincount(self.own, minlength=n_samples)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def scores(self, base: FloatArray, vector: FloatArray) -> FloatArray:
        """``(x_i + e)·vector``, given ``base``, the products of the samples themselves."""
        return np.asarray(base[self.own] + self.changes @ vector)

    def adjoint(self, block: Block, values: FloatArray) -> FloatArray:
        """``Σ values (x_i + e)``."""
        out = self.changes.adjoint(values)
        out[: block.n_columns] += block.adjoint(block.y * self.totals(values, block.y.size))
        return out

    def joined(self, other: Pieces, n_samples: int) -> tuple[Pieces, IndexArray]:
        """These and others that are not among them, in order, and where each of both went."""
        own = np.concatenate([self.own, other.own])
        order = np.argsort(own, kind="stable")
        changes = self.changes.above(other.changes).picked(order)
        joined = Pieces(
            own[order],
            np.concatenate([self.sign, other.sign])[order],
            np.concatenate([self.cost, other.cost])[order],
            np.concatenate([self.key, other.key])[order],
            changes,
        )
        return joined, order

    def picked(self, places: IndexArray) -> Pieces:
        return Pieces(
            self.own[places], self.sign[places], self.cost[places], self.key[places],
            self.changes.picked(places),
        )  # fmt: skip


def width(domains: Domains, n_columns: int) -> int:
    """The length of ``(β, b, low, high)``."""
    return n_columns + 2 * domains.n_groups


def unmoved(block: Block, kappa: float, n_wide: int) -> Pieces:
    """The samples as they are and, if labels can flip, with the other label."""
    present = np.flatnonzero(block.weights > 0.0)
    flips = np.isfinite(kappa)
    own = np.repeat(present, 2) if flips else present
    flipped = np.tile([False, True], present.size) if flips else np.zeros(own.size, dtype=bool)
    return Pieces(
        own,
        np.where(flipped, -1.0, 1.0) * block.y[own],
        np.where(flipped, kappa if flips else 0.0, 0.0),
        np.where(flipped, _FLIPPED, np.uint64(0)),
        Changes.none(own.size, n_wide),
    )


_FLIPPED = np.uint64(0x9E3779B97F4A7C15)


def fingerprints(domains: Domains) -> NDArray[np.uint64]:
    """A random number for each item; those of a set are added.

    Two sets of one sample agree with a probability of 5e-20; the second would then be missing among
    the pieces, which can delay a solver but not mislead a bound.
    """
    rng = np.random.default_rng(0)
    n_items = domains.n_groups + 2 * domains.bounded.size
    return rng.integers(1, 2**63, size=n_items, dtype=np.uint64)


@numba.njit(cache=True, nogil=True)
def _find(  # type: ignore[no-untyped-def]
    first, last, scores, y, kappa, lam, now, values, m, starts, keys, codes, threshold, most,
    n_columns, worst, own, sign_out, cost_out, key_out, counts, columns, entries,
):  # fmt: skip
    n_groups = now.shape[1]
    size = n_groups + values.shape[1]
    gain, cost, rate = np.empty(size), np.empty(size), np.empty(size)
    item = np.empty(size, np.int64)
    value, paid, key = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1, np.uint64)
    found, filled = 0, 0
    for i in range(first, last):
        best = -np.inf
        for label in range(2 if kappa < np.inf else 1):
            sign = y[i] if label == 0 else -y[i]
            margin = sign * scores[i]
            paid[0] = 0.0 if label == 0 else kappa
            key[0] = np.uint64(0) if label == 0 else _FLIPPED
            value[0] = _loss(margin) - lam * paid[0]
            n = _sorted_items(i, sign, now, values, m, lam, gain, cost, rate, item)
            for t in range(n):
                margin -= gain[t]
                paid[t + 1] = paid[t] + cost[t]
                key[t + 1] = key[t] + codes[item[t]]
                value[t + 1] = _loss(margin) - lam * paid[t + 1]
            top = 0
            for t in range(1, n + 1):
                if value[t] > value[top]:
                    top = t
            best = max(best, value[top])
            for _ in range(most):
                if value[top] <= threshold[i]:
                    break
                known = False
                for k in range(starts[i], starts[i + 1]):
                    if keys[k] == key[top]:
                        known = True
                if not known:
                    own[found], sign_out[found] = i, sign
                    cost_out[found], key_out[found] = paid[top], key[top]
                    begin = filled
                    for t in range(top):
                        if item[t] < n_groups:
                            g = item[t]
                            if now[i, g] >= 0:
                                columns[filled], entries[filled] = now[i, g], -1.0
                                filled += 1
                            place = g if sign > 0.0 else n_groups + g
                            columns[filled], entries[filled] = n_columns + place, 1.0
                            filled += 1
                        else:
                            j, end = divmod(item[t] - n_groups, 2)
                            columns[filled] = m.bounded[j]
                            entries[filled] = m.ends[end, j] - values[i, j]
                            filled += 1
                    counts[found] = filled - begin
                    found += 1
                value[top] = -np.inf
                for t in range(n + 1):
                    if value[t] > value[top]:
                        top = t
        worst[i] = best
    return found, filled


def find_pieces(
    scores: FloatArray,
    y: FloatArray,
    kappa: float,
    lam: float,
    table: ItemTable,
    model: Weighed,
    pieces: Pieces,
    codes: NDArray[np.uint64],
    threshold: FloatArray,
    most: int,
    n_columns: int,
) -> tuple[FloatArray, Pieces]:
    """``R_i(λ)``, and the ``most`` best prefixes per label above the threshold that are new."""
    n, items = scores.size, model.n_items
    step = max(1, _BUFFER // max(4 * most * items, 1))
    rows = min(step, n)
    n_wide = n_columns + 2 * model.low.size
    per_row = 2 * min(most, items + 1)
    worst = np.empty(n)
    buffers: tuple[Any, ...] = (
        np.empty(rows * per_row, dtype=np.int64),
        np.empty(rows * per_row),
        np.empty(rows * per_row),
        np.empty(rows * per_row, dtype=np.uint64),
        np.empty(rows * per_row, dtype=np.int64),
        np.empty(rows * per_row * 2 * items, dtype=np.int32),
        np.empty(rows * per_row * 2 * items),
    )
    starts = pieces.starts(n)
    parts = []
    for first in range(0, n, step):
        found, filled = _find(
            first, min(first + step, n), scores, y, kappa, lam, table.now, table.values, model,
            starts, pieces.key, codes, threshold, most, n_columns, worst, *buffers,
        )  # fmt: skip
        if found:
            parts.append(
                [values[:found].copy() for values in buffers[:5]]
                + [values[:filled].copy() for values in buffers[5:]]
            )
    if not parts:
        return worst, pieces.picked(np.empty(0, dtype=np.intp))
    own, sign, cost, key, counts, columns, entries = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    changes = Changes(indptr, columns, entries, n_wide)
    return worst, Pieces(own.astype(np.intp), sign, cost, key, changes)
