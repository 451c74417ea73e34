"""The samples of features with domains: pieces, which an exact oracle finds as iterates need them.

    top_i ≥ h(v_k) - λ d_k   for the pieces k of sample i,   v_k = y_k (x_i moved)·(β, high, b)

Groups are complete ("none" is a category); their least coefficient is zero (docs/algorithm.md).  A
piece is (sample, label, set of moved items); its row is the sample's with a few entries changed: a
changed group loses the entry of its category and, under the label -1, gains one at its ``high``; a
bounded feature goes to one of its ends.  So margins, adjoints and Gram matrix need the sample's own
row once and the changes beside it.

Coordinates: categories, levels of immovable groups, sparse columns, high of each group that may
change, bounded features, dense columns, b if there is one, λ; after these P, the
*combinations* of levels of a few groups each, so that a row has one entry where it would have
several: a Gram matrix takes the square of their number, and the sums over combinations are spread
out to levels once, at the end.  A row is a few sparse entries and a dense *tail* from the bounded
features on.

    N, P, Q    samples, coordinates, coordinates with combinations
    G          groups that may change
    nb, C      bounded features, combinations of a sample
    T, m       entries of a row's tail, sparse entries of the row at hand
    W          64-bit words of a set of items
    y, cost    label and cost d of a piece          v, s   its margin and dual probability
    q, r       its multiplier and slack, (16)       top    epigraph variable τ of a sample
    sd         Σ q/r over the pieces of a sample    d...   changes along a direction

Visits take a table and a state and return a new state and an array of sums (``_sums``).

Derivation: docs/algorithm.md, (15) and (16).
"""
from collections import namedtuple

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy
from scipy.linalg.cython_blas cimport dsyrk

from drlogit.engine cimport _sums
from drlogit.engine._sums cimport Linearised, book, linearised
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.problem._moves cimport Item, Priced, sorted_items
from drlogit.rows._products cimport CompiledRows, CsrRows, DenseRows, Entries
from drlogit.rows._shapes cimport fit

from drlogit.engine.settings import SETTINGS

cdef extern from *:
    int first_bit "__builtin_ctzll"(uint64_t) noexcept nogil

cdef enum:
    PANEL = 64          # samples whose sums are added up first
    TOGETHER = 500      # samples whose combinations are counted pair by pair
    MOST = 2            # pieces that one search may add for each sample and label
    ADJOINTS = 3        # gradient, affine and centring part of a linearisation
cdef double EMPTIED = SETTINGS.emptied, KEPT = SETTINGS.kept, SECOND = SETTINGS.second_order
cdef double PASSING = SETTINGS.blocking, BINDS = SETTINGS.binding

# Slacks below THIN of μ (or of what the step promised) are widened to WIDE μ.  The search for new
# pieces uses a λ that is lower by AHEAD while μ is above AHEAD_MU, to find pieces before they bind.
# A new piece has at most MOST_SHARE of a sample's weight.
cdef double THIN = 0.05, WIDE = 0.3, AHEAD = 0.02, AHEAD_MU = 0.005, MOST_SHARE = 0.5

# Slack of new pieces, in units of μ (2 to 20 are within 7 % of iterations on made tables).
cdef double NEW_SLACK = 5.0

cdef struct Piece:
    double y, cost, v, q, s, r     # label, cost, margin, multiplier, dual probability, slack

cdef struct Step:
    double v, q, r, second         # changes of margin, multiplier and slack; second-order term

#: A block at an iterate.  ``kappa``: flip costs; ``slope``: slopes of a linear loss -s u instead of
#: the log-loss, or none (each has one entry or one for each sample).  ``pieces``: those of sample i
#: from ``starts[i]`` on; ``sets``: their moved items as bits; the last ``new[i]`` were found here.
#: ``score``, ``top``: of the samples; ``loss``: their sum.  ``step``, ``dscore``, ``dtop``,
#: ``dlam``: the direction of ``follow``.
PieceState = namedtuple(
    "PieceState", "kappa slope starts pieces sets new score top loss step dscore dtop dlam",
    module=__name__)


cdef class Table:
    """The samples of a block in the coordinates of a layout; nothing of X is copied.

    ``codes`` are the coordinates of each sample's categories in groups that may change, then those
    in other groups, -1 for none.  ``joint`` are the coordinates of the combinations of a sample, -1
    for none; ``levels`` and ``signs`` the entries that a combination stands for.
    """
    cdef CompiledRows rows
    cdef const double[::1] y, w
    cdef const int[:, ::1] codes, joint, levels
    cdef const double[:, ::1] signs
    cdef const int[::1] tail_columns, places
    cdef bint offset, bare              # bare: nothing but groups
    cdef const double[::1] low, group_costs, lower, upper, bounded_costs
    cdef const int[::1] bounded
    cdef readonly Py_ssize_t N, G, C, nb, high, start, T, P, Q, W, least      # least: of joint

    def __init__(self, CompiledRows rows, codes, combined, layout):
        domains = layout.domains
        self.rows, self.y, self.w, self.codes = rows, rows.y, rows.w, codes
        self.joint, self.levels, self.signs = combined
        self.N, self.C, self.G = rows.n_samples, self.joint.shape[1], domains.n_groups
        self.least = np.min(combined[0], where=combined[0] >= 0, initial=layout.size)
        self.tail_columns, self.places = layout.tail_columns, layout.places
        self.Q = layout.size + self.levels.shape[0]
        self.nb, self.high = domains.bounded.size, layout.high
        self.start, self.offset = layout.start, layout.offset
        self.P, self.T = layout.size, layout.size - 1 - layout.start
        fit(self.codes.shape[0] == self.N and self.codes.shape[1] >= self.G
            and self.joint.shape[0] == self.N, "codes")
        self.low, self.group_costs = np.zeros(self.G), domains.group_costs
        self.bounded_costs = domains.bounded_costs
        self.lower, self.upper, self.bounded = domains.lower, domains.upper, layout.bounded
        self.W = (self.G + 2 * self.nb + 63) // 64
        own = layout.places[:rows.n_columns - layout.intercept]
        self.bare = not np.any(own >= 0)

    def extended(self, const double[::1] x):
        """Coordinates with those of combinations: the sums of their levels'."""
        cdef Py_ssize_t q, k
        out = np.zeros(self.Q)
        cdef double[::1] view = out
        view[:self.P] = x
        for q in range(self.Q - self.P):
            for k in range(self.levels.shape[1]):
                if self.levels[q, k] >= 0:
                    view[self.P + q] += self.signs[q, k] * x[self.levels[q, k]]
        return out

    cdef void fold(self, double* sums) noexcept nogil:
        """Sums over combinations added to those of their levels."""
        cdef Py_ssize_t q, k
        for q in range(self.Q - self.P):
            for k in range(self.levels.shape[1]):
                if self.levels[q, k] >= 0:
                    sums[self.levels[q, k]] += self.signs[q, k] * sums[self.P + q]

    cdef void fold_gram(self, double* square, double* out) noexcept nogil:
        """The lower triangle of V + Vᵀ, where V is the square with combinations folded on both
        sides.
        """
        cdef Py_ssize_t i, j, k, P = self.P, Q = self.Q
        cdef double sign
        cdef double* row
        for j in range(P, Q):
            for k in range(self.levels.shape[1]):
                if self.levels[j - P, k] < 0:
                    continue
                row, sign = square + self.levels[j - P, k] * Q, self.signs[j - P, k]
                for i in range(self.least, j + 1):
                    row[i] += sign * square[j * Q + i]
        for i in range(P):
            self.fold(square + i * Q)
        for i in range(P):
            for j in range(i + 1):
                out[i * P + j] = square[i * Q + j] + square[j * Q + i]


