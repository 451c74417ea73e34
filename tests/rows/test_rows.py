"""Products with the samples, in every format and cutting, against plain NumPy."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import zoo
from drlogit.rows.blocks import Block
from drlogit.rows.checks import check_features
from drlogit.rows.local import LocalRows, memory_rows
from drlogit.rows.matrix import CHUNK_BYTES


def block_of(X, intercept=False):
    """A block of positive samples with these features: Z is X."""
    ones = np.ones(X.shape[0])
    return Block(X, ones, ones, intercept)


def entries(n_rows: int = 53, n_columns: int = 9, density: float = 0.4, seed: int = 0):
    """A matrix with empty rows and columns, as a dense array."""
    rng = np.random.default_rng(seed)
    X = np.where(
        rng.random((n_rows, n_columns)) < density, rng.standard_normal((n_rows, n_columns)), 0
    )
    X[::7], X[:, 3] = 0.0, 0.0
    return X


def unsorted_csr(X: np.ndarray) -> sp.csr_array:
    """CSR with its indices in descending order and an entry stored in two halves."""
    coo = sp.coo_array(X)
    order = np.lexsort((-coo.col, coo.row))
    row, col, data = coo.row[order], coo.col[order], coo.data[order]
    row, col = np.append(row, row[-1]), np.append(col, col[-1])
    data = np.append(data, data[-1] / 2.0)
    data[-2] /= 2.0
    indptr = np.searchsorted(row, np.arange(X.shape[0] + 1))
    return sp.csr_array((data, col, indptr), shape=X.shape)


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def read_only_csr(X: np.ndarray) -> sp.csr_array:
    csr = sp.csr_array(X)
    for part in (csr.data, csr.indices, csr.indptr):
        part.flags.writeable = False
    return csr


DENSE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every-other-row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every-other-column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "float32": lambda X: X.astype(np.float32),
    "float32-F": lambda X: np.asfortranarray(X.astype(np.float32)),
    "float32-view": lambda X: np.repeat(X.astype(np.float32), 2, axis=0)[::2],
}
SPARSE = {
    f"{kind}-{name}": (lambda X, kind=kind, name=name: getattr(sp, f"{name}_{kind}")(X))
    for kind, name in itertools.product(
        ["array", "matrix"], ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"]
    )
} | {
    "float32-csr": lambda X: sp.csr_array(X.astype(np.float32)),
    "unsorted-with-duplicates": unsorted_csr,
    "coo-duplicates": lambda X: sp.coo_array(
        (np.tile(X[X.nonzero()] / 2, 2), np.tile(np.array(X.nonzero()), 2)),
        shape=X.shape,
    ),
    "64-bit-indices": zoo.wide_indices,
    "read-only-csr": read_only_csr,
    "stored-zeros": lambda X: sp.csr_array(
        (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), X.shape[1] * np.arange(len(X) + 1))
    ),
}
FORMATS = DENSE | SPARSE


def dense(X) -> np.ndarray:
    return np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)


@pytest.fixture(params=FORMATS)
def stored(request):
    """What ``check_features`` makes of a format, and the same as a plain array."""
    X = FORMATS[request.param](entries())
    return check_features(X), dense(X)


# --- products of one matrix -----------------------------------------------------------------


#: One row or column, and panels of 256 rows and of 200.
SHAPES = [(1, 1), (1, 37), (7, 3), (300, 19), (430, 200)]


def assert_summed_in_double(found, x, y):
    """``found`` is ``x @ y`` but for what sums in double precision, in any order, can lose."""
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    lost = (x.shape[1] + 3) * 2.0**-53 * (abs(x) @ abs(y))
    assert found.dtype == np.float64
    assert (abs(found - x @ y) <= lost).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["C", "F", "every-other-column", "float32-view", "float32-F"])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_dense_products_are_summed_in_double(shape, kind, shifted, intercept):
    """Of one vector and of several; the Gram matrix."""
    rng = np.random.default_rng(15)
    X = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    X = X.astype(np.float32).astype(np.float64)
    shift = rng.standard_normal(shape[1]) if shifted else np.zeros(shape[1])
    Z = np.column_stack([X - shift, np.ones((shape[0], int(intercept)))])
    block = block_of(DENSE[kind](X), intercept)
    block = block.shifted(shift) if shifted else block
    d = rng.random(shape[0])
    assert_summed_in_double(block.gram(d), Z.T * d, Z)
    for k in [1, 3]:
        V, R = rng.standard_normal((k, Z.shape[1])), rng.standard_normal((shape[0], k))
        assert_summed_in_double(block.scores(V), Z, V.T)
        assert_summed_in_double(block.adjoint(R), Z.T, R)
    assert_summed_in_double(block.margins(V[0]), Z, V[0])
    assert_summed_in_double(block.adjoint(R[:, 0]), Z.T, R[:, 0])
    assert_summed_in_double(block.squared_columns(R[:, 1]), (Z**2).T, R[:, 1])


def test_a_product_sees_the_array_as_it_is():
    X = np.ones((5, 3), dtype=np.float32)
    block = block_of(X)
    assert block.margins(np.ones(3)).tolist() == [3.0] * 5
    X[:] = 2.0
    assert block.margins(np.ones(3)).tolist() == [6.0] * 5


@pytest.mark.parametrize("values", ["ones", "float64", "float32"])
@pytest.mark.parametrize("filled", [10, 150])
def test_sparse_products_over_several_panels(filled, values):
    """Ones and other numbers, few well-filled columns and many, empty rows."""
    rng = np.random.default_rng(12)
    share = np.where(np.arange(190) < filled, 0.6, 0.03)
    X = (rng.random((700, 190)) < share).astype(values if values != "ones" else np.float64)
    X *= rng.random((700, 1)) < 0.9
    if values != "ones":
        X *= rng.standard_normal(X.shape).astype(X.dtype)
    wide, d, v = X.astype(np.float64), rng.random(700), rng.standard_normal(190)
    block = block_of(sp.csr_array(X))
    np.testing.assert_allclose(block.margins(v), wide @ v, atol=1e-12)
    np.testing.assert_allclose(block.adjoint(d), wide.T @ d, atol=1e-12)
    five = d[:, None] ** np.arange(5)
    np.testing.assert_allclose(block.adjoint(five), wide.T @ five, atol=1e-12)
    np.testing.assert_allclose(block.gram(d), wide.T @ (d[:, None] * wide), atol=1e-12)
    np.testing.assert_allclose(block.squared_columns(d), (wide**2).T @ d, atol=1e-12)


def test_products_of_what_lies_at_odd_addresses():
    """As arrays do that have come over a network."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    odd = np.empty(X.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    odd[:] = X
    assert not odd.flags.aligned
    block, v, r = block_of(odd), np.arange(3.0), np.arange(200.0)
    np.testing.assert_allclose(block.margins(v), X @ v, rtol=1e-13)
    np.testing.assert_allclose(block.adjoint(r), X.T @ r, rtol=1e-12)
    np.testing.assert_allclose(block.gram(np.ones(200)), X.T @ X, rtol=1e-12)


