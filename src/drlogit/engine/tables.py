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
from ..problem.domains import Domains
from ..problem.label_costs import within_reach
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ..starts.start import Start
from ._cones import Cones, RowCone, cone_of, no_norm
from ._newton import Newton
from ._pieces import (
    PieceState,
    Table,
    certify_pieces,
    correct_pieces,
    linearise_pieces,
    open_pieces,
    predict_pieces,
)
from ._sums import COUNT, SCALARS
from .driver import run
from .interior_point import gain_at_fixed_lambda, slopes_at
from .protocols import Samples
from .settings import SETTINGS

#: Columns of sparse rows with at least this share of entries are kept as dense ones.
_DENSE = 0.3

#: How far from the constant model a run opens, in λ (.1 to .5 are within half an iteration).
_PUSH = 0.3

#: Kinds of coordinates in their order.
_FEW, _BOUNDED, _MANY, _OFFSET = range(4)


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The coordinates of a dual point (``there``) in the order of ``_pieces``, and λ.

    Groups are complete, "none" being their last category where it is one, and their least
    coefficient is zero: b takes the rest.  There is a b if there is an intercept, or a group that
    has a 1 in every row to stand for it; else ``b = -Σ coefficient of "none"``.
    """

    there: PieceCoordinates
    costs: FloatArray  # of the problem's columns
    intercept: bool
    offset: bool
    token: bytes  # what this layout is known by, wherever it travels
    order: IndexArray  # of the coordinates there, without λ
    start: int  # of the tail

    @classmethod
    def of(cls, problem: Problem) -> TableLayout:
        """The coordinates of a problem, worked out once for its rows."""
        rows, domains = problem.rows, problem.domains
        kept: TableLayout | None = rows.layout
        if kept is None or kept.domains is not domains or kept.costs is not problem.costs:
            rows.layout = kept = cls._made(problem)
        return kept

    @classmethod
    def _made(cls, problem: Problem) -> TableLayout:
        there, intercept = PieceCoordinates(problem), problem.fit_intercept
        domains, offset = there.domains, intercept or there.domains.constant_sum is not None
        _, (stored,) = problem.rows.run(_stored)
        kinds = np.full(there.size, _FEW)
        kinds[: stored.size][stored >= _DENSE * problem.rows.n_samples] = _MANY
        for group in (*domains.groups, *domains.held):
            kinds[group] = _FEW
        kinds[domains.bounded], kinds[there.offset] = _BOUNDED, _OFFSET
        order = np.argsort(kinds, kind="stable")[: None if offset else -1]
        start = int(np.count_nonzero(kinds == _FEW))
        return cls(there, problem.costs, intercept, offset, uuid4().bytes, order, start)

    @property
    def size(self) -> int:
        """The number of coordinates, λ included."""
        return self.order.size + 1

    @property
    def domains(self) -> Domains:
        return self.there.domains

    @cached_property
    def position(self) -> NDArray[np.int32]:
        """The place of each coordinate there, -1 for a b that there is not."""
        position = np.full(self.there.size, -1, dtype=np.int32)
        position[self.order] = np.arange(self.order.size)
        return position

    # --- what the compiled loops read -------------------------------------------------------

    @property
    def high(self) -> int:
        """Where the groups' highest coefficients begin."""
        return int(self.position[self.there.high[0]]) if self.domains.n_groups else 0

    @property
    def bounded(self) -> NDArray[np.int32]:
        """Coordinates of the bounded features."""
        return self.position[self.domains.bounded]

    @property
    def places(self) -> NDArray[np.int32]:
        """Coordinates of the columns that are not in groups, -1 for those."""
        places = self.position[: self.costs.size].copy()
        for group in (*self.domains.groups, *self.domains.held):
            places[group] = -1
        return places

    @property
    def tail_columns(self) -> NDArray[np.int32]:
        """The problem's columns of the tail, b not among them."""
        return self.order[self.start : self.order.size - int(self.offset)].astype(np.int32)

    @property
    def none(self) -> NDArray[np.int32]:
        """Coordinates of "none" where these stand for b, with a minus."""
        return self.position[self.there.none[: 0 if self.offset else None]]

    def table(self, block: Block) -> Table:
        """A block's samples in these coordinates; kept with the block."""
        kept = block.kept.get("table")
        if kept is None or kept[0] != self.token:
            table = Table(block.compiled, block.beside(self._codes(block)), self)
            kept = block.kept["table"] = self.token, table
        return kept[1]

    def _codes(self, block: Block) -> NDArray[np.int32]:
        """Coordinates of the samples' categories in all groups.

        Where a group has no "none", only samples without weight have none of its levels: these
        count as the last.
        """
        groups = (*self.there.levels, *self.domains.held)
        now = codes_of(block, (*self.domains.groups, *self.domains.held))
        last = np.array([self.position[levels[-1]] for levels in groups], dtype=np.int32)
        return np.where(now < 0, last, self.position[now])

    # --- there and back ---------------------------------------------------------------------

    def coefficients(self, x: FloatArray) -> FloatArray:
        """The problem's coefficients."""
        there, found = self.there, np.zeros(self.there.size)
        found[self.order] = x[:-1]
        constant = found[there.offset] if self.offset else 0.0
        for group, none in zip(self.domains.groups, there.none, strict=True):
            if none >= 0:
                found[group] -= found[none]
                constant += found[none]
        out = found[: self.costs.size]
        if self.intercept:
            out[-1] = constant
        elif self.offset:
            out[self.domains.constant_sum] += constant
        return out

    def inside(self, coefficients: FloatArray, lam: float, push: float) -> FloatArray:
        """Coordinates of coefficients, off all boundaries by a share of λ; λ with room."""
        there, domains = self.there, self.domains
        found = np.zeros(there.size)
        found[: coefficients.size] = coefficients
        constant = coefficients[-1] if self.intercept else 0.0
        rooms = push * lam * domains.group_costs
        for levels, high, room in zip(there.levels, there.high, rooms, strict=True):
            shove = room - found[levels].min()
            found[levels] += shove
            constant -= shove
            found[high] = found[levels].max() + room
        found[there.offset] = constant
        return np.append(found[self.order], (1.0 + 2.0 * push) * lam)

    # --- what the bound and the steps know of them --------------------------------------------

    def newton(self, problem: Problem, epsilon: float, x: FloatArray, mu: float) -> Newton:
        """The driver's half of an iterate, opened at these coordinates."""
        known, n_samples, last = self._coordinates(problem), problem.rows.n_samples, self.size - 1
        norm, free = known.kind == IN_NORM, known.kind == FREE
        free[self.bounded] = False
        scale = np.ones(self.size)  # costs in the norm, standard deviations of free columns
        spread = np.where(known.spread > 0.0, known.spread, 1.0)  # of constant columns
        scale[:last][norm], scale[:last][free] = known.costs[norm], 1.0 / spread[free]
        places = np.flatnonzero(norm)
        cone = cone_of(problem.norm.name, places, last) if places.size else no_norm(last)
        cones, length = Cones(cone, self._rows(n_samples)), n_samples // 64 + 300
        newton = Newton(scale, epsilon, cones, known, length)
        newton.open(x / scale, mu)
        return newton

    def _coordinates(self, problem: Problem) -> Coordinates:
        """What the bound knows of them, in this order."""
        known, at, place = self.there.coordinates(problem), self.order, None
        spread = known.spread[at]
        if self.offset:
            place, spread[-1] = self.size - 2, 1.0
        arrays = known.kind[at], known.costs[at], known.norm, spread, known.mean[at], known.size[at]
        return Coordinates(*arrays, place)

    def _rows(self, n_samples: int) -> RowCone:
        """``0 ≤ β_k ≤ high_g``, and trust rows of groups and bounded features."""
        domains, groups = self.domains, self.high + np.arange(self.domains.n_groups)
        levels = [self.position[each] for each in self.there.levels]
        categories = np.concatenate([*levels, self.bounded[:0]])
        highs = np.repeat(groups, [each.size for each in levels])
        trusted = [*groups, *self.bounded, *self.bounded]
        costs = np.array([*domains.group_costs, *domains.bounded_costs, *domains.bounded_costs])
        columns = np.array([[*categories, *highs, *trusted], [*categories, *categories, *trusted]])
        n, one = categories.size, np.ones(columns.shape[1])
        one[2 * n : one.size - self.bounded.size] = -1.0
        other = np.zeros_like(one)
        other[n : 2 * n] = -1.0
        weight = np.full(one.size, 1.0 / max(one.size, n_samples))
        weight[2 * n :] = 1.0 / max(costs.size, 1)  # trust rows together: one product
        entries, price = np.stack([one, other]), np.append(np.zeros(2 * n), costs)
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
        self.n_pieces = 0
        self.corrected = np.zeros(0)  # all corrections of a dual point together

    def open(self, coef: FloatArray, mu: float) -> State:
        self.visits += 1
        return self.rows.run(_open, self.slopes, self.table, self.kappa, self.epsilon, coef)[0]

    def linearise(
        self, state: State, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[State, FloatArray]:
        arguments = coef, primal, dual, mu, self.most_missing
        state, sums = self.visit(linearise_pieces, state, *arguments)
        self.n_pieces = int(sums[COUNT - SCALARS])
        return state, sums

    def with_missing(
        self, state: State, trial: State, coef: FloatArray, mu: float
    ) -> tuple[State, FloatArray]:
        return self.visit(linearise_pieces, self.rows.pair(state, trial), coef, 0.0, 0.0, mu)

    def predict(self, state: State, dcoef: FloatArray) -> tuple[State, FloatArray]:
        return self.visit(predict_pieces, state, dcoef)

    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        return self.visit(correct_pieces, state, dcoef, centre, share)

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
) -> tuple[PieceState, tuple[()]]:
    slope = np.zeros(0) if slope is None else slope
    costs = np.broadcast_to(within_reach(block.flip_costs(kappa), epsilon), block.y.shape)
    return open_pieces(table(block), np.ascontiguousarray(costs), slope, coef), ()


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
    found = run(samples, newton, mu, tol, max_iter, monitor)
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
        np.asarray(state.sets)[kept].astype("<u8").view(np.uint8),
        axis=1,
        bitorder="little",
        count=n_items,
    )
    flipped = np.asarray(state.pieces)[kept, 0] != block.y[own]
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
