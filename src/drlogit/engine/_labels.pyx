"""The samples of K ≥ 2 labels: visits in compiled loops.

A sample with scores ς of the labels, the observed label y and label costs κ (κ_y = 0) has the loss

    lse(ς) - ς_y + max_k (ς_y - ς_k - κ_k λ),      r_k = τ + ς_k + κ_k λ ≥ 0

with multipliers a_k of the slacks r_k, Σ a = 1.  The first label's score is 0; that of any other
label k is y x·β_k, with y = ±1 of the rows.  Two labels are "another one" and "the observed one",
whose score is the margin; then r_1 and r_0 are the slacks t and r of the hinge, and a_0 is the
share that flips.  Rows of several labels have y = 1.

    s, p       scores, and softmax(s) or that of a linear loss      w        weights
    r, a       slacks and their multipliers, label shares           live     weights of samples that
    inv, D     1/r and a/r, (18)                                             can get another label
    total      1/ΣD                                                 kap      label costs
    ds dr da   changes along a direction                            e        second-order terms, (6)

Tables are (labels, samples), so that loops over the samples of a panel are compiled to vectors
whatever the number of labels.  Labels out of reach have the share 0 and the slack FAR.  In a
problem without flips there are scores and probabilities only.

Visits take the rows of a block and a state, and return a new state and an array of sums
(``_sums``).  The matrix of a linearisation is a Gram matrix for each pair of labels (k, j < k), k
slowest.

Derivation: docs/algorithm.md, (3) to (8), (10), (12), (17), (18).
"""
import numpy as np
from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from drlogit.problem._losses cimport exp_minus, log_of
from drlogit.rows._clones cimport In, Out, cloned
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit
from . cimport _sums
from ._sums cimport Linearised, book, linearised
from .settings import SETTINGS

cdef double FAR = 1e300             # the slack of a label out of reach
cdef double KEPT = SETTINGS.kept, PASSING = SETTINGS.blocking
cdef double SECOND = SETTINGS.second_order

cdef enum:
    LAMBDA, GRADIENT, AFFINE, CENTRING, ADJOINTS        # of a linearisation
    STEPS = 9       # of Newton's method to the central path, which reach rounding
    WORK = 9        # single rows of a panel's work space

cdef struct Tables:
    # rows of a state or direction, from one sample on
    double* s       # of all labels but the first
    double* p
    double* r
    double* a

cdef struct Panel:
    # work space of a panel: tables with a row for each label, then single rows
    double* s               # scores or their changes
    double* dr
    double* da
    double* inv
    double* by_sample       # scores as the rows return them
    double* most            # lse(s) = most + log
    double* log
    double* total
    double* hinge           # weights of the hinges in the matrix
    double* d               # weights of a Gram matrix
    double* spare           # three rows


# --- a panel: labels are ``ld`` numbers apart in tables of a state, ``b`` in those of the panel ---


cdef cloned softmax(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In w, In s, Out p,
                    Out most, Out log, Out total, double* entropy) noexcept nogil:
    """p = softmax(s), lse(s) as ``most + log``, and entropy += Σ w (lse(s) - p·s)."""
    cdef Py_ssize_t i, k
    cdef double sum_ = 0.0
    for i in range(m):
        most[i], total[i] = s[i], 0.0
    for k in range(1, K):
        for i in range(m):
            most[i] = s[k * b + i] if s[k * b + i] > most[i] else most[i]
    for k in range(K):
        for i in range(m):
            p[k * ld + i] = exp_minus(most[i] - s[k * b + i])
            total[i] += p[k * ld + i]
    for i in range(m):
        log[i] = log_of(total[i])
        sum_ += w[i] * log[i]
        total[i] = 1.0 / total[i]
    for k in range(K):
        for i in range(m):
            p[k * ld + i] *= total[i]
            sum_ += w[i] * p[k * ld + i] * (most[i] - s[k * b + i])
    entropy[0] += sum_


cdef cloned central(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In kap, In s,
                    double lam, double mu, Out r, Out a, Out tau, Out total,
                    Out squares) noexcept nogil:
    """The central path (5): Newton's method for 1/Σ(1/r) = μ, a concave function of τ, from below.

    Shares are 0 or 1 before: whether a label is within reach.
    """
    cdef Py_ssize_t i, j, k, step
    cdef double value
    for i in range(m):
        tau[i] = -INFINITY
    for k in range(K):
        for i in range(m):
            j = k * ld + i
            r[j] = s[k * b + i] + kap[j] * lam
            value = mu - r[j] if a[j] > 0.0 else -INFINITY
            tau[i] = value if value > tau[i] else tau[i]
    for step in range(STEPS + 1):
        for i in range(m):
            total[i] = squares[i] = 0.0
        for k in range(K):
            for i in range(m):
                value = a[k * ld + i] / (tau[i] + r[k * ld + i])
                total[i] += value
                squares[i] += value * value
        for i in range(m if step < STEPS else 0):
            tau[i] += total[i] * (mu * total[i] - 1.0) / squares[i]
    for k in range(K):
        for i in range(m):
            j = k * ld + i
            r[j] = tau[i] + r[j] if a[j] > 0.0 else FAR
            a[j] = a[j] / (r[j] * total[i])


