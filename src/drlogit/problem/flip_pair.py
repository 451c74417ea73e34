"""The robust loss of a sample that is left as it is or has its label flipped, at cost κ.

    R(u, λ) = max( h(u), h(-u) - κλ ) = h(u) + (u - κλ)_+
            = max over s, a ∈ [0, 1] of  H(s) - (s - a) u - κλ a,

because ``h(-u) = h(u) + u``; the kink is at ``u = κλ``.  So a dual point ``(s, a)`` is worth
``Σ w_i H(s_i)``, and of the budget ε its flips take ``κ Σ w_i a_i``.

Where a sample's flip costs t times κ, ``w (u - tκλ)_+ = wt (u/t - κλ)_+``: it gains what one of the
weight wt and the margin u/t does at the cost κ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ._losses import flip_sums, log_loss_sum
from .weighted_quantile import Weighted, upper_quantile

#: λ below ‖β‖_* by less than this share is there but for rounding.
ROUNDING = 1e-12


class RobustLoss(Protocol):
    """``F(λ) = ελ + Σ w_i R_i(λ)`` of one model, as a function of λ (and ε)."""

    def best_lambda(self, epsilon: float) -> float:
        """The λ that minimises F."""
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

    def best(self, epsilon: float, guess: float = math.nan) -> tuple[float, float]:
        """The λ that minimises F, and F there: ``max(‖β‖_*, q/κ)``.

        q is the smallest margin with weight at most ``ε/κ`` above it; λ is about the ``guess``.
        """
        if not self.pair.flips:
            return self.least, self.loss + epsilon * self.least
        gain, above = self._flips(self.least)
        share, kink, lam = epsilon / self.pair.kappa, self.pair.kink, self.least
        if above > share:
            weighted, _ = self.rows.run(_weighted, self.margins)
            quantile = upper_quantile(self.rows, weighted, share, kink(lam), kink(guess))
            lam = max(lam, quantile / self.pair.kappa)
            gain, _ = self._flips(lam)
        return lam, self.loss + gain + epsilon * lam

    def best_lambda(self, epsilon: float) -> float:
        """The λ that minimises F."""
        return self.best(epsilon)[0]

    def value(self, epsilon: float, lam: float | None = None) -> float:
        """``F(λ)``, by default at the best λ; infinite where λ is not allowed."""
        if lam is None:
            return self.best(epsilon)[1]
        if lam < self.least * (1.0 - ROUNDING):
            return math.inf
        return self.loss + self._flips(lam)[0] + epsilon * lam

    @cached_property
    def loss(self) -> float:
        """``Σ w h(u)``: that of the samples as they are."""
        return float(self.rows.run(_loss, self.margins)[1][0])

    def _flips(self, lam: float) -> tuple[float, float]:
        """What flips that pay at λ gain, and their weight times what they cost in units of κ."""
        _, (gain, above) = self.rows.run(_flips, self.margins, self.pair.kink(lam))
        return float(gain), float(above)


def _loss(block: Block, u: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    return u, (Sum(log_loss_sum(u, block.weights)),)


def _flips(block: Block, u: FloatArray, kink: float) -> tuple[FloatArray, tuple[Sum, Sum]]:
    gain, above = flip_sums(u, block.weights, block.flip_costs(kink), block.trust)
    return u, (Sum(gain), Sum(above))


def _weighted(block: Block, u: FloatArray) -> tuple[Weighted, tuple[()]]:
    """Margins and weights of flips that gain the same at the cost κ; no weight beyond doubt."""
    if block.trust is None:
        return (u, block.weights), ()
    return (u / block.trust, block.weights * block.flippable(block.trust)), ()
