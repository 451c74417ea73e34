"""Dual points of pieces: masses and doubts as sums of two doubles.

What they prove is in :mod:`drlogit.verification.piece_bound`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..problem.ball import Ball
from ..problem.moves import Moves
from ..rows.arrays import BoolArray, FloatArray
from .bounds import entropy
from .domain import Domain
from .doubts import Doubts
from .given import Given
from .rounding import (
    DOWN,
    LOGARITHMS,
    TINY,
    UNIT,
    UP,
    Pair,
    exact_sum,
    pair_product,
    two_product,
    two_sum,
)
from .sums import Coefficients

#: What is left of a sample's mass is known to this, and to a rounding.
_LEFT = 1e-27

#: What rounding of a scaled doubt can change in its entropy: 13 u times a logarithm below 40.
_SCALED = 16.0 * UNIT * 64.0


def infeasible_pieces(doubt: FloatArray, moves: Moves, domain: Domain, ball: Ball) -> str | None:
    """Why these are no pieces, masses and doubts."""
    n_pieces = moves.sample.size
    wrong = None
    if any(array.shape[0] != n_pieces for array in moves.arrays):
        wrong = "its arrays of moves differ in length"
    elif moves.items.shape != (n_pieces, -(-domain.n_items // 8)):
        wrong = f"moves must have {domain.n_items} items"
    elif n_pieces and not (moves.sample.min() >= 0 and moves.sample.max() < doubt.size):
        wrong = "moves must be of samples that there are"
    elif (np.diff(moves.sample) < 0).any():
        wrong = "moves must be in the order of the samples"
    elif not ((moves.doubt >= 0.0) & (moves.doubt <= 1.0)).all():
        wrong = "doubt of moves must lie in [0, 1]"
    elif not (moves.share >= 0.0).all() or (_left(moves, doubt.size)[0] < -_LEFT).any():
        wrong = "shares of moves must be at least 0, and at most 1 for a sample"
    elif moves.flipped.any() and math.isinf(ball.kappa):
        wrong = "labels are flipped where none can be"
    elif _ends(moves, domain).all(axis=2).any():
        wrong = "a feature is moved to both of its ends"
    return None if wrong is None else f"infeasible dual point: {wrong}"


def no_moves(domain: Domain) -> Moves:
    """Every sample stays where it is."""
    none = np.zeros(0)
    items = np.zeros((0, -(-domain.n_items // 8)), dtype=np.uint8)
    return Moves(none.astype(np.int64), none.astype(bool), items, none, none)


def item_bits(items: NDArray[np.uint8], domain: Domain) -> BoolArray:
    """Whether each item is moved."""
    return np.unpackbits(items, axis=1, count=domain.n_items).astype(bool)


def _ends(moves: Moves, domain: Domain) -> BoolArray:
    """Whether each bounded feature is at its lower and at its upper end."""
    bits = item_bits(moves.items, domain)[:, domain.n_groups :]
    return bits.reshape(moves.sample.size, domain.bounded.size, 2)


def _left(moves: Moves, n_samples: int) -> Pair:
    """``1 - Σ share`` of each sample, but for 1e-27."""
    shares = -moves.share, np.zeros_like(moves.share)
    return _added(moves, (np.ones(n_samples), np.zeros(n_samples)), shares)


def _added(moves: Moves, own: Pair, moved: Pair) -> Pair:
    """Sums over the pieces of each sample, its own first."""
    counts = np.bincount(moves.sample, minlength=own[0].size)
    first = np.cumsum(counts) - counts
    high, low = own[0].copy(), own[1].copy()
    for rank in range(int(counts.max(initial=0))):
        some = np.flatnonzero(counts > rank)
        piece = first[some] + rank
        high[some], lost = two_sum(high[some], moved[0][piece])
        low[some] += lost + moved[1][piece]
    return two_sum(high, low)


@dataclass(frozen=True, eq=False)
class PieceMasses:
    """Pieces with what they weigh, as sums of two doubles."""

    given: Given
    moves: Moves
    left: Pair  # shares of the samples as they are
    signs: FloatArray  # labels of the other pieces
    own: Doubts
    moved: Doubts

    @classmethod
    def of(cls, given: Given, doubt: FloatArray, moves: Moves) -> PieceMasses:
        high, low = _left(moves, doubt.size)
        empty = high <= 0.0
        return cls(
            given, moves, (np.where(empty, 0.0, high), np.where(empty, 0.0, low)),
            given.signs[moves.sample] * np.where(moves.flipped, -1.0, 1.0),
            Doubts.of(doubt), Doubts.of(moves.doubt),
        )  # fmt: skip

    def levelled(self, along: FloatArray) -> PieceMasses:
        """``s - s(1-s) y t`` for a t of each sample, about."""
        return replace(
            self,
            own=self.own.moved(self.given.signs * along),
            moved=self.moved.moved(self.signs * along[self.moves.sample]),
        )

    @cached_property
    def mass(self) -> Pair:
        """Of the samples as they are."""
        return pair_product((self.given.weights, np.zeros(1)), self.left)

    @cached_property
    def moved_mass(self) -> Pair:
        return two_product(self.given.weights[self.moves.sample], self.moves.share)

    @cached_property
    def p(self) -> Pair:
        """Of the samples as they are; like that of the others wrong by at most ``32 u²`` of it."""
        return pair_product(self.mass, self.own.pair)

    @cached_property
    def moved_p(self) -> Pair:
        return pair_product(self.moved_mass, self.moved.pair)

    @cached_property
    def most(self) -> int:
        """Pieces of a sample."""
        return int(np.bincount(self.moves.sample).max(initial=0)) + 1

    @property
    def total(self) -> float:
        """``Σ p``, rounded upwards."""
        return (exact_sum(self.p[0]) + exact_sum(self.moved_p[0])) * UP

    @property
    def noise(self) -> float:
        """Errors of all p, and of their sums over the pieces of each sample."""
        own = ((self.most + 16) * UNIT) ** 2 * self.total * UP
        return own + _LEFT * self.given.total_weight + TINY

    @cached_property
    def coefficients(self) -> Coefficients:
        own, moved = self.given.signs, self.signs
        high, low = _added(
            self.moves,
            (own * self.p[0], own * self.p[1]),
            (moved * self.moved_p[0], moved * self.moved_p[1]),
        )
        return Coefficients(
            high, low, self.noise,
            self._per_sample(
                self.mass[0] * self.own.curvature, self.moved_mass[0] * self.moved.curvature
            ),
            self._per_sample(self.p[0], self.moved_p[0]) > 0.0,
            self.most + 8 + max(self.own.roundings, self.moved.roundings),
        )  # fmt: skip

    def _per_sample(self, own: FloatArray, moved: FloatArray) -> FloatArray:
        return own + np.bincount(self.moves.sample, moved, minlength=own.size)

    @property
    def masses(self) -> FloatArray:
        """``Σ p`` of each sample."""
        return self._per_sample(self.p[0], self.moved_p[0]) * UP

    def by_label(self, label: float) -> float:
        """``Σ p`` over the pieces with a label."""
        own, others = self.given.signs == label, self.signs == label
        return exact_sum(self.p[0][own]) + exact_sum(self.moved_p[0][others])

    def value(self, factor: float) -> float:
        """``Σ q H(s)`` of the point scaled by a factor, rounded downwards."""
        weights, total, left = self.given.weights, self.given.total_weight, self.left[0]
        moved = self.moved_mass[0] * entropy(self.moved.value)
        mass, doubt, lost = left, self.own.value, 0.0
        if factor < 1.0:
            mass = left + (1.0 - factor) * (1.0 - left)
            share = np.divide(left, mass, out=np.zeros_like(mass), where=mass > 0.0)
            doubt, lost = np.minimum(factor * share * doubt, 1.0), _SCALED
        found = factor * exact_sum(moved) + exact_sum(weights * mass * entropy(doubt))
        tilt = self.own.tilt(self.mass[0]) + self.moved.tilt(self.moved_mass[0])
        found = found / total * (1.0 - LOGARITHMS) * DOWN - lost - 2.0 * _LEFT
        return found - tilt / total * UP
