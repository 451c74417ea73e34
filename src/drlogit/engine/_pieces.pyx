"""The samples of features with domains: pieces, found by the exact oracle as the iterates ask for them.

    top_i ≥ h(v_k) - λ d_k   for the pieces k of sample i,   v_k = y_k (x_i moved)·(β, high, b)

Groups are complete ("none" is a category) and their least coefficient is zero (docs/domains.md).  A piece is
(sample, label, set of moved items); its row is the sample's with a few entries changed: a changed
group loses the entry of its category and, under the label -1, gains one at its ``high``; a bounded
feature goes to one of its ends, and an ordered group loses the entry of its level and gains that of
another, which its item names.  So margins, adjoints and Gram matrix need the sample's own row once
and the changes beside it.

Coordinates: categories, levels of immovable groups, sparse columns, high of each group, bounded
features, dense columns, b if there is one, λ; after these P, the *combinations* of levels of a few
groups each, so that a row has one entry where it would have several: a Gram matrix takes the square
of their number, and the sums over combinations are spread out to levels once, at the end.  A row is a
few sparse entries and a dense *tail* from the bounded features on.  Visits are pure functions of
(table, state, …).

Derivation: docs/algorithm.md, (15) and (16).
"""
from collections import namedtuple

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy
from scipy.linalg.cython_blas cimport dsyrk

from drlogit.engine._pair cimport LEVELS, SCALARS, limit
from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.problem._moves cimport Item, LevelMoves, Priced, sorted_items
from drlogit.rows._products cimport CompiledRows, CsrRows, DenseRows, Entries
from drlogit.rows._shapes cimport fit

from drlogit.engine.settings import SETTINGS

cdef extern from *:
    int first_bit "__builtin_ctzll"(uint64_t) noexcept nogil

cdef enum:
    PANEL = 64          # samples whose sums are added up first
    TOGETHER = 500      # samples whose combinations are counted pair by pair
    MOST = 2            # pieces per sample and label that one look may add
cdef double EMPTIED = SETTINGS.emptied, LEFT = SETTINGS.kept, SECOND = SETTINGS.second_order, PASSING = SETTINGS.passing
cdef double BINDS = SETTINGS.binding_piece
cdef double LIFT = SETTINGS.new_slack

cdef struct Piece:
    double y, cost, v, q, s, r     # label, cost, margin, multiplier, slope, slack

cdef struct Step:
    double v, q, r, second         # changes of margin, multiplier and slack; second-order term

#: A block at an iterate: costs of flips, and slopes of a linear loss -s u in the place of the log-loss, or none (one
#: or one per sample); pieces sample by sample (``starts``), their moved items as bits, the last ``new`` of a sample
#: taken in here; scores and epigraph variables of samples; the loss; the direction of ``predict`` and ``correct``.
PieceState = namedtuple("PieceState", "kappa slope starts pieces sets new score top loss step dscore dtop dlam", module=__name__)


cdef class Table:
    """The samples of a block in the coordinates of a layout; nothing of X is copied.

    ``codes`` are the coordinates of each sample's categories, unordered groups first, then its levels in
    ordered groups (``level_places`` are their coordinates, -1 for a level left out); ``joint`` those of its combinations, -1 for none; ``levels`` and ``signs`` the entries that
    a combination stands for.
    """
    cdef CompiledRows rows
    cdef const double[::1] y, w
    cdef const int[:, ::1] codes, joint, levels
    cdef const double[:, ::1] signs
    cdef const int[::1] tail_columns, places
    cdef bint offset, bare              # bare: nothing but groups
    cdef const double[::1] low, group_costs, lower, upper, bounded_costs
    cdef const int[::1] bounded, level_places, level_codes      # level_codes: where ``codes`` has a level's group
    cdef object level_costs
    cdef readonly Py_ssize_t N, G, L, C, nb, high, start, T, P, Q, W, least      # least: of joint

    def __init__(self, CompiledRows rows, codes, combined, layout):
        domains = layout.domains
        self.rows, self.y, self.w, self.codes = rows, rows.y, rows.w, codes
        self.joint, self.levels, self.signs = combined
        self.N, self.C, self.G = rows.n_samples, self.joint.shape[1], domains.n_unordered
        self.level_costs, self.level_places, self.L = domains.level_costs, layout.level_places, layout.level_places.size
        sizes = [len(each) for each in domains.level_costs]
        self.level_codes = self.G + np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self.least = np.min(combined[0], where=combined[0] >= 0, initial=layout.size)
        self.tail_columns, self.places, self.Q = layout.tail_columns, layout.places, layout.size + self.levels.shape[0]
        self.nb, self.high, self.start, self.offset = domains.bounded.size, layout.high, layout.start, layout.offset
        self.P, self.T = layout.size, layout.size - 1 - layout.start
        fit(self.codes.shape[0] == self.N and self.codes.shape[1] >= self.G and self.joint.shape[0] == self.N, "codes")
        fit(self.codes.shape[1] >= self.G + len(sizes), "levels")
        self.low, self.group_costs, self.bounded_costs = np.zeros(self.G), domains.group_costs[:self.G], domains.bounded_costs
        self.lower, self.upper, self.bounded = domains.lower, domains.upper, layout.bounded
        self.W, self.bare = (self.G + self.L + 2 * self.nb + 63) // 64, not np.any(layout.places[:rows.n_columns - layout.intercept] >= 0)

    def extended(self, const double[::1] x):
        """Coordinates with those of combinations: the sums of their levels'."""
        cdef Py_ssize_t q, k
        out = np.zeros(self.Q)
        cdef double[::1] view = out
        view[:self.P] = x
        for q in range(self.Q - self.P):
            for k in range(self.levels.shape[1]):
                if self.levels[q, k] >= 0: view[self.P + q] += self.signs[q, k] * x[self.levels[q, k]]
        return out

    cdef void fold(self, double* sums) noexcept nogil:
        """Sums over combinations added to those of their levels."""
        cdef Py_ssize_t q, k
        for q in range(self.Q - self.P):
            for k in range(self.levels.shape[1]):
                if self.levels[q, k] >= 0: sums[self.levels[q, k]] += self.signs[q, k] * sums[self.P + q]

    cdef void fold_gram(self, double* square, double* out) noexcept nogil:
        """The lower triangle of V + Vᵀ, where V is the square with combinations folded on both sides."""
        cdef Py_ssize_t i, j, k, P = self.P, Q = self.Q
        cdef double sign
        cdef double* row
        for j in range(P, Q):
            for k in range(self.levels.shape[1]):
                if self.levels[j - P, k] < 0: continue
                row, sign = square + self.levels[j - P, k] * Q, self.signs[j - P, k]
                for i in range(self.least, j + 1): row[i] += sign * square[j * Q + i]
        for i in range(P): self.fold(square + i * Q)
        for i in range(P):
            for j in range(i + 1): out[i * P + j] = square[i * Q + j] + square[j * Q + i]


