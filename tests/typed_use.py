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
    ball = drlogit.Ball(0.01, kappa=1.0)

    def watch(iterate: Iterate) -> bool:
        seen.append(iterate.gap)
        return False

    result: drlogit.Result = drlogit.solve(X, y, ball, callback=watch)
    coef: NDArray[np.float64] = result.coef
    status: drlogit.Status = result.status

    model = drlogit.DRLogisticRegression(epsilon=0.01, kappa=1.0, norm="l2").fit(X, y)
    fitted: drlogit.DRLogisticRegression = model
    scores: NDArray[np.float64] = model.decision_function(X)
    search = drlogit.DRLogisticRegressionCV((0.01, 0.02), (1.0,), cv=2).fit(X, y)
    tuned: drlogit.Ball = search.ball_
    path: drlogit.RegularizationPath = drlogit.regularization_path(X, y, ball, n_epsilons=2)
    drlogit.save_model(fitted, folder / "model.json")
    again: drlogit.DRLogisticRegression = drlogit.load_model(folder / "model.json")

    ball = drlogit.Ball(0.1, 1.0)
    worst: float = drlogit.worst_case(model, X, y, ball=ball).value
    moved = drlogit.worst_case(result, X, y).distribution()
    wrong = drlogit.worst_case((coef, result.intercept), X, y, "error", ball=ball)
    report: drlogit.Audit = drlogit.audit({"robust": again}, X, y)
    limit: float = drlogit.epsilon_max(X, y, ball)
    return {
        "gap": result.gap,
        "converged": float(status is drlogit.Status.OPTIMAL),
        "scores": float(scores.sum()),
        "tuned": float(tuned.epsilon or 0.0),
        "path": float(path.gaps.max()),
        "worst": worst,
        "moved": moved.transport_cost,
        "error": wrong.value - wrong.best,
        "audit": report.models["robust"].nominal,
        "limit": limit,
        "looks": float(len(seen)),
    }
