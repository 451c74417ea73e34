"""ℓ∞ transport with many columns: the interior point on few of them, until the others agree.

The norm is ``Σ|β_j|/c_j ≤ λ``, so that most coefficients are zero.  A solution on a working set of
columns is a model of the whole problem with the same objective.  Its dual point has a gradient in
all columns.  With two classes, those with ``c_j |g_j|`` above the budget ``ε - Σ w κ a`` of moves
join the set.  Where there is none, the point proves the bound for all columns.

With several classes the gradient G of a column has an entry for each class, and the point has a
flow between the classes.  On the working set it uses the budget ``m_jk = max c |M_jk|`` for the
classes j and k, and so any other column may: it has to join if no flow of divergence G has
``c |M_jk| ≤ m_jk``.  Such flows are sought among the electrical ones, of least ``Σ r (M/m)²`` for
resistances r that rise where the flow is too large (Christiano et al., 2011).

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dual.certify import certify
from ..dual.classes import ClassPoint, class_point_of_model, pairs
from ..dual.pair import judge
from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from .classes import interior_point_for_classes
from .pair import interior_point

#: Coefficients to begin with, and the share of the set by which it may grow (farm-ads at ε = .01:
#: the solution has about 200 columns).
_FIRST, _GROWTH = 200, 0.5

#: Free columns, which are in all sets, up to which the sets are small.
MOST_FREE_IN_SETS = 200

#: How exactly to solve on a working set, as a share of the last gap; in the end a share of ``tol``.
_SHARE, _OF_TOL = 0.1, 0.3

_MOST_SETS = 40

#: Electrical flows that are tried for a column (random budgets of 3, 6 and 12 classes: the first
#: needs 1.04, 1.24 and 1.50 times the least; a test compares the best with a linear program).
_FLOWS = 8


def working_sets(
    problem: Problem | ClassProblem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Result | None = None,
) -> Solution:
    """Solve the problem to a certified gap of ``tol``; ``max_iter`` limits iterations in all.

    Of a ``start`` the columns that it uses are in the first working set.
    """
    costs, K = problem.costs, problem.n_classes if isinstance(problem, ClassProblem) else 1
    solver: Any = interior_point if K == 1 else interior_point_for_classes
    n_features, first = costs.size - int(problem.fit_intercept), max(_FIRST // K, 10)
    model = np.zeros(costs.size if K == 1 else (K, costs.size))
    score, _ = _excess(problem, model, None, np.zeros(0, np.intp))
    score[~problem.penalised] = np.inf
    if start is not None and np.shape(start.coef)[-1] == n_features:
        used = np.reshape(start.coef, (-1, n_features)).any(axis=0)
        score[:n_features][used] = np.inf
    score = score[:n_features]
    columns = _largest(score, first + int(np.isinf(score).sum()))
    gap, bound, n_iter, status, point, lam = 1.0, 0.0, 0, Status.MAX_ITER, None, None
    best, inner = np.inf, 1e-3
    for _ in range(_MOST_SETS):
        part = problem.with_columns(columns)
        inner = max(_OF_TOL * tol, min(_SHARE * gap, inner))
        unseen = Monitor(stop=monitor.stop)
        found = solver(part, tol=inner, monitor=unseen, max_iter=max(max_iter - n_iter, 1))
        n_iter += found.n_iter
        whole = np.zeros_like(model)
        kept = np.append(columns, costs.size - 1) if problem.fit_intercept else columns
        whole[..., kept] = found.coefficients
        excess, proof = _excess(problem, whole, found.point, columns)
        certificate = certify(problem, whole, point=proof, guess=found.lam, tol=tol)
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
        most = max(first, int(_GROWTH * columns.size))
        columns = np.union1d(columns, _largest(excess, min(violated, most)))
        inner = inner if violated else _SHARE * inner
    info = {"solver": "working-sets", "columns": int(columns.size)}
    return Solution(model, status, n_iter, point, info=info, lam=lam, proven=(best, bound))


def _excess(
    problem: Problem | ClassProblem, model: FloatArray, point: Any, columns: IndexArray
) -> tuple[FloatArray, Any]:
    """What each column needs, as a share of the budget of moves; the point for all columns.

    ``point`` is that of a model of ``columns``; without one, what columns need is in any unit.
    """
    price = np.where(problem.penalised, problem.costs, 0.0)
    if not isinstance(problem, ClassProblem):
        sums = judge(problem, model, point).sums
        budget = problem.epsilon - sums.spent if point is not None else problem.epsilon
        return price * np.abs(sums.gradient) / max(budget, 1e-300), point
    own = class_point_of_model(problem, model) if point is None else point
    _, (G,) = problem.rows.run(_gradient, own.shares)
    if point is None:
        return price * np.ptp(G, axis=0), own
    assert own.flow is not None
    penalised = np.flatnonzero(problem.penalised)
    price, known = price[penalised], np.isin(penalised, columns)
    flow = np.zeros((own.flow.shape[0], penalised.size))
    flow[:, known] = own.flow
    used = (np.abs(flow) * price).max(axis=1)
    needs = np.zeros(problem.costs.size)
    flow[:, ~known], needs[penalised[~known]] = _flows(
        G[:, penalised[~known]] * price[~known], used
    )
    flow[:, ~known] /= price[~known]
    return needs, ClassPoint(own.shares, flow)


def _flows(G: FloatArray, used: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Flows between classes with the divergences G, (classes, columns), and what they need.

    That is the largest ``|M_jk|`` as a share of ``used`` for that pair of classes.
    """
    (K, n), (one, other) = G.shape, pairs(len(G))
    unit = float(used.max(initial=0.0)) or 1.0
    G, used = G / unit, used / unit
    flows, needs = np.zeros((one.size, n)), np.full(n, np.inf)
    left, resistance = np.arange(n), np.ones((one.size, n))
    for _ in range(_FLOWS if used.any() else 0):
        conductance = (used**2 / resistance.T).T
        laplacian = np.zeros((left.size, K, K))
        laplacian[:, one, other] = laplacian[:, other, one] = -conductance.T
        at = np.arange(K)
        laplacian[:, at, at] = -laplacian.sum(axis=2)
        laplacian[:, at, at] = laplacian[:, at, at] * (1.0 + 1e-12) + 1e-300  # else it is singular
        with np.errstate(all="ignore"):  # a class without a budget
            potential = np.linalg.solve(laplacian, G[:, left].T[:, :, None])[:, :, 0].T
            drop = potential[one] - potential[other]
            share = used[:, None] * np.abs(drop) / resistance
        most = np.nan_to_num(share.max(axis=0), nan=np.inf)
        better = most < needs[left]
        flows[:, left[better]] = (conductance * drop)[:, better]
        needs[left[better]] = most[better]
        again = (needs[left] > 1.0) & np.isfinite(most)
        left, resistance = left[again], resistance[:, again] * (0.1 + share[:, again] / most[again])
    return unit * flows, needs


def _gradient(block: Block, shares: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    """``Σ w (p - a) xᵀ``, (classes, columns)."""
    p, a = shares
    return shares, (Sum(block.adjoint(block.weights[:, None] * (p - a)).T),)


def _largest(values: np.ndarray, count: int) -> IndexArray:
    """The places of the largest values, in ascending order."""
    count = min(count, values.size)
    return np.sort(np.argpartition(-values, count - 1)[:count]) if count else np.zeros(0, np.intp)
