"""The robust loss of a sample that is left as it is or has its label flipped, at cost κ.

    R(u, λ) = max( h(u), h(-u) - κλ ) = h(u) + (u - κλ)_+
            = max over s, a ∈ [0, 1] of  H(s) - (s - a) u - κλ a,

because ``h(-u) = h(u) + u``; the kink is at ``u = κλ``.  So a dual point ``(s, a)`` is worth
``Σ w_i H(s_i)``, and of the budget ε its flips take ``κ Σ w_i a_i``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from .losses import flip_gain, log_loss
from .weighted_quantile import Weighted, upper_quantile

#: λ below ‖β‖_* by less than this share is there but for rounding.
ROUNDING = 1e-12


class RobustLoss(Protocol):
    """``F(λ) = ελ + Σ w_i R_i(λ)`` of one model, as a function of λ (and ε)."""

    def best_lambda(self, epsilon: float, guess: float | None = None) -> float:
        """The λ that minimises F; a ``guess`` may be wrong."""
        ...

    def value(self, epsilon: float, lam: float | None = None) -> float:
        """``F(λ)``, by default at the best λ; infinite where λ is not allowed."""
        ...


@dataclass(frozen=True)
class FlipPair:
    """The two pieces of a sample, unflipped and flipped; one, if κ is infinite."""

    kappa: float

    @property
    def flips(self) -> bool:
        """Whether labels can flip at all."""
        return math.isfinite(self.kappa)

    def kink(self, lam: float) -> float:
        """The margin ``κλ`` from which flipping pays, infinitely far off if it never does."""
        return self.kappa * lam if self.flips else math.inf

    def spent(self, share: float) -> float:
        """``κ`` times the weight that is flipped, and 0 rather than ∞·0."""
        return self.kappa * share if share > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class FlipLoss:
    """The robust loss of a model with these margins and least feasible λ."""

    rows: Rows
    margins: State
    pair: FlipPair
    least: float  # ‖β/c‖_*

    def best_lambda(self, epsilon: float, guess: float | None = None) -> float:
        """``max(‖β‖_*, q/κ)``: q is the smallest margin with weight at most ``ε/κ`` above it."""
        if not self.pair.flips:
            return self.least
        share, low = epsilon / self.pair.kappa, self.pair.kink(self.least)
        weighted, _ = self.rows.run(_weighted, self.margins)
        about = None if guess is None else self.pair.kink(guess)
        quantile = upper_quantile(self.rows, weighted, share, low, about)
        return self.least if quantile <= low else max(self.least, quantile / self.pair.kappa)

    def value(self, epsilon: float, lam: float | None = None) -> float:
        if lam is None:
            lam = self.best_lambda(epsilon)
        elif lam < self.least * (1.0 - ROUNDING):
            return math.inf
        _, (total,) = self.rows.run(_robust_loss, self.margins, self.pair.kink(lam))
        return float(total) + epsilon * lam


def _weighted(block: Block, u: FloatArray) -> tuple[Weighted, tuple[()]]:
    return (u, block.weights), ()


def _robust_loss(block: Block, u: FloatArray, kink: float) -> tuple[FloatArray, tuple[Sum]]:
    return u, (Sum(float(block.weights @ (log_loss(u) + flip_gain(u, kink)))),)
