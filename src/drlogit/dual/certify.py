"""Duality gaps: an upper bound on how far any point is from optimal.

*Correct* the solver's dual point if needed, *scale* it into the ball, and *charge* the remaining
residual of its equations (:mod:`drlogit.dual.bound`).

Derivation: docs/algorithm.md, section 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem.dual_point import DualPoint, Moves
from ..problem.problem import Problem
from ..problem.robust_loss import RobustLoss
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ._certificate import ROUNDING
from .label_points import corrected, dual_point, label_bound, with_flips
from .pieces import PieceMasses, piece_bound, pieces_of_model


@dataclass(frozen=True, eq=False)
class Certificate:
    """Primal value, certified lower bound, and the dual point that proves it.

    ``gap = primal - dual`` bounds the suboptimality; ``primal`` includes a bound on its rounding
    error.  ``point`` is a :class:`~drlogit.dual.label_points.LabelPoint`, or with domains
    :class:`PieceMasses`; None if it was not kept.
    """

    primal: float
    dual: float
    lam: float
    point: Any

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    def dual_point(self, problem: Problem) -> Any:
        """The point in plain numbers, of the length of the samples."""
        if self.point is None:
            return None
        if problem.domains is None:
            return dual_point(problem, self.point)
        return dual_point_of_pieces(problem, self.point)


def certify(
    problem: Problem,
    coefficients: FloatArray,
    *,
    point: Any = None,
    guess: float | None = None,
    tol: float = 0.0,
) -> Certificate:
    """Certificate of ``coefficients`` for (P).

    ``point`` is the dual point, by default that of the coefficients; in the worst case the bound
    is 0.  The bound is improved only until the gap is within ``tol``.  ``guess`` is an approximate
    λ.
    """
    if problem.domains is not None:
        level, primal = primal_value(problem, coefficients, guess)
        pieces = pieces_of_model(problem, coefficients) if point is None else point
        bound = piece_bound(problem, coefficients, pieces)
        return Certificate(primal, min(bound.value, primal), level, bound.point)
    found = best = label_bound(problem, coefficients, point)
    loss = problem.robust_loss(coefficients, scores=found.scores)
    level, primal = primal_value(problem, coefficients, guess, loss=loss)
    if found.value < primal - tol:
        if point is None and problem.flips:
            found = label_bound(problem, coefficients, with_flips(problem, found, level))
        other = corrected(problem, coefficients, found)
        best = max(best, found, other, key=lambda bound: bound.value)
    return Certificate(primal, min(best.value, primal), level, best.point)


def primal_value(
    problem: Problem,
    coefficients: FloatArray,
    guess: float | None = None,
    *,
    loss: RobustLoss | None = None,
) -> tuple[float, float]:
    """λ, by default the best one, and the objective there plus a bound on its rounding error."""
    # Moves that pay only at smaller λ do not matter.
    floor = 0.95 * guess if guess else 0.0
    loss = problem.robust_loss(coefficients, floor) if loss is None else loss
    lam, value = loss.best(problem.epsilon, guess)
    if lam <= floor and guess:  # the guess was too high
        return primal_value(problem, coefficients)
    # The loss has a slope of at most one in margins, or two in scores; ``size`` is their mean size.
    largest, domains = np.abs(np.atleast_2d(coefficients)).max(axis=0), problem.domains
    size = 2.0 * float(largest @ problem.rows.column_scale)
    if domains is not None:
        low, high = domains.ranges(coefficients)
        size += float((high - low).sum() + largest[domains.bounded] @ domains.widths)
    hidden = (problem.costs.size + 8) * size + (problem.rows.n_samples + 64) * abs(value)
    return lam, value + ROUNDING * (hidden + coefficients.size * abs(value))


def dual_point_of_pieces(problem: Problem, pieces: State) -> DualPoint:
    """The dual point of a result: pieces as shares of samples."""
    rows = problem.rows
    _, (parts,) = rows.run(_listed, rows.pair(pieces, rows.offsets))
    parts = sorted(parts, key=lambda part: part[0])  # blocks come in any order
    s, flips = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    columns = zip(*(part[3].arrays for part in parts), strict=True)
    return DualPoint(s, flips, Moves(*(np.concatenate(column) for column in columns)))


def pieces_of_dual_point(problem: Problem, dual: DualPoint | None) -> State | None:
    """The dual point of a result as pieces; None if it is not one for these samples."""
    domains, rows = problem.domains, problem.rows
    if dual is None or dual.moves is None or domains is None:
        return None
    n_bytes = -(-domains.n_items // 8)
    same = dual.s.shape == (rows.n_samples,) and dual.moves.items.shape[1] == n_bytes
    if not same or (dual.moves.flipped.any() and not math.isfinite(problem.kappa)):
        return None
    state = rows.pair(rows.scatter(dual.s), rows.offsets)
    return rows.run(_pieces, state, dual.moves)[0]


def _listed(block: Block, state: tuple[PieceMasses, float]) -> tuple[None, tuple[Sum]]:
    pieces, first = state
    n, own, w = block.y.size, pieces.own, block.weights
    moved = pieces.flipped | pieces.items.any(axis=1)
    kept = np.flatnonzero(moved & (pieces.q > 0.0))
    share = pieces.q[kept] / w[own[kept]]
    left = w * (1.0 - np.bincount(own[kept], share, minlength=n))
    base = np.bincount(own[~moved], pieces.m[~moved], minlength=n)
    s = np.divide(base, left, out=np.zeros(n), where=left > 0.0)
    flips = np.bincount(own[kept], share * pieces.flipped[kept], minlength=n)
    moves = Moves(
        own[kept] + int(first),
        pieces.flipped[kept],
        pieces.items[kept],
        share,
        np.minimum(pieces.m[kept] / pieces.q[kept], 1.0),
    )
    return None, (Sum([(first, np.clip(s, 0.0, 1.0), flips, moves)]),)


def _pieces(
    block: Block, state: tuple[FloatArray, float], moves: Moves
) -> tuple[PieceMasses, tuple[()]]:
    s, first = state
    n, w = block.y.size, block.weights
    begin, end = np.searchsorted(moves.sample, [first, first + n])
    mine = moves.picked(slice(begin, end))
    own = np.asarray(mine.sample - int(first), dtype=np.intp)
    q = w[own] * mine.share
    left = np.maximum(w - np.bincount(own, q, minlength=n), 0.0)
    # Samples without weight may be at levels that are none here: the point may be of other weights.
    there, some = np.flatnonzero(w > 0.0), np.flatnonzero(q > 0.0)
    none = np.zeros((there.size, mine.items.shape[1]), dtype=np.uint8)
    return PieceMasses(
        np.concatenate([there, own[some]]),
        np.concatenate([np.zeros(there.size, dtype=bool), mine.flipped[some]]),
        np.concatenate([none, mine.items[some]]),
        np.concatenate([left[there], q[some]]),
        np.concatenate([left[there] * s[there], q[some] * mine.s[some]]),
    ), ()
