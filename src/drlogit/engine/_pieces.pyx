"""The samples of features with domains: pieces, which an exact oracle finds as iterates need them.

    τ_i ≥ h(v_k) - λ d_k   for the pieces k of sample i,   v_k = y_k (x_i moved)·(β, high, b)

Groups are complete ("none" is a category); their least coefficient is zero (docs/algorithm.md).  A
piece is (sample, label, set of moved items); its row is the sample's with a few entries changed: a
changed group loses the entry of its category and, under the label -1, gains one at its ``high``; a
bounded feature goes to one of its ends.  So margins, adjoints and Gram matrix need the sample's own
row once and the changes beside it.

Coordinates: those with few entries (categories, sparse columns, high of each group); from ``start``
on the *tail* of those with many, whose Gram matrix is a product of dense matrices: bounded
features, dense columns, b if there is one; λ.

    N, P       samples, coordinates         G, nb      groups that may change, bounded features
    C          categories of a sample       T, m       entries of a row's tail, its other entries
    W          64-bit words of a set of items
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
from drlogit.problem._moves cimport Item, Oracle, Priced, sorted_items
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
cdef double KEPT = SETTINGS.kept, SECOND = SETTINGS.second_order
cdef double PASSING = SETTINGS.blocking, BINDS = SETTINGS.binding

# Slack of new pieces, in units of μ (2 to 20 are within 7 % of iterations on made tables).
cdef double NEW_SLACK = 5.0

cdef struct Piece:
    double y, cost, v, q, s, r     # label, cost, margin, multiplier, dual probability, slack

cdef struct Step:
    double v, q, r, second         # changes of margin, multiplier and slack; second-order term


cdef class PieceState:
    """A block at an iterate; visits make new states and leave the old ones alone.

    kappa     flip costs of the samples, infinite for labels out of reach
    slope     slopes of a linear loss -s u instead of the log-loss, or none
    starts    where the pieces of each sample begin, and the end
    pieces    ``Piece`` by ``Piece``; ``sets``: their moved items as bits
    now       scores and τ of the samples
    step      ``Step`` by ``Step``; ``change``: of scores and τ; ``dlam``: the direction
    """
    cdef readonly const double[::1] kappa, slope
    cdef readonly const Py_ssize_t[::1] starts
    cdef readonly const double[:, ::1] pieces, step, now, change
    cdef readonly const uint64_t[:, ::1] sets
    cdef readonly double dlam
    cdef tuple parts
    cdef const Piece* piece
    cdef const Step* along
    cdef const uint64_t* moved

    def __init__(self, *parts):
        cdef Py_ssize_t N, n
        (self.kappa, self.slope, self.starts, self.pieces, self.sets, self.now, self.step,
         self.change, self.dlam) = self.parts = parts
        N, n = self.kappa.shape[0], self.pieces.shape[0]
        fit(self.starts.shape[0] == N + 1 and self.starts[N] == n
            and self.slope.shape[0] in (0, N), "samples")
        fit(self.now.shape[0] == 2 and self.now.shape[1] == N and self.change.shape[0] == 2
            and self.change.shape[1] == N, "scores")
        fit(self.pieces.shape[1] == 6 and self.step.shape[0] == n and self.step.shape[1] == 4
            and self.sets.shape[0] == n, "pieces")
        if n:
            self.piece, self.moved = <const Piece*>&self.pieces[0, 0], &self.sets[0, 0]
            self.along = <const Step*>&self.step[0, 0]

    def __reduce__(self):
        return PieceState, self.parts

    def __sizeof__(self):
        return 300 + (80 + 8 * self.sets.shape[1]) * self.pieces.shape[0] + 64 * len(self.kappa)


cdef class Table:
    """The samples of a block in the coordinates of a layout; nothing of X is copied.

    ``codes`` are the coordinates of each sample's categories in groups that may change, then those
    in other groups, -1 for none.
    """
    cdef CompiledRows rows
    cdef Oracle oracle                  # of the model zero
    cdef const double[::1] w
    cdef const int[:, ::1] codes
    cdef const int[::1] none, tail_columns, places
    cdef bint offset
    cdef readonly Py_ssize_t N, G, C, nb, high, start, T, P, W

    def __init__(self, CompiledRows rows, codes, layout):
        self.rows, self.w, self.codes, self.offset = rows, rows.w, codes, layout.offset
        self.none, self.tail_columns, self.places = layout.none, layout.tail_columns, layout.places
        self.oracle = Oracle(layout.domains, np.zeros(len(layout.costs)), layout.bounded)
        self.G, self.nb = self.oracle.m.n_groups, self.oracle.m.n_bounded
        self.N, self.C, self.P = rows.n_samples, self.codes.shape[1], layout.size
        self.high, self.start, self.T = layout.high, layout.start, self.P - 1 - layout.start
        self.W = (self.G + 2 * self.nb + 63) // 64
        fit(self.codes.shape[0] == self.N and self.C >= self.G, "codes")


cdef class Visit:
    """The row of the sample that a visit is at, and what a piece changes in it."""
    cdef Table t
    cdef PieceState at
    cdef CompiledRows borrowed
    cdef DenseRows dense                # the one of these two that there is, for this visit
    cdef CsrRows sparse
    cdef Py_ssize_t m                   # entries of the row before its tail
    cdef int[::1] index, column         # of these entries; of the changes
    cdef double[::1] value, tail, by
    cdef const double[::1] coordinates
    cdef const double* x
    cdef Priced priced

    def __init__(self, Table t, PieceState state, const double[::1] x):
        cdef Py_ssize_t most = 2 * t.G + 2 * t.nb + 1
        fit(x.shape[0] == t.P and state.now.shape[1] == t.N and state.sets.shape[1] == t.W,
            "coordinates and samples")
        self.t, self.at, self.coordinates, self.x = t, state, x, &x[0]
        self.priced = t.oracle.m
        self.priced.beta, self.priced.high = self.x, self.x + t.high
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
        if self.at.slope.shape[0]:
            s[0] = self.at.slope[i]
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

    cdef double product(self) noexcept nogil:
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
                    c = self.priced.bounded[item // 2]
                    self.column[n], self.by[n] = c, -self.tail[c - self.t.start]
                    self.by[n] += (self.priced.upper if item & 1 else self.priced.lower)[item // 2]
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


def open_pieces(Table t, kappa, slope, const double[::1] x):
    """The samples at ``x``, without any piece: the first linearisation finds one for each label."""
    now = np.full((2, t.N), -INFINITY)
    cdef double[:, ::1] at = now
    state = PieceState(kappa, slope, np.zeros(t.N + 1, np.intp), np.zeros((0, 6)),
                       np.zeros((0, t.W), np.uint64), now, np.zeros((0, 4)), np.zeros((2, t.N)),
                       0.0)
    cdef Visit visit = Visit(t, state, x)
    cdef Py_ssize_t i
    with nogil:
        for i in range(t.N):
            visit.go_to(i)
            at[0, i] = visit.product()
    visit.borrowed.free()
    return state


# --- linearisation --------------------------------------------------------------------------------


cdef class Linearisation(Visit):
    """The samples after a step, with the pieces found there, and the sums of their conditions.

    The matrix (16) is V + Vᵀ and the Gram matrix of the tails.  Of each sample there is a small
    matrix first, in its own row (0), λ (1) and the columns that its pieces change; ``stride`` is
    the most that these can be.
    """
    cdef PieceState refused             # where a refused step led to, or None
    cdef double primal, dual, lam, mu
    cdef unsigned char[::1] room
    cdef Item* items
    # the new state, with n pieces so far
    cdef double[:, ::1] piece_table, now
    cdef uint64_t[:, ::1] set_table
    cdef Py_ssize_t[::1] starts
    cdef Piece* pieces
    cdef uint64_t* sets
    cdef Py_ssize_t n
    cdef double[::1] sums
    cdef Linearised parts               # whose matrix is V, and at the end its lower triangle
    cdef Py_ssize_t c, stride, filled   # columns of the small matrix; tails that wait for BLAS
    cdef int[::1] columns, place
    cdef double[::1] one, mean, local
    cdef double[:, ::1] tails, square

    def __init__(self, Table t, PieceState state, const double[::1] x, double primal, double dual,
                 double mu, PieceState refused):
        Visit.__init__(self, t, state, x)
        self.refused, self.primal, self.dual, self.mu = refused, primal, dual, mu
        self.lam = x[t.P - 1]
        self.room = np.empty((t.G + t.nb + 1) * sizeof(Item), "u1")
        self.items = <Item*>&self.room[0]
        most = 2 * t.N + 1 + (state if refused is None else refused).starts[t.N]
        self.piece_table, self.now = np.empty((most, 6)), np.empty((2, t.N))
        self.set_table = np.empty((most, t.W), np.uint64)
        self.starts = np.empty(t.N + 1, np.intp)
        self.pieces, self.sets = <Piece*>&self.piece_table[0, 0], &self.set_table[0, 0]
        self.sums = np.zeros(t.P * t.P + 3 * t.P + _sums.SCALARS)
        self.parts = linearised(&self.sums[0], t.P, t.P * t.P)
        self.stride = 2 + 2 * t.G + t.nb
        self.columns, self.place = np.empty(self.stride, np.int32), np.full(t.P, -1, np.int32)
        self.one, self.mean = np.empty((2, self.stride))
        self.local = np.empty(self.stride * self.stride)
        self.tails, self.square = np.empty((PANEL, t.T + 1)), np.zeros((t.T, t.T))

    cdef void step(self, Py_ssize_t i) noexcept nogil:
        """Move a sample and take in the pieces that are worth more than τ - μ there."""
        cdef Py_ssize_t first = self.n, known
        cdef double y = self.t.rows.y[i], w = self.t.w[i], top, best
        self.starts[i] = first
        self.now[0, i] = self.at.now[0, i] + self.primal * self.at.change[0, i]
        self.now[1, i] = self.at.now[1, i] + self.primal * self.at.change[1, i]
        if not w > 0.0:
            return
        if self.t.nb:
            self.go_to(i)
        top = self.carry_over(i)
        known = self.n
        if self.refused is not None:
            self.copy_new(i, known - first)
        best = self.search(i, first, top, y, 0.0)
        if self.at.kappa[i] < INFINITY:
            best = max(best, self.search(i, first, top, -y, self.at.kappa[i]))
        self.parts.scalars[_sums.LOSS] += w * best
        if known > first:
            self.parts.scalars[_sums.MISSING] += w * max(best - top, 0.0)
        self.parts.scalars[_sums.NEW_PIECES] += self.n - known
        self.now[1, i] = self.take_in(i, first, known, top)

    cdef double carry_over(self, Py_ssize_t i) noexcept nogil:
        """The sample's pieces after the step, their values in the place of slacks, for now.

        Returns τ, raised at once by what the losses curve, and so that pieces which the step passes
        keep a part of their slack.
        """
        cdef Py_ssize_t k, first = self.n, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double mass = 0.0, full = 0.0, error = 0.0, lack = 0.0, old, top
        cdef const Piece* o = self.at.piece
        cdef const Step* d = self.at.along
        cdef Piece* p = self.pieces + first - a
        memcpy(self.sets + first * self.t.W, self.at.moved + a * self.t.W,
               (b - a) * self.t.W * sizeof(uint64_t))
        self.n += b - a
        for k in range(a, b):
            p[k].y, p[k].cost, p[k].q = o[k].y, o[k].cost, o[k].q + self.dual * d[k].q
            full += p[k].q
            if not p[k].q > 0.0:                    # the step passes it
                p[k].q = KEPT * o[k].q
            mass += p[k].q
            p[k].v = o[k].v + self.primal * d[k].v
            p[k].r = self.terms(i, p[k].v, &p[k].s) - self.lam * o[k].cost
            old = self.at.now[1, i] - o[k].r
            if self.primal > 0.0:
                error += p[k].q * (p[k].r - old + self.primal * (o[k].s * d[k].v
                                                                 + self.at.dlam * o[k].cost))
        top = self.now[1, i] + error / max(mass, 1e-300)
        for k in range(a, b):
            if mass > full:
                p[k].q *= full / mass
            if not top > p[k].r:
                lack = max(lack, p[k].r + KEPT * o[k].r - top)
        return top + lack

    cdef double search(self, Py_ssize_t i, Py_ssize_t first, double top, double label,
                       double flip) noexcept nogil:
        """The best value under a label; its piece joins if it is new and worth more than τ - μ."""
        cdef Py_ssize_t k, e, pick = 0, size = self.t.W * sizeof(uint64_t)
        cdef const int* codes = &self.t.codes[i, 0] if self.t.C else NULL
        cdef Py_ssize_t count = sorted_items(&self.priced, codes, &self.tail[0], label, self.lam,
                                             self.items)
        cdef Piece* new = self.pieces + self.n
        cdef uint64_t* moved = self.sets + self.n * self.t.W
        cdef double v = label * self.now[0, i], cost = flip, s, value
        cdef double best = self.terms(i, v, &s) - self.lam * cost
        new.y, new.cost = label, cost
        for k in range(count):
            v -= self.items[k].gain
            cost += self.items[k].cost
            value = self.terms(i, v, &s) - self.lam * cost
            if value > best:
                best, pick, new.cost = value, k + 1, cost
        if not best > top - self.mu:
            return best
        memset(moved, 0, size)
        for k in range(pick):
            e = self.items[k].number
            moved[e >> 6] |= <uint64_t>1 << (e & 63)
        for k in range(first, self.n):
            if self.pieces[k].y == label and memcmp(self.sets + k * self.t.W, moved, size) == 0:
                return best
        self.n += 1
        return best

    cdef void copy_new(self, Py_ssize_t i, Py_ssize_t known) noexcept nogil:
        """The pieces that were new where a refused step led to, after those ``known`` here."""
        cdef Py_ssize_t W = self.t.W, first = self.refused.starts[i] + known
        cdef Py_ssize_t new = self.refused.starts[i + 1] - first
        memcpy(self.pieces + self.n, self.refused.piece + first, new * sizeof(Piece))
        memcpy(self.sets + self.n * W, self.refused.moved + first * W, new * W * sizeof(uint64_t))
        self.n += new

    cdef double take_in(self, Py_ssize_t i, Py_ssize_t first, Py_ssize_t known,
                        double top) noexcept nogil:
        """Values of new pieces, then slacks and multipliers of all; returns τ.

        The first pieces of a sample have equal products, near the central path.
        """
        cdef Py_ssize_t k
        cdef double w = self.t.w[i], sq = 0.0
        cdef double slack = self.mu * (NEW_SLACK if known > first else self.n - first)
        cdef Piece* p = self.pieces
        for k in range(known, self.n):
            p[k].v = self.margin(i, self.now[0, i], p[k].y, self.sets + k * self.t.W)
            p[k].r = self.terms(i, p[k].v, &p[k].s) - self.lam * p[k].cost
            top = max(top, p[k].r + slack)
        for k in range(first, self.n):
            p[k].r = top - p[k].r
            if k >= known:
                p[k].q = w * self.mu / p[k].r
            sq += p[k].q
        for k in range(first, self.n if self.n > known else first):
            p[k].q *= w / sq
        return top

    cdef void conditions(self, Py_ssize_t i) noexcept nogil:
        """A sample's part of the matrix, of the adjoints and of the scalars.

        The second part of (16) is the stiffnesses' covariance of the gradients: it is formed piece
        by piece, with the mean so far, so that nothing cancels.
        """
        cdef Py_ssize_t P = self.t.P, n, k, e, c
        cdef double w = self.t.w[i], sq = 0.0, sd = 0.0, sw = 0.0, total = 0.0, stiff, force, loss
        cdef double[ADJOINTS] base, each
        cdef double* scalars = self.parts.scalars
        cdef double* gradient = self.parts.gradient
        cdef double* one = &self.one[0]
        cdef double* mean = &self.mean[0]
        cdef const Piece* p = self.pieces
        if not w > 0.0:
            return
        self.go_to(i)
        base[0] = base[1] = base[2] = 0.0
        self.c = 0
        self.local_column(-1)
        self.local_column(P - 1)
        for k in range(self.starts[i], self.starts[i + 1]):
            sq += p[k].q
            sd += p[k].q / p[k].r
            sw += w / p[k].r
        for k in range(self.starts[i], self.starts[i + 1]):
            stiff = p[k].q / p[k].r
            # The multiplier, and its responses to the targets -q r and w, with Σ q = w.
            each[0], each[1] = p[k].q, stiff / sd * w - p[k].q
            each[2] = w / p[k].r - stiff / sd * sw
            loss = self.now[1, i] - p[k].r + self.lam * p[k].cost
            scalars[_sums.PRODUCTS] += p[k].q * p[k].r
            scalars[_sums.DEGREE] += w
            scalars[_sums.ENTROPY] += p[k].q / sq * w * (loss + p[k].s * p[k].v)
            n = self.changes(i, p[k].y, self.sets + k * self.t.W)
            for e in range(ADJOINTS):
                force = -each[e] * p[k].s * p[k].y
                base[e] += force
                gradient[e * P + P - 1] -= each[e] * p[k].cost
                for c in range(n):
                    gradient[e * P + self.column[c]] += force * self.by[c]
            self.local_row(n)
            if self.at.slope.shape[0] == 0:
                self.add_outer(p[k].q * p[k].s * (1.0 - p[k].s))
            total += stiff
            for c in range(self.c):
                one[c] = -p[k].s * p[k].y * one[c] - mean[c]
            one[1] -= p[k].cost
            if total > stiff:
                self.add_outer(stiff * (1.0 - stiff / total))
            for c in range(self.c):
                mean[c] += stiff / total * one[c]
        for e in range(ADJOINTS):
            self.add(base[e], gradient + e * P)
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

    cdef void local_row(self, Py_ssize_t n) noexcept nogil:
        """A piece's row: one times the sample's, and its n changes at the local columns."""
        cdef Py_ssize_t e
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
        """The row with itself: its tail waits for BLAS."""
        cdef Py_ssize_t T = self.t.T, f, e
        cdef double root, weight = self.local[0]
        cdef const int* index = &self.index[0]
        cdef const double* value = &self.value[0]
        cdef double* target
        for e in range(self.m):
            self.add_row(index[e], weight * value[e], e)
            self.parts.matrix[index[e] * (self.t.P + 1)] += 0.5 * weight * value[e] * value[e]
        root, target = sqrt(max(weight, 0.0)), &self.tails[0, 0] + self.filled * T
        for f in range(T):
            target[f] = root * self.tail[f]
        self.filled += 1
        if self.filled == PANEL:
            self.flush()

    cdef inline void add_row(self, Py_ssize_t row, double by, Py_ssize_t m) noexcept nogil:
        """A row of V += by · (the first m entries of the sample's row, and its tail)."""
        cdef Py_ssize_t f, T = self.t.T
        cdef const int* index = &self.index[0]
        cdef const double* value = &self.value[0]
        cdef const double* tail = &self.tail[0]
        cdef double* target = self.parts.matrix + row * self.t.P
        for f in range(m):
            target[index[f]] += by * value[f]
        target += self.t.start
        for f in range(T):
            target[f] += by * tail[f]

    cdef void add_local(self) noexcept nogil:
        """Local columns with the row and with each other; the list of columns is empty then."""
        cdef Py_ssize_t e, f
        cdef const int* columns = &self.columns[0]
        cdef const double* local
        cdef double* target
        for e in range(1, self.c):
            local, target = &self.local[e * self.stride], self.parts.matrix + columns[e] * self.t.P
            if local[0] != 0.0:
                self.add_row(columns[e], local[0], self.m)
            for f in range(1, e):
                target[columns[f]] += local[f]
            target[columns[e]] += 0.5 * local[e]
            self.place[columns[e]] = -1

    cdef void flush(self) noexcept nogil:
        """The tails that wait, with themselves: the lower triangle in C order."""
        cdef int T = <int>self.t.T, n = <int>self.filled
        cdef double unit = 1.0
        if n and T:
            dsyrk("U", "N", &T, &n, &unit, &self.tails[0, 0], &T, &unit, &self.square[0, 0], &T)
        self.filled = 0

    cdef void finish(self) noexcept nogil:
        """The lower triangle of V + Vᵀ, with the tails."""
        cdef Py_ssize_t i, j, P = self.t.P, T = self.t.T, first = self.t.start
        cdef double* whole = self.parts.matrix
        self.flush()
        for i in range(P):
            for j in range(i + 1):
                whole[i * P + j] += whole[j * P + i]
        for i in range(T):
            for j in range(i + 1):
                whole[(first + i) * P + first + j] += self.square[i, j]


def linearise_pieces(Table t, both, const double[::1] x, double primal, double dual, double mu,
                     double most_missing=INFINITY):
    """Move by these lengths along the state's direction, to ``x``: the state and its conditions.

    Pieces that matter there are taken in.  ``both`` is a state, or a state and the one that a
    refused step led to, whose new pieces are taken in, too.  Where losses are above those of the
    pieces by more than ``most_missing``, there are no conditions, because such a step will be
    refused.
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
    scalars[_sums.VALUE], scalars[_sums.COUNT] = scalars[_sums.LOSS], visit.n
    visit.borrowed.free()
    found = (visit.starts, visit.piece_table[:visit.n], visit.set_table[:visit.n], visit.now,
             np.zeros((visit.n, 4)), np.zeros((2, t.N)))
    return PieceState(*state.parts[:2], *[np.asarray(part) for part in found],
                      0.0), np.asarray(visit.sums)


# --- directions -----------------------------------------------------------------------------------


cdef class Direction(Visit):
    """Slacks, multipliers and epigraph variables along a direction of the coordinates.

    In a ``proof`` products stay what they are, and pieces with little mass and much slack take no
    part: where only they depend on a coordinate (high of a group that no sample changes), no small
    step could meet its equation.
    """
    cdef bint proof
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

    cdef inline bint takes_part(self, Py_ssize_t i, const Piece* o) noexcept nogil:
        return not self.proof or o.q >= BINDS * self.t.w[i] * o.r

    cdef double respond(self, Py_ssize_t i) noexcept nogil:
        """dτ from Σ dq = w - Σ q, then changes of slacks and multipliers; returns Σ q/r."""
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double w = self.t.w[i], lack = w, sd = 0.0, score, target, dtop
        cdef const Piece* o = self.at.piece
        cdef Step* d = self.steps
        self.go_to(i)
        score = self.product()
        for k in range(a, b):
            d[k].q = -o[k].q
            if self.takes_part(i, &o[k]):
                d[k].v = self.margin(i, score, o[k].y, self.at.moved + k * self.t.W)
                d[k].r = o[k].s * d[k].v + self.dlam * o[k].cost        # without dτ
                target = self.centre * w - self.share * self.at.along[k].second
                target = o[k].q * o[k].r if self.proof else target
                d[k].q += (target - o[k].q * d[k].r) / o[k].r
                sd += o[k].q / o[k].r
                lack -= o[k].q + d[k].q
        dtop = -lack / sd
        for k in range(a, b):
            if self.takes_part(i, &o[k]):
                d[k].r += dtop
                d[k].q -= o[k].q / o[k].r * dtop
        self.change[0, i], self.change[1, i] = score, dtop
        return sd

    cdef void limit(self, Py_ssize_t i) noexcept nogil:
        """Book the cost (10) of a sample that does not allow the whole step."""
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1], largest = a
        cdef double own = 0.0, lost = 0.0, taken = 0.0, fall = 1.0, drop = 1.0
        cdef const Piece* o = self.at.piece
        cdef const Step* d = self.steps
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
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double base = 0.0, sum_ = 0.0, most, dq, force
        cdef const Piece* o = self.at.piece
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
            self.spread(i, o[k].y, self.at.moved + k * self.t.W, force, out)
        self.add(sum_, out)

    cdef double masses(self, Py_ssize_t i, double[:, ::1] mass, double* out) noexcept nogil:
        """q and m = q s of (12), in which the dual is linear, for a sample's pieces, and their part
        of the adjoint; returns the entropy.

        Pieces whose multiplier would be negative leave; the others' then sum to the weight.
        """
        cdef Py_ssize_t k, a = self.at.starts[i], b = self.at.starts[i + 1]
        cdef double w = self.t.w[i], total = 0.0, base = 0.0, sum_ = 0.0, q, m, s
        cdef const Piece* o = self.at.piece
        cdef const Step* d = self.steps
        for k in range(a, b):
            total += max(o[k].q + d[k].q, 0.0)
        total *= 1.0 + 1e-15                        # not above the weight, whatever rounds
        for k in range(a, b):
            q, s = o[k].q + d[k].q, o[k].s
            if q > 0.0:
                m = s * q - o[k].q * s * (1.0 - s) * d[k].v
                m = max(min(m, q), 0.0)
                mass[k, 0], mass[k, 1] = q, m = w * (q / total), w * (m / total)
                sum_ += q * entropy(m / q)
                out[self.t.P - 1] -= q * o[k].cost
                base -= m * o[k].y
                self.spread(i, o[k].y, self.at.moved + k * self.t.W, -m * o[k].y, out)
        self.add(base, out)
        return sum_

    def found(self):
        """The state with this direction, and the sums."""
        self.borrowed.free()
        step = np.asarray(self.step_table)[:self.step_table.shape[0] - 1]
        found = PieceState(*self.at.parts[:6], step, np.asarray(self.change), self.dlam)
        return found, np.asarray(self.sums)


def predict_pieces(Table t, PieceState state, const double[::1] dx):
    """Follow the predictor, all products to zero: second-order terms, products and step lengths."""
    cdef Direction visit = Direction(t, state, dx, 0.0, 0.0, t.P, _sums.CHANGES)
    cdef Py_ssize_t i
    cdef double sd
    with nogil:
        for i in range(t.N):
            if t.w[i] > 0.0:
                sd = visit.respond(i)
                visit.limit(i)
                visit.second_order(i, sd)
    return visit.found()


def correct_pieces(Table t, PieceState state, const double[::1] dx, double centre, double share):
    """Follow the corrector, products to ``centre`` less a share of the second-order terms."""
    cdef Direction visit = Direction(t, state, dx, centre, share, 0, _sums.PARABOLA)
    cdef Py_ssize_t i, k
    cdef const Piece* o = state.piece
    with nogil:
        for i in range(t.N):
            if t.w[i] > 0.0:
                visit.respond(i)
                visit.limit(i)
                for k in range(state.starts[i], state.starts[i + 1]):
                    visit.scalars[_sums.SLOPE] -= o[k].q * (visit.steps[k].r - visit.change[1, i])
    return visit.found()


def certify_pieces(Table t, PieceState state, const double[::1] dx):
    """The iterate's dual point after the correction dx, (state, masses), and its sums.

    Sums of a panel of samples are added up first: there is less rounding to charge.
    """
    cdef Direction visit = Direction(t, state, dx, 0.0, 0.0, 0, 0)
    found, sums = np.zeros((len(state.pieces), 2)), np.zeros(t.P + _sums.PROOF)
    cdef double[:, ::1] mass = found
    cdef double[::1] out = sums, panel = np.zeros(t.P + 1)
    cdef Py_ssize_t i, k, end, begin = 0, most = 0
    visit.proof = True
    with nogil:
        for i in range(t.N):
            if t.w[i] > 0.0:
                visit.respond(i)
                panel[t.P] += visit.masses(i, mass, &panel[0])
            if (i + 1) % PANEL == 0 or i + 1 == t.N:
                end = state.starts[i + 1]
                most, begin = max(most, end - begin), end
                for k in range(t.P + 1):
                    out[k] += panel[k]
                    panel[k] = 0.0
        out[t.P + _sums.PROOF_ADDITIONS] = most + PANEL + t.N // PANEL + 4
    visit.borrowed.free()
    return (state, found), sums
