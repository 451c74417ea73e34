"""Coordinate minimisation over a box: each step depends on the one before."""
from libc.math cimport fabs
from drlogit.rows._shapes cimport fit


def sweep(double[:, ::1] H, double[::1] gradient, double[::1] theta, double radius, double tol, int max_sweeps):
    """Sweeps over the coordinates, in place; stops within ``tol``; how many were done."""
    cdef Py_ssize_t i, j, n = theta.shape[0]
    cdef double moved, change, gap
    cdef int done = 0
    fit(H.shape[0] == n and H.shape[1] == n and gradient.shape[0] == n, "matrix and gradient")
    with nogil:
        for done in range(1, max_sweeps + 1):
            for j in range(n):
                if H[j, j] <= 0.0: continue
                moved = min(max(theta[j] - gradient[j] / H[j, j], -radius), radius)
                change = moved - theta[j]
                if change != 0.0:
                    theta[j] = moved
                    for i in range(n): gradient[i] += change * H[j, i]
            gap = 0.0
            for j in range(n): gap += gradient[j] * theta[j] + radius * fabs(gradient[j])
            if gap <= tol: break
    return done
