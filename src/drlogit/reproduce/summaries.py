"""Rows condensed to what tables, figures and findings say."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .accuracy import Trial
from .speed import Method, Speed
from .store import Row
from .tasks import Results, Task


@dataclass(frozen=True)
class Timing:
    """A method on a data set.

    ``seconds`` is the mean over trials, of the processor; ``gap`` the largest certified one;
    ``objective`` and ``lam`` are those of the first trial.  ``complete`` says that no run was
    stopped by its limit on time.
    """

    method: str
    seconds: float
    spread: float
    trials: int
    gap: float
    objective: float
    lam: float
    complete: bool


def timing(results: Results, tasks: Sequence[Task], data: str, method: Method) -> Timing | None:
    """The runs of a method on a data set; None where it has no answer."""
    wanted = [
        task
        for task in tasks
        if isinstance(task, Speed) and (task.data, task.method) == (data, method.name)
    ]
    rows = [row for row in results.of(wanted) if row["gap"] is not None]
    if not rows:
        return None
    seconds = [row["cpu_seconds"] for row in rows]
    return Timing(
        method=method.name,
        seconds=statistics.fmean(seconds),
        spread=statistics.stdev(seconds) if len(rows) > 1 else math.nan,
        trials=len(rows),
        gap=max(row["gap"] for row in rows),
        objective=rows[0]["objective"],
        lam=rows[0]["lam"],
        complete=all(row["cpu_seconds"] <= row["limit"] for row in rows),
    )


def no_answer(results: Results, tasks: Sequence[Task], data: str, method: Method) -> str:
    """Why a method has no time on a data set, in a word or two."""
    wanted = [
        task
        for task in tasks
        if isinstance(task, Speed) and (task.data, task.method) == (data, method.name)
    ]
    if not wanted:
        return "–"
    if any(row["status"] == "TIMEOUT" for row in results.of(wanted)):
        return f"> {wanted[0].limit:g} s"
    obstacle = wanted[0].obstacle(results)
    return "not run" if obstacle is None else obstacle.short


def size_row(results: Results, tasks: Sequence[Task], data: str) -> Row | None:
    """A row that tells the size of a data set."""
    rows = results.of(task for task in tasks if isinstance(task, Speed) and task.data == data)
    return rows[0] if rows else None


@dataclass(frozen=True)
class Mean:
    """A mean over trials and its standard error."""

    value: float
    error: float
    trials: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of numbers; the error of a single one is not known, and nothing of none."""
        if not values:
            return cls(math.nan, math.nan, 0)
        error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(statistics.fmean(values), error, len(values))


def accuracies(results: Results, tasks: Sequence[Task], data: str, model: str) -> dict[int, Row]:
    """The rows of a model on a data set, by trial."""
    return {
        task.trial: row
        for task in tasks
        if isinstance(task, Trial) and (task.data, task.model) == (data, model)
        for row in results.of([task])
    }


def difference(better: dict[int, Row], worse: dict[int, Row]) -> Mean:
    """How much more accurate one model is than another on the same splits."""
    common = sorted(better.keys() & worse.keys())
    return Mean.of([better[t]["accuracy"] - worse[t]["accuracy"] for t in common])


def accuracy(rows: dict[int, Row]) -> Mean:
    """Mean accuracy over the trials."""
    return Mean.of([row["accuracy"] for row in rows.values()])
