"""The three transport norms and their duals.

A norm is named after the **transport** cost ``‖x - x'‖``; the constraint of the model is
``‖β‖_* ≤ λ`` in the dual norm.  So ``"l1"`` bounds ``max |β_j|``, ``"l2"`` bounds the
Euclidean length and ``"linf"`` bounds ``Σ |β_j|``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..rows.arrays import FloatArray

#: The names of the norms.
NormName: TypeAlias = Literal["l1", "l2", "linf"]


def _abs_sum(x: FloatArray) -> float:
    return float(np.sum(np.abs(x)))


def _length(x: FloatArray) -> float:
    return float(np.linalg.norm(x))


def _largest(x: FloatArray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def _longest_axis(x: FloatArray) -> FloatArray:
    unit = np.zeros_like(x)
    if x.any():
        largest = int(np.argmax(np.abs(x)))
        unit[largest] = np.sign(x[largest])
    return unit


def _unit(x: FloatArray) -> FloatArray:
    return x / _length(x) if x.any() else np.zeros_like(x)


def _corner(x: FloatArray) -> FloatArray:
    return np.asarray(np.sign(x))


def project_l1_ball(x: FloatArray, radius: float) -> FloatArray:
    """Nearest point to ``x`` in the ball ``Σ|x_j| ≤ radius`` (sort and threshold)."""
    magnitude = np.abs(x)
    if magnitude.sum() <= radius:
        return x.copy()
    if radius <= 0.0:
        return np.zeros_like(x)
    ordered = np.sort(magnitude)[::-1]
    excess = np.cumsum(ordered) - radius
    count = np.arange(1, x.size + 1)
    # Not ">": if the radius vanishes in the rounding of the sum, the first entry must remain.
    last = int(np.flatnonzero(ordered * count >= excess)[-1])
    return np.asarray(np.sign(x) * np.maximum(magnitude - excess[last] / count[last], 0.0))


def project_l2_ball(x: FloatArray, radius: float) -> FloatArray:
    """Nearest point to ``x`` in the Euclidean ball."""
    length = _length(x)
    return x.copy() if length <= radius else x * (max(radius, 0.0) / length)


def project_linf_ball(x: FloatArray, radius: float) -> FloatArray:
    """Nearest point to ``x`` in the box ``|x_j| ≤ radius``."""
    return np.clip(x, -max(radius, 0.0), max(radius, 0.0))


@dataclass(frozen=True)
class Norm:
    """A transport norm with its dual.

    ``value`` is the transport norm, ``dual`` the norm that bounds the coefficients.
    ``aligned(x)`` has norm one and ``x·aligned(x) = dual(x)``; zero at zero.
    """

    name: NormName
    value: Callable[[FloatArray], float]
    dual: Callable[[FloatArray], float]
    aligned: Callable[[FloatArray], FloatArray]


NORMS = {
    "l1": Norm("l1", _abs_sum, _largest, _longest_axis),
    "l2": Norm("l2", _length, _length, _unit),
    "linf": Norm("linf", _largest, _abs_sum, _corner),
}


def get_norm(name: str | Norm) -> Norm:
    """The norm with this name; ``ValueError`` for an unknown name."""
    if isinstance(name, Norm):
        return name
    if not isinstance(name, str) or name not in NORMS:
        raise ValueError(
            f"norm must be one of {', '.join(map(repr, NORMS))} (the transport norm), got {name!r}"
        )
    return NORMS[name]
