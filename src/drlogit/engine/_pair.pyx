"""The samples of the flip pair: three visits per iteration, all in compiled loops.

``linearise`` goes where the last direction leads and returns the optimality conditions there,
``predict`` and ``correct`` follow a direction of (β, b, λ).  Each is a function of the rows of a
block and of what it remembers, and returns a new state and ONE flat array of sums over the samples,
so that blocks of rows (in memory, in files, with Dask workers) are combined by adding arrays:

conditions  Gram P·P (lower triangle; or its diagonal and λ's column), 3 adjoints of P (gradient,
            affine, centring), SCALARS
predicted   pull P, changes of the products with primal, dual and both steps, 2·LEVELS costs of
            step lengths
limits      slope and curvature of the loss, 2·LEVELS costs
certify     of the dual point after a correction: adjoint P, entropy, additions in a sum (one visit
            more, when a bound is in reach)

P counts (β, b, λ).  A sample has slacks t - r = u - κλ and multipliers c + a = 1 with c t = a r = μ
on the central path; κ may differ from sample to sample.  In a problem without flips a state holds
margins only, and ``linearise`` is the only visit of an iteration.  Whether a problem has flips is
said when a state is opened: it is the same for all blocks, whatever κ their own samples have.

A step towards products E and F (both changes together) solves c Dt + t Dc = E, a Dr - r Dc = F, Dt
- Dr = dv: one division per sample and iteration, q = 1/(c r + a t).  Loops over a panel know that
their arrays do not overlap, have no branches and no calls, and so take two samples at a time.

Derivation: docs/algorithm.md, (3) to (7), (10) and (12).
"""
import numpy as np
from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy, memset
from drlogit.problem._losses cimport add_entropies, losses
from drlogit.rows._clones cimport cloned
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit
from .settings import SETTINGS

cdef extern from *:
    """
    typedef const double *__restrict In;
    typedef double *__restrict Out;
    """
    ctypedef const double* In
    ctypedef double* Out

# the κ of a label that cannot flip: all that it is multiplied by is zero
cdef double NEVER = -1.0
cdef double KEPT = SETTINGS.kept, SECOND = SETTINGS.second_order, EMPTIED = SETTINGS.emptied
cdef double PASSING = SETTINGS.passing


cdef cloned central(Py_ssize_t n, In kap, In u, double lam, double mu, Out t, Out r, Out c,
                    Out a) noexcept nogil:
    """t - r = u - κλ, c t = a r = μ, c + a = 1; 0, 1, 1 and 0 where the label cannot flip (κ =
    NEVER).
    """
    cdef Py_ssize_t i
    cdef double v, size, root, large, small
    cdef bint there
    for i in range(n):
        v, there = u[i] - kap[i] * lam, kap[i] >= 0.0
        size, root = fabs(v), sqrt(v * v + 4.0 * mu * mu)
        large, small = 0.5 * (2.0 * mu + size + root), mu + 2.0 * mu * mu / (size + root)
        t[i] = (large if v > 0.0 else small) if there else 0.0
        r[i] = (small if v > 0.0 else large) if there else 1.0
        c[i] = mu / t[i] if there else 1.0
        a[i] = mu / r[i] if there else 0.0


cdef inline void lift(double* one, double* other, double least, double least_other,
                      double sign) noexcept nogil:
    """Whichever is further below its least goes there; the other goes along (1) or gives (-1)."""
    cdef double missing = least - one[0], missing_other = least_other - other[0]
    if missing >= missing_other:
        other[0] += sign * missing
        one[0] = least
    else:
        one[0] += sign * missing_other
        other[0] = least_other


# --- step lengths: what it costs to go further than samples allow ---------------------------------

# Levels are the first five bits of the significand: 32 for each factor of two, without a logarithm.
cdef long long SHIFT = 47, FIRST = 1023 << 5


