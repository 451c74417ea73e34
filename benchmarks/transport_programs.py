"""Worst and best cases of metrics against linear programs over explicit adversaries.

    python -m benchmarks.transport_programs [--problems 100] [METRIC …]

The adversary of each random problem is written out: how little it costs to bring a row across the
threshold (a linear program over moves of features, for every choice of categories), what a flip of
its label costs, and a transport plan over these options.  Means are linear programs over plans,
ratios linear-fractional ones (Charnes and Cooper 1962).  Brier score, calibration and the least
log-loss take plans over a grid of scores, which is refined around the scores that the plan uses.
Nothing is shared with drlogit.
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import drlogit
from drlogit.robustness.old_metrics import Metric

#: By label and decision: numerator and denominator.
RATIOS = {
    "tpr": (((0, 0), (0, 1)), ((0, 0), (1, 1))),
    "fpr": (((0, 1), (0, 0)), ((1, 1), (0, 0))),
    "precision": (((0, 0), (0, 1)), ((0, 1), (0, 1))),
    "npv": (((1, 0), (0, 0)), ((1, 0), (1, 0))),
}
SMOOTH = ("brier", "calibration", "log_loss")
METRICS = (*RATIOS, "error", "net_benefit", "cost", "levels", *SMOOTH)
DOMAINS = (*RATIOS, "error", "net_benefit", "cost")
NORMS = ("l1", "linf", "l2")

_PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Case:
    """A model of two classes, rows, and a ball; metric and threshold as drlogit takes them."""

    def __init__(self, seed: int, metric: str, domains: bool = False) -> None:
        rng = np.random.default_rng([seed, METRICS.index(metric), int(domains)])
        self.name, n = metric, int(rng.integers(6, 13))
        self.categories: list[list[int]] = []
        numbers = rng.standard_normal((n, 2))
        if domains:
            sizes = (3, 2)
            levels = [rng.integers(0, size, n) for size in sizes]
            coded = [np.eye(size)[level] for size, level in zip(sizes, levels, strict=True)]
            X = np.column_stack([*coded, rng.uniform(-1.0, 1.0, n), numbers[:, 0]])
            self.categories, self.bounded = [[0, 1, 2], [3, 4]], 5
            costs = np.repeat(np.exp(rng.uniform(-1.0, 0.5, 4)), [3, 2, 1, 1])
        else:
            X, costs = numbers, np.exp(rng.uniform(-0.7, 0.7, 2))
        self.X, self.costs, self.norm = X, costs, "l1" if domains else NORMS[seed % 3]
        self.coef, self.intercept = 1.5 * rng.standard_normal(X.shape[1]), rng.normal(0.0, 0.3)
        self.scores = X @ self.coef + self.intercept
        # Both labels on both sides, so that every ratio is defined.
        self.threshold: Any = float(expit(np.median(self.scores) + 0.01))
        order = np.argsort(self.scores)
        self.y = rng.integers(0, 2, n)
        self.y[order[[0, 1, -2, -1]]] = 0, 1, 0, 1
        self.weights = rng.exponential(size=n) + 0.05
        self.kappa = {0: float(rng.choice([0.3, 1.0, 2.5, math.inf])), 1: math.exp(rng.normal())}
        self.epsilon = math.exp(rng.uniform(-4.0, -0.3))
        self.metric: Any = metric
        self.table: Any = None
        if metric == "cost":
            self.table = rng.uniform(-1.0, 3.0, (2, 2))
            self.metric = {(k, d): self.table[k, d] for k in (0, 1) for d in (0, 1)}
        elif metric == "levels":
            self.table = rng.uniform(-1.0, 2.0, (2, 4))
            cuts = sorted((rng.choice(self.scores, 3, False) + 0.01).tolist())
            self.threshold = expit(cuts).tolist()
            self.metric = Metric("cost", self.table, None, tuple(cuts))
        elif metric == "error":
            self.table = 1.0 - np.eye(2)
        elif metric == "net_benefit":
            odds = self.threshold / (1.0 - self.threshold)
            self.table = np.array([[0.0, -odds], [0.0, 1.0]])

    def options(self) -> dict[str, Any]:
        """What drlogit is asked."""
        lower, upper = np.full((2, self.costs.size), [[-np.inf], [np.inf]])
        if self.categories:
            lower[self.bounded], upper[self.bounded] = -1.0, 1.0
        ball = {"categories": self.categories, "bounds": (lower, upper)} if self.categories else {}
        return {
            "threshold": self.threshold, "epsilon": self.epsilon, "kappa": self.kappa,
            "norm": self.norm, "feature_costs": self.costs, "sample_weight": self.weights, **ball,
        }  # fmt: skip

    def ours(self, epsilon: float | None = None) -> drlogit.WorstCase:
        """What drlogit says."""
        options = self.options() | ({} if epsilon is None else {"epsilon": epsilon})
        return drlogit.worst_case(
            (self.coef, self.intercept), self.X, self.y, self.metric, **options
        )

    # --- the adversary's options ----------------------------------------------------------------

    def least_cost(self, row: int, low: float, high: float) -> float:
        """The least cost of features that bring the score of a row between two ends."""
        x, best = self.X[row], math.inf
        choices = [range(len(group)) for group in self.categories]
        for chosen in itertools.product(*choices):
            there, paid = x.copy(), 0.0
            for group, level in zip(self.categories, chosen, strict=True):
                paid += self.costs[group[0]] * (x[group[level]] == 0.0)
                there[group] = np.eye(len(group))[level]
            best = min(best, paid + self._least_move(there, low, high))
        return best

    def _least_move(self, x: Any, low: float, high: float) -> float:
        """The same by moves of numbers alone: a linear program in moves up and down."""
        grouped = [j for group in self.categories for j in group]
        free = [j for j in range(x.size) if j not in grouped]
        score, b, c = float(x @ self.coef + self.intercept), self.coef[free], self.costs[free]
        m = len(free)
        if self.norm == "l2":
            return max(low - score, score - high, 0.0) / float(np.linalg.norm(b / c))
        ends = [(0.0, None)] * (2 * m)
        if self.categories:
            k = free.index(self.bounded)
            ends[k], ends[m + k] = (0.0, 1.0 - x[self.bounded]), (0.0, 1.0 + x[self.bounded])
        rows, limits = [], []
        for sign, end in ((1.0, high), (-1.0, low)):
            if math.isfinite(end):
                rows.append(np.append(sign * np.append(b, -b), 0.0))
                limits.append(sign * (end - score))
        goal = np.append(np.append(c, c), 0.0)
        if self.norm == "linf":
            for j in range(m):
                for side in (j, m + j):
                    row = np.zeros(2 * m + 1)
                    row[side], row[-1] = c[j], -1.0
                    rows.append(row)
                    limits.append(0.0)
            goal = np.append(np.zeros(2 * m), 1.0)
        found = linprog(goal, A_ub=rows, b_ub=limits, bounds=[*ends, (0.0, None)], options=_PRECISE)
        return float(found.fun) if found.status == 0 else math.inf

    def flip_costs(self) -> Any:
        return np.array([self.kappa[int(label)] for label in self.y])

    # --- linear programs over plans -------------------------------------------------------------

    def plan(self, cost: Any, value: Any, below: Any = None, epsilon: float | None = None) -> Any:
        """The largest mean, or ratio of means, and the plan; a column for each option of a row."""
        n, m = cost.shape
        share, within = self.weights / self.weights.sum(), np.isfinite(cost)
        budget = np.where(within, cost, 0.0).ravel()
        radius = self.epsilon if epsilon is None else epsilon
        of_row = np.kron(np.eye(n), np.ones(m))
        ends = [(0.0, None if each else 0.0) for each in within.ravel()]
        if below is None:
            found = linprog(-value.ravel(), A_ub=[budget], b_ub=[radius], A_eq=of_row, b_eq=share,
                            bounds=ends, options=_PRECISE)  # fmt: skip
        else:  # Charnes and Cooper: everything times t, so that the denominator is 1
            found = linprog(
                -np.append(value.ravel(), 0.0), A_ub=[np.append(budget, -radius)], b_ub=[0.0],
                A_eq=np.vstack([np.column_stack([of_row, -share]), np.append(below.ravel(), 0.0)]),
                b_eq=np.append(np.zeros(n), 1.0), bounds=[*ends, (0.0, None)], options=_PRECISE,
            )  # fmt: skip
        assert found.status == 0, found.message
        return -float(found.fun), found.x[: n * m].reshape(n, m)

    def by_program(self) -> tuple[float, float]:
        """The least and the largest value."""
        if self.name in SMOOTH:
            return -self._smooth(-1.0), self._smooth(1.0) if self.name != "log_loss" else math.nan
        cuts = np.concatenate([[-np.inf], np.atleast_1d(self.threshold), [np.inf]])
        with np.errstate(divide="ignore"):
            ends = np.log(cuts[1:-1] / (1.0 - cuts[1:-1]))
        ends = np.concatenate([[-np.inf], ends, [np.inf]])
        n, D = self.y.size, ends.size - 1
        reach = np.array(
            [[self.least_cost(i, *ends[d : d + 2]) for d in range(D)] for i in range(n)]
        )
        kappa = self.flip_costs()[:, None]
        cost = np.concatenate([reach, reach + kappa], axis=1)
        if self.name in RATIOS:
            above, below = np.array(RATIOS[self.name], dtype=float)
        else:
            above, below = self.table, None

        def values(table: Any) -> Any:
            return np.concatenate([table[self.y], table[1 - self.y]], axis=1)

        under = None if below is None else values(below)
        return (
            -self.plan(cost, -values(above), under)[0],
            self.plan(cost, values(above), under)[0],
        )

    def _smooth(self, sign: float) -> float:
        """Plans over grids of scores, finer and finer around those that are used."""
        size = np.abs(self.coef / self.costs)
        rate = {"l1": size.max(), "linf": size.sum(), "l2": np.linalg.norm(size)}[self.norm]
        grid = np.unique(np.concatenate([np.linspace(-25.0, 25.0, 401), self.scores]))
        best, step, kappa = -math.inf, 0.125, self.flip_costs()[:, None]
        for _ in range(4):
            move = np.abs(grid - self.scores[:, None]) / rate
            p = expit(grid)
            by_label = np.array([self._value(p, label) for label in (0, 1)])
            value = sign * np.concatenate([by_label[self.y], by_label[1 - self.y]], axis=1)
            best, plan = self.plan(np.concatenate([move, move + kappa], axis=1), value)
            used = plan.reshape(self.y.size, 2, grid.size).sum(axis=(0, 1)) > 1e-9
            step /= 25.0
            around = (grid[used][:, None] + step * np.arange(-30, 31)).ravel()
            grid = np.unique(np.concatenate([around, self.scores]))
        return best

    def _value(self, p: Any, label: int) -> Any:
        if self.name == "brier":
            return (p - label) ** 2
        if self.name == "calibration":
            return p - label
        return -np.log(np.maximum(p if label else 1.0 - p, 1e-300))


class ClassesCase:
    """A cost matrix of three classes, whose decision is for the largest score."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 99])
        self.n, self.X = int(rng.integers(6, 13)), None
        self.X = rng.standard_normal((self.n, 2))
        self.norm, self.costs = NORMS[seed % 3], np.exp(rng.uniform(-0.7, 0.7, 2))
        self.coef, self.intercept = 1.5 * rng.standard_normal((3, 2)), rng.normal(0.0, 0.3, 3)
        self.y = np.append(np.arange(3), rng.integers(0, 3, self.n - 3))
        self.weights = rng.exponential(size=self.n) + 0.05
        self.kappa = dict(enumerate(np.exp(rng.normal(size=3)).tolist()))
        self.epsilon, self.table = math.exp(rng.uniform(-4.0, -0.3)), rng.uniform(-1.0, 3.0, (3, 3))
        np.fill_diagonal(self.table, 0.0)

    def ours(self) -> drlogit.WorstCase:
        model = LogisticRegression()
        model.coef_, model.intercept_, model.classes_ = self.coef, self.intercept, np.arange(3)
        metric = {(k, d): self.table[k, d] for k in range(3) for d in range(3)}
        return drlogit.worst_case(
            model, self.X, self.y, metric, epsilon=self.epsilon, kappa=self.kappa, norm=self.norm,
            feature_costs=self.costs, sample_weight=self.weights,
        )  # fmt: skip

    def by_program(self) -> tuple[float, float]:
        reach = np.array([[self._least_move(i, d) for d in range(3)] for i in range(self.n)])
        flips = np.array([[0.0 if k == y else self.kappa[y] for k in range(3)] for y in self.y])
        cost = np.concatenate([reach + flips[:, k, None] for k in range(3)], axis=1)
        value = np.tile(np.concatenate(list(self.table)), (self.n, 1))
        plan = Case.plan
        return -plan(self, cost, -value)[0], plan(self, cost, value)[0]  # type: ignore[arg-type]

    def _least_move(self, row: int, d: int) -> float:
        x, m = self.X[row], 2
        scores = self.coef @ x + self.intercept
        others = [j for j in range(3) if j != d]
        up = np.array([self.coef[j] - self.coef[d] for j in others])
        rows = [*np.column_stack([up, -up, np.zeros(2)])]
        limits = [scores[d] - scores[j] for j in others]
        if self.norm == "l2":  # the nearest point is that of no, one or both constraints
            A, b, found = up / self.costs, np.array(limits), [math.inf]
            for active in ([], [0], [1], [0, 1]):
                move = np.linalg.pinv(A[active]) @ b[active]
                if (A @ move <= b + 1e-12).all():
                    found.append(float(np.linalg.norm(move)))
            return min(found)
        goal = np.append(np.tile(self.costs, 2), 0.0)
        if self.norm == "linf":
            for j, side in itertools.product(range(m), (0, m)):
                row_ = np.zeros(2 * m + 1)
                row_[side + j], row_[-1] = self.costs[j], -1.0
                rows.append(row_)
                limits.append(0.0)
            goal = np.append(np.zeros(2 * m), 1.0)
        found = linprog(goal, A_ub=rows, b_ub=limits, options=_PRECISE)
        return float(found.fun) if found.status == 0 else math.inf


def difference(case: Case | ClassesCase) -> float:
    """How far both ends are from those of the programs."""
    low, high = case.by_program()
    found = case.ours()
    return max(abs(found.low - low), 0.0 if math.isnan(high) else abs(found.high - high))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metrics", nargs="*", metavar="METRIC")
    parser.add_argument("--problems", type=int, default=100)
    options = parser.parse_args()
    print("| metric | features | problems | largest difference |\n|---|---|---|---|")
    for metric in options.metrics or METRICS:
        for domains in (False, True) if metric in DOMAINS else (False,):
            worst = max(difference(Case(k, metric, domains)) for k in range(options.problems))
            kind = "categories, bounds" if domains else "numbers"
            print(f"| {metric} | {kind} | {options.problems} | {worst:.1e} |", flush=True)
    if not options.metrics:
        worst = max(difference(ClassesCase(k)) for k in range(options.problems))
        print(f"| cost, three classes | numbers | {options.problems} | {worst:.1e} |")


if __name__ == "__main__":
    main()
