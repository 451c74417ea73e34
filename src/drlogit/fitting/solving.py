"""The entry point :func:`solve`: finds the method for a problem and certifies its answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from numpy.typing import ArrayLike

from ..engine.plan import plan
from ..problem.ball import Ball
from ..problem.parameters import is_count, is_number
from ..problem.problem import Problem
from ..problem.result import Callback, Monitor, Result, Status
from ..problem.stopping import Stop
from ..rows.checks import ParameterError
from ..rows.interface import WorkersLostError
from ..rows.threads import one_blas_thread
from .attempts import BestProven
from .posing import pose

#: Entries of X, for all fits and classes, from which a fit says its size before it begins.
_LONG = 20_000_000

#: How often a fit begins again because workers were lost.
_RENEWALS = 5


def solve(
    X: Any,
    y: ArrayLike,
    ball: Ball,
    *,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    start: Result | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    n_jobs: int | None = None,
) -> Result:
    """Fit Wasserstein distributionally robust logistic regression and certify it.

    Solves ``min ελ + Σ w_i [h(u_i) + (u_i - κλ)_+]`` subject to ``‖β/c‖_* ≤ λ``, where
    ``u_i = y_i(x_i·β + b)`` and ``h(u) = log(1+e^{-u})``: the smallest worst-case expected
    log-loss over all distributions in the ball around the samples.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Features.  Float arrays and canonical CSR matrices are used without a copy.  Data that do
        not fit in memory may be a ``np.memmap`` of floats, or a Dask array or data frame.  With
        Dask, ``flip_share`` is a Dask array.
    y : array of shape (n_samples,)
        Labels.  Of two classes, the one that sorts last is the positive class.  More classes are
        one softmax (:mod:`drlogit.problem.problem`), and ``coef`` has a row for each.
    ball : Ball
        What may be wrong with the samples; its ``kappa`` may have one cost for each row.
    fit_intercept : bool
        Whether to fit an (unpenalised) intercept.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights, which count as repetitions.
    tol : float
        Largest duality gap, absolute, in nats.
    max_iter : int, optional
        Largest number of iterations; None for the default of the method.
    max_time : float, optional
        Time limit in seconds, checked between iterations.  The best certified point so far is
        returned, and the status says so.
    start : Result, optional
        An earlier result to start from; samples, radius, costs and norm may differ.
    callback : callable, optional
        Called with an :class:`~drlogit.problem.result.Iterate` per iteration; True stops the run.
    verbose : int
        If positive, print a line per iteration and, before a long fit, its size.
    n_jobs : int, optional
        Number of threads, each with a share of the samples; -1 for all cores.  None uses one thread
        per half a million entries of X, but no more than cores or ``OMP_NUM_THREADS``.

    Returns
    -------
    Result
        Coefficients, objective, certified lower bound, gap and status.  Running out of iterations
        or time, or an interrupt (Ctrl-C) in the main thread, is not an error: the best point so far
        is returned, and the status says so.  A second interrupt aborts.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> result = drlogit.solve(X, y, drlogit.Ball(0.05, kappa=1.0))
    >>> result.coef.shape, result.gap <= 1e-6
    ((5,), True)
    """
    started, stop = time.perf_counter(), Stop(max_time, keeps=True)
    _check_limits(tol, max_iter)

    def fit(known: Result | None) -> Result:
        problem, resolved = pose(
            X, y, ball, fit_intercept=fit_intercept, sample_weight=sample_weight, n_jobs=n_jobs
        )
        found = solve_problem(
            problem,
            tol=tol,
            max_iter=max_iter,
            start=known or start,
            callback=callback,
            verbose=verbose,
            stop=stop,
            started=started,
        )
        return replace(found, ball=resolved)

    return persistently(fit, stop)


def persistently(fit: Callable[[Result | None], Result], stop: Stop) -> Result:
    """What a fit returns; where workers are lost, it begins again with what it had found.

    If it should end before it can, or they are lost too often, that is all there is.
    """
    known: Result | None = None
    for _ in range(_RENEWALS + 1):
        with suppress(WorkersLostError), stop.heeded() if known is None else stop.listening():
            known = fit(known)
        if stop.over or (known is not None and known.status is not Status.LOST):
            break
    if known is not None:
        return known
    if stop.late:
        raise TimeoutError(f"max_time ({stop.max_time} s) was over before there was any model")
    raise ConnectionError("workers of the cluster were lost before there was any model")


def solve_problem(
    problem: Problem,
    *,
    solver: Literal["auto", "interior-point"] = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    start: Result | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    stop: Stop | None = None,
    judged: bool = True,
    keeps_dual: bool = True,
    started: float | None = None,
) -> Result:
    """Solve a problem that has been built, as :func:`solve` does.

    With :meth:`Problem.with_radius` the data are checked once for many fits.  ``judged=False``
    (used in cross-validation) reports the solver's own gap and skips the certificate, which takes
    as long as the fit of a small table.  ``solver="interior-point"`` leaves out the methods that
    form no matrix.  ``keeps_dual=False`` leaves the dual point out of the result, which is as long
    as the samples.  ``started`` is when the setup began, by ``time.perf_counter``.
    """
    _check_limits(tol, max_iter)
    started = time.perf_counter() if started is None else started
    stop, ball = stop or Stop(), problem.ball
    if problem.epsilon == 0.0 and problem.domains is not None:
        # Without an adversary, domains have no effect.
        problem = replace(problem, cost=replace(problem.cost, domains=None))
    announce(problem, callback, verbose)
    setup_time = time.perf_counter() - started
    monitor = Monitor(callback, verbose, stop)
    best = BestProven(problem, tol, judged, keeps_dual)
    with one_blas_thread, stop.listening():
        attempts = plan(problem, products=solver == "auto")
        best.run(attempts, max_iter=max_iter, monitor=monitor, start=start)
    certificate = best.certificate
    assert certificate is not None
    assert best.returned is not None
    ended = best.status
    if ended in (Status.STOPPED, Status.LOST) and monitor.over():
        ended = monitor.ended or ended
    return Result(
        *best.returned,
        lam=certificate.lam,
        objective=certificate.primal,
        dual_objective=certificate.dual,
        gap=certificate.gap,
        dual=best.dual,
        status=ended.judged(certificate.gap, tol),
        n_iter=best.n_iter,
        solver=best.info["solver"],
        setup_time=setup_time,
        solve_time=monitor.elapsed,
        trace=monitor.trace,
        info=best.info,
        column_ball=ball,
    )


def _check_limits(tol: Any, max_iter: Any) -> None:
    if not is_number(tol) or not (math.isfinite(tol) and tol > 0.0):
        raise ParameterError("tol", f"must be finite and > 0, got {tol!r}")
    if max_iter is not None and not (is_count(max_iter) and max_iter >= 1):
        raise ParameterError("max_iter", f"must be a positive integer or None, got {max_iter!r}")


def announce(problem: Problem, watcher: Any, verbose: int = 0, fits: int = 1) -> None:
    """Say the size of a long fit, by ``watcher.say`` if there is one, or on standard output."""
    say = print if verbose else getattr(watcher, "say", None)
    rows, K = problem.rows, problem.n_classes
    if say is None or fits * (K - 1) * rows.n_nonzeros < _LONG:
        return
    several = f"{fits} fits of " if fits > 1 else ""
    classes = f", {K} classes" if K > 2 else ""
    say(f"{several}{rows.n_samples} samples, {rows.n_columns} columns{classes}")
