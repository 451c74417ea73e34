"""The public names as a typed program uses them: mypy reads this in strict mode, a test runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import drlogit
from drlogit.problem.result import Iterate


def fit_and_question(folder: Path) -> dict[str, float]:
    """Fit in every way, ask everything, save and load."""
    X, y = drlogit.datasets.make_synthetic(60, 3, random_state=0)
    seen: list[float] = []

    def watch(iterate: Iterate) -> bool:
        seen.append(iterate.gap)
        return False

    result: drlogit.Result = drlogit.solve(X, y, epsilon=0.01, kappa=1.0, callback=watch)
    coef: NDArray[np.float64] = result.coef
    status: drlogit.Status = result.status

    model = drlogit.DRLogisticRegression(epsilon=0.01, kappa=1.0, norm="l2").fit(X, y)
    fitted: drlogit.DRLogisticRegression = model
    scores: NDArray[np.float64] = model.decision_function(X)
    search = drlogit.DRLogisticRegressionCV(epsilons=(0.01, 0.02), kappas=(1.0,), cv=2).fit(X, y)
    tuned: float = search.epsilon_
    path: drlogit.RegularizationPath = drlogit.regularization_path(X, y, n_epsilons=2, kappa=1.0)
    drlogit.save_model(fitted, folder / "model.json")
    again: drlogit.DRLogisticRegression = drlogit.load_model(folder / "model.json")

    ball = drlogit.Ball(0.1, 1.0)
    worst: float = drlogit.worst_case(model, X, y, ball=ball).value
    moved = drlogit.worst_case(result, X, y).distribution()
    wrong = drlogit.worst_case((coef, result.intercept), X, y, "error", ball=ball)
    report: drlogit.Audit = drlogit.audit({"robust": again}, X, y)
    limit: float = drlogit.epsilon_max(X, y, kappa=1.0)
    return {
        "gap": result.gap,
        "converged": float(status is drlogit.Status.OPTIMAL),
        "scores": float(scores.sum()),
        "tuned": tuned,
        "path": float(path.gaps.max()),
        "worst": worst,
        "moved": moved.transport_cost,
        "error": wrong.value - wrong.best,
        "audit": report["robust"].loss,
        "limit": limit,
        "looks": float(len(seen)),
    }
