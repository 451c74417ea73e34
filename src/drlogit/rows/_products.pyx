"""Products with the data, a panel of rows at a time: margins, adjoints, weighted Gram matrices.

Everything is computed in double: of float32, shifted and strided arrays a panel is copied first.
So nothing above this file knows how the rows are stored.

Gram matrices of float32 values in single precision would take .7 of the time.  But samples on the
kink have weights many orders above the others, and the matrix of the others was lost beside them:
normal columns took 13 iterations instead of 7, collinear columns stalled.
"""
import numpy as np
from libc.math cimport sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk
from ._clones cimport In, Out, cloned
from ._shapes cimport fit

cdef int ONE = 1
cdef double UNIT = 1.0

# Entries of a panel: 128 kB, so that it and its scaled copy stay in a common second-level cache.
# A Gram matrix that does not fit there wants panels with as many rows as columns.  With fewer rows,
# reading and writing the matrix takes longer than the arithmetic.
cdef Py_ssize_t PANEL = 16384, LARGE_PANEL = 1 << 20

# Columns up to which dgemm is faster for a Gram matrix than dsyrk, which does half the arithmetic
# (256 rows of 16 columns: 2.8 and 4.8 microseconds; of 40: 15 and 19; of 60 the same time).
cdef int FEW_COLUMNS = 48

cdef enum:
    FOUR = 4            # vectors that a loop over sparse rows serves at once


cdef class CompiledRows:
    cdef CompiledRows borrow(self):
        """This object for one visit, or a twin with its own workspace if another thread uses it."""
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


cdef cloned doubled(Py_ssize_t m, Py_ssize_t n, const number* x, Py_ssize_t down, Py_ssize_t right,
                    In shift, bint moved, Out out) noexcept nogil:
    """m rows of n numbers in double, less a shift; strides of x in numbers."""
    cdef Py_ssize_t i, j
    for i in range(m):
        if right == 1 and moved:       # the compiler makes vectors of these
            for j in range(n):
                out[i * n + j] = <double>x[i * down + j] - shift[j]
        elif right == 1:
            for j in range(n):
                out[i * n + j] = x[i * down + j]
        else:
            for j in range(n):
                out[i * n + j] = <double>x[i * down + j * right] - (shift[j] if moved else 0.0)


