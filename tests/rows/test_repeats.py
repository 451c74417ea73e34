"""Merging repeated samples changes the work, not the answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

from drlogit.rows.repeats import merge_repeats


def repeated(sparse, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(150, 6)).astype(float)
    y = np.where(rng.random(150) < 0.3 + 0.4 * X[:, 0], 1.0, -1.0)
    pick = rng.integers(0, 150, size=900)
    X, y = X[pick], y[pick]
    return (sp.csr_array(X) if sparse else X), y, rng.random(900)


@pytest.mark.parametrize("sparse", [False, True])
def test_merged_samples_are_the_given_ones(sparse):
    X, y, w = repeated(sparse)
    merged_X, merged_y, merged_w, _, origin = merge_repeats(X, y, w)
    dense = X.toarray() if sparse else X
    dense_merged = merged_X.toarray() if sparse else merged_X
    np.testing.assert_array_equal(dense_merged[origin], dense)
    np.testing.assert_array_equal(merged_y[origin], y)
    pairs = np.column_stack([dense_merged, merged_y])
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    np.testing.assert_allclose(np.bincount(origin, w), merged_w)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_same_answer_as_of_the_distinct_samples(sparse, norm):
    X, y, w = repeated(sparse, seed=2)
    few, labels, weights, _, origin = merge_repeats(X, y, w)
    ball = {"epsilon": 0.02, "kappa": 0.5, "norm": norm, "tol": 1e-10}
    merged = stated.solve(X, y, sample_weight=w, **ball)
    plain = stated.solve(few, labels, sample_weight=weights, **ball)
    assert merged.info["distinct_samples"] == labels.size
    assert merged.gap <= 1e-10
    assert plain.gap <= 1e-10
    assert merged.objective == pytest.approx(plain.objective, abs=2e-10)
    np.testing.assert_allclose(merged.coef, plain.coef, atol=1e-4)
    # One share for each sample, equal among copies.  Which flip, and how many, is not unique.
    share, first = merged.flip_share, np.unique(origin, return_index=True)[1]
    np.testing.assert_array_equal(share, share[first][origin])
    assert 0.0 < w @ share / w.sum() <= 0.02 / 0.5 + 1e-9
