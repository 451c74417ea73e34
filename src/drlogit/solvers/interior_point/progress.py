"""The best certified point of a run, kept while its solver moves on.

A solver offers each iterate with sums it has at hand; from them a rigorous lower bound
follows without another pass over the data.  Where that bound is too weak but the iterate
looks optimal, the full certificate with its corrections is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...dual.certify import certify
from ...dual.pair import pair_bound
from ...problem.losses import flip_probability, log_loss_terms
from ...problem.problem import Problem
from ...problem.result import Monitor, Solution, Status
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.interface import State
from ...rows.reductions import Sum

#: An estimate of the gap below this share of tol cannot be what keeps the gap open.
_NEGLIGIBLE = 1e-5

#: An estimate of the gap within this multiple of tol makes the bound worth its two passes.
_PROMISING = 2.0

#: An estimate within this share of tol should have been certified by shrinking alone.
_OVERDUE = 0.02

#: An iteration is a step forward if the objective falls by tol, or if the estimate of the gap falls
#: below this share of the least so far.
_FORWARD = 0.9


@dataclass(frozen=True, eq=False)
class DualCandidate:
    """A dual point as the certificate takes it: β̃, a, and either a step from β̃ or s itself."""

    coefficients: FloatArray | None
    flip_share: State | None
    step: FloatArray | None = None
    doubt: State | None = None


class Progress:
    """Best primal and dual point so far, and whether they are close enough.

    Several methods may take turns; each says with :meth:`begin` how long it may stand still.
    """

    def __init__(self, problem: Problem, tol: float, monitor: Monitor) -> None:
        self.problem = problem
        self.tol = tol
        self.monitor = monitor
        self.n_iter = 0
        self.primal = math.inf
        self.dual = 0.0
        self.coefficients = np.zeros(problem.costs.size)
        self.lam: float | None = None
        self.status = Status.MAX_ITER
        self._dual_point: DualCandidate | None = None
        self._shown = 0.0
        #: Whether equations beside the intercept's have to be met by corrections.
        self.has_free_features = bool(problem.free.sum() > problem.fit_intercept)
        self.begin()

    def begin(self, patience: float = math.inf) -> None:
        """A method starts, to end as STALLED after ``patience`` iterations without progress."""
        self._patience = patience
        self._idle = 0
        self._reached = (math.inf, math.inf)
        self._checked = math.inf

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def report(
        self,
        coefficients: FloatArray,
        primal: float,
        flip_share: State,
        estimate: float,
        lam: float,
    ) -> bool:
        """Take note of an iterate; True when the run is over (see ``status``).

        ``estimate`` is what the gap would be if the iterate were exactly dual feasible.  The bound
        is worked out when the estimate says it matters; before, only for who looks at it, and
        without consequences: a run goes the same way whether it is watched or not.
        """
        self._offer_primal(primal, coefficients, lam)
        better_bound = None
        if estimate <= _PROMISING * self.tol:
            self._bound(coefficients, flip_share, estimate)
        else:
            better_bound = partial(self._bound_to_show, coefficients, flip_share)
        stop = self.monitor.report(self.n_iter, self.primal, self.dual, lam, better_bound)
        if stop and better_bound is not None:
            self._bound(coefficients, flip_share, estimate)  # for the last point to have one
        self.n_iter += 1
        if self.gap <= self.tol:
            self.status = Status.OPTIMAL
        elif stop:
            self.status = Status.STOPPED
        elif estimate < _NEGLIGIBLE * self.tol or math.isnan(estimate):
            self.status = Status.STALLED  # optimal as far as the method can tell
        elif self._stands_still(primal, estimate):
            self.status = Status.STALLED
        else:
            return False
        return True

    def _stands_still(self, primal: float, estimate: float) -> bool:
        """Whether neither objective nor estimate has moved for longer than the method may wait."""
        least, smallest = self._reached
        if primal < least - self.tol or estimate < _FORWARD * smallest:
            self._idle, self._reached = 0, (min(primal, least), min(estimate, smallest))
        else:
            self._idle += 1
        return self._idle >= self._patience

    def _bound(self, coefficients: FloatArray, flip_share: State, estimate: float) -> None:
        """Lower bound by shrinking; by the full certificate where only that can be enough."""
        value = self._shrunk(coefficients, flip_share)
        self._offer_dual(value, DualCandidate(coefficients, flip_share))
        # Another iteration costs as much as corrections do and leaves the better point, so
        # they wait, unless free features make them the only way to a bound.
        due = self.tol if self.has_free_features else _OVERDUE * self.tol
        if self.gap > self.tol and estimate <= min(due, 0.5 * self._checked):
            self._checked = estimate
            bound = pair_bound(
                self.problem, coefficients, flip_share, wanted=self.primal - self.tol
            )
            self._offer_dual(bound.value, DualCandidate(coefficients, flip_share))

    def take(
        self,
        coefficients: FloatArray,
        primal: float,
        lam: float,
        bound: float,
        dual: DualCandidate,
    ) -> bool:
        """Take note of a point and of a dual point with its bound; True when the run is over."""
        self._offer_primal(primal, coefficients, lam)
        self._offer_dual(bound, dual)
        stop = self.monitor.report(self.n_iter, self.primal, self.dual, lam)
        if self.gap <= self.tol:
            self.status = Status.OPTIMAL
        elif stop:
            self.status = Status.STOPPED
        else:
            return False
        return True

    def _shrunk(self, coefficients: FloatArray, flip_share: State) -> float:
        """Lower bound of the dual point at the coefficients, shrunk until it is feasible."""
        _, sums = self.problem.rows.run(_class_sums, flip_share, coefficients)
        factors = feasible_factors(self.problem, *sums[:2])
        # H is concave with H(0) = 0, so shrinking s costs at most in proportion.
        return float(factors @ sums[2])

    def _bound_to_show(self, coefficients: FloatArray, flip_share: State) -> float:
        self._shown = max(self._shown, self.dual, self._shrunk(coefficients, flip_share))
        return self._shown

    def try_step(
        self, coefficients: FloatArray, step: FloatArray, length: float, flip_share: State
    ) -> bool:
        """Certify the point that part of a Newton step leads to; True if it is optimal.

        The dual point is that of the whole step, with flip shares to go with it.
        """
        # Without corrections, which cost more than another iteration would.
        there = coefficients + length * step
        certificate = certify(
            self.problem,
            there,
            flip_share=flip_share,
            s=self.problem.rows.run(_s_of, flip_share, coefficients, step)[0],
            tol=math.inf,
        )
        self._offer_primal(certificate.primal, there, certificate.lam)
        self._offer_dual(certificate.dual, DualCandidate(coefficients, flip_share, step))
        if self.gap <= self.tol:
            self.status = Status.OPTIMAL
        return self.gap <= self.tol

    def solution(self, status: Status, **info: object) -> Solution:
        """What the solver returns."""
        dual = self._dual_point or DualCandidate(None, None)
        s = dual.doubt
        if s is None and dual.coefficients is not None:
            s, _ = self.problem.rows.run(_s_of, dual.flip_share, dual.coefficients, dual.step)
        return Solution(
            self.coefficients,
            status,
            self.n_iter,
            flip_share=dual.flip_share,
            s=s,
            info=dict(info),
            lam=self.lam,
        )

    def _offer_primal(self, value: float, coefficients: FloatArray, lam: float) -> None:
        if value < self.primal and np.isfinite(coefficients).all():
            self.primal, self.coefficients, self.lam = value, coefficients, lam

    def _offer_dual(self, value: float, candidate: DualCandidate) -> None:
        # Kept as it was handed to the certificate, which will find the same bound from it.
        if value > self.dual or self._dual_point is None:
            self.dual = max(value, self.dual)
            self._dual_point = candidate


def _class_sums(
    block: Block, a: FloatArray, coefficients: FloatArray
) -> tuple[FloatArray, tuple[Sum, Sum, Sum]]:
    """Per class: ``Zᵀ W (s - a)``, ``Σ w a`` and ``Σ w H(s)`` at the coefficients' margins."""
    w = block.weights
    u = block.margins(coefficients)
    loss = log_loss_terms(u)
    return a, (
        Sum(block.adjoint(block.by_class(w * (loss.slope - a)))),
        Sum(block.by_class(w * a).sum(axis=0)),
        Sum(block.by_class(w * (loss.value + loss.slope * u)).sum(axis=0)),
    )


