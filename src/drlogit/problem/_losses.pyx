"""The robust loss of the flip pair, summed over samples (:mod:`drlogit.problem.losses`)."""
from drlogit.rows._clones cimport cloned
from drlogit.rows._shapes cimport fit


cdef cloned add_losses(Py_ssize_t n, const double* u, const double* w,
                       double* total) noexcept nogil:
    cdef Py_ssize_t i
    cdef double s, sum_ = 0.0
    for i in range(n):
        sum_ += w[i] * loss_terms(u[i], &s)
    total[0] = sum_


def log_loss_sum(const double[::1] u, const double[::1] w):
    """``Σ w h(u)``."""
    cdef double loss = 0.0
    fit(w.shape[0] == u.shape[0], "weights")
    if u.shape[0]:      # an empty block has no address
        with nogil:
            add_losses(u.shape[0], &u[0], &w[0], &loss)
    return loss


def flip_sums(const double[::1] u, const double[::1] w, const double[::1] kinks,
              const double[::1] trust):
    """``Σ w (u - kink)_+``, and the weight times flip cost of samples above their kink."""
    cdef Py_ssize_t i
    cdef bint many = kinks.shape[0] > 1
    cdef double kink, gain = 0.0, above = 0.0
    fit(w.shape[0] == u.shape[0] and (trust is None or trust.shape[0] == u.shape[0]),
        "weights and trust")
    fit(kinks.shape[0] == 1 or kinks.shape[0] == u.shape[0], "kinks")
    with nogil:
        for i in range(u.shape[0]):
            kink = kinks[i if many else 0]
            if u[i] > kink:
                gain += w[i] * (u[i] - kink)
                above += w[i] * (1.0 if trust is None else trust[i])
    return gain, above
