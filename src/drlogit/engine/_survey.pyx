"""Surveys of all samples, for the method for many rows: objective, next quadratic model, and bound.

``survey`` evaluates the samples at margins u; ``survey_step`` first moves them along a step of the
quadratic model (20) and adds up the dual point (21) that its multipliers make.  Sums, in
one flat array: adjoint of the dual point (P; the entry of λ is minus what flips cost), gradient
with the flips above the kink (P), Hessian of the loss times the model (P), SCALARS, and two
histograms of the distances from the kink over the bins that EDGES divide: of weights, and of
weights times flip costs above the kink (per κ).

    u, s       margins and dual probabilities        w, y      weights and labels
    price      flip costs, 0 where they are infinite kink      margin κλ from which flips pay
    active     samples of the active set             share     shares of samples that flip
    bent       h'' at the new margins                side      λ's entries of adjoints

Derivation: docs/algorithm.md, (20) and (21).
"""
from collections import namedtuple

import numpy as np
from libc.math cimport fabs, isinf
from libc.string cimport memcpy
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.rows._clones cimport In, Out, cloned
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit

cpdef enum:
    # CROSSED: weight of samples outside the active set that crossed the kink, times how far
    LOSS, HINGES, CURVATURE, CROSSED, ENTROPY, ADDITIONS, SCALARS

cdef enum:
    BINS = 561          # the first ends before the first edge, the last one nowhere
    DUAL = 0, GRADIENT, PRODUCT, COLUMNS        # columns of the adjoints

# Edges are the numbers with three bits of the significand, eight to an octave, from 2⁻⁴⁰ on.
cdef long long SHIFT = 49, FIRST = (1023 - 40) << 3
EDGES = ((np.arange(BINS - 1) + FIRST) << SHIFT).view(np.float64)

#: A step of the quadratic model: its direction ``coef`` (with λ) and length, and the unit of the
#: kink after it.  The dual point follows ``dual_coef`` by the curvature given, and the margins, by
#: a multiple, by that at u.  ``flips`` are the shares of the samples in the ``active`` set, in
#: order; other samples stay on their side of the kink.
SurveyStep = namedtuple(
    "SurveyStep", "coef length kink curvature dual_coef multiple active flips", module=__name__)

SurveySums = namedtuple("SurveySums", "adjoint gradient product scalars histograms",
                        module=__name__)


def parts_of(sums, P):
    """The parts of a survey's sums."""
    ends = [P, 2 * P, 3 * P, 3 * P + SCALARS]
    adjoint, gradient, product, scalars, histograms = np.split(sums, ends)
    return SurveySums(adjoint, gradient, product, scalars, histograms.reshape(2, BINS))


cdef cloned losses_at(Py_ssize_t n, In w, In y, In price, In kink, In u, Out bent, Out gradient,
                      Out product, double* scalars, double* side) noexcept nogil:
    """Loss, hinges and curvature at margins u, and the columns of gradient and Hessian product."""
    cdef Py_ssize_t i
    cdef double s, over, flip, value = 0.0, hinges = 0.0, total = 0.0, spent = 0.0
    for i in range(n):
        value += w[i] * loss_terms(u[i], &s)
        over = u[i] - kink[i]
        flip = 1.0 if over > 0.0 else 0.0
        hinges += w[i] * (over if over > 0.0 else 0.0)
        bent[i] = s * (1.0 - s)
        total += w[i] * bent[i]
        gradient[i] = w[i] * (flip - s) * y[i]
        product[i] = w[i] * bent[i] * u[i] * y[i]
        spent += w[i] * flip * price[i]
    scalars[LOSS] += value
    scalars[HINGES] += hinges
    scalars[CURVATURE] += total
    side[0] -= spent


cdef cloned dual_point(Py_ssize_t n, In w, In y, In price, In u, In curvature, In du,
                       double multiple, In share, Out point, Out column, double* scalars,
                       double* side) noexcept nogil:
    """s of (21), after a change of the margins by the model, and its part of the equations."""
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
    scalars[ENTROPY] += value
    side[0] -= spent


cdef void count(Py_ssize_t n, In w, In u, In kink, const double* costs, Py_ssize_t stride,
                double* bins) noexcept nogil:
    """Add the samples to the histograms of distances from the kink."""
    cdef Py_ssize_t i
    cdef double distance
    cdef long long place
    for i in range(n):
        distance = fabs(u[i] - kink[i])
        memcpy(&place, &distance, sizeof(double))
        place = min(max((place >> SHIFT) - FIRST + 1, 0), BINS - 1)
        bins[place] += w[i]
        if u[i] > kink[i]:
            bins[BINS + place] += w[i] * costs[stride * i]


