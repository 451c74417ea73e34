"""Inequalities of size n: the norm's cone, rows of groups and bounded features, and both together.

``_cones.pxd`` says what a cone does.  θ are the coordinates that the norm is taken of.

    slack, mult        slacks σ(x, λ) and multipliers m of section 2
    dslack, dmult      their changes along the last direction
    target             by how much a step is to change their products, (6)
    proof              multipliers of the certificate: those of the iterate after corrections (12),
                       without the trust rows, which are no part of the problem
    weight             each product's share of the cone's one complementarity target

Derivation: docs/algorithm.md, section 4, and (12).
"""
import numpy as np
from libc.math cimport INFINITY, fabs, hypot, sqrt

from .settings import SETTINGS

cdef double TRUST = SETTINGS.trust, BINDING = SETTINGS.binding


cdef double dot(const double* a, const double* b, Py_ssize_t n) noexcept:
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        total += a[i] * b[i]
    return total


cdef class Cone:
    def allocate(self, size):
        """Room for slacks and multipliers, their changes and targets, and the proof."""
        self.slack, self.mult, self.dslack = np.zeros((3, size))
        self.dmult, self.target, self.proof = np.zeros((3, size))

    cdef void open(self, const double* x, double mu) noexcept:
        pass
    cdef void refresh(self) noexcept:
        pass
    cdef void add_multipliers(self, const double* mult, double* out) noexcept:
        pass
    cdef void parts(self, double* own, double* rank_one, double* coupling) noexcept:
        pass
    cdef void set_targets(self, double centre, double share) noexcept:
        pass
    cdef void add_target_forces(self, double* rhs) noexcept:
        pass
    cdef void direction(self, const double* dx) noexcept:
        pass
    cdef (double, double) longest(self) noexcept:
        return 1.0, 1.0
    cdef void widen_trust(self, const double* x, double mu, bint held) noexcept:
        pass
    cdef double trust_force(self) noexcept:
        return 0.0

    cdef void curvature(self, double* matrix, bint proof) noexcept:
        """matrix += a diagonal and a rank one, as ``parts`` has them: the lower triangle."""
        cdef Py_ssize_t j, k, size = self.last + 1
        cdef double[:, ::1] parts = np.zeros((3, size))
        self.parts(&parts[0, 0], &parts[1, 0], &parts[2, 0])
        for j in range(size):
            for k in range(j + 1):
                matrix[j * size + k] += parts[1, j] * parts[1, k]
            matrix[j * size + j] += parts[0, j]

    cdef void gradient(self, double* out, bint proof) noexcept:
        """out -= what the multipliers (or those of the proof) push at (x, λ)."""
        if self.mult.shape[0]:
            self.add_multipliers(&self.proof[0] if proof else &self.mult[0], out)

    cdef void begin_proof(self) noexcept:
        self.proof[:] = self.mult

    cdef void respond(self, const double* dx) noexcept:
        """Change the multipliers of the proof along dx, at unchanged products (12)."""
        cdef Py_ssize_t k
        for k in range(self.target.shape[0]):
            self.target[k] = 0.0
        self.direction(dx)
        for k in range(self.proof.shape[0]):
            self.proof[k] += self.dmult[k]

    cdef double after(self, double primal, double dual) noexcept:
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(self.slack.shape[0]):
            total += ((self.slack[k] + primal * self.dslack[k])
                      * (self.mult[k] + dual * self.dmult[k]))
        return total

    cdef void move(self, double primal, double dual) noexcept:
        cdef Py_ssize_t k
        for k in range(self.slack.shape[0]):
            self.slack[k] += primal * self.dslack[k]
            self.mult[k] += dual * self.dmult[k]
        self.refresh()


