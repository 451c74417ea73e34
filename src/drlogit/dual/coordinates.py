"""The coordinates of a problem's models, as the bound uses them.

Derivation: docs/algorithm.md, (14).
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..problem.parameters import FAR
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ._certificate import FREE, IN_NORM, Coordinates

#: A cache: a fit and its certificate use the same coordinates.
_KNOWN: WeakKeyDictionary[Any, Coordinates] = WeakKeyDictionary()


def spreads(means: FloatArray, squares: FloatArray, *, intercept: bool) -> FloatArray:
    """Standard deviations from means and mean squares; root mean squares without an intercept."""
    if not intercept:
        return np.asarray(np.sqrt(squares))
    return np.asarray(np.sqrt(np.maximum(squares - np.square(means), squares / FAR**2)))


def label_coordinates(problem: Problem) -> Coordinates:
    """The coordinates of the coefficients of each label: features, then the intercept."""
    if problem in _KNOWN:
        return _KNOWN[problem]
    rows, last = problem.rows, problem.costs.size - 1
    scale = rows.column_scale
    mean, squares, _ = rows.totals
    spread = spreads(mean, squares, intercept=problem.fit_intercept)
    mean = mean.copy() if problem.fit_intercept else np.zeros_like(mean)
    if problem.fit_intercept:
        mean[last], spread[last] = 0.0, 1.0
    kind = np.where(problem.free, FREE, IN_NORM).astype(np.int32)
    intercept = last if problem.fit_intercept else None
    arrays = kind, problem.costs, problem.norm, spread, mean, scale
    found = Coordinates(*arrays, intercept, problem.n_classes)
    _KNOWN[problem] = found
    return found