cdef class Work:
    """Room for one visit, the sample it is at, and what is asked of it."""
    cdef Table t
    cdef CompiledRows x                 # the one of these two that there is, for this visit
    cdef bint is_dense
    cdef DenseRows dense
    cdef CsrRows sparse
    cdef const double[::1] kappa, slope         # of length 1 or N; slope of a linear loss, or empty
    cdef Py_ssize_t m                           # sparse entries of the sample's row
    cdef int[::1] index, columns, place
    cdef double[::1] value, tail, one, reference, acc, local, rows, square
    cdef uint64_t[::1] moved, upwards
    cdef Priced priced
    cdef LevelMoves level_moves
    cdef Item* items
    cdef double[::1] values
    cdef object kept
    cdef Py_ssize_t filled                      # rows of the panel whose tails wait for BLAS
    cdef int[:, ::1] waiting                    # samples whose combinations wait to be counted, their weights
    cdef double[::1] waiting_weight
    cdef Py_ssize_t n_waiting

    def __init__(self, Table t, kappa, slope):
        cdef Py_ssize_t most = 2 + 2 * (t.G + t.L) + t.nb
        cdef unsigned char[::1] room = np.empty((t.G + t.L + t.nb + 1) * sizeof(Item), np.uint8)
        self.t, self.kappa, self.slope = t, kappa, slope
        fit(len(kappa) in (1, t.N) and len(slope) in (0, 1, t.N), "kappa and slopes")
        self.x = t.rows.borrow()
        self.is_dense = isinstance(self.x, DenseRows)
        if self.is_dense: self.dense = self.x
        else: self.sparse = self.x
        self.kept, self.items = room, <Item*>&room[0]
        self.index, self.value = np.empty(t.C + t.rows.n_columns, np.int32), np.empty(t.C + t.rows.n_columns)
        self.tail, self.values = np.zeros(t.T + 1), np.empty(t.G + t.L + t.nb + 1)
        self.one, self.reference, self.acc, self.local = np.empty(most), np.empty(most), np.empty(most), np.empty(most * most)
        self.columns, self.place = np.empty(most, np.int32), np.full(t.P, -1, np.int32)
        self.moved, self.upwards = np.empty(t.W + 1, np.uint64), np.empty(t.W + 1, np.uint64)
        self.rows, self.square = np.empty(PANEL * t.T + 1), np.zeros(t.T * t.T + 1)
        self.waiting, self.waiting_weight = np.empty((t.C, TOGETHER), np.int32), np.empty(TOGETHER)
        self.priced.n_groups, self.priced.n_bounded = t.G, t.nb
        self.level_moves = LevelMoves(t.level_costs, t.level_places, t.G)
        if t.G: self.priced.low, self.priced.group_costs = &t.low[0], &t.group_costs[0]
        if t.nb:
            self.priced.lower, self.priced.upper = &t.lower[0], &t.upper[0]
            self.priced.bounded_costs, self.priced.bounded = &t.bounded_costs[0], &t.bounded[0]

    cdef inline double terms(self, Py_ssize_t i, double v, double* s, double* curvature) noexcept nogil:
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
        if self.t.bare: pass
        elif self.is_dense:
            value = self.dense.load(i, i + 1)
            for j in range(self.t.tail_columns.shape[0]): self.tail[j] = value[self.t.tail_columns[j]]
        else:
            for j in range(self.t.T): self.tail[j] = 0.0
            x = self.sparse.load(i, i + 1)
            for j in range(x.p[0], x.p[1]):
                c = self.t.places[x.col[j]]
                if c >= start: self.tail[c - start] = x.v[j]
                elif c >= 0:
                    self.index[self.m], self.value[self.m] = c, x.v[j]
                    self.m += 1
        if self.t.offset: self.tail[self.t.T - 1] = 1.0

    cdef double along(self, const double* x) noexcept nogil:
        """The row's product with x."""
        cdef Py_ssize_t k
        cdef const double* dense = x + self.t.start
        cdef double total = 0.0
        for k in range(self.m): total += self.value[k] * x[self.index[k]]
        for k in range(self.t.T): total += self.tail[k] * dense[k]
        return total

    cdef void add(self, double value, double* out) noexcept nogil:
        """out += value · row."""
        cdef Py_ssize_t k
        cdef double* dense = out + self.t.start
        for k in range(self.m): out[self.index[k]] += value * self.value[k]
        for k in range(self.t.T): dense[k] += value * self.tail[k]

    cdef inline double distance(self, Py_ssize_t item) noexcept nogil:
        """How far a bounded feature goes with its item."""
        cdef Py_ssize_t j = item // 2
        return (self.t.upper[j] if item & 1 else self.t.lower[j]) - self.tail[j]

    cdef inline Py_ssize_t changes(self, Py_ssize_t i, Py_ssize_t item, double label, int* column, double* value) noexcept nogil:
        """What an item changes of the sample's row: how many columns, at most two, which and by how much."""
        cdef Py_ssize_t n = 0, G = self.t.G, L = self.t.L
        if item < G:
            column[0], value[0], n = self.t.codes[i, item], -1.0, 1
            if label < 0.0: column[1], value[1], n = self.t.high + item, 1.0, 2
        elif item < G + L:
            column[0], value[0] = self.t.level_places[item - G], 1.0
            if column[0] >= 0: n = 1
            column[n], value[n] = self.t.level_places[self.t.codes[i, self.t.level_codes[item - G]]], -1.0
            if column[n] >= 0: n += 1
        else: column[0], value[0], n = self.t.start + (item - G - L) // 2, self.distance(item - G - L), 1
        return n

    cdef double shift(self, Py_ssize_t i, const uint64_t* moved, double label, const double* x) noexcept nogil:
        """What the moves change of the product with x."""
        cdef double total = 0.0
        cdef Py_ssize_t w, e
        cdef uint64_t bits
        cdef int column[2]
        cdef double value[2]
        for w in range(self.t.W):
            bits = moved[w]
            while bits:
                for e in range(self.changes(i, 64 * w + first_bit(bits), label, column, value)): total += value[e] * x[column[e]]
                bits &= bits - 1
        return total

    cdef void spread(self, Py_ssize_t i, const uint64_t* moved, double label, double by, double* out) noexcept nogil:
        """out += by · (changes of the row)."""
        cdef Py_ssize_t w, e
        cdef uint64_t bits
        cdef int column[2]
        cdef double value[2]
        for w in range(self.t.W):
            bits = moved[w]
            while bits:
                for e in range(self.changes(i, 64 * w + first_bit(bits), label, column, value)): out[column[e]] += by * value[e]
                bits &= bits - 1

    cdef double look(self, Py_ssize_t i, double score, const double* x, double lam, double ahead, double label,
                     double above, Piece* there, uint64_t* sets, Py_ssize_t n_there, Py_ssize_t* count) noexcept nogil:
        """The best value at the price λ; up to MOST sets worth more than ``above`` at ``ahead``, if new, go behind those there."""
        cdef Py_ssize_t n, k, t, e, pick, new, W = self.t.W
        cdef double v = label * score, d = 0.0 if label == self.t.y[i] else self.flip(i), best, h, s, curved
        cdef bint known
        cdef double* value = &self.values[0]
        cdef const int* codes = &self.t.codes[i, 0] if self.t.codes.shape[1] else NULL
        cdef uint64_t* chosen
        self.priced.beta, self.priced.high = x, x + self.t.high
        n = sorted_items(&self.priced, codes, codes + self.t.G, &self.tail[0], label, ahead, self.items)
        h = self.terms(i, v, &s, &curved)
        best, value[0] = h - lam * d, h - ahead * d
        for t in range(n):
            v -= self.items[t].gain
            d += self.items[t].cost
            self.items[t].rate = d              # from here on: what it costs to get there
            h = self.terms(i, v, &s, &curved)
            value[t + 1] = h - ahead * d
            if h - lam * d > best: best = h - lam * d
        for new in range(MOST):
            pick = 0
            for t in range(1, n + 1):
                if value[t] > value[pick]: pick = t
            if not value[pick] > above: break
            value[pick] = -INFINITY
            chosen = sets + (n_there + count[0]) * W
            for e in range(W): chosen[e] = 0
            for t in range(pick):
                e = self.items[t].before
                if e >= 0: chosen[e >> 6] &= ~(<uint64_t>1 << (e & 63))
                chosen[self.items[t].number >> 6] |= <uint64_t>1 << (self.items[t].number & 63)
            known = False
            for k in range(n_there):
                if there[k].y == label: known |= memcmp(sets + k * W, chosen, W * sizeof(uint64_t)) == 0
            if known: continue
            there[n_there + count[0]].y = label
            there[n_there + count[0]].cost = self.items[pick - 1].rate if pick else 0.0 if label == self.t.y[i] else self.flip(i)
            count[0] += 1
        return best

    cdef void gram(self, Py_ssize_t i, const Piece* p, const uint64_t* sets, Py_ssize_t n, double sd, double* out) noexcept nogil:
        """Σ q h'' zzᵀ + Σ D δδᵀ - (ΣDδ)(ΣDδ)ᵀ/ΣD of a sample, D = q/r: in its row and a few columns, then spread out."""
        cdef Py_ssize_t P = self.t.P, Q = self.t.Q, W = self.t.W, T = self.t.T, start = self.t.start, k, e, f, c = 1, ref = 0, w, joint
        cdef uint64_t bits
        cdef double weight, value, alpha
        cdef int changed[2]
        cdef double by[2]
        cdef int* columns = &self.columns[0]
        cdef int* place = &self.place[0]
        cdef const int* index = &self.index[0]
        cdef const double* entry = &self.value[0]
        cdef const double* tail = &self.tail[0]
        cdef double* one = &self.one[0]
        cdef double* reference = &self.reference[0]
        cdef double* acc = &self.acc[0]
        cdef double* local = &self.local[0]
        cdef double* target
        for w in range(W): self.moved[w] = self.upwards[w] = 0
        for k in range(n):
            for w in range(W):
                self.moved[w] |= sets[k * W + w]
                if p[k].y < 0.0: self.upwards[w] |= sets[k * W + w]
            if p[k].q * p[ref].r > p[ref].q * p[k].r: ref = k
        if n > 1:
            columns[c], place[P - 1] = P - 1, c
            c += 1
        for w in range(W):
            bits = self.moved[w]
            while bits:
                alpha = -1.0 if self.upwards[w] & (bits & (0 - bits)) else 1.0
                for e in range(self.changes(i, 64 * w + first_bit(bits), alpha, changed, by)):
                    if place[changed[e]] >= 0: continue
                    columns[c], place[changed[e]] = changed[e], c
                    c += 1
                bits &= bits - 1
        for e in range(c * c): local[e] = 0.0
        for e in range(c): acc[e] = 0.0
        if not self.slope.shape[0]:
            for k in range(n):
                self.local_row(i, &p[k], sets + k * W, c)
                weight = p[k].q * p[k].s * (1.0 - p[k].s)
                for e in range(c):
                    for f in range(e + 1): local[e * c + f] += weight * one[e] * one[f]
        if n > 1:
            self.local_row(i, &p[ref], sets + ref * W, c)
            for e in range(c): reference[e] = -p[ref].s * p[ref].y * one[e]
            reference[1] = -p[ref].cost
            for k in range(n):
                if k == ref: continue
                self.local_row(i, &p[k], sets + k * W, c)
                weight, alpha = p[k].q / p[k].r, -p[k].s * p[k].y
                for e in range(c): one[e] = alpha * one[e] - reference[e]
                one[1] = -p[k].cost - reference[1]
                for e in range(c):
                    acc[e] += weight * one[e]
                    for f in range(e + 1): local[e * c + f] += weight * one[e] * one[f]
            for e in range(c):
                for f in range(e + 1): local[e * c + f] -= acc[e] * acc[f] / sd
        # Half of the row with itself (the tail with itself by BLAS); local columns with it and each other.
        weight, self.waiting_weight[self.n_waiting], joint = local[0], local[0], 0
        for e in range(self.t.C):
            self.waiting[e, self.n_waiting] = self.t.joint[i, e]
            joint += self.t.joint[i, e] >= 0
        self.n_waiting += 1
        if self.n_waiting == TOGETHER: self.count(out)
        for e in range(joint, self.m):
            value, target = weight * entry[e], out + <Py_ssize_t>index[e] * Q
            for f in range(e): target[index[f]] += value * entry[f]
            target[index[e]] += 0.5 * value * entry[e]
        for e in range(T):
            value, target = weight * tail[e], out + (start + e) * Q
            for f in range(self.m): target[index[f]] += value * entry[f]
        value, target = sqrt(max(weight, 0.0)), &self.rows[0] + self.filled * T
        for e in range(T): target[e] = value * tail[e]
        self.filled += 1
        if self.filled == PANEL: self.flush()
        for e in range(1, c):
            value, target = local[e * c], out + <Py_ssize_t>columns[e] * Q
            if value != 0.0:
                for f in range(self.m): target[index[f]] += value * entry[f]
                for f in range(T): target[start + f] += value * tail[f]
            for f in range(1, e): target[columns[f]] += local[e * c + f]
            target[columns[e]] += 0.5 * local[e * c + e]
            place[columns[e]] = -1

    cdef void count(self, double* out) noexcept nogil:
        """Combinations that wait, with each other: a pair of groups at a time stays in the cache."""
        cdef Py_ssize_t j, k, i, Q = self.t.Q
        cdef const int* one
        cdef const int* other
        cdef const double* weight = &self.waiting_weight[0]
        for j in range(self.t.C):
            one = &self.waiting[j, 0]
            for i in range(self.n_waiting):
                if one[i] >= 0: out[one[i] * (Q + 1)] += 0.5 * weight[i]
            for k in range(j):
                other = &self.waiting[k, 0]
                for i in range(self.n_waiting):
                    if one[i] >= 0 and other[i] >= 0: out[one[i] * Q + other[i]] += weight[i]
        self.n_waiting = 0

    cdef void flush(self) noexcept nogil:
        """The tails that wait, with themselves.  Column-major "U" is the lower triangle in C order."""
        cdef int T = self.t.T, n = self.filled
        cdef double unit = 1.0
        if n and T: dsyrk("U", "N", &T, &n, &unit, &self.rows[0], &T, &unit, &self.square[0], &T)
        self.filled = 0

    cdef void finish(self, double* square, double* out) noexcept nogil:
        """The Gram matrix of all samples, its lower triangle."""
        cdef Py_ssize_t e, f, T = self.t.T, start = self.t.start, P = self.t.P
        self.count(square)
        self.t.fold_gram(square, out)
        self.flush()
        for e in range(T):
            for f in range(e + 1): out[(start + e) * P + start + f] += self.square[e * T + f]

    cdef void local_row(self, Py_ssize_t i, const Piece* p, const uint64_t* moved, Py_ssize_t c) noexcept nogil:
        """A piece's row: one times the sample's, and its changes at the local columns."""
        cdef Py_ssize_t e, w
        cdef uint64_t bits
        cdef int column[2]
        cdef double value[2]
        cdef double* one = &self.one[0]
        one[0] = 1.0
        for e in range(1, c): one[e] = 0.0
        for w in range(self.t.W):
            bits = moved[w]
            while bits:
                for e in range(self.changes(i, 64 * w + first_bit(bits), p.y, column, value)):
                    one[self.place[column[e]]] += value[e]
                bits &= bits - 1


