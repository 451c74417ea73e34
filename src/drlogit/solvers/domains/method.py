"""Interior point for features with domains: (P') by row generation inside one run.

    minimise  ελ + Σ w_i top_i subject to  top_i ≥ h(y_k (x_i + e_k)·(β, b, low, high)) - λ d_k
    for the pieces k of sample i
                low_g ≤ β_k ≤ high_g for the categories k of group g,   ‖β_U/c‖_* ≤ λ

with two variables per group, so that ties between categories do not multiply pieces.  Pieces are
those that the exact oracle (:mod:`drlogit.problem.worst_moves`) has found so far: it looks at
every point for those that come close to their sample's ``top``, at a slightly lower price than λ
so as to see some that will matter soon.  A step after which many are missing is not taken: its
pieces are added where they are not yet active, and the direction is computed anew.

A group may be shifted against the intercept, or against another group, without changing any
score: ``low`` is held at zero where that is so.

The start is the solution of the same data as numbers, at half of each group's cost for each of its
columns, pushed inwards; trust rows (:mod:`.linear_rows`) keep the first iterates near it.

References: S. Mehrotra, SIAM J. Optim. 2 (1992); J. Gondzio, Comput. Optim. Appl. 6 (1996).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from ...problem.domain_certificate import piece_bound
from ...problem.domain_loss import prices_of
from ...problem.domains import Domains
from ...problem.piece_weights import spread
from ...problem.pieces import fingerprints, width
from ...problem.problem import Problem
from ...problem.result import Monitor, Result, Solution, Status
from ...problem.worst_moves import Weighed
from ...rows.arrays import FloatArray, IndexArray
from ...rows.blocks import Block
from ...rows.interface import Rows, State
from ...rows.reductions import Sum
from ..interior_point.method import interior_point
from ..interior_point.norm_cone import ConeStep, NormCone, norm_cone, outlier_correction
from .linear_rows import LinearRows, RowStep
from .piece_samples import (
    admit,
    attempt,
    bare,
    correct,
    follow_aims,
    linearise,
    open_samples,
    predict,
    pull_back,
    restore,
    restored_sums,
    seek,
    settle,
    stay,
    weights_of,
)

#: Complementarity at the start, altogether.
_START = 0.1

#: How far the start is pushed inwards, in units of λ.
_PUSH = 0.1

#: The least ``ελ`` to start from: near the constant model λ is close to zero, and so would be
#: all slacks.
_LEAST_START = 0.02

#: Gap at which the solution as numbers is good enough to start from.
_NUMBERS_TOL = 1e-3

#: Pieces per sample and label that one look may add.  Measured on segment, vehicle, kr-vs-kp, spect
#: (ε = 0.2, κ = ∞): with 12 three times the pieces, and no fewer iterations.
_MOST = 2

#: The price at which the oracle looks ahead: lower than λ by this share while complementarity is
#: above the second number.
_LOOK_AHEAD = 0.02
_FAR = 1e-2

#: Weight that appears above ``top``, in units of complementarity, from which a step is not taken,
#: and from which it is shortened.
_NULL = 0.1
_TOO_MUCH = 1.0

#: Trust rows give way when, below so much complementarity, what their multipliers carry would
#: cost more than this share of ε.  Near the constant model they would never do so by themselves:
#: λ and all slacks vanish together.
_LATE = 2e-2
_HELD = 1e-2

#: Steps that make the multipliers meet the equations before a bound is taken from them.
_RESTORATIONS = 2

_LEAST_SIGMA = 0.02
_SHORT = 0.98


@dataclass(frozen=True, eq=False)
class Layout:
    """Which coordinates of ``(β, b, low, high)`` move, and which the norm bounds."""

    problem: Problem
    domains: Domains
    size: int
    active: IndexArray
    kept: IndexArray
    costs: FloatArray  # of those

    @classmethod
    def of(cls, problem: Problem) -> Layout:
        domains = problem.domains
        assert domains is not None
        rows = problem.rows
        size = width(domains, rows.n_columns)
        moving = np.ones(size, dtype=bool)
        moving[: rows.n_columns] = rows.column_scale > 0.0
        moving[domains.columns] = True
        moving[domains.redundant(problem.fit_intercept)] = False
        complete = np.flatnonzero(~domains.with_none)
        moving[rows.n_columns + complete[0 if problem.fit_intercept else 1 :]] = False
        kept = np.flatnonzero(problem.penalised & (rows.column_scale > 0.0))
        return cls(problem, domains, size, np.flatnonzero(moving), kept, problem.costs[kept])

    def ranges(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        p, n_groups = self.problem.rows.n_columns, self.domains.n_groups
        return x[p : p + n_groups], x[p + n_groups :]

    def weighed(self, x: FloatArray) -> Weighed:
        return Weighed.by(self.domains, x[: self.problem.rows.n_columns], self.ranges(x))


@dataclass(frozen=True, eq=False)
class Point:
    """The driver's half of an iterate."""

    x: FloatArray
    lam: float
    cone: NormCone
    rows: LinearRows
    samples: State


