"""Upper confidence limit of a mean of numbers that lie between known ends, for every sample size.

This is the betting limit of Waudby-Smith and Ramdas (2024, J. R. Stat. Soc. B 86, Theorem 3,
one-sided): if the mean were μ, then ``E[μ - x] = 0``, and the capital ``Π_t (1 + b_t (μ - x_t))``
of bets ``b_t ≥ 0`` placed before row t is seen would be a martingale.  By Ville's inequality it
exceeds ``1/(1 - confidence)`` with the remaining probability only.  Every μ at which it does is
ruled out.
"""

from __future__ import annotations

import math

import numpy as np

from ..rows.arrays import FloatArray

#: A bet never risks more than this share of the capital, so that the capital stays positive.
_MOST = 0.75


def bounded_limit(
    values: FloatArray, confidence: float, *, low: float = 0.0, high: float = 1.0
) -> float:
    """Upper limit of the mean of independent numbers from ``low`` to ``high``.

    The rows must be in an order that does not depend on them.
    """
    m, width = values.size, high - low
    if m == 0 or not width > 0.0:
        return high
    x = (values - low) / width
    # Bets may depend on the rows seen before, and on m, but not on the row that is bet upon.
    counts = np.arange(1, m + 1)
    means = (0.5 + np.cumsum(x)) / (1.0 + counts)
    variances = (0.25 + np.cumsum(np.square(x - means))) / (counts + 1.0)
    before = np.append(0.25, variances[:-1])
    goal = -math.log1p(-confidence)
    bets = np.sqrt(2.0 * goal / (m * before))

    def ruled_out(mean: float) -> bool:
        # x ≤ 1, so that a bet up to 1/(1 - mean) cannot lose everything.  The capital rises with
        # the mean, also where this limits the bets.
        bounded = np.minimum(bets, _MOST / max(1.0 - mean, 1e-300))
        return bool(np.cumsum(np.log1p(bounded * (mean - x))).max() >= goal)

    least, most = 0.0, 1.0
    if not ruled_out(most):
        return high
    for _ in range(50):
        middle = 0.5 * (least + most)
        if ruled_out(middle):
            most = middle
        else:
            least = middle
    return low + most * width
