"""The tables as cells, for the page, Markdown and CSV alike."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import paper, summaries
from .accuracy import DRLR, PLAIN, RIDGE, RLR, TUNED_DRLR, TUNED_RLR
from .data import size_of
from .experiments import REAL_METHODS, SYNTHETIC_METHODS
from .speed import (
    ADAPTIVE,
    CLARABEL,
    CONSTANT,
    INTERIOR_POINT,
    IPOPT,
    PUBLISHED_ADAPTIVE,
    PUBLISHED_CONSTANT,
    Method,
)
from .summaries import Mean, Timing
from .tasks import Results, Task


@dataclass(frozen=True)
class Table:
    """Cells as text, for people; ``records`` holds the same as numbers, for programs."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    records: list[dict[str, Any]] = field(default_factory=list)

    def markdown(self) -> str:
        """As a Markdown table."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        body = "\n".join(
            "| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines
        )
        return f"{self.caption}\n\n{body}\n"

    def csv(self) -> str:
        """The numbers, one line for each method on each data set."""
        names = list(dict.fromkeys(name for record in self.records for name in record))
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return buffer.getvalue()


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


# --- times ----------------------------------------------------------------------------------


def table1(results: Results, tasks: Sequence[Task]) -> Table:
    """Synthetic data."""
    columns = [
        "(N, n)", "paper: YALMIP", "paper: constant", "paper: adaptive", "paper: ratio",
        *(_title(method) for method in _ORDER if method in SYNTHETIC_METHODS),
        "off the shelf / LP-ADMM", "off the shelf / interior point",
    ]  # fmt: skip
    rows, records = [], []
    for data in _data(tasks):
        size = size_of(data)
        printed = paper.TABLE_1[size]
        line = _Line(results, tasks, data, SYNTHETIC_METHODS)
        rows.append(
            [
                f"({size[0]}, {size[1]})",
                f"{printed.yalmip[0]:.2f} s", f"{printed.constant[0]:.2f} s",
                f"{printed.adaptive[0]:.2f} s", f"{printed.ratio} ×",
                *line.cells(), line.ratio(ADAPTIVE), line.ratio(INTERIOR_POINT),
            ]
        )  # fmt: skip
        records += line.records(
            {
                "paper_yalmip": printed.yalmip[0],
                "paper_constant": printed.constant[0],
                "paper_adaptive": printed.adaptive[0],
            }
        )
    return Table(
        "table1", f"Table 1: synthetic data, ε = 0.1, κ = 1. {_HOW}", columns, rows, records
    )


def table2(results: Results, tasks: Sequence[Task]) -> Table:
    """UCI Adult."""
    columns = [
        "data", "samples", "features", "paper: YALMIP", "paper: ours", "paper: ratio",
        *(_title(method) for method in _ORDER if method in REAL_METHODS),
        "off the shelf / LP-ADMM", "off the shelf / interior point",
    ]  # fmt: skip
    rows, records = [], []
    for data in _data(tasks):
        printed = paper.TABLE_2[data]
        line = _Line(results, tasks, data, REAL_METHODS)
        rows.append(
            [
                data, *line.size(), f"{printed.yalmip:.2f} s", f"{printed.ours:.2f} s",
                f"{printed.ratio} ×", *line.cells(), line.ratio(ADAPTIVE),
                line.ratio(INTERIOR_POINT),
            ]
        )  # fmt: skip
        records += line.records({"paper_yalmip": printed.yalmip, "paper_ours": printed.ours})
    caption = f"Table 2: UCI Adult, ε = 0.1, κ = 1. {_HOW}"
    return Table("table2", caption, columns, rows, records)


def table4(results: Results, tasks: Sequence[Task]) -> Table:
    """The other real sets, for which the paper has no off-the-shelf times."""
    columns = [
        "data", "samples", "features", "share of zeros", "paper: share of zeros", "paper: ours",
        *(_title(method) for method in _ORDER if method in REAL_METHODS),
        "paper: ours / interior point",
    ]  # fmt: skip
    rows, records = [], []
    for data in _data(tasks):
        printed = paper.TABLE_4[data]
        line = _Line(results, tasks, data, REAL_METHODS)
        measured = summaries.size_row(results, tasks, data)
        zeros = "" if measured is None else f"{measured['sparsity']:.4f}"
        ours = line.timings.get(INTERIOR_POINT.name)
        rows.append(
            [
                data, *line.size(), zeros, f"{printed.sparsity:.4f}", f"{printed.ours:.2f} s",
                *line.cells(), "–" if ours is None else f"{printed.ours / ours.seconds:.3g} ×",
            ]
        )  # fmt: skip
        records += line.records({"paper_ours": printed.ours, "paper_sparsity": printed.sparsity})
    caption = (
        f"Table 4: other real data, ε = 0.1, κ = 1. {_HOW} The last column compares two machines."
    )
    return Table("table4", caption, columns, rows, records)


def published_rule(results: Results, tasks: Sequence[Task], name: str) -> Table:
    """Where the paper's own stopping rule ends on real data."""
    columns = ["data", "λ, certified", "λ, paper's rule", "λ, published code",
               "optimum, certified", "objective, paper's rule", "too high by",
               "objective, published code", "too high by"]  # fmt: skip
    rows = []
    for data in _data(tasks):
        line = _Line(results, tasks, data, REAL_METHODS)
        theirs = line.timings.get(PUBLISHED_ADAPTIVE.name)
        exact = line.timings.get(INTERIOR_POINT.name)
        if theirs is None or exact is None:
            continue
        code = paper.PUBLISHED_CODE.get(data)
        rows.append(
            [
                data, f"{exact.lam:.4g}", f"{theirs.lam:.4g}" + ("" if theirs.complete else " *"),
                "" if code is None else f"{code.lam:.4g}", f"{exact.objective:.6f}",
                f"{theirs.objective:.6f}", _excess(theirs.objective, exact.objective),
                "" if code is None else f"{code.objective:.6f}",
                "" if code is None else _excess(code.objective, exact.objective),
            ]
        )  # fmt: skip
    caption = (
        "Where the paper's own rule ends: our LP-ADMM with ρ = 0.001·1.05ᵏ, golden section, "
        "stopped on ‖Zβ - μ‖ ≤ 1e-6 (* at the limit on time), and the paper's published code, "
        "which was run once under Octave 7.3 and not by this command."
    )
    return Table(name, caption, columns, rows)


