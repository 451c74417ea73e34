"""Errors about parameters say which one, for callers that know it by another name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from benchmarks import stated

from drlogit.rows.checks import ParameterError

X, Y = np.arange(12.0)[:, None], np.arange(12) % 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", -1.0),
        ("kappa", 0.0),
        ("sample_weight", -np.ones(12)),
        ("tol", 0.0),
        ("max_iter", 0),
        ("max_time", -3.0),
    ],
)
def test_the_parameter_is_named(name, value):
    given = {"epsilon": 0.1, "kappa": 1.0, name: value}
    with pytest.raises(ParameterError, match=f"^{name} must be") as error:
        stated.solve(X, Y, **given)
    assert error.value.parameter == name
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.parameter) == (str(error.value), name)