cdef cloned moved(Py_ssize_t K, Py_ssize_t m, Py_ssize_t ld, In r_now, In a_now, In dr, In da,
                  double primal, double dual, Out r, Out a, Out missing, Out total) noexcept nogil:
    """Slacks and shares after a step of these lengths; those that it passes keep a part."""
    cdef Py_ssize_t i, j, k
    cdef double lack, share
    for i in range(m):
        missing[i] = total[i] = 0.0
    for k in range(K):
        for i in range(m):
            j = k * ld + i
            r[j] = r_now[j] + primal * dr[j]
            lack = KEPT * r_now[j] - r[j] if r[j] <= 0.0 else 0.0
            missing[i] = lack if lack > missing[i] else missing[i]
            share = a_now[j] + dual * da[j]
            a[j] = share if share > 0.0 else KEPT * a_now[j]
            total[i] += a[j]
    for i in range(m):
        total[i] = 1.0 / total[i]
    for k in range(K):
        for i in range(m):
            r[k * ld + i] += missing[i]         # τ
            a[k * ld + i] *= total[i]


cdef cloned stiffnesses(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In live, In r,
                        In a, double least, Out inv, Out total, Out hinge) noexcept nogil:
    """1/r, 1/ΣD, and the weights of hinges, 0 where they are less stiff than ``least``."""
    cdef Py_ssize_t i, k
    cdef double D
    for i in range(m):
        total[i] = hinge[i] = 0.0
    for k in range(K):
        for i in range(m):
            inv[k * b + i] = 1.0 / r[k * ld + i]
            D = a[k * ld + i] * inv[k * b + i]
            hinge[i] += D * total[i]
            total[i] += D
    for i in range(m):
        total[i] = 1.0 / total[i]
        hinge[i] = live[i] if hinge[i] * total[i] >= least else 0.0


cdef cloned conditions(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In w, In y, In live,
                       In kap, double lam, In s, In r, In a, In p, In inv, In total, In hinge,
                       In most, In log, Out over, Out inverse, Out stiff, Out col, double* scalars,
                       double* side) noexcept nogil:
    """Columns of the four adjoints of all labels but the first, the scalars, and λ's entries.

    Labels of a column are (K - 1) b apart from those of the next one.
    """
    cdef Py_ssize_t i, j, k, c, apart = (K - 1) * b
    cdef double D, lean, push, force, slope, value = 0.0, products = 0.0, hinges = 0.0
    cdef double corner = 0.0, spent = 0.0, affine = 0.0, centring = 0.0
    for i in range(m):
        over[i], inverse[i], stiff[i] = -INFINITY, 0.0, 0.0
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            inverse[i] += inv[c]
            stiff[i] += kap[j] * a[j] * inv[c]
            D = -s[c] - kap[j] * lam if a[j] > 0.0 else -INFINITY
            over[i] = D if D > over[i] else over[i]
            products += live[i] * a[j] * r[j]
    for i in range(m):
        value += w[i] * (log[i] + (most[i] + over[i]))
        inverse[i] *= total[i]
        stiff[i] *= total[i]
        hinges += 1.0 if hinge[i] > 0.0 else 0.0
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            D = a[j] * inv[c]
            lean, slope = hinge[i] * D * (kap[j] - stiff[i]), w[i] * (p[j] - a[j])
            push, force = live[i] * (a[j] - D * total[i]), live[i] * (D * inverse[i] - inv[c])
            corner += kap[j] * lean
            spent += w[i] * kap[j] * a[j]
            affine += kap[j] * push
            centring += kap[j] * force
            if k > 0:
                c -= b
                col[LAMBDA * apart + c], col[GRADIENT * apart + c] = y[i] * lean, y[i] * slope
                col[AFFINE * apart + c], col[CENTRING * apart + c] = y[i] * push, y[i] * force
    scalars[_sums.VALUE] += value
    scalars[_sums.PRODUCTS] += products
    scalars[_sums.COUNT] += hinges
    side[LAMBDA] += corner
    side[GRADIENT] -= spent
    side[AFFINE] += affine
    side[CENTRING] += centring


cdef cloned slopes_of(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In w, In y, In p,
                      const int* codes, Out col) noexcept nogil:
    """Columns of the loss's gradient where no label flips."""
    cdef Py_ssize_t i, k
    for k in range(1, K):
        for i in range(m):
            col[(k - 1) * b + i] = w[i] * y[i] * (p[k * ld + i] - (1.0 if codes[i] == k else 0.0))


cdef cloned pair_weights(Py_ssize_t m, In w, In p, In other_p, In hinge, In a, In inv, In other_a,
                         In other_inv, In total, double bend, bint flips, Out d) noexcept nogil:
    """The Laplacian's weight of two labels, (18); ``bend`` is 0 for a linear loss."""
    cdef Py_ssize_t i
    for i in range(m):
        d[i] = bend * w[i] * p[i] * other_p[i]
    if flips:
        for i in range(m):
            d[i] += hinge[i] * (a[i] * inv[i]) * (other_a[i] * other_inv[i]) * total[i]


