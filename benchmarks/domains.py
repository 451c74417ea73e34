"""Features with domains on real tables: exact against the same data as numbers.

    python -m benchmarks.domains                       # all tables; rows in results/domains.jsonl
    python -m benchmarks.domains --only vote car       # some of them
    python -m benchmarks.domains --reference 600       # cutting planes with Clarabel, 600 s each
    python -m benchmarks.domains --generated 500       # small problems against cutting planes
    python -m benchmarks.domains --table               # Markdown of the rows

Text columns become one-hot groups, a missing value being a category of its own; numbers are
standardised and lie between the least and the greatest value of the data.  "As numbers" is
today's model without domains, at half of a group's cost for each of its columns, so that a
change of category costs the same.  Both are timed in turns, best of three, checks included, in
seconds of one processor.

Needs ``DRLOGIT_DATA``: the folders ``tables`` (text tables) and ``libsvm`` (a9a, mushrooms).
"""

from __future__ import annotations

import argparse
import bz2
import csv
import json
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import drlogit

from .cutting_planes import cutting_planes
from .paper import datasets

RESULTS = Path(__file__).parent / "results" / "domains.jsonl"

TABLES = (
    "breast-cancer", "tic-tac-toe", "kr-vs-kp", "mushroom", "vote", "car", "splice", "nursery",
    "lymph", "balance-scale", "credit-g", "heart-c", "hepatitis", "colic", "vehicle", "segment",
    "cmc", "spect",
)  # fmt: skip

#: Columns of a9a at which the 14 attributes of adult begin.
ADULT = (0, 5, 13, 18, 34, 39, 46, 60, 66, 71, 73, 75, 77, 82, 123)

RADII = ((0.01, math.inf), (0.05, 2.0), (0.2, 2.0), (0.2, math.inf))


@dataclass(frozen=True)
class Table:
    """Samples with their domains."""

    X: Any
    y: Any
    categories: list[list[int]]
    bounds: tuple[Any, Any] | None


def load(name: str) -> Table:
    """A table by name, "adult" and "mushrooms" from their LIBSVM files."""
    if name == "adult":
        X, y = datasets.load("a9a")
        groups = [list(range(a, b)) for a, b in pairwise(ADULT)]
        return Table(X, y, groups, None)
    if name == "mushrooms":
        X, y = datasets.load("mushrooms")
        return Table(X, y, _exclusive(X), None)
    return _text_table(name)


def _exclusive(X: Any) -> list[list[int]]:
    """Runs of columns of which no row has two."""
    columns = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    groups, taken = [[0]], columns[:, 0].copy()
    for j in range(1, columns.shape[1]):
        if (taken + columns[:, j]).max() > 1.0:
            groups.append([j])
            taken = columns[:, j].copy()
        else:
            groups[-1].append(j)
            taken += columns[:, j]
    return groups


