"""The borders of the engine: what the driver needs of samples, and Newton's method of a system.

A cone is what ``_cones.pxd::Cone`` declares, since only compiled code calls it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import BlockState, Rows, State
from ..rows.reductions import Sum

#: A dual point of a model of the samples.  The driver only passes it on.
D = TypeVar("D")

#: A compiled visit: rows of a block and its state, more arguments -> the new state and sums.
Kernel = Callable[..., tuple[Any, FloatArray]]


def compiled_rows(block: Block) -> object:
    """The rows of a block as compiled functions read them."""
    return block.compiled


class Samples(ABC, Generic[D]):
    """A model of the samples.  Each method is one visit to the rows by a compiled function.

    Methods leave the state that they are given as it is and return a new one, with an array of sums
    (``_sums``).  Vectors are (β, b, λ) in the user's units.  ``table`` makes of a block what the
    compiled functions read.
    """

    #: Loss above that of the known pieces from which the driver refuses a step.
    most_missing: float = math.inf

    def __init__(self, rows: Rows, table: Callable[[Block], object] = compiled_rows) -> None:
        self.rows, self.table, self.visits = rows, table, 0

    def visit(self, function: Kernel, state: State, *arguments: object) -> tuple[State, FloatArray]:
        """The new state and the sums of a compiled function."""
        self.visits += 1
        state, (sums,) = self.rows.run(_visit, state, self.table, function, *arguments)
        return state, sums

    @abstractmethod
    def open(self, coef: FloatArray, mu: float) -> State:
        """The state on the central path (5) at these coefficients."""

    @abstractmethod
    def linearise(
        self, state: State, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[State, FloatArray]:
        """Move by these lengths along the direction of the state, to ``coef``: conditions there."""

    @abstractmethod
    def predict(self, state: State, dcoef: FloatArray) -> tuple[State, FloatArray]:
        """Follow a direction with all products to zero: step lengths and second-order terms."""

    @abstractmethod
    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        """Follow a direction with products to ``centre``: step lengths and the loss along it."""

    @abstractmethod
    def certify(self, state: State, point: D | None, dcoef: FloatArray) -> tuple[D, FloatArray]:
        """Correct a dual point, that of the state if it is None: its equations."""

    def flow_of(self, point: D) -> FloatArray | None:
        """The flow of a dual point between several labels."""
        return None

    def with_missing(
        self, state: State, trial: State, coef: FloatArray, mu: float
    ) -> tuple[State, FloatArray]:
        """Stay, with the pieces that were missing at a trial point (a null step)."""
        raise NotImplementedError("no step of these samples is refused")

    def curved(self, state: State) -> Any:
        """What a system needs besides sums."""
        raise NotImplementedError("the sums of these samples suffice")


def _visit(
    block: Block,
    state: BlockState,
    table: Callable[[Block], object],
    function: Kernel,
    *arguments: object,
) -> tuple[BlockState, tuple[Sum]]:
    state, sums = function(table(block), state, *arguments)
    return state, (Sum(sums),)


#: The samples' terms of a step: their state (None: the one that a system was built with), the
#: centre of the products, and the share of second-order terms.
Terms: TypeAlias = tuple[Any, float, float]


class System(Protocol):
    """The linear system of a step where it is not one n×n matrix."""

    #: The samples' terms times the last solution, where they are not in the right side.
    work: float

    #: Products with the rows so far.
    products: int

    #: Whether the samples form their terms in the right side.
    terms: bool

    #: Numbers of the matrix that the sums of a linearisation begin with; 0 if there is none.
    square: int

    def build(self, curved: Any, matrix: FloatArray, cone: FloatArray, pinned: bool) -> bool:
        """Set up from ``Samples.curved``, that matrix, and arrays in scaled coordinates, λ last.

        ``cone`` has the diagonal of the cone's matrix, the v of its ``v vᵀ``, and λ's column.
        ``pinned``: λ does not move.
        """

    def solve(self, rhs: FloatArray, rtol: float, terms: Terms | None) -> FloatArray:
        """(dx, dλ) for a right side, to a residual of ``rtol``.

        ``terms`` (None in a correction) are in the right side if the samples form them there.
        """