cdef cloned towards(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In kap, In r, In a,
                    In inv, In total, In ds, double dlam, double centre, double share, In e,
                    Out dr, Out da, Out dtau) noexcept nogil:
    """Changes (7) that bring products to ``centre`` less a share of second-order terms."""
    cdef Py_ssize_t i, j, k, c
    cdef double push
    for i in range(m):
        dtau[i] = 0.0
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            push = (centre - share * e[j] - a[j] * r[j]) * inv[c]
            dr[c] = ds[c] + kap[j] * dlam
            da[c] = push if a[j] > 0.0 else 0.0
            dtau[i] += da[c] - a[j] * inv[c] * dr[c]
    for i in range(m):
        dtau[i] *= total[i]
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            dr[c] += dtau[i]
            da[c] -= a[j] * inv[c] * dr[c]


cdef cloned predicted(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In y, In live,
                      In kap, In r, In a, In inv, In total, In dr, In da, Out e, Out mean, Out col,
                      double* changes, double* side) noexcept nogil:
    """Second-order terms, their columns of the adjoint, and what becomes of the products."""
    cdef Py_ssize_t i, j, k, c
    cdef double term, most, primal = 0.0, dual = 0.0, both = 0.0, spent = 0.0
    for i in range(m):
        mean[i] = 0.0
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            term, most = dr[c] * da[c], SECOND * a[j] * r[j]
            primal += live[i] * a[j] * dr[c]
            dual += live[i] * r[j] * da[c]
            both += live[i] * term
            term = term if term < most else most
            e[j] = term if term > -most else -most
            mean[i] += e[j] * inv[c]
    for i in range(m):
        mean[i] *= total[i]
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            term = live[i] * (e[j] - a[j] * mean[i]) * inv[c]
            spent += kap[j] * term
            if k > 0:
                col[c - b] = y[i] * term
    changes[_sums.PRIMAL_CHANGE] += primal
    changes[_sums.DUAL_CHANGE] += dual
    changes[_sums.BOTH_CHANGE] += both
    side[0] += spent


cdef cloned falls(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In a, In inv, In dr,
                  In da, Out worst, Out least) noexcept nogil:
    """The largest fall of a slack in proportion, and the least share after the whole step."""
    cdef Py_ssize_t i, k, c
    cdef double fall, share
    for i in range(m):
        worst[i] = least[i] = 0.0
    for k in range(K):
        for i in range(m):
            c = k * b + i
            fall, share = -dr[c] * inv[c], a[k * ld + i] + da[c]
            worst[i] = fall if fall > worst[i] else worst[i]
            least[i] = share if share < least[i] else least[i]


cdef void book_panel(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In live, In r, In a,
                     In dr, In da, In worst, In least, double* costs) noexcept nogil:
    """Book the cost (10) of the samples that do not allow the whole step."""
    cdef Py_ssize_t i, j, k, c
    cdef double own, slack, room, fall, passed
    for i in range(m):
        if (worst[i] <= 1.0 and least[i] >= 0.0) or live[i] == 0.0:
            continue
        own = slack = room = fall = passed = 0.0
        for k in range(K):
            j, c = k * ld + i, k * b + i
            if a[j] > 0.0:
                own += a[j] * r[j]
                room += r[j]
                slack, passed = max(slack, -dr[c]), max(passed, -da[c])
                fall = max(fall, -da[c] / a[j])
        if worst[i] > 1.0:
            book(costs, worst[i], live[i] * (own + PASSING * slack))
        if fall > 1.0:
            book(costs + _sums.LEVELS, fall, live[i] * (own + PASSING * passed * room))


cdef cloned parabola(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In w, In p, In ds,
                     Out mean, Out square, double* sums) noexcept nogil:
    """Slope and curvature of lse along a change of scores."""
    cdef Py_ssize_t i, k
    cdef double slope = 0.0, curvature = 0.0
    for i in range(m):
        mean[i] = square[i] = 0.0
    for k in range(K):
        for i in range(m):
            mean[i] += p[k * ld + i] * ds[k * b + i]
    for k in range(K):
        for i in range(m):
            square[i] += p[k * ld + i] * (ds[k * b + i] - mean[i]) * (ds[k * b + i] - mean[i])
    for i in range(m):
        slope += w[i] * mean[i]
        curvature += w[i] * square[i]
    sums[_sums.SLOPE] += slope
    sums[_sums.CURVATURE] += curvature


cdef double observed(Py_ssize_t m, Py_ssize_t b, const double* w, const int* codes,
                     const double* s) noexcept nogil:
    """Σ w s of the observed labels."""
    cdef Py_ssize_t i
    cdef double total = 0.0
    for i in range(m):
        total += w[i] * s[codes[i] * b + i]
    return total


