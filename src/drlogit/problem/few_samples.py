"""Free equations met by few samples, where weights or columns differ by too little or too much.

The matrix M of :mod:`drlogit.problem.free_equations` weighs samples by ``w_i s_i (1-s_i)`` and
squares the columns: where weights lie twelve orders apart, or columns agree to seven digits,
rounding of it leaves no proof.  But as many samples as there are columns can take up what is left,
and the matrix of their rows has no weights and is not squared:

*Lemma.*  Let B be as many samples as independent free columns, ``Σ_B η_i z_iF = ρ``, and
``|η_i| ≤ ½ w_i s_i (1-s_i)``.  Then ``s'_i = s_i - η_i/w_i`` for i in B, and ``s' = s`` elsewhere,
lies in [0, 1], satisfies the free equations exactly, and

    Σ w_i H(s'_i) ≥ Σ w_i H(s_i) - Σ_B |η_i| (|log(s_i/(1-s_i))| + ½).

*Proof.*  On the way to s' both s and 1-s stay above half of what they are, one of them above all:
``H(s') ≥ H(s) + H'(s)δ - δ²/(s(1-s))`` with ``δ = -η/w``; and ``w δ²/(s(1-s)) ≤ ½ |η|``.  ∎

The sum of a penalised column j moves by ``Σ_B |η_i z_ij|`` at most.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Stack
from .dual_bounds import DualBound, paid_bound
from .dual_candidates import Candidate, DualState
from .free_equations import UNIT, are_dependent
from .problem import Problem

#: Entries of X up to which samples are chosen: it takes dense factors of all of them.
_MOST_ENTRIES = 1 << 20

#: A column counts as independent while this much of it is left by the others.
_INDEPENDENT = 1e-10

#: Steps towards the equations.
_STEPS = 3

#: The inverse must be known this well.
_ACCURACY = 0.1

#: Entries below are too faint to be scaled.
_FAINT = 1e-250


def bound_by_few(problem: Problem, candidate: Candidate) -> DualBound | None:
    """The bound of an exact point that differs in few samples; None if there is no proof."""
    rows = problem.rows
    if rows.n_samples * rows.n_columns > _MOST_ENTRIES:
        return None
    candidate = candidate.with_curvature(problem)
    active, (Z, numbers) = rows.run(_active_rows, candidate.state)
    weights, s = numbers.T
    free = np.flatnonzero(problem.free)
    largest = np.abs(Z[:, free]).max(axis=0, initial=0.0)
    if ((largest > 0.0) & (largest < _FAINT)).any():
        return None
    free = free[largest > 0.0]
    size = np.exp2(np.ceil(np.log2(largest[largest > 0.0])))
    scaled = Z[:, free] / size
    chosen = _spanning(problem, active, scaled, free, size)
    if chosen is None or chosen.size > len(Z):
        return None
    room = weights * s * (1.0 - s)
    columns = np.sqrt(room)[:, None] * scaled[:, chosen]
    triangle = qr(columns, mode="economic")[1]
    if not (np.diagonal(triangle) != 0.0).all():
        return None
    for _ in range(_STEPS):
        left = (candidate.sums(problem, free)[0] / size)[chosen]
        step = np.zeros(rows.n_columns)
        step[free[chosen]] = _semi_normal(triangle, left) / size[chosen]
        shifted = candidate.shifted(problem, step)
        if shifted is None:
            return None
        candidate = shifted
    _, order = qr(columns.T, mode="r", pivoting=True)
    few = order[: chosen.size]
    _, (_, numbers) = rows.run(_active_rows, candidate.state)
    if len(numbers) < len(Z):
        return None  # a step has emptied samples
    weights, s = numbers.T
    room = weights * s * (1.0 - s)
    inverse = _inverse(scaled[np.ix_(few, chosen)].T)
    if inverse is None:
        return None
    left, noise = candidate.sums(problem, free)
    moved = inverse @ ((np.abs(left) + noise) / size)[chosen]
    if not ((moved <= 0.5 * room[few]) & (room[few] > 0.0)).all():
        return None
    # Whatever factor from ½ to 1 the point is to be scaled by: that adds log 2 to |log s| at most.
    lost = float(moved @ (np.abs(np.log(s[few])) + np.abs(np.log1p(-s[few])) + 1.2))
    change = moved @ np.abs(Z[few]) + candidate.rounding(problem)
    return paid_bound(problem, candidate, lost, change)


def _spanning(
    problem: Problem, active: State, scaled: FloatArray, free: IndexArray, size: FloatArray
) -> IndexArray | None:
    """Independent columns of which the others are combinations; None if that is not sure."""
    triangle, order = qr(scaled / np.linalg.norm(scaled, axis=0), mode="r", pivoting=True)
    left = np.abs(np.diagonal(triangle))
    rank = int((left > _INDEPENDENT).sum())
    chosen, others = np.sort(order[:rank]), np.sort(order[rank:])
    if not others.size:
        return chosen
    shares = np.linalg.lstsq(scaled[:, chosen], scaled[:, others], rcond=None)[0]
    units = 1.0 / size
    dependent = are_dependent(problem.rows, active, free, chosen, others, shares, units)
    return chosen if dependent else None


def _semi_normal(triangle: FloatArray, right: FloatArray) -> FloatArray:
    """The solution c of ``AᵀA c = right`` from the triangle of A, without squaring A."""
    first = solve_triangular(triangle, right, trans=1, check_finite=False)
    return np.asarray(solve_triangular(triangle, first, check_finite=False))


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """Bounds on the entries of the inverse; None where rounding leaves doubts about it."""
    lengths = np.abs(matrix).max(axis=0, initial=0.0)
    unit = matrix / lengths
    try:
        inverse = np.linalg.inv(unit)
    except np.linalg.LinAlgError:
        return None
    n = len(unit)
    defect = np.abs(np.eye(n) - inverse @ unit)
    defect += (n + 4.0) * UNIT * (np.abs(inverse) @ np.abs(unit))
    doubt = float(np.max(defect.sum(axis=1), initial=0.0))
    if not doubt <= _ACCURACY:
        return None
    # The true inverse is (I - E)⁻¹ times this one, with ‖E‖ ≤ doubt.
    known = np.abs(inverse)
    known = known + doubt / (1.0 - doubt) * known.max(axis=0, initial=0.0)
    return np.asarray((1.0 + 1e-9) * known / lengths[:, None])


def _active_rows(block: Block, state: DualState) -> tuple[BoolArray, tuple[Stack, Stack]]:
    """Samples that take part in the equations: their rows, and their weights and doubts."""
    s, a, _ = state
    active = ((s > 0.0) | (a > 0.0)) & (block.weights > 0.0)
    Z = np.array([block.margins(unit)[active] for unit in np.eye(block.n_columns)]).T
    return active, (Stack(Z), Stack(np.column_stack([block.weights, s])[active]))
