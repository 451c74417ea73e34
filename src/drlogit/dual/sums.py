"""Sums over samples in panels and pairs: few roundings behind each, and known how many.

A sum of N terms, one after the other, may be off by N roundings of their sizes.  Here the terms of
a panel are added up first and the panels' sums in pairs, so that a number passes through the
length of a panel and a few dozen additions.  The order does not depend on BLAS.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import FloatArray, Matrix
from ..rows.blocks import Block
from ..rows.matrix import row_chunks, row_range
from ..rows.reductions import Max, Sum

#: Rows of a panel, dense and sparse: below, calls take longer than their products.
_DENSE, _SPARSE = 64, 128


def totals(block: Block, r: FloatArray, *values: FloatArray) -> tuple[Sum, Sum, Max, Sum]:
    """``Zᵀ r`` and the sums of ``values`` (one array per number), as reductions of a block."""
    signed = block.y * r
    found, chain = column_sums(block.X, signed)
    numbers, other = panel_sums(np.stack([signed, *values]))
    if block.intercept:
        found = np.append(found, numbers[0])
    return Sum(found), Sum(numbers[1:]), Max(max(chain, other)), Sum(1)


def panel_sums(values: FloatArray) -> tuple[FloatArray, int]:
    """Sums along the last axis of a matrix, and the additions behind each."""
    n = values.shape[1]
    whole = n // _DENSE * _DENSE
    parts = values[:, :whole].reshape(values.shape[0], -1, _DENSE).sum(axis=2)
    parts = np.column_stack([parts, values[:, whole:].sum(axis=1)])
    found, depth = _in_pairs(parts.T)
    return found, min(n, _DENSE) + depth


def column_sums(X: Matrix, r: FloatArray) -> tuple[FloatArray, int]:
    """``Xᵀ r``, or ``rᵀ X`` of a matrix r, and the additions behind each entry."""
    n_rows, n_columns = X.shape
    parts: list[FloatArray] = []
    deepest = 0
    if sp.issparse(X):
        for some in row_chunks(-(-n_rows // _SPARSE), n_columns, 1):
            rows = slice(some.start * _SPARSE, min(some.stop * _SPARSE, n_rows))
            n, part = rows.stop - rows.start, row_range(X, rows.start, rows.stop)
            begins = np.minimum(np.arange(0, n + _SPARSE, _SPARSE), n)
            products = np.stack([
                (sp.csr_array((each, np.arange(n), begins)) @ part).toarray()
                for each in np.atleast_2d(r[rows].T)
            ], axis=1)  # fmt: skip
            found, depth = _in_pairs(products.reshape(-1, *r.shape[1:], n_columns))
            parts.append(found)
            deepest = max(deepest, depth)
        found, depth = _in_pairs(np.array(parts).reshape(-1, *r.shape[1:], n_columns))
        return found, min(n_rows, _SPARSE) + deepest + depth
    for rows in row_chunks(n_rows, n_columns, _DENSE):
        chunk = np.ascontiguousarray(X[rows], dtype=np.float64)
        weights, whole = r[rows], chunk.shape[0] // _DENSE * _DENSE
        panels = chunk[:whole].reshape(-1, _DENSE, n_columns)
        by_panel = weights[:whole].reshape(len(panels), _DENSE, math.prod(r.shape[1:]))
        products = np.matmul(by_panel.swapaxes(1, 2), panels)
        products = products.reshape(len(panels), *r.shape[1:], n_columns)
        rest = weights[whole:].T @ chunk[whole:]
        part, depth = _in_pairs(np.concatenate([products, rest[None]]))
        parts.append(part)
        deepest = max(deepest, depth)
    found, depth = _in_pairs(np.array(parts).reshape(-1, *r.shape[1:], n_columns))
    return found, min(n_rows, _DENSE) + deepest + depth


def _in_pairs(parts: FloatArray) -> tuple[FloatArray, int]:
    """The sum over the first axis by halves, and how often that was halved."""
    depth = 0
    while parts.shape[0] > 1:
        half = (parts.shape[0] + 1) // 2
        upper = parts[half:]
        parts = parts[:half].copy()
        parts[: upper.shape[0]] += upper
        depth += 1
    return (parts[0] if parts.shape[0] else np.zeros(parts.shape[1:])), depth
