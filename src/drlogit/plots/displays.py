"""Pictures, in scikit-learn's Display convention.

A display is made by a ``from_…`` constructor, which computes what is needed and draws it, or from
that data directly; :meth:`plot` draws it (again).  Afterwards ``figure_`` and ``ax_`` hold the
figure and its axes, and other attributes with a trailing underscore the artists:

    RobustnessDisplay.from_estimators({"plain": lr, "robust": drlr}, X, y, kappa=1.0)
    RegularizationPathDisplay.from_data(X, y, kappa=1.0)
    CVSurfaceDisplay.from_estimator(cv)
    ConvergenceDisplay.from_results({"interior point": result})
    CoefficientsDisplay.from_estimators({"plain": lr, "robust": drlr})

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

from ..fitting.paths import RegularizationPath, regularization_path
from ..problem.result import Result
from ..robustness.audits import named_models
from ..robustness.linear_model import as_linear
from ..rows.arrays import FloatArray
from .audits import Audit, audit

#: Those of Okabe and Ito (2008) without the yellow, which is too pale for lines.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_LINES = ("-", "--", "-.", ":")


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib, which is not installed: pip install "drlogit[plot]"'
        ) from error
    return plt


def _styles() -> Iterator[dict[str, str]]:
    """Colours and line styles, each pair different from those before for long enough."""
    for i in range(len(_COLORS) * len(_LINES)):
        yield {
            "color": _COLORS[i % len(_COLORS)],
            "linestyle": _LINES[(i % len(_COLORS) + i // len(_COLORS)) % len(_LINES)],
        }


def _new_axes(ax: Any, size: tuple[float, float]) -> Any:
    return _pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def _feature_names(names: ArrayLike | None, source: Any, count: int) -> list[str]:
    """Names of the features: those given, those of a data frame or model, or x0, x1, …"""
    if names is None:
        found = getattr(source, "feature_names_in_", getattr(source, "columns", None))
        names = [f"x{j}" for j in range(count)] if found is None else found
    listed = [str(name) for name in np.asarray(names).tolist()]
    if len(listed) != count:
        raise ValueError(f"feature_names must have {count} entries, got {len(listed)}")
    return listed


# --- worst-case loss and error --------------------------------------------------------------


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
        kappa: float | None = None,
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
            _, ax = _pyplot().subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
        self.ax_ = np.asarray(ax).ravel()
        if self.ax_.size != 2:
            raise ValueError(f"ax must hold two axes, for loss and error, got {self.ax_.size}")
        left, right = self.ax_
        self.figure_ = left.figure
        self.best_lines_: list[Any] = []
        lines: list[list[Any]] = [[], []]
        radii = self.report.epsilons
        for model, style in zip(self.report.models, _styles(), strict=False):
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
            if math.isfinite(self.report.kappa):
                self._label_share(each)
        if len(self.report.models) > 1:
            left.legend(frameon=False)
        return self

    def _label_share(self, axes: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        kappa = self.report.kappa
        top = axes.secondary_xaxis("top", functions=(lambda e: e / kappa, lambda s: s * kappa))
        top.set_xlabel(f"share of labels that may be flipped, ε/κ (κ = {kappa:g})")
        top.xaxis.set_major_formatter(_percent())
        top.xaxis.set_major_locator(MaxNLocator(5))


def _percent() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{100.0 * value:g} %")


# --- regularisation path --------------------------------------------------------------------


class RegularizationPathDisplay:
    """Coefficients against the radius ε.

    Parameters
    ----------
    path : RegularizationPath
    feature_names : list of str
        One per coefficient.
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
    ) -> RegularizationPathDisplay:
        """Draw a path that is there already."""
        names = _feature_names(feature_names, None, path.coefs.shape[1])
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
        names = _feature_names(feature_names, X, path.coefs.shape[1])
        return cls(path, names, unit).plot(n_named=n_named, ax=ax)

    def plot(self, *, n_named: int = 8, ax: Any = None) -> RegularizationPathDisplay:
        """Draw; the ``n_named`` features with the largest coefficients get colour and name."""
        self.ax_ = ax = _new_axes(ax, (7.0, 4.2))
        self.figure_ = ax.figure
        path = self.path
        largest = np.abs(path.coefs).max(axis=0)
        named = set(np.argsort(-largest, kind="stable")[:n_named].tolist())
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        self.lines_: list[Any] = [None] * len(self.feature_names)
        others = [j for j in range(largest.size) if j not in named]
        for j in others:
            (self.lines_[j],) = ax.plot(
                path.epsilons, path.coefs[:, j], color="0.75", linewidth=0.8, zorder=1
            )
        for j, style in zip(sorted(named, key=lambda j: -largest[j]), _styles(), strict=False):
            (self.lines_[j],) = ax.plot(
                path.epsilons, path.coefs[:, j], label=self.feature_names[j], **style
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
        ax.set_xlabel(f"radius ε ({path.norm} transport, κ = {_kappa(path.kappa)})")
        ax.set_ylabel(f"coefficient (log-odds per {self.unit})")
        if named:
            title = f"largest {len(named)} of {largest.size}" if others else None
            ax.legend(
                title=title, frameon=False, fontsize="small", title_fontsize="small",
                loc="center left", bbox_to_anchor=(1.0, 0.5),
            )  # fmt: skip
        return self


def _kappa(kappa: float) -> str:
    return "∞" if math.isinf(kappa) else f"{kappa:.3g}"


# --- cross-validation -----------------------------------------------------------------------


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
        self.ax_ = ax = _new_axes(ax, (7.0, 4.0))
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
            (self.mark_,) = ax.plot(
                epsilon[self.chosen], np.searchsorted(kappas, kappa[self.chosen]), "*",
                markersize=15, color="white", markeredgecolor="black", linestyle="",
                label=f"chosen: ε = {epsilon[self.chosen]:.3g}, κ = {_kappa(kappa[self.chosen])}",
            )  # fmt: skip
            ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, borderpad=0.1)
        if (epsilon > 0.0).all():
            ax.set_xscale("log")
        ax.set_yticks(np.arange(kappas.size), [_kappa(each) for each in kappas])
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


