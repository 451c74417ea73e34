"""All samples at once, seldom: the model of the loss at a point, and where a step of the model leads.

``look`` forms the model, ``survey`` follows a step: the objective there, the next model's gradient, and the
equations of the dual point that the model's multipliers make of all samples.  Sums are one flat array:

look        Gram P·P (lower triangle), gradient P with flips above the kink, LOSSES
survey      adjoint P of the dual point (λ's entry: minus what is spent), gradient P, LOSSES, PROOF

Near the kink ``near_shares`` corrects the flips of those samples that the driver has seen.
"""
import numpy as np
from libc.math cimport INFINITY, fabs
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.rows._clones cimport cloned
from drlogit.rows._products cimport CompiledRows
from ._pair cimport A, C, PairState, Q

cdef extern from *:
    """
    typedef const double *__restrict In;
    typedef double *__restrict Out;
    """
    ctypedef const double* In
    ctypedef double* Out

cdef enum:
    LOSSES = 3          # loss, hinges, mean curvature
    PROOF = 3           # weight of unseen crossings times how far they go, entropy, additions


cdef void kinks(Py_ssize_t n, const double* kappa, bint many, double lam, Out price, Out kink) noexcept nogil:
    """What flips cost, 0 where there are none, and the margins from which they pay."""
    cdef Py_ssize_t i
    cdef double kap
    for i in range(n):
        kap = kappa[i if many else 0]
        price[i] = kap if kap != INFINITY else 0.0
        kink[i] = kap * lam if kap != INFINITY else INFINITY


cdef cloned losses_at(Py_ssize_t n, In w, In y, In price, In kink, In u, Out gradient, Out curved, double* tot,
                    double* side) noexcept nogil:
    """Loss, hinges and curvature at margins u; the gradient's column, with flips above the kink."""
    cdef Py_ssize_t i
    cdef double s, over, flip, value = 0.0, hinges = 0.0, curvature = 0.0, spent = 0.0
    for i in range(n):
        value += w[i] * loss_terms(u[i], &s)
        over = u[i] - kink[i]
        flip = 1.0 if over > 0.0 else 0.0
        hinges += w[i] * (over if over > 0.0 else 0.0)
        gradient[i], curved[i] = w[i] * (flip - s) * y[i], s * (1.0 - s)
        curvature += w[i] * curved[i]
        spent += w[i] * flip * price[i]
    tot[0] += value
    tot[1] += hinges
    tot[2] += curvature
    side[0] -= spent


cdef cloned dual_point(Py_ssize_t n, In w, In y, In price, In u, In curvature, In du, In share, Out point, Out column,
                     double* tot, double* side) noexcept nogil:
    """s after a change of the margins by the model, and its part of the equations."""
    cdef Py_ssize_t i
    cdef double s, value = 0.0, spent = 0.0
    for i in range(n):
        loss_terms(u[i], &s)
        s -= curvature[i] * y[i] * du[i]
        s = s if s > 0.0 else 0.0
        point[i] = s if s < 1.0 else 1.0
        value += w[i] * entropy(point[i])
        column[i] = w[i] * (share[i] - point[i]) * y[i]
        spent += w[i] * price[i] * share[i]
    tot[LOSSES + 1] += value
    side[0] -= spent


def look(CompiledRows rows, const double[::1] kappa, const double[::1] u, double factor, double lam):
    """Margins times ``factor`` and the curvature of the loss there; its model with the kinks at κ·``lam``."""
    cdef Py_ssize_t block, i, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride
    cdef bint many = kappa.shape[0] > 1
    margins, curvatures, sums = np.multiply(u, factor), np.empty(n), np.zeros(P * P + P + LOSSES)
    cdef double[::1] after = margins, curved = curvatures, view = sums
    cdef double[:, ::1] columns = np.empty((4, b))
    cdef double* gradient = &view[P * P]
    cdef double* col = &columns[0, 0]
    cdef double side = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m = min(b, n - lo)
            kinks(m, &kappa[lo if many else 0], many, lam, col + 2 * b, col + 3 * b)
            losses_at(m, &rows.w[lo], &rows.y[lo], col + 2 * b, col + 3 * b, &after[lo], col, &curved[lo], gradient + P, &side)
            for i in range(m): col[b + i] = rows.w[lo + i] * curved[lo + i]
            rows.adjoint(lo, lo + m, col, 1, gradient)
            rows.gram(lo, lo + m, col + b, &view[0])
        gradient[P - 1] = side
    rows.free()
    return margins, curvatures, sums


