"""A forecast of the time and memory of a long fit.

An iteration of the interior point forms a matrix and factors it.  The forecast assumes 25
iterations, which is many.  Fits of dense data (two classes, 8 to 20 classes, more columns than
rows) took 0.4 to 2.1 times the forecast; sparse data with more columns than rows took 0.6 times.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from ..engine.methods import special_method
from ..engine.truncated import truncated_interior_point
from ..engine.wide import takes_outer
from ..engine.working_set import working_sets
from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from ..rows.threads import one_blas_thread

_ITERATIONS = 25

#: Seconds up to which nothing is said, and multiplications that never take that long.
_SHORT, _FEW = 5.0, 2e9

#: Products of the truncated interior point with the rows, there and back (many), and how long an
#: entry takes in one.
_PRODUCTS, _SECONDS = 600, 3e-9

#: How much slower products with sparse rows are.
_SPARSE = 4.0


def announce(problem: Problem | ClassProblem, watcher: Any, verbose: int, fits: int = 1) -> None:
    """Announce a long fit, by ``watcher.say`` if there is one, or on standard output."""
    say = print if verbose else getattr(watcher, "say", None)
    ahead = None if say is None else forecast(problem)
    if say is not None and ahead is not None:
        say(ahead if fits == 1 else f"{fits} fits, of which one alone: {ahead}")


def forecast(problem: Problem | ClassProblem) -> str | None:
    """One line with the size, method, time and memory of a fit; None for a short fit."""
    rows, classes = problem.rows, ""
    N, n = rows.n_samples, rows.n_columns
    slower = 1.0 if 2 * rows.n_nonzeros >= N * n else _SPARSE
    gram = slower * rows.n_nonzeros * (rows.n_nonzeros / N)
    method = special_method(problem)
    if method is working_sets:
        return None  # seconds, even for text
    if method is truncated_interior_point:
        K = problem.n_classes if isinstance(problem, ClassProblem) else 1
        classes = f", {K} classes" if K > 1 else ""
        seconds, kept = _PRODUCTS * K * rows.n_nonzeros * _SECONDS, K * (20.0 * N + 12.0 * n)
        if seconds < _SHORT:
            return None
        return (
            f"{N} samples, {n} columns{classes}: the truncated interior point will take about "
            f"{_duration(seconds)} on an idle core, or several times as long where the model "
            f"interpolates, and {8e-9 * kept:.2g} GB beside the data"
        )
    if isinstance(problem, ClassProblem):
        K = problem.n_classes
        size, pairs, classes = (K - 1) * n, K * (K - 1) / 2.0, f", {K} classes"
        each = pairs * gram + size**3 / 3.0
        kept = 2.0 * size**2 + pairs * n**2 + 10.0 * N * K
    elif not takes_outer(rows):
        size, each, kept = n, gram + n**3 / 3.0, 3.0 * n**2 + 12.0 * N
    else:
        size, each = N, slower * rows.n_nonzeros * N + N**3 / 3.0
        kept = 3.0 * N**2 + 10.0 * n
    if _ITERATIONS * each < _FEW:
        return None
    seconds = _ITERATIONS * each / _multiplications_per_second()
    if seconds < _SHORT:
        return None
    return (
        f"{N} samples, {n} columns{classes}: the interior point with a {size} × {size} matrix will "
        f"take about {_duration(seconds)} on an idle core, and {8e-9 * kept:.2g} GB beside the data"
    )


def _duration(seconds: float) -> str:
    """The time to one digit, which is as much as is known."""
    units = {"hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
    name = next(name for name in units if seconds >= 2.0 * units[name])
    return f"{float(f'{seconds / units[name]:.1g}'):.0f} {name}"


@cache
def _multiplications_per_second() -> float:
    """Multiply-adds per second of BLAS on one core; measuring takes a few milliseconds."""
    A, times = np.ones((400, 400)), []
    with one_blas_thread:
        for _ in range(3):
            started = time.process_time()
            A @ A
            times.append(time.process_time() - started)
    return 2.0 * float(A.shape[0]) ** 3 / max(min(times), 1e-6)
