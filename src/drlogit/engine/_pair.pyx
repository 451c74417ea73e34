"""The samples of the flip pair: three visits per iteration, all in compiled loops.

``linearise`` goes where the last direction leads and returns the optimality conditions there, ``predict``
and ``correct`` follow a direction of (β, b, λ).  Each is a function of the rows of a block and of what it
remembers, and returns a new state and ONE flat array of sums over the samples, so that blocks of rows (in
memory, in files, with Dask workers) are combined by adding arrays:

conditions  Gram P·P (lower triangle; or its diagonal and λ's column), 3 adjoints of P (gradient, affine, centring), SCALARS
predicted   pull P, changes of the products with primal, dual and both steps, 2·LEVELS costs of step lengths
limits      slope and curvature of the loss, 2·LEVELS costs
certify     of the dual point after a correction: adjoint P, entropy, additions in a sum (one visit more, when a bound is in reach)

P counts (β, b, λ).  Changes of slacks and multipliers are kept in proportion to these.  κ may differ from
sample to sample; where it is infinite a sample has no hinge, and keeps a = 0.
"""
import numpy as np
from libc.math cimport INFINITY, exp, fabs, hypot, log, log1p, log2
from drlogit.rows._products cimport CompiledRows
from .settings import SETTINGS

cdef double PER_OCTAVE = 32.0   # levels of step lengths for each factor of two
cdef double KEPT = SETTINGS.kept, SECOND = SETTINGS.second_order, EMPTIED = SETTINGS.emptied, PASSING = SETTINGS.passing


cdef double loss_terms(double u, double* s) noexcept nogil:
    """h(u) and s = 1/(1 + e^u)."""
    cdef double e = exp(-fabs(u)), q = 1.0 / (1.0 + e)
    s[0] = e * q if u > 0.0 else q
    return (e * (1.0 - 0.5 * e) if e < 1e-6 else log(1.0 + e)) - (u if u < 0.0 else 0.0)


cdef double entropy(double s) noexcept nogil:
    return -(s * log(s) + (1.0 - s) * log1p(-s)) if 0.0 < s < 1.0 else 0.0


cdef double corrected(double s, double ds) noexcept nogil:
    """s + ds within [0, 1]; nothing where hardly anything would be left (separated samples)."""
    return 0.0 if not s + ds > EMPTIED * s else min(s + ds, 1.0)


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
    costs[<int>level if level < LEVELS - 1 else LEVELS - 1] += cost


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


cdef class PairState:
    def __init__(self, kappa, slope, now, second=None, step=None):
        self.kappa, self.slope, self.now = kappa, slope, now
        self.second, self.step = second, step

    @property
    def flip_share(self): return np.asarray(self.now[4]).copy()

    @property
    def margins(self): return np.asarray(self.now[0]).copy()

    def parts(self):
        """Everything that it consists of, as arrays."""
        second = None if self.second is None else np.asarray(self.second)
        step = None if self.step is None else np.asarray(self.step)
        return np.asarray(self.kappa), np.asarray(self.slope), np.asarray(self.now), second, step

    def __reduce__(self): return PairState, self.parts()

    def __sizeof__(self): return 200 + sum([part.nbytes for part in self.parts() if part is not None])


cdef PairState new_state(const double[::1] kappa, const double[::1] slope, double[:, ::1] now):
    cdef PairState state = PairState.__new__(PairState)
    state.kappa, state.slope, state.now = kappa, slope, now
    state.second = state.step = None
    return state


cdef inline double terms(const double[::1] slope, Py_ssize_t i, double u, double* s, double* curvature) noexcept nogil:
    """Loss of sample i at u, minus its slope, its curvature: of h, or of -s u if there are slopes."""
    cdef double h
    if slope.shape[0]:
        s[0], curvature[0] = slope[i], 0.0
        return -s[0] * u
    h = loss_terms(u, s)
    curvature[0] = s[0] * (1.0 - s[0])
    return h


