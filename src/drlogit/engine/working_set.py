"""ℓ∞ transport with many columns: the interior point on few of them, until the others agree.

The norm is ``Σ|β_j|/c_j ≤ λ``, so that most coefficients are zero.  A solution on a working set of
columns is a model of the whole problem with the same objective.  Its dual point has a gradient in
all columns: those with ``c_j |g_j|`` above the budget ``ε - Σ w κ a`` of moves join the set.  Where
there is none, the point proves the bound for all columns.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

import numpy as np

from ..dual.certify import certify
from ..dual.pair import judge
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.arrays import IndexArray
from .pair import interior_point
from .wide import is_wide

#: Columns to begin with, and the share of the set by which it may grow (farm-ads at ε = .01: the
#: solution has about 200 columns).
_FIRST, _GROWTH = 200, 0.5

#: How exactly to solve on a working set, as a share of the last gap; in the end a share of ``tol``.
_SHARE, _OF_TOL = 0.1, 0.3

_MOST_SETS = 40


def takes_working_sets(problem: Problem) -> bool:
    """Whether this method is chosen."""
    plain = problem.domains is None and problem.constant_sum is None and problem.epsilon > 0.0
    few = int(np.count_nonzero(problem.free)) <= _FIRST
    return plain and few and problem.norm.name == "linf" and is_wide(problem.rows)


def working_sets(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Result | None = None,
) -> Solution:
    """Solve (P) to a certified gap of ``tol``; ``max_iter`` limits iterations in all.

    Of a ``start`` the columns that it uses are in the first working set.
    """
    costs, penalised = problem.costs, problem.penalised
    model = np.zeros(costs.size)
    first = judge(problem, model, None)
    price = np.where(penalised, costs, 0.0)
    score = np.where(penalised, price * np.abs(first.sums.gradient), np.inf)
    if start is not None and np.size(start.coef) == costs.size - problem.fit_intercept:
        used = problem.join(start.coef, 0.0) != 0.0
        score[used] = np.inf
    if problem.fit_intercept:
        score = score[:-1]
    columns = _largest(score, _FIRST + int(np.isinf(score).sum()))
    gap, bound, n_iter, status, point, lam = 1.0, 0.0, 0, Status.MAX_ITER, None, None
    best = np.inf
    for _ in range(_MOST_SETS):
        part = problem.with_columns(columns)
        inner = max(_OF_TOL * tol, min(_SHARE * gap, 1e-3))
        unseen = Monitor(stop=monitor.stop)
        found = interior_point(part, tol=inner, monitor=unseen, max_iter=max(max_iter - n_iter, 1))
        n_iter += found.n_iter
        whole = np.zeros(costs.size)
        kept = np.append(columns, costs.size - 1) if problem.fit_intercept else columns
        whole[kept] = found.coefficients
        certificate = certify(problem, whole, point=found.point, guess=found.lam, tol=tol)
        if certificate.primal < best:
            best, model, lam = certificate.primal, whole, certificate.lam
        if certificate.dual > bound:
            bound, point = certificate.dual, certificate.point
        gap = best - bound
        stopped = monitor.report(n_iter, best, bound, float(lam or 0.0), columns=columns.size)
        if gap <= tol:
            status = Status.OPTIMAL
        elif stopped:
            status = Status.STOPPED
        elif found.status is Status.STALLED and inner <= _OF_TOL * tol:
            status = Status.STALLED
        if status is not Status.MAX_ITER or n_iter >= max_iter:
            break
        sums = judge(problem, whole, found.point).sums
        excess = (price * np.abs(sums.gradient))[: score.size]
        excess[columns] = 0.0
        violated = int(np.count_nonzero(excess > problem.epsilon - sums.spent))
        most = max(_FIRST, int(_GROWTH * columns.size))
        columns = np.union1d(columns, _largest(excess, min(violated, most)))
    info = {"solver": "working-sets", "columns": int(columns.size)}
    return Solution(model, status, n_iter, point, info=info, lam=lam, proven=(best, bound))


def _largest(values: np.ndarray, count: int) -> IndexArray:
    """The places of the largest values, in ascending order."""
    count = min(count, values.size)
    return np.sort(np.argpartition(-values, count - 1)[:count]) if count else np.zeros(0, np.intp)
