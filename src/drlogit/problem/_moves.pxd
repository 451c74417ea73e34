"""The oracle's parts that other compiled modules use: items and their order."""


cdef struct Item:
    double gain, cost, rate
    Py_ssize_t number       # its bit in a set of items (``Domains.n_items``)


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


cdef class Oracle:
    cdef Priced m
    cdef Item* items
    cdef Py_ssize_t most, n_items       # items of a sample; of all, with both ends of features
    cdef object kept
