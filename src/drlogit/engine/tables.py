"""Features with domains: their coordinates, starts and fits.

The same driver as for numbers, with another model of the samples (:mod:`._pieces`), the rows of
groups and trust rows beside the norm's cone (:mod:`._cones`).

Derivation: docs/algorithm.md, section 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..dual._certificate import FREE, IN_NORM, Coordinates
from ..dual.certify import dual_point_of_pieces, pieces_of_dual_point
from ..dual.pieces import PieceCoordinates, PieceMasses
from ..problem.category_codes import codes_of
from ..problem.domains import Domains, items_of
from ..problem.label_costs import within_reach
from ..problem.norms import Norm
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ..starts.start import Start
from ._cones import Cones, RowCone, cone_of, no_norm
from ._newton import Newton
from ._pieces import PieceState, Table, follow, linearise, open_pieces, with_missing
from ._pieces import certify as certify_pieces
from ._sums import COUNT, SCALARS
from .driver import run
from .interior_point import gain_at_fixed_lambda, slopes_at
from .protocols import Samples
from .settings import SETTINGS

#: Columns of sparse rows with at least this share of entries are kept as dense ones; levels of
#: groups are combined up to the square root of this many combinations for each sample.
_DENSE, _COMBINED = 0.2, 0.2

#: How far from the constant model a run opens, in λ (.1 to .5 are within half an iteration).
_PUSH = 0.3


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The coordinates: categories of groups, levels of immovable groups, sparse columns, high of
    each group, bounded features, dense columns, b if there is one, λ.

    Groups are complete, "none" being their last category where it is one, and their least
    coefficient is zero: b takes the rest.  Immovable groups lack a level of reference.
    There is a b if there is an intercept, or a group that has a 1 in every row to stand for it;
    else ``b = -Σ coefficient of "none"``.
    """

    domains: Domains
    norm: Norm
    costs: FloatArray  # of the problem's columns
    intercept: bool
    n_samples: int
    token: bytes  # what this layout is known by, wherever it travels
    offset: bool
    first: IndexArray  # coordinates of the groups' first categories, and the end
    none: NDArray[np.int32]  # those of "none", or -1: only without b
    coordinate: NDArray[np.int32]  # of each column of the problem; -1: left out
    held: tuple[tuple[int, IndexArray], ...]  # immovable: the level left out, the others
    high: int
    start: int  # of the tail: bounded features and what follows
    size: int

    @classmethod
    def of(cls, problem: Problem) -> TableLayout:
        """The coordinates of a problem, worked out once for its rows."""
        rows, domains = problem.rows, problem.domains
        assert domains is not None
        kept: TableLayout | None = rows.layout
        if kept is None or kept.domains is not domains or kept.costs is not problem.costs:
            rows.layout = kept = cls._made(problem, domains)
        return kept

    @classmethod
    def _made(cls, problem: Problem, domains: Domains) -> TableLayout:
        rows = problem.rows
        n = rows.n_columns - int(rows.intercept)
        offset = problem.fit_intercept or domains.constant_sum is not None
        _, (stored,) = rows.run(_stored)
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
        held: list[tuple[int, IndexArray]] = []
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
            domains,
            problem.norm,
            problem.costs,
            problem.fit_intercept,
            rows.n_samples,
            uuid4().bytes,
            offset,
            np.array(first),
            none.astype(np.int32),
            coordinate,
            tuple(held),
            high,
            start,
            place + int(offset) + 1,
        )

    # --- what the compiled loops read -------------------------------------------------------

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

    def table(self, block: Block) -> Table:
        """A block's samples in these coordinates; kept with the block."""
        kept = block.kept.get("table")
        if kept is None or kept[0] != self.token:
            codes = self._codes(block)
            table = Table(block.compiled, codes, self._combined(codes), self)
            kept = block.kept["table"] = self.token, table
        return kept[1]

    def _codes(self, block: Block) -> NDArray[np.int32]:
        """Coordinates of the samples' categories in all groups.

        Where a group has no "none", only samples without weight have none of its levels: these
        count as the last.
        """
        n = self.domains.n_groups
        now = np.hstack([items_of(block, self.domains).now, codes_of(block, self.domains.held)])
        codes = np.where(now < 0, -1, self.coordinate[now])
        codes[:, :n] = np.where(now[:, :n] < 0, self.first[1:] - 1, codes[:, :n])
        return codes

    def _combined(self, codes: NDArray[np.int32]) -> tuple[Any, Any, Any]:
        """Coordinates of the samples' combinations, the levels each stands for, and their signs.

        Levels of groups are combined while there are few combinations per sample; single levels
        they are their own coordinates.  Without b, rows have -1 at "none" of all groups but those
        where they have that: then nothing.
        """
        held = [self.coordinate[levels] for _, levels in self.held]
        known = [np.arange(*ends) for ends in zip(self.first[:-1], self.first[1:], strict=True)]
        known += [np.append(levels, -1) for levels in held]  # the level left out has no entry
        none = [*self.none, *[-1] * len(held)]
        bundles: list[list[int]] = []
        count, most = 0, math.sqrt(_COMBINED * codes.shape[0])
        for g, levels in enumerate(known):
            count *= levels.size
            if not 0 < count <= most:
                bundles.append([])
                count = levels.size
            bundles[-1].append(g)
        width = max((len(bundle) for bundle in bundles), default=1) * (1 if self.offset else 2)
        joint: list[Any] = [codes[:, :0]]
        entries: list[Any] = [(np.zeros((0, width), dtype=np.int32), np.zeros((0, width)))]
        end = self.size
        for bundle in bundles:
            if len(bundle) == 1 and none[bundle[0]] < 0:
                joint.append(codes[:, bundle])
                continue
            sizes = [known[g].size for g in bundle]
            own = [
                np.where(codes[:, g] < 0, known[g].size - 1, codes[:, g] - known[g][0])
                for g in bundle
            ]
            joint.append(end + np.ravel_multi_index(own, sizes)[:, None])
            count = math.prod(sizes)
            levels, signs = np.full((count, width), -1, dtype=np.int32), np.ones((count, width))
            every = np.unravel_index(np.arange(count), sizes)
            for place, (g, which) in enumerate(zip(bundle, every, strict=True)):
                there = known[g][which] != none[g]
                levels[there, place] = known[g][which][there]
                if none[g] >= 0:
                    levels[there, -1 - place], signs[:, -1 - place] = none[g], -1.0
            entries.append((levels, signs))
            end += count
        levels, signs = (np.concatenate(part) for part in zip(*entries, strict=True))
        return np.concatenate(joint, axis=1).astype(np.int32), levels, signs

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

    def newton(self, problem: Problem, epsilon: float, x: FloatArray, mu: float) -> Newton:
        """The driver's half of an iterate, opened at these coordinates."""
        known = self._coordinates(problem)
        norm, free, last = known.kind == IN_NORM, known.kind == FREE, self.size - 1
        free[self.bounded] = False
        scale = np.ones(self.size)  # costs in the norm, standard deviations of free columns
        scale[:last][norm], scale[:last][free] = known.costs[norm], 1.0 / known.spread[free]
        places = np.flatnonzero(norm)
        cone = cone_of(self.norm.name, places, last) if places.size else no_norm(last)
        length = self.n_samples // 64 + 300
        newton = Newton(scale, epsilon, Cones(cone, self._rows()), known, length)
        newton.open(x / scale, mu)
        return newton

    def _coordinates(self, problem: Problem) -> Coordinates:
        """What the bound knows of them, in this order."""
        there = PieceCoordinates(problem)
        known = there.coordinates(problem)
        own = np.flatnonzero(self._left)
        at = np.full(self.size - 1, there.offset)
        at[self.coordinate[own]] = own
        at[self.high + np.arange(self.domains.n_groups)] = there.high
        some = np.flatnonzero(self.domains.with_none)
        at[self.first[some + 1] - 1] = there.none[some]
        spread, place = known.spread[at], None
        if self.offset:
            place, spread[-1] = self.size - 2, 1.0
        return Coordinates(
            known.kind[at],
            known.costs[at],
            known.norm,
            spread,
            known.mean[at],
            known.size[at],
            place,
        )

    def _rows(self) -> RowCone:
        """``0 ≤ β_k ≤ high_g``, and trust rows of groups and bounded features."""
        domains, n_true = self.domains, 2 * int(self.first[-1])
        categories, groups = np.arange(n_true // 2), np.arange(domains.n_groups)
        highs = self.high + np.repeat(groups, np.diff(self.first))
        trusted = [*self.high + groups, *self.bounded, *self.bounded]
        costs = np.array([*domains.group_costs, *domains.bounded_costs, *domains.bounded_costs])
        columns = np.array([[*categories, *highs, *trusted], [*categories, *categories, *trusted]])
        entries = np.zeros((2, n_true + costs.size))
        entries[0] = np.where(np.arange(entries.shape[1]) < n_true, 1.0, -1.0)
        entries[0, n_true + groups.size + self.bounded.size :] = 1.0
        entries[1, n_true // 2 : n_true] = -1.0
        weight = np.full(entries.shape[1], 1.0 / max(entries.shape[1], self.n_samples))
        weight[n_true:] = 1.0 / max(costs.size, 1)  # trust rows together: one product
        price = np.append(np.zeros(n_true), costs)
        return RowCone(columns.astype(np.int32), entries, price, weight, self.size - 1, costs)


def _stored(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    """How many entries of each column are stored."""
    X = block.X
    n = X.shape[1]
    stored = np.bincount(X.indices, minlength=n) if sp.issparse(X) else np.full(n, block.y.size)
    return None, (Sum(stored.astype(np.float64)),)


class PieceSamples(Samples[State]):
    """The samples of features with domains, as pieces; arguments as for ``labels.LabelSamples``."""

    def __init__(
        self,
        rows: Rows,
        layout: TableLayout,
        kappa: float,
        slopes: State | None = None,
        epsilon: float = math.inf,
    ) -> None:
        super().__init__(rows, layout.table)
        self.kappa, self.slopes, self.epsilon = kappa, slopes, epsilon
        self.nulls = self.n_pieces = 0
        self.corrected = np.zeros(0)  # all corrections of a dual point together

    def open(self, coef: FloatArray, mu: float) -> State:
        self.visits += 1
        arguments = self.table, self.kappa, self.epsilon, coef, mu
        return self.rows.run(_open, self.slopes, *arguments)[0]

    def linearise(
        self, state: State, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[State, FloatArray]:
        state, sums = self.visit(linearise, state, coef, primal, dual, mu, self.most_missing)
        self.n_pieces = int(sums[COUNT - SCALARS])
        return state, sums

    def with_missing(
        self, state: State, trial: State, coef: FloatArray, mu: float
    ) -> tuple[State, FloatArray]:
        self.nulls += 1
        return self.visit(with_missing, self.rows.pair(state, trial), coef, mu)

    def predict(self, state: State, dcoef: FloatArray) -> tuple[State, FloatArray]:
        return self.visit(follow, state, dcoef, 0.0, 0.0, True)

    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        return self.visit(follow, state, dcoef, centre, share, False)

    def certify(
        self, state: State, point: State | None, dcoef: FloatArray
    ) -> tuple[State, FloatArray]:
        """A point is kept with the state that it is of."""
        self.corrected = dcoef if point is None else self.corrected + dcoef
        return self.visit(certify_pieces, state, self.corrected)


def _open(
    block: Block,
    slope: FloatArray | None,
    table: Callable[[Block], Table],
    kappa: float,
    epsilon: float,
    coef: FloatArray,
    mu: float,
) -> tuple[PieceState, tuple[()]]:
    slope = np.zeros(0) if slope is None else slope
    costs = within_reach(block.flip_costs(kappa), epsilon)
    return open_pieces(table(block), costs, slope, coef, mu), ()


# --- fits -----------------------------------------------------------------------------------------


def interior_point_with_domains(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Start | None = None,
) -> Solution:
    """Solve (P') to a certified gap of ``tol``; parameters as for every solver."""
    asked = problem
    rows, origin = problem.rows.compact or (problem.rows, None)
    problem = replace(problem, rows=rows)
    layout = TableLayout.of(problem)
    samples = PieceSamples(rows, layout, problem.kappa, epsilon=problem.epsilon)
    x, mu = _opening(problem, layout, start)
    newton = layout.newton(problem, problem.epsilon, x, mu)
    # The certificate charges all levels of groups that cannot change, one more than the solver: up
    # to twice as much.
    found = run(samples, newton, mu, 0.5 * tol, max_iter, monitor)
    best = newton.best_model()
    pieces = None
    if found.point is not None:
        pieces, _ = rows.run(_plain, found.point, layout.domains.n_items)
        if origin is not None:  # a point of merged samples as one of those they stand for
            point = dual_point_of_pieces(problem, pieces).for_samples(origin)
            pieces = pieces_of_dual_point(asked, point)
    info = {
        "solver": "interior-point",
        "grams": found.n_iter,
        "visits": samples.visits,
        "pieces": samples.n_pieces,
        "null_steps": samples.nulls,
        "distinct_samples": rows.n_samples,
    }
    return Solution(
        layout.coefficients(best),
        found.status,
        found.n_iter,
        pieces,
        info=info,
        lam=float(best[-1]),
        proven=(newton.best, newton.dual),
    )


def _opening(
    problem: Problem, layout: TableLayout, start: Start | None
) -> tuple[FloatArray, float]:
    """Coordinates and μ to open with: near the constant model, or near another that starts."""
    if start is None or not start.lam > 0.0:
        # Flips pay where margins exceed κλ: from a smaller λ on, samples cross that one by one.
        lam = min(max(1.0, 1.0 / problem.kappa), 0.14 / problem.epsilon)
        nothing = np.zeros(problem.costs.size)
        return layout.inside(nothing, lam, _PUSH), SETTINGS.start_mu
    lam = max(start.lam, problem.dual_norm(start.model))
    return layout.inside(start.model, lam, 0.5 * SETTINGS.start_room), SETTINGS.near_mu


def _plain(block: Block, both: Any, n_items: int) -> tuple[PieceMasses, tuple[()]]:
    """A dual point as the certificate knows it."""
    state, point = both
    kept = np.flatnonzero(point[:, 0] > 0.0)
    own = np.repeat(np.arange(block.y.size), np.diff(state.starts))[kept]
    bits = np.unpackbits(
        np.ascontiguousarray(state.sets[kept]).astype("<u8").view(np.uint8),
        axis=1,
        bitorder="little",
        count=n_items,
    )
    flipped = state.pieces[kept, 0] != block.y[own]
    return PieceMasses(own, flipped, np.packbits(bits, axis=1), *point[kept].T.copy()), ()


def critical_radius(problem: Problem, null: FloatArray) -> float:
    """The radius from which on no model is better than ``null``, one of the free columns alone.

    There the loss is linear, ``-s u`` with s at that model (zero, if labels can flip).  What a
    direction with ``‖β_U/c‖_* ≤ λ`` gains per λ, after all that the adversary does at the price λ,
    is a lower bound, and the greatest one the answer: the optimum of (P') with this loss at ε = 0
    and a fixed λ, posed where what moves and flips cost is about one.
    """
    layout, domains = TableLayout.of(problem), problem.domains
    assert domains is not None
    slope, _ = problem.rows.run(slopes_at, None, null)
    typical = domains.largest_cost + problem.transport_norm(problem.rows.column_scale)
    push, mu, lam = _PUSH, SETTINGS.start_mu, 1.0 / min(problem.kappa, typical)
    x = layout.inside(np.zeros(problem.costs.size), lam / (1.0 + 2.0 * push), push)
    newton = layout.newton(problem, 0.0, x, mu)
    samples = PieceSamples(problem.rows, layout, problem.kappa, slope)
    return float(gain_at_fixed_lambda(samples, newton, mu, 1e-7) / lam)
