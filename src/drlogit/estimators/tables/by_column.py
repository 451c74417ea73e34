"""Costs and bounds that are stated by column, as one number for each column of the matrix.

Where there is no ``encoding``, the columns of the matrix are those of the table.

Where no costs are stated, a step of one costs the same in every column: the radius is then next to
nothing for a column in dollars beside one in years, and its coefficient next to free, which ``fit``
says, as it does where infinite costs leave many coefficients free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...rows.arrays import FloatArray, Matrix, beyond_memory, is_dask
from ...rows.checks import as_numbers
from .encoding import Encoding, numbers_only, position_of


@dataclass(frozen=True)
class CostsByKind:
    """Costs for all numbers, for all categories, and others for some columns.

    ``numbers`` is the cost of one standard deviation; so is that of a column that is given as a
    pair ``(cost, "std")``, others are of one unit or of a change.
    """

    numbers: float
    categories: float
    columns: Mapping[Any, float | tuple[float, str]]


def deviations(X: Matrix, weights: FloatArray | None = None) -> FloatArray:
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
    if beyond_memory(X):
        raise ValueError(
            "feature_costs='std' is for features in memory; state the costs as numbers"
        )
    deviation = deviations(X, weights)
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
    plain = not isinstance(given, str | Mapping | CostsByKind)
    if given is None or (plain and encoding is None):
        return given
    table = numbers_only(names) if encoding is None else encoding
    if plain:
        costs = as_numbers(given, "feature_costs")
        if costs.shape != (len(names),):
            raise ValueError(
                f"feature_costs must have one cost for each of {len(names)} columns, got shape "
                f"{costs.shape}"
            )
        return table.by_feature(costs)
    if isinstance(given, str):
        if given != "std":
            raise ValueError(
                "feature_costs must be numbers, 'std' or a dict of columns to costs, got "
                f"{given!r:.60}"
            )
        given = CostsByKind(numbers=1.0, categories=1.0, columns={})
    number: Any
    number, category, named = 1.0, 1.0, given
    if isinstance(given, CostsByKind):
        number, category, named = (given.numbers, "std"), given.categories, given.columns
    own = {position_of(column, names, "feature_costs"): value for column, value in named.items()}
    units, costs = None, np.empty(len(names))
    for j, (column, place) in enumerate(zip(table.columns, table.places, strict=True)):
        is_category = column.levels is not None
        value: Any = own.get(j, category if is_category else number)
        factor, unit = value if isinstance(value, tuple) and len(value) == 2 else (1.0, value)
        if not isinstance(unit, str):
            costs[j] = _number(value, names[j])
        elif unit != "std":
            raise _no_cost(unit, names[j])
        elif is_category:
            costs[j] = factor
        else:
            units = standard_deviations(X, weights) if units is None else units
            costs[j] = factor / units[place[0]]
    return table.by_feature(costs)


def _number(value: Any, name: Any) -> float:
    try:
        cost = float(value)
    except (TypeError, ValueError):
        cost = np.nan
    if not cost > 0.0 or isinstance(value, bool):
        raise _no_cost(value, name)
    return cost


def _no_cost(value: Any, name: Any) -> ValueError:
    return ValueError(
        f"the cost of column {name!r:.60} must be a positive number, inf or 'std', got "
        f"{value!r:.40}"
    )


def resolve_bounds(given: Any, X: Matrix, names: Sequence[Any], encoding: Encoding | None) -> Any:
    """``bounds`` as a pair of numbers or arrays for the columns of X; None and pairs stay so.

    A mapping has a pair for some columns; ``"data"`` takes the ends of the data.
    """
    plain = not isinstance(given, str | Mapping)
    if given is None or (plain and encoding is None):
        return given
    table = numbers_only(names) if encoding is None else encoding
    ends = np.full((2, len(names)), np.inf)
    ends[0] = -np.inf
    if isinstance(given, str):
        if given != "data" or is_dask(X):
            where = " (of features in memory)" if given == "data" else ""
            raise ValueError(
                "bounds must be a pair (lower, upper), a dict of columns to pairs or 'data'"
                f"{where}, got {given!r:.60}"
            )
        first = [int(place[0]) if place.size else 0 for place in table.places]
        for end, found in zip(ends, (X.min(axis=0), X.max(axis=0)), strict=True):
            end[:] = np.asarray(found.toarray() if sp.issparse(found) else found).ravel()[first]
    elif isinstance(given, Mapping):
        for column, pair in given.items():
            j = position_of(column, names, "bounds")
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ValueError(
                    f"bounds of column {names[j]!r:.60} must be a pair (lower, upper), "
                    f"got {pair!r:.60}"
                )
            if table.columns[j].levels:
                raise ValueError(f"column {names[j]!r:.60} is a category and has no bounds")
            both = as_numbers(pair, f"bounds of column {names[j]!r:.60}")
            if both.shape != (2,):
                raise ValueError(f"bounds of column {names[j]!r:.60} must be two numbers")
            ends[:, j] = both
    else:
        if not isinstance(given, Sequence) or len(given) != 2:
            raise ValueError(f"bounds must be a pair (lower, upper), got {given!r:.80}")
        for end, values in zip(ends, given, strict=True):
            numbers = as_numbers(values, "bounds")
            if numbers.shape not in ((), (len(names),)):
                raise ValueError(
                    f"bounds must be numbers or one per column, {len(names)}, got shape "
                    f"{numbers.shape}"
                )
            end[:] = numbers
    levels = [column.levels is not None for column in table.columns]
    ends[0, levels], ends[1, levels] = -np.inf, np.inf
    return table.by_feature(ends[0]), table.by_feature(ends[1])


# --- what is to be said of costs --------------------------------------------------------------

#: With fewer samples than this for each coefficient that is not penalised there is a warning: the
#: rule of thumb of plain logistic regression (Peduzzi et al. 1996).
_SAMPLES_EACH = 10

#: Columns that vary more than this many times as much as the lower quartile of columns deserve a
#: word (not as the narrowest: pixels at the rim of a picture hardly vary, in the same units).  Wine
#: 550, breast cancer 3e4, adult 8e3; MNIST, digits, a9a, w8a and farm-ads at most 16.
_UNLIKE = 100.0

#: Orders of magnitude need no more rows than this.
_ROWS = 1000


class UnscaledDataWarning(UserWarning):
    """Columns vary by orders of magnitude more than others, and no costs were stated."""


def unpenalised(costs: FloatArray, table: Encoding, n_samples: int) -> str | None:
    """What is to be said if many coefficients of infinite cost are free for so many samples."""
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
        f"{count} coefficients are not penalised, with {n_samples} samples to learn them from: "
        f"an infinite cost calls {_listed(shown, 5)} beyond doubt. They may fit the training data "
        "far better than any other; give them a finite cost, or a tolerance."
    )


def unlike_units(X: Matrix, names: Sequence[Any], levels: Sequence[int]) -> str | None:
    """What is to be said of a matrix some of whose columns are levels and have no unit."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond 1e154, where nobody is advised
        deviation = deviations(X[:: -(-X.shape[0] // _ROWS)])
    deviation[list(levels)] = 0.0
    varied = np.sort(deviation[(deviation > 0.0) & np.isfinite(deviation)])
    usual = float(varied[varied.size // 4]) if varied.size else math.inf
    wide = np.flatnonzero((deviation > _UNLIKE * usual) & np.isfinite(deviation))
    if not wide.size:
        return None
    wide = wide[np.argsort(-deviation[wide], kind="stable")]
    # A power of ten, so that the folds of a search all say the same, which Python shows once.
    times = 10.0 ** math.floor(math.log10(deviation[wide[0]] / usual))
    who, do = ("columns", "vary") if wide.size > 1 else ("column", "varies")
    shown = _listed([f"{names[j]!r:.40}" for j in wide.tolist()], 3)
    return (
        f"{who} {shown} {do} more than {times:.0e} times as much as other columns, and epsilon is "
        "in their units: feature_costs='std', or a StandardScaler before, measures in standard "
        "deviations; feature_costs={} keeps the units."
    )


def _listed(shown: Sequence[str], most: int) -> str:
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
