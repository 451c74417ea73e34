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


def project_l1_ball(x: FloatArray, radius: float, metric: FloatArray | None = None) -> FloatArray:
    """Nearest point to ``x`` in the ball ``Σ|x_j| ≤ radius`` (sort and threshold)."""
    magnitude = np.abs(x)
    if magnitude.sum() <= radius:
        return x.copy()
    if radius <= 0.0:
        return np.zeros_like(x)
    # The projection is |x_j| - threshold·m_j where that is positive, for the largest |x_j|/m_j.
    m = np.ones_like(x) if metric is None else metric
    order = np.argsort(magnitude / m)[::-1]
    excess = np.cumsum(magnitude[order]) - radius
    weight = np.cumsum(m[order])
    # Not ">": if the radius vanishes in the rounding of the sum, the first entry must remain.
    last = int(np.flatnonzero(magnitude[order] * weight >= excess * m[order])[-1])
    threshold = excess[last] / weight[last]
    return np.asarray(np.sign(x) * np.maximum(magnitude - threshold * m, 0.0))


def project_l2_ball(x: FloatArray, radius: float, metric: FloatArray | None = None) -> FloatArray:
    """Nearest point to ``x`` in the Euclidean ball."""
    length = _length(x)
    if length <= radius:
        return x.copy()
    if metric is None or radius <= 0.0:
        return x * (max(radius, 0.0) / length)
    if radius < 1e-100 * length:  # the limit of what follows
        return np.asarray(x / metric * (radius / _length(x / metric)))
    metric = metric / metric.max()  # a multiple has the same nearest point, but could underflow
    # The projection is x_j / (1 + μ m_j) with the μ at which its length is the radius.  Newton's
    # method on 1/length, which is nearly linear in μ, converges from below in a few steps.
    mu = 0.0
    for _ in range(50):
        shrunk = x / (1.0 + mu * metric)
        length = _length(shrunk)
        if length <= radius * (1.0 + 1e-14):
            break
        slope = float(np.sum(shrunk**2 * metric / (1.0 + mu * metric)))
        mu += (length / radius - 1.0) * length**2 / slope
    return np.asarray(shrunk * (radius / length))


def project_linf_ball(x: FloatArray, radius: float, metric: FloatArray | None = None) -> FloatArray:
    """Nearest point to ``x`` in the box ``|x_j| ≤ radius``; it is the same in every metric."""
    bound = max(radius, 0.0)
    return np.clip(x, -bound, bound)


@dataclass(frozen=True)
class Norm:
    """A transport norm with its dual.

    ``value`` is the transport norm, ``dual`` the norm that bounds the coefficients.  ``project`` is
    the projection on a ball, ``(x, radius) -> nearest point``, or ``(x, radius, m)`` for the
    nearest in the sense of ``Σ_j (p_j - x_j)² / m_j``.
    ``aligned(x)`` has norm one and ``x·aligned(x) = dual(x)``; zero at zero.
    """

    name: NormName
    value: Callable[[FloatArray], float]
    dual: Callable[[FloatArray], float]
    project: Callable[..., FloatArray]
    aligned: Callable[[FloatArray], FloatArray]


NORMS = {
    "l1": Norm("l1", _abs_sum, _largest, project_l1_ball, _longest_axis),
    "l2": Norm("l2", _length, _length, project_l2_ball, _unit),
    "linf": Norm("linf", _largest, _abs_sum, project_linf_ball, _corner),
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
