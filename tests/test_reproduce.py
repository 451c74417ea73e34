"""The paper's experiments: rows survive a kill, stale ones are not mixed in, the page tells all."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import drlogit
from cheap_tasks import results_in, squares
from drlogit.cli import main
from drlogit.reproduce import data, experiments, findings, paper, runner, store, summaries
from drlogit.reproduce.accuracy import DRLR, Search, Split, Trial, split
from drlogit.reproduce.curves import METHODS as CURVES
from drlogit.reproduce.curves import Curve
from drlogit.reproduce.environment import environment
from drlogit.reproduce.speed import CLARABEL, INTERIOR_POINT, PUBLISHED_ADAPTIVE, Speed
from drlogit.reproduce.table import Table
from drlogit.reproduce.tasks import Results, Task
from drlogit.reproduce.worker import Worker, WorkerDiedError

SMALL = data.synthetic(40, 3)


def speed(method, trial=0, limit=20.0, budget=1e9, data=SMALL) -> Speed:
    return Speed.of("table1", data, method, trial, limit, budget)


def short(task: Task, results: Results) -> str:
    obstacle = task.obstacle(results)
    return "" if obstacle is None else obstacle.short


# --- rows -----------------------------------------------------------------------------------


def test_rows_come_back_as_they_were(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"kappa": math.inf, "gap": 1e-300, "name": "ε\n|", "list": [1, 2.5]}, {"none": None}]
    store.append(path, rows[:1])
    store.append(path, rows[1:])
    assert store.read(path) == store.Contents(rows)
    assert store.read(tmp_path / "nothing.jsonl") == store.Contents([])


def test_a_file_cut_anywhere_gives_whole_rows_only_and_can_be_continued(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"a": 1, "b": "{}", "c": math.inf}, {"a": 2, "b": "ε"}, {"a": 3}]
    store.append(path, rows)
    contents = path.read_bytes()
    ends = [i for i, byte in enumerate(contents) if byte == ord("\n")]
    for length in range(len(contents) + 1):
        path.write_bytes(contents[:length])
        found = store.read(path)
        assert found.rows == rows[: len(found.rows)]
        # Whole rows count, with or without their line end.
        whole = [end for end in ends if end <= length]
        assert len(found.rows) == len(whole)
        assert found.damaged == (length > max(whole, default=-1) + 1)
        store.append(path, [{"a": 4}])
        assert store.read(path).rows == [*found.rows, {"a": 4}]


@pytest.mark.parametrize("line", [b"[1]", b"3", b"null", b"\xff\xfe", b'{"a": NaN}', b'{"a": 1'])
def test_other_lines_are_no_rows(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(line + b"\n")
    assert store.read(path) == store.Contents([], damaged=1)


KILLED = """
from pathlib import Path
from cheap_tasks import results_in, squares
from drlogit.reproduce import runner
tasks, results = squares(20_000), results_in(Path({folder!r}))
print("ready", flush=True)
runner.run(tasks, results, lambda line: None)
"""


def test_killed_at_random_moments_it_goes_on_with_whole_rows(tmp_path):
    script = KILLED.format(folder=str(tmp_path))
    places = [str(Path(__file__).parent), str(Path(drlogit.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    known: dict[str, store.Row] = {}
    pauses = random.Random(0)
    path = tmp_path / "rows.jsonl"
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            # However slow the machine is, it is killed in the middle of its work.
            before = path.stat().st_size if path.exists() else 0
            while not path.exists() or path.stat().st_size < before + 2000:
                assert process.poll() is None, "it ended before it could be killed"
                time.sleep(0.001)
            time.sleep(pauses.uniform(0.0, 0.1))
            process.kill()
        found = store.read(path).rows
        names = {task.name: task.number for task in squares(len(found))}
        # Each task once, in order, and every row that counts is whole and right.
        assert [row["task"] for row in found] == list(names)
        assert all(row["square"] == names[row["task"]] ** 2 for row in found)
        assert all(len(row["filler"]) == 200 and row["threads"] == 1 for row in found)
        assert known.items() <= {row["task"]: row for row in found}.items()
        assert len(found) > len(known)
        known = {row["task"]: row for row in found}


def test_rows_of_other_versions_and_machines_are_left_aside(tmp_path):
    assert runner.run(squares(3), results_in(tmp_path), print) == 3
    assert runner.run(squares(5), results_in(tmp_path), print) == 2
    assert runner.run(squares(5), results_in(tmp_path), print) == 0
    for field in ("drlogit_source", "cpu", "numpy", "python", "threads"):
        other = results_in(tmp_path, **{field: "other"})
        assert (len(other), other.stale) == (0, 5)
    other = results_in(tmp_path, cpu="other")
    assert runner.run(squares(2), other, print) == 2
    assert (len(results_in(tmp_path)), results_in(tmp_path).stale) == (5, 2)
    assert len(Results.of_last_run(tmp_path / "rows.jsonl")) == 2


def test_other_settings_are_another_task():
    task = speed(INTERIOR_POINT)
    changes = {"tol": 1e-8, "epsilon": 0.2, "trial": 1, "options": "{}x", "limit": 1.0, "data": "a"}
    names = {
        speed(INTERIOR_POINT).name,
        *(replace(task, **{k: v}).name for k, v in changes.items()),
    }
    assert len(names) == 1 + len(changes)


# --- worker ---------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="limits on the processor are POSIX")
def test_worker_ends_what_takes_too_long_and_survives_what_dies():
    worker = Worker()
    try:
        assert worker.call(abs, -3, 10.0) == 3
        with pytest.raises(ValueError, match="invalid literal"):
            worker.call(int, "three", 10.0)
        with pytest.raises(WorkerDiedError, match="ended with code 9"):
            worker.call(os._exit, 9, 10.0)
        # It holds the interpreter's lock all the time, so only the system can end it.
        with pytest.raises(TimeoutError, match="no answer within"):
            worker.call(sum, range(10**12), 0.1)
    finally:
        worker.close()


# --- what the tasks measure -----------------------------------------------------------------


def test_speed_rows_hold_time_gap_and_the_optimum(tmp_path):
    results = results_in(tmp_path)
    row = results.add(task := speed(INTERIOR_POINT), speed(INTERIOR_POINT).run(results))
    X, y = data.load(SMALL)
    best = drlogit.solve(X, y, epsilon=0.1, kappa=1.0, fit_intercept=False)
    assert row["objective"] == pytest.approx(best.objective, abs=1e-12)
    assert 0.0 <= row["gap"] <= 1e-6
    assert row["cpu_seconds"] > 0.0
    assert (row["n_samples"], row["n_features"], row["sparsity"]) == (40, 3, 0.0)
    assert results_in(tmp_path).get(task) == row


def test_a_method_stops_at_its_limit_and_within_its_budget(tmp_path):
    results = results_in(tmp_path)
    stopped = speed(PUBLISHED_ADAPTIVE, limit=0.0)
    row = results.add(stopped, stopped.run(results))
    assert (row["status"], row["gap"] > 0.0) == ("STOPPED", True)
    timing = summaries.timing(results, [stopped], SMALL, PUBLISHED_ADAPTIVE)
    assert timing is not None
    assert not timing.complete
    assert speed(PUBLISHED_ADAPTIVE, trial=1).obstacle(results) is None
    assert short(speed(PUBLISHED_ADAPTIVE, trial=1, budget=1e-9), results) == "budget used up"


def test_solvers_off_the_shelf_are_left_out_where_they_cannot_be(tmp_path, monkeypatch):
    pytest.importorskip("clarabel")
    results = results_in(tmp_path)
    task = speed(CLARABEL)
    assert task.obstacle(results) is None
    results.add(task, {"status": "TIMEOUT", "gap": None, "cpu_seconds": 1.0, "n_products": 100})
    assert short(speed(CLARABEL, data=data.synthetic(50, 3)), results) == "too slow"
    assert speed(CLARABEL, data=data.synthetic(5, 3)).obstacle(results) is None
    monkeypatch.setattr("drlogit.reproduce.speed._LARGEST", 10)
    assert short(speed(CLARABEL, data=data.synthetic(5, 3)), results) == "too large"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert short(speed(CLARABEL), results) == "not installed"


def test_curves_end_near_the_optimum_and_never_below_it(tmp_path):
    results = results_in(tmp_path)
    for method in CURVES:
        task = Curve("figure3", SMALL, method, 100)
        row = results.add(task, task.run(results))
        assert row["at"][-1] == 100
        assert min(row["above"]) >= 0.0
        assert row["above"][-1] < (1e-2 if method == "subgradient" else 1e-3)
        assert row["gap"] < 1e-9
    assert (
        "of 1 panels"
        in findings.of_curves(results, [Curve("figure3", SMALL, m, 100) for m in CURVES])[0]
    )


@pytest.fixture
def _two_classes(monkeypatch):
    """A set that is easy to tell apart, in place of the real ones."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2 == 0, 1, -1)
    X = rng.standard_normal((60, 3)) + y[:, None]
    monkeypatch.setattr("drlogit.reproduce.accuracy.load", lambda name: (X, y))
    monkeypatch.setattr("drlogit.reproduce.tasks.why_missing", lambda name: None)