# --- convergence ----------------------------------------------------------------------------


class ConvergenceDisplay:
    """Certified duality gap against iterations or seconds, for one or several solves.

    Parameters
    ----------
    results : mapping of str to Result
        Their traces are drawn, ending with the gap that was certified in the end.

    Attributes
    ----------
    results
        As given.
    figure_, ax_
        Figure and axes.
    lines_ : list
        One line per result.
    """

    def __init__(self, results: Mapping[str, Result]) -> None:
        self.results = dict(results)

    @classmethod
    def from_results(
        cls,
        results: Result | Sequence[Result] | Mapping[str, Result],
        *,
        against: str = "iterations",
        tol: float | None = None,
        ax: Any = None,
    ) -> ConvergenceDisplay:
        """Draw the traces of results; those without a name go by their solver."""
        if isinstance(results, Result):
            results = [results]
        if not isinstance(results, Mapping):
            solvers = [result.solver for result in results]
            results = {
                name if solvers.count(name) == 1 else f"{name} {i}": result
                for i, (name, result) in enumerate(zip(solvers, results, strict=True), 1)
            }
        return cls(results).plot(against=against, tol=tol, ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> ConvergenceDisplay:
        """Draw the fits of an estimator, one for each class if there are more than two."""
        fits = estimator.results_
        names = [type(estimator).__name__]
        if len(fits) > 1:
            names = [f"class {label}" for label in estimator.classes_.tolist()]
        return cls.from_results(dict(zip(names, fits, strict=True)), **options)

    def plot(
        self, *, against: str = "iterations", tol: float | None = None, ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw against ``"iterations"`` or ``"seconds"``, with a line at ``tol`` if given."""
        if against not in ("iterations", "seconds"):
            raise ValueError(f"against must be 'iterations' or 'seconds', got {against!r}")
        self.ax_ = ax = _new_axes(ax, (6.0, 3.9))
        self.figure_ = ax.figure
        self.lines_: list[Any] = []
        for (name, result), style in zip(self.results.items(), _styles(), strict=False):
            x, gap = _trace(result, against)
            few = len(x) <= 50
            self.lines_ += ax.plot(x, gap, label=name, marker="." if few else None, **style)
        ax.set_yscale("log")
        if tol is not None:
            ax.axhline(tol, color="0.4", linewidth=0.8, linestyle=":", zorder=0)
            ax.annotate(
                f"tol = {tol:g}", (1.0, tol), (-4, 3), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", color="0.4", fontsize="small",
            )  # fmt: skip
        ax.set_xlabel("iteration" if against == "iterations" else "seconds in the solver")
        ax.set_ylabel("certified duality gap (nats)")
        if against == "iterations":
            ax.xaxis.get_major_locator().set_params(integer=True)
        if len(self.results) > 1:
            ax.legend(frameon=False)
        return self


def _trace(result: Result, against: str) -> tuple[FloatArray, FloatArray]:
    """Points of a trace whose gap is known, and the end; a gap of 0 at machine precision."""
    x = result.trace.column("n_iter" if against == "iterations" else "elapsed")
    gap = result.trace.column("gap")
    end = float(result.n_iter) if against == "iterations" else result.solve_time
    x, gap = np.append(x, end), np.append(gap, result.gap)
    known = np.isfinite(gap)
    return x[known], np.maximum(gap[known], np.finfo(float).eps)


# --- coefficients ---------------------------------------------------------------------------


class CoefficientsDisplay:
    """Coefficients of one or several models side by side.

    Parameters
    ----------
    coefs : mapping of str to array of shape (n_features,)
        By model name.
    feature_names : list of str

    Attributes
    ----------
    coefs, feature_names
        As given.
    figure_, ax_
        Figure and axes.
    points_ : list
        One set of points per model.
    shown_ : array of int
        The features shown, from the top.
    """

    def __init__(self, coefs: Mapping[str, FloatArray], feature_names: Sequence[str]) -> None:
        self.coefs = dict(coefs)
        self.feature_names = list(feature_names)

    @classmethod
    def from_estimators(
        cls,
        models: Any,
        *,
        feature_names: ArrayLike | None = None,
        max_features: int = 20,
        ax: Any = None,
    ) -> CoefficientsDisplay:
        """Draw a model, or a list or mapping of models, each as in :func:`drlogit.audit`.

        Coefficients of a pipeline are those of its input, per unit before any scaling.
        """
        found = named_models(models)
        coefs = {name: as_linear(model).coef for name, model in found.items()}
        sizes = {coef.size for coef in coefs.values()}
        if len(sizes) > 1:
            raise ValueError(f"models must have the same features, got {sorted(sizes)} of them")
        sources = [m for m in found.values() if hasattr(m, "feature_names_in_")]
        names = _feature_names(feature_names, sources[0] if sources else None, sizes.pop())
        return cls(coefs, names).plot(max_features=max_features, ax=ax)

    @classmethod
    def from_estimator(cls, model: Any, **options: Any) -> CoefficientsDisplay:
        """One model; see :meth:`from_estimators`."""
        return cls.from_estimators(model, **options)

    def plot(self, *, max_features: int = 20, ax: Any = None) -> CoefficientsDisplay:
        """Draw the features with the largest coefficients in any model, largest on top."""
        table = np.array(list(self.coefs.values()))
        largest = np.abs(table).max(axis=0)
        self.shown_ = np.argsort(-largest, kind="stable")[:max_features]
        self.ax_ = ax = _new_axes(ax, (6.5, 1.2 + 0.26 * self.shown_.size))
        self.figure_ = ax.figure
        height = np.arange(self.shown_.size)
        step = min(0.18, 0.6 / len(self.coefs))
        ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
        ax.hlines(height[1:] - 0.5, 0.0, 1.0, transform=ax.get_yaxis_transform(), colors="0.93")
        self.points_: list[Any] = []
        markers = "osD^vPX"
        for i, (name, style) in enumerate(zip(self.coefs, _styles(), strict=False)):
            y = height + step * (i - (len(self.coefs) - 1) / 2.0)
            values = table[i, self.shown_]
            ax.hlines(y, 0.0, values, colors=style["color"], linewidth=1.2, alpha=0.6)
            marker = markers[i % len(markers)]
            self.points_ += ax.plot(
                values, y, marker, markersize=4.5, color=style["color"], label=name
            )
        ax.set_yticks(height, [self.feature_names[j] for j in self.shown_])
        ax.set_ylim(self.shown_.size - 0.5, -0.5)
        ax.set_xlabel("coefficient (log-odds per unit)")
        if self.shown_.size < largest.size:
            ax.set_title(
                f"largest {self.shown_.size} of {largest.size} coefficients", fontsize="medium"
            )
        if len(self.coefs) > 1:
            ax.legend(frameon=False)
        return self
