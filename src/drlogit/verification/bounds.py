"""Both bounds of a fit from the samples, the coefficients and the dual point, rounded outwards.

*Upper.*  For any ``λ ≥ ‖β/c‖_*`` the model promises at most ``ελ + Σ w_i R_i``, R being the worst
loss of a sample: ``h(u_i) + (u_i - κ_i λ)_+``, or with domains
:mod:`drlogit.verification.worst_case`.

*Lower.*  Let every sample be cut into pieces: rows z at cost d (the sample moved, perhaps with the
other label), masses q and probabilities s.  With ``g = Σ q s z``, every model x and every such λ,

    promise  ≥  Σ q (h(z·x) - λd) + ελ  ≥  Σ q H(s) - g·x + λ (ε - Σ q d)

because ``h(v) ≥ H(s) - s v``.  Of g·x, what the norm bounds is at most ``λ ‖c g‖``, and the rest is
charged: it is about models whose free coefficients are at most ``ADMITTED`` log-odds per standard
deviation, whose categories of a group are as close to each other, and whose log-odds at the
reference point (means of the columns, least category of each group) are within it.  Where
``ρ = ‖c g‖ + Σ q d`` exceeds ε, all masses are scaled by ε/ρ, which takes as much of everything.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..problem.moves import Moves
from ..rows.arrays import BoolArray, FloatArray
from .domain import Domain
from .instance import (
    DOWN,
    LOGARITHMS,
    TINY,
    UP,
    Columns,
    Enclosed,
    Instance,
    exact_sum,
    gamma,
    norm_of,
    sums_by_key,
)

#: The class of models, and what rounding of means and deviations can make of it.
ADMITTED = 1e4
_CLASS = 1.0 + 1e-9

#: Of a bounded feature that varies by less than this share of its range, the range counts.
_RANGE = 1e-9


def upper_bound(samples: Instance, lam: float | None, wanted: float) -> float:
    """What the model promises at most; at λ, if that is below ``wanted``, else at the best one."""
    ball, margins = samples.ball, samples.margins
    u = margins.value
    loss = np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)

    def at(lam: float, loss: FloatArray) -> float:
        loss = (loss * (1.0 + LOGARITHMS) + margins.error) * UP + TINY
        mean = exact_sum(samples.weights * loss) / samples.total_weight
        return float((mean + ball.epsilon * lam) * UP)

    if ball.epsilon == 0.0:  # the limit λ = ∞ costs nothing
        return at(0.0, loss)
    least, flips = samples.least_lambda, np.isfinite(samples.flip_costs)
    if not flips.any():
        return at(least, loss)
    kappa = np.where(flips, samples.flip_costs, 0.0)

    def with_flips(lam: float) -> float:
        gain = np.maximum(u - kappa * lam * DOWN, 0.0)
        return at(lam, loss + np.where(flips, gain, 0.0))

    found = with_flips(max(least, lam)) if lam is not None and math.isfinite(lam) else math.inf
    if found <= wanted:
        return found
    some = kappa > 0.0
    rates, costs = u[some] / kappa[some], samples.weights[some] * kappa[some]
    best = _quantile(rates, costs, ball.epsilon * float(samples.weights.sum()))
    return min(found, with_flips(max(least, best)))


def _quantile(rates: FloatArray, costs: FloatArray, budget: float) -> float:
    """A rate above which flips cost about the budget; any λ is allowed, this one is best."""
    if costs.sum() <= budget:
        return -math.inf
    order = np.argsort(-rates)
    above = np.cumsum(costs[order]) - costs[order]
    position = int(np.searchsorted(above, budget, side="right")) - 1
    return float(rates[order[position]])


class Lower(NamedTuple):
    """A lower bound; ``excess`` is ρ/ε - 1, and ``charge`` what the rest of the equations cost."""

    value: float
    excess: float
    charge: float


def lower_bound(samples: Instance, s: FloatArray, flip_share: FloatArray) -> Lower:
    """What no model promises less than, as far as (s, a) proves it."""
    w, total = samples.weights, samples.total_weight
    r = samples.signs * (w * (s - flip_share))
    size = w * (s + flip_share)
    gradient, columns = samples.columns(r, size, 4)
    at_zero = _offset(r, size, 4)
    left = _at_means(gradient, columns, at_zero)
    kappa = np.where(flip_share > 0.0, samples.flip_costs, 0.0)
    spent = exact_sum(w * flip_share * kappa) * (1.0 + gamma(4)) * UP
    charge = _charge(left.size[samples.free], columns.spread[samples.free])
    if samples.offset:
        charge += float(at_zero.size[0])
    value = exact_sum(w * entropy(s))
    return _scaled(samples, left, value / total, spent / total, charge / total)


def piece_lower_bound(samples: Instance, s: FloatArray, moves: Moves) -> Lower:
    """The same with domains: ``s`` of the samples as they are, and of their moved pieces."""
    domain, w, total = samples.domain, samples.weights, samples.total_weight
    assert domain is not None
    n, n_samples = samples.coef.size, s.size
    most = int(np.bincount(moves.sample, minlength=1).max(initial=0)) + 4
    # Masses may exceed the weight by rounding: then all of them are a hair too large.
    room = 1.0 - gamma(most)
    left_of = np.maximum(1.0 - np.bincount(moves.sample, moves.share, minlength=n_samples), 0.0)
    own, mass = w * left_of * room, w[moves.sample] * moves.share * room
    label = samples.signs[moves.sample] * np.where(moves.flipped, -1.0, 1.0)
    m = mass * moves.s
    r = samples.signs * own * s + np.bincount(moves.sample, label * m, minlength=n_samples)
    size = own * s + np.bincount(moves.sample, m, minlength=n_samples)
    gradient, columns = samples.columns(r, size, most)
    changes, costs = _moves(samples, domain, moves, label, m, r)
    value = np.append(gradient.value, np.zeros(2 * domain.n_groups)) + changes.value
    error = np.append(gradient.error, np.zeros(2 * domain.n_groups)) + changes.error
    at_zero = _offset(r, size, most)
    if not samples.offset:  # the least category of each group is what "none" is above it
        value[n + domain.n_groups :] -= at_zero.value[0]
        error[n + domain.n_groups :] += at_zero.error[0]
    found = Enclosed(value, (error + 4.0 * 2.0**-53 * np.abs(value)) * UP)
    left = _at_means(Enclosed(found.value[:n], found.error[:n]), columns, at_zero)
    spread = columns.spread.copy()
    widths = domain.upper - domain.lower
    varies = spread[domain.bounded] > _RANGE * widths
    spread[domain.bounded] = np.where(varies, spread[domain.bounded], widths)
    charge = _charge(left.size[samples.free], spread[samples.free])
    charge += float(at_zero.size[0]) if samples.offset else 0.0
    for g, group in enumerate(domain.groups):
        none = [n + domain.n_groups + g] if domain.with_none[g] else []
        places = np.append(group, none).astype(np.intp)
        upwards = np.maximum(found.value[places] + found.error[places], 0.0).sum()
        charge += max(float(upwards + found.value[n + g] + found.error[n + g]), 0.0) * UP
    entropies = exact_sum(own * entropy(s)) + exact_sum(mass * entropy(moves.s))
    spent = exact_sum(mass * costs) * (1.0 + gamma(domain.n_items + 8)) * UP
    return _scaled(samples, left, entropies / total, spent / total, charge / total)


def _moves(
    samples: Instance,
    domain: Domain,
    moves: Moves,
    label: FloatArray,
    m: FloatArray,
    r: FloatArray,
) -> tuple[Enclosed, FloatArray]:
    """What moves add to Σ m z: at the columns, then high and "none" of each group; their costs."""
    n, n_groups = samples.coef.size, domain.n_groups
    keys, values = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    most = int(np.bincount(moves.sample, minlength=1).max(initial=0)) + 4
    costs = np.where(moves.flipped, samples.flip_costs[moves.sample], 0.0)
    change = label * m
    for rows, part in samples.parts():
        now = domain.present(part)
        first, last = np.searchsorted(moves.sample, [rows.start, rows.stop])
        some = slice(int(first), int(last))
        own, bits = moves.sample[some] - rows.start, item_bits(moves.items[some], domain)
        none = n + n_groups + np.arange(n_groups)
        sample, group = np.nonzero(now < 0)
        keys.append(none[group])
        values.append(r[rows][sample])
        k, group = np.nonzero(bits[:, :n_groups])
        present = now[own[k], group]
        keys.append(np.where(present >= 0, present, none[group]))
        values.append(-change[some][k])
        down = label[some][k] < 0.0
        keys.append(n + group[down])
        values.append(change[some][k][down])
        k, item = np.nonzero(bits[:, n_groups:])
        j = item // 2
        to = np.where(item % 2 == 1, domain.upper[j], domain.lower[j])
        distance = to - domain.values(part)[own[k], j]
        keys.append(domain.bounded[j])
        values.append(change[some][k] * distance)
        costs[some] += bits[:, :n_groups] @ domain.group_costs
        costs[some] += np.bincount(k, domain.bounded_costs[j] * np.abs(distance), own.size)
    key, value = np.concatenate(keys), np.concatenate(values)
    sums, sizes = (sums_by_key(key, x, n + 2 * n_groups) for x in (value, np.abs(value)))
    return Enclosed(sums, gamma(most + 4) * sizes + TINY), costs


def item_bits(items: NDArray[np.uint8], domain: Domain) -> BoolArray:
    """Whether each item is moved."""
    return np.unpackbits(items, axis=1, count=domain.n_items).astype(bool)


def _offset(r: FloatArray, size: FloatArray, most: int) -> Enclosed:
    """Σ r, of which the intercept's equation wants 0."""
    error = gamma(most) * exact_sum(size) + TINY
    return Enclosed(np.array([exact_sum(r)]), np.array([error]))


