"""Functions of the margin ``u = y (x·β + b)``, and the robust loss of a model without domains.

A sample enters the problem through its margin only: by the log-loss ``h(u) = log(1 + e^{-u})``, its
derivatives, the hinge ``(u - κλ)_+`` that label flips add, and the entropy, the conjugate of the
log-loss.  The functions of arrays are accurate at ``|u| = 1e4`` and beyond.

The adversary keeps the label of a sample or flips it at the cost κ:

    R(u, λ) = max( h(u), h(-u) - κλ ) = h(u) + (u - κλ)_+
            = max over s, a ∈ [0, 1] of  H(s) - (s - a) u - κλ a,

because ``h(-u) = h(u) + u``; the kink is at ``u = κλ``.  So a dual point ``(s, a)`` has the value
``Σ w_i H(s_i)``, and its flips take ``κ Σ w_i a_i`` of the budget ε.  If the flip of a sample costs
tκ, then ``w (u - tκλ)_+ = wt (u/t - κλ)_+``, the gain of a sample with weight wt, margin u/t and
cost κ.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import entr

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ._losses import flip_sums, log_loss_sum
from .robust_loss import RobustLoss
from .transport import TransportCost

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
    """``(u - κλ)_+``: the gain of a flip; zero if the kink κλ is infinite."""
    reached = np.isfinite(kink)
    return np.where(reached, np.maximum(u - np.where(reached, kink, 0.0), 0.0), 0.0)


def flip_loss(rows: Rows, cost: TransportCost, margins: State, least: float) -> RobustLoss:
    """The worst-case loss of a model with these margins and least feasible λ."""
    loss = float(rows.run(_loss, margins)[1][0])
    return RobustLoss(rows, least, loss, partial(_flips, cost=cost), margins)


def _loss(block: Block, u: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    return u, (Sum(log_loss_sum(u, block.weights)),)


def _flips(
    block: Block, u: FloatArray, lam: float, cost: TransportCost
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    """The gain and the cost of the flips that pay at λ."""
    kinks = block.flip_costs(cost.kink(lam))
    gain, above = flip_sums(u, block.weights, kinks, block.flip_multiples)
    return u, (Sum(gain), Sum(cost.spent(above)))
