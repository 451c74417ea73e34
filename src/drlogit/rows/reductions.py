"""Reductions that block functions return to the driver: sums, minima and maxima.

The value is a number, an array, or a named tuple of them, which is combined field by field:
``Sum(Totals(loss=…, flips=…))`` arrives at the driver as ``Totals``.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


class Reduction:
    """A value to be combined over the blocks."""

    _combine: Any  # of two values

    def __init__(self, value: Any) -> None:
        self.value = value

    def merge(self, other: Any) -> Any:
        """The reduction of both."""
        if not isinstance(self.value, tuple):
            return type(self)(self._combine(self.value, other.value))
        fields = zip(self.value, other.value, strict=True)
        return type(self)(type(self.value)(*(self._combine(a, b) for a, b in fields)))


class Sum(Reduction):
    """A reduction by addition (scalars, arrays of equal shape, or lists)."""

    _combine = staticmethod(operator.add)


class Min(Reduction):
    """A reduction by (elementwise) minimum."""

    _combine = staticmethod(np.minimum)


class Max(Reduction):
    """A reduction by (elementwise) maximum."""

    _combine = staticmethod(np.maximum)


def merge_reductions(
    left: tuple[Reduction, ...], right: tuple[Reduction, ...]
) -> tuple[Reduction, ...]:
    """Combine the reductions of two blocks, or of two sets of blocks."""
    return tuple(a.merge(b) for a, b in zip(left, right, strict=True))
