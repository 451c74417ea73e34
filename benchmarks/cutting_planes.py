"""Features with domains through cvxpy and Clarabel, by cutting planes: a reference.

    minimise    ελ + Σ w_i t_i    over β, b, λ, t
    subject to  h(z·(β, b)) - λd ≤ t_i     for the pieces (z, d) of sample i,     ‖β_U/c‖_* ≤ λ

A piece is a sample with categories and values put in its row, times its label; d is what that
costs.  Solve with the pieces at hand, ask for each sample which one is worst at the solution, add
it where it is violated, repeat.  With ``pieces="all"``: every combination of categories, ends and
labels at once, for tiny problems.  It shares no code with the library.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

_DUAL_NORMS = {"l1": "inf", "l2": 2, "linf": 1}

#: Violation at which cutting planes stop.
_VIOLATION = 1e-8

#: Far below any gap that is asked for.  Clarabel's own step lengths, and shorter ones where it
#: fails with those (1 of 60 small problems).
_SETTINGS = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10, "max_iter": 200}
_SHORTER = 0.8

Piece = tuple[float, Any, float]  # label, row, cost


@dataclass(frozen=True, eq=False)
class Planes:
    """The optimum over the pieces listed: a bound from below, and at the end the optimum."""

    objective: float
    coef: Any
    intercept: float
    lam: float
    pieces: int
    rounds: int


def cutting_planes(
    X: Any,
    y: Any,
    *,
    epsilon: float,
    kappa: float,
    norm: str = "l1",
    fit_intercept: bool = True,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    sample_weight: Any = None,
    pieces: str = "cutting planes",
    max_iter: int = 100,
) -> Planes:
    """Solve (P') with Clarabel; parameters are those of ``solve``."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    costs = np.ones(X.shape[1]) if feature_costs is None else np.asarray(feature_costs, dtype=float)
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    samples = _Samples(X, np.where(np.asarray(y) > 0, 1.0, -1.0), kappa, costs, categories, bounds)
    present = np.flatnonzero(weights > 0.0).tolist()
    list_of = samples.combinations if pieces == "all" else samples.unmoved
    listed: dict[Any, Piece] = {_key(i, p): p for i in present for p in list_of(i)}
    rounds = 0
    while True:
        rounds += 1
        problem = _Program(listed, samples.kept, costs, norm, fit_intercept)
        x, b, lam, t, value = problem.solve(weights / weights.sum(), epsilon)
        new = {}
        for i in present if pieces != "all" else ():
            piece, worst = samples.worst(i, x, b, lam)
            if worst > t[i] + _VIOLATION and _key(i, piece) not in listed:
                new[_key(i, piece)] = piece
        if not new or rounds == max_iter:
            break
        listed |= new
    return Planes(value, x, b, lam, len(listed), rounds)


def _key(i: int, piece: Piece) -> Any:
    return i, piece[0], piece[1].tobytes()


class _Program:
    """The problem over the pieces listed."""

    def __init__(
        self, listed: dict[Any, Piece], kept: Any, costs: Any, norm: str, fit_intercept: bool
    ) -> None:
        import cvxpy as cp

        self.cp = cp
        self.own = np.array([i for i, _, _ in listed])
        sign = np.array([sign for sign, _, _ in listed.values()])
        rows = np.array([row for _, row, _ in listed.values()])
        cost = np.array([cost for _, _, cost in listed.values()])
        self.x, self.b = cp.Variable(rows.shape[1]), cp.Variable()
        self.lam, self.t = cp.Variable(nonneg=True), cp.Variable(int(self.own.max()) + 1)
        margins = cp.multiply(sign, rows @ self.x + (self.b if fit_intercept else 0.0))
        self.constraints = [
            cp.logistic(-margins) - self.lam * cost <= self.t[self.own],
            self.t >= 0.0,
        ]
        if not fit_intercept:
            self.constraints.append(self.b == 0.0)
        if kept.size:
            theta = cp.multiply(self.x[kept], 1.0 / costs[kept])
            self.constraints.append(cp.norm(theta, _DUAL_NORMS[norm]) <= self.lam)

    def solve(self, weights: Any, epsilon: float) -> tuple[Any, float, float, Any, float]:
        cp = self.cp
        goal = cp.Minimize(epsilon * self.lam + weights[: self.t.size] @ self.t)
        model = cp.Problem(goal, self.constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "Solution may be inaccurate"
            try:
                model.solve(solver=cp.CLARABEL, **_SETTINGS)
            except cp.SolverError:
                model.solve(solver=cp.CLARABEL, **_SETTINGS, max_step_fraction=_SHORTER)
        lam = float(self.lam.value)
        return self.x.value, float(self.b.value), lam, self.t.value, float(model.value)


class _Samples:
    """The samples and what may become of each."""

    def __init__(
        self, X: Any, y: Any, kappa: float, costs: Any, categories: Any, bounds: Any
    ) -> None:
        self.X, self.y, self.kappa = X, y, kappa
        self.labels = (1.0, -1.0) if math.isfinite(kappa) else (1.0,)
        self.groups = [np.asarray(group) for group in categories or ()]
        self.with_none = [bool((X[:, group].sum(axis=1) == 0.0).any()) for group in self.groups]
        low, high = bounds if bounds is not None else (-math.inf, math.inf)
        self.low = np.broadcast_to(low, X.shape[1])
        self.high = np.broadcast_to(high, X.shape[1])
        inside = np.isfinite(self.low) & np.isfinite(self.high) & np.isfinite(costs)
        taken = np.zeros(X.shape[1], dtype=bool)
        for group in self.groups:
            taken[group] = True
        self.bounded = np.flatnonzero(inside & ~taken)
        #: Columns whose moves the norm measures.
        self.kept = np.flatnonzero(np.isfinite(costs) & ~inside & ~taken)
        self.costs = costs

    def unmoved(self, i: int) -> list[Piece]:
        """The sample with its label, and with the other one."""
        return [
            (label * self.y[i], self.X[i], 0.0 if label > 0.0 else self.kappa)
            for label in self.labels
        ]

    def combinations(self, i: int) -> list[Piece]:
        """Every combination of label, categories and ends."""
        choices: list[list[tuple[Any, Any, float]]] = []
        for group, with_none in zip(self.groups, self.with_none, strict=True):
            cost = float(self.costs[group[0]])
            values = [*np.eye(group.size), *([np.zeros(group.size)] if with_none else [])]
            here = self.X[i, group]
            options = [(group, v, 0.0 if (v == here).all() else cost) for v in values]
            choices.append([option for option in options if math.isfinite(option[2])])
        for j in self.bounded:
            here = self.X[i, j]
            ends = {here, self.low[j], self.high[j]}
            choices.append([(j, end, float(self.costs[j]) * abs(end - here)) for end in ends])
        found = []
        for sign, start, flip in self.unmoved(i):
            for chosen in itertools.product(*choices):
                row = start.copy()
                for columns, values, _ in chosen:
                    row[columns] = values
                found.append((sign, row, flip + sum(cost for _, _, cost in chosen)))
        return found

    def worst(self, i: int, x: Any, b: float, lam: float) -> tuple[Piece, float]:
        """The worst piece of a sample: of each label, the best prefix by gain per cost."""
        best: tuple[Piece, float] | None = None
        for sign, start, flip in self.unmoved(i):
            moves: list[tuple[float, float, Any, Any]] = []  # gain, cost, columns, values
            for group, with_none in zip(self.groups, self.with_none, strict=True):
                scores = sign * x[group]
                target = np.zeros(group.size)
                low = float(scores.min())
                if with_none and low >= 0.0:
                    low = 0.0
                else:
                    target[int(scores.argmin())] = 1.0
                gain = float(scores @ start[group]) - low
                moves.append((gain, float(self.costs[group[0]]), group, target))
            for j in self.bounded:
                end = self.low[j] if sign * x[j] > 0.0 else self.high[j]
                distance = abs(float(start[j] - end))
                moves.append((abs(x[j]) * distance, float(self.costs[j]) * distance, j, end))
            moves = [m for m in moves if m[0] > 0.0 and 0.0 < m[1] < math.inf]
            moves.sort(key=lambda move: -move[0] / move[1])
            row, cost = start, flip
            for move in (None, *moves):
                if move is not None:
                    row = row.copy()
                    row[move[2]] = move[3]
                    cost += move[1]
                value = float(np.logaddexp(0.0, -sign * (row @ x + b))) - lam * cost
                if best is None or value > best[1]:
                    best = ((sign, row, cost), value)
        assert best is not None
        return best
