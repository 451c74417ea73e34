"""Products of the truncated interior point: the samples' matrix times a step.

Arrays are (samples, labels), the order in which rows return scores.

Derivation: docs/algorithm.md, (18) and (19).
"""
import numpy as np
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit


def pair_product(CompiledRows rows, const double[:, :, ::1] curved, const double[:, ::1] kappa,
                 const double[::1] step):
    """The samples' matrix of two labels times a step (β, b, λ), with du the changes of margins:

    Zᵀ (w (p q + d) du - w d κ dλ),    - Σ w d κ (du - κ dλ),    d = D E / (D + E)

    ``curved`` has (p, q) and (D, E) of "another label" and the observed one.  Each strip of
    rows is read once: its adjoint follows its margins while it is in the cache.
    """
    cdef Py_ssize_t block, i, lo, hi, n = rows.n_samples, b = rows.strip, m = rows.n_columns
    cdef double[::1] r = np.empty(b)
    adjoint = np.zeros((1, rows.stride))
    cdef double[:, ::1] out = adjoint
    cdef double dlam = step[m], side = 0.0, du, push
    fit(curved.shape[0] == 2 and curved.shape[1] == n and curved.shape[2] == 2
        and kappa.shape[0] == n and kappa.shape[1] == 2, "curvatures and kappa")
    fit(step.shape[0] == m + 1, "step")
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &step[0], &r[0])
            for i in range(lo, hi):
                du = rows.y[i] * r[i - lo]
                push = curved[1, i, 0] * curved[1, i, 1] / (curved[1, i, 0] + curved[1, i, 1])
                push *= rows.w[i] * (du - kappa[i, 0] * dlam)
                side -= kappa[i, 0] * push
                r[i - lo] = rows.y[i] * (rows.w[i] * curved[0, i, 0] * curved[0, i, 1] * du + push)
            rows.adjoint(lo, hi, &r[0], 1, &out[0, 0])
    rows.free()
    adjoint[0, m] = side
    return adjoint[0]


def bend(const double[:, :, ::1] curved, const double[:, ::1] kappa, const double[::1] weights,
         double lam, double[:, ::1] v):
    """The samples' Laplacians (18) times changes of scores, in place; λ's entry of the product.

    Where a kink holds, ds + κ dλ is small before it is multiplied.
    """
    cdef Py_ssize_t i, k, n = v.shape[0], K = v.shape[1]
    cdef double mean, centre, total, pull, side = 0.0
    fit(curved.shape[0] == 2 and curved.shape[1] == n and curved.shape[2] == K
        and kappa.shape[0] == n and kappa.shape[1] == K and weights.shape[0] == n, "curvatures")
    with nogil:
        for i in range(n):
            mean = centre = total = 0.0
            for k in range(K):
                mean += curved[0, i, k] * v[i, k]
                total += curved[1, i, k]
                centre += curved[1, i, k] * (v[i, k] + kappa[i, k] * lam)
            centre /= total
            for k in range(K):
                pull = curved[1, i, k] * (v[i, k] + kappa[i, k] * lam - centre)
                v[i, k] = weights[i] * (curved[0, i, k] * (v[i, k] - mean) + pull)
                side += kappa[i, k] * weights[i] * pull
    return side
