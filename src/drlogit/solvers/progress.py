"""The best certified point of a run, kept while its solver moves on.

A solver offers each iterate with sums it has at hand; from them a rigorous lower bound
follows without another pass over the data.  Where that bound is too weak but the iterate
looks optimal, the full certificate with its corrections is computed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..certificate import certify, dual_bound, feasible_factors
from ..losses import FloatArray
from ..problem import Problem
from ..result import Monitor, Solution, Status
from ..rows import Block, State, Sum


class ClassSums(NamedTuple):
    """Sums over the samples of each class that a cheap lower bound needs."""

    gradients: FloatArray  # Zᵀ W (s - a), a column per class
    flips: FloatArray  # Σ w a
    entropies: FloatArray  # Σ w H(s)

    @staticmethod
    def reductions(
        block: Block, s: FloatArray, a: FloatArray, entropy: FloatArray
    ) -> tuple[Sum, Sum, Sum]:
        """The three sums of one block, in the order of the fields."""
        w = block.weights
        return (
            Sum(block.adjoint(block.by_class(w * (s - a)))),
            Sum(block.by_class(w * a).sum(axis=0)),
            Sum(block.by_class(w * entropy).sum(axis=0)),
        )


class Progress:
    """Best primal and dual point so far, and whether they are close enough."""

    def __init__(self, problem: Problem, tol: float, monitor: Monitor) -> None:
        self.problem = problem
        self.tol = tol
        self.monitor = monitor
        self.n_iter = 0
        self.primal = math.inf
        self.dual = 0.0
        self.coefficients = np.zeros(problem.costs.size)
        self.status = Status.MAX_ITER
        self._dual_point: tuple[FloatArray, State] | None = None
        self._checked = math.inf

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def report(
        self,
        coefficients: FloatArray,
        primal: float,
        sums: ClassSums,
        flip_share: State,
        estimate: float,
        lam: float,
    ) -> bool:
        """Take note of an iterate; True when the run is over (see ``status``)."""
        self._offer_primal(primal, coefficients)
        factors = feasible_factors(self.problem, sums.gradients, sums.flips)
        # H is concave with H(0) = 0, so shrinking s costs at most in proportion.
        self._offer_dual(float(factors @ sums.entropies), coefficients, flip_share)
        if self.gap > self.tol and estimate <= self.tol and estimate < 0.5 * self._checked:
            self._checked = estimate
            bound = dual_bound(
                self.problem, coefficients, flip_share, wanted=self.primal - self.tol
            )
            self._offer_dual(bound.value, bound.coefficients, flip_share)
        stop = self.monitor.report(self.n_iter, self.primal, self.dual, lam)
        self.n_iter += 1
        if self.gap <= self.tol:
            self.status = Status.OPTIMAL
        elif stop:
            self.status = Status.STOPPED
        return self.gap <= self.tol or stop

    def try_candidate(self, coefficients: FloatArray, flip_share: State) -> bool:
        """Certify a point that looks optimal; True if it is."""
        certificate = certify(self.problem, coefficients, flip_share=flip_share, tol=self.tol)
        self._offer_primal(certificate.primal, coefficients)
        self._offer_dual(certificate.dual, certificate.dual_coefficients, flip_share)
        if self.gap <= self.tol:
            self.status = Status.OPTIMAL
        return self.gap <= self.tol

    def solution(self, status: Status, **info: object) -> Solution:
        """What the solver returns."""
        dual_coefficients, flip_share = self._dual_point or (None, None)
        return Solution(
            self.coefficients, status, self.n_iter, flip_share, dual_coefficients, dict(info)
        )

    def _offer_primal(self, value: float, coefficients: FloatArray) -> None:
        if value < self.primal and np.isfinite(coefficients).all():
            self.primal, self.coefficients = value, coefficients

    def _offer_dual(self, value: float, coefficients: FloatArray, flip_share: State) -> None:
        if value > self.dual or self._dual_point is None:
            self.dual, self._dual_point = max(value, self.dual), (coefficients, flip_share)
