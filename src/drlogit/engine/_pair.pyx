"""The samples of the flip pair (two labels that may flip): visits in compiled loops.

``linearise_pair`` moves the samples along their direction and returns the optimality conditions
there.  ``predict_pair`` and ``correct_pair`` follow a direction of (β, b, λ).  ``certify_pair``
corrects the dual point when a bound is within reach.  Each takes the rows of a block and its state
and returns a new state and an array of sums (``_sums``).

    u        margin                          t, r     slacks of the hinge, (3)
    s        dual probability, (2)           c, a     their multipliers, c + a = 1
    h        loss                            q        1/(c r + a t), (7)
    w, y     weight and label                om       stiffness ω = c a q of the hinge, (8)
    kap      flip cost κ                     e, f     second-order terms of c t and a r, (6)
    v        u - κλ                          d...     changes along a direction

In a problem without flips a state has margins and dual probabilities only, and ``linearise_pair``
is the only visit of an iteration.  All blocks agree on that, whatever κ their own samples have.

Loops over a panel of samples know that their arrays do not overlap, and have no branches and no
calls, so that the compiler vectorises them.

Derivation: docs/algorithm.md, (3) to (7), (10) and (12).
"""
import numpy as np
from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy
from drlogit.problem._losses cimport add_entropies, losses
from drlogit.rows._clones cimport In, Out, cloned
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit
from . cimport _sums
from ._sums cimport Linearised, book, linearised
from .settings import SETTINGS

cdef double NEVER = -1.0        # κ of a label that cannot flip; all that it multiplies is zero
cdef double KEPT = SETTINGS.kept, PASSING = SETTINGS.blocking
cdef double SECOND = SETTINGS.second_order, EMPTIED = SETTINGS.emptied

cdef enum:
    # rows of a state's table; without flips it has only the first two
    U, S, T, R, C, A, Q, TABLES

cdef enum:
    # rows of a direction: changes of u, t, r, c (that of a is minus that of c)
    DU, DT, DR, DC, STEPS

cdef enum:
    # columns of a panel, as the adjoint takes them, then weights of the Gram matrix and losses
    LAMBDA, GRADIENT, AFFINE, CENTRING, GRAM, LOSSES, COLUMNS
    ADJOINTS = GRAM

# --- a panel of samples -----------------------------------------------------------------------


cdef cloned central(Py_ssize_t n, In kap, In u, double lam, double mu,
                    Out t, Out r, Out c, Out a) noexcept nogil:
    """The central path (5) in closed form; t, r, c, a = 0, 1, 1, 0 where the label cannot flip."""
    cdef Py_ssize_t i
    cdef double v, size, root, large, small
    cdef bint flips
    for i in range(n):
        v, flips = u[i] - kap[i] * lam, kap[i] >= 0.0
        size, root = fabs(v), sqrt(v * v + 4.0 * mu * mu)
        large, small = 0.5 * (2.0 * mu + size + root), mu + 2.0 * mu * mu / (size + root)
        t[i] = (large if v > 0.0 else small) if flips else 0.0
        r[i] = (small if v > 0.0 else large) if flips else 1.0
        c[i] = mu / t[i] if flips else 1.0
        a[i] = mu / r[i] if flips else 0.0


cdef void along(Py_ssize_t n, Out out, In start, double length, In step) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = start[i] + length * step[i]


cdef inline void lift(double* one, double* other, double least, double least_other,
                      double sign) noexcept nogil:
    """Raise whichever is further below its least value to it; the other follows by the sign."""
    cdef double missing = least - one[0], missing_other = least_other - other[0]
    if missing >= missing_other:
        other[0] += sign * missing
        one[0] = least
    else:
        one[0] += sign * missing_other
        other[0] = least_other


