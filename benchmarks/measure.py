"""One case measured: competitors side by side under the same limits, or their memory."""

from __future__ import annotations

import dataclasses
import gc
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import drlogit

from .cases import Case, load
from .competitors import Outcome, competitor
from .environment import environment, thread_limits
from .store import Row

#: Names this process in its rows: times compare within one run.
RUN = uuid.uuid4().hex[:8]


@dataclasses.dataclass(frozen=True)
class Clocked:
    """One run of one competitor; no time where it failed."""

    outcome: Outcome
    seconds: float | None
    cpu_seconds: float | None
    peak_bytes: int


def measure(case: Case, *, threads: int, budget: float) -> list[Row]:
    """The rows of a case, one for each competitor."""
    rows = memory_rows(case, threads) if case.memory else timed_rows(case, threads, budget)
    return [{**row, **circumstances(threads)} for row in rows]


def timed_rows(case: Case, threads: int, budget: float) -> list[Row]:
    """Time the competitors in turns (A B A B ...), so that all meet the same disturbances.

    ``budget`` is what one competitor may take for its repetitions, in seconds: whoever needs
    longer for the warm-up alone is not repeated, and the warm-up counts.
    """
    X, y = load(case.data, case.storage)
    for name in case.competitors:
        warm_up(name, case)
    runs: dict[str, list[Clocked]] = {}
    with thread_limits(threads):
        for name in case.competitors:
            runs[name] = [clock(name, X, y, case)]
        left = {
            name: min(case.repeats, int(budget / max(first.seconds, 1e-9)))
            for name, (first,) in runs.items()
            if case.repeats > 1 and first.seconds is not None
        }
        for name, count in left.items():
            if count:
                runs[name].clear()
        for turn in range(max(left.values(), default=0)):
            for name in case.competitors:
                if turn < left.get(name, 0):
                    runs[name].append(clock(name, X, y, case))
    return [describe(case, name, X, y, runs[name]) for name in case.competitors]


def warm_up(name: str, case: Case) -> None:
    """Import and compile what the competitor needs, on a problem of no size."""
    X, y = drlogit.datasets.make_synthetic(60, 5, random_state=0)
    # Not an answer anybody looks at: whatever fails here fails again on the clock.
    attempt(name, sp.csr_matrix(X) if case.storage == "csr" else X, y, case)


def clock(name: str, X: Any, y: Any, case: Case) -> Clocked:
    """Fit on the clock, judge off it."""
    gc.collect()
    started, cpu_started = time.perf_counter(), time.process_time()
    fitted = attempt(name, X, y, case)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    reached = peak_bytes()  # before judging, which needs memory of its own
    if isinstance(fitted, Exception):
        # The kind only: messages may hold paths of this machine.
        outcome = Outcome("", "ERROR", info={"error": type(fitted).__name__})
        return Clocked(outcome, None, None, reached)
    return Clocked(competitor(name).judge(X, y, fitted, case), seconds, cpu_seconds, reached)


def attempt(name: str, X: Any, y: Any, case: Case) -> Any:
    """What the competitor returns or raises: one that breaks must not end the others' run."""
    try:
        return competitor(name).fit(X, y, case)
    except Exception as error:
        return error


def describe(case: Case, name: str, X: Any, y: Any, runs: list[Clocked]) -> Row:
    """A flat row: the problem, the best run, and how much the others differ from it."""
    best = min(runs, key=lambda run: float("inf") if run.seconds is None else run.seconds)
    failed = best.seconds is None
    outcome = dataclasses.asdict(best.outcome)
    info = outcome.pop("info")
    nonzeros = X.nnz if sp.issparse(X) else np.count_nonzero(X)
    return {
        **case.settings,
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "density": round(nonzeros / (X.shape[0] * X.shape[1]), 6),
        "solver": name,
        **outcome,
        **{f"info_{key}": value for key, value in info.items()},
        "seconds": best.seconds,
        "median_seconds": None if failed else statistics.median(run.seconds or 0 for run in runs),
        "cpu_seconds": None if failed else min(run.cpu_seconds or 0 for run in runs),
        "best_of": len(runs),
    }


def memory_rows(case: Case, threads: int) -> Iterator[Row]:
    """Each competitor in a fresh process, so that nobody inherits another's peak."""
    for name in case.competitors:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield pool.submit(memory_row, case, name, threads).result()


def memory_row(case: Case, name: str, threads: int) -> Row:
    """The peak of one fit, and what was resident before it and before the data."""
    warm_up(name, case)
    gc.collect()
    before_data = resident_bytes()
    X, y = load(case.data, case.storage)
    gc.collect()
    before_fit = resident_bytes()
    reset_peak()
    with thread_limits(threads):
        run = clock(name, X, y, case)
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return {
        **describe(case, name, X, y, [run]),
        "data_bytes": sum(part.nbytes for part in parts) + y.nbytes,
        "before_data_bytes": before_data,
        "before_fit_bytes": before_fit,
        "peak_bytes": run.peak_bytes,
    }


def resident_bytes() -> int:
    """What this process has in memory now."""
    return _proc_status("VmRSS") or _largest_resident()


def peak_bytes() -> int:
    """The most it had since :func:`reset_peak`, or where that is impossible, ever."""
    return _proc_status("VmHWM") or _largest_resident()


def reset_peak() -> None:
    """Forget the peak of loading (Linux; elsewhere the data are what loading takes)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _proc_status(name: str) -> int:
    """A line of Linux's report on this process, in bytes; 0 if there is none."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0


def _largest_resident() -> int:
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def circumstances(threads: int) -> Row:
    """Where, when and with what it was measured."""
    now = datetime.now(timezone.utc)
    return {"threads": threads, "run": RUN, "date": f"{now:%Y-%m-%dT%H:%MZ}", **environment()}
