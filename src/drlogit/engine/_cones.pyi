"""Inequalities of size n: slacks and multipliers, and what a step asks of them."""

from typing import Any

from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray

class Cone:
    """The norm's cone, rows of groups and bounded features, or both."""

    degree: float

class RowCone(Cone):
    """Rows with at most two entries and a price."""

    def __init__(
        self,
        columns: NDArray[Any],
        entries: FloatArray,
        price: FloatArray,
        weight: FloatArray,
        last: int,
        costs: FloatArray = ...,
    ) -> None: ...

class PairwiseCones(Cone):
    """A cone for each pair of classes."""

    def __init__(
        self, norm: str, where: IndexArray, n_classes: int, stride: int, last: int
    ) -> None: ...
    def stiffness(self) -> FloatArray: ...
    def flow(self) -> FloatArray: ...

class Cones(Cone):
    """Several cones together."""

    def __init__(self, *cones: Cone) -> None: ...

def no_norm(last: int) -> Cone: ...
def cone_of(norm: str, where: IndexArray, last: int) -> Cone: ...
