"""Is any certificate false?  Generated problems, judged with fifty digits.

    python -m benchmarks.false_bounds [--kind ordinary degenerate …] [--count 600] [--first 0]

The judge shares nothing with the library.  It evaluates the worst-case loss of the model returned
with fifty digits: an objective further below it than the rounding of the model's own coefficients
accounts for is false.  Then it takes the model of a second fit, at a
tolerance of 1e-10, too, and improves both (of two classes) by Newton's method on the free
coefficients within the class of models that bounds speak of (``docs/algorithm.md``).  A bound
above the value of any such model is false.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import mpmath as mp
import numpy as np

import drlogit
from benchmarks.problems import SOURCES, Generated

DIGITS = 50
mp.mp.dps = DIGITS

#: Kinds that are small enough.
KINDS = ("ordinary", "degenerate", "classes", "labels")

#: Log-odds per standard deviation that models of the class have at most, less a hair.
ADMITTED = mp.mpf(10_000) * (1 - mp.mpf(10) ** -6)

#: Columns with a smaller root mean square count as zero.
NOTHING = 1e-150


def prices_of(problem: Generated) -> list[list[Any]]:
    """What each label of each sample costs."""
    names, kappa = np.unique(problem.y).tolist(), problem.options["kappa"]
    if isinstance(kappa, dict):
        kappa = np.array([kappa[label] for label in problem.y.tolist()])
    kappa = np.asarray(kappa, dtype=float)
    codes = np.searchsorted(names, problem.y)
    kappa = np.broadcast_to(kappa.reshape(-1, 1), (codes.size, len(names))).copy()
    kappa[np.arange(codes.size), codes] = 0.0
    return [[mp.mpf(float(price)) for price in row] for row in kappa]


class Judge:
    """A problem in fifty digits: the value of models, and Newton's method on free coefficients."""

    def __init__(self, problem: Generated) -> None:
        X, options = problem.X, problem.options
        self.n_samples, self.n_features = X.shape
        self.epsilon = mp.mpf(options["epsilon"])
        self.kappa = [max(each) for each in prices_of(problem)]
        self.norm, self.intercept = options["norm"], options["fit_intercept"]
        self.signs = [1 if label > 0 else -1 for label in problem.y]
        self.rows = [[mp.mpf(float(x)) for x in row] for row in X]
        weights = [mp.mpf(float(w)) for w in options.get("sample_weight", np.ones(len(X)))]
        self.weights = [w / mp.fsum(weights) for w in weights]
        costs = options["feature_costs"]
        self.costs = [mp.mpf(float(c)) for c in (np.ones(X.shape[1]) if costs is None else costs)]
        self.groups = options.get("categories") or []
        grouped = {j for group in self.groups for j in group}
        lower, upper = options.get("bounds") or (np.full(X.shape[1], s * np.inf) for s in (-1, 1))
        self.ends = {
            j: (mp.mpf(float(lower[j])), mp.mpf(float(upper[j])))
            for j in range(X.shape[1])
            if j not in grouped and np.isfinite([lower[j], upper[j]]).all()
        }
        domains = (grouped | self.ends.keys()) if self.epsilon else set()
        self.penalised = [
            j for j in range(X.shape[1])
            if self.epsilon and self.costs[j] < mp.inf and j not in domains
        ]  # fmt: skip
        self.free = [j for j in range(X.shape[1]) if j not in self.penalised and j not in domains]
        self._standardise()

    def _standardise(self) -> None:
        """Free columns in standard deviations from their means, with the constant if there is."""
        self.scales: dict[int, Any] = {}
        self.means = [mp.mpf(0)] * self.n_features
        for j in range(self.n_features):
            column = [row[j] for row in self.rows]
            if self.intercept:
                self.means[j] = mp.fdot(self.weights, column)
            square = mp.fsum(
                w * (x - self.means[j]) ** 2 for w, x in zip(self.weights, column, strict=True)
            )
            if j in self.free and mp.sqrt(square) > NOTHING:
                self.scales[j] = mp.sqrt(square)
        self.Z = [
            [sign * (row[j] - self.means[j]) / scale for j, scale in self.scales.items()]
            + [mp.mpf(sign)] * self.intercept
            for sign, row in zip(self.signs, self.rows, strict=True)
        ]

    def value(self, result: drlogit.Result) -> Any:
        """The worst-case loss of a model."""
        return self.least_value(result, steps=0)

    def least_value(self, result: drlogit.Result, steps: int = 12) -> Any:
        """The least value that is found near a fit, within the class."""
        beta, b = [mp.mpf(float(x)) for x in result.coef], mp.mpf(result.intercept)
        size = [beta[j] / self.costs[j] for j in self.penalised]
        lam = max(mp.mpf(result.lam), dual_norm(size, self.norm))
        if self.epsilon and (self.groups or self.ends):
            return self._with_domains(beta, b, lam)
        # Models that improve have no part in columns that count as zero; the one given may have.
        others = set(range(self.n_features)) - self.scales.keys()
        kept = self.penalised if steps else sorted(others)
        fixed = [
            sign * mp.fsum((row[j] - self.means[j]) * beta[j] for j in kept)
            for sign, row in zip(self.signs, self.rows, strict=True)
        ]
        v = [beta[j] * scale for j, scale in self.scales.items()]
        if self.intercept:
            v.append(b + mp.fdot(self.means, beta))
        if steps and any(abs(x) > ADMITTED for x in v):  # a model beyond the class
            v, steps = [mp.mpf(0)] * len(v), 3 * steps
        return self._polished(fixed, v, lam, steps)

    def _polished(self, fixed: list[Any], v: list[Any], lam: Any, steps: int) -> Any:
        flips = self.epsilon > 0
        kinks = [kappa * lam if kappa < mp.inf and flips else mp.inf for kappa in self.kappa]

        def margins(at: list[Any]) -> list[Any]:
            return [o + mp.fdot(row, at) for o, row in zip(fixed, self.Z, strict=True)]

        def value(at: list[Any]) -> Any:
            terms = [loss(u) + max(u - kink, 0) for u, kink in zip(margins(at), kinks, strict=True)]
            return self.epsilon * lam + mp.fdot(self.weights, terms)

        best, active = value(v), list(range(len(v)))
        for _ in range(steps):
            u = margins(v)
            slope = [w * (1 / (1 + mp.exp(x)) - (x > kink))
                     for w, x, kink in zip(self.weights, u, kinks, strict=True)]  # fmt: skip
            curve = [w / (2 + mp.exp(x) + mp.exp(-x)) for w, x in zip(self.weights, u, strict=True)]
            columns = [[row[k] for row in self.Z] for k in active]
            gradient = mp.matrix([mp.fdot(slope, column) for column in columns])
            curved = [[c * x for c, x in zip(curve, column, strict=True)] for column in columns]
            hessian = mp.matrix([[mp.fdot(one, two) for one in columns] for two in curved])
            for k in range(len(active)):
                hessian[k, k] *= 1 + mp.mpf(10) ** (10 - DIGITS)
            try:
                step = dict(zip(active, mp.lu_solve(hessian, gradient), strict=True))
            except (ZeroDivisionError, ValueError):
                break
            # As far as the class goes; a coefficient at its end stays there.
            room = {
                k: ((ADMITTED if d > 0 else -ADMITTED) - v[k]) / d for k, d in step.items() if d
            }
            length = min([mp.mpf(1), *room.values()])
            trial = v
            while length > 1e-4:
                trial = [x + length * step.get(k, 0) for k, x in enumerate(v)]
                if value(trial) < best:
                    break
                length /= 2
            reached = value(trial)
            active = [k for k in active if k not in room or room[k] > length]
            if not reached < best - mp.mpf(10) ** -16 and len(active) == len(step):
                return min(best, reached)
            v, best = (trial, reached) if reached < best else (v, best)
            if not active:
                break
        return best

    def _with_domains(self, beta: list[Any], b: Any, lam: Any) -> Any:
        """``ελ + Σ w R(λ)``, R by the best prefix of items sorted by gain per cost."""
        kinds = [
            ([beta[j] for j in group] + [mp.mpf(0)] * self._has_none(group), self.costs[group[0]])
            for group in self.groups
        ]
        total = self.epsilon * lam
        samples = zip(self.weights, self.signs, self.rows, self.kappa, strict=True)
        for weight, sign, row, kappa in samples:
            score = mp.fdot(row, beta) + b
            worst = [mp.ninf]
            for label in (sign, -sign):
                paid = mp.mpf(0) if label == sign else kappa
                if paid == mp.inf:
                    continue
                items = []
                for group, (levels, cost) in zip(self.groups, kinds, strict=True):
                    now = mp.fdot([row[j] for j in group], [beta[j] for j in group])
                    items.append((label * now - min(label * x for x in levels), cost))
                for j, ends in self.ends.items():
                    end = max(ends, key=lambda e, j=j: label * beta[j] * (row[j] - e))
                    distance = abs(row[j] - end)
                    items.append((abs(beta[j]) * distance, self.costs[j] * distance))
                items = [(g, c) for g, c in items if g > 0 and c < mp.inf]
                u = label * score
                worst.append(loss(u) - lam * paid)
                for gain, cost in sorted(items, key=lambda item: -item[0] / item[1]):
                    u, paid = u - gain, paid + cost
                    worst.append(loss(u) - lam * paid)
            total += weight * max(worst)
        return total

    def _has_none(self, group: list[int]) -> bool:
        return any(
            not any(row[j] for j in group)
            for row, weight in zip(self.rows, self.weights, strict=True)
            if weight
        )


