"""Fits at many radii: the regularisation path.

The data are checked and scaled once; every fit then differs only in ε and κ.  Radii are visited
from the largest to the smallest, each fit starting from the one before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from ..problem.result import Result, Status
from ..rows.arrays import FloatArray
from .solving import solve_problem


def solve_radii(
    problem: Problem | ClassProblem,
    epsilons: FloatArray,
    kappa: Any = None,
    *,
    warm_start: bool = True,
    **controls: Any,
) -> Iterator[Result]:
    """Results for the radii in the order given, each started from the one before."""
    last: Result | None = None
    for epsilon in epsilons:
        here = problem.with_radius(float(epsilon), kappa)
        last = solve_problem(here, start=last if warm_start else None, **controls)
        yield last


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
