"""Worst-case loss and error against the radius."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..audits import Audit, audit
from .axes import pyplot, styles


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

        ``models`` is a model, or a list or mapping of models; without ``max_epsilon`` the radii of
        :func:`drlogit.audit` are taken.  Other options are those of :func:`drlogit.audit`.
        """
        if max_epsilon is None:
            coarse = audit(models, X, y, kappa=kappa, n_listed=0, **options)
            max_epsilon = coarse.epsilons[-1]
        radii = np.linspace(0.0, max_epsilon, 101)
        report = audit(models, X, y, kappa=kappa, epsilons=radii, **options)
        return cls(report).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: ArrayLike, *, ax: Any = None, **options: Any
    ) -> RobustnessDisplay:
        """One model; see :meth:`from_estimators`."""
        return cls.from_estimators(model, X, y, ax=ax, **options)

    def plot(self, *, ax: Any = None) -> RobustnessDisplay:
        """Draw; ``ax`` is a pair of axes, if not new ones."""
        if ax is None:
            _, ax = pyplot().subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
        self.ax_ = np.asarray(ax).ravel()
        if self.ax_.size != 2:
            raise ValueError(f"ax must hold two axes, for loss and error, got {self.ax_.size}")
        left, right = self.ax_
        self.figure_ = left.figure
        self.best_lines_: list[Any] = []
        lines: list[list[Any]] = [[], []]
        radii = self.report.epsilons
        for model, style in zip(self.report.models, styles(), strict=False):
            loss = [row.worst_case_loss for row in model.rows]
            worst = [row.worst_error for row in model.rows]
            best = [row.best_error for row in model.rows]
            lines[0] += left.plot(radii, loss, label=model.name, **style)
            lines[1] += right.plot(radii, worst, label=model.name, **style)
            self.best_lines_ += right.plot(radii, best, linewidth=0.8, alpha=0.7, **style)
            if len(self.report.models) == 1:  # of several, the bands would hide each other
                right.fill_between(radii, best, worst, color=style["color"], alpha=0.12, lw=0.0)
        self.lines_ = np.array(lines, dtype=object)
        left.set_ylabel("worst-case log-loss (nats)")
        right.set_ylabel("worst-case error (thin lines: best case)")
        right.yaxis.set_major_formatter(_percent())
        right.set_ylim(-0.02, None)
        left.set_ylim(0.0, None)
        for each in self.ax_:
            each.set_xlabel(f"radius ε ({self.report.norm} transport)")
            each.margins(x=0.0)
            kappa = self.report.kappa
            if isinstance(kappa, float) and math.isfinite(kappa):
                self._label_share(each, kappa)
        if len(self.report.models) > 1:
            left.legend(frameon=False)
        return self

    def _label_share(self, axes: Any, kappa: float) -> None:
        from matplotlib.ticker import MaxNLocator

        top = axes.secondary_xaxis("top", functions=(lambda e: e / kappa, lambda s: s * kappa))
        top.set_xlabel(f"share of labels that may be flipped, ε/κ (κ = {kappa:g})")
        top.xaxis.set_major_formatter(_percent())
        top.xaxis.set_major_locator(MaxNLocator(5))


def _percent() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{100.0 * value:g} %")
