"""The dual point of a problem with domains in plain numbers: which share of a sample goes where.

A *piece* of a sample is the sample with some of its items moved and perhaps its label flipped
(:mod:`drlogit.problem.domains`): categories changed to the worst one, bounded features at one of
their ends.  The masses of a sample's pieces add up to its weight, so only those of pieces that are
not the sample itself are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Listed
from .domains import Domains
from .problem import Problem

if TYPE_CHECKING:
    from .piece_weights import Weights

#: Masses that stay below the sample's weight by this share: so that a sum of them does, too.
_ROOM = 2.0**-50


@dataclass(frozen=True, eq=False)
class Moves:
    """Pieces other than the samples themselves, ordered by sample.

    Attributes
    ----------
    sample : int array
        Whose piece it is.
    flipped : bool array
        Whether its label is not the sample's own.
    items : uint8 array of shape (n_pieces, n_bytes)
        A bit for each item, as ``numpy.packbits`` packs them: for each group that can change,
        whether it does; then for each bounded feature that can move, whether it goes to its lower
        end, and whether it goes to its upper end.
    share : float array
        The share of the sample's weight.
    doubt : float array
        s of the piece.
    """

    sample: NDArray[np.int64]
    flipped: BoolArray
    items: NDArray[np.uint8]
    share: FloatArray
    doubt: FloatArray

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All of it, in the order of the attributes."""
        return self.sample, self.flipped, self.items, self.share, self.doubt

    def picked(self, which: Any) -> Moves:
        """Some of the pieces."""
        return Moves(*(values[which] for values in self.arrays))

    def for_samples(self, origin: IndexArray) -> Moves:
        """The pieces of samples of which each is a copy of sample ``origin``; -1 for none."""
        first = np.searchsorted(self.sample, origin)
        counts = np.searchsorted(self.sample, origin, side="right") - first
        counts[origin < 0] = 0
        own = np.repeat(np.arange(origin.size), counts)
        within = np.arange(own.size) - np.repeat(np.cumsum(counts) - counts, counts)
        found = self.picked(np.repeat(first, counts) + within)
        return Moves(own, *found.arrays[1:])


def moves_of(problem: Problem, weights: State) -> tuple[FloatArray, Moves]:
    """S of the samples as they are, and all other pieces, of a dual point of pieces."""
    rows = problem.rows
    places = rows.scatter(np.arange(rows.n_samples, dtype=np.float64))
    assert problem.domains is not None
    _, (parts,) = rows.run(_listed, rows.pair(weights, places), problem.domains)
    parts = sorted(parts, key=lambda part: part[0])  # blocks come in any order
    doubt = np.concatenate([part[1] for part in parts])
    columns = zip(*(part[2].arrays for part in parts), strict=True)
    return doubt, Moves(*(np.concatenate(column) for column in columns))


def _listed(
    block: Block, state: tuple[Weights, FloatArray], domains: Domains
) -> tuple[None, tuple[Listed[list[tuple[float, FloatArray, Moves]]]]]:
    (pieces, q, p), places = state
    n, own = block.y.size, pieces.own
    flipped = pieces.sign != block.y[own]
    items = _items(pieces.changes, domains, block.n_columns)
    moved = flipped | items.any(axis=1)
    base = np.bincount(own[~moved], p[~moved], minlength=n)
    kept = np.flatnonzero(moved & (q > 0.0))
    share = q[kept] / block.weights[own[kept]]
    taken = np.bincount(own[kept], share, minlength=n)
    full = taken > 1.0 - _ROOM * (1.0 + np.bincount(own[kept], minlength=n))
    share = np.where(full[own[kept]], share * (1.0 - 8.0 * _ROOM) / taken[own[kept]], share)
    left = block.weights * (1.0 - np.bincount(own[kept], share, minlength=n))
    doubt = np.divide(base, left, out=np.zeros(n), where=left > 0.0)
    slope = np.divide(p[kept], q[kept], out=np.zeros(kept.size), where=q[kept] > 0.0)
    first = float(places[0]) if places.size else -1.0
    moves = Moves(
        own[kept] + int(first), flipped[kept], np.packbits(items[kept], axis=1), share,
        np.clip(slope, 0.0, 1.0),
    )  # fmt: skip
    return None, (Listed([(first, np.clip(doubt, 0.0, 1.0), moves)]),)


def _items(changes: Any, domains: Domains, n_columns: int) -> BoolArray:
    """The items of each piece; a group that goes to any other category counts as changed."""
    n_groups = domains.n_groups
    item = np.full(changes.width, -1, dtype=np.intp)
    for g, group in enumerate(domains.groups):
        item[group] = g
    item[n_columns:] = np.tile(np.arange(n_groups), 2)
    item[domains.bounded] = n_groups + 2 * np.arange(domains.bounded.size)
    found = item[changes.columns] + (item[changes.columns] >= n_groups) * (changes.entries > 0.0)
    items = np.zeros((changes.n_rows, n_groups + 2 * domains.bounded.size), dtype=bool)
    items[np.repeat(np.arange(changes.n_rows), np.diff(changes.indptr)), found] = True
    return items
