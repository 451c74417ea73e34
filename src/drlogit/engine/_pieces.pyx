"""The samples of features with domains: pieces, which an exact oracle finds as iterates need them.

    τ_i ≥ h(v_k) - λ d_k   for the pieces k of sample i,   v_k = y_k (x_i moved)·(β, high, b)

Groups are complete ("none" is a category); their least coefficient is zero (docs/algorithm.md).  A
piece is (sample, label, set of moved items); its row is the sample's with a few entries changed: a
changed group loses the entry of its category and, under the label -1, gains one at its ``high``; a
bounded feature goes to one of its ends.  So margins, adjoints and Gram matrix need the sample's own
row once and the changes beside it.

Coordinates: those with few entries (levels of large groups, sparse columns, high of each group);
from ``dense`` on, those whose Gram matrix is a product of dense matrices: levels of small groups,
then, from ``start`` on, the *tail* of bounded features, dense columns, b if there is one; λ.

    N, P       samples, coordinates         G, nb      groups that may change, bounded features
    C          categories of a sample       T, m       entries of a row's tail, its other entries
    D          coordinates from ``dense``   W          64-bit words of a set of items
    y, cost    label and cost d of a piece          v, s   its margin and dual probability
    q, r       its multiplier and slack, (16)       top    epigraph variable τ of a sample
    sd         Σ q/r over the pieces of a sample    d...   changes along a direction

Visits take a table and a state and return a new state and an array of sums (``_sums``).

Derivation: docs/algorithm.md, (15) and (16).
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy, memset
from scipy.linalg.cython_blas cimport dsyrk

from drlogit.problem._losses cimport entropy, loss_terms
from drlogit.problem._moves cimport Item, Priced, sorted_items
from drlogit.rows._products cimport CompiledRows, CsrRows, DenseRows, Entries
from drlogit.rows._shapes cimport fit
from . cimport _sums
from ._sums cimport Linearised, book, linearised
from .settings import SETTINGS

cdef extern from *:
    int first_bit "__builtin_ctzll"(uint64_t) noexcept nogil

cdef enum:
    PANEL = 64          # samples whose dense rows are multiplied together
    ADJOINTS = 3        # gradient, affine and centring part of a linearisation
cdef double EMPTIED = SETTINGS.emptied, KEPT = SETTINGS.kept, SECOND = SETTINGS.second_order
cdef double PASSING = SETTINGS.blocking, BINDS = SETTINGS.binding

# Slack of new pieces, in units of μ (2 to 20 are within 7 % of iterations on made tables).
cdef double NEW_SLACK = 5.0

# Pieces are searched for at a λ that is lower by AHEAD while μ is above AHEAD_MU, to find them
# before they bind: tables of many categories take a tenth less time.
cdef double AHEAD = 0.02, AHEAD_MU = 0.005

cdef struct Piece:
    double y, cost, v, q, s, r     # label, cost, margin, multiplier, dual probability, slack

cdef struct Step:
    double v, q, r, second         # changes of margin, multiplier and slack; second-order term

cdef struct View:
    # the pieces of a state
    const Py_ssize_t* starts
    const Py_ssize_t* new
    const Piece* pieces
    const Step* steps
    const uint64_t* sets


cdef class PieceState:
    """A block at an iterate; visits make new states and leave the old ones alone.

    kappa     flip costs of the samples, infinite for labels out of reach
    slope     slopes of a linear loss -s u instead of the log-loss, or none
    starts    where the pieces of each sample begin, and the end
    pieces    ``Piece`` by ``Piece``; ``sets``: their moved items as bits
    new       how many pieces of each sample were found in the last visit; they are its last ones
    now       scores and τ of the samples; ``loss``: the sum of their losses
    step      ``Step`` by ``Step``; ``change``: of scores and τ; ``dlam``: the direction
    """
    cdef readonly const double[::1] kappa, slope
    cdef readonly const Py_ssize_t[::1] starts, new
    cdef readonly const double[:, ::1] pieces, step, now, change
    cdef readonly const uint64_t[:, ::1] sets
    cdef readonly double loss, dlam

    def __init__(self, kappa, slope, starts, new, pieces, sets, now, loss, step=None, change=None,
                 dlam=0.0):
        self.kappa, self.slope, self.starts, self.new = kappa, slope, starts, new
        self.pieces, self.sets, self.now, self.loss = pieces, sets, now, loss
        self.step = np.zeros((len(pieces), 4)) if step is None else step
        self.change = np.zeros((2, len(kappa))) if change is None else change
        self.dlam = dlam

    def along(self, step, change, dlam):
        """The same with a direction."""
        return PieceState(self.kappa, self.slope, self.starts, self.new, self.pieces, self.sets,
                          self.now, self.loss, step, change, dlam)

    def __reduce__(self):
        return PieceState, (np.asarray(self.kappa), np.asarray(self.slope), np.asarray(self.starts),
                            np.asarray(self.new), np.asarray(self.pieces), np.asarray(self.sets),
                            np.asarray(self.now), self.loss, np.asarray(self.step),
                            np.asarray(self.change), self.dlam)

    def __sizeof__(self):
        return 300 + (80 + 8 * self.sets.shape[1]) * self.pieces.shape[0] + 64 * len(self.kappa)


cdef class Table:
    """The samples of a block in the coordinates of a layout; nothing of X is copied.

    ``codes`` are the coordinates of each sample's categories in groups that may change, then those
    in other groups, -1 for none.
    """
    cdef CompiledRows rows
    cdef const double[::1] w
    cdef const int[:, ::1] codes
    cdef const int[::1] none, tail_columns, places, bounded
    cdef const double[::1] low, group_costs, lower, upper, bounded_costs
    cdef bint offset
    cdef readonly Py_ssize_t N, G, C, nb, high, dense, start, T, D, P, W

    def __init__(self, CompiledRows rows, codes, layout):
        domains = layout.domains
        self.rows, self.w, self.codes, self.offset = rows, rows.w, codes, layout.offset
        self.none, self.tail_columns, self.places = layout.none, layout.tail_columns, layout.places
        self.N, self.C, self.G = rows.n_samples, self.codes.shape[1], domains.n_groups
        self.P, self.high, self.dense = layout.size, layout.high, layout.dense
        self.start, self.nb = layout.start, domains.bounded.size
        self.T, self.D = self.P - 1 - self.start, self.P - 1 - self.dense
        fit(self.codes.shape[0] == self.N and self.C >= self.G, "codes")
        self.low, self.group_costs = np.zeros(self.G), domains.group_costs
        self.bounded_costs = domains.bounded_costs
        self.lower, self.upper, self.bounded = domains.lower, domains.upper, layout.bounded
        self.W = (self.G + 2 * self.nb + 63) // 64

    cdef Priced prices(self, const double* x) noexcept nogil:
        """What the oracle has to know of a model."""
        cdef Priced priced
        priced.n_groups, priced.n_bounded = self.G, self.nb
        priced.beta, priced.high = x, x + self.high
        if self.G:
            priced.low, priced.group_costs = &self.low[0], &self.group_costs[0]
        if self.nb:
            priced.lower, priced.upper = &self.lower[0], &self.upper[0]
            priced.bounded_costs, priced.bounded = &self.bounded_costs[0], &self.bounded[0]
        return priced


cdef View view(Table t, PieceState state, const double[::1] x) except *:
    """The pieces of a state, after a check of all lengths that a visit relies on."""
    cdef View found
    cdef Py_ssize_t n
    fit(x.shape[0] == t.P and state.starts.shape[0] == t.N + 1, "coordinates and samples")
    n = state.starts[t.N]
    fit(state.pieces.shape[0] == n and state.pieces.shape[1] == 6 and state.step.shape[0] == n
        and state.step.shape[1] == 4, "pieces")
    fit(state.sets.shape[0] == n and state.sets.shape[1] == t.W, "sets")
    fit(state.kappa.shape[0] == t.N and state.slope.shape[0] in (0, t.N)
        and state.new.shape[0] == t.N, "samples")
    fit(state.now.shape[0] == 2 and state.now.shape[1] == t.N and state.change.shape[0] == 2
        and state.change.shape[1] == t.N, "scores")
    found.starts, found.sets, found.pieces, found.steps = &state.starts[0], NULL, NULL, NULL
    if t.N:
        found.new = &state.new[0]
    if n:
        found.sets, found.pieces = &state.sets[0, 0], <const Piece*>&state.pieces[0, 0]
        found.steps = <const Step*>&state.step[0, 0]
    return found


cdef class Visit:
    """The row of the sample that a visit is at, and what a piece changes in it."""
    cdef Table t
    cdef PieceState state
    cdef View old
    cdef CompiledRows borrowed
    cdef DenseRows dense                # the one of these two that there is, for this visit
    cdef CsrRows sparse
    cdef Py_ssize_t m                   # entries of the row before its tail
    cdef int[::1] index, column         # of these entries; of the changes
    cdef double[::1] value, tail, by
    cdef const double[::1] coordinates
    cdef const double* x

    def __init__(self, Table t, PieceState state, const double[::1] x):
        cdef Py_ssize_t most = 2 * t.G + 2 * t.nb + 1
        self.t, self.state, self.coordinates, self.x = t, state, x, &x[0]
        self.old = view(t, state, x)
        self.borrowed = t.rows.borrow()
        if isinstance(self.borrowed, DenseRows):
            self.dense = self.borrowed
        else:
            self.sparse = self.borrowed
        self.index = np.empty(2 * t.C + t.rows.n_columns, np.int32)
        self.value, self.tail = np.empty(self.index.shape[0]), np.zeros(t.T + 1)
        self.column, self.by = np.empty(most, np.int32), np.empty(most)

    cdef inline double terms(self, Py_ssize_t i, double v, double* s) noexcept nogil:
        """Loss at a margin, and minus its slope."""
        if self.state.slope.shape[0]:
            s[0] = self.state.slope[i]
            return -s[0] * v
        return loss_terms(v, s)

    cdef inline void enter(self, int column, double value) noexcept nogil:
        self.index[self.m], self.value[self.m] = column, value
        self.m += 1

    cdef void go_to(self, Py_ssize_t i) noexcept nogil:
        """The sample's own row."""
        cdef Py_ssize_t j
        cdef int c
        cdef const double* value
        cdef Entries x
        self.m = 0
        for j in range(self.t.C):
            if self.t.codes[i, j] >= 0:
                self.enter(self.t.codes[i, j], 1.0)
        for j in range(self.t.none.shape[0]):        # instead of b
            self.enter(self.t.none[j], -1.0)
        if self.dense is not None:
            value = self.dense.load(i, i + 1)
            for j in range(self.t.tail_columns.shape[0]):
                self.tail[j] = value[self.t.tail_columns[j]]
        else:
            memset(&self.tail[0], 0, self.t.T * sizeof(double))
            x = self.sparse.load(i, i + 1)
            for j in range(x.p[0], x.p[1]):
                c = self.t.places[x.col[j]]
                if c >= self.t.start:
                    self.tail[c - self.t.start] = x.v[j]
                elif c >= 0:
                    self.enter(c, x.v[j])
        if self.t.offset:
            self.tail[self.t.T - 1] = 1.0

    cdef double along(self) noexcept nogil:
        """The row's product with x."""
        cdef Py_ssize_t k
        cdef const int* index = &self.index[0]
        cdef const double* value = &self.value[0]
        cdef const double* tail = &self.tail[0]
        cdef const double* of_tail = self.x + self.t.start
        cdef double total = 0.0
        for k in range(self.m):
            total += value[k] * self.x[index[k]]
        for k in range(self.t.T):
            total += tail[k] * of_tail[k]
        return total

    cdef void add(self, double by, double* out) noexcept nogil:
        """out += by · row."""
        cdef Py_ssize_t k, m = self.m, T = self.t.T
        cdef const int* index = &self.index[0]
        cdef const double* value = &self.value[0]
        cdef const double* tail = &self.tail[0]
        cdef double* of_tail = out + self.t.start
        for k in range(m):
            out[index[k]] += by * value[k]
        for k in range(T):
            of_tail[k] += by * tail[k]

    cdef Py_ssize_t changes(self, Py_ssize_t i, double label, const uint64_t* moved) noexcept nogil:
        """List the columns that a piece changes in the sample's row and by how much; how many."""
        cdef Py_ssize_t n = 0, w, item
        cdef int c
        cdef uint64_t bits
        for w in range(self.t.W):
            bits = moved[w]
            while bits:
                item = 64 * w + first_bit(bits)
                bits &= bits - 1
                if item >= self.t.G:
                    item -= self.t.G
                    c = self.t.bounded[item // 2]
                    self.column[n] = c
                    self.by[n] = self.t.upper[item // 2] if item & 1 else self.t.lower[item // 2]
                    self.by[n] -= self.tail[c - self.t.start]
                else:
                    self.column[n], self.by[n] = self.t.codes[i, item], -1.0
                    if label < 0.0:
                        n += 1
                        self.column[n], self.by[n] = <int>(self.t.high + item), 1.0
                n += 1
        return n

    cdef double margin(self, Py_ssize_t i, double score, double label,
                       const uint64_t* moved) noexcept nogil:
        """The margin of a piece of a sample with this score, or its change, by the product with x.
        """
        cdef Py_ssize_t e
        for e in range(self.changes(i, label, moved)):
            score += self.by[e] * self.x[self.column[e]]
        return label * score

    cdef void spread(self, Py_ssize_t i, double label, const uint64_t* moved, double by,
                     double* out) noexcept nogil:
        """out += by · (what a piece changes of the row)."""
        cdef Py_ssize_t e
        for e in range(self.changes(i, label, moved)):
            out[self.column[e]] += by * self.by[e]


# --- linearisation --------------------------------------------------------------------------------


cdef class GramVisit(Visit):
    """A visit that forms the matrix (16): V + Vᵀ, and the Gram matrix of dense rows.

    Of each sample it forms a small matrix first, in its own row (0), λ (1) and the columns that its
    pieces change; ``stride`` is the most that these can be.
    """
    cdef double* whole                  # V, and at the end the matrix, its lower triangle
    cdef Py_ssize_t c, stride, filled   # columns of the small matrix; dense rows that wait for BLAS
    cdef int[::1] columns, place
    cdef double[::1] one, mean, local, row
    cdef double[:, ::1] rows, square

    def __init__(self, Table t, PieceState state, const double[::1] x):
        Visit.__init__(self, t, state, x)
        self.stride, self.filled = 2 + 2 * t.G + t.nb, 0
        self.columns = np.empty(self.stride, np.int32)
        self.place = np.full(t.P, -1, np.int32)
        self.one, self.mean = np.empty((2, self.stride))
        self.local = np.empty(self.stride * self.stride)
        self.row, self.rows = np.empty(t.D + 1), np.empty((PANEL, t.D + 1))
        self.square = np.zeros((t.D, t.D))

    cdef void gram(self, Py_ssize_t i, const Piece* p, const uint64_t* sets,
                   Py_ssize_t n) noexcept nogil:
        """(16) of a sample.  The second part is the stiffnesses' covariance of the gradients: it is
        formed piece by piece, with the mean so far, so that nothing cancels.
        """
        cdef Py_ssize_t k, e
        cdef double stiff, total = 0.0
        cdef bint bent = self.state.slope.shape[0] == 0
        cdef double* one = &self.one[0]
        cdef double* mean = &self.mean[0]
        self.c = 0
        self.local_column(-1)
        self.local_column(self.t.P - 1)
        for k in range(n):
            self.local_row(i, p[k].y, sets + k * self.t.W)
            if bent:
                self.add_outer(p[k].q * p[k].s * (1.0 - p[k].s))
            stiff = p[k].q / p[k].r
            total += stiff
            for e in range(self.c):
                one[e] = -p[k].s * p[k].y * one[e] - mean[e]
            one[1] -= p[k].cost
            if k > 0:
                self.add_outer(stiff * (1.0 - stiff / total))
            for e in range(self.c):
                mean[e] += stiff / total * one[e]
        self.add_own_row()
        self.add_local()

    cdef inline Py_ssize_t local_column(self, Py_ssize_t column) noexcept nogil:
        """The place of a column in the small matrix; a new one begins with zeros."""
        cdef Py_ssize_t e
        if column >= 0 and self.place[column] >= 0:
            return self.place[column]
        if column >= 0:
            self.place[column] = <int>self.c
        self.columns[self.c], self.mean[self.c] = <int>column, 0.0
        for e in range(self.c + 1):
            self.local[self.c * self.stride + e] = 0.0
        self.c += 1
        return self.c - 1

    cdef void local_row(self, Py_ssize_t i, double label, const uint64_t* moved) noexcept nogil:
        """A piece's row: one times the sample's, and its changes at the local columns."""
        cdef Py_ssize_t e, n = self.changes(i, label, moved)
        for e in range(n):
            self.local_column(self.column[e])
        memset(&self.one[0], 0, self.c * sizeof(double))
        self.one[0] = 1.0
        for e in range(n):
            self.one[self.place[self.column[e]]] += self.by[e]

    cdef void add_outer(self, double weight) noexcept nogil:
        """local += weight · one oneᵀ, the lower triangle."""
        cdef Py_ssize_t e, f
        cdef const double* one = &self.one[0]
        cdef double* local = &self.local[0]
        for e in range(self.c):
            for f in range(e + 1):
                local[e * self.stride + f] += weight * one[e] * one[f]

    cdef void add_own_row(self) noexcept nogil:
        """The row with itself: its dense part waits for BLAS."""
        cdef Py_ssize_t D = self.t.D, T = self.t.T, P = self.t.P, first = self.t.dense, e, f, n = 0
        cdef double by, weight = self.local[0]
        cdef int* index = &self.index[0]
        cdef double* value = &self.value[0]
        cdef double* row = &self.row[0]
        cdef double* target
        memset(row, 0, D * sizeof(double))
        memcpy(row + D - T, &self.tail[0], T * sizeof(double))
        for e in range(self.m):
            if index[e] >= first:
                row[index[e] - first] += value[e]
            else:
                index[n], value[n] = index[e], value[e]
                n += 1
        self.m = n                           # the others are in the dense row now
        for e in range(n):
            by, target = weight * value[e], self.whole + index[e] * P
            for f in range(e):
                target[index[f]] += by * value[f]
            target[index[e]] += 0.5 * by * value[e]
            for f in range(D):
                target[first + f] += by * row[f]
        by, target = sqrt(max(weight, 0.0)), &self.rows[0, 0] + self.filled * D
        for f in range(D):
            target[f] = by * row[f]
        self.filled += 1
        if self.filled == PANEL:
            self.flush()

    cdef void add_local(self) noexcept nogil:
        """Local columns with the row and with each other; the list of columns is empty then."""
        cdef Py_ssize_t D = self.t.D, P = self.t.P, first = self.t.dense, m = self.m, e, f
        cdef const int* columns = &self.columns[0]
        cdef const int* index = &self.index[0]
        cdef const double* value = &self.value[0]
        cdef const double* row = &self.row[0]
        cdef const double* local
        cdef double* target
        for e in range(1, self.c):
            local, target = &self.local[e * self.stride], self.whole + columns[e] * P
            if local[0] != 0.0:
                for f in range(m):
                    target[index[f]] += local[0] * value[f]
                for f in range(D):
                    target[first + f] += local[0] * row[f]
            for f in range(1, e):
                target[columns[f]] += local[f]
            target[columns[e]] += 0.5 * local[e]
            self.place[columns[e]] = -1

    cdef void flush(self) noexcept nogil:
        """The dense rows that wait, with themselves: the lower triangle in C order."""
        cdef int D = <int>self.t.D, n = <int>self.filled
        cdef double unit = 1.0
        if n and D:
            dsyrk("U", "N", &D, &n, &unit, &self.rows[0, 0], &D, &unit, &self.square[0, 0], &D)
        self.filled = 0

    cdef void finish(self) noexcept nogil:
        """The lower triangle of V + Vᵀ, with the dense rows."""
        cdef Py_ssize_t i, j, P = self.t.P, D = self.t.D, first = self.t.dense
        self.flush()
        for i in range(P):
            for j in range(i + 1):
                self.whole[i * P + j] += self.whole[j * P + i]
        for i in range(D):
            for j in range(i + 1):
                self.whole[(first + i) * P + first + j] += self.square[i, j]


def open_pieces(Table t, kappa, slope, const double[::1] x, double mu):
    """Unmoved pieces near the central path: products of each sample are equal, Σ q = w."""
    cdef double[:, ::1] room = np.empty((2 * t.N + 1, 6)), now = np.zeros((2, t.N))
    cdef Py_ssize_t[::1] starts = np.zeros(t.N + 1, np.intp)
    cdef Piece* p = <Piece*>&room[0, 0]
    cdef Py_ssize_t i, e, count, k = 0
    cdef double lam = x[t.P - 1], top, total
    nothing = np.zeros((0, 6)), np.zeros((0, t.W), np.uint64)
    new = np.zeros(t.N, np.intp)
    cdef Visit visit = Visit(t, PieceState(kappa, slope, starts, new, *nothing, now, 0.0), x)
    cdef const double[::1] flip = visit.state.kappa
    with nogil:
        for i in range(t.N):
            starts[i] = k
            visit.go_to(i)
            now[0, i] = visit.along()
            if not t.w[i] > 0.0:
                continue
            count, top, total = 2 if flip[i] < INFINITY else 1, -INFINITY, 0.0
            for e in range(k, k + count):
                p[e].y, p[e].cost = visit.t.rows.y[i], 0.0
                if e > k:
                    p[e].y, p[e].cost = -p[e].y, flip[i]
                p[e].v = p[e].y * now[0, i]
                top = max(top, visit.terms(i, p[e].v, &p[e].s) - lam * p[e].cost)
            now[1, i] = top + count * mu
            for e in range(k, k + count):
                p[e].r = now[1, i] - (visit.terms(i, p[e].v, &p[e].s) - lam * p[e].cost)
                total += 1.0 / p[e].r
            for e in range(k, k + count):
                p[e].q = t.w[i] / (p[e].r * total)
            k += count
        starts[t.N] = k
    visit.borrowed.free()
    return PieceState(kappa, slope, starts, new, room[:k], np.zeros((k, t.W), np.uint64), now, 0.0)


cdef class Linearisation(GramVisit):
    """The samples after a step, with the pieces found there, and the sums of their conditions."""
    cdef View refused                   # of the state that a refused step led to
    cdef bint stays
    cdef double primal, dual, lam, mu, ahead
    cdef Priced priced
    cdef unsigned char[::1] room
    cdef Item* items
    # the new state, with n pieces so far
    cdef double[:, ::1] piece_table, now
    cdef uint64_t[:, ::1] set_table
    cdef Py_ssize_t[::1] starts, new
    cdef Piece* pieces
    cdef uint64_t* sets
    cdef Py_ssize_t n
    cdef double[::1] sums
    cdef Linearised parts

    def __init__(self, Table t, PieceState state, const double[::1] x, double primal, double dual,
                 double mu, PieceState refused):
        GramVisit.__init__(self, t, state, x)
        self.stays = refused is not None
        self.primal, self.dual, self.mu, self.lam = primal, dual, mu, x[t.P - 1]
        self.ahead = self.lam / (1.0 + AHEAD * min(1.0, mu / AHEAD_MU))
        self.priced, self.room = t.prices(self.x), np.empty((t.G + t.nb + 1) * sizeof(Item), "u1")
        self.items = <Item*>&self.room[0]
        found = 2 * t.N                 # one of each label
        if self.stays:
            self.refused, found = view(t, refused, x), np.sum(refused.new)
        most = self.old.starts[t.N] + found + 1
        self.piece_table, self.now = np.empty((most, 6)), np.empty((2, t.N))
        self.set_table = np.empty((most, t.W), np.uint64)
        self.starts, self.new = np.empty(t.N + 1, np.intp), np.zeros(t.N, np.intp)
        self.pieces, self.sets = <Piece*>&self.piece_table[0, 0], &self.set_table[0, 0]
        self.sums = np.zeros(t.P * t.P + 3 * t.P + _sums.SCALARS)
        self.parts = linearised(&self.sums[0], t.P, t.P * t.P)
        self.whole = self.parts.matrix

    cdef void step(self, Py_ssize_t i) noexcept nogil:
        """Move a sample and take in the pieces that are worth more than τ - μ there."""
        cdef Py_ssize_t first = self.n, known
        cdef double best = -INFINITY, y = self.t.rows.y[i], w = self.t.w[i], top
        self.starts[i] = first
        self.now[0, i] = self.state.now[0, i] + self.primal * self.state.change[0, i]
        self.now[1, i] = self.state.now[1, i] + self.primal * self.state.change[1, i]
        if not w > 0.0:
            return
        if self.t.nb:
            self.go_to(i)
        top = self.carry_over(i)
        known = self.n
        if self.stays:
            self.copy_new(i)
        else:
            best = self.search(i, first, known, top, y, 0.0)
            if self.state.kappa[i] < INFINITY:
                best = max(best, self.search(i, first, known, top, -y, self.state.kappa[i]))
        self.new[i] = self.n - known
        top = self.raised(i, first, known, top)
        self.parts.scalars[_sums.LOSS] += w * best
        self.parts.scalars[_sums.MISSING] += w * max(best - top, 0.0)
        self.parts.scalars[_sums.NEW_PIECES] += self.n - known
        self.now[1, i] = self.take_in(i, first, known, top)

    cdef double carry_over(self, Py_ssize_t i) noexcept nogil:
        """The sample's pieces after the step, their values in the place of slacks, for now.

        Returns τ, raised at once by what the losses curve.
        """
        cdef Py_ssize_t k, first = self.n, a = self.old.starts[i], b = self.old.starts[i + 1]
        cdef double mass = 0.0, full = 0.0, error = 0.0, old
        cdef const Piece* o
        cdef const Step* d
        cdef Piece* p
        memcpy(self.sets + first * self.t.W, self.old.sets + a * self.t.W,
               (b - a) * self.t.W * sizeof(uint64_t))
        for k in range(a, b):
            o, d, p = &self.old.pieces[k], &self.old.steps[k], &self.pieces[self.n]
            p.y, p.cost, p.q = o.y, o.cost, o.q + self.dual * d.q
            full += p.q
            if not p.q > 0.0:                       # the step passes it
                p.q = KEPT * o.q
            mass += p.q
            p.v = o.v + self.primal * d.v
            p.r = self.terms(i, p.v, &p.s) - self.lam * o.cost
            old = self.state.now[1, i] - o.r
            if self.primal > 0.0:
                error += p.q * (p.r - old + self.primal * (o.s * d.v + self.state.dlam * o.cost))
            self.n += 1
        if mass > full:
            for k in range(first, self.n):
                self.pieces[k].q *= full / mass
        return self.now[1, i] + error / mass

    cdef double search(self, Py_ssize_t i, Py_ssize_t first, Py_ssize_t known, double top,
                       double label, double flip) noexcept nogil:
        """The best value under a label; a new piece joins if ``ahead`` it is worth more than τ - μ.
        """
        cdef Py_ssize_t k, e, pick = 0, size = self.t.W * sizeof(uint64_t)
        cdef const int* codes = &self.t.codes[i, 0] if self.t.C else NULL
        cdef Py_ssize_t count = sorted_items(&self.priced, codes, &self.tail[0], label, self.ahead,
                                             self.items)
        cdef Piece* new = self.pieces + self.n
        cdef uint64_t* moved = self.sets + self.n * self.t.W
        cdef double v = label * self.now[0, i], cost = flip, s, h = self.terms(i, v, &s)
        cdef double best = h - self.lam * cost, most = h - self.ahead * cost
        new.y, new.cost = label, cost
        for k in range(count):
            v -= self.items[k].gain
            cost += self.items[k].cost
            h = self.terms(i, v, &s)
            best = max(best, h - self.lam * cost)
            if h - self.ahead * cost > most:
                most, pick, new.cost = h - self.ahead * cost, k + 1, cost
        if not most > top - self.mu:
            return best
        memset(moved, 0, size)
        for k in range(pick):
            e = self.items[k].number
            moved[e >> 6] |= <uint64_t>1 << (e & 63)
        for k in range(first, known):
            if self.pieces[k].y == label and memcmp(self.sets + k * self.t.W, moved, size) == 0:
                return best
        self.n += 1
        return best

    cdef void copy_new(self, Py_ssize_t i) noexcept nogil:
        """The pieces that were new where a refused step led to."""
        cdef Py_ssize_t W = self.t.W, k, end = self.refused.starts[i + 1]
        for k in range(end - self.refused.new[i], end):
            self.pieces[self.n] = self.refused.pieces[k]
            memcpy(self.sets + self.n * W, self.refused.sets + k * W, W * sizeof(uint64_t))
            self.n += 1

    cdef double raised(self, Py_ssize_t i, Py_ssize_t first, Py_ssize_t known,
                       double top) noexcept nogil:
        """τ raised so that pieces which the step passes keep a part of their slack."""
        cdef Py_ssize_t k, before = self.old.starts[i] - first
        cdef double lack = 0.0
        for k in range(first, known):
            if not top > self.pieces[k].r:
                lack = max(lack, self.pieces[k].r + KEPT * self.old.pieces[before + k].r - top)
        return top + lack

    cdef double take_in(self, Py_ssize_t i, Py_ssize_t first, Py_ssize_t known,
                        double top) noexcept nogil:
        """Values of new pieces, then slacks and multipliers of all; returns τ."""
        cdef Py_ssize_t k
        cdef double w = self.t.w[i], sq = 0.0
        cdef Piece* p = self.pieces
        for k in range(known, self.n):
            p[k].v = self.margin(i, self.now[0, i], p[k].y, self.sets + k * self.t.W)
            p[k].r = self.terms(i, p[k].v, &p[k].s) - self.lam * p[k].cost
            top = max(top, p[k].r + NEW_SLACK * self.mu)
        for k in range(first, self.n):
            p[k].r = top - p[k].r
            if k >= known:
                p[k].q = w * self.mu / p[k].r
            sq += p[k].q
        for k in range(first, self.n if self.n > known else first):
            p[k].q *= w / sq
        return top

    cdef void conditions(self, Py_ssize_t i) noexcept nogil:
        """A sample's part of the matrix, of the adjoints and of the scalars."""
        cdef Py_ssize_t a = self.starts[i], n = self.starts[i + 1] - a, P = self.t.P, k, e
        cdef double w = self.t.w[i], sq = 0.0, sd = 0.0, sw = 0.0, h, force, loss
        cdef double[ADJOINTS] base, each
        cdef double* scalars = self.parts.scalars
        cdef const Piece* p = self.pieces + a
        cdef const uint64_t* sets = self.sets + a * self.t.W
        if not w > 0.0:
            return
        self.go_to(i)
        base[0] = base[1] = base[2] = 0.0
        for k in range(n):
            sq += p[k].q
            sd += p[k].q / p[k].r
            sw += w / p[k].r
        for k in range(n):
            h = p[k].q / p[k].r / sd
            # The multiplier, and its responses to the targets -q r and w, with Σ q = w.
            each[0], each[1], each[2] = p[k].q, -p[k].q + h * w, w / p[k].r - h * sw
            loss = self.now[1, i] - p[k].r + self.lam * p[k].cost
            scalars[_sums.PRODUCTS] += p[k].q * p[k].r
            scalars[_sums.DEGREE] += w
            scalars[_sums.ENTROPY] += p[k].q / sq * w * (loss + p[k].s * p[k].v)
            for e in range(ADJOINTS):
                force = -each[e] * p[k].s * p[k].y
                base[e] += force
                self.parts.gradient[e * P + P - 1] -= each[e] * p[k].cost
                self.spread(i, p[k].y, sets + k * self.t.W, force, self.parts.gradient + e * P)
        for e in range(ADJOINTS):
            self.add(base[e], self.parts.gradient + e * P)
        self.gram(i, p, sets, n)


def linearise_pieces(Table t, both, const double[::1] x, double primal, double dual, double mu,
                     double most_missing=INFINITY):
    """Move by these lengths along the state's direction, to ``x``: the state and its conditions.

    Pieces that matter there are taken in.  ``both`` is a state, or a state and the one that a
    refused step led to; then no piece is searched for, and those that were new there are taken in.
    Where losses are above those of the pieces by more than ``most_missing``, there are no
    conditions, because such a step will be refused.
    """
    cdef PieceState state, refused
    state, refused = both if isinstance(both, tuple) else (both, None)
    cdef Linearisation visit = Linearisation(t, state, x, primal, dual, mu, refused)
    cdef double* scalars = visit.parts.scalars
    cdef Py_ssize_t i
    with nogil:
        for i in range(t.N):
            visit.step(i)
        visit.starts[t.N] = visit.n
        if scalars[_sums.MISSING] <= most_missing:
            for i in range(t.N):
                visit.conditions(i)
            visit.finish()
    if visit.stays:
        scalars[_sums.LOSS] = state.loss
    scalars[_sums.VALUE], scalars[_sums.COUNT] = scalars[_sums.LOSS], visit.n
    visit.borrowed.free()
    return PieceState(state.kappa, state.slope, visit.starts, visit.new,
                      visit.piece_table[:visit.n], visit.set_table[:visit.n], visit.now,
                      scalars[_sums.LOSS]), np.asarray(visit.sums)


# --- directions -----------------------------------------------------------------------------------


cdef class Direction(Visit):
    """Slacks, multipliers and epigraph variables along a direction of the coordinates."""
    cdef double dlam, centre, share
    cdef double[:, ::1] step_table, change
    cdef Step* steps
    cdef double[::1] sums
    cdef double* scalars                # CHANGES of a predictor, else PARABOLA
    cdef double* costs

    def __init__(self, Table t, PieceState state, const double[::1] dx, double centre, double share,
                 Py_ssize_t adjoint, Py_ssize_t scalars):
        Visit.__init__(self, t, state, dx)
        self.dlam, self.centre, self.share = dx[t.P - 1], centre, share
        self.step_table = np.zeros((state.starts[t.N] + 1, 4))
        self.change, self.steps = np.zeros((2, t.N)), <Step*>&self.step_table[0, 0]
        self.sums = np.zeros(adjoint + scalars + 2 * _sums.LEVELS)
        self.scalars, self.costs = &self.sums[adjoint], &self.sums[adjoint + scalars]

    cdef double respond(self, Py_ssize_t i) noexcept nogil:
        """dτ from Σ dq = w - Σ q, then changes of slacks and multipliers; returns Σ q/r."""
        cdef Py_ssize_t k, a = self.old.starts[i], b = self.old.starts[i + 1]
        cdef double score = self.along(), lack = self.t.w[i], sd = 0.0, dtop
        cdef const Piece* o = self.old.pieces
        cdef Step* d = self.steps
        for k in range(a, b):
            d[k].v = self.margin(i, score, o[k].y, self.old.sets + k * self.t.W)
            d[k].r = o[k].s * d[k].v + self.dlam * o[k].cost        # without dτ
            d[k].q = (self.centre * self.t.w[i] - self.share * self.old.steps[k].second) / o[k].r
            d[k].q -= o[k].q / o[k].r * d[k].r + o[k].q
            sd += o[k].q / o[k].r
            lack -= o[k].q + d[k].q
        dtop = -lack / sd
        for k in range(a, b):
            d[k].r += dtop
            d[k].q -= o[k].q / o[k].r * dtop
        self.change[0, i], self.change[1, i] = score, dtop
        return sd

    cdef void limit(self, Py_ssize_t i) noexcept nogil:
        """Book the cost (10) of a sample that does not allow the whole step."""
        cdef Py_ssize_t k, largest, a = self.old.starts[i], b = self.old.starts[i + 1]
        cdef double own = 0.0, lost = 0.0, taken = 0.0, fall = 1.0, drop = 1.0
        cdef const Piece* o = self.old.pieces
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
            book(self.costs, fall, own + PASSING * self.t.w[i] * lost)
        if drop > 1.0:
            book(self.costs + _sums.LEVELS, drop, own + PASSING * taken)

    cdef void second_order(self, Py_ssize_t i, double sd) noexcept nogil:
        """Of a predictor: what becomes of the products, second-order terms and their adjoint."""
        cdef Py_ssize_t k, a = self.old.starts[i], b = self.old.starts[i + 1]
        cdef double base = 0.0, sum_ = 0.0, most, dq, force
        cdef const Piece* o = self.old.pieces
        cdef Step* d = self.steps
        cdef double* out = &self.sums[0]
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
            out[self.t.P - 1] -= dq * o[k].cost
            self.spread(i, o[k].y, self.old.sets + k * self.t.W, force, out)
        self.add(sum_, out)

    def found(self):
        """The state with this direction, and the sums."""
        self.borrowed.free()
        step = self.step_table[:self.step_table.shape[0] - 1]
        return self.state.along(step, self.change, self.dlam), np.asarray(self.sums)


def predict_pieces(Table t, PieceState state, const double[::1] dx):
    """Follow the predictor, all products to zero: second-order terms, products and step lengths."""
    cdef Direction visit = Direction(t, state, dx, 0.0, 0.0, t.P, _sums.CHANGES)
    cdef Py_ssize_t i
    cdef double sd
    with nogil:
        for i in range(t.N):
            if t.w[i] > 0.0:
                visit.go_to(i)
                sd = visit.respond(i)
                visit.limit(i)
                visit.second_order(i, sd)
    return visit.found()


def correct_pieces(Table t, PieceState state, const double[::1] dx, double centre, double share):
    """Follow the corrector, products to ``centre`` less a share of the second-order terms."""
    cdef Direction visit = Direction(t, state, dx, centre, share, 0, _sums.PARABOLA)
    cdef Py_ssize_t i, k
    cdef const Piece* o = visit.old.pieces
    with nogil:
        for i in range(t.N):
            if t.w[i] > 0.0:
                visit.go_to(i)
                visit.respond(i)
                visit.limit(i)
                for k in range(visit.old.starts[i], visit.old.starts[i + 1]):
                    visit.scalars[_sums.SLOPE] -= o[k].q * (visit.steps[k].r - visit.change[1, i])
    return visit.found()


# --- certificate ----------------------------------------------------------------------------------


cdef class Correction(Visit):
    """The dual point after a correction dx: masses q and m = q s, in which the dual is linear."""
    cdef double[:, ::1] mass            # (q, m)
    cdef double[::1] dv                 # changes of margin

    def __init__(self, Table t, PieceState state, const double[::1] dx):
        Visit.__init__(self, t, state, dx)
        self.mass = np.zeros((state.starts[t.N], 2))
        self.dv = np.empty(state.starts[t.N])

    cdef void correct(self, Py_ssize_t i) noexcept nogil:
        """(12) for the pieces of a sample, whose masses then sum to its weight.

        Pieces whose multiplier would be negative leave.  Those with little mass and much slack take
        no part: where only they depend on a coordinate (high of a group that no sample changes), no
        small step could meet its equation.
        """
        cdef Py_ssize_t k, a = self.old.starts[i], b = self.old.starts[i + 1]
        cdef double w = self.t.w[i], score = self.along(), dlam = self.x[self.t.P - 1]
        cdef double sd = 0.0, lack = w, total = 0.0, q, m, s
        cdef const Piece* o = self.old.pieces
        for k in range(a, b):
            if o[k].q >= BINDS * w * o[k].r:
                self.dv[k] = self.margin(i, score, o[k].y, self.old.sets + k * self.t.W)
                q = o[k].q - o[k].q / o[k].r * (o[k].s * self.dv[k] + dlam * o[k].cost)
                self.mass[k, 0] = q
                sd += o[k].q / o[k].r
                lack -= q
        for k in range(a, b):
            if o[k].q >= BINDS * w * o[k].r:
                self.mass[k, 0] = max(self.mass[k, 0] + o[k].q / o[k].r / sd * lack, 0.0)
                total += self.mass[k, 0]
        total *= 1.0 + 1e-15                        # not above the weight, whatever rounds
        for k in range(a, b):
            q, s = self.mass[k, 0], o[k].s
            if q > 0.0:
                m = s * q - o[k].q * s * (1.0 - s) * self.dv[k]
                m = min(m, q) if m > EMPTIED * q * s else 0.0
                self.mass[k, 0], self.mass[k, 1] = w * (q / total), w * (m / total)

    cdef double add_up(self, Py_ssize_t i, double* out) noexcept nogil:
        """Add a sample's part of the adjoint; returns its entropy."""
        cdef Py_ssize_t k
        cdef double q, m, base = 0.0, total = 0.0
        cdef const Piece* o = self.old.pieces
        for k in range(self.old.starts[i], self.old.starts[i + 1]):
            q, m = self.mass[k, 0], self.mass[k, 1]
            if not q > 0.0:
                continue
            total += q * entropy(m / q)
            out[self.t.P - 1] -= q * o[k].cost
            base -= m * o[k].y
            self.spread(i, o[k].y, self.old.sets + k * self.t.W, -m * o[k].y, out)
        self.add(base, out)
        return total


def certify_pieces(Table t, PieceState state, const double[::1] dx):
    """The iterate's dual point after the correction dx, (state, masses), and its sums.

    Sums of a panel of samples are added up first: there is less rounding to charge.
    """
    cdef Correction visit = Correction(t, state, dx)
    sums = np.zeros(t.P + _sums.PROOF)
    cdef double[::1] out = sums, panel = np.zeros(t.P + 1)
    cdef Py_ssize_t i, k, end, begin = 0, most = 0
    with nogil:
        for i in range(t.N):
            if t.w[i] > 0.0:
                visit.go_to(i)
                visit.correct(i)
                panel[t.P] += visit.add_up(i, &panel[0])
            if (i + 1) % PANEL == 0 or i + 1 == t.N:
                end = visit.old.starts[i + 1]
                most, begin = max(most, end - begin), end
                for k in range(t.P + 1):
                    out[k] += panel[k]
                    panel[k] = 0.0
        out[t.P + _sums.PROOF_ADDITIONS] = most + PANEL + t.N // PANEL + 4
    visit.borrowed.free()
    return (state, np.asarray(visit.mass)), sums