def _excess(value: float, best: float) -> str:
    return f"{value - best:.1e} ({100.0 * (value / best - 1.0):.2g} %)"


_HOW = (
    "Seconds of the processor (mean, ± standard deviation), in brackets the largest certified gap, "
    "and × the number of runs. “≥” means stopped at the limit."
)

#: Of the columns: what one could buy, the paper's method as printed, then as it is here.
_ORDER = (CLARABEL, IPOPT, PUBLISHED_ADAPTIVE, PUBLISHED_CONSTANT, ADAPTIVE, CONSTANT,
          INTERIOR_POINT)  # fmt: skip


def _title(method: Method) -> str:
    return method.label


def _data(tasks: Sequence[Task]) -> list[str]:
    return list(dict.fromkeys(task.data for task in tasks))


class _Line:
    """The methods on one data set."""

    def __init__(
        self, results: Results, tasks: Sequence[Task], data: str, methods: Sequence[Method]
    ) -> None:
        self.data = data
        self._results, self._tasks = results, tasks
        self._methods = [method for method in _ORDER if method in methods]
        found = {m.name: summaries.timing(results, tasks, data, m) for m in self._methods}
        self.timings: dict[str, Timing] = {name: t for name, t in found.items() if t is not None}

    def size(self) -> list[str]:
        row = summaries.size_row(self._results, self._tasks, self.data)
        return ["", ""] if row is None else [str(row["n_samples"]), str(row["n_features"])]

    def cells(self) -> list[str]:
        return [
            timing_cell(self.timings[method.name])
            if method.name in self.timings
            else summaries.no_answer(self._results, self._tasks, self.data, method)
            for method in self._methods
        ]

    def ratio(self, method: Method) -> str:
        """How many times slower the faster of the solvers off the shelf is."""
        shelf = [self.timings[m.name].seconds for m in (CLARABEL, IPOPT) if m.name in self.timings]
        ours = self.timings.get(method.name)
        return f"{min(shelf) / ours.seconds:.3g} ×" if shelf and ours else "–"

    def records(self, printed: dict[str, Any]) -> list[dict[str, Any]]:
        size = dict(zip(("n_samples", "n_features"), self.size(), strict=True))
        return [
            {
                "data": self.data, **size, "method": name, "cpu_seconds": timing.seconds,
                "standard_deviation": _known(timing.spread), "runs": timing.trials,
                "largest_gap": timing.gap, "objective": timing.objective, "lambda": timing.lam,
                "stopped_at_limit": not timing.complete, **printed,
            }
            for name, timing in self.timings.items()
        ]  # fmt: skip


def timing_cell(timing: Timing) -> str:
    """A time with its gap."""
    spread = "" if math.isnan(timing.spread) else f" ± {_digits(timing.spread)}"
    stopped = "" if timing.complete else "≥ "
    return f"{stopped}{_digits(timing.seconds)}{spread} s [{timing.gap:.0e}] ×{timing.trials}"


def _digits(seconds: float) -> str:
    """Two significant digits, and no power of ten."""
    places = max(0, 1 - math.floor(math.log10(max(seconds, 1e-5))))
    return f"{seconds:.{places}f}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


