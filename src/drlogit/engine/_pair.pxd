cdef enum:
    LEVELS = 320        # of step lengths
    SCALARS = 8         # after Gram matrix and three adjoints: loss, value, products, degree, over, entropy, new

cdef void limit(double* costs, double fall, double cost) noexcept nogil

cdef enum:
    U, S, T, R, C, A, Q                 # margin, dual probability, slacks, multipliers, 1/(c r + a t)

cdef class PairState:
    """What a block of samples remembers; arrays that a visit adds are new ones, those of before stay as they are."""
    cdef const double[::1] kappa        # what flips cost, 0 where no label can flip; empty where none can at all
    cdef const double[::1] slope        # of a linear loss -s u, per sample; empty: the log-loss
    cdef double[:, ::1] now             # U to Q; U and S where no label can flip
    cdef double[:, ::1] second          # of predict: second-order terms of both products
    cdef double[:, ::1] step            # of correct: changes of u, t, r, c (that of a is minus that of c)

cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double price)
