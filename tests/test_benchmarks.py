"""The benchmark harness, and the paper's experiments with their references."""

from __future__ import annotations

import base64
import math
import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import environment, fuzz_files, stated, store
from benchmarks.ipopt import ipopt
from benchmarks.judge import plain_objective_and_gap, robust_objective_and_gap
from benchmarks.paper import __main__ as paper
from benchmarks.paper import accuracy, curves, datasets, rows, times
from benchmarks.paper.rows import task
from sklearn.linear_model import LogisticRegression

import drlogit

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_gap_of_the_plain_problem(C):
    X, y = drlogit.datasets.make_synthetic(80, 4, random_state=1)
    y[:20] = 1  # an intercept that matters
    plain = LogisticRegression(C=C, tol=1e-10).fit(X, y)
    best, gap = plain_objective_and_gap(X, y, plain.coef_, plain.intercept_[0], C)
    assert -1e-15 <= gap < 1e-12
    for shift in (0.01, 0.1):
        value, gap = plain_objective_and_gap(X, y, plain.coef_ + shift, plain.intercept_[0], C)
        assert 0.0 < value - best <= gap
        value, gap = plain_objective_and_gap(X, y, plain.coef_, plain.intercept_[0] + shift, C)
        assert 0.0 < value - best <= gap


# --- the paper's experiments -----------------------------------------------------------------


needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)


METHODS = ("interior-point", "lp-admm-golden", "paper-growing")


@pytest.fixture
def few_runs(monkeypatch):
    """A plan that takes a second."""
    few = [task("table1", times.SIZES[0], m, 0, 5.0) for m in METHODS]
    curve = task("figure3", times.SIZES[0], "LP-ADMM, balanced ρ", 0, 0.05)
    monkeypatch.setattr(times, "plan", lambda experiment, quick: few)
    monkeypatch.setattr(curves, "plan", lambda quick: [curve])
    return [*few, curve]