cdef class LinearCone(Cone):
    """Slacks that are linear in (x, λ); the target of a product is ``weight · centre``."""

    cdef void set_targets(self, double centre, double share) noexcept:
        cdef Py_ssize_t k
        for k in range(self.slack.shape[0]):
            self.target[k] = (centre * self.weight[k] - self.slack[k] * self.mult[k]
                              - share * self.dslack[k] * self.dmult[k])

    cdef (double, double) longest(self) noexcept:
        cdef double primal = 1.0, dual = 1.0          # falls, in proportion
        cdef Py_ssize_t k
        for k in range(self.slack.shape[0]):
            primal = max(primal, -self.dslack[k] / self.slack[k])
            dual = max(dual, -self.dmult[k] / self.mult[k])
        return 1.0 / primal, 1.0 / dual

    cdef void respond(self, const double* dx) noexcept:
        cdef Py_ssize_t k
        Cone.respond(self, dx)
        for k in range(self.proof.shape[0]):
            self.proof[k] = max(self.proof[k], 0.0)


cdef class CrossPolytope(LinearCone):
    """‖θ‖₁ ≤ λ (ℓ∞ transport): v_j ± θ_j ≥ 0 and λ - Σ v ≥ 0, v eliminated: diagonal plus rank one.

    Slacks are (v-θ, v+θ, λ-Σv) with multipliers (p, q, t).  The equation of v is t = p_j + q_j;
    each step also removes its residual.
    """

    def __init__(self, where, last):
        m = len(where)
        self.m, self.last, self.degree, self.where = m, last, 1.0 if m else 0.0, where
        self.weight = np.concatenate([np.full(2 * m, 0.25 / max(m, 1)), [0.5]])
        self.allocate(2 * m + 1)
        self.gamma, self.alpha = np.zeros((2, m))

    cdef void open(self, const double* x, double mu) noexcept:
        cdef Py_ssize_t j, m = self.m
        cdef double room = x[self.last], v
        for j in range(m):
            room -= fabs(x[self.where[j]])
        for j in range(m):
            v = fabs(x[self.where[j]]) + 0.5 * room / m
            self.slack[j], self.slack[m + j] = v - x[self.where[j]], v + x[self.where[j]]
        self.slack[2 * m] = 0.5 * room if m else 1.0
        for j in range(2 * m + 1):
            self.mult[j] = self.weight[j] * mu / self.slack[j] if m else 0.0
        self.dslack[:] = 0.0
        self.dmult[:] = 0.0

    cdef void add_multipliers(self, const double* mult, double* out) noexcept:
        cdef Py_ssize_t j
        for j in range(self.m):
            out[self.where[j]] += mult[j] - mult[self.m + j]
        out[self.last] -= mult[2 * self.m]

    cdef void stiffness(self) noexcept:
        """γ_j = p/s + q/s' and α_j = p/s - q/s' of (v-θ, v+θ); stiffness of t with v eliminated."""
        cdef Py_ssize_t j, m = self.m
        cdef double p, q, compliance = 0.0
        for j in range(m):
            p, q = self.mult[j] / self.slack[j], self.mult[m + j] / self.slack[m + j]
            self.gamma[j], self.alpha[j] = p + q, p - q
            compliance += 1.0 / (p + q)
        self.stiff_t = 1.0 / (self.slack[2 * m] / self.mult[2 * m] + compliance)

    cdef void parts(self, double* own, double* rank_one, double* coupling) noexcept:
        """γ - α²/γ on the diagonal of θ, and stiff_t · (α/γ, -1)(α/γ, -1)ᵀ with λ."""
        cdef Py_ssize_t j, i
        cdef double up, low
        if self.m == 0:
            return
        self.stiffness()
        for j in range(self.m):
            i = self.where[j]
            up, low = self.mult[j] / self.slack[j], self.mult[self.m + j] / self.slack[self.m + j]
            own[i] += 4.0 * up * low / self.gamma[j]
            rank_one[i] += sqrt(self.stiff_t) * self.alpha[j] / self.gamma[j]
            coupling[i] -= self.stiff_t * self.alpha[j] / self.gamma[j]
        rank_one[self.last] -= sqrt(self.stiff_t)
        coupling[self.last] += self.stiff_t

    cdef double missing(self, Py_ssize_t j) noexcept:
        """The residual of v's equation t = p_j + q_j, with its targets."""
        return (self.target[j] / self.slack[j] + self.target[self.m + j] / self.slack[self.m + j]
                + self.mult[j] + self.mult[self.m + j] - self.mult[2 * self.m])

    cdef void add_target_forces(self, double* rhs) noexcept:
        """Forces of the targets on θ and λ, after v has responded to them and to its residual."""
        cdef Py_ssize_t j, m = self.m
        cdef double up, low, through_v, total = 0.0
        if m == 0:
            return
        for j in range(m):
            total += self.missing(j) / self.gamma[j]
        # dt when dθ = dλ = 0
        self.dt_still = self.stiff_t * (self.target[2 * m] / self.mult[2 * m] + total)
        for j in range(m):
            up, low = self.target[j] / self.slack[j], self.target[m + j] / self.slack[m + j]
            through_v = self.alpha[j] * (self.missing(j) - self.dt_still) / self.gamma[j]
            rhs[self.where[j]] -= up - low - through_v
        rhs[self.last] += self.dt_still

    cdef void direction(self, const double* dx) noexcept:
        cdef Py_ssize_t j, m = self.m
        cdef double dv, dt, total = 0.0, sum_v = 0.0
        if m == 0:
            return
        for j in range(m):
            total += (self.missing(j) + self.alpha[j] * dx[self.where[j]]) / self.gamma[j]
        dt = self.stiff_t * (self.target[2 * m] / self.mult[2 * m] - dx[self.last] + total)
        for j in range(m):
            dv = (self.missing(j) + self.alpha[j] * dx[self.where[j]] - dt) / self.gamma[j]
            sum_v += dv
            self.dslack[j], self.dslack[m + j] = dv - dx[self.where[j]], dv + dx[self.where[j]]
        self.dslack[2 * m] = dx[self.last] - sum_v
        for j in range(2 * m + 1):
            self.dmult[j] = (self.target[j] - self.mult[j] * self.dslack[j]) / self.slack[j]


