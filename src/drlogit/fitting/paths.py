"""Fits at many radii: which radii ε and flip costs κ to try, and the regularisation path.

The data are checked and scaled once; every fit then differs only in ε and κ.  Radii are visited
from the largest to the smallest, each fit starting from the one before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..problem.parameters import check_epsilon, check_kappa, is_count, is_number
from ..problem.problem import Problem
from ..problem.result import Result, Status
from ..problem.stopping import Stop
from ..rows.arrays import FloatArray
from ..rows.warn import warn
from .solving import solve_problem


def solve_radii(
    problem: Problem,
    epsilons: FloatArray,
    kappa: Any = None,
    *,
    stop: Stop,
    **controls: Any,
) -> Iterator[Result]:
    """Results for the radii in the order given, each started from the one before.

    When the time is over no other fit begins.
    """
    last: Result | None = None
    for epsilon in epsilons:
        if last is not None and stop.late:
            return
        here = problem.with_radius(float(epsilon), kappa)
        last = solve_problem(here, start=last, stop=stop, **controls)
        yield last


def warn_about_gaps(caller: str, gaps: Sequence[float], tol: float, ended: Status) -> None:
    """One ``ConvergenceWarning`` for all fits whose gap is larger than ``tol``."""
    open_gaps = [gap for gap in gaps if gap > tol]
    if open_gaps:
        warn(
            f"{caller}: {len(open_gaps)} of {len(gaps)} fits stopped before the duality gap was "
            f"within tol; the largest gap is {max(open_gaps):.2e} nats, tol is {tol:.2e} nats. "
            f"{ended.remedy}",
            ConvergenceWarning,
        )


def radii_below(largest: float, count: int, min_fraction: float) -> FloatArray:
    """``count`` radii from ``largest`` down to a fraction of it, evenly spaced in logarithm.

    Where ``largest`` is 0 the model is constant (or not penalised at all) at every radius, and
    any radii will do.
    """
    if not (is_number(min_fraction) and 0.0 < min_fraction < 1.0):
        raise ValueError(f"min_fraction must be between 0 and 1, got {min_fraction!r}")
    fractions = np.geomspace(1.0, min_fraction, count)
    return (largest if largest > 0.0 else 1.0) * fractions


def kappas_around(radius: float, count: int) -> FloatArray:
    """``count`` flip costs on the scale of the data: geometric, the last one infinite.

    ``radius`` is ε_max at κ = ∞.  At twice that flips and moves matter alike; far below it the
    adversary only flips labels (and only ε/κ matters), far above it only moves features.
    """
    scale = 2.0 * radius if radius > 0.0 else 1.0
    return np.append(scale * np.geomspace(0.1, 3.0, count - 1), math.inf)


def check_radii(epsilons: Any) -> FloatArray:
    """Distinct radii in descending order, or ``ValueError``."""
    values = [check_epsilon(epsilon) for epsilon in _listed(epsilons, "epsilons")]
    return np.array(sorted(set(values), reverse=True))


def check_kappas(kappas: Any) -> FloatArray:
    """Distinct flip costs in ascending order, or ``ValueError``."""
    return np.array(sorted({check_kappa(kappa) for kappa in _listed(kappas, "kappas")}))


def check_count(count: Any, name: str) -> int:
    """A positive whole number, or ``ValueError``."""
    if not is_count(count) or count < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {count!r}")
    return int(count)


def _listed(values: Any, name: str) -> list[Any]:
    try:
        listed = list(np.ravel(values)) if not isinstance(values, str) else []
    except (TypeError, ValueError):
        listed = []
    if not listed:
        raise ValueError(f"{name} must hold at least one number, got {values!r:.80}")
    return listed