# --- accuracy -------------------------------------------------------------------------------


def table3(results: Results, tasks: Sequence[Task]) -> Table:
    """With the paper's ε and κ."""
    columns = ["data", "paper: LR", "paper: RLR", "paper: DRLR", "LR", "RLR, ε = 0.3",
               "DRLR, ε = 0.3, κ = 7", "RLR - LR", "DRLR - RLR", "trials"]  # fmt: skip
    return _accuracy_table(
        "table3",
        "Table 3 with the paper's parameters: test accuracy in percent, mean over the trials ± "
        "standard error; differences are paired (same splits), in points.",
        columns,
        results,
        tasks,
        (PLAIN.name, RLR.name, DRLR.name),
        lambda data: [f"{value:.2f}" for value in paper.TABLE_3[data]],
    )


def table3_tuned(results: Results, tasks: Sequence[Task]) -> Table:
    """With what the search chose."""
    columns = ["data", "ε of RLR", "ε, κ of DRLR", "penalty of ℓ2 LR", "ℓ2 LR", "RLR", "DRLR",
               "RLR - ℓ2 LR", "DRLR - RLR", "trials"]  # fmt: skip

    def chosen(data: str) -> list[str]:
        cells = []
        for model in (TUNED_RLR, TUNED_DRLR, RIDGE):
            rows = list(summaries.accuracies(results, tasks, data, model.name).values())
            if not rows:
                cells.append("not searched")
                continue
            kappa = rows[0]["kappa"]
            tail = f", {kappa:g}" if model is TUNED_DRLR else ""
            cells.append(f"{rows[0]['strength']:g}{tail}")
        return cells

    return _accuracy_table(
        "table3-tuned",
        "Table 3 with parameters from grid search and cross-validation, for each set; ℓ2 LR is "
        "scikit-learn's LogisticRegression. Test accuracy in percent ± standard error.",
        columns,
        results,
        tasks,
        (RIDGE.name, TUNED_RLR.name, TUNED_DRLR.name),
        chosen,
    )


def _accuracy_table(
    name: str,
    caption: str,
    columns: list[str],
    results: Results,
    tasks: Sequence[Task],
    models: tuple[str, str, str],
    lead: Any,
) -> Table:
    rows, records = [], []
    for data in _data(tasks):
        found = [summaries.accuracies(results, tasks, data, model) for model in models]
        means = [summaries.accuracy(each) for each in found]
        gains = [summaries.difference(found[i + 1], found[i]) for i in (0, 1)]
        trials = min(len(each) for each in found)
        rows.append(
            [data, *lead(data), *map(_percent, means), *(_points(g) for g in gains), str(trials)]
        )
        records += [
            {
                "data": data,
                "model": model,
                "accuracy": mean.value,
                "standard_error": _known(mean.error),
                "trials": mean.trials,
            }
            for model, mean in zip(models, means, strict=True)
            if mean is not None
        ]
    return Table(name, caption, columns, rows, records)


def _percent(mean: Mean | None) -> str:
    if mean is None:
        return "–"
    error = "" if math.isnan(mean.error) else f" ± {100 * mean.error:.2f}"
    return f"{100 * mean.value:.2f}{error}"


def _points(mean: Mean | None) -> str:
    if mean is None:
        return "–"
    error = "" if math.isnan(mean.error) else f" ± {100 * mean.error:.2f}"
    return f"{100 * mean.value:+.2f}{error}"


def curves_table(results: Results, tasks: Sequence[Task]) -> Table:
    """Where the curves of Figure 3 end."""
    rows, records = [], []
    sets = _data(tasks)
    methods = list(dict.fromkeys(task.method for task in tasks))  # type: ignore[attr-defined]
    found = {(row["data"], row["method"]): row for row in results.of(tasks)}
    for method in methods:
        line = [method]
        for data in sets:
            row = found.get((data, method))
            if row is None:
                line.append("–")
                continue
            line.append(
                f"{row['above'][-1]:.0e}, {1e3 * row['cpu_seconds'] / row['at'][-1]:.2f} ms"
            )
            records += [
                {"data": data, "method": method, "iteration": k, "above": above, "seconds": seconds,
                 "reference_gap": row["gap"]}
                for k, above, seconds in zip(
                    row["at"], row["above"], row["at_seconds"], strict=True
                )
            ]  # fmt: skip
        rows.append(line)
    last = max((row["at"][-1] for row in found.values()), default=0)
    caption = (
        f"How far above the optimum each method is after {last} iterations, and the time of one "
        "iteration."
    )
    columns = ["method", *("({}, {})".format(*size_of(data)) for data in sets)]
    return Table("figure3", caption, columns, rows, records)
