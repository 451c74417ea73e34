cdef enum:
    LEVELS = 320        # of step lengths
    # after Gram matrix and three adjoints: loss, value, products, degree, over, entropy, new
    SCALARS = 8

cdef void limit(double* costs, double fall, double cost) noexcept nogil

cdef enum:
    # margin, dual probability, slacks, multipliers, 1/(c r + a t); how many
    U, S, T, R, C, A, Q, TABLES

cdef class PairState:
    """What a block of samples remembers; arrays that a visit adds are new ones, those of before
    stay as they are.
    """
    # what flips cost, NEVER where the label cannot flip; empty in a problem without flips
    cdef const double[::1] kappa
    cdef const double[::1] slope        # of a linear loss -s u, per sample; empty: the log-loss
    cdef double[:, ::1] now             # U to Q; U and S in a problem without flips
    cdef double[:, ::1] second          # of predict: second-order terms of both products
    # of correct: changes of u, t, r, c (that of a is minus that of c)
    cdef double[:, ::1] step

cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double price)
