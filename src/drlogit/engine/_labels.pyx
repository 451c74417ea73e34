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
cdef double SECOND = SETTINGS.second_order, EMPTIED = SETTINGS.emptied

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
                      Out col) noexcept nogil:
    """Columns of the loss's gradient where no label flips, but for the observed labels."""
    cdef Py_ssize_t i, k
    for k in range(1, K):
        for i in range(m):
            col[(k - 1) * b + i] = w[i] * y[i] * p[k * ld + i]


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
    cdef double new
    for i in range(m):
        mean[i] = 0.0
    for k in range(K):
        for i in range(m):
            mean[i] += p_now[k * ld + i] * ds[k * b + i]
    for k in range(K):
        for i in range(m):
            j = k * ld + i
            new = p[j] + p_now[j] * (ds[k * b + i] - mean[i])
            p[j] = new if new > EMPTIED * p[j] else 0.0
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
    now      scores of all labels but the first, p, slacks and shares (or only the first two)
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
        return np.split(np.asarray(self.now), [self.K - 1, 2 * self.K - 1, 3 * self.K - 1])

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


cdef int check(CompiledRows rows, LabelState state, const double[::1] coef) except -1:
    """Check the lengths of the arrays that a visit reads; λ is the last of the coefficients."""
    cdef Py_ssize_t n = rows.n_samples, K = state.K, flips = state.kappa.shape[0] > 0
    fit(coef.shape[0] == (K - 1) * rows.n_columns + 1, "coefficients")
    fit(state.codes.shape[0] == n and state.now.shape[1] == n, "samples")
    fit(state.now.shape[0] == (2 + 2 * flips) * K - 1, "tables")
    fit(not flips or (state.kappa.shape[0] == K + 1 and state.kappa.shape[1] == n), "kappa")
    fit(not state.fixed.shape[0] or (state.fixed.shape[0] == K and state.fixed.shape[1] == n),
        "probabilities")
    if state.second is not None:
        fit(state.second.shape[0] == K and state.second.shape[1] == n, "second-order terms")
    if state.step is not None:
        fit(state.step.shape[0] == 3 * K - 1 and state.step.shape[1] == n, "steps")
    return 0


cdef inline Tables tables(double[:, ::1] table, Py_ssize_t K, Py_ssize_t lo) noexcept nogil:
    """The rows of a state from sample ``lo`` on; slacks and shares only with flips."""
    cdef Tables found
    found.s = &table[0, lo]
    found.p = &table[K - 1, lo]
    found.r = found.a = NULL
    if table.shape[0] > 2 * K - 1:
        found.r, found.a = &table[2 * K - 1, lo], &table[3 * K - 1, lo]
    return found


cdef inline Tables direction(double[:, ::1] table, Py_ssize_t K, Py_ssize_t lo) noexcept nogil:
    """The rows of a direction: changes of scores, slacks and shares."""
    cdef Tables found
    found.s, found.r, found.a = &table[0, lo], &table[K - 1, lo], &table[2 * K - 1, lo]
    found.p = NULL
    return found


cdef inline Panel panel_of(double[:, ::1] work, Py_ssize_t K) noexcept nogil:
    """The parts of a work space of 5 K + WORK rows."""
    cdef Panel v
    v.s, v.dr, v.da = &work[0, 0], &work[K, 0], &work[2 * K, 0]
    v.inv, v.by_sample, v.most = &work[3 * K, 0], &work[4 * K, 0], &work[5 * K, 0]
    v.log, v.total, v.hinge = &work[5 * K + 1, 0], &work[5 * K + 2, 0], &work[5 * K + 3, 0]
    v.d, v.spare = &work[5 * K + 4, 0], &work[5 * K + 5, 0]
    return v


cdef void scores(CompiledRows rows, Py_ssize_t lo, Py_ssize_t m, Py_ssize_t K, Py_ssize_t b,
                 const double* coef, double* by_sample, double* s) noexcept nogil:
    """Scores of m samples from ``lo`` on, or their changes: those of the first label are 0."""
    cdef Py_ssize_t i, k
    memset(s, 0, m * sizeof(double))
    if K == 2:
        rows.margins(lo, lo + m, coef, s + b)
    else:
        rows.scores(lo, lo + m, coef, <int>(K - 1), by_sample)
        for k in range(1, K):
            for i in range(m):
                s[k * b + i] = by_sample[i * (K - 1) + k - 1]
    for k in range(1, K):
        for i in range(m):
            s[k * b + i] *= rows.y[lo + i]