@pytest.mark.usefixtures("_two_classes")
def test_trials_train_on_sixty_percent_and_search_first(tmp_path):
    first: Split = split("any", 0)
    assert (first.y.size, first.y_test.size) == (36, 24)
    assert not np.array_equal(first.X, split("any", 1).X)
    results = results_in(tmp_path)
    tuned = Trial("table3", "any", "DRLR, tuned", (0.01, 0.1), (1.0, 7.0), 0)
    assert [search.kappa for search in tuned.searches] == [1.0, 7.0]
    assert short(tuned, results) == "not searched"
    for search in tuned.searches:
        row = results.add(search, search.run(results))
        assert row["score"] == max(row["scores"]) > 0.8
        assert row["chosen"] in (0.01, 0.1)
    assert tuned.obstacle(results) is None
    row = results.add(tuned, tuned.run(results))
    strength, kappa = tuned.chosen(results)
    model = drlogit.solve(first.X, first.y, epsilon=strength, kappa=kappa, fit_intercept=False)
    right = np.mean(np.sign(first.X_test @ model.coef) == first.y_test)
    assert row["accuracy"] == pytest.approx(right)
    assert 0.0 <= row["gap"] <= 1e-6
    ridge = Search("table3", "any", None, (1e-3, 1e3))
    assert results.add(ridge, ridge.run(results))["score"] > 0.8


