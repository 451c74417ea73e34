"""What an earlier result offers to a fit of other samples, or of the same ones once more."""

from __future__ import annotations

import numpy as np

from ..problem.problem import Problem
from ..problem.result import Result
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State


def is_for(problem: Problem, start: Result) -> bool:
    """Whether a result is one for this radius and flip cost, as far as it says."""
    ball = start.ball
    return ball is None or (ball.epsilon, ball.kappa) == (problem.epsilon, problem.kappa)


def dual_point_of(problem: Problem, start: Result) -> State | None:
    """``(s, a)`` of a result for as many samples, as a state of the rows; None if it has none."""
    dual, rows = start.dual, problem.rows
    if dual is None or dual.s.shape != (rows.n_samples,):
        return None
    return rows.pair(rows.scatter(dual.s), rows.scatter(dual.flip_share))


def flip_shares_of_start(problem: Problem, start: Result) -> State:
    """``a`` of a result, zeros if it has none for these samples."""
    return problem.rows.run(_flip_shares, dual_point_of(problem, start))[0]


def _flip_shares(
    block: Block, point: tuple[FloatArray, FloatArray] | None
) -> tuple[FloatArray, tuple[()]]:
    return np.zeros(block.y.size) if point is None else point[1], ()