cdef void gather(Py_ssize_t K, CompiledRows rows, const double[:, ::1] adjoints, Py_ssize_t first,
                 double side, double* out) noexcept nogil:
    """Rows of adjoints from ``first`` on, one for each label but the first, and λ's entry."""
    cdef Py_ssize_t k, n = rows.n_columns
    for k in range(K - 1):
        memcpy(out + k * n, &adjoints[first + k, 0], n * sizeof(double))
    out[(K - 1) * n] = side


# --- visits ---------------------------------------------------------------------------------------


cpdef Py_ssize_t matrices_length(Py_ssize_t K, Py_ssize_t n_columns):
    """Numbers of the matrix in the sums of a linearisation: a Gram matrix for each pair of labels,
    (n_columns + 1)², and λ's column, which takes the place of the last one's last row.
    """
    cdef Py_ssize_t stride = n_columns + 1, pairs = K * (K - 1) // 2
    return pairs * stride * stride - stride + (K - 1) * n_columns + 1


def open_labels(CompiledRows rows, const int[::1] codes, kappa, const double[:, ::1] fixed,
                const double[::1] coef, double mu):
    """The state on the central path (5).

    ``kappa``: (labels, samples), infinite for labels out of reach, or None in a problem without
    flips.  All blocks agree on that, whatever labels their own samples can get.
    """
    cdef Py_ssize_t block, lo, m, n = rows.n_samples, b = rows.panel, k
    cdef bint flips = kappa is not None
    fit(not flips or kappa.shape[1] == n, "kappa")
    cdef Py_ssize_t K = kappa.shape[0] if flips else (coef.shape[0] - 1) // rows.n_columns + 1
    now = np.zeros(((4 if flips else 2) * K - 1, n))
    costs, degree = np.zeros((0, n)), 0.0
    if flips:
        within = np.isfinite(kappa)
        live = np.asarray(rows.w) * (within.sum(axis=0) > 1)
        costs, degree = np.vstack([np.where(within, kappa, 0.0), live]), live @ within.sum(axis=0)
        now[3 * K - 1:] = within
    cdef LabelState state = LabelState(K, degree, codes, costs, fixed, now)
    check(rows, state, coef)
    cdef double[:, ::1] work = np.empty((5 * K + WORK, b))
    cdef Panel v = panel_of(work, K)
    cdef Tables at
    rows = rows.borrow()
    for block in range((n + b - 1) // b):
        lo = block * b
        m, at = min(b, n - lo), tables(state.now, K, lo)
        scores(rows, lo, m, K, b, &coef[0], v.by_sample, v.s)
        for k in range(1, K):
            memcpy(at.s + (k - 1) * n, v.s + k * b, m * sizeof(double))
        if flips:
            central(K, m, b, n, &state.kappa[0, lo], v.s, coef[coef.shape[0] - 1], mu, at.r, at.a,
                    v.spare, v.spare + b, v.spare + 2 * b)
    rows.free()
    return state


cdef void place(CompiledRows rows, LabelState state, Py_ssize_t lo, Py_ssize_t m,
                const double* coef, double primal, double dual, Tables at, Panel v) noexcept nogil:
    """Scores, slacks and shares of a panel after a step of these lengths, to ``coef``."""
    cdef Py_ssize_t i, k, K = state.K, n = rows.n_samples, b = rows.panel
    cdef Tables was = tables(state.now, K, lo), d = was
    if state.kappa.shape[0] == 0:
        scores(rows, lo, m, K, b, coef, v.by_sample, v.s)
        for k in range(1, K):
            memcpy(at.s + (k - 1) * n, v.s + k * b, m * sizeof(double))
        return
    if state.step is None:
        primal = dual = 0.0
    else:
        d = direction(state.step, K, lo)
    moved(K, m, n, was.r, was.a, d.r, d.a, primal, dual, at.r, at.a, v.spare, v.spare + b)
    memset(v.s, 0, m * sizeof(double))
    for k in range(1, K):
        for i in range(m):
            v.s[k * b + i] = was.s[(k - 1) * n + i] + primal * d.s[(k - 1) * n + i]
            at.s[(k - 1) * n + i] = v.s[k * b + i]


cdef void evaluated(CompiledRows rows, LabelState state, Py_ssize_t lo, Py_ssize_t m, Tables at,
                    Panel v, double* scalars) noexcept nogil:
    """Probabilities and lse of a panel; their part of the scalars."""
    cdef Py_ssize_t i, k, K = state.K, n = rows.n_samples, b = rows.panel
    cdef const double* w = &rows.w[lo]
    if state.fixed.shape[0]:
        for i in range(m):
            v.most[i] = v.log[i] = 0.0
        for k in range(K):
            for i in range(m):
                at.p[k * n + i] = state.fixed[k, lo + i]
                v.log[i] += at.p[k * n + i] * v.s[k * b + i]
    else:
        softmax(K, m, b, n, w, v.s, at.p, v.most, v.log, v.spare, scalars + _sums.ENTROPY)
    for i in range(m):
        k = state.codes[lo + i]
        scalars[_sums.LOSS] += w[i] * (v.log[i] + (v.most[i] - v.s[k * b + i]))


cdef void follow(CompiledRows rows, LabelState state, Py_ssize_t lo, Py_ssize_t m,
                 const double* dcoef, double centre, double share, const double* e, Panel v,
                 double* costs) noexcept nogil:
    """Changes of a panel along a direction, products to ``centre``; the costs of step lengths."""
    cdef Py_ssize_t K = state.K, n = rows.n_samples, b = rows.panel
    cdef Tables at = tables(state.now, K, lo)
    cdef const double* live
    scores(rows, lo, m, K, b, dcoef, v.by_sample, v.s)
    if state.kappa.shape[0] == 0:
        return
    live = &state.kappa[K, lo]
    stiffnesses(K, m, b, n, live, at.r, at.a, 0.0, v.inv, v.total, v.hinge)
    towards(K, m, b, n, &state.kappa[0, lo], at.r, at.a, v.inv, v.total, v.s,
            dcoef[(K - 1) * rows.n_columns], centre, share, e, v.dr, v.da, v.spare)
    falls(K, m, b, n, at.a, v.inv, v.dr, v.da, v.spare, v.spare + b)
    book_panel(K, m, b, n, live, at.r, at.a, v.dr, v.da, v.spare, v.spare + b, costs)


def linearise_labels(CompiledRows rows, LabelState state, const double[::1] coef, double primal,
                     double dual, bint gram=True, bint terms=True, double least=0.0):
    """Move by these lengths along the state's direction, to ``coef``: the state and its conditions.

    Without ``gram`` there is no matrix; without ``terms`` only λ's entries of the right side's
    parts are formed.  Hinges of less stiffness than ``least`` stay out of the matrix.
    """
    cdef Py_ssize_t block, lo, i, j, k, q, m, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = state.K, C = K - 1
    cdef Py_ssize_t P = C * rows.n_columns + 1, S = rows.stride
    cdef Py_ssize_t matrix = matrices_length(K, rows.n_columns) if gram else 0
    cdef bint flips = state.kappa.shape[0] > 0
    check(rows, state, coef)
    cdef double bend = 0.0 if state.fixed.shape[0] else 1.0, lam = coef[P - 1]
    cdef double[:, ::1] after = np.empty((state.now.shape[0], n))
    cdef double[:, ::1] work = np.empty((5 * K + WORK, b))
    cdef double[:, ::1] columns = np.empty((ADJOINTS * C, b))
    cdef double[:, ::1] adjoints = np.zeros((ADJOINTS * C, S))
    sums = np.zeros(matrix + 3 * P + _sums.SCALARS)
    cdef double[::1] view = sums
    cdef Linearised out = linearised(&view[0], P, matrix)
    cdef Py_ssize_t first = LAMBDA if gram else GRADIENT, formed = ADJOINTS if terms else AFFINE
    cdef double* col = &columns[0, 0]
    cdef double side[ADJOINTS]
    cdef const double* w
    cdef const double* y
    cdef Panel v = panel_of(work, K)
    cdef Tables at
    for j in range(ADJOINTS):
        side[j] = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m, w, y, at = min(b, n - lo), &rows.w[lo], &rows.y[lo], tables(after, K, lo)
            place(rows, state, lo, m, &coef[0], primal, dual, at, v)
            evaluated(rows, state, lo, m, at, v, out.scalars)
            if flips:
                stiffnesses(K, m, b, n, &state.kappa[K, lo], at.r, at.a, least, v.inv, v.total,
                            v.hinge)
                conditions(K, m, b, n, w, y, &state.kappa[K, lo], &state.kappa[0, lo], lam, v.s,
                           at.r, at.a, at.p, v.inv, v.total, v.hinge, v.most, v.log, v.spare,
                           v.spare + b, v.spare + 2 * b, col, out.scalars, side)
                rows.adjoint(lo, lo + m, col + first * C * b, <int>((formed - first) * C),
                             &adjoints[first * C, 0])
            else:
                slopes_of(K, m, b, n, w, y, at.p, col)
                for i in range(m):
                    k = state.codes[lo + i]
                    if k > 0:
                        col[(k - 1) * b + i] -= w[i] * y[i]
                rows.adjoint(lo, lo + m, col, <int>C, &adjoints[GRADIENT * C, 0])
            q = 0
            for k in range(1, K if gram else 1):
                for j in range(k):
                    pair_weights(m, w, at.p + j * n, at.p + k * n, v.hinge, at.a + j * n,
                                 v.inv + j * b, at.a + k * n, v.inv + k * b, v.total, bend, flips,
                                 v.d)
                    rows.gram(lo, lo + m, v.d, out.matrix + q * S * S)
                    q += 1
        if not flips:
            out.scalars[_sums.VALUE] = out.scalars[_sums.LOSS]
        out.scalars[_sums.DEGREE] = state.degree
        for j in range(first, ADJOINTS):
            gather(K, rows, adjoints, j * C, side[j], out.lam_column + j * P)
    rows.free()
    return new_state(state, after), sums


def predict_labels(CompiledRows rows, LabelState state, const double[::1] dcoef, bint terms=True):
    """Follow the predictor, all products to zero: second-order terms, products and step lengths.

    Without ``terms``, of the second-order terms' part of the right side only λ's entry is formed.
    """
    cdef Py_ssize_t block, lo, m, n = rows.n_samples, b = rows.panel, K = state.K
    cdef Py_ssize_t P = (K - 1) * rows.n_columns + 1
    check(rows, state, dcoef)
    fit(state.kappa.shape[0] > 0, "flips")
    sums = np.zeros(P + _sums.CHANGES + 2 * _sums.LEVELS)
    cdef double[:, ::1] second = np.empty((K, n)), adjoints = np.zeros((K - 1, rows.stride))
    cdef double[:, ::1] work = np.empty((5 * K + WORK, b)), columns = np.empty((K - 1, b))
    cdef double[::1] view = sums
    cdef double* changes = &view[P]
    cdef double side = 0.0
    cdef Panel v = panel_of(work, K)
    cdef Tables at
    cdef LabelState found = new_state(state, state.now)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m, at = min(b, n - lo), tables(state.now, K, lo)
            follow(rows, state, lo, m, &dcoef[0], 0.0, 0.0, at.a, v, changes + _sums.CHANGES)
            predicted(K, m, b, n, &rows.y[lo], &state.kappa[K, lo], &state.kappa[0, lo], at.r,
                      at.a, v.inv, v.total, v.dr, v.da, &second[0, lo], v.spare, &columns[0, 0],
                      changes, &side)
            if terms:
                rows.adjoint(lo, lo + m, &columns[0, 0], <int>(K - 1), &adjoints[0, 0])
        gather(K, rows, adjoints, 0, side, &view[0])
    rows.free()
    found.second = second
    return found, sums


def correct_labels(CompiledRows rows, LabelState state, const double[::1] dcoef, double centre,
                   double share):
    """Follow the corrector, products to ``centre`` less a share of the second-order terms."""
    cdef Py_ssize_t block, lo, m, k, n = rows.n_samples, b = rows.panel, K = state.K
    check(rows, state, dcoef)
    cdef bint flips = state.kappa.shape[0] > 0
    fit(not flips or state.second is not None, "second-order terms")
    cdef double[:, ::1] second = state.second if flips else state.now
    cdef double[:, ::1] step = np.empty((3 * K - 1 if flips else 0, n))
    cdef double[:, ::1] work = np.empty((5 * K + WORK, b))
    sums = np.zeros(_sums.PARABOLA + 2 * _sums.LEVELS)
    cdef double[::1] view = sums
    cdef Panel v = panel_of(work, K)
    cdef Tables d
    cdef LabelState found = new_state(state, state.now)
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m = min(b, n - lo)
            follow(rows, state, lo, m, &dcoef[0], centre, share, &second[0, lo], v,
                   &view[_sums.PARABOLA])
            parabola(K, m, b, n, &rows.w[lo], tables(state.now, K, lo).p, v.s, v.spare,
                     v.spare + b, &view[0])
            view[_sums.SLOPE] -= observed(m, b, &rows.w[lo], &state.codes[lo], v.s)
            d = direction(step, K, lo)
            for k in range(K if flips else 0):
                memcpy(d.r + k * n, v.dr + k * b, m * sizeof(double))
                memcpy(d.a + k * n, v.da + k * b, m * sizeof(double))
                if k > 0:
                    memcpy(d.s + (k - 1) * n, v.s + k * b, m * sizeof(double))
        if state.fixed.shape[0]:
            view[_sums.CURVATURE] = 0.0
    rows.free()
    if flips:
        found.step = step
    return found, sums


def certify_labels(CompiledRows rows, both, const double[::1] dcoef, double least=0.0, known=None):
    """The dual point (p, a), (2, labels, samples), after one more correction (12), and its sums.

    ``both`` is a state, or a state and the last dual point.  Hinges of less stiffness than
    ``least``, which are not in the matrix, stay as they are.  ``known`` are the changes of two
    labels' margins, where the system of the correction knows them better than dcoef does.
    """
    cdef LabelState state
    state, point = both if isinstance(both, tuple) else (both, None)
    check(rows, state, dcoef)
    cdef Py_ssize_t block, lo, i, j, k, m, n = rows.n_samples, b = rows.panel, K = state.K
    cdef Py_ssize_t P = (K - 1) * rows.n_columns + 1
    cdef bint flips = state.kappa.shape[0] > 0
    cdef double[:, :, ::1] after = np.zeros((2, K, n)) if point is None else np.array(point)
    fit(after.shape[0] == 2 and after.shape[1] == K and after.shape[2] == n, "dual point")
    cdef bint first = point is None
    cdef const double[::1] changes = np.zeros(0) if known is None else known
    fit(known is None or (K == 2 and changes.shape[0] == n), "changes of margins")
    cdef double[:, ::1] work = np.empty((5 * K + WORK, b)), columns = np.empty((K - 1, b))
    cdef double[:, ::1] adjoints = np.zeros((K - 1, rows.stride))
    sums = np.zeros(P + _sums.PROOF)
    cdef double[::1] out = sums
    cdef double spent = 0.0
    cdef Panel v = panel_of(work, K)
    cdef Tables at
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo = block * b
            m, at = min(b, n - lo), tables(state.now, K, lo)
            if changes.shape[0]:
                memset(v.s, 0, m * sizeof(double))
                memcpy(v.s + b, &changes[lo], m * sizeof(double))
            else:
                scores(rows, lo, m, K, b, &dcoef[0], v.by_sample, v.s)
            for k in range(K if first else 0):
                memcpy(&after[0, k, lo], at.p + k * n, m * sizeof(double))
                if flips:
                    memcpy(&after[1, k, lo], at.a + k * n, m * sizeof(double))
            for i in range(m if first and not flips else 0):
                after[1, state.codes[lo + i], lo + i] = 1.0
            if not state.fixed.shape[0]:
                probabilities(K, m, b, n, at.p, v.s, &after[0, 0, lo], v.spare)
            if flips:
                stiffnesses(K, m, b, n, &state.kappa[K, lo], at.r, at.a, least, v.inv, v.total,
                            v.hinge)
                shares(K, m, b, n, &state.kappa[0, lo], at.a, v.inv, v.total, v.hinge, v.s,
                       dcoef[P - 1], &after[1, 0, lo], v.spare)
            for k in range(K):
                for i in range(m):
                    j = lo + i
                    if flips:
                        spent += rows.w[j] * state.kappa[k, j] * after[1, k, j]
                    if k > 0:
                        columns[k - 1, i] = rows.w[j] * (after[0, k, j] - after[1, k, j])
                        columns[k - 1, i] *= rows.y[j]
            rows.adjoint(lo, lo + m, &columns[0, 0], <int>(K - 1), &adjoints[0, 0])
            entropies(K, m, n, &rows.w[lo], &after[0, 0, lo], &out[P + _sums.PROOF_ENTROPY])
        gather(K, rows, adjoints, 0, -spent, &out[0])
        out[P + _sums.PROOF_ADDITIONS] = rows.length + K
    rows.free()
    return np.asarray(after), sums
