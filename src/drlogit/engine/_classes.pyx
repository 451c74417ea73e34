"""The samples of several classes: visits in compiled loops.

A sample with scores s (one for each of K classes) and label y has the loss, with its worst label,

    lse(s) - s_y + (τ + s_y),      r_k = τ + s_k + κ_k λ ≥ 0  with multipliers a_k, Σ a = 1

The sample's curvature in its scores is a Laplacian with weights d_jk ≥ 0 for pairs of classes,

    w (diag p - p pᵀ) + w (diag D - D Dᵀ / ΣD),  D = a / r:       d_jk = w (p_j p_k + D_j D_k / ΣD)

so the matrix takes a weighted Gram matrix of the rows for every pair, and a product with it two
passes over the rows.  Labels that a sample cannot get (κ infinite) have a = 0 and the slack FAR;
where there is no other label, slacks and multipliers never change.

    K, m, P    classes, columns with the intercept, K m + 1 coefficients with λ
    s, r, a    scores, slacks, multipliers          p      softmax(s), or that of a linear loss
    D          a / r, (18)                          w, kap weight and label costs of a sample
    ds, dlam   changes of scores and of λ           dr, da changes over r and a, in proportion

Visits take the rows of a block and a state and return a new state and an array of sums (``_sums``)
in which the matrix is left out (2 P zeros).

Derivation: docs/algorithm.md, (17) and (18).
"""
from collections import namedtuple

import numpy as np
from libc.math cimport INFINITY, exp, log
from scipy.linalg.cython_blas cimport sgemm
from drlogit.rows._products cimport CompiledRows
from drlogit.rows._shapes cimport fit
from . cimport _sums
from ._sums cimport Linearised, linearised
from ._sums cimport book as book_cost
from .settings import SETTINGS

cdef double FAR = 1e300             # the slack of a label that a sample cannot get
cdef double KEPT = SETTINGS.kept, SECOND = SETTINGS.second_order, EMPTIED = SETTINGS.emptied
cdef double PASSING = SETTINGS.blocking

# Rows of a panel in single precision (256 to 16384 take the same time).
cdef Py_ssize_t SINGLE_PANEL = 1024

cdef enum:
    SCORES, SLACKS, SHARES, TABLES      # of a state's ``now`` and ``step``
    GRADIENT = 0, AFFINE, CENTRING, ADJOINTS

