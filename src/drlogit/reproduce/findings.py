"""What agrees with the paper and what does not, said from the rows."""

from __future__ import annotations

from collections.abc import Sequence

from . import paper, summaries
from .accuracy import DRLR, PLAIN, RIDGE, RLR, TOL, TUNED_DRLR, TUNED_RLR
from .curves import METHODS as CURVES
from .curves import PAPERS_PENALTY
from .data import title_of
from .speed import ADAPTIVE, CLARABEL, CONSTANT, INTERIOR_POINT, IPOPT, METHODS, PUBLISHED_ADAPTIVE
from .store import Row
from .summaries import Mean, Timing
from .table import data_of
from .tasks import Results, Task

#: A rule that ends further than this above the optimum, in nats, did not solve the problem.
_WRONG = 1e-3

#: Below this all methods have reached the optimum, and rounding decides which is lowest.
_ROUNDING = 1e-12


def of_times(results: Results, tasks: Sequence[Task]) -> list[str]:
    """For a table of times: certificates, ratios, and where the published rule ends."""
    said = []
    timings = {
        data: {
            name: timing
            for name, method in METHODS.items()
            if (timing := summaries.timing(results, tasks, data, method)) is not None
        }
        for data in data_of(tasks)
    }
    certified = []
    for method in (INTERIOR_POINT, ADAPTIVE, CONSTANT, CLARABEL, IPOPT):
        runs = [found[method.name] for found in timings.values() if method.name in found]
        if runs:
            good = sum(timing.gap <= 1e-6 for timing in runs)
            largest = max(timing.gap for timing in runs)
            certified.append(f"{method.label} on {good} of {len(runs)} (largest {largest:.0e})")
    if certified:
        said.append(f"Certified to the gap asked for, 1e-6: {'; '.join(certified)}.")
    said += _ratios(timings)
    wrong = [
        (data, found[PUBLISHED_ADAPTIVE.name].objective - found[INTERIOR_POINT.name].objective)
        for data, found in timings.items()
        if PUBLISHED_ADAPTIVE.name in found
        and found[PUBLISHED_ADAPTIVE.name].complete
        and INTERIOR_POINT.name in found
    ]
    bad = [(data, excess) for data, excess in wrong if excess > _WRONG]
    if bad:
        data, excess = max(bad, key=lambda pair: pair[1])
        said.append(
            "Does not agree: with the paper's penalty and stopping rule, LP-ADMM ends more than "
            f"{_WRONG:g} nats above the optimum on {len(bad)} of the {len(wrong)} where it ended; "
            f"worst {title_of(data)}, {excess:.2g} too high. Its penalty grows until nothing "
            "moves, so the residual it stops on is small whether or not the point is optimal."
        )
    elif wrong:
        data, excess = max(wrong, key=lambda pair: pair[1])
        said.append(
            "Agrees: with the paper's penalty and stopping rule, LP-ADMM ends at most "
            f"{max(excess, 0.0):.1e} above the optimum ({title_of(data)})."
        )
    return said


def _ratios(timings: dict[str, dict[str, Timing]]) -> list[str]:
    """How much faster than what is off the shelf, on the data where that is most."""
    said = []
    for method in (ADAPTIVE, INTERIOR_POINT):
        ratios = {
            data: min(shelf) / found[method.name].seconds
            for data, found in timings.items()
            if method.name in found
            and (shelf := [found[m.name].seconds for m in (CLARABEL, IPOPT) if m.name in found])
        }
        if ratios:
            most = max(ratios, key=ratios.__getitem__)
            least = min(ratios, key=ratios.__getitem__)
            said.append(
                f"The faster of Clarabel and IPOPT takes {ratios[least]:.2g} ({title_of(least)}) "
                f"to {ratios[most]:.3g} ({title_of(most)}) times as long as {method.label}."
            )
    return said


def of_sizes(results: Results, tasks: Sequence[Task]) -> list[str]:
    """Where the data differ from what Table 4 says of them."""
    said = []
    for data in data_of(tasks):
        row = summaries.size_row(results, tasks, data)
        printed = paper.TABLE_4.get(data)
        if row is None or printed is None:
            continue
        if row["n_samples"] != printed.n_samples:
            said.append(
                f"Does not agree: {data} has {row['n_samples']} samples, the paper says "
                f"{printed.n_samples}."
            )
        if abs(row["sparsity"] - printed.sparsity) > 1e-4:
            said.append(
                f"Does not agree: {data} has a share of zeros of {row['sparsity']:.4f}, the paper "
                f"says {printed.sparsity}."
            )
    return said


