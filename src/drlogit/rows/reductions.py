"""What block functions return for the driver: sums, minima, maxima, and samples themselves.

A reduction is of a number, of an array, or of a named tuple of them, which is combined field by
field: ``Sum(Totals(loss=…, flips=…))`` arrives at the driver as ``Totals``.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


class Reduction:
    """A value that is combined over the blocks."""

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


class Stack(Reduction):
    """A reduction that puts arrays below one another, those of later blocks perhaps first.

    They are copied once, when the whole is asked for or sent, and not for every block again.
    """

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    @property
    def value(self) -> Any:
        """All of them in one array."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def merge(self, other: Any) -> Any:
        """The arrays of both."""
        return Stack(*self.parts, *other.parts)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return Stack, (self.value,)


def merge_reductions(
    left: tuple[Reduction, ...], right: tuple[Reduction, ...]
) -> tuple[Reduction, ...]:
    """Combine the reductions of two blocks, or of two sets of blocks."""
    return tuple(a.merge(b) for a, b in zip(left, right, strict=True))
