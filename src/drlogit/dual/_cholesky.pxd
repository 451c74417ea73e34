"""The Cholesky factor of a matrix that duplicate or empty columns may make singular."""
from libc.math cimport INFINITY, sqrt
from scipy.linalg.cython_lapack cimport dpotrf


cdef inline bint shifted_factor(double* matrix, double* unit, int order,
                                double least=1e-14) noexcept nogil:
    """Factor at unit diagonal, with the smallest shift of it that suffices: one suits all columns.

    ``least`` is the first shift.

    Only the lower half of the matrix counts.  It stays, and the factor is written to the upper
    half, which OpenBLAS factors faster, and to the diagonal; ``unit`` is the scaling.  Shifts rise
    to twice the order, which suffices; False if numbers are not finite.
    """
    cdef Py_ssize_t j, k, first, n = order
    cdef int info = 1
    cdef double shift = least
    for j in range(n):
        unit[j] = 1.0 / sqrt(matrix[j * n + j]) if matrix[j * n + j] > 0.0 else 1.0
    while info != 0 and shift < 200.0 * n:
        for first in range(0, n, 8):     # as many rows of it are written together
            for j in range(first + 1, n):
                for k in range(first, min(first + 8, j)):
                    matrix[k * n + j] = unit[j] * unit[k] * matrix[j * n + k]
        for j in range(n):
            matrix[j * n + j] = 1.0 + shift
        dpotrf("L", &order, matrix, &order, &info)
        shift = max(100.0 * shift, 1e-14)
    return info == 0 and matrix[n * n - 1] < INFINITY     # NaN spreads to the last entry
