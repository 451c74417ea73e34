"""What no model promises less than, as far as a dual point proves it, rounded downwards.

Let every sample be cut into pieces: rows z at cost d (the sample moved, perhaps with the other
label), masses q and probabilities s.  With ``g = Σ q s z``, every model x and ``λ ≥ ‖β/c‖_*``,

    promise  ≥  Σ q (h(z·x) - λd) + ελ  ≥  Σ q H(s) - g·x + λ (ε - Σ q d)

because ``h(v) ≥ H(s) - s v``.  Of g·x, what the norm bounds is at most ``λ ‖c g‖``, and the rest is
charged: it is about models whose free coefficients are at most ``ADMITTED`` log-odds per standard
deviation, whose categories of a group are as close to each other, and whose log-odds at the
reference point (means of the columns, least category of each group) are within it.  Where
``ρ = ‖c g‖ + Σ q d`` exceeds ε, all masses are scaled by ε/ρ, which takes as much of everything.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.dual_point import DualPoint, Moves
from ..problem.parameters import ADMITTED
from ..problem.proof import BrokenProofError
from ..rows.arrays import FloatArray
from ..rows.chunks import in_memory
from .rounding import (
    DOWN,
    TINY,
    UP,
    Enclosed,
    EnclosedSum,
    entropy,
    exact_sum,
    gamma,
    matrix_norm,
    norm_of,
)
from .samples import SamplesInBall

#: What rounding of means and deviations can make of the class of models.
_CLASS = 1.0 + 1e-9


def _pieces_of(point: DualPoint, samples: SamplesInBall) -> Moves:
    """The pieces that are not the samples themselves; ``BrokenProofError`` if they cannot be.

    A share a of a sample that is flipped is a piece, whose probability is 1 - s.
    """
    s, a = in_memory(point.s), in_memory(point.flip_share)
    flipped = np.flatnonzero(a)
    items = np.zeros((flipped.size, -(-samples.domain.n_items // 8)), dtype=np.uint8)
    flips = np.ones(flipped.size, dtype=bool)
    moves = point.moves or Moves(flipped, flips, items, a[flipped], 1.0 - s[flipped])
    if not _are_pieces(s, moves, samples):
        raise BrokenProofError("infeasible dual point: no shares of samples, or moved elsewhere")
    return moves


def _are_pieces(s: FloatArray, moves: Moves, samples: SamplesInBall) -> bool:
    sample, n_pieces, domain = moves.sample, moves.sample.size, samples.domain
    if {len(array) for array in moves.arrays} != {n_pieces} or (
        moves.items.shape[1] != -(-domain.n_items // 8)
    ):
        return False
    if n_pieces and (sample[0] < 0 or sample[-1] >= s.size or (np.diff(sample) < 0).any()):
        return False
    if not all(((x >= 0.0) & (x <= 1.0)).all() for x in (s, moves.s, moves.share)):
        return False
    if (np.bincount(sample, moves.share, 1) > 1.0).any():
        return False
    ends = samples.bits(moves.items)[:, domain.n_groups :]
    both = ends[:, ::2] & ends[:, 1::2]
    return not both.any() and bool(np.isfinite(samples.flip_costs[sample[moves.flipped]]).all())


def lower_bound(samples: SamplesInBall, point: DualPoint) -> float:
    """The bound of a point: ``s`` of the unchanged samples, and their moved pieces."""
    s, moves, domain = in_memory(point.s), _pieces_of(point, samples), samples.domain
    n_samples, n, n_groups = s.size, samples.costs.size, domain.n_groups
    most = int(np.bincount(moves.sample, minlength=1).max(initial=0)) + 8
    # Masses may exceed the weight by rounding: then all of them are a hair too large.
    weights = samples.weights * (1.0 - gamma(most))
    left = np.maximum(1.0 - np.bincount(moves.sample, moves.share, minlength=n_samples), 0.0)
    own, mass = weights * left, weights[moves.sample] * moves.share
    label = samples.signs[moves.sample] * np.where(moves.flipped, -1.0, 1.0)
    m = mass * moves.s
    r = samples.signs * own * s + np.bincount(moves.sample, label * m, minlength=n_samples)
    size = own * s + np.bincount(moves.sample, m, minlength=n_samples)
    # The columns, then the highest category of each group, then "none" of each.
    found, costs = EnclosedSum(n + 2 * n_groups), np.zeros(moves.sample.size)
    costs[moves.flipped] = samples.flip_costs[moves.sample[moves.flipped]]
    for rows, part in samples.parts():
        found.add(r[rows], size[rows], samples.shifted(part))
        if domain.n_items:
            some = slice(*np.searchsorted(moves.sample, [rows.start, rows.stop]).tolist())
            without, moved, paid = _changes(samples, part, rows.start, moves.picked(some))
            found.add(r[rows], size[rows], without)
            found.add((label * m)[some], m[some], moved)
            costs[some] += paid
    sums, constant = found.value(most + 4), constant_of(r, size, most)
    columns = sums.part(slice(n))
    at_means, charge = charged(samples, columns, constant)
    with np.errstate(over="ignore"):
        inside = at_means.size[samples.in_norm] * samples.costs[samples.in_norm]
        used = norm_of(samples.norm, inside)
    if samples.matrix is not None and samples.epsilon > 0.0:
        used = matrix_norm(samples.matrix, at_means)
    high, none = sums.part(slice(n, n + n_groups)), sums.part(slice(n + n_groups, None))
    none = none if samples.offset else none.minus(1.0, constant)
    for g, group in enumerate(domain.groups):
        upwards = columns.part(group).upper.clip(min=0.0).sum()
        if domain.with_none[g]:
            upwards += max(float(none.upper[g]), 0.0)
        charge += max(float(upwards + high.upper[g]), 0.0) * UP
    entropies = exact_sum(own * entropy(s)) + exact_sum(mass * entropy(moves.s))
    spent = exact_sum(mass * costs) * (1.0 + gamma(domain.n_items + 8)) * UP
    return proven(samples, entropies, charge, used + spent)


def constant_of(r: FloatArray, size: FloatArray, roundings: int) -> Enclosed:
    """``Σ r``, where each r carries this many rounding errors of its size."""
    error = gamma(roundings) * exact_sum(size) + TINY
    return Enclosed(np.array(exact_sum(r)), np.array(error))


def charged(
    samples: SamplesInBall, columns: Enclosed, constant: Enclosed
) -> tuple[Enclosed, float]:
    """Sums by the log-odds at the means instead of the offset, and what is left of free ones."""
    (mean, spread), charge = samples.moments, 0.0
    if samples.offset:
        columns, charge = columns.minus(mean, constant), float(constant.size)
    counted = samples.free & (spread > 0.0)  # others are a multiple of the constant
    with np.errstate(over="ignore"):
        return columns, charge + exact_sum(columns.size[counted] / spread[counted])


def proven(samples: SamplesInBall, entropies: float, charge: float, used: float) -> float:
    """The bound from the sums of a point, in weights that are not scaled yet."""
    total = samples.total_weight
    value = entropies / total * DOWN - ADMITTED * _CLASS * charge / total * UP - TINY
    used = used / total * UP
    if not used <= samples.epsilon:  # NaN is too much, too
        value *= samples.epsilon / used * DOWN
    return float(value * DOWN) if value > 0.0 else 0.0


def admits(samples: SamplesInBall, coef: FloatArray, intercept: Any) -> bool:
    """Whether bounds are about a model; of several classes, about all differences of two."""
    if coef.ndim > 1:
        pairs = combinations(zip(coef, intercept, strict=True), 2)
        return all(admits(samples, B - C, float(b - c)) for (B, b), (C, c) in pairs)
    (mean, spread), domain = samples.moments, samples.domain
    coef, offset = samples.moved(samples.shift, coef, intercept)
    odds = [np.abs(coef * spread)[samples.free].max(initial=0.0)]
    at, error = mean * coef, gamma(4) * exact_sum(np.abs(mean * coef))
    at[samples.grouped] = 0.0
    for g, group in enumerate(domain.groups):
        levels = np.append(coef[group], 0.0) if domain.with_none[g] else coef[group]
        odds.append(np.ptp(levels))
        at[group[0]] = levels.min()
    if samples.offset:
        odds.append(abs(exact_sum(np.append(at, offset))) + error)
    return all(each * UP <= ADMITTED * _CLASS for each in odds)


def _changes(
    samples: SamplesInBall, part: Any, first: int, moves: Moves
) -> tuple[Any, Any, FloatArray]:
    """Which samples have "none", what pieces change of their samples' rows, and at which cost.

    A category that is changed is left out (label +1) or becomes the highest one (label -1).
    """
    domain, n, n_groups = samples.domain, samples.costs.size, samples.domain.n_groups
    now, none = samples.present(part), n + n_groups + np.arange(n_groups)
    own, bits = moves.sample - first, samples.bits(moves.items)
    down = (samples.signs[moves.sample] > 0.0) == moves.flipped
    sample, without = np.nonzero(now < 0)
    k, g = np.nonzero(bits[:, :n_groups])
    present = now[own[k], g]
    high = down[k]
    there, item = np.nonzero(bits[:, n_groups:])
    j = item // 2
    distance = np.where(item % 2 == 1, domain.upper[j], domain.lower[j])
    distance -= samples.values(part)[own[there], j]
    cost = bits[:, :n_groups] @ domain.group_costs
    cost += np.bincount(there, domain.bounded_costs[j] * np.abs(distance), own.size)
    values = np.concatenate([np.repeat([-1.0, 1.0], (k.size, int(high.sum()))), distance])
    category = np.where(present >= 0, present, none[g])
    columns = np.concatenate([category, n + g[high], domain.bounded[j]])
    places = np.concatenate([k, k[high], there]), columns
    width = n + 2 * n_groups
    return (
        sp.csr_array((np.ones(sample.size), (sample, none[without])), shape=(len(now), width)),
        sp.csr_array((values, places), shape=(own.size, width)),
        cost,
    )