cdef void limit(double* costs, double fall, double cost) noexcept nogil:
    """Book what it costs to go further than a sample allows: one over ``fall`` > 1, what shrinks
    fastest.
    """
    cdef long long level
    memcpy(&level, &fall, sizeof(double))
    level = (level >> SHIFT) - FIRST
    costs[level if level < LEVELS - 1 else LEVELS - 1] += cost


cpdef (double, double) longest(double[::1] sums, Py_ssize_t first, double price):
    """Longest primal and dual steps that pass samples at no more than this price; costs, if any,
    from ``first`` on.
    """
    cdef double found[2]
    cdef double total
    cdef long long level
    cdef Py_ssize_t kind, k
    for kind in range(2):
        total, found[kind] = 0.0, 1.0
        if sums.shape[0] == first:
            continue
        fit(sums.shape[0] == first + 2 * LEVELS, "costs of steps")
        for k in range(LEVELS - 1, -1, -1):
            total += sums[first + kind * LEVELS + k]
            if total > price:
                level = (k + 1 + FIRST) << SHIFT
                memcpy(&found[kind], &level, sizeof(double))
                found[kind] = 1.0 / found[kind]
                break
    return found[0], found[1]


# --- a panel of samples ---------------------------------------------------------------------------


cdef void along(Py_ssize_t n, Out out, In start, double length, In step) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = start[i] + length * step[i]


cdef cloned conditions(Py_ssize_t n, Py_ssize_t b, In w, In y, In kap, In u, In s, In h, In t, In r,
                       In c, In a, Out q, double lam, double bend, double least, Out col,
                       double* tot, double* side) noexcept nogil:
    """Columns of λ, gradient, affine and centring adjoints and of the Gram matrix; sums, with λ's
    share of the adjoints.
    """
    cdef Py_ssize_t i
    cdef double there, om, aff, cen, over, value = 0.0, products = 0.0, degree = 0.0, hinges = 0.0
    cdef double corner = 0.0
    cdef double spent = 0.0, affine = 0.0, centring = 0.0
    for i in range(n):
        there = 1.0 if kap[i] >= 0.0 else 0.0
        q[i] = there / (c[i] * r[i] + a[i] * t[i])
        om = w[i] * (c[i] * a[i] * q[i])                # curvature of the hinge
        om = om if om >= least * w[i] else 0.0
        aff = w[i] * a[i] * (t[i] * q[i] - there)       # what a gains when all products go to zero
        cen = w[i] * (c[i] - a[i]) * q[i]               # ... per unit of centring
        col[i], col[b + i] = -kap[i] * om * y[i], w[i] * (a[i] - s[i]) * y[i]
        col[2 * b + i], col[3 * b + i] = aff * y[i], cen * y[i]
        col[4 * b + i] = w[i] * bend * s[i] * (1.0 - s[i]) + om
        over = there * (u[i] - kap[i] * lam)
        value += w[i] * (h[i] + (over if over > 0.0 else 0.0))
        products += w[i] * (c[i] * t[i] + a[i] * r[i])
        degree += w[i] * there
        hinges += 1.0 if om > 0.0 else 0.0
        corner += kap[i] * kap[i] * om
        spent += kap[i] * w[i] * a[i]
        affine += kap[i] * aff
        centring += kap[i] * cen
    tot[1] += value
    tot[2] += products
    tot[3] += 2.0 * degree
    tot[7] += hinges
    side[0] += corner
    side[1] -= spent
    side[2] -= affine
    side[3] -= centring


cdef cloned towards(Py_ssize_t n, In kap, In t, In r, In c, In a, In q, In du, double dlam,
                    double centre, double share, In e, In f, Out dt, Out dr, Out dc) noexcept nogil:
    """Changes that bring the products to ``centre``, with a share of second-order terms e, f."""
    cdef Py_ssize_t i
    cdef double dv, one, other, both
    for i in range(n):
        dv = du[i] - kap[i] * dlam
        one, other = centre - c[i] * t[i] - share * e[i], centre - a[i] * r[i] - share * f[i]
        both = r[i] * one + t[i] * other
        dt[i], dr[i] = (both + a[i] * t[i] * dv) * q[i], (both - c[i] * r[i] * dv) * q[i]
        dc[i] = (a[i] * one - c[i] * other - c[i] * a[i] * dv) * q[i]


