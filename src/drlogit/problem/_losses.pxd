"""The log-loss and its conjugate, for compiled loops."""
from libc.math cimport exp, fabs, log, log1p


cdef inline double loss_terms(double u, double* s) noexcept nogil:
    """h(u) and s = 1/(1 + e^u)."""
    cdef double e = exp(-fabs(u)), q = 1.0 / (1.0 + e)
    s[0] = e * q if u > 0.0 else q
    return (e * (1.0 - 0.5 * e) if e < 1e-6 else log(1.0 + e)) - (u if u < 0.0 else 0.0)


cdef inline double entropy(double s) noexcept nogil:
    return -(s * log(s) + (1.0 - s) * log1p(-s)) if 0.0 < s < 1.0 else 0.0