def _text_table(name: str) -> Table:
    path = Path(os.environ["DRLOGIT_DATA"]) / "tables" / f"{name}.csv.bz2"
    with bz2.open(path, "rt", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    target = header[0] if name == "spect" else header[-1]
    labels = columns.pop(target)
    most = max(sorted(set(labels)), key=labels.count)
    parts: list[Any] = []
    groups: list[list[int]] = []
    lower: list[float] = []
    upper: list[float] = []
    for values in columns.values():
        if len(set(values)) > 0.5 * len(values) and not _numbers(values):
            continue  # an identifier: in splice twelve names occur twice
        if _numbers(values) and name != "spect":
            x = np.array([float(v) if v else math.nan for v in values])
            x = np.where(np.isnan(x), np.nanmean(x), x)
            x = (x - x.mean()) / (x.std() or 1.0)
            parts.append(x[:, None])
            lower.append(float(x.min()))
            upper.append(float(x.max()))
            continue
        kinds = sorted(set(values))
        groups.append(list(range(len(lower), len(lower) + len(kinds))))
        parts.append(np.array([[float(v == kind) for kind in kinds] for v in values]))
        lower += [-math.inf] * len(kinds)
        upper += [math.inf] * len(kinds)
    y = np.where(np.array(labels) == most, 1, -1)
    return Table(np.concatenate(parts, axis=1), y, groups, (np.array(lower), np.array(upper)))


def _numbers(values: list[str]) -> bool:
    try:
        [float(value) for value in values if value]
    except ValueError:
        return False
    return True


def _best_of(runs: int, *calls: Callable[[], Any]) -> list[tuple[Any, float]]:
    """Results and best times of calls that take turns, after one round that does not count."""
    results, times = [call() for call in calls], [math.inf] * len(calls)
    for _ in range(runs):
        for k, call in enumerate(calls):
            started = time.process_time()
            results[k] = call()
            times[k] = min(times[k], time.process_time() - started)
    return list(zip(results, times, strict=True))


def measure(name: str, epsilon: float, kappa: float) -> dict[str, Any]:
    """One row: both fits, and the audit of a plain model by both adversaries."""
    table = load(name)
    costs = np.ones(table.X.shape[1])
    for group in table.categories:
        costs[group] = 0.5
    ball: dict[str, Any] = {"epsilon": epsilon, "kappa": kappa}
    domains = {"categories": table.categories or None, "bounds": table.bounds}
    (exact, exact_time), (numbers, numbers_time) = _best_of(
        3,
        lambda: drlogit.solve(table.X, table.y, **ball, **domains),
        lambda: drlogit.solve(table.X, table.y, **ball, feature_costs=costs),
    )
    started = time.process_time()
    proven = drlogit.verify(exact, table.X, table.y)
    verify_time = time.process_time() - started
    assert proven.ok, f"{exact} is not proven: {proven.reason}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = LogisticRegression(max_iter=1000).fit(table.X, table.y)
    return {
        "set": name, "samples": table.X.shape[0], "features": table.X.shape[1],
        "groups": len(table.categories), "epsilon": epsilon, "kappa": kappa,
        "objective": exact.objective, "gap": exact.gap, "status": exact.status.name,
        "iterations": exact.n_iter, "pieces_per_sample": exact.info["pieces"] / table.X.shape[0],
        "seconds": exact_time, "proven_gap": proven.gap, "verify_seconds": verify_time,
        "numbers_objective": numbers.objective, "numbers_gap": numbers.gap,
        "numbers_seconds": numbers_time, "ratio": exact_time / numbers_time,
        "plain_exact": drlogit.worst_case_loss(plain, table.X, table.y, **ball, **domains),
        "plain_as_numbers": drlogit.worst_case_loss(
            plain, table.X, table.y, **ball, feature_costs=costs
        ),
    }  # fmt: skip


def reference(name: str, epsilon: float, kappa: float, seconds: float) -> dict[str, Any]:
    """Time of the cutting planes, or that they did not end in time."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        job = pool.apply_async(_reference, (name, epsilon, kappa))
        try:
            found = job.get(timeout=seconds)
        except multiprocessing.TimeoutError:
            pool.terminate()
            found = {"reference_seconds": None}
    return {"set": name, "epsilon": epsilon, "kappa": kappa, "limit": seconds, **found}


def _reference(name: str, epsilon: float, kappa: float) -> dict[str, Any]:
    table = load(name)
    started = time.process_time()
    found = cutting_planes(
        table.X, table.y, epsilon=epsilon, kappa=kappa, categories=table.categories or None,
        bounds=table.bounds,
    )  # fmt: skip
    return {
        "reference_seconds": time.process_time() - started,
        "reference_objective": found.objective,
        "reference_pieces": found.pieces, "reference_rounds": found.rounds,
    }  # fmt: skip


def generated(first: int, last: int) -> dict[str, Any]:
    """Small problems of every kind (``tests/domain_zoo.py``), to 1e-8, against cutting planes."""
    from tests import domain_zoo

    row = {"set": "generated", "first": first, "last": last, "certified": 0, "difference": 0.0}
    for seed in range(first, last):
        case = domain_zoo.generated(seed)
        found = drlogit.solve(**case, tol=1e-8)
        planes = cutting_planes(**case)
        difference = abs(planes.objective - found.objective)
        if found.gap > 1e-8 or difference > 1e-7:
            print(seed, found.status.name, found.gap, difference, flush=True)
        row["certified"] += found.gap <= 1e-8
        row["difference"] = max(row["difference"], difference)
    return row


def _rows() -> list[dict[str, Any]]:
    """The last row of each case, what the reference found included."""
    cases: dict[Any, dict[str, Any]] = {}
    if RESULTS.exists():
        for line in RESULTS.read_text().splitlines():
            row = json.loads(line)
            if row["set"] == "generated":
                continue
            cases.setdefault((row["set"], row["epsilon"], row["kappa"]), {}).update(row)
    return list(cases.values())


def as_markdown() -> str:
    """The rows as tables, and what they come to."""
    rows = [row for row in _rows() if "objective" in row]
    lines = [
        "| set | N | groups | ε | κ | optimum | as numbers | plain LR: exact | as numbers "
        "| iterations | pieces/N | × as numbers | gap | × Clarabel |",
        "|---|" + "---|" * 13,
    ]
    for row in rows:
        seconds = row.get("reference_seconds")
        slower = "" if seconds is None else f"{seconds / row['seconds']:.0f}"
        lines.append(
            f"| {row['set']} | {row['samples']} | {row['groups']} | {row['epsilon']:g} "
            f"| {row['kappa']:g} | {row['objective']:.6f} | {row['numbers_objective']:.6f} "
            f"| {row['plain_exact']:.4f} | {row['plain_as_numbers']:.4f} | {row['iterations']} "
            f"| {row['pieces_per_sample']:.2f} | {row['ratio']:.1f} | {row['gap']:.0e} | {slower} |"
        )
    ratios = np.array([row["ratio"] for row in rows])
    lines += [
        "",
        f"{len(rows)} fits, {sum(row['gap'] <= 1e-6 for row in rows)} certified to 1e-6; "
        f"{min(row['iterations'] for row in rows)} to {max(row['iterations'] for row in rows)} "
        f"iterations; times as multiples of the fit as numbers: geometric mean "
        f"{np.exp(np.log(ratios).mean()):.1f}, median {np.median(ratios):.1f}, worst "
        f"{ratios.max():.1f}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=("adult", "mushrooms", *TABLES))
    parser.add_argument("--reference", type=float, metavar="SECONDS")
    parser.add_argument("--generated", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        print(as_markdown())
        return
    if options.generated:
        _keep(generated(*([0] if len(options.generated) == 1 else []), *options.generated))
        return
    for name in options.only:
        for epsilon, kappa in RADII:
            if options.reference:
                row = reference(name, epsilon, kappa, options.reference)
            else:
                row = measure(name, epsilon, kappa)
            _keep(row)
            print({key: row[key] for key in row if key in _SHOWN}, flush=True)


def _keep(row: dict[str, Any]) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")


_SHOWN = (
    "set", "epsilon", "kappa", "objective", "gap", "iterations", "ratio", "pieces_per_sample",
    "reference_seconds",
)  # fmt: skip

if __name__ == "__main__":
    main()
