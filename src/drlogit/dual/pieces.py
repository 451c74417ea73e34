"""Dual points of problems with domains: masses of pieces, and what they prove.

A *piece* is a sample, a label and the set of its items that are moved (``problem.domains``).  A
sample's pieces have masses q that total its weight and probabilities s.  Coordinates are those of
the columns, then one for "none" of each group that has it, then ``high`` of each group, so that
every group is complete; its least coefficient is zero, the others lie between that and high, and
an offset stands for what that takes.  A moved category is left out of the row (label +1) or
replaced by high (label -1), which is the worst of all categories for that label.

Derivation: docs/algorithm.md, section 7.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from ..problem.domains import Domains, items_of
from ..problem.losses import entropy
from ..problem.parameters import RANGE
from ..problem.problem import Problem
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.matrix import compiled
from ..rows.reductions import Max, Sum
from ._certificate import FREE, GROUP, IN_NORM, Coordinates, column_sums
from .bound import DualBound, DualSums, lower_bound
from .coordinates import spreads

#: Masses stay below the sample's weight by this share, so that any sum of them does.
_ROOM = 2.0**-50


class PieceMasses(NamedTuple):
    """A block's part of a dual point; the samples' own pieces included.

    ``own`` is the sample, ``flipped`` whether the label is the other one, ``items`` a bit for each
    item (``numpy.packbits``: groups, then lower and upper end of each bounded feature), ``q`` the
    mass and ``m = q s``, in which the equations are linear.
    """

    own: IndexArray
    flipped: BoolArray
    items: NDArray[np.uint8]
    q: FloatArray
    m: FloatArray


class PieceCoordinates:
    """Where the coordinates of a problem with domains are."""

    def __init__(self, problem: Problem) -> None:
        domains = problem.domains
        assert domains is not None
        self.domains: Domains = domains
        self.kappa = problem.kappa
        n, n_groups = problem.costs.size, domains.n_groups
        with_none = np.flatnonzero(domains.with_none)
        self.none = np.full(n_groups, -1, dtype=np.intp)
        self.none[with_none] = n + np.arange(with_none.size)
        self.high = n + with_none.size + np.arange(n_groups)
        self.levels = [
            np.append(group, none) if none >= 0 else group
            for group, none in zip(domains.groups, self.none, strict=True)
        ]
        end = n + with_none.size + n_groups
        # Without an intercept the offset is its own coordinate, or minus the sum of the "none".
        self.offset = n - 1 if problem.fit_intercept else end
        self.anchored = problem.fit_intercept or not domains.with_none.all()
        self.size = end + int(not problem.fit_intercept)

    def coordinates(self, problem: Problem) -> Coordinates:
        domains, n, size = self.domains, problem.costs.size, self.size
        kind = np.full(size, FREE, dtype=np.int32)
        kind[:n][problem.penalised] = IN_NORM
        costs, mean, spread, scale = np.ones(size), np.zeros(size), np.ones(size), np.ones(size)
        costs[:n], scale[:n] = problem.costs, problem.rows.column_scale
        if self.anchored:
            mean[:n] = problem.rows.totals.means
        spread[:n] = spreads(mean[:n], np.square(scale[:n]), intercept=self.anchored)
        for g, group in enumerate(domains.groups):
            kind[group], kind[self.high[g]] = GROUP + g, -1 - g
            # A category comes with its samples and goes with those that change it.
            scale[group], mean[group] = 2.0 * np.square(scale[group]), 0.0
            if self.none[g] >= 0:
                kind[self.none[g]], scale[self.none[g]] = GROUP + g, 2.0
        for levels in domains.held:
            scale[levels] = np.square(scale[levels])
        places, widths = domains.bounded, domains.widths
        varies = spread[places] > RANGE * widths
        spread[places] = np.where(varies, spread[places], widths)
        # The samples as they are, and how far their pieces can go for ε.
        scale[places] += 2.0 * problem.epsilon / domains.bounded_costs
        mean[self.offset], spread[self.offset], scale[self.offset] = 0.0, 1.0, 1.0
        if not self.anchored:
            spread[self.offset] = 0.0  # no coordinate of its own
            scale[self.none] = 3.0
        intercept = self.offset if self.anchored else None
        return Coordinates(kind, costs, problem.norm, spread, mean, scale, intercept)

    def model(self, coefficients: FloatArray) -> FloatArray:
        """A model in these coordinates, as far as its class depends on them."""
        low, high = self.domains.ranges(coefficients)
        found = np.zeros(self.size)
        found[: coefficients.size] = coefficients
        found[self.high] = high - low
        found[self.offset] += low.sum()  # the reference point has the least of each group
        return found

    def settled(self, gradient: FloatArray) -> FloatArray:
        """The gradient with an offset that is tied to the "none" counted there."""
        if not self.anchored:
            gradient = gradient.copy()
            gradient[self.none] -= gradient[self.offset]
            gradient[self.offset] = 0.0
        return gradient


def piece_bound(problem: Problem, coefficients: FloatArray, pieces: State) -> DualBound:
    """The bound of :class:`PieceMasses` per block, and the point scaled into the ball."""
    rows, layout = problem.rows, PieceCoordinates(problem)
    coordinates = layout.coordinates(problem)
    with np.errstate(over="ignore", invalid="ignore"):
        point, reduced = rows.run(_within, pieces, layout, 1.0)
        sums = _sums(layout, reduced)
        if sums.spent > 1.5 * problem.epsilon:  # too far for the sizes of the sums to be known
            share = problem.epsilon / sums.spent
            point, reduced = rows.run(_within, point, layout, share)
            sums = _sums(layout, reduced)
        value, factor = lower_bound(coordinates, problem.epsilon, sums)
    if not coordinates.admits(layout.model(coefficients)):
        value = 0.0
    return DualBound(value, rows.run(_scaled, point, factor)[0])


def pieces_of_model(problem: Problem, coefficients: FloatArray) -> State:
    """The samples as they are, with the dual probabilities of a model."""
    domains = problem.domains
    assert domains is not None
    n_bytes = -(-domains.n_items // 8)
    return problem.rows.run(_unmoved, problem.margins(coefficients), n_bytes)[0]


def _unmoved(block: Block, margins: FloatArray, n_bytes: int) -> tuple[PieceMasses, tuple[()]]:
    n, w = block.y.size, block.weights
    still, nothing = np.zeros(n, dtype=bool), np.zeros((n, n_bytes), dtype=np.uint8)
    return PieceMasses(np.arange(n), still, nothing, w.copy(), w * expit(-margins)), ()


def _sums(layout: PieceCoordinates, reduced: tuple[Any, ...]) -> DualSums:
    gradient, (value, spent), chain, n_blocks = reduced
    chain = float(chain) + float(n_blocks)
    return DualSums(layout.settled(gradient), float(spent), float(value), chain)


def _changes(
    block: Block, pieces: PieceMasses, layout: PieceCoordinates
) -> tuple[Any, FloatArray, FloatArray]:
    """What pieces change of their samples' rows, as a sparse matrix; their labels and costs."""
    domains, own = layout.domains, pieces.own
    table = items_of(block, domains)
    items = np.unpackbits(pieces.items, axis=1, count=domains.n_items).astype(bool)
    sign = np.where(pieces.flipped, -1.0, 1.0) * block.y[own]
    (piece, group, left), shifted, cost = domains.item_moves(table, own, items)
    # "None" is a category: its column is there for samples as they are.
    category = np.where(left >= 0, left, layout.none[group])
    lost, without = np.nonzero(table.now[own] < 0)
    upward = sign[piece] < 0.0
    offset = np.arange(own.size if layout.offset >= block.n_columns else 0)
    entries = [
        (lost, layout.none[without], np.ones(lost.size)),
        (piece, category, np.full(piece.size, -1.0)),
        (piece[upward], layout.high[group[upward]], np.ones(int(upward.sum()))),
        shifted,
        (offset, np.full(offset.size, layout.offset), np.ones(offset.size)),
    ]
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    changes = sp.csr_array((value, (row, column)), shape=(own.size, layout.size))
    flips = np.broadcast_to(block.flip_costs(layout.kappa), block.y.shape)
    cost[pieces.flipped] += flips[own[pieces.flipped]]
    return changes, sign, cost


