"""What every kind of rows must do: in memory, in threads, read when needed, on Dask."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import drlogit
from drlogit.fitting import suggested_radius
from drlogit.problem.problem import build_problem
from drlogit.rows.building import build_rows
from drlogit.rows.reductions import Max, Min, Sum

N, LENGTHS = 90, (20, 1, 33, 36)


def samples(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 5)) * (rng.random((N, 5)) < 0.6)
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0, 2.0] + rng.standard_normal(N) > 0.0, 1.0, -1.0)
    return X, y, rng.random(N) + 0.1


def in_memory(X):
    return X, {"n_blocks": 1}


def in_threads(X):
    return X, {"n_blocks": 4, "n_jobs": 2}


def as_sparse(X):
    return sp.csr_matrix(X), {"n_blocks": 3}


def read_when_needed(X):
    parts = np.split(X, np.cumsum(LENGTHS)[:-1])
    return drlogit.RowBlocks(parts.__getitem__, LENGTHS, X.shape[1]), {}


def on_dask(X):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(LENGTHS, -1)), {}


KINDS = [in_memory, in_threads, as_sparse, read_when_needed, on_dask]


@pytest.fixture(params=KINDS)
def kind(request):
    if request.param is not on_dask:
        yield request.param
        return
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield request.param


def rows_of(kind, *, weighted=True, intercept=True):
    X, y, weights = samples()
    given, options = kind(X)
    return build_rows(given, y, weights if weighted else None, intercept=intercept, **options)


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
    rows = rows_of(kind, weighted=weighted, intercept=intercept)
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
    np.testing.assert_allclose(rows.weights(), w, rtol=1e-12)
    np.testing.assert_array_equal(rows.signs(), y)
    np.testing.assert_allclose(rows.column_scale, np.sqrt(w @ Z**2), rtol=1e-12)
    whole = rows.together()
    np.testing.assert_allclose(whole.margins(v), Z @ v, atol=1e-12)


def test_states_are_kept_apart_and_in_order(kind):
    rows = rows_of(kind)
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


def test_fits_and_radii_are_the_same_everywhere(kind, monkeypatch):
    X, y, weights = samples()
    given, _ = kind(X)
    ball = {"kappa": 1.0, "norm": "l2", "sample_weight": weights}
    reference = drlogit.solve(X, y, epsilon=0.05, tol=1e-10, **ball)
    result = drlogit.solve(given, y, epsilon=0.05, tol=1e-10, **ball)
    assert result.gap <= 1e-10
    assert result.objective == pytest.approx(reference.objective, abs=1e-9)
    np.testing.assert_allclose(result.coef, reference.coef, atol=1e-5)
    assert drlogit.epsilon_max(given, y, **ball) == pytest.approx(
        drlogit.epsilon_max(X, y, **ball), rel=1e-8
    )
    # Noise drawn where the samples are, and the same noise however they are cut.
    monkeypatch.setattr(suggested_radius, "_DIRECT_LIMIT", 0)
    monkeypatch.setattr(suggested_radius, "_PAGE", 16)
    del ball["kappa"]
    found = drlogit.suggest_radius(given, y, n_draws=20, **ball)
    assert found == pytest.approx(drlogit.suggest_radius(X, y, n_draws=20, **ball), rel=1e-6)


def test_noise_of_the_samples_does_not_pass_through_the_driver(kind, monkeypatch):
    """Both ways of drawing agree up to chance, and nothing of length N is scattered."""
    X, y, _ = samples()
    problem = build_problem(kind(X)[0], y, epsilon=1.0, kappa=np.inf)
    direct = suggested_radius.suggested_radius_of(problem, n_draws=400)

    def refuse(*_):
        raise AssertionError("scattered")

    monkeypatch.setattr(type(problem.rows), "scatter", refuse)
    monkeypatch.setattr(suggested_radius, "_DIRECT_LIMIT", 0)
    drawn = suggested_radius.suggested_radius_of(problem, n_draws=400)
    assert drawn == pytest.approx(direct, rel=0.1)


@pytest.mark.parametrize(("bad", "said"), [(np.nan, "NaN"), (1e200, "below 1e\\+150")])
def test_features_that_cannot_be_computed_with_are_refused(kind, bad, said):
    X, y, _ = samples()
    X[40, 2] = bad
    given, options = kind(X)
    with pytest.raises(ValueError, match=said):
        build_rows(given, y, None, intercept=True, **options)


@pytest.mark.parametrize(
    ("labels", "weights", "said"),
    [
        (np.zeros(N), None, "two classes, got 1"),
        (np.arange(N), None, "two classes, got 90"),
        (None, np.full(N, -1.0), "sample_weight must be finite and >= 0"),
        (None, "positive", "every sample with the smaller label has weight zero"),
    ],
)
def test_labels_and_weights_that_cannot_be_are_refused(kind, labels, weights, said):
    X, y, _ = samples()
    weights = (y > 0.0).astype(float) if isinstance(weights, str) else weights
    given, options = kind(X)
    with pytest.raises(ValueError, match=said):
        build_rows(given, y if labels is None else labels, weights, intercept=True, **options)
