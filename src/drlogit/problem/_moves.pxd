"""The oracle's parts that other compiled modules use: items and their order."""


cdef struct Item:
    double gain, cost, rate
    Py_ssize_t number       # its bit in a set of items (``Domains.n_items``)
    Py_ssize_t before       # the item that it takes the place of, -1 for none


cdef struct Priced:
    # A model and what moves cost: coefficients of all columns; least, greatest of each unordered
    # group's categories; costs of these groups; ends, costs and columns of bounded features;
    # edges of ordered groups by label and level (LevelMoves).
    Py_ssize_t n_groups, n_bounded, n_ordered, n_levels, most
    const double* beta
    const double* low
    const double* high
    const double* group_costs
    const double* lower
    const double* upper
    const double* bounded_costs
    const int* bounded
    const Item* edges
    const int* counts


cdef class LevelMoves:
    cdef readonly Py_ssize_t n_ordered, n_levels, most      # most: edges of a level
    cdef const int[::1] first, places, nearest
    cdef const double[::1] costs
    cdef Py_ssize_t n_groups
    cdef Item* edges
    cdef int[::1] counts
    cdef object kept, given
    cdef void price(self, const double* beta, Priced* m) noexcept nogil
    cdef void climb(self, const double* beta, Py_ssize_t g, Py_ssize_t own, Py_ssize_t label,
                    Py_ssize_t square) noexcept nogil
    cdef double coefficient(self, const double* beta, Py_ssize_t level) noexcept nogil


cdef Py_ssize_t sorted_items(const Priced* m, const int* now, const int* levels,
                             const double* values, double sign, double least,
                             Item* out) noexcept nogil