def test_of_equal_scores_the_simplest_model_is_taken(tmp_path):
    results = results_in(tmp_path)
    tuned = Trial("table3", "any", "DRLR, tuned", (0.01, 0.1), (1.0, 7.0), 0)
    for search in tuned.searches:
        results.add(search, {"score": 0.9, "chosen": 0.1})
    assert tuned.chosen(results) == (0.1, 7.0)
    fixed = Trial("table3", "any", DRLR.name, DRLR.strengths, DRLR.kappas, 0)
    assert fixed.chosen(results) == (0.3, 7.0)


# --- what is said ---------------------------------------------------------------------------


def accuracy_rows(results: Results, gains: dict[str, tuple[float, float]]) -> list[Task]:
    """Trials with given differences RLR - LR and DRLR - RLR, and a little noise."""
    tasks: list[Task] = []
    for name, (first, second) in gains.items():
        for trial in range(4):
            for model, value in (("LR", 0.0), ("RLR", first), ("DRLR", first + second)):
                task = Trial("table3", name, model, (0.3,), (7.0,), trial)
                noise = 1e-4 * (trial % 2) * (model == "DRLR")
                results.add(task, {"accuracy": 0.8 + value + noise})
                tasks.append(task)
    return tasks


def test_findings_count_the_sets_where_the_order_holds(tmp_path):
    gains = {"a": (0.01, 0.01), "b": (0.01, -0.01), "c": (-0.01, 0.01)}
    results = results_in(tmp_path)
    (said,) = findings.of_accuracy(results, accuracy_rows(results, gains))
    assert "DRLR ≥ RLR ≥ LR in 1 of 3 sets" in said
    assert (
        "DRLR is more accurate than RLR by over two standard errors in 2 of 3 and less in 1" in said
    )


def test_findings_name_the_rule_that_does_not_solve(tmp_path):
    results = results_in(tmp_path)
    tasks = [speed(INTERIOR_POINT), speed(PUBLISHED_ADAPTIVE)]
    shown = {"status": "OPTIMAL", "cpu_seconds": 1.0, "lam": 1.0, "n_samples": 8124, "sparsity": 0}
    results.add(tasks[0], {**shown, "gap": 1e-7, "objective": 0.5})
    results.add(tasks[1], {**shown, "gap": 0.1, "objective": 0.5625, "cpu_seconds": 21.0})
    said = findings.of_times(results, tasks)
    assert "interior point on 1 of 1" in said[0]
    assert not any("too high" in finding for finding in said)  # stopped, so nobody knows its end
    results.add(tasks[1], {**shown, "gap": 0.1, "objective": 0.5625})
    said = findings.of_times(results, tasks)
    assert any(
        "on 1 of the 1 where it ended; worst (40, 3), 0.062 too high" in finding for finding in said
    )


def test_tables_as_markdown_and_csv():
    table = Table("t", "A table", ["x", "y"], records=[{"a": 1}, {"a": 2, "b": math.inf}])
    table.add("1 s", "-2|3")
    assert "| 1\u00a0s | \u20112\\|3 |" in table.markdown()
    assert list(csv.DictReader(table.csv().splitlines())) == [
        {"a": "1", "b": ""}, {"a": "2", "b": "inf"}
    ]  # fmt: skip