cdef inline void book(double w, double t, double r, double c, double a, double dt, double dr, double dc, double da,
                      double* costs) noexcept nogil:
    """Book a sample that does not allow the whole step."""
    cdef double worst, own = w * (c * t + a * r)
    worst = dt if dt < dr else dr
    if worst < -1.0:
        limit(costs, -worst, own + w * PASSING * max(-t * dt, -r * dr))
    worst = dc if dc < da else da
    if worst < -1.0:
        limit(costs + LEVELS, -worst, own + w * PASSING * fabs(a * da) * (t + r))


def open_pair(CompiledRows rows, const double[::1] kappa, const double[::1] slope, const double[::1] coef, double mu):
    """Slacks and multipliers on the central path; ``slope`` per sample for a linear loss, or empty."""
    cdef Py_ssize_t block, i, lo, hi, n = rows.n_samples, b = rows.panel
    cdef bint many = kappa.shape[0] > 1
    cdef double t, r, lam = coef[rows.n_columns], kap
    cdef double[:, ::1] now = np.empty((5, n))
    rows = rows.borrow()
    for block in range((n + b - 1) // b):
        lo, hi = block * b, min(block * b + b, n)
        rows.margins(lo, hi, &coef[0], &now[0, lo])
        for i in range(lo, hi):
            now[0, i] *= rows.y[i]
            kap = kappa[i if many else 0]
            if kap == INFINITY:
                now[1, i], now[2, i], now[3, i], now[4, i] = 0.0, INFINITY, 1.0, 0.0
                continue
            central(now[0, i] - kap * lam, mu, &t, &r)
            now[1, i], now[2, i], now[3, i], now[4, i] = t, r, mu / t, mu / r
    rows.free()
    return new_state(kappa, slope, now)


def linearise_pair(CompiledRows rows, PairState state, const double[::1] coef, double primal, double dual,
                   bint gram=True, double least=0.0):
    """Go by these lengths along the state's direction, to ``coef``: the state and the conditions there.

    Hinges of less curvature than ``least`` stay out of the Gram matrix.
    """
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, b = rows.panel, P = rows.stride, last = P - 1
    cdef Py_ssize_t square = P * P if gram else 2 * P
    cdef bint many = state.kappa.shape[0] > 1, moved = state.step is not None and (primal != 0.0 or dual != 0.0)
    cdef double u, t, r, c, a, w, y, s, h, it, ir, st, sr, give, om, aff, cen, curved, kap, lam = coef[last], over
    cdef const double[::1] kappa = state.kappa, slope = state.slope
    cdef double[:, ::1] was = state.now, after = np.empty((5, n)) if moved else state.now, columns = np.empty((5, b))
    sums = np.zeros(square + 3 * P + SCALARS)
    cdef double[::1] view = sums
    cdef double* out = &view[0]
    cdef double* adj = out + square
    cdef double* tot = adj + 3 * P
    cdef double* col = &columns[0, 0]
    cdef const double* now[5]
    cdef const double* d[5]
    cdef double* new[5]
    cdef double corner = 0.0, side[3]
    for j in range(5 if n else 0):       # no sample, no address
        now[j], new[j] = &was[j, 0], &after[j, 0]
        d[j] = &state.step[j, 0] if moved else NULL
    side[0] = side[1] = side[2] = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            for i in range(lo, hi):
                j, w, y, kap = i - lo, rows.w[i], rows.y[i], kappa[i if many else 0]
                u, t, r, c, a = now[0][i], now[1][i], now[2][i], now[3][i], now[4][i]
                if moved:
                    u += primal * d[0][i]
                    if kap != INFINITY:
                        t, r = t * (1.0 + primal * d[1][i]), r * (1.0 + primal * d[2][i])
                        c, a = c * (1.0 + dual * d[3][i]), a * (1.0 + dual * d[4][i])
                        if t <= 0.0 or r <= 0.0: lift(&t, &r, KEPT * now[1][i], KEPT * now[2][i], 1.0)
                        if c <= 0.0 or a <= 0.0: lift(&c, &a, KEPT * now[3][i], KEPT * now[4][i], -1.0)
                    new[0][i], new[1][i], new[2][i], new[3][i], new[4][i] = u, t, r, c, a
                h = terms(slope, i, u, &s, &curved)
                tot[0] += w * h
                tot[5] += w * (h + s * u)
                if kap == INFINITY:
                    tot[1] += w * h
                    col[j], col[4 * b + j] = -w * s * y, w * curved
                    col[b + j] = col[2 * b + j] = col[3 * b + j] = 0.0
                    continue
                it, ir = 1.0 / t, 1.0 / r
                st, sr = c * it, a * ir
                give = 1.0 / (st + sr)
                om = w * sr * (st * give)                # curvature of the hinge
                aff = w * (sr * give - a)                # what a gains when all products go to zero
                cen = w * (c - a) * it * ir * give       # ... per unit of centring
                col[j], col[b + j], col[2 * b + j] = w * (a - s) * y, aff * y, cen * y
                if om < least * w: om = 0.0
                col[3 * b + j], col[4 * b + j] = -kap * om * y, w * curved + om
                if om > 0.0: tot[7] += 1.0
                corner += kap * kap * om
                side[0] -= kap * w * a
                side[1] -= kap * aff
                side[2] -= kap * cen
                over = u - kap * lam
                tot[1] += w * (h + (over if over > 0.0 else 0.0))
                tot[2] += w * (c * t + a * r)
                tot[3] += 2.0 * w
            rows.adjoint(lo, hi, col, 3, adj)
            if gram: rows.gram(lo, hi, col + 4 * b, out)
            else: rows.squares(lo, hi, col + 4 * b, out)
            rows.adjoint(lo, hi, col + 3 * b, 1, out + square - P)
        out[square - 1] = corner
        for j in range(3): adj[j * P + last] = side[j]
    rows.free()
    return (new_state(kappa, slope, after) if moved else state), sums


def curvature_pair(CompiledRows rows, PairState state):
    """The weights of the samples in the Gram matrix."""
    cdef Py_ssize_t i
    cdef bint many = state.kappa.shape[0] > 1
    cdef double s, st, sr
    weights = np.empty(rows.n_samples)
    cdef double[::1] d = weights
    for i in range(rows.n_samples):
        loss_terms(state.now[0, i], &s)
        d[i] = s * (1.0 - s)
        if state.kappa[i if many else 0] != INFINITY:
            st, sr = state.now[3, i] / state.now[1, i], state.now[4, i] / state.now[2, i]
            d[i] += st * sr / (st + sr)
        d[i] *= rows.w[i]
    return weights


def predict_pair(CompiledRows rows, PairState state, const double[::1] dcoef, double light):
    """All products to zero: how far, what is left, and the pull of the second-order terms."""
    cdef Py_ssize_t block, i, lo, hi, n = rows.n_samples, b = rows.panel, last = rows.n_columns
    cdef bint many = state.kappa.shape[0] > 1
    cdef double t, r, c, a, w, it, ir, st, sr, give, dv, dt, dr, dc, da, e, f, pull, pt, pr, kap, dlam = dcoef[last], side = 0.0
    cdef const double[::1] kappa = state.kappa, slope = state.slope
    cdef double[:, ::1] now = state.now, second = np.empty((2, n)), columns = np.empty((2, b))
    sums = np.zeros(last + 4 + 2 * LEVELS)
    cdef double[::1] view = sums
    cdef double* out = &view[0]
    cdef double* tot = out + last + 1
    cdef double* col = &columns[0, 0]
    cdef double* du = col + b
    cdef PairState found = new_state(kappa, slope, now)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &dcoef[0], du)
            for i in range(lo, hi):
                kap = kappa[i if many else 0]
                if kap == INFINITY:
                    col[i - lo] = second[0, i] = second[1, i] = 0.0
                    continue
                w, t, r, c, a = rows.w[i], now[1, i], now[2, i], now[3, i], now[4, i]
                it, ir = 1.0 / t, 1.0 / r
                st, sr = c * it, a * ir
                give = 1.0 / (st + sr)
                pt, pr = w * c * t, w * a * r
                dv = rows.y[i] * du[i - lo] - kap * dlam
                dt, dr = (sr * dv - 1.0) * give * it, -(st * dv + 1.0) * give * ir
                dc, da = -1.0 - dt, -1.0 - dr
                e, f = dt * dc, dr * da
                tot[2] += pt * e + pr * f
                e, f = max(-SECOND, min(e, SECOND)), max(-SECOND, min(f, SECOND))
                second[0, i], second[1, i] = e, f
                pull = -w * a * (f - ir * give * (c * e + a * f))
                col[i - lo] = pull * rows.y[i]
                side -= kap * pull
                tot[0] += pt * dt + pr * dr
                tot[1] += pt * dc + pr * da
                if w > light: book(w, t, r, c, a, dt, dr, dc, da, tot + 3)
            rows.adjoint(lo, hi, col, 1, out)
        out[last] = side
    rows.free()
    found.second = second
    return found, sums