def survey(CompiledRows rows, const double[::1] kappa, const double[::1] u, const double[::1] curvature,
           const unsigned char[::1] inside, const double[::1] shares, const double[::1] dcoef,
           const double[::1] dual_dcoef, double step, double lam):
    """Go by ``step`` along ``dcoef`` (with λ) from margins u; the dual point goes along ``dual_dcoef``.

    Its flips are ``shares`` of samples ``inside`` the band, in their order; others stay on their side of the kink.
    """
    cdef Py_ssize_t block, i, j, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride, k = 0
    cdef bint many = kappa.shape[0] > 1
    cdef double ahead_lam = lam + step * dcoef[P - 1]
    margins, dual, flips, sums = np.empty(n), np.empty(n), np.empty(n), np.zeros(2 * P + LOSSES + PROOF)
    cdef double[::1] after = margins, s = dual, a = flips, view = sums
    cdef double[:, ::1] columns = np.empty((7, b))
    cdef double* adj = &view[0]
    cdef double* tot = adj + 2 * P
    cdef double* col = &columns[0, 0]
    cdef double* du = col + 2 * b
    cdef double* price = col + 3 * b
    cdef double* kink = col + 4 * b
    cdef double* kink_ahead = col + 5 * b
    cdef double side[2]
    side[0] = side[1] = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m = min(b, n - lo)
            kinks(m, &kappa[lo if many else 0], many, lam, price, kink)
            kinks(m, &kappa[lo if many else 0], many, ahead_lam, price, kink_ahead)
            for i in range(lo, lo + m):
                a[i] = 1.0 if u[i] > kink[i - lo] else 0.0
                if inside[i]:
                    a[i] = shares[k]
                    k += 1
            rows.margins(lo, lo + m, &dual_dcoef[0], du)
            dual_point(m, &rows.w[lo], &rows.y[lo], price, &u[lo], &curvature[lo], du, &a[lo], &s[lo], col, tot, &side[0])
            rows.margins(lo, lo + m, &dcoef[0], du)
            for i in range(lo, lo + m):
                j = i - lo
                after[i] = u[i] + step * rows.y[i] * du[j]
                if not inside[i] and (after[i] > kink_ahead[j]) != (u[i] > kink[j]):
                    tot[LOSSES] += rows.w[i] * fabs(after[i] - kink_ahead[j])
            losses_at(m, &rows.w[lo], &rows.y[lo], price, kink_ahead, &after[lo], col + b, col + 6 * b, tot, &side[1])
            rows.adjoint(lo, lo + m, col, 2, adj)
        adj[P - 1], adj[2 * P - 1], tot[LOSSES + 2] = side[0], side[1], rows.length
    rows.free()
    return margins, dual, flips, sums


def near_shares(CompiledRows rows, PairState state, point, const double[::1] dcoef, double least):
    """Flips of the driver's samples after one more correction, and their adjoint (no loss).

    Hinges of less curvature than ``least`` are not in the Gram matrix, and do not take part.
    """
    cdef Py_ssize_t block, i, lo, hi, n = rows.n_samples, b = rows.panel, last = rows.n_columns
    cdef double om, spent = 0.0, dlam = dcoef[last]
    cdef const double[::1] kappa = state.kappa
    sums = np.zeros(last + 1)
    if not n: return np.zeros(0), sums
    shares = np.array(state.now[A] if point is None else point)
    cdef double[::1] a = shares, out = sums
    cdef double[:, ::1] now = state.now, columns = np.empty((2, b))
    cdef double* col = &columns[0, 0]
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &dcoef[0], col + b)
            for i in range(lo, hi):
                om = now[C, i] * now[A, i] * now[Q, i]
                if om >= least: a[i] = min(max(a[i] + om * (rows.y[i] * col[b + i - lo] - kappa[i] * dlam), 0.0), 1.0)
                spent += rows.w[i] * kappa[i] * a[i]
                col[i - lo] = rows.w[i] * a[i] * rows.y[i]
            rows.adjoint(lo, hi, col, 1, &out[0])
        out[last] = -spent
    rows.free()
    return shares, sums
