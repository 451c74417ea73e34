"""The paper's experiments and their references: IPOPT, cutting planes, the public data sets."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import store
from benchmarks.ipopt import ipopt
from benchmarks.judge import robust_objective_and_gap
from benchmarks.paper import __main__ as paper
from benchmarks.paper import curves, datasets, times
from benchmarks.paper.rows import Rows, task

import drlogit

pytestmark = pytest.mark.slow

needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)


def test_a_run_writes_tables_and_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    few = [task("table1", times.SIZES[0], m, 0, 5.0) for m in ("interior-point", "adaptive")]
    monkeypatch.setattr(times, "plan", lambda experiment, quick: few)
    monkeypatch.setattr(
        curves, "plan", lambda quick: [task("figure3", times.SIZES[0], "PDHG", 0, 20)]
    )
    arguments = ["table1", "figure3", "--quick", "--out", str(tmp_path)]
    paper.main(arguments)
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| (10, 3) | 2.40 ± 0.18 s |" in report
    assert "interior point" in report
    assert (tmp_path / "figure3.svg").stat().st_size > 1000
    rows = store.read_rows(tmp_path / "rows.jsonl")
    assert [row["experiment"] for row in rows] == ["table1", "table1", "figure3"]
    assert all(row["gap"] <= 1e-6 for row in rows)
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"experiment": "tab')  # killed while writing
    capsys.readouterr()
    paper.main(arguments)
    assert "interior-point" not in capsys.readouterr().out
    assert store.read_rows(tmp_path / "rows.jsonl") == rows


def test_rows_of_other_versions_are_left_aside(tmp_path):
    path = tmp_path / "rows.jsonl"
    run = task("table1", "synthetic-10x3", "adaptive")
    Rows(path).add(run, {"gap": 1e-7})
    store.append_rows(path, [{**run, "trial": 1, "cpu": "another", "drlogit_source": "old"}])
    rows = Rows(path)
    assert (len(rows), rows.left_aside) == (1, 1)
    assert Rows(path, last=True).get(run) is None


@needs_data
@pytest.mark.parametrize("name", ["a1a", "w1a.t", "mushrooms", "phishing", "mnist-0v3"])
def test_public_data_sets(name):
    X, y = datasets.load(name)  # size, labels and digest are checked there
    assert set(np.unique(y)) == {-1, 1}
    assert X.shape[0] == y.size


def test_data_sets_that_are_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("DRLOGIT_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="no data set is named 'a10a'"):
        datasets.load("a10a")
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "a1a").write_text("+1 1:1\n")
    with pytest.raises(ValueError, match="damaged or another version"):
        datasets.load("a1a")


# --- IPOPT ------------------------------------------------------------------------------------


def sample(n_samples: int = 40, n_features: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)) * np.geomspace(0.5, 2.0, n_features)
    score = X @ rng.standard_normal(n_features) + 0.5 + rng.standard_normal(n_samples)
    return X, np.where(score > 0.0, 1, -1)


@pytest.mark.parametrize("kappa", [0.25, math.inf])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("costs", [None, [0.5, 2.0, math.inf, 1.0]])
def test_ipopt_agrees(norm, kappa, costs):
    pytest.importorskip("casadi")
    X, y = sample()
    options = {
        "epsilon": 0.02, "kappa": kappa, "norm": norm, "feature_costs": costs,
        "fit_intercept": costs is not None,
        "sample_weight": np.random.default_rng(2).permutation(np.arange(40.0)),
    }  # fmt: skip
    found = ipopt(sp.csr_array(X), y, tol=1e-8, **options)
    value, gap = robust_objective_and_gap(X, y, found.coef, found.intercept, **options)
    exact = drlogit.solve(X, y, tol=1e-9, **options)
    assert found.status == "OPTIMAL"
    assert value == pytest.approx(exact.objective, abs=1e-7)
    assert -1e-12 <= gap <= 1e-6
    assert found.lam == pytest.approx(exact.lam, abs=1e-3)