cdef class RowCone(LinearCone):
    """Rows with at most two entries and a price: ``e₁ x_i + e₂ x_j + price λ ≥ 0``.

    The last rows, one for each of ``costs``, are the *trust rows* of features with domains, which
    are no part of the problem.  Their prices grow with the iterate, and double while they hold it
    back in place of pieces.  With such features only rows that bind take part in the proof: the
    others (those of a group that no sample changes, say) would disturb it.
    """

    def __init__(self, columns, entries, price, weight, last, costs=()):
        self.columns, self.entries, self.price, self.weight = columns, entries, price, weight
        self.m, self.last, self.degree = len(price), last, float(np.sum(weight))
        self.costs, self.n_true = np.array(costs), len(price) - len(costs)
        self.allocate(self.m)

    cdef double at(self, Py_ssize_t k, const double* x) noexcept:
        return (self.entries[0, k] * x[self.columns[0, k]]
                + self.entries[1, k] * x[self.columns[1, k]])

    cdef void open(self, const double* x, double mu) noexcept:
        cdef Py_ssize_t k
        for k in range(self.m):
            if k >= self.n_true:
                self.price[k] = max(TRUST * self.costs[k - self.n_true],
                                    -1.3 * self.at(k, x) / x[self.last])
            self.slack[k] = self.at(k, x) + self.price[k] * x[self.last]
            self.mult[k] = self.weight[k] * mu / self.slack[k]

    cdef void add_multipliers(self, const double* mult, double* out) noexcept:
        cdef Py_ssize_t k
        for k in range(self.m):
            out[self.columns[0, k]] -= self.entries[0, k] * mult[k]
            out[self.columns[1, k]] -= self.entries[1, k] * mult[k]
            out[self.last] -= self.price[k] * mult[k]

    cdef void curvature(self, double* matrix, bint proof) noexcept:
        cdef Py_ssize_t k, i, j, size = self.last + 1, last = self.last
        cdef double stiff, one, other
        for k in range(self.m):
            if proof and self.costs.shape[0] and self.proof[k] == 0.0:
                continue
            stiff, i, j = self.mult[k] / self.slack[k], self.columns[0, k], self.columns[1, k]
            one, other = self.entries[0, k], self.entries[1, k]
            matrix[i * size + i] += stiff * one * one
            matrix[j * size + j] += stiff * other * other
            matrix[max(i, j) * size + min(i, j)] += (1 if i != j else 2) * stiff * one * other
            matrix[last * size + i] += stiff * one * self.price[k]
            matrix[last * size + j] += stiff * other * self.price[k]
            matrix[last * size + last] += stiff * self.price[k] * self.price[k]

    cdef void parts(self, double* own, double* rank_one, double* coupling) noexcept:
        """Of rows with one entry."""
        cdef Py_ssize_t k
        cdef double stiff, one
        for k in range(self.m):
            stiff, one = self.mult[k] / self.slack[k], self.entries[0, k]
            own[self.columns[0, k]] += stiff * one * one
            coupling[self.columns[0, k]] += stiff * one * self.price[k]
            coupling[self.last] += stiff * self.price[k] * self.price[k]

    cdef void add_target_forces(self, double* rhs) noexcept:
        cdef Py_ssize_t k
        cdef double push
        for k in range(self.m):
            push = self.target[k] / self.slack[k]
            rhs[self.columns[0, k]] += self.entries[0, k] * push
            rhs[self.columns[1, k]] += self.entries[1, k] * push
            rhs[self.last] += self.price[k] * push

    cdef void direction(self, const double* dx) noexcept:
        cdef Py_ssize_t k
        for k in range(self.m):
            self.dslack[k] = self.at(k, dx) + self.price[k] * dx[self.last]
            self.dmult[k] = (self.target[k] - self.mult[k] * self.dslack[k]) / self.slack[k]

    cdef void begin_proof(self) noexcept:
        cdef Py_ssize_t k
        for k in range(self.m):
            self.proof[k] = self.mult[k]
            if self.costs.shape[0] and (k >= self.n_true
                                        or self.mult[k] <= BINDING * self.weight[k]
                                        * self.slack[k]):
                self.proof[k] = 0.0

    cdef void respond(self, const double* dx) noexcept:
        """With trust rows, rows whose corrected multiplier is negative leave the proof."""
        cdef Py_ssize_t k
        for k in range(self.m):
            if self.costs.shape[0] and self.proof[k] == 0.0:
                continue
            self.proof[k] = max(self.proof[k] - self.mult[k] / self.slack[k]
                                * (self.at(k, dx) + self.price[k] * dx[self.last]), 0.0)

    cdef double trust_force(self) noexcept:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.n_true, self.m):
            total += self.costs[k - self.n_true] * self.mult[k]
        return total

    cdef void widen_trust(self, const double* x, double mu, bint held) noexcept:
        """Trust rows go along with the iterate, and allow twice as much while they hold it."""
        cdef Py_ssize_t k
        cdef double price
        for k in range(self.n_true, self.m):
            price = max(TRUST * self.costs[k - self.n_true], -1.2 * self.at(k, x) / x[self.last])
            price = max(price, 2.0 * self.price[k] if held else self.price[k])
            if price > self.price[k]:
                self.price[k] = price
                self.slack[k] = self.at(k, x) + price * x[self.last]
                self.mult[k] = self.weight[k] * mu / self.slack[k]


