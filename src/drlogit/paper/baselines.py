"""PDHG and the projected subgradient method, baselines (b) and (d) of Section 5.2 for (B).

*PDHG*, on the saddle point of Appendix B,

    min over ‖x‖_* ≤ λ  max over ‖v‖_∞ ≤ 1   f(Zx) + (1/2N) vᵀ(Zx - b)

    x^{k+1} = project(x^k - τ Zᵀ(∇f(Zx^k) + v^k/2N)),
    v^{k+1} = clip(v^k + (σ/2)(Z(2x^{k+1} - x^k) - b), -1, 1)

with ``1/τ = (σ/4 + 1/8) λ_max(ZᵀZ)/N``.  Deviation: the paper cites Chambolle and Pock
(2011), whose iteration has the proximal map of f, a problem of its own; here f enters by its
gradient (Condat 2013, Vũ 2013).

*Subgradient*:  ``x^{k+1} = project(x^k - t_k Zᵀw^k/‖Zᵀw^k‖)``, ``w_i`` a subgradient of sample i's
loss, ``t_k = R/√k`` with the radius R of the ball.

The paper gives no steps for either: these are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np

from ..rows.arrays import FloatArray, Matrix
from .box_qp import Quadratic
from .subproblem import PaperIterate, Subproblem, TransportNorm, check, starting_point


def pdhg(
    Z: Matrix,
    lam: float,
    kappa: float,
    *,
    norm: str | TransportNorm = "l1",
    sigma: float | None = None,
    start: FloatArray | float = 0.0,
) -> Iterator[PaperIterate]:
    """The iterates of the primal-dual hybrid gradient method, without end.

    ``sigma`` is the dual step, None for one that balances the two sides; the primal step is as long
    as convergence allows.  ``start`` is x⁰.  Iterates have ``y = Zx`` and the primal step as
    ``rho``.  All other parameters are those of :func:`~drlogit.paper.lp_admm`.
    """
    problem = Subproblem.of(Z, lam, kappa, norm)
    Z, N, b = problem.Z, problem.N, problem.b
    curvature = Quadratic(Z).largest_eigenvalue / N
    if sigma is None:
        sigma = 2.0 / (math.sqrt(curvature) * max(_radius(problem), np.finfo(float).tiny))
    check("sigma", sigma, least=0.0)
    if math.isinf(b):
        sigma = 0.0  # labels cannot flip: P is zero, and this is projected gradient
    tau = 1.0 / (curvature * (0.25 * sigma + 0.125))
    x = problem.norm.project(starting_point((start, 0.0, 0.0), Z)[0], lam)
    Zx = Z @ x
    v = np.full(N, -1.0 if math.isfinite(b) else 0.0)
    for k in count(1):
        # primal step
        w = -(problem.gradient_f(Zx) + v / (2 * N))
        x = problem.norm.project(x + tau * (Z.T @ w), lam)
        # dual step at the extrapolated point
        Zx, before = Z @ x, Zx
        if math.isfinite(b):
            v = np.clip(v + 0.5 * sigma * (2.0 * Zx - before - b), -1.0, 1.0)
        w = -(problem.gradient_f(Zx) + v / (2 * N))
        yield PaperIterate(k, x, Zx, w, tau, 0.0, problem.F(Zx))


def subgradient(
    Z: Matrix,
    lam: float,
    kappa: float,
    *,
    norm: str | TransportNorm = "l1",
    start: FloatArray | float = 0.0,
) -> Iterator[PaperIterate]:
    """The iterates of the projected subgradient method, without end: the best point so far.

    Parameters are those of :func:`~drlogit.paper.pdhg`; ``rho`` of an iterate is the step t_k.
    """
    problem = Subproblem.of(Z, lam, kappa, norm)
    Z, N, radius = problem.Z, problem.N, _radius(problem)
    x = problem.norm.project(starting_point((start, 0.0, 0.0), Z)[0], lam)
    best: PaperIterate | None = None
    for k in count(1):
        Zx = Z @ x
        # P has the subgradient (sign of y - b)/2N, at the kink -1/2N
        signs = np.where(Zx > problem.b, 1.0, -1.0) if math.isfinite(problem.b) else 0.0
        w = -(problem.gradient_f(Zx) + signs / (2 * N))
        g, step = Z.T @ w, radius / math.sqrt(k)
        found = PaperIterate(k, x, Zx, w, step, 0.0, problem.F(Zx))
        best = found if best is None or found.F < best.F else best
        yield best._replace(k=k, rho=step)
        length = max(float(np.linalg.norm(g)), np.finfo(float).tiny)
        x = problem.norm.project(x + step / length * g, lam)


def _radius(problem: Subproblem) -> float:
    """Euclidean radius of the ball, along the diagonal or an axis, whichever is longer."""
    far = np.full(problem.Z.shape[1], 1e6 * max(problem.lam, 1.0))
    axis = np.where(np.arange(far.size) == 0, far, 0.0)
    lengths = [np.linalg.norm(problem.norm.project(point, problem.lam)) for point in (far, axis)]
    return float(max(lengths))
