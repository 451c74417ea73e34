"""Do promises hold as often as they say?  Simulated rows, with the population known.

    python -m benchmarks.promises [--draws 400] [CASE …]
    python -m benchmarks.promises --fits    # is the worst-case loss of a fit such a promise?

A model is fitted to 300 rows, five times.  For each fit, ``drlogit.guarantee`` or
``drlogit.choose_threshold`` is asked many times about fresh rows, at 95 % confidence.  The truth is
the worst case around 60,000 further rows.  The table has the share of promises that held, with its
standard error, and the median of what promise and truth are apart.  A choice that is refused
because no threshold keeps the limit promises nothing, and counts as held; the last column has the
share of these.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import log_loss

import drlogit

POPULATION, FITTED, FITS = 60_000, 300, 5

#: A missed positive costs fifty false alarms.
SKEWED = {(1, 0): 50.0, (0, 1): 1.0}

Draw = Callable[[np.random.Generator, int], tuple[Any, Any]]


def balanced(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Labels that a logistic model makes."""
    X = rng.standard_normal((n, 4))
    return X, (X @ [1.5, -1.0, 0.5, 0.0] + rng.logistic(size=n) > 0.0).astype(int)


def rare(share: float) -> Draw:
    """Few positives, whose features differ a little."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        y = (rng.random(n) < share).astype(int)
        return rng.standard_normal((n, 3)) + y[:, None], y

    return draw


def wrong(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Classes far apart, and two per cent of the labels wrong."""
    y = (rng.random(n) < 0.5).astype(int)
    X = rng.standard_normal((n, 3))
    X[:, 0] += 6.0 * y - 3.0
    return X, np.where(rng.random(n) < 0.02, 1 - y, y)


