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

With several labels and scores s, a sample with the label y has

    R(s, λ) = max over k of  lse(s) - s_k - κ_k λ  =  lse(s) - s_y + (s_y - min_k s_k - κλ)_+ .
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ._losses import flip_sums, log_loss_sum
from .robust_loss import RobustLoss
from .transport import TransportCost

#: Positions of several labels of a block's samples.
Codes: TypeAlias = NDArray[np.int32]


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


def label_loss(rows: Rows, cost: TransportCost, scored: State, least: float) -> RobustLoss:
    """The worst-case loss of a model with these scores and least feasible λ.

    ``scored`` has the scores of all labels but the first, (labels - 1, samples), and
    ``Problem.positions``.
    """
    gains, (loss,) = rows.run(_gains, scored)
    return RobustLoss(rows, least, float(loss), partial(_flips, cost=cost), gains)


def _gains(block: Block, scored: tuple[FloatArray, Any]) -> tuple[FloatArray, tuple[Sum]]:
    """What a flip gains, of two labels the margin, and the loss without flips."""
    scores, codes = scored
    if not isinstance(codes, np.ndarray):
        return scores[0], (Sum(log_loss_sum(scores[0], block.weights)),)
    ahead = np.vstack([np.zeros(codes.size), scores])
    ahead -= ahead[codes, np.arange(codes.size)]
    loss = block.weights @ logsumexp(ahead, axis=0)
    return -ahead.min(axis=0), (Sum(float(loss)),)


def _flips(
    block: Block, gains: FloatArray, lam: float, cost: TransportCost
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    """The gain and the cost of the flips that pay at λ."""
    kinks = block.flip_costs(cost.kink(lam))
    gain, above = flip_sums(gains, block.weights, kinks, block.flip_multiples)
    return gains, (Sum(gain), Sum(cost.spent(above)))