cdef cloned conditions(Py_ssize_t n, Py_ssize_t b, In w, In y, In kap, In u, In s, In h, In t, In r,
                       In c, In a, Out q, double lam, double bend, double least, Out col,
                       double* scalars, double* side) noexcept nogil:
    """Columns of the linearisation, its scalars, and λ's entries of the adjoints (``side``).

    ``bend`` is 0 for a linear loss; hinges of less stiffness than ``least`` count as straight.
    """
    cdef Py_ssize_t i
    cdef double flips, om, aff, cen, over, value = 0.0, products = 0.0, degree = 0.0, hinges = 0.0
    cdef double corner = 0.0, spent = 0.0, affine = 0.0, centring = 0.0
    for i in range(n):
        flips = 1.0 if kap[i] >= 0.0 else 0.0
        q[i] = flips / (c[i] * r[i] + a[i] * t[i])
        om = w[i] * (c[i] * a[i] * q[i])
        om = om if om >= least * w[i] else 0.0
        aff = w[i] * a[i] * (t[i] * q[i] - flips)       # change of a when products go to zero
        cen = w[i] * (c[i] - a[i]) * q[i]               # ... for each unit of centring
        col[LAMBDA * b + i] = -kap[i] * om * y[i]
        col[GRADIENT * b + i] = w[i] * (a[i] - s[i]) * y[i]
        col[AFFINE * b + i], col[CENTRING * b + i] = aff * y[i], cen * y[i]
        col[GRAM * b + i] = w[i] * bend * s[i] * (1.0 - s[i]) + om
        over = flips * (u[i] - kap[i] * lam)
        value += w[i] * (h[i] + (over if over > 0.0 else 0.0))
        products += w[i] * (c[i] * t[i] + a[i] * r[i])
        degree += w[i] * flips
        hinges += 1.0 if om > 0.0 else 0.0
        corner += kap[i] * kap[i] * om
        spent += kap[i] * w[i] * a[i]
        affine += kap[i] * aff
        centring += kap[i] * cen
    scalars[_sums.VALUE] += value
    scalars[_sums.PRODUCTS] += products
    scalars[_sums.DEGREE] += 2.0 * degree
    scalars[_sums.COUNT] += hinges
    side[LAMBDA] += corner
    side[GRADIENT] -= spent
    side[AFFINE] -= affine
    side[CENTRING] -= centring


cdef cloned towards(Py_ssize_t n, In kap, In t, In r, In c, In a, In q, In du, double dlam,
                    double centre, double share, In e, In f, Out dt, Out dr, Out dc) noexcept nogil:
    """Changes (7) that bring the products to ``centre``, less a share of second-order terms."""
    cdef Py_ssize_t i
    cdef double dv, one, other, both
    for i in range(n):
        dv = du[i] - kap[i] * dlam
        one = centre - c[i] * t[i] - share * e[i]
        other = centre - a[i] * r[i] - share * f[i]
        both = r[i] * one + t[i] * other
        dt[i], dr[i] = (both + a[i] * t[i] * dv) * q[i], (both - c[i] * r[i] * dv) * q[i]
        dc[i] = (a[i] * one - c[i] * other - c[i] * a[i] * dv) * q[i]


cdef cloned predicted(Py_ssize_t n, In w, In y, In kap, In t, In r, In c, In a, In q, In dt, In dr,
                      In dc, Out e, Out f, Out col, double* changes, double* side) noexcept nogil:
    """Second-order terms, their column of the adjoint, and what becomes of the products."""
    cdef Py_ssize_t i
    cdef double one, other, force, most, primal = 0.0, dual = 0.0, both = 0.0, spent = 0.0
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
        force = w[i] * (a[i] * e[i] - c[i] * f[i]) * q[i]
        col[i] = force * y[i]
        spent += kap[i] * force
    changes[_sums.PRIMAL_CHANGE] += primal
    changes[_sums.DUAL_CHANGE] += dual
    changes[_sums.BOTH_CHANGE] += both
    side[0] -= spent


