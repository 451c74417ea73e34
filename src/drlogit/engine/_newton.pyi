"""Everything of size n but the cones: the reduced system, steps and the proof's correction."""

from typing import Any

from ..dual._certificate import Coordinates
from ..dual.classes import ClassCoordinates
from ..rows.arrays import FloatArray
from ..rows.interface import State
from ._cones import Cone
from .protocols import System

class Newton:
    """The driver's half of an iterate: (x, λ), the cone, the factored system, the certificate."""

    cone: Cone
    size: int
    square: int
    scalars: int
    wide: System | None
    coordinates: Coordinates | ClassCoordinates
    epsilon: float
    complementarity: float
    mu: float
    primal: float
    best: float
    expected: float
    loss: float
    dual: float
    held: bool
    pinned: bool

    def __init__(
        self,
        scale: FloatArray,
        epsilon: float,
        cone: Cone,
        coordinates: Coordinates | ClassCoordinates,
        length: float,
        wide: System | None = None,
    ) -> None: ...
    @property
    def lam(self) -> float: ...
    def open(self, x: FloatArray, mu: float) -> None: ...
    def linearise(self, sums: FloatArray, curved: State | None = None) -> bool: ...
    def residuals(self) -> FloatArray: ...
    def begin_proof(self) -> None: ...
    def end_proof(self) -> None: ...
    def correction(self) -> FloatArray: ...
    def prove(self, sums: FloatArray) -> float: ...
    def decrement(self) -> float: ...
    def predictor(self) -> FloatArray: ...
    def corrector(
        self, centre: float, share: float, predicted: FloatArray, state: Any = None
    ) -> FloatArray: ...
    def longest(self) -> tuple[float, float]: ...
    def after(self, primal: float, dual: float, predicted: FloatArray) -> float: ...
    def parabola(self) -> tuple[float, float]: ...
    def trial(self, primal: float) -> FloatArray: ...
    def best_model(self) -> FloatArray: ...
    def move(self, primal: float, dual: float) -> None: ...
