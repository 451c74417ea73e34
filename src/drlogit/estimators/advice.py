"""What ``fit`` says of columns: coefficients that nothing penalises, units with little in common.

Where no costs are stated, a step of one costs the same in every column: the radius is then next to
nothing for a column in dollars beside one in years, and its coefficient next to free.  What is
compared with is not the narrowest column: pixels at the rim of a picture hardly vary, in the same
units as the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray, Matrix
from .tables.by_column import spreads
from .tables.encoding import Encoding

#: With fewer samples than this for each coefficient that is not penalised there is a warning: the
#: rule of thumb of plain logistic regression (Peduzzi et al. 1996).
_SAMPLES_EACH = 10

#: Columns that vary more than this many times as much as the lower quartile of columns deserve a
#: word.  Wine 550, breast cancer 3e4, adult 8e3; MNIST, digits, a9a, w8a and farm-ads at most 16.
_UNLIKE = 100.0

#: Orders of magnitude need no more rows than this.
_ROWS = 1000


class UnscaledDataWarning(UserWarning):
    """Columns vary by orders of magnitude more than others, and no costs were stated."""


def unpenalised(costs: FloatArray, table: Encoding, n_samples: int) -> str | None:
    """What is to be said if many coefficients of infinite cost are free for so many samples."""
    free = np.isinf(costs)
    widths = {
        column.name: max(column.width - 1, 1)
        for column, place in zip(table.columns, table.places, strict=True)
        if free[place].any()
    }
    count = sum(widths.values())
    if count * _SAMPLES_EACH <= n_samples:
        return None
    most = sorted(widths, key=lambda name: -widths[name])
    shown = [f"{n!r:.40}" + (f" ({widths[n]})" if widths[n] > 1 else "") for n in most]
    return (
        f"{count} coefficients are not penalised, with {n_samples} samples to learn them from: "
        f"an infinite cost calls {_listed(shown, 5)} beyond doubt. They may fit the training data "
        "far better than any other; give them a finite cost, or a tolerance."
    )


def unlike_units(X: Matrix, names: Sequence[Any], levels: Sequence[int]) -> str | None:
    """What is to be said of a matrix some of whose columns are levels and have no unit."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond 1e154, where nobody is advised
        spread = spreads(X[:: -(-X.shape[0] // _ROWS)])
    spread[list(levels)] = 0.0
    varied = np.sort(spread[(spread > 0.0) & np.isfinite(spread)])
    usual = float(varied[varied.size // 4]) if varied.size else math.inf
    wide = np.flatnonzero((spread > _UNLIKE * usual) & np.isfinite(spread))
    if not wide.size:
        return None
    wide = wide[np.argsort(-spread[wide], kind="stable")]
    # A power of ten, so that the folds of a search all say the same, which Python shows once.
    times = 10.0 ** math.floor(math.log10(spread[wide[0]] / usual))
    who, do = ("columns", "vary") if wide.size > 1 else ("column", "varies")
    shown = _listed([f"{names[j]!r:.40}" for j in wide.tolist()], 3)
    return (
        f"{who} {shown} {do} more than {times:.0e} times as much as other columns, and epsilon is "
        "in their units: feature_costs='std', or a StandardScaler before, measures in standard "
        "deviations; feature_costs={} keeps the units."
    )


def _listed(shown: Sequence[str], most: int) -> str:
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
