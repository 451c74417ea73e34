"""Coordinate minimisation over a box: each step depends on the one before."""
from drlogit.rows._shapes cimport fit


def sweep(const double[:, ::1] H, double[::1] gradient, double[::1] x, double radius):
    """One sweep over the coordinates, which updates ``x`` and the gradient ``Hx - c`` in place."""
    cdef Py_ssize_t i, j, n = x.shape[0]
    cdef double moved, change
    fit(H.shape[0] == n and H.shape[1] == n and gradient.shape[0] == n, "matrix and gradient")
    with nogil:
        for j in range(n):
            if H[j, j] <= 0.0:
                continue
            moved = min(max(x[j] - gradient[j] / H[j, j], -radius), radius)
            change = moved - x[j]
            if change != 0.0:
                x[j] = moved
                for i in range(n):
                    gradient[i] += change * H[j, i]


def sweep_columns(
    const double[::1] entries, const int[::1] rows, const int[::1] starts,  # A by columns
    const double[::1] diagonal, const double[::1] c, double radius,
    double[::1] x, double[::1] product,  # in place: x and Ax
):
    """The same for ``H = AᵀA``, without the matrix (Hsieh et al. 2008, Section 3.1)."""
    cdef Py_ssize_t j, k, n = x.shape[0]
    cdef double gradient, moved, change
    fit(starts.shape[0] == n + 1 and diagonal.shape[0] == n and c.shape[0] == n, "columns")
    with nogil:
        for j in range(n):
            if diagonal[j] <= 0.0:
                continue
            gradient = -c[j]
            for k in range(starts[j], starts[j + 1]):
                gradient += entries[k] * product[rows[k]]
            moved = min(max(x[j] - gradient / diagonal[j], -radius), radius)
            change = moved - x[j]
            if change != 0.0:
                x[j] = moved
                for k in range(starts[j], starts[j + 1]):
                    product[rows[k]] += change * entries[k]
