"""Costs and bounds by column of a table, as one number for each column of the matrix.

Without an ``encoding``, the columns of the matrix are those of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...problem.domains import check_domains
from ...problem.parameters import check_costs
from ...rows.arrays import FloatArray, Matrix, beyond_memory
from ...rows.checks import as_numbers
from .encoding import Encoding, numbers_only, position_of
from .frames import listed


def standard_deviations(X: Matrix, weights: FloatArray | None = None) -> FloatArray:
    """Standard deviations of the columns; 1 for a constant column, as in scikit-learn's scaler."""
    if beyond_memory(X):
        raise ValueError(
            "feature_costs='std' needs the features in memory: state the costs as numbers instead"
        )
    share = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights / weights.sum()
    mean = np.asarray(share @ X).ravel()
    if sp.issparse(X):
        squares = np.asarray(share @ X.multiply(X)).ravel()
        variance = squares - mean**2
        variance[variance <= 1e-14 * squares] = 0.0  # what rounding leaves of a constant
    else:
        variance = share @ (X - mean) ** 2
        variance[variance <= (1e-14 * mean) ** 2] = 0.0
    variance[variance == 0.0] = 1.0
    return np.asarray(np.sqrt(variance))


def resolve_costs(
    given: Any,
    X: Matrix,
    weights: FloatArray | None,
    names: Sequence[Any],
    encoding: Encoding | None,
) -> Any:
    """``feature_costs`` as one number for each column of X; None and plain arrays stay so.

    ``"std"`` makes one standard deviation the unit: the cost of a number is one over its standard
    deviation, and changing a category costs 1.
    """
    plain = given is None or not isinstance(given, str | Mapping)
    if given is None or (plain and encoding is None):
        return given
    table = numbers_only(names) if encoding is None else encoding
    if plain and np.ndim(given) == 2:
        raise ValueError(
            "a matrix of feature_costs needs numbers only: X has categories or missing values"
        )
    if plain:
        return table.by_feature(check_costs(given, len(names)))
    number: Any
    number, category, named = 1.0, 1.0, given
    if isinstance(given, str):
        number, named = given, {}
    own = {position_of(column, names, "feature_costs"): value for column, value in named.items()}
    units, costs = None, []
    for j, (column, place) in enumerate(zip(table.columns, table.places, strict=True)):
        value = own.get(j, number if column.levels is None else category)
        cost, unit = value if isinstance(value, tuple) else (1.0, value)
        if not isinstance(unit, str):
            cost = unit
        elif unit != "std":
            raise ValueError(
                f"feature_costs must be numbers, 'std' or a dict of columns to these, got {unit!r}"
            )
        elif column.levels is None:
            units = standard_deviations(X, weights) if units is None else units
            cost = cost / units[place[0]]
        costs.append(cost)
    return table.by_feature(check_costs(costs, len(names)))


def resolve_bounds(given: Any, X: Matrix, names: Sequence[Any], encoding: Encoding | None) -> Any:
    """``bounds`` as a pair of numbers or arrays for the columns of X; None and pairs stay so.

    A mapping has a pair for some columns.
    """
    if given is None or (encoding is None and not isinstance(given, Mapping)):
        return given
    table = numbers_only(names) if encoding is None else encoding
    declared = check_domains(None, None if isinstance(given, Mapping) else given, len(names))
    for column, pair in given.items() if isinstance(given, Mapping) else ():
        j = position_of(column, names, "bounds")
        both = as_numbers(pair, f"bounds of column {names[j]!r:.60}")
        if both.shape != (2,) or table.columns[j].levels:
            raise ValueError(
                "bounds must be pairs (lower, upper) for columns of numbers, got "
                f"{pair!r:.60} for column {names[j]!r:.60}"
            )
        declared.lower[j], declared.upper[j] = both
    ends = [table.by_feature(end) for end in (declared.lower, declared.upper)]
    for group in table.groups:
        ends[0][group], ends[1][group] = -np.inf, np.inf
    return ends[0], ends[1]


# --- warnings about costs ---------------------------------------------------------------------

#: ``fit`` warns if there are fewer samples than this for each unpenalised coefficient, the rule of
#: thumb for plain logistic regression (Peduzzi et al. 1996).
_SAMPLES_EACH = 10


def unpenalised(costs: FloatArray, table: Encoding, n_samples: int) -> str | None:
    """A warning if infinite costs leave many coefficients unpenalised for few samples, or None."""
    free = np.isinf(costs)
    widths = {
        column.name: max(column.width - 1, 1)
        for column, place in zip(table.columns, table.places, strict=True)
        if free[place].any()
    }
    count = sum(widths.values())
    if count * _SAMPLES_EACH <= n_samples:
        return None
    most = sorted(widths, key=lambda name: -widths[name])
    shown = [f"{n!r:.40}" + (f" ({widths[n]})" if widths[n] > 1 else "") for n in most]
    return (
        f"{count} coefficients are not penalised, and there are only {n_samples} samples: the cost "
        f"of {listed(shown, 5)} is infinite. The model may overfit. Give these columns a finite "
        "cost or a tolerance."
    )
