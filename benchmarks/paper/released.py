"""The authors' released MATLAB code in NumPy: ``Golden_search``, ``LP_ADMM`` and ``ACG``.

A port of github.com/gerrili1996/DRLR_NIPS2019_exp at fd3b0e53, statement by statement.  What
differs from the paper's text: γρ₀ is the first penalty; every run starts from x = y = w = 1 and
stops at max|Ax - y| < 1e-5; q(λ) is the loss of x; the search returns the middle of its last two
points; ``ACG`` stops after a step shorter than 1e-5.  In the second iteration ``exp(-y)``
overflows, and MATLAB's ``max(0, NaN) = 0`` restarts y at κλ.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def golden_search(A: Any, epsilon: float, kappa: float, rho: float, gamma: float) -> Any:
    """λ, and the coefficients of one more run there, as in the script."""
    H, tau = A.T @ A, (5.0**0.5 - 1.0) / 2.0
    H = H.toarray() if hasattr(H, "toarray") else H

    def q(lam: float) -> float:
        x = lp_admm(A, H, lam, kappa, rho, gamma)
        return lam * epsilon + float(
            np.mean(np.log(1.0 + np.exp(-(A @ x))) + np.maximum(A @ x - kappa * lam, 0.0))
        )

    a, b = 0.0, 0.2785 / epsilon
    x1, x2 = a + (1.0 - tau) * (b - a), a + tau * (b - a)
    f1, f2 = q(x1), q(x2)
    while abs(b - a) > 1e-6:
        if f1 < f2:
            b, x2, f2 = x2, x1, f1
            x1 = a + (1.0 - tau) * (b - a)
            f1 = q(x1)
        else:
            a, x1, f1 = x1, x2, f2
            x2 = a + tau * (b - a)
            f2 = q(x2)
    lam = 0.5 * (x1 + x2)
    return lam, lp_admm(A, H, lam, kappa, rho, gamma)


def lp_admm(A: Any, H: Any, lam: float, kappa: float, rho: float, gamma: float) -> Any:
    """The coefficients of ``LP_ADMM``."""
    N, b = A.shape[0], kappa * lam
    x, y, w = np.ones(A.shape[1]), np.ones(N), np.ones(N)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(100_000):
            rho *= gamma
            x = acg(A.T @ (y + w / rho), H, lam, x)
            G, t = A @ x, 0.5 / rho / N
            v = G - (w + (0.5 - np.exp(-y) / (1.0 + np.exp(-y))) / N) / rho - b
            y = b + np.fmax(0.0, v - t) - np.fmax(0.0, -v - t)
            w = w - rho * (G - y)
            if np.abs(G - y).max() < 1e-5:
                break
    return x


def acg(ATb: Any, ATA: Any, lam: float, x: Any) -> Any:
    """Algorithm 6 as released."""
    g, on, bound_old, p, gamma = ATA @ x - ATb, np.abs(x) >= lam, None, x, 0.0
    for _ in range(5000):
        bound = on & (-x * g >= 0.0)
        r = np.where(bound, 0.0, -g)
        if not r.any():
            break
        gamma_old, gamma = gamma, float(r @ r)
        same = bound_old is not None and np.array_equal(bound, bound_old)
        p, bound_old = r + gamma / gamma_old * p if same else r, bound
        q = ATA @ p
        alpha, x_old = gamma / float(p @ q), x
        x = x + alpha * p
        on = np.abs(x) >= lam
        x = np.clip(x, -lam, lam)
        g = g + alpha * q if not on.any() else ATA @ x - ATb
        if np.linalg.norm(x - x_old) < 1e-5:
            break
    return x