cdef class Work:
    """Room for one visit, the sample it is at, and what is asked of it."""
    cdef Table t
    cdef CompiledRows borrowed          # the one of these two that there is, for this visit
    cdef bint is_dense
    cdef DenseRows dense
    cdef CsrRows sparse
    cdef const double[::1] kappa, slope         # of length 1 or N; slope of a linear loss, or empty
    cdef Py_ssize_t m                           # sparse entries of the sample's row
    cdef int[::1] index, columns, place
    cdef double[::1] value, tail, one, reference, acc, local, rows, square
    cdef uint64_t[::1] moved, upwards
    cdef Priced priced
    cdef Item* items
    cdef double[::1] values
    cdef object kept
    cdef Py_ssize_t filled                      # rows of the panel whose tails wait for BLAS
    # samples whose combinations wait to be counted, their weights
    cdef int[:, ::1] waiting
    cdef double[::1] waiting_weight
    cdef Py_ssize_t n_waiting

    def __init__(self, Table t, kappa, slope):
        cdef Py_ssize_t most = 2 + 2 * t.G + t.nb, items = t.G + t.nb + 1
        cdef unsigned char[::1] room = np.empty(items * sizeof(Item), np.uint8)
        self.t, self.kappa, self.slope = t, kappa, slope
        fit(len(kappa) in (1, t.N) and len(slope) in (0, 1, t.N), "kappa and slopes")
        self.borrowed = t.rows.borrow()
        self.is_dense = isinstance(self.borrowed, DenseRows)
        if self.is_dense:
            self.dense = self.borrowed
        else:
            self.sparse = self.borrowed
        self.kept, self.items = room, <Item*>&room[0]
        self.index = np.empty(t.C + t.rows.n_columns, np.int32)
        self.value = np.empty(t.C + t.rows.n_columns)
        self.tail, self.values = np.zeros(t.T + 1), np.empty(items)
        self.one, self.reference, self.acc = np.empty(most), np.empty(most), np.empty(most)
        self.local = np.empty(most * most)
        self.columns, self.place = np.empty(most, np.int32), np.full(t.P, -1, np.int32)
        self.moved, self.upwards = np.empty(t.W + 1, np.uint64), np.empty(t.W + 1, np.uint64)
        self.rows, self.square = np.empty(PANEL * t.T + 1), np.zeros(t.T * t.T + 1)
        self.waiting, self.waiting_weight = np.empty((t.C, TOGETHER), np.int32), np.empty(TOGETHER)
        self.priced.n_groups, self.priced.n_bounded = t.G, t.nb
        if t.G:
            self.priced.low, self.priced.group_costs = &t.low[0], &t.group_costs[0]
        if t.nb:
            self.priced.lower, self.priced.upper = &t.lower[0], &t.upper[0]
            self.priced.bounded_costs, self.priced.bounded = &t.bounded_costs[0], &t.bounded[0]

    cdef inline double terms(self, Py_ssize_t i, double v, double* s,
                             double* curvature) noexcept nogil:
        """Loss at a margin, minus its slope, its curvature."""
        cdef double h
        if self.slope.shape[0]:
            s[0], curvature[0] = self.slope[i if self.slope.shape[0] > 1 else 0], 0.0
            return -s[0] * v
        h = loss_terms(v, s)
        curvature[0] = s[0] * (1.0 - s[0])
        return h

    cdef inline double flip(self, Py_ssize_t i) noexcept nogil:
        """What the other label costs."""
        return self.kappa[i if self.kappa.shape[0] > 1 else 0]

    cdef void go_to(self, Py_ssize_t i) noexcept nogil:
        """The sample's own row: sparse entries and tail."""
        cdef Py_ssize_t j, start = self.t.start
        cdef int c
        cdef const double* value
        cdef Entries x
        self.m = 0
        for j in range(self.t.C):
            if self.t.joint[i, j] >= 0:
                self.index[self.m], self.value[self.m] = self.t.joint[i, j], 1.0
                self.m += 1
        if self.t.bare:
            pass
        elif self.is_dense:
            value = self.dense.load(i, i + 1)
            for j in range(self.t.tail_columns.shape[0]):
                self.tail[j] = value[self.t.tail_columns[j]]
        else:
            for j in range(self.t.T):
                self.tail[j] = 0.0
            x = self.sparse.load(i, i + 1)
            for j in range(x.p[0], x.p[1]):
                c = self.t.places[x.col[j]]
                if c >= start:
                    self.tail[c - start] = x.v[j]
                elif c >= 0:
                    self.index[self.m], self.value[self.m] = c, x.v[j]
                    self.m += 1
        if self.t.offset:
            self.tail[self.t.T - 1] = 1.0

    cdef double along(self, const double* x) noexcept nogil:
        """The row's product with x."""
        cdef Py_ssize_t k
        cdef const double* dense = x + self.t.start
        cdef double total = 0.0
        for k in range(self.m):
            total += self.value[k] * x[self.index[k]]
        for k in range(self.t.T):
            total += self.tail[k] * dense[k]
        return total

    cdef void add(self, double value, double* out) noexcept nogil:
        """out += value · row."""
        cdef Py_ssize_t k
        cdef double* dense = out + self.t.start
        for k in range(self.m):
            out[self.index[k]] += value * self.value[k]
        for k in range(self.t.T):
            dense[k] += value * self.tail[k]

    cdef inline double distance(self, Py_ssize_t item) noexcept nogil:
        """How far a bounded feature goes with its item."""
        cdef Py_ssize_t j = item // 2
        return (self.t.upper[j] if item & 1 else self.t.lower[j]) - self.tail[j]

    cdef inline Py_ssize_t changes(self, Py_ssize_t i, Py_ssize_t item, double label, int* column,
                                   double* value) noexcept nogil:
        """The columns that an item changes in the sample's row, two at most, and by how much."""
        cdef Py_ssize_t G = self.t.G
        if item < G:
            column[0], value[0] = self.t.codes[i, item], -1.0
            if label >= 0.0:
                return 1
            column[1], value[1] = self.t.high + item, 1.0
            return 2
        column[0], value[0] = self.t.start + (item - G) // 2, self.distance(item - G)
        return 1

    cdef double shift(self, Py_ssize_t i, const uint64_t* moved, double label,
                      const double* x) noexcept nogil:
        """What the moves change of the product with x."""
        cdef double total = 0.0
        cdef Py_ssize_t w, e
        cdef uint64_t bits
        cdef int column[2]
        cdef double value[2]
        for w in range(self.t.W):
            bits = moved[w]
            while bits:
                for e in range(self.changes(i, 64 * w + first_bit(bits), label, column, value)):
                    total += value[e] * x[column[e]]
                bits &= bits - 1
        return total

    cdef void spread(self, Py_ssize_t i, const uint64_t* moved, double label, double by,
                     double* out) noexcept nogil:
        """out += by · (changes of the row)."""
        cdef Py_ssize_t w, e
        cdef uint64_t bits
        cdef int column[2]
        cdef double value[2]
        for w in range(self.t.W):
            bits = moved[w]
            while bits:
                for e in range(self.changes(i, 64 * w + first_bit(bits), label, column, value)):
                    out[column[e]] += by * value[e]
                bits &= bits - 1

    cdef void gram(self, Py_ssize_t i, const Piece* p, const uint64_t* sets, Py_ssize_t n,
                   double sd, double* out) noexcept nogil:
        """Add (16) of a sample: a small matrix in its row and a few columns, then spread out."""
        cdef Py_ssize_t c, reference = 0, k
        for k in range(n):
            if p[k].q * p[reference].r > p[reference].q * p[k].r:
                reference = k
        c = self.local_columns(i, p, sets, n)
        self.local_matrix(i, p, sets, n, c, reference, sd)
        self.add_own_row(i, out)
        self.add_local(c, out)

    cdef Py_ssize_t local_columns(self, Py_ssize_t i, const Piece* p, const uint64_t* sets,
                                  Py_ssize_t n) noexcept nogil:
        """List the columns that the pieces change, λ first, from 1 on; returns their number plus 1.

        Local column 0 stands for the sample's own row.
        """
        cdef Py_ssize_t W = self.t.W, k, w, e, c = 1
        cdef uint64_t bits
        cdef int column[2]
        cdef double value[2]
        cdef double label
        for w in range(W):
            self.moved[w] = self.upwards[w] = 0
        for k in range(n):
            for w in range(W):
                self.moved[w] |= sets[k * W + w]
                if p[k].y < 0.0:
                    self.upwards[w] |= sets[k * W + w]
        if n > 1:
            c = self.local_column(self.t.P - 1, c)
        for w in range(W):
            bits = self.moved[w]
            while bits:
                label = -1.0 if self.upwards[w] & (bits & (0 - bits)) else 1.0
                for e in range(self.changes(i, 64 * w + first_bit(bits), label, column, value)):
                    c = self.local_column(column[e], c)
                bits &= bits - 1
        return c

    cdef inline Py_ssize_t local_column(self, Py_ssize_t column, Py_ssize_t c) noexcept nogil:
        """Add a column to the list if it is not there; returns the length of the list."""
        if self.place[column] >= 0:
            return c
        self.columns[c], self.place[column] = column, c
        return c + 1

    cdef void local_matrix(self, Py_ssize_t i, const Piece* p, const uint64_t* sets, Py_ssize_t n,
                           Py_ssize_t c, Py_ssize_t ref, double sd) noexcept nogil:
        """(16) of a sample in its local columns, the lower triangle, in ``local``."""
        cdef Py_ssize_t W = self.t.W, k, e, f
        cdef double weight, alpha
        cdef double* one = &self.one[0]
        cdef double* reference = &self.reference[0]
        cdef double* acc = &self.acc[0]
        cdef double* local = &self.local[0]
        for e in range(c * c):
            local[e] = 0.0
        for e in range(c):
            acc[e] = 0.0
        if not self.slope.shape[0]:                 # Σ q h'' z zᵀ
            for k in range(n):
                self.local_row(i, &p[k], sets + k * W, c)
                self.add_outer(c, p[k].q * p[k].s * (1.0 - p[k].s))
        if n == 1:
            return
        self.local_row(i, &p[ref], sets + ref * W, c)
        for e in range(c):
            reference[e] = -p[ref].s * p[ref].y * one[e]
        reference[1] = -p[ref].cost
        for k in range(n):                          # Σ D δ δᵀ
            if k == ref:
                continue
            self.local_row(i, &p[k], sets + k * W, c)
            weight, alpha = p[k].q / p[k].r, -p[k].s * p[k].y
            for e in range(c):
                one[e] = alpha * one[e] - reference[e]
            one[1] = -p[k].cost - reference[1]
            for e in range(c):
                acc[e] += weight * one[e]
            self.add_outer(c, weight)
        for e in range(c):                          # - (Σ D δ)(Σ D δ)ᵀ / Σ D
            for f in range(e + 1):
                local[e * c + f] -= acc[e] * acc[f] / sd

    cdef void add_outer(self, Py_ssize_t c, double weight) noexcept nogil:
        """local += weight · one oneᵀ, the lower triangle."""
        cdef Py_ssize_t e, f
        cdef double* one = &self.one[0]
        cdef double* local = &self.local[0]
        for e in range(c):
            for f in range(e + 1):
                local[e * c + f] += weight * one[e] * one[f]

    cdef void add_own_row(self, Py_ssize_t i, double* out) noexcept nogil:
        """Half of the row with itself: combinations wait to be counted, tails wait for BLAS."""
        cdef Py_ssize_t Q = self.t.Q, T = self.t.T, start = self.t.start, e, f, joint = 0
        cdef double weight = self.local[0], value
        cdef const int* index = &self.index[0]
        cdef const double* entry = &self.value[0]
        cdef const double* tail = &self.tail[0]
        cdef double* target
        self.waiting_weight[self.n_waiting] = weight
        for e in range(self.t.C):
            self.waiting[e, self.n_waiting] = self.t.joint[i, e]
            joint += self.t.joint[i, e] >= 0
        self.n_waiting += 1
        if self.n_waiting == TOGETHER:
            self.count(out)
        for e in range(joint, self.m):
            value, target = weight * entry[e], out + <Py_ssize_t>index[e] * Q
            for f in range(e):
                target[index[f]] += value * entry[f]
            target[index[e]] += 0.5 * value * entry[e]
        for e in range(T):
            value, target = weight * tail[e], out + (start + e) * Q
            for f in range(self.m):
                target[index[f]] += value * entry[f]
        value, target = sqrt(max(weight, 0.0)), &self.rows[0] + self.filled * T
        for e in range(T):
            target[e] = value * tail[e]
        self.filled += 1
        if self.filled == PANEL:
            self.flush()

    cdef void add_local(self, Py_ssize_t c, double* out) noexcept nogil:
        """Local columns with the row and with each other; the list of columns is empty then."""
        cdef Py_ssize_t Q = self.t.Q, T = self.t.T, start = self.t.start, e, f
        cdef double value
        cdef const int* columns = &self.columns[0]
        cdef const int* index = &self.index[0]
        cdef const double* entry = &self.value[0]
        cdef const double* tail = &self.tail[0]
        cdef const double* local = &self.local[0]
        cdef double* target
        for e in range(1, c):
            value, target = local[e * c], out + <Py_ssize_t>columns[e] * Q
            if value != 0.0:
                for f in range(self.m):
                    target[index[f]] += value * entry[f]
                for f in range(T):
                    target[start + f] += value * tail[f]
            for f in range(1, e):
                target[columns[f]] += local[e * c + f]
            target[columns[e]] += 0.5 * local[e * c + e]
            self.place[columns[e]] = -1

    cdef void count(self, double* out) noexcept nogil:
        """Combinations that wait, with each other: a pair of groups stays in the cache."""
        cdef Py_ssize_t j, k, i, Q = self.t.Q
        cdef const int* one
        cdef const int* other
        cdef const double* weight = &self.waiting_weight[0]
        for j in range(self.t.C):
            one = &self.waiting[j, 0]
            for i in range(self.n_waiting):
                if one[i] >= 0:
                    out[one[i] * (Q + 1)] += 0.5 * weight[i]
            for k in range(j):
                other = &self.waiting[k, 0]
                for i in range(self.n_waiting):
                    if one[i] >= 0 and other[i] >= 0:
                        out[one[i] * Q + other[i]] += weight[i]
        self.n_waiting = 0

    cdef void flush(self) noexcept nogil:
        """The tails that wait, with themselves.  Column-major "U" is the lower triangle in C order.
        """
        cdef int T = self.t.T, n = self.filled
        cdef double unit = 1.0
        if n and T:
            dsyrk("U", "N", &T, &n, &unit, &self.rows[0], &T, &unit, &self.square[0], &T)
        self.filled = 0

    cdef void finish(self, double* square, double* out) noexcept nogil:
        """The Gram matrix of all samples, its lower triangle."""
        cdef Py_ssize_t e, f, T = self.t.T, start = self.t.start, P = self.t.P
        self.count(square)
        self.t.fold_gram(square, out)
        self.flush()
        for e in range(T):
            for f in range(e + 1):
                out[(start + e) * P + start + f] += self.square[e * T + f]

    cdef void local_row(self, Py_ssize_t i, const Piece* p, const uint64_t* moved,
                        Py_ssize_t c) noexcept nogil:
        """A piece's row: one times the sample's, and its changes at the local columns."""
        cdef Py_ssize_t e, w
        cdef uint64_t bits
        cdef int column[2]
        cdef double value[2]
        cdef double* one = &self.one[0]
        one[0] = 1.0
        for e in range(1, c):
            one[e] = 0.0
        for w in range(self.t.W):
            bits = moved[w]
            while bits:
                for e in range(self.changes(i, 64 * w + first_bit(bits), p.y, column, value)):
                    one[self.place[column[e]]] += value[e]
                bits &= bits - 1


