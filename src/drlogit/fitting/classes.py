"""Fits of several classes: solve, certify, report."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from ..dual.classes import ClassCertificate, certify_classes
from ..engine.classes import interior_point_for_classes, null_model_of_classes
from ..problem.classes import ClassProblem, pose_classes
from ..problem.result import Callback, Monitor, Result, Status
from ..rows.arrays import FloatArray
from ..rows.building import checked_rows
from ..rows.checks import check_features, check_label_column, check_weights, find_classes
from ..rows.row_blocks import RowBlocks, is_dask
from ..rows.threads import single_threaded_blas

#: The null model may be worse than the solution by this share of ``tol``.
_UNDECIDED = 1e-3


def several_classes(y: Any) -> np.ndarray[Any, Any] | None:
    """The labels, if there are more than two kinds, in memory; None otherwise."""
    if is_dask(y):
        return None
    labels = np.asarray(y)
    if labels.ndim != 1 or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
        return None  # refused where two classes are wanted
    try:
        classes = find_classes(labels)
    except ValueError:
        return None
    return classes if classes.size > 2 else None


def build_class_problem(
    X: Any, y: Any, classes: np.ndarray[Any, Any], sample_weight: Any, n_jobs: int | None,
    **model: Any,
) -> ClassProblem:  # fmt: skip
    """The problem of arrays; ``ValueError`` says what is wrong."""
    if is_dask(X):
        raise ValueError(
            "several classes with Dask need an estimator: DRLogisticRegression().fit(X, y)"
        )
    X = RowBlocks.from_array(X) if isinstance(X, np.memmap) else X
    X = X if isinstance(X, RowBlocks) else check_features(X)
    codes = np.searchsorted(classes, check_label_column(y, X.shape[0]))
    weights = None if sample_weight is None else check_weights(sample_weight, codes.size)

    def make_rows(*, intercept: bool) -> Any:
        ones = np.ones(codes.size)
        return checked_rows(X, ones, weights, intercept=intercept, n_jobs=n_jobs)

    return pose_classes(make_rows, codes, classes, **model)


def solve_class_problem(
    problem: ClassProblem,
    *,
    solver: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    start: Result | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    judged: bool = True,
    started: float | None = None,
) -> Result:
    """The certified result of a problem of several classes."""
    if solver not in ("auto", "interior-point"):
        raise ValueError(
            f"solver must be 'auto' or 'interior-point' for more than two classes, got {solver!r}"
        )
    setup = 0.0 if started is None else time.perf_counter() - started
    monitor = Monitor(callback, verbose)
    limit = {} if max_iter is None else {"max_iter": int(max_iter)}
    with single_threaded_blas(problem.rows.n_nonzeros, problem.rows.n_columns):
        found = interior_point_for_classes(problem, tol=tol, monitor=monitor, start=start, **limit)
        # What is certified is what is returned: coefficients of the features as given.
        returned = problem.join(*problem.split(found.coefficients))
        proven = found.proven
        if not judged and proven[0] - proven[1] <= tol:
            certificate = ClassCertificate(*proven, found.lam, None, None)
        else:
            certificate = certify_classes(problem, returned, found.point, found.flow, found.lam)
        returned, certificate = _constant_if_as_good(problem, returned, certificate, tol)
    status = found.status.judged(certificate.gap, tol)
    coef, intercept = problem.split(returned)
    info = {**found.info, "classes": problem.n_classes}
    if not problem.as_given:
        info["as_numbers"] = True
    result = Result(
        coef=coef, intercept=intercept, lam=certificate.lam, objective=certificate.primal,
        dual_objective=certificate.dual, gap=certificate.gap,
        dual=certificate.dual_point(problem),  # type: ignore[arg-type]
        status=status, n_iter=found.n_iter, solver="interior-point", setup_time=setup,
        solve_time=monitor.elapsed, trace=monitor.trace, info=info, ball=problem.ball,
    )  # fmt: skip
    early = status in (Status.STALLED, Status.UNPROVEN)
    if start is not None and early:  # misled, perhaps
        other = solve_class_problem(
            problem, tol=tol, max_iter=max_iter, callback=callback, judged=judged
        )
        return other if other.gap < result.gap else result
    return result


def is_constant(problem: ClassProblem, coefficients: FloatArray) -> bool:
    """Whether no feature that the adversary can move has an effect."""
    used = coefficients[:, problem.penalised]
    return used.size > 0 and not np.ptp(used, axis=0).any()


def _constant_if_as_good(
    problem: ClassProblem, coefficients: FloatArray, certificate: ClassCertificate, tol: float
) -> tuple[FloatArray, ClassCertificate]:
    """The null model instead of the solution, if it is as good: from ε_max on it is optimal.

    Without its penalised coefficients the solution is a rough null model; far above the bound, no
    better one will be optimal.
    """
    if not problem.penalised.any() or is_constant(problem, coefficients):
        return coefficients, certificate
    alone = np.where(problem.free, coefficients, 0.0)
    if problem.objective(alone) - certificate.dual > math.sqrt(tol):
        return coefficients, certificate
    null = alone
    if problem.free.any():
        null = problem.join(*problem.split(null_model_of_classes(problem)))
    lam, value = problem.best(null)
    room = min(certificate.primal + _UNDECIDED * tol, certificate.dual + tol)
    if value > max(room, certificate.primal * (1.0 + 1e-14)):
        return coefficients, certificate
    return null, replace(certificate, primal=value, lam=lam)
