"""Is any certificate false?  Generated problems, judged with fifty digits.

    python -m benchmarks.false_bounds --kind degenerate --count 10000
    python -m benchmarks.false_bounds --kind ordinary --count 10000
    python -m benchmarks.false_bounds --kind classes --count 10000
    python -m benchmarks.false_bounds --kind labels --count 10000
    python -m benchmarks.false_bounds --kind labelled-classes --count 10000

*Degenerate*: up to three free columns beside the intercept (ε = 0, or features that cannot move),
with offsets up to 1e15, columns that agree to within 1e-16 of each other, copies, whole multiples,
numbers next to nothing, and data that are nearly separable.  *Ordinary*: what people have, and of
every third problem categories and bounds.  *Classes*: three to five labels, with columns far from
zero, categories, flip costs of every kind, with and without an intercept.  *Labels*: flip costs by
label or by sample, of 0, infinity and huge numbers among others, samples sorted by label in blocks
(threads or Dask chunks), rare classes, weights that grow with the loss, levels that no sample has,
or only samples without weight.  *Labelled classes*: the same with three to six classes.

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
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

import drlogit
from benchmarks import stated
from benchmarks.domain_cases import domain_case

DIGITS = 50

#: Log-odds per standard deviation that models of the class have at most, less a hair.
ADMITTED = mp.mpf(10_000) * (1 - mp.mpf(10) ** -6)

#: Columns with a smaller root mean square count as zero.
NOTHING = 1e-150


@dataclass(frozen=True)
class Generated:
    """A problem: ``solve(X, y, **options)``."""

    kind: str
    X: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]
    options: dict[str, Any]
    chunk: int = 0  # rows of a Dask chunk, if the samples are in some

    def solve(self, **others: Any) -> drlogit.Result:
        """A fit, of samples where they are."""
        X, y, options = self.X, self.y, self.options | others
        if self.chunk:
            import dask.array as da

            X, y = da.from_array(X, (self.chunk, X.shape[1])), da.from_array(y, self.chunk)
            for name in ("sample_weight", "kappa"):
                if np.shape(options.get(name)) == y.shape:
                    options[name] = da.from_array(np.asarray(options[name]), self.chunk)
        return stated.solve(X, y, **options)


def _offset(rng: np.random.Generator, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Another feature, far from zero; now and then the first one once more, but for rounding."""
    other = a if rng.random() < 0.2 else rng.standard_normal(a.size)
    return other + 10.0 ** rng.uniform(3.0, 15.0)


