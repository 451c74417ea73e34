"""What block functions return for the driver: sums, minima, maxima, and samples themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np


@dataclass(frozen=True)
class Sum:
    """A reduction by addition (scalars or arrays of equal shape)."""

    value: Any

    def merge(self, other: Sum) -> Sum:
        return Sum(self.value + other.value)


@dataclass(frozen=True)
class Min:
    """A reduction by (elementwise) minimum."""

    value: Any

    def merge(self, other: Min) -> Min:
        return Min(np.minimum(self.value, other.value))


@dataclass(frozen=True)
class Max:
    """A reduction by (elementwise) maximum."""

    value: Any

    def merge(self, other: Max) -> Max:
        return Max(np.maximum(self.value, other.value))


@dataclass(frozen=True)
class Stack:
    """A reduction that puts arrays below one another, those of later blocks perhaps first."""

    value: Any

    def merge(self, other: Stack) -> Stack:
        return Stack(np.concatenate([self.value, other.value]))


@dataclass(frozen=True)
class Joined:
    """Arrays put together along their first axis, in the order of the blocks."""

    value: Any

    def merge(self, other: Joined) -> Joined:
        return Joined(np.concatenate([self.value, other.value]))


Reduction: TypeAlias = Any  # Sum | Min | Max | Stack | Joined


def merge_reductions(
    left: tuple[Reduction, ...], right: tuple[Reduction, ...]
) -> tuple[Reduction, ...]:
    """Combine the reductions of two blocks, or of two sets of blocks."""
    return tuple(a.merge(b) for a, b in zip(left, right, strict=True))
