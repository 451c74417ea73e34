"""The lower bound of a dual point, for all models of a stated class.

For masses q and probabilities s of pieces (rows z at cost d; the flip pair has two per sample) the
Fenchel-Young inequality gives, for every model x and every λ ≥ ‖β/c‖_*,

    F(x, λ)  ≥  Σ q H(s) + λ (ε - used) - g·x over the free coordinates,
    g = Σ q s z,    used = ‖c g‖ + Σ q d

The bound holds for models whose *free* coefficients are at most ``ADMITTED`` log-odds per standard
deviation.  The residual of g on free coordinates is charged at that size, and so is the rounding of
the sums.

Derivation: docs/algorithm.md, (11), (13) and (14).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..rows.arrays import FloatArray
from ._certificate import ROUNDING, Coordinates

_STRICTLY = 1.0 - 1e-12  # strictly inside, so that another order of summation agrees
_OPERATIONS = 8  # roundings of a term before it is added, and of the entropy's logarithms


class DualSums(NamedTuple):
    """Sums over the pieces of a dual point; a sample's masses total at most its weight.

    ``gradient`` is Σ q s z in the coordinates (of labels: -Σ w (p_k - a_k) z), ``spent`` is Σ q d
    (of labels: Σ w κ (1 - a_y)), ``entropy`` is Σ q H(s) (Σ w H(p)), and ``additions`` the longest
    chain of additions behind any.  ``flow`` is that between several labels (:mod:`.label_points`).
    """

    gradient: FloatArray
    spent: float
    entropy: float
    additions: float
    flow: FloatArray | None = None


class DualBound(NamedTuple):
    """A lower bound and the point that proves it, scaled into the ball."""

    value: float
    point: Any


def lower_bound(coordinates: Coordinates, epsilon: float, sums: DualSums) -> tuple[float, float]:
    """The bound over admitted models, and the factor that scales the point into the ball."""
    value, factor = charged_value(coordinates, epsilon, sums)
    return max(value, 0.0), factor


def charged_value(coordinates: Coordinates, epsilon: float, sums: DualSums) -> tuple[float, float]:
    """What a dual point proves, negative if its charge is larger than its entropy; the factor.

    Scaling the point by θ scales its use of ε and its charge by θ, and keeps at least θ of its
    entropy: the removed mass returns to the unchanged sample with s = 0.
    """
    n = (sums.additions + _OPERATIONS) * ROUNDING
    rounding = n / (1.0 - n) if n < 1.0 else math.inf
    charge = coordinates.charge(sums.gradient, rounding)
    used = coordinates.used(sums.gradient, rounding, sums.flow) + sums.spent * (1.0 + rounding)
    kept = sums.entropy * (1.0 - rounding) - charge
    factor = 1.0 if used <= epsilon else epsilon / used * _STRICTLY
    value = factor * kept * (1.0 - 8.0 * ROUNDING)
    if not math.isfinite(value):
        return 0.0, 0.0
    return value, factor
