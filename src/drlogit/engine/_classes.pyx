"""The samples of several classes: three visits per iteration, all in compiled loops.

Of sample i with scores s (a number for each of K classes) and label y the loss and its worst label
are

    lse(s) - s_y + (τ + s_y),      r_k = τ + s_k + κ_k λ ≥ 0  with multipliers a_k, Σ a = 1

Visits are pure functions of (rows, state, …); their flat arrays of sums are those of ``_pair``
without a matrix; P counts (B row by row, with the intercepts, and λ).  Labels that a sample cannot
get (κ infinite) have a = 0 and a slack without end, and cost nothing then; where there is no other,
slacks and multipliers stay as they are.  The sample's curvature in its scores is a Laplacian with
weights d_jk ≥ 0 for pairs of classes,

    w (diag p - p pᵀ) + w (diag D - D Dᵀ / ΣD),  D = a / r:       d_jk = w (p_j p_k + D_j D_k / ΣD)

so the matrix takes a weighted Gram matrix of the rows for every pair, and a product with it two
passes.

Derivation: docs/algorithm.md, (17) and (18).
"""
from collections import namedtuple

import numpy as np
from libc.math cimport INFINITY, exp, log
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit
from ._pair cimport LEVELS, SCALARS, limit
from .settings import SETTINGS

cdef double FAR = 1e300             # the slack of a label that a sample cannot get
cdef double KEPT = SETTINGS.kept, SECOND = SETTINGS.second_order, EMPTIED = SETTINGS.emptied
cdef double PASSING = SETTINGS.passing

#: A block at an iterate: labels, what each label costs, probabilities of a linear loss p·s in the
#: place of lse(s) (or
#: none); scores, slacks and multipliers; (p, D); the predictor's second-order terms; the direction.
ClassState = namedtuple("ClassState", "codes kappa fixed now curved second step",
                        defaults=(None, None, None), module=__name__)


cdef double softmax(const double* s, Py_ssize_t K, double* p) noexcept nogil:
    """lse(s), and p = softmax(s)."""
    cdef double most = s[0], total = 0.0
    cdef Py_ssize_t k
    for k in range(1, K):
        most = max(most, s[k])
    for k in range(K):
        p[k] = exp(s[k] - most)
        total += p[k]
    for k in range(K):
        p[k] /= total
    return most + log(total)


cdef double loss(const double* s, Py_ssize_t K, const double[:, ::1] fixed, Py_ssize_t i,
                 double* p) noexcept nogil:
    """lse(s) and its slopes, or p·s of the fixed p of sample i."""
    cdef Py_ssize_t k
    cdef double total = 0.0
    if fixed.shape[0] == 0:
        return softmax(s, K, p)
    for k in range(K):
        p[k] = fixed[i, k]
        total += p[k] * s[k]
    return total


cdef inline double plogp(double p) noexcept nogil:
    return -p * log(p) if p > 0.0 else 0.0


cdef Py_ssize_t others(const double* a, Py_ssize_t K) noexcept nogil:
    """How many labels a sample can get, its own among them; 0 if only that."""
    cdef Py_ssize_t k, count = 0
    for k in range(K):
        count += a[k] > 0.0
    return count if count > 1 else 0


cdef int check(CompiledRows rows, state, const double[::1] coef) except -1:
    """Arrays of the lengths that a visit reads; λ is the last of the coefficients."""
    n, K = rows.n_samples, state.kappa.shape[1]
    fit(coef.shape[0] == K * rows.n_columns + 1 and state.codes.size == n
        and state.fixed.size in (0, n * K), "samples")
    for tables, part in ((1, state.kappa), (3, state.now), (2, state.curved), (1, state.second),
                         (3, state.step)):
        fit(part is None or part.size == tables * n * K, "tables")
    return 0


