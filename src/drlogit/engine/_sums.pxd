"""The sums that visits to the samples return, and where each of them is: the only place that knows.

A visit returns one flat array, so that blocks of rows (in memory, in files, with Dask workers) are
combined by adding arrays.  P counts the coefficients with λ, which is the last of them.

linearisation  matrix (P·P, its lower triangle; or nothing), then three adjoints of P: gradient,
               affine and centring part of the right side of (8); SCALARS
prediction     adjoint of the second-order terms (P), CHANGES, costs of step lengths (2·LEVELS)
correction     SLOPE and CURVATURE of the loss along the direction, costs of step lengths
dual point     adjoint (P; the entry of λ is minus what flips and moves cost), PROOF

Derivation: docs/algorithm.md, (4), (8), (10), (11).
"""

cpdef enum:
    # scalars of a linearisation
    LOSS                # Σ w h, or with domains Σ w max_k (h - λ d) over all pieces
    VALUE               # the objective without ελ
    PRODUCTS            # Σ of slacks times multipliers
    DEGREE              # Σ of weights of these products
    MISSING             # loss above that of the pieces that the state has
    ENTROPY             # Σ w H(s), before a dual point is feasible: (11)
    NEW_PIECES
    COUNT               # hinges in the matrix, or pieces
    SCALARS

cpdef enum:
    # what becomes of the products along a predictor's primal, dual and both steps
    PRIMAL_CHANGE, DUAL_CHANGE, BOTH_CHANGE, CHANGES

cpdef enum:
    SLOPE, CURVATURE, PARABOLA

cpdef enum:
    # of a dual point: Σ w H(s), and how many additions any sum has been through
    PROOF_ENTROPY, PROOF_ADDITIONS, PROOF

cpdef enum:
    LEVELS = 320        # of step lengths

cdef struct Linearised:
    double* matrix
    double* lam_column      # the last P numbers of the matrix, if there is one
    double* gradient
    double* affine
    double* centring
    double* scalars

cdef inline Linearised linearised(double* sums, Py_ssize_t P, Py_ssize_t matrix) noexcept nogil:
    """The parts of a linearisation whose matrix has so many entries."""
    cdef Linearised parts
    parts.matrix, parts.gradient = sums, sums + matrix
    parts.lam_column = parts.gradient - P
    parts.affine, parts.centring = parts.gradient + P, parts.gradient + 2 * P
    parts.scalars = parts.gradient + 3 * P
    return parts

cdef void book(double* costs, double fall, double cost) noexcept nogil
cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double price)
