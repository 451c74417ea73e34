"""A line of advice where columns vary by orders of magnitude more than others.

Where no costs are stated, a step of one costs the same in every column: the radius is then next to
nothing for a column in dollars beside one in years, and its coefficient next to free.  What is
compared with is not the narrowest column: pixels at the rim of a picture hardly vary, in the same
units as the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..rows.arrays import IndexArray, Matrix
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


def unlike_units(spread: Mapping[Any, float]) -> str | None:
    """What is to be said about columns with these standard deviations, if anything."""
    varied = {name: value for name, value in spread.items() if 0.0 < value < math.inf}
    if not varied:
        return None
    usual = sorted(varied.values())[len(varied) // 4]
    wide = sorted((n for n in varied if varied[n] > _UNLIKE * usual), key=lambda n: -varied[n])
    if not wide:
        return None
    shown = ", ".join(f"{name!r:.40}" for name in wide[:_NAMED])
    more = f" and {len(wide) - _NAMED} more" if wide[_NAMED:] else ""
    # A power of ten, so that the folds of a search all say the same, which Python shows once.
    times = 10.0 ** math.floor(math.log10(varied[wide[0]] / usual))
    who, do = ("columns", "vary") if wide[1:] else ("column", "varies")
    return (
        f"{who} {shown}{more} {do} more than {times:.0e} times as much as "
        "other columns, and epsilon is in their units"
    )


def unlike_columns(X: Matrix, names: Sequence[Any], numbers: IndexArray) -> str | None:
    """The same of some columns of a matrix in memory."""
    rows = X[:: -(-X.shape[0] // _ROWS)]
    with np.errstate(over="ignore", invalid="ignore"):  # beyond 1e154, where nobody is advised
        found = spreads(rows)[numbers]
    return unlike_units({names[j]: float(value) for j, value in zip(numbers, found, strict=True)})
