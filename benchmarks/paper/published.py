"""What Li, Huang and So (2019) print, with their settings.

ε = 0.1, κ = 1 in Tables 1, 2, 4 and Figures 2, 3; ℓ1 transport (they write ‖β‖_∞ ≤ λ) and no
intercept throughout.  Their machine: MATLAB R2018a, Intel Core i5-8600, Windows 10.
"""

from __future__ import annotations

from typing import Any, NamedTuple

EPSILON, KAPPA = 0.1, 1.0

#: The model of Tables 1, 2, 4 and Figures 2, 3, but for the intercept, which there is none.
MODEL: dict[str, Any] = {"epsilon": EPSILON, "kappa": KAPPA, "norm": "l1"}

#: Of the adaptive penalty: ρ₀ and γ; and of the stopping rule ‖Zβ - μ‖ ≤ 1e-6.
RHO, GAMMA, RESIDUAL = 0.001, 1.05, 1e-6

#: Penalty of the non-adaptive LP-ADMM by size, from the authors' script; the text gives no value.
CONSTANT_RHO: dict[tuple[int, int], float] = {
    (10, 3): 0.01,
    (100, 3): 0.01,
    (100, 10): 0.005,
    (500, 10): 0.005,
}
CONSTANT_RHO_OTHERS = 0.001

#: γ of the released script for Table 2.
RELEASED_GAMMA = 1.04

#: λ of the β-subproblem in Figure 3.
LAMBDA = 0.1

#: Of Table 3: the pair that their grid search chose, the share of training data, the trials.
TABLE_3_EPSILON, TABLE_3_KAPPA = 0.3, 7.0
TRAINING_SHARE, TRIALS = 0.6, 30


class SyntheticTimes(NamedTuple):
    """A line of Table 1: seconds, mean and spread."""

    yalmip: tuple[float, float]
    constant: tuple[float, float]
    adaptive: tuple[float, float]
    ratio: int


TABLE_1: dict[tuple[int, int], SyntheticTimes] = {
    (10, 3): SyntheticTimes((2.40, 0.18), (0.06, 0.02), (0.07, 0.02), 37),
    (100, 3): SyntheticTimes((3.29, 0.05), (0.14, 0.03), (0.06, 0.01), 54),
    (100, 10): SyntheticTimes((3.34, 0.03), (0.21, 0.03), (0.08, 0.01), 44),
    (500, 10): SyntheticTimes((7.92, 0.17), (0.58, 0.16), (0.14, 0.01), 55),
    (500, 50): SyntheticTimes((8.53, 0.17), (0.60, 0.03), (0.24, 0.01), 36),
    (1000, 50): SyntheticTimes((16.44, 0.44), (0.96, 0.07), (0.25, 0.02), 67),
    (1000, 100): SyntheticTimes((19.16, 0.48), (1.69, 0.11), (0.38, 0.01), 51),
    (3000, 50): SyntheticTimes((65.87, 1.54), (2.40, 0.15), (0.32, 0.01), 206),
    (3000, 100): SyntheticTimes((113.94, 2.05), (3.84, 0.20), (0.47, 0.04), 243),
    (5000, 100): SyntheticTimes((287.67, 2.67), (7.08, 0.66), (0.64, 0.03), 451),
    (10000, 10): SyntheticTimes((283.25, 18.98), (5.03, 0.76), (0.50, 0.02), 563),
    (10000, 100): SyntheticTimes((1165.40, 26.52), (19.75, 3.74), (1.37, 0.12), 852),
}


class AdultTimes(NamedTuple):
    """A line of Table 2: size, and seconds."""

    n_samples: int
    n_features: int
    yalmip: float
    ours: float
    ratio: int


TABLE_2: dict[str, AdultTimes] = {
    "a1a": AdultTimes(1605, 123, 25.63, 2.93, 9),
    "a2a": AdultTimes(2265, 123, 39.20, 3.53, 11),
    "a3a": AdultTimes(3185, 123, 57.79, 4.26, 14),
    "a4a": AdultTimes(4781, 123, 105.32, 4.56, 23),
    "a5a": AdultTimes(6414, 123, 155.42, 4.39, 35),
    "a6a": AdultTimes(11220, 123, 413.65, 4.68, 88),
    "a7a": AdultTimes(16100, 123, 738.12, 5.41, 137),
    "a8a": AdultTimes(22696, 123, 1396.45, 5.81, 240),
    "a9a": AdultTimes(32561, 123, 2993.30, 7.08, 423),
}


class RealTime(NamedTuple):
    """A line of Table 4: size, seconds, and the share of zeros."""

    n_samples: int
    n_features: int
    ours: float
    sparsity: float


TABLE_4: dict[str, RealTime] = {
    "mushrooms": RealTime(8123, 112, 8.47, 0.8125),
    "phishing": RealTime(11055, 68, 4.01, 0.7543),
    "w1a": RealTime(2477, 300, 13.15, 0.9618),
    "w2a": RealTime(3470, 300, 15.13, 0.9612),
    "w3a": RealTime(4912, 300, 15.96, 0.9612),
    "w4a": RealTime(7366, 300, 19.35, 0.9611),
    "w5a": RealTime(9888, 300, 19.50, 0.9612),
    "w6a": RealTime(17188, 300, 11.42, 0.9611),
    "w7a": RealTime(24692, 300, 12.07, 0.9611),
    "w8a": RealTime(49749, 300, 14.86, 0.9612),
    "mnist-0v3": RealTime(12054, 752, 118.68, 0.7641),
    "mnist-0v4": RealTime(11765, 754, 117.81, 0.7784),
    "mnist-0v6": RealTime(11841, 720, 118.79, 0.7577),
    "mnist-2v3": RealTime(12089, 752, 127.43, 0.7792),
    "mnist-2v5": RealTime(11379, 771, 134.80, 0.7912),
    "mnist-5v8": RealTime(11272, 771, 111.54, 0.7883),
    "mnist-5v9": RealTime(11370, 780, 123.89, 0.8109),
    "mnist-6v9": RealTime(11867, 780, 139.14, 0.8077),
}


class Accuracy(NamedTuple):
    """A line of Table 3, in percent."""

    plain: float
    regularised: float
    robust: float


TABLE_3: dict[str, Accuracy] = {
    "a1a": Accuracy(83.13, 83.82, 84.01),
    "a2a": Accuracy(83.68, 83.93, 84.24),
    "mnist-0v3": Accuracy(99.15, 99.45, 99.55),
    "mnist-0v4": Accuracy(99.39, 99.54, 99.75),
    "mnist-0v6": Accuracy(97.88, 98.86, 98.92),
    "mnist-2v3": Accuracy(96.87, 97.31, 97.40),
    "mnist-2v5": Accuracy(96.67, 97.45, 97.77),
    "mnist-5v8": Accuracy(94.80, 94.91, 95.18),
    "mnist-5v9": Accuracy(97.21, 98.11, 98.47),
    "mnist-6v9": Accuracy(99.54, 99.59, 99.80),
}
