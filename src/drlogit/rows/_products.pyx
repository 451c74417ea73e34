"""Products with the data, a panel of rows at a time: margins, adjoints, weighted Gram matrices.

All arithmetic is in double; float32 values, strided and shifted arrays are converted panel by
panel, 64-bit indices once, so that nothing above this file knows how the rows are stored.

Gram matrices of float32 values in single precision would take .7 of the time.  But samples on the
kink have weights many orders above the others, and the matrix of the others was lost beside them:
normal columns took 13 iterations instead of 7, collinear columns stalled.
"""
import numpy as np
from libc.math cimport sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk
from ._shapes cimport fit

cdef int ONE = 1
cdef double UNIT = 1.0

# Entries of a panel: 128 kB, so that it and its scaled copy stay in a common second-level cache.
# Gram matrices
# that do not fit there want as many rows as columns, or reading and writing them takes longer than
# the arithmetic.
cdef Py_ssize_t PANEL = 16384, LARGE_PANEL = 1 << 20

# Columns up to which a general product is faster than a symmetric one, which has half the
# arithmetic (256 rows of
# 16 columns: 2.8 and 4.8 microseconds; of 40: 15 and 19; of 60 as long).
cdef int FEW_COLUMNS = 48

# Columns of a sparse matrix with more than this share of non-zeros go to BLAS, if there are so many
# and so much of
# their entries is stored (made data, as many rare columns beside them: of 150 or 300 with .45 to
# .65 of their entries
# .3 to 1.05 times as long, of 60 .7 to 1.5, of 20 more than that; MNIST 0 v 3: 397 of 784 columns,
# and a Gram matrix
# takes 60 ms instead of 190 dense or 90 sparse).
cdef double RARE = 0.05, WELL_FILLED = 0.4
cdef Py_ssize_t MANY = 100


cdef class CompiledRows:
    cdef CompiledRows borrow(self):
        """This object for one visit; a twin with a workspace of its own where another thread is at
        it.
        """
        if self.busy:
            return compiled_rows(*self.samples)
        self.busy = True
        return self

    cdef void free(self):
        self.busy, self.loaded = False, 0       # the array may change before the next visit

    cdef void margins(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef,
                      double* out) noexcept nogil:
        """out = X coef, the intercept last in coef."""
    cdef void scores(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef, int k,
                     double* out) noexcept nogil:
        """out[i, c] = x_i · coef[c, :] for k vectors, each with its intercept last."""
    cdef void adjoint(self, Py_ssize_t lo, Py_ssize_t hi, const double* columns, int k,
                      double* out) noexcept nogil:
        """out[c, :] += Xᵀ columns[c, :] for k columns, each a panel long (stride ``panel``)."""
    cdef void gram(self, Py_ssize_t lo, Py_ssize_t hi, const double* d, double* out) noexcept nogil:
        """out += Xᵀ diag(d) X, row-major: the lower triangle, perhaps more."""
    cdef void squares(self, Py_ssize_t lo, Py_ssize_t hi, const double* d,
                      double* out) noexcept nogil:
        """The diagonal of that alone."""


ctypedef fused number:
    float
    double


cdef inline void doubled(const number* x, Py_ssize_t step, Py_ssize_t n,
                         double* out) noexcept nogil:
    """n numbers, each ``step`` after the last, in double."""
    cdef Py_ssize_t j
    if step == 1:       # the compiler makes vectors of it
        for j in range(n):
            out[j] = x[j]
    else:
        for j in range(n):
            out[j] = x[j * step]


