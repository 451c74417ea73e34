"""All samples at once, seldom: the model of the loss at a point, and where a step of the model leads.

``look`` forms the model, ``survey`` follows a step: the objective there, the next model's gradient, and the
equations of the dual point that the model's multipliers make of all samples.  Sums are one flat array:

look        Gram P·P (lower triangle; if asked for), gradient P with flips above the kink, LOOKED
survey      adjoint P of the dual point (λ's entry: minus what is spent), gradient P, SURVEYED

Near the kink ``near_shares`` corrects the flips of those samples that the driver has seen.
"""
import numpy as np
from libc.math cimport INFINITY, fabs
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.rows._products cimport CompiledRows
from ._pair cimport A, C, PairState, Q

cdef enum:
    LOOKED = 3          # loss, hinges, mean curvature
    SURVEYED = 5        # entropy, additions, loss, hinges, weight of unseen crossings times how far they go


def look(CompiledRows rows, const double[::1] kappa, const double[::1] u, double factor, double lam, bint gram):
    """Margins times ``factor`` and the curvature of the loss there; its model with the kinks at κ·``lam``."""
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, b = rows.panel, P = rows.stride, last = P - 1
    cdef Py_ssize_t square = P * P if gram else 0
    cdef bint many = kappa.shape[0] > 1
    cdef double s, w, v, kap
    margins, curvatures, sums = np.empty(n), np.empty(n), np.zeros(square + P + LOOKED)
    cdef double[::1] after = margins, curved = curvatures, view = sums
    cdef double[:, ::1] columns = np.empty((2, b))
    cdef double* out = &view[0]
    cdef double* adj = out + square
    cdef double* tot = adj + P
    cdef double* col = &columns[0, 0]
    cdef double side = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            for i in range(lo, hi):
                j, w, kap, after[i] = i - lo, rows.w[i], kappa[i if many else 0], factor * u[i]
                tot[0] += w * loss_terms(after[i], &s)
                curved[i] = s * (1.0 - s)
                tot[2] += w * curved[i]
                v = after[i] - kap * lam if kap != INFINITY else -1.0
                col[j], col[b + j] = -w * s * rows.y[i], w * curved[i]
                if v > 0.0:
                    tot[1] += w * v
                    col[j] += w * rows.y[i]
                    side -= w * kap
            rows.adjoint(lo, hi, col, 1, adj)
            if gram: rows.gram(lo, hi, col + b, out)
        adj[last] = side
    rows.free()
    return margins, curvatures, sums


def survey(CompiledRows rows, const double[::1] kappa, const double[::1] u, const double[::1] curvature,
           const unsigned char[::1] inside, const double[::1] shares, const double[::1] dcoef,
           const double[::1] dual_dcoef, double step, double lam):
    """Go by ``step`` along ``dcoef`` (with λ) from margins u; the dual point goes along ``dual_dcoef``.

    Its flips are ``shares`` of samples ``inside`` the band, in their order; others stay on their side of the kink.
    """
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, b = rows.panel, P = rows.stride, last = P - 1, k = 0
    cdef bint many = kappa.shape[0] > 1
    cdef double now, s, t, w, y, kap, v, kink, ahead_lam = lam + step * dcoef[last], share, spent = 0.0, side = 0.0
    margins, dual, flips, sums = np.empty(n), np.empty(n), np.empty(n), np.zeros(2 * P + SURVEYED)
    cdef double[::1] after = margins, doubt = dual, a = flips, view = sums
    cdef double[:, ::1] columns = np.empty((4, b))
    cdef double* adj = &view[0]
    cdef double* tot = adj + 2 * P
    cdef double* col = &columns[0, 0]
    cdef double* du = col + 2 * b
    cdef double* cu = col + 3 * b
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &dcoef[0], du)
            rows.margins(lo, hi, &dual_dcoef[0], cu)
            for i in range(lo, hi):
                j, w, y, kap = i - lo, rows.w[i], rows.y[i], kappa[i if many else 0]
                loss_terms(u[i], &now)
                s = now - curvature[i] * y * cu[j]
                s = min(max(s, 0.0), 1.0)
                kink = kap * lam if kap != INFINITY else INFINITY
                share = 1.0 if u[i] > kink else 0.0
                if inside[i]:
                    share = shares[k]
                    k += 1
                doubt[i], a[i] = s, share
                tot[0] += w * entropy(s)
                col[j] = w * (share - s) * y
                if share > 0.0: spent += w * kap * share
                after[i] = u[i] + step * y * du[j]
                tot[2] += w * loss_terms(after[i], &t)
                col[b + j] = -w * t * y
                v = after[i] - kap * ahead_lam if kap != INFINITY else -1.0
                if v > 0.0:
                    tot[3] += w * v
                    col[b + j] += w * y
                    side -= w * kap
                if not inside[i] and (v > 0.0) != (u[i] > kink): tot[4] += w * fabs(v)
            rows.adjoint(lo, hi, col, 2, adj)
        adj[last], adj[P + last], tot[1] = -spent, side, rows.length
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
