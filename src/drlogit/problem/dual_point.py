"""The dual point of a result, in plain numbers.

A *piece* of a sample is the sample with some of its items moved and perhaps its label flipped
(:mod:`drlogit.problem.domains`): categories changed to the worst one, bounded features at one of
their ends.  The masses of a sample's pieces add up to its weight, so the mass of the unchanged
sample is not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import BoolArray, FloatArray, IndexArray, in_memory


@dataclass(frozen=True, eq=False)
class Moves:
    """Pieces other than the samples themselves, ordered by sample.

    Attributes
    ----------
    sample : int array
        The sample of each piece.
    flipped : bool array
        Whether the label of the piece is flipped.
    items : uint8 array of shape (n_pieces, n_bytes)
        A bit for each item, packed by ``numpy.packbits``: for each group that can change,
        whether it does; then for each bounded feature that can move, whether it moves to its lower
        end, and whether it moves to its upper end.
    share : float array
        The piece's share of the sample's weight.
    s : float array
        The dual probability of the piece.
    """

    sample: NDArray[np.int64]
    flipped: BoolArray
    items: NDArray[np.uint8]
    share: FloatArray
    s: FloatArray

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in the order of the attributes."""
        return self.sample, self.flipped, self.items, self.share, self.s

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


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A feasible point of the dual problem: the proof of a lower bound on the optimum.

    Attributes
    ----------
    s
        Dual probabilities ``s_i`` in [0, 1]; the bound is ``Σ w_i H(s_i)``, H being the binary
        entropy.  At the optimum, the probability that the model gives to the sample's other label.
    flip_share
        ``a_i`` in [0, 1]: the share of sample i whose label the worst case flips.
    moves
        With categories or bounds, the moved shares of the samples; ``s`` then belongs to the
        unmoved share.  None otherwise.
    """

    s: FloatArray
    flip_share: FloatArray
    moves: Moves | None = None

    def for_samples(self, origin: IndexArray) -> DualPoint:
        """The point of samples of which each is a copy of sample ``origin``; -1 for no weight."""

        def spread(values: Any) -> FloatArray:
            return np.where(origin >= 0, in_memory(values)[np.maximum(origin, 0)], 0.0)

        moves = None if self.moves is None else self.moves.for_samples(origin)
        return DualPoint(spread(self.s), spread(self.flip_share), moves)


@dataclass(frozen=True, eq=False)
class ClassDualPoint:
    """A feasible point of the dual problem of several classes: the proof of a lower bound.

    Attributes
    ----------
    probabilities : array of shape (n_samples, n_classes)
        p; the bound is ``Σ w_i H(p_i)``.  At the optimum, the model's predicted probabilities.
    labels : array of shape (n_samples, n_classes)
        a: the share of each sample to which the worst case gives each label.
    codes : array of shape (n_samples,)
        The labels as positions among the classes.
    flow : array of shape (n_pairs, n_features) or None
        The flow between classes, a row for each pair (k, j < k); None with ℓ1 transport.
    """

    probabilities: FloatArray
    labels: FloatArray
    codes: Any
    flow: FloatArray | None = None

    @property
    def flip_share(self) -> FloatArray:
        """The share of each sample whose label the worst case changes."""
        return np.asarray(1.0 - self.labels[np.arange(self.codes.size), self.codes])
