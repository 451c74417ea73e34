"""What a search over λ knows about ``q(λ)``, the value of (B) at λ, and about (P), its least value.

A *probe* is an LP-ADMM run at one λ.  Each of its iterates, good or bad, gives an upper bound of
(P), the objective at the best λ for its β, and a cut (see ``cuts``), which bounds q from below at
every λ.  So noise never decides:

- wherever a cut is above the best value found, λ* is not: the cuts bracket it rigorously;
- a falling and a rising cut bound (P) from below where they meet, by the convex combination of
  their dual points, which is feasible for (P).

A search therefore solves a subproblem no better than it can use, and ends when (P) is
certified, which may be long before λ itself is known as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..dual.certify import Certificate, certify
from ..dual.pair import parts
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from .admm import AdmmStart, first_point
from .beta_step import BetaStep
from .cuts import Cut, cut_of
from .fixed_lambda import CHECK_EVERY, FixedLambdaStep, next_check
from .lp_admm import lp_admm_steps, multiplier_for


class Probe(NamedTuple):
    """What is known of q at one λ: ``cut.at(lam) ≤ q(lam) ≤ upper``; and where ADMM stood."""

    lam: float
    upper: float
    cut: Cut
    point: AdmmStart

    @property
    def lower(self) -> float:
        return self.cut.at(self.lam)


@dataclass(eq=False)
class LambdaSearch:
    """The bounds found so far, and the count of what they cost."""

    problem: Problem
    beta_step: BetaStep
    tol: float
    monitor: Monitor
    max_iter: int
    rho: float | None = None  # as in lp_admm, per unit of sample weight
    gamma: float | None = None
    residual_tol: float | None = None  # None: certified; else the paper's rule for subproblems
    best: float = math.inf  # the least objective of (P) seen, and its coefficients
    beta: FloatArray = field(default_factory=lambda: np.zeros(0))
    falling: Cut | None = None  # the cuts with slope < 0 and ≥ 0 that bound (P) best
    rising: Cut | None = None
    lines: list[tuple[float, float]] = field(default_factory=list)  # all cuts, without shares
    promising: float = 0.0  # what the cuts must leave open at most for a certificate to be tried
    certificate: Certificate | None = None  # the one with the best bound
    status: Status | None = None
    n_iter: int = 0
    lambdas: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.promising = 0.9 * self.tol

    @property
    def finished(self) -> bool:
        return self.status is not None

    @property
    def lower(self) -> float:
        """Lower bound of (P) from the cuts."""
        return _meeting(self.falling, self.rising, self.problem.lambda_upper_bound)[1]

    @property
    def unknown(self) -> float:
        """What is not yet known about the value of (P)."""
        return self.best - self.lower

    def bracket(self) -> tuple[float, float]:
        """λ* is in here: elsewhere a cut is above the best value found."""
        low, high = 0.0, self.problem.lambda_upper_bound
        for intercept, slope in self.lines:
            if slope < 0.0:
                low = max(low, (intercept - self.best) / -slope)
            elif slope > 0.0:
                high = min(high, (self.best - intercept) / slope)
        return low, max(low, high)

    def probe(
        self, lam: float, first: AdmmStart, enough: Callable[[float], bool] = lambda _: False
    ) -> Probe:
        """LP-ADMM at ``lam`` until ``enough(upper - lower)``, or until the search is over.

        At least a few iterations are made, also in a search that is over.
        """
        if not self.lambdas or self.lambdas[-1] != lam:
            self.lambdas.append(lam)
        if self.residual_tol is not None:
            # A warm start can satisfy the paper's rule at once: see multiplier_for.
            first = first_point(self.problem, None, multiplier=multiplier_for("residual"))
        if self.gamma is not None or first.rho is None:
            first = first._replace(rho=self.rho)
        steps = lp_admm_steps(self.problem, lam, first, self.beta_step, gamma=self.gamma)
        check = CHECK_EVERY
        for k, step in enumerate(steps, start=1):
            self.n_iter += 1
            agree = self.residual_tol is not None and step.residual <= self.residual_tol
            if k < check and self.n_iter < self.max_iter and not agree:
                continue
            check = next_check(k)
            upper = self._improve_primal(lam, step.beta)
            cut = self._improve_cuts(lam, step)
            stopped = self.monitor.report(
                self.n_iter, self.best, self.lower, lam, residual=step.residual, rho=step.rho
            )
            if self.residual_tol is None:
                self._certify()
            if stopped and not self.finished:
                self.status = Status.STOPPED
            if self.n_iter >= self.max_iter and not self.finished:
                self.status = Status.MAX_ITER
            if self.finished or agree:
                break
            if self.residual_tol is None and cut.valid and enough(upper - cut.at(lam)):
                break
        return Probe(lam, upper, cut, AdmmStart(step.beta, step.state, step.rho))

    def _improve_primal(self, lam: float, beta: FloatArray) -> float:
        """Objective at ``lam``; on the way, the objective of (P) at the best λ for β."""
        problem = self.problem
        margins = problem.margins(beta)
        value = problem.objective_at(margins, problem.best_lambda(beta, margins))
        if value < self.best:
            self.best, self.beta = value, beta
        return problem.objective_at(margins, lam)

    def _improve_cuts(self, lam: float, step: FixedLambdaStep) -> Cut:
        """The cut of an iterate; kept if the bound of (P) is better with it."""
        cut = cut_of(self.problem, lam, step)
        if not cut.valid:
            return cut
        self.lines.append((cut.intercept, cut.slope))
        falling = cut if cut.slope < 0.0 else self.falling
        rising = self.rising if cut.slope < 0.0 else cut
        if _meeting(falling, rising, self.problem.lambda_upper_bound)[1] > self.lower:
            self.falling, self.rising = falling, rising
        return cut

    def _certify(self) -> None:
        """Turn the cuts into a certificate of (P), once they promise that it will do."""
        if self.unknown > self.promising:
            return
        if self._certificate(self.tol).gap <= self.tol:
            self.status = Status.OPTIMAL
        else:
            self.promising = 0.5 * self.unknown

    def _certificate(self, tol: float) -> Certificate:
        found = certify(self.problem, self.beta, flip_share=self._mixed_shares(), tol=tol)
        if self.certificate is None or found.dual > self.certificate.dual:
            self.certificate = found
        return found

    def _mixed_shares(self) -> State | None:
        """Flip shares of the combination of the two cuts that has slope zero."""
        if self.falling is None or self.rising is None:
            only = self.rising if self.falling is None else self.falling
            return None if only is None else only.shares
        share, _ = _meeting(self.falling, self.rising, self.problem.lambda_upper_bound)
        rows = self.problem.rows
        return rows.run(_mix, rows.pair(self.falling.shares, self.rising.shares), share)[0]

    def solution(self, **info: Any) -> Solution:
        """The best point, with the best dual point that was certified."""
        if self.status is not Status.OPTIMAL or self.certificate is None:
            self._certificate(self.tol)
        assert self.certificate is not None, "certified just above"
        s, a = parts(self.problem, self.certificate.point)
        return Solution(
            coefficients=self.beta,
            status=self.status or Status.STALLED,
            n_iter=self.n_iter,
            flip_share=a,
            s=s,
            info={
                "n_subproblems": len(self.lambdas),
                "lambdas": self.lambdas,
                "inner_steps": self.beta_step.inner_steps,
                **info,
            },
        )


def _meeting(falling: Cut | None, rising: Cut | None, top: float) -> tuple[float, float]:
    """Least value on [0, top] of the larger of two cuts, after the falling one's share in it."""
    if falling is None or (rising is not None and falling.intercept <= rising.intercept):
        return 0.0, -math.inf if rising is None else rising.intercept
    if rising is None or falling.at(top) >= rising.at(top):
        return 1.0, falling.at(top)
    share = rising.slope / (rising.slope - falling.slope)
    return share, share * falling.intercept + (1.0 - share) * rising.intercept


def _mix(
    block: Block, pair: tuple[FloatArray, FloatArray], share: float
) -> tuple[FloatArray, tuple[()]]:
    one, other = pair
    return share * one + (1.0 - share) * other, ()
