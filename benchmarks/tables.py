"""Markdown tables of the rows; nothing is measured here.

    python -m benchmarks.tables [SUITE ...] [--quick] [--results DIR] [--out FILE]

A time is printed beside the gap it reached, never alone.  Ratios are of times from one run.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from . import store
from .cases import SUITES
from .store import Row

#: The rows of one problem by solver, measured side by side.
Group = dict[str, Row]

PLAIN, OURS = "scikit-learn", "drlogit"
#: Best wall time, which the bars are about, and two that tell how far it can be trusted.
CLOCKS = ("seconds", "median_seconds", "cpu_seconds")
#: Versions worth naming under a table, if its rows know them.
VERSIONS = "drlogit numpy scipy scikit_learn numba cvxpy clarabel casadi".split()


def paper_tables(groups: list[Group]) -> str:
    """A plain fit and ours, set by set, with the bars of the design."""
    return f"{_against_plain(groups)}\n\n{_summary(groups)}"


def wide_table(groups: list[Group]) -> str:
    """The same without bars: a plain fit is a different problem here."""
    return _against_plain(groups)


def _against_plain(groups: list[Group]) -> str:
    pairs = [(group.get(PLAIN), group.get(OURS)) for group in groups]
    head = (
        "data | N | n | density | ε | κ | plain fit | its gap | iterations | robust fit "
        "| certified gap | iterations | work | robust / plain | by medians | by CPU time"
    )
    lines = []
    for plain, ours in pairs:
        row = ours or plain
        assert row is not None
        lines.append(
            [*_problem(row), *_radius(row), *_timed(plain), *_timed(ours), _work(ours),
             *(_ratio(_seconds(ours, clock), _seconds(plain, clock)) for clock in CLOCKS)]
        )  # fmt: skip
    return markdown(head.split(" | "), lines)


def _summary(groups: list[Group]) -> str:
    """The bars: geometric mean and worst ratio, and whether all are certified."""
    whole = [group for group in groups if PLAIN in group and OURS in group]
    timed = [group for group in whole if _seconds(group[OURS]) and _seconds(group[PLAIN])]
    if not timed:
        return "No pair of times to compare."
    ratios = {g[OURS]["data"]: g[OURS]["seconds"] / g[PLAIN]["seconds"] for g in timed}
    medians, processor = (
        geometric_mean(group[OURS][clock] / group[PLAIN][clock] for group in timed)
        for clock in CLOCKS[1:]
    )
    worst = max(ratios, key=lambda name: ratios[name])
    within = sum(_certified(group[OURS]) for group in whole)
    gaps = [group[OURS]["gap"] for group in whole if group[OURS]["gap"] is not None]
    iterations = [g[OURS]["iterations"] for g in whole if g[OURS]["iterations"] is not None]
    mean, fastest = geometric_mean(ratios.values()), min(ratios.values())
    return (
        f"{len(ratios)} data set{'s' * (len(ratios) > 1)}. "
        f"Robust / plain: **geometric mean {mean:.2f}×, "
        f"worst {ratios[worst]:.2f}×** ({worst}), best {fastest:.2f}×, "
        f"at most 1× on {sum(ratio <= 1.0 for ratio in ratios.values())}; "
        f"geometric mean by medians {medians:.2f}×, by CPU time {processor:.2f}×. "
        f"{within} of {len(whole)} certified to the tolerance, largest gap {_gap(max(gaps))}, "
        f"most iterations {max(iterations)}."
    )


def reference_table(groups: list[Group]) -> str:
    """Every competitor on the same problem, with how far above the best bound it ended."""
    head = (
        "data | N | n | density | solver | status | time | certified gap | iterations "
        "| above our lower bound | best of | time / ours"
    )
    lines = []
    for group in groups:
        ours = group.get(OURS)
        bound = None if ours is None or ours["gap"] is None else ours["objective"] - ours["gap"]
        for name, row in group.items():
            excess = None if bound is None or row["gap"] is None else row["objective"] - bound
            lines.append(
                [*_problem(row), name, row["status"].lower(), *_timed(row),
                 "–" if excess is None else f"{excess:.1e}", row["best_of"],
                 "1" if row is ours else _ratio(_seconds(row), _seconds(ours), digits=0)]
            )  # fmt: skip
    return markdown(head.split(" | "), lines)


def certified_tables(groups: list[Group]) -> str:
    """Gaps and iterations over the grid: by data set, by setting, and every failure."""
    rows = [group[OURS] for group in groups if OURS in group]
    failures = [row for row in rows if not _certified(row)]
    parts = [
        _extremes("data", rows, lambda row: row["data"]),
        _extremes("norm, ε, κ", rows, lambda row: (row["norm"], *_radius(row))),
        f"{len(rows) - len(failures)} of {len(rows)} certified to the tolerance asked for.",
    ]
    if failures:
        head = "data | N | n | density | norm | ε | κ | tol | gap | iterations | status"
        lines = [
            [*_problem(row), row["norm"], *_radius(row), f"{row['tol']:g}", _gap(row["gap"]),
             _count(row["iterations"]), row["status"].lower()]
            for row in failures
        ]  # fmt: skip
        parts += ["Not certified:", markdown(head.split(" | "), lines)]
    return "\n\n".join(parts)


def _extremes(title: str, rows: list[Row], label: Callable[[Row], Any]) -> str:
    """For each label and tolerance: how many certified, the largest gap, the most iterations."""
    tolerances = sorted({row["tol"] for row in rows}, reverse=True)
    head = [title]
    for tol in tolerances:
        head += [f"certified to {tol:g}", "largest gap", "iterations: median", "most"]
    lines = []
    for name in dict.fromkeys(label(row) for row in rows):
        line = [name if isinstance(name, str) else ", ".join(name)]
        for tol in tolerances:
            some = [row for row in rows if label(row) == name and row["tol"] == tol]
            counts = [row["iterations"] for row in some if row["iterations"] is not None]
            gaps = [math.inf if row["gap"] is None else row["gap"] for row in some]
            line += [
                f"{sum(map(_certified, some))} of {len(some)}",
                _gap(max(gaps, default=None)),
                f"{statistics.median(counts):g}" if counts else "–",
                str(max(counts, default="–")),
            ]
        lines.append(line)
    return markdown(head, lines)


def scaling_tables(groups: list[Group]) -> str:
    """Time per sample and iterations, N growing and then n."""
    rows = [group[OURS] for group in groups if OURS in group]
    tall = sorted((g for g in groups if g[OURS]["n_features"] == 100), key=_samples)
    broad = sorted((g for g in groups if g[OURS]["n_samples"] == 10_000), key=_features)
    base = next((row for row in rows if _size(row) == (100_000, 100)), None)
    head = (
        "N | n | robust fit | certified gap | iterations | work | µs per sample "
        "| per sample, N=10⁵ is 1 | plain fit | its gap | iterations | robust / plain"
    )
    parts = []
    for some in (tall, broad):
        lines = []
        for group in some:
            ours, plain = group[OURS], group.get(PLAIN)
            per_sample = _per_sample(ours)
            lines.append(
                [f"{ours['n_samples']:,}", ours["n_features"], *_timed(ours), _work(ours),
                 "–" if per_sample is None else f"{1e6 * per_sample:.3g}",
                 _ratio(per_sample, base and _per_sample(base)) if some is tall else "–",
                 *_timed(plain), _ratio(_seconds(ours), _seconds(plain))]
            )  # fmt: skip
        parts.append(markdown(head.split(" | "), lines))
    return "\n\n".join(parts)


def memory_table(groups: list[Group]) -> str:
    """Peaks as multiples of the data."""
    head = (
        "data | N | n | density | MB of data | solver | gap "
        "| peak beyond the data / data | peak with the data / data | beyond, in vectors of length N"
    )
    lines = []
    for group in groups:
        for name, row in group.items():
            size = row["data_bytes"]
            beyond = row["peak_bytes"] - row["before_fit_bytes"]
            whole = row["peak_bytes"] - row["before_data_bytes"]
            lines.append([*_problem(row), f"{size / 1e6:.0f}", name, _gap(row["gap"]),
                          f"{beyond / size:.2f}", f"{whole / size:.2f}",
                          f"{beyond / (8 * row['n_samples']):.1f}"])  # fmt: skip
    return markdown(head.split(" | "), lines)


TABLES: dict[str, tuple[str, Callable[[list[Group]], str]]] = {
    "paper": ("The paper's data sets against a plain fit", paper_tables),
    "references": ("Exact solvers of the same problem", reference_table),
    "certified": ("Certified gaps", certified_tables),
    "scaling": ("Growing data", scaling_tables),
    "memory": ("Memory", memory_table),
    "wide": ("More features than a dense factor can hold", wide_table),
}


def tables(folder: Path, suites: Iterable[str] = TABLES) -> str:
    """All tables of the suites that have rows."""
    parts = []
    for suite in suites:
        groups = ordered(store.latest(store.read(folder, suite)))
        title, table = TABLES[suite]
        for threads in sorted({_any(group)["threads"] for group in groups}):
            some = [group for group in groups if _any(group)["threads"] == threads]
            parts += [f"## {title}", table(some), circumstances(some)]
    return "\n\n".join(parts) + "\n" if parts else "No rows yet.\n"


def ordered(latest: dict[tuple[Any, ...], Group]) -> list[Group]:
    """Groups in the order of their suite, whenever they were run; unknown ones last."""
    groups = list(latest.values())
    if not groups:
        return []
    sequence = [
        tuple(case.settings[name] for name in ("data", "epsilon", "kappa", "norm", "tol"))
        for case in SUITES[_any(groups[0])["suite"]](False)
    ]
    position = {case: k for k, case in reversed(list(enumerate(sequence)))}

    def place(group: Group) -> int:
        row = _any(group)
        key = tuple(row[name] for name in ("data", "epsilon", "kappa", "norm", "tol"))
        return position.get(key, len(position))

    return sorted(groups, key=place)


def circumstances(groups: list[Group]) -> str:
    """What the times were measured on; more than one of anything is shown."""
    rows = [row for group in groups for row in group.values()]

    def values(name: str) -> str:
        return " / ".join(dict.fromkeys(str(row[name]) for row in rows if row.get(name)))

    versions = ", ".join(f"{name.replace('_', '-')} {values(name)}" for name in VERSIONS)
    dates = sorted(row["date"][:10] for row in rows)
    span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    counts = sorted({row["best_of"] for row in rows})
    best = f"best of {counts[0]}" + (f" to {counts[-1]}" if len(counts) > 1 else "")
    threads = values("threads")
    return (
        f"<sub>{best}, {threads} thread{'s' * (threads != '1')} each, {values('cpu')}, {span}; "
        f"Python {values('python')}, {versions}; source {values('drlogit_source')}.</sub>"
    )


# What a cell says.


def markdown(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [head, rule, *lines])


def geometric_mean(values: Iterable[float]) -> float:
    """Of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, values)))


