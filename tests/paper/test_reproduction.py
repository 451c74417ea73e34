"""The paper's experiments: the report, its rows, the data, and the port of the released code."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.paper import __main__ as reproduction
from benchmarks.paper import accuracy, curves, datasets, ipopt, released, rows, times
from benchmarks.paper.rows import task

from drlogit import paper
from drlogit.paper.subproblem import NORMS, Subproblem, signed_rows

pytestmark = pytest.mark.slow

needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)


@pytest.fixture
def few_runs(monkeypatch):
    """A plan that takes a second."""
    few = [task("table1", times.PLANS["table1"].data[0], m) for m in ("exact", "scaled", "sound")]
    curve = task("figure3", next(iter(curves.PANELS)), "LP-ADMM, ρ = 1/N")
    monkeypatch.setattr(times, "plan", lambda name, quick: few if name == "table1" else [])
    monkeypatch.setattr(curves, "plan", lambda quick: [curve])
    monkeypatch.setattr(reproduction.accuracy, "plan", lambda quick: [])
    monkeypatch.setattr(reproduction.theory, "plan", lambda quick: [])
    return [*few, curve]


def test_a_run_writes_the_report_and_continues(few_runs, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    arguments = ["table1", "figure3", "--quick", "--out", str(tmp_path)]
    monkeypatch.setattr(reproduction, "draw", lambda *arguments: None)
    reproduction.main(arguments)
    assert "## Figure 3" in (tmp_path / "report.md").read_text("utf-8")
    first, *found = rows.read_rows(tmp_path / "rows.jsonl")
    assert first["drlogit_commit"]
    assert [row["method"] for row in found] == [run["method"] for run in few_runs]
    assert all(set(row) == {*rows.KEY, *rows.VALUES} for row in found)
    assert all(row["gap"] <= 1e-6 for row in found)
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"experiment": "tab')  # killed while writing
    capsys.readouterr()
    reproduction.main(arguments)
    assert "table1" not in capsys.readouterr().out
    assert rows.read_rows(tmp_path / "rows.jsonl") == [first, *found]
    monkeypatch.setattr(rows, "unchanged_since", lambda commit, path: False)
    with pytest.raises(SystemExit, match="measured by other code"):
        reproduction.main(arguments)


def test_the_committed_report_is_that_of_the_committed_rows():
    measured = rows.Rows(rows.RESULTS / "rows.jsonl", reported=True)
    text = reproduction.text(measured, quick=False)
    assert text == (rows.RESULTS / "report.md").read_text("utf-8")
    kept = [path for path in rows.RESULTS.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) <= 1_000_000


@needs_data
@pytest.mark.parametrize(("name", "lam", "objective"), [("a1a", 1.446, 0.584570)])
def test_the_port_ends_where_the_matlab_code_ended(name, lam, objective):
    """The MATLAB code under Octave 7.3: λ, and the worst-case loss of its coefficients."""
    Z = signed_rows(*datasets.load(name))
    found, coef = released.golden_search(Z, 0.1, 1.0, 0.001, 1.04)
    assert found == pytest.approx(lam, abs=2e-3)
    value = 0.1 * found + np.mean(np.logaddexp(0, -Z @ coef) + np.maximum(Z @ coef - found, 0))
    assert value == pytest.approx(objective, abs=2e-6)


def test_plain_newton_is_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.where(X[:, 0] + rng.logistic(size=60) > 0.0, 1, -1)
    coef = accuracy.newton(X, y, change=1e-13)
    gradient = X.T @ (y / (1.0 + np.exp(y * (X @ coef))))
    assert np.abs(gradient).max() <= 1e-4  # it has a ridge of 1e-5


@needs_data
def test_official_files_give_the_printed_accuracy():
    """Table 3 of the paper on a1a: the official files, ε = 0.2."""
    for model, printed, error in (("LR", 83.13, 0.03), ("RLR", 83.82, 0.005)):
        row = accuracy.measure(task("official", "a1a", model))
        assert abs(100.0 * row["accuracy"] - printed) <= error


def test_ipopt_agrees():
    pytest.importorskip("casadi")
    Z = np.random.default_rng(0).normal([0.5, 0.0, 0.0, 1.0], size=(40, 4))
    lam, coef, status, _ = ipopt.ipopt(sp.csr_array(Z), 0.02, 0.25, tol=1e-8)
    best = paper.sound(Z, epsilon=0.02, kappa=0.25, tol=1e-9)
    value = 0.02 * lam + Subproblem(Z, lam, 0.25, NORMS["l1"]).F(Z @ coef)
    assert status == "OPTIMAL"
    assert value == pytest.approx(best.objective, abs=1e-7)
    assert lam == pytest.approx(best.lam, abs=1e-3)


@needs_data
@pytest.mark.parametrize("name", ["a1a", "w1a.t", "mushrooms", "phishing", "mnist-0v3"])
def test_public_data_sets(name):
    X, y = datasets.load(name)  # size, labels and digest are checked there
    assert set(np.unique(y)) == {-1, 1}
    assert X.shape[0] == y.size
