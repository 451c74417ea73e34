"""The predictor-corrector: one driver for every model of the samples and every place they live in.

A *model of the samples* answers these questions, each one visit to the rows, and changes nothing:
what it remembers of each sample is in a ``state``.  Sums are one flat array (``_pair``); vectors
are (β, b, λ) in the user's units.

    open(coef, μ)                           -> state        on the central path
    linearise(state, coef, primal, dual, μ) -> state, sums  along its direction: conditions there
    with_missing(state, trial, coef, μ)     -> state, sums  stay, with pieces missing at the trial
    predict(state, dcoef)                   -> state, sums  all products to zero: limits, 2nd order
    correct(state, dcoef, centre, share)    -> state, sums  to the centre: limits, loss along it
    certify(state, point, dcoef)            -> point, sums  the dual point, corrected: its equations
    weights(state)                          -> weights      of a Gram matrix that is not formed

Everything of size n is in ``newton``.

Derivation: docs/algorithm.md, section 5 and (11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..problem.result import Status
from ._pair import longest
from .settings import SETTINGS


class Found(NamedTuple):
    """How a run ended; ``newton`` has the best model, ``point`` is the dual point of its bound."""

    n_iter: int
    status: Status
    state: Any
    point: Any


def run(
    samples: Any,
    newton: Any,
    state: Any,
    mu: float,
    tol: float,
    max_iter: int,
    report: Callable[[int, Callable[[], float]], bool] | None = None,
) -> Found:
    """Iterate from the opened point until the certified gap is within ``tol``.

    ``report`` hears of every iterate, with a way to a bound for it; it ends the run by True.
    """
    size, scalars = newton.size, newton.scalars
    bounds = Bounds(samples, newton)
    primal = dual = slope = curvature = 0.0
    allowed = loss = comp = ripe = math.inf
    refused = False

    def ended(n_iter: int, status: Status) -> Found:
        if status is not Status.OPTIMAL:
            bounds.attempt(state, newton.best)  # whatever bound there is
        return Found(n_iter, status, state, bounds.point)

    for iteration in range(max_iter):
        # Where the last step leads; not there if pieces are missing, shorter if the loss rises.
        samples.most_over = math.inf if refused else SETTINGS.missing * comp
        while True:
            trial, sums = samples.linearise(state, newton.trial(primal), primal, dual, mu)
            over = sums[scalars + 4]
            if over > samples.most_over:
                refused, primal, dual = True, 0.0, 0.0
                state, sums = samples.with_missing(state, trial, newton.trial(0.0), mu)
                break
            rise = sums[scalars] - loss
            excess = rise - primal * (slope + 0.5 * primal * curvature)
            if primal == 0.0 or not (over > comp or (rise > allowed and excess > allowed)):
                refused, state = False, trial
                break
            cut = 0.5 if over > comp else min(0.7, max(0.1, (allowed / excess) ** (1.0 / 3.0)))
            primal, dual = cut * primal, min(dual, cut * primal)
        newton.move(primal, dual)
        if not newton.linearise(sums, None if newton.wide is None else samples.weights(state)):
            return Found(iteration, Status.STALLED, state, bounds.point)
        comp, mu, loss = newton.complementarity, newton.mu, newton.loss
        decrement = newton.decrement()
        distance = newton.best - newton.expected + 0.5 * decrement
        if newton.pinned:  # -best is proven, what is missing of the optimum is the complementarity
            if comp <= tol * max(abs(newton.best), SETTINGS.nothing):
                return Found(iteration + 1, Status.OPTIMAL, state, None)
        else:
            if distance <= tol and max(distance, comp) <= ripe:
                ripe = SETTINGS.helpful * max(distance, comp)
                bounds.attempt(state, newton.best - tol)
            stop = report is not None and report(iteration, partial(bounds.shown, state))
            if newton.best - newton.dual <= tol:
                return ended(iteration + 1, Status.OPTIMAL)
            if stop:
                return ended(iteration + 1, Status.STOPPED)
            if not max(distance, comp) > max(SETTINGS.exhausted * tol, 1e-14):  # rounding
                return ended(iteration + 1, Status.STALLED)
        price = SETTINGS.blocking * comp
        # Predictor.
        state, predicted = samples.predict(state, newton.predictor())
        primal, dual = longest(predicted, size + 3, price)
        cone_primal, cone_dual = newton.longest()
        primal, dual = min(primal, cone_primal), min(dual, cone_dual)
        # Corrector: as far along as the predictor suggests, not far ahead of the residuals.
        ratio = max(newton.after(primal, dual, predicted), 0.0) / comp
        sigma = max(min(1.0, ratio * ratio * ratio), SETTINGS.least_sigma)
        sigma = max(sigma, min(SETTINGS.most_sigma, SETTINGS.decrement_sigma * decrement / comp))
        if newton.held:
            sigma = max(sigma, SETTINGS.held_sigma)
        share = min(primal, dual)
        dcoef = newton.corrector(sigma * mu, share, predicted)
        state, limits = samples.correct(state, dcoef, sigma * mu, share)
        primal, dual = longest(limits, 2, price)
        cone_primal, cone_dual = newton.longest()
        primal, dual = shortened(min(primal, cone_primal), mu), shortened(min(dual, cone_dual), mu)
        slope, curvature = limits[0], limits[1]
        allowed = max(SETTINGS.allowance * max(min(decrement, loss), comp), 1e-14)
        if not max(primal, dual) > SETTINGS.least_step:
            return ended(iteration + 1, Status.STALLED)
    return ended(max_iter, Status.MAX_ITER)


class Bounds:
    """Lower bounds from the dual points of iterates after corrections; the best is kept."""

    def __init__(self, samples: Any, newton: Any) -> None:
        self.samples, self.newton, self.point = samples, newton, None
        self.best_shown = 0.0

    def attempt(self, state: Any, wanted: float) -> None:
        """Correct an iterate's dual point, a visit each, until its bound is as wanted."""
        newton = self.newton
        newton.begin_proof()
        point, short, before = None, math.inf, math.inf
        while newton.dual < wanted and short <= SETTINGS.helpful * before:
            point, sums = self.samples.certify(state, point, newton.correction())
            known, value = newton.dual, newton.prove(sums)
            if newton.dual > known:
                self.point = point
            short, before = wanted - value, short
        newton.end_proof()

    def shown(self, state: Any) -> float:
        """A bound for who looks at an iterate, without consequences for the run."""
        known, point = self.newton.dual, self.point
        self.attempt(state, self.newton.best)
        self.best_shown = max(self.best_shown, self.newton.dual)
        self.newton.dual, self.point = known, point
        return self.best_shown


def shortened(alpha: float, mu: float) -> float:
    """Stop short of the boundary; by more if the step is short."""
    if alpha >= 1.0:
        return 1.0
    return alpha * (1.0 - (max(0.01, min(0.1, mu)) if alpha > 0.2 else 0.1))
