"""The arithmetic of the certificate: sums over the samples, and what is used and charged of them.

Sums of a panel of rows are added up first, and the panels' so that what each addition rounds off is
kept (Knuth): a number passes through the length of a panel and a few additions more, whatever the
number of samples.

Derivation: docs/algorithm.md, (13) and (14).
"""
import numpy as np
from libc.math cimport INFINITY, fabs, sqrt
from drlogit.problem._losses cimport add_entropies, loss_terms
from drlogit.problem.parameters import ADMITTED
from drlogit.rows._products cimport CompiledRows, CsrRows
from drlogit.rows._shapes cimport fit
from ._cholesky cimport shifted_factor

ROUNDING = 2.0**-53     # its unit
NOTHING = 1e-300        # more than underflow can take from any sum

# Kinds of coordinates; GROUP + g is a category of group g, -1 - g its highest one.
IN_NORM, FREE, GROUP = 0, 1, 2
cdef int NORM = IN_NORM, LOOSE = FREE, GROUPED = GROUP

cdef double UNIT = ROUNDING, LOG_ODDS = ADMITTED, UNDERFLOW = NOTHING
cdef Py_ssize_t PANEL = 32        # rows: sums of fewer take longer than their products

cdef class Coordinates:
    """What the bound has to know of each coordinate of a model; λ is none of them.

    They are (β, b), or with domains (categories, high of each group, bounded, unbounded, b), where
    0 ≤ category ≤ high of its group.  All arrays have one entry per coordinate.

    kind       IN_NORM, FREE (immovable, bounded, intercept), GROUP + g, or -1 - g; at ε = 0 nothing
               is in the norm
    costs      transport costs of those in the norm; others are not read
    norm       the transport norm
    spread     standard deviations of free columns (root mean squares without an intercept), 1 for
               the intercept; 0 for columns that are a multiple of the intercept's, or zero, which
               are not charged
    mean       weighted means of the columns, 0 where they are centred, for categories, and without
               an intercept: the reference point at which the log-odds are admitted
    size       at least Σ |terms| of the sum behind each entry of the gradient: root mean squares do
               where a sample has one term (Cauchy and Schwarz)
    sizes      what rounding errors of the gradient at the reference point are in proportion to
    intercept  the place of b, or None
    """
    cdef readonly object kind, costs, norm, spread, mean, size, sizes, intercept
    cdef const int[::1] kinds
    cdef const double[::1] cost, deviation, centre, error
    cdef Py_ssize_t constant, n_groups, n_inside
    cdef int power      # 1, 2, or 0 for the largest; -1: another norm

    def __init__(self, kind, costs, norm, spread, mean, size, intercept):
        self.kind, self.costs, self.norm = kind, costs, norm
        self.spread, self.mean, self.size = spread, mean, size
        self.intercept, self.constant = intercept, -1 if intercept is None else intercept
        self.kinds, self.cost, self.deviation, self.centre = kind, costs, spread, mean
        self.sizes = size if intercept is None else size + np.abs(mean) * size[intercept]
        self.error = self.sizes
        for part in (costs, spread, mean, self.sizes):
            fit(len(part) == len(kind), "coordinates")
        self.power = {"l1": 1, "l2": 2, "linf": 0}.get(norm.name, -1)
        cdef Py_ssize_t j
        for j in range(self.kinds.shape[0]):
            if self.kinds[j] < 0:
                self.n_groups = max(self.n_groups, -self.kinds[j])
            elif self.kinds[j] >= GROUPED:
                self.n_groups = max(self.n_groups, self.kinds[j] - GROUPED + 1)
            if self.kinds[j] == NORM:
                self.n_inside += 1

    @property
    def in_norm(self):
        """Places of the coordinates that the norm bounds."""
        return np.flatnonzero(self.kind == IN_NORM)

    cdef inline double at(self, const double[::1] gradient, Py_ssize_t j) noexcept nogil:
        """The gradient by the log-odds at the reference point instead of b."""
        if self.constant < 0 or j == self.constant:
            return gradient[j]
        return gradient[j] - self.centre[j] * gradient[self.constant]

    cpdef double used(self, const double[::1] gradient, double rounding=0.0):
        """``‖c g‖``, at most, if the sums are right up to ``rounding`` of their terms."""
        cdef double largest = 0.0, total = 0.0, move
        cdef Py_ssize_t j, n = self.kinds.shape[0]
        fit(gradient.shape[0] == n, "gradient")
        for j in range(n):
            if self.kinds[j] != NORM:
                continue
            move = self.cost[j] * (fabs(self.at(gradient, j)) + rounding * self.error[j]
                                   + UNDERFLOW)
            if not move < INFINITY:
                return move   # nor what is no number
            largest = max(largest, move)
        if largest == 0.0 or self.power == 0:
            return largest
        cdef double[::1] moves = np.empty(self.n_inside if self.power < 0 else 0)
        cdef Py_ssize_t k = 0
        for j in range(n):
            if self.kinds[j] != NORM:
                continue
            move = self.cost[j] * (fabs(self.at(gradient, j)) + rounding * self.error[j]
                                   + UNDERFLOW) / largest
            if self.power < 0:
                moves[k] = move
            else:
                total += move if self.power == 1 else move * move
            k += 1
        if self.power < 0:
            total = self.norm.value(np.asarray(moves))
        total = sqrt(total) if self.power == 2 else total
        return largest * total * (1.0 + (self.n_inside + 12) * UNIT)

    cpdef double charge(self, const double[::1] gradient, double rounding=0.0):
        """The most that g·x can be over free coordinates of admitted models."""
        cdef double total = 0.0, error, value
        cdef Py_ssize_t j, n = self.kinds.shape[0]
        cdef int kind
        cdef double[:, ::1] owed = np.zeros((2, self.n_groups))
        fit(gradient.shape[0] == n, "gradient")
        for j in range(n):
            kind = self.kinds[j]
            if kind == NORM or (kind == LOOSE and not self.deviation[j] > 0.0):
                continue
            error, value = rounding * self.error[j] + UNDERFLOW, self.at(gradient, j)
            if kind == LOOSE:
                total += (fabs(value) + error) / self.deviation[j]
            elif kind < 0:
                owed[1, -1 - kind] = value + error
            elif not value + error <= 0.0:
                owed[0, kind - GROUPED] += value + error
        for j in range(self.n_groups):
            if not owed[0, j] + owed[1, j] <= 0.0:
                total += owed[0, j] + owed[1, j]
        return LOG_ODDS * total * (1.0 + (n + 8) * UNIT)

    def admits(self, const double[::1] model):
        """Whether the bound is about a model: it proves nothing about others."""
        cdef Py_ssize_t j
        cdef double odds, at_means = 0.0
        fit(model.shape[0] == self.kinds.shape[0], "coefficients")
        if self.constant >= 0:
            for j in range(self.kinds.shape[0]):
                at_means += self.centre[j] * model[j]
        for j in range(self.kinds.shape[0]):
            odds = model[j] + (at_means if j == self.constant else 0.0)
            if self.kinds[j] < 0 and not odds <= LOG_ODDS:
                return False
            if (self.kinds[j] == LOOSE and self.deviation[j] > 0.0
                    and not fabs(odds) * self.deviation[j] <= LOG_ODDS):
                return False
        return True


cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) panels_of(CompiledRows rows) noexcept:
    """Rows of a panel, panels to a sum (as many as take as long as going through all columns), and
    additions in a row.
    """
    cdef Py_ssize_t n = rows.n_samples, P = rows.n_columns, entries = n * P, b, stretch
    cdef CsrRows sparse
    if isinstance(rows, CsrRows):
        sparse = <CsrRows>rows
        entries = sparse.v32.shape[0] if sparse.single else sparse.v64.shape[0]
    b = min(rows.panel, PANEL) if n * P <= 4 * PANEL * entries else rows.panel
    stretch = 1 + n * P // (4 * b * (entries + 1))
    return b, stretch, min(n, min(entries, stretch * (b + 1))) + 4


cdef void add(Py_ssize_t n, double* total, double* lost, double* part) noexcept nogil:
    """Add to the totals, and to what is lost of them what that rounds off; nothing is left of the
    part.
    """
    cdef Py_ssize_t j
    cdef double before, sum_
    for j in range(n):
        before = total[j]
        sum_ = before + part[j]
        lost[j] += (before - (sum_ - (sum_ - before))) + (part[j] - (sum_ - before))
        total[j], part[j] = sum_, 0.0


def column_sums(CompiledRows rows, const double[:, ::1] r):
    """``r X``, a row for each of r, and the additions behind any entry.

    With the constant column, if there is one.  The panels' sums are added so that what each
    addition rounds off is kept.
    """
    cdef Py_ssize_t c, k, lo, n = rows.n_samples, P = rows.n_columns
    cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) panels = panels_of(rows)
    cdef Py_ssize_t b = panels[0], n_panels = (n + b - 1) // b
    found = np.zeros((r.shape[0], P))
    cdef double[:, ::1] total = found, lost = np.zeros((r.shape[0], P))
    cdef double[::1] part = np.zeros(P)
    fit(r.shape[1] == n, "columns")
    rows = rows.borrow()
    with nogil:
        for c in range(r.shape[0] if P else 0):
            for k in range(n_panels):
                lo = k * b
                rows.adjoint(lo, min(lo + b, n), &r[c, lo], 1, &part[0])
                if (k + 1) % panels[1] == 0 or k + 1 == n_panels:
                    add(P, &total[c, 0], &lost[c, 0], &part[0])
    rows.free()
    found += lost
    return found, float(panels[2])