#: A block at an iterate.  ``codes``: labels; ``kappa``: what each label costs; ``fixed``: p of a
#: linear loss p·s in place of lse(s), or none; ``now``: scores, slacks and multipliers; ``curved``:
#: (p, D); ``second``: second-order terms of the predictor; ``step``: the direction.
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
    """Slacks r = τ + s + κ λ of at least μ, and multipliers that make a sample's products equal."""
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel, K = kappa.shape[1]
    cdef double lam = coef[K * rows.n_columns], least, total
    cdef double[:, :, ::1] now = np.zeros((TABLES, n, K))
    cdef double* r
    state = ClassState(np.asarray(codes), np.where(np.isinf(kappa), 0.0, kappa), fixed,
                       np.asarray(now))
    check(rows, state, coef)
    rows = rows.borrow()
    for block in range((n + b - 1) // b):
        lo, hi = block * b, min(block * b + b, n)
        rows.scores(lo, hi, &coef[0], K, &now[SCORES, lo, 0])
        for i in range(lo, hi):
            r, least, total = &now[SLACKS, i, 0], INFINITY, 0.0
            for k in range(K):
                r[k] = FAR
                if kappa[i, k] != INFINITY:
                    r[k] = min(now[SCORES, i, k] + kappa[i, k] * lam, FAR)
                least = min(least, r[k])
            for k in range(K):
                r[k] += mu - least
                total += 1.0 / r[k]
            for k in range(K):
                now[SHARES, i, k] = 1.0 / r[k] / total if kappa[i, k] != INFINITY else 0.0
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


cdef Py_ssize_t conditions(Py_ssize_t K, double w, int label, const double* kap, double lam,
                           const double* s, const double* r, const double* a, const double* p,
                           double lse, double* D, double* col, Py_ssize_t b, double* scalars,
                           double* side) noexcept nogil:
    """A sample's columns of the three adjoints, its scalars, and λ's entries of the adjoints.

    Columns are K for each adjoint, ``b`` apart.  Returns how many labels the sample can get.
    """
    cdef double total = 0.0, total_a = 0.0, inverse = 0.0, over = -INFINITY, product = 0.0
    cdef double value = 0.0
    cdef Py_ssize_t k, count = others(a, K)
    for k in range(K):
        value += p[k] * s[k]
        D[k] = a[k] / r[k]
        total += D[k]
        total_a += a[k]
        inverse += 1.0 / r[k]
        product += a[k] * r[k]
        if a[k] > 0.0:
            over = max(over, -s[k] - kap[k] * lam)
    scalars[_sums.LOSS] += w * (lse - s[label])
    scalars[_sums.VALUE] += w * (lse + over)
    scalars[_sums.ENTROPY] += w * (lse - value)
    if count:
        scalars[_sums.PRODUCTS] += w * product
        scalars[_sums.DEGREE] += w * count
    for k in range(K):
        col[(GRADIENT * K + k) * b] = w * (p[k] - a[k])
        # minus the change of a when all products go to zero, and for each unit of centring
        col[(AFFINE * K + k) * b] = w * (a[k] - D[k] * total_a / total)
        col[(CENTRING * K + k) * b] = w * (D[k] * inverse / total - 1.0 / r[k])
        side[GRADIENT] -= kap[k] * w * a[k]
        side[AFFINE] += kap[k] * col[(AFFINE * K + k) * b]
        side[CENTRING] += kap[k] * col[(CENTRING * K + k) * b]
    return count


cdef void gather(Py_ssize_t K, Py_ssize_t m, const double[:, ::1] adjoints, Py_ssize_t first,
                 double lam_entry, double* out) noexcept nogil:
    """Adjoints of K classes, from row ``first`` on, as one vector with λ's entry last."""
    cdef Py_ssize_t k, j
    for k in range(K):
        for j in range(m):
            out[k * m + j] = adjoints[first + k, j]
    out[K * m] = lam_entry


def linearise_classes(CompiledRows rows, state, const double[::1] coef, double primal, double dual):
    """Move by these lengths along the state's direction, to ``coef``: the state, with (p, D), and
    its conditions.
    """
    check(rows, state, coef)
    cdef const int[::1] codes = state.codes
    cdef const double[:, ::1] kappa = state.kappa, fixed = state.fixed
    cdef double[:, :, ::1] was = state.now, now = was, d, curved
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = kappa.shape[1], m = rows.n_columns, P = K * m + 1, labels
    cdef bint moves = state.step is not None and (primal != 0.0 or dual != 0.0)
    cdef bint linear = fixed.shape[0] > 0
    cdef double[:, ::1] columns = np.empty((ADJOINTS * K, b))
    cdef double[:, ::1] adjoints = np.zeros((ADJOINTS * K, rows.stride))
    sums = np.zeros(3 * P + _sums.SCALARS)
    cdef double[::1] view = sums
    cdef Linearised out = linearised(&view[0], P, 0)
    cdef double lse
    cdef double side[ADJOINTS]
    side[GRADIENT] = side[AFFINE] = side[CENTRING] = 0.0
    curved = np.empty((2, n, K))
    if moves:
        now, d = np.empty((TABLES, n, K)), state.step
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi, labels = block * b, min(block * b + b, n), 0
            for i in range(lo, hi):
                if moves:
                    for k in range(K):
                        now[SCORES, i, k] = was[SCORES, i, k] + primal * d[SCORES, i, k]
                    moved(K, &was[SLACKS, i, 0], &was[SHARES, i, 0], &d[SLACKS, i, 0],
                          &d[SHARES, i, 0], primal, dual, &now[SLACKS, i, 0], &now[SHARES, i, 0])
                lse = loss(&now[SCORES, i, 0], K, fixed, i, &curved[0, i, 0])
                labels += conditions(K, rows.w[i], codes[i], &kappa[i, 0], coef[P - 1],
                                     &now[SCORES, i, 0], &now[SLACKS, i, 0], &now[SHARES, i, 0],
                                     &curved[0, i, 0], lse, &curved[1, i, 0], &columns[0, i - lo],
                                     b, out.scalars, side)
                if linear:
                    for k in range(K):
                        curved[0, i, k] = 0.0
            rows.adjoint(lo, hi, &columns[0, 0], ADJOINTS * K if labels else K, &adjoints[0, 0])
        for k in range(ADJOINTS):
            gather(K, m, adjoints, k * K, side[k], out.gradient + k * P)
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
    cdef double* v
    cdef double w, lam = coef[K * m], side = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.scores(lo, hi, &coef[0], K, &ds[0, 0])
            for i in range(lo, hi):
                w, v = rows.w[i], &ds[i - lo, 0]
                side += w * bend(K, &curved[0, i, 0], &curved[1, i, 0], &kappa[i, 0], lam, v)
                for k in range(K):
                    columns[k, i - lo] = w * v[k]
            rows.adjoint(lo, hi, &columns[0, 0], K, &adjoint[0, 0])
        gather(K, m, adjoint, 0, side, &out[0])
    rows.free()
    return found


def single_product(const float[:, ::1] X, bint intercept, const double[::1] weights,
                   const double[:, :, ::1] curved, const double[:, ::1] kappa,
                   const double[::1] coef):
    """That product with the rows in single precision, which takes little more than half the time.
    """
    cdef Py_ssize_t block, i, k, lo, hi, n = X.shape[0], K = curved.shape[2], b = SINGLE_PANEL
    cdef int m = <int>X.shape[1], labels = <int>K, rows
    cdef float unit = 1.0, nothing = 0.0
    fit(curved.shape[0] == 2 and curved.shape[1] == n and weights.shape[0] == n
        and kappa.shape[0] == n and kappa.shape[1] == K, "curvatures, weights and kappa")
    fit(coef.shape[0] == K * (m + intercept) + 1, "coefficients")
    # Steps are short in the end: with a largest entry of one, nothing underflows.
    size = max(np.abs(coef).max(), 1e-300)
    unscaled = np.asarray(coef) / size
    matrix = unscaled[:K * (m + intercept)].reshape(K, m + intercept)
    cdef float[:, ::1] B = np.ascontiguousarray(matrix[:, :m], np.float32)
    cdef double[::1] start = np.ascontiguousarray(matrix[:, m] if intercept else np.zeros(K))
    cdef float[:, ::1] ds = np.empty((b, K), np.float32), adjoint = np.zeros((K, m), np.float32)
    cdef double[::1] v = np.empty(K), total = np.zeros(K)
    cdef double lam = unscaled[K * (m + intercept)], side = 0.0
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows = <int>(hi - lo)
            sgemm("T", "N", &labels, &rows, &m, &unit, <float*>&B[0, 0], &m, <float*>&X[lo, 0], &m,
                  &nothing, &ds[0, 0], &labels)
            for i in range(lo, hi):
                for k in range(K):
                    v[k] = ds[i - lo, k] + start[k]
                side += weights[i] * bend(K, &curved[0, i, 0], &curved[1, i, 0], &kappa[i, 0], lam,
                                          &v[0])
                for k in range(K):
                    v[k] *= weights[i]
                    total[k] += v[k]
                    ds[i - lo, k] = <float>v[k]
            sgemm("N", "T", &m, &labels, &rows, &unit, <float*>&X[lo, 0], &m, &ds[0, 0], &labels,
                  &unit, &adjoint[0, 0], &m)
    found = np.column_stack([adjoint, total]) if intercept else np.asarray(adjoint, np.float64)
    return size * np.append(found, side)


cdef inline double bend(Py_ssize_t K, const double* p, const double* D, const double* kappa,
                        double lam, double* v) noexcept nogil:
    """A sample's Laplacian (18) times a change of scores, in place; λ's entry of the product."""
    cdef Py_ssize_t k
    cdef double mean = 0.0, centre = 0.0, total = 0.0, side = 0.0, pull
    for k in range(K):
        mean += p[k] * v[k]
        total += D[k]
        centre += D[k] * (v[k] + kappa[k] * lam)
    centre /= total
    for k in range(K):
        pull = D[k] * (v[k] + kappa[k] * lam - centre)
        v[k] = p[k] * (v[k] - mean) + pull
        side += kappa[k] * pull
    return side


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
                  const double* ds, double dlam, const double* target, double* dr,
                  double* da) noexcept nogil:
    """Changes of slacks and multipliers, in proportion, when each product changes by ``target`` of
    itself.
    """
    cdef double push = -1.0, stiffness = 0.0, dtau
    cdef Py_ssize_t k
    for k in range(K):
        push += a[k] * (1.0 + target[k]) - a[k] / r[k] * (ds[k] + kappa[k] * dlam)
        stiffness += a[k] / r[k]
    dtau = push / stiffness
    for k in range(K):
        dr[k] = (dtau + ds[k] + kappa[k] * dlam) / r[k]
        da[k] = target[k] - dr[k]


