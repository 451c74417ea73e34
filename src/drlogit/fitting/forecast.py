"""A forecast of the time and memory of a long fit.

An iteration of the interior point forms a matrix and factors it.  The forecast assumes 25
iterations, which is many.  Fits of dense data (two classes, 8 to 20 classes, more columns than
rows) took 0.4 to 2.1 times the forecast; sparse data with more columns than rows took 0.6 times.
Working sets, and conjugate gradients for very many classes, take as long as the model needs: no
time is said.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from ..engine.class_system import MOST_COEFFICIENTS
from ..engine.methods import special_method
from ..engine.row_space import takes_row_space
from ..engine.truncated import truncated_interior_point
from ..engine.wide import takes_outer
from ..engine.working_set import working_sets
from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from ..rows.interface import Rows
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
    """One line with size, method and, if known, time and memory of a fit; None if it is short."""
    rows, K = problem.rows, problem.n_classes if isinstance(problem, ClassProblem) else 1
    N, n, classes = rows.n_samples, rows.n_columns, f", {K} classes" if K > 1 else ""
    said = f"{N} samples, {n} columns{classes}: "
    if takes_row_space(problem):
        work = N * (_slower(rows) * rows.n_nonzeros + 10.0 * N**2)
        return _timed(work, f"{said}the interior point on {N} combinations of rows", 4.0 * N**2)
    seconds = _PRODUCTS * K * rows.n_nonzeros * _SECONDS
    method = special_method(problem)
    if method is truncated_interior_point:
        kept = K * (20.0 * N + 12.0 * n)
        return None if seconds < _SHORT else (
            f"{said}the truncated interior point will take about {_duration(seconds)} on an idle "
            "core, or several times as long where the model interpolates, and "
            f"{8e-9 * kept:.2g} GB beside the data"
        )  # fmt: skip
    if method is working_sets:
        sets = f"{said}working sets of columns; the time depends on how many columns the model uses"
        return None if seconds < _SHORT else sets
    if (K - 1) * n > MOST_COEFFICIENTS:
        products = f"{said}the interior point without a matrix; the time is not known"
        return None if seconds < _SHORT else products
    size, each, kept = _matrices(problem, K)
    matrices = f"{said}the interior point with a {size} × {size} matrix"
    return _timed(_ITERATIONS * each, matrices, kept)


def _matrices(problem: Problem | ClassProblem, K: int) -> tuple[int, float, float]:
    """Order of the largest matrix, multiplications of an iteration, and numbers in memory."""
    rows, N, n = problem.rows, problem.rows.n_samples, problem.rows.n_columns
    gram = _slower(rows) * rows.n_nonzeros * (rows.n_nonzeros / N)
    if K > 1:
        size, pairs = (K - 1) * n, K * (K - 1) / 2.0
        kept = 2.0 * size**2 + pairs * n**2 + 10.0 * N * K
        return size, pairs * gram + size**3 / 3.0, kept
    if takes_outer(rows):
        return N, _slower(rows) * rows.n_nonzeros * N + N**3 / 3.0, 3.0 * N**2 + 10.0 * n
    return n, gram + n**3 / 3.0, 3.0 * n**2 + 12.0 * N


def _slower(rows: Rows) -> float:
    return 1.0 if 2 * rows.n_nonzeros >= rows.n_samples * rows.n_columns else _SPARSE


def _timed(work: float, method: str, kept: float) -> str | None:
    """The line for a method of so many multiplications and numbers in memory."""
    seconds = 0.0 if work < _FEW else work / _multiplications_per_second()
    return None if seconds < _SHORT else (
        f"{method} will take about {_duration(seconds)} on an idle core, and {8e-9 * kept:.2g} GB "
        "beside the data"
    )  # fmt: skip


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
