"""Free columns that are nearly degenerate, judged with fifty digits: is any bound false?

    python -m benchmarks.degenerate --count 10000

Each problem has up to three free columns beside the intercept (ε = 0, or features that cannot
move), with offsets up to 1e15, columns that agree to within 1e-16 of each other, copies, whole
multiples, subnormal differences, and data that are nearly separable.  The judge shares nothing
with the library: from the point that it returned, Newton's method with fifty digits on the free
coefficients of the very numbers that the library was given.  Whatever point that reaches with
coefficients in the range of doubles, a bound above its value is false.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

import drlogit

DIGITS = 50

#: No coefficient is larger.
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Degenerate:
    """A problem with degenerate free columns."""

    seed: int
    kind: str
    X: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]
    options: dict[str, Any]


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


def generate(seed: int) -> Degenerate | None:
    """The problem of a seed; None if it has one class only."""
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
    return Degenerate(seed, kind, X[:, order], y, options)


def value_by_hand(problem: Degenerate, result: drlogit.Result, steps: int = 12) -> Any:
    """The least value that Newton's method on the free coefficients finds, with fifty digits."""
    mp.mp.dps = DIGITS
    options = problem.options
    signs = [1 if label else -1 for label in problem.y]
    n = len(signs)
    costs = options["feature_costs"]
    free = [j for j in range(problem.X.shape[1]) if costs is None or math.isinf(costs[j])]
    rows = [[s * mp.mpf(float(x)) for x in row] for s, row in zip(signs, problem.X, strict=True)]
    fixed = [j for j in range(problem.X.shape[1]) if j not in free]
    offset = [mp.fsum(row[j] * mp.mpf(float(result.coef[j])) for j in fixed) for row in rows]
    Z = [[row[j] for j in free] for row in rows]
    v = [mp.mpf(float(result.coef[j])) for j in free]
    if options["fit_intercept"]:
        Z = [[*row, mp.mpf(s)] for s, row in zip(signs, Z, strict=True)]
        v.append(mp.mpf(result.intercept))
    kink = options["kappa"] * mp.mpf(result.lam) if math.isfinite(options["kappa"]) else mp.inf
    penalty = mp.mpf(options["epsilon"]) * mp.mpf(result.lam)
    Z, v, triangle = _orthogonal(Z, v)

    def margins(at: list[Any]) -> list[Any]:
        return [o + mp.fdot(row, at) for o, row in zip(offset, Z, strict=True)]

    def value(at: list[Any]) -> Any:
        terms = (mp.log1p(mp.exp(-abs(u))) - min(u, 0) + max(u - kink, 0) for u in margins(at))
        return penalty + mp.fsum(terms) / n

    best = value(v)
    for _ in range(steps if v else 0):
        u = margins(v)
        s = [1 / (1 + mp.exp(x)) - (x > kink) for x in u]
        curvature = [1 / (2 + mp.exp(x) + mp.exp(-x)) for x in u]
        gradient = mp.matrix([mp.fdot(s, column) for column in zip(*Z, strict=True)])
        hessian = mp.matrix(
            [
                [mp.fsum(c * p * q for c, p, q in zip(curvature, one, two, strict=True))
                 for one in zip(*Z, strict=True)]
                for two in zip(*Z, strict=True)
            ]
        )  # fmt: skip
        for k in range(len(v)):
            hessian[k, k] *= 1 + mp.mpf(10) ** (10 - DIGITS)
        try:
            step = mp.lu_solve(hessian, gradient)
        except ZeroDivisionError:
            break
        length = mp.mpf(1)
        while length > 1e-3:
            trial = [x + length * d for x, d in zip(v, step, strict=True)]
            reached = value(trial)
            if reached < best and _largest(triangle, trial) <= LARGEST:
                break
            length /= 2
        else:
            break
        v, best, gained = trial, reached, best - reached
        if gained < 1e-14:
            break
    return best


def _orthogonal(
    Z: list[list[Any]], v: list[Any]
) -> tuple[list[list[Any]], list[Any], list[list[Any]]]:
    """The same model in orthogonal columns of length one, without those that are combinations.

    The third answer holds the columns that were kept in terms of the orthogonal ones.
    """
    columns = [list(column) for column in zip(*Z, strict=True)]
    margins = [mp.fdot(row, v) for row in Z]
    kept: list[list[Any]] = []
    triangle: list[list[Any]] = []
    for column in columns:
        size = mp.sqrt(mp.fdot(column, column))
        if size == 0:
            continue
        rest = [x / size for x in column]
        for _ in range(2):
            for q in kept:
                along = mp.fdot(q, rest)
                rest = [x - along * w for x, w in zip(rest, q, strict=True)]
        length = mp.sqrt(mp.fdot(rest, rest))
        if length > mp.mpf(10) ** (10 - DIGITS):
            kept.append([x / length for x in rest])
            triangle.append([mp.fdot(q, column) for q in kept])
    Q = [list(row) for row in zip(*kept, strict=True)]
    return Q, [mp.fdot(q, margins) for q in kept], triangle


def _largest(triangle: list[list[Any]], v: list[Any]) -> Any:
    """The largest coefficient of the columns as they were given, by back substitution."""
    rest, largest = list(v), mp.mpf(0)
    for k in reversed(range(len(triangle))):
        coefficient = rest[k] / triangle[k][k]
        rest = [x - coefficient * t for x, t in zip(rest, triangle[k], strict=False)]
        largest = max(largest, abs(coefficient))
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    solved, certified, false = 0, 0, []
    for seed in range(arguments.first, arguments.first + arguments.count):
        problem = generate(seed)
        if problem is None:
            continue
        result = drlogit.solve(problem.X, problem.y, **problem.options)
        solved += 1
        certified += result.converged
        if result.dual_objective > 0.0:
            least = value_by_hand(problem, result)
            if result.dual_objective > least + 1e-12:
                false.append(seed)
                print(f"seed {seed} ({problem.kind}): {result} is above {mp.nstr(least, 12)}")
    print(f"{solved} problems, {certified} certified, {len(false)} false bounds")
    raise SystemExit(bool(false))


if __name__ == "__main__":
    main()
