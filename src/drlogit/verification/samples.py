"""What the bounds of a fit are about: samples, what their features can be, what moving costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problem.parameters import FAR, RANGE
from ..problem.proof import BrokenProofError
from ..problem.transport import Ball
from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ..rows.chunks import chunks_of, shape_of
from .rounding import PANEL, exact_sum

#: Rows at a time, and columns up to which they are dense: then all are shifted, and read fast.
_ROWS, _DENSE = 4096, 1000


@dataclass(frozen=True, eq=False)
class Domain:
    """Groups of columns of which a sample has one 1 or, ``with_none``, perhaps none, and bounds.

    Only those that the adversary can move are here, with what that costs.  Items are counted as in
    :class:`~drlogit.problem.dual_point.Moves`.
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

    def values(self, part: Matrix) -> FloatArray:
        """The bounded features of some rows."""
        return _dense(part[:, self.bounded])

    def present(self, part: Matrix) -> NDArray[np.int32]:
        """The column of each row's category in each group, -1 for none."""
        now = np.full((part.shape[0], self.n_groups), -1, dtype=np.int32)
        for g, group in enumerate(self.groups):
            rows, places = np.nonzero(_dense(part[:, group]))
            now[rows, g] = group[places]
        return now

    def bits(self, items: NDArray[np.uint8]) -> BoolArray:
        """Whether each item is moved."""
        return np.unpackbits(items, axis=1, count=self.n_items).astype(bool)


def parts(X: Any, n_features: int) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time, and where they are: in panels, dense unless there are many columns."""
    n_rows = _ROWS if n_features <= _DENSE else max(PANEL, _ROWS * _DENSE // n_features)
    first = 0
    for part in chunks_of(X, n_rows, checked=True):
        some = _dense(part) if n_features <= _DENSE else part.astype(np.float64, copy=False)
        yield slice(first, first + part.shape[0]), some
        first += part.shape[0]


def _check(right: BoolArray, rows: IndexArray, columns: IndexArray, what: str) -> None:
    if not right.all():
        row = rows[int(right.argmin())]
        raise BrokenProofError(f"other data: row {row} has no {what} in columns {columns[:8]}")


def _dense(part: Any) -> FloatArray:
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SamplesInBall:
    """Samples and the ball around them."""

    X: Any  # checked, if it is in memory
    signs: FloatArray
    weights: FloatArray  # ω, with two roundings each; w = ω/Ω
    epsilon: float
    norm: str
    costs: FloatArray  # of features, infinite if they cannot move or have a domain
    label_costs: FloatArray  # of samples, a column for each label; infinite for what cannot be
    domain: Domain
    fit_intercept: bool

    @cached_property
    def total_weight(self) -> float:
        """Ω, rounded once."""
        return exact_sum(self.weights)

    @cached_property
    def flip_costs(self) -> FloatArray:
        """Those of the other label, of two classes."""
        return np.asarray(self.label_costs.max(axis=1))

    @cached_property
    def in_norm(self) -> BoolArray:
        """Features that the norm is about."""
        return np.isfinite(self.costs) & (self.epsilon > 0.0)

    @cached_property
    def free(self) -> BoolArray:
        """Features whose coefficients nothing bounds, those of categories apart."""
        free = ~self.in_norm
        free[self.domain.grouped] = False
        return free

    @cached_property
    def offset(self) -> bool:
        """Whether the constant is a column, or the sum of those of a group that can change."""
        return self.fit_intercept or not self.domain.with_none.all()

    @cached_property
    def shift(self) -> FloatArray:
        """Medians of some rows, next to an offset; a column of one value becomes exactly zero."""
        shift = np.zeros(self.costs.size)
        _, part = next(self.parts())
        if self.offset and not sp.issparse(part):
            shift = np.median(part, axis=0)
            shift[self.domain.grouped] = 0.0
        return shift

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of columns; root mean squares without an offset."""
        mean, squares = np.zeros((2, self.costs.size))
        for rows, part in self.parts():
            Z, w = self.shifted(part), self.weights[rows] / self.total_weight
            mean += w @ Z
            squares += w @ Z**2
        variance = np.maximum(squares - mean**2, squares / FAR**2) if self.offset else squares
        spread = np.sqrt(variance)
        bounded, widths = self.domain.bounded, self.domain.upper - self.domain.lower
        varies = spread[bounded] > RANGE * widths
        spread[bounded] = np.where(varies, spread[bounded], widths)
        return mean, spread

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Some rows at a time, as they are."""
        return parts(self.X, self.costs.size)

    def shifted(self, part: Any) -> Any:
        """Rows less the shift: each entry with one rounding more."""
        return part - self.shift if self.shift.any() else part


def samples_of(
    X: Any, signs: FloatArray, weights: FloatArray, ball: Ball, label_costs: FloatArray
) -> SamplesInBall:
    """Samples in a ball, with what can move in it and what cannot.

    Samples without weight may be anything.  ``BrokenProofError`` for the first of the others
    that is not within the domain.
    """
    n_features = shape_of(X)[1]
    costs = np.ones(n_features) if ball.feature_costs is None else ball.feature_costs.copy()
    lower = np.full(n_features, -np.inf) if ball.lower is None else ball.lower
    upper = np.full(n_features, np.inf) if ball.upper is None else ball.upper
    bounded = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
    groups = ball.groups
    if ball.epsilon == 0.0:  # nothing moves
        groups, bounded = (), bounded[:0]
    with_none = np.zeros(len(groups), dtype=bool)
    if groups and ball.with_none is not None:
        with_none |= ball.with_none
    for rows, part in parts(X, n_features) if groups or bounded.size else ():
        counted = np.flatnonzero(weights[rows] > 0.0)
        for g, group in enumerate(groups):
            values = _dense(part[:, group])[counted]
            with_none[g] |= bool((values == 0.0).all(axis=1).any())
            one = ((values == 0.0) | (values == 1.0)).all(axis=1) & (values.sum(axis=1) <= 1.0)
            _check(one, rows.start + counted, group, "category")
        values = _dense(part[:, bounded])[counted]
        inside = (values >= lower[bounded]) & (values <= upper[bounded])
        _check(np.all(inside, axis=1), rows.start + counted, bounded, "values within the bounds")
    movable = []
    for g, group in enumerate(groups):
        if (costs[group] != costs[group[0]]).any():
            raise ValueError("feature_costs of one group's columns must be equal")
        if group.size + int(with_none[g]) == 1:
            costs[group] = np.inf
        if np.isfinite(costs[group[0]]):
            movable.append(g)
    costs[bounded[lower[bounded] == upper[bounded]]] = np.inf
    bounded = bounded[np.isfinite(costs[bounded])]
    domain = Domain(
        tuple(groups[g] for g in movable), with_none[movable],
        np.array([costs[groups[g][0]] for g in movable]),
        bounded, lower[bounded], upper[bounded], costs[bounded],
    )  # fmt: skip
    costs[domain.grouped] = costs[bounded] = np.inf
    return SamplesInBall(
        X, signs, weights, ball.epsilon, ball.norm, costs, label_costs, domain, ball.fit_intercept
    )
