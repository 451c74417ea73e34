"""Everything of size n but the cones: the reduced system and the certificate from the sums.

Compiled because NumPy takes a microsecond for each operation whatever its size, and an iteration
has a hundred of these: more than the samples take on 500 rows.

    P          coefficients with λ, which is the last       x      coordinates of the iterate
    scale      (β, b, λ) = scale · x                        dx     the last direction
    residual   ρ of (4)                                     unit   scaling to unit diagonal
    sums       of the last linearisation, in user's units   proof  residual of the dual's equations

Derivation: docs/algorithm.md, (8), (9) and (11) to (14).
"""
import numpy as np
from libc.math cimport INFINITY
from scipy.linalg.cython_blas cimport dtrsv
from drlogit.dual._cholesky cimport shifted_factor
from drlogit.dual.bound import DualSums, charged_value
from drlogit.rows._shapes cimport fit
from ._cones cimport Cone, dot
from . cimport _sums
from ._sums cimport Linearised, linearised
from .settings import SETTINGS

cdef int ONE = 1
cdef double GUIDE = 1.0, PREDICTOR = SETTINGS.class_predictor, CORRECTOR = SETTINGS.class_corrector
cdef double CORRECTION = SETTINGS.class_correction

# Trust rows hold an iterate if they push by more than this share of ε (less when the
# complementarity is below HELD_BELOW), once the complementarity is below HELD_NEAR.
cdef double HELD_SHARE = 1e-2, HELD_BELOW = 1e-6, HELD_NEAR = 2e-2


