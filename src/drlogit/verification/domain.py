"""What features can be, as a ball states it, and samples that keep to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problem.ball import Ball
from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ..rows.chunks import chunks_of

#: Rows at a time.
_ROWS = 4096


class OutsideError(ValueError):
    """A sample that is not what its features can be."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Groups of columns of which a sample has one 1 or, ``with_none``, perhaps none, and bounds.

    Only those that the adversary can move are here, with what that costs.  Items are counted as in
    :class:`~drlogit.problem.moves.Moves`.
    """

    groups: tuple[IndexArray, ...]
    with_none: BoolArray
    group_costs: FloatArray
    bounded: IndexArray
    lower: FloatArray
    upper: FloatArray
    bounded_costs: FloatArray

    @property
    def n_groups(self) -> int:
        return len(self.groups)

    @property
    def n_items(self) -> int:
        return self.n_groups + 2 * self.bounded.size

    @cached_property
    def grouped(self) -> IndexArray:
        """The columns of all groups."""
        return np.concatenate([*self.groups, np.empty(0, dtype=np.intp)]).astype(np.intp)

    @property
    def columns(self) -> IndexArray:
        """All columns that the norm leaves alone."""
        return np.concatenate([self.grouped, self.bounded])

    def values(self, X: Matrix) -> FloatArray:
        """The bounded features of some rows."""
        part = X[:, self.bounded]
        return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)

    def present(self, X: Matrix) -> NDArray[np.int32]:
        """The column of each row's category in each group, -1 for none."""
        rows, groups, columns, _ = _categories(X, self.groups)
        now = np.full((X.shape[0], self.n_groups), -1, dtype=np.int32)
        now[rows, groups] = columns
        return now


def _categories(
    X: Matrix, groups: tuple[IndexArray, ...]
) -> tuple[IndexArray, IndexArray, IndexArray, FloatArray]:
    """Row, group, column and value of the entries in columns of groups that are not zero."""
    owner = np.full(X.shape[1], -1, dtype=np.intp)
    for g, group in enumerate(groups):
        owner[group] = g
    if sp.issparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        kept = np.flatnonzero((owner[X.indices] >= 0) & (X.data != 0.0))
        columns = X.indices[kept].astype(np.intp)
        return rows[kept], owner[columns], columns, X.data[kept]
    listed = np.flatnonzero(owner >= 0)
    rows, places = np.nonzero(X[:, listed])
    columns = listed[places]
    return rows, owner[columns], columns, np.asarray(X[rows, columns])


def domain_of(ball: Ball, X: Any, weights: FloatArray) -> tuple[Domain | None, Ball]:
    """The domain of a ball and samples, and the ball with what cannot move at infinite cost.

    Samples without weight may be anything.  ``OutsideError`` for the first of the others that is
    not within the domain.
    """
    without = replace(ball, groups=(), with_none=None, lower=None, upper=None)
    if not ball.has_domains:
        return None, without
    n_features = X.shape[1]
    costs = np.ones(n_features) if ball.feature_costs is None else ball.feature_costs.copy()
    lower = np.full(n_features, -np.inf) if ball.lower is None else ball.lower
    upper = np.full(n_features, np.inf) if ball.upper is None else ball.upper
    bounded = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
    found = _looked_at(ball.groups, bounded, lower, upper, X, weights)
    with_none = found if ball.with_none is None else np.asarray(ball.with_none, dtype=bool)
    if (found & ~with_none).any():
        raise OutsideError(
            f"a row has no category in group {np.flatnonzero(found & ~with_none)[0]}"
        )
    movable = [
        bool(np.isfinite(costs[group]).all()) and group.size + int(none) > 1
        for group, none in zip(ball.groups, with_none, strict=True)
    ]
    for group, moves in zip(ball.groups, movable, strict=True):
        if not moves:
            costs[group] = np.inf
        elif (costs[group] != costs[group[0]]).any():
            raise ValueError("feature_costs of one group's columns must be equal")
    costs[bounded[lower[bounded] == upper[bounded]]] = np.inf
    kept = np.isfinite(costs[bounded])
    bounded = bounded[kept]
    groups = tuple(group for group, moves in zip(ball.groups, movable, strict=True) if moves)
    if not groups and not bounded.size:
        return None, replace(without, feature_costs=costs)
    domain = Domain(
        groups, with_none[np.array(movable, dtype=bool)],
        np.array([costs[group[0]] for group in groups]),
        bounded, lower[bounded], upper[bounded], costs[bounded],
    )  # fmt: skip
    held = [
        group
        for group, moves, none in zip(ball.groups, movable, with_none, strict=True)
        if not moves and not none
    ]
    ends = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    ends[0][bounded], ends[1][bounded] = domain.lower, domain.upper
    return domain, replace(
        ball, feature_costs=costs, groups=(*groups, *held),
        with_none=np.append(domain.with_none, np.zeros(len(held), dtype=bool)),
        lower=ends[0], upper=ends[1],
    )  # fmt: skip


def _looked_at(
    groups: tuple[IndexArray, ...],
    bounded: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    X: Any,
    weights: FloatArray,
) -> BoolArray:
    """Which groups have a row without a category."""
    without = np.zeros(len(groups), dtype=bool)
    first = 0
    for part in chunks_of(X, _ROWS, checked=True):
        counted = weights[first : first + part.shape[0]] > 0.0
        rows, owners, columns, values = _categories(part, groups)
        places = rows * len(groups) + owners
        counts = np.bincount(places, minlength=part.shape[0] * len(groups))
        wrong = np.flatnonzero(((values != 1.0) | (counts[places] > 1)) & counted[rows])
        if wrong.size:
            k = wrong[0]
            raise OutsideError(
                f"row {first + rows[k]}, column {columns[k]} holds {values[k]:g}, where a category "
                "has one 1 and zeros"
            )
        without |= (counts.reshape(part.shape[0], -1)[counted] == 0).any(axis=0)
        inside = part[:, bounded]
        inside = np.asarray(inside.toarray() if sp.issparse(inside) else inside)
        out = ((inside < lower[bounded]) | (inside > upper[bounded])) & counted[:, None]
        if out.any():
            row, place = (int(k[0]) for k in np.nonzero(out))
            j = bounded[place]
            raise OutsideError(
                f"row {first + row}, column {j} holds {inside[row, place]:g}, outside its bounds "
                f"{lower[j]:g} and {upper[j]:g}"
            )
        first += part.shape[0]
    return without
