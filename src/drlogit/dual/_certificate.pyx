"""The arithmetic of the certificate: sums over the samples, and what is used and charged of them.

Sums of a panel of rows are added up first, and the panels' so that what each addition rounds off is
kept (Knuth): a number passes through the length of a panel and a few additions more, whatever the
number of samples.

Derivation: docs/algorithm.md, (13) and (14).
"""
import numpy as np
from libc.math cimport INFINITY, fabs, sqrt
from drlogit.problem._losses cimport add_entropies, log_of
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
    n_labels   K; models and gradients have the coordinates of all labels but the first, one label
               after another.  A model's first label is zero, and the gradients of all labels add up
               to zero
    """
    cdef readonly object kind, costs, norm, spread, mean, size, sizes, intercept
    cdef readonly Py_ssize_t n_labels
    cdef const int[::1] kinds
    cdef const double[::1] cost, centre, error
    cdef double[::1] limit      # what is admitted of each coordinate; 0 of those not charged
    cdef Py_ssize_t constant, n_groups, n_inside
    cdef int power      # 1, 2, or 0 for the largest; -1: another norm

    def __init__(self, kind, costs, norm, spread, mean, size, intercept, n_labels=2):
        self.kind, self.costs, self.norm = kind, costs, norm
        self.spread, self.mean, self.size = spread, mean, size
        self.intercept, self.constant = intercept, -1 if intercept is None else intercept
        self.kinds, self.cost, self.centre, self.n_labels = kind, costs, mean, n_labels
        self.sizes = size if intercept is None else size + np.abs(mean) * size[intercept]
        self.error = self.sizes
        for part in (costs, spread, mean, self.sizes):
            fit(len(part) == len(kind), "coordinates")
        self.power = {"l1": 1, "l2": 2, "linf": 0}.get(norm.name, -1)
        self.limit = np.zeros(len(kind))
        cdef Py_ssize_t j
        for j in range(self.kinds.shape[0]):
            self.n_inside += self.kinds[j] == NORM
            self.n_groups = max(self.n_groups, self.kinds[j] - GROUPED + 1, -self.kinds[j])
            if self.kinds[j] < 0:
                self.limit[j] = LOG_ODDS
            elif self.kinds[j] == LOOSE and spread[j] > 0.0:
                self.limit[j] = LOG_ODDS / spread[j]

    @property
    def in_norm(self):
        """Places of the coordinates that the norm bounds."""
        return np.flatnonzero(self.kind == IN_NORM)

    cdef inline double at(self, const double[::1] gradient, Py_ssize_t k,
                          Py_ssize_t j) noexcept nogil:
        """A label's gradient, by the log-odds at the reference point instead of b."""
        cdef Py_ssize_t first = (k - 1) * self.kinds.shape[0]
        if self.constant < 0 or j == self.constant:
            return gradient[first + j]
        return gradient[first + j] - self.centre[j] * gradient[first + self.constant]

    cdef double half(self, const double[::1] gradient, Py_ssize_t j) noexcept nogil:
        """½ Σ |G| over all labels, rounded up: of two the size of the gradient."""
        cdef double first = 0.0, total = 0.0, value
        cdef Py_ssize_t k
        for k in range(1, self.n_labels):
            value = self.at(gradient, k, j)
            first -= value
            total += fabs(value)
        return 0.5 * (total + fabs(first)) * (1.0 + 4 * (self.n_labels - 2) * UNIT)

    def carried(self, gradient, double rounding, flow):
        """At most what a flow carries between every two labels (one < other), by coordinate.

        What its divergence misses of G goes directly from label to label, in equal parts.
        """
        K, kept = self.n_labels, self.in_norm
        other, one = np.tril_indices(K, -1)
        difference = np.eye(K)[one] - np.eye(K)[other]
        G = -np.reshape(gradient, (K - 1, -1))
        if self.intercept is not None:
            G = G - np.outer(G[:, self.intercept], self.mean)
        missing = np.vstack([-G.sum(axis=0), G])[:, kept]
        flow = np.zeros((one.size, kept.size)) if flow is None else flow
        size = np.abs(missing).sum(axis=0) + 2.0 * np.abs(flow).sum(axis=0)
        error = 2.0 / K * (rounding * self.sizes[kept] + UNDERFLOW) + 6 * K * UNIT * size
        moves = flow + difference @ (missing - difference.T @ flow) / K
        return self.costs[kept] * (np.abs(moves) + error)

    cpdef double used(self, const double[::1] gradient, double rounding=0.0,
                      const double[:, :] flow=None) except *:
        """``N(G)``, at most, if the sums are right up to ``rounding`` of their terms.

        ``flow`` has a row for each pair of labels (k, j < k), k slowest, and a column for each
        coordinate in the norm; ℓ1 transport needs none.
        """
        cdef double largest = 0.0, total = 0.0, size, error
        cdef Py_ssize_t c = 0, j, q, n = self.kinds.shape[0], K = self.n_labels
        cdef double[:, ::1] moves
        fit(gradient.shape[0] == (K - 1) * n, "gradient")
        if K > 2 and self.power != 1:
            moves = self.carried(gradient, rounding, flow)
        else:
            moves = np.empty((1, self.n_inside))
            for j in range(n):
                if self.kinds[j] == NORM:
                    error = rounding * self.error[j] + UNDERFLOW
                    moves[0, c] = self.cost[j] * (self.half(gradient, j) + error)
                    c += 1
        for q in range(moves.shape[0]):
            for c in range(self.n_inside):
                if not moves[q, c] < INFINITY:
                    return moves[q, c]   # nor what is no number
                largest = max(largest, moves[q, c])
        if largest == 0.0:
            return 0.0
        for q in range(moves.shape[0]):
            size = 0.0
            for c in range(self.n_inside):
                moves[q, c] /= largest
                if self.power == 0:
                    size = max(size, moves[q, c])
                else:
                    size += moves[q, c] if self.power == 1 else moves[q, c] * moves[q, c]
            if self.power < 0:
                size = self.norm.value(np.asarray(moves[q]))
            total += sqrt(size) if self.power == 2 else size
        return largest * total * (1.0 + (self.n_inside + moves.shape[0] + 12) * UNIT)

    cpdef double charge(self, const double[::1] gradient, double rounding=0.0) except *:
        """The most that ⟨G, B⟩ can be over free coordinates of admitted models."""
        cdef double total = 0.0, error, value
        cdef Py_ssize_t j, n = self.kinds.shape[0]
        cdef int kind
        cdef double[:, ::1] owed = np.zeros((2, self.n_groups))
        fit(gradient.shape[0] == (self.n_labels - 1) * n, "gradient")
        for j in range(n):
            kind, error = self.kinds[j], rounding * self.error[j] + UNDERFLOW
            if kind == LOOSE and self.limit[j] > 0.0:
                total += (self.half(gradient, j) + error) * self.limit[j]
            elif kind < 0:
                owed[1, -1 - kind] = self.at(gradient, 1, j) + error
            elif kind >= GROUPED:
                value = self.at(gradient, 1, j) + error
                owed[0, kind - GROUPED] += 0.0 if value <= 0.0 else value
        for j in range(self.n_groups):
            if not owed[0, j] + owed[1, j] <= 0.0:
                total += LOG_ODDS * (owed[0, j] + owed[1, j])
        return total * (1.0 + (n + 8) * UNIT)

    def admits(self, const double[::1] model):
        """Whether the bound is about a model: it proves nothing about others."""
        cdef Py_ssize_t i, j, k, n = self.kinds.shape[0]
        cdef double odds, low, high
        fit(model.shape[0] == (self.n_labels - 1) * n, "coefficients")
        for j in range(n):
            low = high = 0.0
            for k in range(self.n_labels - 1 if self.limit[j] > 0.0 else 0):
                odds = model[k * n + j]
                for i in range(n if j == self.constant else 0):
                    odds += self.centre[i] * model[k * n + i]
                low = low if odds >= low else odds      # what is no number stays
                high = high if odds <= high else odds
            if not high - low <= self.limit[j]:
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


