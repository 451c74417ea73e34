"""Data to try things on: the generator, and the bundled tables."""

from __future__ import annotations

import numpy as np
import pytest

from drlogit import datasets
from drlogit.datasets.bundled import BUNDLED, load_bundled


def test_synthetic_is_the_papers_recipe():
    X, y = datasets.make_synthetic(50, 7, random_state=3)
    rng = np.random.default_rng(3)
    beta = rng.normal(size=7)
    features = rng.normal(size=(50, 7))
    z = rng.uniform(size=50)
    probability = 1 / (1 + np.exp(-features @ beta / np.sqrt((beta**2).sum())))
    drawn = datasets.make_synthetic(np.int64(50), 7, np.random.default_rng(3))
    for found in ((X, y), drawn):
        np.testing.assert_array_equal(found[0], features)
        np.testing.assert_array_equal(found[1], 2 * (z < probability).astype(int) - 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(((size, 2), "n_samples must be an integer >= 1, got") for size in (0, 2.0, "3", True)),
        ((2, 0), "n_features must be an integer >= 1, got 0"),
        *(((2, 2, seed), r"random_state must be .* got") for seed in (-1, 1.5, "0", True)),
    ],
)
def test_synthetic_refuses(arguments, said):
    with pytest.raises(ValueError, match=said):
        datasets.make_synthetic(*arguments)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_tables_end_in_their_target(name):
    frame = load_bundled(name)
    assert frame.iloc[:, -1].notna().all()
    assert frame.iloc[:, -1].nunique() >= 2
