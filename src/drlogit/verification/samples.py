"""The samples of a proof, what the adversary may do with them, and the class of models.

A lower bound is about models whose free coefficients are at most ``ADMITTED`` log-odds per standard
deviation, whose categories of a group are as close to each other, and whose log-odds at the
reference point (means of the columns, least category of each group) are within it.  If the model
has an offset, dense columns are shifted by their means, so that offsets do not hide digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.ball import ColumnBall
from ..problem.parameters import ADMITTED, FAR, RANGE
from ..rows.arrays import FloatArray, IndexArray
from ..rows.matrix import row_range

#: Rows at a time, few because rounding grows with them.  Sparse rows of up to ``_DENSE`` columns
#: are made dense.
_ROWS, _DENSE = 32, 1000

#: ``ADMITTED``, and what rounding of means and deviations can make of the class of models.
LIMIT = ADMITTED * (1.0 + 1e-9)


class SamplesInBall:
    """Samples and the ball around them, as the fit stated it in plain numbers.

    ``groups`` are those whose category can change, with "none" as a category where ``with_none``;
    ``bounded`` are the columns that move between their ``ends``.  ``offset`` says whether the
    constant is a column, or the sum of those of a group that can change.
    """

    def __init__(
        self, X: Any, weights: FloatArray, ball: ColumnBall, label_costs: FloatArray
    ) -> None:
        self.X, self.weights, self.label_costs = X, weights, label_costs
        self.epsilon, self.norm = ball.epsilon, ball.norm
        costs, ends = ball.costs.copy(), np.array([ball.lower, ball.upper])
        bounded = np.isfinite(ends).all(axis=0)
        costs[ends[0] == ends[1]] = np.inf
        stated = [
            (np.array([j for j in group if j is not None], dtype=np.intp), None in group)
            for group in ball.groups
        ]
        categorical = [group for group, _ in stated]
        several = label_costs.shape[1] > 2
        for (
            group,
            none,
        ) in stated:  # one category cannot change; a number's change moves two columns
            costs[group] *= np.inf if group.size + none == 1 else 0.5 if several else 1.0
        if several:  # all columns are numbers
            ends[:], stated = [[-np.inf], [np.inf]], []
        self.costs, movable = costs, np.isfinite(costs) & (ball.epsilon > 0.0)
        self._dense = bool(bounded.any()) or bool(stated) or costs.size <= _DENSE
        changing = [(group, none) for group, none in stated if movable[group[0]]]
        self.groups = [group for group, _ in changing]
        self.with_none = [none for _, none in changing]
        self.bounded = np.flatnonzero(np.isfinite(ends).all(axis=0) & movable)
        self.ends = ends[:, self.bounded]
        self.n_items = len(self.groups) + 2 * self.bounded.size
        self.offset = ball.fit_intercept or not all(self.with_none)
        #: Without an intercept, a group that has a 1 in every row takes its part, if anything can
        #: move within the domains (at some ε); one that can change goes first.
        none_such, finite = np.empty(0, dtype=np.intp), np.isfinite(costs)
        moving = finite[[*np.flatnonzero(bounded), *(group[0] for group, _ in stated)]].any()
        if moving and not ball.fit_intercept:
            whole = sorted(stated, key=lambda each: not finite[each[0][0]])
            complete = (group for group, none in whole if not none and self._in_every_row(group))
            self.constant = next(complete, none_such)
        else:
            self.constant = none_such
        grouped = np.concatenate([none_such, *self.groups])
        self.in_norm = movable
        self.in_norm[[*self.bounded, *grouped]] = False
        self._free = ~self.in_norm
        self._free[grouped] = False
        self._centre(np.concatenate([none_such, *categorical]))

    def _in_every_row(self, group: IndexArray) -> bool:
        """Whether each row has a 1 of a group; a ball does not say it of groups that stay."""
        return all((part[:, group].sum(axis=1) == 1.0).all() for _, part in self._parts())

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        """Some rows at a time."""
        for first in range(0, self.X.shape[0], _ROWS):
            part = row_range(self.X, first, min(first + _ROWS, self.X.shape[0]))
            dense = part.toarray() if self._dense and sp.issparse(part) else part
            yield slice(first, first + part.shape[0]), dense.astype(np.float64, copy=False)

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Rows: shifted columns, 1, a 0 for each group (its highest category), "none" of each."""
        for rows, part in self._parts():
            one = np.ones((part.shape[0], 1))
            if sp.issparse(part):
                yield rows, sp.csr_array(sp.hstack([part, one]))
                continue
            none = [1.0 - part[:, group].sum(axis=1, keepdims=True) for group in self.groups]
            high = np.zeros((part.shape[0], len(self.groups)))
            yield rows, np.hstack([part - self.shift, one, high, *none])

    def _centre(self, categorical: Any) -> None:
        """Set the shift, means of the shifted columns (0 without an offset), and deviations."""
        heaviest, start = int(self.weights.argmax()), np.zeros(self.costs.size)
        rows, part = next(each for each in self._parts() if heaviest < each[0].stop)
        dense = not sp.issparse(part)
        if dense:  # the means of equal values are exact
            start = part[heaviest - rows.start]
        mean, squares, zeros = np.zeros((3, start.size))
        for rows, part in self._parts():
            Z, w = part - start if dense else part, self.weights[rows]
            mean, squares = mean + w @ Z, squares + w @ Z**2
            zeros += (part == 0.0).any(axis=0) if dense else 1.0
        variance, mean = np.maximum(squares - mean**2, 0.0), start + mean
        far = (zeros == 0.0) & (mean**2 > FAR**2 * variance)
        self.shift = mean * (dense if self.offset else far & (self.constant.size > 0))
        self.shift[categorical] = 0.0
        total = variance + mean**2
        least = np.where(zeros > 0.0, total / FAR**2, 0.0)
        if not self.offset:
            least = np.where(self.shift != 0.0, 0.0, total)
        spread, widths = np.sqrt(np.maximum(variance, least)), self.ends[1] - self.ends[0]
        varies = spread[self.bounded] > RANGE * widths
        spread[self.bounded] = np.where(varies, spread[self.bounded], widths)
        self._mean, self._spread = (mean - self.shift) * self.offset, spread

    def settled(self, g: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """From ``Σ r x`` over :meth:`parts`: what the norm bounds, its error, and the charge.

        The charge is what is left of the free equations, but for those of groups: a model of the
        class gains at most ``LIMIT`` times it.
        """
        n = self.costs.size
        constant, constant_error = g[:, n, None], error[:, n, None]
        charge = self.offset * float((np.abs(constant) + constant_error).sum())
        g, error = g[:, :n] - self._mean * constant, error[:, :n] + abs(self._mean) * constant_error
        counted = self._free & (self._spread > 0.0)  # others are a multiple of the constant
        charge += float(((np.abs(g) + error)[:, counted] / self._spread[counted]).sum())
        return g[:, self.in_norm], error[:, self.in_norm], charge

    def moved(self, coef: FloatArray, intercept: Any) -> FloatArray:
        """The coefficients of the shifted columns and of the constant."""
        moved, shift = coef.copy(), self.shift
        products = (Fraction(shift[j]) * Fraction(coef[j]) for j in np.flatnonzero(shift))
        offset = sum(products, Fraction(float(intercept)))
        for j in self.constant:  # so that large offsets cancel before they are rounded
            moved[j] = float(Fraction(coef[j]) + offset)
        return np.append(moved, 0.0 if self.constant.size else float(offset))
