"""Costs and bounds that are stated by column, as one number for each column of the matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...rows.arrays import FloatArray, Matrix
from ...rows.checks import as_numbers
from .encoding import Encoding, position_of


@dataclass(frozen=True)
class CostsByKind:
    """Costs for all numbers, for all categories, and others for some columns.

    ``numbers`` is the cost of one standard deviation; so is that of a column that is given as a
    pair ``(cost, "std")``, others are of one unit or of a change.
    """

    numbers: float
    categories: float
    columns: Mapping[Any, float | tuple[float, str]]


def spreads(X: Matrix, weights: FloatArray | None = None) -> FloatArray:
    """The standard deviation of every column, exactly 0 for one that does not vary."""
    share = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights / weights.sum()
    mean = np.asarray(share @ X).ravel()
    if sp.issparse(X):
        squares = np.asarray(share @ X.multiply(X)).ravel()
        variance = squares - mean**2
        variance[variance <= 1e-14 * squares] = 0.0  # what rounding leaves of a constant
    else:
        variance = share @ (X - mean) ** 2
        variance[variance <= (1e-14 * mean) ** 2] = 0.0
    return np.asarray(np.sqrt(variance))


def standard_deviations(X: Matrix, weights: FloatArray | None = None) -> FloatArray:
    """As units: 1 for a column that does not vary, as scikit-learn's scaler has it."""
    deviation = spreads(X, weights)
    deviation[deviation == 0.0] = 1.0
    return deviation


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
    deviations: FloatArray | None = None

    def is_category(j: int) -> bool:
        return encoding is not None and encoding.columns[j].levels is not None

    def cost_of(value: Any, j: int) -> float:
        """The cost of a column of the table."""
        nonlocal deviations
        factor = 1.0
        if isinstance(value, tuple) and len(value) == 2:
            factor, value = value
        if not isinstance(value, str):
            return _number(value, names[j])
        if value != "std":
            raise ValueError(
                f"the cost of column {names[j]!r:.60} must be a positive number, inf or 'std', got "
                f"{value!r:.40}"
            )
        if is_category(j):
            return factor
        if deviations is None:
            deviations = standard_deviations(X, weights)
        place = j if encoding is None else int(encoding.places[j][0])
        return factor / float(deviations[place])

    n_columns = X.shape[1] if encoding is None else len(encoding.columns)
    if isinstance(given, str):
        if given != "std":
            raise ValueError(
                "feature_costs must be numbers, 'std' or a dict of columns to costs, "
                f"got {given!r:.60}"
            )
        costs = [cost_of("std", j) for j in range(n_columns)]
    elif isinstance(given, Mapping | CostsByKind):
        if isinstance(given, CostsByKind):
            costs = [
                given.categories if is_category(j) else cost_of((given.numbers, "std"), j)
                for j in range(n_columns)
            ]
            given = given.columns
        else:
            costs = [1.0] * n_columns
        for column, value in given.items():
            j = position_of(column, names, "feature_costs")
            costs[j] = cost_of(value, j)
    elif given is None or encoding is None:
        return given
    else:
        values = as_numbers(given, "feature_costs")
        if values.shape != (n_columns,):
            raise ValueError(
                f"feature_costs must have one cost for each of {n_columns} columns, got shape "
                f"{values.shape}"
            )
        costs = values.tolist()
    return np.array(costs) if encoding is None else encoding.spread(costs)


def _number(value: Any, name: Any) -> float:
    try:
        cost = float(value)
    except (TypeError, ValueError):
        cost = np.nan
    if not cost > 0.0 or isinstance(value, bool):
        raise ValueError(
            f"the cost of column {name!r:.60} must be a positive number, inf or 'std', got "
            f"{value!r:.40}"
        )
    return cost


def resolve_bounds(given: Any, X: Matrix, names: Sequence[Any], encoding: Encoding | None) -> Any:
    """``bounds`` as a pair of numbers or arrays for the columns of X; None and pairs stay so.

    A mapping has a pair for some columns; ``"data"`` takes the ends of the data.
    """
    if given is None:
        return None
    n_columns = X.shape[1] if encoding is None else len(encoding.columns)
    lower, upper = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
    if isinstance(given, str):
        if given != "data":
            raise ValueError(
                "bounds must be a pair (lower, upper), a dict of columns to pairs or 'data', "
                f"got {given!r:.60}"
            )
        ends = [np.asarray(end.toarray() if sp.issparse(end) else end).ravel()
                for end in (X.min(axis=0), X.max(axis=0))]  # fmt: skip
        if encoding is None:
            return ends[0], ends[1]
        for j, (column, place) in enumerate(zip(encoding.columns, encoding.places, strict=True)):
            if column.levels is None:
                lower[j], upper[j] = ends[0][place[0]], ends[1][place[0]]
    elif isinstance(given, Mapping):
        for column, pair in given.items():
            j = position_of(column, names, "bounds")
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ValueError(
                    f"bounds of column {names[j]!r:.60} must be a pair (lower, upper), "
                    f"got {pair!r:.60}"
                )
            ends = [as_numbers(end, f"bounds of column {names[j]!r:.60}") for end in pair]
            if ends[0].size != 1 or ends[1].size != 1:
                raise ValueError(f"bounds of column {names[j]!r:.60} must be two numbers")
            if encoding is not None and encoding.columns[j].levels:
                raise ValueError(f"column {names[j]!r:.60} is a category and has no bounds")
            lower[j], upper[j] = float(ends[0]), float(ends[1])
    elif encoding is None:
        return given
    else:
        if not isinstance(given, Sequence) or len(given) != 2:
            raise ValueError(f"bounds must be a pair (lower, upper), got {given!r:.80}")
        for end, values in zip((lower, upper), given, strict=True):
            numbers = as_numbers(values, "bounds")
            if numbers.shape not in ((), (n_columns,)):
                raise ValueError(
                    f"bounds must be numbers or one per column, {n_columns}, got shape "
                    f"{numbers.shape}"
                )
            end[:] = numbers
        for j, column in enumerate(encoding.columns):
            if column.levels is not None:
                lower[j], upper[j] = -np.inf, np.inf
    if encoding is None:
        return lower, upper
    return encoding.spread(lower.tolist()), encoding.spread(upper.tolist())
