"""Interior point for features with domains: (P') by row generation inside one run.

    minimise  ελ + Σ w_i top_i subject to  top_i ≥ h(y_k (x_i + e_k)·(β, b, low, high)) - λ d_k
    for the pieces k of sample i
                low_g ≤ β_k ≤ high_g for the categories k of group g,   ‖β_U/c‖_* ≤ λ

with two variables per group, so that ties between categories do not multiply pieces.  Pieces are
those that the exact oracle (:mod:`drlogit.problem.worst_moves`) has found so far: it looks at
every point for those that come close to their sample's ``top``, at a slightly lower price than λ
so as to see some that will matter soon.  A step after which many are missing is not taken: its
pieces are added where they are not yet active, and the direction is computed anew.

The start (:mod:`.start`) is the solution of the same data as numbers, pushed inwards; trust rows
(:mod:`.linear_rows`) keep the first iterates near it.

References: S. Mehrotra, SIAM J. Optim. 2 (1992); J. Gondzio, Comput. Optim. Appl. 6 (1996).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ...problem.best_price import best_price
from ...problem.domain_certificate import certify_domains, piece_bound
from ...problem.kept_pieces import kept_weights
from ...problem.piece_weights import spread
from ...problem.pieces import fingerprints
from ...problem.problem import Problem
from ...problem.result import Monitor, Result, Solution, Status
from ...problem.starts import is_for
from ...rows.arrays import FloatArray, IndexArray
from ...rows.interface import Rows, State
from .direction import direction
from .layout import Layout
from .newton_system import NewtonSystem, PiecePoint
from .piece_samples import (
    admit,
    attempt,
    bare,
    linearise,
    restore,
    restored_sums,
    seek,
    settle,
    stay,
    weights_of,
)
from .start import start_of, starting_point

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

#: The least share of the complementarity to aim at while they do.
_CENTRED = 0.5

#: Steps that make the multipliers meet the equations before a bound is taken from them.
_RESTORATIONS = 2

#: The share of the way to the cone's boundary that they may go.
_INSIDE = 0.99


def solve_with_pieces(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 150,
    start: Result | None = None,
) -> Solution:
    """Solve (P') to a certified gap of ``tol``; parameters as for every solver."""
    if start is not None:
        solution = _optimal_already(problem, start, tol, monitor)
        if solution is not None:
            return solution
    given = problem.rows
    rows, origin = given.compact or (given, None)
    problem = replace(problem, rows=rows)
    run = _PieceRun(problem, tol, monitor)
    with np.errstate(all="ignore"):
        run.offer_constant()
        status = run.go(starting_point(run.layout, run.tables, start), max_iter)
    return run.solution(status, given, origin)


def _optimal_already(
    problem: Problem, start: Result, tol: float, monitor: Monitor
) -> Solution | None:
    """The start itself, if the dual point that comes with it proves it optimal."""
    weights = kept_weights(problem, start) if is_for(problem, start) else None
    coefficients = problem.join(start.coef, start.intercept)
    if weights is None or not np.isfinite(coefficients).all():
        return None
    certificate = certify_domains(problem, coefficients, weights, tol)
    if certificate.gap > tol:
        return None
    monitor.report(0, certificate.primal, certificate.dual, certificate.lam)
    return Solution(coefficients, Status.OPTIMAL, 0, pieces=weights, info=_info(0, 0, 0))


class _PieceRun:
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

    def offer_constant(self) -> None:
        """The model that knows the classes only, and the one that knows nothing."""
        x = np.zeros(self.layout.size)
        self._offer_exact(x[: self.rows.n_columns])
        if self.problem.fit_intercept or self.layout.domains.constant_sum is not None:
            weights = self.rows.class_weights
            self.layout.absorb(x, math.log(weights[1] / weights[0]))
            self._offer_exact(x[: self.rows.n_columns])

    # --- the loop ---------------------------------------------------------------------------

    def go(self, point: PiecePoint, max_iter: int) -> Status:
        problem, rows = self.problem, self.rows
        comp = 2.0 * start_of(problem)
        mu = comp / 4.0
        value = math.inf
        refused = False
        for _ in range(max_iter):
            # Pieces that matter here, or soon will.
            ahead = 1.0 + _LOOK_AHEAD * min(1.0, comp / _FAR)
            samples, (counts,) = rows.run(
                seek, point.samples, self.layout.weighed(point.x), point.lam / ahead,
                problem.kappa, self.codes, mu, _MOST,
            )  # fmt: skip
            lift = min(max(0.2 * sum(counts) / max(counts.new, 1), 1.0), 20.0)
            samples, _ = rows.run(admit, samples, point.x, point.lam, mu, lift)
            local, (conditions,) = rows.run(linearise, samples, point.lam)
            here = NewtonSystem(self.layout, replace(point, samples=local), conditions)
            comp, mu = here.complementarity, here.mu
            self.n_pieces = conditions.n_pieces
            try:
                here.factor()
            except LinAlgError:
                return Status.STALLED
            if self._judge(here):
                return self.status
            held = self._held_by_trust(here)
            step = direction(rows, here, _CENTRED if held else 0.0)
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
                there, over = problem.epsilon * lam + float(seen.loss), seen.over
                null = tries == 0 and over > _NULL * comp and not refused and seen.found > 0
                if null:
                    break
                if (over <= _TOO_MUCH * comp and there <= value + 3.0 * comp) or tries >= 6:
                    break
                shrink, tries = 0.5 * shrink, tries + 1
            refused = null
            if refused:
                self.nulls += 1
                samples, _ = rows.run(stay, trial)
                point = replace(here.point, samples=samples)
                continue
            if there < self.primal:
                self.primal, self.coefficients = there, x[: rows.n_columns].copy()
            value = there
            samples, _ = rows.run(settle, trial, lam, mu)
            point = PiecePoint(
                x, lam, here.point.cone.moved(step.cone, alphas),
                here.point.rows.moved_to(x, lam, step.rows, alphas[1], mu, held), samples,
            )  # fmt: skip
            if max(alphas) < 1e-10:
                return Status.STALLED
        return Status.MAX_ITER

    def _held_by_trust(self, here: NewtonSystem) -> bool:
        """Whether trust rows, which bounds must do without, carry what pieces should."""
        rows = here.point.rows
        carried = float(rows.costs @ rows.multiplier[rows.n_true :])
        # Once the gap should have closed, next to nothing is too much.
        comp = here.complementarity
        share = _HELD * min(1.0, comp / self.tol)
        return comp < _LATE and carried > share * self.problem.epsilon

    # --- bounds -----------------------------------------------------------------------------

    def _judge(self, here: NewtonSystem) -> bool:
        """Take note of the iterate; True when the run is over."""
        point = here.point
        if here.complementarity <= max(3.0 * self.tol, 0.01 * self.gap) or self.n_iter % 10 == 9:
            self._offer_exact(point.x[: self.rows.n_columns], point.lam)
            small = 100.0 * max(self.tol, here.complementarity)
            if here.residual_size <= small or here.complementarity <= self.tol:
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

    def _offer_exact(self, coefficients: FloatArray, guess: float | None = None) -> None:
        """An upper bound: the true objective, at the best λ."""
        value = best_price(self.problem, coefficients, self.tables, guess).value
        if value < self.primal:
            self.primal, self.coefficients = value, coefficients.copy()

    def _bound(self, here: NewtonSystem) -> None:
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
            step = cone.direction(dx[self.layout.kept] / self.layout.costs, dlam, idle[0])
            cone = cone.moved(step, (0.0, min(1.0, _INSIDE * cone.longest(step)[1])))
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
            info=_info(self.n_pieces, self.nulls, self.rows.n_samples),
        )  # fmt: skip


def _info(n_pieces: int, null_steps: int, n_distinct: int) -> dict[str, Any]:
    return {
        "solver": "interior-point",
        "pieces": n_pieces,
        "null_steps": null_steps,
        "distinct_samples": n_distinct,
    }
