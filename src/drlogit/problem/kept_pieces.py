"""A dual point of pieces, from what a result keeps of it.

The way back from :func:`drlogit.problem.moves.moves_of`: samples as they are keep what their moved
pieces leave of their weight.
"""

from __future__ import annotations

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from .domains import Domains, ItemTable
from .moves import Moves
from .piece_weights import Weights
from .pieces import Changes, Pieces, key_of, width
from .problem import Problem
from .result import Result


def kept_weights(problem: Problem, start: Result) -> State | None:
    """The dual point of a result, for these samples; None if it has none for as many."""
    dual, domains, rows = start.dual, problem.domains, problem.rows
    if dual is None or dual.moves is None or domains is None:
        return None
    moves, n_items = dual.moves, domains.n_groups + 2 * domains.bounded.size
    same = dual.doubt.shape == (rows.n_samples,) and moves.items.shape[1] == -(-n_items // 8)
    if not same or (moves.flipped.any() and not np.isfinite(problem.kappa)):
        return None
    state = rows.pair(rows.pair(domains.tables(rows), rows.scatter(dual.doubt)), rows.offsets)
    return rows.run(_weights, state, moves, domains, problem.kappa)[0]


def _weights(
    block: Block,
    state: tuple[tuple[ItemTable, FloatArray], int],
    moves: Moves,
    domains: Domains,
    kappa: float,
) -> tuple[Weights, tuple[()]]:
    (table, doubt), offset = state
    w, n = block.weights, block.y.size
    first, last = np.searchsorted(moves.sample, [offset, offset + n])
    mine = moves.picked(slice(first, last))
    own = np.asarray(mine.sample - offset, dtype=np.intp)
    mine, own = mine.picked(w[own] > 0.0), own[w[own] > 0.0]
    n_items = domains.n_groups + 2 * domains.bounded.size
    items = np.unpackbits(mine.items, axis=1, count=n_items).astype(bool)
    sign = np.where(mine.flipped, -1.0, 1.0) * block.y[own]
    cost = items[:, : domains.n_groups] @ domains.group_costs
    changes, distance = _changes(table, domains, items, own, sign, block.n_columns)
    cost = cost + distance + np.where(mine.flipped, kappa, 0.0)
    moved = Pieces(own, sign, cost, key_of(domains, items, mine.flipped), changes)
    stay = np.flatnonzero(w > 0.0)
    unmoved = Pieces(
        stay, block.y[stay], np.zeros(stay.size), np.zeros(stay.size, dtype=np.uint64),
        Changes.none(stay.size, changes.width),
    )  # fmt: skip
    q = w[own] * mine.share
    left = np.maximum(w - np.bincount(own, q, minlength=n), 0.0)[stay]
    pieces, order = unmoved.joined(moved, n)
    q = np.concatenate([left, q])
    p = q * np.concatenate([doubt[stay], mine.doubt])
    return Weights(pieces, q[order], p[order]), ()


def _changes(
    table: ItemTable,
    domains: Domains,
    items: BoolArray,
    own: IndexArray,
    sign: FloatArray,
    n_columns: int,
) -> tuple[Changes, FloatArray]:
    """The matrix of e, one row per piece, and what the moves of bounded features cost."""
    n_groups, n_pieces = domains.n_groups, own.size
    row, group = np.nonzero(items[:, :n_groups])
    column = table.now[own[row], group]
    has = column >= 0
    extreme = n_columns + np.where(sign[row] > 0.0, group, n_groups + group)
    moved, item = np.nonzero(items[:, n_groups:])
    feature, end = item // 2, item % 2
    ends = np.stack([domains.lower, domains.upper])
    distance = ends[end, feature] - table.values[own[moved], feature]
    rows = np.concatenate([row[has], row, moved])
    columns = np.concatenate([column[has], extreme, domains.bounded[feature]])
    entries = np.concatenate([np.full(has.sum(), -1.0), np.ones(row.size), distance])
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=n_pieces)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    wide = width(domains, n_columns)
    changes = Changes(indptr, columns[order].astype(np.int32), entries[order], wide)
    paid = np.abs(distance) * domains.bounded_costs[feature]
    return changes, np.bincount(moved, paid, minlength=n_pieces).astype(np.float64)