cdef cloned probabilities(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In p_now, In ds,
                          Out p, Out mean) noexcept nogil:
    """(12) for p: after a change of scores, on its simplex again."""
    cdef Py_ssize_t i, j, k
    for i in range(m):
        mean[i] = 0.0
    for k in range(K):
        for i in range(m):
            mean[i] += p_now[k * ld + i] * ds[k * b + i]
    for k in range(K):
        for i in range(m):
            j = k * ld + i
            p[j] += p_now[j] * (ds[k * b + i] - mean[i])
    settled(K, m, ld, p, mean)


cdef cloned shares(Py_ssize_t K, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, In kap, In a_now,
                   In inv, In total, In hinge, In ds, double dlam, Out a,
                   Out centre) noexcept nogil:
    """(12) for a: after a change of scores and λ, on its simplex again; none without hinge."""
    cdef Py_ssize_t i, j, k, c
    cdef double change
    for i in range(m):
        centre[i] = 0.0
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            centre[i] += a_now[j] * inv[c] * (ds[c] + kap[j] * dlam)
    for k in range(K):
        for i in range(m):
            j, c = k * ld + i, k * b + i
            change = a_now[j] * inv[c] * (ds[c] + kap[j] * dlam - centre[i] * total[i])
            a[j] -= change if hinge[i] > 0.0 else 0.0
    settled(K, m, ld, a, centre)


cdef inline void settled(Py_ssize_t K, Py_ssize_t m, Py_ssize_t ld, Out x,
                         Out total) noexcept nogil:
    """Onto the simplex, without what is negative."""
    cdef Py_ssize_t i, k
    for i in range(m):
        total[i] = 0.0
    for k in range(K):
        for i in range(m):
            x[k * ld + i] = x[k * ld + i] if x[k * ld + i] > 0.0 else 0.0
            total[i] += x[k * ld + i]
    for k in range(K):
        for i in range(m):
            x[k * ld + i] /= total[i]


cdef cloned entropies(Py_ssize_t K, Py_ssize_t m, Py_ssize_t ld, In w, In p,
                      double* entropy) noexcept nogil:
    """entropy += Σ w H(p)."""
    cdef Py_ssize_t i, k
    cdef double total = 0.0
    for k in range(K):
        for i in range(m):
            total -= w[i] * p[k * ld + i] * log_of(p[k * ld + i])
    entropy[0] += total


# --- states ---------------------------------------------------------------------------------------


cdef class LabelState:
    """What a block of samples remembers; visits make new states and leave the old ones alone.

    codes    positions of the observed labels
    kappa    label costs, 0 of labels out of reach, and ``live`` as the last row; or no rows at all
    fixed    p of a linear loss p·s in place of lse(s), or no rows at all
    now      scores of all labels but the first, slacks and shares where labels flip, and p
    second   second-order terms, after ``predict_labels``
    step     changes of scores, slacks and shares, after ``correct_labels``
    """
    cdef readonly Py_ssize_t K
    cdef readonly double degree             # Σ of weights of the products
    cdef const int[::1] codes
    cdef readonly const double[:, ::1] kappa, fixed
    cdef double[:, ::1] now, step
    cdef readonly double[:, ::1] second

    def __init__(self, K, degree, codes, kappa, fixed, now, second=None, step=None):
        self.K, self.degree, self.codes, self.kappa = K, degree, codes, kappa
        self.fixed, self.now, self.second, self.step = fixed, now, second, step

    def parts(self):
        """The arrays that it consists of."""
        second = None if self.second is None else np.asarray(self.second)
        step = None if self.step is None else np.asarray(self.step)
        return (np.asarray(self.codes), np.asarray(self.kappa), np.asarray(self.fixed),
                np.asarray(self.now), second, step)

    @property
    def flips(self):
        return self.kappa.shape[0] > 0

    def tables(self):
        """Scores of all labels but the first, p, slacks and shares (empty where no label flips)."""
        now, K = np.asarray(self.now), self.K
        return now[:K - 1], now[-K:], *np.split(now[K - 1:-K], 2)

    def curved(self):
        """p (zero with a linear loss) and D = a/r, (labels, samples) each; one D if none flips."""
        _, p, r, a = self.tables()
        p = 0.0 * p if self.fixed.shape[0] else p
        return p, a / r if self.flips else np.eye(self.K, 1) + 0.0 * p

    def drawn(self, samples, weights):
        """The state of some samples, with other weights."""
        codes, kappa, fixed, now, _, _ = [
            part if part is None or not part.size else np.ascontiguousarray(part[..., samples])
            for part in self.parts()]
        if self.flips:
            kappa[self.K] = weights * (kappa[self.K] > 0.0)
        return LabelState(self.K, 0.0, codes, kappa, fixed, now)

    def __reduce__(self):
        return LabelState, (self.K, self.degree, *self.parts())

    def __sizeof__(self):
        return 200 + sum([part.nbytes for part in self.parts() if part is not None])


cdef LabelState new_state(LabelState of, double[:, ::1] now):
    cdef LabelState state = LabelState.__new__(LabelState)
    state.K, state.degree, state.codes = of.K, of.degree, of.codes
    state.kappa, state.fixed, state.now = of.kappa, of.fixed, now
    state.second = state.step = None
    return state