cdef class DenseRows(CompiledRows):
    def __init__(self, x, shift, bint intercept):
        n = x.shape[1]
        self.n_samples, self.n_columns, self.intercept = x.shape[0], n + intercept, intercept
        self.stride = self.n_columns + 1
        rows = max(16, min(256, PANEL // max(n, 1)), min(n, LARGE_PANEL // max(n, 1)))
        self.panel = max(1, min(rows, x.shape[0]))
        self.strip = min(self.panel, max(16, PANEL // max(n, 1)))
        self.length = self.panel + x.shape[0] // self.panel + 4
        self.single, self.moved = x.dtype == np.float32, shift is not None
        if self.single:
            self.x32 = x
        else:
            self.x64 = x
        if self.moved:
            self.shift = shift
        self.direct = (not (self.single or self.moved) and x.strides[1] == 8
                       and x.strides[0] >= 8 * n and x.strides[0] % 8 == 0)
        self.width = x.strides[0] // 8 if self.direct else n
        self.copy = np.empty((1, 1) if self.direct else (self.panel, n))
        self.scaled = np.empty((self.panel, self.n_columns))

    cdef const double* load(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        """The panel in double, a row every ``width`` numbers."""
        cdef Py_ssize_t i, j, n = self.copy.shape[1]
        cdef double* row
        if self.direct:
            return &self.x64[lo, 0]
        if self.loaded == hi:   # a visit has margins, adjoints and a Gram matrix of each panel
            return &self.copy[0, 0]
        self.loaded = hi
        for i in range(hi - lo):
            row = &self.copy[i, 0]
            if self.single:
                doubled(&self.x32[lo + i, 0], self.x32.strides[1] // 4, n, row)
            else:
                doubled(&self.x64[lo + i, 0], self.x64.strides[1] // 8, n, row)
            if self.moved:
                for j in range(n):
                    row[j] -= self.shift[j]
        return &self.copy[0, 0]

    cdef void margins(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef,
                      double* out) noexcept nogil:
        cdef int n = self.n_columns - self.intercept, m = hi - lo, width = self.width
        cdef double start = coef[n] if self.intercept else 0.0
        cdef Py_ssize_t i
        for i in range(m):
            out[i] = start
        dgemv("T", &n, &m, &UNIT, <double*>self.load(lo, hi), &width, <double*>coef, &ONE, &UNIT,
              out, &ONE)

    cdef void scores(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef, int k,
                     double* out) noexcept nogil:
        cdef int n = self.n_columns - self.intercept, m = hi - lo, width = self.width
        cdef int stride = self.n_columns
        cdef Py_ssize_t i, c
        for i in range(m):
            for c in range(k):
                out[i * k + c] = coef[c * stride + n] if self.intercept else 0.0
        dgemm("T", "N", &k, &m, &n, &UNIT, <double*>coef, &stride, <double*>self.load(lo, hi),
              &width, &UNIT, out, &k)

    cdef void adjoint(self, Py_ssize_t lo, Py_ssize_t hi, const double* columns, int k,
                      double* out) noexcept nogil:
        cdef int n = self.n_columns - self.intercept, m = hi - lo, stride = self.panel
        cdef int wide = self.stride, width = self.width
        cdef Py_ssize_t i, c
        cdef double total
        cdef const double* x = self.load(lo, hi)
        if k == 1:
            dgemv("N", &n, &m, &UNIT, <double*>x, &width, <double*>columns, &ONE, &UNIT, out, &ONE)
        else:
            dgemm("N", "N", &n, &k, &m, &UNIT, <double*>x, &width, <double*>columns, &stride, &UNIT,
                  out, &wide)
        if self.intercept:
            for c in range(k):
                total = 0.0
                for i in range(m):
                    total += columns[c * stride + i]
                out[c * wide + n] += total

    cdef void gram(self, Py_ssize_t lo, Py_ssize_t hi, const double* d, double* out) noexcept nogil:
        cdef int n = self.n_columns - self.intercept, k = self.n_columns, m = hi - lo
        cdef int wide = self.stride, width = self.width
        cdef Py_ssize_t i, j
        cdef double factor, total = 0.0
        cdef const double* x = self.load(lo, hi)
        cdef const double* row
        cdef double* scaled = &self.scaled[0, 0]
        cdef bint few = 0 < n <= FEW_COLUMNS
        cdef int kept = 0
        for i in range(m):
            if d[i] == 0.0 and not few:
                continue
            factor, row = d[i] if few else sqrt(d[i]), x + i * width
            total += d[i]
            for j in range(n):
                scaled[kept * k + j] = factor * row[j]
            if self.intercept:
                scaled[kept * k + n] = factor
            kept += 1
        if few:
            dgemm("N", "T", &n, &k, &m, &UNIT, <double*>x, &width, scaled, &k, &UNIT, out, &wide)
            if self.intercept:
                out[n * wide + n] += total
        elif kept:      # column-major "U" is the lower triangle in C order
            dsyrk("U", "N", &k, &kept, &UNIT, scaled, &k, &UNIT, out, &wide)

    cdef void squares(self, Py_ssize_t lo, Py_ssize_t hi, const double* d,
                      double* out) noexcept nogil:
        cdef Py_ssize_t i, j, n = self.n_columns - self.intercept
        cdef const double* x = self.load(lo, hi)
        for i in range(hi - lo):
            for j in range(n):
                out[j] += d[i] * x[i * self.width + j] * x[i * self.width + j]
            if self.intercept:
                out[n] += d[i]


cdef enum:
    FOUR = 4            # columns of an adjoint that sparse rows are visited for together

# Compiled twice: most sparse matrices are all ``ones``, whose values need not be read.


cdef inline void gather(Py_ssize_t m, Entries x, const double* coef, double start, double* out,
                        bint ones) noexcept nogil:
    """out[i] = start + Σ_j x_ij coef[j]."""
    cdef Py_ssize_t i, e
    cdef double total
    for i in range(m):
        total = start
        for e in range(x.p[i], x.p[i + 1]):
            total += coef[x.col[e]] if ones else x.v[e] * coef[x.col[e]]
        out[i] = total


cdef inline void scatter(Py_ssize_t m, Entries x, const double* columns, Py_ssize_t stride,
                         double* sums, int k, Py_ssize_t last, bint ones) noexcept nogil:
    """sums[j, c] += Σ_i x_ij columns[c, i] for k columns, and of the constant column ``last``, if
    it is one.
    """
    cdef Py_ssize_t i, e, c
    cdef double value[FOUR]
    cdef double total[FOUR]
    cdef double* there
    for i in range(m):
        for c in range(k):
            value[c] = columns[c * stride + i]
        for e in range(x.p[i], x.p[i + 1]):
            there = sums + k * <Py_ssize_t>x.col[e]
            for c in range(k):
                total[c] = there[c] + (value[c] if ones else value[c] * x.v[e])
            for c in range(k):
                there[c] = total[c]      # all at once, as vectors
        if last < 0:
            continue
        for c in range(k):
            sums[k * last + c] += value[c]


cdef inline void outer(Py_ssize_t m, Entries x, const double* d, double* out, Py_ssize_t wide,
                       double* last, bint ones) noexcept nogil:
    """out += Xᵀ diag(d) X, the lower triangle since indices are sorted; d X to the row ``last``, if
    there is one.
    """
    cdef Py_ssize_t i, e, f, j, c
    cdef double value[FOUR]
    cdef double* row[FOUR]
    cdef double other
    for i in range(m):
        if d[i] == 0.0:
            continue
        e = x.p[i]
        # rows of the matrix: one by one until what is left is a multiple of four
        while e < x.p[i + 1]:
            c = FOUR if (x.p[i + 1] - e) % FOUR == 0 else 1
            for j in range(c):
                row[j] = out + <Py_ssize_t>x.col[e + j] * wide
                value[j] = d[i] if ones else d[i] * x.v[e + j]
                if last != NULL:
                    last[x.col[e + j]] += value[j]
            if c == FOUR:
                for f in range(x.p[i], e + 1):
                    other = 1.0 if ones else x.v[f]
                    for j in range(FOUR):
                        row[j][x.col[f]] += value[j] * other
                for f in range(1, FOUR):
                    other = 1.0 if ones else x.v[e + f]
                    for j in range(f, FOUR):
                        row[j][x.col[e + f]] += value[j] * other
            else:
                for f in range(x.p[i], e + 1):
                    row[0][x.col[f]] += value[0] if ones else value[0] * x.v[f]
            e += c


cdef class CsrRows(CompiledRows):
    def __init__(self, x, bint intercept):
        cdef Py_ssize_t e
        self.n_samples, self.n_columns = x.shape[0], x.shape[1] + intercept
        self.intercept = intercept
        self.stride = self.n_columns + 1
        self.indices = x.indices.astype(np.int32, copy=False)
        self.starts = x.indptr.astype(np.intp, copy=False)
        counts = np.zeros(x.shape[1])
        cdef double[::1] count = counts
        for e in range(self.starts[0], self.starts[self.n_samples]):
            count[self.indices[e]] += 1.0
        shares = counts / max(x.shape[0], 1)
        often = np.flatnonzero(shares > RARE)
        if often.size < MANY or shares[often].mean() < WELL_FILLED:
            often = often[:0]
        self.frequent, self.place = often.astype(np.int32), np.full(x.shape[1], -1, np.int32)
        np.asarray(self.place)[often] = np.arange(often.size)
        F = max(1, often.size)
        # the certificate visits 32 rows
        self.panel = max(1, min(max(256, -(-F // 32) * 32), x.shape[0]))
        self.strip = self.panel
        self.scaled, self.square = np.empty((self.panel if often.size else 1, F)), np.empty((F, F))
        self.single = x.dtype == np.float32
        self.ones = bool((x.data[:64] == 1).all() and (x.data == 1).all())
        if self.single:
            self.v32 = x.data
        else:
            self.v64 = x.data
        ends = np.append(np.asarray(self.starts)[:self.n_samples:self.panel],
                         self.starts[self.n_samples])
        self.values = np.empty(int(np.diff(ends).max(initial=0)) + 1 if self.single else 1)
        # Sums by panels round less, and cost a pass over the columns for each.
        entries = ends[len(ends) - 1] - ends[0]
        self.by_panel = self.n_columns * (len(ends) - 1) <= 2 * entries + self.n_samples
        self.partial = np.empty(FOUR * self.n_columns)
        self.length = (self.panel + x.shape[0] // self.panel if self.by_panel else x.shape[0]) + 4

    cdef Entries load(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        cdef Entries x
        cdef Py_ssize_t k, first = self.starts[lo], count = self.starts[hi] - first
        x.p, x.col = &self.starts[lo], &self.indices[0] if count else NULL
        if self.single:
            for k in range(count):
                self.values[k] = self.v32[first + k]
            x.v = &self.values[0] - first
        else:
            x.v = &self.v64[0] if count else NULL
        return x

    cdef void margins(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef,
                      double* out) noexcept nogil:
        cdef double start = coef[self.n_columns - 1] if self.intercept else 0.0
        if self.ones:
            gather(hi - lo, self.load(lo, hi), coef, start, out, True)
        else:
            gather(hi - lo, self.load(lo, hi), coef, start, out, False)

    cdef void scores(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef, int k,
                     double* out) noexcept nogil:
        cdef Entries x = self.load(lo, hi)
        cdef Py_ssize_t i, e, c, n = self.n_columns
        for i in range(hi - lo):
            for c in range(k):
                out[i * k + c] = coef[c * n + n - 1] if self.intercept else 0.0
            for e in range(x.p[i], x.p[i + 1]):
                for c in range(k):
                    out[i * k + c] += x.v[e] * coef[c * n + x.col[e]]

    cdef void adjoint(self, Py_ssize_t lo, Py_ssize_t hi, const double* columns, int k,
                      double* out) noexcept nogil:
        cdef Entries x = self.load(lo, hi)
        cdef Py_ssize_t e, j, c = 0, some, n = self.n_columns
        cdef Py_ssize_t last = n - 1 if self.intercept else -1, wide = self.stride
        cdef double* sums
        cdef const double* here
        while c < k:
            some, sums, here = 1, out + c * wide, columns + c * self.panel
            if self.by_panel:
                some, sums = FOUR if k - c >= FOUR else 1, &self.partial[0]
                memset(sums, 0, some * n * sizeof(double))
            if some == FOUR and self.ones:
                scatter(hi - lo, x, here, self.panel, sums, FOUR, last, True)
            elif some == FOUR:
                scatter(hi - lo, x, here, self.panel, sums, FOUR, last, False)
            else:
                scatter(hi - lo, x, here, self.panel, sums, 1, last, False)
            if self.by_panel:
                for j in range(some):
                    for e in range(n):
                        out[(c + j) * wide + e] += sums[e * some + j]
            c += some

    cdef void gram(self, Py_ssize_t lo, Py_ssize_t hi, const double* d, double* out) noexcept nogil:
        cdef Entries x = self.load(lo, hi)
        cdef Py_ssize_t i, n = self.n_columns, wide = self.stride
        cdef double* last = out + (n - 1) * wide if self.intercept else NULL
        if self.frequent.shape[0]:
            self.gram_of_frequent(hi - lo, x, d, out, last)
        elif self.ones:
            outer(hi - lo, x, d, out, wide, last, True)
        else:
            outer(hi - lo, x, d, out, wide, last, False)
        if self.intercept:
            for i in range(hi - lo):
                last[n - 1] += d[i]

    cdef void gram_of_frequent(self, int m, Entries x, const double* d, double* out,
                               double* last) noexcept nogil:
        """The same with BLAS for pairs of frequent columns."""
        cdef Py_ssize_t i, j, k, e, f, wide = self.stride
        cdef int F = self.frequent.shape[0]
        cdef double root, value, nothing = 0.0
        cdef double* scaled = &self.scaled[0, 0]
        cdef double* square = &self.square[0, 0]
        cdef double* row
        memset(scaled, 0, m * F * sizeof(double))
        for i in range(m):
            root = sqrt(d[i])
            for e in range(x.p[i], x.p[i + 1]):
                value, row = d[i] * x.v[e], out + <Py_ssize_t>x.col[e] * wide
                if last != NULL:
                    last[x.col[e]] += value
                if self.place[x.col[e]] >= 0:
                    scaled[i * F + self.place[x.col[e]]] = root * x.v[e]
                    continue
                for f in range(x.p[i], e + 1):
                    row[x.col[f]] += value * x.v[f]
                for f in range(e + 1, x.p[i + 1]):
                    if self.place[x.col[f]] >= 0:
                        out[x.col[f] * wide + x.col[e]] += value * x.v[f]
        dsyrk("U", "N", &F, &m, &UNIT, scaled, &F, &nothing, square, &F)
        for j in range(F):
            for k in range(j + 1):
                out[self.frequent[j] * wide + self.frequent[k]] += square[j * F + k]

    cdef void squares(self, Py_ssize_t lo, Py_ssize_t hi, const double* d,
                      double* out) noexcept nogil:
        cdef Entries x = self.load(lo, hi)
        cdef Py_ssize_t i, e
        for i in range(hi - lo):
            for e in range(x.p[i], x.p[i + 1]):
                out[x.col[e]] += d[i] * x.v[e] * x.v[e]
            if self.intercept:
                out[self.n_columns - 1] += d[i]


def compiled_rows(x, y, w, bint intercept, shift=None):
    """Rows of an array (any strides, float32 or float64) or of a CSR matrix with sorted indices.

    ``shift`` is subtracted from the features of an array.
    """
    cdef CompiledRows rows
    fit(len(y) == x.shape[0] == len(w) and (shift is None or len(shift) == x.shape[1]),
        "labels and weights")
    if hasattr(x, "indptr"):
        rows = CsrRows(x, intercept)
    else:
        rows = DenseRows(x if x.flags.aligned else x.copy(), shift, intercept)
    rows.y, rows.w, rows.samples = y, w, (x, y, w, intercept, shift)
    return rows


def weighted_gram(CompiledRows rows, const double[::1] d):
    """``Xᵀ diag(d) X`` for ``d ≥ 0``, with the constant column if there is one, as a full symmetric
    array.
    """
    cdef Py_ssize_t block, lo, hi, n = rows.n_samples, b = rows.panel, P = rows.stride
    found = np.zeros((P, P))
    cdef double[:, ::1] out = found
    fit(d.shape[0] == n, "weights")
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.gram(lo, hi, &d[lo], &out[0, 0])
        for lo in range(P):
            for hi in range(lo):
                out[hi, lo] = out[lo, hi]
    rows.free()
    return found[:-1, :-1].copy()


def product(CompiledRows rows, const double[::1] coef):
    """``X coef``, the intercept last in ``coef``."""
    cdef Py_ssize_t k, lo, n = rows.n_samples, b = rows.panel
    found = np.empty(n)
    cdef double[::1] out = found
    fit(coef.shape[0] == rows.n_columns, "coefficients")
    rows = rows.borrow()
    with nogil:
        for k in range((n + b - 1) // b):
            lo = k * b
            rows.margins(lo, min(lo + b, n), &coef[0], &out[lo])
    rows.free()
    return found


def scores(CompiledRows rows, const double[:, ::1] coef):
    """``X coefᵀ``: :func:`product` for each row of ``coef`` at once."""
    cdef Py_ssize_t k, lo, n = rows.n_samples, b = rows.panel, n_rows = coef.shape[0]
    found = np.empty((n, n_rows))
    cdef double[:, ::1] out = found
    fit(coef.shape[1] == rows.n_columns, "coefficients")
    rows = rows.borrow()
    with nogil:
        for k in range((n + b - 1) // b):
            lo = k * b
            rows.scores(lo, min(lo + b, n), &coef[0, 0], n_rows, &out[lo, 0])
    rows.free()
    return found


def adjoint(CompiledRows rows, const double[:, ::1] columns):
    """``columns X``, of one row of ``columns`` or of several."""
    cdef Py_ssize_t k, lo, hi, c, n = rows.n_samples, b = rows.panel, n_columns = columns.shape[0]
    found = np.zeros((n_columns, rows.stride))
    cdef double[:, ::1] out = found, part = np.empty((n_columns, b))
    fit(columns.shape[1] == n, "columns")
    rows = rows.borrow()
    with nogil:
        for k in range((n + b - 1) // b):
            lo = k * b
            hi = min(lo + b, n)
            for c in range(n_columns):
                memcpy(&part[c, 0], &columns[c, lo], (hi - lo) * sizeof(double))
            rows.adjoint(lo, hi, &part[0, 0], n_columns, &out[0, 0])
    rows.free()
    return found[:, :-1].copy()


def weighted_squares(CompiledRows rows, const double[::1] d):
    """The diagonal of :func:`weighted_gram`."""
    cdef Py_ssize_t k, lo, n = rows.n_samples, b = rows.panel
    found = np.zeros(rows.n_columns)
    cdef double[::1] out = found
    fit(d.shape[0] == n, "weights")
    rows = rows.borrow()
    with nogil:
        for k in range((n + b - 1) // b):
            lo = k * b
            rows.squares(lo, min(lo + b, n), &d[lo], &out[0])
    rows.free()
    return found


def sparse_outer(const Py_ssize_t[::1] starts, const int[::1] columns, const double[::1] values,
                 const Py_ssize_t[::1] tops, const int[::1] rows, const double[::1] transposed,
                 double[:, ::1] out):
    """Add ``X Xᵀ`` to the upper triangle of ``out``; X is given in canonical CSR and CSC form.

    Row i of the product is a sum of columns of X, each from its entry in row i on.  ``next_row``
    has the place of that entry, for every column.
    """
    cdef Py_ssize_t i, e, f, j
    cdef double value
    cdef double* row
    cdef Py_ssize_t[::1] next_row = np.array(tops)
    fit(out.shape[0] == out.shape[1] == starts.shape[0] - 1, "the matrix")
    with nogil:
        for i in range(starts.shape[0] - 1):
            row = &out[i, 0]
            for e in range(starts[i], starts[i + 1]):
                j = columns[e]
                value = values[e]
                for f in range(next_row[j], tops[j + 1]):
                    row[rows[f]] += value * transposed[f]
                next_row[j] += 1
