"""What mypy accepts in ``typed_use.py`` also runs, and the package says that it is typed."""

from __future__ import annotations

from importlib import resources
from typing import get_args, get_type_hints

import numpy as np
import pytest

from drlogit import DRLogisticRegression, DRLogisticRegressionCV
from drlogit.estimators.robust_classifier import ModelParameters
from drlogit.estimators.tables.encoding import FILLS
from typed_use import fit_and_question


def test_typed_program_runs(tmp_path):
    answers = fit_and_question(tmp_path)
    assert np.isfinite(list(answers.values())).all()
    assert answers["gap"] <= 1e-5
    assert answers["worst"] > answers["audit"]
    assert answers["looks"] > 0.0


@pytest.mark.parametrize("estimator", [DRLogisticRegression, DRLogisticRegressionCV])
def test_types_name_what_parameters_can_be(estimator):
    assert issubclass(estimator, ModelParameters)
    types = get_type_hints(ModelParameters)
    assert set(get_args(types["missing"])) == {*FILLS} == {"error", "mean", "median"}


def test_package_is_marked_as_typed():
    assert resources.files("drlogit").joinpath("py.typed").is_file()
