"""The predictor-corrector: one driver for every model of the samples and every place they live in.

The driver knows the samples through ``protocols.Samples`` and everything of size n through
``Newton``.  An iteration is: step, linearise, try a bound, predictor, corrector.

Derivation: docs/algorithm.md, sections 5 and 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Generic

import numpy as np

from ..problem.result import Monitor, Status
from ..rows.arrays import FloatArray
from ..rows.interface import State, WorkersLostError
from ._newton import Newton
from ._sums import CHANGES, CURVATURE, LOSS, MISSING, NEW_PIECES, PARABOLA, SLOPE, longest
from .protocols import D, Samples
from .settings import SETTINGS

#: Differences of objectives below this are rounding; so is what a bound lacks at a complementarity
#: below this many times tol.
_ROUNDING, _EXHAUSTED = 1e-14, 1e-7

#: Bounds are tried from this distance on, whatever ``tol``: rounding may end a run before that.
_TRIED = 1e-7

#: Shorter steps end a run as stalled.
_LEAST_STEP = 1e-9

#: A dual point is corrected again if the last correction left at most this share of what its bound
#: lacked.  With .3, one of 1,500 generated problems with domains has no bound; .7 takes 10 % more
#: corrections.
_CORRECTED = 0.5

#: The same in the last iterate of a run that ends early, and the corrections at most (several
#: classes need the most).
_CORRECTED_LAST, _MOST_LAST = 0.95, 25

#: A budget of flips below this counts as none, where rows measure one.
_NO_BUDGET = 1e-10


@dataclass(frozen=True)
class Found(Generic[D]):
    """How a run ended; ``newton`` has the best model, ``point`` is the dual point of its bound."""

    n_iter: int
    status: Status
    state: State
    point: D | None


def run(
    samples: Samples[D],
    newton: Newton,
    mu: float,
    tol: float,
    max_iter: int,
    monitor: Monitor | None = None,
) -> Found[D]:
    """Open the samples where the Newton system was opened; iterate until the gap is within tol."""
    with np.errstate(all="ignore"):
        try:
            return _run(samples, newton, mu, tol, max_iter, monitor)
        except WorkersLostError:  # the Newton system has the best model and its bound
            return Found(0, Status.STOPPED, State(), None)


def _run(
    samples: Samples[D],
    newton: Newton,
    mu: float,
    tol: float,
    max_iter: int,
    monitor: Monitor | None,
) -> Found[D]:
    bounds, step, state = Bounds(samples, newton), Step(), samples.open(newton.trial(0.0), mu)
    retry = math.inf  # a bound is tried again when the distance is below this

    def ended(n_iter: int, status: Status) -> Found[D]:
        if status is not Status.OPTIMAL:
            bounds.attempt(state, newton.best, last=True)  # whatever bound there is
        return Found(n_iter, status, state, bounds.point)

    for iteration in range(max_iter):
        state, sums = step.take(samples, newton, state, mu)
        if not newton.linearise(sums, None if newton.wide is None else samples.curved(state)):
            return Found(iteration, Status.STALLED, state, bounds.point)
        comp, mu, decrement = newton.complementarity, newton.mu, newton.decrement()
        distance = newton.best - newton.expected + 0.5 * decrement
        if newton.pinned:  # -best is proven, and the complementarity is what may be missing of it
            if comp <= tol * max(abs(newton.best), _NO_BUDGET):
                return Found(iteration + 1, Status.OPTIMAL, state, None)
        else:
            # Rounding may spoil the decrement where matrices are nearly singular.
            near = min(distance, max(newton.best - newton.expected, comp))
            if near <= max(tol, _TRIED) and max(distance, comp) <= retry:
                retry = SETTINGS.helpful * max(distance, comp)
                bounds.attempt(state, newton.best - tol)
            stop = monitor is not None and monitor.report(
                iteration, newton.best, newton.dual, newton.lam, partial(bounds.shown, state)
            )
            if newton.best - newton.dual <= tol:
                return ended(iteration + 1, Status.OPTIMAL)
            if stop:
                return ended(iteration + 1, Status.STOPPED)
            if not max(distance, comp) > max(_EXHAUSTED * tol, _ROUNDING):
                return ended(iteration + 1, Status.STALLED)
        price = SETTINGS.blocking * comp
        # Predictor.
        state, predicted = samples.predict(state, newton.predictor())
        primal, dual = step_lengths(newton, predicted, newton.size + CHANGES, price)
        # Corrector: as far along as the predictor suggests, not far ahead of the residuals.
        sigma = centring(newton, newton.after(primal, dual, predicted), decrement)
        if distance <= tol and sums[newton.scalars + NEW_PIECES] > 0.0 and not newton.pinned:
            # Near the optimum a smaller μ only adds pieces, whose masses disturb the equations.
            sigma, retry = 1.0, math.inf
        share = min(primal, dual)
        dcoef = newton.corrector(sigma * mu, share, predicted, state)
        state, limits = samples.correct(state, dcoef, sigma * mu, share)
        primal, dual = step_lengths(newton, limits, PARABOLA, price)
        step.plan(shortened(primal), shortened(dual), newton, limits, decrement)
        if not max(step.primal, step.dual) > _LEAST_STEP:
            return ended(iteration + 1, Status.STALLED)
    return ended(max_iter, Status.MAX_ITER)


class Step:
    """The step that the next iteration takes: its lengths and what the loss should do along it."""

    def __init__(self) -> None:
        self.primal = self.dual = self.slope = self.curvature = 0.0
        self.decrement = self.loss = self.complementarity = math.inf
        self.refused = False

    def plan(
        self, primal: float, dual: float, newton: Newton, limits: FloatArray, decrement: float
    ) -> None:
        """A step of these lengths from the iterate, with the parabola of the loss along it."""
        self.primal, self.dual = primal, dual
        self.slope, self.curvature = float(limits[SLOPE]), float(limits[CURVATURE])
        self.loss, self.complementarity = newton.loss, newton.complementarity
        self.decrement = decrement

    def take(
        self, samples: Samples[D], newton: Newton, state: State, mu: float
    ) -> tuple[State, FloatArray]:
        """Move to the end of the step; shorten it while the loss rises above its parabola.

        A step to a point where pieces are missing is refused, once: the pieces join at the current
        point instead.
        """
        limit = math.inf if self.refused else SETTINGS.missing * self.complementarity
        samples.most_missing = limit
        while True:
            trial, sums = samples.linearise(
                state, newton.trial(self.primal), self.primal, self.dual, mu
            )
            missing = float(sums[newton.scalars + MISSING])
            if missing > limit:
                self.refused, self.primal, self.dual = True, 0.0, 0.0
                trial, sums = samples.with_missing(state, trial, newton.trial(0.0), mu)
                break
            cut = self._cut(float(sums[newton.scalars + LOSS]), missing)
            if cut == 1.0:
                self.refused = False
                break
            self.primal, self.dual = cut * self.primal, min(self.dual, cut * self.primal)
        newton.move(self.primal, self.dual)
        return trial, sums

    def _cut(self, loss: float, missing: float) -> float:
        """The factor to shorten the step by, 1 if it can be taken."""
        rise = loss - self.loss
        bent = 0.5 * self.primal * self.curvature
        excess = rise - self.primal * (self.slope + bent)
        size = min(self.decrement, self.loss, self.primal * (abs(self.slope) + bent))
        allowed = max(SETTINGS.allowance * max(size, self.complementarity), _ROUNDING)
        if self.primal == 0.0:
            return 1.0
        if missing > self.complementarity:
            return 0.5
        if rise > 0.0 and excess > allowed:
            return min(0.7, max(0.1, math.pow(allowed / excess, 1.0 / 3.0)))
        return 1.0


def step_lengths(newton: Newton, sums: FloatArray, first: int, price: float) -> tuple[float, float]:
    """Longest primal and dual steps that samples (at this price) and the cone allow."""
    primal, dual = longest(sums, first, price)
    cone_primal, cone_dual = newton.longest()
    return min(primal, cone_primal), min(dual, cone_dual)


def centring(newton: Newton, after: float, decrement: float) -> float:
    """The centring parameter σ, equation (9), when a predictor leaves ``after`` of the products."""
    comp: float = newton.complementarity
    ratio = max(after, 0.0) / comp
    sigma = max(min(1.0, ratio * ratio * ratio), SETTINGS.least_sigma)
    sigma = max(sigma, SETTINGS.decrement_sigma * decrement / comp)
    return max(sigma, SETTINGS.held_sigma) if newton.held else sigma


def shortened(alpha: float) -> float:
    """Stop short of the boundary."""
    return 1.0 if alpha >= 1.0 else 0.99 * alpha


class Bounds(Generic[D]):
    """Lower bounds from the corrected dual points of iterates; the best one is kept."""

    def __init__(self, samples: Samples[D], newton: Newton) -> None:
        self.samples, self.newton = samples, newton
        self.point: D | None = None
        self.best_shown = 0.0

    def attempt(self, state: State, target: float, *, last: bool = False) -> None:
        """Correct an iterate's dual point, a visit each, until its bound reaches the target.

        With ``last`` no better iterate will follow, so that more corrections pay.
        """
        newton, samples, point = self.newton, self.samples, None
        newton.begin_proof()
        short = before = math.inf
        corrected, left = (_CORRECTED_LAST, _MOST_LAST) if last else (_CORRECTED, math.inf)
        while newton.dual < target and short <= corrected * before and left > 0:
            left -= 1
            point, sums = samples.certify(state, point, newton.correction())
            known, value = newton.dual, newton.prove(sums, samples.flow_of(point))
            if newton.dual > known:
                self.point = point
            short, before = target - value, short
        newton.end_proof()

    def shown(self, state: State) -> float:
        """A lower bound for callbacks; it does not affect the run."""
        known, point = self.newton.dual, self.point
        self.attempt(state, self.newton.best)
        self.best_shown = max(self.best_shown, self.newton.dual)
        self.newton.dual, self.point = known, point
        return self.best_shown
