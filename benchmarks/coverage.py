"""Does a guarantee hold as often as it says?  Simulated fits, with the population known.

    python -m benchmarks.coverage [--fits 300] [--seed 0] [CASE …]

In every fit a model is fitted to some rows, and ``drlogit.guarantee`` is asked at 95 % confidence
about others.  The truth, the worst expected log-loss and error over the ball around the population,
is that of 60,000 rows.  The table is that of
docs/guarantee.md: how often the limits held, with standard errors (a loss without a limit counts as
held, and its share is shown), by how much they exceeded the truth (median), and how often the fit's
own number, the worst case over the rows that it was fitted to, would have been true of the
population.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import drlogit
from benchmarks import stated

POPULATION = 60_000
COEF = np.array([1.5, -1.0, 0.5, 0.0, 0.25])

Draw = tuple[Any, Any, Any]  # X, y, weights or None


@dataclass(frozen=True)
class Case:
    """A population, and a model of rows drawn from it."""

    draw: Callable[[np.random.Generator, int], Draw]
    model: Callable[[], Any]
    #: For models that have no ball of their own.
    ball: dict[str, Any] = field(default_factory=dict)
    fitted: int = 300
    unseen: int = 300
    #: Of each row, for a statement about each group besides that about all rows.
    group: Callable[[Any], Any] | None = None
    #: What the rows of a fit must show; others are drawn again.
    shown: Callable[[Any], Any] = lambda X: True


def labels(rng: np.random.Generator, odds: Any) -> Any:
    return np.where(rng.random(odds.size) < 1.0 / (1.0 + np.exp(-odds)), 1, -1)


def normal(rng: np.random.Generator, n: int) -> Draw:
    X = rng.standard_normal((n, COEF.size))
    return X, labels(rng, X @ COEF + 0.3), None


def heavy(rng: np.random.Generator, n: int) -> Draw:
    """Features with Student's t of three degrees of freedom: no fourth moment, no third."""
    X = rng.standard_t(3.0, (n, COEF.size))
    return X, labels(rng, X @ COEF + 0.3), None


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


def rare(share: float) -> Callable[[np.random.Generator, int], Draw]:
    """Few positives, whose features differ a little."""

    def draw(rng: np.random.Generator, n: int) -> Draw:
        X = rng.standard_normal((n, 3))
        y = np.where(rng.random(n) < share, 1, -1)
        return X + 0.7 * (y > 0)[:, None], y, None

    return draw


def outliers(rng: np.random.Generator, n: int) -> Draw:
    """1 % of the rows lie far outside of the range of the others, with labels of their own."""
    X = rng.random((n, 3))
    y = labels(rng, X @ np.array([6.0, -4.0, 2.0]) - 2.0)
    far = rng.random(n) < 0.01
    X[far] += rng.exponential(3.0, (int(far.sum()), 3))
    return X, np.where(far, np.where(rng.random(n) < 0.5, 1, -1), y), None


def dropped(share: float) -> Callable[[np.random.Generator, int], Draw]:
    """The level that an encoder drops is rare, and far from the others."""

    def draw(rng: np.random.Generator, n: int) -> Draw:
        rest = (1.0 - share) / 3.0
        frame = pd.DataFrame(
            {
                "job": rng.choice(list("abcd"), n, p=[share, rest, rest, rest]),
                "region": rng.choice(list("xyz"), n),
            }
        )
        odds = frame["job"].map({"a": -4.0, "b": 1.5, "c": 1.0, "d": 0.5}).to_numpy()
        return frame, labels(rng, odds + 0.8 * (frame["region"] == "x")), None

    return draw


def dropped_columns(rng: np.random.Generator, n: int) -> Draw:
    frame, y, _ = dropped(0.01)(rng, n)
    names = [("job", "b"), ("job", "c"), ("job", "d"), ("region", "y"), ("region", "z")]
    return np.column_stack([frame[a] == b for a, b in names]).astype(float), y, None


def with_first(X: Any) -> bool:
    return bool((X["job"] == "a").any())


def fifths(X: Any) -> Any:
    return np.digitize(X[:, 4], [-0.84, -0.25, 0.25, 0.84])


def robust(**options: Any) -> Callable[[], Any]:
    return lambda: stated.classifier(**options)


def plain() -> Any:
    return LogisticRegression(C=1e4, max_iter=2000)


def encoded() -> Any:
    return make_pipeline(OneHotEncoder(drop="first"), LogisticRegression(C=10.0))


RARE = robust(epsilon=0.001, kappa=1.0)

