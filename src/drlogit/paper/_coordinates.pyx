"""Coordinate minimisation over a box: each step depends on the one before."""
from libc.math cimport fabs
from drlogit.rows._shapes cimport fit


def sweep(double[:, ::1] H, double[::1] gradient, double[::1] theta, double radius, double tol,
          int max_sweeps):
    """Sweeps over the coordinates, in place; stops within ``tol``; how many were done."""
    cdef Py_ssize_t i, j, n = theta.shape[0]
    cdef double moved, change, gap
    cdef int done = 0
    fit(H.shape[0] == n and H.shape[1] == n and gradient.shape[0] == n, "matrix and gradient")
    with nogil:
        while done < max_sweeps:
            done += 1
            for j in range(n):
                if H[j, j] <= 0.0:
                    continue
                moved = min(max(theta[j] - gradient[j] / H[j, j], -radius), radius)
                change = moved - theta[j]
                if change != 0.0:
                    theta[j] = moved
                    for i in range(n):
                        gradient[i] += change * H[j, i]
            gap = 0.0
            for j in range(n):
                gap += gradient[j] * theta[j] + radius * fabs(gradient[j])
            if gap <= tol:
                break
    return done


def sweep_columns(
    const double[::1] entries, const int[::1] rows, const int[::1] starts,  # A by columns
    const double[:, ::1] left, const double[:, ::1] right,  # n rows each
    const double[::1] diagonal, const double[::1] c, double radius, double tol, int max_sweeps,
    double[::1] theta, double[::1] product, double[::1] reduced,  # in place: θ, Aθ, rightᵀθ
):
    """The same for ``H = AᵀA - left rightᵀ``, without the matrix (Hsieh et al. 2008, Section 3.1).

    Sweeps until the gap of the gradients as they were met is within ``tol``; how many were done.
    """
    cdef Py_ssize_t j, k, f, n = theta.shape[0], n_reduced = reduced.shape[0]
    cdef double gradient, moved, change, gap
    cdef int done = 0
    with nogil:
        while done < max_sweeps:
            done += 1
            gap = 0.0
            for j in range(n):
                if diagonal[j] <= 0.0:
                    continue
                gradient = -c[j]
                for k in range(starts[j], starts[j + 1]):
                    gradient += entries[k] * product[rows[k]]
                for f in range(n_reduced):
                    gradient -= left[j, f] * reduced[f]
                moved = min(max(theta[j] - gradient / diagonal[j], -radius), radius)
                change = moved - theta[j]
                gradient += change * diagonal[j]
                if change != 0.0:
                    theta[j] = moved
                    for k in range(starts[j], starts[j + 1]):
                        product[rows[k]] += change * entries[k]
                    for f in range(n_reduced):
                        reduced[f] += change * right[j, f]
                gap += gradient * moved + radius * fabs(gradient)
            if gap <= tol:
                break
    return done