cdef class Newton:
    """The iterate (x, λ) in coordinates where a typical row has length one, and its system (8).

    ``coordinates`` is what the bound has to know of (β, b).  ``length`` is how many additions a sum
    takes, a guess until the samples tell.  With ``wide`` (``protocols.System``) no matrix is formed
    and the system is solved by products.
    """
    cdef readonly Cone cone
    # length of the Gram matrix in the sums, where the scalars begin
    cdef readonly Py_ssize_t size, square, scalars
    cdef readonly object wide           # the system behind products, or None
    cdef double[::1] x, dcoef, best_x
    cdef object change                  # the last direction in the user's units, as an array
    cdef double[::1] proof, dx, residual, scale, rhs, unit, sums
    cdef double[:, ::1] factor
    cdef readonly object coordinates
    # ε in the user's units; rounding of the norm per addition; additions
    cdef double given, slop, length
    cdef readonly double epsilon, complementarity, mu, primal, best, expected, loss
    cdef public double dual
    cdef readonly bint held
    cdef public bint pinned             # λ stays (epsilon_max)

    def __init__(self, scale, epsilon, cone, coordinates, length, wide=None):
        P = len(scale)
        self.size, self.scale, self.cone, self.wide = P, scale, cone, wide
        self.square = P * P if wide is None else wide.square
        self.scalars = self.square + 3 * P
        self.given, self.epsilon = epsilon, epsilon * scale[P - 1]
        self.coordinates, self.length = coordinates, length
        self.slop = coordinates.used(np.zeros(P - 1), 2.0**-53) * scale[P - 1]
        self.x, self.dx, self.residual, self.rhs = np.zeros((4, P))
        self.unit, self.proof, self.best_x = np.zeros((3, P))
        self.change = np.zeros(P)
        self.dcoef = self.change
        self.factor = np.zeros((P, P) if wide is None else (1, 1))

    def open(self, double[::1] x, double mu):
        cdef Py_ssize_t j
        fit(x.shape[0] == self.size, "coordinates")
        for j in range(self.size):
            self.x[j], self.dx[j] = x[j], 0.0
        self.dual, self.best = 0.0, INFINITY
        self.cone.open(&self.x[0], mu)

    def linearise(self, double[::1] sums, curved=None):
        """Residuals, the expected bound (11), and the factored matrix; False if it has no factor.

        ``curved`` is what a system that forms no Gram matrix needs of the samples.
        """
        cdef Py_ssize_t j, P = self.size
        fit(sums.shape[0] == self.scalars + _sums.SCALARS, "sums")
        cdef Linearised parts = linearised(&sums[0], P, self.square)
        cdef const double* scalars = parts.scalars
        self.sums = sums
        for j in range(P):
            self.residual[j] = self.scale[j] * parts.gradient[j]
        self.residual[P - 1] += self.epsilon
        self.cone.gradient(&self.residual[0], False)
        self.loss = scalars[_sums.LOSS]
        self.primal = self.epsilon * self.x[P - 1] + scalars[_sums.VALUE]
        if self.primal < self.best:
            self.best = self.primal
            self.best_x[:] = self.x
        self.complementarity = max(scalars[_sums.PRODUCTS] + self.cone.after(0.0, 0.0), 1e-300)
        self.mu = self.complementarity / max(scalars[_sums.DEGREE] + self.cone.degree, 1e-300)
        self.expected = scalars[_sums.ENTROPY] + dot(&self.residual[0], &self.x[0], P)
        self.expected -= self.cone.trust_force() * self.x[P - 1]
        if self.wide is not None:
            return self.build(curved)
        return self.factorise(False)

    def residuals(self):
        """ρ of (4) at the last linearisation, in scaled coordinates."""
        return np.array(self.residual)

    def build(self, curved):
        """The system behind products."""
        cdef double[:, ::1] parts = np.zeros((3, self.size))
        self.cone.parts(&parts[0, 0], &parts[1, 0], &parts[2, 0])
        matrices = np.asarray(self.sums)[:self.square]
        return self.wide.build(curved, matrices, np.asarray(parts), self.pinned)

    cdef bint factorise(self, bint proof) noexcept:
        """The factor of the matrix of (8); False if it has none."""
        cdef Py_ssize_t j, k, P = self.size
        cdef const double* gram = &self.sums[0]
        cdef const double* scale = &self.scale[0]
        cdef double* matrix = &self.factor[0, 0]
        for j in range(P):
            for k in range(j + 1):
                matrix[j * P + k] = scale[j] * scale[k] * gram[j * P + k]
        self.cone.curvature(matrix, proof)
        if self.pinned:
            for j in range(P):
                matrix[(P - 1) * P + j] = 0.0
        return shifted_factor(matrix, &self.unit[0], <int>P)

    # --- the certificate ------------------------------------------------------------------------

    def begin_proof(self):
        """From the iterate's multipliers, without the trust rows."""
        cdef Py_ssize_t j, P = self.size
        cdef const double* gradient = &self.sums[self.square]
        for j in range(P):
            self.proof[j] = self.scale[j] * gradient[j]
        self.proof[P - 1] += self.budget()
        self.cone.begin_proof()

    cdef double budget(self) noexcept:
        """What of ε the sums may use so that, with their rounding, they do not use more."""
        cdef double additions = self.length + 8
        return self.epsilon * (1.0 - 2.0**-51 * additions) - 1.01 * self.slop * additions

    def end_proof(self):
        """Back to the system of the steps."""
        self.rows_of_proof(False)

    cdef void rows_of_proof(self, bint proof) noexcept:
        if self.cone.trust_force() > 0.0:
            self.factorise(proof)

    def correction(self):
        """Newton's step to the dual's equations, at unchanged complementarity."""
        cdef Py_ssize_t j
        self.rows_of_proof(True)
        for j in range(self.size):
            self.rhs[j] = self.proof[j]
        self.cone.gradient(&self.rhs[0], True)
        for j in range(self.size):
            self.rhs[j] = -self.rhs[j]
        self.solve(CORRECTION, None)
        self.cone.respond(&self.dx[0])
        return self.change.copy()

    def prove(self, double[::1] sums, flow=None):
        """The bound (13), (14) of a dual point from its sums; negative if it proves nothing.

        ``flow`` is that between several labels.
        """
        cdef Py_ssize_t j, P = self.size
        fit(sums.shape[0] == P + _sums.PROOF, "sums of a dual point")
        cdef double entropy = sums[P + _sums.PROOF_ENTROPY]
        self.length = sums[P + _sums.PROOF_ADDITIONS]
        for j in range(P):
            self.proof[j] = self.scale[j] * sums[j]
        self.proof[P - 1] += self.budget()
        found = DualSums(-np.asarray(sums[:P - 1]), -sums[P - 1], entropy, self.length, flow)
        value, _ = charged_value(self.coordinates, self.given, found)
        self.dual = max(self.dual, value)
        return value

    # --- steps ----------------------------------------------------------------------------------

    cdef void right_side(self, double centre, double share, const double* predicted) noexcept:
        """Right side of (8) for the step to ``centre`` less a share of the second-order terms.

        The cone's targets are set before.
        """
        cdef Py_ssize_t j, P = self.size
        cdef Linearised parts = linearised(&self.sums[0], P, self.square)
        cdef double along
        for j in range(P):
            along = parts.affine[j] + centre * parts.centring[j]
            if predicted != NULL:
                along += share * predicted[j]
            self.rhs[j] = -self.residual[j] - self.scale[j] * along
        self.cone.add_target_forces(&self.rhs[0])
        if self.pinned:
            self.rhs[P - 1] = 0.0

    cdef int solve(self, double rtol, tuple terms) except -1:
        """dx for rhs; ``rtol`` and ``terms`` are for a system without a matrix (``System``)."""
        cdef Py_ssize_t j
        cdef int size = self.size
        cdef double* rhs = &self.rhs[0]
        cdef const double[::1] found
        if self.wide is not None:
            found = self.wide.solve(np.asarray(self.rhs), rtol, terms)
            for j in range(size):
                self.dx[j] = found[j]
        else:
            for j in range(size):
                rhs[j] *= self.unit[j]
            # dpotrs copies the factor
            dtrsv("L", "N", "N", &size, &self.factor[0, 0], &size, rhs, &ONE)
            dtrsv("L", "T", "N", &size, &self.factor[0, 0], &size, rhs, &ONE)
            for j in range(size):
                self.dx[j] = self.unit[j] * rhs[j]
        for j in range(size):
            self.dcoef[j] = self.scale[j] * self.dx[j]
        return 0

    def decrement(self):
        """The squared Newton decrement: twice what a step to the central path should gain."""
        cdef Py_ssize_t j
        cdef int size = self.size
        cdef double* rhs = &self.rhs[0]
        self.cone.set_targets(self.mu, 0.0)
        self.right_side(self.mu, 0.0, NULL)
        if self.wide is not None:
            self.solve(GUIDE, (None, self.mu, 0.0))
            return dot(rhs, &self.dx[0], size) + self.wide.work
        for j in range(size):
            rhs[j] *= self.unit[j]
        dtrsv("L", "N", "N", &size, &self.factor[0, 0], &size, rhs, &ONE)
        return dot(rhs, rhs, size)

    def predictor(self):
        """The direction with all products to zero, in the user's coefficients."""
        self.cone.set_targets(0.0, 0.0)
        self.right_side(0.0, 0.0, NULL)
        self.solve(PREDICTOR, (None, 0.0, 0.0))
        self.cone.direction(&self.dx[0])
        return self.change.copy()

    def corrector(self, double centre, double share, double[::1] predicted, state=None):
        """The direction to ``centre``, less a share of the predictor's second-order terms.

        ``state`` is that of the samples after the prediction.
        """
        fit(predicted.shape[0] >= self.size + _sums.CHANGES, "sums of a prediction")
        self.cone.set_targets(centre, share)
        self.right_side(centre, share, &predicted[0])
        self.solve(CORRECTOR, (state, centre, share))
        self.cone.direction(&self.dx[0])
        return self.change.copy()

    def longest(self):
        return self.cone.longest()

    def after(self, double primal, double dual, double[::1] predicted):
        """Complementarity after a predictor step of these lengths."""
        cdef Py_ssize_t P = self.size
        fit(predicted.shape[0] >= P + _sums.CHANGES, "sums of a prediction")
        return (self.sums[self.scalars + _sums.PRODUCTS]
                + primal * predicted[P + _sums.PRIMAL_CHANGE]
                + dual * predicted[P + _sums.DUAL_CHANGE]
                + primal * dual * predicted[P + _sums.BOTH_CHANGE]
                + self.cone.after(primal, dual))

    def trial(self, double primal):
        """The coefficients after a primal step of this length."""
        cdef Py_ssize_t j
        coef = np.empty(self.size)
        cdef double[::1] view = coef
        for j in range(self.size):
            view[j] = self.scale[j] * (self.x[j] + primal * self.dx[j])
        return coef

    def best_model(self):
        """The coefficients and λ of the least objective so far."""
        return np.multiply(self.best_x, self.scale)

    @property
    def lam(self):
        return self.x[self.size - 1] * self.scale[self.size - 1]

    def move(self, double primal, double dual):
        cdef Py_ssize_t j
        if primal == 0.0 and dual == 0.0:
            return
        cdef double force
        for j in range(self.size):
            self.x[j] += primal * self.dx[j]
        self.cone.move(primal, dual)
        # Trust rows carry what pieces should while the iterate is close and they still push.
        force = HELD_SHARE * min(1.0, self.complementarity / HELD_BELOW) * self.epsilon
        self.held = self.complementarity < HELD_NEAR and self.cone.trust_force() > force
        self.cone.widen_trust(&self.x[0], self.mu, self.held)
