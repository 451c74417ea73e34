"""Worst-case distributions of generated models, each measured again with sixty digits.

The distribution of a :func:`drlogit.worst_case` must lie in its ball: by its
cost as reported, and by what it cost to get there.  That is added up from the atoms themselves,
``points(X)`` against ``X``, as far as features can be written in double precision, in decimal
arithmetic that shares no code with drlogit and, plainly, in doubles.  Its loss must not exceed the
supremum.  Part of ``make stress``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import drlogit

_LENGTHS = {
    "l1": lambda moves: np.abs(moves).sum(axis=1),
    "l2": lambda moves: np.sqrt((moves**2).sum(axis=1)),
    "linf": lambda moves: np.abs(moves).max(axis=1, initial=0.0),
}


@dataclass(frozen=True)
class WorstCase:
    """A model, samples and a ball; the numbers follow from it."""

    seed: int
    n_samples: int
    n_features: int
    scale: float
    offset: float
    steepness: float
    weights: str
    costs: str
    epsilon: float
    kappa: float
    norm: str


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers between two powers of ten, evenly in logarithm."""
    return st.floats(low, high).map(lambda exponent: float(10.0**exponent))


WORST_CASES = st.builds(
    WorstCase,
    seed=st.integers(0, 2**32 - 1),
    n_samples=st.integers(2, 40),
    n_features=st.integers(1, 5),
    scale=powers(-3, 3),
    offset=st.one_of(st.just(0.0), powers(0, 9)),
    steepness=powers(-2, 3),
    weights=st.sampled_from(("equal", "wide")),
    costs=st.sampled_from(("none", "wide", "first immovable")),
    epsilon=st.one_of(st.just(0.0), powers(-14, 2)),
    kappa=st.one_of(st.just(math.inf), powers(-2, 2)),
    norm=st.sampled_from(tuple(_LENGTHS)),
)


def numbers(case: WorstCase) -> tuple[tuple[Any, float], Any, Any, dict[str, Any]]:
    """A model ``(coef, intercept)``, X, y and the arguments of a worst case."""
    rng = np.random.default_rng(case.seed)
    shape = (case.n_samples, case.n_features)
    X = case.scale * (rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2, shape[1]))
    X += case.offset
    y = np.where(np.arange(shape[0]) % 2, 1, -1)
    coef = rng.standard_normal(shape[1]) * case.steepness / np.abs(X).max(axis=0)
    costs = np.ones(shape[1])
    if case.costs == "wide":
        costs = 10.0 ** rng.uniform(-3, 3, shape[1])
    elif case.costs == "first immovable":
        costs[0] = np.inf
    exponents = rng.uniform(-12, 0, shape[0]) if case.weights == "wide" else np.zeros(shape[0])
    options = {
        "epsilon": case.epsilon, "kappa": case.kappa, "norm": case.norm,
        "feature_costs": costs, "sample_weight": 10.0**exponents,
    }  # fmt: skip
    return (coef, float(rng.standard_normal())), X, y, options


def check_worst_case(case: WorstCase) -> None:
    """The distribution lies in its ball and below its supremum."""
    model, X, y, options = numbers(case)
    weights = options.pop("sample_weight")
    ball = drlogit.Ball(**options)
    found = drlogit.worst_case(model, X, y, ball=ball, sample_weight=weights).distribution()
    costs, kappa = options["feature_costs"], case.kappa if found.flipped.any() else 0.0
    movable = np.isfinite(costs)
    start, points = X[found.index], found.points(X)
    assert (points[:, ~movable] == start[:, ~movable]).all(), "an immovable feature moved"
    lengths = _LENGTHS[case.norm]((points - start)[:, movable] * costs[movable])
    spent = math.fsum([*(found.mass * lengths), *(kappa * found.mass[found.flipped])])
    # Features and sums are rounded to their last places.
    places = np.finfo(float).eps * (np.abs(start) + np.abs(points))[:, movable] @ costs[movable]
    allowed = case.epsilon * (1.0 + 1e-13) + float(found.mass @ places)
    assert found.transport_cost <= case.epsilon
    assert spent <= allowed, f"outside by {spent - case.epsilon:.1e}"
    assert found.value <= found.supremum, f"{found.value - found.supremum:.1e} above the supremum"
    # The mass is that of the samples, and the loss that of the atoms, as far as scores are known.
    sent = np.bincount(found.index, found.mass, minlength=y.size)
    np.testing.assert_allclose(sent, weights / weights.sum(), rtol=1e-15 * y.size)
    signs = np.where(found.label == 1, 1.0, -1.0)
    loss = float(found.mass @ np.logaddexp(0.0, -signs * (points @ model[0] + model[1])))
    sizes = np.abs(points) @ np.abs(model[0]) + abs(model[1])
    assert abs(loss - found.value) <= 1e-13 * (loss + found.mass @ sizes)
