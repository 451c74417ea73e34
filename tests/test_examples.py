"""Every example runs and prints what it promises, with few repeats and folds."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from drlogit import DRLogisticRegressionCV

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def load(path):
    spec = spec_from_file_location(f"example_{path.stem}", path)
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, capsys, monkeypatch):
    fit = DRLogisticRegressionCV.fit
    monkeypatch.setattr(
        DRLogisticRegressionCV, "fit", lambda search, X, y: fit(search.set_params(cv=2), X, y)
    )
    example = load(path)
    assert example.__doc__.count(f"python examples/{path.name}") == 1
    if hasattr(example, "REPEATS"):
        example.REPEATS = 1
    if hasattr(example, "RATES"):
        example.RATES = example.RATES[:1]
    if hasattr(example, "ROWS"):
        example.ROWS = 300
    example.main()
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) > 10
    assert "nan" not in printed.lower().split()
    assert all(len(line) <= 130 for line in printed.splitlines())
