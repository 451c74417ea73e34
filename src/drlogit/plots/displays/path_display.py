"""Coefficients against the radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...estimators.choosing import RegularizationPath, regularization_path
from .axes import kappa_text, names_of_features, new_axes, styles


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