cdef inline double within(Py_ssize_t K, Py_ssize_t ld, Py_ssize_t own, double share,
                          const double* given, double* x) noexcept nogil:
    """Shares that other labels than the observed one keep, a ``share`` of theirs; their total.

    The total is at most one, and what it leaves is that of the observed label.
    """
    cdef Py_ssize_t k
    cdef double rest = 0.0, value
    for k in range(K):
        if k != own:
            value = share * given[k * ld]
            x[k * ld] = min(value, 1.0) if value > 0.0 else 0.0
            rest += x[k * ld]
    if rest > 1.0:
        for k in range(K):
            x[k * ld] /= rest
        rest = 1.0
    return rest


cdef inline double entropy_of(Py_ssize_t K, Py_ssize_t ld, Py_ssize_t own, const double* p,
                              double rest) noexcept nogil:
    """H(p) of a sample, with what one less the ``rest`` of the other labels rounds off."""
    cdef Py_ssize_t k
    cdef double total = (1.0 - p[own * ld]) - rest
    for k in range(K):
        total += p[k * ld] * log_of(p[k * ld])
    return -total


def label_sums(CompiledRows rows, const int[::1] codes, const double[:, ::1] coef,
               const double[:, :, ::1] given, double share, const double[::1] trust):
    """Scores; the dual point (p, a), (2, labels, samples); its sums, and the additions behind any.

    Of two labels the point has those of "another one" alone, and no others are read.
    Scores and coefficients are those of all labels but the first.  ``codes`` are the positions of
    the observed labels, or None if all are the second one of two.  A ``share`` of the flips is
    kept.  ``trust`` has multiples of the unit of flip costs, or is None.  The sums are
    ``-Σ w (p_k - a_k) z`` of all labels but the first, ``Σ w H(p)``, and what flips cost in units
    of κ.
    """
    cdef Py_ssize_t panel, i, j, k, lo, hi, own, n = rows.n_samples, P = rows.n_columns
    cdef Py_ssize_t S = rows.stride, C = coef.shape[0], K = C + 1, b = rows.panel
    cdef (Py_ssize_t, Py_ssize_t, Py_ssize_t) panels = panels_of(rows)
    cdef Py_ssize_t step = panels[0], n_panels = (n + step - 1) // step
    cdef double w, sign, rest, flipped
    scores, found = np.empty((C, n)), np.zeros(C * S + 2)
    point = np.empty((2, 1 if codes is None else K, n))
    cdef double[:, ::1] s = scores, col = np.zeros((C, b))
    cdef double[:, :, ::1] out = point
    cdef double[::1] total = found, lost = np.zeros(C * S + 2), part = np.zeros(C * S + 2)
    cdef double[::1] by_sample = np.empty(C * b)
    cdef double* entropy = &part[C * S]
    fit(coef.shape[1] == P and (codes is not None or K == 2), "coefficients")
    fit(codes is None or codes.shape[0] == n, "labels")
    fit(given.shape[0] == 2 and given.shape[1] >= out.shape[1] and given.shape[2] == n,
        "dual point")
    fit(trust is None or trust.shape[0] == n, "trust")
    rows = rows.borrow()
    with nogil:
        for panel in range(n_panels):
            lo, hi = panel * step, min(panel * step + step, n)
            if codes is None:
                rows.margins(lo, hi, &coef[0, 0], &s[0, lo])
            else:
                rows.scores(lo, hi, &coef[0, 0], <int>C, &by_sample[0])
            for i in range(lo, hi):
                j, w, sign = i - lo, rows.w[i], rows.y[i]
                flipped = share if trust is None or trust[i] < INFINITY else 0.0
                if codes is None:   # loops of a constant length take half of the time
                    rest = within(1, n, 1, 1.0, &given[0, 0, i], &out[0, 0, i])
                    flipped = within(1, n, 1, flipped, &given[1, 0, i], &out[1, 0, i])
                    col[0, j] = w * sign * (rest - flipped)
                    s[0, i] *= sign
                else:
                    own = codes[i]
                    rest = within(K, n, own, 1.0, &given[0, 0, i], &out[0, 0, i])
                    flipped = within(K, n, own, flipped, &given[1, 0, i], &out[1, 0, i])
                    out[0, own, i], out[1, own, i] = 1.0 - rest, 1.0 - flipped
                    for k in range(1, K):
                        col[k - 1, j] = w * sign * (out[1, k, i] - out[0, k, i])
                        s[k - 1, i] = sign * by_sample[j * C + k - 1]
                    entropy[0] += w * entropy_of(K, n, own, &out[0, 0, i], rest)
                if flipped > 0.0:
                    entropy[1] += w * flipped * (1.0 if trust is None else trust[i])
            if codes is None:
                add_entropies(hi - lo, &rows.w[lo], &out[0, 0, lo], entropy)
            rows.adjoint(lo, hi, &col[0, 0], <int>C, &part[0])
            if (panel + 1) % panels[1] == 0 or panel + 1 == n_panels:
                add(C * S + 2, &total[0], &lost[0], &part[0])
    rows.free()
    found += lost
    gradient = found[:C * S].reshape(C, S)[:, :P].ravel()
    return scores, point, np.append(gradient, found[C * S:]), float(panels[2] + 3 * (K - 2))


def factor_in_place(double[:, ::1] matrix, double least=1e-14):
    """Write the factor of a matrix into its upper half: its scaling to unit diagonal, and whether
    there is a factor (:mod:`._cholesky`).
    """
    cdef Py_ssize_t n = matrix.shape[0]
    cdef double[::1] unit = np.ones(n)
    fit(matrix.shape[1] == n, "a square matrix")
    found = n == 0 or shifted_factor(&matrix[0, 0], &unit[0], <int>n, least)
    return np.asarray(unit), found
