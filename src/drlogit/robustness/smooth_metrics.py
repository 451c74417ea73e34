"""The worst and the best case of smooth functions of score and label.

For each label, log-loss, Brier score and calibration in the large are a function ``ψ(u)`` plus a
constant, where ψ is increasing and u is the score or minus the score.  Moving u by Δ costs
``Δ/ρ`` with ``ρ = ‖β/c‖_*``.  At the price γ the adversary maximises ``ψ(u) - γu/ρ`` over larger u:
it leaves a sample where it is, or moves it to the point T where the slope of ψ falls to ``γ/ρ``.
T has a closed form and is the same for all samples:

    Brier, worst      ψ = σ(u)²             2σ²(1 - σ) = γ/ρ, the larger root
    Brier, best       ψ = -σ(-u)²           the same with σ(-u), the smaller root
    calibration       ψ = σ(u)              σ(1 - σ) = γ/ρ, the larger root
    log-loss, best    ψ = -log(1 + e^-u)    σ(-u) = γ/ρ

The worst case of the log-loss has no such point T; it has breakpoints (:mod:`.breakpoints`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from ..rows.arrays import FloatArray
from .adversary import Adversary


class Smooth(NamedTuple):
    """A smooth function of score and label that the adversary maximises.

    Arrays that depend on labels and samples have a row for each label.
    """

    u: FloatArray  # the score or minus the score
    values: FloatArray  # of the samples where they are
    offsets: tuple[float, float]  # by label
    label_costs: FloatArray
    rate: float  # ρ
    function: Callable[[Any], Any]  # ψ
    target: Callable[[float], float]  # T as a function of γ/ρ
    steepest: float  # the largest slope of ψ

    def at_price(self, price: float) -> tuple[FloatArray, FloatArray]:
        """The value of each sample to the adversary at a price, and the cost of reaching it."""
        slope = price / self.rate if self.rate > 0.0 else math.inf
        most, cost = np.full((2, self.u.shape[1]), -np.inf)
        labels = zip(self.u, self.values, self.offsets, self.label_costs, strict=True)
        for u, value, offset, paid in labels:
            total, spent = value - price * paid, paid
            if slope < self.steepest:
                target = self.target(slope)
                there = float(self.function(np.float64(target))) + offset
                far = target - u
                moved = there - slope * far
                moves = (far > 0.0) & (moved > value)
                total = np.where(moves, moved - price * paid, total)
                spent = paid + np.where(moves, far / self.rate, 0.0)
            better = total > most
            np.copyto(most, total, where=better)
            np.copyto(cost, spent, where=better)
        return most, cost


def smooth(audit: Adversary, name: str, sign: float) -> Smooth:
    """The metric of this name (sign 1) or minus it (-1), for two classes without domains."""
    signs, offsets, steepest = (-1.0, 1.0), (0.0, 0.0), 8.0 / 27.0
    function: Callable[[Any], Any]
    if name == "log_loss":
        steepest, function, target = 1.0, log_expit, _for_log_loss
    elif name == "calibration":
        signs, steepest = (sign, sign), 0.25
        offsets = (0.0, -1.0) if sign > 0.0 else (-1.0, 0.0)
        function, target = expit, _for_calibration
    elif sign > 0.0:
        signs, function, target = (1.0, -1.0), lambda u: expit(u) ** 2, _for_worst_brier
    else:
        function, target = lambda u: -(expit(-u) ** 2), _for_best_brier
    u = np.outer(signs, audit.scores[1])
    values = function(u) + np.array(offsets)[:, None]
    costs = audit.decisions().label_costs
    return Smooth(u, values, offsets, costs, audit.sensitivity, function, target, steepest)


def _for_log_loss(slope: float) -> float:
    return math.log1p(-slope) - math.log(slope)


def _for_calibration(slope: float) -> float:
    rest = 2.0 * slope / (1.0 + math.sqrt(1.0 - 4.0 * slope))  # 1 - σ
    return math.log1p(-rest) - math.log(rest)


def _for_worst_brier(slope: float) -> float:
    # With σ = 1/3 + (2/3) cos φ the cubic is cos 3φ = 1 - 27 slope/4; 1 - σ without cancellation.
    rest = (4.0 / 3.0) * math.sin(_third(slope)) ** 2
    return math.log1p(-rest) - math.log(rest)


def _for_best_brier(slope: float) -> float:
    sixth = _third(slope)
    share = (4.0 / 3.0) * math.sin(sixth) * math.sin(2.0 * math.pi / 3.0 - sixth)
    return math.log1p(-share) - math.log(share)


def _third(slope: float) -> float:
    """``φ/2`` of the larger root."""
    return math.asin(math.sqrt(27.0 * slope / 8.0)) / 3.0
