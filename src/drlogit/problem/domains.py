"""Features with domains: categories, and numbers between bounds.

The transport norm alone lets a one-hot column become 0.37 and a share of 0.9 become 1.4.  With
domains the adversary keeps to what a table can hold, and moving a sample costs

    ‖c (x_U - x'_U)‖  +  Σ_{j∈B} c_j |x_j - x'_j|  +  Σ_g c_g [category of g changes]  +  κ [y ≠ y']

with U the features without a domain, B those between two bounds, and g the *groups*: one-hot
columns of which each sample has one 1, or none.  "None" is a category like the others if the group
says so or, in a fit, if it occurs in the data.  The fit remembers it, so that an audit of other
rows has the same categories.

For a linear model a sample's move is made of *items*: for each group the change to the category
that lowers its margin most, for each bounded feature the move to the end that does.  An item has
a gain (what the margin loses) and a cost.  Bounds on one side only are no domain: one of the two
labels always finds the open side adverse (``docs/adversary.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ..rows.blocks import Block
from ..rows.checks import as_numbers
from ..rows.interface import Rows, State
from ..rows.reductions import Max


class ItemTable(NamedTuple):
    """What a block keeps of its samples for their items.

    ``now`` holds the column of the category that a sample has in each group, -1 for none;
    ``values`` its bounded features.
    """

    now: NDArray[np.int32]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Domains:
    """Categories and bounds that the adversary can use, checked against the data.

    Attributes
    ----------
    groups : tuple of index arrays
        The columns of each group whose category can change.
    group_costs : array
        What a change costs, for each group.
    with_none : bool array
        Whether "none of these columns" is a category of the group.
    bounded : index array
        The columns of features between two bounds.
    lower, upper, bounded_costs : arrays
        Their bounds, and what a move of one unit costs.
    held : tuple of index arrays
        Groups that cannot change and have a 1 in every row: their columns add up to the constant.
    constant, constant_values : arrays
        Columns that hold one value throughout.
    given_ends : pair of arrays, optional
        The bounds of the features as they were given, where these are of shifted ones.
    """

    groups: tuple[IndexArray, ...]
    group_costs: FloatArray
    with_none: BoolArray
    bounded: IndexArray
    lower: FloatArray
    upper: FloatArray
    bounded_costs: FloatArray
    held: tuple[IndexArray, ...] = ()
    constant: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    constant_values: FloatArray = field(default_factory=lambda: np.empty(0))
    given_ends: tuple[FloatArray, FloatArray] | None = None

    @property
    def n_groups(self) -> int:
        return len(self.groups)

    @cached_property
    def columns(self) -> IndexArray:
        """All columns that have a domain."""
        return np.concatenate([*self.groups, self.bounded]).astype(np.intp)

    @cached_property
    def column_costs(self) -> FloatArray:
        """What each of them costs to move, or its group to change."""
        sizes = [group.size for group in self.groups]
        return np.concatenate([np.repeat(self.group_costs, sizes), self.bounded_costs])

    @cached_property
    def group_of(self) -> IndexArray:
        """The group of each column of ``np.concatenate(groups)``."""
        return np.repeat(np.arange(self.n_groups), [group.size for group in self.groups])

    @property
    def widths(self) -> FloatArray:
        return self.upper - self.lower

    def shifted(self, shift: FloatArray) -> Domains:
        """The same domains for features ``x - shift``; categories are never shifted."""
        return replace(
            self,
            lower=self.lower - shift[self.bounded],
            upper=self.upper - shift[self.bounded],
            given_ends=(self.lower, self.upper),
            constant_values=self.constant_values - shift[self.constant],
        )

    def without(self, columns: IndexArray) -> Domains | None:
        """The same where these columns cannot move; None if then nothing has a domain."""
        kept = np.array([not np.isin(group, columns).any() for group in self.groups], dtype=bool)
        stay = ~np.isin(self.bounded, columns)
        if not kept.any() and not stay.any():
            return None
        return replace(
            self,
            groups=tuple(group for group, keep in zip(self.groups, kept, strict=True) if keep),
            group_costs=self.group_costs[kept],
            with_none=self.with_none[kept],
            bounded=self.bounded[stay],
            lower=self.lower[stay],
            upper=self.upper[stay],
            bounded_costs=self.bounded_costs[stay],
            given_ends=self.given_ends and (self.given_ends[0][stay], self.given_ends[1][stay]),
        )

    def stated(self, costs: FloatArray) -> dict[str, Any]:
        """The domains as a :class:`~drlogit.problem.transport.Ball` has them; sets their costs."""
        costs[self.columns] = self.column_costs
        ends = np.full(costs.size, -np.inf), np.full(costs.size, np.inf)
        for end, values in zip(ends, self.given_ends or (self.lower, self.upper), strict=True):
            end[self.bounded] = values
        return {
            "groups": (*self.groups, *self.held),
            "with_none": np.append(self.with_none, np.zeros(len(self.held), dtype=bool)),
            "lower": ends[0], "upper": ends[1],
        }  # fmt: skip

    def with_none_stated(self, groups: Iterable[Any]) -> list[Any]:
        """The groups as they were given, with None in those of which "none" is a category."""
        complete = {tuple(group) for group in self.held}
        complete |= {tuple(self.groups[g]) for g in np.flatnonzero(~self.with_none)}
        return [
            group if tuple(group) in complete or None in [*group] else [*group, None]
            for group in groups
        ]

    @property
    def constant_sum(self) -> IndexArray | None:
        """The columns of a group that has a 1 in every row, if there is one."""
        complete = np.flatnonzero(~self.with_none)
        groups = self.groups[complete[0] :] if complete.size else self.held
        return groups[0] if groups else None

    @property
    def largest_cost(self) -> float:
        """No move of a sample within its domains costs more."""
        return float(self.group_costs.sum() + self.bounded_costs @ self.widths)

    def targets(self, coefficients: FloatArray) -> NDArray[np.int32]:
        """The columns of each group's least and greatest coefficients, -1 where "none" has it."""
        found = np.full((2, self.n_groups), -1, dtype=np.int32)
        for g, group in enumerate(self.groups):
            values = coefficients[group]
            found[:, g] = group[values.argmin()], group[values.argmax()]
        low, high = coefficients[found]
        found[0, self.with_none & (low >= 0.0)] = found[1, self.with_none & (high <= 0.0)] = -1
        return found

    def ranges(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Least and greatest coefficient of each group's categories; that of "none" is 0."""
        columns = self.targets(coefficients)
        low, high = np.where(columns >= 0, coefficients[columns], 0.0)
        return low, high

    def tables(self, rows: Rows) -> State:
        """The :class:`ItemTable` of each block."""
        return rows.run(_table, None, self)[0]


def _table(block: Block, _: None, domains: Domains) -> tuple[ItemTable, tuple[()]]:
    """Made once for a block, and kept with it."""
    from .category_codes import category_codes  # compiled: imported only when needed

    kept = block.kept.get("items")
    if kept is None or kept[0] is not domains:
        now = category_codes(block.X, domains.groups).now
        values = np.ascontiguousarray(dense_columns(block.X, domains.bounded))
        kept = block.kept["items"] = domains, ItemTable(now, values)
    return kept[1], ()


def dense_columns(X: Matrix, columns: IndexArray) -> FloatArray:
    """Some columns as a dense array in double precision."""
    part = X[:, columns]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


class Declared(NamedTuple):
    """Domains as they are stated, before any data are seen; bounds have one entry per feature.

    ``with_none`` says for each group whether "none of these columns" is one of its categories.
    ``rows_add_none``: it is one, too, if it occurs in the rows.  ``rows_within``: rows beyond the
    bounds are an error; else such a row can only move back towards its bounds.
    """

    groups: tuple[IndexArray, ...]
    lower: FloatArray
    upper: FloatArray
    with_none: BoolArray
    rows_add_none: bool = True
    rows_within: bool = True


def check_domains(
    categories: Any, bounds: Any, n_features: int, names: Sequence[Any] | None = None
) -> Declared:
    """Positions of the groups' columns, and bounds for every feature.

    ``categories`` may name columns by position or, if there are ``names``, by name; None in a group
    stands for the category "none of these columns".
    """
    given = [list(_listed(group)) for group in _listed(() if categories is None else categories)]
    with_none = np.array([any(c is None for c in group) for group in given], dtype=bool)
    groups = tuple(_positions(group, n_features, names) for group in given)
    taken = np.concatenate([*groups, np.empty(0, dtype=np.intp)]).astype(np.intp)
    repeated = np.flatnonzero(np.bincount(taken, minlength=n_features) > 1)
    if repeated.size:
        raise ValueError(
            f"categories must name each column once, got {_shown(repeated[0], names)} twice"
        )
    lower, upper = _bounds(bounds, n_features, names)
    for j in taken:
        if not (lower[j] <= 0.0 and upper[j] >= 1.0):
            raise ValueError(
                f"bounds of {_shown(j, names)}, a category, must include 0 and 1, "
                f"got {lower[j]:g} and {upper[j]:g}"
            )
    lower[taken], upper[taken] = -np.inf, np.inf
    return Declared(groups, lower, upper, with_none)


def _listed(values: Any) -> Iterable[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"categories must be a list of groups of columns, got {values!r:.80}")
    return values


def _positions(group: list[Any], n_features: int, names: Sequence[Any] | None) -> IndexArray:
    known = {} if names is None else {name: place for place, name in enumerate(names)}
    places = []
    for column in (each for each in group if each is not None):
        place = known.get(column, column)
        if isinstance(place, bool | np.bool_) or not isinstance(place, int | np.integer):
            wanted = "positions" if names is None else "names or positions of columns"
            raise ValueError(f"categories must hold {wanted}, got {column!r:.80}")
        if not 0 <= place < n_features:
            raise ValueError(
                f"categories must hold positions from 0 to {n_features - 1}, got {place}"
            )
        places.append(int(place))
    if not places:
        raise ValueError("categories must be groups of at least one column, got an empty one")
    return np.array(places, dtype=np.intp)


def _bounds(
    bounds: Any, n_features: int, names: Sequence[Any] | None
) -> tuple[FloatArray, FloatArray]:
    if bounds is None:
        return np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or len(bounds) != 2:
        raise ValueError(f"bounds must be a pair (lower, upper), got {bounds!r:.80}")
    ends = []
    for name, given in zip(("lower", "upper"), bounds, strict=True):
        values = as_numbers(given, f"bounds ({name})")
        if values.shape not in ((), (n_features,)):
            raise ValueError(
                f"bounds ({name}) must be a number or one per feature, {n_features}, "
                f"got shape {values.shape}"
            )
        ends.append(np.array(np.broadcast_to(values, (n_features,))))
    lower, upper = ends
    wrong = np.flatnonzero(~(lower <= upper))
    if wrong.size:
        j = int(wrong[0])
        raise ValueError(
            f"bounds must have lower <= upper, got {lower[j]:g} and {upper[j]:g} "
            f"for {_shown(j, names)}"
        )
    return lower, upper


def _shown(column: Any, names: Sequence[Any] | None) -> str:
    return f"column {column}" if names is None else f"column {names[column]!r}"


def domains_of(
    declared: Declared, costs: FloatArray, rows: Rows, names: Sequence[Any] | None = None
) -> tuple[Domains | None, FloatArray]:
    """Declared domains checked against the data, and the costs of the features outside them.

    Features that their domain holds in place (infinite cost, one value only) become immovable.
    None if no domain lets anything move.
    """
    bounded = np.flatnonzero(np.isfinite(declared.lower) & np.isfinite(declared.upper))
    occurs = rows.run(_check_rows, rows.offsets, declared, names)[1][0] > 0.0
    with_none = declared.with_none | (declared.rows_add_none & occurs)
    costs = costs.copy()
    groups, group_costs, kept_none, held = [], [], [], []
    for g, group in enumerate(declared.groups):
        cost = costs[group[0]]
        unequal = np.flatnonzero(costs[group] != cost)
        if unequal.size:
            raise ValueError(
                f"feature_costs of one group's columns must be equal, got {cost:g} for "
                f"{_shown(group[0], names)} and {costs[group[unequal[0]]]:g} for "
                f"{_shown(group[unequal[0]], names)}"
            )
        if np.isfinite(cost) and group.size + int(with_none[g]) > 1:
            groups.append(group)
            group_costs.append(float(cost))
            kept_none.append(bool(with_none[g]))
        else:
            costs[group] = np.inf
            if not with_none[g]:
                held.append(group)
    constant = bounded[declared.lower[bounded] == declared.upper[bounded]]
    costs[constant] = np.inf
    bounded = bounded[np.isfinite(costs[bounded])]
    if not groups and bounded.size == 0:
        return None, costs
    domains = Domains(
        tuple(groups),
        np.array(group_costs),
        np.array(kept_none, dtype=bool),
        bounded,
        declared.lower[bounded],
        declared.upper[bounded],
        costs[bounded],
        tuple(held),
        constant,
        declared.lower[constant],
    )
    return domains, costs


def _check_rows(
    block: Block, first: int, declared: Declared, names: Sequence[Any] | None
) -> tuple[None, tuple[Max]]:
    """Whether "none" occurs in each group; ``ValueError`` for a row outside its domain.

    Samples without weight are checked, but do not say what there is.
    """
    from .category_codes import category_codes  # compiled: imported only when needed

    codes = category_codes(block.X, declared.groups)
    for i in np.flatnonzero(codes.wrong >= 0)[:1]:
        j = int(codes.wrong[i])
        raise ValueError(
            f"columns of a category must hold one 1 and zeros, got {block.X[int(i), j]:g} at row "
            f"{int(first) + i}, {_shown(j, names)}"
        )
    lower, upper = declared.lower, declared.upper
    bounded = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    part = dense_columns(block.X, bounded)
    beyond = declared.rows_within & ((part < lower[bounded]) | (part > upper[bounded]))
    for i, k in np.argwhere(beyond)[:1]:
        j = int(bounded[k])
        raise ValueError(
            f"X must lie within its bounds, {lower[j]:g} to {upper[j]:g}, got {part[i, k]:g} at "
            f"row {int(first) + i}, {_shown(j, names)}"
        )
    occurs = (codes.now < 0) & (block.weights > 0.0)[:, None]
    return None, (Max(occurs.any(axis=0).astype(np.float64)),)
