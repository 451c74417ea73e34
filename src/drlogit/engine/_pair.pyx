"""The samples of the flip pair: three visits per iteration, all in compiled loops.

``linearise`` goes where the last direction leads and returns the optimality conditions there, ``predict``
and ``correct`` follow a direction of (β, b, λ).  Each returns ONE flat array of sums over the samples, so
that blocks of rows (in memory, in files, with Dask workers) are combined by adding arrays:

conditions  Gram P·P (lower triangle), 3 adjoints of P (gradient, affine, centring), SCALARS
predicted   pull P, changes of the products with primal, dual and both steps, 2·LEVELS costs of step lengths
limits      slope and curvature of the loss, 2·LEVELS costs
certify     of the dual point after a correction: adjoint P, entropy, additions in a sum (one visit more, when a bound is in reach)

P counts (β, b, λ).  Changes of slacks and multipliers are kept in proportion to these.
"""
import numpy as np
from libc.math cimport exp, fabs, hypot, log, log1p, log2
from libc.string cimport memset
from drlogit.rows._products cimport Rows

cdef double PER_OCTAVE = 32.0   # levels of step lengths for each factor of two
cdef double KEPT = 0.1          # what a sample that is left behind keeps of a slack or multiplier
cdef double SECOND = 30.0       # second-order terms of samples that will be left behind are no guide beyond this
cdef double EMPTY = 1e-2         # of s that a correction leaves: less is nothing
cdef double PRICE = 1.0 / 30.0  # what that costs: its products, and this share of what is added


cdef double loss_terms(double u, double* s) noexcept nogil:
    """h(u) and s = 1/(1 + e^u)."""
    cdef double e = exp(-fabs(u)), q = 1.0 / (1.0 + e)
    s[0] = e * q if u > 0.0 else q
    return (e * (1.0 - 0.5 * e) if e < 1e-6 else log(1.0 + e)) - (u if u < 0.0 else 0.0)


cdef double entropy(double s) noexcept nogil:
    return -(s * log(s) + (1.0 - s) * log1p(-s)) if 0.0 < s < 1.0 else 0.0


cdef double corrected(double s, double ds) noexcept nogil:
    """s + ds within [0, 1]; nothing where hardly anything would be left (separated samples)."""
    return 0.0 if not s + ds > EMPTY * s else min(s + ds, 1.0)


cdef inline void central(double v, double mu, double* t, double* r) noexcept nogil:
    """t - r = v, c t = a r = μ, c + a = 1."""
    cdef double root = hypot(v, 2.0 * mu), size = fabs(v)
    cdef double large = 0.5 * (2.0 * mu + size + root), small = mu + 2.0 * mu * mu / (size + root)
    t[0] = large if v > 0.0 else small
    r[0] = small if v > 0.0 else large


cdef inline void lift(double* one, double* other, double least, double least_other, double sign) noexcept nogil:
    """Whichever is further below its least goes there; the other goes along (sign 1) or gives (-1)."""
    cdef double missing = least - one[0], missing_other = least_other - other[0]
    if missing >= missing_other:
        other[0] += sign * missing
        one[0] = least
    else:
        one[0] += sign * missing_other
        other[0] = least_other


cdef void limit(double* costs, double fall, double cost) noexcept nogil:
    """Book what it costs to go further than a sample allows: one over ``fall``, what shrinks fastest."""
    cdef double level = PER_OCTAVE * log2(fall)
    costs[LEVELS - 1 if level > LEVELS - 1 else <int>level] += cost


cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double primal_price, double dual_price):
    """Longest steps that leave samples behind at no more than these prices; costs from ``first`` on."""
    cdef double found[2]
    cdef double total, price
    cdef Py_ssize_t kind, k
    for kind in range(2):
        total, price, found[kind] = 0.0, primal_price if kind == 0 else dual_price, 1.0
        for k in range(LEVELS - 1, -1, -1):
            total += sums[first + kind * LEVELS + k]
            if total > price:
                found[kind] = 2.0 ** (-(k + 1.0) / PER_OCTAVE)
                break
    return found[0], found[1]