cdef class PieceView:
    """The arrays of a state, as compiled loops read them."""
    cdef const Py_ssize_t[::1] starts, new
    cdef const double[:, ::1] piece_table, step_table
    cdef const uint64_t[:, ::1] set_table
    cdef const double[::1] score, top, dscore, dtop
    cdef double dlam
    cdef const Piece* pieces
    cdef const Step* steps
    cdef const uint64_t* sets

    def __init__(self, Table t, state, const double[::1] x):
        fit(x.shape[0] == t.P and len(state.starts) == t.N + 1, "coordinates and samples")
        n = state.starts[t.N]
        fit(state.pieces.size == 6 * n and state.sets.size == t.W * n and state.step.size == 4 * n,
            "pieces")
        for part in (state.new, state.score, state.top, state.dscore, state.dtop):
            fit(len(part) == t.N, "parts of samples")
        self.starts, self.new = state.starts, state.new
        self.piece_table, self.step_table = state.pieces, state.step
        self.set_table = state.sets
        self.score, self.top = state.score, state.top
        self.dscore, self.dtop = state.dscore, state.dtop
        self.dlam = state.dlam
        self.pieces, self.steps, self.sets = NULL, NULL, NULL
        if n:
            self.pieces = <const Piece*>&self.piece_table[0, 0]
            self.steps = <const Step*>&self.step_table[0, 0]
        if n and t.W:
            self.sets = &self.set_table[0, 0]


