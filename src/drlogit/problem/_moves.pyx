"""The exact adversary of samples with domains, as compiled loops
(:mod:`drlogit.problem.worst_moves`).

``now`` holds the column of the category that a sample has in each group, -1 for none, and
``values`` its bounded features.
"""
import numpy as np

from libc.math cimport fabs

from drlogit.rows._shapes cimport fit
from ._losses cimport loss_terms


cdef inline Item item_of(const Priced* m, const int* now, const double* values, double sign,
                         Py_ssize_t j) noexcept nogil:
    """Item j of a sample under the label ``sign``: what moves, what that gains, and what it costs.

    A category changes to the one that lowers the margin most.  A bounded feature moves to the end
    that does; not at all where an audited row lies beyond that end already.
    """
    cdef Item it
    cdef double here, distance
    if j < m.n_groups:
        here = m.beta[now[j]] if now[j] >= 0 else 0.0
        it.gain = here - m.low[j] if sign > 0.0 else m.high[j] - here
        it.cost, it.number = m.group_costs[j], j
        return it
    j -= m.n_groups
    here = sign * m.beta[m.bounded[j]]
    it.number = m.n_groups + 2 * j + (0 if here > 0.0 else 1)
    distance = values[j] - m.lower[j] if here > 0.0 else m.upper[j] - values[j]
    distance = max(distance, 0.0)
    it.gain, it.cost = fabs(here) * distance, m.bounded_costs[j] * distance
    return it


cdef Py_ssize_t sorted_items(const Priced* m, const int* now, const double* values, double sign,
                             double least, Item* out) noexcept nogil:
    """Items of a sample under the label ``sign`` that gain more than ``least`` per cost, best
    first.
    """
    cdef Py_ssize_t n = 0, j, k, t, gap = 1
    cdef Item it
    for j in range(m.n_groups + m.n_bounded):
        it = item_of(m, now, values, sign, j)
        if it.gain > least * it.cost:
            it.rate = it.gain / it.cost
            out[n] = it
            n += 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:                      # Shell's sort: by insertion where few items pay, as usual
        for t in range(gap, n):
            it, k = out[t], t
            while k >= gap and out[k - gap].rate < it.rate:
                out[k] = out[k - gap]
                k -= gap
            out[k] = it
        gap //= 3
    return n


cdef Py_ssize_t prefixes(const Priced* m, Item* items, const int* now, const double* values,
                         double sign, double score, double cost, double least,
                         double[:, ::1] out) noexcept nogil:
    """Cost and loss of a sample with a label and its best items moved, one after another; how many
    there are.  The label costs ``cost``.
    """
    cdef Py_ssize_t t, n = sorted_items(m, now, values, sign, least, items)
    cdef double s, margin = sign * score
    out[0, 0], out[0, 1] = cost, loss_terms(margin, &s)
    for t in range(n):
        margin -= items[t].gain
        cost += items[t].cost
        out[t + 1, 0], out[t + 1, 1] = cost, loss_terms(margin, &s)
    return n + 1


cdef Py_ssize_t upper_hull(const double[:, ::1] own, Py_ssize_t n_own,
                           const double[:, ::1] other, Py_ssize_t n_other, double least,
                           double[:, ::1] hull) noexcept nogil:
    """The upper hull of the points of both labels, as far as it rises by more than ``least`` per
    cost: how many points it has.

    Both lists are sorted by cost.  A point of the hull is its cost, its loss and its number, for
    the other label ``-1 - number``.
    """
    cdef Py_ssize_t a = 0, b = 0, top = 0
    cdef double cost, value, number, step, rise
    while a < n_own or b < n_other:
        if b >= n_other or (a < n_own and own[a, 0] <= other[b, 0]):
            cost, value, number = own[a, 0], own[a, 1], a
            a += 1
        else:
            cost, value, number = other[b, 0], other[b, 1], -1 - b
            b += 1
        while top > 0:
            step, rise = cost - hull[top - 1, 0], value - hull[top - 1, 1]
            if rise <= least * step:
                break
            if step > 0.0 and (top == 1 or rise * (hull[top - 1, 0] - hull[top - 2, 0])
                               < step * (hull[top - 1, 1] - hull[top - 2, 1])):
                break
            top -= 1
        if top == 0 or (value - hull[top - 1, 1] > least * (cost - hull[top - 1, 0])
                        and cost > hull[top - 1, 0]):
            hull[top, 0], hull[top, 1], hull[top, 2] = cost, value, number
            top += 1
    return top


cdef int check(const Priced* m, Py_ssize_t n, const int[:, ::1] now,
               const double[:, ::1] values) except -1:
    return fit(now.shape[0] == n and values.shape[0] == n and now.shape[1] == m.n_groups
               and values.shape[1] == m.n_bounded, "samples")


