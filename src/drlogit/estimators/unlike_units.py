"""A line of advice where columns vary by orders of magnitude more than others.

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

#: Columns that vary more than this many times as much as the lower quartile of columns deserve a
#: word.  Wine 550, breast cancer 3e4, adult 8e3; MNIST, digits, a9a, w8a and farm-ads at most 16.
_UNLIKE = 100.0

#: Orders of magnitude need no more rows than this.
_ROWS = 1000

#: Columns that are named.
_NAMED = 3


class UnscaledDataWarning(UserWarning):
    """Columns vary by orders of magnitude more than others, and no costs were stated."""


def unlike_units(names: Sequence[Any], spread: FloatArray) -> str | None:
    """What is to be said about columns with these standard deviations, if anything."""
    varied = np.sort(spread[(spread > 0.0) & np.isfinite(spread)])
    if not varied.size:
        return None
    usual = float(varied[varied.size // 4])
    wide = np.flatnonzero((spread > _UNLIKE * usual) & np.isfinite(spread))
    if not wide.size:
        return None
    first = wide[np.argsort(-spread[wide], kind="stable")][:_NAMED]
    shown = ", ".join(f"{names[j]!r:.40}" for j in first)
    more = f" and {wide.size - _NAMED} more" if wide.size > _NAMED else ""
    # A power of ten, so that the folds of a search all say the same, which Python shows once.
    times = 10.0 ** math.floor(math.log10(spread[first[0]] / usual))
    who, do = ("columns", "vary") if wide.size > 1 else ("column", "varies")
    return (
        f"{who} {shown}{more} {do} more than {times:.0e} times as much as other columns, and "
        "epsilon is in their units"
    )


def unlike_columns(X: Matrix, names: Sequence[Any], levels: Sequence[int]) -> str | None:
    """The same of a matrix in memory, some of whose columns are levels and have no unit."""
    rows = X[:: -(-X.shape[0] // _ROWS)]
    with np.errstate(over="ignore", invalid="ignore"):  # beyond 1e154, where nobody is advised
        spread = spreads(rows)
    spread[list(levels)] = 0.0
    return unlike_units(names, spread)
