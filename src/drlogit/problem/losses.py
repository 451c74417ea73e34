"""Scalar functions of the margin ``u = y (x·β + b)``.

Everything the model needs to know about a sample is a function of its margin: the
log-loss ``h(u) = log(1 + e^{-u})``, its derivatives, the hinge ``(u - κλ)_+`` that label
flips add, and the entropy that is the conjugate of the log-loss.  All functions are
vectorised, allocate what they return and are exact at ``|u| = 1e4`` and beyond.
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from ..rows.arrays import FloatArray

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
