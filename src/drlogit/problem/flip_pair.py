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
from typing import NamedTuple, Protocol

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Stack, Sum
from .losses import flip_gain, log_loss
from .weighted_quantile import Surroundings, Weighted, upper_quantile

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

    def best(self, epsilon: float, guess: float | None = None) -> tuple[float, float]:
        """The λ that minimises F, and F there: one visit where the guess is about right."""
        if guess is not None and math.isfinite(guess) and self.pair.flips:
            found = self._near(epsilon, guess)
            if found is not None:
                return found
        lam = self.best_lambda(epsilon)
        return lam, self.value(epsilon, lam)

    def _near(self, epsilon: float, guess: float) -> tuple[float, float] | None:
        """:meth:`best`, if it is near the guess."""
        near = Surroundings.of(self.pair.kink(guess), self.pair.kink(self.least))
        _, (u, w, sums) = self.rows.run(_loss_near, self.margins, near)
        share = epsilon / self.pair.kappa
        quantile = None if sums.missing else near.quantile(u, w, float(sums.above), share)
        if quantile is None:
            return None
        lam = max(self.least, quantile / self.pair.kappa)
        kink = self.pair.kink(lam)
        gain = float(sums.excess + (near.greatest - kink) * sums.above + w @ flip_gain(u, kink))
        return lam, float(sums.loss) + gain + epsilon * lam

    def best_lambda(self, epsilon: float) -> float:
        """``max(‖β‖_*, q/κ)``: q is the smallest margin with weight at most ``ε/κ`` above it."""
        if not self.pair.flips:
            return self.least
        share, low = epsilon / self.pair.kappa, self.pair.kink(self.least)
        weighted, _ = self.rows.run(_weighted, self.margins)
        quantile = upper_quantile(self.rows, weighted, share, low)
        return self.least if quantile <= low else max(self.least, quantile / self.pair.kappa)

    def value(self, epsilon: float, lam: float | None = None) -> float:
        if lam is None:
            lam = self.best_lambda(epsilon)
        elif lam < self.least * (1.0 - ROUNDING):
            return math.inf
        _, (total,) = self.rows.run(_robust_loss, self.margins, self.pair.kink(lam))
        return float(total) + epsilon * lam


class _LossSums(NamedTuple):
    """Sums over all samples for the loss at a kink near a guess."""

    loss: float  # of samples as they are
    above: float  # weight beyond the surroundings
    excess: float  # ... times how far
    missing: int  # samples in the surroundings that are not told


def _loss_near(
    block: Block, u: FloatArray, near: Surroundings
) -> tuple[FloatArray, tuple[Stack, Stack, Sum[_LossSums]]]:
    """Margins near a guess and their weights, and sums for the others."""
    margins, w = _at_one_cost(block, u)
    found, missing = near.find(margins, w)
    above = float(w @ (margins > near.greatest))
    excess = float(w @ flip_gain(margins, near.greatest))
    sums = _LossSums(float(block.weights @ log_loss(u)), above, excess, missing)
    return u, (Stack(margins[found]), Stack(w[found]), Sum(sums))


def _weighted(block: Block, u: FloatArray) -> tuple[Weighted, tuple[()]]:
    return _at_one_cost(block, u), ()


def _at_one_cost(block: Block, u: FloatArray) -> Weighted:
    """Margins and weights of flips that gain the same at the cost κ; no weight beyond doubt."""
    if block.trust is None:
        return u, block.weights
    return u / block.trust, block.weights * block.flippable(block.trust)


def _robust_loss(block: Block, u: FloatArray, kink: float) -> tuple[FloatArray, tuple[Sum]]:
    gain = flip_gain(u, kink if block.trust is None else block.flip_costs(kink))
    return u, (Sum(float(block.weights @ (log_loss(u) + gain))),)
