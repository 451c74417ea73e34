"""The samples of features with domains: pieces, found by the exact oracle as the iterates ask for them.

    top_i ≥ h(v_k) - λ d_k   for the pieces k of sample i,   v_k = y_k (x_i moved)·(β, high, b)

Coordinates are (categories, high of each group, bounded, unbounded, b, λ); groups are complete and their least
coefficient is zero (MATH §8).  A piece is (sample, label, set of moved items); its row is the sample's with a few
entries changed, so that margins, adjoints and Gram matrix need the sample's own row once and the changes beside it.
The visits are those of ``_pair``; new pieces are taken in by ``linearise``, in the pass that finds them.
"""
import numpy as np
from libc.math cimport fabs
from libc.string cimport memset
from ._pair cimport LEVELS, SCALARS, Samples, entropy, limit

ctypedef unsigned long long mask_t

cdef extern from *:
    int first_bit "__builtin_ctzll"(mask_t) noexcept nogil

cdef enum:
    PANEL = 64          # samples whose sums are added up first
    MOST = 2            # pieces per sample and label that one look may add
    ITEMS = 64
    WIDTH = 132         # local columns of a sample at most
    FIELDS = 6          # of a piece: label, cost, margin, q, slope, slack
cdef double BINDS = 0.003          # share of mass over slack from which a piece takes part in the proof
DEF Y = 0
DEF COST = 1
DEF V = 2
DEF Q = 3
DEF S = 4
DEF R = 5


