"""Table 3: test accuracy of plain, regularised and robust logistic regression.

Each trial draws 60 % of the samples at random to train on and tests on the others.  The models,
all without an intercept:

    LR        plain, up to ε = 1e-9 (at 0 most of these sets have no best model: see below)
    RLR       labels beyond doubt: κ = ∞, which is ℓ∞-regularisation with weight ε
    DRLR      the robust model, finite κ
    ℓ2 LR     scikit-learn's LogisticRegression, which the paper does not have

RLR and DRLR once with the paper's ε = 0.3, κ = 7, and once with what a grid search with
cross-validation chooses, as for ℓ2 LR.  The paper prints one pair for all its sets; here the search
is made once for every set, on the training part of a split that is none of the trials.

Where a hyperplane separates the training samples, or a feature occurs in one class only, plain
logistic regression has no minimiser: coefficients grow for ever.  What a program returns is then
decided by when it stops.  With ε = 1e-9 the model exists and its gap can be certified.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import drlogit

from ..environment import thread_limits
from ..store import Row
from . import published
from .datasets import as_in_the_paper
from .rows import Rows, data_of, markdown, task

#: Radii, flip costs and ℓ2 penalties that the search chooses from; the paper names no grid.
EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
KAPPAS = (1.0, 7.0, 50.0)
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
FOLDS = 5

#: Gap of the fits: in the table, and while searching, where only signs of margins count.
TOL, SEARCH_TOL = 1e-6, 1e-4

#: Seed of the split for the search; trials are numbered from 0.
SEARCH_SPLIT = 1_000_000


class Model(NamedTuple):
    """A model and the grid its parameters are chosen from; one candidate needs no search.

    ``kappas`` is empty for ℓ2 LR, whose ``strengths`` are penalties and not radii.
    """

    name: str
    strengths: tuple[float, ...]
    kappas: tuple[float, ...]


PLAIN = Model("LR", (1e-9,), (math.inf,))
RLR = Model("RLR", (published.TABLE_3_EPSILON,), (math.inf,))
DRLR = Model("DRLR", (published.TABLE_3_EPSILON,), (published.TABLE_3_KAPPA,))
TUNED_RLR = Model("RLR, tuned", EPSILONS, (math.inf,))
TUNED_DRLR = Model("DRLR, tuned", EPSILONS, KAPPAS)
RIDGE = Model("ℓ2 LR, tuned", PENALTIES, ())
MODELS = {m.name: m for m in (PLAIN, RLR, DRLR, TUNED_RLR, TUNED_DRLR, RIDGE)}


class Split(NamedTuple):
    """Training and test samples."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


@lru_cache(maxsize=1)
def _load(data: str) -> tuple[Any, Any]:
    return as_in_the_paper(data)


@lru_cache(maxsize=1)  # the models of a trial follow each other
def split(data: str, seed: int) -> Split:
    """60 % of the samples to train on, drawn without regard to their labels.

    Columns that are zero in all training samples are left out of dense data: no model can learn
    from them.
    """
    X, y = _load(data)
    order = np.random.default_rng(seed).permutation(y.size)
    count = round(published.TRAINING_SHARE * y.size)
    train, test = order[:count], order[count:]
    X_train, X_test = X[train], X[test]
    if not sp.issparse(X):
        used = X_train.any(axis=0)
        X_train, X_test = np.ascontiguousarray(X_train[:, used]), X_test[:, used]
    return Split(X_train, y[train], X_test, y[test])


def plan(quick: bool) -> list[Row]:
    """The trials, in rounds, so that a run stopped early knows something of every set.

    Searches come before the first trial that needs them.
    """
    sets = ("a1a", "a2a", "mnist-0v3") if quick else tuple(published.TABLE_3)
    trials = 2 if quick else published.TRIALS
    tasks = []
    for begin in range(0, trials, 10):
        for data in sets:
            # A quick run does not search where a search takes minutes.
            names = [m.name for m in (PLAIN, RLR, DRLR)] if quick and "mnist" in data else MODELS
            if begin == 0:
                needed = {line: None for name in names for line in searches(MODELS[name])}
                tasks += [task("table3-search", data, line) for line in needed]
            tasks += [
                task("table3", data, name, trial)
                for trial in range(begin, min(begin + 10, trials))
                for name in names
            ]
    return tasks


def searches(model: Model) -> list[str]:
    """The lines of the grid among which a model is chosen: the radii of a κ, or penalties."""
    if len(model.strengths) * max(len(model.kappas), 1) == 1:
        return []
    return [f"κ={kappa:g}" for kappa in model.kappas] or ["penalty"]


def measure(run: Row, rows: Rows) -> Row | str:
    """The row of a search or a trial, or why there is none."""
    return search(run) if run["experiment"] == "table3-search" else trial(run, rows)


def search(run: Row) -> Row:
    """Mean accuracy over the folds along one line of the grid."""
    sample = split(run["data"], SEARCH_SPLIT)
    kappa = None if run["method"] == "penalty" else float(run["method"].removeprefix("κ="))
    strengths = PENALTIES if kappa is None else EPSILONS
    started = time.process_time()
    with thread_limits(1):
        if kappa is None:
            scores = [
                float(cross_val_score(_ridge(a, sample.X), sample.X, sample.y, cv=FOLDS).mean())
                for a in strengths
            ]
        else:
            scores = _robust_scores(sample, kappa)
    score, chosen = max(zip(scores, strengths, strict=True))  # the strongest of equals
    seconds = time.process_time() - started
    return {"kappa": kappa, "chosen": chosen, "score": score, "cpu_seconds": seconds}