cdef inline Tables tables(double[:, ::1] table, Py_ssize_t K, Py_ssize_t lo) noexcept nogil:
    """The rows of a state from sample ``lo`` on, or of a step, which has no p."""
    cdef Tables found
    found.s, found.p = &table[0, lo], &table[table.shape[0] - K, lo]
    found.r = found.a = found.p
    if table.shape[0] > 2 * K - 1:
        found.r, found.a = &table[K - 1, lo], &table[2 * K - 1, lo]
    return found


# --- visits ---------------------------------------------------------------------------------------


cpdef Py_ssize_t matrices_length(Py_ssize_t K, Py_ssize_t n_columns):
    """Numbers of the matrix in the sums of a linearisation: a Gram matrix for each pair of labels,
    (n_columns + 1)², and λ's column, which takes the place of the last one's last row.
    """
    cdef Py_ssize_t stride = n_columns + 1, pairs = K * (K - 1) // 2
    return pairs * stride * stride - stride + (K - 1) * n_columns + 1


cdef class Visit:
    """A visit to a block, panel by panel: rows, state, and work space for ``kinds`` adjoints.

    ``lo``, ``m``, ``w``, ``y``, ``at``, ``kap`` and ``live`` are those of the present panel.
    """
    cdef CompiledRows rows
    cdef LabelState state
    cdef Py_ssize_t K, C, P, n, b, lo, m
    cdef bint flips
    cdef double[:, ::1] now, work, columns, adjoints
    cdef double* col
    cdef Panel v
    cdef Tables at
    cdef const double* w
    cdef const double* y
    cdef const double* kap
    cdef const double* live
    cdef const double* coef

    def __init__(self, CompiledRows rows, LabelState state, const double[::1] coef, kinds, now):
        cdef Py_ssize_t n = rows.n_samples, b = rows.panel, K = state.K
        cdef bint flips = state.kappa.shape[0] > 0
        self.K, self.C, self.P, self.n, self.b = K, K - 1, (K - 1) * rows.n_columns + 1, n, b
        fit(coef.shape[0] == self.P, "coefficients")
        fit(state.codes.shape[0] == n and state.now.shape[1] == n, "samples")
        fit(state.now.shape[0] == (2 + 2 * flips) * K - 1, "tables")
        fit(not flips or (state.kappa.shape[0] == K + 1 and state.kappa.shape[1] == n), "kappa")
        fit(not state.fixed.shape[0] or (state.fixed.shape[0] == K and state.fixed.shape[1] == n),
            "probabilities")
        self.state, self.flips, self.coef, self.now = state, flips, &coef[0], now
        self.work, self.columns = np.empty((5 * K + WORK, b)), np.empty((kinds * (K - 1), b))
        self.adjoints, self.col = np.zeros((kinds * (K - 1), rows.stride)), &self.columns[0, 0]
        self.v.s, self.v.dr, self.v.da = &self.work[0, 0], &self.work[K, 0], &self.work[2 * K, 0]
        self.v.inv, self.v.by_sample = &self.work[3 * K, 0], &self.work[4 * K, 0]
        self.v.most, self.v.log = &self.work[5 * K, 0], &self.work[5 * K + 1, 0]
        self.v.total, self.v.hinge = &self.work[5 * K + 2, 0], &self.work[5 * K + 3, 0]
        self.v.d, self.v.spare = &self.work[5 * K + 4, 0], &self.work[5 * K + 5, 0]
        self.lo = self.m = 0
        self.rows = rows.borrow()

    cdef bint next(self) noexcept nogil:
        """Go to the next panel; False after the last one."""
        self.lo += self.m
        self.m = min(self.b, self.n - self.lo)
        if self.m == 0:
            return False
        self.w, self.y = &self.rows.w[self.lo], &self.rows.y[self.lo]
        self.at = tables(self.now, self.K, self.lo)
        if self.flips:
            self.kap, self.live = &self.state.kappa[0, self.lo], &self.state.kappa[self.K, self.lo]
        return True

    cdef void scores(self) noexcept nogil:
        """Scores of a panel at ``coef``, or their changes: those of the first label are 0."""
        cdef Py_ssize_t i, k, m = self.m, b = self.b
        cdef double* s = self.v.s
        memset(s, 0, m * sizeof(double))
        if self.K == 2:
            self.rows.margins(self.lo, self.lo + m, self.coef, s + b)
        else:
            self.rows.scores(self.lo, self.lo + m, self.coef, <int>self.C, self.v.by_sample)
            for k in range(self.C):
                for i in range(m):
                    s[(k + 1) * b + i] = self.v.by_sample[i * self.C + k]
        for k in range(1, self.K):
            for i in range(m):
                s[k * b + i] *= self.y[i]

    cdef void keep_scores(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.C):
            memcpy(self.at.s + k * self.n, self.v.s + (k + 1) * self.b, self.m * sizeof(double))

    cdef void stiffen(self, double least) noexcept nogil:
        stiffnesses(self.K, self.m, self.b, self.n, self.live, self.at.r, self.at.a, least,
                    self.v.inv, self.v.total, self.v.hinge)

    cdef void place(self, double primal, double dual) noexcept nogil:
        """Scores, slacks and shares of a panel after a step of these lengths, to ``coef``."""
        cdef Py_ssize_t i, k, m = self.m, n = self.n
        cdef Tables was = tables(self.state.now, self.K, self.lo), d = was
        if not self.flips:
            self.scores()
            self.keep_scores()
            return
        if self.state.step is None:
            primal = dual = 0.0
        else:
            d = tables(self.state.step, self.K, self.lo)
        moved(self.K, m, n, was.r, was.a, d.r, d.a, primal, dual, self.at.r, self.at.a,
              self.v.spare, self.v.spare + self.b)
        memset(self.v.s, 0, m * sizeof(double))
        for k in range(self.C):
            for i in range(m):
                self.v.s[(k + 1) * self.b + i] = was.s[k * n + i] + primal * d.s[k * n + i]
        self.keep_scores()

    cdef void evaluate(self, double* scalars) noexcept nogil:
        """Probabilities and lse of a panel; their part of the scalars."""
        cdef Py_ssize_t i, k, n = self.n, b = self.b
        cdef Panel v = self.v
        if self.state.fixed.shape[0]:
            for i in range(self.m):
                v.most[i] = v.log[i] = 0.0
            for k in range(self.K):
                for i in range(self.m):
                    self.at.p[k * n + i] = self.state.fixed[k, self.lo + i]
                    v.log[i] += self.at.p[k * n + i] * v.s[k * b + i]
        else:
            softmax(self.K, self.m, b, n, self.w, v.s, self.at.p, v.most, v.log, v.spare,
                    scalars + _sums.ENTROPY)
        for i in range(self.m):
            k = self.state.codes[self.lo + i]
            scalars[_sums.LOSS] += self.w[i] * (v.log[i] + (v.most[i] - v.s[k * b + i]))

    cdef void follow(self, double centre, double share, const double* e,
                     double* costs) noexcept nogil:
        """Changes of a panel along ``coef``, products to ``centre``; the costs of step lengths."""
        cdef Py_ssize_t K = self.K, m = self.m, n = self.n, b = self.b
        cdef Panel v = self.v
        cdef Tables at = self.at
        self.scores()
        if not self.flips:
            return
        self.stiffen(0.0)
        towards(K, m, b, n, self.kap, at.r, at.a, v.inv, v.total, v.s, self.coef[self.P - 1],
                centre, share, e, v.dr, v.da, v.spare)
        falls(K, m, b, n, at.a, v.inv, v.dr, v.da, v.spare, v.spare + b)
        book_panel(K, m, b, n, self.live, at.r, at.a, v.dr, v.da, v.spare, v.spare + b, costs)

    cdef void adjoint(self, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        """Add the columns of some kinds to their adjoints."""
        self.rows.adjoint(self.lo, self.lo + self.m, self.col + first * self.C * self.b,
                          <int>((last - first) * self.C), &self.adjoints[first * self.C, 0])

    cdef void gather(self, Py_ssize_t kind, double side, double* out) noexcept nogil:
        """An adjoint, one after another for each label but the first, and λ's entry."""
        cdef Py_ssize_t k, n = self.rows.n_columns
        for k in range(self.C):
            memcpy(out + k * n, &self.adjoints[kind * self.C + k, 0], n * sizeof(double))
        out[self.C * n] = side


def open_labels(CompiledRows rows, const int[::1] codes, kappa, const double[:, ::1] fixed,
                const double[::1] coef, double mu):
    """The state on the central path (5).

    ``kappa``: (labels, samples), infinite for labels out of reach, or None in a problem without
    flips.  All blocks agree on that, whatever labels their own samples can get.
    """
    cdef Py_ssize_t n = rows.n_samples
    cdef bint flips = kappa is not None
    fit(not flips or kappa.shape[1] == n, "kappa")
    K = kappa.shape[0] if flips else (coef.shape[0] - 1) // rows.n_columns + 1
    now = np.zeros(((4 if flips else 2) * K - 1, n))
    costs, degree = np.zeros((0, n)), 0.0
    if flips:
        within = np.isfinite(kappa)
        live = np.asarray(rows.w) * (within.sum(axis=0) > 1)
        costs, degree = np.vstack([np.where(within, kappa, 0.0), live]), live @ within.sum(axis=0)
        now[2 * K - 1:3 * K - 1] = within
    cdef LabelState state = LabelState(K, degree, codes, costs, fixed, now)
    cdef Visit visit = Visit(rows, state, coef, 1, state.now)
    cdef double* spare = visit.v.spare
    while visit.next():
        visit.scores()
        visit.keep_scores()
        if flips:
            central(visit.K, visit.m, visit.b, n, visit.kap, visit.v.s, coef[visit.P - 1], mu,
                    visit.at.r, visit.at.a, spare, spare + visit.b, spare + 2 * visit.b)
    visit.rows.free()
    return state


cdef void add_conditions(Visit visit, double lam, double* scalars, double* side) noexcept nogil:
    """Columns of a panel for the gradient, and with flips for λ's column and the right side."""
    cdef Py_ssize_t b = visit.b
    cdef Panel v = visit.v
    cdef Tables at = visit.at
    if visit.flips:
        conditions(visit.K, visit.m, b, visit.n, visit.w, visit.y, visit.live, visit.kap, lam, v.s,
                   at.r, at.a, at.p, v.inv, v.total, v.hinge, v.most, v.log, v.spare, v.spare + b,
                   v.spare + 2 * b, visit.col, scalars, side)
    else:
        slopes_of(visit.K, visit.m, b, visit.n, visit.w, visit.y, at.p,
                  &visit.state.codes[visit.lo], visit.col + GRADIENT * visit.C * b)


cdef void add_matrices(Visit visit, double bend, double* matrix) noexcept nogil:
    """The Gram matrix of a panel for each pair of labels."""
    cdef Py_ssize_t j, k, n = visit.n, b = visit.b, S = visit.rows.stride
    cdef Panel v = visit.v
    cdef Tables at = visit.at
    for k in range(1, visit.K):
        for j in range(k):
            pair_weights(visit.m, visit.w, at.p + j * n, at.p + k * n, v.hinge, at.a + j * n,
                         v.inv + j * b, at.a + k * n, v.inv + k * b, v.total, bend, visit.flips,
                         v.d)
            visit.rows.gram(visit.lo, visit.lo + visit.m, v.d, matrix)
            matrix += S * S


def linearise_labels(CompiledRows rows, LabelState state, const double[::1] coef, double primal,
                     double dual, bint gram=True, bint terms=True, double least=0.0):
    """Move by these lengths along the state's direction, to ``coef``: the state and its conditions.

    Without ``gram`` there is no matrix; without ``terms`` only λ's entries of the right side's
    parts are formed.  Hinges of less stiffness than ``least`` stay out of the matrix.
    """
    cdef double[:, ::1] after = np.empty((state.now.shape[0], rows.n_samples))
    cdef Visit visit = Visit(rows, state, coef, ADJOINTS, after)
    cdef Py_ssize_t j, P = visit.P
    cdef Py_ssize_t matrix = matrices_length(state.K, rows.n_columns) if gram else 0
    sums = np.zeros(matrix + 3 * P + _sums.SCALARS)
    cdef double[::1] view = sums
    cdef Linearised out = linearised(&view[0], P, matrix)
    cdef double bend = 0.0 if state.fixed.shape[0] else 1.0
    cdef Py_ssize_t first = LAMBDA if gram else GRADIENT, last = ADJOINTS if terms else AFFINE
    cdef double side[ADJOINTS]
    memset(side, 0, sizeof(side))
    with nogil:
        while visit.next():
            visit.place(primal, dual)
            visit.evaluate(out.scalars)
            if visit.flips:
                visit.stiffen(least)
            add_conditions(visit, coef[P - 1], out.scalars, side)
            visit.adjoint(first if visit.flips else GRADIENT, last if visit.flips else AFFINE)
            if gram:
                add_matrices(visit, bend, out.matrix)
        if not visit.flips:
            out.scalars[_sums.VALUE] = out.scalars[_sums.LOSS]
        out.scalars[_sums.DEGREE] = state.degree
        for j in range(first, ADJOINTS):
            visit.gather(j, side[j], out.lam_column + j * P)
    visit.rows.free()
    return new_state(state, after), sums


def predict_labels(CompiledRows rows, LabelState state, const double[::1] dcoef, bint terms=True):
    """Follow the predictor, all products to zero: second-order terms, products and step lengths.

    Without ``terms``, of the second-order terms' part of the right side only λ's entry is formed.
    """
    fit(state.flips, "flips")
    cdef Visit visit = Visit(rows, state, dcoef, 1, state.now)
    sums = np.zeros(visit.P + _sums.CHANGES + 2 * _sums.LEVELS)
    cdef double[:, ::1] second = np.empty((state.K, rows.n_samples))
    cdef double[::1] view = sums
    cdef double* changes = &view[visit.P]
    cdef double side = 0.0
    cdef Panel v = visit.v
    cdef LabelState found = new_state(state, state.now)
    with nogil:
        while visit.next():
            visit.follow(0.0, 0.0, visit.at.a, changes + _sums.CHANGES)
            predicted(visit.K, visit.m, visit.b, visit.n, visit.y, visit.live, visit.kap,
                      visit.at.r, visit.at.a, v.inv, v.total, v.dr, v.da, &second[0, visit.lo],
                      v.spare, visit.col, changes, &side)
            if terms:
                visit.adjoint(0, 1)
        visit.gather(0, side, &view[0])
    visit.rows.free()
    found.second = second
    return found, sums


def correct_labels(CompiledRows rows, LabelState state, const double[::1] dcoef, double centre,
                   double share):
    """Follow the corrector, products to ``centre`` less a share of the second-order terms."""
    fit(not state.flips or state.second is not None, "second-order terms")
    cdef Visit visit = Visit(rows, state, dcoef, 1, state.now)
    cdef Py_ssize_t k, n = visit.n, b = visit.b
    cdef double[:, ::1] second = state.second if visit.flips else state.now
    cdef double[:, ::1] step = np.empty((3 * state.K - 1 if visit.flips else state.K, n))
    sums = np.zeros(_sums.PARABOLA + 2 * _sums.LEVELS)
    cdef double[::1] view = sums
    cdef Panel v = visit.v
    cdef Tables d
    cdef LabelState found = new_state(state, state.now)
    with nogil:
        while visit.next():
            visit.follow(centre, share, &second[0, visit.lo], &view[_sums.PARABOLA])
            parabola(visit.K, visit.m, b, n, visit.w, visit.at.p, v.s, v.spare, v.spare + b,
                     &view[0])
            view[_sums.SLOPE] -= observed(visit.m, b, visit.w, &state.codes[visit.lo], v.s)
            d = tables(step, visit.K, visit.lo)
            for k in range(visit.K if visit.flips else 0):
                memcpy(d.r + k * n, v.dr + k * b, visit.m * sizeof(double))
                memcpy(d.a + k * n, v.da + k * b, visit.m * sizeof(double))
                if k > 0:
                    memcpy(d.s + (k - 1) * n, v.s + k * b, visit.m * sizeof(double))
        if state.fixed.shape[0]:
            view[_sums.CURVATURE] = 0.0
    visit.rows.free()
    if visit.flips:
        found.step = step
    return found, sums


cdef void first_point(Visit visit, double[:, :, ::1] point) noexcept nogil:
    """The dual point of the state."""
    cdef Py_ssize_t i, k, lo = visit.lo
    cdef size_t size = visit.m * sizeof(double)
    for k in range(visit.K):
        memcpy(&point[0, k, lo], visit.at.p + k * visit.n, size)
        if visit.flips:
            memcpy(&point[1, k, lo], visit.at.a + k * visit.n, size)
    for i in range(lo, lo + visit.m if not visit.flips else lo):
        point[1, visit.state.codes[i], i] = 1.0


cdef double equations(Visit visit, const double[:, :, ::1] point) noexcept nogil:
    """The columns of a dual point's equations; what its flips cost."""
    cdef Py_ssize_t i, j, k
    cdef double spent = 0.0
    for k in range(visit.K):
        for i in range(visit.m):
            j = visit.lo + i
            if visit.flips:
                spent += visit.w[i] * visit.state.kappa[k, j] * point[1, k, j]
            if k > 0:
                visit.columns[k - 1, i] = visit.w[i] * (point[0, k, j] - point[1, k, j])
                visit.columns[k - 1, i] *= visit.y[i]
    return spent


def certify_labels(CompiledRows rows, both, const double[::1] dcoef, double least=0.0, known=None):
    """The dual point (p, a), (2, labels, samples), after one more correction (12), and its sums.

    ``both`` is a state, or a state and the last dual point.  Hinges of less stiffness than
    ``least``, which are not in the matrix, stay as they are.  ``known`` are the changes of two
    labels' margins, where the system of the correction knows them better than dcoef does.
    """
    cdef LabelState state
    state, point = both if isinstance(both, tuple) else (both, None)
    cdef Py_ssize_t lo, m, n = rows.n_samples, b = rows.panel, K = state.K
    cdef Py_ssize_t P = dcoef.shape[0]
    cdef double[:, :, ::1] after = np.zeros((2, K, n)) if point is None else np.array(point)
    fit(after.shape[0] == 2 and after.shape[1] == K and after.shape[2] == n, "dual point")
    cdef bint first = point is None
    cdef const double[::1] changes = np.zeros(0) if known is None else known
    fit(known is None or (K == 2 and changes.shape[0] == n), "changes of margins")
    cdef Visit visit = Visit(rows, state, dcoef, 1, state.now)
    sums = np.zeros(P + _sums.PROOF)
    cdef double[::1] out = sums
    cdef double spent = 0.0
    cdef Panel v = visit.v
    with nogil:
        while visit.next():
            lo, m = visit.lo, visit.m
            if changes.shape[0]:
                memset(v.s, 0, m * sizeof(double))
                memcpy(v.s + b, &changes[lo], m * sizeof(double))
            else:
                visit.scores()
            if first:
                first_point(visit, after)
            if not state.fixed.shape[0]:
                probabilities(K, m, b, n, visit.at.p, v.s, &after[0, 0, lo], v.spare)
            if visit.flips:
                visit.stiffen(least)
                shares(K, m, b, n, visit.kap, visit.at.a, v.inv, v.total, v.hinge, v.s,
                       dcoef[P - 1], &after[1, 0, lo], v.spare)
            spent += equations(visit, after)
            visit.adjoint(0, 1)
            entropies(K, m, n, visit.w, &after[0, 0, lo], &out[P + _sums.PROOF_ENTROPY])
        visit.gather(0, -spent, &out[0])
        out[P + _sums.PROOF_ADDITIONS] = rows.length + K
    visit.rows.free()
    return np.asarray(after), sums
