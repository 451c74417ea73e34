"""Breakpoints of samples whose features have domains, and what each piece changes in them.

A sample's breakpoints are the edges of its envelope (:mod:`drlogit.problem.worst_moves`).  Piece k
has the sample's k best items moved; piece ``-1 - k`` the k best of the other label, and that label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.domain_loss import Edges, Prices
from ..problem.domains import Domains
from ..problem.worst_moves import Weighed, changes
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.reductions import Stack
from .breakpoints import Breakpoints


def domain_breakpoints(loss: Prices, upto: float | None = None) -> Breakpoints:
    """All breakpoints, or those that a budget of ``upto`` pays for, which may be far fewer."""
    lowest = -np.inf if upto is None else loss.best_lambda(upto)
    _, (edges, counts) = loss.rows.run(_listed, loss.edges, lowest)
    offsets = np.cumsum(counts[:, 0]) - counts[:, 0]
    sample = edges[:, 0].astype(np.intp) + np.repeat(offsets, counts[:, 1])
    rate, cost = edges[:, 1], edges[:, 2]
    return Breakpoints.in_order(sample, rate, cost, rate * cost, edges[:, 3].astype(np.intp))


def _listed(block: Block, edges: Edges, lowest: float) -> tuple[Edges, tuple[Stack, Stack]]:
    """Edges of at least this rate; rates fall along a sample's edges, so it is its first ones."""
    found = edges.envelopes
    kept = found.rate >= lowest
    columns = (found.own, found.rate, found.cost, found.moves)
    table = np.column_stack([np.asarray(column[kept], dtype=np.float64) for column in columns])
    return edges, (Stack(table), Stack(np.array([[block.y.size, table.shape[0]]])))


def changed_features(
    loss: Prices, domains: Domains, signs: FloatArray, sample: IndexArray, piece: IndexArray
) -> Any:
    """What pieces of samples change in their features, as a sparse matrix.

    ``signs`` are the labels of all samples: items are those of the label that a piece has.
    """
    rows, flipped = loss.rows, piece < 0
    labels = signs[sample] * np.where(flipped, -1.0, 1.0)
    lengths = np.where(flipped, -1 - piece, piece)
    n_features = rows.n_columns - 1
    _, (entries,) = rows.run(
        _block_changes, rows.pair(loss.edges, rows.scatter(np.arange(rows.n_samples))), sample,
        labels, lengths, loss.least, loss.model, loss.model.targets(domains), n_features,
    )  # fmt: skip
    parts = entries[:, 2], (entries[:, 0].astype(np.intp), entries[:, 1].astype(np.intp))
    return sp.csr_array(parts, shape=(sample.size, n_features))


def _block_changes(
    block: Block,
    state: tuple[Edges, FloatArray],
    sample: IndexArray,
    labels: FloatArray,
    lengths: IndexArray,
    least: float,
    model: Weighed,
    targets: Any,
    n_features: int,
) -> tuple[Any, tuple[Any]]:
    edges, places = state
    first = int(places[0]) if places.size else 0
    inside = np.flatnonzero((sample >= first) & (sample < first + places.size))
    found = changes(
        sample[inside] - first, labels[inside], lengths[inside], least, edges.table, model, targets,
        n_features,
    ).tocoo()  # fmt: skip
    table = np.column_stack([inside[found.row], found.col, found.data])
    return state, (Stack(table.astype(np.float64)),)


def item_costs(domains: Domains, changed: Any) -> Any:
    """What changes cost: a group once, bounded features by how far they go; a column for each."""
    n_groups = domains.n_groups
    columns = np.concatenate([*domains.groups, np.empty(0, dtype=np.intp)]).astype(np.intp)
    ones = np.ones(columns.size), (columns, domains.group_of)
    touched = sp.csr_array(abs(changed) @ sp.csr_array(ones, shape=(changed.shape[1], n_groups)))
    touched.data = domains.group_costs[touched.indices]
    moved = abs(changed[:, domains.bounded]) @ sp.diags_array(domains.bounded_costs)
    return sp.hstack([touched, moved], format="csr")
