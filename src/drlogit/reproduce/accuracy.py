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
import time
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..fitting.solving import solve
from ..rows.arrays import Matrix
from . import paper
from .data import load
from .environment import thread_limits
from .store import Row
from .tasks import Obstacle, Results, Task

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
RLR = Model("RLR", (paper.TABLE_3_EPSILON,), (math.inf,))
DRLR = Model("DRLR", (paper.TABLE_3_EPSILON,), (paper.TABLE_3_KAPPA,))
TUNED_RLR = Model("RLR, tuned", EPSILONS, (math.inf,))
TUNED_DRLR = Model("DRLR, tuned", EPSILONS, KAPPAS)
RIDGE = Model("ℓ2 LR, tuned", PENALTIES, ())
MODELS = (PLAIN, RLR, DRLR, TUNED_RLR, TUNED_DRLR, RIDGE)


class Split(NamedTuple):
    """Training and test samples."""

    X: Matrix
    y: np.ndarray[Any, Any]
    X_test: Matrix
    y_test: np.ndarray[Any, Any]


def split(data: str, seed: int) -> Split:
    """60 % of the samples to train on, drawn without regard to their labels.

    Columns that are zero in all training samples are left out of dense data: no model can learn
    from them.
    """
    X, y = load(data)
    order = np.random.default_rng(seed).permutation(y.size)
    count = round(paper.TRAINING_SHARE * y.size)
    train, test = order[:count], order[count:]
    X_train, X_test = X[train], X[test]
    if not sp.issparse(X):
        used = X_train.any(axis=0)
        X_train, X_test = np.ascontiguousarray(X_train[:, used]), X_test[:, used]
    return Split(X_train, y[train], X_test, y[test])


@dataclass(frozen=True)
class Search(Task):
    """Mean accuracy over the folds along one line of the grid: the radii of one κ, or penalties.

    ``kappa`` is None for the penalties of ℓ2 LR.
    """

    kappa: float | None
    strengths: tuple[float, ...]
    folds: int = FOLDS
    tol: float = SEARCH_TOL

    def obstacle(self, results: Results) -> Obstacle | None:
        """Nothing to run it on."""
        return self.without_data()

    def run(self, results: Results) -> Row:
        """Fit every candidate on every fold."""
        sample = split(self.data, SEARCH_SPLIT)
        started = time.process_time()
        with thread_limits(1):
            scores = self._ridge(sample) if self.kappa is None else self._robust(sample, self.kappa)
        score, chosen = max(zip(scores, self.strengths, strict=True))  # the strongest of equals
        seconds = time.process_time() - started
        return {"chosen": chosen, "score": score, "scores": scores, "cpu_seconds": seconds}

    def _robust(self, sample: Split, kappa: float) -> list[float]:
        search = DRLogisticRegressionCV(
            epsilons=self.strengths, kappas=(kappa,), cv=self.folds, scoring="accuracy",
            fit_intercept=False, tol=self.tol, refit=False,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the score is all that is asked
            found = search.fit(sample.X, sample.y).cv_results_
        scores = dict(zip(found["param_epsilon"], found["mean_test_score"], strict=True))
        return [float(scores[epsilon]) for epsilon in self.strengths]

    def _ridge(self, sample: Split) -> list[float]:
        return [
            float(cross_val_score(_ridge(a, sample.X), sample.X, sample.y, cv=self.folds).mean())
            for a in self.strengths
        ]

    def line(self, row: Row) -> str:
        """What was chosen."""
        what = "ℓ2 penalty" if self.kappa is None else f"κ={self.kappa:g}, ε"
        return f"{what} = {row['chosen']:g} chosen, accuracy on the folds {row['score']:.2%}"


@dataclass(frozen=True)
class Trial(Task):
    """One model fitted to one split and tested on the rest."""

    model: str
    strengths: tuple[float, ...]
    kappas: tuple[float, ...]
    trial: int
    folds: int = FOLDS
    tol: float = TOL

    @property
    def searches(self) -> list[Search]:
        """What must be known before: for each κ the best of the candidates."""
        if len(self.strengths) * max(len(self.kappas), 1) == 1:
            return []
        return [
            Search(self.experiment, self.data, kappa, self.strengths, self.folds)
            for kappa in self.kappas or (None,)
        ]

    def chosen(self, results: Results) -> tuple[float, float | None]:
        """The strength and κ with the best score; of equals the larger κ, the simpler model."""
        if not self.searches:
            return self.strengths[0], self.kappas[0] if self.kappas else None
        rows = results.of(self.searches)
        best = max(rows, key=lambda row: (row["score"], row["kappa"] or 0.0))
        return best["chosen"], best["kappa"]

    def obstacle(self, results: Results) -> Obstacle | None:
        """Without data or searches there is nothing to fit."""
        missing = sum(search not in results for search in self.searches)
        if self.without_data() or not missing:
            return self.without_data()
        return Obstacle("not searched", f"{missing} searches for its parameters are missing")

    def run(self, results: Results) -> Row:
        """Fit on the clock, test off it."""
        strength, kappa = self.chosen(results)
        sample = split(self.data, self.trial)
        gap, status = None, "CONVERGED"
        started = time.process_time()
        with thread_limits(1):
            if kappa is None:
                coef = np.ravel(_ridge(strength, sample.X).fit(sample.X, sample.y).coef_)
            else:
                result = solve(
                    sample.X, sample.y, epsilon=strength, kappa=kappa, norm="l1",
                    fit_intercept=False, tol=self.tol,
                )  # fmt: skip
                coef, gap, status = result.coef, result.gap, result.status.name
        seconds = time.process_time() - started
        return {
            "strength": strength,
            "kappa": kappa,
            "accuracy": _accuracy(sample.X_test, sample.y_test, coef),
            "training_accuracy": _accuracy(sample.X, sample.y, coef),
            "gap": gap,
            "status": status,
            "cpu_seconds": seconds,
        }

    def line(self, row: Row) -> str:
        """The accuracy."""
        gap = "" if row["gap"] is None else f", gap {row['gap']:.1e}"
        return f"{self.model}, trial {self.trial}: accuracy {row['accuracy']:.2%}{gap}"


def _ridge(penalty: float, X: Matrix) -> Any:
    """``min (1/N) Σ h(u_i) + (penalty/2)‖β‖²`` by scikit-learn."""
    C = 1.0 / (penalty * X.shape[0])
    return LogisticRegression(C=C, fit_intercept=False, max_iter=10_000)


def _accuracy(X: Matrix, y: np.ndarray[Any, Any], coef: Any) -> float:
    """The share of samples with a positive margin."""
    return float(np.mean(y * (X @ coef) > 0.0))