def _s_of(
    block: Block, _: FloatArray, coefficients: FloatArray, step: FloatArray | None
) -> tuple[FloatArray, tuple[()]]:
    s = flip_probability(block.margins(coefficients))
    if step is not None:
        s = np.clip(s - s * (1.0 - s) * block.margins(step), 0.0, 1.0)
    return s, ()


def _balance(negative: float, positive: float, noise: float) -> FloatArray:
    """Factors in [0, 1] per class after which ``Σ w (s - a)`` is the same for both.

    Where they agree within ``noise`` their ratio says nothing, and they are left alone.
    """
    if abs(negative - positive) <= noise:
        return np.ones(2)
    if min(negative, positive) < 0.0 < max(negative, positive):
        return np.zeros(2)
    if abs(negative) < abs(positive):
        return np.array([1.0, negative / positive])
    return np.array([positive / negative, 1.0])


def feasible_factors(problem: Problem, gradients: FloatArray, flips: FloatArray) -> FloatArray:
    """Factors per class that make ``(s, a)`` feasible for (P), from its sums per class.

    Zeros (the trivial bound) where features are free: their equations need Newton steps.
    """
    factors = np.ones(2)
    if problem.fit_intercept:
        noise = 1e-15 * float(flips.sum() + np.abs(gradients[-1]).sum())
        factors = _balance(-gradients[-1, 0], gradients[-1, 1], noise)
    if problem.free.sum() > problem.fit_intercept:
        return np.zeros(2)
    used = problem.budget_used(gradients @ factors, float(flips @ factors))
    return factors * (problem.epsilon / used) if used > problem.epsilon else factors