cdef class Samples:
    def linear(self, minus, plus):
        """The loss -s u instead of h(u): what a model near a constant one with these slopes can gain (``epsilon_max``)."""
        self.slope[0], self.slope[1] = minus, plus
        return self

    cdef double terms(self, double u, double label, double* s, double* curvature) noexcept nogil:
        """Loss at u, minus its slope, its curvature."""
        cdef double h
        if self.slope[0] > 0.0:
            s[0], curvature[0] = self.slope[label > 0.0], 0.0
            return -s[0] * u
        h = loss_terms(u, s)
        curvature[0] = s[0] * (1.0 - s[0])
        return h

    cpdef void open(self, double[::1] coef, double mu): pass
    cpdef double[::1] linearise(self, double[::1] coef, double primal, double dual, double mu): pass
    cpdef double[::1] predict(self, double[::1] dcoef): pass
    cpdef double[::1] correct(self, double[::1] dcoef, double centre, double share): pass
    cpdef double[::1] certify(self, double[::1] dcoef, bint first): pass
    cpdef void settle(self): pass
    cpdef void refuse(self): pass


cdef class HingeSamples(Samples):
    """max(h(u), h(-u) - κλ) of every sample: margin u, slacks t, r and multipliers c + a = 1."""

    def __init__(self, Rows rows, y, w, kappa):
        n, P = rows.n_samples, rows.stride
        self.rows, self.y, self.w, self.kappa, self.allowance = rows, y, w, kappa, 0.5
        self.now, self.after, self.step = np.empty((5, n)), np.empty((5, n)), np.zeros((5, n))
        self.second, self.columns = np.empty((2, n)), np.empty((6, rows.panel))
        self.conditions = np.empty(P * P + 3 * P + SCALARS)
        self.predicted, self.limits = np.empty(P + 3 + 2 * LEVELS), np.empty(2 + 2 * LEVELS)
        self.light = 1e-9 * np.mean(w)

    @property
    def flip_share(self): return np.asarray(self.now[4]).copy()

    cpdef void open(self, double[::1] coef, double mu):
        cdef Py_ssize_t block, i, lo, hi, n = self.rows.n_samples, b = self.rows.panel
        cdef double t, r, kink = self.kappa * coef[self.rows.n_columns]
        self.visits += 1
        self.step[:, :] = 0.0
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            self.rows.margins(lo, hi, &coef[0], &self.now[0, lo])
            for i in range(lo, hi):
                self.now[0, i] *= self.y[i]
                central(self.now[0, i] - kink, mu, &t, &r)
                self.now[1, i], self.now[2, i], self.now[3, i], self.now[4, i] = t, r, mu / t, mu / r

    cpdef double[::1] linearise(self, double[::1] coef, double primal, double dual, double mu):
        """Go by these lengths along the last direction, to ``coef``; the conditions there (``settle`` accepts)."""
        cdef Py_ssize_t block, i, j, lo, hi, n = self.rows.n_samples, b = self.rows.panel
        cdef Py_ssize_t P = self.rows.stride, last = P - 1
        cdef double u, t, r, c, a, w, y, s, h, it, ir, st, sr, give, om, aff, cen, curved
        cdef double kink = self.kappa * coef[last], kappa = self.kappa
        cdef double* out = &self.conditions[0]
        cdef double* adj = out + P * P
        cdef double* tot = adj + 3 * P
        cdef double* col = &self.columns[0, 0]
        cdef const double* now[5]
        cdef const double* d[5]
        cdef double* new[5]
        for j in range(5):
            now[j], d[j], new[j] = &self.now[j, 0], &self.step[j, 0], &self.after[j, 0]
        self.visits += 1
        with nogil:
            memset(out, 0, (P * P + 3 * P + SCALARS) * sizeof(double))
            for block in range((n + b - 1) // b):
                lo, hi = block * b, min(block * b + b, n)
                for i in range(lo, hi):
                    j, w, y = i - lo, self.w[i], self.y[i]
                    u = now[0][i] + primal * d[0][i]
                    t, r = now[1][i] * (1.0 + primal * d[1][i]), now[2][i] * (1.0 + primal * d[2][i])
                    c, a = now[3][i] * (1.0 + dual * d[3][i]), now[4][i] * (1.0 + dual * d[4][i])
                    if t <= 0.0 or r <= 0.0: lift(&t, &r, KEPT * now[1][i], KEPT * now[2][i], 1.0)
                    if c <= 0.0 or a <= 0.0: lift(&c, &a, KEPT * now[3][i], KEPT * now[4][i], -1.0)
                    new[0][i], new[1][i], new[2][i], new[3][i], new[4][i] = u, t, r, c, a
                    h = self.terms(u, y, &s, &curved)
                    it, ir = 1.0 / t, 1.0 / r
                    st, sr = c * it, a * ir
                    give = 1.0 / (st + sr)
                    om = w * sr * (st * give)                # curvature of the hinge
                    aff = w * (sr * give - a)                # what a gains when all products go to zero
                    cen = w * (c - a) * it * ir * give       # ... per unit of centring
                    col[j], col[b + j], col[2 * b + j] = w * (a - s) * y, aff * y, cen * y
                    col[3 * b + j], col[4 * b + j] = -kappa * om * y, w * curved + om
                    out[last * P + last] += om
                    adj[last] += w * a
                    adj[P + last] += aff
                    adj[2 * P + last] += cen
                    tot[0] += w * h
                    tot[1] += w * (h + (u - kink if u > kink else 0.0))
                    tot[2] += w * (c * t + a * r)
                    tot[3] += 2.0 * w
                    tot[5] += w * (h + s * u)
                self.rows.gram(lo, hi, col + 4 * b, out)
                self.rows.adjoint(lo, hi, col, 3, adj)
                self.rows.adjoint(lo, hi, col + 3 * b, 1, out + last * P)
            out[last * P + last] *= kappa * kappa
            for j in range(3): adj[j * P + last] *= -kappa
        return self.conditions

    cpdef void settle(self):
        self.now, self.after = self.after, self.now

    cpdef double[::1] predict(self, double[::1] dcoef):
        """All products to zero: how far, what is left, and the pull of the second-order terms."""
        cdef Py_ssize_t block, i, j, lo, hi, n = self.rows.n_samples, b = self.rows.panel, last = self.rows.n_columns
        cdef double t, r, c, a, w, it, ir, st, sr, give, dv, dt, dr, dc, da, e, f, pull, pt, pr
        cdef double dkink = self.kappa * dcoef[last]
        cdef double* out = &self.predicted[0]
        cdef double* tot = out + last + 1
        cdef double* du = &self.columns[5, 0]
        cdef double* col = &self.columns[0, 0]
        self.visits += 1
        with nogil:
            memset(out, 0, (last + 4 + 2 * LEVELS) * sizeof(double))
            for block in range((n + b - 1) // b):
                lo, hi = block * b, min(block * b + b, n)
                self.rows.margins(lo, hi, &dcoef[0], du)
                for i in range(lo, hi):
                    w, t, r, c, a = self.w[i], self.now[1, i], self.now[2, i], self.now[3, i], self.now[4, i]
                    it, ir = 1.0 / t, 1.0 / r
                    st, sr = c * it, a * ir
                    give = 1.0 / (st + sr)
                    pt, pr = w * c * t, w * a * r
                    dv = self.y[i] * du[i - lo] - dkink
                    dt, dr = (sr * dv - 1.0) * give * it, -(st * dv + 1.0) * give * ir
                    dc, da = -1.0 - dt, -1.0 - dr
                    e, f = dt * dc, dr * da
                    tot[2] += pt * e + pr * f
                    e, f = max(-SECOND, min(e, SECOND)), max(-SECOND, min(f, SECOND))
                    self.second[0, i], self.second[1, i] = e, f
                    pull = -w * a * (f - ir * give * (c * e + a * f))
                    col[i - lo] = pull * self.y[i]
                    out[last] += pull
                    tot[0] += pt * dt + pr * dr
                    tot[1] += pt * dc + pr * da
                    self._limits(i, t, r, c, a, dt, dr, dc, da, tot + 3)
                self.rows.adjoint(lo, hi, col, 1, out)
            out[last] *= -self.kappa
        return self.predicted

    cpdef double[::1] correct(self, double[::1] dcoef, double centre, double share):
        """Towards ``centre``, with a share of the predictor's second-order terms."""
        cdef Py_ssize_t block, i, lo, hi, n = self.rows.n_samples, b = self.rows.panel
        cdef double t, r, c, a, w, it, ir, st, sr, give, dv, dt, dr, dc, da, e, f, push, s, curved
        cdef double dkink = self.kappa * dcoef[self.rows.n_columns]
        cdef double* tot = &self.limits[0]
        cdef double* du = &self.columns[5, 0]
        self.visits += 1
        with nogil:
            memset(tot, 0, (2 + 2 * LEVELS) * sizeof(double))
            for block in range((n + b - 1) // b):
                lo, hi = block * b, min(block * b + b, n)
                self.rows.margins(lo, hi, &dcoef[0], du)
                for i in range(lo, hi):
                    w, t, r, c, a = self.w[i], self.now[1, i], self.now[2, i], self.now[3, i], self.now[4, i]
                    it, ir = 1.0 / t, 1.0 / r
                    st, sr = c * it, a * ir
                    give = 1.0 / (st + sr)
                    du[i - lo] *= self.y[i]
                    dv = du[i - lo] - dkink
                    e = centre / (c * t) - 1.0 - share * self.second[0, i]
                    f = centre / (a * r) - 1.0 - share * self.second[1, i]
                    push = c * e + a * f
                    dt, dr = (push + sr * dv) * give * it, (push - st * dv) * give * ir
                    dc, da = e - dt, f - dr
                    self.step[0, i], self.step[1, i], self.step[2, i] = du[i - lo], dt, dr
                    self.step[3, i], self.step[4, i] = dc, da
                    self.terms(self.now[0, i], self.y[i], &s, &curved)
                    tot[0] -= w * s * du[i - lo]
                    tot[1] += w * curved * du[i - lo] * du[i - lo]
                    self._limits(i, t, r, c, a, dt, dr, dc, da, tot + 2)
        return self.limits

    cpdef double[::1] certify(self, double[::1] dcoef, bint first):
        """Adjoint and entropy of the dual point (s, a) after one more correction."""
        cdef Py_ssize_t block, i, j, lo, hi, n = self.rows.n_samples, b = self.rows.panel, last = self.rows.n_columns
        cdef double w, s, a, now, st, sr, du, total = 0.0, mass = 0.0, dkink = self.kappa * dcoef[last]
        cdef double* out = &self.predicted[0]
        cdef double* col = &self.columns[0, 0]
        self.visits += 1
        with nogil:
            memset(out, 0, (last + 2) * sizeof(double))
            for block in range((n + b - 1) // b):
                lo, hi = block * b, min(block * b + b, n)
                self.rows.margins(lo, hi, &dcoef[0], col + b)
                for i in range(lo, hi):
                    j, w, du = i - lo, self.w[i], self.y[i] * col[b + i - lo]
                    loss_terms(self.now[0, i], &now)
                    s, a = (now, self.now[4, i]) if first else (self.after[0, i], self.after[1, i])
                    st, sr = self.now[3, i] / self.now[1, i], self.now[4, i] / self.now[2, i]
                    if first or s > 0.0: s = corrected(s, -now * (1.0 - now) * du)
                    a = min(max(a + st * sr / (st + sr) * (du - dkink), 0.0), 1.0)
                    self.after[0, i], self.after[1, i] = s, a
                    col[j] = w * (a - s) * self.y[i]
                    mass += w * a
                    total += w * entropy(s)
                self.rows.adjoint(lo, hi, col, 1, out)
            out[last], out[last + 1], out[last + 2] = -self.kappa * mass, total, self.rows.length
        return self.predicted

    cdef void _limits(self, Py_ssize_t i, double t, double r, double c, double a, double dt, double dr,
                      double dc, double da, double* costs) noexcept nogil:
        """Book a sample that does not allow the whole step; light ones never hold it up."""
        cdef double worst, own = self.w[i] * (c * t + a * r)
        worst = dt if dt < dr else dr
        if worst < -1.0 and self.w[i] > self.light:
            limit(costs, -worst, own + self.w[i] * PRICE * max(-t * dt, -r * dr))
        worst = dc if dc < da else da
        if worst < -1.0 and self.w[i] > self.light:
            limit(costs + LEVELS, -worst, own + self.w[i] * PRICE * fabs(a * da) * (t + r))


cdef class LossSamples(Samples):
    """h(u) alone (κ = ∞): one visit per iteration; the other two cost nothing of size N."""

    def __init__(self, Rows rows, y, w):
        n, P = rows.n_samples, rows.stride
        self.rows, self.y, self.w, self.allowance = rows, y, w, 0.5
        self.now, self.after, self.columns = np.empty(n), np.empty(n), np.empty((6, rows.panel))
        self.conditions, self.direction = np.empty(P * P + 3 * P + SCALARS), np.zeros(P)
        self.predicted, self.limits, self.proof = np.zeros(P + 3 + 2 * LEVELS), np.zeros(2 + 2 * LEVELS), np.zeros(P + 2)

    @property
    def flip_share(self): return np.zeros(self.rows.n_samples)

    cpdef void open(self, double[::1] coef, double mu):
        cdef Py_ssize_t block, i, lo, hi, n = self.rows.n_samples, b = self.rows.panel
        self.visits += 1
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            self.rows.margins(lo, hi, &coef[0], &self.now[lo])
            for i in range(lo, hi): self.now[i] *= self.y[i]
        self.direction[:] = 0.0

    cpdef double[::1] linearise(self, double[::1] coef, double primal, double dual, double mu):
        cdef Py_ssize_t block, i, j, lo, hi, n = self.rows.n_samples, P = self.rows.stride, b = self.rows.panel
        cdef double u, s, h, w
        cdef double* out = &self.conditions[0]
        cdef double* adj = out + P * P
        cdef double* tot = adj + 3 * P
        cdef double* col = &self.columns[0, 0]
        self.visits += 1
        with nogil:
            memset(out, 0, (P * P + 3 * P + SCALARS) * sizeof(double))
            for block in range((n + b - 1) // b):
                lo, hi = block * b, min(block * b + b, n)
                self.rows.margins(lo, hi, &self.direction[0], col + 2 * b)
                for i in range(lo, hi):
                    j, w = i - lo, self.w[i]
                    u = self.now[i] + primal * self.y[i] * col[2 * b + j]
                    self.after[i] = u
                    h = loss_terms(u, &s)
                    col[j], col[b + j] = -w * s * self.y[i], w * s * (1.0 - s)
                    tot[0] += w * h
                    tot[5] += w * (h + s * u)
                self.rows.gram(lo, hi, col + b, out)
                self.rows.adjoint(lo, hi, col, 1, adj)
            tot[1] = tot[0]
        return self.conditions

    cpdef void settle(self):
        self.now, self.after = self.after, self.now

    cpdef double[::1] predict(self, double[::1] dcoef):
        return self.predicted

    cpdef double[::1] correct(self, double[::1] dcoef, double centre, double share):
        """The parabola along the direction, from the last Gram matrix and gradient (per block: they add up)."""
        cdef Py_ssize_t j, k, P = self.rows.stride
        cdef double slope = 0.0, curvature = 0.0
        cdef double* gram = &self.conditions[0]
        cdef double* adj = gram + P * P
        for j in range(P - 1):
            self.direction[j] = dcoef[j]
            slope += dcoef[j] * adj[j]
            curvature += dcoef[j] * dcoef[j] * gram[j * P + j]
            for k in range(j): curvature += 2.0 * dcoef[j] * dcoef[k] * gram[j * P + k]
        self.limits[0], self.limits[1] = slope, curvature
        return self.limits

    cpdef double[::1] certify(self, double[::1] dcoef, bint first):
        cdef Py_ssize_t block, i, lo, hi, n = self.rows.n_samples, b = self.rows.panel, last = self.rows.n_columns
        cdef double s, now, total = 0.0
        cdef double* out = &self.proof[0]
        cdef double* col = &self.columns[0, 0]
        self.visits += 1
        with nogil:
            memset(out, 0, (last + 2) * sizeof(double))
            for block in range((n + b - 1) // b):
                lo, hi = block * b, min(block * b + b, n)
                self.rows.margins(lo, hi, &dcoef[0], col + b)
                for i in range(lo, hi):
                    loss_terms(self.now[i], &now)
                    s = now if first else self.after[i]
                    if first or s > 0.0: s = corrected(s, -now * (1.0 - now) * self.y[i] * col[b + i - lo])
                    self.after[i] = s
                    col[i - lo] = -self.w[i] * s * self.y[i]
                    total += self.w[i] * entropy(s)
                self.rows.adjoint(lo, hi, col, 1, out)
            out[last + 1], out[last + 2] = total, self.rows.length
        return self.proof