cdef Piece* pieces_of(double[:, ::1] a) noexcept: return <Piece*>&a[0, 0] if a.shape[0] else NULL
cdef const Piece* given(const double[:, ::1] a) noexcept: return <const Piece*>&a[0, 0] if a.shape[0] else NULL
cdef const uint64_t* bits_of(const uint64_t[:, ::1] a) noexcept: return &a[0, 0] if a.shape[0] else NULL


cdef int check(Table t, state, const double[::1] x) except -1:
    """Arrays of the lengths that a visit reads."""
    fit(x.shape[0] == t.P and len(state.starts) == t.N + 1, "coordinates and samples")
    n = state.starts[t.N]
    fit(state.pieces.size == 6 * n and state.sets.size == t.W * n and state.step.size == 4 * n, "pieces")
    for part in (state.new, state.score, state.top, state.dscore, state.dtop): fit(len(part) == t.N, "parts of samples")
    return 0


def open_pieces(Table t, kappa, slope, const double[::1] x, double mu):
    """Unmoved pieces, on the central path: q r = μ w, Σ q = w."""
    fit(x.shape[0] == t.P, "coordinates")
    cdef Work work = Work(t, kappa, slope)
    cdef double[:, ::1] room = np.empty((2 * t.N + 1, 6))
    cdef Piece* p = pieces_of(room)
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
            if not t.w[i] > 0.0: continue
            count = 2 if work.flip(i) < INFINITY else 1
            for e in range(k, k + count):           # slacks hold values, for now
                p[e].y, p[e].cost = t.y[i] if e == k else -t.y[i], 0.0 if e == k else work.flip(i)
                p[e].v = p[e].y * scores[i]
                p[e].r = work.terms(i, p[e].v, &p[e].s, &curved) - lam * p[e].cost
            top = p[k].r + mu
            if count == 2:                          # 1/r + 1/(r + apart) = 1/μ
                apart = fabs(p[k].r - p[k + 1].r)
                top = max(p[k].r, p[k + 1].r) + mu - 0.5 * apart + sqrt(mu * mu + 0.25 * apart * apart)
            tops[i] = top
            for e in range(k, k + count):
                p[e].r = top - p[e].r
                p[e].q = t.w[i] * mu / p[e].r
            k += count
        ptr[t.N] = k
    work.x.free()
    pieces, sets, new = np.asarray(room)[:k], np.zeros((k, t.W), np.uint64), np.zeros(t.N, np.intp)
    return PieceState(kappa, slope, starts, pieces, sets, new, score, top_out, 0.0, *still(k, t.N))


