"""What mypy accepts in ``typed_use.py`` also runs, and the package says that it is typed."""

from __future__ import annotations

from importlib import resources

import numpy as np

from typed_use import fit_and_question


def test_typed_program_runs(tmp_path):
    answers = fit_and_question(tmp_path)
    assert np.isfinite(list(answers.values())).all()
    assert answers["gap"] <= 1e-5
    assert answers["worst"] > answers["audit"]
    assert answers["looks"] > 0.0


def test_package_is_marked_as_typed():
    assert resources.files("drlogit").joinpath("py.typed").is_file()