@dataclass(frozen=True, eq=False)
class Step:
    """One direction of everything, with the longest steps it allows."""

    dx: FloatArray
    dlam: float
    cone: ConeStep
    rows: RowStep
    samples: State
    alphas: tuple[float, float]


def solve_with_pieces(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 150,
    start: Result | None = None,
) -> Solution:
    """Solve (P') to a certified gap of ``tol``; parameters as for every solver."""
    given = problem.rows
    rows, origin = given.compact or (given, None)
    problem = replace(problem, rows=rows)
    run = _Run(problem, tol, monitor)
    with np.errstate(all="ignore"):
        status = run.go(run.start(start), max_iter)
    return run.solution(status, given, origin)


class _Run:
    """The best point and bound so far, and the loop that improves them."""

    def __init__(self, problem: Problem, tol: float, monitor: Monitor) -> None:
        self.problem = problem
        self.rows = problem.rows
        self.layout = Layout.of(problem)
        self.tables = self.layout.domains.tables(self.rows)
        self.codes = fingerprints(self.layout.domains)
        self.tol = tol
        self.monitor = monitor
        self.n_iter = 0
        self.primal, self.dual = math.inf, 0.0
        self.coefficients = np.zeros(self.rows.n_columns)
        self.weights: State | None = None
        self.n_pieces = 0
        self.nulls = 0

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    # --- start ------------------------------------------------------------------------------

    def start(self, given: Result | None) -> Point:
        """From the solution as numbers, lifted and pushed inwards."""
        self._offer_constant()
        problem, layout, domains = self.problem, self.layout, self.layout.domains
        p, n_groups = self.rows.n_columns, domains.n_groups
        if given is None:
            coefficients, lam = _as_numbers(problem)
        else:
            coefficients, lam = problem.join(given.coef, given.intercept), given.lam
        lam = max(lam, problem.dual_norm(coefficients), _LEAST_START / problem.epsilon)
        x = np.zeros(layout.size)
        x[:p] = coefficients
        self._drop_redundant(x)
        low, high = domains.ranges(x[:p])
        push = _PUSH * lam
        still = set(range(layout.size)) - set(layout.active.tolist())
        for g, group in enumerate(domains.groups):
            room = push * domains.group_costs[g]
            if p + g in still:
                # low stays at zero: the group is shifted, and somebody else takes it back.
                shift = room - low[g]
                x[group] += shift
                self._absorb(x, -shift)
                x[p + n_groups + g] = high[g] + shift + room
            else:
                x[p + g], x[p + n_groups + g] = low[g] - room, high[g] + room
        lam *= 1.0 + 2.0 * _PUSH
        mu = _START / 2.0
        cone = norm_cone(problem.norm.name, x[layout.kept] / layout.costs, lam, mu)
        n_rows = 2 * sum(group.size for group in domains.groups)
        n_rows += int(2 * domains.with_none.sum()) + n_groups + 2 * domains.bounded.size
        rows = LinearRows.at(domains, p, x, lam, mu, 1.0 / max(n_rows, self.rows.n_samples))
        samples, _ = self.rows.run(open_samples, self.tables, domains, x, lam, problem.kappa, mu)
        return Point(x, lam, cone, rows, samples)

    def _offer_constant(self) -> None:
        """The model that knows the classes only, and the one that knows nothing."""
        x = np.zeros(self.layout.size)
        self._offer_exact(x[: self.rows.n_columns])
        if self.problem.fit_intercept or not self.layout.domains.with_none.all():
            _, (weights,) = self.rows.run(_class_weights)
            self._absorb(x, math.log(weights[1] / weights[0]))
            self._offer_exact(x[: self.rows.n_columns])

    def _drop_redundant(self, x: FloatArray) -> None:
        """Put what redundant coefficients say into the constant."""
        domains = self.layout.domains
        if domains.redundant(self.problem.fit_intercept).size == 0:
            return
        for group in domains.held:
            shift = x[group[0]]
            x[group] -= shift
            self._absorb(x, shift)
        for column, value in zip(domains.constant, domains.constant_values, strict=True):
            self._absorb(x, x[column] * value)
            x[column] = 0.0

    def _absorb(self, x: FloatArray, shift: float) -> None:
        """Add a constant to all scores: in the intercept, or in the group whose low moves."""
        if self.problem.fit_intercept:
            x[self.rows.n_columns - 1] += shift
            return
        domains = self.layout.domains
        first = int(np.flatnonzero(~domains.with_none)[0])
        x[domains.groups[first]] += shift
        p = self.rows.n_columns
        x[[p + first, p + domains.n_groups + first]] += shift

    # --- the loop ---------------------------------------------------------------------------

    def go(self, point: Point, max_iter: int) -> Status:
        problem, rows = self.problem, self.rows
        comp, mu = 2.0 * _START, _START / 2.0
        value = math.inf
        refused = False
        for _ in range(max_iter):
            # Pieces that matter here, or soon will.
            ahead = 1.0 + _LOOK_AHEAD * min(1.0, comp / _FAR)
            samples, (counts,) = rows.run(
                seek, point.samples, self.layout.weighed(point.x), point.lam / ahead,
                problem.kappa, self.codes, mu, _MOST,
            )  # fmt: skip
            new, present = counts
            lift = min(max(0.2 * (present + new) / max(new, 1), 1.0), 20.0)
            samples, _ = rows.run(admit, samples, point.x, point.lam, mu, lift)
            samples, sums = rows.run(linearise, samples, point.lam)
            here = _Linearised(self.layout, replace(point, samples=samples), sums)
            comp, mu = here.complementarity, here.mu
            self.n_pieces = here.n_pieces
            try:
                here.factor()
            except LinAlgError:
                return Status.STALLED
            if self._judge(here):
                return self.status
            step = self._direction(here)
            if step is None:
                return Status.STALLED
            # How far: not where too much is missing, nor where the objective rises.
            primal, dual = step.alphas
            shrink, tries = 1.0, 0
            while True:
                alphas = (shrink * primal, shrink * dual)
                x, lam = point.x + alphas[0] * step.dx, point.lam + alphas[0] * step.dlam
                model = self.layout.weighed(x)
                trial, (seen,) = rows.run(
                    attempt, step.samples, *alphas, lam, model, problem.kappa, self.codes, _MOST
                )
                total, over, found = seen
                there = problem.epsilon * lam + float(total)
                if tries == 0 and over > _NULL * comp and not refused and found:
                    break
                if (over <= _TOO_MUCH * comp and there <= value + 3.0 * comp) or tries >= 6:
                    break
                shrink, tries = 0.5 * shrink, tries + 1
            refused = tries == 0 and over > _NULL * comp and not refused and found > 0
            if refused:
                self.nulls += 1
                samples, _ = rows.run(stay, trial)
                point = replace(here.point, samples=samples)
                continue
            if there < self.primal:
                self.primal, self.coefficients = there, x[: rows.n_columns].copy()
            value = there
            samples, _ = rows.run(settle, trial, lam, mu)
            held = self._held_by_trust(here)
            point = Point(
                x, lam, here.point.cone.moved(step.cone, alphas),
                here.point.rows.moved(x, lam, step.rows, alphas[1], mu, held), samples,
            )  # fmt: skip
            if max(alphas) < 1e-10:
                return Status.STALLED
        return Status.MAX_ITER

    def _held_by_trust(self, here: _Linearised) -> bool:
        """Whether trust rows, which bounds must do without, carry what pieces should."""
        rows = here.point.rows
        carried = float(rows.costs @ rows.multiplier[rows.n_true :])
        return here.complementarity < _LATE and carried > _HELD * self.problem.epsilon

    # --- direction --------------------------------------------------------------------------

    def _direction(self, here: _Linearised) -> Step | None:
        """Predictor, corrector, and one centrality correction if steps are short."""
        point = here.point
        aims = (point.cone.affine(), point.rows.affine())
        dx, dlam = here.solve(aims, here.affine)
        first = self._follow(here, dx, dlam, aims, predict, point.samples)
        if first is None:
            return None
        predictor, products, pull = first
        alphas = predictor.alphas
        after = here.after(predictor, products)
        kept = min(alphas) ** 2
        sigma = min(1.0, max((max(after, 0.0) / here.complementarity) ** 3, _LEAST_SIGMA))
        if min(alphas) < 0.1:
            sigma = max(sigma, 0.3)
        if self._held_by_trust(here):
            sigma = max(sigma, 0.5)
        centre = sigma * here.mu
        aims = (
            point.cone.corrected(centre, predictor.cone, kept),
            point.rows.centred(centre) - kept * predictor.rows.slack * predictor.rows.multiplier,
        )
        response = here.affine + centre * here.centring + kept * pull
        dx, dlam = here.solve(aims, response)
        found = self._follow(here, dx, dlam, aims, correct, predictor.samples, centre, kept)
        if found is None:
            return None
        step: Step = found[0]
        length = min(step.alphas)
        if length < 0.9:
            # Gondzio's correction: pull back the outliers of a longer step.
            reach = min(1.0, 1.5 * length + 0.1)
            pulled, (more,) = self.rows.run(pull_back, step.samples, reach, reach, centre)
            rows = point.rows
            trial = (rows.slack + reach * step.rows.slack) * (
                rows.multiplier + reach * step.rows.multiplier
            )
            aims = (
                point.cone.recentred(aims[0], step.cone, (reach, reach), centre),
                aims[1] + outlier_correction(trial, rows.weight * centre),
            )
            dx, dlam = here.solve(aims, response + more)
            longer = self._follow(here, dx, dlam, aims, follow_aims, pulled)
            if longer is not None and min(longer[0].alphas) >= 1.05 * length:
                step = longer[0]
        if min(step.alphas) < 0.1:
            # Plain centring is safe.
            centre = max(centre, 0.5 * here.mu)
            aims = (point.cone.centred(centre), point.rows.centred(centre))
            dx, dlam = here.solve(aims, here.affine + centre * here.centring)
            safe = self._follow(here, dx, dlam, aims, correct, predictor.samples, centre, 0.0)
            if safe is not None:
                step = safe[0]
        primal, dual = (min(1.0, _SHORT * alpha) for alpha in step.alphas)
        return replace(step, alphas=(primal, dual))

    def _follow(
        self,
        here: _Linearised,
        dx: FloatArray,
        dlam: float,
        aims: tuple[FloatArray, FloatArray],
        function: Any,
        samples: State,
        *arguments: float,
    ) -> tuple[Any, ...] | None:
        if not (np.isfinite(dx).all() and math.isfinite(dlam)):
            return None
        point, layout = here.point, self.layout
        cone = point.cone.direction(dx[layout.kept] / layout.costs, dlam, aims[0])
        rows = point.rows.direction(dx, dlam, aims[1])
        new, (primal, dual, *rest) = self.rows.run(function, samples, dx, dlam, *arguments)
        for longest in (point.cone.longest(cone), point.rows.longest(rows)):
            primal, dual = min(primal, longest[0]), min(dual, longest[1])
        step = Step(dx, dlam, cone, rows, new, (min(1.0, float(primal)), min(1.0, float(dual))))
        return (step, *rest)

    # --- bounds -----------------------------------------------------------------------------

    def _judge(self, here: _Linearised) -> bool:
        """Take note of the iterate; True when the run is over."""
        point = here.point
        if here.complementarity <= max(3.0 * self.tol, 0.01 * self.gap) or self.n_iter % 10 == 9:
            self._offer_exact(point.x[: self.rows.n_columns])
            if here.residual_size <= 100.0 * max(self.tol, here.complementarity):
                self._bound(here)
        stop = self.monitor.report(self.n_iter, self.primal, self.dual, point.lam)
        self.n_iter += 1
        if self.gap <= self.tol:
            self.status = Status.OPTIMAL
        elif stop:
            self.status = Status.STOPPED
        elif here.complementarity < 1e-7 * self.tol:
            self.status = Status.STALLED
        else:
            return False
        return True

    def _offer_exact(self, coefficients: FloatArray) -> None:
        """An upper bound: the true objective, at the best λ."""
        value = prices_of(self.problem, coefficients, self.tables).value(self.problem.epsilon)
        if value < self.primal:
            self.primal, self.coefficients = value, coefficients.copy()

    def _bound(self, here: _Linearised) -> None:
        """Make the multipliers meet the equations, by steps that change nothing else."""
        point, problem = here.point, self.problem
        cone, rows = point.cone, point.rows.without_trust()
        weights, _ = self.rows.run(weights_of, point.samples)
        idle = (np.zeros_like(cone.affine()), np.zeros_like(rows.slack))
        for _ in range(_RESTORATIONS):
            _, (left,) = self.rows.run(restored_sums, weights)
            dx, dlam = here.solve_for(left, cone, rows)
            if not (np.isfinite(dx).all() and math.isfinite(dlam)):
                return
            cone = cone.moved(
                cone.direction(dx[self.layout.kept] / self.layout.costs, dlam, idle[0]), (0.0, 1.0)
            )
            rows = rows.pushed(rows.direction(dx, dlam, idle[1]))
            weights, _ = self.rows.run(restore, weights, dx, dlam)
        plain, _ = self.rows.run(bare, weights)
        bound = piece_bound(problem, plain, self.primal - self.tol)
        if bound.value > self.dual or self.weights is None:
            self.dual, self.weights = max(bound.value, self.dual), bound.weights

    def solution(self, status: Status, given: Rows, origin: IndexArray | None) -> Solution:
        """What the solver returns, for the rows that it was given."""
        weights = self.weights
        if weights is not None and origin is not None:
            weights = spread(weights, self.rows, given, origin)
        return Solution(
            self.coefficients, status, self.n_iter, pieces=weights,
            info={
                "solver": "interior-point",
                "pieces": self.n_pieces,
                "null_steps": self.nulls,
                "distinct_samples": self.rows.n_samples,
            },
        )  # fmt: skip


