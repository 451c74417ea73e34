"""Interior point for the joint problem (P): the solver that ``auto`` chooses.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],     u = Zβ
    subject to  ‖β‖_* ≤ λ

The norm constraint is always kept by a primal-dual barrier.  The hinge is either kept exact
by a barrier of its own (``barrier``) or rounded a little (``smoothing``).  Which is
faster depends on how many samples there are for each coefficient:

* no hinge (κ = ∞ or ε = 0): smoothing, which is then plain Newton with a barrier;
* at least 300 samples for each coefficient: smoothing, and the barrier if that gets stuck;
* otherwise: the barrier, and smoothing if that gets stuck.

Stuck is a method that cannot go on, that stands still (:class:`.progress.Progress`), or that has
used up its share of the iterations.  The next one starts from the best point found.

Samples that occur several times are merged first (:mod:`drlogit.rows.repeats`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ...problem.problem import Problem
from ...problem.result import Monitor, Result, Solution, Status
from .barrier import solve_with_barrier
from .progress import Progress
from .scaled import Scaled
from .smoothing import solve_with_smoothing

#: Samples per coefficient from which the rounded hinge behaves like a smooth function.
SMOOTHING_RATIO = 300

#: A method that another one follows may stand still for this many iterations, and take this share
#: of those left, but never fewer than the least number: fits that end well rarely need as many.
PATIENCE = 12
SHARE = 0.5
LEAST = 60

Method: TypeAlias = tuple[str, Callable[..., Status], dict[str, Any]]


def interior_point(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Result | None = None,
    hinge: str = "auto",
) -> Solution:
    """Solve (P) to a certified gap of ``tol``.

    Parameters
    ----------
    problem, tol, monitor
        As for every solver.
    max_iter
        Limit on Newton iterations, each one weighted Gram matrix and one factorisation.
    start
        An earlier result whose coefficients to start from.
    hinge : {"auto", "barrier", "smoothed"}
        How the kink of the robust loss is handled; see the module.
    """
    if hinge not in ("auto", "barrier", "smoothed"):
        raise ValueError(f"hinge must be 'auto', 'barrier' or 'smoothed', got {hinge!r}")
    given = problem.rows
    rows, origin = given.compact or (given, None)
    problem = replace(problem, rows=rows)
    scaled = Scaled.of(problem)
    progress = Progress(problem, tol, monitor)
    x = None if start is None else problem.join(start.coef, start.intercept) / scaled.scale
    status = Status.STALLED
    names = []
    with np.errstate(all="ignore"):
        methods = _methods(scaled, hinge)
        for name, method, options in methods:
            names.append(name)
            left = max_iter - progress.n_iter
            if len(names) == len(methods):
                progress.begin()
            else:
                progress.begin(PATIENCE)
                left = min(left, max(LEAST, math.ceil(SHARE * left)))
            status = method(scaled, progress, max_iter=left, x=x, **options)
            if status not in (Status.STALLED, Status.MAX_ITER) or progress.n_iter >= max_iter:
                break
            x = progress.coefficients / scaled.scale
    solution = progress.solution(
        status,
        solver="interior-point",
        hinge="+".join(names),
        grams=progress.n_iter,
        distinct_samples=rows.n_samples,
    )
    if origin is None or solution.flip_share is None:
        return solution
    return replace(solution, flip_share=given.scatter(rows.gather(solution.flip_share)[origin]))


def _methods(scaled: Scaled, hinge: str) -> list[Method]:
    """What to run, in order; the next one only if the one before got stuck."""
    smoothed: Method = ("smoothed", solve_with_smoothing, {})
    barrier: Method = ("barrier", solve_with_barrier, {})
    if not scaled.hinge or hinge == "smoothed":
        return [smoothed]
    if hinge == "barrier":
        return [barrier]
    rows = scaled.problem.rows
    if rows.n_samples >= SMOOTHING_RATIO * rows.n_columns:
        return [("smoothed", solve_with_smoothing, {"give_up": True}), barrier, smoothed]
    return [barrier, smoothed]
