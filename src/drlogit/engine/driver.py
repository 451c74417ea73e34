"""The predictor-corrector: one driver for every model of the samples and every place they live in.

A *model of the samples* answers five questions, each one visit to the rows and one flat array of sums
(see ``_pair``); vectors are (β, b, λ) in the user's units:

    open(coef, μ)                       slacks and multipliers on the central path
    linearise(coef, primal, dual, μ)    go along the last direction: optimality conditions there
    predict(dcoef)                      all products to zero: limits, second-order pull
    correct(dcoef, centre, share)       towards the centre: limits, slope and curvature of the loss
    certify(dcoef, first)               the dual point, corrected: its equations and its value

``settle()`` accepts what ``linearise`` looked at, ``refuse()`` stays and takes in the pieces that were
missing there.  Everything of size n is in ``Newton``.
"""

import math

from ._pair import longest

ROUGH_MU = 1e-4        # above: multipliers may be left behind as well as slacks
BEHIND = 0.01          # samples may be left behind at this share of the complementarity
MISSING = 0.1          # weight above the model, in units of complementarity, from which a step is refused


def starting_lambda(epsilon, kappa, mu):
    """λ on the central path at β = 0: ε = κ Σ w a + (multiplier of λ)."""
    low, high = 1e-3 * mu / epsilon, 2e3 * mu / epsilon
    for _ in range(40):
        lam = math.sqrt(low * high)
        slack = 0.5 * (2.0 * mu + kappa * lam + math.hypot(kappa * lam, 2.0 * mu))
        if mu / lam + kappa * mu / slack > epsilon:
            low = lam
        else:
            high = lam
    return high


def run(samples, newton, mu, tol, max_iter):
    """Iterate from the opened point until the certified gap is within ``tol``."""
    size = newton.size
    scalars = size * size + 3 * size
    primal = dual = slope = curvature = 0.0
    best = allowed = loss = comp = ripe = math.inf
    refused = False
    for iteration in range(max_iter):
        # Where the last step leads; not there if pieces are missing, shorter if the loss rises.
        while True:
            sums = samples.linearise(newton.trial(primal), primal, dual, mu)
            over = sums[scalars + 4]
            if over > MISSING * comp and not refused:
                refused = True
                samples.refuse()
                primal = dual = 0.0
                continue
            rise = sums[scalars] - loss
            excess = rise - primal * (slope + 0.5 * primal * curvature)
            if primal == 0.0 or not (over > comp or (rise > allowed and excess > allowed)):
                break
            cut = 0.5 if over > comp else min(0.7, max(0.1, (allowed / excess) ** (1.0 / 3.0)))
            primal, dual = cut * primal, min(dual, cut * primal)
        refused = refused and primal == 0.0
        samples.settle()
        newton.move(primal, dual)
        if not newton.linearise(sums):
            return iteration, best, "stalled"
        best = newton.best
        comp, mu, loss = newton.complementarity, newton.mu, newton.loss
        decrement = newton.decrement()
        distance = best - newton.expected + 0.5 * decrement
        if newton.pinned:  # epsilon_max: -best is a proven lower bound, what is missing is the complementarity
            if comp <= tol * abs(best):
                return iteration, best, "optimal"
        elif distance <= tol and max(distance, comp) <= ripe:
            ripe = 0.3 * max(distance, comp)
            if best - certified(samples, newton, best - tol) <= tol:
                return iteration, best, "optimal"
            if not max(distance, comp) > max(1e-7 * tol, 1e-14):  # converged, and the bound is not good enough: rounding
                return iteration, best, "stalled"
        price = BEHIND * comp
        late = price if mu > ROUGH_MU else 0.0
        # Predictor.
        predicted = samples.predict(newton.predictor())
        primal, dual = longest(predicted, size + 3, price, late)
        cone_primal, cone_dual = newton.longest()
        primal, dual = min(primal, cone_primal), min(dual, cone_dual)
        # Corrector: as far along as the predictor suggests, not far ahead of the residuals.
        ratio = max(newton.after(primal, dual, predicted), 0.0) / comp
        sigma = max(min(1.0, ratio * ratio * ratio), 0.01, min(3.0, 0.1 * decrement / comp))
        if newton.held:
            sigma = max(sigma, 0.5)
        share = min(primal, dual)
        limits = samples.correct(newton.corrector(sigma * mu, share, predicted), sigma * mu, share)
        primal, dual = longest(limits, 2, price, late)
        cone_primal, cone_dual = newton.longest()
        primal, dual = shortened(min(primal, cone_primal), mu), shortened(min(dual, cone_dual), mu)
        slope, curvature = limits[0], limits[1]
        allowed = max(samples.allowance * max(decrement, comp), 1e-14)
        if not max(primal, dual) > 1e-9:
            return iteration, best, "stalled"
    return max_iter, best, "max_iter"


def certified(samples, newton, wanted):
    """The lower bound, from the iterate's dual point after corrections (MATH §3), a visit each, while they help."""
    newton.begin_proof()
    first, short = True, math.inf
    while newton.dual < wanted:
        value = newton.prove(samples.certify(newton.correction(), first))
        if not wanted - value < 0.3 * short:
            break
        first, short = False, wanted - value
    newton.end_proof()
    return newton.dual


def shortened(alpha, mu):
    """Stop short of the boundary; by more if the step is short."""
    if alpha >= 1.0:
        return 1.0
    return alpha * (1.0 - (max(0.01, min(0.1, mu)) if alpha > 0.2 else 0.1))
