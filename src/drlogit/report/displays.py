"""Pictures, in scikit-learn's Display convention: curves of an audit, a path, a search.

A display is made by a ``from_…`` constructor, which computes what is needed and draws it, or from
that data directly; ``plot`` draws it (again).  Afterwards ``figure_`` and ``ax_`` hold the figure
and its axes, and other attributes with a trailing underscore the artists:

    RobustnessDisplay.from_estimators({"plain": lr, "robust": drlr}, X, y, kappa=1.0)
    RegularizationPathDisplay.from_data(X, y, kappa=1.0)
    CVSurfaceDisplay.from_estimator(cv)

Needs matplotlib (``pip install "drlogit[plot]"``), which is imported when something is drawn.
Log-losses are in nats.  Colours are those of Okabe and Ito, which colour-blind readers can tell
apart, and lines differ in style as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.choosing import RegularizationPath, regularization_path
from ..problem.label_costs import StatedKappa
from ..problem.label_costs import kappa_text as stated_text
from ..rows.arrays import FloatArray
from .audits import Audit, audit

#: Those of Okabe and Ito (2008) without the yellow, which is too pale for lines.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_LINES = ("-", "--", "-.", ":")


def pyplot() -> Any:
    """matplotlib.pyplot, imported when something is drawn."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib, which is not installed: pip install "drlogit[plot]"'
        ) from error
    return plt