def correct_pair(CompiledRows rows, PairState state, const double[::1] dcoef, double centre, double share, double light):
    """Towards ``centre``, with a share of the predictor's second-order terms."""
    cdef Py_ssize_t block, i, lo, hi, n = rows.n_samples, b = rows.panel
    cdef bint many = state.kappa.shape[0] > 1
    cdef double t, r, c, a, w, it, ir, st, sr, give, dv, dt, dr, dc, da, e, f, push, s, curved, kap, dlam = dcoef[rows.n_columns]
    cdef const double[::1] kappa = state.kappa, slope = state.slope
    cdef double[:, ::1] now = state.now, second = state.second, step = np.empty((5, n))
    cdef double[::1] work = np.empty(b)
    sums = np.zeros(2 + 2 * LEVELS)
    cdef double[::1] view = sums
    cdef double* tot = &view[0]
    cdef double* du = &work[0]
    cdef PairState found = new_state(kappa, slope, now)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &dcoef[0], du)
            for i in range(lo, hi):
                w, kap = rows.w[i], kappa[i if many else 0]
                du[i - lo] *= rows.y[i]
                terms(slope, i, now[0, i], &s, &curved)
                tot[0] -= w * s * du[i - lo]
                tot[1] += w * curved * du[i - lo] * du[i - lo]
                step[0, i] = du[i - lo]
                if kap == INFINITY:
                    step[1, i] = step[2, i] = step[3, i] = step[4, i] = 0.0
                    continue
                t, r, c, a = now[1, i], now[2, i], now[3, i], now[4, i]
                it, ir = 1.0 / t, 1.0 / r
                st, sr = c * it, a * ir
                give = 1.0 / (st + sr)
                dv = du[i - lo] - kap * dlam
                e = centre / (c * t) - 1.0 - share * second[0, i]
                f = centre / (a * r) - 1.0 - share * second[1, i]
                push = c * e + a * f
                dt, dr = (push + sr * dv) * give * it, (push - st * dv) * give * ir
                dc, da = e - dt, f - dr
                step[1, i], step[2, i], step[3, i], step[4, i] = dt, dr, dc, da
                if w > light: book(w, t, r, c, a, dt, dr, dc, da, tot + 2)
    rows.free()
    found.second, found.step = second, step
    return found, sums


