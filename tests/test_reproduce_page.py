"""What the page says of rows that are known: every cell, finding and omission, without a solver."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from cheap_tasks import results_in, squares
from drlogit.reproduce import experiments, findings, other_tables, report, runner, summaries
from drlogit.reproduce import time_tables as times
from drlogit.reproduce.accuracy import (
    DRLR,
    MODELS,
    PLAIN,
    RIDGE,
    RLR,
    TUNED_DRLR,
    TUNED_RLR,
    Search,
    Trial,
)
from drlogit.reproduce.curves import METHODS as CURVES
from drlogit.reproduce.curves import PAPERS_PENALTY, Curve
from drlogit.reproduce.speed import (
    ADAPTIVE,
    CLARABEL,
    CONSTANT,
    INTERIOR_POINT,
    IPOPT,
    PUBLISHED_ADAPTIVE,
    Speed,
)
from drlogit.reproduce.tasks import Obstacle, Task
from drlogit.reproduce.worker import WorkerDiedError

LIMIT = 20.0


def measured(seconds: float, gap: float | None = 1e-7, objective: float = 0.5, lam: float = 1.0):
    return {
        "status": "TIMEOUT" if gap is None else "OPTIMAL", "cpu_seconds": seconds, "gap": gap,
        "objective": objective, "lam": lam, "n_samples": 1605, "n_features": 119,
        "sparsity": 0.8834, "n_products": 100,
    }  # fmt: skip


def speeds(results, experiment: str, data: str, rows) -> list[Task]:
    """Tasks with their rows; a method without rows is planned but was not run."""
    tasks: list[Task] = []
    for method, found in rows:
        for trial in range(2):
            task = Speed.of(experiment, data, method, trial, LIMIT, 1e9)
            tasks.append(task)
            if trial < len(found):
                results.add(task, found[trial])
    return tasks


def cells(table, row: int = 0) -> dict[str, str]:
    """A row of a table by the heads of its columns, with ordinary spaces and hyphens."""
    plain = [cell.replace("\u00a0", " ").replace("\u2011", "-") for cell in table.rows[row]]
    return dict(zip(table.columns, plain, strict=True))


# --- tables of times ------------------------------------------------------------------------


@pytest.fixture
def adult(tmp_path, monkeypatch):
    """Table 2 on a1a: one method twice, one once, one out of time, one not run, one stopped."""
    monkeypatch.setattr("drlogit.reproduce.tasks.why_missing", lambda data: None)
    results = results_in(tmp_path)
    tasks = speeds(
        results, "table2", "a1a",
        [
            (INTERIOR_POINT, [measured(0.1), measured(0.3, gap=3e-7)]),
            (ADAPTIVE, [measured(2.0, gap=9e-7)]),
            (CONSTANT, []),
            (PUBLISHED_ADAPTIVE, [measured(21.0, gap=0.2, objective=0.6, lam=0.7)]),
            (CLARABEL, [measured(LIMIT, gap=None)]),
            (IPOPT, [measured(10.0, gap=2e-6), measured(12.0, gap=1e-6)]),
        ],
    )  # fmt: skip
    return results, tasks


def test_times_stand_with_their_gaps_and_ratios(adult):
    shelf, variants, rule = times.table2(*adult)
    found = cells(shelf)
    assert found["data"] == "a1a"
    assert found["samples"] == "1605"
    assert (found["paper: YALMIP"], found["paper: LP-ADMM"], found["paper: ratio"]) == (
        "25.63 s", "2.93 s", "9 ×",
    )  # fmt: skip
    assert found["interior point"] == "0.20 ± 0.14 s [3e-7]"
    assert found["LP-ADMM, balanced ρ"] == "2.0 s [9e-7] ×1"  # of two that were planned
    assert found["Clarabel"] == "> 20 s"
    assert found["IPOPT"] == "11 ± 1 s [2e-6]"
    assert found["off the shelf / LP-ADMM"] == "5.5 ×"
    assert found["off the shelf / interior point"] == "55 ×"
    assert cells(variants)["LP-ADMM, constant ρ"] == "not run"
    assert cells(variants)["paper's LP-ADMM, ρ = 0.001·1.05ᵏ"] == "≥ 21 s [2e-1] ×1"
    ends = cells(rule)
    assert (ends["λ"], ends["λ, paper's rule"], ends["λ, published code"]) == (
        "1.000", "0.700 *", "1.446",
    )  # fmt: skip
    assert (ends["optimum"], ends["paper's rule"]) == ("0.500000", "0.600000")
    # Two columns have the same head: of the paper's rule here, of its code there.
    assert [c.replace("\u00a0", " ").replace("\u2011", "-") for c in rule.rows[0]][-3:] == [
        "1e-1 (20.0 %)", "0.584570", "8e-2 (16.9 %)",
    ]  # fmt: skip
    numbers = {record["method"]: record for record in shelf.records}
    assert numbers["interior-point"]["cpu_seconds"] == 0.2
    assert numbers["interior-point"]["paper_yalmip"] == 25.63
    assert numbers["adaptive"]["standard_deviation"] is None
    assert numbers["published-adaptive"]["stopped_at_limit"] is True
    assert "clarabel" not in numbers


def test_findings_on_times(adult):
    results, tasks = adult
    certified, slower, slowest = findings.of_times(results, tasks)
    assert "interior point on 1 of 1 (largest 3e-07)" in certified
    assert "IPOPT on 0 of 1 (largest 2e-06)" in certified
    assert slower.endswith("takes 5.5 (a1a) to 5.5 (a1a) times as long as LP-ADMM, balanced ρ.")
    assert slowest.endswith("takes 55 (a1a) to 55 (a1a) times as long as interior point.")
    published = Speed.of("table2", "a1a", PUBLISHED_ADAPTIVE, 0, LIMIT, 1e9)
    results.add(published, measured(1.0, gap=1e-3, objective=0.5 + 2e-6))
    assert findings.of_times(results, tasks)[-1].endswith(
        "at most 2.0e-06 above the optimum (a1a)."
    )


def test_sizes_that_are_not_the_papers_are_named(tmp_path):
    results = results_in(tmp_path)
    tasks = speeds(results, "table4", "mushrooms", [(INTERIOR_POINT, [measured(0.1)])])
    tasks += speeds(results, "table4", "w1a", [(INTERIOR_POINT, [])])
    shelf, *_, sizes = times.table4(results, tasks)
    assert cells(shelf)["paper: LP-ADMM"] == "8.47 s"
    assert cells(shelf)["Clarabel"] == "–"  # not planned here
    found = cells(sizes)
    assert (found["samples"], found["paper: samples"]) == ("1605", "8123")
    assert (found["share of zeros"], found["paper: share of zeros"]) == ("0.8834", "0.8125")
    assert cells(sizes, 1)["samples"] == ""  # no row yet
    assert findings.of_sizes(results, tasks) == [
        "Does not agree: mushrooms has 1605 samples, the paper says 8123.",
        "Does not agree: mushrooms has a share of zeros of 0.8834, the paper says 0.8125.",
    ]
    agreeing = measured(0.1) | {"n_samples": 8123, "sparsity": 0.81251}
    results.add(tasks[0], agreeing)
    assert findings.of_sizes(results, tasks) == []


# --- accuracy -------------------------------------------------------------------------------


def trials(results, data: str, accuracies: dict[str, list[float]], **fields) -> list[Task]:
    tasks: list[Task] = []
    for model in MODELS:
        for number, accuracy in enumerate(accuracies.get(model.name, [])):
            task = Trial("table3", data, model.name, model.strengths, model.kappas, number)
            kappa = model.kappas[-1] if model.kappas else None
            row = {"accuracy": accuracy, "strength": 0.01, "kappa": kappa, "gap": 1e-7, **fields}
            results.add(task, row)
            tasks.append(task)
    return tasks


def test_accuracies_are_compared_on_the_same_splits(tmp_path):
    results = results_in(tmp_path)
    tasks = trials(
        results, "a1a",
        {
            PLAIN.name: [0.80, 0.84], RLR.name: [0.81, 0.85], DRLR.name: [0.83, 0.85],
            RIDGE.name: [0.86], TUNED_RLR.name: [0.85], TUNED_DRLR.name: [0.855],
        },
    )  # fmt: skip
    tasks += trials(results, "a2a", {PLAIN.name: [0.8]})  # nothing to compare with yet
    given, tuned = other_tables.table3(results, tasks)
    assert len(given.rows) == len(tuned.rows) == 1
    found = cells(given)
    assert (found["paper: LR"], found["paper: DRLR"]) == ("83.13", "84.01")
    assert (found["LR"], found["DRLR"], found["trials"]) == ("82.00 ± 2.00", "84.00 ± 1.00", "2")
    # The noise of the splits, which both have, is not in the difference.
    assert (found["RLR − LR"], found["DRLR − RLR"]) == ("+1.00 ± 0.00", "+1.00 ± 1.00")
    found = cells(tuned)
    assert (found["ℓ2 LR: penalty"], found["RLR: ε"], found["DRLR: ε, κ"]) == (
        "0.01", "0.01", "0.01, 50",
    )  # fmt: skip
    assert (found["RLR − ℓ2 LR"], found["DRLR − RLR"]) == ("-1.00", "+0.50")
    assert given.records[0] == {
        "data": "a1a", "model": "LR", "accuracy": pytest.approx(0.82),
        "standard_error": pytest.approx(0.02), "trials": 2,
    }  # fmt: skip
    assert tuned.records[0]["standard_error"] is None


def test_findings_on_accuracy_name_loose_fits_and_ridge(tmp_path):
    results = results_in(tmp_path)
    both = {TUNED_DRLR.name: [0.90, 0.92], RIDGE.name: [0.85, 0.86]}
    tasks = trials(results, "a1a", both)
    tasks += trials(results, "a2a", {DRLR.name: [0.8]}, gap=2e-3)
    loose, ridge = findings.of_accuracy(results, tasks)
    assert (
        loose
        == "4 of 5 fits are certified to 1e-06; the others, of DRLR, have gaps of up to 2e-03."
    )
    assert "tuned DRLR is more accurate than tuned ℓ2 LR by over two standard errors in 1" in ridge
    assert summaries.Mean.of([]).trials == 0
    assert math.isnan(summaries.Mean.of([]).value)


def test_lines_for_who_waits(tmp_path):
    search = Search("table3", "a1a", None, (0.1, 1.0))
    assert search.line({"chosen": 0.1, "score": 0.81}).startswith("ℓ2 penalty = 0.1 chosen")
    trial = Trial("table3", "a1a", RIDGE.name, (0.1,), (), 3)
    assert trial.line({"accuracy": 0.8, "gap": None}) == "ℓ2 LR, tuned, trial 3: accuracy 80.00%"
    slow = Speed.of("table1", "synthetic-10x3", CLARABEL, 0, 3.0, 1.0)
    assert slow.line(measured(3.0, gap=None)) == "Clarabel: out of time after 3 s"


# --- curves ---------------------------------------------------------------------------------


def curve(above: list[float]) -> dict:
    seconds = [0.1, 0.2, 0.3, 0.4]
    return {"at": [1, 2, 3, 4], "above": above, "at_seconds": seconds, "cpu_seconds": 0.4, "gap": 0}


def test_curves_that_stand_still_are_named(tmp_path):
    results = results_in(tmp_path)
    tasks = [Curve("figure3", "synthetic-10x3", method, 4) for method in CURVES]
    papers = next(task for task in tasks if task.method == PAPERS_PENALTY)
    for task in tasks[:-1]:
        results.add(task, curve([1.0, 0.1, 0.01, 0.001]))
    results.add(papers, curve([1.0, 0.1001, 0.1, 0.1]))
    assert findings.of_curves(results, tasks) == []  # a method is missing
    (table,) = other_tables.figure3(results, tasks)
    assert cells(table, len(CURVES) - 1)["(10, 3)"] == "–"
    assert cells(table)["(10, 3)"] == "1e-3, 1e+02 ms"
    results.add(tasks[-1], curve([1.0, 1.0, 1.0, 1.0]))
    ended, stands = findings.of_curves(results, tasks)
    assert f"{tasks[-1].method} is highest in 1" in ended
    assert stands.endswith("stand still in 1 panels, 1e-01 to 1e-01 above the optimum.")
    results.add(papers, curve([1.0, 0.11, 0.1, 0.1]))  # a tenth in the last half is no standstill
    assert len(findings.of_curves(results, tasks)) == 1


# --- what was not run -----------------------------------------------------------------------


@dataclass(frozen=True)
class Awkward(Task):
    """A task that is in the way, or fails."""

    kind: str
    number: int

    def obstacle(self, results):
        return Obstacle("too large", "it would fill the memory") if self.kind == "large" else None

    def run(self, results):
        if self.kind == "memory":
            raise MemoryError
        raise WorkerDiedError("the process of the solver ended with code -9")

    def line(self, row):
        raise AssertionError("it has no row")


def test_a_task_that_fails_or_must_not_run_is_said_and_the_others_go_on(tmp_path):
    results, lines = results_in(tmp_path), []
    kinds = ("large", "memory", "died", "large")
    awkward = [Awkward("table1", "a", kind, number) for number, kind in enumerate(kinds)]
    tasks = [*awkward, *squares(2)]
    assert runner.run(tasks, results, lines.append) == 2
    said = [line.split(": ", 1)[1] for line in lines]
    assert said[:3] == [
        "left out, it would fill the memory",  # once, not for every task that it stops
        "failed, out of memory",
        "failed, the process of the solver ended with code -9",
    ]
    assert len(lines) == 5
    assert len(results) == 2
    assert report._progress(tasks, results) == (
        "2 of 6 runs; the others, too large: 2, not run yet: 2."
    )


def test_the_page_of_every_experiment(tmp_path, monkeypatch):
    """All sections of a quick run from made-up rows; figures without matplotlib are said."""
    results = results_in(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"task": "old"}\n{"broken\n', "utf-8")
    results = results_in(tmp_path)
    assert (results.stale, results.damaged) == (1, 1)
    names = list(experiments.EXPERIMENTS)
    for task in experiments.tasks_of(names, True):
        if isinstance(task, Speed):
            results.add(task, measured(1.0))
        elif isinstance(task, Trial):
            results.add(task, {"accuracy": 0.8, "strength": 0.1, "kappa": 1.0, "gap": None})
        elif isinstance(task, Search):
            results.add(task, {"score": 0.8, "chosen": 0.1})

    def no_figure(*_):
        raise ImportError("the figures need matplotlib")

    monkeypatch.setattr("drlogit.reproduce.figures._new_figure", no_figure)
    page, said = report.write(tmp_path, names, results, quick=True)
    text = (tmp_path / "report.md").read_text("utf-8")
    for name in ("Table 1", "Table 2", "Figure 2", "Figure 3", "Table 3", "Table 4"):
        assert f"## {name}: " in text
    assert text.count("Not drawn: the figures need matplotlib.") == 2
    assert "0 of 21 runs; the others, not run yet: 21." in text
    assert "Left aside: 1 rows of other versions or machines, 1 damaged lines." in text
    assert "DRLR ≥ RLR ≥ LR in 3 of 3 sets" in "".join(said)
    assert all(finding in text for finding in said)
    assert page.stat().st_size > 10_000
    assert (tmp_path / "table3-tuned.csv").read_text("utf-8").count("\n") == 7  # two sets
