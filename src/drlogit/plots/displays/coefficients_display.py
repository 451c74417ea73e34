"""Coefficients of several models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...robustness.audited_models import named_models
from ...robustness.linear_model import as_linear
from ...rows.arrays import FloatArray
from .axes import names_of_features, new_axes, styles


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
        names = names_of_features(feature_names, sources[0] if sources else None, sizes.pop())
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
        self.ax_ = ax = new_axes(ax, (6.5, 1.2 + 0.26 * self.shown_.size))
        self.figure_ = ax.figure
        height = np.arange(self.shown_.size)
        step = min(0.18, 0.6 / len(self.coefs))
        ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
        ax.hlines(height[1:] - 0.5, 0.0, 1.0, transform=ax.get_yaxis_transform(), colors="0.93")
        self.points_: list[Any] = []
        markers = "osD^vPX"
        for i, (name, style) in enumerate(zip(self.coefs, styles(), strict=False)):
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
