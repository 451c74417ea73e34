"""Arithmetic whose errors are known.

A double is a number with a relative error of at most u = 2⁻⁵³ after each operation.  Here are the
bounds on what that adds up to (Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, §3),
sums and products without error (Knuth 1969, Dekker 1971), and the errors that are assumed of
functions that no standard binds: ``log``, ``log1p`` and ``exp`` are taken to be within 4 units in
the last place, which is what NumPy promises of its own.

Nothing here depends on the order in which a sum is formed, nor on whether products are fused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..rows.arrays import FloatArray

#: Unit roundoff of double precision.
UNIT = 2.0**-53

#: A few roundings more than there are; the bounds below are themselves computed with rounding.
UP = 1.0 + 2.0**-46
DOWN = 1.0 - 2.0**-46

#: More than all that underflow takes from the sums formed here.
TINY = 1e-290

#: Relative error of ``-s log s - (1-s) log(1-s)`` and of ``log(1+e^{-u})``, computed as below from
#: functions within 4 units in the last place (8 u): 11 u and 18 u; the rest is for products with a
#: weight and with the bound itself.
LOGARITHMS = 32.0 * UNIT

#: Slices into which numbers are cut at most.
SLICES = 6

#: Numbers from which slices are faster than adding them up one by one without error.
_MANY = 1000

Pair: TypeAlias = tuple[FloatArray, FloatArray]


def gamma(n: int) -> float:
    """Error of a sum of n products in any order, relative to the sum of their sizes."""
    return n * UNIT / (1.0 - n * UNIT) * UP


def two_sum(x: FloatArray, y: FloatArray) -> Pair:
    """``x + y`` as a double and what rounding took from it, exactly."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: FloatArray, y: FloatArray) -> Pair:
    """``x y`` as a double and what rounding took from it, exactly unless it underflows."""
    product = x * y
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    return product, ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2


def pair_product(x: Pair, y: Pair) -> Pair:
    """The product of two sums of two, up to ``8 u²`` of it unless it underflows."""
    high, low = two_product(x[0], y[0])
    return high, low + (x[0] * y[1] + x[1] * y[0])


def _halves(x: FloatArray) -> Pair:
    scaled = (2.0**27 + 1.0) * x
    high = scaled - (scaled - x)
    return high, x - high


def length(x: FloatArray) -> float:
    """Euclidean length, up to a few roundings; no square over- or underflows."""
    scale = float(np.max(np.abs(x), initial=0.0))
    return scale * math.sqrt(exact_sum(np.square(x / scale))) if scale > 0.0 else 0.0


def norm_of(name: str, x: FloatArray) -> float:
    """A norm by name of sizes, rounded upwards."""
    if name == "l1":
        return exact_sum(x) * UP
    return (float(np.max(x, initial=0.0)) if name == "linf" else length(x)) * UP


def exact_sum(*vectors: FloatArray) -> float:
    """The sum of all entries, rounded once."""
    return math.fsum([number for x in vectors for number in _exact_parts(x)])


def _exact_parts(x: FloatArray) -> list[float]:
    """Numbers with the same sum as the entries, and few of them: sums of slices."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0:
        return []
    unit = float(powers_above(largest))
    if x.size < _MANY or unit > 2.0**900:
        return [float(number) for number in x]
    slices, rest = cut(x, unit, 52 - math.ceil(math.log2(x.size)))
    return [*(float(part.sum()) for part in slices), *rest[rest != 0.0].tolist()]


def powers_above(sizes: Any) -> Any:
    """The least powers of two that are no smaller; 1 for 0."""
    _, exponents = np.frexp(sizes)
    return np.where(np.asarray(sizes) > 0.0, np.ldexp(1.0, exponents), 1.0)


def cut(values: FloatArray, unit: float, bits: int) -> tuple[list[FloatArray], FloatArray]:
    """Slices of ``bits`` bits of values up to ``unit``, and the rest, below 2^(-6 bits) of it.

    A slice holds multiples of ``2^-bits`` of its unit: up to ``2^(53 - bits)`` of them add up
    without rounding, in any order.
    """
    slices: list[FloatArray] = []
    for _ in range(SLICES):
        if slices and not values.any():  # whole numbers have few bits
            break
        sieve = 1.5 * unit * 2.0 ** (52 - bits)
        part = (values + sieve) - sieve
        slices.append(part)
        values = values - part
        unit *= 2.0**-bits
    return slices, values


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Numbers known up to an error: the true ones are within ``error`` of ``value``."""

    value: FloatArray
    error: FloatArray

    @property
    def size(self) -> FloatArray:
        """Upper bounds on the sizes of the true numbers."""
        return (np.abs(self.value) + self.error) * UP


class Total:
    """A sum of vectors in twice the working precision, with a bound on its error."""

    def __init__(self, n: int) -> None:
        self._high, self._low = np.zeros(n), np.zeros(n)
        self._sizes, self._errors = np.zeros(n), np.zeros(n)
        self._count = 0

    @property
    def size(self) -> int:
        """Length of the vectors."""
        return self._high.size

    def add(self, value: FloatArray, error: FloatArray | float = 0.0) -> None:
        """Add a vector that is known up to ``error``."""
        self._high, lost = two_sum(self._high, value)
        self._low = self._low + lost
        self._sizes += np.abs(value)
        self._errors += error
        self._count += 1

    def enclosed(self) -> Enclosed:
        """What the sum is by now."""
        value = self._high + self._low
        # Each of the lost parts is below u times the sizes so far, and so is their sum times u.
        own = UNIT * np.abs(value) + (self._count * UNIT) ** 2 * self._sizes
        return Enclosed(value, (self._errors * (1.0 + gamma(self._count)) + own) * UP + TINY)
