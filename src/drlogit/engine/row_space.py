"""ℓ2 transport (or none) with few samples and many columns: the row space of the features.

With A = X diag(c) for the penalised features and γ = β/c, the problem depends on β only by Aγ and
‖γ‖, so that the optimal γ is in the row space of A.  The pivoted Cholesky factor ``AAᵀ = LLᵀ`` has
as many columns as A has independent rows.  With T, the rows of L that belong to these, and the same
rows of A, the rows of ``Q = T⁻¹A`` are an orthonormal basis, and

    γ = Qᵀg,      Aγ = Lg,      ‖γ‖₂ = ‖g‖₂ .

The problem in g has the features L and the same samples, labels and free columns.  Dual points are
the same.  If there is an intercept, A is centred.  At ε = 0 no feature is penalised, and the same
basis serves any norm.

Derivation: docs/algorithm.md, (19c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from ..dual.label_points import LabelPoint
from ..problem.problem import Problem
from ..problem.result import Solution
from ..problem.transport import TransportCost
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows
from ..rows.reductions import Sum
from ..starts.start import Start
from .wide import MATRIX_LIMIT, is_wide

#: The method forms one N×N matrix of X and ten Gram matrices of L.  That pays up to so many
#: multiplications for each entry of a product with the rows; of the truncated interior point's
#: products, a column costs as much as 30 entries, and each as much as 500,000 more (normal
#: features, (300, 4200) to (1500, 20000); words by Zipf's law, (300, 5000) to (2000, 60000)).
_SHARE, _PER_COLUMN, _AT_ONCE = 1500, 30, 500_000

#: Rounding of the squared lengths of rows, for each sample, as a share of the largest.  A row whose
#: part orthogonal to the others has a smaller square depends on them.
_ROUNDING = 2.0**-50

#: The share of ``tol`` to solve to; the rest is for the rounding of L.
_OF_TOL = 0.9

#: The row spaces of rows: all fits of a path have the same one.
_KNOWN: WeakKeyDictionary[Rows, RowSpace] = WeakKeyDictionary()


def has_fewer_columns(problem: Problem) -> bool:
    """Whether the problem has fewer columns in the row space of its features."""
    rows, plain = problem.rows, problem.epsilon == 0.0
    if problem.domains is not None or not is_wide(rows):
        return False
    few = rows.n_samples + np.count_nonzero(np.isinf(_costs(problem))) < rows.n_columns
    return bool(few) and (plain or problem.norm.name == "l2")


def _costs(problem: Problem) -> FloatArray:
    """The costs of moves; without an adversary any will do."""
    if problem.epsilon > 0.0:
        return problem.costs
    return np.append(np.ones(problem.costs.size - 1), np.inf if problem.fit_intercept else 1.0)


def takes_row_space(problem: Problem) -> bool:
    """Whether the problem is solved in the row space of its features."""
    N, n, entries = problem.rows.n_samples, problem.rows.n_columns, problem.rows.n_nonzeros
    pays = N * (10 * N**2 + entries) <= _SHARE * (entries + _PER_COLUMN * n + _AT_ONCE)
    pays = pays or (problem.epsilon == 0.0 and N <= MATRIX_LIMIT)  # all columns are free
    return pays and has_fewer_columns(problem)


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The row space of a problem's penalised features; that of all radii."""

    costs: FloatArray  # of the problem
    centre: FloatArray  # weights of the samples by which A is centred; zeros without an intercept
    pivots: IndexArray  # independent rows of A
    triangle: FloatArray  # T
    rows: Rows  # the samples with the features L, and those that are free

    @property
    def free(self) -> Any:
        """The free columns of the problem."""
        return np.isinf(self.costs)

    def posed(self, problem: Problem) -> Problem:
        """The problem in the row space."""
        costs = np.ones(self.rows.n_columns)
        costs[self.pivots.size :] = np.inf
        cost = TransportCost(problem.norm, costs, problem.cost.labels)
        return replace(problem, rows=self.rows, cost=cost, constant_sum=None, matrix=None)

    def coordinates(self, rows: Rows, model: FloatArray) -> FloatArray:
        """(g, free coefficients) of a model, a row for each class."""
        given = np.where(self.free, 0.0, model)
        _, (scores,) = rows.run(_scores, rows.offsets, given, rows.n_samples)
        mean = self.centre @ scores
        g = solve_triangular(self.triangle, (scores - mean)[self.pivots], lower=True).T
        found = np.hstack([g, model[:, self.free]])
        if rows.intercept:
            found[:, -1] += mean
        return found

    def model(self, rows: Rows, found: FloatArray) -> FloatArray:
        """The model of (g, free coefficients), a row for each class."""
        rank, kept = self.pivots.size, ~self.free
        model = np.empty((len(found), self.costs.size))
        model[:, kept] = self.costs[kept] ** 2 * self.images(rows, found[:, :rank])
        model[:, self.free] = found[:, rank:]
        if rows.intercept:
            model[:, -1] -= model[:, kept] @ rows.totals.means[kept]
        return model

    def images(self, rows: Rows, g: FloatArray) -> FloatArray:
        """The rows of ``g Q/c``, of the penalised columns."""
        shares = np.zeros((self.centre.size, len(g)))
        shares[self.pivots] = solve_triangular(self.triangle, g.T, lower=True, trans=1)
        shares -= np.outer(self.centre, shares.sum(axis=0))
        _, (found,) = rows.run(_adjoint, rows.offsets, shares)
        return np.asarray(found[:, ~self.free])

    def solve(
        self,
        problem: Problem,
        method: Callable[..., Solution | None],
        *,
        tol: float,
        start: Start | None,
        **options: Any,
    ) -> Solution | None:
        """The solution of the problem by a method that solves it in the row space."""
        if start is not None:
            model = self.coordinates(problem.rows, np.atleast_2d(start.model))
            start = replace(start, model=model.reshape(*start.model.shape[:-1], -1))
        found = method(self.posed(problem), tol=_OF_TOL * tol, start=start, **options)
        if found is None:
            return None
        model = self.model(problem.rows, np.atleast_2d(found.coefficients))
        point = found.point
        if isinstance(point, LabelPoint) and point.flow is not None:
            point = LabelPoint(point.shares, self.images(problem.rows, point.flow))
        return replace(
            found,
            coefficients=model.reshape(*found.coefficients.shape[:-1], -1),
            point=point,
            info=found.info | {"row_space": self.pivots.size},
        )