cdef inline double determinant(const double* x, Py_ssize_t n) noexcept:
    cdef double length = sqrt(dot(x + 1, x + 1, n - 1))
    return max((x[0] - length) * (x[0] + length), 1e-300)


cdef inline double farthest(const double* x, const double* dx, Py_ssize_t n) noexcept:
    """Largest α ≤ 1 with x + α dx in the cone."""
    cdef double a = dx[0] * dx[0] - dot(dx + 1, dx + 1, n - 1)
    cdef double b = x[0] * dx[0] - dot(x + 1, dx + 1, n - 1)
    cdef double c = determinant(x, n), bound = INFINITY if dx[0] >= 0.0 else -x[0] / dx[0]
    cdef double disc = b * b - a * c
    if disc < 0.0 or (a >= 0.0 and b >= 0.0):
        return min(1.0, bound)
    disc = sqrt(disc) - b
    return min(1.0, min(bound, c / disc if disc > 0.0 else INFINITY))


cdef class SecondOrderCone(Cone):
    """‖θ‖₂ ≤ λ (ℓ2 transport), Nesterov-Todd scaling; slack is (λ, θ), targets are scaled."""

    def __init__(self, where, last):
        m = len(where)
        self.m, self.last, self.degree, self.where = m, last, 1.0, where
        self.allocate(m + 1)
        self.w, self.nu, self.work, self.work2 = np.zeros((4, m + 1))

    cdef void open(self, const double* x, double mu) noexcept:
        cdef Py_ssize_t j
        cdef double det
        self.slack[0] = x[self.last]
        for j in range(self.m):
            self.slack[j + 1] = x[self.where[j]]
        det = determinant(&self.slack[0], self.m + 1)
        for j in range(self.m + 1):
            self.mult[j] = (mu if j == 0 else -mu) * self.slack[j] / det
        self.dslack[:] = 0.0
        self.dmult[:] = 0.0
        self.refresh()

    cdef void refresh(self) noexcept:
        """Unit scaling point w, factor η, scaled point ν = W mult."""
        cdef Py_ssize_t j, n = self.m + 1
        cdef double a = sqrt(determinant(&self.slack[0], n))
        cdef double b = sqrt(determinant(&self.mult[0], n)), gamma
        gamma = sqrt(0.5 * (1.0 + dot(&self.slack[0], &self.mult[0], n) / (a * b)))
        for j in range(1, n):
            self.w[j] = (self.slack[j] / a - self.mult[j] / b) / (2.0 * gamma)
        self.w[0] = hypot(1.0, sqrt(dot(&self.w[0] + 1, &self.w[0] + 1, self.m)))
        self.eta = sqrt(a / b)
        self.scaled(&self.mult[0], &self.nu[0], 1.0)

    cdef void scaled(self, const double* x, double* out, double sign) noexcept:
        """W x (sign 1) or W⁻¹ x (sign -1)."""
        cdef Py_ssize_t j
        cdef double inner = dot(&self.w[0] + 1, x + 1, self.m)
        cdef double factor = self.eta if sign > 0 else 1.0 / self.eta
        cdef double first = x[0], along = sign * first + inner / (1.0 + self.w[0])
        for j in range(1, self.m + 1):
            out[j] = factor * (x[j] + along * self.w[j])
        out[0] = factor * (self.w[0] * first + sign * inner)

    cdef void add_multipliers(self, const double* mult, double* out) noexcept:
        cdef Py_ssize_t j
        for j in range(self.m):
            out[self.where[j]] -= mult[j + 1]
        out[self.last] -= mult[0]

    cdef void parts(self, double* own, double* rank_one, double* coupling) noexcept:
        """W⁻² = η⁻² (2 (Jw)(Jw)ᵀ - J)."""
        cdef Py_ssize_t j, i
        cdef double inv = 1.0 / (self.eta * self.eta)
        for j in range(self.m):
            i = self.where[j]
            own[i] += inv
            rank_one[i] += sqrt(2.0 * inv) * self.w[j + 1]
            coupling[i] -= 2.0 * inv * self.w[0] * self.w[j + 1]
        own[self.last] -= inv
        rank_one[self.last] -= sqrt(2.0 * inv) * self.w[0]
        coupling[self.last] += inv * (2.0 * self.w[0] * self.w[0] - 1.0)

    cdef void set_targets(self, double centre, double share) noexcept:
        """centre e - ν∘ν - share (W⁻¹ dslack)∘(W dmult)."""
        cdef Py_ssize_t j, n = self.m + 1
        cdef double* nu = &self.nu[0]
        cdef double* p = &self.work[0]
        cdef double* q = &self.work2[0]
        self.scaled(&self.dslack[0], p, -1.0)
        self.scaled(&self.dmult[0], q, 1.0)
        self.target[0] = centre - dot(nu, nu, n) - share * dot(p, q, n)
        for j in range(1, n):
            self.target[j] = -2.0 * nu[0] * nu[j] - share * (p[0] * q[j] + q[0] * p[j])

    cdef void divided(self, double* out) noexcept:
        """y with ν∘y = target."""
        cdef Py_ssize_t j
        cdef double* nu = &self.nu[0]
        cdef double first = nu[0] * self.target[0]
        for j in range(1, self.m + 1):
            first -= nu[j] * self.target[j]
        first /= determinant(nu, self.m + 1)
        out[0] = first
        for j in range(1, self.m + 1):
            out[j] = (self.target[j] - first * nu[j]) / nu[0]

    cdef void add_target_forces(self, double* rhs) noexcept:
        cdef Py_ssize_t j
        self.divided(&self.work[0])
        self.scaled(&self.work[0], &self.work2[0], -1.0)
        for j in range(self.m):
            rhs[self.where[j]] += self.work2[j + 1]
        rhs[self.last] += self.work2[0]

    cdef void direction(self, const double* dx) noexcept:
        cdef Py_ssize_t j
        self.dslack[0] = dx[self.last]
        for j in range(self.m):
            self.dslack[j + 1] = dx[self.where[j]]
        self.divided(&self.work[0])
        self.scaled(&self.dslack[0], &self.work2[0], -1.0)
        for j in range(self.m + 1):
            self.work[j] -= self.work2[j]
        self.scaled(&self.work[0], &self.dmult[0], -1.0)

    cdef (double, double) longest(self) noexcept:
        cdef double alpha = min(farthest(&self.slack[0], &self.dslack[0], self.m + 1),
                                farthest(&self.mult[0], &self.dmult[0], self.m + 1))
        return alpha, alpha