def still(n_pieces, n_samples):
    """No direction."""
    return np.zeros((n_pieces, 4)), np.zeros(n_samples), np.zeros(n_samples), 0.0


def open_pieces(Table t, kappa, slope, const double[::1] x, double mu):
    """Unmoved pieces on the central path: q r = μ w, Σ q = w."""
    fit(x.shape[0] == t.P, "coordinates")
    cdef Work work = Work(t, kappa, slope)
    cdef double[:, ::1] room = np.empty((2 * t.N + 1, 6))
    cdef Piece* p = <Piece*>&room[0, 0]
    starts, score, top_out = np.zeros(t.N + 1, np.intp), np.zeros(t.N), np.zeros(t.N)
    cdef Py_ssize_t[::1] ptr = starts
    cdef double[::1] scores = score, tops = top_out
    cdef Py_ssize_t i, e, k = 0, count
    cdef const double[::1] all_x = t.extended(x)
    cdef double lam = x[t.P - 1], top, apart, curved
    with nogil:
        for i in range(t.N):
            ptr[i] = k
            work.go_to(i)
            scores[i] = work.along(&all_x[0])
            if not t.w[i] > 0.0:
                continue
            count = 2 if work.flip(i) < INFINITY else 1
            for e in range(k, k + count):           # slacks hold values, for now
                p[e].y, p[e].cost = t.y[i] if e == k else -t.y[i], 0.0 if e == k else work.flip(i)
                p[e].v = p[e].y * scores[i]
                p[e].r = work.terms(i, p[e].v, &p[e].s, &curved) - lam * p[e].cost
            top = p[k].r + mu
            if count == 2:                          # 1/r + 1/(r + apart) = 1/μ
                apart = fabs(p[k].r - p[k + 1].r)
                top = max(p[k].r, p[k + 1].r) + mu - 0.5 * apart
                top += sqrt(mu * mu + 0.25 * apart * apart)
            tops[i] = top
            for e in range(k, k + count):
                p[e].r = top - p[e].r
                p[e].q = t.w[i] * mu / p[e].r
            k += count
        ptr[t.N] = k
    work.borrowed.free()
    pieces, sets, new = np.asarray(room)[:k], np.zeros((k, t.W), np.uint64), np.zeros(t.N, np.intp)
    return PieceState(kappa, slope, starts, pieces, sets, new, score, top_out, 0.0, *still(k, t.N))


