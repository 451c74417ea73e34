"""Tables 1, 2 and 4: times with their gaps, beside the paper's times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import paper, summaries
from .data import size_of, title_of
from .speed import (
    ADAPTIVE,
    CLARABEL,
    CONSTANT,
    INTERIOR_POINT,
    IPOPT,
    METHODS,
    PUBLISHED_ADAPTIVE,
    PUBLISHED_CONSTANT,
    Method,
)
from .summaries import Timing
from .table import Table, data_of
from .tasks import Results, Task

HOW_TO_READ = """Cells of the tables of times: seconds of the processor, mean ± standard deviation
over the runs; in brackets the largest certified gap; ×k where k runs used up the budget of the
method and no more were begun. "≥" is a run stopped at its limit on time, with the gap it had
reached. "Off the shelf / …" is the time of the faster of Clarabel and IPOPT over that of the
method."""

#: What one could buy against what is here.
_SHELF = (CLARABEL, IPOPT, ADAPTIVE, INTERIOR_POINT)
#: The heads of :meth:`_Line.ratios`.
_RATIOS = ("off the shelf / LP-ADMM", "off the shelf / interior point")
#: LP-ADMM as published, and as it is here.
_VARIANTS = (PUBLISHED_ADAPTIVE, PUBLISHED_CONSTANT, ADAPTIVE, CONSTANT)
_REAL_VARIANTS = (PUBLISHED_ADAPTIVE, ADAPTIVE, CONSTANT)


def table1(results: Results, tasks: Sequence[Task]) -> list[Table]:
    """Synthetic data."""
    shelf = Table(
        "table1", "Table 1: against solvers off the shelf",
        ["(N, n)", "paper: YALMIP", "paper: LP-ADMM", "paper: ratio", *_RATIOS,
         *_labels(_SHELF)],
    )  # fmt: skip
    variants = Table(
        "table1-variants", "Table 1: the penalty of LP-ADMM",
        ["(N, n)", "paper: adaptive", "paper: constant", *_labels(_VARIANTS)],
    )  # fmt: skip
    for line in _lines(results, tasks):
        printed = paper.TABLE_1[size_of(line.data)]
        name, adaptive = title_of(line.data), _printed(*printed.adaptive)
        shelf.add(
            name, _printed(*printed.yalmip), adaptive, f"{printed.ratio} ×", *line.ratios(),
            *line.cells(_SHELF)
        )  # fmt: skip
        variants.add(name, adaptive, _printed(*printed.constant), *line.cells(_VARIANTS))
        shelf.records.extend(
            line.records(
                paper_yalmip=printed.yalmip[0],
                paper_adaptive=printed.adaptive[0],
                paper_constant=printed.constant[0],
            )
        )
    return [shelf, variants]


def table2(results: Results, tasks: Sequence[Task]) -> list[Table]:
    """UCI Adult."""
    shelf = Table(
        "table2", "Table 2: against solvers off the shelf",
        ["data", "samples", "paper: YALMIP", "paper: LP-ADMM", "paper: ratio", *_RATIOS,
         *_labels(_SHELF)],
    )  # fmt: skip
    for line in _lines(results, tasks):
        printed = paper.TABLE_2[line.data]
        shelf.add(
            line.data, line.size("n_samples"), _printed(printed.yalmip), _printed(printed.ours),
            f"{printed.ratio} ×", *line.ratios(), *line.cells(_SHELF)
        )  # fmt: skip
        shelf.records.extend(line.records(paper_yalmip=printed.yalmip, paper_ours=printed.ours))
    return [shelf, *_lp_admm("Table 2", results, tasks)]


def table4(results: Results, tasks: Sequence[Task]) -> list[Table]:
    """The other real sets, for which the paper has no times off the shelf."""
    times = Table(
        "table4", "Table 4: against solvers off the shelf",
        ["data", "paper: LP-ADMM", *_RATIOS, *_labels(_SHELF)],
    )  # fmt: skip
    data = Table(
        "table4-data", "Table 4: the data",
        ["data", "samples", "paper: samples", "features", "paper: features", "share of zeros",
         "paper: share of zeros"],
    )  # fmt: skip
    for line in _lines(results, tasks):
        printed = paper.TABLE_4[line.data]
        times.add(
            line.data, _printed(printed.ours), *line.ratios(), *line.cells(_SHELF)
        )  # fmt: skip
        data.add(
            line.data, line.size("n_samples"), str(printed.n_samples), line.size("n_features"),
            str(printed.n_features), line.size("sparsity"), f"{printed.sparsity:.4f}"
        )  # fmt: skip
        times.records.extend(line.records(paper_ours=printed.ours))
    return [times, *_lp_admm("Table 4", results, tasks), data]


def _lp_admm(title: str, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """The variants of LP-ADMM on real data, and where the paper's own rule ends."""
    name = title.lower().replace(" ", "")
    variants = Table(
        f"{name}-variants",
        f"{title}: the penalty of LP-ADMM",
        ["data", *_labels(_REAL_VARIANTS)],
    )
    rule = Table(
        f"{name}-rule",
        f"{title}: where the paper's own rule ends",
        ["data", "λ", "λ, paper's rule", "λ, published code", "optimum", "paper's rule",
         "too high by", "published code", "too high by"],
    )  # fmt: skip
    for line in _lines(results, tasks):
        variants.add(line.data, *line.cells(_REAL_VARIANTS))
        theirs = line.timings.get(PUBLISHED_ADAPTIVE.name)
        exact = line.timings.get(INTERIOR_POINT.name)
        if theirs is None or exact is None:
            continue
        stopped = "" if theirs.complete else " *"
        code = paper.PUBLISHED_CODE.get(line.data)
        published = ["", "", ""]
        if code is not None:
            excess = _excess(code.objective, exact.objective)
            published = [f"{code.lam:.3f}", f"{code.objective:.6f}", excess]
        rule.add(
            line.data, f"{exact.lam:.3f}", f"{theirs.lam:.3f}{stopped}", published[0],
            f"{exact.objective:.6f}", f"{theirs.objective:.6f}",
            _excess(theirs.objective, exact.objective), *published[1:]
        )  # fmt: skip
    return [variants, rule]


