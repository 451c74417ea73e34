"""Does a guarantee hold as often as it says?  Simulated fits, with the population known.

    python -m benchmarks.coverage [--fits 200] [CASE …]

In every fit a model is fitted to 300 rows and ``drlogit.guarantee`` asked at 95 % confidence about
300 others.  The truth, the worst expected log-loss and error over the ball around the population,
is that of 300,000 rows.  *Out of fold* there are no others: it is asked about the rows of the fit,
and the truth is the mean over the models without each fold, of 30,000 rows.  Printed is the table
of docs/guarantee.md: how often the limits held, by how much they exceeded the truth (median), and
how often the fit's own number, the worst case over the rows that it was fitted to, would have been
true of the population.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

import drlogit

FITTED, UNSEEN, POPULATION = 300, 300, 300_000
COEF = np.array([1.5, -1.0, 0.5, 0.0, 0.25])

Draw = tuple[Any, Any, Any]  # X, y, weights or None


@dataclass(frozen=True)
class Case:
    """A population, and a model of rows drawn from it."""

    draw: Callable[[np.random.Generator, int], Draw]
    model: Callable[[], Any]
    #: For models that have no ball of their own.
    ball: dict[str, Any]
    folds: int | None = None


def labels(rng: np.random.Generator, odds: Any) -> Any:
    return np.where(rng.random(odds.size) < 1.0 / (1.0 + np.exp(-odds)), 1, -1)


def normal(rng: np.random.Generator, n: int) -> Draw:
    X = rng.standard_normal((n, COEF.size))
    return X, labels(rng, X @ COEF + 0.3), None


def heavy(rng: np.random.Generator, n: int) -> Draw:
    """Features with Student's t of three degrees of freedom: no fourth moment, no third."""
    X = rng.standard_t(3.0, (n, COEF.size))
    return X, labels(rng, X @ COEF + 0.3), None


def weighted(rng: np.random.Generator, n: int) -> Draw:
    """Every fifth of the population is left out of the sample in four of five cases."""
    X = rng.standard_normal((5 * n, COEF.size))
    y = labels(rng, X @ COEF + 0.3)
    rare = X[:, 0] > 0.84
    kept = np.flatnonzero(~rare | (rng.random(rare.size) < 0.2))[:n]
    return X[kept], y[kept], np.where(rare[kept], 5.0, 1.0)


def table(rng: np.random.Generator, n: int) -> Draw:
    """Categories and shares: nothing can move far."""
    frame = pd.DataFrame(
        {
            "job": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]),
            "region": rng.choice(list("xyz"), n),
            "share": rng.random(n),
            "rate": rng.random(n),
        }
    )
    odds = 2.0 * (frame["job"] == "a") - 1.5 * (frame["region"] == "x") + 2.0 * frame["share"] - 1.2
    return frame, labels(rng, odds.to_numpy()), None


def three(rng: np.random.Generator, n: int) -> Draw:
    X = rng.standard_normal((n, COEF.size))
    scores = X[:, :3] * 1.5 + np.array([0.3, 0.0, -0.3])
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1), None


def robust(**options: Any) -> Callable[[], Any]:
    return lambda: drlogit.DRLogisticRegression(**options)


def searched() -> Any:
    return drlogit.DRLogisticRegressionCV([0.2, 0.1, 0.05, 0.02], [1.0, 4.0])


def plain() -> Any:
    return LogisticRegression(C=1e4, max_iter=2000)


CASES = {
    "ℓ1, κ = 2, ε = 0.1": Case(normal, robust(epsilon=0.1, kappa=2.0), {}),
    "ℓ2, κ = ∞, ε = 0.1": Case(normal, robust(epsilon=0.1, kappa=math.inf, norm="l2"), {}),
    "ℓ∞, κ = 1, ε = 0.02": Case(normal, robust(epsilon=0.02, kappa=1.0, norm="linf"), {}),
    "weights 1 and 5": Case(weighted, robust(epsilon=0.1, kappa=2.0), {}),
    "categories, bounds": Case(
        table,
        robust(epsilon=0.05, kappa=1.0, categorical_features="from_dtype", bounds=(0.0, 1.0)),
        {},
    ),
    "heavy tails": Case(heavy, robust(epsilon=0.1, kappa=2.0), {}),
    "a plain fit": Case(normal, plain, {"epsilon": 0.1, "kappa": 2.0}),
    "three classes": Case(three, robust(epsilon=0.1, kappa=2.0), {}),
    "out of fold": Case(normal, robust(epsilon=0.1, kappa=2.0), {}, 5),
    "out of fold, one of 8 pairs": Case(normal, searched, {}, 5),
}


def simulate(case: Case, fits: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    X, y, w = case.draw(rng, POPULATION // 10 if case.folds else POPULATION)
    held = np.zeros(3)
    excess, in_sample = [], []
    for _ in range(fits):
        A, b, u = case.draw(rng, FITTED)
        model = case.model().fit(A, b, sample_weight=u)
        own = case.ball or {"epsilon": model.epsilon_, "kappa": model.kappa_}
        if case.folds:
            splits = StratifiedKFold(case.folds).split(A, b)
            models = [robust(**own)().fit(A[train], b[train]) for train, _ in splits]
        else:
            models = [model]
            A, b, u = case.draw(rng, UNSEEN)
        found = drlogit.guarantee(model, A, b, sample_weight=u, cv=case.folds, **case.ball)
        rows = {"X": X, "y": y, "sample_weight": w} | own
        loss = np.mean([drlogit.worst_case_loss(each, **rows) for each in models])
        error = np.mean([drlogit.misclassification_bounds(each, **rows).worst for each in models])
        holds = found.loss >= loss, found.error >= error
        held += [*holds, all(holds)]
        excess.append((found.loss - loss, found.error - error))
        if hasattr(model, "worst_case_loss_"):
            in_sample.append(np.ravel(model.worst_case_loss_)[0] >= loss)
    loss_share, error_share, both = held / fits
    more, wrong = np.median(excess, axis=0)
    fitted = f"{np.mean(in_sample):.0%}" if in_sample else "–"
    return (
        f"{fits} | {loss_share:.1%} | {error_share:.1%} | {both:.1%} | {more:.3f} | {wrong:.3f} "
        f"| {fitted} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--fits", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| | fits | loss held | error held | both | excess, loss | excess, error | in-sample |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.cases or CASES:
        print(
            f"| {name} | {simulate(CASES[name], options.fits, list(CASES).index(name))}", flush=True
        )


if __name__ == "__main__":
    main()