def still(n_pieces, n_samples):
    """No direction."""
    return np.zeros((n_pieces, 4)), np.zeros(n_samples), np.zeros(n_samples), 0.0


def linearise(Table t, state, const double[::1] x, double primal, double dual, double mu, double most_over, refused=None):
    """Go by these lengths along the state's direction, to ``x``: the state and the conditions there.

    Pieces that matter there, or soon will, are taken in.  After a step that was ``refused``, with the state it led to,
    no piece is looked for: those that were new there are taken in.  There are no conditions where losses are over the
    pieces' by more than ``most_over``: such a step will be refused.  Sums: Gram P·P (lower triangle), three adjoints of P
    (gradient, affine, centring), SCALARS (loss, value, products, degree, over, entropy, new, pieces).
    """
    check(t, state, x)
    if refused is not None: check(t, refused, x)
    cdef Work work = Work(t, state.kappa, state.slope)
    cdef Py_ssize_t P = t.P, Q = t.Q, W = t.W, last = P - 1, i, k, a, b, n = 0, a2, e, count
    cdef const Py_ssize_t[::1] ptr = state.starts
    cdef const double[:, ::1] old_pieces = state.pieces, steps = state.step
    cdef const uint64_t[:, ::1] old_sets = state.sets
    cdef const double[::1] old_score = state.score, old_top = state.top, dscore = state.dscore, dtop = state.dtop
    cdef double dlam = state.dlam
    cdef bint stay = refused is not None
    there = refused if stay else state
    cdef const Py_ssize_t[::1] there_ptr = there.starts, there_new = there.new
    cdef const double[:, ::1] there_pieces = there.pieces
    cdef const uint64_t[:, ::1] there_sets = there.sets
    cdef const Piece* o = given(old_pieces)
    cdef const Step* ds = <const Step*>given(steps)
    cdef const uint64_t* o_sets = bits_of(old_sets)
    cdef const Piece* g = given(there_pieces)
    cdef const uint64_t* g_sets = bits_of(there_sets)
    # What may be needed; memory is taken as it is written.
    most = old_pieces.shape[0] + (np.sum(there_new) if stay else 2 * MOST * t.N) + 2 * MOST
    room, room_sets, new_out = np.empty((most, 6)), np.empty((most, W), np.uint64), np.zeros(t.N, np.intp)
    cdef double[:, ::1] new_pieces = room
    cdef uint64_t[:, ::1] new_sets = room_sets
    cdef Piece* p = pieces_of(new_pieces)
    cdef uint64_t* p_sets = &new_sets[0, 0] if W else NULL
    starts, score, top_out = np.empty(t.N + 1, np.intp), np.empty(t.N), np.empty(t.N)
    cdef Py_ssize_t[::1] new_ptr = starts, new_count = new_out
    cdef double[::1] new_score = score, new_top = top_out
    sums = np.zeros(P * P + 3 * P + SCALARS)
    cdef double[::1] total = sums, square = np.zeros(Q * Q) if Q > P else sums
    cdef double[:, ::1] adjoints = np.zeros((3, Q))
    cdef double* out = &square[0]
    cdef double* adj = &adjoints[0, 0]
    cdef double* tot = &total[P * P + 3 * P]
    cdef double loss = state.loss, lam = x[last], ahead = lam / (1.0 + 0.02 * min(1.0, mu / 0.005))
    cdef double w, top, best, value, old, q, mass, full, error, space, sq, sd, sw, h, cen, curved
    cdef double base[3]
    cdef double each[3]
    work.level_moves.price(&x[0], &work.priced)
    with nogil:
        for i in range(t.N):
            a, b, a2, w = ptr[i], ptr[i + 1], n, t.w[i]
            new_ptr[i] = n
            new_score[i], top = old_score[i] + primal * dscore[i], old_top[i] + primal * dtop[i]
            new_top[i] = top
            if not w > 0.0: continue
            if t.nb: work.go_to(i)
            # The pieces that are there; curvature is made up for at once, in top.
            mass = error = full = 0.0
            for k in range(a, b):
                p[n].y, p[n].cost, p[n].q = o[k].y, o[k].cost, o[k].q + dual * ds[k].q
                full += p[n].q
                if not p[n].q > 0.0: p[n].q = LEFT * o[k].q     # left behind
                for e in range(W): p_sets[n * W + e] = o_sets[k * W + e]
                p[n].v = o[k].v + primal * ds[k].v
                value = work.terms(i, p[n].v, &p[n].s, &curved) - lam * o[k].cost
                old = old_top[i] - o[k].r
                p[n].r = value                      # for now
                mass += p[n].q
                if primal > 0.0: error += p[n].q * (value - old + primal * (o[k].s * ds[k].v + dlam * o[k].cost))
                n += 1
            top += error / mass
            if mass > full:
                for k in range(a2, n): p[k].q *= full / mass
            # What the adversary can do here, and sets that matter or soon will.
            count = 0
            if stay:
                best = -INFINITY
                for k in range(there_ptr[i + 1] - there_new[i], there_ptr[i + 1]):
                    p[n + count].y, p[n + count].cost = g[k].y, g[k].cost
                    for e in range(W): p_sets[(n + count) * W + e] = g_sets[k * W + e]
                    count += 1
            else:
                best = work.look(i, new_score[i], &x[0], lam, ahead, t.y[i], top - mu, p + a2, p_sets + a2 * W, n - a2, &count)
                if work.flip(i) < INFINITY:
                    best = max(best, work.look(i, new_score[i], &x[0], lam, ahead, -t.y[i], top - mu, p + a2,
                                               p_sets + a2 * W, n - a2, &count))
            new_count[i] = count
            tot[0] += w * best
            # Slacks that have all but vanished, and room for new pieces.
            space = 0.0
            for k in range(a2, n):
                q = top - p[k].r
                old = o[a + k - a2].r + primal * ds[a + k - a2].r
                if old <= 0.0: space = max(space, LEFT * o[a + k - a2].r - q)
                elif q < 0.05 * min(mu, old): space = max(space, 0.3 * mu - q)
            top += space
            if best > top: tot[4] += w * (best - top)
            for k in range(n, n + count):
                p[k].v = p[k].y * (new_score[i] + work.shift(i, p_sets + k * W, p[k].y, &x[0]))
                p[k].r = work.terms(i, p[k].v, &p[k].s, &curved) - lam * p[k].cost
                top = max(top, p[k].r + LIFT * mu)
            n += count
            tot[6] += count
            sq = 0.0
            for k in range(a2, n):
                p[k].r = top - p[k].r
                if k >= n - count: p[k].q = w * min(mu / p[k].r, 0.5)
                sq += p[k].q
            if count:
                for k in range(a2, n): p[k].q *= w / sq
            new_top[i] = top
        new_ptr[t.N] = n
        # Conditions: gradient, and the responses of q to aims -q r and w.
        for i in range(t.N if tot[4] <= most_over else 0):
            a, b, w, top = new_ptr[i], new_ptr[i + 1], t.w[i], new_top[i]
            if not w > 0.0: continue
            work.go_to(i)
            sq = sd = sw = base[0] = base[1] = base[2] = 0.0
            for k in range(a, b):
                sq += p[k].q
                sd += p[k].q / p[k].r
                sw += w / p[k].r
            for k in range(a, b):
                h = p[k].q / p[k].r / sd
                each[0], each[1], each[2] = p[k].q, -p[k].q + h * w, w / p[k].r - h * sw
                tot[2] += p[k].q * p[k].r
                tot[3] += w
                tot[5] += p[k].q / sq * w * (top - p[k].r + lam * p[k].cost + p[k].s * p[k].v)   # h + s v
                for e in range(3):
                    cen = -each[e] * p[k].s * p[k].y
                    base[e] += cen
                    adj[e * Q + last] -= each[e] * p[k].cost
                    work.spread(i, p_sets + k * W, p[k].y, cen, adj + e * Q)
            for e in range(3): work.add(base[e], adj + e * Q)
            work.gram(i, p + a, p_sets + a * W, b - a, sd, out)
        if tot[4] <= most_over: work.finish(out, &total[0])
        for e in range(3):
            t.fold(adj + e * Q)
            memcpy(&total[P * P + e * P], adj + e * Q, P * sizeof(double))
        if stay: tot[0] = loss
        tot[1], tot[7] = tot[0], n
    work.x.free()
    found = PieceState(state.kappa, state.slope, starts, room[:n], room_sets[:n], new_out, score, top_out, tot[0], *still(n, t.N))
    return found, sums