def traced_peak(function, *arguments) -> int:
    """Bytes that a call holds at most, beyond what there was before."""
    function(*arguments)  # import and warm up first
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["C", "F", "csr"])
def test_no_product_copies_the_data(dtype, kind):
    n_rows = 100_000
    rng = np.random.default_rng(5)
    if kind == "csr":
        X = sp.random_array(
            (n_rows, 400), density=0.05, random_state=rng, format="csr", dtype=dtype
        )
        size = X.data.nbytes + X.indices.nbytes
    else:
        X = np.array(rng.random((n_rows, 40)), dtype=dtype, order=kind)
        size = X.nbytes
    v, d = rng.random(X.shape[1]), rng.random(n_rows)
    vector = 8 * n_rows
    allowed = size / 4
    block = block_of(X)
    assert traced_peak(block.margins, v) - 2 * vector < allowed  # the answer is a vector itself
    assert traced_peak(block.adjoint, d) - vector < allowed
    assert traced_peak(block.squared_columns, d) < allowed
    assert traced_peak(block.gram, d) < allowed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_building_a_problem_does_not_copy_the_data(dtype):
    X = np.random.default_rng(6).standard_normal((50_000, 40)).astype(dtype)
    y = np.arange(50_000) % 2
    build = lambda data: stated.problem(data, y, epsilon=0.1, kappa=1.0)  # noqa: E731
    assert np.shares_memory(build(X).rows.blocks[0].X, X)
    assert traced_peak(build, X) < X.nbytes / 2  # labels and weights only
    csr = sp.random_array(
        (50_000, 100), density=0.1, random_state=np.random.default_rng(7), format="csr"
    )
    csr = csr.astype(dtype)
    assert np.shares_memory(build(csr).rows.blocks[0].X.data, csr.data)


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_turning_float32_features_needs_no_copy_in_double(shift):
    X = np.random.default_rng(17).standard_normal((20_000, 40)).astype(np.float32)
    rows = rows_of(X)
    rows = rows.shifted(np.full(40, shift)) if shift else rows
    factor = np.random.default_rng(18).standard_normal((40, 40))
    turned = rows.turned(factor).blocks[0].X
    np.testing.assert_allclose(turned, (X.astype(float) - shift) @ factor, atol=1e-12)
    assert traced_peak(rows.turned, factor) < turned.nbytes + 3 * CHUNK_BYTES