def pair_sums(CompiledRows rows, const double[::1] coef, const double[::1] s, const double[::1] a,
              const double[::1] trust):
    """Margins, s and a within [0, 1] (3, n); sums; additions behind any of them.

    Without s it is that of the coefficients, without a nothing flips.  ``trust`` has multiples of
    the unit of flip costs, or is None.  The sums are ``Σ w (s - a) z``, then ``Σ w H(s)`` and what
    flips cost in units of κ.
    """
    cdef Py_ssize_t block, i, j, lo, hi, n = rows.n_samples, P = rows.n_columns
    cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) panels = panels_of(rows)
    cdef Py_ssize_t b = panels[0], n_panels = (n + b - 1) // b
    cdef double w, own, other
    state, found = np.empty((3, n)), np.zeros(P + 2)
    cdef double[:, ::1] out = state
    cdef double[::1] total = found, lost = np.zeros(P + 2), partial = np.zeros(P + 2)
    cdef double[::1] col = np.empty(b)
    fit(coef.shape[0] == P and (s is None or s.shape[0] == n) and (a is None or a.shape[0] == n),
        "coefficients and s, a")
    fit(trust is None or trust.shape[0] == n, "trust")
    rows = rows.borrow()
    with nogil:
        for block in range(n_panels):
            lo, hi = block * b, min(block * b + b, n)
            rows.margins(lo, hi, &coef[0], &out[0, lo])
            for i in range(lo, hi):
                w = rows.w[i]
                out[0, i] *= rows.y[i]
                if s is None:
                    loss_terms(out[0, i], &own)
                else:
                    own = s[i]
                own = min(own, 1.0) if own > 0.0 else 0.0
                other = 0.0 if a is None or (trust is not None and trust[i] == INFINITY) else a[i]
                other = min(other, 1.0) if other > 0.0 else 0.0
                out[1, i], out[2, i] = own, other
                col[i - lo] = w * (own - other) * rows.y[i]
                if other > 0.0:
                    partial[P + 1] += w * other * (1.0 if trust is None else trust[i])
            rows.adjoint(lo, hi, &col[0], 1, &partial[0])
            add_entropies(hi - lo, &rows.w[lo], &out[1, lo], &partial[P])
            if (block + 1) % panels[1] == 0 or block + 1 == n_panels:
                add(P + 2, &total[0], &lost[0], &partial[0])
        for j in range(P + 2):
            total[j] += lost[j]
    rows.free()
    return state, found, float(panels[2])


def factor_in_place(double[:, ::1] matrix, double least=1e-14):
    """Write the factor of a matrix into its upper half: its scaling to unit diagonal, and whether
    there is a factor (:mod:`._cholesky`).
    """
    cdef Py_ssize_t n = matrix.shape[0]
    cdef double[::1] unit = np.ones(n)
    fit(matrix.shape[1] == n, "a square matrix")
    found = n == 0 or shifted_factor(&matrix[0, 0], &unit[0], <int>n, least)
    return np.asarray(unit), found
