"""Features with domains: categories, and numbers between bounds.

With a transport norm alone the adversary could turn a one-hot column into 0.37 and a share of 0.9
into 1.4.  With domains it moves samples only to rows that a table can hold, at the cost

    ‖c (x_U - x'_U)‖  +  Σ_{j∈B} c_j |x_j - x'_j|  +  Σ_g c_g [category of g changes]  +  κ [y ≠ y']

Here U are the features without a domain and B the features between two bounds.  The *groups* g are
sets of one-hot columns; a sample has a 1 in at most one column of a group.  A sample without a 1
has the category "none" if the group declares it or, in a fit, if it occurs in the data.  The fit
stores this, so that an audit of other rows uses the same categories.

For a linear model the best move of a sample consists of *items*.  A group has one item, the change
to the category that lowers the margin most.  A bounded feature has two, the moves to its ends.  An
item has a gain (the loss of margin) and a cost.  A feature with a bound on one side only has no
domain, because one of the two labels always gains by moving to the open side
(``docs/algorithm.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ..rows.blocks import Block
from ..rows.interface import Rows
from ..rows.reductions import Max
from .category_codes import category_codes, codes_of


class ItemTable(NamedTuple):
    """The data of a block's samples from which their items follow.

    ``now`` is the column of the sample's category in each group, -1 for none.  ``values`` are its
    bounded features.
    """

    now: NDArray[np.int32]
    values: FloatArray

    def picked(self, samples: IndexArray) -> ItemTable:
        """The rows of some samples."""
        return ItemTable(self.now[samples], self.values[samples])


class ItemMoves(NamedTuple):
    """The effect of a set of items for each piece.

    ``changed`` lists the groups that change: the piece, the group and the column that the sample
    leaves (-1 for none).  ``shifted`` lists the bounded features: the piece, the column and the
    change.  ``cost`` is the cost of each piece.
    """

    changed: tuple[IndexArray, IndexArray, NDArray[np.int32]]
    shifted: tuple[IndexArray, IndexArray, FloatArray]
    cost: FloatArray


@dataclass(frozen=True, eq=False)
class Domains:
    """The categories and bounds that restrict the adversary, checked against the data.

    Attributes
    ----------
    groups : tuple of index arrays
        The columns of each group whose category can change.
    group_costs : array
        The cost of a change of each group.
    with_none : bool array
        Whether "none of these columns" is a category of the group.
    bounded : index array
        The columns of features between two bounds.
    lower, upper, bounded_costs : arrays
        Their bounds, and the cost of a move by one unit.
    held : tuple of index arrays
        Groups that cannot change and have a 1 in every row; their columns add up to a constant.
    """

    groups: tuple[IndexArray, ...]
    group_costs: FloatArray
    with_none: BoolArray
    bounded: IndexArray
    lower: FloatArray
    upper: FloatArray
    bounded_costs: FloatArray
    held: tuple[IndexArray, ...] = ()

    @property
    def n_groups(self) -> int:
        return len(self.groups)

    @property
    def n_items(self) -> int:
        """Items are groups and the two ends of bounded features."""
        return self.n_groups + 2 * self.bounded.size

    def item_moves(self, table: ItemTable, own: IndexArray, items: BoolArray) -> ItemMoves:
        """The effect and the cost of the ``items`` of each piece; ``own`` is its sample."""
        n = self.n_groups
        piece, group = np.nonzero(items[:, :n])
        cost = items[:, :n] @ self.group_costs
        there, item = np.nonzero(items[:, n:])
        feature, end = item // 2, item % 2
        distance = np.stack([self.lower, self.upper])[end, feature]
        distance -= table.values[own[there], feature]
        paid = np.abs(distance) * self.bounded_costs[feature]
        cost += np.bincount(there, paid, minlength=own.size)
        return ItemMoves(
            (piece, group, table.now[own[piece], group]),
            (there, self.bounded[feature], distance),
            cost,
        )

    @cached_property
    def columns(self) -> IndexArray:
        """All columns that have a domain."""
        return _joined((*self.groups, self.bounded))

    @property
    def costs_as_numbers(self) -> FloatArray:
        """The cost of a unit move of each of these columns; a change of category moves two."""
        sizes = [group.size for group in self.groups]
        return np.append(0.5 * np.repeat(self.group_costs, sizes), self.bounded_costs)

    @property
    def widths(self) -> FloatArray:
        return self.upper - self.lower

    def shifted(self, shift: FloatArray) -> Domains:
        """The same domains for features ``x - shift``; categories are never shifted."""
        by = shift[self.bounded]
        return replace(self, lower=self.lower - by, upper=self.upper - by)

    def with_none_stated(self, groups: Iterable[Any]) -> list[Any]:
        """The groups as the user gave them, with None added where "none" is a category."""
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
        """An upper bound on the cost of any move within the domains."""
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


def items_of(block: Block, domains: Domains) -> ItemTable:
    """The :class:`ItemTable` of a block, computed once and cached with the block."""
    kept = block.kept.get("items")
    if kept is None or kept[0] is not domains:
        now = codes_of(block, domains.groups)
        values = np.ascontiguousarray(dense_columns(block.X, domains.bounded))
        kept = block.kept["items"] = domains, block.beside(ItemTable(now, values))
    table: ItemTable = kept[1]
    return table


def _joined(parts: Sequence[IndexArray]) -> IndexArray:
    return np.concatenate([*parts, np.empty(0, dtype=np.intp)]).astype(np.intp)


def dense_columns(X: Matrix, columns: IndexArray) -> FloatArray:
    """Some columns as a dense array in double precision."""
    part = X[:, columns]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


class Declared(NamedTuple):
    """Domains as the user declares them, before any data are seen; one bound per feature.

    ``with_none`` says for each group whether "none of these columns" is a category.  If
    ``rows_add_none`` is true, "none" also becomes a category where it occurs in the rows.  If
    ``rows_within`` is true, a row beyond the bounds is an error; otherwise it can only move back
    towards them.
    """

    groups: tuple[IndexArray, ...]
    lower: FloatArray
    upper: FloatArray
    with_none: BoolArray
    rows_add_none: bool = True
    rows_within: bool = True


def check_domains(
    groups: Sequence[Sequence[int | None]] | None,
    bounds: tuple[FloatArray, FloatArray] | None,
    n_features: int,
    names: Sequence[Any] | None = None,
) -> Declared:
    """Check the groups and bounds of a ball's columns.

    None in a group stands for the category "none of these columns".
    """
    given = [list(group) for group in groups or ()]
    with_none = np.array([None in group for group in given], dtype=bool)
    columns = tuple(np.array([c for c in g if c is not None], dtype=np.intp) for g in given)
    if any(group.size == 0 for group in columns):
        raise ValueError("categories must be groups of at least one column, got an empty one")
    taken = _joined(columns)
    repeated = np.flatnonzero(np.bincount(taken, minlength=n_features) > 1)
    if repeated.size:
        raise ValueError(
            f"categories must name each column once, got {_shown(repeated[0], names)} twice"
        )
    if bounds is None:
        bounds = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    lower, upper = bounds[0].copy(), bounds[1].copy()
    for j in taken:
        if not (lower[j] <= 0.0 and upper[j] >= 1.0):
            raise ValueError(
                f"bounds of {_shown(j, names)}, a category, must include 0 and 1, "
                f"got {lower[j]:g} and {upper[j]:g}"
            )
    lower[taken], upper[taken] = -np.inf, np.inf
    return Declared(columns, lower, upper, with_none)


def _shown(column: Any, names: Sequence[Any] | None) -> str:
    return f"column {column}" if names is None else f"column {names[column]!r}"


def domains_of(
    declared: Declared, costs: FloatArray, rows: Rows, names: Sequence[Any] | None = None
) -> tuple[Domains | None, FloatArray]:
    """Check declared domains against the data; return them with the costs of all features.

    A feature that cannot leave its value (infinite cost, or equal bounds) gets an infinite cost.
    The domains are None if nothing can move within them.
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
    costs[bounded[declared.lower[bounded] == declared.upper[bounded]]] = np.inf
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
    )
    return domains, costs


def _check_rows(
    block: Block, first: int, declared: Declared, names: Sequence[Any] | None
) -> tuple[None, tuple[Max]]:
    """Whether "none" occurs in each group; ``ValueError`` for a row outside its domain.

    Samples of weight zero are checked, but do not make "none" a category.
    """
    codes = block.beside(category_codes(block.X, declared.groups))
    own = enumerate(declared.groups)
    block.kept["codes"] = {group.tobytes(): codes.now[:, k] for k, group in own}
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