def _excess(value: float, best: float) -> str:
    return f"{short_power(value - best)} ({100.0 * (value / best - 1.0):.1f} %)"


def _labels(methods: Sequence[Method]) -> list[str]:
    return [method.label for method in methods]


def _printed(seconds: float, spread: float | None = None) -> str:
    """A time of the paper, with as many digits as there."""
    return f"{seconds:.2f}" + ("" if spread is None else f" ± {spread:.2f}") + " s"


class _Line:
    """All methods on one data set."""

    def __init__(self, results: Results, tasks: Sequence[Task], data: str) -> None:
        self.data = data
        self._results = results
        self._tasks = [task for task in tasks if task.data == data]
        found = {m: summaries.timing(results, self._tasks, data, METHODS[m]) for m in METHODS}
        self.timings: dict[str, Timing] = {m: t for m, t in found.items() if t is not None}
        self._planned = max((getattr(task, "trial", 0) + 1 for task in self._tasks), default=0)

    def size(self, name: str) -> str:
        """A fact about the data."""
        row = summaries.size_row(self._results, self._tasks, self.data)
        if row is None:
            return ""
        return f"{row[name]:.4f}" if name == "sparsity" else str(row[name])

    def cells(self, methods: Sequence[Method]) -> list[str]:
        """Times with gaps, or why there are none."""
        return [
            self._cell(self.timings[method.name])
            if method.name in self.timings
            else summaries.no_answer(self._results, self._tasks, self.data, method)
            for method in methods
        ]

    def _cell(self, timing: Timing) -> str:
        stopped = "" if timing.complete else "≥ "
        runs = "" if timing.trials == self._planned else f" ×{timing.trials}"
        return f"{stopped}{spread_seconds(timing)} s [{short_power(timing.gap)}]{runs}"

    def ratios(self) -> list[str]:
        """How many times slower the faster of the solvers off the shelf is."""
        return [self._ratio(ADAPTIVE), self._ratio(INTERIOR_POINT)]

    def _ratio(self, method: Method) -> str:
        shelf = [self.timings[m.name].seconds for m in (CLARABEL, IPOPT) if m.name in self.timings]
        ours = self.timings.get(method.name)
        return f"{min(shelf) / ours.seconds:.3g} ×" if shelf and ours else "–"

    def records(self, **printed: float) -> list[dict[str, Any]]:
        """The same as numbers, one record for each method."""
        return [
            {
                "data": self.data,
                "n_samples": self.size("n_samples"),
                "n_features": self.size("n_features"),
                "method": method,
                "cpu_seconds": round(timing.seconds, 6),
                "standard_deviation": None
                if math.isnan(timing.spread)
                else round(timing.spread, 6),
                "runs": timing.trials,
                "largest_gap": timing.gap,
                "objective": timing.objective,
                "lambda": timing.lam,
                "stopped_at_limit": not timing.complete,
                **printed,
            }
            for method, timing in self.timings.items()
        ]


def _lines(results: Results, tasks: Sequence[Task]) -> list[_Line]:
    return [_Line(results, tasks, data) for data in data_of(tasks)]


def spread_seconds(timing: Timing) -> str:
    """Two significant digits of the mean, and as many decimals as the deviation needs for one."""
    places = 1 - math.floor(math.log10(max(timing.seconds, 1e-5)))
    if math.isnan(timing.spread):
        return f"{timing.seconds:.{max(0, places)}f}"
    needed = -math.floor(math.log10(max(timing.spread, 1e-5)))
    places = max(0, places, min(needed, places + 1))
    return f"{timing.seconds:.{places}f} ± {timing.spread:.{places}f}"


def short_power(value: float) -> str:
    """``2e-7`` for 2e-07."""
    digits, _, power = f"{value:.0e}".partition("e")
    return f"{digits}e{int(power)}"
