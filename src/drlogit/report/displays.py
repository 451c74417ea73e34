"""Pictures, in scikit-learn's Display convention: curves of an audit, a path.

A ``from_…`` constructor computes the data of a display and draws it; ``plot`` draws it again.
Afterwards ``figure_`` and ``ax_`` hold the figure and its axes, and other attributes with a
trailing underscore hold the artists:

    RobustnessDisplay.from_estimators({"plain": lr, "robust": drlr}, X, y, kappa=1.0)
    RobustnessDisplay.from_audit(drlogit.audit(model, X, y))
    drlogit.regularization_path(X, y, kappa=1.0).plot()

Needs matplotlib (``pip install "drlogit[plot]"``), which is imported when something is drawn.
Log-losses are in nats.  Colours are those of Okabe and Ito, which colour-blind readers can tell
apart, and lines differ in style as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.choosing import RegularizationPath
from ..problem.label_costs import kappa_text
from .audits import Audit, audit

#: Those of Okabe and Ito (2008) without the yellow, which is too pale for lines.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":")

#: Pairs of colour and dashes, all different.
_STYLES: list[dict[str, Any]] = [
    {"color": color, "linestyle": _DASHES[(i + turn) % 4]}
    for turn in range(4)
    for i, color in enumerate(COLORS)
]


def new_axes(width: float, height: float, columns: int = 1) -> Any:
    """New axes, in a figure of this size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib, which is not installed: pip install "drlogit[plot]"'
        ) from error
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")[1]


class RobustnessDisplay:
    """Worst-case log-loss and error of one or several models against the radius ε.

    Parameters
    ----------
    report : Audit
        What to draw; the lines join its radii.

    Attributes
    ----------
    report : Audit
    figure_ : matplotlib Figure
    ax_ : array of two Axes
        Log-loss on the left, error on the right.
    lines_ : array of shape (2, n_models)
        The lines of the worst cases, of loss and error.
    best_lines_ : list
        The lines of the best-case errors, thin.
    """

    def __init__(self, report: Audit) -> None:
        self.report = report

    @classmethod
    def from_estimators(
        cls,
        models: Any,
        X: Any,
        y: ArrayLike,
        *,
        max_epsilon: float | None = None,
        kappa: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> RobustnessDisplay:
        """Audit models at many radii from 0 to ``max_epsilon``, and draw.

        ``models`` is a model, or a list or mapping of models.  By default the radii are those of
        :func:`drlogit.audit`, whose other options are accepted, too.
        """
        if max_epsilon is None:
            max_epsilon = audit(models, X, y, kappa=kappa, **options).epsilons[-1]
        radii = np.linspace(0.0, max_epsilon, 101)
        return cls(audit(models, X, y, kappa=kappa, epsilons=radii, **options)).plot(ax=ax)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: ArrayLike, **options: Any) -> RobustnessDisplay:
        """The same for one model, under scikit-learn's name."""
        return cls.from_estimators(model, X, y, **options)

    @classmethod
    def from_audit(cls, report: Audit, *, ax: Any = None) -> RobustnessDisplay:
        """Draw an audit that is at hand; the lines join its radii."""
        return cls(report).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> RobustnessDisplay:
        """Draw; ``ax`` is a pair of axes, if not new ones."""
        self.ax_ = np.ravel(new_axes(9.5, 3.9, columns=2) if ax is None else ax)
        if self.ax_.size != 2:
            raise ValueError(f"ax must hold two axes, for loss and error, got {self.ax_.size}")
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        left, right = self.ax_
        self.figure_, radii, models = left.figure, self.report.epsilons, self.report.models
        self.best_lines_: list[Any] = []
        lines: list[list[Any]] = [[], []]
        for model, style in zip(models, _STYLES, strict=False):
            loss = [row.worst_case_loss for row in model.rows]
            worst = [row.worst_error for row in model.rows]
            best = [row.best_error for row in model.rows]
            lines[0] += left.plot(radii, loss, label=model.name, **style)
            lines[1] += right.plot(radii, worst, label=model.name, **style)
            self.best_lines_ += right.plot(radii, best, linewidth=0.8, alpha=0.7, **style)
            if len(models) == 1:  # of several, the bands would hide each other
                right.fill_between(radii, best, worst, color=style["color"], alpha=0.12, lw=0.0)
        self.lines_ = np.array(lines, dtype=object)
        left.set(ylabel="worst-case log-loss (nats)", ylim=(0.0, None))
        right.set(ylabel="worst-case error (thin lines: best case)", ylim=(-0.02, None))
        right.yaxis.set_major_formatter(PercentFormatter(1.0))
        kappa = self.report.kappa
        for each in self.ax_:
            each.set_xlabel(f"radius ε ({self.report.norm} transport)")
            each.margins(x=0.0)
            if isinstance(kappa, float) and math.isfinite(kappa):
                shares = (lambda e: e / kappa, lambda share: share * kappa)
                top = each.secondary_xaxis("top", functions=shares)
                top.set_xlabel(f"share of labels that may be flipped, ε/κ (κ = {kappa:g})")
                top.xaxis.set_major_formatter(PercentFormatter(1.0))
                top.xaxis.set_major_locator(MaxNLocator(5))
        if len(models) > 1:
            left.legend(frameon=False)
        return self