cdef cloned add_squares(Py_ssize_t m, Py_ssize_t n, In x, Py_ssize_t width, In d,
                        Out out) noexcept nogil:
    """out[j] += Σ_i d_i x_ij²."""
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(n):
            out[j] += d[i] * (x[i * width + j] * x[i * width + j])


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
        self.shift = np.zeros(1) if shift is None else shift
        self.down, self.right = x.strides[0] // x.itemsize, x.strides[1] // x.itemsize
        self.direct = self.right == 1 and self.down >= n and not (self.single or self.moved)
        self.width = self.down if self.direct else n
        self.copy = np.empty((1, 1) if self.direct else (self.panel, n))
        self.scaled = np.empty((self.panel, self.n_columns))

    cdef const double* load(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        """The panel in double, a row every ``width`` numbers."""
        cdef Py_ssize_t m = hi - lo, n = self.copy.shape[1]
        if self.direct:
            return &self.x64[lo, 0]
        if self.loaded == hi:   # a visit has margins, adjoints and a Gram matrix of each panel
            return &self.copy[0, 0]
        self.loaded = hi
        if self.single:
            doubled(m, n, &self.x32[lo, 0], self.down, self.right, &self.shift[0], self.moved,
                    &self.copy[0, 0])
        else:
            doubled(m, n, &self.x64[lo, 0], self.down, self.right, &self.shift[0], self.moved,
                    &self.copy[0, 0])
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
        if k == 1:
            dgemv("N", &n, &m, &UNIT, <double*>self.load(lo, hi), &width, <double*>columns, &ONE,
                  &UNIT, out, &ONE)
        else:
            dgemm("N", "N", &n, &k, &m, &UNIT, <double*>self.load(lo, hi), &width,
                  <double*>columns, &stride, &UNIT, out, &wide)
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
        cdef Py_ssize_t i, n = self.n_columns - self.intercept
        add_squares(hi - lo, n, self.load(lo, hi), self.width, d, out)
        if self.intercept:
            for i in range(hi - lo):
                out[n] += d[i]


# The loops over sparse rows are compiled once more for matrices all of whose values are ``ones``,
# as most are: the values need not be read.  ``v`` are the values, of float32 or float64.


cdef inline void gather(Py_ssize_t m, Entries x, const number* v, const double* coef,
                        double start, double* out, bint ones) noexcept nogil:
    """out[i] = start + Σ_j x_ij coef[j]."""
    cdef Py_ssize_t i, e
    cdef double total
    for i in range(m):
        total = start
        for e in range(x.p[i], x.p[i + 1]):
            total += coef[x.col[e]] if ones else v[e] * coef[x.col[e]]
        out[i] = total


cdef inline void scatter(Py_ssize_t m, Entries x, const number* v, const double* columns,
                         Py_ssize_t stride, double* sums, int k, Py_ssize_t last,
                         bint ones) noexcept nogil:
    """sums[j, c] += Σ_i x_ij columns[c, i] for k columns; column ``last`` is constant, if ≥ 0."""
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
                total[c] = there[c] + (value[c] if ones else value[c] * v[e])
            for c in range(k):
                there[c] = total[c]      # in a loop of its own, which becomes vectors
        if last < 0:
            continue
        for c in range(k):
            sums[k * last + c] += value[c]


cdef void scatter_as(Py_ssize_t m, Entries x, const number* v, const double* columns,
                     Py_ssize_t stride, double* sums, int k, Py_ssize_t last,
                     bint ones) noexcept nogil:
    """The same, with loops of their own for one column, for four, and for ones."""
    if k == FOUR and ones:
        scatter(m, x, v, columns, stride, sums, FOUR, last, True)
    elif k == FOUR:
        scatter(m, x, v, columns, stride, sums, FOUR, last, False)
    elif ones:
        scatter(m, x, v, columns, stride, sums, 1, last, True)
    else:
        scatter(m, x, v, columns, stride, sums, 1, last, False)


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
        self.n_samples, self.n_columns = x.shape[0], x.shape[1] + intercept
        self.intercept = intercept
        self.stride = self.n_columns + 1
        self.indices = x.indices.astype(np.int32, copy=False)
        self.starts = x.indptr.astype(np.intp, copy=False)
        self.panel = max(1, min(256, x.shape[0]))
        self.strip = self.panel
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

    cdef Entries entries(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        """The panel with its values in single precision or in double, as they are stored."""
        cdef Entries x
        cdef bint some = self.starts[hi] > self.starts[lo]
        x.p, x.col = &self.starts[lo], &self.indices[0] if some else NULL
        x.v = &self.v64[0] if some and not self.single else NULL
        x.v32 = &self.v32[0] if some and self.single else NULL
        return x

    cdef Entries load(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        """The panel with its values in double."""
        cdef Entries x = self.entries(lo, hi)
        cdef Py_ssize_t k, first = self.starts[lo]
        if self.single:
            for k in range(self.starts[hi] - first):
                self.values[k] = self.v32[first + k]
            x.v = &self.values[0] - first
        return x

    cdef void margins(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef,
                      double* out) noexcept nogil:
        cdef Entries x = self.entries(lo, hi)
        cdef double start = coef[self.n_columns - 1] if self.intercept else 0.0
        if self.ones:
            gather(hi - lo, x, x.v, coef, start, out, True)
        elif self.single:
            gather(hi - lo, x, x.v32, coef, start, out, False)
        else:
            gather(hi - lo, x, x.v, coef, start, out, False)

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
        cdef Entries x = self.entries(lo, hi)
        cdef Py_ssize_t e, j, c = 0, some, n = self.n_columns, wide = self.stride
        cdef Py_ssize_t last = n - 1 if self.intercept else -1
        cdef double* sums
        while c < k:
            some, sums = 1, out + c * wide
            if self.by_panel:
                some, sums = FOUR if k - c >= FOUR else 1, &self.partial[0]
                memset(sums, 0, some * n * sizeof(double))
            if self.single and not self.ones:
                scatter_as(hi - lo, x, x.v32, columns + c * self.panel, self.panel, sums, some,
                           last, False)
            else:
                scatter_as(hi - lo, x, x.v, columns + c * self.panel, self.panel, sums, some,
                           last, self.ones)
            if self.by_panel:
                for j in range(some):
                    for e in range(n):
                        out[(c + j) * wide + e] += sums[e * some + j]
            c += some

    cdef void gram(self, Py_ssize_t lo, Py_ssize_t hi, const double* d, double* out) noexcept nogil:
        cdef Entries x = self.load(lo, hi)
        cdef Py_ssize_t i, n = self.n_columns, wide = self.stride
        cdef double* last = out + (n - 1) * wide if self.intercept else NULL
        if self.ones:
            outer(hi - lo, x, d, out, wide, last, True)
        else:
            outer(hi - lo, x, d, out, wide, last, False)
        if self.intercept:
            for i in range(hi - lo):
                last[n - 1] += d[i]

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