# --- linearisation --------------------------------------------------------------------------------


cdef class Linearisation(Work):
    """The samples after a step, with the pieces found there, and the sums of their conditions."""
    cdef PieceView old, refused         # refused: the state that a refused step led to, or None
    cdef const double[::1] coordinates
    cdef const double* x
    cdef double primal, dual, lam, ahead, mu
    # the new state
    cdef object piece_array, set_array, start_array, new_array, score_array, top_array
    cdef double[:, ::1] piece_table
    cdef uint64_t[:, ::1] set_table
    cdef Py_ssize_t[::1] starts, new
    cdef double[::1] score, top
    cdef Piece* pieces
    cdef uint64_t* sets
    cdef Py_ssize_t n                   # pieces so far
    # sums: the matrix with combinations, adjoints with combinations
    cdef object sums
    cdef double[::1] total, wide_matrix
    cdef double[:, ::1] adjoints
    cdef Linearised parts
    cdef double* adjoint

    def __init__(self, Table t, state, const double[::1] x, double primal, double dual, double mu,
                 refused):
        self.old = PieceView(t, state, x)
        self.refused = None if refused is None else PieceView(t, refused, x)
        Work.__init__(self, t, state.kappa, state.slope)
        self.coordinates, self.x, self.lam = x, &x[0], x[t.P - 1]
        self.primal, self.dual, self.mu = primal, dual, mu
        self.ahead = self.lam / (1.0 + AHEAD * min(1.0, mu / AHEAD_MU))
        # What may be needed; memory is taken as it is written.
        found = 2 * MOST * t.N if refused is None else np.sum(refused.new)
        most = self.old.starts[t.N] + found + 2 * MOST
        self.piece_array, self.set_array = np.empty((most, 6)), np.empty((most, t.W), np.uint64)
        self.start_array, self.new_array = np.empty(t.N + 1, np.intp), np.zeros(t.N, np.intp)
        self.score_array, self.top_array = np.empty(t.N), np.empty(t.N)
        self.piece_table, self.set_table = self.piece_array, self.set_array
        self.starts, self.new = self.start_array, self.new_array
        self.score, self.top = self.score_array, self.top_array
        self.pieces, self.n = <Piece*>&self.piece_table[0, 0], 0
        self.sets = &self.set_table[0, 0] if t.W else NULL
        self.sums = np.zeros(t.P * t.P + 3 * t.P + _sums.SCALARS)
        self.total = self.sums
        self.wide_matrix = np.zeros(t.Q * t.Q) if t.Q > t.P else self.sums
        self.adjoints = np.zeros((ADJOINTS, t.Q))
        self.parts = linearised(&self.total[0], t.P, t.P * t.P)
        self.adjoint = &self.adjoints[0, 0]

    cdef void step(self, Py_ssize_t i) noexcept nogil:
        """Move a sample and take in the pieces that matter there, or soon will."""
        cdef Py_ssize_t first = self.n, count = 0
        cdef double w = self.t.w[i], top, best
        self.starts[i] = first
        self.score[i] = self.old.score[i] + self.primal * self.old.dscore[i]
        self.top[i] = self.old.top[i] + self.primal * self.old.dtop[i]
        if not w > 0.0:
            return
        if self.t.nb:
            self.go_to(i)
        top = self.carry_over(i)
        if self.refused is not None:
            best = -INFINITY
            self.copy_new(i, &count)
        else:
            best = self.search(i, first, top, self.t.y[i], &count)
            if self.flip(i) < INFINITY:
                best = max(best, self.search(i, first, top, -self.t.y[i], &count))
        self.new[i] = count
        self.parts.scalars[_sums.LOSS] += w * best
        top += self.room(i, first, top)
        if best > top:
            self.parts.scalars[_sums.MISSING] += w * (best - top)
        self.parts.scalars[_sums.NEW_PIECES] += count
        self.top[i] = self.take_in(i, first, count, top)

    cdef double carry_over(self, Py_ssize_t i) noexcept nogil:
        """The sample's pieces after the step, their values in the place of slacks, for now.

        Returns τ, raised at once by what the losses curve.
        """
        cdef Py_ssize_t W = self.t.W, k, e, first = self.n
        cdef double mass = 0.0, full = 0.0, error = 0.0, value, old, curved
        cdef const Piece* o
        cdef const Step* d
        cdef Piece* p
        for k in range(self.old.starts[i], self.old.starts[i + 1]):
            o, d, p = &self.old.pieces[k], &self.old.steps[k], &self.pieces[self.n]
            p.y, p.cost, p.q = o.y, o.cost, o.q + self.dual * d.q
            full += p.q
            if not p.q > 0.0:                       # the step passes it
                p.q = KEPT * o.q
            for e in range(W):
                self.sets[self.n * W + e] = self.old.sets[k * W + e]
            p.v = o.v + self.primal * d.v
            value = self.terms(i, p.v, &p.s, &curved) - self.lam * o.cost
            old = self.old.top[i] - o.r
            p.r = value
            mass += p.q
            if self.primal > 0.0:
                error += p.q * (value - old + self.primal * (o.s * d.v + self.old.dlam * o.cost))
            self.n += 1
        if mass > full:
            for k in range(first, self.n):
                self.pieces[k].q *= full / mass
        return self.top[i] + error / mass

    cdef double search(self, Py_ssize_t i, Py_ssize_t first, double top, double label,
                       Py_ssize_t* count) noexcept nogil:
        """The best value under a label at the price λ; new pieces go behind those that are there.

        Up to MOST sets of items that are worth more than τ - μ at the price ``ahead`` join.
        """
        cdef Py_ssize_t t, pick, new, _
        cdef double best, flip = 0.0 if label == self.t.y[i] else self.flip(i)
        cdef Py_ssize_t n = self.prefixes(i, label, flip, &best)
        for _ in range(MOST):
            pick = 0
            for t in range(1, n + 1):
                if self.values[t] > self.values[pick]:
                    pick = t
            if not self.values[pick] > top - self.mu:
                break
            self.values[pick] = -INFINITY
            new = self.n + count[0]
            self.set_of_prefix(pick, self.sets + new * self.t.W)
            if self.is_known(first, new, label):
                continue
            self.pieces[new].y = label
            self.pieces[new].cost = self.items[pick - 1].rate if pick else flip
            count[0] += 1
        return best

    cdef Py_ssize_t prefixes(self, Py_ssize_t i, double label, double flip,
                             double* best) noexcept nogil:
        """The sample with a label and its best items moved, one after another: how many items.

        ``values`` are those at the price ``ahead``, ``best`` is the best one at λ, and the rate of
        an item becomes what it costs to get there.
        """
        cdef Py_ssize_t t, n
        cdef double v = label * self.score[i], d = flip, s, curved
        cdef const int* codes = &self.t.codes[i, 0] if self.t.codes.shape[1] else NULL
        cdef double h = self.terms(i, v, &s, &curved)
        self.priced.beta, self.priced.high = self.x, self.x + self.t.high
        n = sorted_items(&self.priced, codes, &self.tail[0], label, self.ahead, self.items)
        best[0], self.values[0] = h - self.lam * d, h - self.ahead * d
        for t in range(n):
            v -= self.items[t].gain
            d += self.items[t].cost
            self.items[t].rate = d
            h = self.terms(i, v, &s, &curved)
            self.values[t + 1] = h - self.ahead * d
            best[0] = max(best[0], h - self.lam * d)
        return n

    cdef void set_of_prefix(self, Py_ssize_t count, uint64_t* out) noexcept nogil:
        """The set of the first items."""
        cdef Py_ssize_t t, e
        for e in range(self.t.W):
            out[e] = 0
        for t in range(count):
            e = self.items[t].number
            out[e >> 6] |= <uint64_t>1 << (e & 63)

    cdef bint is_known(self, Py_ssize_t first, Py_ssize_t new, double label) noexcept nogil:
        """Whether one of the sample's pieces has this label and the set of the new one."""
        cdef Py_ssize_t k, size = self.t.W * sizeof(uint64_t)
        for k in range(first, self.n):
            if self.pieces[k].y == label and memcmp(self.sets + k * self.t.W,
                                                    self.sets + new * self.t.W, size) == 0:
                return True
        return False

    cdef void copy_new(self, Py_ssize_t i, Py_ssize_t* count) noexcept nogil:
        """The pieces that were new where a refused step led to."""
        cdef Py_ssize_t W = self.t.W, k, e, to, end = self.refused.starts[i + 1]
        for k in range(end - self.refused.new[i], end):
            to = self.n + count[0]
            self.pieces[to].y = self.refused.pieces[k].y
            self.pieces[to].cost = self.refused.pieces[k].cost
            for e in range(W):
                self.sets[to * W + e] = self.refused.sets[k * W + e]
            count[0] += 1

    cdef double room(self, Py_ssize_t i, Py_ssize_t first, double top) noexcept nogil:
        """How much to raise τ so that no slack has all but vanished."""
        cdef Py_ssize_t k, before = self.old.starts[i] - first
        cdef double slack, promised, room = 0.0
        for k in range(first, self.n):
            slack = top - self.pieces[k].r
            promised = self.old.pieces[before + k].r + self.primal * self.old.steps[before + k].r
            if promised <= 0.0:
                room = max(room, KEPT * self.old.pieces[before + k].r - slack)
            elif slack < THIN * min(self.mu, promised):
                room = max(room, WIDE * self.mu - slack)
        return room

    cdef double take_in(self, Py_ssize_t i, Py_ssize_t first, Py_ssize_t count,
                        double top) noexcept nogil:
        """Values of new pieces, then slacks and multipliers of all; returns τ."""
        cdef Py_ssize_t k, known = self.n
        cdef double w = self.t.w[i], sq = 0.0, curved
        cdef Piece* p = self.pieces
        for k in range(known, known + count):
            p[k].v = p[k].y * (self.score[i] + self.shift(i, self.sets + k * self.t.W, p[k].y,
                                                          self.x))
            p[k].r = self.terms(i, p[k].v, &p[k].s, &curved) - self.lam * p[k].cost
            top = max(top, p[k].r + NEW_SLACK * self.mu)
        self.n += count
        for k in range(first, self.n):
            p[k].r = top - p[k].r
            if k >= known:
                p[k].q = w * min(self.mu / p[k].r, MOST_SHARE)
            sq += p[k].q
        if count:
            for k in range(first, self.n):
                p[k].q *= w / sq
        return top

    cdef void conditions(self, Py_ssize_t i) noexcept nogil:
        """A sample's part of the matrix, of the adjoints and of the scalars."""
        cdef Py_ssize_t a = self.starts[i], b = self.starts[i + 1], Q = self.t.Q, k, e
        cdef Py_ssize_t last = self.t.P - 1
        cdef double w = self.t.w[i], top = self.top[i], sq = 0.0, sd = 0.0, sw = 0.0, h, force
        cdef double base[ADJOINTS]
        cdef double each[ADJOINTS]
        cdef double* scalars = self.parts.scalars
        cdef Piece* p = self.pieces
        if not w > 0.0:
            return
        self.go_to(i)
        base[0] = base[1] = base[2] = 0.0
        for k in range(a, b):
            sq += p[k].q
            sd += p[k].q / p[k].r
            sw += w / p[k].r
        for k in range(a, b):
            h = p[k].q / p[k].r / sd
            # The multiplier, and its responses to the targets -q r and w, with Σ q = w.
            each[0], each[1], each[2] = p[k].q, -p[k].q + h * w, w / p[k].r - h * sw
            scalars[_sums.PRODUCTS] += p[k].q * p[k].r
            scalars[_sums.DEGREE] += w
            scalars[_sums.ENTROPY] += p[k].q / sq * w * (top - p[k].r + self.lam * p[k].cost
                                                         + p[k].s * p[k].v)     # h + s v
            for e in range(ADJOINTS):
                force = -each[e] * p[k].s * p[k].y
                base[e] += force
                self.adjoint[e * Q + last] -= each[e] * p[k].cost
                self.spread(i, self.sets + k * self.t.W, p[k].y, force, self.adjoint + e * Q)
        for e in range(ADJOINTS):
            self.add(base[e], self.adjoint + e * Q)
        self.gram(i, p + a, self.sets + a * self.t.W, b - a, sd, &self.wide_matrix[0])

    cdef void fold_adjoints(self) noexcept nogil:
        """Sums over combinations go to their levels."""
        cdef Py_ssize_t e, P = self.t.P, Q = self.t.Q
        for e in range(ADJOINTS):
            self.t.fold(self.adjoint + e * Q)
            memcpy(self.parts.gradient + e * P, self.adjoint + e * Q, P * sizeof(double))

    def state(self, before):
        """The new state, without a direction."""
        return PieceState(before.kappa, before.slope, self.start_array, self.piece_array[:self.n],
                          self.set_array[:self.n], self.new_array, self.score_array,
                          self.top_array, self.parts.scalars[_sums.LOSS], *still(self.n, self.t.N))