def heavy(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Features with Student's t of three degrees of freedom."""
    X = rng.standard_t(3.0, (n, 4))
    return X, (X @ [1.5, -1.0, 0.5, 0.0] + rng.logistic(size=n) > 0.0).astype(int)


FEW = rare(0.02)


class Case(NamedTuple):
    """What is promised of which population, from how many rows."""

    draw: Draw
    sizes: tuple[int, ...]
    metric: Any = None
    #: Of a threshold that is chosen.
    goal: dict[str, Any] = {}  # noqa: RUF012
    epsilon: float = 0.02
    kappa: float = math.inf
    threshold: float = 0.5


CASES = {
    "error": Case(balanced, (30, 60, 100, 300), "error", kappa=1.0),
    "error, 2 % positives": Case(FEW, (30, 60, 100, 300), "error", epsilon=0.002, kappa=1.0),
    "error, heavy tails": Case(heavy, (30, 100, 300), "error"),
    "error, 2 % wrong labels": Case(wrong, (30, 60, 100, 300), "error"),
    "costs of 50 to 1, 2 % positives": Case(FEW, (30, 100, 300), SKEWED, epsilon=0.002),
    **{
        f"recall, {100 * share:g} % positives": Case(
            rare(share), (100, 300, 1000, 3000), "recall", epsilon=0.002, threshold=share
        )
        for share in (0.5, 0.1, 0.02)
    },
    "log-loss": Case(balanced, (30, 60, 100, 300), "log_loss", kappa=1.0),
    "log-loss, 2 % wrong labels": Case(wrong, (30, 60, 100, 300), "log_loss"),
    "log-loss, 2 % positives": Case(FEW, (30, 60, 100, 300), "log_loss", epsilon=0.002),
    "log-loss, heavy tails": Case(heavy, (30, 100, 300), "log_loss"),
    "threshold by costs of 50 to 1": Case(
        FEW, (30, 100, 300), goal={"costs": SKEWED}, epsilon=0.002
    ),
    "threshold by costs of 5 to 1": Case(
        balanced, (30, 100, 300), goal={"costs": {(1, 0): 5.0, (0, 1): 1.0}}, kappa=1.0
    ),
    "threshold by max_fpr": Case(balanced, (60, 100, 300), goal={"max_fpr": 0.3}),
    "threshold by min_recall": Case(balanced, (60, 100, 300), goal={"min_recall": 0.6}),
    "threshold by min_recall, 2 %": Case(FEW, (300, 1000), goal={"min_recall": 0.3}, epsilon=0.002),
    "threshold by min_precision": Case(balanced, (100, 300), goal={"min_precision": 0.6}),
}


def simulate(case: Case, n: int, draws: int, rng: np.random.Generator) -> str:
    """The row of the table for one case and one number of rows."""
    held, apart, refused = [], [], 0
    X, y = case.draw(rng, POPULATION)
    for _ in range(FITS):
        A, b = case.draw(rng, FITTED)
        while np.unique(b).size < 2:
            A, b = case.draw(rng, FITTED)
        model = drlogit.DRLogisticRegression(case.epsilon, case.kappa).fit(A, b)
        known: dict[Any, float] = {}

        def truth(metric: Any, threshold: float) -> float:
            key = threshold  # one metric for each case
            if key not in known:  # noqa: B023
                found = drlogit.worst_case(model, X, y, metric, threshold=threshold)  # noqa: B023
                known[key] = found.value  # noqa: B023
            return known[key]  # noqa: B023

        for _ in range(draws // FITS):
            rows = case.draw(rng, n)
            metric, threshold = case.metric, case.threshold
            try:
                if metric is not None:
                    promise = drlogit.guarantee(
                        model, *rows, metric, threshold=threshold, random_state=rng
                    )
                else:
                    choice = drlogit.choose_threshold(model, *rows, **case.goal, random_state=rng)
                    promise, threshold = choice.promise, choice.threshold
                    ((name, goal),) = case.goal.items()
                    metric = goal if name == "costs" else name.partition("_")[2]
            except ValueError as error:
                if "no threshold keeps" not in str(error) and "not defined" not in str(error):
                    raise
                refused += 1
                held.append(True)
                continue
            sign = -1.0 if promise.is_benefit else 1.0
            excess = sign * (promise.value - truth(metric, threshold))
            held.append(excess >= -1e-12)
            apart.append(excess)
    share = float(np.mean(held))
    error = math.sqrt(max(share * (1.0 - share), 1.0 / len(held)) / len(held))
    middle = f"{np.median(apart):.3f}" if apart else "–"
    return f"{len(held)} | {share:.1%} ± {error:.1%} | {middle} | {refused / len(held):.0%} |"


def surpassed(draw: Draw, count: int = 400) -> str:
    """How often the loss of the population is above the worst-case loss of a fit (default ball)."""
    rng = np.random.default_rng(0)
    X, y = draw(rng, POPULATION)
    above = 0
    for _ in range(count):
        A, b = draw(rng, FITTED)
        while np.unique(b).size < 2:
            A, b = draw(rng, FITTED)
        model = drlogit.DRLogisticRegression().fit(A, b)
        worst = drlogit.worst_case(model, A, b, ball=model.ball_).value
        above += log_loss(y, model.predict_proba(X)) > worst
    return f"{above / count:.0%} of {count} fits"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join(CASES).replace("%", "%%")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=names)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fits", action="store_true", help="only the worst-case losses of fits")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.fits:
        for name, draw in {"half": balanced, "10 %": rare(0.1), "2 %": FEW, "heavy": heavy}.items():
            print(f"{name} positive: the loss of the population is larger in {surpassed(draw)}")
        return
    print("| promise | rows | draws | held | apart | refused |\n|---|---|---|---|---|---|")
    for name in options.cases or CASES:
        for n in CASES[name].sizes:
            rng = np.random.default_rng([options.seed, list(CASES).index(name), n])
            print(f"| {name} | {n} | {simulate(CASES[name], n, options.draws, rng)}", flush=True)


if __name__ == "__main__":
    main()
