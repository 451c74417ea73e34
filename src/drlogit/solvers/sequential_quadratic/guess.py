"""A point to start from, out of an earlier result for this or another problem."""

from __future__ import annotations

import math

import numpy as np

from ...problem.problem import Problem
from ...problem.result import Result
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.interface import State
from ...rows.reductions import Sum
from .method import Guess

#: Where another λ could be better for the coefficients by more than this, in nats, the earlier one
#: belonged to another norm or radius.
_FOREIGN = 1e-3

#: The objective of a model that knows nothing.
_CONSTANT = math.log(2.0)


def guess_from(problem: Problem, start: Result) -> Guess | None:
    """The result's model as a start for ``problem``; None if a constant would be a better one."""
    coefficients = problem.join(start.coef, start.intercept)
    if not np.isfinite(coefficients).all():
        return None
    # No step moves coefficients of columns without an entry, which other samples may have had.
    coefficients[problem.rows.column_scale == 0.0] = 0.0
    least = problem.dual_norm(coefficients)
    lam, spread = max(start.lam, least), start.info.get("spread")
    predicted = start.info.get("predicted")
    if predicted is not None:  # for this problem, with its λ, and its objective was looked at
        return Guess(coefficients, lam, spread) if least > 0.0 and predicted < _CONSTANT else None
    margins = problem.margins(coefficients)
    if not problem.allows(coefficients, start.lam) or _foreign(problem, margins, lam, least):
        lam = problem.best_lambda(coefficients, margins)
    if not (least > 0.0 and problem.objective_at(margins, lam) < _CONSTANT):
        return None
    return Guess(coefficients, lam, spread)


def _foreign(problem: Problem, margins: State, lam: float, least: float) -> bool:
    """Whether the slope in λ promises much of another one, down to ``least`` or up to twice λ."""
    pair = problem.cost.pair
    _, (above,) = problem.rows.run(_weight_above, margins, pair.kink(lam))
    slope = problem.epsilon - pair.spent(float(above))
    return slope * (lam - least) > _FOREIGN if slope > 0.0 else -slope * lam > _FOREIGN


def _weight_above(block: Block, u: FloatArray, kink: float) -> tuple[FloatArray, tuple[Sum]]:
    return u, (Sum(float(block.weights[u > kink].sum())),)
