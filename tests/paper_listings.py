"""The listings of the paper, written from its text; they share no code with the library.

Misprints are corrected as the mathematics demands: in Algorithm 4 "and" for "or" and a step
downhill, in Algorithm 5 the gradient at the extrapolated point and the step 1/λ_max(AᵀA).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.optimize import brentq


def sigma(t):
    return 1.0 / (1.0 + np.exp(-t))


def loss(y, b):
    """F(y) = (1/N) Σ [log(1 + e^{-y}) + max(y - b, 0)]."""
    return float(np.mean(np.log1p(np.exp(-np.abs(y))) + np.maximum(-y, 0) + np.maximum(y - b, 0)))


def problem_c(A, target, lam, norm):
    """argmin ‖Ax - target‖² over the ball: every pattern of bounds and signs, or a root in τ."""
    H, c = A.T @ A, A.T @ target
    n, slack = c.size, 1e-12 * np.abs(c).max()
    free = np.linalg.solve(H, c)
    size = {"l1": np.abs(free).max(), "l2": np.linalg.norm(free), "linf": np.abs(free).sum()}[norm]
    if size <= lam:
        return free
    if norm == "l2":
        values, vectors = np.linalg.eigh(H)
        v = vectors.T @ c

        def excess(tau):
            return lam / np.linalg.norm(v / (values + tau)) - 1.0

        tau = brentq(excess, 0.0, np.linalg.norm(v) / lam, xtol=1e-300, rtol=1e-15)
        return vectors @ (v / (values + tau))
    for signs in map(np.array, product((0.0, 1.0, -1.0), repeat=n)):
        on, x = signs != 0.0, lam * signs
        if norm == "l1":
            x[~on] = np.linalg.solve(H[np.ix_(~on, ~on)], (c - H @ x)[~on])
            optimal = (np.abs(x) <= lam) & (signs * (H @ x - c) <= slack)
        elif on.any():
            m = int(on.sum())
            system = np.zeros((m + 1, m + 1))
            system[:m, :m] = H[np.ix_(on, on)]
            system[:m, m] = system[m, :m] = signs[on]
            solution = np.linalg.solve(system, np.append(c[on], lam))
            x[on] = solution[:m]
            optimal = (x * signs >= 0.0) & (np.abs(H @ x - c) <= solution[m] + slack)
        else:
            continue
        if optimal.all():
            return x
    raise AssertionError("no pattern is optimal")


def algorithm_1(A, lam, kappa, norm, rho, gamma, eta, x, y, w):
    """LP-ADMM; with η > 0 linearised ADMM."""
    N, b = A.shape[0], lam * kappa
    while True:
        x = problem_c(A, y + w / rho, lam, norm)
        grad_f = (0.5 - sigma(-y)) / N
        # argmin ⟨∇f(y^k), y⟩ + P(y) + (ρ/2)‖y - Ax + w/ρ‖² + (η/2)‖y - y^k‖²
        center = (rho * (A @ x) - w - grad_f + eta * y) / (rho + eta)
        t = 0.5 / (N * (rho + eta))
        y = np.where(center > b + t, center - t, np.where(center < b - t, center + t, b))
        w = w - rho * (A @ x - y)
        yield x, y, w, rho
        rho = gamma * rho


def algorithm_2(q, upper, r, count):
    """Golden section with all four values of a step; the λ of each."""
    lam1, lam4 = 0.0, upper
    tried = []
    for _ in range(count):
        lam2, lam3 = r * lam1 + (1 - r) * lam4, (1 - r) * lam1 + r * lam4
        tried += [lam2, lam3]
        if q(lam2) < q(lam3):
            lam4 = lam3
        else:
            lam1 = lam2
    return tried


def algorithm_3(A, lam, kappa, rho, sigma_, x, y, u, v):
    """Standard ADMM with (y, z) as one block, found by alternating until nothing moves.

    f and g are means here, so that ρ is 1/N of the printed one.
    """
    N, b = A.shape[0], lam * kappa
    while True:
        x = problem_c(A, y - u / rho, lam, "l1")
        Ax = A @ x
        z = np.zeros(N)
        for _ in range(300):
            before = y
            y = algorithm_4(Ax, z, u, v, rho, b)
            d = y - b - v / rho
            z = np.where(d < 0, d, np.maximum(d - 1 / (N * rho), 0.0))
            if np.abs(y - before).max() <= 1e-16 * (1.0 + np.abs(y).max()):
                break
        u = u + sigma_ * rho * (Ax - y)
        v = v + sigma_ * rho * (z - y + b)
        yield x, y, z, u, v


def algorithm_4(Ax, z, u, v, rho, b):
    """The semismooth Newton method, sample by sample with z eliminated; ``z`` is not used."""
    N = Ax.size
    d2, found = b + v / rho, np.zeros(N)
    for i in range(N):

        def slope(y, i=i):
            envelope = rho * min(max(y - d2[i], 0.0), 1.0 / (N * rho))
            return -sigma(-y) / N + rho * (y - Ax[i] - u[i] / rho) + envelope

        y = Ax[i] + u[i] / rho
        low, high = y - 2.0 / (N * rho) - 1e-9, y + 2.0 / (N * rho) + 1e-9
        found[i] = brentq(slope, low, high, xtol=1e-300, rtol=1e-15)
    return found


def algorithm_5(A, b, lam, x, count):
    """Accelerated projected gradient; its iterates."""
    ss = 1.0 / (1.0001 * np.linalg.eigvalsh(A.T @ A)[-1])
    x_old, iterates = x, []
    for k in range(1, count + 1):
        y = x + k / (k + 3) * (x - x_old)
        w = np.clip(y - ss * (A.T @ (A @ y - b)), -lam, lam)
        x_old, x = x, w
        iterates.append(x)
    return iterates


def algorithm_6(A, b, lam, x, count):
    """Conjugate gradients with an active set; its iterates until the residual is rounding."""
    g, iterates, free_before, p, rr = A.T @ (A @ x - b), [], None, None, 0.0
    hidden = 1e-15 * np.linalg.norm(A.T @ b)
    for _ in range(count):
        free = ~((np.abs(x) == lam) & (-g * x >= 0.0))
        r = np.where(free, -g, 0.0)
        rr_before, rr = rr, r @ r
        if math.sqrt(rr) <= hidden:
            break
        changed = free_before is None or (free != free_before).any()
        p = r if changed else r + rr / rr_before * p
        alpha = rr / np.sum((A @ p) ** 2)
        whole, free_before = x + alpha * p, free
        x = np.clip(whole, -lam, lam)
        g = g + alpha * (A.T @ (A @ p)) if (x == whole).all() else A.T @ (A @ x - b)
        iterates.append(x)
    return iterates


def coordinate_sweeps(A, b, lam, x, count):
    """Exact minimisation over one coordinate at a time; the iterate after each sweep."""
    x, iterates = x.copy(), []
    for _ in range(count):
        for j in range(x.size):
            g = A[:, j] @ (A @ x - b)
            x[j] = min(max(x[j] - g / (A[:, j] @ A[:, j]), -lam), lam)
        iterates.append(x.copy())
    return iterates