cdef void book_panel(Py_ssize_t n, In w, In t, In r, In c, In a, In dt, In dr, In dc,
                     double* costs) noexcept nogil:
    """Book the cost (10) of the samples that do not allow the whole step."""
    cdef Py_ssize_t i
    cdef double own
    for i in range(n):
        own = c[i] * t[i] + a[i] * r[i]
        if t[i] + dt[i] < 0.0 or r[i] + dr[i] < 0.0:
            book(costs, max(-dt[i] / t[i], -dr[i] / r[i]),
                 w[i] * (own + PASSING * max(-dt[i], -dr[i])))
        if c[i] + dc[i] < 0.0 or a[i] - dc[i] < 0.0:
            book(costs + _sums.LEVELS, max(-dc[i] / c[i], dc[i] / a[i]),
                 w[i] * (own + PASSING * fabs(dc[i]) * (t[i] + r[i])))


# --- states -----------------------------------------------------------------------------------


cdef class PairState:
    """What a block of samples remembers; visits make new states and leave the old ones alone.

    kappa    flip costs, NEVER where the label cannot flip; empty in a problem without flips
    slope    s of a linear loss -s u for each sample; empty with the log-loss
    now      the table of U to Q
    second   second-order terms of both products, after ``predict_pair``
    step     the direction, after ``correct_pair``
    """
    cdef const double[::1] kappa, slope
    cdef double[:, ::1] now, second, step

    def __init__(self, kappa, slope, now, second=None, step=None):
        self.kappa, self.slope, self.now = kappa, slope, now
        self.second, self.step = second, step

    def parts(self):
        """The arrays that it consists of."""
        second = None if self.second is None else np.asarray(self.second)
        step = None if self.step is None else np.asarray(self.step)
        return np.asarray(self.kappa), np.asarray(self.slope), np.asarray(self.now), second, step

    def __reduce__(self):
        return PairState, self.parts()

    def __sizeof__(self):
        return 200 + sum([part.nbytes for part in self.parts() if part is not None])


cdef PairState new_state(PairState of, double[:, ::1] now):
    cdef PairState state = PairState.__new__(PairState)
    state.kappa, state.slope, state.now = of.kappa, of.slope, now
    state.second = state.step = None
    return state


cdef int check(CompiledRows rows, PairState state, const double[::1] coef) except -1:
    """Check the lengths of the arrays that a visit reads; λ is the last of the coefficients."""
    cdef Py_ssize_t n = rows.n_samples, tables = state.now.shape[0], linear = state.slope.shape[0]
    fit(coef.shape[0] == rows.stride and state.now.shape[1] == n and (linear == 0 or linear == n),
        "coefficients and samples")
    fit((tables == TABLES and state.kappa.shape[0] == n)
        or (tables == T and state.kappa.shape[0] == 0), "tables and kappa")
    if state.second is not None:
        fit(state.second.shape[0] == 2 and state.second.shape[1] == n, "second-order terms")
    if state.step is not None:
        fit(state.step.shape[0] == STEPS and state.step.shape[1] == n, "steps")
    return 0


cdef void rows_of(double[:, ::1] table, Py_ssize_t first, double** into) noexcept nogil:
    """Where the rows of a table begin, from sample ``first`` on."""
    cdef Py_ssize_t k
    for k in range(table.shape[0]):
        into[k] = &table[k, first]


cdef void signed_margins(CompiledRows rows, Py_ssize_t lo, Py_ssize_t m, const double* coef,
                         double* u) noexcept nogil:
    """u = y (x·coef) of m samples from ``lo`` on."""
    cdef Py_ssize_t i
    rows.margins(lo, lo + m, coef, u)
    for i in range(m):
        u[i] *= rows.y[lo + i]


# --- visits -----------------------------------------------------------------------------------