def open_classes(CompiledRows rows, const int[::1] codes, const double[:, ::1] kappa, fixed,
                 const double[::1] coef, double mu):
    """Slacks of at least μ, and equal products of a sample: r = τ + s + κ λ, a in proportion to
    1/r.
    """
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel, K = kappa.shape[1]
    cdef double lam = coef[K * rows.n_columns], least, total
    cdef double[:, :, ::1] now = np.zeros((3, n, K))
    cdef double* r
    state = ClassState(np.asarray(codes), np.where(np.isinf(kappa), 0.0, kappa), fixed,
                       np.asarray(now))
    check(rows, state, coef)
    rows = rows.borrow()
    for block in range((n + b - 1) // b):
        lo, hi = block * b, min(block * b + b, n)
        rows.scores(lo, hi, &coef[0], K, &now[0, lo, 0])
        for i in range(lo, hi):
            r, least, total = &now[1, i, 0], INFINITY, 0.0
            for k in range(K):
                r[k] = FAR
                if kappa[i, k] != INFINITY:
                    r[k] = min(now[0, i, k] + kappa[i, k] * lam, FAR)
                least = min(least, r[k])
            for k in range(K):
                r[k] += mu - least
                total += 1.0 / r[k]
            for k in range(K):
                now[2, i, k] = 1.0 / r[k] / total if kappa[i, k] != INFINITY else 0.0
    rows.free()
    return state


cdef void moved(Py_ssize_t K, const double* r, const double* a, const double* dr, const double* da,
                double primal, double dual, double* new_r, double* new_a) noexcept nogil:
    """Slacks and multipliers after a step; those that it passes keep a share."""
    cdef double missing = 0.0, total = 0.0
    cdef Py_ssize_t k
    for k in range(K):
        new_r[k], new_a[k] = r[k] * (1.0 + primal * dr[k]), a[k] * (1.0 + dual * da[k])
        if new_r[k] <= 0.0:
            missing = max(missing, KEPT * r[k] - new_r[k])
        if new_a[k] <= 0.0:
            new_a[k] = KEPT * a[k]
        total += new_a[k]
    for k in range(K):
        new_r[k] += missing                 # τ
        new_a[k] /= total


def linearise_classes(CompiledRows rows, state, const double[::1] coef, double primal, double dual):
    """Go by these lengths along the state's direction, to ``coef``: the state, with (p, D), and the
    conditions there.
    """
    check(rows, state, coef)
    cdef const int[::1] codes = state.codes
    cdef const double[:, ::1] kappa = state.kappa, fixed = state.fixed
    cdef double[:, :, ::1] was = state.now
    cdef Py_ssize_t block, i, j, k, c, lo, hi, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = kappa.shape[1], m = rows.n_columns
    cdef Py_ssize_t P = K * m + 1, wide = rows.stride, count
    cdef bint goes = state.step is not None and (primal != 0.0 or dual != 0.0)
    cdef bint linear = fixed.shape[0] > 0, some
    cdef double[:, :, ::1] now = np.empty((3, n, K)) if goes else was, d
    cdef double[:, :, ::1] curved = np.empty((2, n, K))
    cdef double[:, ::1] columns = np.empty((3 * K, b)), adjoints = np.zeros((3 * K, wide))
    sums = np.zeros(5 * P + SCALARS)
    cdef double[::1] view = sums
    cdef double* adj = &view[2 * P]         # diagonal and λ's column are not asked for
    cdef double* tot = adj + 3 * P
    cdef double* p
    cdef double* D
    cdef const double* kap
    cdef double* s
    cdef double* r
    cdef double* a
    cdef double w, lse, total, total_a, inverse, over, product, lam = coef[K * m], value
    cdef double side[3]
    side[0] = side[1] = side[2] = 0.0
    if goes:
        d = state.step
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi, some = block * b, min(block * b + b, n), False
            for i in range(lo, hi):
                c, w, kap, j = codes[i], rows.w[i], &kappa[i, 0], i - lo
                p, D = &curved[0, i, 0], &curved[1, i, 0]
                s, r, a = &now[0, i, 0], &now[1, i, 0], &now[2, i, 0]
                if goes:
                    for k in range(K):
                        s[k] = was[0, i, k] + primal * d[0, i, k]
                    moved(K, &was[1, i, 0], &was[2, i, 0], &d[1, i, 0], &d[2, i, 0], primal, dual,
                          r, a)
                lse, value, count = loss(s, K, fixed, i, p), 0.0, others(a, K)
                tot[0] += w * (lse - s[c])
                total, total_a, inverse, over, product = 0.0, 0.0, 0.0, -INFINITY, 0.0
                for k in range(K):
                    value += p[k] * s[k]
                    D[k] = a[k] / r[k]
                    total += D[k]
                    total_a += a[k]
                    inverse += 1.0 / r[k]
                    product += a[k] * r[k]
                    if a[k] > 0.0:
                        over = max(over, -s[k] - kap[k] * lam)
                tot[1] += w * (lse + over)
                tot[5] += w * (lse - value)
                if count:
                    some = True
                    tot[2] += w * product
                    tot[3] += w * count
                for k in range(K):
                    columns[k, j] = w * (p[k] - a[k])
                    # minus what a gains, products to zero
                    columns[K + k, j] = w * (a[k] - D[k] * total_a / total)
                    # ... per unit of centring
                    columns[2 * K + k, j] = w * (D[k] * inverse / total - 1.0 / r[k])
                    side[0] -= kap[k] * w * a[k]
                    side[1] += kap[k] * columns[K + k, j]
                    side[2] += kap[k] * columns[2 * K + k, j]
                if linear:
                    for k in range(K):
                        p[k] = 0.0
            rows.adjoint(lo, hi, &columns[0, 0], 3 * K if some else K, &adjoints[0, 0])
        for k in range(K):
            for j in range(m):
                for i in range(3):
                    adj[i * P + k * m + j] = adjoints[i * K + k, j]
        for j in range(3):
            adj[j * P + P - 1] = side[j]
    rows.free()
    return ClassState(state.codes, state.kappa, state.fixed, np.asarray(now),
                      np.asarray(curved)), sums


def curvature_product(CompiledRows rows, const double[:, :, ::1] curved, const double[:, ::1] kappa,
                      const double[::1] coef):
    """The samples' matrix times (B, λ), sample by sample: where a kink holds, ds + κ dλ is small
    before it is multiplied.
    """
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel, K = curved.shape[2]
    cdef Py_ssize_t m = rows.n_columns
    cdef double[:, ::1] columns = np.empty((K, b)), ds = np.empty((b, K))
    cdef double[:, ::1] adjoint = np.zeros((K, rows.stride))
    fit(curved.shape[0] == 2 and curved.shape[1] == n and kappa.shape[0] == n
        and kappa.shape[1] == K, "curvatures and kappa")
    fit(coef.shape[0] == K * m + 1, "coefficients")
    found = np.empty(K * m + 1)
    cdef double[::1] out = found
    cdef const double* p
    cdef const double* D
    cdef const double* kap
    cdef double* v
    cdef double w, mean, centre, total, lam = coef[K * m], side = 0.0, pull
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.scores(lo, hi, &coef[0], K, &ds[0, 0])
            for i in range(lo, hi):
                w, p, D = rows.w[i], &curved[0, i, 0], &curved[1, i, 0]
                v, kap = &ds[i - lo, 0], &kappa[i, 0]
                mean, centre, total = 0.0, 0.0, 0.0
                for k in range(K):
                    mean += p[k] * v[k]
                    total += D[k]
                    centre += D[k] * (v[k] + kap[k] * lam)
                centre /= total
                for k in range(K):
                    pull = w * D[k] * (v[k] + kap[k] * lam - centre)
                    columns[k, i - lo] = w * p[k] * (v[k] - mean) + pull
                    side += kap[k] * pull
            rows.adjoint(lo, hi, &columns[0, 0], K, &adjoint[0, 0])
        for k in range(K):
            for i in range(m):
                out[k * m + i] = adjoint[k, i]
        out[K * m] = side
    rows.free()
    return found


def curvature_gram(CompiledRows rows, const double[:, :, ::1] curved):
    """The matrix of that product, but for λ: a weighted Gram matrix for every pair of classes (k, j
    < k).
    """
    cdef Py_ssize_t block, i, j, k, c, q, lo, hi, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = curved.shape[2], m = rows.n_columns
    cdef Py_ssize_t Q = K * (K - 1) // 2
    fit(curved.shape[0] == 2 and curved.shape[1] == n, "curvatures")
    cdef double[:, ::1] weights = np.empty((Q, b))
    found = np.zeros((Q, rows.stride, rows.stride))
    cdef double[:, :, ::1] grams = found
    cdef const double* p
    cdef const double* D
    cdef double w, total
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            for i in range(lo, hi):
                w, p, D, q, total = rows.w[i], &curved[0, i, 0], &curved[1, i, 0], 0, 0.0
                for k in range(K):
                    total += D[k]
                if total == 0.0:
                    total = 1.0
                for k in range(K):
                    for c in range(k):
                        weights[q, i - lo] = w * (p[k] * p[c] + D[k] * D[c] / total)
                        q += 1
            for q in range(Q):
                rows.gram(lo, hi, &weights[q, 0], &grams[q, 0, 0])
        for q in range(Q):
            for i in range(m):
                for j in range(i):
                    grams[q, j, i] = grams[q, i, j]
    rows.free()
    return found[:, :m, :m]


cdef void respond(const double* kappa, Py_ssize_t K, const double* r, const double* a,
                  const double* ds, double dlam, const double* aim, double* dr,
                  double* da) noexcept nogil:
    """What slacks and multipliers do, in proportion, if each product changes by ``aim`` times
    itself.
    """
    cdef double push = -1.0, stiff = 0.0, dtau
    cdef Py_ssize_t k
    for k in range(K):
        push += a[k] * (1.0 + aim[k]) - a[k] / r[k] * (ds[k] + kappa[k] * dlam)
        stiff += a[k] / r[k]
    dtau = push / stiff
    for k in range(K):
        dr[k] = (dtau + ds[k] + kappa[k] * dlam) / r[k]
        da[k] = aim[k] - dr[k]


cdef void book(double w, Py_ssize_t K, const double* r, const double* a, const double* dr,
               const double* da, double* costs) noexcept nogil:
    """Book a sample that does not allow the whole step."""
    cdef double own = 0.0, total = 0.0, worst = -1.0, worst_dual = -1.0, slack = 0.0, passed = 0.0
    cdef Py_ssize_t k
    for k in range(K):
        if a[k] == 0.0:
            continue
        own += a[k] * r[k]
        total += r[k]
        worst, slack = min(worst, dr[k]), max(slack, -r[k] * dr[k])
        worst_dual, passed = min(worst_dual, da[k]), max(passed, -a[k] * da[k])
    if worst < -1.0:
        limit(costs, -worst, w * (own + PASSING * slack))
    if worst_dual < -1.0:
        limit(costs + LEVELS, -worst_dual, w * (own + PASSING * passed * total))


def follow_classes(CompiledRows rows, state, const double[::1] dcoef, double centre, double share,
                   bint predictor):
    """Everything that goes with a direction, in proportion but for the scores: all products to
    zero, or towards ``centre`` with a share of the predictor's second-order terms.

    Sums of a predictor: the pull of the second-order terms (P), changes of the products with
    primal, dual and both steps, 2·LEVELS costs of step lengths; else: slope and curvature of the
    loss, 2·LEVELS costs.
    """
    check(rows, state, dcoef)
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel, m = rows.n_columns
    cdef Py_ssize_t K = state.kappa.shape[1]
    cdef Py_ssize_t P = K * m + 1
    cdef const int[::1] codes = state.codes
    cdef const double[:, ::1] kappa = state.kappa
    cdef const double[:, ::1] before = np.zeros((n, K)) if state.second is None else state.second
    cdef bint linear = state.fixed.shape[0] > 0
    cdef const double[:, ::1] slopes = state.fixed if linear else state.curved[0]
    cdef double[:, :, ::1] now = state.now, step = np.zeros((3, n, K))
    cdef double[:, ::1] second = np.zeros((n if predictor else 0, K)), columns = np.zeros((K, b))
    cdef double[:, ::1] adjoint = np.zeros((K, rows.stride))
    cdef double[::1] work = np.empty(K)
    sums = np.zeros((P + 3 if predictor else 2) + 2 * LEVELS)
    cdef double[::1] view = sums
    cdef double* tot = &view[P if predictor else 0]
    cdef double* aim = &work[0]
    cdef const double* kap
    cdef const double* r
    cdef const double* a
    cdef const double* ds
    cdef double* dr
    cdef double* da
    cdef double w, e, mean, total, square, dlam = dcoef[K * m], side = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.scores(lo, hi, &dcoef[0], K, &step[0, lo, 0])
            for i in range(lo, hi):
                w, kap, r, a = rows.w[i], &kappa[i, 0], &now[1, i, 0], &now[2, i, 0]
                ds, dr, da = &step[0, i, 0], &step[1, i, 0], &step[2, i, 0]
                if not predictor:
                    mean, square = 0.0, 0.0
                    for k in range(K):
                        mean += slopes[i, k] * ds[k]
                    for k in range(K):
                        square += slopes[i, k] * (ds[k] - mean) * (ds[k] - mean)
                    tot[0] += w * (mean - ds[codes[i]])
                    if not linear:
                        tot[1] += w * square
                if others(a, K) == 0:
                    for k in range(K):
                        columns[k, i - lo] = 0.0
                    continue
                for k in range(K):
                    aim[k] = -1.0
                    if not predictor and a[k] > 0.0:
                        aim[k] += centre / (a[k] * r[k]) - share * before[i, k]
                respond(kap, K, r, a, ds, dlam, aim, dr, da)
                book(w, K, r, a, dr, da, tot + (3 if predictor else 2))
                if not predictor:
                    continue
                total, mean = 0.0, 0.0
                for k in range(K):
                    e = dr[k] * da[k]
                    tot[0] += w * a[k] * r[k] * dr[k]
                    tot[1] += w * a[k] * r[k] * da[k]
                    tot[2] += w * a[k] * r[k] * e
                    second[i, k] = max(-SECOND, min(e, SECOND))
                    total += a[k] / r[k]
                    mean += a[k] * second[i, k]
                for k in range(K):
                    columns[k, i - lo] = w * a[k] * (second[i, k] - mean / (total * r[k]))
                    side += kap[k] * columns[k, i - lo]
            if predictor:
                rows.adjoint(lo, hi, &columns[0, 0], K, &adjoint[0, 0])
        if predictor:
            for k in range(K):
                for i in range(m):
                    view[k * m + i] = adjoint[k, i]
            view[P - 1] = side
    rows.free()
    if predictor:
        return state._replace(second=np.asarray(second), step=None), sums
    return state._replace(second=None, step=np.asarray(step)), sums


cdef void settled(double* p, Py_ssize_t K) noexcept nogil:
    """Onto the simplex, without what is negative."""
    cdef double total = 0.0
    cdef Py_ssize_t k
    for k in range(K):
        p[k] = p[k] if p[k] > 0.0 else 0.0
        total += p[k]
    for k in range(K):
        p[k] /= total


def certify_classes(CompiledRows rows, both, const double[::1] dcoef):
    """The dual point (p, a), (2, N, K), after one more correction, its adjoint and entropy; of a
    state, or (state, last point).
    """
    state, point = (both, None) if isinstance(both, ClassState) else both
    check(rows, state, dcoef)
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = state.kappa.shape[1], m = rows.n_columns
    cdef Py_ssize_t P = K * m + 1, wide = rows.stride
    cdef const double[:, ::1] kappa = state.kappa
    cdef double[:, :, ::1] now = state.now
    cdef bint first = point is None
    cdef double[:, :, ::1] after = np.empty((2, n, K))
    cdef const double[:, :, ::1] before = after if first else point
    fit(before.shape[0] == 2 and before.shape[1] == n and before.shape[2] == K, "dual point")
    cdef double[:, ::1] columns = np.empty((K, b)), adjoint = np.zeros((K, wide))
    cdef double[:, ::1] ds = np.empty((b, K))
    cdef double[::1] work = np.empty(K)
    sums = np.zeros(P + 2)
    cdef double[::1] view = sums
    cdef double* p
    cdef double* new
    cdef double* shares
    cdef const double* kap
    cdef double w, mean, total, stiff, least, change
    cdef double dlam = dcoef[K * m], spent = 0.0, entropy = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.scores(lo, hi, &dcoef[0], K, &ds[0, 0])
            p = &work[0]
            for i in range(lo, hi):
                w, kap, new, shares = rows.w[i], &kappa[i, 0], &after[0, i, 0], &after[1, i, 0]
                softmax(&now[0, i, 0], K, p)
                mean = 0.0
                for k in range(K):
                    mean += p[k] * ds[i - lo, k]
                for k in range(K):
                    new[k] = p[k] if first else before[0, i, k]
                    least = EMPTIED * new[k]
                    new[k] += p[k] * (ds[i - lo, k] - mean)
                    if not new[k] > least:
                        new[k] = 0.0
                settled(new, K)
                for k in range(K):
                    shares[k] = now[2, i, k] if first else before[1, i, k]
                total, stiff = 0.0, 0.0
                for k in range(K):
                    stiff += now[2, i, k] / now[1, i, k]
                    total += now[2, i, k] / now[1, i, k] * (ds[i - lo, k] + kap[k] * dlam)
                for k in range(K):
                    change = ds[i - lo, k] + kap[k] * dlam - total / stiff
                    shares[k] -= now[2, i, k] / now[1, i, k] * change
                settled(shares, K)
                for k in range(K):
                    entropy += w * plogp(new[k])
                    spent += w * kap[k] * shares[k]
                    columns[k, i - lo] = w * (new[k] - shares[k])
            rows.adjoint(lo, hi, &columns[0, 0], K, &adjoint[0, 0])
        for k in range(K):
            for i in range(m):
                view[k * m + i] = adjoint[k, i]
        view[P - 1], view[P], view[P + 1] = -spent, entropy, rows.length + K
    rows.free()
    return np.asarray(after), sums