cdef cloned predicted(Py_ssize_t n, In w, In y, In kap, In t, In r, In c, In a, In q, In dt, In dr,
                      In dc, Out e, Out f, Out col, double* tot, double* side) noexcept nogil:
    """Second-order terms, what they pull at, and what becomes of the products."""
    cdef Py_ssize_t i
    cdef double one, other, pull, most, primal = 0.0, dual = 0.0, both = 0.0, spent = 0.0
    for i in range(n):
        one, other = dt[i] * dc[i], -dr[i] * dc[i]
        primal += w[i] * (c[i] * dt[i] + a[i] * dr[i])
        dual += w[i] * (t[i] - r[i]) * dc[i]
        both += w[i] * (one + other)
        most = SECOND * c[i] * t[i]
        one = one if one < most else most
        e[i] = one if one > -most else -most
        most = SECOND * a[i] * r[i]
        other = other if other < most else most
        f[i] = other if other > -most else -most
        pull = w[i] * (a[i] * e[i] - c[i] * f[i]) * q[i]
        col[i] = pull * y[i]
        spent += kap[i] * pull
    tot[0] += primal
    tot[1] += dual
    tot[2] += both
    side[0] -= spent


cdef void book(Py_ssize_t n, In w, In t, In r, In c, In a, In dt, In dr, In dc,
               double* costs) noexcept nogil:
    """Book the samples that do not allow the whole step."""
    cdef Py_ssize_t i
    cdef double own
    for i in range(n):
        own = c[i] * t[i] + a[i] * r[i]
        if t[i] + dt[i] < 0.0 or r[i] + dr[i] < 0.0:
            limit(costs, max(-dt[i] / t[i], -dr[i] / r[i]),
                  w[i] * (own + PASSING * max(-dt[i], -dr[i])))
        if c[i] + dc[i] < 0.0 or a[i] - dc[i] < 0.0:
            limit(costs + LEVELS, max(-dc[i] / c[i], dc[i] / a[i]),
                  w[i] * (own + PASSING * fabs(dc[i]) * (t[i] + r[i])))


# --- visits ---------------------------------------------------------------------------------------


cdef class PairState:
    def __init__(self, kappa, slope, now, second=None, step=None):
        self.kappa, self.slope, self.now = kappa, slope, now
        self.second, self.step = second, step

    def parts(self):
        """Everything that it consists of, as arrays."""
        second = None if self.second is None else np.asarray(self.second)
        step = None if self.step is None else np.asarray(self.step)
        return np.asarray(self.kappa), np.asarray(self.slope), np.asarray(self.now), second, step

    def __reduce__(self):
        return PairState, self.parts()

    def __sizeof__(self):
        return 200 + sum([part.nbytes for part in self.parts() if part is not None])

    def curvature(self):
        """Of each sample, before weights (the log-loss)."""
        now = np.asarray(self.now)
        own = now[S] * (1.0 - now[S])
        return own + now[C] * now[A] * now[Q] if len(now) == TABLES else own


cdef PairState new_state(PairState of, double[:, ::1] now):
    cdef PairState state = PairState.__new__(PairState)
    state.kappa, state.slope, state.now = of.kappa, of.slope, now
    state.second = state.step = None
    return state


cdef int check(CompiledRows rows, PairState state, const double[::1] coef) except -1:
    """Arrays of the lengths that a visit reads; λ is the last of the coefficients."""
    cdef Py_ssize_t n = rows.n_samples, tables = state.now.shape[0], linear = state.slope.shape[0]
    fit(coef.shape[0] == rows.stride and state.now.shape[1] == n and (linear == 0 or linear == n),
        "coefficients and samples")
    fit((tables == TABLES and state.kappa.shape[0] == n)
        or (tables == 2 and state.kappa.shape[0] == 0), "tables and kappa")
    if state.second is not None:
        fit(state.second.shape[0] == 2 and state.second.shape[1] == n, "second-order terms")
    if state.step is not None:
        fit(state.step.shape[0] == 4 and state.step.shape[1] == n, "steps")
    return 0


