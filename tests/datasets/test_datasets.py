"""Data to try things on: the generator, and the bundled tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from drlogit import datasets
from drlogit.datasets.bundled import write_hospitals


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


def test_hospitals_are_written(tmp_path):
    paths = write_hospitals(tmp_path / "new")
    tables = {path.rpartition("/")[2]: pd.read_csv(path) for path in paths}
    sizes = {"budapest": 294, "cleveland": 303, "long-beach": 200, "switzerland": 123}
    assert {name.removesuffix(".csv"): len(rows) for name, rows in tables.items()} == sizes
    for rows in tables.values():
        assert rows.columns[-1] == "disease"
        assert set(rows["disease"]) == {"yes", "no"}


def test_zeros_that_nobody_measured_are_missing():
    table, recorded = datasets.load_heart_disease(), datasets.load_heart_disease(as_recorded=True)
    zeros = (recorded["cholesterol"] == 0).groupby(recorded["hospital"]).sum()
    assert zeros.to_dict() == {"budapest": 0, "cleveland": 0, "long-beach": 49, "switzerland": 123}
    assert not (table[["cholesterol", "blood_pressure"]] == 0).any(axis=None)
    numbers = ["cholesterol", "blood_pressure"]
    pd.testing.assert_frame_equal(table[numbers].fillna(0), recorded[numbers].fillna(0))
