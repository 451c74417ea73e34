"""Checks of the ball's parameters: ``ValueError`` names the value found and the value wanted."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.checks import ParameterError, as_numbers

#: Lower bounds hold for models with at most this many log-odds per standard deviation of a free
#: column, between two categories of a group, and at the reference point (the means of the columns
#: and the least category of each group).  The standard deviation of a column counts as at least its
#: root mean square over ``FAR``; columns further from zero are centred (``rows.centring``).  If a
#: bounded feature varies by less than the share ``RANGE`` of its range, the range counts.
ADMITTED = 1e4
FAR = 64.0
RANGE = 1e-9


def is_number(value: Any) -> bool:
    """Whether a value is a real number, and not a truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_count(value: Any) -> bool:
    """Whether a value is a whole number, and not a truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_epsilon(epsilon: Any) -> float:
    """A finite radius ε ≥ 0."""
    if not is_number(epsilon):
        raise ParameterError("epsilon", f"must be a number >= 0, got {epsilon!r}")
    value = float(epsilon)
    if not (math.isfinite(value) and value >= 0.0):
        raise ParameterError("epsilon", f"must be finite and >= 0, got {value!r}")
    return value


def check_kappa(kappa: Any, *, least: float | None = None) -> float:
    """A flip cost κ > 0, possibly infinite; ``least`` is allowed as well."""
    if not is_number(kappa):
        raise ParameterError("kappa", f"must be a number > 0 or inf, got {kappa!r}")
    value = float(kappa)
    if not (value > 0.0 or value == least):
        raise ParameterError("kappa", f"must be > 0 (inf: labels cannot flip), got {value!r}")
    return value


def check_cost_matrix(
    feature_costs: Any, n_features: int, norm: str, domains: bool
) -> FloatArray | None:
    """A cost matrix M, symmetric and positive definite; None if there are costs by feature.

    A move Δ then costs ``√(ΔᵀMΔ)``.
    """
    if isinstance(feature_costs, str) or np.ndim(feature_costs) != 2:
        return None
    matrix = as_numbers(feature_costs, "feature_costs")
    if norm != "l2" or domains:
        raise ValueError(
            "a matrix of feature_costs needs norm='l2' and no categories or bounds, "
            f"got norm={norm!r}{' with categories or bounds' if domains else ''}"
        )
    if matrix.shape != (n_features, n_features):
        raise ValueError(
            f"feature_costs must have shape ({n_features},) or ({n_features}, {n_features}), got "
            f"{matrix.shape}"
        )
    definite = bool(np.isfinite(matrix).all()) and np.allclose(matrix, matrix.T, 1e-12, 0.0)
    matrix = 0.5 * (matrix + matrix.T)
    least = np.linalg.eigvalsh(matrix)[[0, -1]] if definite else np.zeros(2)
    if not least[0] > 1e-14 * least[1]:
        raise ValueError(
            "feature_costs as a matrix must be finite, symmetric and positive definite, got "
            f"eigenvalues from {least[0]:.3g} to {least[1]:.3g}"
            if definite
            else "feature_costs as a matrix must be finite and symmetric, got one that is not"
        )
    return matrix