cdef class PieceSamples(Samples):
    cdef const int[:, ::1] cat
    cdef const double[:, ::1] xb, xu
    cdef const double[::1] y, w, lower, upper, cg, cb
    cdef Py_ssize_t N, G, nc, nb, nu, P, L
    cdef double kappa, dlam, lift, last_loss
    cdef double[:, ::1] now, after, step        # pieces; step: dmargin, dq, dslack, second
    cdef mask_t[::1] sets, sets_after
    cdef Py_ssize_t[::1] ptr, ptr_after
    cdef double[::1] score, top, score_after, top_after, dscore, dtop
    cdef double[::1] conditions, predicted, limits, panel
    cdef bint refused
    cdef readonly Py_ssize_t n_pieces, n_found
    cdef Py_ssize_t[::1] found_own              # pieces that were missing after a trial step
    cdef double[:, ::1] found
    cdef mask_t[::1] found_set
    cdef int[::1] row_index
    cdef double[::1] row_value
    cdef int[::1] place                         # of a column among a sample's local ones, or -1
    cdef readonly int nulls

    def __init__(self, cat, xb, xu, y, w, lower, upper, cg, cb, nc, kappa):
        self.cat, self.xb, self.xu, self.y, self.w = cat, xb, xu, y, w
        self.lower, self.upper, self.cg, self.cb, self.nc, self.kappa = lower, upper, cg, cb, nc, kappa
        self.N, self.G = cat.shape[0], cat.shape[1]
        self.nb, self.nu = xb.shape[1], xu.shape[1]
        self.P, self.L = nc + self.G + self.nb + self.nu + 2, self.G + self.nb + self.nu + 1
        P, N = self.P, self.N
        self.score, self.top, self.score_after, self.top_after, self.dscore, self.dtop = np.zeros((6, N))
        self.ptr, self.ptr_after = np.zeros((2, N + 1), np.intp)
        self.conditions = np.zeros(P * P + 3 * P + SCALARS)
        self.predicted, self.limits = np.zeros(P + 3 + 2 * LEVELS), np.zeros(2 + 2 * LEVELS)
        self.panel = np.zeros(P + 2)
        self.row_index, self.row_value = np.zeros(self.L, np.int32), np.zeros(self.L)
        self.place = np.full(P, -1, np.int32)
        self.found_own, self.found = np.zeros(2 * MOST * N, np.intp), np.zeros((2, 2 * MOST * N))
        self.found_set = np.zeros(2 * MOST * N, np.uint64)
        self.allowance, self.lift = 3.0, 5.0
        self.now, self.after, self.step = np.zeros((FIELDS, 0)), np.zeros((FIELDS, 0)), np.zeros((4, 0))
        self.sets, self.sets_after = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self._grow(2 * N)

    def _grow(self, least):
        """Room for ``least`` pieces and what one look may add."""
        cdef Py_ssize_t room = least + 2 * MOST * self.N, n = self.n_pieces
        if self.now.shape[1] >= room: return
        room += room // 2
        old_now, old_sets, old_step = np.asarray(self.now), np.asarray(self.sets), np.asarray(self.step)
        self.now, self.after, self.step = np.zeros((FIELDS, room)), np.zeros((FIELDS, room)), np.zeros((4, room))
        self.sets, self.sets_after = np.zeros(room, np.uint64), np.zeros(room, np.uint64)
        if n:
            np.asarray(self.now)[:, :n], np.asarray(self.sets)[:n] = old_now[:, :n], old_sets[:n]
            np.asarray(self.step)[:, :n] = old_step[:, :n]

    # --- rows and moves -------------------------------------------------------------------------

    cdef void row(self, Py_ssize_t i) noexcept nogil:
        """The sample's own row, columns ascending."""
        cdef Py_ssize_t j, k = 0
        for j in range(self.G):
            self.row_index[k], self.row_value[k] = self.cat[i, j], 1.0
            k += 1
        for j in range(self.nb):
            self.row_index[k], self.row_value[k] = self.nc + self.G + j, self.xb[i, j]
            k += 1
        for j in range(self.nu):
            self.row_index[k], self.row_value[k] = self.nc + self.G + self.nb + j, self.xu[i, j]
            k += 1
        self.row_index[k], self.row_value[k] = self.P - 2, 1.0

    cdef double along(self, const double* x) noexcept nogil:
        """The row's product with x."""
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.L): total += self.row_value[k] * x[self.row_index[k]]
        return total

    cdef double shift(self, Py_ssize_t i, mask_t moved, double label, const double* x) noexcept nogil:
        """What the moves change of it."""
        cdef double total = 0.0
        cdef int b
        cdef Py_ssize_t j
        while moved:
            b = first_bit(moved)
            moved &= moved - 1
            if b < self.G:
                total -= x[self.cat[i, b]]
                if label < 0.0: total += x[self.nc + b]
            else:
                j = (b - self.G) // 2
                total += x[self.nc + self.G + j] * (((self.upper[j] if (b - self.G) & 1 else self.lower[j])) - self.xb[i, j])
        return total

    cdef void spread(self, Py_ssize_t i, mask_t moved, double label, double value, double* out) noexcept nogil:
        """out += value · (changes of the row)."""
        cdef int b
        cdef Py_ssize_t j
        while moved:
            b = first_bit(moved)
            moved &= moved - 1
            if b < self.G:
                out[self.cat[i, b]] -= value
                if label < 0.0: out[self.nc + b] += value
            else:
                j = (b - self.G) // 2
                out[self.nc + self.G + j] += value * (((self.upper[j] if (b - self.G) & 1 else self.lower[j])) - self.xb[i, j])

    # --- the oracle -----------------------------------------------------------------------------

    cdef double look(self, Py_ssize_t i, double score, const double* x, double lam, double ahead, double label,
                     double above, Py_ssize_t a, Py_ssize_t b, Py_ssize_t* count, double* costs, mask_t* chosen, double* values) noexcept nogil:
        """The best value at the price λ; up to MOST sets worth more than ``above`` at ``ahead`` that are not there."""
        cdef double gain[ITEMS]
        cdef double cost[ITEMS]
        cdef double rate[ITEMS]
        cdef int item[ITEMS]
        cdef double value[ITEMS + 1]
        cdef double price[ITEMS + 1]
        cdef mask_t prefix[ITEMS + 1]
        cdef Py_ssize_t n = 0, j, k, t, pick, new
        cdef double here, g, c, s, v = label * score, d = 0.0 if label == self.y[i] else self.kappa, best, h, r
        cdef int it
        cdef bint there
        for j in range(self.G):
            here = x[self.cat[i, j]]
            g, c = (here if label > 0.0 else x[self.nc + j] - here), self.cg[j]
            if g > ahead * c:
                gain[n], cost[n], rate[n], item[n] = g, c, g / c, j
                n += 1
        for j in range(self.nb):
            here = x[self.nc + self.G + j]
            if fabs(here) > ahead * self.cb[j]:
                k = 0 if label * here > 0.0 else 1
                g = fabs(self.xb[i, j] - (self.upper[j] if k else self.lower[j]))
                if g > 1e-12:
                    gain[n], cost[n], rate[n], item[n] = fabs(here) * g, self.cb[j] * g, fabs(here) / self.cb[j], self.G + 2 * j + k
                    n += 1
        for t in range(1, n):                       # insertion sort: few items pay
            g, c, r, it = gain[t], cost[t], rate[t], item[t]
            k = t - 1
            while k >= 0 and rate[k] < r:
                gain[k + 1], cost[k + 1], rate[k + 1], item[k + 1] = gain[k], cost[k], rate[k], item[k]
                k -= 1
            gain[k + 1], cost[k + 1], rate[k + 1], item[k + 1] = g, c, r, it
        h = self.terms(v, label, &s, &r)
        best, value[0], price[0], prefix[0] = h - lam * d, h - ahead * d, d, 0
        for t in range(n):
            v -= gain[t]
            d += cost[t]
            h = self.terms(v, label, &s, &r)
            value[t + 1], price[t + 1], prefix[t + 1] = h - ahead * d, d, prefix[t] | (<mask_t>1 << item[t])
            if h - lam * d > best: best = h - lam * d
        for new in range(MOST):
            pick = 0
            for t in range(1, n + 1):
                if value[t] > value[pick]: pick = t
            if not value[pick] > above: break
            there = False
            for k in range(a, b):
                if self.sets[k] == prefix[pick] and self.now[Y, k] == label: there = True
            if not there:
                costs[count[0]], chosen[count[0]], values[count[0]] = price[pick], prefix[pick], value[pick]
                count[0] += 1
            value[pick] = -1e300
        return best

    # --- visits ---------------------------------------------------------------------------------

    cpdef void open(self, double[::1] coef, double mu):
        """Unmoved pieces, on the central path: q r = μ w, Σ q = w."""
        cdef Py_ssize_t i, k = 0, e, count = 2 if self.kappa < 1e300 else 1
        cdef double lam = coef[self.P - 1], s, room, one, two, step, most
        self.visits += 1
        for i in range(self.N):
            self.row(i)
            self.score[i] = self.along(&coef[0])
            for e in range(count):
                self.now[Y, k + e] = self.y[i] if e == 0 else -self.y[i]
                self.now[COST, k + e] = 0.0 if e == 0 else self.kappa
                self.sets[k + e] = 0
            most = -1e300
            for e in range(k, k + count):       # slacks hold values, for now
                self.now[V, e] = self.now[Y, e] * self.score[i]
                self.now[R, e] = self.terms(self.now[V, e], self.now[Y, e], &s, &one) - lam * self.now[COST, e]
                most = max(most, self.now[R, e])
            room = mu
            for _ in range(60):                 # of 1/Σ = 1, which is concave in the room above the highest
                one = two = 0.0
                for e in range(k, k + count):
                    step = mu / (room + most - self.now[R, e])
                    one += step
                    two += step * step / mu
                step = (one - 1.0) * one / two
                room += step
                if fabs(step) <= 1e-12 * room: break
            self.top[i] = most + room
            for e in range(k, k + count):
                self.now[R, e] = self.top[i] - self.now[R, e]
                self.now[Q, e] = self.w[i] * mu / self.now[R, e]
                self.now[S, e] = 0.0
            self.ptr[i] = k
            k += count
        self.ptr[self.N] = self.n_pieces = k
        self.step[:, :] = 0.0
        self.dscore[:] = 0.0
        self.dtop[:] = 0.0
        self.n_found = 0

    cpdef double[::1] linearise(self, double[::1] coef, double primal, double dual, double mu):
        self._grow(self.n_pieces)
        self.visits += 1
        with nogil:
            self.visit(&coef[0], primal, dual, mu)
        return self.conditions

    cdef void visit(self, const double* x, double primal, double dual, double mu) noexcept nogil:
        cdef Py_ssize_t P = self.P, last = P - 1, i, k, a, b, n = 0, a2, e, count, found = 0, total_new = 0, waiting = 0
        cdef double lam = x[last], ahead = lam / (1.0 + 0.02 * min(1.0, mu / 0.005))
        cdef double w, top, score, best, value, old, q, mass, error, room, sq, sd, sw, s, h, aff, cen, scale, other, curved
        cdef double costs[2 * MOST]
        cdef double values[2 * MOST]
        cdef double labels[2 * MOST]
        cdef mask_t chosen[2 * MOST]
        cdef double* out = &self.conditions[0]
        cdef double* adj = out + P * P
        cdef double* tot = adj + 3 * P
        cdef double base[3]
        cdef double each[3]
        cdef double* p[FIELDS]
        cdef const double* o[FIELDS]
        for e in range(FIELDS): p[e], o[e] = &self.after[e, 0], &self.now[e, 0]
        memset(out, 0, (P * P + 3 * P + SCALARS) * sizeof(double))
        for i in range(self.N):
            a, b, a2, w = self.ptr[i], self.ptr[i + 1], n, self.w[i]
            self.ptr_after[i] = n
            self.row(i)
            score, top = self.score[i] + primal * self.dscore[i], self.top[i] + primal * self.dtop[i]
            # The pieces that are there; curvature is made up for at once, in top.
            mass = error = 0.0
            for k in range(a, b):
                q = o[Q][k] + dual * self.step[1, k]
                p[Y][n], p[COST][n], self.sets_after[n], p[Q][n] = o[Y][k], o[COST][k], self.sets[k], q
                p[V][n] = o[V][k] + primal * self.step[0, k]
                h = self.terms(p[V][n], o[Y][k], &p[S][n], &curved)
                value, old = h - lam * o[COST][k], self.top[i] - o[R][k]
                p[R][n] = value                 # for now
                mass += q
                if primal > 0.0:
                    error += q * (value - old + primal * (o[S][k] * self.step[0, k] + self.dlam * o[COST][k]))
                n += 1
            if mass > 0.0: top += error / mass
            # What the adversary can do here, and sets that matter or soon will.
            count = 0
            if self.refused:
                best = top
                while waiting < self.n_found and self.found_own[waiting] == i:
                    labels[count], costs[count], chosen[count] = self.found[0, waiting], self.found[1, waiting], self.found_set[waiting]
                    waiting += 1
                    count += 1
            else:
                best = self.look(i, score, x, lam, ahead, self.y[i], top - mu, a, b, &count, costs, chosen, values)
                for e in range(count): labels[e] = self.y[i]
                if self.kappa < 1e300:
                    k = count
                    other = self.look(i, score, x, lam, ahead, -self.y[i], top - mu, a, b, &count, costs, chosen, values)
                    for e in range(k, count): labels[e] = -self.y[i]
                    if other > best: best = other
                for e in range(count):
                    self.found_own[found], self.found[0, found], self.found[1, found], self.found_set[found] = i, labels[e], costs[e], chosen[e]
                    found += 1
            tot[0] += w * best
            if best > top: tot[4] += w * (best - top)
            # Slacks that have all but vanished, and room for new pieces.
            room = 0.0
            for k in range(a2, n):
                q = top - p[R][k]
                old = o[R][a + k - a2] + primal * self.step[2, a + k - a2]
                if q < 0.05 * min(mu, max(old, 0.0)): room = max(room, 0.3 * mu - q)
            top += room
            total_new += count
            for e in range(count):
                p[Y][n], p[COST][n], self.sets_after[n] = labels[e], costs[e], chosen[e]
                p[V][n] = labels[e] * (score + self.shift(i, chosen[e], labels[e], x))
                p[R][n] = self.terms(p[V][n], labels[e], &p[S][n], &curved) - lam * costs[e]
                top = max(top, p[R][n] + self.lift * mu)
                n += 1
            sq = sd = sw = 0.0
            for k in range(a2, n):
                p[R][k] = top - p[R][k]
                if k >= n - count: p[Q][k] = w * min(mu / p[R][k], 0.5)
                sq += p[Q][k]
            scale = w / sq if count else 1.0
            sq *= scale
            for k in range(a2, n):
                p[Q][k] *= scale
                sd += p[Q][k] / p[R][k]
                sw += w / p[R][k]
            self.score_after[i], self.top_after[i] = score, top
            # Conditions: gradient, and the responses of q to aims -q r and w.
            base[0] = base[1] = base[2] = 0.0
            for k in range(a2, n):
                h = p[Q][k] / p[R][k] / sd
                each[0], each[1], each[2] = p[Q][k], -p[Q][k] + h * w, w / p[R][k] - h * sw
                tot[2] += p[Q][k] * p[R][k]
                tot[3] += w
                s = p[S][k]
                tot[5] += p[Q][k] / sq * w * (self.terms(p[V][k], p[Y][k], &aff, &curved) + s * p[V][k])
                for e in range(3):
                    cen = -each[e] * s * p[Y][k]
                    base[e] += cen
                    adj[e * P + last] -= each[e] * p[COST][k]
                    if self.sets_after[k]: self.spread(i, self.sets_after[k], p[Y][k], cen, adj + e * P)
            for e in range(3):
                for k in range(self.L): adj[e * P + self.row_index[k]] += base[e] * self.row_value[k]
            self.gram(i, a2, n, sd, out)
        self.ptr_after[self.N] = n
        if self.refused: tot[0] = self.last_loss
        else: self.n_found = found
        tot[1] = tot[0]
        tot[6] = total_new
        self.lift = min(max(0.2 * n / max(total_new, 1), 1.0), 20.0)

    cdef void gram(self, Py_ssize_t i, Py_ssize_t a, Py_ssize_t b, double sd, double* out) noexcept nogil:
        """Σ q h'' zzᵀ + Σ D δδᵀ - (ΣDδ)(ΣDδ)ᵀ/ΣD of a sample: in its row and a few columns, then spread out."""
        cdef Py_ssize_t P = self.P, k, e, f, c = 1, ref = a, col, split, dense = self.nc + self.G
        cdef mask_t every = 0, upwards = 0, moved
        cdef int columns[WIDTH]
        cdef int splits[WIDTH]              # how many of the row's columns are before it
        cdef double* target
        cdef const int* row_index = &self.row_index[0]
        cdef const double* row_value = &self.row_value[0]
        cdef Py_ssize_t G = self.G, L = self.L
        cdef double one[WIDTH]
        cdef double reference[WIDTH]
        cdef double acc[WIDTH]
        cdef double local[WIDTH * WIDTH]
        cdef double s, weight, value, alpha
        cdef double* p_s = &self.after[S, 0]
        cdef double* p_q = &self.after[Q, 0]
        cdef double* p_r = &self.after[R, 0]
        cdef double* p_y = &self.after[Y, 0]
        cdef int bit
        for k in range(a, b):
            every |= self.sets_after[k]
            if p_y[k] < 0.0: upwards |= self.sets_after[k]
            if p_q[k] / p_r[k] > p_q[ref] / p_r[ref]: ref = k
        if b - a > 1:
            columns[c], splits[c] = P - 1, self.L
            self.place[P - 1] = c
            c += 1
        moved = every
        while moved:
            bit = first_bit(moved)
            moved &= moved - 1
            if bit < self.G:
                columns[c], splits[c] = self.cat[i, bit], bit
                self.place[columns[c]] = c
                c += 1
                if upwards >> bit & 1:
                    columns[c], splits[c] = self.nc + bit, self.G
                    self.place[columns[c]] = c
                    c += 1
            elif self.place[dense + (bit - self.G) // 2] < 0:
                columns[c], splits[c] = dense + (bit - self.G) // 2, self.G + (bit - self.G) // 2
                self.place[columns[c]] = c
                c += 1
        for e in range(c * c): local[e] = 0.0
        for e in range(c): acc[e] = 0.0
        for k in range(a, b):
            self.local_row(i, k, c, one)
            s = p_s[k]
            weight = p_q[k] * s * (1.0 - s) if self.slope[0] == 0.0 else 0.0
            for e in range(c):
                for f in range(e + 1): local[e * c + f] += weight * one[e] * one[f]
        if b - a > 1:
            self.local_row(i, ref, c, reference)
            for e in range(c): reference[e] *= -p_s[ref] * p_y[ref]
            reference[1] = -self.after[COST, ref]
            for k in range(a, b):
                if k == ref: continue
                self.local_row(i, k, c, one)
                weight, alpha = p_q[k] / p_r[k], -p_s[k] * p_y[k]
                for e in range(c): one[e] = alpha * one[e] - reference[e]
                one[1] = -self.after[COST, k] - reference[1]
                for e in range(c):
                    acc[e] += weight * one[e]
                    for f in range(e + 1): local[e * c + f] += weight * one[e] * one[f]
            for e in range(c):
                for f in range(e + 1): local[e * c + f] -= acc[e] * acc[f] / sd
        # Spread out: the row with itself, then each local column with the row (whose columns ascend) and the others.
        for e in range(L):
            value = local[0] * row_value[e]
            target = out + <Py_ssize_t>row_index[e] * P
            for f in range(min(e + 1, G)): target[row_index[f]] += value
            target += dense - G
            for f in range(G, e + 1): target[f] += value * row_value[f]
        for e in range(1, c):
            col, value, split = columns[e], local[e * c], splits[e]
            target = out + col * P
            if value != 0.0:
                for f in range(min(split, G)): target[row_index[f]] += value
                for f in range(G, split): target[dense - G + f] += value * row_value[f]
                if split < L and row_index[split] == col:
                    target[col] += 2.0 * value * row_value[split]
                    split += 1
                for f in range(split, L): out[row_index[f] * P + col] += value * row_value[f]
            for f in range(1, e + 1):
                k = columns[f]
                if k <= col: target[k] += local[e * c + f]
                else: out[k * P + col] += local[e * c + f]
            self.place[col] = -1

    cdef void local_row(self, Py_ssize_t i, Py_ssize_t k, Py_ssize_t c, double* one) noexcept nogil:
        """A piece's row: one times the sample's, and its changes at the local columns."""
        cdef Py_ssize_t e, j
        cdef mask_t moved = self.sets_after[k]
        cdef int bit
        one[0] = 1.0
        for e in range(1, c): one[e] = 0.0
        while moved:
            bit = first_bit(moved)
            moved &= moved - 1
            if bit < self.G:
                one[self.place[self.cat[i, bit]]] -= 1.0
                if self.after[Y, k] < 0.0: one[self.place[self.nc + bit]] += 1.0
            else:
                j = (bit - self.G) // 2
                one[self.place[self.nc + self.G + j]] += (self.upper[j] if (bit - self.G) & 1 else self.lower[j]) - self.xb[i, j]

    cpdef void settle(self):
        self.now, self.after = self.after, self.now
        self.sets, self.sets_after = self.sets_after, self.sets
        self.ptr, self.ptr_after = self.ptr_after, self.ptr
        self.score, self.score_after = self.score_after, self.score
        self.top, self.top_after = self.top_after, self.top
        self.n_pieces = self.ptr[self.N]
        self.last_loss = self.conditions[self.P * self.P + 3 * self.P]
        self.refused = False

    cpdef void refuse(self):
        """Stay; the next ``linearise`` takes in what was missing after the step."""
        self.refused = True
        self.nulls += 1

    cpdef double[::1] predict(self, double[::1] dcoef):
        self.visits += 1
        with nogil: self.follow(&dcoef[0], 0.0, 0.0, True)
        return self.predicted

    cpdef double[::1] correct(self, double[::1] dcoef, double centre, double share):
        self.visits += 1
        self.dlam = dcoef[self.P - 1]
        with nogil: self.follow(&dcoef[0], centre, share, False)
        return self.limits

    cdef void follow(self, const double* dx, double centre, double share, bint predictor) noexcept nogil:
        """Everything that goes with a direction: dtop from Σ dq = w - Σ q, then slacks and multipliers."""
        cdef Py_ssize_t P = self.P, last = P - 1, i, k, a, b
        cdef double w, dscore, wanted, push, sd, sq, total, dtop, ds, dq, base, pull, second
        cdef double* out = &self.predicted[0]
        cdef double* tot = out + P
        cdef double* costs = tot + 3 if predictor else &self.limits[2]
        cdef const double* o[FIELDS]
        for k in range(FIELDS): o[k] = &self.now[k, 0]
        if predictor: memset(out, 0, (P + 3 + 2 * LEVELS) * sizeof(double))
        else: memset(&self.limits[0], 0, (2 + 2 * LEVELS) * sizeof(double))
        for i in range(self.N):
            a, b, w = self.ptr[i], self.ptr[i + 1], self.w[i]
            self.row(i)
            dscore = self.along(dx)
            sd = sq = total = 0.0
            for k in range(a, b):
                self.step[0, k] = o[Y][k] * (dscore + (self.shift(i, self.sets[k], o[Y][k], dx) if self.sets[k] else 0.0))
                push = -o[S][k] * self.step[0, k] - dx[last] * o[COST][k]
                wanted = -o[Q][k] if predictor else (centre * w - share * self.step[3, k]) / o[R][k] - o[Q][k]
                self.step[1, k], self.step[2, k] = wanted, push
                if not predictor: self.limits[0] += o[Q][k] * push
                sd += o[Q][k] / o[R][k]
                sq += o[Q][k]
                total += wanted + o[Q][k] / o[R][k] * push
            dtop = (total - (w - sq)) / sd
            self.dscore[i], self.dtop[i] = dscore, dtop
            base = 0.0
            for k in range(a, b):
                ds = dtop - self.step[2, k]
                dq = self.step[1, k] - o[Q][k] / o[R][k] * ds
                self.step[1, k], self.step[2, k] = dq, ds
                if -ds > o[R][k]: limit(costs, -ds / o[R][k], 1e100)
                if -dq > o[Q][k]: limit(costs + LEVELS, -dq / o[Q][k], 1e100)
                if predictor:
                    second = dq * ds
                    self.step[3, k] = second
                    tot[0] += o[Q][k] * ds
                    tot[1] += dq * o[R][k]
                    tot[2] += second
                    base -= second / o[R][k]
            if predictor:                       # the pull of the second-order terms
                pull = 0.0
                for k in range(a, b):
                    dq = -self.step[3, k] / o[R][k] - o[Q][k] / o[R][k] * base / sd
                    ds = -dq * o[S][k] * o[Y][k]
                    pull += ds
                    out[last] -= dq * o[COST][k]
                    if self.sets[k]: self.spread(i, self.sets[k], o[Y][k], ds, out)
                for k in range(self.L): out[self.row_index[k]] += pull * self.row_value[k]

    cpdef double[::1] certify(self, double[::1] dcoef, bint first):
        self.visits += 1
        with nogil: self.proof(&dcoef[0], first)
        return self.predicted

    cdef void proof(self, const double* dx, bint first) noexcept nogil:
        """The dual point after one more correction, as masses q and m = q s: the equations are linear in these.

        Pieces with little mass and much slack are left out: where only they depend on a coordinate (high of a group
        that nobody moves), no small step could meet its equation.
        """
        cdef Py_ssize_t P = self.P, last = P - 1, i, k, a, b, start = 0, most = 0
        cdef double w, dscore, dv, sd, sq, total, dtop, q, m, s, base, scale
        cdef double* total_out = &self.predicted[0]
        cdef double* out = &self.panel[0]           # sums of a few samples: less rounding to charge
        cdef double* q1 = &self.after[Q, 0]         # the proof's; pieces as they are now
        cdef double* m1 = &self.after[S, 0]
        cdef const double* o[FIELDS]
        for k in range(FIELDS): o[k] = &self.now[k, 0]
        memset(total_out, 0, (P + 2) * sizeof(double))
        memset(out, 0, (P + 2) * sizeof(double))
        for i in range(self.N):
            a, b, w = self.ptr[i], self.ptr[i + 1], self.w[i]
            self.row(i)
            dscore = self.along(dx)
            sd = sq = total = 0.0
            for k in range(a, b):
                if first: q1[k], m1[k] = o[Q][k], o[Q][k] * o[S][k]
                if o[Q][k] < BINDS * w * o[R][k]: q1[k] = m1[k] = 0.0
                else:
                    dv = o[Y][k] * (dscore + (self.shift(i, self.sets[k], o[Y][k], dx) if self.sets[k] else 0.0))
                    self.step[0, k] = dv
                    self.step[2, k] = -o[S][k] * dv - dx[last] * o[COST][k]
                    sd += o[Q][k] / o[R][k]
                    sq += q1[k]
                    total += o[Q][k] / o[R][k] * self.step[2, k]
            dtop = (total - (w - sq)) / sd
            sq = 0.0
            for k in range(a, b):
                if o[Q][k] < BINDS * w * o[R][k]: continue
                q, s = -o[Q][k] / o[R][k] * (dtop - self.step[2, k]), o[S][k]
                m = m1[k] + s * q - o[Q][k] * s * (1.0 - s) * self.step[0, k]
                q = max(q1[k] + q, 0.0)
                m1[k] = 0.0 if (not first and m1[k] == 0.0) or not m > 1e-2 * q * s else min(m, q)
                q1[k] = q
                sq += q
            scale, base = w / sq * (1.0 - 1e-15), 0.0
            for k in range(a, b):
                if not q1[k] > 0.0: continue
                q1[k] *= scale
                m1[k] = min(m1[k] * scale, q1[k])
                out[P] += q1[k] * entropy(m1[k] / q1[k])
                out[last] -= q1[k] * o[COST][k]
                base -= m1[k] * o[Y][k]
                if self.sets[k]: self.spread(i, self.sets[k], o[Y][k], -m1[k] * o[Y][k], out)
            for k in range(self.L): out[self.row_index[k]] += base * self.row_value[k]
            if (i + 1) % PANEL == 0 or i + 1 == self.N:
                most = max(most, b - start + PANEL)
                start = b
                for k in range(P + 1): total_out[k] += out[k]
                memset(out, 0, (P + 1) * sizeof(double))
        total_out[P + 1] = most + self.N // PANEL + 4   # additions that any number has been through

    def oracle_only(self, double[::1] coef):
        """For measurements: the mean loss under the worst moves, nothing else."""
        cdef double total = 0.0, lam = coef[self.P - 1], best, other, score
        cdef double costs[2 * MOST]
        cdef double values[2 * MOST]
        cdef mask_t chosen[2 * MOST]
        cdef Py_ssize_t i, count
        with nogil:
            for i in range(self.N):
                self.row(i)
                count = 0
                score = self.along(&coef[0])
                best = self.look(i, score, &coef[0], lam, lam, self.y[i], 1e300, 0, 0, &count, costs, chosen, values)
                if self.kappa < 1e300:
                    other = self.look(i, score, &coef[0], lam, lam, -self.y[i], 1e300, 0, 0, &count, costs, chosen, values)
                    if other > best: best = other
                total += self.w[i] * best
        return total
