"""Features with domains: their coordinates, starts and fits.

The same driver as for numbers, with another model of the samples (:mod:`._pieces`), the rows of
groups and trust rows beside the norm's cone (:mod:`._cones`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..dual.bound import FREE, GROUP, IN_NORM, Coordinates
from ..problem.category_codes import category_codes
from ..problem.domains import Domains
from ..problem.norms import Norm
from ..problem.problem import Problem
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.matrix import ShiftedArray
from ..rows.reductions import Sum
from . import _pieces
from ._cones import BothCones, PairRows, cone_of
from ._newton import Newton

#: Columns of sparse rows with at least this share of entries are kept as dense ones.
_DENSE = 0.2


@dataclass(frozen=True, eq=False)
class Layout:
    """The coordinates: categories, levels of immovable groups, sparse columns, high of each group,
    bounded features, dense columns, b if there is one, λ.

    Groups are complete, "none" being their last category where it is one, and their least
    coefficient is zero: b takes the rest.  There is a b if there is an intercept, or a group that has
    a 1 in every row to stand for it; else ``b = -Σ coefficient of "none"``.
    """

    domains: Domains
    norm: Norm
    costs: FloatArray  # of the problem's columns, as all that follow but for the coordinates
    mean: FloatArray
    rms: FloatArray
    intercept: bool
    n_samples: int
    token: bytes  # what this layout is known by, wherever it travels
    offset: bool
    first: IndexArray  # coordinates of the groups' first categories, and the end
    none: NDArray[np.int32]  # those of "none", or -1: only without b
    coordinate: NDArray[np.int32]  # of each column of the problem; -1: left out
    held: tuple[tuple[int, IndexArray], ...]  # immovable groups: the level left out, the others
    high: int
    start: int  # of the tail: bounded features and what follows
    size: int

    @classmethod
    def of(cls, problem: Problem) -> Layout:
        """The coordinates of a problem, worked out once for its rows."""
        rows, domains = problem.rows, problem.domains
        assert domains is not None
        kept = rows.__dict__.get("_layout")
        if kept is not None and kept.domains is domains and kept.costs is problem.costs:
            return kept
        layout = cls._made(problem, domains)
        rows.__dict__["_layout"] = layout
        return layout

    @classmethod
    def _made(cls, problem: Problem, domains: Domains) -> Layout:
        rows = problem.rows
        n = rows.n_columns - int(rows.intercept)
        offset = problem.fit_intercept or domains.constant_sum is not None
        _, (mean, stored) = rows.run(_columns)
        scale = rows.column_scale
        coordinate = np.full(rows.n_columns, -1, dtype=np.int32)
        first, place = [0], 0
        for group, none in zip(domains.groups, domains.with_none, strict=True):
            coordinate[group] = place + np.arange(group.size)
            place += group.size + int(none)
            first.append(place)
        none = np.where(domains.with_none & (not offset), np.array(first[1:]) - 1, -1)
        seen = scale[:n] > 0.0
        seen[domains.columns] = False
        held = []
        for group in domains.held:
            levels = group[scale[group] > 0.0]
            dropped = levels[np.argmax(scale[levels])]  # a level of reference
            levels = levels[levels != dropped]
            coordinate[levels] = place + np.arange(levels.size)
            place += levels.size
            held.append((int(dropped), levels))
            seen[group] = False
        if offset:
            seen[domains.constant] = False
        dense = seen & (stored >= _DENSE * rows.n_samples)
        for columns in (np.flatnonzero(seen & ~dense), domains.bounded, np.flatnonzero(dense)):
            if columns is domains.bounded:
                high, place = place, place + domains.n_groups
                start = place
            coordinate[columns] = place + np.arange(columns.size)
            place += columns.size
        if problem.fit_intercept:
            coordinate[-1] = place
        return cls(
            domains, problem.norm, problem.costs, mean, scale, problem.fit_intercept, rows.n_samples,
            uuid4().bytes, offset, np.array(first), none.astype(np.int32), coordinate, tuple(held),
            high, start, place + int(offset) + 1,
        )  # fmt: skip

    # --- what the compiled loops read -------------------------------------------------------

    @property
    def group_costs(self) -> FloatArray:
        return self.domains.group_costs

    @property
    def bounded_costs(self) -> FloatArray:
        return self.domains.bounded_costs

    @property
    def lower(self) -> FloatArray:
        return self.domains.lower

    @property
    def upper(self) -> FloatArray:
        return self.domains.upper

    @cached_property
    def bounded(self) -> NDArray[np.int32]:
        """Coordinates of the bounded features."""
        return self.start + np.arange(self.domains.bounded.size, dtype=np.int32)

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """Coordinates of the features that are not in groups, -1 for those."""
        places = self.coordinate.copy()
        for group in (*self.domains.groups, *self.domains.held):
            places[group] = -1
        return places

    @cached_property
    def tail_columns(self) -> NDArray[np.int32]:
        """The problem's columns of the tail, b not among them."""
        features = self.coordinate[: self.coordinate.size - int(self.intercept)]
        order = np.argsort(features, kind="stable")
        return order[features[order] >= self.start].astype(np.int32)

    def tail_shift(self, X: Any) -> FloatArray:
        """What is subtracted from dense columns of the tail."""
        columns = self.tail_columns
        return X.shift[columns] if isinstance(X, ShiftedArray) else np.zeros(columns.size)

    def table(self, block: Block) -> _pieces.Table:
        """A block's samples in these coordinates; kept with the block."""
        kept = block.__dict__.get("_table")
        if kept is None or kept[0] != self.token:
            X = block.X if block.thin is None else block.thin
            kept = block.__dict__["_table"] = self.token, _pieces.Table(
                X, block.y, block.weights, self._codes(X), self
            )
        return kept[1]

    def _codes(self, X: Any) -> NDArray[np.int32]:
        """Coordinates of the samples' categories, movable groups first."""
        now = category_codes(X, (*self.domains.groups, *self.domains.held)).now
        codes = self.coordinate[now]
        for g in np.flatnonzero(self.domains.with_none):
            codes[now[:, g] < 0, g] = self.first[g + 1] - 1
        return codes

    # --- there and back ---------------------------------------------------------------------

    @cached_property
    def _left(self) -> BoolArray:
        """Columns of the problem that have a coordinate."""
        return self.coordinate >= 0

    def coefficients(self, x: FloatArray) -> FloatArray:
        """The problem's coefficients."""
        domains, out = self.domains, np.zeros(self.coordinate.size)
        out[self._left] = x[self.coordinate[self._left]]
        constant = x[self.size - 2] if self.offset else 0.0
        for g in np.flatnonzero(domains.with_none):
            none = x[self.first[g + 1] - 1]
            out[domains.groups[g]] -= none
            constant += none
        if self.intercept:
            out[-1] = constant
        elif domains.constant_sum is not None:
            out[domains.constant_sum] += constant
        return out

    def inside(self, coefficients: FloatArray, lam: float, push: float) -> FloatArray:
        """Coordinates of coefficients, off all boundaries by a share of λ; λ with room."""
        domains = self.domains
        x = np.zeros(self.size)
        x[self.coordinate[self._left]] = coefficients[self._left]
        constant = coefficients[-1] if self.intercept else 0.0
        for dropped, levels in self.held:
            x[self.coordinate[levels]] -= coefficients[dropped]
            constant += coefficients[dropped]
        for column, value in zip(domains.constant, domains.constant_values, strict=True):
            if self.coordinate[column] < 0:
                constant += coefficients[column] * value
        for g in range(domains.n_groups):
            part = slice(self.first[g], self.first[g + 1])
            room = push * lam * domains.group_costs[g]
            shove = room - x[part].min()
            x[part] += shove
            constant -= shove
            x[self.high + g] = x[part].max() + room
        if self.offset:
            x[self.size - 2] = constant
        x[self.size - 1] = (1.0 + 2.0 * push) * lam
        return x

    # --- what the bound and the steps know of them --------------------------------------------

    @cached_property
    def coordinates(self) -> Coordinates:
        """For the bound: rounding counts a sample's row and its changes."""
        domains, G = self.domains, self.domains.n_groups
        kind = np.full(self.size - 1, FREE, dtype=np.int32)
        costs, spread, mean, size = (np.ones(self.size - 1) for _ in range(4))
        mean[:] = 0.0
        own = np.flatnonzero(self._left)
        at, squares = self.coordinate[own], np.square(self.rms[own])
        middle = self.mean[own] if self.offset else np.zeros(own.size)
        width = np.sqrt(np.maximum(squares - np.square(middle), 0.0))
        constant = width <= 1e-7 * np.sqrt(squares)
        spread[at] = np.where(constant, np.sqrt(squares), width)
        mean[at] = np.where(constant, 0.0, middle)
        size[at] = np.sqrt(squares)
        norm = np.isfinite(self.costs[own])
        kind[at[norm]], costs[at[norm]] = IN_NORM, self.costs[own[norm]]
        mean[at[norm]] = 0.0
        for g in range(G):
            part = slice(self.first[g], self.first[g + 1])
            kind[part], kind[self.high + g] = GROUP + g, -1 - g
            mean[part], size[part], size[self.high + g] = 0.0, 2.0, 1.0
        size[self.bounded] = 3.0 * np.maximum(np.abs(domains.lower), np.abs(domains.upper))
        if self.offset:
            spread[-1], mean[-1] = 1.0, 0.0
        spread[self.bounded] = np.where(
            spread[self.bounded] > 0.0, spread[self.bounded], domains.widths
        )
        return Coordinates(
            kind, costs, self.norm, spread, mean, size, self.size - 2 if self.offset else None
        )

    @cached_property
    def scale(self) -> FloatArray:
        """The user's units per unit of the steps': costs in the norm, standard deviations else."""
        known, scale = self.coordinates, np.ones(self.size)
        norm = np.flatnonzero(known.kind == IN_NORM)
        scale[norm] = known.costs[norm]
        free = known.kind == FREE
        free[self.bounded] = False
        scale[:-1][free] = 1.0 / np.where(known.spread[free] > 0.0, known.spread[free], 1.0)
        return scale

    def newton(self, epsilon: float) -> Newton:
        """The driver's half of an iterate."""
        norm = np.flatnonzero(self.coordinates.kind == IN_NORM)
        cone = BothCones(cone_of(self.norm.name, norm, self.size - 1), self._rows())
        length = self.n_samples // 64 + 300
        return Newton(self.scale, epsilon, cone, self.coordinates, length)

    def _rows(self) -> PairRows:
        """``0 ≤ β_k ≤ high_g``, then trust rows of groups and bounded features."""
        domains = self.domains
        n_categories, G = int(self.first[-1]), domains.n_groups
        categories = np.arange(n_categories)
        highs = self.high + np.repeat(np.arange(G), np.diff(self.first))
        high, box = self.high + np.arange(G), self.bounded
        true, trust = np.zeros(n_categories), np.ones(G)
        parts = [
            (categories, 1.0, categories, 0.0, true), (highs, 1.0, categories, -1.0, true),
            (high, -1.0, high, 0.0, domains.group_costs * trust),
            (box, -1.0, box, 0.0, domains.bounded_costs),
            (box, 1.0, box, 0.0, domains.bounded_costs),
        ]  # fmt: skip
        columns = np.array(
            [np.concatenate([part[place] for part in parts]) for place in (0, 2)], dtype=np.int32
        )
        entries = np.array(
            [np.concatenate([np.full(len(part[0]), part[e]) for part in parts]) for e in (1, 3)]
        )
        price = np.concatenate([part[4] for part in parts])
        n_true, n_rows = 2 * n_categories, price.size
        weight = np.full(n_rows, 1.0 / max(n_rows, self.n_samples))
        weight[n_true:] = 1.0 / max(n_rows - n_true, 1)  # trust rows together: one product
        return PairRows(columns, entries, price, weight, price[n_true:].copy(), self.size - 1)


