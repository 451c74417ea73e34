"""The three transport norms and their duals.

A norm is named after the **transport** cost ``‖x - x'‖``; the constraint of the model is
``‖β‖_* ≤ λ`` in the dual norm.  So ``"l1"`` bounds ``max |β_j|``, ``"l2"`` bounds the
Euclidean length and ``"linf"`` bounds ``Σ |β_j|``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .losses import FloatArray


def _abs_sum(x: FloatArray) -> float:
    return float(np.sum(np.abs(x)))


def _length(x: FloatArray) -> float:
    return float(np.linalg.norm(x))


def _largest(x: FloatArray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def project_l1_ball(x: FloatArray, radius: float) -> FloatArray:
    """Nearest point to ``x`` in the ball ``Σ|x_j| ≤ radius`` (sort and threshold)."""
    magnitude = np.abs(x)
    if magnitude.sum() <= radius:
        return x.copy()
    if radius <= 0.0:
        return np.zeros_like(x)
    descending = np.sort(magnitude)[::-1]
    excess = np.cumsum(descending) - radius
    counts = np.arange(1, x.size + 1)
    # Not ">": a radius lost in the rounding of the cumulative sum must leave the first entry.
    last = int(np.flatnonzero(descending * counts >= excess)[-1])
    threshold = excess[last] / counts[last]
    return np.asarray(np.sign(x) * np.maximum(magnitude - threshold, 0.0))


def project_l2_ball(x: FloatArray, radius: float) -> FloatArray:
    """Nearest point to ``x`` in the Euclidean ball."""
    length = _length(x)
    return x.copy() if length <= radius else x * (max(radius, 0.0) / length)


def project_linf_ball(x: FloatArray, radius: float) -> FloatArray:
    """Nearest point to ``x`` in the box ``|x_j| ≤ radius``."""
    bound = max(radius, 0.0)
    return np.clip(x, -bound, bound)


@dataclass(frozen=True)
class Norm:
    """A transport norm with its dual.

    ``value`` is the transport norm, ``dual`` the norm that bounds the coefficients;
    ``project`` and ``project_dual`` are the Euclidean projections on their balls
    ``(x, radius) -> nearest point``.
    """

    name: str
    value: Callable[[FloatArray], float]
    dual: Callable[[FloatArray], float]
    project: Callable[[FloatArray, float], FloatArray]
    project_dual: Callable[[FloatArray, float], FloatArray]


NORMS = {
    "l1": Norm("l1", _abs_sum, _largest, project_l1_ball, project_linf_ball),
    "l2": Norm("l2", _length, _length, project_l2_ball, project_l2_ball),
    "linf": Norm("linf", _largest, _abs_sum, project_linf_ball, project_l1_ball),
}


def get_norm(name: str | Norm) -> Norm:
    """The norm of that name; ``ValueError`` names what was found and what is known."""
    if isinstance(name, Norm):
        return name
    if not isinstance(name, str) or name not in NORMS:
        raise ValueError(
            f"norm must be one of {', '.join(map(repr, NORMS))} (the transport norm), got {name!r}"
        )
    return NORMS[name]
