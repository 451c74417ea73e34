"""The worst-case loss of a model as a function of λ, and the λ that minimises it.

    minimise over λ ≥ ‖β/c‖_*     F(λ) = ελ + Σ w_i R_i(λ)

``R_i`` is what the adversary gets of sample i at the price λ: the largest of some lines, one for
each thing that can be done to the sample, which falls by what that costs.  So F is convex and
piecewise linear, and its slope is ε less the cost of what the adversary does at λ.  Two tangents,
one falling and one rising, meet where no value can be lower; a new tangent is taken there until
the value is that.  Each takes one visit of the samples, wherever they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..rows.interface import Rows, State
from ..rows.reductions import Sum


class Tangent(NamedTuple):
    """F and its slope at a λ."""

    lam: float
    value: float
    slope: float


@dataclass(frozen=True, eq=False)
class RobustLoss:
    """F of a model with ``loss`` on the samples as they are, and the ``least`` λ it allows.

    ``gains(block, state, λ)`` reduces to ``Σ w (R(λ) - R(∞))`` and the cost of what gains that.
    """

    rows: Rows
    least: float
    loss: float
    gains: Callable[..., tuple[Any, tuple[Sum, Sum]]]
    state: State

    def best(self, epsilon: float, guess: float | None = None) -> tuple[float, float]:
        """The λ that minimises F, and F there; λ is about the ``guess``."""
        low = self._tangent(epsilon, self.least)
        if low.slope >= 0.0:
            return low.lam, low.value
        low, high = self._bracket(epsilon, guess, low)
        for _ in range(100):  # two dozen do; more is rounding
            rise = high.value - low.value - high.slope * (high.lam - low.lam)
            lam = low.lam + rise / (low.slope - high.slope)
            possible = low.value + low.slope * (lam - low.lam)
            least = min(low.value, high.value)
            if not (low.lam < lam < high.lam and possible < least * (1.0 - 1e-14)):
                break
            new = self._tangent(epsilon, lam)
            low, high = (new, high) if new.slope < 0.0 else (low, new)
        lowest = low if low.value < high.value else high
        return lowest.lam, lowest.value

    def _bracket(
        self, epsilon: float, guess: float | None, low: Tangent
    ) -> tuple[Tangent, Tangent]:
        """Tangents on either side of the best λ: from the guess on in larger and larger steps."""
        start, step = (guess, 1e-3) if guess and math.isfinite(guess) else (1.0, 3.0)
        high = self._tangent(epsilon, start if start > self.least else 1.1 * self.least)
        while high.slope < 0.0:
            low, high = high, self._tangent(epsilon, (1.0 + step) * high.lam)
            step = min(10.0 * step, 3.0)
        while step < 1.0 and (1.0 - step) * start > low.lam:
            new = self._tangent(epsilon, (1.0 - step) * start)
            if new.slope < 0.0:
                return new, high
            high, step = new, 10.0 * step
        return low, high

    def value(self, epsilon: float, lam: float | None = None) -> float:
        """``F(λ)``, by default at the best λ; infinite where λ is not allowed."""
        if lam is None:
            return self.best(epsilon)[1]
        if lam < self.least * (1.0 - 1e-12):  # by more than rounding
            return math.inf
        return self._tangent(epsilon, lam).value

    def _tangent(self, epsilon: float, lam: float) -> Tangent:
        _, (gained, paid) = self.rows.run(self.gains, self.state, lam)
        return Tangent(lam, self.loss + float(gained) + epsilon * lam, epsilon - float(paid))
