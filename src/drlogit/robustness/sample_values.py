"""Values of features, of some samples or of all, from wherever the samples are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..problem.domains import dense_columns
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.reductions import Stack, Sum
from .pair_audit import PairAudit


def rows_of(audit: PairAudit, index: IndexArray) -> FloatArray:
    """The samples at these positions as the blocks hold them: shifted, if the rows are."""
    rows = audit.problem.rows
    order = np.argsort(index, kind="stable")
    _, (found,) = rows.run(_chosen, rows.offsets, index[order])
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return np.asarray(found)[back]


def _chosen(block: Block, first: int, index: IndexArray) -> tuple[int, tuple[Stack]]:
    inside = index[(index >= first) & (index < first + block.y.size)] - first
    part = block.X[inside]
    dense = part.toarray() if sp.issparse(part) else part
    return first, (Stack(np.asarray(dense, dtype=np.float64)),)


def values_of(audit: PairAudit, column: int) -> FloatArray:
    """One column of the matrix, as it was before any shift."""
    rows = audit.problem.rows
    found = rows.gather(rows.run(_column, None, np.array([column]))[0])
    return np.asarray(found + (0.0 if rows.shift is None else rows.shift[column]))


def _column(block: Block, _: None, column: IndexArray) -> tuple[FloatArray, tuple[()]]:
    return dense_columns(block.X, column)[:, 0], ()


def levels_of(audit: PairAudit, columns: IndexArray) -> IndexArray:
    """The place of each sample's level among the columns of a category; -1 for none of them."""
    rows = audit.problem.rows
    return np.asarray(rows.gather(rows.run(_level, None, columns)[0]))


def _level(block: Block, _: None, columns: IndexArray) -> tuple[IndexArray, tuple[()]]:
    part = dense_columns(block.X, columns)
    return np.where(part.any(axis=1), part.argmax(axis=1), -1), ()


def covariances_of(audit: PairAudit, columns: IndexArray) -> FloatArray:
    """Covariances of some columns, with the weights."""
    _, (first, second) = audit.problem.rows.run(_moments, None, columns)
    return np.asarray(second) - np.outer(first, first)


def _moments(block: Block, _: None, columns: IndexArray) -> tuple[None, tuple[Sum, Sum]]:
    part = dense_columns(block.X, columns)
    weighted = block.weights[:, None] * part
    return None, (Sum(weighted.sum(axis=0)), Sum(part.T @ weighted))
