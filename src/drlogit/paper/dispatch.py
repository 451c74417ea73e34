"""The methods of the paper by name, certified: what tests and benchmarks compare."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from ..dual.certify import Certificate, certify
from ..fitting import solving as fitting_solving
from ..fitting.classes import build_class_problem, several_classes
from ..fitting.exact_zeros import with_exact_zeros
from ..problem.classes import ClassProblem
from ..problem.norms import Norm, NormName
from ..problem.problem import Problem, build_problem
from ..problem.result import Callback, Monitor, Result, Solution, Status
from ..problem.stopping import Stop
from ..rows.arrays import FloatArray
from ..rows.threads import one_blas_thread

#: Values of ``solver`` in a fit.
SolverName: TypeAlias = Literal["auto", "interior-point", "lp-admm", "conic"]

#: Solvers of the joint problem (P): modules, imported on demand, and functions.
JOINT_SOLVERS = {
    "interior-point": ("..engine.pair", "interior_point"),
    "lp-admm": ("..paper.lambda_search", "lambda_search"),
    "conic": ("..paper.conic", "conic"),
}

#: Solvers of the fixed-λ problem (B).
SUBPROBLEM_SOLVERS = {
    "lp-admm": ("..paper.lp_admm", "lp_admm"),
    "linearized-admm": ("..paper.linearized_admm", "linearized_admm"),
    "standard-admm": ("..paper.standard_admm", "standard_admm"),
    "pdhg": ("..paper.pdhg", "pdhg"),
    "subgradient": ("..paper.subgradient", "subgradient"),
    "conic": ("..paper.conic", "conic"),
}


def solve(
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    kappa: Any,
    norm: NormName | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
    categories: Any = None,
    bounds: Any = None,
    sample_weight: ArrayLike | None = None,
    solver: SolverName = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    start: Result | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    n_jobs: int | None = None,
    **solver_options: Any,
) -> Result:
    """Fit Wasserstein distributionally robust logistic regression and certify it.

    Solves ``min ελ + Σ w_i [h(u_i) + (u_i - κλ)_+]`` subject to ``‖β/c‖_* ≤ λ``, where
    ``u_i = y_i(x_i·β + b)`` and ``h(u) = log(1+e^{-u})``: the smallest worst-case expected
    log-loss over all distributions within Wasserstein distance ε of the samples.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Features.  Float arrays and canonical CSR matrices are used without a copy.  Data that do
        not fit in memory may be a ``np.memmap`` of floats, or a Dask array or data frame.  With
        Dask, ``flip_share`` is a Dask array.
    y : array of shape (n_samples,)
        Labels.  Of two classes, the one that sorts last is the positive class.  More classes are
        one softmax (:mod:`drlogit.problem.classes`), and ``coef`` has a row for each.
    epsilon : float
        Radius of the Wasserstein ball, at least 0 (0: plain logistic regression).
    kappa : float, dict, array of shape (n_samples,) or matrix
        Cost of flipping a label, positive.  The adversary can flip at most a share
        ``epsilon / kappa`` of the labels.  ``inf`` means that labels are correct, 0 that they are
        unknown.  The cost may depend on the recorded label, as ``{"good": 5.0, "bad": inf}`` or as
        a matrix with a row for each recorded label, or on the sample, as an array.
    norm : {"l1", "l2", "linf"}
        Transport norm on the features.  ``"l1"`` bounds ``max|β_j|`` by λ, ``"linf"`` bounds
        ``Σ|β_j|``.
    fit_intercept : bool
        Whether to fit an (unpenalised) intercept.
    feature_costs : array of shape (n_features,), optional
        Cost of moving each feature by one.  A feature with cost ``inf`` cannot move, and its
        coefficient is not penalised.
    categories : list of lists of columns, optional
        Groups of one-hot columns, by position or, for a data frame, by name.  Each row has at most
        one 1 in a group; if a row has none, "none" is also a category.  The adversary may only
        change one category into another, at the common ``feature_costs`` of the columns.
    bounds : pair (lower, upper), optional
        Range of each feature: two numbers, or two arrays with one number per feature, infinite for
        none.  Moving a bounded feature costs ``feature_costs`` times the move, added to the norm of
        the others; whole numbers in a range are covered exactly.  A bound on one side only changes
        nothing.  Columns in ``categories`` have no bounds.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights.  Only their proportions matter, so ε keeps its meaning.
    solver : str
        ``"auto"`` or the name of a solver of the joint problem.  ``"auto"`` chooses the interior
        point or, if its matrices would be too large, a method without matrices.
    tol : float
        Largest duality gap, absolute, in nats of log-loss; the same for every solver.
    max_iter : int, optional
        Largest number of iterations; None for the default of the solver.
    max_time : float, optional
        Time limit in seconds, checked between iterations.  The best certified point so far is
        returned, and the status says so.
    start : Result, optional
        An earlier result to start from; samples, radius, costs and norm may differ.  The truncated
        interior point uses it only if it is optimal already.
    callback : callable, optional
        Called with an :class:`~drlogit.problem.result.Iterate` per iteration; True stops the run.
    verbose : int
        If positive, print a line per iteration and, before a long fit, its size.
    n_jobs : int, optional
        Number of threads, each with a share of the samples; -1 for all cores.  None uses one thread
        per half a million entries of X, but no more than cores or ``OMP_NUM_THREADS``.
    **solver_options
        Options of the solver; unknown ones raise ``TypeError``.

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
    >>> result = drlogit.solve(X, y, epsilon=0.05, kappa=1.0)
    >>> result.coef.shape, result.gap <= 1e-6
    ((5,), True)
    """
    stop = Stop(max_time, keeps=True)
    call = _PaperCall(solver, tol, max_iter, start, callback, verbose, solver_options, stop)
    classes = several_classes(y)
    build = build_problem if classes is None else partial(build_class_problem, classes=classes)
    problem = build(
        X, y, epsilon=epsilon, kappa=kappa, norm=norm, fit_intercept=fit_intercept,
        feature_costs=feature_costs, categories=categories, bounds=bounds,
        sample_weight=sample_weight, n_jobs=n_jobs,
    )  # fmt: skip
    return call.run(problem)


def solve_problem(
    problem: Problem | ClassProblem,
    *,
    solver: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    start: Result | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    stop: Stop | None = None,
    judged: bool = True,
    **solver_options: Any,
) -> Result:
    """Solve a problem that has been built, as :func:`solve` does.

    With :meth:`Problem.with_radius` the data are checked once for many fits.  ``judged=False``
    (used in cross-validation) reports the solver's own gap and skips the certificate, which takes
    as long as the fit of a small table.
    """
    stop = stop or Stop()
    call = _PaperCall(solver, tol, max_iter, start, callback, verbose, solver_options, stop, judged)
    return call.run(problem)


def solve_subproblem(
    X: Any,
    y: ArrayLike,
    *,
    lam: float,
    epsilon: float,
    kappa: Any,
    norm: NormName | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    solver: str = "lp-admm",
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    start: Result | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    n_jobs: int | None = None,
    **solver_options: Any,
) -> Result:
    """Solve the β-subproblem (B): problem (P) at a given λ.

    The reported objective is ``q(λ) = ελ + min_β Σ w_i [h(u_i) + (u_i - κλ)_+]``, so that values
    at different λ can be compared.  The other parameters are those of :func:`solve`, except that
    ``epsilon`` must be positive: at 0 no coefficient is penalised, and λ has no effect.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> result = drlogit.solve_subproblem(X, y, lam=0.1, epsilon=0.05, kappa=1.0, solver="lp-admm")
    >>> result.gap <= 1e-6
    True
    """
    if not _is_real(lam) or not (math.isfinite(lam) and lam >= 0.0):
        raise ValueError(f"lam must be finite and >= 0, got {lam!r}")
    stop = Stop(max_time, keeps=True)
    call = _PaperCall(
        solver, tol, max_iter, start, callback, verbose, solver_options, stop, lam=float(lam)
    )
    problem = build_problem(
        X, y, epsilon=epsilon, kappa=kappa, norm=norm, fit_intercept=fit_intercept,
        feature_costs=feature_costs, sample_weight=sample_weight, n_jobs=n_jobs,
    )  # fmt: skip
    if problem.epsilon == 0.0:
        raise ValueError(
            "epsilon must be > 0 for a fixed lam, got 0; it only adds epsilon * lam to the "
            "objective, so use any positive epsilon and subtract that term"
        )
    return call.run(problem)


@dataclass
class _PaperCall:
    """One call of a solver with its checked options."""

    name: str
    tol: float
    max_iter: int | None
    start: Result | None
    callback: Callback | None
    verbose: int
    options: dict[str, Any]
    stop: Stop
    judged: bool = True
    lam: float | None = None
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        known = ["auto", *JOINT_SOLVERS] if self.lam is None else list(SUBPROBLEM_SOLVERS)
        if self.name not in known:
            names = ", ".join(map(repr, known))
            raise ValueError(f"solver must be one of {names}, got {self.name!r}")
        if not _is_real(self.tol) or not (math.isfinite(self.tol) and self.tol > 0.0):
            raise ValueError(f"tol must be finite and > 0, got {self.tol!r}")
        most = self.max_iter
        if most is not None and (
            not isinstance(most, numbers.Integral) or isinstance(most, bool) or most < 1
        ):
            raise ValueError(f"max_iter must be a positive integer or None, got {most!r}")

    def run(self, problem: Problem | ClassProblem) -> Result:
        """Solve, certify, report."""
        if self.name in ("auto", "interior-point"):
            return fitting_solving.solve_problem(
                problem,
                solver=self.name,  # type: ignore[arg-type]
                tol=self.tol,
                max_iter=self.max_iter,
                start=self.start,
                callback=self.callback,
                verbose=self.verbose,
                stop=self.stop,
                judged=self.judged,
            )
        ball = problem.ball
        if isinstance(problem, Problem) and problem.epsilon == 0.0 and problem.domains is not None:
            # Without an adversary, domains have no effect.
            problem = replace(problem, cost=replace(problem.cost, domains=None))
        function, options = self._solver_of(problem), dict(self.options)
        if self.max_iter is not None:
            options["max_iter"] = int(self.max_iter)
        if self.start is not None:
            options["start"] = self.start
        if self.lam is not None:
            options["lam"] = self.lam
        setup_time = time.perf_counter() - self.started
        monitor = Monitor(self.callback, self.verbose, self.stop)
        with one_blas_thread, self.stop.listening():
            solution = function(problem, tol=self.tol, monitor=monitor, **options)
            # Certify the returned coefficients, those of the original features.
            coef, intercept = problem.split(solution.coefficients)
            returned = problem.join(coef, intercept)
            certificate = self._certificate(problem, solution, returned)
            if self.lam is None:
                moved = with_exact_zeros(problem, returned, certificate, self.tol)
                coef, intercept, certificate = moved or (coef, intercept, certificate)
        ended = solution.status
        if ended is Status.STOPPED and monitor.ended is not None:
            ended = monitor.ended
        status = ended.judged(certificate.gap, self.tol)
        result = Result(
            coef=coef,
            intercept=intercept,
            lam=certificate.lam,
            objective=certificate.primal,
            dual_objective=certificate.dual,
            gap=certificate.gap,
            dual=certificate.dual_point(problem),
            status=status,
            n_iter=solution.n_iter,
            solver=solution.info.get("solver", self.name),
            setup_time=setup_time,
            solve_time=monitor.elapsed,
            trace=monitor.trace,
            info=solution.info,
            column_ball=None if self.lam is not None else ball,
        )
        early = status in (Status.MAX_ITER, Status.STALLED, Status.FAILED) and self.max_iter is None
        misled = self.start is not None and (early or status is Status.UNPROVEN)
        misled = misled and not (self.stop.late or self.stop.interrupted)
        if misled and self.lam is None:  # a poor start may be the reason: try without it
            other = replace(self, start=None).run(problem)
            return other if other.gap < result.gap else result
        return result

    def _certificate(
        self, problem: Problem | ClassProblem, solution: Solution, returned: FloatArray
    ) -> Certificate:
        """The certificate of the answer; with ``judged=False``, the solver's own if it suffices."""
        if not self.judged and solution.proven is not None:
            objective, bound = solution.proven
            if objective - bound <= self.tol:
                return Certificate(objective, bound, solution.lam or 0.0, None)
        return certify(
            problem, returned, point=solution.point, lam=self.lam, guess=solution.lam, tol=self.tol
        )

    def _solver_of(self, problem: Problem | ClassProblem) -> Callable[..., Solution]:
        """The function of the solver for this kind of problem."""
        table = JOINT_SOLVERS if self.lam is None else SUBPROBLEM_SOLVERS
        module, function = table["interior-point" if self.name == "auto" else self.name]
        special, allowed = "", ["auto", "interior-point"]
        if isinstance(problem, ClassProblem):
            special = "more than two classes"
            module, function = "..engine.classes", "interior_point_for_classes"
        elif problem.domains is not None:
            special = "features with categories or bounds"
            module, function = "..engine.tables", "interior_point_with_domains"
        elif problem.cost.labels.multiples is not None:
            special, allowed = "a kappa by class or by sample", [*allowed, "conic"]
        if special and self.name not in allowed:
            names = " or ".join(map(repr, allowed))
            raise ValueError(f"solver must be {names} for {special}, got {self.name!r}")
        found: Callable[..., Solution] = getattr(import_module(module, __package__), function)
        return found


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
