"""What a model promises, rounded upwards.

For any ``λ ≥ ‖β_U/c‖_*`` the model promises at most ``ελ + Σ w_i R_i``, where ``R_i`` is the
largest ``h(y u - G) - λ C`` over labels y (the other one costs κ) and sets of *items*: a group
changed to its worst category, a bounded feature at its adverse end, with gains that add up to G
and costs that add up to C.

*Only prefixes of the items, sorted by gain per cost, have to be looked at* (the function is convex
in ``(G, C)``, and they are the vertices that matter of the zonotope that partial moves fill), and
only items that gain more than λ per cost (its slope in G is at most 1).

*Rounding.* R rises with gains and falls with costs. So costs are rounded downwards, rates
gain/cost upwards, and the gain of an item is taken to be their product: then the rates are the
numbers that are sorted, the order is right, and what is left is the rounding of prefix sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import FloatArray
from .rounding import (
    DOWN,
    TINY,
    UNIT,
    UP,
    Enclosed,
    dual_matrix_norm,
    exact_sum,
    gamma,
    log_loss,
    norm_of,
)
from .samples import SamplesInBall


def upper_bound(samples: SamplesInBall, coef: FloatArray, intercept: float, lam: float) -> float:
    """What a model promises at most, at λ or the least that is allowed."""
    lam, price = lambda_and_price(samples, [coef[samples.in_norm]], lam)
    found, domain = margins(samples, coef, intercept), samples.domain
    u, flips = found.value, samples.flip_costs
    own, other = log_loss(u), log_loss(-u)
    for rows, part in samples.parts() if domain.n_items else ():
        rates, costs = _items(samples, coef, part)
        up = samples.signs[rows] > 0.0
        own[rows] = _worst(u[rows], up, rates, costs, lam)
        other[rows] = _worst(-u[rows], ~up, rates, costs, lam)
    some = (flips > 0.0) & np.isfinite(flips)
    other[some] -= flips[some] * lam * DOWN
    worst = np.maximum(own, np.where(np.isinf(flips), 0.0, other)) + found.error
    mean = exact_sum(samples.weights * worst * UP + TINY) / samples.total_weight
    return float((mean + price) * UP)


def lambda_and_price(
    samples: SamplesInBall, steps: Iterable[FloatArray], lam: float
) -> tuple[float, float]:
    """λ, or the least that these coefficients allow, or differences of them; and ``ελ``."""
    if samples.epsilon == 0.0:  # the limit λ = ∞ costs nothing
        return math.inf, 0.0
    dual_norm = {"l1": "linf", "linf": "l1", "l2": "l2"}[samples.norm]
    for step in steps:
        if samples.matrix is not None:
            lam = max(lam, dual_matrix_norm(samples.matrix, step))
            continue
        sizes = np.abs(step) * (1.0 + 4.0 * UNIT) / samples.costs[samples.in_norm] * UP
        lam = max(lam, norm_of(dual_norm, sizes))
    return lam, samples.epsilon * lam


def margins(samples: SamplesInBall, coef: FloatArray, intercept: float) -> Enclosed:
    """``y_i (x_i·β + b)``."""
    coef, offset = samples.moved(samples.centre, coef, intercept)
    u, error = np.empty(samples.signs.size), np.empty(samples.signs.size)
    for rows, part in samples.parts():
        Z = part - samples.centre if samples.centre.any() else part
        terms = int(np.diff(Z.indptr).max(initial=0)) if sp.issparse(Z) else coef.size
        u[rows] = Z @ coef + offset
        error[rows] = gamma(terms + 4) * (abs(Z) @ np.abs(coef) + abs(offset)) + TINY
    return Enclosed(u * samples.signs, error)


def _items(samples: SamplesInBall, beta: FloatArray, part: Any) -> tuple[FloatArray, FloatArray]:
    """Rates and costs of the items of some samples, for the labels -1 and +1 (first axis)."""
    domain, n = samples.domain, samples.domain.n_groups
    shape = 2, part.shape[0], n + domain.bounded.size
    rates, costs = np.empty(shape), np.empty(shape)
    now = samples.present(part)
    here = np.where(now >= 0, beta[now], 0.0)
    for g, group in enumerate(domain.groups):
        ends = np.append(beta[group], 0.0) if domain.with_none[g] else beta[group]
        rates[0, :, g], rates[1, :, g] = ends.max() - here[:, g], here[:, g] - ends.min()
    rates[:, :, :n] *= UP / domain.group_costs
    costs[:, :, :n] = domain.group_costs
    slopes, values = beta[domain.bounded], samples.values(part)
    distances = np.stack([domain.upper - values, values - domain.lower])
    rates[:, :, n:] = np.abs(slopes) / domain.bounded_costs * UP * UP
    lengths = np.where(slopes > 0.0, distances, distances[::-1])
    costs[:, :, n:] = domain.bounded_costs * DOWN * lengths
    return rates, costs


def _worst(u: FloatArray, up: Any, rates: FloatArray, costs: FloatArray, lam: float) -> FloatArray:
    """``max h(u - G) - λC`` rounded upwards; u are the margins under the labels."""
    rates, costs = (np.where(up[:, None], each[1], each[0]) for each in (rates, costs))
    paying = rates > lam
    rates, costs = np.where(paying, rates, 0.0), np.where(paying, costs, 0.0)
    most = int(paying.sum(axis=1).max(initial=0))
    order = np.argsort(-rates, axis=1, kind="stable")[:, :most]
    rates, costs = (np.take_along_axis(each, order, axis=1) for each in (rates, costs))
    gained, paid = np.cumsum(rates * costs, axis=1), np.cumsum(costs, axis=1)
    wrong = gamma(most + 4)
    prefixes = log_loss(u[:, None] - gained) - lam * paid * (1.0 - wrong) * DOWN
    prefixes += wrong * gained[:, -1:] * UP
    return np.asarray(np.maximum(log_loss(u), prefixes.max(axis=1, initial=0.0)))
