"""What an earlier result offers to a fit of other samples, or of the same ones once more."""

from __future__ import annotations

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from .problem import Problem
from .result import Result


def is_for(problem: Problem, start: Result) -> bool:
    """Whether a result is one for this radius and flip cost, as far as it says."""
    ball = start.ball
    return ball is None or (ball.epsilon, ball.kappa) == (problem.epsilon, problem.kappa)


def dual_point_of(problem: Problem, start: Result) -> tuple[State, State] | None:
    """``(s, a)`` of a result for as many samples, as states of the rows; None if it has none."""
    if start.dual is None or start.dual.s.shape != (problem.rows.n_samples,):
        return None
    return problem.rows.scatter(start.dual.s), problem.rows.scatter(start.dual.flip_share)


def flip_shares_of_start(problem: Problem, start: Result) -> State:
    """``a`` of a result, zeros if it has none for these samples."""
    point = dual_point_of(problem, start)
    return problem.rows.run(_no_flips)[0] if point is None else point[1]


def _no_flips(block: Block, _: None) -> tuple[FloatArray, tuple[()]]:
    return np.zeros(block.y.size), ()
