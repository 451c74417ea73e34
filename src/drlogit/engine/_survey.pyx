"""All samples at once, seldom: where a step of the loss's model leads, and what it proves.

``survey`` returns the objective there, the next model's gradient, and the equations of the dual point that the model's
multipliers make of all samples, as one flat array of sums: adjoint P of the dual point (λ's entry: minus what is spent),
gradient P with flips above the kink, LOSSES, PROOF.
"""
import numpy as np
from libc.math cimport fabs
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.rows._clones cimport cloned
from drlogit.rows._products cimport CompiledRows

cdef extern from *:
    """
    typedef const double *__restrict In;
    typedef double *__restrict Out;
    """
    ctypedef const double* In
    ctypedef double* Out

cdef enum:
    LOSSES = 2          # loss, hinges
    PROOF = 3           # weight of unseen crossings times how far they go, entropy, additions


cdef cloned losses_at(Py_ssize_t n, In w, In y, In price, In kink, In u, Out gradient, double* tot, double* side) noexcept nogil:
    """Loss and hinges at margins u; the gradient's column, with flips above the kink."""
    cdef Py_ssize_t i
    cdef double s, over, flip, value = 0.0, hinges = 0.0, spent = 0.0
    for i in range(n):
        value += w[i] * loss_terms(u[i], &s)
        over = u[i] - kink[i]
        flip = 1.0 if over > 0.0 else 0.0
        hinges += w[i] * (over if over > 0.0 else 0.0)
        gradient[i] = w[i] * (flip - s) * y[i]
        spent += w[i] * flip * price[i]
    tot[0] += value
    tot[1] += hinges
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


def survey(CompiledRows rows, const double[::1] price, const double[::1] kink, const double[::1] kink_ahead,
           const double[::1] u, const double[::1] curvature, const unsigned char[::1] inside, const double[::1] shares,
           const double[::1] dcoef, const double[::1] dual_dcoef, double step):
    """Go by ``step`` along ``dcoef`` (with λ) from margins u; the dual point goes along ``dual_dcoef``.

    Of each sample ``price`` is what its flip costs, 0 where it has none, and the kinks are the margins from which it pays.
    Its flips are ``shares`` of samples ``inside`` the band, in their order; others stay on their side of the kink.
    """
    cdef Py_ssize_t block, i, j, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride, k = 0
    margins, point, sums = np.empty(n), np.empty((2, n)), np.zeros(2 * P + LOSSES + PROOF)
    cdef double[::1] after = margins, s = point[0], a = point[1], view = sums
    cdef double[:, ::1] columns = np.empty((3, b))
    cdef double* adj = &view[0]
    cdef double* tot = adj + 2 * P
    cdef double* col = &columns[0, 0]
    cdef double* du = col + 2 * b
    cdef double side[2]
    side[0] = side[1] = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m = min(b, n - lo)
            for i in range(lo, lo + m):
                a[i] = 1.0 if u[i] > kink[i] else 0.0
                if inside[i]:
                    a[i] = shares[k]
                    k += 1
            rows.margins(lo, lo + m, &dual_dcoef[0], du)
            dual_point(m, &rows.w[lo], &rows.y[lo], &price[lo], &u[lo], &curvature[lo], du, &a[lo], &s[lo], col, tot, &side[0])
            rows.margins(lo, lo + m, &dcoef[0], du)
            for i in range(lo, lo + m):
                j = i - lo
                after[i] = u[i] + step * rows.y[i] * du[j]
                if not inside[i] and (after[i] > kink_ahead[i]) != (u[i] > kink[i]):
                    tot[LOSSES] += rows.w[i] * fabs(after[i] - kink_ahead[i])
            losses_at(m, &rows.w[lo], &rows.y[lo], &price[lo], &kink_ahead[lo], &after[lo], col + b, tot, &side[1])
            rows.adjoint(lo, lo + m, col, 2, adj)
        adj[P - 1], adj[2 * P - 1], tot[LOSSES + 2] = side[0], side[1], rows.length
    rows.free()
    return margins, point, sums
