"""Running a method for the fixed-λ problem (B): when to look at the gap, what to return.

A method is an iterator of :class:`Step` (β and the samples' state after each iteration) and a
block function that reads the flip shares ``a`` off that state.  Everything else is here, so
that all methods stop by the same rule: a certified gap within ``tol``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..certificate import Certificate, certify
from ..losses import FloatArray
from ..problem import Problem
from ..result import Monitor, Solution, Status
from ..rows import BlockFunction, State

#: Iterations between the first certificates; later ones are a quarter of the way apart, so
#: that they cost a tenth of the time and an iteration count is at most a quarter too high.
CHECK_EVERY = 10


class Step(NamedTuple):
    """One iterate of a fixed-λ method."""

    beta: FloatArray  # all coefficients: features, then the intercept
    state: State  # per block, whatever the method keeps per sample
    residual: float  # ‖Zβ - μ‖ for the ADMM variants; nan where there is none
    rho: float  # penalty or step in use


def next_check(k: int) -> int:
    """The iteration after ``k`` at which to certify again."""
    return k + max(CHECK_EVERY, k // 4)


def certify_step(
    problem: Problem, lam: float, step: Step, flip_share: BlockFunction, tol: float
) -> Certificate:
    """The certificate of (B) for an iterate and the flip shares in its state."""
    shares, _ = problem.rows.run(flip_share, step.state, step.beta)
    return certify(problem, step.beta, lam=lam, flip_share=shares, tol=tol)


def run(
    problem: Problem,
    lam: float,
    steps: Iterator[Step],
    flip_share: BlockFunction,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int,
    info: dict[str, Any] | None = None,
) -> Solution:
    """Iterate until the certified gap is within ``tol``; the best point seen on the way.

    The callback is called at every certificate rather than at every iteration.
    """
    best: tuple[float, FloatArray, Certificate] | None = None
    status, check, k = Status.MAX_ITER, CHECK_EVERY, 0
    for k, step in enumerate(steps, start=1):
        if k < check and k < max_iter:
            continue
        check = next_check(k)
        certificate = certify_step(problem, lam, step, flip_share, tol)
        if best is None or certificate.gap < best[0]:
            best = certificate.gap, step.beta, certificate
        stop = monitor.report(
            k, certificate.primal, certificate.dual, lam, residual=step.residual, rho=step.rho
        )
        if certificate.gap <= tol:
            status = Status.OPTIMAL
        elif stop:
            status = Status.STOPPED
        elif k < max_iter:
            continue
        break
    assert best is not None, "a method yields at least one step"
    _, beta, certificate = best
    return Solution(
        coefficients=beta,
        status=status,
        n_iter=k,
        flip_share=certificate.flip_share,
        dual_coefficients=certificate.dual_coefficients,
        info=dict(info or {}),
    )
