"""Scores of a cross-validation over radius and flip cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...rows.arrays import FloatArray
from .axes import kappa_text, new_axes


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
