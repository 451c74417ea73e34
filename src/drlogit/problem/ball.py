"""The Wasserstein ball that a model is fitted against, in plain numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .label_costs import Trust


@dataclass(frozen=True, eq=False)
class Ball:
    """ε, κ, the transport norm by name, a cost for each feature, and whether there is an intercept.

    ``trust`` is how many times κ a flip costs, by class, if classes differ; if samples do, it says
    so, and who asks about samples has to say what their flips cost.
    ``feature_costs`` is None where every feature costs 1.  ``groups`` are columns of categories,
    also of those that cannot change if each sample has one; ``with_none`` says which of them have
    "none" as a category (None: those of which it occurs), and ``lower`` and ``upper`` are the ends
    of what each feature can be, infinite for none.
    """

    epsilon: float
    kappa: float
    norm: str
    feature_costs: FloatArray | None = None
    fit_intercept: bool = True
    groups: tuple[IndexArray, ...] = ()
    with_none: BoolArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    trust: Trust = None

    @property
    def has_domains(self) -> bool:
        """Whether there are categories or bounds; at ε = 0 nothing moves, within them or not."""
        if self.lower is None or self.upper is None:
            bounded = False
        else:
            bounded = bool((np.isfinite(self.lower) & np.isfinite(self.upper)).any())
        return self.epsilon > 0.0 and (len(self.groups) > 0 or bounded)

    @property
    def digest(self) -> str:
        """SHA-256 of all of it that makes a difference."""
        # What flips cost by class or by sample shows in what a proof proves.
        costs_of_flips = [self.kappa] if self.trust is None else []
        numbers = np.array([self.epsilon, *costs_of_flips], dtype="<f8").tobytes()
        total = hashlib.sha256(f"{self.norm} {self.fit_intercept} ".encode() + numbers)
        if self.epsilon == 0.0:
            return total.hexdigest()
        costs = self.feature_costs
        if costs is not None and (costs != 1.0).any():
            total.update(np.asarray(costs, dtype="<f8").tobytes())
        for group in self.groups:
            total.update(repr(group.tolist()).encode())
        if self.with_none is not None:
            total.update(np.asarray(self.with_none, dtype=bool).tobytes())
        for ends in (self.lower, self.upper):
            if ends is not None:
                total.update(np.asarray(ends, dtype="<f8").tobytes())
        return total.hexdigest()