def _robust_scores(sample: Split, kappa: float) -> list[float]:
    search = drlogit.DRLogisticRegressionCV(
        epsilons=EPSILONS, kappas=(kappa,), cv=FOLDS, scoring="accuracy", fit_intercept=False,
        tol=SEARCH_TOL, refit=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the score is all that is asked
        found = search.fit(sample.X, sample.y).cv_results_
    scores = dict(zip(found["param_epsilon"], found["mean_test_score"], strict=True))
    return [float(scores[epsilon]) for epsilon in EPSILONS]


def trial(run: Row, rows: Rows) -> Row | str:
    """One model fitted to one split (on the clock) and tested on the rest."""
    model = MODELS[run["method"]]
    strength, kappa = model.strengths[0], model.kappas[0] if model.kappas else None
    lines = searches(model)
    if lines:
        found = rows.of([task("table3-search", run["data"], line) for line in lines])
        if len(found) < len(lines):
            return "not searched"
        # Of equals the larger κ, the simpler model.
        best = max(found, key=lambda row: (row["score"], row["kappa"] or 0.0))
        strength, kappa = best["chosen"], best["kappa"]
    sample = split(run["data"], run["trial"])
    gap, status = None, "CONVERGED"
    started = time.process_time()
    with thread_limits(1):
        if kappa is None:
            coef = np.ravel(_ridge(strength, sample.X).fit(sample.X, sample.y).coef_)
        else:
            result = drlogit.solve(
                sample.X, sample.y, epsilon=strength, kappa=kappa, norm="l1", fit_intercept=False,
                tol=TOL,
            )  # fmt: skip
            coef, gap, status = result.coef, result.gap, result.status.name
    return {
        "strength": strength,
        "kappa": kappa,
        "cpu_seconds": time.process_time() - started,
        "accuracy": float(np.mean(sample.y_test * (sample.X_test @ coef) > 0.0)),
        "gap": gap,
        "status": status,
    }


def _ridge(penalty: float, X: Any) -> Any:
    """``min (1/N) Σ h(u_i) + (penalty/2)‖β‖²`` by scikit-learn."""
    C = 1.0 / (penalty * X.shape[0])
    return LogisticRegression(C=C, fit_intercept=False, max_iter=10_000)


def tables(rows: Rows, tasks: list[Row]) -> str:
    """Once with the paper's parameters, once with those of the search; standard errors."""
    parts = []
    for caption, lead, models in (
        ("Table 3: test accuracy in percent with the paper's ε = 0.3, κ = 7",
         ["paper: LR", "paper: RLR", "paper: DRLR"], (PLAIN, RLR, DRLR)),
        ("Table 3: test accuracy in percent with parameters from cross-validation",
         ["ℓ2 LR: penalty", "RLR: ε", "DRLR: ε, κ"], (RIDGE, TUNED_RLR, TUNED_DRLR)),
    ):  # fmt: skip
        names = [model.name.removesuffix(", tuned") for model in models]
        columns = [
            "data", *lead, *names, f"{names[1]} − {names[0]}", f"{names[2]} − {names[1]}", "trials"
        ]  # fmt: skip
        lines = []
        for data in data_of(tasks):
            found = [_by_trial(rows, tasks, data, model.name) for model in models]
            if not all(found):
                continue
            if models[0] is PLAIN:
                cells = [f"{value:.2f}" for value in published.TABLE_3[data]]
            else:
                cells = [
                    _parameters(each, model) for each, model in zip(found, models, strict=True)
                ]
            cells += [_percent([row["accuracy"] for row in each.values()]) for each in found]
            cells += [_percent(_differences(found[i + 1], found[i]), "+") for i in (0, 1)]
            lines.append([data, *cells, str(min(map(len, found)))])
        parts.append(markdown(caption, columns, lines))
    gaps = [row["gap"] for row in rows.of(tasks) if row.get("gap") is not None]
    good = sum(gap <= TOL for gap in gaps)
    if gaps:
        parts.append(
            f"{good} of {len(gaps)} fits are certified to {TOL:g}; largest {max(gaps):.0e}.\n"
        )
    return "\n".join(part for part in parts if part)


def _by_trial(rows: Rows, tasks: list[Row], data: str, model: str) -> dict[int, Row]:
    wanted = [
        run for run in tasks
        if (run["experiment"], run["data"], run["method"]) == ("table3", data, model)
    ]  # fmt: skip
    return {row["trial"]: row for row in rows.of(wanted)}


def _differences(better: dict[int, Row], worse: dict[int, Row]) -> list[float]:
    """On the same splits."""
    return [better[t]["accuracy"] - worse[t]["accuracy"] for t in better.keys() & worse.keys()]


def _parameters(found: dict[int, Row], model: Model) -> str:
    row = next(iter(found.values()))
    kappa = f", {row['kappa']:g}" if len(model.kappas) > 1 else ""
    return f"{row['strength']:g}{kappa}"


def _percent(values: Sequence[float], sign: str = "") -> str:
    """A mean and its standard error."""
    mean = f"{100.0 * statistics.fmean(values):{sign}.2f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {100.0 * statistics.stdev(values) / math.sqrt(len(values)):.2f}"
