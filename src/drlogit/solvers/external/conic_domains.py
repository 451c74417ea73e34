"""Features with domains through cvxpy and Clarabel, by cutting planes: the reference solver.

    minimise    ελ + Σ w_i t_i    over β, b, λ, t
    subject to  h(z·(β, b)) - λd ≤ t_i     for the pieces (z, d) of sample i,     ‖β_U/c‖_* ≤ λ

A piece here is a sample with categories and values put in its row, times its label.  *Cutting
planes*: solve with the pieces at hand, ask for each sample which one is worst at the solution,
add it where it is violated, repeat.  *All*: all pieces at once, every combination of categories,
ends and labels, for tiny problems.  Nothing is shared with the compiled oracle or its interior
point but the description of the domains, so that each can be tested against the other.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...dual.pieces import PieceMasses
from ...problem.domain_loss import prices_of
from ...problem.domains import Domains
from ...problem.losses import flip_probability, log_loss
from ...problem.problem import Problem
from ...problem.result import Monitor, Result, Solution, Status
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from .conic import _DUAL_NORMS, _import_cvxpy

#: Violation at which cutting planes stop, as a share of tol.
_VIOLATION = 0.01

#: Far below any gap that is asked for.  Unlike in ``conic``, Clarabel's own limits for "almost" and
#: its own step lengths: with those of ``conic`` 2 of 24 small problems ended 5e-3 from optimal.
_SETTINGS: dict[str, Any] = {
    "tol_gap_abs": 1e-10,
    "tol_gap_rel": 1e-10,
    "tol_feas": 1e-10,
    "max_iter": 200,
}

#: Steps, as shares of the longest ones, where Clarabel fails with its own (1 of 60 small problems).
_SHORTER = 0.8

#: PieceMasses of one sample up to which all of them are listed.
_LIMIT = 20_000


def conic_domains(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    pieces: str = "cutting planes",
    max_iter: int = 100,
    start: Result | None = None,
) -> Solution:
    """Solve (P') with Clarabel.

    Parameters
    ----------
    problem, tol, monitor
        As for every solver.
    pieces : {"cutting planes", "all"}
        Found as needed, or all combinations at once.
    max_iter : int
        Limit on rounds of cutting planes.
    start
        Not used.
    """
    if pieces not in ("cutting planes", "all"):
        raise ValueError(f"pieces must be 'cutting planes' or 'all', got {pieces!r}")
    samples = _Samples(problem)
    listed: dict[tuple[int, float, bytes], tuple[FloatArray, float]] = {}
    if pieces == "all":
        for i in samples.present:
            for sign, row, cost in samples.combinations(i):
                listed[(i, sign, row.tobytes())] = (row, cost)
    else:
        for i in samples.present:
            for sign, row, cost in samples.unmoved(i):
                listed[(i, sign, row.tobytes())] = (row, cost)
    status, n_iter = Status.MAX_ITER, 0
    best, coefficients = math.inf, np.zeros(problem.costs.size)
    masses = np.zeros(0)
    for _ in range(max_iter):
        x, lam, t, masses, accurate = _solve(problem, samples, listed)
        n_iter += 1
        value = prices_of(problem.rows, problem.cost, x).value(problem.epsilon)
        if value < best:
            best, coefficients = value, x
        if monitor.report(n_iter, best, 0.0, lam):
            status = Status.STOPPED
            break
        new = {}
        for i in samples.present if pieces != "all" else ():
            sign, row, cost, worst = samples.worst(i, x, lam)
            key = (i, sign, row.tobytes())
            if worst > t[i] + _VIOLATION * tol and key not in listed:
                new[key] = (row, cost)
        if not new:
            status = Status.OPTIMAL if accurate else Status.STALLED
            break
        listed |= new
    point = samples.dual_point(list(listed)[: masses.size], listed, masses, x)
    info: dict[str, Any] = {"solver": "conic", "pieces": len(listed)}
    return Solution(coefficients, status, n_iter, info=info, pieces=point)


def _solve(
    problem: Problem,
    samples: _Samples,
    listed: dict[tuple[int, float, bytes], tuple[FloatArray, float]],
) -> tuple[FloatArray, float, FloatArray, FloatArray, bool]:
    """Coefficients, λ, t and the multipliers of the pieces."""
    cp = _import_cvxpy()
    own = np.array([i for i, _, _ in listed])
    Z = np.array([sign * row for (_, sign, _), (row, _) in listed.items()])
    cost = np.array([cost for _, cost in listed.values()])
    x, lam = cp.Variable(problem.costs.size), cp.Variable(nonneg=True)
    t = cp.Variable(samples.y.size)
    pieces = cp.logistic(-(Z @ x)) - lam * cost <= t[own]
    constraints = [pieces, t >= 0.0]
    kept = np.flatnonzero(problem.penalised)
    if kept.size:
        theta = cp.multiply(x[kept], 1.0 / problem.costs[kept])
        constraints.append(cp.norm(theta, _DUAL_NORMS[problem.norm.name]) <= lam)
    model = cp.Problem(cp.Minimize(problem.epsilon * lam + samples.w @ t), constraints)
    with warnings.catch_warnings():
        # "Solution may be inaccurate": the certificate says so in figures.
        warnings.simplefilter("ignore")
        try:
            model.solve(solver=cp.CLARABEL, **_SETTINGS)
        except cp.SolverError:
            model.solve(solver=cp.CLARABEL, **_SETTINGS, max_step_fraction=_SHORTER)
    accurate = model.status == "optimal"
    return x.value, float(lam.value), t.value, np.asarray(pieces.dual_value), accurate


class _Samples:
    """The samples in memory, dense, and their moves by plain Python."""

    def __init__(self, problem: Problem) -> None:
        block = problem.rows.together()
        X = np.asarray(block.X.toarray() if sp.issparse(block.X) else block.X, dtype=np.float64)
        self.X = np.column_stack([X, np.ones(X.shape[0])]) if problem.fit_intercept else X
        self.y, self.w = block.y, block.weights
        self.problem = problem
        domains = problem.domains
        assert domains is not None
        self.domains: Domains = domains
        self.labels = (1.0, -1.0) if math.isfinite(problem.kappa) else (1.0,)
        self.present = np.flatnonzero(self.w > 0.0).tolist()

    def unmoved(self, i: int) -> list[tuple[float, FloatArray, float]]:
        return [
            (label * self.y[i], self.X[i], 0.0 if label > 0.0 else self.problem.kappa)
            for label in self.labels
        ]

    def combinations(self, i: int) -> list[tuple[float, FloatArray, float]]:
        """Every combination of label, categories and ends."""
        domains = self.domains
        choices: list[list[tuple[list[int], list[float], float]]] = []
        for g, group in enumerate(domains.groups):
            columns = group.tolist()
            values = [[float(k == c) for k in columns] for c in columns]
            if domains.with_none[g]:
                values.append([0.0] * len(columns))
            here = self.X[i, columns].tolist()
            cost = float(domains.group_costs[g])
            choices.append([(columns, v, 0.0 if v == here else cost) for v in values])
        for j, column in enumerate(domains.bounded.tolist()):
            here = float(self.X[i, column])
            ends = {here, float(domains.lower[j]), float(domains.upper[j])}
            price = float(domains.bounded_costs[j])
            choices.append([([column], [end], price * abs(end - here)) for end in ends])
        if math.prod(map(len, choices)) > _LIMIT:
            raise ValueError(
                f"pieces='all' is for at most {_LIMIT} combinations per sample, got "
                f"{math.prod(map(len, choices))}"
            )
        found = []
        for sign, start, flip in self.unmoved(i):
            for chosen in itertools.product(*choices):
                row = start.copy()
                for columns, chosen_values, _ in chosen:
                    row[columns] = chosen_values
                found.append((sign, row, flip + sum(cost for _, _, cost in chosen)))
        return found

    def worst(self, i: int, x: FloatArray, lam: float) -> tuple[float, FloatArray, float, float]:
        """The worst piece of a sample: of each label, the best prefix by gain per cost."""
        domains = self.domains
        best: tuple[float, FloatArray, float, float] | None = None
        for sign, start, flip in self.unmoved(i):
            moves = []
            for g, group in enumerate(domains.groups):
                scores = sign * x[group]
                here = float(scores @ start[group])
                target = np.zeros(group.size)
                low = float(scores.min())
                if not (domains.with_none[g] and low >= 0.0):
                    target[int(scores.argmin())] = 1.0
                else:
                    low = 0.0
                moves.append((here - low, float(domains.group_costs[g]), group, target))
            for j, column in enumerate(domains.bounded.tolist()):
                end = domains.lower[j] if sign * x[column] > 0.0 else domains.upper[j]
                distance = abs(float(start[column] - end))
                cost = float(domains.bounded_costs[j]) * distance
                moves.append((abs(x[column]) * distance, cost, np.array([column]), np.array([end])))
            moves = [move for move in moves if move[0] > 0.0 and move[1] > 0.0]
            moves.sort(key=lambda move: -move[0] / move[1])
            row, cost = start.copy(), flip
            for move in [None, *moves]:
                if move is not None:
                    row = row.copy()
                    row[move[2]] = move[3]
                    cost += move[1]
                value = float(log_loss(np.array(sign * (row @ x)))) - lam * cost
                if best is None or value > best[3]:
                    best = (sign, row, cost, value)
        assert best is not None
        return best

    def dual_point(
        self,
        keys: list[tuple[int, float, bytes]],
        listed: dict[tuple[int, float, bytes], tuple[FloatArray, float]],
        masses: FloatArray,
        x: FloatArray,
    ) -> Any:
        """Clarabel's multipliers as a dual point, for the certificate."""
        domains = self.domains
        own = np.array([i for i, _, _ in keys], dtype=np.intp)
        rows = np.array([listed[key][0] for key in keys])
        sign = np.array([key[1] for key in keys])
        moved = [np.any(rows[:, g] != self.X[own][:, g], axis=1) for g in domains.groups]
        for column in domains.bounded.tolist():
            change = rows[:, column] - self.X[own, column]
            moved += [change < 0.0, change > 0.0]
        items = np.packbits(np.stack(moved, axis=1), axis=1)
        q = np.maximum(masses, 0.0)
        s = flip_probability(sign * (rows @ x))
        whole = PieceMasses(own, sign != self.y[own], items, q, q * s)
        return self.problem.rows.run(_part, self.problem.rows.offsets, whole)[0]


def _part(block: Block, first: int, whole: PieceMasses) -> tuple[PieceMasses, tuple[()]]:
    """A block's part of the dual point."""
    first = int(first)
    inside = np.flatnonzero((whole.own >= first) & (whole.own < first + block.y.size))
    part = whole.picked(inside)
    return part._replace(own=part.own - first), ()
