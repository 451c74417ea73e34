"""Pieces of samples with domains: sums and directions against NumPy, the oracle by brute force."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated
from scipy.special import entr, expit

import domain_zoo
from drlogit.engine import _pieces, _sums
from drlogit.engine.settings import SETTINGS
from drlogit.engine.tables import TableLayout

MU = 0.03


#: From this seed on, rows are sparse, with columns of few entries, and some samples have no weight.
SPARSE = 10


def case_of(seed):
    """A problem with domains, and its rows as the solver gets them."""
    case = domain_zoo.generated(seed, n_samples=None if seed < SPARSE else 40)
    if seed < SPARSE:
        return case, stated.problem(**case)
    rng = np.random.default_rng(seed)
    few = rng.standard_normal((40, 80)) * (np.arange(40)[:, None] % 16 == np.arange(80) % 16)
    case["X"] = np.column_stack([case["X"], few])
    case["bounds"] = [
        np.append(end, np.full(80, s * math.inf))
        for end, s in zip(case["bounds"], (-1, 1), strict=True)
    ]
    case["feature_costs"] = np.append(case["feature_costs"], rng.uniform(0.5, 2.0, 80))
    case["sample_weight"] = rng.exponential(size=40) * (np.arange(40) % 7 > 0)
    problem = stated.problem(**case | {"X": sp.csr_array(case["X"])})
    assert sp.issparse(problem.rows.blocks[0].X)
    return case, problem


class Pieces:
    """A state after a step in a random direction, with the rows of its pieces as arrays."""

    def __init__(self, seed):
        _, self.problem = case_of(seed)
        self.layout = layout = TableLayout.of(self.problem)
        (block,) = self.problem.rows.blocks
        self.table, self.w = layout.table(block), block.weights
        rng = np.random.default_rng(seed)
        self.P = layout.size
        x = layout.inside(0.8 * rng.standard_normal(self.problem.costs.size), 0.6, 0.3)
        kappa = np.full(self.w.size, block.flip_costs(self.problem.kappa))
        state = _pieces.open_pieces(self.table, kappa, np.zeros(0), x)
        state, _ = _pieces.linearise_pieces(self.table, state, x, 0.0, 0.0, MU)
        dx = 0.05 * rng.standard_normal(self.P)
        state, _ = _pieces.predict_pieces(self.table, state, dx)
        state, _ = _pieces.correct_pieces(self.table, state, dx, MU, 0.5)
        self.x = x + 0.2 * dx
        self.state, self.sums = _pieces.linearise_pieces(self.table, state, self.x, 0.2, 0.1, MU)
        self.dx = 0.1 * rng.standard_normal(self.P)
        self.read()

    def read(self):
        self.y, self.d, self.v, self.q, self.s, self.r = np.asarray(self.state.pieces).T
        self.own = np.repeat(np.arange(self.w.size), np.diff(self.state.starts))
        # Gradients of v_k, a coordinate at a time, and of h(v_k) - λ d_k.
        self.V = np.zeros((self.y.size, self.P))
        for j in range(self.P - 1):
            unit = np.eye(self.P)[j]
            self.V[:, j] = np.asarray(_pieces.predict_pieces(self.table, self.state, unit)[0].step)[
                :, 0
            ]
        self.G = -self.s[:, None] * self.V
        self.G[:, -1] = -self.d

    def by_sample(self, values):
        return np.bincount(self.own, values, self.w.size)


@pytest.fixture(params=range(13), scope="module")
def pieces(request):
    return Pieces(request.param)


def test_pieces_are_what_they_say(pieces):
    k = pieces
    np.testing.assert_allclose(k.s, expit(-k.v), rtol=1e-12)
    np.testing.assert_allclose(k.v, k.V @ k.x, rtol=1e-9, atol=1e-12)
    values = np.logaddexp(0.0, -k.v) - k.x[-1] * k.d
    np.testing.assert_allclose(
        k.r, np.asarray(k.state.now)[1][k.own] - values, rtol=1e-9, atol=1e-13
    )
    assert (k.r > 0.0).all()
    assert (k.q > 0.0).all()
    keys = {
        (i, y, *bits)
        for i, y, bits in zip(k.own, k.y, np.asarray(k.state.sets).tolist(), strict=True)
    }
    assert len(keys) == k.own.size


def test_linearisation(pieces):
    k = pieces
    P, matrix = k.P, np.zeros((k.P, k.P))
    gradient, affine, centring = np.zeros((3, P))
    for i in np.flatnonzero(k.w > 0.0):
        mine = k.own == i
        q, r, s, G, V = k.q[mine], k.r[mine], k.s[mine], k.G[mine], k.V[mine]
        D = q / r
        matrix += (V.T * (q * s * (1.0 - s))) @ V
        matrix += (G.T * D) @ G - np.outer(D @ G, D @ G) / D.sum()
        gradient += q @ G
        # dq of r dq + q dτ = target with Σ dq = 0 (affine: -q r, and what is missing of w).
        affine += (-q + D / D.sum() * k.w[i]) @ G
        centring += (k.w[i] / r - D / D.sum() * (k.w[i] / r).sum()) @ G
    found, adjoints = k.sums[: P * P].reshape(P, P), k.sums[P * P : -_sums.SCALARS].reshape(3, P)
    np.testing.assert_allclose(np.tril(found), np.tril(matrix), atol=1e-10 * np.abs(matrix).max())
    np.testing.assert_allclose(adjoints[0], gradient, atol=1e-12)
    np.testing.assert_allclose(adjoints[1], affine, atol=1e-11)
    np.testing.assert_allclose(adjoints[2], centring, atol=1e-10 * np.abs(centring).max())
    scalars = k.sums[-_sums.SCALARS :]
    weighted = k.q / k.by_sample(k.q)[k.own] * k.w[k.own]
    assert scalars[_sums.PRODUCTS] == pytest.approx(k.q @ k.r)
    assert scalars[_sums.DEGREE] == pytest.approx(k.w[k.own].sum())
    assert scalars[_sums.ENTROPY] == pytest.approx(weighted @ (entr(k.s) + entr(1.0 - k.s)))
    assert scalars[_sums.COUNT] == k.own.size == k.state.starts[-1]
    assert scalars[_sums.VALUE] == scalars[_sums.LOSS]


@pytest.mark.parametrize(("predictor", "scale"), [(True, 1.0), (True, 30.0), (False, 1.0)])
def test_directions(pieces, predictor, scale):
    """Over a long step the second-order terms are cut off."""
    k, dx = pieces, scale * pieces.dx
    first, sums = _pieces.predict_pieces(k.table, k.state, dx)
    centre, share, second = 0.0, 0.0, np.zeros(k.y.size)
    if not predictor:
        centre, share, second = 0.4 * MU, 0.6, np.asarray(first.step)[:, 3]
        first, sums = _pieces.correct_pieces(k.table, first, dx, centre, share)
    (dv, dq, dr), dtop = np.asarray(first.step).T[:3], np.asarray(first.change)[1]
    np.testing.assert_allclose(dv, k.V @ dx, atol=1e-12 * scale)
    # Slacks are linear in τ and the values; products reach their targets; Σ q reaches w.
    np.testing.assert_allclose(dr, dtop[k.own] - k.G @ dx, atol=1e-11 * scale)
    target = centre * k.w[k.own] - share * second
    np.testing.assert_allclose(k.r * dq + k.q * dr, target - k.q * k.r, atol=1e-12 * scale)
    np.testing.assert_allclose(k.by_sample(k.q + dq), k.w, atol=1e-13 * scale)
    if not predictor:
        assert sums[_sums.SLOPE] == pytest.approx(k.q @ (k.G @ dx), abs=1e-13)
        return
    changes = sums[k.P : k.P + _sums.CHANGES]
    assert changes[_sums.PRIMAL_CHANGE] == pytest.approx(k.q @ dr, abs=1e-13 * scale)
    assert changes[_sums.DUAL_CHANGE] == pytest.approx(dq @ k.r, abs=1e-13 * scale)
    assert changes[_sums.BOTH_CHANGE] == pytest.approx(dq @ dr, abs=1e-13 * scale)
    most = SETTINGS.second_order * k.q * k.r
    e = np.clip(dq * dr, -most, most)
    assert scale == 1.0 or k.problem.kappa == math.inf or (e != dq * dr).any()
    np.testing.assert_allclose(np.asarray(first.step)[:, 3], e, atol=1e-14)
    D = k.q / k.r
    dq = -e / k.r + D * k.by_sample(e / k.r)[k.own] / k.by_sample(D)[k.own]
    np.testing.assert_allclose(sums[: k.P], dq @ k.G, atol=1e-12)


def test_step_lengths_pass_samples_up_to_a_price(pieces):
    k = pieces
    state, _ = _pieces.predict_pieces(k.table, k.state, 8.0 * k.dx)
    state, sums = _pieces.correct_pieces(k.table, state, 8.0 * k.dx, 0.0, 0.0)
    _, dq, dr, _ = np.asarray(state.step).T
    primal, dual = [], []
    for i in np.flatnonzero(k.w > 0.0):
        mine = k.own == i
        q, r = k.q[mine], k.r[mine]
        fall, drop = (-dr[mine] / r), (-dq[mine] / q)
        own, largest = q @ r, r[np.argmax(q)]
        if fall.max() > 1.0:
            lost = -dr[mine][np.argmax(fall)]
            primal.append((1.0 / fall.max(), own + SETTINGS.blocking * k.w[i] * lost))
        if drop.max() > 1.0:
            j = np.argmax(drop)
            taken = -dq[mine][j] * (r[j] + largest)
            dual.append((1.0 / drop.max(), own + SETTINGS.blocking * taken))
    for kind, each in enumerate((sorted(primal), sorted(dual))):
        total = sum(cost for _, cost in each)
        assert sums[_sums.PARABOLA + kind * _sums.LEVELS :][: _sums.LEVELS].sum() == pytest.approx(
            total
        )
        if each:
            length = _sums.longest(sums, _sums.PARABOLA, 0.0)[kind]
            assert each[0][0] / (1.0 + 1.0 / 32.0) - 1e-12 <= length <= each[0][0] + 1e-12


@pytest.mark.parametrize("scale", [0.02, 3.0])
def test_the_dual_point_is_corrected(pieces, scale):
    """Pieces of little mass take no part, and over a long correction others leave."""
    k, (make, (*parts,)) = copy.copy(pieces), pieces.state.__reduce__()
    largest = np.zeros(k.w.size)
    np.maximum.at(largest, k.own, k.q)
    faint = (k.q < largest[k.own]) & (np.arange(k.q.size) % 2 == 0)
    parts[3] = parts[3] * np.where(faint[:, None] & (np.arange(6) == 3), 1e-6, 1.0)
    k.state = make(*parts)
    k.read()
    dx = scale * k.dx
    (_, masses), sums = _pieces.certify_pieces(k.table, k.state, dx)
    q, m = masses.T
    dv, change = k.V @ dx, k.G @ dx
    np.testing.assert_allclose(k.by_sample(q), k.w, rtol=1e-12)
    assert (m >= 0.0).all()
    assert (m <= q).all()
    takes = k.q >= SETTINGS.binding * k.w[k.own] * k.r
    assert (q[~takes] == 0.0).all()
    assert not takes[faint].any()
    whole = k.by_sample(takes & (q == 0.0)) == 0.0  # no piece leaves
    for i in np.flatnonzero(whole & (k.w > 0.0)):
        mine = (k.own == i) & (q > 0.0)
        D = (k.q / k.r)[mine]
        dtop = (k.q[mine].sum() + D @ change[mine] - k.w[i]) / D.sum()
        expected = D * (k.r[mine] + change[mine] - dtop)
        np.testing.assert_allclose(q[mine], expected / expected.sum() * k.w[i], rtol=1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = k.s - k.q * k.s * (1.0 - k.s) * dv / np.where(q > 0.0, q, 1.0)
    some = whole[k.own] & (q > 0.0) & (m > 0.0) & (m < q)
    np.testing.assert_allclose((m / np.where(q > 0.0, q, 1.0))[some], share[some], rtol=1e-6)
    adjoint = -m @ k.V
    adjoint[-1] = -(q @ k.d)
    np.testing.assert_allclose(sums[: k.P], adjoint, atol=1e-13)
    s = m[q > 0.0] / q[q > 0.0]
    entropy = q[q > 0.0] @ (entr(s) + entr(1.0 - s))
    assert sums[k.P + _sums.PROOF_ENTROPY] == pytest.approx(entropy)
    assert sums[k.P + _sums.PROOF_ADDITIONS] >= k.own.size


@pytest.mark.parametrize("seed", range(13))
def test_the_oracle_finds_the_worst_case(seed):
    """At coordinates whose highs are the largest coefficients, the loss is that of brute force."""
    case, problem = case_of(seed)
    layout = TableLayout.of(problem)
    (block,) = problem.rows.blocks
    x = layout.inside(np.random.default_rng(seed).standard_normal(problem.costs.size), 0.7, 0.3)
    for g in range(problem.domains.n_groups):
        part = layout.position[layout.there.levels[g]]
        x[part] -= x[part].min()
        x[layout.high + g] = x[part].max()
    table = layout.table(block)
    kappa = np.full(table.N, block.flip_costs(problem.kappa))
    dear, x[-1] = np.append(x[:-1], 1e3), 0.3  # λ at which no move pays, and many do
    opened = _pieces.open_pieces(table, kappa, np.zeros(0), dear)
    opened, _ = _pieces.linearise_pieces(table, opened, dear, 0.0, 0.0, MU)
    state, sums = _pieces.linearise_pieces(table, opened, x, 0.0, 0.0, MU)
    coefficients = layout.coefficients(x)
    offers = domain_zoo.offers(
        case, coefficients[: case["X"].shape[1]], float(coefficients[-1]) * case["fit_intercept"]
    )
    worst = np.array([np.max(each[:, 1] - x[-1] * each[:, 0]) for each in offers])
    weights = domain_zoo.weights_of(case)
    assert sums[-_sums.SCALARS :][_sums.LOSS] == pytest.approx(weights @ worst, abs=1e-10)
    _, cost, v, _, _, r = np.asarray(opened.pieces).T
    value, top = np.logaddexp(0.0, -v) - x[-1] * cost, np.asarray(opened.now)[1].copy()
    own = np.repeat(np.arange(table.N), np.diff(opened.starts))
    np.maximum.at(top, own, np.where(value >= top[own], value + SETTINGS.kept * r, -np.inf))
    missing = np.where(weights > 0.0, np.maximum(worst - top, 0.0), 0.0)
    assert sums[-_sums.SCALARS :][_sums.MISSING] == pytest.approx(weights @ missing, abs=1e-10)
    assert (np.asarray(state.now)[1] >= worst)[weights > 0.0].all()


@pytest.mark.parametrize("seed", range(6))
def test_a_refused_step_leaves_its_pieces(seed):
    k = Pieces(seed)
    state, _ = _pieces.predict_pieces(k.table, k.state, 20.0 * k.dx)
    trial, far = _pieces.linearise_pieces(k.table, state, k.x + 20.0 * k.dx, 1.0, 1.0, MU, 0.0)
    again, sums = _pieces.linearise_pieces(k.table, (k.state, trial), k.x, 0.0, 0.0, MU)
    new = np.diff(trial.starts) - np.diff(k.state.starts)
    assert (
        far[-_sums.SCALARS :][_sums.NEW_PIECES]
        == sums[-_sums.SCALARS :][_sums.NEW_PIECES]
        == new.sum()
    )
    np.testing.assert_array_equal(again.starts, trial.starts)
    np.testing.assert_array_equal(again.sets, trial.sets)
    np.testing.assert_allclose(np.asarray(again.now)[0], np.asarray(k.state.now)[0])
    assert sums[-_sums.SCALARS :][_sums.LOSS] == pytest.approx(k.sums[-_sums.SCALARS :][_sums.LOSS])
    own = np.repeat(np.arange(k.w.size), np.diff(again.starts))
    masses = np.bincount(own, np.asarray(again.pieces)[:, 3], k.w.size)
    np.testing.assert_allclose(masses[new > 0], k.w[new > 0])
