"""What all pictures share: axes, colours and line styles, names of features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...problem.label_costs import StatedKappa
from ...problem.label_costs import kappa_text as stated_text

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
