"""Products with the data, a panel of rows at a time: margins, adjoints, weighted Gram matrices.

All arithmetic is in double; float32 values (and int64 indices) are converted panel by panel, so that
nothing above this file knows how the rows are stored.
"""
import numpy as np
from libc.math cimport sqrt
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk

cdef int ONE = 1
cdef double UNIT = 1.0


cdef class Rows:
    cdef void margins(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef, double* out) noexcept nogil:
        """out = X coef, the intercept last in coef."""
    cdef void adjoint(self, Py_ssize_t lo, Py_ssize_t hi, const double* columns, int k, double* out) noexcept nogil:
        """out[c, :] += Xᵀ columns[c, :] for k columns, each a panel long (stride ``panel``)."""
    cdef void gram(self, Py_ssize_t lo, Py_ssize_t hi, const double* d, double* out) noexcept nogil:
        """Lower triangle of out += Xᵀ diag(d) X, row-major."""


cdef class DenseRows(Rows):
    def __init__(self, x, bint intercept):
        n = x.shape[1]
        self.n_samples, self.n_columns, self.intercept = x.shape[0], n + intercept, intercept
        self.stride = self.n_columns + 1
        self.panel = max(16, min(256, x.shape[0], 16384 // max(n, 1)))   # 128 kB
        self.length = self.panel + x.shape[0] // self.panel + 4
        self.single = x.dtype == np.float32
        if self.single:
            self.x32 = x
            self.copy = np.empty((self.panel, n))
        else:
            self.x64 = x
        self.scaled = np.empty((self.panel, n))

    cdef const double* load(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
        cdef Py_ssize_t i, j
        if not self.single:
            return &self.x64[lo, 0]
        for i in range(hi - lo):
            for j in range(self.copy.shape[1]):
                self.copy[i, j] = self.x32[lo + i, j]
        return &self.copy[0, 0]

    cdef void margins(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef, double* out) noexcept nogil:
        cdef int n = self.n_columns - self.intercept, m = hi - lo
        cdef double start = coef[n] if self.intercept else 0.0
        cdef Py_ssize_t i
        for i in range(m):
            out[i] = start
        dgemv("T", &n, &m, &UNIT, <double*>self.load(lo, hi), &n, <double*>coef, &ONE, &UNIT, out, &ONE)

    cdef void adjoint(self, Py_ssize_t lo, Py_ssize_t hi, const double* columns, int k, double* out) noexcept nogil:
        cdef int n = self.n_columns - self.intercept, m = hi - lo, stride = self.panel, wide = self.stride
        cdef Py_ssize_t i, c
        cdef double total
        cdef const double* x = self.load(lo, hi)
        if k == 1:
            dgemv("N", &n, &m, &UNIT, <double*>x, &n, <double*>columns, &ONE, &UNIT, out, &ONE)
        else:
            dgemm("N", "N", &n, &k, &m, &UNIT, <double*>x, &n, <double*>columns, &stride, &UNIT, out, &wide)
        if self.intercept:
            for c in range(k):
                total = 0.0
                for i in range(m):
                    total += columns[c * stride + i]
                out[c * wide + n] += total

    cdef void gram(self, Py_ssize_t lo, Py_ssize_t hi, const double* d, double* out) noexcept nogil:
        cdef int n = self.n_columns - self.intercept, m = hi - lo, wide = self.stride
        cdef Py_ssize_t i, j
        cdef double root, total = 0.0
        cdef const double* x = self.load(lo, hi)
        cdef double* scaled = &self.scaled[0, 0]
        for i in range(m):
            root = sqrt(d[i])
            total += d[i]
            for j in range(n):
                scaled[i * n + j] = root * x[i * n + j]
        # Column-major "U" is the lower triangle in C order.
        dsyrk("U", "N", &n, &m, &UNIT, scaled, &n, &UNIT, out, &wide)
        if self.intercept:
            dgemv("N", &n, &m, &UNIT, <double*>x, &n, <double*>d, &ONE, &UNIT, out + n * wide, &ONE)
            out[n * wide + n] += total


cdef class CsrRows(Rows):
    def __init__(self, x, bint intercept):
        self.n_samples, self.n_columns, self.intercept = x.shape[0], x.shape[1] + intercept, intercept
        self.stride = self.n_columns + 1
        self.panel, self.length = max(1, min(256, x.shape[0])), x.shape[0] + 4
        self.single, self.wide = x.dtype == np.float32, x.indices.dtype == np.int64
        if self.single: self.v32 = x.data
        else: self.v64 = x.data
        if self.wide: self.i64, self.p64 = x.indices, x.indptr
        else: self.i32, self.p32 = x.indices, x.indptr
        lengths = np.add.reduceat(np.diff(x.indptr), np.arange(0, x.shape[0], self.panel)) if x.shape[0] else np.zeros(1)
        most = int(lengths.max()) + 1
        self.values, self.indices = np.empty(most), np.empty(most, np.int32)
        self.starts = np.empty(self.panel + 1, np.intp)

    cdef void load(self, Py_ssize_t lo, Py_ssize_t hi, const double** v, const int** j, const Py_ssize_t** p) noexcept nogil:
        cdef Py_ssize_t i, k, first = self.p64[lo] if self.wide else self.p32[lo]
        for i in range(lo, hi + 1):
            self.starts[i - lo] = (self.p64[i] if self.wide else self.p32[i]) - first
        cdef Py_ssize_t count = self.starts[hi - lo]
        p[0] = &self.starts[0]
        if self.single:
            for k in range(count): self.values[k] = self.v32[first + k]
            v[0] = &self.values[0]
        else:
            v[0] = &self.v64[0] + first
        if self.wide:
            for k in range(count): self.indices[k] = <int>self.i64[first + k]
            j[0] = &self.indices[0]
        else:
            j[0] = &self.i32[0] + first

    cdef void margins(self, Py_ssize_t lo, Py_ssize_t hi, const double* coef, double* out) noexcept nogil:
        cdef const double* v
        cdef const int* col
        cdef const Py_ssize_t* p
        cdef Py_ssize_t i, k
        cdef double start = coef[self.n_columns - 1] if self.intercept else 0.0, total
        self.load(lo, hi, &v, &col, &p)
        for i in range(hi - lo):
            total = start
            for k in range(p[i], p[i + 1]):
                total += v[k] * coef[col[k]]
            out[i] = total

    cdef void adjoint(self, Py_ssize_t lo, Py_ssize_t hi, const double* columns, int k, double* out) noexcept nogil:
        cdef const double* v
        cdef const int* col
        cdef const Py_ssize_t* p
        cdef Py_ssize_t i, e, c, n = self.n_columns, wide = self.stride
        cdef double value
        cdef double* row
        self.load(lo, hi, &v, &col, &p)
        for c in range(k):
            row = out + c * wide
            for i in range(hi - lo):
                value = columns[c * self.panel + i]
                for e in range(p[i], p[i + 1]):
                    row[col[e]] += value * v[e]
                if self.intercept:
                    row[n - 1] += value

    cdef void gram(self, Py_ssize_t lo, Py_ssize_t hi, const double* d, double* out) noexcept nogil:
        cdef const double* v
        cdef const int* col
        cdef const Py_ssize_t* p
        cdef Py_ssize_t i, e, f, n = self.n_columns, wide = self.stride
        cdef double value
        cdef double* row
        cdef double* last = out + (n - 1) * wide
        self.load(lo, hi, &v, &col, &p)
        for i in range(hi - lo):                    # indices are sorted: the lower triangle
            for e in range(p[i], p[i + 1]):
                value = d[i] * v[e]
                row = out + <Py_ssize_t>col[e] * wide
                for f in range(p[i], e + 1):
                    row[col[f]] += value * v[f]
                if self.intercept:
                    last[col[e]] += value
            if self.intercept:
                last[n - 1] += d[i]


def rows_of(x, intercept):
    """Rows of a C-ordered array or of a CSR matrix with sorted indices, float32 or float64."""
    return CsrRows(x, intercept) if hasattr(x, "indptr") else DenseRows(x, intercept)