cdef void book(double w, Py_ssize_t K, const double* r, const double* a, const double* dr,
               const double* da, double* costs) noexcept nogil:
    """Book the cost (10) of a sample that does not allow the whole step."""
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
        book_cost(costs, -worst, w * (own + PASSING * slack))
    if worst_dual < -1.0:
        book_cost(costs + _sums.LEVELS, -worst_dual, w * (own + PASSING * passed * total))


cdef double second_order(double w, Py_ssize_t K, const double* kap, const double* r,
                         const double* a, const double* dr, const double* da, double* second,
                         double* col, Py_ssize_t b, double* changes) noexcept nogil:
    """Of a predictor: what becomes of the products, second-order terms and their column, ``b``
    apart.  Returns λ's entry.
    """
    cdef double e, total = 0.0, mean = 0.0, side = 0.0
    cdef Py_ssize_t k
    for k in range(K):
        e = dr[k] * da[k]
        changes[_sums.PRIMAL_CHANGE] += w * a[k] * r[k] * dr[k]
        changes[_sums.DUAL_CHANGE] += w * a[k] * r[k] * da[k]
        changes[_sums.BOTH_CHANGE] += w * a[k] * r[k] * e
        second[k] = max(-SECOND, min(e, SECOND))
        total += a[k] / r[k]
        mean += a[k] * second[k]
    for k in range(K):
        col[k * b] = w * a[k] * (second[k] - mean / (total * r[k]))
        side += kap[k] * col[k * b]
    return side


