"""ℓ∞ transport with many columns: the interior point on few of them, until the others agree.

The norm is ``Σ|β_j|/c_j ≤ λ``, so that most coefficients are zero.  A solution on a working set of
columns is a model of the whole problem with the same objective.  Its dual point has a gradient in
all columns.  Those with ``c_j |g_j|`` above the budget ``ε - Σ w κ a`` of moves join the set.
Where there is none, the point proves the bound for all columns.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

import numpy as np

from ..dual.certify import certify
from ..dual.label_points import LabelPoint, label_bound
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import FloatArray, IndexArray
from ..starts.start import Start
from .interior_point import interior_point

#: Coefficients to begin with, and the share of the set by which it may grow (farm-ads at ε = .01:
#: the solution has about 200 columns).
_FIRST, _GROWTH = 200, 0.5

#: Free columns, which are in all sets, up to which the sets are small.
MOST_FREE_IN_SETS = 200

#: How exactly to solve on a working set, as a share of the last gap; in the end a share of ``tol``.
_SHARE, _OF_TOL = 0.1, 0.3

_MOST_SETS = 40


def working_sets(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Start | None = None,
) -> Solution:
    """Solve the problem to a certified gap of ``tol``; ``max_iter`` limits iterations in all.

    Of a ``start`` the columns that it uses are in the first working set.
    """
    n_features = problem.costs.size - int(problem.fit_intercept)
    model = np.zeros(problem.costs.size)
    score = _excess(problem, model, None)
    score[~problem.penalised] = np.inf
    if start is not None:
        score[start.model != 0.0] = np.inf
    score = score[:n_features]
    columns = _largest(score, _FIRST + int(np.isinf(score).sum()))
    gap, bound, n_iter, status, point, lam = 1.0, 0.0, 0, Status.MAX_ITER, None, None
    best, inner = np.inf, 1e-3
    for _ in range(_MOST_SETS):
        part = problem.with_columns(columns)
        inner = max(_OF_TOL * tol, min(_SHARE * gap, inner))
        unseen = Monitor(stop=monitor.stop)
        found = interior_point(part, tol=inner, monitor=unseen, max_iter=max(max_iter - n_iter, 1))
        n_iter += found.n_iter
        whole = np.zeros_like(model)
        kept = np.append(columns, n_features) if problem.fit_intercept else columns
        whole[kept] = found.coefficients
        excess = _excess(problem, whole, found.point)
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
        excess = excess[:n_features]
        excess[columns] = 0.0
        violated = int(np.count_nonzero(excess > 1.0))
        most = max(_FIRST, int(_GROWTH * columns.size))
        columns = np.union1d(columns, _largest(excess, min(violated, most)))
        inner = inner if violated else _SHARE * inner
    info = {"solver": "working-sets", "columns": int(columns.size)}
    return Solution(model, status, n_iter, point, info=info, lam=lam, proven=(best, bound))


def _excess(problem: Problem, model: FloatArray, point: LabelPoint | None) -> FloatArray:
    """What each column needs, as a share of the budget of moves; without a point, in any unit."""
    price = np.where(problem.penalised, problem.costs, 0.0)
    sums = label_bound(problem, model, point).sums
    budget = problem.epsilon - sums.spent if point is not None else problem.epsilon
    return np.asarray(price * np.abs(sums.gradient) / max(budget, 1e-300))


def _largest(values: np.ndarray, count: int) -> IndexArray:
    """The places of the largest values, in ascending order."""
    count = min(count, values.size)
    return np.sort(np.argpartition(-values, count - 1)[:count]) if count else np.zeros(0, np.intp)
