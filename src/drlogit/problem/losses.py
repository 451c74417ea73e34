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

    R(s, λ) = max over k of  lse(s) - s_k - κ(y, k) λ .
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ._losses import flip_sums, log_loss_sum
from .label_costs import FlipCosts
from .robust_loss import RobustLoss
from .transport import TransportCost

#: Scores (one column per class) and labels (positions among the classes) of a block's samples.
Codes: TypeAlias = NDArray[np.int32]
Scored: TypeAlias = tuple[FloatArray, Codes]

#: Weights of samples, and the gain and the cost of each label for each of them.
Changing: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


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


def label_loss(rows: Rows, costs: FlipCosts, scored: State, least: float) -> RobustLoss:
    """The worst-case loss of a model of several labels with these scores, from ``least`` on."""
    changing, (loss,) = rows.run(_changing, scored, costs, least)
    return RobustLoss(rows, least, float(loss), _worst_labels, changing)


def _changing(
    block: Block, scored: Scored, costs: FlipCosts, least: float
) -> tuple[Changing, tuple[Sum]]:
    """The samples that gain from another label at the least λ, and the loss without changes.

    A label that does not pay at the least λ does not pay at a larger one.
    """
    scores, codes = scored
    ahead = scores - np.take_along_axis(scores, codes[:, None], axis=1)
    most = ahead.max(axis=1)
    loss = block.weights @ (most + np.log(np.exp(ahead - most[:, None]).sum(axis=1)))
    price = costs.by_label(block, codes, scores.shape[1])
    gains = np.where(np.isfinite(price), -ahead, -np.inf)
    price = np.where(np.isfinite(price), price, 0.0)
    some = np.flatnonzero((gains - least * price).max(axis=1) > 0.0)
    return (block.weights[some], gains[some], price[some]), (Sum(float(loss)),)


def _worst_labels(block: Block, state: Changing, lam: float) -> tuple[Changing, tuple[Sum, Sum]]:
    """``Σ w max_k(s_y - s_k - κ_k λ)`` and ``Σ w κ`` of the labels that attain it."""
    w, gains, price = state
    values = gains - lam * price
    at = values.argmax(axis=1)[:, None]
    worst, paid = (np.take_along_axis(part, at, axis=1)[:, 0] for part in (values, price))
    return state, (Sum(float(w @ worst)), Sum(float(w @ paid)))
