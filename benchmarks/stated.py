"""Fits whose ball is stated in full, so that no default of the package decides what is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import drlogit


@dataclass(frozen=True)
class StatedBall:
    """The ball of a cell: radius, flip cost, transport norm, and costs of features (None: all 1).

    ``"std"`` as costs means one standard deviation of each column.
    """

    epsilon: float = 0.01
    kappa: float = 1.0
    norm: str = "l1"
    feature_costs: str | None = None

    def __str__(self) -> str:
        return f"{self.norm}, eps={self.epsilon:g} kappa={self.kappa:g}"

    def _parameters(self) -> dict[str, Any]:
        return {"kappa": self.kappa, "norm": self.norm, "feature_costs": self.feature_costs}

    def solve(self, X: Any, y: Any, **options: Any) -> Any:
        """What ``drlogit.solve`` returns."""
        return drlogit.solve(X, y, epsilon=self.epsilon, **self._parameters(), **options)

    def epsilon_max(self, X: Any, y: Any) -> float:
        """The radius from which on the model is constant; the ball's own counts for nothing."""
        return float(drlogit.epsilon_max(X, y, **self._parameters()))

    def classifier(self, **options: Any) -> Any:
        """The estimator, not fitted."""
        return drlogit.DRLogisticRegression(epsilon=self.epsilon, **self._parameters(), **options)


def search(norm: str = "l1", feature_costs: str | None = None, **options: Any) -> Any:
    """The search over seven radii and two flip costs, not fitted."""
    return drlogit.DRLogisticRegressionCV(
        epsilons=7, kappas=2, norm=norm, feature_costs=feature_costs, **options
    )
