"""The front end of the interior point, which numbers, tables and several classes share.

A fit is: open the Newton system near the start, open the samples there, run the driver.  ``pair``,
``tables`` and ``classes`` add their coordinates and their model of the samples.

Derivation: docs/algorithm.md, (5) and section 11.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..dual.pair import parts
from ..problem.problem import Problem
from ..problem.result import Monitor
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import BlockFunction, BlockState, Rows, State
from ..rows.reductions import Sum
from . import driver
from ._newton import Newton
from .protocols import D, Samples
from .settings import SETTINGS

#: A compiled visit: rows of a block and its state, more arguments -> the new state and sums.
Kernel = Callable[..., tuple[Any, FloatArray]]

#: How exactly a gain is found, and what is clearly more than that (``greatest_gain``).
_GAIN_TOL = 1e-9
_CLEAR_GAIN = 1e-3


def compiled_rows(block: Block) -> object:
    """The rows of a block as compiled functions read them."""
    return block.compiled


class RowSamples(Samples[State, D]):
    """Samples that compiled functions visit block by block.

    ``table`` makes of a block what these functions read.
    """

    def __init__(self, rows: Rows, table: Callable[[Block], object] = compiled_rows) -> None:
        self.rows, self.table, self.visits = rows, table, 0

    @abstractmethod
    def open(self, coef: FloatArray, mu: float) -> State:
        """The state on the central path (5) at these coefficients."""

    def _visit(
        self, function: Kernel, state: State, *arguments: object
    ) -> tuple[State, FloatArray]:
        self.visits += 1
        state, (sums,) = self.rows.run(_visit, state, self.table, function, *arguments)
        return state, sums

    def _on_blocks(self, function: BlockFunction, state: State | None, *arguments: object) -> State:
        """The state that a block function makes."""
        new: State = self.rows.run(function, state, *arguments)[0]
        return new


def _visit(
    block: Block,
    state: BlockState,
    table: Callable[[Block], object],
    function: Kernel,
    *arguments: object,
) -> tuple[BlockState, tuple[Sum]]:
    state, sums = function(table(block), state, *arguments)
    return state, (Sum(sums),)


def run(
    samples: RowSamples[D],
    newton: Newton,
    mu: float,
    tol: float,
    max_iter: int,
    monitor: Monitor | None = None,
    *,
    estimated: bool = False,
) -> driver.Found[State, D]:
    """Open the samples where the Newton system was opened, and run the driver.

    ``estimated``: the run also ends when the estimated distance (11) is within ``tol``.
    """

    def report(n_iter: int, better_bound: Callable[[], float]) -> bool:
        distance = max(newton.best - newton.expected, newton.complementarity)
        stop = monitor is not None and monitor.report(
            n_iter, newton.best, newton.dual, newton.lam, better_bound
        )
        return stop or (estimated and bool(distance <= tol))

    with np.errstate(all="ignore"):
        state = samples.open(newton.trial(0.0), mu)
        return driver.run(samples, newton, state, mu, tol, max_iter, report)


def distinct_samples(
    problem: Problem, together: Callable[[Rows], Rows] = lambda rows: rows
) -> tuple[Problem, Callable[[State], State]]:
    """The problem without repeated samples, and how a dual point of it becomes one of all samples.

    ``together`` joins the blocks of the rows, if a method needs them as one.
    """
    given = problem.rows
    rows, origin = given.compact or (given, None)
    if (joined := together(rows)) is not rows:
        rows, origin = joined, np.arange(rows.n_samples) if origin is None else origin
    problem = problem if rows is given else replace(problem, rows=rows)

    def of_all(point: State) -> State:
        if origin is None:
            return point
        s, a = (given.scatter(rows.gather(each)[origin]) for each in parts(problem, point))
        return given.pair(s, a)

    return problem, of_all


def greatest_gain(posed: Callable[[float], tuple[Newton, RowSamples[Any]]], *costs: float) -> float:
    """The greatest gain per λ of a linear loss at a fixed λ.

    The gain may be as large as the largest of these costs of moves and flips, or as small as the
    least: costs are divided by the largest, then by less, until the gain is clearly more than the
    tolerance.
    """
    unit, mu = max(costs), SETTINGS.start_mu
    while True:
        newton, samples = posed(unit)
        x = np.zeros(newton.size)
        x[-1] = 1.0
        newton.open(x, mu)
        gain = gain_at_fixed_lambda(samples, newton, mu, _GAIN_TOL)
        if gain >= _CLEAR_GAIN or unit <= min(costs):
            return gain * unit
        unit = max(1e-3 * unit, min(costs))


def gain_at_fixed_lambda(samples: RowSamples[Any], newton: Newton, mu: float, tol: float) -> float:
    """The greatest gain at the λ that the system was opened with."""
    newton.pinned = True
    run(samples, newton, mu, tol, 200)
    return max(-float(newton.best), 0.0)