# --- blocks ---------------------------------------------------------------------------------


def rows_of(X, n_blocks: int = 1, intercept: bool = True, seed: int = 9) -> LocalRows:
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    weights = rng.random(n)
    return memory_rows(Block(check_features(X), y, weights / weights.sum(), intercept), n_blocks)


@pytest.mark.parametrize("intercept", [True, False])
def test_block_products_are_products_with_signed_rows(stored, intercept):
    X, reference = stored
    block = rows_of(X, intercept=intercept).blocks[0]
    Z = block.y[:, None] * (np.column_stack([reference, np.ones(53)]) if intercept else reference)
    rng = np.random.default_rng(10)
    v, r, d = rng.standard_normal(Z.shape[1]), rng.standard_normal(53), rng.random(53)
    assert block.n_columns == Z.shape[1]
    np.testing.assert_allclose(block.margins(v), Z @ v, atol=1e-13)
    np.testing.assert_allclose(block.adjoint(r), Z.T @ r, atol=1e-13)
    both = np.stack([r, d], axis=1)
    np.testing.assert_allclose(block.adjoint(both), Z.T @ both, atol=1e-13)
    several = np.stack([v, 2.0 * v[::-1], v - 1.0])
    np.testing.assert_allclose(block.scores(several), Z @ several.T, atol=1e-12)
    d[5:9] = 0.0
    gram = block.gram(d)
    np.testing.assert_allclose(gram, Z.T @ (d[:, None] * Z), atol=1e-13)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(block.squared_columns(d), (Z**2).T @ d, atol=1e-13)
    rows, columns = rng.random(53), rng.random(Z.shape[1])
    np.testing.assert_allclose(
        np.tril(block.outer_gram(rows, columns)),
        np.tril((rows[:, None] * Z * columns**2) @ (rows[:, None] * Z).T),
        atol=1e-12,
    )
    # The adjoint is the adjoint.
    assert block.margins(v) @ r == pytest.approx(v @ block.adjoint(r), rel=1e-12)


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_mostly_empty_arrays_are_made_sparse_for_many_passes(n_blocks):
    X = entries(n_blocks * 10_000, 120, density=0.1)
    X[:, 0] = np.arange(len(X))  # no row occurs twice
    rows = rows_of(X, n_blocks)
    thin, origin = rows.compact
    assert origin is None
    assert all(sp.issparse(block.X) for block in thin.blocks)
    np.testing.assert_array_equal(thin.together().X.toarray(), X)
    assert thin.n_nonzeros == np.count_nonzero(X)
