"""The exact adversary of samples with domains, as compiled loops
(:mod:`drlogit.problem.worst_moves`).

``now`` holds the column of the category that a sample has in each group, -1 for none, and
``values`` its bounded features.
"""
import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t

from drlogit.rows._shapes cimport fit
from ._losses cimport loss_terms

ctypedef fused index_t:
    int32_t
    int64_t

ctypedef fused value_t:
    float
    double


cdef Py_ssize_t sorted_items(const Priced* m, const int* now, const double* values, double sign,
                             double least, Item* out) noexcept nogil:
    """Items of a sample under the label ``sign`` that gain more than ``least`` per cost, best
    first.  ``now`` are its categories.
    """
    cdef Py_ssize_t n = 0, j, k, t, gap, end
    cdef double here, gain
    cdef Item it
    for j in range(m.n_groups):
        here = m.beta[now[j]] if now[j] >= 0 else 0.0
        gain = here - m.low[j] if sign > 0.0 else m.high[j] - here
        if gain > least * m.group_costs[j]:
            out[n].gain, out[n].cost = gain, m.group_costs[j]
            out[n].rate, out[n].number = gain / m.group_costs[j], j
            n += 1
    for j in range(m.n_bounded):
        here = m.beta[m.bounded[j]]
        if fabs(here) > least * m.bounded_costs[j]:
            end = 0 if sign * here > 0.0 else 1
            gain = m.upper[j] - values[j] if end else values[j] - m.lower[j]
            if gain > 0.0:  # not where a value of an audited row lies beyond this end already
                out[n].gain, out[n].cost = fabs(here) * gain, m.bounded_costs[j] * gain
                out[n].rate = fabs(here) / m.bounded_costs[j]
                out[n].number = m.n_groups + 2 * j + end
                n += 1
    gap = 1
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


cdef class Oracle:
    """A model with its prices, and room for the items of a sample."""
    cdef Priced m
    cdef Item* items
    cdef readonly Py_ssize_t most           # items of a sample
    cdef object kept

    def __init__(self, const double[::1] beta, const double[::1] low, const double[::1] high,
                 const double[::1] group_costs, const double[:, ::1] ends,
                 const double[::1] bounded_costs, const int[::1] bounded):
        self.most = low.shape[0] + bounded.shape[0]
        cdef unsigned char[::1] room = np.empty((self.most + 1) * sizeof(Item), np.uint8)
        self.items = <Item*>&room[0]
        self.kept = (room, beta, low, high, group_costs, ends, bounded_costs, bounded)
        self.m.n_groups, self.m.n_bounded = low.shape[0], bounded.shape[0]
        fit(high.shape[0] == low.shape[0] and group_costs.shape[0] == low.shape[0]
            and ends.shape[0] == 2, "groups")
        fit(ends.shape[1] == bounded.shape[0] and bounded_costs.shape[0] == bounded.shape[0],
            "bounded features")
        if beta.shape[0]:
            self.m.beta = &beta[0]
        if low.shape[0]:
            self.m.low, self.m.high, self.m.group_costs = &low[0], &high[0], &group_costs[0]
        if bounded.shape[0]:
            self.m.lower, self.m.upper = &ends[0, 0], &ends[1, 0]
            self.m.bounded_costs, self.m.bounded = &bounded_costs[0], &bounded[0]


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


def envelope(Oracle oracle, Py_ssize_t first, Py_ssize_t last, const double[::1] scores,
             const double[::1] y, const double[::1] kappa, double least, const int[:, ::1] now,
             const double[:, ::1] values, Py_ssize_t[::1] count, double[::1] rates,
             double[::1] costs, int[::1] moves):
    """Edges of the upper hulls of samples ``first`` to ``last - 1``: how many there are.

    ``count`` is their number for each sample; ``moves`` is the number of the point that an edge
    leads to.
    """
    cdef Py_ssize_t size = oracle.most, i, t, top, filled = 0
    cdef Py_ssize_t n_own, n_other, N = scores.shape[0], room = (last - first) * (2 * size + 1)
    cdef double cost, step
    cdef const int* codes
    cdef const double* numbers
    fit(y.shape[0] == N and now.shape[0] == N and values.shape[0] == N and last <= N, "samples")
    fit((kappa.shape[0] == 1 or kappa.shape[0] == N) and now.shape[1] >= oracle.m.n_groups,
        "kappa and groups")
    fit(values.shape[1] == oracle.m.n_bounded and count.shape[0] >= last - first,
        "bounded features")
    fit(rates.shape[0] >= room and costs.shape[0] >= room and moves.shape[0] >= room,
        "room for edges")
    cdef double[:, ::1] own = np.empty((size + 1, 2)), other = np.empty((size + 1, 2))
    cdef double[:, ::1] hull = np.empty((2 * size + 2, 3))
    with nogil:
        for i in range(first, last):
            codes = &now[i, 0] if now.shape[1] else NULL
            numbers = &values[i, 0] if values.shape[1] else NULL
            n_own = prefixes(&oracle.m, oracle.items, codes, numbers, y[i], scores[i], 0.0,
                             least, own)
            n_other, cost = 0, kappa[i if kappa.shape[0] > 1 else 0]
            if cost <= 1e300:
                n_other = prefixes(&oracle.m, oracle.items, codes, numbers, -y[i], scores[i], cost,
                                   least, other)
            top = upper_hull(own, n_own, other, n_other, least, hull)
            count[i - first] = top - 1
            for t in range(1, top):
                step = hull[t, 0] - hull[t - 1, 0]
                costs[filled], rates[filled] = step, (hull[t, 1] - hull[t - 1, 1]) / step
                moves[filled] = <int>hull[t, 2]
                filled += 1
    return filled


def codes_of_sparse(const index_t[::1] indptr, const index_t[::1] indices, const value_t[::1] data,
                    const int[::1] group_of, int[:, ::1] now, int[::1] wrong):
    """The column of each sample's category in each group, and the first that is no single 1."""
    cdef Py_ssize_t i, t
    cdef int g, j
    fit(indptr.shape[0] == now.shape[0] + 1 and wrong.shape[0] == now.shape[0]
        and indices.shape[0] == data.shape[0], "rows")
    for i in range(now.shape[0]):
        for t in range(indptr[i], indptr[i + 1]):
            j = <int>indices[t]
            g = group_of[j]
            if g < 0 or data[t] == 0.0:
                continue
            if (data[t] != 1.0 or now[i, g] >= 0) and wrong[i] < 0:
                wrong[i] = j
            now[i, g] = j


def codes_of_dense(const value_t[:, :] X, const int[::1] columns, const int[::1] owners,
                   int[:, ::1] now, int[::1] wrong):
    """The same for rows of an array."""
    cdef Py_ssize_t i, t
    cdef int g
    fit(X.shape[0] == now.shape[0] and wrong.shape[0] == now.shape[0]
        and owners.shape[0] == columns.shape[0], "rows")
    for i in range(now.shape[0]):
        for t in range(columns.shape[0]):
            if X[i, columns[t]] == 0.0:
                continue
            g = owners[t]
            if (X[i, columns[t]] != 1.0 or now[i, g] >= 0) and wrong[i] < 0:
                wrong[i] = columns[t]
            now[i, g] = columns[t]
