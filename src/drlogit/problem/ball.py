"""The Wasserstein ball that a model is fitted against, in plain numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ..rows.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Ball:
    """ε, κ, the transport norm by name, a cost for each feature, and whether there is an intercept.

    ``feature_costs`` is None where every feature costs 1.
    """

    epsilon: float
    kappa: float
    norm: str
    feature_costs: FloatArray | None = None
    fit_intercept: bool = True

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        numbers = np.array([self.epsilon, self.kappa], dtype="<f8").tobytes()
        total = hashlib.sha256(f"{self.norm} {self.fit_intercept} ".encode() + numbers)
        costs = self.feature_costs
        if costs is not None and (costs != 1.0).any():
            total.update(np.asarray(costs, dtype="<f8").tobytes())
        return total.hexdigest()