cdef void rows_of(double[:, ::1] table, Py_ssize_t first, double** into) noexcept nogil:
    """Where the rows of a table begin, from sample ``first`` on."""
    cdef Py_ssize_t k
    for k in range(table.shape[0]):
        into[k] = &table[k, first]


def open_pair(CompiledRows rows, const double[::1] kappa, const double[::1] slope,
              const double[::1] coef, double mu):
    """Slacks and multipliers on the central path; ``slope`` per sample for a linear loss, or empty.

    ``kappa`` is of each sample, one for all, or empty in a problem without flips.
    """
    cdef Py_ssize_t block, i, lo, m, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t other = 1 if kappa.shape[0] > 1 else 0
    cdef bint flips = kappa.shape[0] > 0
    fit(kappa.shape[0] < 2 or kappa.shape[0] == n, "kappa")
    cdef double[::1] kap = np.empty(n if flips else 0)
    for i in range(kap.shape[0]):
        kap[i] = kappa[other * i] if kappa[other * i] < INFINITY else NEVER
    cdef double[:, ::1] now = rows.room(TABLES if flips else 2, n)
    cdef PairState state = PairState(kap, slope, now)
    check(rows, state, coef)
    cdef double* v[TABLES]
    rows = rows.borrow()
    for block in range((n + b - 1) // b):
        lo, m = block * b, min(b, n - block * b)
        rows_of(now, lo, v)
        rows.margins(lo, lo + m, &coef[0], v[U])
        for i in range(m):
            v[U][i] *= rows.y[lo + i]
        if flips:
            central(m, &kap[lo], v[U], coef[rows.n_columns], mu, v[T], v[R], v[C], v[A])
    rows.free()
    return state


def linearise_pair(CompiledRows rows, PairState state, const double[::1] coef, double primal,
                   double dual, bint gram=True, double least=0.0):
    """Go by these lengths along the state's direction, to ``coef``: the state and the conditions
    there.

    Hinges of less curvature than ``least`` stay out of the Gram matrix.
    """
    cdef Py_ssize_t block, i, j, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride
    cdef Py_ssize_t last = P - 1
    cdef Py_ssize_t square = P * P if gram else 2 * P, tables = state.now.shape[0]
    cdef bint flips = tables == TABLES, linear = state.slope.shape[0] > 0
    check(rows, state, coef)
    cdef bint moved = state.step is not None and (primal != 0.0 or dual != 0.0)
    cdef double bend = 0.0 if linear else 1.0, lam = coef[last], loss = 0.0, entropy = 0.0
    cdef double[:, ::1] was = state.now, after = rows.room(tables, n), columns = np.empty((6, b))
    cdef double[:, ::1] step = state.step
    sums = rows.room(1, square + 3 * P + SCALARS)[0]
    cdef double[::1] view = sums
    cdef double* out = &view[0]
    cdef double* tot = out + square + 3 * P
    cdef double* col = &columns[0, 0]
    cdef double* h = col + 5 * b
    cdef double* old[TABLES]
    cdef double* new[TABLES]
    cdef double* d[4]
    cdef double side[4]
    cdef const double* w
    cdef const double* y
    side[0] = side[1] = side[2] = side[3] = 0.0
    rows = rows.borrow()
    with nogil:
        memset(out, 0, view.shape[0] * sizeof(double))
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            w, y = &rows.w[lo], &rows.y[lo]
            rows_of(was, lo, old)
            rows_of(after, lo, new)
            if not flips:
                rows.margins(lo, lo + m, &coef[0], new[U])
                for i in range(m):
                    new[U][i] *= y[i]
            elif moved:
                rows_of(step, lo, d)
                along(m, new[U], old[U], primal, d[0])
                along(m, new[T], old[T], primal, d[1])
                along(m, new[R], old[R], primal, d[2])
                along(m, new[C], old[C], dual, d[3])
                along(m, new[A], old[A], -dual, d[3])
                for i in range(m):
                    if state.kappa[lo + i] < 0.0:
                        continue
                    if new[T][i] <= 0.0 or new[R][i] <= 0.0:
                        lift(&new[T][i], &new[R][i], KEPT * old[T][i], KEPT * old[R][i], 1.0)
                    if new[C][i] <= 0.0 or new[A][i] <= 0.0:
                        lift(&new[C][i], &new[A][i], KEPT * old[C][i], KEPT * old[A][i], -1.0)
            else:
                for j in range(tables):
                    memcpy(new[j], old[j], m * sizeof(double))
            if linear:
                for i in range(m):
                    new[S][i] = state.slope[lo + i]
                    h[i] = -new[S][i] * new[U][i]
            else:
                losses(m, new[U], new[S], h)
            for i in range(m):
                loss += w[i] * h[i]
                entropy += w[i] * (h[i] + new[S][i] * new[U][i])
            if flips:
                conditions(m, b, w, y, &state.kappa[lo], new[U], new[S], h, new[T], new[R], new[C],
                           new[A], new[Q], lam, bend, least, col, tot, side)
                rows.adjoint(lo, lo + m, col, 4, out + square - P)
            else:
                for i in range(m):
                    col[b + i] = -w[i] * new[S][i] * y[i]
                    col[4 * b + i] = w[i] * new[S][i] * (1.0 - new[S][i])
                rows.adjoint(lo, lo + m, col + b, 1, out + square)
            if gram:
                rows.gram(lo, lo + m, col + 4 * b, out)
            else:
                rows.squares(lo, lo + m, col + 4 * b, out)
        tot[0], tot[5] = loss, entropy
        if not flips:
            tot[1] = loss
        for j in range(4):
            out[square - 1 + j * P] = side[j]
    rows.free()
    return new_state(state, after), sums


def predict_pair(CompiledRows rows, PairState state, const double[::1] dcoef):
    """All products to zero: how far, what is left, and the pull of the second-order terms."""
    cdef Py_ssize_t block, lo, m, i, n = rows.n_samples, b = rows.panel, last = rows.n_columns
    check(rows, state, dcoef)
    fit(state.now.shape[0] == TABLES, "flips")
    sums = np.zeros(last + 4 + 2 * LEVELS)
    cdef double[:, ::1] now = state.now, second = rows.room(2, n), columns = np.empty((5, b))
    cdef double[::1] view = sums
    cdef double* tot = &view[last + 1]
    cdef double* col = &columns[0, 0]
    cdef double* du = col + b
    cdef double* dt = col + 2 * b
    cdef double* dr = col + 3 * b
    cdef double* dc = col + 4 * b
    cdef double* v[TABLES]
    cdef const double* w
    cdef const double* y
    cdef const double* kap
    cdef PairState found = new_state(state, now)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            w, y, kap = &rows.w[lo], &rows.y[lo], &state.kappa[lo]
            rows_of(now, lo, v)
            rows.margins(lo, lo + m, &dcoef[0], du)
            for i in range(m):
                du[i] *= y[i]
            towards(m, kap, v[T], v[R], v[C], v[A], v[Q], du, dcoef[last], 0.0, 0.0, v[T], v[R], dt,
                    dr, dc)
            predicted(m, w, y, kap, v[T], v[R], v[C], v[A], v[Q], dt, dr, dc, &second[0, lo],
                      &second[1, lo], col, tot, &view[last])
            book(m, w, v[T], v[R], v[C], v[A], dt, dr, dc, tot + 3)
            rows.adjoint(lo, lo + m, col, 1, &view[0])
    rows.free()
    found.second = second
    return found, sums


def correct_pair(CompiledRows rows, PairState state, const double[::1] dcoef, double centre,
                 double share):
    """Towards ``centre``, with a share of the predictor's second-order terms."""
    cdef Py_ssize_t block, i, lo, m, n = rows.n_samples, b = rows.panel
    check(rows, state, dcoef)
    fit(state.now.shape[0] == TABLES and state.second is not None, "flips")
    cdef bint linear = state.slope.shape[0] > 0
    cdef double dlam = dcoef[rows.n_columns], slope = 0.0, curvature = 0.0
    cdef double[:, ::1] now = state.now, second = state.second, step = rows.room(4, n)
    sums = np.zeros(2 + 2 * LEVELS)
    cdef double[::1] view = sums
    cdef double* tot = &view[0]
    cdef double* v[TABLES]
    cdef double* d[4]
    cdef const double* w
    cdef const double* y
    cdef PairState found = new_state(state, now)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            w, y = &rows.w[lo], &rows.y[lo]
            rows_of(now, lo, v)
            rows_of(step, lo, d)
            rows.margins(lo, lo + m, &dcoef[0], d[0])
            for i in range(m):
                d[0][i] *= y[i]
                slope -= w[i] * v[S][i] * d[0][i]
                if not linear:
                    curvature += w[i] * v[S][i] * (1.0 - v[S][i]) * d[0][i] * d[0][i]
            towards(m, &state.kappa[lo], v[T], v[R], v[C], v[A], v[Q], d[0], dlam, centre, share,
                    &second[0, lo], &second[1, lo], d[1], d[2], d[3])
            book(m, w, v[T], v[R], v[C], v[A], d[1], d[2], d[3], tot + 2)
        tot[0], tot[1] = slope, curvature
    rows.free()
    found.step = step
    return found, sums


cdef double corrected(double s, double ds) noexcept nogil:
    """s + ds within [0, 1]; nothing where hardly anything would be left (separated samples)."""
    return 0.0 if not s + ds > EMPTIED * s else min(s + ds, 1.0)


def certify_pair(CompiledRows rows, both, const double[::1] dcoef, double least=0.0):
    """The dual point (s, a) after one more correction, its adjoint and entropy; of a state, or
    (state, last point).

    Hinges of less curvature than ``least``, which are not in the Gram matrix, stay as they are.
    """
    cdef PairState state
    state, point = both if isinstance(both, tuple) else (both, None)
    check(rows, state, dcoef)
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, b = rows.panel, last = rows.n_columns
    cdef bint first = point is None, flips = state.now.shape[0] == TABLES
    cdef double w, s, a, now_s, du, om, total = 0.0, spent = 0.0, dlam = dcoef[last]
    cdef double[:, ::1] now = state.now, after = np.empty((2, n)), columns = np.empty((2, b))
    cdef const double[:, ::1] before = after if first else point
    fit(before.shape[0] == 2 and before.shape[1] == n, "dual point")
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
                j, w, du, now_s, a = i - lo, rows.w[i], rows.y[i] * col[b + i - lo], now[S, i], 0.0
                s = now_s if first else before[0, i]
                if first or s > 0.0:
                    s = corrected(s, -now_s * (1.0 - now_s) * du)
                if flips:
                    a = now[A, i] if first else before[1, i]
                    om = now[C, i] * now[A, i] * now[Q, i]
                    if om >= least:
                        a = min(max(a + om * (du - state.kappa[i] * dlam), 0.0), 1.0)
                    spent += w * state.kappa[i] * a
                after[0, i], after[1, i] = s, a
                col[j] = w * (a - s) * rows.y[i]
            rows.adjoint(lo, hi, col, 1, out)
            add_entropies(hi - lo, &rows.w[lo], &after[0, lo], &total)
        out[last], out[last + 1], out[last + 2] = -spent, total, rows.length
    rows.free()
    return np.asarray(after), sums
