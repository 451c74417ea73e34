"""How a solve ended survives being stored."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from benchmarks import stated

from drlogit.estimators.robust_classifier import result_of
from drlogit.problem.result import Status


@pytest.mark.parametrize("status", Status)
def test_it_says_how_to_make_it_again_to_whoever_asks(status):
    # skops asks __reduce__ and calls the type with the arguments; pickle asks __reduce_ex__.
    kind, arguments = status.__reduce__()
    assert kind is Status
    assert kind(*arguments) is status
    assert pickle.loads(pickle.dumps(status)) is status


def test_skops_loads_what_it_wrote(cancer):
    sio = pytest.importorskip("skops.io")
    X, y = cancer
    model = stated.classifier(0.05).fit(X, y)
    written = sio.dumps(model)
    again = sio.loads(written, trusted=sio.get_untrusted_types(data=written))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert result_of(again).status is result_of(model).status
