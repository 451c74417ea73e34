"""Interior point for the joint problem (P): the solver that ``auto`` chooses.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],     u = Zβ
    subject to  ‖β‖_* ≤ λ

The norm constraint is always kept by a primal-dual barrier.  The hinge is either kept exact
by a barrier of its own (``barrier``) or rounded a little (``smoothing``).  Which is
faster depends on how many samples there are for each coefficient:

* no hinge (κ = ∞ or ε = 0): smoothing, which is then plain Newton with a barrier;
* at least 300 samples for each coefficient: smoothing, and the barrier if that gets stuck;
* otherwise, or if flips can all but wipe out one class: the barrier, and smoothing if that gets
  stuck.

Samples that occur several times are merged first (:mod:`drlogit.rows.repeats`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ...dual.certify import certify
from ...problem.problem import Problem
from ...problem.result import Monitor, Result, Solution, Status
from ...rows.arrays import FloatArray
from ...rows.interface import State
from ..sequential_quadratic.guess import guess_from
from ..sequential_quadratic.method import solve_from
from ..sequential_quadratic.nested import easy_guess, nested_guess
from ..sequential_quadratic.step import Work
from ..starts import dual_point_of, is_for, start_pays
from .barrier import solve_with_barrier
from .progress import Progress
from .scaled import Scaled
from .smoothing import solve_with_smoothing
from .wide_system import wide

#: Samples per coefficient from which the rounded hinge behaves like a smooth function.
SMOOTHING_RATIO = 300

#: Samples per coefficient up to which a few gradients, where they lead anywhere, cost less than to
#: find out how far a start is: (10000, 100) takes 20 ms either way instead of 60 from all samples
#: for a fold, (100000, 100) 200 ms instead of 130.
GRADIENTS_RATIO = 300

#: Flips that can undo this share of the rarer class leave a nearly constant model, and most samples
#: reach the kink together.  On dense data, 20,000 × 60 and 60,000 × 15, classes of 0.5 to 40 %, the
#: barrier then took 0.2 to 0.9 times as long as starts and smoothing, and with fewer flips 0.7 to
#: 16 times as long, mostly more than 1.4.
_OUTWEIGHED = 0.7

#: A method that another one follows may stand still for this many iterations, and take this share
#: of those left, but never fewer than the least number: fits that end well rarely need as many.
PATIENCE = 12
SHARE = 0.6
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
        An earlier result to start from, for these or other samples, radii, costs or norms: its
        own dual point is tried first, then steps from its model (``sequential_quadratic``).
    hinge : {"auto", "barrier", "smoothed"}
        How the kink of the robust loss is handled; see the module.
    """
    if hinge not in ("auto", "barrier", "smoothed"):
        raise ValueError(f"hinge must be 'auto', 'barrier' or 'smoothed', got {hinge!r}")
    if start is not None:
        solution = _optimal_already(problem, start, tol, monitor)
        if solution is not None:
            return solution
    given = problem.rows
    rows, origin = given.compact or (given, None)
    problem = replace(problem, rows=rows)
    scaled = Scaled.of(problem)
    progress = Progress(problem, tol, monitor)
    work = Work()
    status = Status.STALLED
    x: FloatArray | None = None
    names: list[str] = []
    with np.errstate(all="ignore"):
        methods = _methods(scaled, hinge, start, work)
        for name, method, options in methods:
            names.append(name)
            left = max_iter - progress.n_iter
            if len(names) == len(methods):
                progress.begin()
            else:
                progress.begin(PATIENCE)
                left = min(left, max(LEAST, math.ceil(SHARE * left)))
            if x is not None and name != "band":
                options = {"x": x, **options}
            status = method(scaled, progress, max_iter=left, **options)
            if status not in (Status.STALLED, Status.MAX_ITER) or progress.n_iter >= max_iter:
                break
            x = None if name == "band" else progress.coefficients / scaled.scale
    solution = progress.solution(
        status,
        solver="interior-point",
        hinge="+".join(names),
        grams=progress.n_iter,
        band_iterations=work.inner_iterations,
        band_work=work.band_work,
        sample_grams=work.sample_grams,
        gradient_steps=work.gradient_steps,
        spread=work.spread,
        distinct_samples=rows.n_samples,
    )
    if origin is None:
        return solution

    def for_all(values: State | None) -> State | None:
        """What was found for distinct samples, for those they stand for."""
        return None if values is None else given.scatter(rows.gather(values)[origin])

    return replace(solution, flip_share=for_all(solution.flip_share), s=for_all(solution.s))


