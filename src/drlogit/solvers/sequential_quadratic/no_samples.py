"""The model of no samples at all: a quadratic program with nothing but the norm's cone (κ = ∞)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...rows.arrays import FloatArray
from ...rows.interface import Rows, State
from ..interior_point.predictor_corrector import Conditions, Lengths, Predicted, Pull

_ANY: Lengths = (math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class NoSamples:
    """A :class:`~..interior_point.predictor_corrector.SampleModel` that asks for nothing.

    Passes over an empty block would give the same, at most of what an iteration costs.
    """

    rows: Rows

    degree = 0.0

    def open(self, coefficients: FloatArray, lam: float, mu: float) -> State:
        return self.rows.scatter(np.zeros(0))

    def linearise(self, samples: State, lam: float, rough: bool) -> tuple[State, Conditions]:
        none, square = np.zeros(self.rows.n_columns), np.zeros((self.rows.n_columns,) * 2)
        return samples, Conditions._make([square, *[none] * 4, *[0.0] * 8])

    def gram_weights(self, here: State) -> State:
        return here

    def predict(
        self, here: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths, Predicted]:
        return here, _ANY, Predicted(0.0, 0.0, np.zeros(self.rows.n_columns), 0.0)

    def correct(
        self, predictor: State, dcoefficients: FloatArray, dlam: float, centre: float, share: float
    ) -> tuple[State, Lengths]:
        return predictor, _ANY

    def pull_back(self, step: State, trial: Lengths, centre: float) -> tuple[State, Pull]:
        return step, Pull(np.zeros(self.rows.n_columns), 0.0)

    def follow(
        self, pulled: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths]:
        return pulled, _ANY

    def advance(self, step: State, alphas: Lengths) -> tuple[State, float]:
        return step, 0.0

    def flip_share(self, samples: State) -> State:
        return samples

    def full_share(self, predictor: State) -> State:
        return predictor
