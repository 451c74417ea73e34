"""Table 3, accuracy; and the ends of the curves of Figure 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from . import paper, summaries
from .accuracy import DRLR, PLAIN, RIDGE, RLR, TUNED_DRLR, TUNED_RLR, Model
from .curves import METHODS as CURVES
from .data import title_of
from .summaries import Mean
from .table import Table, data_of
from .tasks import Results, Task
from .time_tables import short_power


def table3(results: Results, tasks: Sequence[Task]) -> list[Table]:
    """Once with the paper's parameters, once with those of the search."""

    def printed(data: str) -> list[str]:
        return [f"{value:.2f}" for value in paper.TABLE_3[data]]

    def chosen(data: str) -> list[str]:
        return [_parameters(results, tasks, data, m) for m in (RIDGE, TUNED_RLR, TUNED_DRLR)]

    given = Table(
        "table3", "Table 3: test accuracy in percent with the paper's ε = 0.3, κ = 7",
        ["data", "paper: LR", "paper: RLR", "paper: DRLR", "LR", "RLR", "DRLR", "RLR − LR",
         "DRLR − RLR", "trials"],
    )  # fmt: skip
    tuned = Table(
        "table3-tuned", "Table 3: test accuracy in percent with parameters from cross-validation",
        ["data", "ℓ2 LR: penalty", "RLR: ε", "DRLR: ε, κ", "ℓ2 LR", "RLR", "DRLR", "RLR − ℓ2 LR",
         "DRLR − RLR", "trials"],
    )  # fmt: skip
    _fill(given, results, tasks, (PLAIN, RLR, DRLR), printed)
    _fill(tuned, results, tasks, (RIDGE, TUNED_RLR, TUNED_DRLR), chosen)
    return [given, tuned]


def _fill(
    table: Table,
    results: Results,
    tasks: Sequence[Task],
    models: tuple[Model, Model, Model],
    lead: Callable[[str], list[str]],
) -> None:
    for data in data_of(tasks):
        found = [summaries.accuracies(results, tasks, data, model.name) for model in models]
        if not all(found):
            continue
        means = [summaries.accuracy(each) for each in found]
        gains = [summaries.difference(found[i + 1], found[i]) for i in (0, 1)]
        table.add(
            data, *lead(data), *(_percent(m) for m in means), *(_percent(g, "+") for g in gains),
            str(min(map(len, found)))
        )  # fmt: skip
        table.records.extend(
            {
                "data": data,
                "model": model.name,
                "accuracy": mean.value,
                "standard_error": None if math.isnan(mean.error) else mean.error,
                "trials": mean.trials,
            }
            for model, mean in zip(models, means, strict=True)
        )


def _parameters(results: Results, tasks: Sequence[Task], data: str, model: Model) -> str:
    rows = list(summaries.accuracies(results, tasks, data, model.name).values())
    if not rows:
        return ""
    kappa = f", {rows[0]['kappa']:g}" if len(model.kappas) > 1 else ""
    return f"{rows[0]['strength']:g}{kappa}"


def _percent(mean: Mean, sign: str = "") -> str:
    error = "" if math.isnan(mean.error) else f" ± {100.0 * mean.error:.2f}"
    return f"{100.0 * mean.value:{sign}.2f}{error}"


def figure3(results: Results, tasks: Sequence[Task]) -> list[Table]:
    """Where the curves end, and what an iteration costs."""
    rows = {(row["data"], row["method"]): row for row in results.of(tasks)}
    sets = [data for data in data_of(tasks) if any(data == known for known, _ in rows)]
    last = max((row["at"][-1] for row in rows.values()), default=0)
    table = Table(
        "figure3",
        f"Figure 3: above the optimum after {last} iterations, and time of one iteration",
        ["method", *(title_of(data) for data in sets)],
    )
    for method in CURVES:
        cells = [method]
        for data in sets:
            row = rows.get((data, method))
            if row is None:
                cells.append("–")
                continue
            cost = 1e3 * row["cpu_seconds"] / row["at"][-1]
            cells.append(f"{short_power(row['above'][-1])}, {cost:.2g} ms")
            points = zip(row["at"], row["above"], row["at_seconds"], strict=True)
            table.records.extend(
                {
                    "data": data,
                    "method": method,
                    "iteration": k,
                    "above": f"{above:.4g}",
                    "seconds": f"{seconds:.4g}",
                    "reference_gap": f"{row['gap']:.1e}",
                }
                for k, above, seconds in points
            )
        table.add(*cells)
    return [table]