def linearise(Table t, state, const double[::1] x, double primal, double dual, double mu,
              double most_over, refused=None):
    """Move by these lengths along the state's direction, to ``x``: the state and its conditions.

    Pieces that matter there, or soon will, are taken in.  After a step that was ``refused``, which
    is the state that it led to, no piece is searched for: those that were new there are taken in.
    Where losses are above those of the pieces by more than ``most_over``, there are no conditions,
    because such a step will be refused.
    """
    cdef Linearisation visit = Linearisation(t, state, x, primal, dual, mu, refused)
    cdef double* scalars = visit.parts.scalars
    cdef double loss = state.loss
    cdef bint stays = refused is not None
    cdef Py_ssize_t i
    with nogil:
        for i in range(t.N):
            visit.step(i)
        visit.starts[t.N] = visit.n
        if scalars[_sums.MISSING] <= most_over:
            for i in range(t.N):
                visit.conditions(i)
            visit.finish(&visit.wide_matrix[0], visit.parts.matrix)
        visit.fold_adjoints()
        if stays:
            scalars[_sums.LOSS] = loss
        scalars[_sums.VALUE], scalars[_sums.COUNT] = scalars[_sums.LOSS], visit.n
    visit.borrowed.free()
    return visit.state(state), visit.sums


def with_missing(Table t, both, const double[::1] x, double mu):
    """Stay at the first of two states, with the pieces that were new at the second (null step)."""
    return linearise(t, both[0], x, 0.0, 0.0, mu, INFINITY, both[1])


