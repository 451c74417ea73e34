"""Worst cases of metrics against linear programs over explicit adversaries.

    python -m benchmarks.transport_programs [--problems 300] [METRIC …]

The adversary of each random problem is written out: what it costs to bring a row across the
threshold (a linear program over moves of numbers, for every choice of categories), what a flip of
its label costs, and a transport plan over these options.  Means are linear programs over plans,
ratios linear-fractional ones (Charnes and Cooper 1962), and breaking points programs for the least
budget.  The log-loss has a program for its dual, with a row for every move within the domains.

Half of the problems have values on a coarse grid, so that rows lie exactly at the threshold, moves
end exactly there, rates are equal, denominators vanish, and limits are the ends of the range.
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

import drlogit

#: By label and decision: numerator and denominator.
RATIOS = {
    "recall": (((0, 0), (0, 1)), ((0, 0), (1, 1))),
    "fpr": (((0, 1), (0, 0)), ((1, 1), (0, 0))),
    "precision": (((0, 0), (0, 1)), ((0, 1), (0, 1))),
    "npv": (((1, 0), (0, 0)), ((1, 0), (1, 0))),
}
BENEFITS = ("recall", "precision", "npv", "net_benefit")
METRICS = (*RATIOS, "error", "net_benefit", "cost", "log_loss")
NORMS = ("l1", "l2", "linf")

_PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Case:
    """A model of two classes, rows, and a ball."""

    def __init__(self, seed: int, metric: str) -> None:
        rng = np.random.default_rng([seed, METRICS.index(metric)])
        self.name, self.grid, self.domains = metric, seed % 2 == 0, seed % 4 > 1
        n = self.n = int(rng.integers(5, 11))
        numbers = self._numbers(rng, (n, 2))
        self.groups: list[list[int]] = []
        self.bounded: list[int] = []
        if self.domains:
            sizes = (3, 2)
            levels = [rng.integers(0, size, n) for size in sizes]
            coded = [np.eye(size)[level] for size, level in zip(sizes, levels, strict=True)]
            numbers = np.clip(numbers, -1.0, 1.0)
            self.groups = [[0, 1, 2], [3, 4]]
            self.bounded = [5, 6] if rng.random() < 0.5 else [5]
            X = np.column_stack([*coded, numbers])
        else:
            X = numbers
        self.X, self.norm = X, NORMS[seed // 4 % 3]
        self.coef = self._numbers(rng, X.shape[1])
        self.intercept = float(self._numbers(rng, 1)[0]) / 2.0
        if rng.random() < 0.1:
            self.coef[:] = 0.0  # a constant model
        each = self._positive(rng, X.shape[1])
        for group in self.groups:
            each[group] = each[group[0]]
        each[rng.random(X.shape[1]) < 0.1] = math.inf
        for group in self.groups:
            each[group] = each[group[0]]
        self.costs = each
        self.scores = X @ self.coef + self.intercept
        self.pos_label = int(rng.random() < 0.7)
        self.threshold = 0.5
        if not self.grid:
            self.threshold = float(expit(np.median(self.scores) + 0.01))
        if rng.random() < 0.05:
            self.threshold = float(rng.integers(0, 2))
        if metric == "net_benefit":
            self.threshold = min(max(self.threshold, 0.05), 0.95)
        self.y = rng.integers(0, 2, n)
        self.weights = rng.integers(0, 4, n) / 1.0 if self.grid else rng.exponential(size=n) + 0.05
        if rng.random() < 0.2:  # one class has no weight
            self.weights[self.y == rng.integers(0, 2)] = 0.0
        if len(set(self.y.tolist())) == 1:
            self.y = np.append(self.y[:-1], 1 - self.y[0])
        if not self.weights.any():
            self.weights[0] = 1.0
        flips, radii = [0.5, 1.0, 2.0, math.inf], [0.25, 0.5, 1.0, 2.0, 4.0]
        self.kappa = {label: float(rng.choice(flips)) for label in (0, 1)}
        self.epsilon = float(rng.choice(radii))
        if not self.grid:
            self.kappa = {k: v * math.exp(rng.normal(0.0, 0.3)) for k, v in self.kappa.items()}
            self.epsilon = math.exp(rng.uniform(-4.0, 1.0))
        self.metric: Any = metric
        self.below: Any = None
        if metric == "cost":
            self.table = self._numbers(rng, (2, 2))
            names = (1 - self.pos_label, self.pos_label)
            self.metric = {(names[k], names[d]): self.table[k, d] for k in (0, 1) for d in (0, 1)}
        elif metric == "net_benefit":
            odds = self.threshold / (1.0 - self.threshold)
            self.table = np.array([[0.0, -odds], [0.0, 1.0]])
        elif metric in RATIOS:
            self.table, self.below = np.array(RATIOS[metric], dtype=float)
        else:
            self.table = 1.0 - np.eye(2)
        self.sign = -1.0 if metric in BENEFITS else 1.0

    def _numbers(self, rng: Any, shape: Any) -> Any:
        if self.grid:
            return rng.integers(-2, 3, shape) / 2.0
        return rng.standard_normal(shape)

    def _positive(self, rng: Any, size: int) -> Any:
        return (
            rng.choice([0.5, 1.0, 2.0], size) if self.grid else np.exp(rng.uniform(-0.7, 0.7, size))
        )

    @property
    def share(self) -> Any:
        return self.weights / self.weights.sum()

    def ball(self) -> drlogit.Ball:
        """The ball as drlogit takes it."""
        bounds = dict.fromkeys(self.bounded, (-1.0, 1.0)) or None
        return drlogit.Ball(
            self.epsilon, self.kappa, norm=self.norm, feature_costs=self.costs,
            categories=self.groups or None, bounds=bounds,
        )  # fmt: skip

    def ours(self) -> Any:
        """What drlogit says."""
        asked = {} if self.name == "log_loss" else {"threshold": self.threshold}
        return drlogit.worst_case(
            (self.coef, self.intercept), self.X, self.y, self.metric, ball=self.ball(),
            pos_label=self.pos_label, sample_weight=self.weights, **asked,
        )  # fmt: skip

    # --- the adversary's options ----------------------------------------------------------------

    @property
    def numbers(self) -> list[int]:
        return [j for j in range(self.coef.size) if not any(j in group for group in self.groups)]

    def reached(self, row: int) -> Any:
        """The rows that changes of categories lead to, and their costs."""
        for chosen in itertools.product(*(range(len(group)) for group in self.groups)):
            there, paid = self.X[row].copy(), 0.0
            for group, level in zip(self.groups, chosen, strict=True):
                if there[group[level]] == 0.0:
                    paid += self.costs[group[0]]
                there[group] = np.eye(len(group))[level]
            if math.isfinite(paid):
                yield there, paid

    def crossing(self, row: int, up: bool, beyond: bool) -> float:
        """The least cost of a score at the cut or, in the limit, beyond it."""
        cut = math.log(self.threshold / (1.0 - self.threshold)) if 0 < self.threshold < 1 else None
        if cut is None:
            return math.inf
        cut = cut if self.pos_label else -cut
        sign = 1.0 if up else -1.0
        best = math.inf
        for there, paid in self.reached(row):
            need = sign * (cut - float(there @ self.coef + self.intercept))
            room = self._room(there, sign)
            slack = 1e-11
            if (need >= room - slack) if beyond else (need > room + slack):
                continue
            best = min(best, paid + (self._least_move(there, sign, need) if need > slack else 0.0))
        return best

    def _room(self, x: Any, sign: float) -> float:
        """How far numbers can move the score."""
        total = 0.0
        for j in self.numbers:
            if not self.coef[j] or math.isinf(self.costs[j]):
                continue
            if j not in self.bounded:
                return math.inf
            up = sign * self.coef[j] > 0.0
            total += abs(self.coef[j]) * (1.0 - x[j] if up else 1.0 + x[j])
        return total

    def _least_move(self, x: Any, sign: float, need: float) -> float:
        """The least cost of moves of numbers that gain ``need``: a linear program."""
        free = [j for j in self.numbers if math.isfinite(self.costs[j]) and self.coef[j]]
        gain, cost = np.abs(self.coef[free]), self.costs[free]
        own = np.array([j in self.bounded for j in free], dtype=bool)
        up = sign * self.coef[free] > 0.0
        room = np.where(own, np.where(up, 1.0 - x[free], 1.0 + x[free]), np.inf)
        if self.norm == "l2" and (~own).any():  # the unbounded ones together are one feature
            rate = float(np.linalg.norm(gain[~own] / cost[~own]))
            gain, cost = np.append(gain[own], rate), np.append(cost[own], 1.0)
            room, own = np.append(room[own], np.inf), np.append(own[own], False)
        m = len(gain)
        goal, rows, limits = np.append(cost, 0.0), [np.append(-gain, 0.0)], [-need]
        if self.norm == "linf":
            goal = np.append(np.where(own, cost, 0.0), 1.0)
            for j in np.flatnonzero(~own):
                row = np.zeros(m + 1)
                row[j], row[-1] = cost[j], -1.0
                rows.append(row)
                limits.append(0.0)
        ends = [(0.0, r if math.isfinite(r) else None) for r in room] + [(0.0, None)]
        found = linprog(goal, A_ub=rows, b_ub=limits, bounds=ends, options=_PRECISE)
        return float(found.fun)

    def options(self) -> tuple[Any, Any, Any]:
        """Label and decision of each row, and the costs of its four options."""
        turned = 1.0 if self.pos_label else -1.0
        decided = (expit(turned * self.scores) >= self.threshold) & (self.threshold < 1.0)
        label, cost = self.y == self.pos_label, np.empty((self.n, 2, 2))
        for i in range(self.n):
            # A positive decision includes the cut, so a row has to go beyond it to lose one.
            far = self.crossing(i, up=bool(decided[i]) != (turned > 0.0), beyond=bool(decided[i]))
            flip = self.kappa[int(self.y[i])]
            for k, d in itertools.product((0, 1), (0, 1)):
                cost[i, k, d] = flip * (k != label[i]) if k != label[i] else 0.0
                cost[i, k, d] += far if d != decided[i] else 0.0
        return label.astype(int), decided.astype(int), cost.reshape(self.n, 4)

    @property
    def defined(self) -> bool:
        """Whether some row counts for the denominator of a ratio."""
        label, decided, _ = self.options()
        return self.below is None or float(self.share @ self.below[label, decided]) > 0.0

    # --- linear programs over plans -------------------------------------------------------------

    def by_program(self, sign: float) -> float:
        """The largest (sign 1) or least (-1) value."""
        if self.name == "log_loss":
            return self._loss()
        *_, cost = self.options()
        within, of_row = np.isfinite(cost), np.kron(np.eye(self.n), np.ones(4))
        budget = np.where(within, cost, 0.0).ravel()
        ends = [(0.0, None if each else 0.0) for each in within.ravel()]
        value = np.tile(sign * self.table.ravel(), self.n)
        if self.below is None:
            found = linprog(-value, A_ub=[budget], b_ub=[self.epsilon], A_eq=of_row,
                            b_eq=self.share, bounds=ends, options=_PRECISE)  # fmt: skip
        else:  # Charnes and Cooper: everything times t, so that the denominator is 1
            below = np.tile(self.below.ravel(), self.n)
            found = linprog(
                -np.append(value, 0.0), A_ub=[np.append(budget, -self.epsilon)], b_ub=[0.0],
                A_eq=np.vstack([np.column_stack([of_row, -self.share]), np.append(below, 0.0)]),
                b_eq=np.append(np.zeros(self.n), 1.0), bounds=[*ends, (0.0, None)],
                options=_PRECISE,
            )  # fmt: skip
        assert found.status == 0, found.message
        return -sign * float(found.fun)

    def radius(self, limit: float) -> float:
        """The least radius at which the worst value reaches a limit; inf if none does."""
        *_, cost = self.options()
        within, of_row = np.isfinite(cost), np.kron(np.eye(self.n), np.ones(4))
        budget = np.where(within, cost, 0.0).ravel()
        ends = [(0.0, None if each else 0.0) for each in within.ravel()]
        table = self.table if self.below is None else self.table - limit * self.below
        value = np.tile(self.sign * table.ravel(), self.n)
        least = self.sign * limit if self.below is None else 0.0
        asked = {"A_ub": [-value], "b_ub": [1e-12 - least], "A_eq": of_row, "b_eq": self.share,
                 "bounds": ends, "options": _PRECISE}  # fmt: skip
        if self.below is not None:  # some distribution with a denominator has to be there
            most = linprog(-np.tile(self.below.ravel(), self.n), **asked)
            if most.status != 0 or -most.fun < 1e-9:
                return math.inf
        found = linprog(budget, **asked)
        return float(found.fun) if found.status == 0 else math.inf

    def _loss(self) -> float:
        """The dual program: ``ελ + Σ w r``, with a row for each label and move of a row."""
        rows, limits = [], []
        for i, label in itertools.product(range(self.n), (0, 1)):
            flip = self.kappa[int(self.y[i])] if label != self.y[i] else 0.0
            for there, paid in self.reached(i) if math.isfinite(flip) else ():
                moving = [j for j in self.bounded if math.isfinite(self.costs[j])]
                for ends in itertools.product((None, -1.0, 1.0), repeat=len(moving)):
                    x, cost = there.copy(), paid + flip
                    for j, end in zip(moving, ends, strict=True):
                        if end is not None:
                            cost += self.costs[j] * abs(end - x[j])
                            x[j] = end
                    score = float(x @ self.coef + self.intercept)
                    loss = float(np.logaddexp(0.0, -score if label else score))
                    row = np.zeros(self.n + 1)
                    row[i], row[-1] = -1.0, -cost
                    rows.append(row)
                    limits.append(-loss)
        free = [j for j in self.numbers if j not in self.bounded and math.isfinite(self.costs[j])]
        size = np.abs(self.coef[free] / self.costs[free])
        rate = {"l1": size.max(initial=0.0), "linf": size.sum(), "l2": np.linalg.norm(size)}
        goal = np.append(self.share, self.epsilon)
        ends_ = [(0.0, None)] * self.n + [(float(rate[self.norm]), None)]
        found = linprog(goal, A_ub=rows, b_ub=limits, bounds=ends_, options=_PRECISE)
        return float(found.fun)

    # --- a distribution, judged by its points ---------------------------------------------------

    def paid(self, found: Any, points: Any) -> Any:
        """What the changes of each atom cost, from its points and its label."""
        start = self.X[found.index]
        cost = np.where(found.flipped, [self.kappa[int(k)] for k in self.y[found.index]], 0.0)
        moved = points - start
        for group in self.groups:
            assert np.isin(points[:, group], (0.0, 1.0)).all()
            assert (points[:, group].sum(axis=1) == 1.0).all()
            changed = np.abs(moved[:, group]).sum(axis=1) > 0.0
            cost = cost + np.where(changed, self.costs[group[0]], 0.0)
        for j in self.bounded:
            assert (np.abs(points[:, j]) <= 1.0 + 1e-12).all()
            cost = cost + np.where(moved[:, j] != 0.0, np.abs(moved[:, j]), 0.0) * np.where(
                moved[:, j] != 0.0, self.costs[j], 0.0)  # fmt: skip
        free = [j for j in self.numbers if j not in self.bounded]
        lengths = np.where(moved[:, free] != 0.0, np.abs(moved[:, free]), 0.0)
        lengths = lengths * np.where(np.isfinite(self.costs[free]), self.costs[free], 0.0)
        assert not moved[:, [j for j in free if math.isinf(self.costs[j])]].any()
        of_norm = {"l1": lengths.sum(axis=1), "linf": lengths.max(axis=1, initial=0.0),
                   "l2": np.linalg.norm(lengths, axis=1)}  # fmt: skip
        return cost + of_norm[self.norm]

    def attained(self, found: Any, points: Any) -> float:
        """The metric under a distribution."""
        score = points @ self.coef + self.intercept
        label = found.label
        if self.name == "log_loss":
            return float(found.mass @ np.logaddexp(0.0, np.where(label == 1, -score, score)))
        turned = 1.0 if self.pos_label else -1.0
        decided = (expit(turned * score) >= self.threshold) & (self.threshold < 1.0)
        cell = 2 * (label == self.pos_label) + decided
        above = float(found.mass @ self.table.ravel()[cell])
        return above if self.below is None else above / float(found.mass @ self.below.ravel()[cell])


def judge(case: Case) -> dict[str, float]:
    """How far drlogit is from the programs, for values, breaking points and distributions."""
    if not case.defined:
        return {}
    found = case.ours()
    worst = case.by_program(case.sign)
    errors = {"value": abs(found.value - worst) / max(1.0, abs(worst))}
    assert found.exact
    if case.name != "log_loss":
        errors["best"] = abs(found.best - case.by_program(-case.sign))
    else:
        assert found.best <= found.nominal
    distribution = found.distribution()
    points = np.asarray(distribution.points(case.X))
    paid = float(distribution.mass @ case.paid(distribution, points))
    size = max(1.0, case.epsilon)
    errors["budget"] = max(paid - case.epsilon, 0.0) / size
    errors["stated"] = abs(paid - distribution.transport_cost) / size
    share = np.bincount(distribution.index, distribution.mass, minlength=case.n)
    errors["mass"] = float(np.abs(share - case.share).max())
    attained = case.attained(distribution, points)
    errors["attained"] = max(
        abs(attained - found.value) - (1e-4 if case.name == "log_loss" else 0.0), 0.0
    )
    errors["claimed"] = abs(attained - distribution.value)
    if case.name == "log_loss":
        limits = [0.5 * (found.nominal + found.value), found.value]
    else:
        ends = [1.0, 0.0] if case.below is not None or case.name == "error" else [
            float(case.table.max()), float(case.table.min())]  # fmt: skip
        limits = [*ends, 0.5 * (found.nominal + found.value), found.value]
    for k, limit in enumerate(limits):
        radius = found.breaking_point(limit).epsilon
        if case.name != "log_loss":
            expected = case.radius(limit)
            apart = 0.0 if radius == expected else abs(radius - expected) / max(1.0, expected)
            errors[f"radius {k}"] = apart
        if math.isfinite(radius) and radius > 0.0:
            case_epsilon, case.epsilon = case.epsilon, radius * (1.0 + 1e-7) + 1e-9
            there = case.ours().value
            case.epsilon = case_epsilon
            errors[f"inverse {k}"] = max(case.sign * (limit - there), 0.0)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metrics", nargs="*", metavar="METRIC")
    parser.add_argument("--problems", type=int, default=300)
    options = parser.parse_args()
    print("| metric | problems | value, best | attained | budget | radius | inverse |")
    print("|---|---|---|---|---|---|---|")
    for metric in options.metrics or METRICS:
        found: dict[str, float] = {}
        for seed in range(options.problems):
            for name, error in judge(Case(seed, metric)).items():
                key = name.split()[0]
                if error > max(found.get(key, 0.0), 1e-7):
                    print(f"  {metric} {seed} {name} {error:.3g}")
                found[key] = max(found.get(key, 0.0), error)
        shown = [max(found.get("value", 0.0), found.get("best", 0.0))]
        shown += [max(found[key] for key in ("attained", "claimed", "mass"))]
        shown += [max(found["budget"], found["stated"]), found.get("radius", 0.0), found["inverse"]]
        print(f"| {metric} | {options.problems} | {' | '.join(f'{e:.1e}' for e in shown)} |")


if __name__ == "__main__":
    main()