class ClassJudge:
    """The same for several classes: categories and bounds are numbers there."""

    def __init__(self, problem: Generated) -> None:
        options = problem.options
        self.epsilon, self.norm = mp.mpf(options["epsilon"]), options["norm"]
        self.rows = [[mp.mpf(float(x)) for x in row] for row in problem.X]
        self.labels = [int(label) for label in problem.y]
        n_samples = len(self.labels)
        weights = [mp.mpf(float(w)) for w in options.get("sample_weight", np.ones(n_samples))]
        self.weights = [w / mp.fsum(weights) for w in weights]
        self.costs = [mp.mpf(float(c)) for c in options["feature_costs"]]
        for j in {j for group in options.get("categories") or [] for j in group}:
            self.costs[j] /= 2  # to leave one category for another moves two columns
        self.prices = prices_of(problem)

    def value(self, result: drlogit.Result) -> Any:
        """The worst-case loss of a model, at λ or at the least that its coefficients allow."""
        B = [[mp.mpf(float(x)) for x in row] for row in result.coef]
        b = [mp.mpf(float(x)) for x in np.broadcast_to(result.intercept, len(B))]
        lam = mp.mpf(result.lam)
        for one, other in itertools.combinations(B if self.epsilon else [], 2):
            step = [
                (x - y) / c for x, y, c in zip(one, other, self.costs, strict=True) if c < mp.inf
            ]
            lam = max(lam, dual_norm(step, self.norm))
        total = self.epsilon * lam
        for i, (row, label) in enumerate(zip(self.rows, self.labels, strict=True)):
            scores = [mp.fdot(row, each) + b[k] for k, each in enumerate(B)]
            changed = [
                -score - lam * price
                for score, price in zip(scores, self.prices[i], strict=True)
                if price < mp.inf and self.epsilon
            ]
            top = max(scores)
            lse = top + mp.log(mp.fsum(mp.exp(score - top) for score in scores))
            total += self.weights[i] * (lse + max([-scores[label], *changed]))
        return total

    least_value = value


