"""Step lengths from sums: what it costs to go further than samples allow, by levels of lengths.

A sample that does not allow the whole step books the cost of passing it (10) at the level of the
longest step that it allows.  Levels are the first five bits of the significand of one over that
length: 32 for each factor of two, without a logarithm.
"""
from libc.string cimport memcpy
from drlogit.rows._shapes cimport fit

cdef long long SHIFT = 47, FIRST = 1023 << 5


cdef void book(double* costs, double fall, double cost) noexcept nogil:
    """Book the cost of passing a sample whose longest step is one over ``fall`` > 1."""
    cdef long long level
    memcpy(&level, &fall, sizeof(double))
    level = (level >> SHIFT) - FIRST
    costs[level if level < LEVELS - 1 else LEVELS - 1] += cost


cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double price):
    """Longest primal and dual steps that pass samples at no more than this price.

    Costs begin at ``first``; where the sums end there, no sample limits a step.
    """
    cdef double found[2]
    cdef double total
    cdef long long level
    cdef Py_ssize_t kind, k
    for kind in range(2):
        total, found[kind] = 0.0, 1.0
        if sums.shape[0] == first:
            continue
        fit(sums.shape[0] == first + 2 * LEVELS, "costs of steps")
        for k in range(LEVELS - 1, -1, -1):
            total += sums[first + kind * LEVELS + k]
            if total > price:
                level = (k + 1 + FIRST) << SHIFT
                memcpy(&found[kind], &level, sizeof(double))
                found[kind] = 1.0 / found[kind]
                break
    return found[0], found[1]