def certify_pair(CompiledRows rows, PairState state, point, const double[::1] dcoef):
    """The dual point (s, a) after one more correction, its adjoint and entropy."""
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, b = rows.panel, last = rows.n_columns
    cdef bint many = state.kappa.shape[0] > 1, first = point is None
    cdef double w, s, a, now_s, st, sr, du, total = 0.0, spent = 0.0, kap, dlam = dcoef[last]
    cdef const double[::1] kappa = state.kappa, slope = state.slope
    cdef double[:, ::1] now = state.now, after = np.empty((2, n)), columns = np.empty((2, b))
    cdef const double[:, ::1] before = after if first else point
    sums = np.zeros(last + 3)
    cdef double[::1] view = sums
    cdef double* out = &view[0]
    cdef double* col = &columns[0, 0]
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &dcoef[0], col + b)
            for i in range(lo, hi):
                j, w, du, kap = i - lo, rows.w[i], rows.y[i] * col[b + i - lo], kappa[i if many else 0]
                loss_terms(now[0, i], &now_s)
                s, a = now_s if first else before[0, i], now[4, i] if first else before[1, i]
                if first or s > 0.0: s = corrected(s, -now_s * (1.0 - now_s) * du)
                if kap != INFINITY:
                    st, sr = now[3, i] / now[1, i], now[4, i] / now[2, i]
                    a = min(max(a + st * sr / (st + sr) * (du - kap * dlam), 0.0), 1.0)
                    spent += w * kap * a
                after[0, i], after[1, i] = s, a
                col[j] = w * (a - s) * rows.y[i]
                total += w * entropy(s)
            rows.adjoint(lo, hi, col, 1, out)
        out[last], out[last + 1], out[last + 2] = -spent, total, rows.length
    rows.free()
    return np.asarray(after), sums


