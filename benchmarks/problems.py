"""Generated problems of every awkward kind, each determined by its number.

numbers     plain, unscaled, separable, duplicated, rank-deficient, wide, sparse, … in turn
domains     categories and bounds: groups with and without "none", of one column, constant or
immovable; bounded features, far from zero or at their ends; samples without weight
classes     three to five labels, columns far from zero, categories, flip costs of every kind
ordinary    small problems as people have them, a third of them with domains
degenerate  up to three free columns beside the intercept (ε = 0, or features that cannot move),
with offsets up to 1e15, columns that agree to within 1e-16 of each other, copies,
whole multiples, numbers next to nothing
labels      flip costs by label or by sample, of 0, infinity and huge numbers among others, for
any of the last three; samples sorted by label in blocks (threads or Dask chunks),
weights that grow with the loss, levels that no sample has
extreme     sizes, scales, spreads, weights and costs over many orders, storage, subnormal
numbers; every second one nearly separable with a small ε
awkward     rounding is large: columns far from zero next to a group that takes the place of the
intercept, weights over 24 orders of magnitude, separated classes
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import drlogit

from . import stated

inf = math.inf
NORMS = ("l1", "l2", "linf")


@dataclass(frozen=True)
class Generated:
    """A problem: ``solve(X, y, **options)``."""

    kind: str
    X: Any
    y: Any
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


KINDS = (
    "plain", "unscaled", "separable", "duplicated", "rank-deficient", "wide", "zero-columns",
    "zero-rows", "contradictory", "constant", "sparse", "imbalanced", "weighted", "costs",
)  # fmt: skip
EPSILONS = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0)
KAPPAS = (0.05, 0.5, 2.0, 10.0, np.inf)


def numbers(k: int) -> Generated:
    """Numbers of one of these kinds."""
    combinations = list(itertools.product(KINDS, EPSILONS, KAPPAS, NORMS))
    # A stride coprime to the number of combinations visits kinds and settings evenly.
    kind, epsilon, kappa, norm = combinations[(k * 599) % len(combinations)]
    rng = np.random.default_rng(k)
    n_samples = int(rng.choice([3, 10, 40, 150, 400]))
    n_features = int(rng.choice([1, 3, 10, 40]))
    if kind == "wide":
        n_samples, n_features = int(rng.choice([5, 20, 60])), int(rng.choice([100, 300]))
    X = rng.standard_normal((n_samples, n_features))
    truth = rng.standard_normal(n_features) / np.sqrt(n_features)
    noise = rng.logistic(size=n_samples)
    options: dict[str, Any] = {"fit_intercept": bool(rng.integers(2))}
    if kind == "unscaled":
        X = X * 10.0 ** rng.uniform(-3, 3, n_features) * 10.0 ** rng.uniform(-4, 4)
        truth = truth / np.abs(X).mean(axis=0)
    elif kind == "separable":
        noise = np.zeros(n_samples)
    elif kind == "duplicated":
        X = np.hstack([X, X, X[:, :1]])
        truth = np.concatenate([truth, 0 * truth, truth[:1]])
    elif kind == "rank-deficient":
        rank = max(1, n_features // 3)
        X = X[:, :rank] @ rng.standard_normal((rank, n_features))
    elif kind == "zero-columns":
        X[:, rng.random(n_features) < 0.4] = 0.0
    elif kind == "zero-rows":
        X[rng.random(n_samples) < 0.3] = 0.0
    elif kind == "constant":
        X[:, 0] = 1.0
    elif kind == "sparse":
        X = np.where(rng.random(X.shape) < 0.2, np.sign(X), 0.0)
    y = np.where(X @ truth + noise > 0.0, 1, -1)
    if kind == "imbalanced":
        y = np.where(rng.random(n_samples) < 0.03, 1, -1)
    if kind == "contradictory":
        half = n_samples // 2
        X[half : 2 * half] = X[:half]
        y[half : 2 * half] = -y[:half]
    if kind == "weighted":
        options["sample_weight"] = 10.0 ** rng.uniform(-6, 0, n_samples)
    if kind == "costs":
        costs = 10.0 ** rng.uniform(-2, 2, n_features)
        costs[rng.random(n_features) < 0.2] = np.inf
        options["feature_costs"] = costs
    y[0], y[-1] = 1, -1
    data = sp.csr_array(X) if kind == "sparse" else X
    options |= {"epsilon": epsilon, "kappa": kappa, "norm": norm}
    return Generated(kind, data, y, options)


def domain_case(number: int) -> tuple[Any, Any, dict[str, Any]]:
    """X, y and the other arguments of ``drlogit.solve``."""
    rng = np.random.default_rng(number)
    n_samples = int(rng.integers(6, 120))
    parts: list[Any] = []
    groups: list[list[int]] = []
    costs: list[float] = []
    lower: list[float] = []
    upper: list[float] = []
    score = np.zeros(n_samples)

    def add(columns: Any, cost: float, low: float = -inf, high: float = inf) -> None:
        parts.append(columns)
        for values, each in ((costs, cost), (lower, low), (upper, high)):
            values.extend([each] * columns.shape[1])

    def some_cost() -> float:
        return inf if rng.random() < 0.1 else float(np.exp(rng.uniform(-1.0, 1.0)))

    n_bounded = int(rng.integers(0, 3))
    for _ in range(int(rng.integers(n_bounded == 0, 5))):
        size = int(rng.integers(1, 6))
        kinds = size + int(size == 1 or rng.random() < 0.4)
        one_hot = np.eye(kinds)[rng.integers(kinds, size=n_samples)][:, :size]
        groups.append(list(range(len(costs), len(costs) + size)))
        add(one_hot, some_cost())
        score += one_hot @ rng.standard_normal(size)
    for _ in range(n_bounded):
        x = rng.uniform(0.0, 1.0, (n_samples, 1)) + rng.choice([0.0, 0.0, 0.0, 5.0, 1e4])
        if rng.random() < 0.3:
            x = np.rint(4.0 * x)
        ends = x.min() - rng.choice([0.0, 0.5]), x.max() + rng.choice([0.0, 0.3])
        add(x, some_cost(), float(ends[0]), float(ends[1]))
        score += x[:, 0] - x.min()
    for _ in range(int(rng.integers(0, 3))):
        x = rng.standard_normal((n_samples, 1)) * rng.choice([1.0, 1.0, 30.0])
        add(x, inf if rng.random() < 0.35 else 1.0)
        score += x[:, 0] / np.abs(x).max()
    noise = rng.standard_normal(n_samples) * rng.choice([0.1, 1.0])
    y = np.where(score - np.median(score) + noise > 0.0, 1, -1)
    y[:2] = 1, -1
    options: dict[str, Any] = {
        "epsilon": float(10.0 ** rng.uniform(-3.0, 0.3)),
        "kappa": float(rng.choice([0.3, 1.0, inf])),
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "fit_intercept": bool(rng.random() < 0.7),
        "feature_costs": np.array(costs),
        "categories": groups,
        "bounds": (np.array(lower), np.array(upper)),
    }
    if rng.random() < 0.3:
        weights = rng.uniform(0.0, 3.0, n_samples) * (rng.random(n_samples) < 0.9)
        weights[:2] = 1.0
        options["sample_weight"] = weights
    return np.hstack(parts), y, options


def domains(number: int) -> Generated:
    """Categories and bounds."""
    return Generated("domains", *domain_case(number))


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


DEGENERATE = {
    "offset": _offset, "beside": _beside, "copy": _copy, "subnormal": _subnormal,
    "constant": _constant, "sum": _sum,
}  # fmt: skip


def degenerate(seed: int) -> Generated | None:
    """Free columns that are nearly degenerate; None if there is one class only."""
    rng = np.random.default_rng([seed, 17])
    kind = list(DEGENERATE)[seed % len(DEGENERATE)]
    n_samples = int(rng.integers(4, 41))
    a, v = rng.standard_normal((2, n_samples))
    if rng.random() < 0.3:
        a = np.rint(2.0 * a)
    columns = [a, DEGENERATE[kind](rng, a)]
    if rng.random() < 0.4:
        other = list(DEGENERATE)[int(rng.integers(len(DEGENERATE)))]
        columns.append(DEGENERATE[other](rng, columns[int(rng.integers(2))]))
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
        made = domains(seed)
        return replace(made, y=made.y > 0)
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


def labels(seed: int) -> Generated | None:
    """Flip costs of every kind, weights, and samples sorted by label, in one block or several."""
    rng = np.random.default_rng([seed, 20])
    sources: tuple[Callable[[int], Generated | None], ...] = (ordinary, domains, classes)
    made = sources[seed % 3](int(rng.integers(1 << 30)))
    if made is None:
        return None
    X, y, options = made.X.copy(), made.y, dict(made.options)
    several, n = np.unique(y).size > 2, y.size
    y = y if several else y > 0
    for group in options.get("categories") or ():
        if len(group) > 2 and rng.random() < 0.3:  # a level that no sample has
            X[X[:, group[0]] > 0.0, group[1]], X[:, group[0]] = 1.0, 0.0
    weights = np.ones(n)
    if rng.random() < 0.3:
        heavy = rng.random(n) < rng.uniform(0.05, 0.5)
        weights[heavy] = rng.choice([3.0, 40.0, 1e3])
    if rng.random() < 0.3:
        nothing = np.flatnonzero(rng.random(n) < 0.15)
        nothing = nothing[~np.isin(nothing, np.unique(y, return_index=True)[1])]
        weights[nothing] = 0.0
        for group in options.get("categories") or ():  # "none" where nobody else has it
            X[np.ix_(nothing[rng.random(nothing.size) < 0.5], group)] = 0.0
    order = np.argsort(y, kind="stable") if rng.random() < 0.7 else np.arange(n)
    X, y, options["sample_weight"] = X[order], y[order], weights[order]
    options["kappa"] = some_costs(rng, y, np.unique(y).size)
    where = int(rng.integers(2 if several else 3))  # solve takes Dask with two classes
    if where == 1:
        options["n_jobs"] = int(rng.integers(2, 4))
    chunk = int(rng.integers(max(n // 5, 1), n)) if where == 2 else 0
    return Generated(made.kind + ("", ", threads", ", dask")[where], X, y, options, chunk)


SHAPES = (
    "plain", "separable", "duplicated rows", "contradictory rows", "duplicated columns",
    "zero columns", "constant column", "sorted labels", "few positives", "subnormal",
    "nearly separable", "zero rows and columns", "columns in two units",
)  # fmt: skip


@dataclass(frozen=True)
class Extreme:
    """The data follow from these."""

    seed: int
    n_samples: int
    n_features: int
    shape: str = "plain"
    storage: str = "dense"
    scale: float = 1.0
    spread: float = 0.0
    weights: str = "none"
    costs: str = "none"
    epsilon: float = 0.05
    kappa: float = 1.0
    norm: str = "l1"
    fit_intercept: bool = True
    in_units: bool = True


def extreme(k: int) -> Generated:
    """Numbers over many orders; or half to six times as many samples as coefficients, ε small.

    In the second kind the labels' noise is small against the margins, so coefficients grow until ε
    or κ stops them, and most samples lie where the log-loss has no curvature left.
    """
    rng = np.random.default_rng([k, 22])

    def one(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    def power(low: float, high: float) -> float:
        return float(10.0 ** rng.uniform(low, high))

    case = Extreme(
        k, int(rng.integers(*one((1, 13), (13, 301), (301, 5001)))),
        int(rng.integers(*one((1, 6), (6, 61)))), one(*SHAPES),
        one("dense", "dense", "float32", "csr", "csc"), power(-8, 8), one(0.0, 0.0, 2.0, 6.0),
        one("none", "none", "wide", "integer", "some zero"),
        one("none", "none", "wide", "some immovable", "all immovable"),
        one(0.0, power(-6, 1), power(-3, 0)), one(inf, power(-1.3, 1)), one(*NORMS),
        one(True, False), one(True, False),
    )  # fmt: skip
    if k % 2:
        n_features = round(power(0.0, 2.7))
        n_samples = min(max(round(n_features * power(-0.3, 0.8)), 3), 1000)
        shape = one("plain", "nearly separable", "zero rows and columns")
        case = Extreme(
            k, n_samples, n_features, shape, spread=one(0.0, 0.0, 3.0, 6.0),
            weights=one("none", "none", "integer", "some zero"), epsilon=power(-5.0, -1.5),
            kappa=one(inf, power(-1.0, 1.3), power(-1.0, 1.3)), norm=one(*NORMS),
            fit_intercept=one(True, False),
        )  # fmt: skip
    return made(case)


def made(case: Extreme) -> Generated:
    """The problem of a case."""
    rng = np.random.default_rng(case.seed)
    shape = (case.n_samples, case.n_features)
    X = rng.standard_normal(shape)
    if case.storage.startswith("cs"):
        X *= rng.random(shape) < 0.3
    noise = rng.logistic(size=case.n_samples)
    noise *= {"separable": 0.0, "nearly separable": 0.1}.get(case.shape, 1.0)
    if case.shape == "zero rows and columns":
        X[:, rng.random(case.n_features) < 0.5] = 0.0
        X[rng.random(case.n_samples) < 0.3] = 0.0
    y = np.where(X @ rng.standard_normal(case.n_features) + noise > 0.0, 1, -1)
    half = case.n_samples // 2
    if case.shape in ("duplicated rows", "contradictory rows"):
        X[half : 2 * half] = X[:half]
        y[half : 2 * half] = y[:half] * (-1 if case.shape == "contradictory rows" else 1)
    elif case.shape in ("duplicated columns", "columns in two units"):
        X[:, case.n_features // 2 :] = X[:, :1]
    elif case.shape == "zero columns":
        X[:, rng.random(case.n_features) < 0.5] = 0.0
    elif case.shape == "constant column":
        X[:, 0] = 1.0
    elif case.shape == "sorted labels":
        order = np.argsort(y)
        X, y = X[order], y[order]
    elif case.shape == "few positives":
        y = np.where(rng.random(case.n_samples) < 0.02, 1, -1)
    units = 10.0 ** rng.uniform(-case.spread / 2, case.spread / 2, case.n_features)
    if case.shape == "duplicated columns":
        units = np.exp2(np.rint(np.log2(units)))  # copies without rounding
    X = X * case.scale * units
    if case.shape == "subnormal":
        X[rng.random(shape) < 0.2] *= 1e-310
    if case.storage == "float32":
        X = X.astype(np.float32).astype(np.float64)  # all storages hold the same numbers
    unit = case.scale if case.in_units else 1.0
    options: dict[str, Any] = {
        "epsilon": case.epsilon * unit, "kappa": case.kappa * unit, "norm": case.norm,
        "fit_intercept": case.fit_intercept,
    }  # fmt: skip
    if case.weights == "wide":
        options["sample_weight"] = 10.0 ** rng.uniform(-12, 0, case.n_samples)
    elif case.weights != "none":
        low = 0 if case.weights == "some zero" else 1
        options["sample_weight"] = rng.integers(low, 4, case.n_samples)
    if case.costs == "all immovable":
        options["feature_costs"] = np.full(case.n_features, np.inf)
    elif case.costs != "none":
        costs = 10.0 ** rng.uniform(-6, 6, case.n_features)
        if case.costs == "some immovable":
            costs = np.where(rng.random(case.n_features) < 0.3, np.inf, 1.0)
        options["feature_costs"] = costs
    stored = {"float32": np.float32, "csr": sp.csr_array, "csc": sp.csc_array}
    return Generated(case.shape, stored.get(case.storage, np.asarray)(X), y, options)


def awkward(rng: np.random.Generator) -> dict[str, Any]:
    """Keyword arguments of ``drlogit.solve``."""
    n_samples, n_classes = int(rng.integers(6, 120)), int(rng.choice([2, 2, 2, 3, 4, 5]))
    parts: list[Any] = []
    costs: list[float] = []
    groups: list[list[int]] = []
    ends: list[tuple[float, float]] = []

    def add(columns: Any, low: float = -math.inf, high: float = math.inf) -> list[int]:
        cost = float(10.0 ** rng.uniform(-1, 1)) if rng.random() < 0.7 else math.inf
        places = list(range(len(costs), len(costs) + columns.shape[1]))
        parts.append(columns)
        costs.extend([cost] * len(places))
        ends.extend([(low, high)] * len(places))
        return places

    for _ in range(int(rng.integers(0, 3))):
        size = int(rng.integers(1, 5))
        kinds = size + int(size == 1 or rng.random() < 0.3)  # with or without "none"
        places = add(np.eye(kinds)[rng.integers(0, kinds, n_samples)][:, :size])
        if rng.random() < 0.8:
            groups.append(places)
    if rng.random() < 0.5:
        x = rng.standard_normal((n_samples, 1))
        add(x, float(x.min() - rng.random()), float(x.max() + rng.random()))
    for _ in range(int(rng.integers(1, 4))):
        far = 10.0 ** rng.uniform(0, 9) if rng.random() < 0.4 else 0.0
        add(rng.standard_normal((n_samples, 1)) * 10.0 ** rng.uniform(-2, 2) + far)
    X = np.concatenate(parts, axis=1)
    deviation = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    noise = rng.choice([0.0, 0.0, 0.01, 1.0, 1.0])  # zero: separated
    scores = Z @ rng.standard_normal((Z.shape[1], n_classes))
    y = (scores + noise * rng.gumbel(size=scores.shape)).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    case: dict[str, Any] = {
        "X": X, "y": y, "epsilon": float(rng.choice([0.0, 1e-4, 0.001, 0.01, 0.05, 0.2, 1.0])),
        "kappa": float(rng.choice([0.3, 1.0, 3.0, np.inf])), "feature_costs": np.array(costs),
        "norm": str(rng.choice(["l1", "l2", "linf"])), "fit_intercept": bool(rng.random() < 0.5),
        "categories": groups or None,
    }  # fmt: skip
    if rng.random() < 0.2:
        case["kappa"] = np.append(1.0, rng.choice([0.5, 1.0, 4.0, np.inf], n_samples - 1))
    if np.isfinite(ends).any():
        case["bounds"] = tuple(np.array(ends).T)
    if rng.random() < 0.5:
        width = rng.choice([3.0, 12.0])
        case["sample_weight"] = 10.0 ** rng.uniform(-width, width, n_samples)
    return case


SOURCES: dict[str, Callable[[int], Generated | None]] = {
    "numbers": numbers,
    "domains": domains,
    "classes": classes,
    "ordinary": ordinary,
    "degenerate": degenerate,
    "labels": labels,
    "extreme": extreme,
}