# --- directions -----------------------------------------------------------------------------------


cdef class Direction(Work):
    """Slacks, multipliers and epigraph variables along a direction of the coordinates."""
    cdef PieceView at
    cdef const double[::1] dcoordinates, extended
    cdef const double* dx
    cdef const double* all_dx
    cdef double dlam, centre, share
    cdef bint predictor
    cdef object step_array, dscore_array, dtop_array, sums
    cdef double[:, ::1] step_table
    cdef double[::1] dscore, dtop, total, forces
    cdef Step* steps
    cdef double* scalars                # CHANGES of a predictor, else PARABOLA
    cdef double* costs

    def __init__(self, Table t, state, const double[::1] dx, double centre, double share,
                 bint predictor):
        self.at = PieceView(t, state, dx)
        Work.__init__(self, t, state.kappa, state.slope)
        self.dcoordinates, self.extended = dx, t.extended(dx)
        self.dx, self.all_dx, self.dlam = &dx[0], &self.extended[0], dx[t.P - 1]
        self.centre, self.share, self.predictor = centre, share, predictor
        self.step_array = np.empty((self.at.starts[t.N], 4))
        self.dscore_array, self.dtop_array = np.zeros(t.N), np.zeros(t.N)
        self.step_table, self.dscore, self.dtop = (self.step_array, self.dscore_array,
                                                   self.dtop_array)
        self.steps = <Step*>&self.step_table[0, 0] if self.step_table.shape[0] else NULL
        first = t.P + _sums.CHANGES if predictor else _sums.PARABOLA
        self.sums, self.forces = np.zeros(first + 2 * _sums.LEVELS), np.zeros(t.Q)
        self.total = self.sums
        self.scalars = &self.total[t.P if predictor else 0]
        self.costs = self.scalars + (_sums.CHANGES if predictor else _sums.PARABOLA)

    cdef void respond(self, Py_ssize_t i, double* sd) noexcept nogil:
        """dτ from Σ dq = w - Σ q, then changes of slacks and multipliers; Σ q/r."""
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double w = self.t.w[i], sq = 0.0, total = 0.0, target, push, dtop
        cdef const Piece* o = self.at.pieces
        cdef Step* d = self.steps
        sd[0] = 0.0
        self.dscore[i] = self.along(self.all_dx)
        for k in range(a, b):
            d[k].v = o[k].y * (self.dscore[i] + self.shift(i, self.at.sets + k * self.t.W, o[k].y,
                                                           self.dx))
            push = -o[k].s * d[k].v - self.dlam * o[k].cost
            target = 0.0
            if not self.predictor:
                target = (self.centre * w - self.share * self.at.steps[k].second) / o[k].r
                self.scalars[_sums.SLOPE] += o[k].q * push
            d[k].q, d[k].r = target - o[k].q, push
            sd[0] += o[k].q / o[k].r
            sq += o[k].q
            total += d[k].q + o[k].q / o[k].r * push
        dtop = (total - (w - sq)) / sd[0]
        self.dtop[i] = dtop
        for k in range(a, b):
            d[k].r = dtop - d[k].r
            d[k].q -= o[k].q / o[k].r * d[k].r

    cdef void limit(self, Py_ssize_t i) noexcept nogil:
        """Book the cost (10) of a sample that does not allow the whole step."""
        cdef Py_ssize_t k, largest, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double w = self.t.w[i], own = 0.0, lost = 0.0, taken = 0.0, fall = 1.0, drop = 1.0
        cdef const Piece* o = self.at.pieces
        cdef const Step* d = self.steps
        largest = a
        for k in range(a, b):
            if o[k].q > o[largest].q:
                largest = k
        for k in range(a, b):
            own += o[k].q * o[k].r
            if -d[k].r > fall * o[k].r:
                fall, lost = -d[k].r / o[k].r, -d[k].r
            if -d[k].q > drop * o[k].q:
                drop, taken = -d[k].q / o[k].q, -d[k].q * (o[k].r + o[largest].r)
        if fall > 1.0:
            book(self.costs, fall, own + PASSING * w * lost)
        if drop > 1.0:
            book(self.costs + _sums.LEVELS, drop, own + PASSING * taken)

    cdef void second_order(self, Py_ssize_t i, double sd) noexcept nogil:
        """Of a predictor: what becomes of the products, second-order terms and their adjoint."""
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1], last = self.t.P - 1
        cdef double base = 0.0, sum_ = 0.0, most, dq, force
        cdef const Piece* o = self.at.pieces
        cdef Step* d = self.steps
        cdef double* out = &self.forces[0]
        for k in range(a, b):
            self.scalars[_sums.PRIMAL_CHANGE] += o[k].q * d[k].r
            self.scalars[_sums.DUAL_CHANGE] += d[k].q * o[k].r
            self.scalars[_sums.BOTH_CHANGE] += d[k].q * d[k].r
            most = SECOND * o[k].q * o[k].r
            d[k].second = max(-most, min(d[k].q * d[k].r, most))
            base -= d[k].second / o[k].r
        for k in range(a, b):
            dq = -d[k].second / o[k].r - o[k].q / o[k].r * base / sd
            force = -dq * o[k].s * o[k].y
            sum_ += force
            out[last] -= dq * o[k].cost
            self.spread(i, self.at.sets + k * self.t.W, o[k].y, force, out)
        self.add(sum_, out)


