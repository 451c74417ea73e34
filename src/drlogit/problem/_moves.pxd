"""The oracle's parts that other compiled modules use: losses, items, their order."""
from libc.math cimport exp, fabs, log, log1p


cdef inline double loss_terms(double u, double* s) noexcept nogil:
    """h(u) and s = 1/(1 + e^u)."""
    cdef double e = exp(-fabs(u)), q = 1.0 / (1.0 + e)
    s[0] = e * q if u > 0.0 else q
    return (e * (1.0 - 0.5 * e) if e < 1e-6 else log(1.0 + e)) - (u if u < 0.0 else 0.0)


cdef inline double entropy(double s) noexcept nogil:
    return -(s * log(s) + (1.0 - s) * log1p(-s)) if 0.0 < s < 1.0 else 0.0


cdef struct Item:
    double gain, cost, rate
    Py_ssize_t number       # g: group g changes; G + 2j, G + 2j + 1: bounded feature j goes to its lower, upper end


cdef struct Priced:
    # A model and what moves cost: coefficients of all columns; least, greatest of each group's
    # categories; costs of groups; ends, costs and columns of bounded features.
    Py_ssize_t n_groups, n_bounded
    const double* beta
    const double* low
    const double* high
    const double* group_costs
    const double* lower
    const double* upper
    const double* bounded_costs
    const int* bounded


cdef Py_ssize_t sorted_items(const Priced* m, const int* now, const double* values, double sign,
                             double least, Item* out) noexcept nogil
