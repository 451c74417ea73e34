"""What every kind of rows must do: in threads, in a file, on Dask."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import zoo
from drlogit.rows import building
from drlogit.rows.reductions import Max, Min, Sum

N = 90
#: Rows of each block.
CUTS = {1: [90], 2: [89, 1], 5: [20, 1, 0, 33, 36], 17: [5] * 16 + [10]}


def samples(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 5)) * (rng.random((N, 5)) < 0.6)
    X = X.astype(np.float32).astype(np.float64)  # so that single precision has the same numbers
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0, 2.0] + rng.standard_normal(N) > 0.0, 1.0, -1.0)
    return X, y, rng.random(N) + 0.1


def in_threads(X, lengths):
    return X


def in_sparse_threads(X, lengths):
    return sp.csr_matrix(X)


def in_a_file(X, lengths):
    return zoo.mapped(X)


def in_a_file_in_single_precision(X, lengths):
    with np.errstate(over="ignore"):
        return zoo.mapped(X.astype(np.float32))


def on_dask(X, lengths):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(tuple(n for n in lengths if n), -1))


def sparse_on_dask(X, lengths):
    return on_dask(X, lengths).map_blocks(sp.csr_matrix)


KINDS = [
    in_threads, in_sparse_threads, in_a_file, in_a_file_in_single_precision,
    on_dask, sparse_on_dask,
]  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(request):
    if "dask" not in request.param.__name__:
        yield request.param
        return
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield request.param


def rows_of(kind, y, weights=None, *, X=None, intercept=True, n_blocks=5):
    given = kind(samples()[0] if X is None else X, CUTS[n_blocks])
    return building.rows_of(given, y > 0, 2, weights, intercept=intercept, n_jobs=n_blocks)


def signed(X, y, intercept):
    """The matrix Z that no kind of rows ever forms."""
    return y[:, None] * (np.column_stack([X, np.ones(N)]) if intercept else X)


def measured(block, state, v, r_scale):
    """A block function of every kind of reduction, with margins for its state."""
    u = block.margins(v)
    return u, (
        Sum(block.adjoint(block.weights * r_scale)),
        Sum(block.gram(block.weights)),
        Min(u.min(initial=np.inf)),
        Max(u.max(initial=-np.inf)),
        Sum(float(block.weights @ u) if state is None else float(state @ u)),
    )


def shifted(block, state, by):
    return state + by, ()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_products_and_reductions(kind, intercept, weighted):
    X, y, weights = samples()
    w = weights / weights.sum() if weighted else np.full(N, 1.0 / N)
    rows = rows_of(kind, y, weights if weighted else None, intercept=intercept)
    Z = signed(X, y, intercept)
    assert (rows.n_samples, rows.n_columns) == Z.shape
    assert rows.n_nonzeros in (X.size, np.count_nonzero(X))
    assert rows.largest_block <= N
    v = np.linspace(-1.0, 2.0, Z.shape[1])
    state, (adjoint, gram, least, greatest, total) = rows.run(measured, None, v, 3.0)
    np.testing.assert_allclose(np.asarray(rows.gather(state)), Z @ v, atol=1e-12)
    np.testing.assert_allclose(adjoint, 3.0 * Z.T @ w, atol=1e-12)
    np.testing.assert_allclose(gram, Z.T @ (w[:, None] * Z), atol=1e-12)
    assert (least, greatest) == pytest.approx(((Z @ v).min(), (Z @ v).max()))
    assert total == pytest.approx(w @ Z @ v)
    np.testing.assert_allclose(rows.together().weights, w, rtol=1e-12)
    np.testing.assert_allclose(rows.column_scale, np.sqrt(w @ Z**2), rtol=1e-12)
    whole = rows.together()
    np.testing.assert_allclose(whole.margins(v), Z @ v, atol=1e-12)


def test_states_are_kept_apart_and_in_order(kind):
    rows = rows_of(kind, samples()[1])
    numbers = np.arange(N, dtype=float)
    state = rows.scatter(numbers)
    later, none = rows.run(shifted, state, 5.0)
    assert tuple(none) == ()
    np.testing.assert_array_equal(np.asarray(rows.gather(state)), numbers)  # untouched
    np.testing.assert_array_equal(np.asarray(rows.gather(later)), numbers + 5.0)
    _, (both,) = rows.run(_dot, rows.pair(state, later))
    assert both == pytest.approx(numbers @ (numbers + 5.0))
    _, (first,) = rows.run(_offset_agrees, rows.pair(rows.offsets, state))
    assert first == 1.0


def _dot(block, state):
    one, other = state
    return None, (Sum(float(one @ other)),)


def _offset_agrees(block, state):
    offset, numbers = state
    return None, (Min(float(numbers[0] == offset) if numbers.size else 1.0),)


@pytest.mark.parametrize(("n_blocks", "norm"), [(1, "l1"), (2, "l2"), (5, "linf"), (17, "l1")])
def test_blocks_do_not_change_the_answer(kind, n_blocks, norm):
    X, y, weights = samples()
    given, jobs = kind(X, CUTS[n_blocks]), {"n_jobs": n_blocks}
    ball = {"kappa": 0.7, "norm": norm, "sample_weight": weights if norm == "l2" else None}
    reference = stated.solve(X, y, epsilon=0.05, tol=1e-10, **ball)
    result = stated.solve(given, y, epsilon=0.05, tol=1e-10, **ball, **jobs)
    assert result.gap <= 1e-10
    assert result.objective == pytest.approx(reference.objective, abs=1e-9)
    np.testing.assert_allclose(result.coef, reference.coef, atol=1e-6)
    assert result.intercept == pytest.approx(reference.intercept, abs=1e-6)
    flips = np.asarray(result.flip_share)
    assert flips.shape == (N,)
    assert flips.sum() == pytest.approx(reference.flip_share.sum(), abs=1e-4)


def test_radii_are_the_same_everywhere(kind):
    X, y, weights = samples()
    given, ball = kind(X, CUTS[5]), {"norm": "l2", "sample_weight": weights}
    assert stated.epsilon_max(given, y, kappa=1.0, **ball) == pytest.approx(
        stated.epsilon_max(X, y, kappa=1.0, **ball), rel=1e-8
    )


@pytest.mark.parametrize(("bad", "said"), [(np.nan, "NaN"), (1e200, "below 1e\\+150|got inf")])
def test_features_that_cannot_be_computed_with_are_refused(kind, bad, said):
    X, y, _ = samples()
    X[40, 2] = bad
    with pytest.raises(ValueError, match=said):
        stated.problem(kind(X, CUTS[5]), y, epsilon=0.1)


@pytest.mark.parametrize(
    ("labels", "weights", "said"),
    [
        (np.zeros(N), None, "two classes, got one"),
        (None, np.full(N, -1.0), "sample_weight must be finite and >= 0"),
        (None, np.zeros(N), "positive entry, got all zeros"),
        (None, "positive", "every sample with the smaller label has weight zero"),
    ],
)
def test_labels_and_weights_that_cannot_be_are_refused(kind, labels, weights, said):
    X, y, _ = samples()
    weights = (y > 0.0).astype(float) if isinstance(weights, str) else weights
    labels = y if labels is None else labels
    with pytest.raises(ValueError, match=said):
        stated.problem(kind(X, CUTS[5]), labels, epsilon=0.1, sample_weight=weights)