def dual_norm(x: list[Any], norm: str) -> Any:
    """The norm that the transport norm leaves to coefficients."""
    if not x:
        return mp.mpf(0)
    if norm == "l2":
        return mp.sqrt(mp.fdot(x, x))
    return (max if norm == "l1" else mp.fsum)(abs(each) for each in x)


def loss(u: Any) -> Any:
    """``log(1 + e^{-u})``."""
    return mp.log1p(mp.exp(-abs(u))) - min(u, 0)


def judge_of(problem: Generated) -> Judge | ClassJudge:
    """Of two classes or of several."""
    return (ClassJudge if len(np.unique(problem.y)) > 2 else Judge)(problem)


def rounding(problem: Generated, result: drlogit.Result) -> float:
    """What scores change by when coefficients are rounded to doubles."""
    terms = np.abs(problem.X) @ np.abs(np.atleast_2d(result.coef)).T + np.abs(result.intercept)
    return float(np.finfo(float).eps * terms.max())


def falsehoods(problem: Generated, result: drlogit.Result) -> list[str]:
    """What a fit says that fifty digits do not bear out."""
    judge, found = judge_of(problem), []
    value = judge.value(result)
    if value > result.objective + rounding(problem, result):
        found.append(f"{result} is below {mp.nstr(value, 20)}")
    if result.dual_objective > 0.0:
        tight = problem.solve(tol=1e-10)
        least = min(judge.least_value(result), judge.least_value(tight))
        if max(result.dual_objective, tight.dual_objective) > least:
            found.append(f"{result} is above {mp.nstr(least, 20)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    false = 0
    for kind in arguments.kind:
        count = certified = 0
        for seed in range(arguments.first, arguments.first + arguments.count):
            problem = SOURCES[kind](seed)
            if problem is None:
                continue
            result = problem.solve()
            count, certified = count + 1, certified + result.converged
            for what in falsehoods(problem, result):
                false += 1
                print(f"{kind} {seed} ({problem.kind}): {what}", flush=True)
        print(f"{kind}: {certified} of {count} certified; {false} false so far", flush=True)
    raise SystemExit(bool(false))


if __name__ == "__main__":
    main()