# --- the loss alone (κ = ∞): one visit per iteration; the other two cost nothing of size N -------------


def open_loss(CompiledRows rows, const double[::1] coef):
    """The margins."""
    cdef Py_ssize_t block, i, lo, hi, n = rows.n_samples, b = rows.panel
    margins = np.empty(n)
    cdef double[::1] u = margins
    rows = rows.borrow()
    for block in range((n + b - 1) // b):
        lo, hi = block * b, min(block * b + b, n)
        rows.margins(lo, hi, &coef[0], &u[lo])
        for i in range(lo, hi): u[i] *= rows.y[i]
    rows.free()
    return margins


def linearise_loss(CompiledRows rows, const double[::1] u, const double[::1] direction, double primal, bint gram=True):
    """The margins after a step of this length along the direction, and the conditions there."""
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, P = rows.stride, b = rows.panel, square = P * P if gram else 2 * P
    cdef bint moved = primal != 0.0
    cdef double v, s, h, w
    margins = np.empty(n) if moved else np.asarray(u)
    sums = np.zeros(square + 3 * P + SCALARS)
    cdef double[::1] view = sums, after = margins if moved else np.empty(1)
    cdef double[:, ::1] columns = np.empty((3, b))
    cdef double* out = &view[0]
    cdef double* adj = out + square
    cdef double* tot = adj + 3 * P
    cdef double* col = &columns[0, 0]
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            if moved: rows.margins(lo, hi, &direction[0], col + 2 * b)
            for i in range(lo, hi):
                j, w, v = i - lo, rows.w[i], u[i]
                if moved:
                    v += primal * rows.y[i] * col[2 * b + j]
                    after[i] = v
                h = loss_terms(v, &s)
                col[j], col[b + j] = -w * s * rows.y[i], w * s * (1.0 - s)
                tot[0] += w * h
                tot[5] += w * (h + s * v)
            rows.adjoint(lo, hi, col, 1, adj)
            if gram: rows.gram(lo, hi, col + b, out)
            else: rows.squares(lo, hi, col + b, out)
        tot[1] = tot[0]
    rows.free()
    return margins, sums


def certify_loss(CompiledRows rows, const double[::1] u, point, const double[::1] dcoef):
    """The dual point (s, 0) after one more correction, its adjoint and entropy."""
    cdef Py_ssize_t block, i, lo, hi, n = rows.n_samples, b = rows.panel, last = rows.n_columns
    cdef bint first = point is None
    cdef double s, now, total = 0.0
    cdef double[:, ::1] after = np.zeros((2, n)), columns = np.empty((2, b))
    cdef const double[:, ::1] before = after if first else point
    sums = np.zeros(last + 3)
    cdef double[::1] view = sums
    cdef double* out = &view[0]
    cdef double* col = &columns[0, 0]
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &dcoef[0], col + b)
            for i in range(lo, hi):
                loss_terms(u[i], &now)
                s = now if first else before[0, i]
                if first or s > 0.0: s = corrected(s, -now * (1.0 - now) * rows.y[i] * col[b + i - lo])
                after[0, i] = s
                col[i - lo] = -rows.w[i] * s * rows.y[i]
                total += rows.w[i] * entropy(s)
            rows.adjoint(lo, hi, col, 1, out)
        out[last + 1], out[last + 2] = total, rows.length
    rows.free()
    return np.asarray(after), sums
