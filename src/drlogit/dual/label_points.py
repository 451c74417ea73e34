"""Dual points of K ≥ 2 labels: p and a per sample, what they prove, and their correction.

For probabilities p and label shares a of each sample, both in the simplex, Fenchel and Young give

    F(B, b, λ)  ≥  Σ w H(p) + λ (ε - N(G) - Σ w κ (1 - a_y)) + ⟨G, B⟩ over the free columns,
    G = Σ w (p - a) xᵀ,     N(G) = max { ⟨G, B⟩ : ‖(B_j - B_k)/c‖_* ≤ 1 }

``N(G) = min Σ ‖c M_jk‖`` over flows M between the labels with divergence G.  Under ℓ1 transport
that is ``½ Σ c |G|``; else the solver's multipliers are such a flow but for rounding, and what its
divergence misses of G, r, is made up for by ``(r_j - r_k)/K``.  The bound speaks of models
with at most ``ADMITTED`` log-odds *between any two labels* per standard deviation of free columns
and at the means of all features, so what is left of G on free columns costs half of its size,
``½ Σ_k |G_k|``, times that.  As ``Σ_k |p_k - a_k| ≤ 2``, the rounding of half of all labels' sums
is that of one sum of samples.

Of two labels, "another one" comes before the observed one: their p and a are (s, 1 - s) and
(a, 1 - a) of

    Σ w_i H(s_i)    subject to   ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε    (transport norm)
                                 Σ w_i (s_i - a_i) z_i = 0                      (free columns)

A point that violates these constraints is scaled or charged by :mod:`drlogit.dual.bound`: scaled,
``p ← e_y + θ (p - e_y)`` and a likewise, it uses θ of ε and keeps θ of its entropy.

Derivation: docs/algorithm.md, (2), (12) to (14) and section 8.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from ..problem.dual_point import ClassDualPoint, DualPoint
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Max, Sum
from ._certificate import label_sums
from .bound import DualSums, lower_bound
from .coordinates import label_coordinates
from .correction import correction

#: A correction must leave this share of s to a sample, or s becomes zero.  If free columns separate
#: a sample, no small step can satisfy its equation.
_LEFT = 1e-2

#: Coefficients up to which the Hessian is formed; beyond, a point is scaled and charged as it is.
_DIRECT_LIMIT = 3000


class LabelPoint(NamedTuple):
    """A dual point on all rows: p and a of each block, (2, labels, samples), and their flow.

    Of two labels those of "another one", the first, are enough.
    The flow has a row for each pair of labels (k, j < k), k slowest, or is None.
    """

    shares: State
    flow: FloatArray | None = None


class LabelBound(NamedTuple):
    """A lower bound and the point that proves it, scaled into the ball."""

    value: float
    point: LabelPoint
    sums: DualSums  # of the point before it was scaled
    unscaled: State
    scores: State  # of the model, of all labels but the first


def label_bound(
    problem: Problem, coefficients: FloatArray, point: LabelPoint | None, share: float = 1.0
) -> LabelBound:
    """The bound of a point with a share of its flips, by default that of the coefficients.

    The bound is 0 if the model is none of those that it is about.
    """
    rows, coordinates = problem.rows, label_coordinates(problem)
    if point is None:
        point = LabelPoint(rows.run(_predicted, problem.scores(coefficients))[0])
    model, known = problem.differences(coefficients), rows.pair(point.shares, problem.positions)
    share, flow = share if problem.flips else 0.0, point.flow
    state, (found, chain, n_blocks) = rows.run(_sums, known, model, share)
    scores, shares = (rows.run(_part, state, k)[0] for k in (0, 1))
    entropy, flips = found[-2:].tolist()
    spent = problem.cost.spent(flips)
    if share == 1.0 and spent > problem.epsilon:  # flips alone are scaled down first
        return label_bound(problem, coefficients, point, problem.epsilon / spent)
    sums = DualSums(found[:-2], spent, entropy, chain + n_blocks, flow)
    value, factor = lower_bound(coordinates, problem.epsilon, sums)
    value = value if coordinates.admits(model.ravel()) else 0.0
    scaled = shares
    if factor != 1.0:
        scaled = rows.run(_scaled, rows.pair(shares, problem.positions), factor)[0]
        flow = None if flow is None else factor * flow
    return LabelBound(value, LabelPoint(scaled, flow), sums, shares, scores)


def corrected(problem: Problem, coefficients: FloatArray, found: LabelBound) -> LabelBound:
    """The bound of two labels after a correction of s; unchanged if no correction exists."""
    if problem.several or problem.rows.n_columns > _DIRECT_LIMIT:
        return found
    with np.errstate(over="ignore", invalid="ignore"):
        _, (hessian,) = problem.rows.run(_hessian, found.unscaled)
        room = max(problem.epsilon - found.sums.spent, 0.0) * (1.0 - 1e-12)
        coordinates = label_coordinates(problem)
        step = correction(coordinates, hessian, found.sums.gradient, coefficients, room)
        if not np.isfinite(step).all():
            return found
        moved, _ = problem.rows.run(_moved, found.unscaled, step)
        return label_bound(problem, coefficients, LabelPoint(moved))


def with_flips(problem: Problem, found: LabelBound, lam: float) -> LabelPoint:
    """The probabilities of a model with the flips that pay at λ."""
    rows = problem.rows
    state = rows.pair(rows.pair(found.scores, found.unscaled), problem.positions)
    return LabelPoint(rows.run(_flipped, state, problem.cost.kink(lam))[0])


def two_labels(rows: Rows, both: State) -> LabelPoint:
    """The dual point of two labels with these s and a, a pair per block."""
    return LabelPoint(rows.run(_of_two, both)[0])


def s_and_a(rows: Rows, point: LabelPoint) -> tuple[Any, Any]:
    """The s and a of two labels, of the length of the samples."""
    s, a = (rows.gather(rows.run(_of_other, point.shares, k)[0]) for k in (0, 1))
    return s, a


def of_samples(rows: Rows, origin: IndexArray, distinct: Rows, point: LabelPoint) -> LabelPoint:
    """The point of two labels of samples that are copies of distinct ones."""
    s, a = (rows.scatter(each[origin]) for each in s_and_a(distinct, point))
    return two_labels(rows, rows.pair(s, a))


def dual_point(problem: Problem, point: LabelPoint) -> DualPoint | ClassDualPoint:
    """A point in plain numbers, of the length of the samples."""
    rows = problem.rows
    if not problem.several:
        return DualPoint(*s_and_a(rows, point))
    p, a = (rows.gather(rows.run(_by_sample, point.shares, k)[0]) for k in (0, 1))
    return ClassDualPoint(p, a, rows.gather(problem.codes), point.flow)


# --- visits to a block ----------------------------------------------------------------------------


def _codes(positions: Any) -> Any:
    """The positions of several labels, or None (``Problem.positions``)."""
    return positions if isinstance(positions, np.ndarray) else None


def probabilities(block: Block, scores: FloatArray) -> tuple[FloatArray, tuple[()]]:
    """The probabilities of a model, (labels, samples)."""
    return np.asarray(softmax(np.vstack([np.zeros(block.y.size), scores]), axis=0)), ()


def _predicted(block: Block, scores: FloatArray) -> tuple[FloatArray, tuple[()]]:
    """The dual point of a model; no label flips."""
    p = flip_probability(scores) if len(scores) == 1 else probabilities(block, scores)[0]
    return np.stack([p, np.zeros_like(p)]), ()


def _sums(
    block: Block, known: tuple[FloatArray, Any], model: FloatArray, share: float
) -> tuple[tuple[FloatArray, FloatArray], tuple[Sum, Max, Sum]]:
    given, codes = known[0], _codes(known[1])
    scores, point, sums, chain = label_sums(
        block.compiled, codes, model, given, share, block.flip_multiples
    )
    return (scores, point), (Sum(sums), Max(chain), Sum(1.0))


def _part(block: Block, state: tuple[FloatArray, FloatArray], k: int) -> tuple[Any, tuple[()]]:
    return state[k], ()


def _scaled(block: Block, known: tuple[FloatArray, Any], factor: float) -> tuple[Any, tuple[()]]:
    point, codes = known
    scaled = factor * point
    if _codes(codes) is not None:
        scaled[:, codes, np.arange(block.y.size)] += 1.0 - factor
    return scaled, ()


def _hessian(block: Block, point: FloatArray) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.gram(block.weights * point[0, 0] * (1.0 - point[0, 0]))),)


def _moved(block: Block, point: FloatArray, step: FloatArray) -> tuple[FloatArray, tuple[()]]:
    s, a = point[:, 0]
    moved = s - s * (1.0 - s) * block.margins(step)
    return _of_two(block, (np.where(moved > _LEFT * s, moved, 0.0), a))


def _flipped(block: Block, known: tuple[Any, Any], kink: float) -> tuple[FloatArray, tuple[()]]:
    """The label shares above the kink; on it and below, labels stay as they are."""
    (scores, point), own = known
    costs = block.flip_costs(kink)
    if _codes(own) is None:
        return np.stack([point[0], scores > costs]), ()
    at = np.arange(block.y.size)
    ahead = np.vstack([np.zeros(at.size), scores])
    gain = ahead[own, at] - ahead
    worst = gain.argmax(axis=0)
    shares = np.zeros_like(ahead)
    shares[np.where(gain[worst, at] > costs, worst, own), at] = 1.0
    return np.stack([point[0], shares]), ()


def _of_two(block: Block, both: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, tuple[()]]:
    return np.stack(both)[:, None], ()


def _of_other(block: Block, point: FloatArray, k: int) -> tuple[FloatArray, tuple[()]]:
    return point[k, 0], ()


def _by_sample(block: Block, point: FloatArray, k: int) -> tuple[FloatArray, tuple[()]]:
    return np.ascontiguousarray(point[k].T), ()
