"""What the bounds of a fit are about: samples, what their features can be, what moving costs.

The description of domains is that of :mod:`drlogit.problem.domains`; whether the rows keep to it,
and what moves change, is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..problem.domains import Domains, dense_columns
from ..problem.parameters import FAR, RANGE
from ..problem.proof import BrokenProofError
from ..problem.transport import ResultBall
from ..rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ..rows.chunks import chunks_of, shape_of
from .rounding import PANEL, exact_sum

#: Rows at a time, and columns up to which they are dense: then all are shifted, and read fast.
_ROWS, _DENSE = 4096, 1000


def parts(X: Any, n_features: int) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time, and where they are: in panels, dense unless there are many columns."""
    n_rows = _ROWS if n_features <= _DENSE else max(PANEL, _ROWS * _DENSE // n_features)
    first = 0
    for part in chunks_of(X, n_rows, checked=True):
        dense = part.toarray() if n_features <= _DENSE and sp.issparse(part) else part
        yield slice(first, first + part.shape[0]), dense.astype(np.float64, copy=False)
        first += part.shape[0]


def _check(right: BoolArray, rows: IndexArray, columns: IndexArray, what: str) -> None:
    if not right.all():
        row = rows[int(right.argmin())]
        raise BrokenProofError(f"other data: row {row} has no {what} in columns {columns[:8]}")


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
    domain: Domains  # only what can move; items are counted as in ``problem.dual_point``
    fit_intercept: bool
    groups: tuple[IndexArray, ...]  # columns of categories, also of those that cannot change
    constant: IndexArray  # without an intercept, a group that has a 1 in every row; or empty
    matrix: FloatArray | None = None  # of costs, in place of those of features

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
        free[self.grouped] = False
        return free

    @cached_property
    def grouped(self) -> IndexArray:
        """The columns of all groups that can change."""
        return np.concatenate([*self.domain.groups, self.constant[:0]])

    def values(self, part: Matrix) -> FloatArray:
        """The bounded features of some rows."""
        return dense_columns(part, self.domain.bounded)

    def present(self, part: Matrix) -> NDArray[np.int32]:
        """The column of each row's category in each group, -1 for none."""
        now = np.full((part.shape[0], self.domain.n_groups), -1, dtype=np.int32)
        for g, group in enumerate(self.domain.groups):
            rows, places = np.nonzero(dense_columns(part, group))
            now[rows, g] = group[places]
        return now

    def bits(self, items: NDArray[np.uint8]) -> BoolArray:
        """Whether each item is moved."""
        return np.unpackbits(items, axis=1, count=self.domain.n_items).astype(bool)

    @cached_property
    def offset(self) -> bool:
        """Whether the constant is a column, or the sum of those of a group that can change."""
        return self.fit_intercept or not self.domain.with_none.all()

    @cached_property
    def centre(self) -> FloatArray:
        """Means of dense columns, exact if they hold one value; 0 for categories."""
        heaviest = int(self.weights.argmax())
        rows, part = next(each for each in self.parts() if heaviest < each[0].stop)
        if sp.issparse(part):
            return np.zeros(self.costs.size)
        start = part[heaviest - rows.start]
        mean = np.asarray(start + self._means(start)[0])
        mean[np.concatenate([*self.groups, self.constant])] = 0.0
        return mean

    @cached_property
    def shift(self) -> FloatArray:
        """Means next to an offset; of columns far from zero, if another group is constant."""
        if self.offset or not self.constant.size:
            return self.centre * self.offset
        _, variance, zeros = self._means(self.centre)
        return np.where(~zeros & (self.centre**2 > FAR**2 * variance), self.centre, 0.0)

    def _means(self, shift: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Means and mean squares of shifted columns, and which of the columns have zeros."""
        mean, squares = np.zeros((2, self.costs.size))
        zeros = np.zeros(mean.size, dtype=bool)
        for rows, part in self.parts():
            Z, w = part - shift if shift.any() else part, self.weights[rows]
            mean, squares = mean + w @ Z, squares + w @ Z**2
            zeros |= sp.issparse(part) or (part == 0.0).any(axis=0)
        return mean, squares, zeros

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of columns; root mean squares without an offset."""
        mean, variance, zeros = self._means(self.shift)
        if self.offset:
            variance = np.maximum(variance - mean**2, 0.0)
            least = (variance + (mean + self.shift) ** 2) / FAR**2
            variance = np.maximum(variance, np.where(zeros, least, 0.0))
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

    def moved(self, shift: FloatArray, coef: FloatArray, intercept: float) -> tuple[Any, float]:
        """The same model for shifted rows: coefficients and intercept, each rounded once."""
        products = (Fraction(shift[j]) * Fraction(coef[j]) for j in np.flatnonzero(shift * coef))
        offset, coef = sum(products, Fraction(intercept)), coef.copy()
        for j in self.constant:
            coef[j] = float(Fraction(coef[j]) + offset)
        return coef, 0.0 if self.constant.size else float(offset)


def samples_of(
    X: Any, signs: FloatArray, weights: FloatArray, ball: ResultBall, label_costs: FloatArray
) -> SamplesInBall:
    """Samples in a ball, with what can move in it; with several classes features are numbers.

    ``BrokenProofError`` for the first sample with weight that is not within the domain.
    """
    n_features = shape_of(X)[1]
    matrix = ball.feature_costs if np.ndim(ball.feature_costs) == 2 else None  # type: ignore[arg-type]
    stated = ball.feature_costs if matrix is None else None
    costs = np.ones(n_features) if stated is None else stated.copy()
    lower = np.full(n_features, -np.inf) if ball.lower is None else ball.lower
    upper = np.full(n_features, np.inf) if ball.upper is None else ball.upper
    bounded = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
    groups, with_none = ball.groups, np.zeros(len(ball.groups), dtype=bool)
    if ball.with_none is not None:
        with_none |= ball.with_none
    for rows, part in parts(X, n_features) if groups or bounded.size else ():
        counted = np.flatnonzero(weights[rows] > 0.0)
        for g, group in enumerate(groups):
            values = dense_columns(part, group)[counted]
            with_none[g] |= bool((values == 0.0).all(axis=1).any())
            one = ((values == 0.0) | (values == 1.0)).all(axis=1) & (values.sum(axis=1) <= 1.0)
            _check(one, rows.start + counted, group, "category")
        values = dense_columns(part, bounded)[counted]
        inside = (values >= lower[bounded]) & (values <= upper[bounded])
        _check(np.all(inside, axis=1), rows.start + counted, bounded, "values within the bounds")
    movable, several = [], label_costs.shape[1] > 2
    for g, group in enumerate(groups):
        if (costs[group] != costs[group[0]]).any():
            raise ValueError("feature_costs of one group's columns must be equal")
        if group.size + int(with_none[g]) == 1:
            costs[group] = np.inf
        if np.isfinite(costs[group[0]]):
            movable.append(g)
            if several:  # numbers: a change moves two columns
                costs[group] *= 0.5
    costs[bounded[lower[bounded] == upper[bounded]]] = np.inf
    bounded = bounded[np.isfinite(costs[bounded])]
    complete = [groups[g] for g in (*movable, *range(len(groups))) if not with_none[g]]
    some = complete and not ball.fit_intercept and not several and (movable or bounded.size)
    constant = complete[0] if some else bounded[:0]
    if ball.epsilon == 0.0 or several:  # nothing moves, or only by the norm
        movable, bounded = [], bounded[:0]
    domain = Domains(
        tuple(groups[g] for g in movable),
        np.array([costs[groups[g][0]] for g in movable]),
        with_none[movable],
        bounded,
        lower[bounded],
        upper[bounded],
        costs[bounded],
    )
    costs[domain.columns] = np.inf
    return SamplesInBall(
        X, signs, weights, ball.epsilon, ball.norm, costs, label_costs, domain, ball.fit_intercept,
        groups, constant, matrix,
    )  # fmt: skip