def _optimal_already(
    problem: Problem, start: Result, tol: float, monitor: Monitor
) -> Solution | None:
    """The start itself, if the dual point that comes with it proves it optimal."""
    point = None
    # Others are no proof, and cost two passes.
    if is_for(problem, start) and "predicted" not in start.info:
        point = dual_point_of(problem, start)
    coefficients = problem.join(start.coef, start.intercept)
    if point is None or not np.isfinite(coefficients).all():
        return None
    s, share = point
    # The equations of free features are proven with a Hessian; all others by sums alone.
    effort = tol if problem.free.sum() > problem.fit_intercept else math.inf
    certificate = certify(problem, coefficients, flip_share=share, s=s, tol=effort)
    if certificate.gap > tol:
        return None
    monitor.report(0, certificate.primal, certificate.dual, certificate.lam)
    info = {"solver": "interior-point", "hinge": "start", "grams": 0, "band_iterations": 0,
            "band_work": 0.0, "spread": start.info.get("spread")}  # fmt: skip
    return Solution(coefficients, Status.OPTIMAL, 0, share, s, info=info)


def _methods(scaled: Scaled, hinge: str, start: Result | None, work: Work) -> list[Method]:
    """What to run, in order; the next one only if the one before got stuck."""
    problem = scaled.problem
    if problem.epsilon == 0.0:  # plain Newton steps, which take any start as it is
        x = None if start is None else problem.join(start.coef, start.intercept) / scaled.scale
        return [("smoothed", solve_with_smoothing, {"x": x})]
    guess, narrow = None, not wide(problem.rows)
    auto = hinge == "auto" and not _outweighed(scaled)
    if start is not None and narrow:
        known = start.info.get("spread") is not None or "predicted" in start.info
        if start_pays(problem.rows.n_nonzeros, known=known):
            if auto and not known and problem.rows.n_samples < GRADIENTS_RATIO * scaled.scale.size:
                guess = easy_guess(scaled, work)
            guess = guess or guess_from(problem, start)
    if guess is None and auto and narrow:
        guess = easy_guess(scaled, work) or nested_guess(problem, _solve_cold, work)
    if guess is None:
        return _cold_methods(scaled, hinge)
    return [("band", solve_from, {"guess": guess, "work": work}), *_cold_methods(scaled, hinge)]


def _solve_cold(scaled: Scaled, progress: Progress) -> Status:
    """From nothing, for a sample of the samples."""
    status = Status.STALLED
    for _, method, options in _cold_methods(scaled, "auto"):
        status = method(scaled, progress, max_iter=100, **options)
        if status is not Status.STALLED:
            break
    return status


def _cold_methods(scaled: Scaled, hinge: str) -> list[Method]:
    """The same, from nothing."""
    smoothed: Method = ("smoothed", solve_with_smoothing, {})
    barrier: Method = ("barrier", solve_with_barrier, {})
    together: Method = ("barrier", solve_with_barrier, {"together": True, "x": None})
    if not scaled.hinge or hinge == "smoothed":
        return [smoothed]
    if hinge == "barrier":
        return [barrier]
    rows = scaled.problem.rows
    if rows.n_samples >= SMOOTHING_RATIO * rows.n_columns and not _outweighed(scaled):
        return [("smoothed", solve_with_smoothing, {"give_up": True}), barrier, smoothed]
    return [barrier, together, smoothed]


def _outweighed(scaled: Scaled) -> bool:
    """Whether flips can all but wipe out the rarer class."""
    rarer = float(scaled.problem.rows.class_weights.min())
    return scaled.hinge and scaled.epsilon >= _OUTWEIGHED * rarer * scaled.kappa