class RegularizationPathDisplay:
    """Coefficients against the radius ε.

    Parameters
    ----------
    path : RegularizationPath
    feature_names : list of str
        One per coefficient, of several classes with the class in front.
    unit : str
        What a feature changes by when the log-odds change by its coefficient.

    Attributes
    ----------
    path, feature_names, unit
        As given.
    figure_, ax_
        Figure and axes.
    lines_ : list
        One line per feature.
    """

    def __init__(
        self,
        path: RegularizationPath,
        feature_names: Sequence[str],
        unit: str = "unit of the feature",
    ) -> None:
        self.path = path
        self.feature_names = list(feature_names)
        self.unit = unit

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath,
        *,
        feature_names: ArrayLike | None = None,
        unit: str = "unit of the feature",
        n_named: int = 8,
        ax: Any = None,
        classes: Sequence[Any] | None = None,
    ) -> RegularizationPathDisplay:
        """Draw a :func:`drlogit.regularization_path`; ``classes`` are the names of several."""
        known, count = path.feature_names, path.coefs.shape[-1]
        if feature_names is not None:
            known = np.asarray(feature_names).tolist()
        names = [str(name) for name in known or [f"x{j}" for j in range(count)]]
        if len(names) != count:
            raise ValueError(f"feature_names must have {count} entries, got {len(names)}")
        if path.coefs.ndim == 3:
            each = range(path.coefs.shape[1]) if classes is None else classes
            names = [f"{label}: {name}" for label in each for name in names]
        return cls(path, names, unit).plot(n_named=n_named, ax=ax)

    def plot(self, *, n_named: int = 8, ax: Any = None) -> RegularizationPathDisplay:
        """Draw; the ``n_named`` features with the largest coefficients get colour and name."""
        self.ax_ = ax = new_axes(7.0, 4.2) if ax is None else ax
        self.figure_, path = ax.figure, self.path
        coefs = path.coefs.reshape(len(path), -1)
        order = np.argsort(-np.abs(coefs).max(axis=0), kind="stable").tolist()
        named = dict(zip(order[:n_named], _STYLES, strict=False))
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        self.lines_: list[Any] = [None] * len(order)
        for j in order:  # the legend has them in this order
            style: dict[str, Any] = {"color": "0.75", "linewidth": 0.8, "zorder": 1}
            if j in named:
                style = {**named[j], "label": self.feature_names[j]}
            (self.lines_[j],) = ax.plot(path.epsilons, coefs[:, j], **style)
        if (path.epsilons > 0.0).all():
            ax.set_xscale("log")
        if path.epsilons[-1] <= path.epsilon_max <= 1.2 * path.epsilons[0]:
            ax.axvline(path.epsilon_max, color="0.4", linewidth=0.8, linestyle=":")
            ax.annotate(
                r"$\varepsilon_{\max}$", (path.epsilon_max, 1.0), (-4, -4),
                xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="right", va="top", color="0.4",
            )  # fmt: skip
        ax.margins(x=0.02)
        ax.set_xlabel(f"radius ε ({path.ball.norm} transport, κ = {kappa_text(path.ball.kappa)})")
        ax.set_ylabel(f"coefficient (log-odds per {self.unit})")
        if named:
            ax.legend(
                title=f"largest {len(named)} of {len(order)}" if order[len(named) :] else None,
                frameon=False, fontsize="small", title_fontsize="small", loc="center left",
                bbox_to_anchor=(1.0, 0.5),
            )  # fmt: skip
        return self