def _at_means(gradient: Enclosed, columns: Columns, offset: Enclosed) -> Enclosed:
    """The gradient of the columns with the log-odds at their means for an intercept."""
    value = gradient.value - columns.mean * offset.value[0]
    error = gradient.error + np.abs(columns.mean) * (offset.error[0] + 2.0**-52 * offset.size[0])
    return Enclosed(value, (error + 2.0**-52 * np.abs(value)) * UP)


def _charge(sizes: FloatArray, spread: FloatArray) -> float:
    """What free columns can make of what is left; nothing if they are a multiple of the offset."""
    there = spread > 0.0
    with np.errstate(over="ignore"):
        return exact_sum(sizes[there] / spread[there]) * UP


def _scaled(samples: Instance, left: Enclosed, value: float, spent: float, charge: float) -> Lower:
    """Scale into the ball and charge."""
    kept, epsilon, total = samples.kept, samples.ball.epsilon, samples.total_weight
    with np.errstate(over="ignore"):
        used = norm_of(samples.ball.norm, left.size[kept] * samples.costs[kept]) / total
    used = (used + spent) * UP
    charge = ADMITTED * _CLASS * charge * UP
    value = value * (1.0 - LOGARITHMS) * DOWN - charge - TINY
    excess = 0.0
    if used > epsilon:
        excess = used / epsilon - 1.0 if epsilon > 0.0 else math.inf
        value *= epsilon / used * DOWN
    return Lower(value * DOWN if value > 0.0 else 0.0, excess, charge)


def entropy(s: FloatArray) -> FloatArray:
    """``-s log s - (1-s) log(1-s)``, zero at both ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = -(s * np.log(s) + (1.0 - s) * np.log1p(-s))
    return np.where((s > 0.0) & (s < 1.0), inside, 0.0)