def test_experiments_hold_what_the_paper_has():
    full = {name: experiments.EXPERIMENTS[name](False) for name in experiments.EXPERIMENTS}
    sets = {name: {task.data for task in tasks} for name, tasks in full.items()}
    assert sets["table1"] == {data.synthetic(*size) for size in paper.TABLE_1}
    assert sets["table2"] == set(paper.TABLE_2) == {f"a{k}a" for k in range(1, 10)}
    assert sets["table3"] == set(paper.TABLE_3)
    assert (len(sets["table1"]), len(sets["table3"]), len(sets["table4"])) == (12, 10, 18)
    assert len(sets["figure3"]) == 6
    assert sets["table2"] | sets["table3"] | sets["table4"] <= set(drlogit.datasets.names())
    trials = {t.trial for t in full["table3"] if isinstance(t, Trial)}
    assert trials == set(range(30))
    for name, tasks in full.items():
        quick = experiments.EXPERIMENTS[name](True)
        assert 0 < len(quick) < len(tasks)
        # What a trial needs comes before it.
        seen: set[Task] = set()
        for task in tasks:
            assert task not in seen
            assert seen.issuperset(getattr(task, "searches", ()))
            seen.add(task)
    together = experiments.tasks_of(["table1", "figure2"], True)
    assert together == experiments.figure2(True)


# --- the command ----------------------------------------------------------------------------


@pytest.fixture
def _tiny(monkeypatch):
    """Experiments that need no data and no time."""
    extents = {
        "table1": experiments.Extent((data.synthetic(10, 3), data.synthetic(100, 3)), 2, 0.2, 0.1),
        "table2": experiments.Extent((), 1),
        "figure3": experiments.Extent((data.synthetic(100, 10),), 1),
    }
    monkeypatch.setattr(experiments, "QUICK", extents)
    monkeypatch.setattr(experiments, "QUICK_ITERATIONS", 20)
    monkeypatch.setattr("drlogit.reproduce.experiments.SYNTHETIC_METHODS", (INTERIOR_POINT,))


@pytest.mark.usefixtures("_tiny")
def test_command_writes_a_page_and_goes_on_where_it_was(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    command = ["reproduce", "table1", "figure2", "figure3", "--quick", "--out", str(out)]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "table1 1/11 synthetic-10x3: interior point" in shown.err
    assert "Page:" in shown.out
    page = (out / "index.html").read_text("utf-8")
    assert page.count("<svg ") == 2
    assert page.count('role="img" aria-label="') == 2
    assert "A quick run" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "11 of 11" not in page  # the curves are counted apart
    assert "4 of 4 runs." in page
    for name in ("report.md", "table1.csv", "figure3.csv", "figure2.svg", "rows.jsonl"):
        assert (out / name).stat().st_size > 0
    (first, *_) = csv.DictReader((out / "table1.csv").read_text("utf-8").splitlines())
    assert float(first["largest_gap"]) <= 1e-6
    rows = (out / "rows.jsonl").read_bytes()
    assert str(tmp_path).encode() not in rows

    assert main([*command, "--json"]) == 0
    shown = capsys.readouterr()
    assert "11 rows are there already" in shown.err
    assert json.loads(shown.out)["page"] == str(out / "index.html")
    assert (out / "rows.jsonl").read_bytes() == rows

    later = {**environment(), "drlogit_source": "another"}
    monkeypatch.setattr("drlogit.reproduce.tasks.environment", lambda: later)
    assert main([*command, "--page-only"]) == 0
    assert "4 of 4 runs." in (out / "index.html").read_text("utf-8")


def test_command_says_what_is_wrong(tmp_path, capsys):
    assert main(["reproduce", "all", "--page-only", "--out", str(tmp_path)]) == 1
    assert "holds no results" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["reproduce", "table9"])
    assert "invalid choice: 'table9'" in capsys.readouterr().err


def test_data_that_are_not_to_be_had_are_left_out(tmp_path, monkeypatch, capsys):
    asked = []

    def load(name, **_):
        asked.append(name)
        raise FileNotFoundError(f"{name} is nowhere")

    monkeypatch.setattr("drlogit.datasets.load", load)
    data.why_missing.cache_clear()
    assert main(["reproduce", "table3", "table4", "--quick", "--out", str(tmp_path)]) == 0
    data.why_missing.cache_clear()
    told = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert len(told) == len(asked) == len(set(asked)) == 7  # each was looked for, and told, once
    assert told[0].endswith("a1a: left out, a1a is nowhere")
    assert "0 of 24 runs; the others, no data: 24." in (tmp_path / "report.md").read_text()
    assert (tmp_path / "index.html").exists()