def of_accuracy(results: Results, tasks: Sequence[Task]) -> list[str]:
    """DRLR ≥ RLR ≥ LR: in how many sets?"""
    sets = data_of(tasks)
    said = []
    for title, (first, second, third) in {
        "With the paper's ε = 0.3, κ = 7": (PLAIN, RLR, DRLR),
        "With parameters from cross-validation": (PLAIN, TUNED_RLR, TUNED_DRLR),
    }.items():
        gains = []
        for data in sets:
            found = [
                summaries.accuracies(results, tasks, data, model.name)
                for model in (first, second, third)
            ]
            if all(found):
                gains.append([summaries.difference(found[i + 1], found[i]) for i in (0, 1)])
        if not gains:
            continue
        ordered = sum(a.value >= 0.0 and b.value >= 0.0 for a, b in gains)
        said.append(
            f"{title}: DRLR ≥ RLR ≥ LR in {ordered} of {len(gains)} sets (the paper: 10 of 10). "
            f"{_compare('DRLR', 'RLR', [b for _, b in gains])} "
            f"{_compare('RLR', 'LR', [a for a, _ in gains])}"
        )
    gaps = [(row["model"], row["gap"]) for row in results.of(tasks) if row.get("gap") is not None]
    loose = [gap for _, gap in gaps if gap > TOL]
    if loose:
        names = " and ".join(sorted({model for model, gap in gaps if gap > TOL}))
        said.append(
            f"{len(gaps) - len(loose)} of {len(gaps)} fits are certified to {TOL:g}; the others, "
            f"of {names}, have gaps of up to {max(loose):.0e}."
        )
    ridge = []
    for data in sets:
        models = [summaries.accuracies(results, tasks, data, m.name) for m in (TUNED_DRLR, RIDGE)]
        if all(models):
            ridge.append(summaries.difference(*models))
    if ridge:
        said.append(
            "Tuned ℓ2 LR, which the paper does not try: "
            f"{_compare('tuned DRLR', 'tuned ℓ2 LR', ridge)}"
        )
    return said


def _compare(one: str, other: str, gains: Sequence[Mean]) -> str:
    """Who is more accurate, and where the difference is more than chance."""
    better = sum(gain.value > 2.0 * gain.error for gain in gains)
    worse = sum(gain.value < -2.0 * gain.error for gain in gains)
    return (
        f"{one} is more accurate than {other} by over two standard errors in {better} of "
        f"{len(gains)} and less in {worse}."
    )


def of_curves(results: Results, tasks: Sequence[Task]) -> list[str]:
    """Which method is lowest at the end of each panel."""
    rows = results.of(tasks)
    panels: dict[str, dict[str, float]] = {}
    for row in rows:
        panels.setdefault(row["data"], {})[row["method"]] = row["above"][-1]
    whole = [ends for ends in panels.values() if len(ends) == len(CURVES)]
    if not whole:
        return []
    first = [
        next(name for name in CURVES if ends[name] <= max(min(ends.values()), _ROUNDING))
        for ends in whole
    ]
    ours = sum(name.startswith("LP-ADMM") for name in first)
    last = [max(ends, key=ends.__getitem__) for ends in whole]
    common = max(set(last), key=last.count)
    said = [
        f"An LP-ADMM variant is lowest at the end in {ours} of {len(whole)} panels "
        f"(leading: {'; '.join(sorted(set(first)))}); {common} is highest in "
        f"{last.count(common)}. The paper says that LP-ADMM dominates."
    ]
    frozen = [row["above"][-1] for row in rows if row["method"] == PAPERS_PENALTY and _stands(row)]
    if frozen:
        said.append(
            f"With the paper's penalty the iterates stand still in {len(frozen)} panels, "
            f"{min(frozen):.0e} to {max(frozen):.0e} above the optimum."
        )
    return said


def _stands(row: Row) -> bool:
    """Whether the last half of the iterations changed the objective by less than a percent."""
    half = next(i for i, k in enumerate(row["at"]) if 2 * k >= row["at"][-1])
    return bool(abs(row["above"][half] - row["above"][-1]) < 0.01 * row["above"][-1])