def _columns(block: Block, _: None) -> tuple[None, tuple[Sum, Sum]]:
    """Means of the columns, and how many entries of each are stored."""
    X = block.X if block.thin is None else block.thin
    n = X.shape[1]
    stored = np.bincount(X.indices, minlength=n) if sp.issparse(X) else np.full(n, block.y.size)
    return None, (Sum(block.means), Sum(stored.astype(np.float64)))


class Seen(NamedTuple):
    """A state of the rows with what the next visit has to know of all samples."""

    state: State
    lift: float
    loss: float


class Pieces:
    """The samples as the driver sees them: visits, each one pass over the rows.

    ``slope``: minus that of a linear loss in its place, one or one per sample (``epsilon_max``).
    """

    allowance = 3.0

    def __init__(
        self, rows: Rows, layout: Layout, kappa: FloatArray, slope: FloatArray | None = None
    ) -> None:
        self.rows, self.layout, self.kappa = rows, layout, kappa
        self.slope = np.zeros(0) if slope is None else slope
        self.visits, self.nulls, self.n_pieces = 0, 0, 0

    def _run(self, function: Any, state: State | None, *arguments: Any) -> tuple[State, Any]:
        self.visits += 1
        known = self.layout, self.kappa, self.slope
        state, (sums,) = self.rows.run(function, state, *known, *arguments)
        return state, sums

    def open(self, coef: FloatArray, mu: float) -> Seen:
        return Seen(self._run(_open, None, np.asarray(coef), mu)[0], 5.0, 0.0)

    def linearise(
        self, seen: Seen, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[Seen, FloatArray]:
        state, sums = self._run(
            _linearise, seen.state, np.asarray(coef), primal, dual, mu, seen.lift, False
        )
        return self._seen(state, sums, float(sums[-8])), sums

    def with_missing(
        self, seen: Seen, trial: Seen, coef: FloatArray, mu: float
    ) -> tuple[Seen, FloatArray]:
        self.nulls += 1
        both, _ = self.rows.run(_join_missing, self.rows.pair(seen.state, trial.state))
        state, sums = self._run(_linearise, both, np.asarray(coef), 0.0, 0.0, mu, trial.lift, True)
        sums[-8] = sums[-7] = seen.loss
        return self._seen(state, sums, seen.loss), sums

    def _seen(self, state: State, sums: FloatArray, loss: float) -> Seen:
        self.n_pieces = int(sums[-1])
        return Seen(state, min(max(0.2 * sums[-1] / max(sums[-2], 1.0), 1.0), 20.0), loss)

    def predict(self, seen: Seen, dcoef: FloatArray) -> tuple[Seen, FloatArray]:
        state, sums = self._run(_follow, seen.state, np.asarray(dcoef), 0.0, 0.0, True)
        return seen._replace(state=state), sums

    def correct(
        self, seen: Seen, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[Seen, FloatArray]:
        state, sums = self._run(_follow, seen.state, np.asarray(dcoef), centre, share, False)
        return seen._replace(state=state), sums

    def certify(
        self, seen: Seen, point: State | None, dcoef: FloatArray
    ) -> tuple[State, FloatArray]:
        both = seen.state if point is None else point
        return self._run(_certify, both, np.asarray(dcoef), point is None)


def _open(block: Block, _: None, layout: Layout, kappa: Any, slope: Any, *rest: Any) -> Any:
    return _pieces.open_pieces(layout.table(block), kappa, slope, *rest), (Sum(0.0),)


def _linearise(block: Block, state: Any, layout: Layout, kappa: Any, slope: Any, *rest: Any) -> Any:
    state, sums = _pieces.linearise(layout.table(block), kappa, slope, state, *rest)
    return state, (Sum(sums),)


def _join_missing(block: Block, both: Any) -> Any:
    here, there = both
    return here._replace(missing=there.missing), ()


def _follow(block: Block, state: Any, layout: Layout, kappa: Any, slope: Any, *rest: Any) -> Any:
    state, sums = _pieces.follow(layout.table(block), kappa, slope, state, *rest)
    return state, (Sum(sums),)


def _certify(
    block: Block, both: Any, layout: Layout, kappa: Any, slope: Any, dx: FloatArray, first: bool
) -> Any:
    state, point = (both, None) if first else both
    point, sums = _pieces.certify(layout.table(block), kappa, slope, state, point, dx)
    return (state, point), (Sum(sums),)
