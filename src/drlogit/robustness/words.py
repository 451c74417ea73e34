"""What is said of a metric, in records and in sentences.

Limits are rounded outwards, so that a sentence is never too good.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar

from ..problem.ball import Ball
from ..rows.warn import warn

_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")

#: The width of printed sentences.
_WIDTH = 90


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """A number about a metric, for all rows and for groups of them; ``float()`` is the number."""

    value: float
    nominal: float
    metric: str
    is_benefit: bool
    ball: Ball
    n: int
    group: str = ""
    by_group: tuple[Any, ...] = ()
    #: What the frame has beside these.
    _more: ClassVar[tuple[str, ...]] = ()

    def __float__(self) -> float:
        return self.value

    @property
    def bound(self) -> str:
        """The number in words, as a limit, rounded outwards."""
        sign = -1.0 if self.is_benefit else 1.0
        return f"at {'least' if self.is_benefit else 'most'} {rounded(self.value, sign)}"

    def to_frame(self) -> Any:
        """One row for all rows of the data, then one for each group."""
        import pandas as pd

        names = ["group", "n", "metric", "nominal", "value", *self._more]
        records = [{name: getattr(part, name) for name in names} for part in (self, *self.by_group)]
        return pd.DataFrame(records)


def wrapped(lines: Iterable[str]) -> str:
    """Sentences for a terminal; what follows the first line of each is indented with it."""
    filled = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        filled.append(textwrap.fill(line, _WIDTH, subsequent_indent=indent))
    return "\n".join(filled)


def rounded(value: float, sign: float, digits: int = 4) -> str:
    """A number with a few digits: not below it (sign 1) or not above it (sign -1)."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    # What a computation is off by in its last places is not rounded up to another digit.
    near = (exact / step).quantize(Decimal("1e-9"))
    whole = near.to_integral_value(ROUND_CEILING if sign > 0.0 else ROUND_FLOOR)
    return f"{float(whole * step):.{digits}g}"


def percent(share: float, sign: float, digits: int = 3) -> str:
    """A share in per cent, rounded like :func:`rounded`."""
    return f"{rounded(100.0 * share, sign, digits)} %"


def warning_once(function: Callable[_Asked, _Found]) -> Callable[_Asked, _Found]:
    """The function, whose warnings are given once each, for the line that calls it."""

    @wraps(function)
    def asked(*args: _Asked.args, **kwargs: _Asked.kwargs) -> _Found:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            found = function(*args, **kwargs)
        for text, category in dict.fromkeys((str(each.message), each.category) for each in caught):
            warn(text, category)
        return found

    return asked
