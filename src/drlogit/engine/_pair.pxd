cdef enum:
    LEVELS = 640        # of step lengths
    SCALARS = 8         # after Gram matrix and three adjoints: loss, value, products, degree, over, entropy, new

cdef double loss_terms(double u, double* s) noexcept nogil
cdef double entropy(double s) noexcept nogil
cdef double corrected(double s, double ds) noexcept nogil
cdef void limit(double* costs, double fall, double cost) noexcept nogil

cdef class PairState:
    """What a block of samples remembers; arrays that a visit adds are new ones, those of before stay as they are."""
    cdef const double[::1] kappa        # of all samples, or one for all
    cdef const double[::1] slope        # of a linear loss -s u, per sample; empty: the log-loss
    cdef double[:, ::1] now             # u, t, r, c, a
    cdef double[:, ::1] second          # of predict: second-order terms
    cdef double[:, ::1] step            # of correct: du, and changes of t, r, c, a in proportion

cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double primal_price, double dual_price)