def row_space(problem: Problem) -> RowSpace:
    """The row space of the problem's penalised features."""
    rows, known, costs = problem.rows, _KNOWN.get(problem.rows), _costs(problem)
    if known is not None and np.array_equal(known.costs, costs):
        return known
    free, whole = np.isinf(costs), rows.together()
    matrix = whole.outer_gram(whole.y, np.where(free, 0.0, costs))
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    error = len(matrix) * _ROUNDING * float(matrix.diagonal().max())
    centre = np.zeros(len(matrix))
    if rows.intercept:
        centre = whole.weights / whole.weights.sum()
        mean = matrix @ centre
        matrix -= mean
        matrix -= (mean - centre @ mean)[:, None]
    factor, order, rank, _ = dpstrf(matrix, tol=error, lower=1)
    rank = max(int(rank), 1)
    triangle = np.tril(factor[:rank, :rank])
    L = np.zeros((len(matrix), rank))
    L[order - 1] = np.tril(factor)[:, :rank]
    if not triangle[0, 0] > 0.0:  # no feature varies
        triangle, L = np.ones((1, 1)), np.zeros((len(matrix), 1))
    features, _ = rows.run(_features, rows.offsets, L, np.flatnonzero(free[: whole.X.shape[1]]))
    found = RowSpace(
        costs,
        centre,
        order[:rank].astype(np.intp) - 1,
        triangle,
        rows.with_features(features, rank + int(np.count_nonzero(free))),
    )
    _KNOWN[rows] = found
    return found


# --- visits to a block, of which the first sample is known ------------------------------------


def _features(
    block: Block, first: int, L: FloatArray, free: IndexArray
) -> tuple[FloatArray, tuple[()]]:
    """The block's rows of L, and its free features."""
    units = np.zeros((free.size, block.n_columns))
    units[np.arange(free.size), free] = 1.0
    own = L[first : first + block.y.size]
    return np.hstack([own, block.y[:, None] * block.scores(units)]), ()


def _scores(block: Block, first: int, model: FloatArray, n_samples: int) -> tuple[int, tuple[Sum]]:
    """The scores of all samples, (samples, classes); those of other blocks are zero."""
    found = np.zeros((n_samples, len(model)))
    found[first : first + block.y.size] = block.y[:, None] * block.scores(model)
    return first, (Sum(found),)


def _adjoint(block: Block, first: int, shares: FloatArray) -> tuple[int, tuple[Sum]]:
    """``sharesᵀ X``."""
    own = shares[first : first + block.y.size]
    return first, (Sum(block.adjoint(block.y[:, None] * own).T),)
