"""Fits at many radii: the regularisation path.

The data are checked and scaled once; every fit then differs only in ε and κ.  Radii are visited
from the largest to the smallest, each fit starting where the ones before lead to, which usually
takes one full Gram matrix per radius (``prediction``, ``solvers.sequential_quadratic``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..problem.problem import Problem
from ..problem.result import Result, Status
from ..rows.arrays import FloatArray
from ..solvers.starts import start_pays
from .prediction import by_secant, by_sibling, for_cost
from .solving import solve_problem

#: Radii at the beginning of a path that start from nothing: near ε_max the model is hardly more
#: than a constant, and no start for anything.
_FROM_NOTHING = 2

#: With flips, a radius this much smaller than the one before is far away.
_FAR = 2.0

#: On few samples, where an iteration on some of them takes as long as one on all, a start pays, if
#: labels flip, where it is expected this close to the optimum, in nats: on a path in small steps,
#: or in large ones and from siblings.  30 radii of a1a are near and take half the time of fits from
#: nothing; 10 radii take twice the time from 1e-3 on, the next of five flip costs half from 1e-4.
_NEAR, _NEAR_FROM_AFAR = 4e-3, 8e-4


def solve_radii(
    problem: Problem,
    epsilons: FloatArray,
    kappa: float,
    *,
    warm_start: bool = True,
    siblings: Sequence[Result | None] | None = None,
    **controls: Any,
) -> Iterator[Result]:
    """Results for the radii in the order given, each started where those before lead to.

    ``siblings`` are as many results, if there are any: for these radii on most of the same samples,
    or for another κ on the same ones; None stands for one that is not known.
    """
    guide = _Guide(siblings)
    for epsilon in epsilons:
        here = problem.with_radius(float(epsilon), kappa)
        start = guide.start(here) if warm_start else None
        result = solve_problem(here, start=start, **controls)
        guide.learn(here.epsilon, result)
        yield result


class _Guide:
    """Where each fit of a path starts: from what is there already, if that is likely to pay."""

    def __init__(self, siblings: Sequence[Result | None] | None) -> None:
        self._siblings = siblings
        self._sibling: Result | None = None  # the last one
        self._path: list[tuple[float, Result]] = []  # its end
        self._count = 0
        self._predicted = self._excess = math.nan

    def start(self, here: Problem) -> Result | None:
        """A start for the next radius; None where one from nothing is likely to be faster."""
        start, limit = self._on_secant(here) if self._siblings is None else self._beside(here)
        self._predicted = math.nan if start is None else start.info.get("predicted", math.nan)
        small = not start_pays(here.rows.n_nonzeros, known=False)
        if start is None or here.domains is not None or not small:
            return start
        return start if start.info.get("excess", 0.0) <= limit else None

    def learn(self, epsilon: float, result: Result) -> None:
        """Take note of a fit, and of what the prediction was above its objective."""
        self._path, self._count = [*self._path[-1:], (epsilon, result)], self._count + 1
        self._excess = self._predicted - result.objective

    def _beside(self, here: Problem) -> tuple[Result | None, float]:
        """A prediction from the sibling, or that itself if it brings its proof; and how close."""
        assert self._siblings is not None
        before, sibling = self._sibling, self._siblings[self._count]
        self._sibling = sibling = None if sibling is None else for_cost(here, sibling)
        if sibling is None or sibling.dual is not None:
            return sibling, math.inf
        if not self._path:
            return sibling, -math.inf
        last = self._path[-1][1]
        return by_sibling(here, sibling, before or last, last, self._excess), _NEAR_FROM_AFAR

    def _on_secant(self, here: Problem) -> tuple[Result | None, float]:
        """The prediction from the last two radii, if there can be one; and how close it must be."""
        if self._count < _FROM_NOTHING:
            return None, math.inf
        before, last = self._path
        near = _NEAR_FROM_AFAR if last[0] > _FAR * here.epsilon else _NEAR
        limit = near if here.cost.pair.flips else math.inf
        return by_secant(here, before, last, self._excess), limit


def warn_about_gaps(
    caller: str, gaps: Sequence[float], tol: float, ended: Status, *, stacklevel: int = 3
) -> None:
    """One ``ConvergenceWarning`` for all fits whose gap is larger than ``tol``."""
    open_gaps = [gap for gap in gaps if gap > tol]
    if open_gaps:
        warnings.warn(
            f"{caller}: {len(open_gaps)} of {len(gaps)} fits stopped before the duality gap was "
            f"within tol; the largest gap is {max(open_gaps):.2e} nats, tol is {tol:.2e} nats. "
            f"{ended.remedy}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
