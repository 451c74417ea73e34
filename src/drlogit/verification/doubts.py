"""Doubts of a dual point as sums of two doubles, where one is too coarse for its equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..rows.arrays import FloatArray
from .rounding import UNIT, UP, Pair, exact_sum, two_sum

#: Doubts up to which a rest is kept.
_NEARLY_ONE = 1.0 - 2.0**-20


@dataclass(frozen=True, eq=False)
class Doubts:
    """``s + rest`` with ``|rest| ≤ u s``, and none where ``1-s`` is below 2⁻²⁰."""

    value: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, value: FloatArray) -> Doubts:
        return cls(value, np.zeros_like(value))

    @property
    def pair(self) -> Pair:
        return self.value, self.rest

    def moved(self, step: FloatArray) -> Doubts:
        """``s + rest - s(1-s) step``, about."""
        high, low = two_sum(self.value, -self.curvature * step)
        high, low = two_sum(high, low + self.rest)
        rest = np.where((high > 0.0) & (high < _NEARLY_ONE), low, 0.0)
        return Doubts(np.clip(high, 0.0, 1.0), rest)

    @cached_property
    def curvature(self) -> FloatArray:
        """``s(1-s)``."""
        return np.asarray(self.value * (1.0 - self.value))

    @property
    def roundings(self) -> int:
        """How many there are in the curvature, which knows nothing of the rest."""
        there = self.rest != 0.0
        if not there.any():
            return 2
        change = np.abs(self.rest[there]) / self.curvature[there]
        return 10 + math.ceil(2.0 * float(change.max()) / UNIT)

    def tilt(self, mass: FloatArray) -> float:
        """How much smaller the sum of ``mass H(s + rest)`` can be than that of ``mass H(s)``.

        ``|H'|`` is at most ``|log s| + |log(1-s)|``, which is at least ``2 log 2``; the factor 2 is
        far more than the curvature takes.
        """
        there = self.rest != 0.0
        s = self.value[there]
        slope = np.abs(np.log(s)) + np.abs(np.log1p(-s))
        return 2.0 * exact_sum(mass[there] * np.abs(self.rest[there]) * slope) * UP
