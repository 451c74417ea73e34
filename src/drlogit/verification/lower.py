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

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..problem.dual_point import DualPoint, Moves
from ..problem.proof import BrokenProofError
from ..rows.arrays import FloatArray
from ..rows.chunks import in_memory
from .rounding import DOWN, TINY, UP, Enclosed, EnclosedSum, entropy, exact_sum, gamma, norm_of
from .samples import SamplesInBall

#: The class of models, and what rounding of means and deviations can make of it.
ADMITTED = 1e4
CLASS = 1.0 + 1e-9

#: A column counts as one whose standard deviation is at least its root mean square over this.
_FAR = 64.0

#: Of a bounded feature that varies by less than this share of its range, the range counts.
_RANGE = 1e-9


def pieces_of(point: DualPoint, samples: SamplesInBall) -> Moves:
    """The pieces that are not the samples themselves; ``BrokenProofError`` if they cannot be.

    A share a of a sample that is flipped is a piece, whose probability is 1 - s.
    """
    s, a = in_memory(point.s), in_memory(point.flip_share)
    flipped = np.flatnonzero(a)
    items = np.zeros((flipped.size, -(-samples.domain.n_items // 8)), dtype=np.uint8)
    flips = np.ones(flipped.size, dtype=bool)
    moves = point.moves or Moves(flipped, flips, items, a[flipped], 1.0 - s[flipped])
    if not _are_pieces(s, moves, samples):
        raise BrokenProofError(
            "infeasible dual point: it is not made of shares of the samples, each moved to where "
            "it can be"
        )
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
    if (np.bincount(sample, moves.share, 1) > 1.0 + 1e-15 * n_pieces).any():
        return False
    ends = domain.bits(moves.items)[:, domain.n_groups :]
    both = ends[:, ::2] & ends[:, 1::2]
    return not both.any() and bool(np.isfinite(samples.flip_costs[sample[moves.flipped]]).all())


def lower_bound(samples: SamplesInBall, s: FloatArray, moves: Moves) -> float:
    """The bound of ``s`` of the samples as they are, and of their moved pieces."""
    domain, total, n_samples = samples.domain, samples.total_weight, s.size
    most = int(np.bincount(moves.sample, minlength=1).max(initial=0)) + 8
    # Masses may exceed the weight by rounding: then all of them are a hair too large.
    weights = samples.weights * (1.0 - gamma(most))
    left = np.maximum(1.0 - np.bincount(moves.sample, moves.share, minlength=n_samples), 0.0)
    own, mass = weights * left, weights[moves.sample] * moves.share
    label = samples.signs[moves.sample] * np.where(moves.flipped, -1.0, 1.0)
    m = mass * moves.s
    r = samples.signs * own * s + np.bincount(moves.sample, label * m, minlength=n_samples)
    size = own * s + np.bincount(moves.sample, m, minlength=n_samples)
    sums = _sums(samples, r, size, moves, label * m, most)
    constant = Enclosed(np.array(exact_sum(r)), np.array(gamma(most) * exact_sum(size) + TINY))
    charge = float(constant.size) if samples.offset else 0.0
    spread, inside = spread_of(samples, sums.mean, sums.squares), samples.in_norm
    at_means = sums.columns.minus(sums.mean, constant) if samples.offset else sums.columns
    counted = samples.free & (spread > 0.0)  # others are a multiple of the constant
    with np.errstate(over="ignore"):
        charge += exact_sum(at_means.size[counted] / spread[counted])
        used = norm_of(samples.norm, at_means.size[inside] * samples.costs[inside])
    none = sums.none if samples.offset else sums.none.minus(1.0, constant)
    for g, group in enumerate(domain.groups):
        upwards = np.maximum(sums.columns.value[group] + sums.columns.error[group], 0.0).sum()
        if domain.with_none[g]:
            upwards += max(float(none.value[g] + none.error[g]), 0.0)
        charge += max(float(upwards + sums.high.value[g] + sums.high.error[g]), 0.0) * UP
    entropies = exact_sum(own * entropy(s)) + exact_sum(mass * entropy(moves.s))
    spent = exact_sum(mass * sums.costs) * (1.0 + gamma(domain.n_items + 8)) * UP
    used = (used + spent) / total * UP
    value = entropies / total * DOWN - ADMITTED * CLASS * charge / total * UP - TINY
    if used > samples.epsilon:
        value *= samples.epsilon / used * DOWN
    return float(max(value * DOWN, 0.0))


class _Sums(NamedTuple):
    """``Σ q s z`` at the columns, the highest category of each group and "none"; and moments."""

    columns: Enclosed
    high: Enclosed
    none: Enclosed
    mean: FloatArray
    squares: FloatArray
    costs: FloatArray  # of the moves


def _sums(
    samples: SamplesInBall,
    r: FloatArray,
    size: FloatArray,
    moves: Moves,
    change: FloatArray,
    most: int,
) -> _Sums:
    """All of them in one pass over the rows; r and ``change`` have ``most`` roundings of sizes."""
    n, n_groups = samples.costs.size, samples.domain.n_groups
    found, mean, squares = EnclosedSum(n + 2 * n_groups), np.zeros(n), np.zeros(n)
    costs = np.where(moves.flipped, samples.flip_costs[moves.sample], 0.0)
    for rows, part in samples.parts():
        Z, w = samples.shifted(part), samples.weights[rows]
        found.add(r[rows], size[rows], Z)
        mean += w @ Z
        squares += w @ Z**2
        if samples.domain.n_items:
            some = slice(*np.searchsorted(moves.sample, [rows.start, rows.stop]).tolist())
            without, moved, paid = _changes(samples, part, rows.start, moves.picked(some))
            found.add(r[rows], size[rows], without)
            found.add(change[some], np.abs(change[some]), moved)
            costs[some] += paid
    value, error = found.value(most + 4)
    columns, high, none = (
        Enclosed(value[first:last], error[first:last])
        for first, last in ((0, n), (n, n + n_groups), (n + n_groups, n + 2 * n_groups))
    )
    total = samples.total_weight
    return _Sums(columns, high, none, mean / total, squares / total, costs)


def _changes(
    samples: SamplesInBall, part: Any, first: int, moves: Moves
) -> tuple[Any, Any, FloatArray]:
    """Which samples have "none", what pieces change of their samples' rows, and at which cost.

    A category that is changed is left out (label +1) or becomes the highest one (label -1).
    """
    domain, n, n_groups = samples.domain, samples.costs.size, samples.domain.n_groups
    now, none = domain.present(part), n + n_groups + np.arange(n_groups)
    own, bits = moves.sample - first, domain.bits(moves.items)
    down = (samples.signs[moves.sample] > 0.0) == moves.flipped
    sample, without = np.nonzero(now < 0)
    k, g = np.nonzero(bits[:, :n_groups])
    present = now[own[k], g]
    high = down[k]
    there, item = np.nonzero(bits[:, n_groups:])
    j = item // 2
    distance = np.where(item % 2 == 1, domain.upper[j], domain.lower[j])
    distance -= domain.values(part)[own[there], j]
    values = np.concatenate([np.full(k.size, -1.0), np.ones(int(high.sum())), distance])
    columns = [np.where(present >= 0, present, none[g]), n + g[high], domain.bounded[j]]
    places = np.concatenate([k, k[high], there]), np.concatenate(columns)
    cost = bits[:, :n_groups] @ domain.group_costs
    cost += np.bincount(there, domain.bounded_costs[j] * np.abs(distance), own.size)
    width = n + 2 * n_groups
    return (
        sp.csr_array((np.ones(sample.size), (sample, none[without])), shape=(len(now), width)),
        sp.csr_array((values, places), shape=(own.size, width)),
        cost,
    )


def spread_of(samples: SamplesInBall, mean: FloatArray, squares: FloatArray) -> FloatArray:
    """Standard deviations of the columns, or root mean squares without an offset."""
    if not samples.offset:
        spread = np.sqrt(squares)
    else:
        variance = np.maximum(squares - mean**2, squares / _FAR**2)
        spread = np.sqrt(variance)
    bounded, widths = samples.domain.bounded, samples.domain.upper - samples.domain.lower
    varies = spread[bounded] > _RANGE * widths
    spread[bounded] = np.where(varies, spread[bounded], widths)
    return np.asarray(spread)