def _beside(rng: np.random.Generator, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a + 10.0 ** rng.uniform(-16.0, -3.0) * rng.standard_normal(a.size)


def _copy(rng: np.random.Generator, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a * float(rng.choice([1.0, -1.0, 2.0, 3.0, 0.1]))


def _subnormal(rng: np.random.Generator, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return rng.standard_normal(a.size) * 10.0 ** rng.uniform(-318.0, -150.0)


def _constant(rng: np.random.Generator, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.full(a.size, 10.0 ** rng.uniform(-3.0, 6.0))


def _sum(rng: np.random.Generator, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Together with the first column nearly constant."""
    return 10.0 ** rng.uniform(0.0, 8.0) - a


KINDS = {
    "offset": _offset, "beside": _beside, "copy": _copy, "subnormal": _subnormal,
    "constant": _constant, "sum": _sum,
}  # fmt: skip


def degenerate(seed: int) -> Generated | None:
    """Free columns that are nearly degenerate; None if there is one class only."""
    rng = np.random.default_rng([seed, 17])
    kind = list(KINDS)[seed % len(KINDS)]
    n_samples = int(rng.integers(4, 41))
    a, v = rng.standard_normal((2, n_samples))
    if rng.random() < 0.3:
        a = np.rint(2.0 * a)
    columns = [a, KINDS[kind](rng, a)]
    if rng.random() < 0.4:
        other = list(KINDS)[int(rng.integers(len(KINDS)))]
        columns.append(KINDS[other](rng, columns[int(rng.integers(2))]))
    free = len(columns)
    if rng.random() < 0.5:
        columns.append(v)
    y = a + 0.7 * v + rng.logistic(size=n_samples) * rng.choice([0.1, 1.0]) > 0.0
    if y.all() or not y.any():
        return None
    X = np.column_stack(columns)
    order = rng.permutation(X.shape[1])
    costs = np.where(np.arange(X.shape[1]) < free, np.inf, 1.0)[order]
    plain = rng.random() < 0.5
    kappa = math.inf if plain else float(rng.choice([1.0, 4.0, np.inf]))
    options = {
        "epsilon": 0.0 if plain else float(10.0 ** rng.uniform(-3.0, -1.0)),
        "kappa": kappa,
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "feature_costs": None if plain else costs,
        "fit_intercept": bool(rng.random() < 0.8),
    }
    return Generated(kind, X[:, order], y, options)


def ordinary(seed: int) -> Generated | None:
    """A small problem as people have them; None if there is one class only."""
    if seed % 3 == 0:
        X, y, options = domain_case(seed)
        return Generated("domains", X, y > 0, options)
    rng = np.random.default_rng([seed, 18])
    n_samples, n_features = int(rng.integers(10, 150)), int(rng.integers(1, 7))
    X = rng.standard_normal((n_samples, n_features)) * 10.0 ** rng.uniform(-2.0, 2.0, n_features)
    if rng.random() < 0.4:
        X[:, 0] = rng.integers(0, 2, n_samples)
    X += 10.0 ** rng.uniform(-1.0, 3.0) * (rng.random(n_features) < 0.3)
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.standard_normal(n_features)
    y = score + rng.logistic(size=n_samples) * rng.choice([0.1, 1.0, 1.0]) > 0.0
    if y.all() or not y.any():
        return None
    costs = 1.0 / X.std(axis=0)
    costs[rng.random(n_features) < 0.3] = np.inf
    options: dict[str, Any] = {
        "epsilon": float(rng.choice([0.0, 0.001, 0.01, 0.05, 0.2, 1.0])),
        "kappa": float(rng.choice([0.5, 1.0, 4.0, 30.0, np.inf])),
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "feature_costs": costs,
        "fit_intercept": bool(rng.random() < 0.8),
    }
    if rng.random() < 0.3:
        options["sample_weight"] = rng.uniform(0.1, 3.0, n_samples)
    return Generated("numbers", X, y, options)


def classes(seed: int) -> Generated:
    """A small problem of three to five classes."""
    rng = np.random.default_rng([seed, 19])
    K, n_numbers, n_levels = (int(rng.integers(*ends)) for ends in ((3, 6), (1, 5), (2, 5)))
    n_samples = int(rng.integers(4 * K, 25 * K))
    X = rng.standard_normal((n_samples, n_numbers)) * 10.0 ** rng.uniform(-2.0, 2.0, n_numbers)
    slopes = rng.standard_normal((K, n_numbers)) * rng.uniform(0.0, 3.0)
    scores = X / X.std(axis=0) @ slopes.T + rng.gumbel(size=(n_samples, K))
    y = scores.argmax(axis=1)
    y[:K] = np.arange(K)
    far = (rng.random(n_numbers) < 0.4) * 10.0 ** rng.uniform(0.0, 6.0, n_numbers)
    costs, groups = 1.0 / X.std(axis=0), []
    X = X + far
    if rng.random() < 0.5:
        # With or without a level that has no column of its own.
        levels = rng.integers(n_levels + int(rng.random() < 0.3), size=n_samples)
        X = np.column_stack([X, np.eye(n_levels + 1)[levels][:, :n_levels]])
        costs = np.append(costs, np.full(n_levels, 10.0 ** rng.uniform(-1.0, 1.0)))
        groups = [list(range(n_numbers, n_numbers + n_levels))]
    costs[: rng.integers(1 + n_numbers // 2)] = np.inf
    kappa: Any = float(10.0 ** rng.uniform(-1.0, 1.5))
    if (kind := rng.integers(4)) == 1:
        kappa = np.inf
    elif kind == 2:
        by_label = kappa * 10.0 ** rng.uniform(-0.7, 0.7, K)
        by_label[rng.random(K) < 0.2] = np.inf
        kappa = dict(enumerate(by_label.tolist()))
    elif kind == 3:
        kappa = kappa * rng.choice([0.3, 1.0, 4.0, np.inf], n_samples)
    options: dict[str, Any] = {
        "epsilon": float(rng.choice([0.001, 0.01, 0.05, 0.2, 1.0])),
        "kappa": kappa,
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "feature_costs": costs,
        "fit_intercept": bool(rng.random() < 0.5),
    }
    if groups:
        options["categories"] = groups
    if rng.random() < 0.3:
        options["sample_weight"] = rng.uniform(0.1, 3.0, n_samples)
    return Generated("with categories" if groups else "numbers", X, y, options)


#: Costs of flips: labels that are unknown or beyond doubt, ordinary ones, and numbers that somebody
#: writes for "never".
PRICES = [0.0, 1e-6, 0.3, 1.0, 4.0, 30.0, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 1e100, 1e300, np.inf]


def some_costs(rng: np.random.Generator, y: Any, K: int) -> Any:
    """κ by label or by sample, of a few prices; not zero for all."""
    prices = rng.choice(PRICES, int(rng.integers(2, 5)), replace=False)
    by_label = rng.random() < 0.4
    each = rng.choice(prices, K if by_label else y.size)
    if not each.any():
        each[0] = 1.0
    if by_label:
        return dict(zip(np.unique(y).tolist(), each.tolist(), strict=True))
    each[rng.random(y.size) < 0.2] *= rng.uniform(1.0, 2.0)
    return each


def in_blocks(
    rng: np.random.Generator, kind: str, X: Any, y: Any, score: Any, options: dict[str, Any]
) -> Generated:
    """Flip costs, weights and samples sorted by label, in one block or in several."""
    n = y.size
    if rng.random() < 0.3:  # weights that go with the loss
        wrong = score < np.quantile(score, rng.uniform(0.05, 0.5))
        options["sample_weight"] = np.where(wrong, rng.choice([3.0, 40.0, 1e3]), 1.0)
    if rng.random() < 0.3:
        given = options.setdefault("sample_weight", np.ones(n))
        nothing = np.flatnonzero(rng.random(n) < 0.15)
        kept = np.unique(y, return_index=True)[1]
        nothing = nothing[~np.isin(nothing, kept)]
        given[nothing] = 0.0
        for group in options.get("categories") or ():  # "none" where nobody else has it
            X[np.ix_(nothing[rng.random(nothing.size) < 0.5], group)] = 0.0
    order = np.argsort(y, kind="stable") if rng.random() < 0.7 else np.arange(n)
    X, y = X[order], y[order]
    if "sample_weight" in options:
        options["sample_weight"] = options["sample_weight"][order]
    options["kappa"] = some_costs(rng, y, np.unique(y).size)
    where = int(rng.integers(3 if y.dtype == bool else 2))  # solve takes Dask with two classes
    if where == 1:
        options["n_jobs"] = int(rng.integers(2, 4))
    chunk = int(rng.integers(max(n // 5, 1), n)) if where == 2 else 0
    return Generated(kind + ("", ", threads", ", dask")[where], X, y, options, chunk)


def labels(seed: int) -> Generated | None:
    """Two classes with flip costs of every kind."""
    rng = np.random.default_rng([seed, 20])
    if seed % 2:
        X, signs, options = domain_case(int(rng.integers(1 << 30)))
        y = signs > 0
        options.pop("sample_weight", None)
        for group in options["categories"]:
            if len(group) > 2 and rng.random() < 0.3:  # a level that no sample has
                X[X[:, group[0]] > 0.0, group[1]], X[:, group[0]] = 1.0, 0.0
        return in_blocks(rng, "domains", X, y, rng.standard_normal(y.size), options)
    n_samples, n_features = int(rng.integers(10, 70)), int(rng.integers(1, 5))
    X = rng.standard_normal((n_samples, n_features)) * 10.0 ** rng.uniform(-1.0, 1.0, n_features)
    score = X / X.std(axis=0) @ rng.standard_normal(n_features) + rng.logistic(size=n_samples)
    y = score > np.quantile(score, rng.choice([0.03, 0.5, 0.7, 0.95]))
    if y.all() or not y.any():
        return None
    costs = 1.0 / X.std(axis=0)
    costs[rng.random(n_features) < 0.2] = np.inf
    options = {
        "epsilon": float(rng.choice([0.0, 0.001, 0.01, 0.05, 0.2, 1.0, 10.0])),
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "feature_costs": costs,
        "fit_intercept": bool(rng.random() < 0.8),
    }
    return in_blocks(rng, "numbers", X, y, np.where(y, score, -score), options)


def labelled_classes(seed: int) -> Generated:
    """Three to six classes, rare ones among them, with domains, often without an intercept."""
    rng = np.random.default_rng([seed, 21])
    K, n_numbers, n_levels = (int(rng.integers(*ends)) for ends in ((3, 7), (1, 4), (2, 4)))
    n_samples = int(rng.integers(3 * K, 12 * K))
    X = rng.uniform(0.0, 1.0, (n_samples, n_numbers))
    slopes, rare = rng.standard_normal((K, n_numbers)), rng.choice([0.0, 3.0]) * np.arange(K)
    scores = 3.0 * X @ slopes.T + rng.gumbel(size=(n_samples, K)) - rare
    y = scores.argmax(axis=1)
    y[:K] = np.arange(K)
    lower, upper = np.full((2, n_numbers + n_levels), [[-np.inf], [np.inf]])
    lower[:n_numbers], upper[:n_numbers] = X.min(axis=0) - 0.1, X.max(axis=0) + 0.1
    dropped = int(rng.random() < 0.3)
    one_hot = np.eye(n_levels + 1)[rng.integers(n_levels + dropped, size=n_samples)]
    costs = 10.0 ** rng.uniform(-1.0, 1.0, n_numbers)
    costs[: rng.integers(1 + n_numbers // 2)] = np.inf
    options: dict[str, Any] = {
        "epsilon": float(rng.choice([0.001, 0.01, 0.05, 0.2, 1.0, 10.0])),
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "feature_costs": np.append(costs, np.full(n_levels, 10.0 ** rng.uniform(-1.0, 1.0))),
        "fit_intercept": bool(rng.random() < 0.3),
        "categories": [list(range(n_numbers, n_numbers + n_levels))],
        "bounds": (lower, upper),
    }
    X = np.column_stack([X, one_hot[:, :n_levels]])
    return in_blocks(rng, "classes", X, y, scores[np.arange(n_samples), y], options)


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
        self.signs = [1 if label else -1 for label in problem.y]
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


#: How problems are made, and who judges them.
SOURCES: dict[str, tuple[Callable[[int], Generated | None], type[Judge] | type[ClassJudge]]] = {
    "degenerate": (degenerate, Judge),
    "ordinary": (ordinary, Judge),
    "classes": (classes, ClassJudge),
    "labels": (labels, Judge),
    "labelled-classes": (labelled_classes, ClassJudge),
}


def rounding(problem: Generated, result: drlogit.Result) -> float:
    """What scores change by when coefficients are rounded to doubles."""
    terms = np.abs(problem.X) @ np.abs(np.atleast_2d(result.coef)).T + np.abs(result.intercept)
    return float(np.finfo(float).eps * terms.max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kind", choices=SOURCES, default="degenerate")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    mp.mp.dps = DIGITS
    make, judge_of = SOURCES[arguments.kind]
    certified: Counter[str] = Counter()
    total: Counter[str] = Counter()
    false = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        problem = make(seed)
        if problem is None:
            continue
        result = problem.solve()
        total[problem.kind] += 1
        certified[problem.kind] += result.converged
        judge = judge_of(problem)
        value = judge.value(result)
        if value > result.objective + rounding(problem, result):
            false += 1
            print(f"seed {seed} ({problem.kind}): {result} is below {mp.nstr(value, 20)}")
        if result.dual_objective > 0.0:
            tight = problem.solve(tol=1e-10)
            least = min(judge.least_value(result), judge.least_value(tight))
            if max(result.dual_objective, tight.dual_objective) > least:
                false += 1
                print(f"seed {seed} ({problem.kind}): {result} is above {mp.nstr(least, 20)}")
    for kind, count in total.items():
        print(f"  {kind}: {certified[kind]} of {count} certified")
    print(f"{total.total()} problems, {certified.total()} certified, {false} false certificates")
    raise SystemExit(bool(false))


if __name__ == "__main__":
    main()