def predict_classes(CompiledRows rows, state, const double[::1] dcoef):
    """Follow the predictor, all products to zero: second-order terms, products and step lengths."""
    check(rows, state, dcoef)
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = state.kappa.shape[1], m = rows.n_columns, P = K * m + 1
    cdef const double[:, ::1] kappa = state.kappa
    cdef double[:, :, ::1] now = state.now
    cdef double[:, ::1] second = np.zeros((n, K)), columns = np.zeros((K, b))
    cdef double[:, ::1] adjoint = np.zeros((K, rows.stride)), ds = np.empty((b, K))
    cdef double[:, ::1] work = np.empty((3, K))
    sums = np.zeros(P + _sums.CHANGES + 2 * _sums.LEVELS)
    cdef double[::1] view = sums
    cdef double* dr = &work[1, 0]
    cdef double* da = &work[2, 0]
    cdef const double* r
    cdef const double* a
    cdef double side = 0.0
    work[0, :] = -1.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.scores(lo, hi, &dcoef[0], K, &ds[0, 0])
            for i in range(lo, hi):
                r, a = &now[SLACKS, i, 0], &now[SHARES, i, 0]
                if others(a, K) == 0:
                    for k in range(K):
                        columns[k, i - lo] = 0.0
                    continue
                respond(&kappa[i, 0], K, r, a, &ds[i - lo, 0], dcoef[P - 1], &work[0, 0], dr, da)
                book(rows.w[i], K, r, a, dr, da, &view[P + _sums.CHANGES])
                side += second_order(rows.w[i], K, &kappa[i, 0], r, a, dr, da, &second[i, 0],
                                     &columns[0, i - lo], b, &view[P])
            rows.adjoint(lo, hi, &columns[0, 0], K, &adjoint[0, 0])
        gather(K, m, adjoint, 0, side, &view[0])
    rows.free()
    return state._replace(second=np.asarray(second), step=None), sums


def correct_classes(CompiledRows rows, state, const double[::1] dcoef, double centre, double share):
    """Follow the corrector, products to ``centre`` less a share of the second-order terms.

    The direction has changes of scores, and those of slacks and multipliers in proportion.
    """
    check(rows, state, dcoef)
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = state.kappa.shape[1], P = K * rows.n_columns + 1
    cdef const int[::1] codes = state.codes
    cdef const double[:, ::1] kappa = state.kappa
    cdef const double[:, ::1] second = np.zeros((n, K)) if state.second is None else state.second
    cdef bint linear = state.fixed.shape[0] > 0
    cdef const double[:, ::1] slopes = state.fixed if linear else state.curved[0]
    cdef double[:, :, ::1] now = state.now, step = np.zeros((TABLES, n, K))
    cdef double[::1] target = np.empty(K)
    sums = np.zeros(_sums.PARABOLA + 2 * _sums.LEVELS)
    cdef double[::1] view = sums
    cdef const double* r
    cdef const double* a
    cdef const double* ds
    cdef double w, mean, square
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.scores(lo, hi, &dcoef[0], K, &step[SCORES, lo, 0])
            for i in range(lo, hi):
                w, ds, r, a = rows.w[i], &step[SCORES, i, 0], &now[SLACKS, i, 0], &now[SHARES, i, 0]
                mean, square = 0.0, 0.0
                for k in range(K):
                    mean += slopes[i, k] * ds[k]
                for k in range(K):
                    square += slopes[i, k] * (ds[k] - mean) * (ds[k] - mean)
                view[_sums.SLOPE] += w * (mean - ds[codes[i]])
                if not linear:
                    view[_sums.CURVATURE] += w * square
                if others(a, K) == 0:
                    continue
                for k in range(K):
                    target[k] = -1.0
                    if a[k] > 0.0:
                        target[k] += centre / (a[k] * r[k]) - share * second[i, k]
                respond(&kappa[i, 0], K, r, a, ds, dcoef[P - 1], &target[0], &step[SLACKS, i, 0],
                        &step[SHARES, i, 0])
                book(w, K, r, a, &step[SLACKS, i, 0], &step[SHARES, i, 0], &view[_sums.PARABOLA])
    rows.free()
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