def _problem(row: Row) -> list[str]:
    return [row["data"], f"{row['n_samples']:,}", f"{row['n_features']:,}", f"{row['density']:.3g}"]


def _radius(row: Row) -> tuple[str, str]:
    return f"{row['epsilon']:g}", "∞" if math.isinf(row["kappa"]) else f"{row['kappa']:g}"


def _timed(row: Row | None) -> list[str]:
    """Time, gap and iterations: always together."""
    if row is None:
        return ["–", "–", "–"]
    if row["gap"] is None or row["seconds"] is None:
        return ["failed", "–", "–"]
    return [_duration(row["seconds"]), _gap(row["gap"]), _count(row["iterations"])]


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def _gap(gap: float | None) -> str:
    if gap is None or math.isinf(gap):
        return "–"
    return f"{gap:.1e}"


def _count(count: int | None) -> str:
    return "–" if count is None else str(count)


def _work(row: Row | None) -> str:
    """Counts that do not depend on the machine, as far as the solver keeps them."""
    names = {"info_grams": "Grams", "info_passes": "passes"}
    counts = [f"{row[key]} {word}" for key, word in names.items() if row and key in row]
    return ", ".join(counts) or "–"


def _ratio(value: float | None, other: float | None, digits: int = 2) -> str:
    return f"{value / other:,.{digits}f}×" if value and other else "–"


def _seconds(row: Row | None, name: str = "seconds") -> float | None:
    """A time, if the run reached a gap that can be shown with it."""
    return None if row is None or row["gap"] is None else row[name]


def _per_sample(row: Row) -> float | None:
    seconds = _seconds(row)
    return None if seconds is None else seconds / row["n_samples"]


def _certified(row: Row) -> bool:
    return row["gap"] is not None and row["gap"] <= row["tol"]


def _any(group: Group) -> Row:
    return next(iter(group.values()))


def _size(row: Row) -> tuple[int, int]:
    return row["n_samples"], row["n_features"]


def _samples(group: Group) -> int:
    return int(_any(group)["n_samples"])


def _features(group: Group) -> int:
    return int(_any(group)["n_features"])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--quick", action="store_true", help="tables of the trial runs")
    parser.add_argument("--results", type=Path, help="folder of the rows")
    parser.add_argument("--out", type=Path, help="a file instead of the screen")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.suites) - set(TABLES))
    if unknown:
        parser.error(f"SUITE must be one of {', '.join(TABLES)}, got {', '.join(unknown)}")
    folder = options.results or (store.TRIALS if options.quick else store.RESULTS)
    text = tables(folder, options.suites or TABLES)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