def follow(Table t, state, const double[::1] dx, double centre, double share, bint predictor):
    """The state with a direction: products to zero (predictor), or to ``centre`` less a share of
    the second-order terms.
    """
    cdef Direction visit = Direction(t, state, dx, centre, share, predictor)
    cdef Py_ssize_t i
    cdef double sd
    with nogil:
        for i in range(t.N):
            if not t.w[i] > 0.0:
                continue
            visit.go_to(i)
            visit.respond(i, &sd)
            visit.limit(i)
            if predictor:
                visit.second_order(i, sd)
        if predictor:
            t.fold(&visit.forces[0])
            memcpy(&visit.total[0], &visit.forces[0], t.P * sizeof(double))
    visit.borrowed.free()
    return state._replace(step=visit.step_array, dscore=visit.dscore_array, dtop=visit.dtop_array,
                          dlam=visit.dlam), visit.sums


# --- certificate ----------------------------------------------------------------------------------


cdef class Correction(Work):
    """The dual point after a correction dx: masses q and m = q s, in which the dual is linear."""
    cdef PieceView at
    cdef const double[::1] dcoordinates, extended
    cdef object masses
    cdef double[:, ::1] mass, change    # (q, m); changes of margin and of value

    def __init__(self, Table t, state, const double[::1] dx):
        self.at = PieceView(t, state, dx)
        Work.__init__(self, t, state.kappa, state.slope)
        self.dcoordinates, self.extended = dx, t.extended(dx)
        self.masses = np.zeros((self.at.starts[t.N], 2))
        self.mass, self.change = self.masses, np.empty((self.at.starts[t.N], 2))

    cdef double raised(self, Py_ssize_t i) noexcept nogil:
        """dτ of a sample.  Pieces whose multiplier would be negative leave: their mass is 0.

        Pieces with little mass and much slack take no part: where only they depend on a coordinate
        (high of a group that no sample changes), no small step could meet its equation.
        """
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double w = self.t.w[i], sd, total, dtop = 0.0, dlam = self.dcoordinates[self.t.P - 1]
        cdef double dscore = self.along(&self.extended[0])
        cdef const Piece* o = self.at.pieces
        cdef bint again = True
        for k in range(a, b):
            if o[k].q < BINDS * w * o[k].r:
                continue
            self.change[k, 0] = o[k].y * (dscore + self.shift(i, self.at.sets + k * self.t.W,
                                                              o[k].y, &self.dcoordinates[0]))
            self.change[k, 1] = -o[k].s * self.change[k, 0] - dlam * o[k].cost
            self.mass[k, 0] = 1.0                   # for now: takes part
        while again:
            sd = total = 0.0
            again = False
            for k in range(a, b):
                if self.mass[k, 0] != 0.0:
                    sd += o[k].q / o[k].r
                    total += o[k].q + o[k].q / o[k].r * self.change[k, 1]
            dtop = (total - w) / sd
            for k in range(a, b):
                if self.mass[k, 0] != 0.0 and o[k].r + self.change[k, 1] <= dtop:
                    self.mass[k, 0], again = 0.0, True
        return dtop

    cdef void correct(self, Py_ssize_t i) noexcept nogil:
        """(12) for the pieces of a sample, whose masses then sum to its weight."""
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double dtop = self.raised(i), total = 0.0, scale, q, m, s
        cdef const Piece* o = self.at.pieces
        for k in range(a, b):
            if self.mass[k, 0] == 0.0:
                continue
            s, q = o[k].s, o[k].q / o[k].r * (o[k].r + self.change[k, 1] - dtop)
            m = s * q - o[k].q * s * (1.0 - s) * self.change[k, 0]
            self.mass[k, 0], self.mass[k, 1] = q, min(m, q) if m > EMPTIED * q * s else 0.0
            total += q
        scale = self.t.w[i] / total * (1.0 - 1e-15)     # not above the weight, whatever rounds
        for k in range(a, b):
            if self.mass[k, 0] > 0.0:
                self.mass[k, 0] *= scale
                self.mass[k, 1] = min(self.mass[k, 1] * scale, self.mass[k, 0])

    cdef void add_up(self, Py_ssize_t i, double* out) noexcept nogil:
        """A sample's part of the adjoint (λ last of P) and, behind Q, of the entropy."""
        cdef Py_ssize_t k
        cdef double q, m, base = 0.0
        cdef const Piece* o = self.at.pieces
        for k in range(self.at.starts[i], self.at.starts[i + 1]):
            q, m = self.mass[k, 0], self.mass[k, 1]
            if not q > 0.0:
                continue
            out[self.t.Q] += q * entropy(m / q)
            out[self.t.P - 1] -= q * o[k].cost
            base -= m * o[k].y
            self.spread(i, self.at.sets + k * self.t.W, o[k].y, -m * o[k].y, out)
        self.add(base, out)


def certify(Table t, state, const double[::1] dx):
    """The iterate's dual point after the correction dx, (state, masses), and its sums."""
    cdef Correction visit = Correction(t, state, dx)
    cdef Py_ssize_t P = t.P, Q = t.Q, i, k, end, begin = 0, most = 0
    sums = np.zeros(P + _sums.PROOF)
    # Sums of a few samples first: there is less rounding to charge.
    cdef double[::1] out = sums, total = np.zeros(Q + 1), panel = np.zeros(Q + 1)
    with nogil:
        for i in range(t.N):
            if t.w[i] > 0.0:
                visit.go_to(i)
                visit.correct(i)
                visit.add_up(i, &panel[0])
            if (i + 1) % PANEL == 0 or i + 1 == t.N:
                end = visit.at.starts[i + 1]
                most, begin = max(most, end - begin + PANEL), end
                for k in range(Q + 1):
                    total[k] += panel[k]
                    panel[k] = 0.0
        t.fold(&total[0])
        for k in range(P):
            out[k] = total[k]
        out[P + _sums.PROOF_ENTROPY] = total[Q]
        out[P + _sums.PROOF_ADDITIONS] = most + t.N // PANEL + Q - P + 4
    visit.borrowed.free()
    return (state, visit.masses), sums