def with_missing(Table t, both, const double[::1] x, double mu):
    """Stay where the first of two states is, with the pieces that were new at the other, where a refused step led to."""
    return linearise(t, both[0], x, 0.0, 0.0, mu, INFINITY, both[1])


def follow(Table t, state, const double[::1] dx, double centre, double share, bint predictor):
    """Everything that goes with a direction: dtop from Σ dq = w - Σ q, then slacks and multipliers.

    Sums of a predictor: pull P, changes of the products with primal, dual and both steps, 2·LEVELS costs of step
    lengths; else: slope and curvature of the loss, 2·LEVELS costs.
    """
    check(t, state, dx)
    cdef Work work = Work(t, state.kappa, state.slope)
    cdef Py_ssize_t P = t.P, W = t.W, last = P - 1, i, k, a, b
    cdef const Py_ssize_t[::1] ptr = state.starts
    cdef const double[:, ::1] pieces = state.pieces, before = state.step
    cdef const uint64_t[:, ::1] all_sets = state.sets
    cdef const Piece* o = given(pieces)
    cdef const Step* second = <const Step*>given(before)
    cdef const uint64_t* sets = bits_of(all_sets)
    step_out, dscore_out, dtop_out = np.empty((pieces.shape[0], 4)), np.zeros(t.N), np.zeros(t.N)
    cdef double[:, ::1] steps = step_out
    cdef double[::1] dscores = dscore_out, dtops = dtop_out
    cdef Step* d = <Step*>pieces_of(steps)
    sums = np.zeros((P + 3 if predictor else 2) + 2 * LEVELS)
    cdef double[::1] total_out = sums, pulls = np.zeros(t.Q)
    cdef const double[::1] all_dx = t.extended(dx)
    cdef double* out = &pulls[0]
    cdef double* tot = &total_out[P if predictor else 0]
    cdef double* costs = tot + (3 if predictor else 2)
    cdef double w, dscore, wanted, push, sd, sq, total, dtop, base, pull, dq, cen, own, fall, lost, drop, taken
    cdef Piece largest
    with nogil:
        for i in range(t.N):
            a, b, w = ptr[i], ptr[i + 1], t.w[i]
            if not w > 0.0: continue
            work.go_to(i)
            dscore = work.along(&all_dx[0])
            sd = sq = total = 0.0
            for k in range(a, b):
                d[k].v = o[k].y * (dscore + work.shift(i, sets + k * W, o[k].y, &dx[0]))
                push = -o[k].s * d[k].v - dx[last] * o[k].cost
                wanted = -o[k].q if predictor else (centre * w - share * second[k].second) / o[k].r - o[k].q
                d[k].q, d[k].r = wanted, push
                if not predictor: tot[0] += o[k].q * push
                sd += o[k].q / o[k].r
                sq += o[k].q
                total += wanted + o[k].q / o[k].r * push
                if k == a or o[k].q > largest.q: largest = o[k]
            dtop = (total - (w - sq)) / sd
            dscores[i], dtops[i] = dscore, dtop
            base = own = lost = taken = 0.0
            fall = drop = 1.0
            for k in range(a, b):
                d[k].r = dtop - d[k].r
                d[k].q -= o[k].q / o[k].r * d[k].r
                own += o[k].q * o[k].r
                if -d[k].r > fall * o[k].r: fall, lost = -d[k].r / o[k].r, -d[k].r
                if -d[k].q > drop * o[k].q: drop, taken = -d[k].q / o[k].q, -d[k].q * (o[k].r + largest.r)
                if predictor:
                    tot[0] += o[k].q * d[k].r
                    tot[1] += d[k].q * o[k].r
                    tot[2] += d[k].q * d[k].r
                    d[k].second = max(-SECOND * o[k].q * o[k].r, min(d[k].q * d[k].r, SECOND * o[k].q * o[k].r))
                    base -= d[k].second / o[k].r
            # A sample that does not allow the whole step, and what it costs to leave it behind.
            if fall > 1.0: limit(costs, fall, own + PASSING * w * lost)
            if drop > 1.0: limit(costs + LEVELS, drop, own + PASSING * taken)
            if predictor:                       # the pull of the second-order terms
                pull = 0.0
                for k in range(a, b):
                    dq = -d[k].second / o[k].r - o[k].q / o[k].r * base / sd
                    cen = -dq * o[k].s * o[k].y
                    pull += cen
                    out[last] -= dq * o[k].cost
                    work.spread(i, sets + k * W, o[k].y, cen, out)
                work.add(pull, out)
        if predictor:
            t.fold(out)
            memcpy(&total_out[0], out, P * sizeof(double))
    work.x.free()
    return state._replace(step=step_out, dscore=dscore_out, dtop=dtop_out, dlam=dx[last]), sums


