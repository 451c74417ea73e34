cimport cython
from drlogit.rows._products cimport Rows

cdef enum:
    LEVELS = 640        # of step lengths
    SCALARS = 8         # after Gram matrix and three adjoints: loss, value, products, degree, over, entropy, new

cdef double loss_terms(double u, double* s) noexcept nogil
cdef double entropy(double s) noexcept nogil
cdef double corrected(double s, double ds) noexcept nogil
cdef void limit(double* costs, double fall, double cost) noexcept nogil

cdef class Samples:
    """What the driver sees of the samples: visits, each of which returns one flat array of sums."""
    cdef readonly int visits
    cdef readonly double allowance      # rise of the loss, in units of the complementarity
    cdef double slope[2]                # of a linear loss -s u for labels -, +; zero: the log-loss
    cdef double terms(self, double u, double label, double* s, double* curvature) noexcept nogil
    cpdef void open(self, double[::1] coef, double mu)
    cpdef double[::1] linearise(self, double[::1] coef, double primal, double dual, double mu)
    cpdef double[::1] predict(self, double[::1] dcoef)
    cpdef double[::1] correct(self, double[::1] dcoef, double centre, double share)
    cpdef double[::1] certify(self, double[::1] dcoef, bint first)
    cpdef void settle(self)
    cpdef void refuse(self)

@cython.final
cdef class HingeSamples(Samples):
    cdef readonly Rows rows
    cdef const double[::1] y, w
    cdef double[:, ::1] now, after      # u, t, r, c, a
    cdef double[:, ::1] step            # du, dt, dr, dc, da
    cdef double[:, ::1] second, columns # columns: workspace of a panel
    cdef double[::1] conditions, predicted, limits
    cdef double light, kappa
    cdef void _limits(self, Py_ssize_t i, double t, double r, double c, double a, double dt, double dr,
                      double dc, double da, double* costs) noexcept nogil

@cython.final
cdef class LossSamples(Samples):
    cdef readonly Rows rows
    cdef const double[::1] y, w
    cdef double[::1] now, after, direction
    cdef double[:, ::1] columns
    cdef double[::1] conditions, predicted, limits, proof

cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double primal_price, double dual_price)
