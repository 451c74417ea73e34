"""Algorithms 3 and 4: standard ADMM with a semismooth Newton method, as a baseline for (B).

    minimise    f(y) + g(z)   over ‖x‖_* ≤ λ, y, z;   f(y) = (1/N) Σ h(y_i), g(z) = (1/N) Σ (z_i)_+
    subject to  Zx = y,   z = y - b

    x^{k+1}      = argmin (ρ/2)‖Zx - y^k + u^k/ρ‖²  over the ball                problem (C)
    (y, z)^{k+1} = argmin f(y) + g(z) + (ρ/2)‖Zx^{k+1} - y + u^k/ρ‖² + (ρ/2)‖z - y + b + v^k/ρ‖²
    u^{k+1}      = u^k + σρ (Zx^{k+1} - y^{k+1})
    v^{k+1}      = v^k + σρ (z^{k+1} - y^{k+1} + b)

Method (a) of Section 5.2.  Both blocks are minimised exactly: z in closed form, y by Algorithm 4.

Deviations: (y, z) is one block, as the remark before the algorithm says; the listing alternates.
The printed ρ = 10 is that of sums over the samples, which is 10/N for the means here.  Algorithm 4
prints "or" for the "and" of the generalised Hessian, and a step uphill.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np
from scipy.special import expit

from ..rows.arrays import FloatArray, Matrix
from .box_qp import Inner
from .lp_admm import Penalty, inner_problem, penalty
from .subproblem import PaperIterate, Start, Subproblem, TransportNorm, starting_point

#: Semismooth Newton: the largest gradient it leaves, and the steps it may take.
_NEWTON_TOL, _NEWTON_STEPS = 1e-13, 50


def standard_admm(
    Z: Matrix,
    lam: float,
    kappa: float,
    *,
    norm: str | TransportNorm = "l1",
    rho: Penalty | None = None,
    sigma: float = 1.0,
    inner: Inner | None = None,
    inner_stop: str | float = "exact",
    start: Start = 0.0,
) -> Iterator[PaperIterate]:
    """Algorithm 3: the iterates of standard ADMM, without end.

    ``rho`` is None for the paper's, 10/N; ``sigma``, below 1.618, is the length of the multipliers'
    step.  ``start`` gives x⁰, y⁰ and ``w⁰ = -u⁰``; v⁰ fits to them.  Iterates have ``w = -u``, and
    their residual is that of both equations.  All other parameters are those of
    :func:`~drlogit.paper.lp_admm`.
    """
    if not 0.0 < sigma < 0.5 * (1.0 + math.sqrt(5.0)):
        raise ValueError(f"sigma must be between 0 and 1.618, got {sigma!r}")
    problem = Subproblem.of(Z, lam, kappa, norm)
    Z, N, b = problem.Z, problem.N, problem.b
    rho_of = penalty(10.0 / N if rho is None else rho, 1.0, N)
    x_step = inner_problem(problem, inner, inner_stop)
    x, y, w = starting_point(start, Z)
    u, v = -w, -np.clip(expit(-y) / N - w, 0.0, 1.0 / N)
    for k in count():
        rho_k = rho_of(k)
        # x-step
        x = x_step(y - u / rho_k, x)
        # (y, z)-step; what z cuts off is the clipped part
        Zx = Z @ x
        y = semismooth_newton(y, Zx, u, v, rho_k, b)
        z_gap = np.zeros(N)  # z - y + b
        if math.isfinite(b):
            d = y - b - v / rho_k
            z_gap = d - np.clip(d, 0.0, 1.0 / (N * rho_k)) - y + b
        # u- and v-step
        u = u + sigma * rho_k * (Zx - y)
        v = v + sigma * rho_k * z_gap
        residual = math.hypot(float(np.linalg.norm(Zx - y)), float(np.linalg.norm(z_gap)))
        yield PaperIterate(k + 1, x, y, -u, rho_k, residual, problem.F(y))


def semismooth_newton(
    y: FloatArray, Zx: FloatArray, u: FloatArray, v: FloatArray, rho: float, b: float
) -> FloatArray:
    """Algorithm 4: the y of the (y, z)-step, z eliminated.

    Minimises φ(y) = h(y)/N + (ρ/2)(y - Zx - u/ρ)² + min_z {(z)_+/N + (ρ/2)(z - y + b + v/ρ)²}
    sample by sample, all at once.  φ is strongly convex with a piecewise smooth derivative; a step
    is halved for the samples where it does not lower φ.
    """
    N, flips = y.size, math.isfinite(b)
    d1, d2 = Zx + u / rho, b + v / rho if flips else np.full(y.size, math.inf)

    def phi(y: FloatArray, i: FloatArray) -> FloatArray:
        d = y - d2[i]
        inside = np.clip(d, 0.0, 1.0 / (N * rho))
        envelope = rho * inside * (d - 0.5 * inside) if flips else 0.0
        return np.asarray(np.logaddexp(0.0, -y) / N + 0.5 * rho * (y - d1[i]) ** 2 + envelope)

    y, active = y.copy(), np.arange(N)
    for _ in range(_NEWTON_STEPS):
        t = y[active]
        s, d = expit(-t), t - d2[active]
        gradient = -s / N + rho * (t - d1[active]) + rho * np.clip(d, 0.0, 1.0 / (N * rho))
        hessian = s * (1.0 - s) / N + rho * (1.0 + ((d > 0.0) & (d < 1.0 / (N * rho))))
        large = np.abs(gradient) > _NEWTON_TOL * (1.0 / N + rho * np.abs(t))
        if not large.any():
            break
        active, t, gradient = active[large], t[large], gradient[large]
        step = -gradient / hessian[large]
        reference, slope = phi(t, active), 1e-4 * gradient * step
        length = np.ones_like(t)
        for _ in range(30):
            # What rounding hides counts as a decrease.
            hidden = 1e-15 * (1.0 / N + np.abs(reference))
            rises = phi(t + length * step, active) > reference + length * slope + hidden
            if not rises.any():
                break
            length[rises] *= 0.5
        y[active] = t + length * step
    return y
