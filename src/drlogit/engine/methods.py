"""Which method solves a problem: one rule, by what a matrix costs beside products with the rows.

The interior point forms and factors an n×n or N×N matrix in each of its ten or twenty iterations.
The truncated interior point takes products with the rows, and nobody knows in advance how many:
dozens where the data are well conditioned, thousands where they are not.  Where the matrix is
affordable, it runs first as long as it keeps the pace of a few matrices; the interior point goes on
from its model.  Working sets (ℓ∞ transport) need a matrix of few columns only.

Derivation: docs/algorithm.md, section 9; ``benchmarks/README.md``, "Products or matrices", says
where the numbers were measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.interface import Rows
from ..starts.start import Start
from .large import pays
from .pair import interior_point
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

#: Gap up to which the interior point opens near the model of the products, in nats: a constant
#: model has .7.
_NEAR = 0.1

#: Coefficients of all classes but one from which products take less time than a matrix of all
#: (normal features, (5000, 100) with ten classes: as long; embeddings, (4000, 192) with twenty: a
#: tenth).
_MOST_COEFFICIENTS = 1500

#: Free coefficients of all classes up to which products serve: their equations take a matrix.
_MOST_FREE = 400

#: Samples up to which an N×N matrix is affordable with ℓ1 transport.
_FEW_SAMPLES = 6000

Method = Callable[..., Solution]


def special_method(problem: Problem | ClassProblem) -> Method | None:
    """The method for data with expensive matrices, or None for the interior point."""
    if problem.epsilon == 0.0 or problem.domains is not None or not problem.penalised.any():
        return None
    free = int(np.count_nonzero(problem.free))
    if isinstance(problem, ClassProblem):
        return _for_classes(problem, free)
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
    return partial(products_first, patience=matrices * matrix_cost(rows))


def is_expensive(problem: Problem) -> bool:
    """Whether a matrix of these rows costs much more than products with them."""
    rows = (problem.rows.compact or (problem.rows,))[0]
    return matrix_cost(rows) >= (_EXPENSIVE if problem.flips else _EXPENSIVE_WITHOUT)


def _for_classes(problem: ClassProblem, free: int) -> Method | None:
    """The method for several classes with so many free columns."""
    norm, size = problem.norm.name, (problem.n_classes - 1) * problem.rows.n_columns
    serves = norm in CONES and problem.n_classes * free <= _MOST_FREE
    return truncated_interior_point if serves and size > _MOST_COEFFICIENTS else None


def matrix_cost(rows: Rows) -> float:
    """What an iteration with a matrix costs, in products with the rows."""
    N, n, entries = rows.n_samples, rows.n_columns, rows.n_nonzeros
    size, length = (N, n) if takes_outer(rows) else (n, N)
    gram, each = 0.5 * length * size**2, _DENSE
    if 2 * entries < N * n:
        gram, each = min(gram, _PAIR * entries**2 / length), _SPARSE
    return (gram + 0.25 * size**3) / (each * entries + _SAMPLE * N)


def products_first(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Result | None = None,
    patience: float,
) -> Solution:
    """The truncated interior point for so many products, then the interior point from its model."""
    best = truncated_interior_point(
        problem, tol=tol, monitor=monitor, max_iter=max_iter, start=start, patience=patience
    )
    if best.status is not Status.STALLED or best.proven is None or best.lam is None:
        return best
    gap, n_iter, products = best.proven[0] - best.proven[1], best.n_iter, best.info["products"]
    near = [Start(best.coefficients, best.lam, gap)] if gap <= _NEAR else []
    for known in (*near, None):  # a poor start may be the reason of a failure: try without it
        found = interior_point(
            problem, tol=tol, monitor=monitor, max_iter=max(1, max_iter - n_iter), start=known
        )
        n_iter += found.n_iter
        best = _better(found, best)
        if found.status in (Status.OPTIMAL, Status.STOPPED) or n_iter >= max_iter:
            break
    return replace(best, n_iter=n_iter, info=best.info | {"products": products})


def _better(last: Solution, first: Solution) -> Solution:
    """The last solution, with the model or the dual point of the first where that is better.

    The last run may have been stopped before it was as far as the first.
    """
    assert last.proven is not None
    assert first.proven is not None
    (objective, bound), (other, known) = last.proven, first.proven
    if other < objective:
        last = replace(last, coefficients=first.coefficients, lam=first.lam)
    if known > bound:
        last = replace(last, point=first.point)
    return replace(last, proven=(min(objective, other), max(bound, known)))