cdef class Oracle:
    """A model with the costs of its moves, and room for the items of a sample.

    ``places`` are those of the bounded features among the coefficients, if not in the domains.
    """

    def __init__(self, domains, coefficients, places=None):
        cdef const double[::1] beta = np.ascontiguousarray(coefficients, np.float64)
        cdef const double[::1] low, high, group_costs = domains.group_costs, lower = domains.lower
        cdef const double[::1] upper = domains.upper, bounded_costs = domains.bounded_costs
        cdef const int[::1] bounded = (domains.bounded if places is None else places).astype("i4")
        low, high = domains.ranges(coefficients)
        self.m.n_groups, self.m.n_bounded = low.shape[0], bounded.shape[0]
        self.most, self.n_items = low.shape[0] + bounded.shape[0], domains.n_items
        cdef unsigned char[::1] room = np.empty((self.most + 1) * sizeof(Item), np.uint8)
        self.kept = room, beta, low, high, group_costs, lower, upper, bounded_costs, bounded
        self.items, self.m.beta = <Item*>&room[0], &beta[0]
        if low.shape[0]:
            self.m.low, self.m.high, self.m.group_costs = &low[0], &high[0], &group_costs[0]
        if bounded.shape[0]:
            self.m.lower, self.m.upper = &lower[0], &upper[0]
            self.m.bounded_costs, self.m.bounded = &bounded_costs[0], &bounded[0]

    def moves(self, const int[:, ::1] now, const double[:, ::1] values, const double[::1] signs):
        """Gains and costs of the items of samples under these labels: groups, bounded features."""
        cdef Py_ssize_t i, j, n = signs.shape[0]
        check(&self.m, n, now, values)
        gains, costs = np.empty((2, n, self.most))
        cdef double[:, ::1] gain = gains, cost = costs
        cdef Item it
        for i in range(n):
            for j in range(self.most):
                it = item_of(&self.m, &now[i, 0] if self.m.n_groups else NULL,
                             &values[i, 0] if self.m.n_bounded else NULL, signs[i], j)
                gain[i, j], cost[i, j] = it.gain, it.cost
        return gains, costs

    def best(self, const int[:, ::1] now, const double[:, ::1] values, const double[::1] signs,
             const Py_ssize_t[::1] lengths):
        """The so many best items of samples under these labels, as a mask (``Domains.n_items``)."""
        cdef Py_ssize_t i, k, count, n = signs.shape[0]
        check(&self.m, n, now, values)
        fit(lengths.shape[0] == n, "lengths")
        mask = np.zeros((n, self.n_items), np.uint8)
        cdef unsigned char[:, ::1] chosen = mask
        for i in range(n):
            count = sorted_items(&self.m, &now[i, 0] if self.m.n_groups else NULL,
                                 &values[i, 0] if self.m.n_bounded else NULL, signs[i], 0.0,
                                 self.items)
            for k in range(min(count, lengths[i])):
                chosen[i, self.items[k].number] = True
        return mask.view(np.bool_)

    def envelopes(self, const int[:, ::1] now, const double[:, ::1] values,
                  const double[::1] scores, const double[::1] y, const double[::1] kappa,
                  double least):
        """Edges of the samples' upper hulls: sample, rate, cost, and the point that it leads to."""
        cdef Py_ssize_t N = scores.shape[0], i, t, top, n_own, n_other, filled = 0
        cdef double step, flip
        cdef const int* codes
        cdef const double* numbers
        check(&self.m, N, now, values)
        fit(y.shape[0] == N and kappa.shape[0] == N, "labels")
        most = N * (2 * self.most + 1)          # memory is taken as it is written
        owners, options, rises = np.empty(most, np.intp), np.empty(most, np.intp), np.empty(most)
        spent = np.empty(most)
        cdef Py_ssize_t[::1] own = owners, option = options
        cdef double[::1] rate = rises, cost = spent
        cdef double[:, ::1] first = np.empty((self.most + 1, 2)), second = np.empty_like(first)
        cdef double[:, ::1] hull = np.empty((2 * self.most + 2, 3))
        with nogil:
            for i in range(N):
                codes = &now[i, 0] if self.m.n_groups else NULL
                numbers = &values[i, 0] if self.m.n_bounded else NULL
                n_own = prefixes(&self.m, self.items, codes, numbers, y[i], scores[i], 0.0, least,
                                 first)
                n_other, flip = 0, kappa[i]
                if flip <= 1e300:
                    n_other = prefixes(&self.m, self.items, codes, numbers, -y[i], scores[i], flip,
                                       least, second)
                top = upper_hull(first, n_own, second, n_other, least, hull)
                for t in range(1, top):
                    step = hull[t, 0] - hull[t - 1, 0]
                    rate[filled], cost[filled] = (hull[t, 1] - hull[t - 1, 1]) / step, step
                    own[filled], option[filled] = i, <Py_ssize_t>hull[t, 2]
                    filled += 1
        return [part[:filled].copy() for part in (owners, rises, spent, options)]
