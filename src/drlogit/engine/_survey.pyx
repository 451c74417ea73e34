"""Surveys of all samples, for the method for many rows: objective, next quadratic model, and bound.

A survey adds up the dual point (21) that the multipliers of a quadratic model make, moves the
margins along the step of the model (20), and evaluates the samples there.

    u, s       margins and dual probabilities        w, y      weights and labels
    price      flip costs, 0 where they are infinite kink      margin κλ from which flips pay
    bent       h'' of the quadratic model            share     shares of samples that flip
    side       λ's entries of adjoints

Derivation: docs/algorithm.md, (20) and (21).
"""
import numpy as np
from libc.math cimport isinf
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.rows._clones cimport In, Out, cloned
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit

cpdef enum:
    LOSS, ENTROPY, ADDITIONS, SCALARS   # LOSS: with the hinges

cdef enum:
    DUAL, GRADIENT, PRODUCT, COLUMNS    # columns of the adjoints


cdef cloned dual_point(Py_ssize_t n, In w, In y, In price, In u, In bent, In du, double multiple,
                       In share, Out s, Out column, double* scalars, double* side) noexcept nogil:
    """s of (21), after a change of the margins by the model, and its part of the equations."""
    cdef Py_ssize_t i
    cdef double p, value = 0.0, spent = 0.0
    for i in range(n):
        loss_terms(u[i], &p)
        p -= bent[i] * y[i] * du[i] + p * (1.0 - p) * multiple * u[i]
        p = p if p > 0.0 else 0.0
        s[i] = p if p < 1.0 else 1.0
        value += w[i] * entropy(s[i])
        column[i] = w[i] * (share[i] - s[i]) * y[i]
        spent += w[i] * price[i] * share[i]
    scalars[ENTROPY] += value
    side[DUAL] -= spent


cdef cloned losses_at(Py_ssize_t n, In w, In y, In price, In kink, In du, Out u, Out gradient,
                      Out product, double* scalars, double* side) noexcept nogil:
    """Move the margins; loss with hinges, and the columns of gradient and Hessian product there."""
    cdef Py_ssize_t i
    cdef double s, over, flip, value = 0.0, spent = 0.0
    for i in range(n):
        u[i] += y[i] * du[i]
        value += w[i] * loss_terms(u[i], &s)
        over = u[i] - kink[i]
        flip = 1.0 if over > 0.0 else 0.0
        value += w[i] * (over if over > 0.0 else 0.0)
        gradient[i] = w[i] * (flip - s) * y[i]
        product[i] = w[i] * s * (1.0 - s) * u[i] * y[i]
        spent += w[i] * flip * price[i]
    scalars[LOSS] += value
    side[GRADIENT] -= spent


def survey(CompiledRows rows, const double[:] costs, double kappa, double kink, start, bends,
           shares, const double[::1] coef, const double[::1] dual_coef, double multiple):
    """Survey the samples after a step ``coef`` (with λ) from margins ``start``.

    The dual point follows ``dual_coef`` by the curvatures ``bends``, and the margins, by a
    ``multiple``, by their present curvature; ``shares`` flip.  Flips cost ``kappa`` times ``costs``
    and pay, after the step, from margins of ``kink`` times those on.  Returns the margins, s, and
    the sums: of the dual point, of the gradient with the flips above the kink, and of the Hessian
    of the loss times the model, each (P; the entry of λ is minus what flips cost), and SCALARS.
    """
    cdef Py_ssize_t block, i, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride
    cdef const double[::1] share = shares, u = start, bent = bends
    fit(u.shape[0] == n and bent.shape[0] == n and share.shape[0] == n, "margins")
    fit(costs.shape[0] == n and coef.shape[0] == P and dual_coef.shape[0] == P, "steps")
    margins, probabilities, sums = np.array(start), np.empty(n), np.zeros(COLUMNS * P + SCALARS)
    cdef double[::1] after = margins, s = probabilities, total = sums
    cdef double[:, ::1] columns = np.empty((COLUMNS, b)), panel = np.empty((3, b))
    cdef double* price = &panel[0, 0]
    cdef double* kinks = &panel[1, 0]
    cdef double* du = &panel[2, 0]
    cdef double* scalars = &total[COLUMNS * P]
    cdef double side[COLUMNS]
    cdef const double* w
    cdef const double* y
    side[DUAL] = side[GRADIENT] = side[PRODUCT] = 0.0
    kappa = 0.0 if isinf(kappa) else kappa
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m, w, y = min(b, n - lo), &rows.w[lo], &rows.y[lo]
            for i in range(m):
                price[i] = 0.0 if isinf(costs[lo + i]) else kappa * costs[lo + i]
                kinks[i] = costs[lo + i] if isinf(costs[lo + i]) else kink * costs[lo + i]
            rows.margins(lo, lo + m, &dual_coef[0], du)
            dual_point(m, w, y, price, &u[lo], &bent[lo], du, multiple, &share[lo], &s[lo],
                       &columns[DUAL, 0], scalars, side)
            rows.margins(lo, lo + m, &coef[0], du)
            losses_at(m, w, y, price, kinks, du, &after[lo], &columns[GRADIENT, 0],
                      &columns[PRODUCT, 0], scalars, side)
            rows.adjoint(lo, lo + m, &columns[0, 0], COLUMNS, &total[0])
        for i in range(COLUMNS):
            total[(i + 1) * P - 1] = side[i]
        scalars[ADDITIONS] = rows.length
    rows.free()
    return margins, probabilities, sums