cdef class Survey:
    """One survey of a block: what it reads, and its sums."""
    cdef CompiledRows rows
    cdef const double[::1] costs, u
    cdef double kappa, kink
    cdef object margins, curvatures, sums
    cdef double[::1] after, bent, total
    cdef double[:, ::1] columns, panel      # of the adjoints; prices and kinks of a panel
    cdef double* scalars
    cdef double* bins

    def __init__(self, CompiledRows rows, costs, double kappa, double kink, u):
        self.costs, self.u, self.kink = costs, u, kink
        self.kappa = 0.0 if isinf(kappa) else kappa
        n, b = rows.n_samples, rows.panel
        fit(self.u.shape[0] == n and len(costs) in (1, n), "margins and costs")
        self.margins, self.curvatures = np.array(u), np.empty(n)
        self.sums = np.zeros(3 * rows.stride + SCALARS + 2 * BINS)
        self.after, self.bent, self.total = self.margins, self.curvatures, self.sums
        self.columns, self.panel = np.empty((COLUMNS, b)), np.empty((3, b))
        self.scalars = &self.total[3 * rows.stride]
        self.bins = self.scalars + SCALARS
        self.rows = rows.borrow()

    cdef void price(self, Py_ssize_t lo, Py_ssize_t m, double kink, double* price,
                    double* kinks) noexcept nogil:
        """Flip costs and kinks of a panel, at this unit of the kink."""
        cdef Py_ssize_t i, each = self.costs.shape[0] > 1
        cdef double cost
        for i in range(m):
            cost = self.costs[each * (lo + i)]
            price[i] = 0.0 if isinf(cost) else self.kappa * cost
            kinks[i] = cost if isinf(cost) else kink * cost

    cdef void evaluate(self, Py_ssize_t lo, Py_ssize_t m, double* price, double* kinks,
                       double* side) noexcept nogil:
        """The samples of a panel at their new margins."""
        cdef Py_ssize_t each = self.costs.shape[0] > 1
        losses_at(m, &self.rows.w[lo], &self.rows.y[lo], price, kinks, &self.after[lo],
                  &self.bent[lo], &self.columns[GRADIENT, 0], &self.columns[PRODUCT, 0],
                  self.scalars, side)
        count(m, &self.rows.w[lo], &self.after[lo], kinks, &self.costs[each * lo], each, self.bins)


def survey(CompiledRows rows, const double[::1] costs, double kappa, double kink,
           const double[::1] u):
    """Margins, curvatures and sums at margins u.

    Flips cost ``kappa`` times ``costs`` (one, or one for each sample) and pay from margins of
    ``kink`` times those on.
    """
    cdef Survey visit = Survey(rows, costs, kappa, kink, u)
    cdef Py_ssize_t block, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride
    cdef double side = 0.0
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            visit.price(lo, m, kink, &visit.panel[0, 0], &visit.panel[1, 0])
            visit.evaluate(lo, m, &visit.panel[0, 0], &visit.panel[1, 0], &side)
            visit.rows.adjoint(lo, lo + m, &visit.columns[GRADIENT, 0], 2, &visit.total[P])
        visit.total[2 * P - 1] = side
    visit.rows.free()
    return visit.margins, visit.curvatures, visit.sums


def survey_step(CompiledRows rows, const double[::1] costs, double kappa, double kink,
                const double[::1] u, step):
    """Margins, the dual point (s, a) and sums after a step (``SurveyStep``) from margins u."""
    cdef Survey visit = Survey(rows, costs, kappa, kink, u)
    cdef Py_ssize_t block, i, j, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride, k = 0
    cdef const double[::1] dcoef = step.coef, dual_dcoef = step.dual_coef
    cdef const double[::1] curvature = step.curvature, flips = step.flips
    cdef const unsigned char[::1] active = step.active
    cdef double length = step.length, kink_after = step.kink, multiple = step.multiple
    fit(dcoef.shape[0] == P and dual_dcoef.shape[0] == P and curvature.shape[0] == n, "steps")
    fit(active.shape[0] == n and flips.shape[0] == np.count_nonzero(active), "flips")
    point = np.empty((2, n))
    cdef double[::1] s = point[0], a = point[1], change = np.empty(b)
    cdef double* price = &visit.panel[0, 0]
    cdef double* before = &visit.panel[1, 0]
    cdef double* after = &visit.panel[2, 0]
    cdef double* du = &change[0]
    cdef double side[2]
    side[0] = side[1] = 0.0
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            visit.price(lo, m, kink, price, before)
            visit.price(lo, m, kink_after, price, after)
            for i in range(lo, lo + m):
                a[i] = 1.0 if u[i] > before[i - lo] else 0.0
                if active[i]:
                    a[i] = flips[k]
                    k += 1
            visit.rows.margins(lo, lo + m, &dual_dcoef[0], du)
            dual_point(m, &rows.w[lo], &rows.y[lo], price, &u[lo], &curvature[lo], du, multiple,
                       &a[lo], &s[lo], &visit.columns[DUAL, 0], visit.scalars, &side[0])
            visit.rows.margins(lo, lo + m, &dcoef[0], du)
            for i in range(lo, lo + m):
                j = i - lo
                visit.after[i] += length * rows.y[i] * du[j]
                if not active[i] and (visit.after[i] > after[j]) != (u[i] > before[j]):
                    visit.scalars[CROSSED] += rows.w[i] * fabs(visit.after[i] - after[j])
            visit.evaluate(lo, m, price, after, &side[1])
            visit.rows.adjoint(lo, lo + m, &visit.columns[0, 0], COLUMNS, &visit.total[0])
        visit.total[P - 1], visit.total[2 * P - 1] = side[0], side[1]
        visit.scalars[ADDITIONS] = rows.length
    visit.rows.free()
    return visit.margins, point, visit.sums
