"""Which methods solve a problem, and in which order: one list of attempts.

``fitting.solving`` runs the attempts until the certified gap is within ``tol``.  It keeps the best
model and the best bound of all, and an attempt opens near the best model if that is close to the
optimum, otherwise near the start that the caller gave.  The last attempt of a list is *cold*: a
poor start may be why the others failed.

The interior point forms and factors an n×n or N×N matrix in each of its ten or twenty iterations.
The truncated interior point takes products with the rows, dozens where the data are well
conditioned, thousands where they are not.  Nobody knows in advance how many.  Where the matrix is
affordable, products come first and may take as long as a few matrices.

| attempt | problems | what it wins |
|---|---|---|
| row space | ℓ2 or ε = 0, few rows | 200 × 20,000: a quarter of the time of products |
| products | matrices are expensive, ℓ1 and ℓ2 | 6,000 × 2,000: a third of the time of matrices |
| working sets | matrices are expensive, ℓ∞ | farm-ads: a fifth of a plain fit's time |
| many samples | N ≥ 16 n or a near start | 8,000 × 70: half of the interior point's time |
| interior point | all | |

Derivation: docs/algorithm.md, section 9; ``benchmarks/README.md``, "Products or matrices", says
where the numbers were measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..problem.problem import Problem
from ..problem.result import Monitor, Solution
from ..rows.interface import Rows
from ..starts.start import Start
from .interior_point import interior_point
from .large import many_samples, pays
from .row_space import RowSpace, row_space, takes_row_space
from .tables import interior_point_with_domains
from .truncated import CONES, truncated_interior_point
from .wide import is_wide, takes_outer
from .working_set import MOST_FREE_IN_SETS, working_sets

#: How long an entry of X takes in a product, dense and sparse, and how long a sample takes besides,
#: in multiplications of a matrix product.
_DENSE, _SPARSE, _SAMPLE = 6.0, 22.0, 1000.0

#: Multiplications per pair of entries in a row for the Gram matrix of a sparse X (most pairs are
#: summed in order, unlike the products of BLAS).
_PAIR = 4.0

#: A matrix is expensive if it costs so many products, with flips and without.
_EXPENSIVE, _EXPENSIVE_WITHOUT = 40.0, 20.0

#: Products may cost as much as so many matrices before the interior point takes over; fewer where
#: rows are few and labels can flip, since nearly all samples are at a kink then.
_MATRICES, _MATRICES_AT_KINKS = 5.0, 2.0

#: Coefficients of all classes but one from which products take less time than a matrix of all
#: (normal features, (5000, 100) with ten classes: as long; embeddings, (4000, 192) with twenty: a
#: tenth).
_MOST_COEFFICIENTS = 1500

#: Free coefficients of all classes up to which products serve: their equations take a matrix.
_MOST_FREE = 400

#: Samples up to which an N×N matrix is affordable with ℓ1 transport.
_FEW_SAMPLES = 6000

#: A method returns None where it does not apply, or does not pay, to a problem and start.
Method = Callable[..., Solution | None]


@dataclass(frozen=True)
class Attempt:
    """A method, and whether it opens without a model; in a row space if there is one.

    What a ``brief`` attempt proves is not corrected by an n×n matrix: other attempts follow.
    """

    method: Method
    cold: bool = False
    space: RowSpace | None = None
    brief: bool = False

    def run(
        self,
        problem: Problem,
        *,
        tol: float,
        monitor: Monitor,
        max_iter: int | None,
        start: Start | None,
    ) -> Solution | None:
        """The method's solution of the problem; ``max_iter`` None is the method's own limit."""
        method = self.method if max_iter is None else partial(self.method, max_iter=max_iter)
        if self.space is None:
            return method(problem, tol=tol, monitor=monitor, start=start)
        return self.space.solve(problem, method, tol=tol, monitor=monitor, start=start)


def plan(problem: Problem, *, products: bool = True) -> list[Attempt]:
    """The attempts for a problem; ``products=False`` leaves the methods without matrices out."""
    if takes_row_space(problem):
        space = row_space(problem)
        posed = plan(space.posed(problem), products=products)
        there = [replace(each, space=space) for each in posed]
        # Kinks may be so stiff that a factor has no digits left for the loss (κ infinite in one
        # class); products have them.
        last = [Attempt(truncated_interior_point, True, space)] if problem.epsilon > 0.0 else []
        return [*there, *last]
    if problem.several:
        if products and _products_serve(problem):
            return [Attempt(truncated_interior_point)]
        return _warm_and_cold(interior_point)
    if problem.domains is not None:
        return _warm_and_cold(interior_point_with_domains)
    first = _without_matrices(problem) if products else None
    if first is truncated_interior_point:
        return [Attempt(first)]
    if first is working_sets:
        return _warm_and_cold(first)
    before = [] if first is None else [Attempt(first, brief=True)]
    return [*before, *_warm_and_cold(many_samples), *_warm_and_cold(interior_point)]


def _warm_and_cold(method: Method) -> list[Attempt]:
    return [Attempt(method), Attempt(method, cold=True)]


def _without_matrices(problem: Problem) -> Method | None:
    """The method that comes first, or alone, where matrices of two classes are expensive."""
    if problem.epsilon == 0.0 or not problem.penalised.any():
        return None
    free = int(np.count_nonzero(problem.free))
    norm, rows = problem.norm.name, (problem.rows.compact or (problem.rows,))[0]
    wide, expensive = is_wide(rows), is_expensive(problem)
    if not wide and (not expensive or pays(problem)):
        return None
    if norm == "linf":
        plain = problem.constant_sum is None and free <= MOST_FREE_IN_SETS
        return working_sets if plain else None
    if norm not in CONES or free > _MOST_FREE:
        return None
    if wide and (norm == "l2" or rows.n_samples > _FEW_SAMPLES):
        return truncated_interior_point
    if not expensive:
        return None
    matrices = _MATRICES_AT_KINKS if takes_outer(rows) and problem.flips else _MATRICES
    return partial(truncated_interior_point, patience=matrices * matrix_cost(rows))


def _products_serve(problem: Problem) -> bool:
    """Whether products take less time than a matrix of all classes."""
    if problem.epsilon == 0.0 or not problem.penalised.any() or problem.norm.name not in CONES:
        return False
    few = problem.n_classes * int(np.count_nonzero(problem.free)) <= _MOST_FREE
    return few and (problem.n_classes - 1) * problem.rows.n_columns > _MOST_COEFFICIENTS


def is_expensive(problem: Problem) -> bool:
    """Whether a matrix of these rows costs much more than products with them."""
    rows = (problem.rows.compact or (problem.rows,))[0]
    return matrix_cost(rows) >= (_EXPENSIVE if problem.flips else _EXPENSIVE_WITHOUT)


def matrix_cost(rows: Rows) -> float:
    """What an iteration with a matrix costs, in products with the rows."""
    N, n, entries = rows.n_samples, rows.n_columns, rows.n_nonzeros
    size, length = (N, n) if takes_outer(rows) else (n, N)
    gram, each = 0.5 * length * size**2, _DENSE
    if 2 * entries < N * n:
        gram, each = min(gram, _PAIR * entries**2 / length), _SPARSE
    return (gram + 0.25 * size**3) / (each * entries + _SAMPLE * N)
