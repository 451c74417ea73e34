"""Pictures of decisions under shift, in scikit-learn's Display convention.

    DecisionCurveDisplay.from_estimator(model, X, y, epsilon=0.02)
    CalibrationBandDisplay.from_estimator(model, X, y, epsilon=0.02)
    RocBoxDisplay.from_estimator(model, X, y, epsilon=0.02, thresholds=[0.2, 0.5])

Each shows a number as the samples are, and between its least and its largest value over the
Wasserstein ball (:mod:`drlogit.robustness.decision_curves`).  Other options are those of
:func:`drlogit.worst_case`.  Needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..robustness.adversary import Adversary
from ..robustness.audit_problem import audit_problem
from ..robustness.decision_curves import Band, calibration_bands, net_benefits, rates
from ..rows.arrays import FloatArray
from .displays import COLORS, new_axes

_BLUE, _ORANGE = COLORS[:2]


def _of_two_classes(model: Any, X: Any, y: ArrayLike, **ball: Any) -> Adversary:
    audit = audit_problem(model, X, y, **ball)
    if len(audit.classes) > 2:
        raise ValueError(f"expected a model of two classes, got {len(audit.classes)} classes")
    return audit


class DecisionCurveDisplay:
    """Net benefit against the threshold, as the samples are and in the worst case.

    Net benefit is ``TP - FP·p/(1 - p)`` per sample at the threshold p, which says what a false
    alarm weighs.  The curve of the model lies beside those of treating all and of treating none.

    Attributes
    ----------
    thresholds : array
    model_bands, all_bands : list of Band
        Net benefit of the model and of treating all, at each threshold.
    epsilon : float
        The radius of the ball.
    figure_, ax_, lines_ : matplotlib artists
    """

    def __init__(
        self, thresholds: FloatArray, model_bands: list[Band], all_bands: list[Band], epsilon: float
    ) -> None:
        self.thresholds, self.epsilon = thresholds, epsilon
        self.model_bands, self.all_bands = model_bands, all_bands

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike,
        *,
        thresholds: Sequence[float] | None = None,
        ax: Any = None,
        **ball: Any,
    ) -> DecisionCurveDisplay:
        """Compute and draw; by default from 0.02 to 0.98."""
        audit = _of_two_classes(model, X, y, **ball)
        grid = np.linspace(0.02, 0.98, 33) if thresholds is None else np.asarray(thresholds)
        bands = net_benefits(audit, grid.tolist())
        return cls(grid, *bands, audit.problem.epsilon).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> DecisionCurveDisplay:
        """Draw on ``ax``, or on new axes."""
        self.ax_ = ax = new_axes(5.5, 4.0) if ax is None else ax
        self.figure_, x = ax.figure, self.thresholds
        self.lines_ = []
        for bands, color, name in (
            (self.model_bands, _BLUE, "model"), (self.all_bands, _ORANGE, "treat all"),
        ):  # fmt: skip
            nominal, low = ([getattr(band, end) for band in bands] for end in ("nominal", "low"))
            self.lines_ += ax.plot(x, nominal, color=color, label=name)
            self.lines_ += ax.plot(x, low, "--", color=color, label=f"{name}, worst case")
        ax.axhline(0.0, color="0.4", linewidth=0.8, label="treat none")
        highest = max(band.nominal for band in (*self.model_bands, *self.all_bands))
        ax.set(
            xlabel="threshold probability", ylabel=f"net benefit (ε = {self.epsilon:g})",
            ylim=(-0.5 * abs(highest) - 0.02, 1.1 * abs(highest) + 0.02),
        )  # fmt: skip
        ax.margins(x=0.0)
        ax.legend(frameon=False, fontsize="small")
        return self


class CalibrationBandDisplay:
    """The share of positives against the predicted probability, with its range over the ball.

    Samples are in bins of equal size by their probability.  The range of a bin is that of the share
    of positives among the samples whose probability lies in the bin, wherever they came from.

    Attributes
    ----------
    predicted : array
        The mean probability in each bin.
    bands : list of Band
        The share of positives in each bin.
    epsilon : float
        The radius of the ball.
    figure_, ax_, line_ : matplotlib artists
    """

    def __init__(self, predicted: FloatArray, bands: list[Band], epsilon: float) -> None:
        self.predicted, self.bands, self.epsilon = predicted, bands, epsilon

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: ArrayLike, *, n_bins: int = 5, ax: Any = None, **ball: Any
    ) -> CalibrationBandDisplay:
        """Compute and draw."""
        audit = _of_two_classes(model, X, y, **ball)
        return cls(*calibration_bands(audit, n_bins), audit.problem.epsilon).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> CalibrationBandDisplay:
        """Draw on ``ax``, or on new axes."""
        self.ax_ = ax = new_axes(4.5, 4.2) if ax is None else ax
        self.figure_ = ax.figure
        nominal, low, high = np.array(self.bands).T
        (self.line_,) = ax.plot(self.predicted, nominal, "o-", color=_BLUE, label="as they are")
        ax.fill_between(
            self.predicted, low, high, color=_BLUE, alpha=0.15, lw=0.0,
            label=f"within ε = {self.epsilon:g}",
        )  # fmt: skip
        ax.plot([0.0, 1.0], [0.0, 1.0], ":", color="0.4")
        ax.set(xlabel="mean predicted probability", ylabel="share of positives",
               xlim=(0.0, 1.0), ylim=(0.0, 1.0))  # fmt: skip
        ax.legend(frameon=False, fontsize="small")
        return self


class RocBoxDisplay:
    """True and false positive rates at thresholds, each with its range over the ball.

    The two ranges of a box are not reached together.

    Attributes
    ----------
    thresholds : list of float
    fpr, tpr : list of Band
    epsilon : float
        The radius of the ball.
    figure_, ax_, boxes_ : matplotlib artists
    """

    def __init__(
        self, thresholds: list[float], fpr: list[Band], tpr: list[Band], epsilon: float
    ) -> None:
        self.thresholds, self.fpr, self.tpr, self.epsilon = thresholds, fpr, tpr, epsilon

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike,
        *,
        thresholds: Sequence[float] = (0.5,),
        ax: Any = None,
        **ball: Any,
    ) -> RocBoxDisplay:
        """Compute and draw."""
        audit = _of_two_classes(model, X, y, **ball)
        fpr, tpr = map(list, zip(*(rates(audit, at) for at in thresholds), strict=True))
        return cls(list(thresholds), fpr, tpr, audit.problem.epsilon).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> RocBoxDisplay:
        """Draw on ``ax``, or on new axes."""
        self.ax_ = ax = new_axes(4.5, 4.2) if ax is None else ax
        from matplotlib.patches import Rectangle

        self.figure_, self.boxes_ = ax.figure, []
        for k, (at, x, y) in enumerate(zip(self.thresholds, self.fpr, self.tpr, strict=True)):
            color = COLORS[k % len(COLORS)]
            box = Rectangle((x.low, y.low), x.high - x.low, y.high - y.low, color=color, alpha=0.15)
            self.boxes_.append(ax.add_patch(box))
            ax.plot(x.nominal, y.nominal, "o", color=color, label=f"{at:g}")
        ax.plot([0.0, 1.0], [0.0, 1.0], ":", color="0.4")
        ax.set(xlabel=f"false positive rate (boxes: within ε = {self.epsilon:g})",
               ylabel="true positive rate", xlim=(0.0, 1.0), ylim=(0.0, 1.0))  # fmt: skip
        ax.legend(title="threshold", frameon=False, fontsize="small", loc="lower right")
        return self