def open_pair(CompiledRows rows, const double[::1] kappa, const double[::1] slope,
              const double[::1] coef, double mu):
    """The state on the central path (5).

    ``kappa`` has a number for each sample, one for all, or none in a problem without flips.
    """
    cdef Py_ssize_t block, lo, m, i, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t stride = 1 if kappa.shape[0] > 1 else 0
    cdef bint flips = kappa.shape[0] > 0
    fit(kappa.shape[0] < 2 or kappa.shape[0] == n, "kappa")
    cdef double[::1] kap = np.empty(n if flips else 0)
    for i in range(kap.shape[0]):
        kap[i] = kappa[stride * i] if kappa[stride * i] < INFINITY else NEVER
    cdef double[:, ::1] now = np.empty((TABLES if flips else T, n))
    cdef PairState state = PairState(kap, slope, now)
    check(rows, state, coef)
    cdef double* v[TABLES]
    rows = rows.borrow()
    for block in range((n + b - 1) // b):
        lo, m = block * b, min(b, n - block * b)
        rows_of(now, lo, v)
        signed_margins(rows, lo, m, &coef[0], v[U])
        if flips:
            central(m, &kap[lo], v[U], coef[rows.n_columns], mu, v[T], v[R], v[C], v[A])
    rows.free()
    return state


cdef void stepped(PairState state, Py_ssize_t lo, Py_ssize_t m, double primal, double dual,
                  double** new) noexcept nogil:
    """The samples after a step of these lengths; slacks that it passes keep a share KEPT."""
    cdef Py_ssize_t i, j
    cdef double* old[TABLES]
    cdef double* d[STEPS]
    rows_of(state.now, lo, old)
    if state.step is None or (primal == 0.0 and dual == 0.0):
        for j in range(TABLES):
            memcpy(new[j], old[j], m * sizeof(double))
        return
    rows_of(state.step, lo, d)
    along(m, new[U], old[U], primal, d[DU])
    along(m, new[T], old[T], primal, d[DT])
    along(m, new[R], old[R], primal, d[DR])
    along(m, new[C], old[C], dual, d[DC])
    along(m, new[A], old[A], -dual, d[DC])
    for i in range(m):
        if state.kappa[lo + i] < 0.0:
            continue
        if new[T][i] <= 0.0 or new[R][i] <= 0.0:
            lift(&new[T][i], &new[R][i], KEPT * old[T][i], KEPT * old[R][i], 1.0)
        if new[C][i] <= 0.0 or new[A][i] <= 0.0:
            lift(&new[C][i], &new[A][i], KEPT * old[C][i], KEPT * old[A][i], -1.0)


cdef void evaluated(PairState state, Py_ssize_t lo, Py_ssize_t m, const double* w, double** new,
                    double* h, double* loss, double* entropy) noexcept nogil:
    """Losses h and dual probabilities at the margins; their sums."""
    cdef Py_ssize_t i
    if state.slope.shape[0]:
        for i in range(m):
            new[S][i] = state.slope[lo + i]
            h[i] = -new[S][i] * new[U][i]
    else:
        losses(m, new[U], new[S], h)
    for i in range(m):
        loss[0] += w[i] * h[i]
        entropy[0] += w[i] * (h[i] + new[S][i] * new[U][i])


def linearise_pair(CompiledRows rows, PairState state, const double[::1] coef, double primal,
                   double dual, bint gram=True, double least=0.0):
    """Move by these lengths along the state's direction, to ``coef``: the state and its conditions.

    Without ``gram`` there is no matrix, and of the right side's parts only λ's entries are formed:
    a system of samples (``wide``) has the others.  Hinges of less stiffness than ``least`` stay out
    of the matrix.
    """
    cdef Py_ssize_t block, lo, i, j, m, n = rows.n_samples, b = rows.panel, P = rows.stride
    cdef Py_ssize_t tables = state.now.shape[0], matrix = P * P if gram else 0
    cdef bint flips = tables == TABLES
    check(rows, state, coef)
    cdef double bend = 0.0 if state.slope.shape[0] else 1.0, loss = 0.0, entropy = 0.0
    cdef double[:, ::1] after = np.empty((tables, n)), columns = np.empty((COLUMNS, b))
    sums = np.zeros(matrix + 3 * P + _sums.SCALARS)
    cdef double[::1] view = sums
    cdef Linearised out = linearised(&view[0], P, matrix)
    cdef double* col = &columns[0, 0]
    cdef double* weights = &columns[GRAM, 0]
    cdef double* new[TABLES]
    cdef double side[ADJOINTS]
    cdef const double* w
    cdef const double* y
    for j in range(ADJOINTS):
        side[j] = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            w, y = &rows.w[lo], &rows.y[lo]
            rows_of(after, lo, new)
            if flips:
                stepped(state, lo, m, primal, dual, new)
            else:
                signed_margins(rows, lo, m, &coef[0], new[U])
            evaluated(state, lo, m, w, new, &columns[LOSSES, 0], &loss, &entropy)
            if flips:
                conditions(m, b, w, y, &state.kappa[lo], new[U], new[S], &columns[LOSSES, 0],
                           new[T], new[R], new[C], new[A], new[Q], coef[P - 1], bend, least, col,
                           out.scalars, side)
            if flips and gram:
                rows.adjoint(lo, lo + m, col, ADJOINTS, out.lam_column)
            elif flips:
                rows.adjoint(lo, lo + m, &columns[GRADIENT, 0], 1, out.gradient)
            else:
                for i in range(m):
                    columns[GRADIENT, i] = -w[i] * new[S][i] * y[i]
                    weights[i] = w[i] * new[S][i] * (1.0 - new[S][i])
                rows.adjoint(lo, lo + m, &columns[GRADIENT, 0], 1, out.gradient)
            if gram:
                rows.gram(lo, lo + m, weights, out.matrix)
        out.scalars[_sums.LOSS], out.scalars[_sums.ENTROPY] = loss, entropy
        if not flips:
            out.scalars[_sums.VALUE] = loss
        for j in range(LAMBDA if gram else GRADIENT, ADJOINTS):
            out.lam_column[j * P + P - 1] = side[j]
    rows.free()
    return new_state(state, after), sums


def predict_pair(CompiledRows rows, PairState state, const double[::1] dcoef, bint adjoint=True):
    """Follow the predictor, all products to zero: second-order terms, products and step lengths.

    Without ``adjoint``, of the second-order terms' part of the right side only λ's entry is formed.
    """
    cdef Py_ssize_t block, lo, m, n = rows.n_samples, b = rows.panel, P = rows.stride
    check(rows, state, dcoef)
    fit(state.now.shape[0] == TABLES, "flips")
    sums = np.zeros(P + _sums.CHANGES + 2 * _sums.LEVELS)
    cdef double[:, ::1] now = state.now, second = np.empty((2, n)), step = np.empty((STEPS, b))
    cdef double[::1] view = sums, col = np.empty(b)
    cdef double* changes = &view[P]
    cdef double* v[TABLES]
    cdef double* d[STEPS]
    cdef const double* w
    cdef const double* kap
    cdef PairState found = new_state(state, now)
    rows_of(step, 0, d)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            w, kap = &rows.w[lo], &state.kappa[lo]
            rows_of(now, lo, v)
            signed_margins(rows, lo, m, &dcoef[0], d[DU])
            towards(m, kap, v[T], v[R], v[C], v[A], v[Q], d[DU], dcoef[P - 1], 0.0, 0.0,
                    v[T], v[R], d[DT], d[DR], d[DC])
            predicted(m, w, &rows.y[lo], kap, v[T], v[R], v[C], v[A], v[Q], d[DT], d[DR], d[DC],
                      &second[0, lo], &second[1, lo], &col[0], changes, &view[P - 1])
            book_panel(m, w, v[T], v[R], v[C], v[A], d[DT], d[DR], d[DC],
                       changes + _sums.CHANGES)
            if adjoint:
                rows.adjoint(lo, lo + m, &col[0], 1, &view[0])
    rows.free()
    found.second = second
    return found, sums


def correct_pair(CompiledRows rows, PairState state, const double[::1] dcoef, double centre,
                 double share):
    """Follow the corrector, products to ``centre`` less a share of the second-order terms."""
    cdef Py_ssize_t block, lo, m, i, n = rows.n_samples, b = rows.panel
    check(rows, state, dcoef)
    fit(state.now.shape[0] == TABLES and state.second is not None, "flips")
    cdef bint linear = state.slope.shape[0] > 0
    cdef double dlam = dcoef[rows.n_columns], slope = 0.0, curvature = 0.0
    cdef double[:, ::1] now = state.now, second = state.second, step = np.empty((STEPS, n))
    sums = np.zeros(_sums.PARABOLA + 2 * _sums.LEVELS)
    cdef double[::1] view = sums
    cdef double* v[TABLES]
    cdef double* d[STEPS]
    cdef const double* w
    cdef PairState found = new_state(state, now)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, m = block * b, min(b, n - block * b)
            w = &rows.w[lo]
            rows_of(now, lo, v)
            rows_of(step, lo, d)
            signed_margins(rows, lo, m, &dcoef[0], d[DU])
            for i in range(m):
                slope -= w[i] * v[S][i] * d[DU][i]
                if not linear:
                    curvature += w[i] * v[S][i] * (1.0 - v[S][i]) * d[DU][i] * d[DU][i]
            towards(m, &state.kappa[lo], v[T], v[R], v[C], v[A], v[Q], d[DU], dlam, centre, share,
                    &second[0, lo], &second[1, lo], d[DT], d[DR], d[DC])
            book_panel(m, w, v[T], v[R], v[C], v[A], d[DT], d[DR], d[DC], &view[_sums.PARABOLA])
        view[_sums.SLOPE], view[_sums.CURVATURE] = slope, curvature
    rows.free()
    found.step = step
    return found, sums


cdef double corrected(double s, double ds) noexcept nogil:
    """s + ds within [0, 1]; nothing where hardly anything would be left (separated samples)."""
    return 0.0 if not s + ds > EMPTIED * s else min(s + ds, 1.0)


def certify_pair(CompiledRows rows, both, const double[::1] dcoef, double least=0.0, known=None):
    """The dual point (s, a) after one more correction (12), and its sums.

    ``both`` is a state, or a state and the last dual point.  Hinges of less stiffness than
    ``least``, which are not in the matrix, stay as they are.  ``known`` are the changes of the
    margins, where the system of the correction knows them better than dcoef does.
    """
    cdef PairState state
    state, point = both if isinstance(both, tuple) else (both, None)
    check(rows, state, dcoef)
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, b = rows.panel, P = rows.stride
    cdef bint first = point is None, flips = state.now.shape[0] == TABLES
    cdef double w, s, a, now_s, om, total = 0.0, spent = 0.0, dlam = dcoef[P - 1]
    cdef double[:, ::1] now = state.now, after = np.empty((2, n))
    cdef double[::1] col = np.empty(b), du = np.empty(b)
    cdef const double[:, ::1] before = after if first else point
    fit(before.shape[0] == 2 and before.shape[1] == n, "dual point")
    cdef const double[::1] changes = du if known is None else known
    fit(known is None or changes.shape[0] == n, "changes of margins")
    sums = np.zeros(P + _sums.PROOF)
    cdef double[::1] out = sums
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            if known is None:
                signed_margins(rows, lo, hi - lo, &dcoef[0], &du[0])
            else:
                memcpy(&du[0], &changes[lo], (hi - lo) * sizeof(double))
            for i in range(lo, hi):
                j, w, now_s, a = i - lo, rows.w[i], now[S, i], 0.0
                s = now_s if first else before[0, i]
                if first or s > 0.0:
                    s = corrected(s, -now_s * (1.0 - now_s) * du[j])
                if flips:
                    a = now[A, i] if first else before[1, i]
                    om = now[C, i] * now[A, i] * now[Q, i]
                    if om >= least:
                        a = min(max(a + om * (du[j] - state.kappa[i] * dlam), 0.0), 1.0)
                    spent += w * state.kappa[i] * a
                after[0, i], after[1, i] = s, a
                col[j] = w * (a - s) * rows.y[i]
            rows.adjoint(lo, hi, &col[0], 1, &out[0])
            add_entropies(hi - lo, &rows.w[lo], &after[0, lo], &total)
        out[P - 1] = -spent
        out[P + _sums.PROOF_ENTROPY], out[P + _sums.PROOF_ADDITIONS] = total, rows.length
    rows.free()
    return np.asarray(after), sums