def certify(Table t, state, const double[::1] dx):
    """The iterate's dual point gone along with a correction, as masses q and m = q s: the equations are linear in these.

    Masses follow as far as they are not negative, those of a sample together.  Pieces with little mass and much slack
    are left out: where only they depend on a coordinate (high of a group that nobody moves), no small step could meet
    its equation.  Sums: minus Σ m y z and, at λ, minus Σ q d (P); Σ q H(m/q); additions that any of these has been
    through.
    """
    check(t, state, dx)
    cdef Work work = Work(t, state.kappa, state.slope)
    cdef Py_ssize_t P = t.P, Q = t.Q, W = t.W, last = P - 1, i, k, a, b, begin = 0, most = 0
    cdef const Py_ssize_t[::1] ptr = state.starts
    cdef const double[:, ::1] pieces = state.pieces
    cdef const uint64_t[:, ::1] all_sets = state.sets
    cdef const Piece* o = given(pieces)
    cdef const uint64_t* sets = bits_of(all_sets)
    made, sums = np.zeros((pieces.shape[0], 2)), np.zeros(P + 2)
    cdef double[:, ::1] new = made, moves = np.empty((pieces.shape[0], 2))      # changes of margin, of value
    cdef double[::1] total_out = sums, all_sums = np.zeros(Q + 1), panel = np.zeros(Q + 1)
    cdef const double[::1] all_dx = t.extended(dx)
    cdef double* out = &panel[0]                # sums of a few samples: less rounding to charge
    cdef double w, dscore, sd, total, dtop, q, m, s, base, scale
    cdef bint again
    with nogil:
        for i in range(t.N):
            a, b, w = ptr[i], ptr[i + 1], t.w[i]
            if w > 0.0:
                work.go_to(i)
                dscore = work.along(&all_dx[0])
                for k in range(a, b):
                    if o[k].q < BINDS * w * o[k].r: continue
                    moves[k, 0] = o[k].y * (dscore + work.shift(i, sets + k * W, o[k].y, &dx[0]))
                    moves[k, 1] = -o[k].s * moves[k, 0] - dx[last] * o[k].cost
                    new[k, 0] = 1.0             # for now: takes part
                again = True
                while again:                    # without those that would be negative
                    sd = total = 0.0
                    again = False
                    for k in range(a, b):
                        if new[k, 0] == 0.0: continue
                        sd += o[k].q / o[k].r
                        total += o[k].q + o[k].q / o[k].r * moves[k, 1]
                    dtop = (total - w) / sd
                    for k in range(a, b):
                        if new[k, 0] != 0.0 and o[k].r + moves[k, 1] <= dtop: new[k, 0], again = 0.0, True
                total = 0.0
                for k in range(a, b):
                    if new[k, 0] == 0.0: continue
                    s, q = o[k].s, o[k].q / o[k].r * (o[k].r + moves[k, 1] - dtop)
                    m = s * q - o[k].q * s * (1.0 - s) * moves[k, 0]
                    new[k, 0], new[k, 1] = q, min(m, q) if m > EMPTIED * q * s else 0.0
                    total += q
                scale, base = w / total * (1.0 - 1e-15), 0.0
                for k in range(a, b):
                    if not new[k, 0] > 0.0: continue
                    new[k, 0] *= scale
                    new[k, 1] = min(new[k, 1] * scale, new[k, 0])
                    out[Q] += new[k, 0] * entropy(new[k, 1] / new[k, 0])
                    out[last] -= new[k, 0] * o[k].cost
                    base -= new[k, 1] * o[k].y
                    work.spread(i, sets + k * W, o[k].y, -new[k, 1] * o[k].y, out)
                work.add(base, out)
            if (i + 1) % PANEL == 0 or i + 1 == t.N:
                most = max(most, b - begin + PANEL)
                begin = b
                for k in range(Q + 1):
                    all_sums[k] += out[k]
                    out[k] = 0.0
        t.fold(&all_sums[0])
        for k in range(P): total_out[k] = all_sums[k]
        total_out[P] = all_sums[Q]
        total_out[P + 1] = most + t.N // PANEL + Q - P + 4
    work.x.free()
    return (state, made), sums
