"""The benchmark harness: rows are flat and complete, runs resume, tables tell the truth."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks import cases, runs, store, tables
from benchmarks.competitors import Competitor
from benchmarks.judge import plain_objective_and_gap
from sklearn.linear_model import LogisticRegression

import drlogit

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent

SMALL = cases.Case("paper", cases.synthetic(40, 3), ("scikit-learn", "drlogit"), repeats=2)


def row(data: str, solver: str, seconds: float | None, **fields) -> store.Row:
    """A row as it would have been measured."""
    case = cases.Case("paper", data, ("scikit-learn", "drlogit"))
    gap = None if seconds is None else 1e-7
    return {
        **case.settings, "n_samples": 10, "n_features": 2, "density": 1.0, "solver": solver,
        "status": "ERROR" if gap is None else "OPTIMAL", "gap": gap, "objective": 0.5,
        "iterations": 7, "seconds": seconds, "median_seconds": seconds, "cpu_seconds": seconds,
        "best_of": 5, "threads": 1, "run": "one", "date": "2020-01-01T00:00Z", **fields,
    }  # fmt: skip


def test_rows_are_flat_and_say_what_was_measured(tmp_path):
    assert runs.run([SMALL], tmp_path) == 1
    plain, ours = store.read(tmp_path, "paper")
    for measured in (plain, ours):
        assert all(isinstance(v, str | int | float | None) for v in measured.values())
        assert 0.0 <= measured["gap"] <= 1e-6
        assert measured["seconds"] <= measured["median_seconds"]
        assert (measured["n_samples"], measured["n_features"]) == (40, 3)
        assert (measured["best_of"], measured["threads"], measured["density"]) == (2, 1, 1.0)
        assert measured["numpy"] == np.__version__
        assert measured["cpu"]
    assert (plain["problem"], ours["problem"]) == ("plain", "robust")
    assert plain["run"] == ours["run"]
    result = drlogit.solve(*cases.load(SMALL.data, "dense"), epsilon=0.1, kappa=1.0)
    assert ours["objective"] == pytest.approx(result.objective, abs=1e-12)
    assert ours["iterations"] == result.n_iter
    assert str(ROOT) not in (tmp_path / "paper.jsonl").read_text()


def test_runs_resume(tmp_path):
    single = cases.replace(SMALL, competitors=("drlogit",), repeats=1)
    unlimited = cases.replace(single, kappa=math.inf)
    assert runs.run([single, unlimited], tmp_path) == 2
    assert runs.run([single, unlimited], tmp_path) == 0
    assert runs.run([cases.replace(single, tol=1e-8)], tmp_path) == 1
    assert runs.run([single], tmp_path, again=True) == 1
    # With a new competitor everybody is measured again, for times of one run.
    assert runs.run([cases.replace(SMALL, repeats=1)], tmp_path) == 1
    group = store.latest(store.read(tmp_path, "paper"))[
        store.case_key({**SMALL.settings, "threads": 1})
    ]
    assert set(group) == {"scikit-learn", "drlogit"}


def test_a_failure_is_a_row_without_time_and_is_tried_again(tmp_path, monkeypatch):
    def fail(X, y, case):
        raise MemoryError(str(ROOT))

    broken = Competitor(fail, None)
    monkeypatch.setattr("benchmarks.measure.competitor", lambda name: broken)
    assert runs.run([SMALL], tmp_path) == 1
    first = store.read(tmp_path, "paper")[0]
    assert (first["status"], first["info_error"]) == ("ERROR", "MemoryError")
    assert first["seconds"] is None
    assert first["gap"] is None
    assert runs.run([SMALL], tmp_path) == 1
    assert "failed" in tables.tables(tmp_path)
    store.append(tmp_path, "paper", [row("a1a", "drlogit", 456.0, gap=None)])
    assert "456" not in tables.tables(tmp_path)  # no time without its gap


def test_ratios_of_the_paper_table(tmp_path):
    store.append(tmp_path, "paper", [row("w1a", "scikit-learn", 2.0), row("w1a", "drlogit", 1.0)])
    store.append(tmp_path, "paper", [row("a1a", "scikit-learn", 1.0), row("a1a", "drlogit", 8.0)])
    text = tables.tables(tmp_path)
    assert "geometric mean 2.00×, worst 8.00×** (a1a), best 0.50×, at most 1× on 1" in text
    assert text.index("| a1a |") < text.index("| w1a |")
    # A later run replaces an earlier one.
    later = [row("a1a", s, 1.0, run="two") for s in ("scikit-learn", "drlogit")]
    store.append(tmp_path, "paper", later)
    assert "worst 1.00×** (a1a), best 0.50×" in tables.tables(tmp_path)


def test_every_table_takes_rows_of_their_suite(tmp_path):
    size = {"n_features": 100, "data_bytes": 2, "before_data_bytes": 1, "before_fit_bytes": 3}
    for suite in cases.SUITES:
        rows = [row("a1a", s, 1.0, suite=suite, peak_bytes=6, **size) for s in SMALL.competitors]
        store.append(tmp_path, suite, rows)
    text = tables.tables(tmp_path)
    assert all(f"## {tables.TABLES[suite][0]}" in text for suite in cases.SUITES)
    assert "| 1.50 | 2.50 |" in text  # memory beyond the data and with them


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
