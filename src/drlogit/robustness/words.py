"""Numbers in sentences: limits are rounded outwards, so that a sentence is never too good."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


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
