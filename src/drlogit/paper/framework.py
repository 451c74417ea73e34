"""Algorithm 2, golden section over λ, and the framework: Algorithm 2 over Algorithm 1.

    minimise  q(λ)  over  0 ≤ λ ≤ 0.2785/ε,    q(λ) = min over x of the objective of (A) at λ

At each λ, LP-ADMM runs from the same start, with ``ρ_{k+1} = γρ_k``, until
``‖Zx^k - y^k‖₂ ≤ 1e-6``.

With the printed ρ₀ = 0.001 that rule ends away from the optimum on larger data.  A sample can
travel about ``Σ_k 1/(Nρ_k) = 21/(Nρ₀)`` before ρ has grown so much that nothing moves: 13 on a1a,
0.65 on a9a, where the way to the optimum is longer.  With ρ₀ = 1/N (``rho="scaled"``) it can travel
21 on any data, and the same rule with the same γ ends near the optimum.  The rule itself does not
see the difference: ``‖Zx^k - y^k‖ = ‖w^k - w^{k-1}‖/ρ_k``, and w is bounded.  Therefore every
result is certified, and a warning states the gap where it is too large.

Deviations: the golden ratio is exact and one new subproblem a step suffices, as in the released
code (the listing solves four; ``reuse=False`` solves two, with r = 0.618).  The listings leave
"converge" and the start open: the bracket ends at 1e-6 as in the released code, and the start is
zero.  A subproblem also ends when ρ has reached 1e12/N, and after ``max_iter`` iterations; its
value is then that of x alone, because y need not be close to Zx.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..problem.result import Result, Status
from ..rows.arrays import FloatArray, Matrix
from ..rows.threads import one_blas_thread
from ..rows.warn import warn
from .box_qp import Inner, NormBall, Quadratic, check_method, printed_method, solve_qp
from .gap import judge, with_fields
from .lp_admm import LARGEST_PENALTY, PAPER_GAMMA, PAPER_RHO, Penalty, lp_admm
from .subproblem import (
    LAMBDA_CONSTANT,
    PaperIterate,
    Start,
    Subproblem,
    TransportNorm,
    check,
    get_norm,
    signed_rows,
)


class ResidualRuleWarning(UserWarning):
    """The published stopping rule was met away from the optimum."""


class Run(NamedTuple):
    """One run of LP-ADMM within the framework."""

    lam: float
    value: float  # q(λ) as the search sees it
    n_iter: int
    residual: float
    ended: str  # by the rule: "residual"; else "frozen", "max_iter" or "callback"


@dataclass(frozen=True, eq=False, repr=False)
class FrameworkResult(Result):
    """A certified :class:`~drlogit.Result`, and how the framework got there.

    ``coef``, ``lam`` and ``objective`` are those that the framework ends with.

    Attributes
    ----------
    runs
        The runs of LP-ADMM, in order.
    cpu_seconds
        Processor time of the search, without callbacks and certificate.
    """

    runs: tuple[Run, ...] = ()
    cpu_seconds: float = 0.0


def golden_section(
    q: Callable[[float], float], upper: float, *, tol: float = 1e-6, reuse: bool = True
) -> tuple[float, float]:
    """Algorithm 2: golden-section search for the minimum of q on [0, upper].

    Returns the better of the last two interior points, and the value there.  The search ends when
    the bracket is at most ``tol`` wide.  With ``reuse`` one interior point is that of the last step
    and a step needs one new value of q, as in the released code; this requires the exact golden
    ratio.  Without, r is 0.618 as listed and a step needs two values.  The listing has four per
    step, but those at the ends are never used.
    """
    r = 0.5 * (5.0**0.5 - 1.0) if reuse else 0.618  # the listing rounds the golden ratio
    lam1, lam4 = 0.0, upper
    lam2, lam3 = r * lam1 + (1.0 - r) * lam4, (1.0 - r) * lam1 + r * lam4
    q2, q3 = q(lam2), q(lam3)
    while lam4 - lam1 > max(tol, 1e-14 * upper):
        smaller = q2 < q3
        if smaller:
            lam4, lam3, q3 = lam3, lam2, q2
        else:
            lam1, lam2, q2 = lam2, lam3, q3
        if smaller or not reuse:
            lam2 = r * lam1 + (1.0 - r) * lam4
            q2 = q(lam2)
        if not smaller or not reuse:
            lam3 = (1.0 - r) * lam1 + r * lam4
            q3 = q(lam3)
    return (lam2, q2) if q2 < q3 else (lam3, q3)


def framework(
    X: Matrix,
    y: Any,
    *,
    epsilon: float,
    kappa: float,
    norm: str | TransportNorm = "l1",
    rho: Penalty = PAPER_RHO,
    gamma: float = PAPER_GAMMA,
    inner: Inner | None = None,
    inner_stop: str | float = "exact",
    start: Start = 0.0,
    residual_tol: float = 1e-6,
    bracket_tol: float = 1e-6,
    reuse: bool = True,
    max_iter: int = 100_000,
    tol: float = 1e-6,
    callback: Callable[[float, PaperIterate], Any] | None = None,
) -> FrameworkResult:
    """Algorithm 2 over Algorithm 1, as published, with a certificate of where it ends.

    Parameters
    ----------
    X, y
        Samples, dense or sparse, and labels of two classes; the one that sorts last is positive.
        There is no intercept.
    epsilon, kappa
        The radius, positive, and the cost of a flip.
    norm, rho, gamma, inner, inner_stop, start
        As in :func:`~drlogit.paper.lp_admm`.  ``rho="scaled"`` repairs the printed ρ₀ = 0.001.
    residual_tol : float
        A subproblem ends when ``‖Zx^k - y^k‖₂`` is at most this.
    bracket_tol, reuse
        As ``tol`` and ``reuse`` of :func:`~drlogit.paper.golden_section`.
    max_iter : int
        Limit on the iterations of one subproblem.
    tol : float
        The gap up to which the result is optimal; above it there is a
        :class:`~drlogit.paper.ResidualRuleWarning`.
    callback : callable, optional
        Called with λ and the iterate after every iteration; True stops the run.

    Returns
    -------
    FrameworkResult
        With the certified gap of what the framework ends with.
    """
    check("epsilon", epsilon, least=0.0, strict=True)
    check("residual_tol", residual_tol, least=0.0, strict=True)
    check("bracket_tol", bracket_tol, least=0.0, strict=True)
    check("tol", tol, least=0.0, strict=True)
    check("max_iter", max_iter, least=1)
    started, aside = time.process_time(), 0.0
    Z, ball = signed_rows(X, y), get_norm(norm)
    method = printed_method(ball) if inner is None else inner
    check_method(method, inner_stop, ball, Z.shape[1])
    H = Quadratic(Z)  # once for all λ

    def x_step(_: Quadratic, c: FloatArray, ball: NormBall, x: FloatArray) -> FloatArray:
        return solve_qp(method, inner_stop, H, c, ball, x)

    options: Any = {"norm": ball, "rho": rho, "gamma": gamma, "start": start, "inner": x_step}
    runs: list[Run] = []
    best: tuple[float, FloatArray] = 0.0, H.diagonal

    def q(lam: float) -> float:
        """q(λ) by Algorithm 1."""
        nonlocal aside, best
        for iterate in lp_admm(Z, lam, kappa, **options):
            paused = time.process_time()
            stopped = callback is not None and callback(lam, iterate) is True
            aside += time.process_time() - paused
            rules = {
                "callback": stopped,
                "residual": iterate.residual <= residual_tol,
                "frozen": gamma * iterate.rho * Z.shape[0] > LARGEST_PENALTY,
                "max_iter": iterate.k >= max_iter,
            }
            if ended := next((rule for rule, holds in rules.items() if holds), ""):
                break
        loss = iterate.F
        if ended != "residual":
            loss = Subproblem(Z, lam, kappa, ball).F(Z @ iterate.x)
        value = epsilon * lam + loss
        if all(value < run.value for run in runs):
            best = lam, iterate.x
        runs.append(Run(lam, value, iterate.k, iterate.residual, ended))
        if stopped:
            raise _StoppedError
        return value

    with one_blas_thread, suppress(_StoppedError):
        golden_section(q, LAMBDA_CONSTANT / epsilon, tol=bracket_tol, reuse=reuse)
    seconds = time.process_time() - started - aside
    lam, x = best
    objective = epsilon * lam + Subproblem(Z, lam, kappa, ball).F(Z @ x)
    known = judge(Z, epsilon, kappa, ball, 0.1 * tol)
    gap = objective - known.dual_objective
    ends = {run.ended for run in runs}
    status = Status.OPTIMAL if gap <= tol else Status.UNPROVEN
    if status is not Status.OPTIMAL and ends & {"callback", "max_iter"}:
        status = Status.STOPPED if "callback" in ends else Status.MAX_ITER
    if status is Status.UNPROVEN:
        warn(
            f"the published rule ‖Zx - y‖ <= {residual_tol:g} ended at λ = {lam:.4g} with a "
            f"worst-case loss of {objective:.6g}, which is {gap:.2g} above the certified lower "
            f"bound {known.dual_objective:.6g}: with rho={rho!r} samples may freeze before they "
            "have arrived; rho='scaled' is 1/N",
            ResidualRuleWarning,
        )
    result: FrameworkResult = with_fields(
        FrameworkResult,
        known,
        coef=x,
        lam=lam,
        objective=objective,
        status=status,
        n_iter=sum(run.n_iter for run in runs),
        solver="framework",
        runs=tuple(runs),
        cpu_seconds=seconds,
    )
    return result


class _StoppedError(Exception):
    """The callback asked to stop."""