cdef class Cones(Cone):
    """Several cones: that of the norm and the rows of domains, say."""

    def __init__(self, *cones):
        self.cones, self.degree, self.each = list(cones), sum([cone.degree for cone in cones]), 1.0

    cdef void open(self, const double* x, double mu) noexcept:
        for cone in self.cones:
            (<Cone>cone).open(x, mu)

    cdef void gradient(self, double* out, bint proof) noexcept:
        for cone in self.cones:
            (<Cone>cone).gradient(out, proof)

    cdef void curvature(self, double* matrix, bint proof) noexcept:
        for cone in self.cones:
            (<Cone>cone).curvature(matrix, proof)

    cdef void set_targets(self, double centre, double share) noexcept:
        for cone in self.cones:
            (<Cone>cone).set_targets(centre * self.each, share)

    cdef void add_target_forces(self, double* rhs) noexcept:
        for cone in self.cones:
            (<Cone>cone).add_target_forces(rhs)

    cdef void direction(self, const double* dx) noexcept:
        for cone in self.cones:
            (<Cone>cone).direction(dx)

    cdef (double, double) longest(self) noexcept:
        cdef (double, double) both
        cdef double primal = 1.0, dual = 1.0
        for cone in self.cones:
            both = (<Cone>cone).longest()
            primal, dual = min(primal, both[0]), min(dual, both[1])
        return primal, dual

    cdef double after(self, double primal, double dual) noexcept:
        cdef double total = 0.0
        for cone in self.cones:
            total += (<Cone>cone).after(primal, dual)
        return total

    cdef void move(self, double primal, double dual) noexcept:
        for cone in self.cones:
            (<Cone>cone).move(primal, dual)

    cdef void begin_proof(self) noexcept:
        for cone in self.cones:
            (<Cone>cone).begin_proof()

    cdef void respond(self, const double* dx) noexcept:
        for cone in self.cones:
            (<Cone>cone).respond(dx)

    cdef double trust_force(self) noexcept:
        cdef double total = 0.0
        for cone in self.cones:
            total += (<Cone>cone).trust_force()
        return total

    cdef void widen_trust(self, const double* x, double mu, bint held) noexcept:
        for cone in self.cones:
            (<Cone>cone).widen_trust(x, mu, held)


