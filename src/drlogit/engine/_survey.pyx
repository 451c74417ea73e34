"""All samples at once, seldom: where a step of the loss's model leads, and what it proves.

``survey`` returns the objective there, the next model's gradient, and the equations of the dual
point that the model's multipliers make of all samples, as one flat array of sums: adjoint P of the
dual point (λ's entry: minus what is spent), gradient P with flips above the kink, Gram matrix times
the model P, SCALARS, and two histograms of distances from the kink, over the bins that ``EDGES``
divide: of weights, and of what flips of those above cost (per κ).

Derivation: docs/algorithm.md, (21).
"""
import numpy as np
from libc.math cimport fabs, isinf
from libc.string cimport memcpy
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.rows._clones cimport cloned
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit

cdef extern from *:
    """
    typedef const double *__restrict In;
    typedef double *__restrict Out;
    """
    ctypedef const double* In
    ctypedef double* Out

cdef enum:
    # loss, hinges, curvature, weight of unseen crossings times how far they go; entropy, additions
    SCALARS = 6
    BINS = 561          # the first ends before the first edge, the last one nowhere

# The first three bits of the significand, eight edges to an octave, from 2⁻⁴⁰ on.
cdef long long SHIFT = 49, FIRST = (1023 - 40) << 3
EDGES = ((np.arange(BINS - 1) + FIRST) << SHIFT).view(np.float64)


cdef cloned losses_at(Py_ssize_t n, In w, In y, In price, In kink, In u, Out curvature,
                      Out gradient, Out curved, double* tot, double* side) noexcept nogil:
    """Loss, hinges and curvature at margins u; columns of the gradient, with flips above the kink,
    and of curvature times u.
    """
    cdef Py_ssize_t i
    cdef double s, over, flip, value = 0.0, hinges = 0.0, total = 0.0, spent = 0.0
    for i in range(n):
        value += w[i] * loss_terms(u[i], &s)
        over = u[i] - kink[i]
        flip = 1.0 if over > 0.0 else 0.0
        hinges += w[i] * (over if over > 0.0 else 0.0)
        curvature[i] = s * (1.0 - s)
        total += w[i] * curvature[i]
        gradient[i] = w[i] * (flip - s) * y[i]
        curved[i] = w[i] * curvature[i] * u[i] * y[i]
        spent += w[i] * flip * price[i]
    tot[0] += value
    tot[1] += hinges
    tot[2] += total
    side[0] -= spent


cdef cloned dual_point(Py_ssize_t n, In w, In y, In price, In u, In curvature, In du,
                       double multiple, In share, Out point, Out column, double* tot,
                       double* side) noexcept nogil:
    """s after a change of the margins by the model, and its part of the equations."""
    cdef Py_ssize_t i
    cdef double s, value = 0.0, spent = 0.0
    for i in range(n):
        loss_terms(u[i], &s)
        s -= curvature[i] * y[i] * du[i] + s * (1.0 - s) * multiple * u[i]
        s = s if s > 0.0 else 0.0
        point[i] = s if s < 1.0 else 1.0
        value += w[i] * entropy(point[i])
        column[i] = w[i] * (share[i] - point[i]) * y[i]
        spent += w[i] * price[i] * share[i]
    tot[4] += value
    side[0] -= spent


def survey(CompiledRows rows, const double[::1] costs, double kappa, double kink,
           const double[::1] u, double kink_ahead=0.0, const double[::1] dcoef=None,
           double step=0.0, const double[::1] curvature=None, const double[::1] dual_dcoef=None,
           double multiple=0.0, const unsigned char[::1] inside=None,
           const double[::1] shares=None):
    """Go by ``step`` along ``dcoef`` (with λ) from margins u: margins, curvatures, dual point and
    sums; or stay.

    Flips cost ``kappa`` times ``costs``, of each sample or one for all, and pay from ``kink`` times
    those on.  The dual point goes along ``dual_dcoef`` by the curvature given, and along u, by a
    multiple, by that at u.  Its flips are ``shares`` of samples ``inside`` the band, in their
    order; others stay on their side of the kink.
    """
    cdef Py_ssize_t block, i, j, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride, k = 0
    cdef Py_ssize_t each = costs.shape[0] > 1
    cdef bint moves = dcoef is not None
    fit(u.shape[0] == n and (costs.shape[0] == 1 or costs.shape[0] == n), "margins and costs")
    if moves:
        fit(dcoef.shape[0] == P and dual_dcoef.shape[0] == P and curvature.shape[0] == n, "steps")
        fit(inside.shape[0] == n and shares.shape[0] == np.count_nonzero(inside), "shares")
    margins, curvatures, point = np.array(u), np.empty(n), np.empty((2, n if moves else 0))
    sums = np.zeros(3 * P + SCALARS + 2 * BINS)
    cdef double[::1] after = margins, bent = curvatures, s = point[0], a = point[1], view = sums
    cdef double[:, ::1] columns = np.empty((7, b))
    cdef double* adj = &view[0]
    cdef double* tot = adj + 3 * P
    cdef double* bins = tot + SCALARS
    cdef double* col = &columns[0, 0]
    cdef double* du = col + 3 * b
    cdef double* price = col + 4 * b
    cdef double* start = col + 5 * b
    cdef double* end = col + 6 * b
    cdef double cost, distance
    cdef double side[2]
    cdef long long place
    kappa, kink_ahead = 0.0 if isinf(kappa) else kappa, kink_ahead if moves else kink
    side[0] = side[1] = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            for i in range(m):
                cost = costs[each * (lo + i)]
                price[i] = 0.0 if isinf(cost) else kappa * cost
                start[i] = cost if isinf(cost) else kink * cost
                end[i] = cost if isinf(cost) else kink_ahead * cost
            if moves:
                for i in range(lo, lo + m):
                    a[i] = 1.0 if u[i] > start[i - lo] else 0.0
                    if inside[i]:
                        a[i] = shares[k]
                        k += 1
                rows.margins(lo, lo + m, &dual_dcoef[0], du)
                dual_point(m, &rows.w[lo], &rows.y[lo], price, &u[lo], &curvature[lo], du, multiple,
                           &a[lo], &s[lo], col, tot, &side[0])
                rows.margins(lo, lo + m, &dcoef[0], du)
                for i in range(lo, lo + m):
                    j = i - lo
                    after[i] += step * rows.y[i] * du[j]
                    if not inside[i] and (after[i] > end[j]) != (u[i] > start[j]):
                        tot[3] += rows.w[i] * fabs(after[i] - end[j])
            losses_at(m, &rows.w[lo], &rows.y[lo], price, end, &after[lo], &bent[lo], col + b, col
                      + 2 * b, tot, &side[1])
            for i in range(m):
                distance = fabs(after[lo + i] - end[i])
                memcpy(&place, &distance, sizeof(double))
                place = min(max((place >> SHIFT) - FIRST + 1, 0), BINS - 1)
                bins[place] += rows.w[lo + i]
                if after[lo + i] > end[i]:
                    bins[BINS + place] += rows.w[lo + i] * costs[each * (lo + i)]
            if moves:
                rows.adjoint(lo, lo + m, col, 3, adj)
            else:
                rows.adjoint(lo, lo + m, col + b, 2, adj + P)
        adj[P - 1], adj[2 * P - 1], tot[5] = side[0], side[1], rows.length
    rows.free()
    return margins, curvatures, point, sums