def styles() -> Iterator[dict[str, str]]:
    """Colours and line styles, each pair different from those before for long enough."""
    for i in range(len(_COLORS) * len(_LINES)):
        yield {
            "color": _COLORS[i % len(_COLORS)],
            "linestyle": _LINES[(i % len(_COLORS) + i // len(_COLORS)) % len(_LINES)],
        }


def new_axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or new ones of this size in inches."""
    return pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def names_of_features(names: ArrayLike | None, source: Any, count: int) -> list[str]:
    """Names of the features: those given, those of a data frame or model, or x0, x1, …"""
    if names is None:
        found = getattr(source, "feature_names_in_", getattr(source, "columns", None))
        names = [f"x{j}" for j in range(count)] if found is None else found
    listed = [str(name) for name in np.asarray(names).tolist()]
    if len(listed) != count:
        raise ValueError(f"feature_names must have {count} entries, got {len(listed)}")
    return listed


def kappa_text(kappa: StatedKappa) -> str:
    """κ with three digits, or ∞; by label or by sample in words."""
    if isinstance(kappa, float):
        return "∞" if math.isinf(kappa) else f"{kappa:.3g}"
    return stated_text(kappa).replace("inf", "∞")


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
        """Draw a path that is there already; ``classes`` are the names of several classes."""
        known = path.feature_names if feature_names is None else feature_names
        names = names_of_features(known, None, path.coefs.shape[-1])
        if path.coefs.ndim == 3:
            each = range(path.coefs.shape[1]) if classes is None else classes
            names = [f"{label}: {name}" for label in each for name in names]
        return cls(path, names, unit).plot(n_named=n_named, ax=ax)

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        feature_names: ArrayLike | None = None,
        unit: str = "unit of the feature",
        n_named: int = 8,
        ax: Any = None,
        **options: Any,
    ) -> RegularizationPathDisplay:
        """Compute a path and draw it; options are those of :func:`regularization_path`."""
        path = regularization_path(X, y, **options)
        return cls.from_path(path, feature_names=feature_names, unit=unit, n_named=n_named, ax=ax)

    def plot(self, *, n_named: int = 8, ax: Any = None) -> RegularizationPathDisplay:
        """Draw; the ``n_named`` features with the largest coefficients get colour and name."""
        self.ax_ = ax = new_axes(ax, (7.0, 4.2))
        self.figure_ = ax.figure
        path = self.path
        coefs = path.coefs.reshape(len(path), -1)
        largest = np.abs(coefs).max(axis=0)
        named = set(np.argsort(-largest, kind="stable")[:n_named].tolist())
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        self.lines_: list[Any] = [None] * len(self.feature_names)
        others = [j for j in range(largest.size) if j not in named]
        for j in others:
            (self.lines_[j],) = ax.plot(
                path.epsilons, coefs[:, j], color="0.75", linewidth=0.8, zorder=1
            )
        for j, style in zip(sorted(named, key=lambda j: -largest[j]), styles(), strict=False):
            (self.lines_[j],) = ax.plot(
                path.epsilons, coefs[:, j], label=self.feature_names[j], **style
            )
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
        ax.set_xlabel(f"radius ε ({path.norm} transport, κ = {kappa_text(path.kappa)})")
        ax.set_ylabel(f"coefficient (log-odds per {self.unit})")
        if named:
            title = f"largest {len(named)} of {largest.size}" if others else None
            ax.legend(
                title=title, frameon=False, fontsize="small", title_fontsize="small",
                loc="center left", bbox_to_anchor=(1.0, 0.5),
            )  # fmt: skip
        return self


class CVSurfaceDisplay:
    """Mean cross-validation score over (ε, κ), one strip for each κ.

    Radii differ between strips where they were chosen as fractions of each κ's ε_max.

    Parameters
    ----------
    results : dict of arrays
        ``cv_results_`` of :class:`~drlogit.DRLogisticRegressionCV`, or of a scikit-learn search
        over ``epsilon`` and ``kappa``.
    chosen : int, optional
        Entry to mark.
    score_name : str
        What the colours mean.
    sign : float
        What to multiply scores by; -1 for negated losses.

    Attributes
    ----------
    results, chosen, score_name, sign
        As given.
    figure_, ax_
        Figure and axes.
    meshes_ : list
        One coloured strip per κ.
    mark_ : line or None
        The mark of the chosen pair.
    colorbar_ : Colorbar
    """

    def __init__(
        self,
        results: Mapping[str, Any],
        *,
        chosen: int | None = None,
        score_name: str = "mean score",
        sign: float = 1.0,
    ) -> None:
        self.results = results
        self.chosen = chosen
        self.score_name = score_name
        self.sign = sign

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> CVSurfaceDisplay:
        """Draw the scores of a fitted :class:`~drlogit.DRLogisticRegressionCV`."""
        scoring = getattr(estimator, "scoring", None)
        is_loss = scoring in (None, "neg_log_loss")
        display = cls(
            estimator.cv_results_,
            chosen=estimator.best_index_,
            score_name="mean log-loss on held-out folds (nats)" if is_loss else f"mean {scoring}",
            sign=-1.0 if is_loss else 1.0,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, cmap: str = "viridis") -> CVSurfaceDisplay:
        """Draw; bright is good, and all that is worse than most has the darkest colour."""
        self.ax_ = ax = new_axes(ax, (7.0, 4.0))
        self.figure_ = ax.figure
        kappa = np.asarray(self.results["param_kappa"], dtype=float)
        epsilon = np.asarray(self.results["param_epsilon"], dtype=float)
        value = self.sign * np.asarray(self.results["mean_test_score"], dtype=float)
        if self.sign < 0.0:
            cmap = cmap.removesuffix("_r") if cmap.endswith("_r") else cmap + "_r"
        best, limit = _color_limits(self.sign * value)
        low, high = sorted([self.sign * best, self.sign * limit])
        kappas = np.unique(kappa)
        self.meshes_ = []
        for row, each in enumerate(kappas):
            strip = np.flatnonzero(kappa == each)
            strip = strip[np.argsort(epsilon[strip])]
            edges = _edges(epsilon[strip])
            mesh = ax.pcolormesh(
                edges, [row - 0.46, row + 0.46], value[strip][None, :], cmap=cmap,
                vmin=low, vmax=high, rasterized=True,
            )  # fmt: skip
            self.meshes_.append(mesh)
        self.mark_ = None
        if self.chosen is not None:
            best_epsilon, best_kappa = epsilon[self.chosen], kappa[self.chosen]
            (self.mark_,) = ax.plot(
                best_epsilon, np.searchsorted(kappas, best_kappa), "*",
                markersize=15, color="white", markeredgecolor="black", linestyle="",
                label=f"chosen: ε = {best_epsilon:.3g}, κ = {kappa_text(best_kappa)}",
            )  # fmt: skip
            ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, borderpad=0.1)
        if (epsilon > 0.0).all():
            ax.set_xscale("log")
        ax.set_yticks(np.arange(kappas.size), [kappa_text(each) for each in kappas])
        ax.set_xlabel("radius ε")
        ax.set_ylabel("cost of a label flip, κ")
        beyond = "max" if self.sign < 0.0 else "min"
        self.colorbar_ = self.figure_.colorbar(
            self.meshes_[-1], ax=ax, label=self.score_name, extend=beyond
        )
        if self.sign < 0.0:
            self.colorbar_.ax.invert_yaxis()
        return self


def _color_limits(scores: FloatArray) -> tuple[float, float]:
    """The best score, and the one at which colours end so as to tell the good ones apart."""
    scores = scores[np.isfinite(scores)]
    best, limit = float(scores.max()), float(np.quantile(scores, 0.2))
    return (best, limit) if limit < best else (best, best - max(abs(best), 1.0) * 1e-9)


def _edges(radii: FloatArray) -> FloatArray:
    """Borders half-way between radii, in logarithms where all are positive."""
    if radii.size == 1:
        return radii * [0.8, 1.25] if radii[0] > 0.0 else np.array([-0.5, 0.5])
    scale = np.log(radii) if (radii > 0.0).all() else radii
    middle = (scale[1:] + scale[:-1]) / 2.0
    edges = np.concatenate(
        [[1.5 * scale[0] - 0.5 * scale[1]], middle, [1.5 * scale[-1] - 0.5 * scale[-2]]]
    )
    return np.exp(edges) if (radii > 0.0).all() else edges
