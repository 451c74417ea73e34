"""Input that can be read in two ways is refused, or remarked on, in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks import stated

import zoo

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = np.where(X[:, 0] + RNG.standard_normal(40) > 0.0, 1, -1)
MODEL = stated.classifier(epsilon=0.1).fit(X, Y)


def masked(values, where=(5,)):
    mask = np.zeros(values.shape, dtype=bool)
    mask[where] = True
    return np.ma.MaskedArray(values, mask)


def one_line(function, *arguments, **options):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        function(*arguments, **options)
    return str(caught.value)


# --- masks ----------------------------------------------------------------------------------

USES = {
    "solve": lambda X, y, w: stated.solve(X, y, epsilon=0.1, kappa=1.0, sample_weight=w),
    "fit": lambda X, y, w: stated.classifier().fit(X, y, w),
    "worst case": lambda X, y, w: zoo.worst_loss(
        MODEL, X, y, epsilon=0.1, kappa=1.0, sample_weight=w
    ),
    "epsilon_max": lambda X, y, w: stated.epsilon_max(X, y, kappa=1.0, sample_weight=w),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
def test_masked_entries_are_not_computed_with(use, what):
    given = {"X": X, "y": Y, "sample_weight": np.ones(40)}
    given[what] = masked(given[what])
    message = one_line(USES[use], given["X"], given["y"], given["sample_weight"])
    count = 3 if what == "X" else 1
    assert message.startswith(f"{what} must have no masked entries, got {count}")
    assert "X must have no masked entries" in one_line(MODEL.predict, masked(X))


# --- text -----------------------------------------------------------------------------------

TEXTS = {
    "array": X.astype(str),
    "bytes": X.astype("S"),
    "lists": X.astype(str).tolist(),
    "pandas": pd.DataFrame(X, columns=list("abc")).assign(b="1"),
    "polars": pl.DataFrame({"a": X[:, 0], "b": ["1"] * 40}),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_is_not_read_as_numbers(kind):
    width = 2 if kind == "polars" else 3
    model = stated.classifier().fit(X[:, :width], Y)
    text = TEXTS[kind]
    for message in (
        one_line(stated.solve, text, Y, epsilon=0.1, kappa=1.0),
        one_line(stated.classifier(categorical_features=None).fit, text, Y),
        one_line(model.predict, text),
        one_line(zoo.worst_loss, model, text, Y, epsilon=0.1, kappa=1.0),
    ):
        assert message.startswith("X must hold numbers, got the text ")
        assert ("in column 'b'" in message) == (kind in ("pandas", "polars"))


def test_numbers_as_objects_and_categories_are_numbers():
    expected = stated.solve(X, Y, epsilon=0.1, kappa=1.0).objective
    frame = pd.DataFrame(X).astype({0: object, 1: "category"})
    for same in (X.astype(object), frame, X.tolist()):
        assert stated.solve(same, Y, epsilon=0.1, kappa=1.0).objective == pytest.approx(expected)
