"""From a good start to a certified solution of (P): sequential quadratic programming.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],     u = Zβ
    subject to  ‖β‖_* ≤ λ

An interior point cannot use a good start: its iterates have to stay away from the boundary where
the solution lies.  Here only the log-loss is linearised (to second order, around the start);
hinge and norm are kept exact, and solved by a barrier of their own on few samples:

1. *Linearise*: ``H = Zᵀ diag(w h''(u)) Z`` and the gradient, one full Gram matrix.
2. *Band*: samples so far from the kink that the step will not take them across are flipped for
   certain, or not at all.  How far a step goes is known from the one before, or from a probe.
3. *Solve* the quadratic program on the band (``quadratic_barrier``).
4. *Widen* the band by samples outside of it that crossed the kink all the same, and repeat 3.
5. *Certify*: the dual point ``(s - h''·Zd, a)`` of the step is feasible, because that is what the
   quadratic program's optimality says, so the gap after it is of third order in d.
6. *Go on* with the same H (a chord) where the gap is nearly closed, else with a new one.

A start that is not worth it shows in the gap after a step; the method then gives up, and the
interior point begins from nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...dual.pair import pair_bound
from ...problem.result import Status
from ...rows.arrays import FloatArray
from ..interior_point.progress import DualCandidate, Progress
from ..interior_point.scaled import Scaled
from .kink_band import advance, doubts, flips, linearise, loss_after
from .step import BandStep, Linearisation, StepFinder, Work, from_level

#: A gap below which the same Gram matrix serves once more, and once more again.
_CHORDS = (1e-4, 1e-5)

#: Steps with a Gram matrix of their own, and the gaps that the first must leave, also in proportion
#: to the objective, and each other in proportion to the one before, for the method to go on.  The
#: first must not have to be cut, either: of 104 generated problems that took a second Gram matrix,
#: 16 of the 17 to which it was of no use, and 11 of the others, are left to the interior point so.
_MOST_GRAMS = 6
_PROMISING, _PROMISING_SHARE = 1e-2, 0.1
_PROGRESS = 0.2

#: The first Gram matrix may be in single precision where this gap is enough, since what rounding
#: does to the gradient is in proportion to the step and costs about 1e-8; with fewer columns that
#: saves no time.
_ROUGH_TOL = 1e-7
_ROUGH_COLUMNS = 100

#: Margins that change by δ change a loss of curvature 0.15 by 0.075 δ²; most change by less than
#: three times the root of the mean square.  Measured: 10.6 √gap and 5.9 to 16 √gap.
_SPREAD_OF_GAP = 11.0
_LEAST_SPREAD = 1e-3


@dataclass(frozen=True, eq=False)
class Guess:
    """A point to start from; ``spread`` is how far it is, in changes of margins, if known."""

    coefficients: FloatArray
    lam: float
    spread: float | None = None


def solve_from(
    scaled: Scaled, progress: Progress, guess: Guess, work: Work, *, max_iter: int
) -> Status:
    """Run the method until ``progress`` is satisfied; STALLED if the start was not worth it."""
    run = _Run(scaled, progress, work)
    here = run.linearised(guess.coefficients, guess.lam)
    spread, way, before = guess.spread, None, math.inf
    while True:
        step = run.finder.step(here, spread, way)
        if step is None:
            return Status.STALLED
        if work.spread is None:
            work.spread = step.spread
        length, objective = run.line_search(here, step)
        coefficients = here.coefficients + length * step.d
        lam = here.lam + length * (step.lam - here.lam)
        if run.certify(here, step, coefficients, objective, lam):
            return progress.status
        gap, whole = progress.gap, length == 1.0
        if whole and here.chords < len(_CHORDS) and gap < _CHORDS[here.chords]:
            here = run.advanced(here, step)
        else:
            first = before == math.inf
            promising = min(_PROMISING, _PROMISING_SHARE * progress.primal)
            if gap > (promising if first else _PROGRESS * before) or (first and not whole):
                return Status.STALLED
            if progress.n_iter >= max_iter:
                return Status.MAX_ITER
            if progress.n_iter >= _MOST_GRAMS:
                return Status.STALLED
            before = gap
            here = run.linearised(coefficients, lam)
        spread = _next_spread(step.spread, gap) if whole else max(step.spread, spread or 0.0)
        way = from_level(step.way, max(10.0 * gap, 1e-5))


def spread_of_gap(gap: float) -> float:
    """How far margins change, most of them, on the way from a point to the optimum."""
    return max(_SPREAD_OF_GAP * math.sqrt(max(gap, 0.0)), _LEAST_SPREAD)


def _next_spread(spread: float, gap: float) -> float:
    """How far the step after one of this spread goes: half as far, or as far as the gap allows."""
    return max(min(0.5 * spread, spread_of_gap(gap)), _LEAST_SPREAD)


class _Run:
    """The passes of one run, with what they share."""

    def __init__(self, scaled: Scaled, progress: Progress, work: Work) -> None:
        self.progress = progress
        self.problem, self.rows = scaled.problem, scaled.problem.rows
        self.finder = StepFinder(scaled, progress.tol, work)
        self.kink = self.finder.kink

    def linearised(self, coefficients: FloatArray, lam: float) -> Linearisation:
        """One full Gram matrix."""
        first, many = self.progress.n_iter == 0, coefficients.size >= _ROUGH_COLUMNS
        rough = first and many and self.progress.tol >= _ROUGH_TOL
        self.progress.n_iter += 1
        samples, (upper, gradient, loss, away) = self.rows.run(
            linearise, None, coefficients, self.kink(lam), rough
        )
        hessian = upper + np.triu(upper, 1).T
        objective = float(loss) + self.problem.epsilon * lam
        return Linearisation(coefficients, lam, samples, hessian, gradient, objective, away)

    def advanced(self, here: Linearisation, step: BandStep) -> Linearisation:
        """The point after a whole step, with the Gram matrix of the one before."""
        samples, (gradient, loss) = self.rows.run(advance, step.samples, 1.0, self.kink(step.lam))
        objective = float(loss) + self.problem.epsilon * step.lam
        return Linearisation(
            here.coefficients + step.d, step.lam, samples, here.hessian, gradient, objective,
            None, here.chords + 1,
        )  # fmt: skip

    def line_search(self, here: Linearisation, step: BandStep) -> tuple[float, float]:
        """Step length at which the true objective does not rise, and the objective there."""
        length, objective = 1.0, step.objective
        while objective > here.objective + 1e-12 and length > 1e-3:
            length *= 0.5
            lam = here.lam + length * (step.lam - here.lam)
            _, (loss,) = self.rows.run(loss_after, step.samples, length, self.kink(lam))
            objective = float(loss) + self.problem.epsilon * lam
        return length, objective

    def certify(
        self,
        here: Linearisation,
        step: BandStep,
        coefficients: FloatArray,
        objective: float,
        lam: float,
    ) -> bool:
        """Offer the point and the dual point of the whole step; True when the run is over."""
        problem = self.problem
        share, _ = self.rows.run(flips, step.samples)
        doubt, _ = self.rows.run(doubts, step.samples)
        there, bound = here.coefficients + step.d, step.bound
        # As feasible as the quadratic program says, without a pass over the data; only equations
        # of free features, and what was cut, need a correction.
        if self.progress.has_free_features or step.cut:
            free = self.progress.has_free_features
            wanted = objective - self.progress.tol if free else -math.inf
            bound = pair_bound(problem, there, share, s=doubt, wanted=wanted).value
        candidate = DualCandidate(there, share, doubt=doubt)
        return self.progress.take(coefficients, objective, lam, bound, candidate)