def _within(
    block: Block, pieces: PieceMasses, layout: PieceCoordinates, share: float
) -> tuple[PieceMasses, tuple[Any, ...]]:
    """A share of masses within the samples' weights, ``0 ≤ m ≤ q``, and the sums.

    These are Σ m z, (Σ q H(s), Σ q d), and the additions behind them.  What is left of the samples
    stays as it is, with s = 0.
    """
    w, own, n = block.weights, pieces.own, block.y.size
    given = np.maximum(pieces.q, 0.0)
    total = np.bincount(own, given, minlength=n)
    room = w * (1.0 - _ROOM * (2.0 + np.bincount(own, minlength=n)))
    # Not more than there is, but not filled up either: that would tilt the equations.
    q = given * (share * np.minimum(room / np.where(total > 0.0, total, 1.0), 1.0))[own]
    s = np.clip(pieces.m / np.where(given > 0.0, given, 1.0), 0.0, 1.0)
    m = np.minimum(s * q, q)
    pieces = pieces._replace(q=q, m=m)
    changes, sign, cost = _changes(block, pieces, layout)
    slope = m * sign
    whole = np.bincount(own, slope, minlength=n).astype(np.float64)
    base, chain = column_sums(block.compiled, whole[None])
    change, other = column_sums(compiled(changes, slope, slope, intercept=False), slope[None])
    change[0, : base.size] += base[0]
    value = q * entropy(np.minimum(m / np.where(q > 0.0, q, 1.0), 1.0))
    numbers = np.array([math.fsum(value), math.fsum(q * cost)])
    longest = max(chain + int(np.bincount(own, minlength=1).max()), other) + 2
    return pieces, (Sum(change[0]), Sum(numbers), Max(longest), Sum(1))


def _scaled(block: Block, pieces: PieceMasses, factor: float) -> tuple[PieceMasses, tuple[()]]:
    """Masses and slopes times a factor; the rest of each sample stays as it is, with s = 0."""
    return pieces._replace(q=factor * pieces.q, m=factor * pieces.m), ()