class _Linearised:
    """The optimality conditions at a point, linearised."""

    def __init__(self, layout: Layout, point: Point, sums: tuple[Any, ...]) -> None:
        self.layout = layout
        self.point = point
        self.gram, columns, totals = sums
        self.mean_top, self.products, self.degree, self.n_pieces = totals
        gradient, self.affine, self.centring = columns
        self.residual = gradient.copy()
        self.residual[-1] += layout.problem.epsilon
        self._add(self.residual, point.cone.gradient(), point.rows.gradient())

    def _add(
        self, vector: FloatArray, cone: tuple[FloatArray, float], rows: tuple[FloatArray, float]
    ) -> None:
        layout = self.layout
        vector[layout.kept] += cone[0] / layout.costs
        vector[:-1] += rows[0]
        vector[-1] += cone[1] + rows[1]

    @property
    def complementarity(self) -> float:
        point = self.point
        return float(self.products) + point.cone.complementarity() + point.rows.complementarity()

    @property
    def mu(self) -> float:
        degree = self.degree + self.point.cone.degree + self.point.rows.degree
        return self.complementarity / float(degree)

    @property
    def residual_size(self) -> float:
        """What the equations without trust rows leave, at the size of the iterate."""
        point = self.point
        sizes = np.append(np.abs(point.x), point.lam)
        left = self.residual.copy()
        trust = point.rows.trust_gradient()
        left[:-1] -= trust[0]
        left[-1] -= trust[1]
        return float(np.abs(left) @ np.maximum(2.0 * sizes, 0.1 * point.lam))

    def after(self, step: Step, products: FloatArray) -> float:
        primal, dual = step.alphas
        point = self.point
        first, second, third = products
        samples = self.products + dual * first + primal * second + primal * dual * third
        return (
            float(samples)
            + point.cone.after(step.cone, step.alphas)
            + point.rows.after(step.rows, step.alphas)
        )

    def factor(self) -> None:
        layout, point = self.layout, self.point
        matrix = self.gram.copy()
        inner, edge, corner = point.rows.curvature()
        matrix[:-1, :-1] += inner
        matrix[:-1, -1] += edge
        matrix[-1, :-1] += edge
        matrix[-1, -1] += corner
        cone = point.cone.curvature()
        kept, costs = layout.kept, layout.costs
        matrix[kept, kept] += cone.diagonal / costs**2
        matrix[kept, -1] += cone.coupling / costs
        matrix[-1, kept] += cone.coupling / costs
        matrix[-1, -1] += cone.corner
        column = np.zeros(matrix.shape[0])
        column[kept], column[-1] = cone.column / costs, 1.0
        matrix += cone.weight * np.outer(column, column)
        self.places = np.append(layout.active, layout.size)
        matrix = matrix[np.ix_(self.places, self.places)]
        diagonal = np.diagonal(matrix)
        self.scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        self.matrix = self.scale[:, None] * matrix * self.scale
        shift = 1e-13
        while shift < 1e-3:
            shifted = np.asfortranarray(self.matrix)
            np.fill_diagonal(shifted, np.diagonal(self.matrix) + shift)
            factor, failed = dpotrf(shifted, lower=1, overwrite_a=0)
            if not failed:
                self.factored = factor
                return
            shift *= 100.0
        raise LinAlgError("the reduced matrix is not positive definite")

    def solve(
        self, aims: tuple[FloatArray, FloatArray], response: FloatArray
    ) -> tuple[FloatArray, float]:
        """``(dx, dλ)`` for aims of cone and rows, and what the samples' aims ask for."""
        right = -(self.residual + response)
        pushed = np.zeros_like(right)
        self._add(pushed, self.point.cone.drive(aims[0]), self.point.rows.drive(aims[1]))
        return self._solve(right - pushed)

    def solve_for(
        self, left: FloatArray, cone: NormCone, rows: LinearRows
    ) -> tuple[FloatArray, float]:
        """The step that removes what is left of the equations."""
        right = left.copy()
        right[-1] += self.layout.problem.epsilon
        self._add(right, cone.gradient(), rows.gradient())
        return self._solve(-right)

    def _solve(self, right: FloatArray) -> tuple[FloatArray, float]:
        scaled = self.scale * right[self.places]
        solution, _ = dpotrs(self.factored, scaled, lower=1)
        for _ in range(2):
            more, _ = dpotrs(self.factored, scaled - self.matrix @ solution, lower=1)
            solution += more
        out = np.zeros(right.size)
        out[self.places] = self.scale * solution
        return out[:-1], float(out[-1])


def _class_weights(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.by_class(block.weights).sum(axis=0)),)


def _as_numbers(problem: Problem) -> tuple[FloatArray, float]:
    """The solution of the same data as numbers, and its λ."""
    domains = problem.domains
    assert domains is not None
    costs = problem.costs.copy()
    n_grouped = domains.group_of.size
    factor = np.where(np.arange(domains.columns.size) < n_grouped, 0.5, 1.0)
    costs[domains.columns] = factor * domains.column_costs
    numbers = replace(problem, cost=replace(problem.cost, costs=costs, domains=None))
    found = interior_point(numbers, tol=_NUMBERS_TOL, monitor=Monitor(None, 0))
    return found.coefficients, numbers.best_lambda(found.coefficients)