def test_a_run_writes_tables_and_continues_where_it_was(few_runs, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    arguments = ["table1", "figure3", "--quick", "--out", str(tmp_path)]
    paper.main(arguments)
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| (10, 3) | 2.40 ± 0.18 s |" in report
    assert "LP-ADMM, golden section" in report
    assert (tmp_path / "figure3.svg").stat().st_size > 1000
    rows = store.read_rows(tmp_path / "rows.jsonl")
    assert [row["method"] for row in rows] == [run["method"] for run in few_runs]
    assert all(row["gap"] <= 1e-6 for row in rows if row["method"] != "paper-growing")
    assert rows[-1]["above"][-1] <= 1e-9
    assert rows[-1]["at_seconds"] == sorted(rows[-1]["at_seconds"])
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"experiment": "tab')  # killed while writing
    capsys.readouterr()
    paper.main(arguments)
    assert "interior-point" not in capsys.readouterr().out
    assert store.read_rows(tmp_path / "rows.jsonl") == rows


def test_rows_of_other_code_are_measured_again_and_reported_as_such(
    few_runs, tmp_path, monkeypatch, capsys
):
    arguments = ["table1", "--quick", "--out", str(tmp_path)]
    paper.main(arguments)
    # Other code in the package `paper` only: the interior point does not run it.
    monkeypatch.setattr(rows, "source_digest", lambda *packages: str(len(packages)))
    first = store.read_rows(tmp_path / "rows.jsonl")
    kept = [{**row, "drlogit_source": "5"} for row in first[:1]] + first[1:]
    (tmp_path / "rows.jsonl").write_text("")
    store.append_rows(tmp_path / "rows.jsonl", kept)
    capsys.readouterr()
    paper.main([*arguments, "--report-only"])
    assert "2 rows were measured with other code" in capsys.readouterr().out
    paper.main(arguments)
    again = [row["method"] for row in store.read_rows(tmp_path / "rows.jsonl")[3:]]
    assert again == ["lp-admm-golden", "paper-growing"]
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "4 (2 rows)" in report
    assert "5 (1 rows)" in report


def test_digest_covers_cython_and_ignores_comments(monkeypatch):
    code = [("engine", ".pyx", "cdef int f():\n    return 1\n"), ("paper", ".py", "x = 1\n")]

    def digest(sources, *packages):
        environment.source_digest.cache_clear()
        monkeypatch.setattr(environment, "_SOURCES", sources)
        return environment.source_digest(*packages)

    before, engine = digest(code), digest(code, "engine")
    commented = [("engine", ".pyx", '"""Doc."""\ncdef int f():  # one\n\n    return 1\n'), code[1]]
    assert digest(commented) == before
    assert digest([("engine", ".pyx", "cdef int f():\n    return 2\n"), code[1]]) != before
    assert digest([code[0], ("paper", ".py", "x = 2\n")]) != before
    assert digest([code[0], ("paper", ".py", "x = 2\n")], "engine") == engine
    monkeypatch.undo()
    environment.source_digest.cache_clear()
    assert any(suffix == ".pyx" for _, suffix, _ in environment._SOURCES)


def test_the_committed_report_is_that_of_the_committed_rows():
    folder = store.RESULTS / "paper-tables"
    measured = rows.Rows(folder / "rows.jsonl", stale=True)
    text = paper.text(paper.NAMES, measured, quick=False, missing={})
    assert text == (folder / "report.md").read_text(encoding="utf-8")


def test_plain_newton_is_logistic_regression():
    X, y = sample(60, 3)
    coef = accuracy.newton(X, y, change=1e-13)
    gradient = X.T @ (y / (1.0 + np.exp(y * (X @ coef))))
    assert np.abs(gradient).max() <= 1e-6


def test_differences_on_the_same_samples():
    def row(wrong):
        bits = np.packbits(np.array(wrong, bool)).tobytes()
        return {"n_test": len(wrong), "wrong": base64.b64encode(bits).decode()}

    better, worse = row([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]), row([1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    differences = np.array([1, 1, 1, -1, 0, 0, 0, 0, 0, 0])
    error = 100.0 * differences.std() / math.sqrt(10)
    assert accuracy._paired(better, worse) == f"+20.00 ± {error:.2f}"


@needs_data
def test_official_files_give_the_printed_accuracy(tmp_path):
    """Table 3 of the paper on a1a: the official files, ε = 0.2."""
    measured = rows.Rows(tmp_path / "rows.jsonl")
    for model, printed in (("LR", 83.13), ("RLR, ε = 0.2", 83.82)):
        row = accuracy.measure(task("table3-official", "a1a", model), measured)
        assert abs(100.0 * row["accuracy"] - printed) <= 0.015


@needs_data
@pytest.mark.parametrize("name", ["a1a", "w1a.t", "mushrooms", "phishing", "mnist-0v3"])
def test_public_data_sets(name):
    X, y = datasets.load(name)  # size, labels and digest are checked there
    assert set(np.unique(y)) == {-1, 1}
    assert X.shape[0] == y.size


def test_only_runs_that_can_be_interrupted_are_marked_as_cut_short(tmp_path):
    measured = rows.Rows(tmp_path / "rows.jsonl")
    ended = {"cpu_seconds": 62.0, "gap": 1e-9, "objective": 0.5, "lam": 1.0}
    for method, complete in (("ipopt", True), ("lp-admm-golden", False)):
        run = task("table1", "synthetic-10x3", method, 0, 60.0)
        measured.add(run, ended)
        found = times.timing(measured, [run], "synthetic-10x3", method)
        assert found.complete is complete


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
    exact = stated.solve(X, y, tol=1e-9, **options)
    assert found.status == "OPTIMAL"
    assert value == pytest.approx(exact.objective, abs=1e-7)
    assert -1e-12 <= gap <= 1e-6
    assert found.lam == pytest.approx(exact.lam, abs=1e-3)


def test_mutants_of_files_end_in_one_line(tmp_path):
    """The fuzz runs, a few of each; ``python -m benchmarks.fuzz_files`` runs more."""
    fuzz_files.mp.mp.dps = fuzz_files.DIGITS
    attempts = (
        ("models", fuzz_files.try_model, fuzz_files.sound_models()),
        ("proofs", fuzz_files.try_proof, fuzz_files.sound_problems()),
    )
    for kind, attempt, sound in attempts:
        assert fuzz_files.run(kind, 150, 50_000, attempt, sound) == 0