cdef void corrected(Py_ssize_t K, const double* kap, const double* ds, double dlam,
                    const double* p_now, const double* r, const double* a, double* p,
                    double* shares) noexcept nogil:
    """(12) for a sample: p and a after a change of scores and λ, on their simplices again."""
    cdef double mean = 0.0, total = 0.0, stiffness = 0.0, least
    cdef Py_ssize_t k
    for k in range(K):
        mean += p_now[k] * ds[k]
        stiffness += a[k] / r[k]
        total += a[k] / r[k] * (ds[k] + kap[k] * dlam)
    for k in range(K):
        least = EMPTIED * p[k]
        p[k] += p_now[k] * (ds[k] - mean)
        if not p[k] > least:
            p[k] = 0.0
        shares[k] -= a[k] / r[k] * (ds[k] + kap[k] * dlam - total / stiffness)
    settled(p, K)
    settled(shares, K)


def certify_classes(CompiledRows rows, both, const double[::1] dcoef):
    """The dual point (p, a), (2, N, K), after one more correction (12), and its sums.

    ``both`` is a state, or a state and the last dual point.
    """
    state, point = (both, None) if isinstance(both, ClassState) else both
    check(rows, state, dcoef)
    cdef Py_ssize_t block, i, k, lo, hi, n = rows.n_samples, b = rows.panel
    cdef Py_ssize_t K = state.kappa.shape[1], m = rows.n_columns, P = K * m + 1
    cdef const double[:, ::1] kappa = state.kappa
    cdef double[:, :, ::1] now = state.now, after = np.empty((2, n, K))
    cdef bint first = point is None
    cdef const double[:, :, ::1] before = after if first else point
    fit(before.shape[0] == 2 and before.shape[1] == n and before.shape[2] == K, "dual point")
    cdef double[:, ::1] columns = np.empty((K, b)), adjoint = np.zeros((K, rows.stride))
    cdef double[:, ::1] ds = np.empty((b, K))
    cdef double[::1] p_now = np.empty(K)
    sums = np.zeros(P + _sums.PROOF)
    cdef double[::1] view = sums
    cdef double w, spent = 0.0, entropy = 0.0
    rows = rows.borrow()
    with nogil:
        for block in range((n + b - 1) // b):
            lo, hi = block * b, min(block * b + b, n)
            rows.scores(lo, hi, &dcoef[0], K, &ds[0, 0])
            for i in range(lo, hi):
                w = rows.w[i]
                softmax(&now[SCORES, i, 0], K, &p_now[0])
                for k in range(K):
                    after[0, i, k] = p_now[k] if first else before[0, i, k]
                    after[1, i, k] = now[SHARES, i, k] if first else before[1, i, k]
                corrected(K, &kappa[i, 0], &ds[i - lo, 0], dcoef[P - 1], &p_now[0],
                          &now[SLACKS, i, 0], &now[SHARES, i, 0], &after[0, i, 0], &after[1, i, 0])
                for k in range(K):
                    entropy += w * plogp(after[0, i, k])
                    spent += w * kappa[i, k] * after[1, i, k]
                    columns[k, i - lo] = w * (after[0, i, k] - after[1, i, k])
            rows.adjoint(lo, hi, &columns[0, 0], K, &adjoint[0, 0])
        gather(K, m, adjoint, 0, -spent, &view[0])
        view[P + _sums.PROOF_ENTROPY] = entropy
        view[P + _sums.PROOF_ADDITIONS] = rows.length + K
    rows.free()
    return np.asarray(after), sums
