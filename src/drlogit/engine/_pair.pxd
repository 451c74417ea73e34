cdef enum:
    LEVELS = 320        # of step lengths
    SCALARS = 8         # after Gram matrix and three adjoints: loss, value, products, degree, over, entropy, new

cdef void limit(double* costs, double fall, double cost) noexcept nogil

cdef enum:
    U, S, T, R, C, A, Q, TABLES         # margin, dual probability, slacks, multipliers, 1/(c r + a t); how many

cdef class PairState:
    """What a block of samples remembers; arrays that a visit adds are new ones, those of before stay as they are."""
    cdef const double[::1] kappa        # what flips cost, NEVER where the label cannot flip; empty in a problem without flips
    cdef const double[::1] slope        # of a linear loss -s u, per sample; empty: the log-loss
    cdef double[:, ::1] now             # U to Q; U and S in a problem without flips
    cdef double[:, ::1] second          # of predict: second-order terms of both products
    cdef double[:, ::1] step            # of correct: changes of u, t, r, c (that of a is minus that of c)

cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double price)