CASES = {
    "ℓ1, κ = 2, ε = 0.1": Case(normal, robust(epsilon=0.1, kappa=2.0)),
    "ℓ2, κ = ∞, ε = 0.1": Case(normal, robust(epsilon=0.1, kappa=math.inf, norm="l2")),
    "ℓ∞, κ = 1, ε = 0.02": Case(normal, robust(epsilon=0.02, kappa=1.0, norm="linf")),
    "categories, bounds": Case(
        table,
        robust(epsilon=0.05, kappa=1.0, categorical_features="from_dtype", bounds=(0.0, 1.0)),
    ),
    "heavy tails": Case(heavy, robust(epsilon=0.1, kappa=2.0)),
    "a plain fit": Case(normal, plain, {"epsilon": 0.1, "kappa": 2.0}),
    "three classes": Case(three, robust(epsilon=0.1, kappa=2.0)),
    "five groups": Case(normal, robust(epsilon=0.1, kappa=2.0), group=fifths),
    "dropped level, 0.3 %": Case(
        dropped(0.003), encoded, {"epsilon": 0.05, "kappa": 1.0}, shown=with_first
    ),
    "dropped level, 2 %": Case(
        dropped(0.02), encoded, {"epsilon": 0.05, "kappa": 1.0}, shown=with_first
    ),
    "dropped level, our fit": Case(
        dropped_columns,
        robust(epsilon=0.05, kappa=1.0, categories=[[0, 1, 2], [3, 4]]),
        shown=lambda X: (X[:, :3].sum(axis=1) == 0.0).any(),
    ),
    "bounds of the data, outliers": Case(
        outliers, robust(epsilon=0.02, kappa=1.0, bounds="data"), unseen=150
    ),
    "3 % positives, n = 30": Case(rare(0.03), RARE, unseen=30),
    "3 % positives, n = 50": Case(rare(0.03), RARE, unseen=50),
    "3 % positives, n = 100": Case(rare(0.03), RARE, unseen=100),
    "3 % positives, n = 300": Case(rare(0.03), RARE, unseen=300),
    "3 % positives, n = 600": Case(rare(0.03), RARE, unseen=600),
    "1 % positives, n = 100": Case(rare(0.01), RARE, unseen=100),
    "1 % positives, n = 300": Case(rare(0.01), RARE, unseen=300),
    "1 % positives, n = 1500": Case(rare(0.01), RARE, unseen=1500),
}


@dataclass(frozen=True)
class Truth:
    """The worst expected loss and error over the ball around a population."""

    X: Any
    y: Any
    w: Any

    def of(self, models: list[Any], ball: dict[str, Any], some: Any = None) -> tuple[float, float]:
        X, y, w = self.X, self.y, self.w
        if some is not None:
            X, y = X[some], y[some]
        rows = {"X": X, "y": y, "sample_weight": w, "ball": drlogit.Ball(**ball)}
        loss = np.mean([drlogit.worst_case(each, **rows).value for each in models])
        error = np.mean([drlogit.worst_case(each, metric="error", **rows).value for each in models])
        return float(loss), float(error)


def simulate(case: Case, fits: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    truth = Truth(*case.draw(rng, POPULATION))
    held, excess, in_sample, limited = np.zeros(3), [], [], 0
    for _ in range(fits):
        A, b, _ = case.draw(rng, case.fitted)
        while np.unique(b).size < 2 or not case.shown(A):
            A, b, _ = case.draw(rng, case.fitted)
        model = case.model()
        model.fit(A, b)
        own = case.ball or {"epsilon": model.ball_.epsilon, "kappa": model.ball_.kappa}
        models = [model]
        A, b, _ = case.draw(rng, case.unseen)
        asked = dict(case.ball)
        if case.group is not None:
            asked["groups"] = case.group(A)
        found = drlogit.guarantee(model, A, b, **asked)
        statements = [(found, truth.of(models, own))]
        for value, part in enumerate(found.groups):
            some = case.group(truth.X) == value
            statements.append((part, truth.of(models, own, some)))
        holds = np.array([(f.loss >= t[0], f.error >= t[1]) for f, t in statements])
        held += [*holds.all(axis=0), holds.all()]
        loss, error = statements[0][1]
        excess.append((found.loss - loss, found.error - error))
        limited += sum(math.isfinite(f.loss) for f, _ in statements)
        if hasattr(model, "worst_case_loss_"):
            in_sample.append(np.ravel(model.worst_case_loss_)[0] >= loss)
    share = held / fits
    errors = np.sqrt(np.maximum(share * (1.0 - share), 1.0 / fits) / fits)
    shown = " | ".join(f"{a:.1%} ± {b:.1%}" for a, b in zip(share, errors, strict=True))
    none = 1.0 - limited / (fits * len(statements))
    finite = [each for each, _ in excess if math.isfinite(each)]
    more = f"{np.median(finite):.3f}" if finite else "–"
    fitted = f"{np.mean(in_sample):.0%}" if in_sample else "–"
    wrong = np.median([each for _, each in excess])
    return f"{fits} | {shown} | {none:.0%} | {more} | {wrong:.3f} | {fitted} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--fits", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| | fits | loss held | error held | all | no limit of the loss | excess, loss "
        "| excess, error | in-sample |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.cases or CASES:
        seed = 1000 * options.seed + list(CASES).index(name)
        print(f"| {name} | {simulate(CASES[name], options.fits, seed)}", flush=True)


if __name__ == "__main__":
    main()