def box(where, last):
    """Rows ``λ - x_j ≥ 0`` and ``x_j + λ ≥ 0``; the whole cone counts as one product."""
    m = len(where)
    entries, columns = np.zeros((2, 2 * m)), np.empty((2, 2, m), np.int32)
    columns[:], entries[0, :m], entries[0, m:] = where, -1.0, 1.0
    return RowCone(columns.reshape(2, 2 * m), entries, np.ones(2 * m),
                   np.full(2 * m, 0.5 / max(m, 1)), last)


def no_norm(last):
    """λ ≥ 0 alone: nothing can move."""
    return RowCone(np.zeros((2, 1), np.int32), np.zeros((2, 1)), np.ones(1), np.ones(1), last)


def cone_of(norm, where, last):
    """The cone of the transport norm's dual on the coordinates ``where`` (ascending)."""
    where = np.ascontiguousarray(where, np.int32)
    if norm == "l1" or not len(where):
        return box(where, last)
    return {"l2": SecondOrderCone, "linf": CrossPolytope}[norm](where, last)


# --- several classes: ‖(B_j - B_k)/c‖_* ≤ λ for every pair ----------------------------------------


cdef class PairwiseCones(Cones):
    """A cone of the norm on x_j - x_k for each pair of labels; all together count as one product.

    The first label's coefficients are zero and are not stored.  ``where`` are the places of a
    label's coefficients in the norm, ``stride`` is from one label to the next.
    """

    def __init__(self, norm, where, n_classes, stride, last):
        m = len(where)
        self.pairs = [(j, k) for k in range(1, n_classes) for j in range(k)]
        Cones.__init__(self, *[cone_of(norm, np.arange(m), m) for _ in self.pairs])
        self.m, self.last, self.degree = m, last, 1.0
        self.where = np.ascontiguousarray(where, np.int32)
        self.n_classes, self.stride, self.each = n_classes, stride, 1.0 / len(self.pairs)
        self.local, self.between = np.zeros(m + 1), np.zeros((2, len(self.pairs), m + 1))

    cdef Py_ssize_t place(self, Py_ssize_t q, Py_ssize_t side) noexcept:
        """Where a label of pair q begins; negative for the first label."""
        return (<Py_ssize_t>self.pairs[q][side] - 1) * self.stride

    cdef const double* difference(self, const double* x, Py_ssize_t q) noexcept:
        """x_j - x_k of pair q, and λ."""
        cdef Py_ssize_t i, j = self.place(q, 0), k = self.place(q, 1)
        for i in range(self.m):
            self.local[i] = (x[j + self.where[i]] if j >= 0 else 0.0) - x[k + self.where[i]]
        self.local[self.m] = x[self.last]
        return &self.local[0]

    cdef void spread(self, double* out, Py_ssize_t q) noexcept:
        """out += the transpose of ``difference`` of what is in ``local``, which is empty then."""
        cdef Py_ssize_t i, j = self.place(q, 0), k = self.place(q, 1)
        for i in range(self.m):
            if j >= 0:
                out[j + self.where[i]] += self.local[i]
            out[k + self.where[i]] -= self.local[i]
        out[self.last] += self.local[self.m]
        self.local[:] = 0.0

    cdef void open(self, const double* x, double mu) noexcept:
        for q, cone in enumerate(self.cones):
            (<Cone>cone).open(self.difference(x, q), mu * self.each)

    cdef void gradient(self, double* out, bint proof) noexcept:
        self.local[:] = 0.0
        for q, cone in enumerate(self.cones):
            (<Cone>cone).gradient(&self.local[0], proof)
            self.spread(out, q)

    def flow(self):
        """What the multipliers of the proof carry from class to class, a row for each pair (k, j <
        k).
        """
        found = np.zeros((len(self.cones), self.m))
        for q, cone in enumerate(self.cones):
            self.local[:] = 0.0
            (<Cone>cone).gradient(&self.local[0], True)
            found[q] = -np.asarray(self.local)[:self.m]
        return found

    cdef void parts(self, double* own, double* rank_one, double* coupling) noexcept:
        """λ's column; the rest is for ``stiffness``, pair by pair."""
        self.between[:], self.local[:] = 0.0, 0.0
        for q, cone in enumerate(self.cones):
            (<Cone>cone).parts(&self.between[0, <Py_ssize_t>q, 0],
                               &self.between[1, <Py_ssize_t>q, 0], &self.local[0])
            self.spread(coupling, q)

    def stiffness(self):
        """diag(own) and v of v vᵀ for the difference of each pair (k, j < k), after ``parts``."""
        return np.array(self.between[:, :, :self.m])

    cdef void add_target_forces(self, double* rhs) noexcept:
        self.local[:] = 0.0
        for q, cone in enumerate(self.cones):
            (<Cone>cone).add_target_forces(&self.local[0])
            self.spread(rhs, q)

    cdef void direction(self, const double* dx) noexcept:
        for q, cone in enumerate(self.cones):
            (<Cone>cone).direction(self.difference(dx, q))

    cdef void respond(self, const double* dx) noexcept:
        for q, cone in enumerate(self.cones):
            (<Cone>cone).respond(self.difference(dx, q))
