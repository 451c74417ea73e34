"""What block functions return for the driver: sums, minima, maxima, and samples themselves.

A reduction is of a number, of an array, or of a named tuple of them, which is combined field by
field: ``Sum(Totals(loss=…, flips=…))`` arrives at the driver as ``Totals``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)


class Reduction(Generic[T_co]):
    """A value that is combined over the blocks."""

    def __init__(self, value: T_co) -> None:
        self.value = value

    def merge(self, other: Any) -> Any:
        """The reduction of both."""
        return type(self)(_fieldwise(self._combine, self.value, other.value))

    @staticmethod
    def _combine(one: Any, other: Any) -> Any:
        raise NotImplementedError


class Sum(Reduction[T_co]):
    """A reduction by addition (scalars, arrays of equal shape, or lists)."""

    @staticmethod
    def _combine(one: Any, other: Any) -> Any:
        return one + other


class Min(Reduction[T_co]):
    """A reduction by (elementwise) minimum."""

    @staticmethod
    def _combine(one: Any, other: Any) -> Any:
        return np.minimum(one, other)


class Max(Reduction[T_co]):
    """A reduction by (elementwise) maximum."""

    @staticmethod
    def _combine(one: Any, other: Any) -> Any:
        return np.maximum(one, other)


class Stack(Reduction[T_co]):
    """A reduction that puts arrays below one another, those of later blocks perhaps first.

    They are copied once, when the whole is asked for or sent, and not for every block again.
    """

    def __init__(self, *parts: T_co) -> None:
        self.parts: tuple[Any, ...] = parts

    @property
    def value(self) -> T_co:  # type: ignore[override]
        """All of them in one array."""
        whole: Any = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)
        return whole  # type: ignore[no-any-return]

    def merge(self, other: Any) -> Any:
        """The arrays of both."""
        return Stack(*self.parts, *other.parts)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return Stack, (self.value,)


def _fieldwise(combine: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return type(one)(*(combine(a, b) for a, b in zip(one, other, strict=True)))
    return combine(one, other)


def merge_reductions(
    left: tuple[Reduction, ...], right: tuple[Reduction, ...]
) -> tuple[Reduction, ...]:
    """Combine the reductions of two blocks, or of two sets of blocks."""
    return tuple(a.merge(b) for a, b in zip(left, right, strict=True))
