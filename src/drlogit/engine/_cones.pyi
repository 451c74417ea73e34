import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray

class Cone:
    degree: float

def no_norm(last: int) -> Cone: ...
def cone_of(norm: str, where: IndexArray, last: int) -> Cone: ...

class PairRows(Cone):
    def __init__(
        self,
        columns: NDArray[np.int32],
        entries: FloatArray,
        price: FloatArray,
        weight: FloatArray,
        costs: FloatArray,
        last: int,
    ) -> None: ...

class BothCones(Cone):
    def __init__(self, one: Cone, two: Cone) -> None: ...
