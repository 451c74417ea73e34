"""Functions of the margin ``u = y (x·β + b)``, and the robust loss of a model without domains.

Everything the model needs to know about a sample is a function of its margin: the
log-loss ``h(u) = log(1 + e^{-u})``, its derivatives, the hinge ``(u - κλ)_+`` that label
flips add, and the entropy that is the conjugate of the log-loss.  Those of arrays are exact at
``|u| = 1e4`` and beyond.

A sample is left as it is or has its label flipped, at cost κ:

    R(u, λ) = max( h(u), h(-u) - κλ ) = h(u) + (u - κλ)_+
            = max over s, a ∈ [0, 1] of  H(s) - (s - a) u - κλ a,

because ``h(-u) = h(u) + u``; the kink is at ``u = κλ``.  So a dual point ``(s, a)`` is worth
``Σ w_i H(s_i)``, and of the budget ε its flips take ``κ Σ w_i a_i``.  Where a sample's flip costs
t times κ, ``w (u - tκλ)_+ = wt (u/t - κλ)_+``: it gains what one of the weight wt and the margin
u/t does at the cost κ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import entr

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ._losses import flip_sums, log_loss_sum
from .transport import TransportCost
from .weighted_quantile import Weighted, upper_quantile

#: max over t of t / (e^t + 1): the constant of Proposition 3.1 (printed there as 0.2785).
LAMBDA_CONSTANT = 0.27846454276107374


def log_loss(u: FloatArray) -> FloatArray:
    """``h(u) = log(1 + e^{-u})``."""
    return np.log1p(np.exp(-np.abs(u))) - np.minimum(u, 0.0)


def flip_probability(u: FloatArray) -> FloatArray:
    """``s(u) = -h'(u) = 1 / (1 + e^u)``: the model's probability of the other label."""
    e = np.exp(-np.abs(u))
    return np.where(u >= 0.0, e, 1.0) / (1.0 + e)


def entropy(s: FloatArray) -> FloatArray:
    """``H(s) = -s log s - (1-s) log(1-s)`` on [0, 1], the concave conjugate of ``h``."""
    return np.asarray(entr(s) + entr(1.0 - s), dtype=np.float64)


def flip_gain(u: FloatArray, kink: float | FloatArray) -> FloatArray:
    """``(u - κλ)_+``: what a flip adds to the loss; nothing where the kink κλ is infinitely far."""
    reached = np.isfinite(kink)
    return np.where(reached, np.maximum(u - np.where(reached, kink, 0.0), 0.0), 0.0)


@dataclass(frozen=True, eq=False)
class FlipLoss:
    """``F(λ) = ελ + Σ w_i R(u_i, λ)`` of a model with these margins and least feasible λ."""

    rows: Rows
    margins: State
    cost: TransportCost
    least: float  # ‖β/c‖_*

    def best(self, epsilon: float, guess: float = math.nan) -> tuple[float, float]:
        """The λ that minimises F, and F there: ``max(‖β‖_*, q/κ)``.

        q is the smallest margin with weight at most ``ε/κ`` above it; λ is about the ``guess``.
        """
        if not self.cost.flips:
            return self.least, self.loss + epsilon * self.least
        gain, above = self._flips(self.least)
        share, kink, lam = epsilon / self.cost.kappa, self.cost.kink, self.least
        if above > share:
            weighted, _ = self.rows.run(_weighted, self.margins)
            quantile = upper_quantile(self.rows, weighted, share, kink(lam), kink(guess))
            lam = max(lam, quantile / self.cost.kappa)
            gain, _ = self._flips(lam)
        return lam, self.loss + gain + epsilon * lam

    def best_lambda(self, epsilon: float) -> float:
        """The λ that minimises F."""
        return self.best(epsilon)[0]

    def value(self, epsilon: float, lam: float | None = None) -> float:
        """``F(λ)``, by default at the best λ; infinite where λ is not allowed."""
        if lam is None:
            return self.best(epsilon)[1]
        if lam < self.least * (1.0 - 1e-12):  # by more than rounding
            return math.inf
        return self.loss + self._flips(lam)[0] + epsilon * lam

    @cached_property
    def loss(self) -> float:
        """``Σ w h(u)``: that of the samples as they are."""
        return float(self.rows.run(_loss, self.margins)[1][0])

    def _flips(self, lam: float) -> tuple[float, float]:
        """What flips that pay at λ gain, and their weight times what they cost in units of κ."""
        _, (gain, above) = self.rows.run(_flips, self.margins, self.cost.kink(lam))
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
