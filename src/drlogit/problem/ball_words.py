"""A ball in sentences: what it allows to be wrong, in the units of the table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..rows.arrays import BoolArray
from .features import Features
from .stated_tolerances import StatedTolerances

_RIGHT = "No label is wrong."


def sentences(
    epsilon: float | None,
    kappa: Any,
    costs: Any,
    tolerances: StatedTolerances | None,
    features: Features | None,
    groups: Sequence[Sequence[int]] = (),
) -> list[str]:
    """What a ball allows, a sentence each; without ``features`` it has not seen a table.

    ``groups`` are the positions of one-hot columns that belong to one category.
    """
    if epsilon == 0.0:
        return ["epsilon = 0: nothing may be wrong."]
    if tolerances is not None and isinstance(kappa, str):
        labels = _tolerated_labels(epsilon, tolerances)
    else:
        labels = _labels(epsilon, kappa)
    if features is not None and epsilon is not None:
        columns = _columns(epsilon, costs, features, groups)
    elif tolerances is not None and isinstance(costs, str):
        columns = _tolerated_columns(epsilon, tolerances)
    elif not isinstance(costs, str):
        columns = ["Columns may be off at the stated costs."]
    elif epsilon is None:
        columns = ["Columns may be off by sampling error: ½/√N standard deviations on average."]
    else:
        columns = [f"Each number may be off by {epsilon:g} standard deviations on average."]
    together = ["These are alternatives within one budget, not a sum."]
    return [labels, *columns, *(together if len(columns) > 1 or labels != _RIGHT else [])]


def _labels(epsilon: float | None, kappa: Any) -> str:
    if isinstance(kappa, Mapping):
        if all(math.isinf(value) for value in kappa.values()):
            return _RIGHT
        if epsilon is None:
            each = [f"{value:g} for {label!r}" for label, value in kappa.items()]
            return f"Labels may be wrong at a cost: {', '.join(each)}."
        each = [
            f"{_share_at(epsilon, value)} (wrongly labelled {label!r})"
            for label, value in kappa.items()
        ]
        return f"Of all labels, these shares may be wrong: {', '.join(each)}."
    if isinstance(kappa, str) or np.ndim(kappa):
        return "Labels may be wrong at a cost for each row."
    if math.isinf(kappa):
        return _RIGHT
    if epsilon is None:
        return f"Labels may be wrong at a cost of {kappa:g}."
    return _wrong_labels(epsilon / kappa if kappa > 0.0 else 1.0)


def _tolerated_labels(epsilon: float | None, tolerances: StatedTolerances) -> str:
    times = 1.0 if epsilon is None else epsilon
    labels = tolerances.labels
    if not isinstance(labels, Mapping):
        return _wrong_labels(times * labels)
    each = [f"{percent(times * t)} of those labelled {c!r}" for c, t in labels.items()]
    return f"Labels may be wrong: {', '.join(each)}."


def _wrong_labels(share: float) -> str:
    return f"Up to {percent(share)} of the labels may be wrong." if share else _RIGHT


def _tolerated_columns(epsilon: float | None, tolerances: StatedTolerances) -> list[str]:
    """What was declared of columns that have not been seen."""
    times = 1.0 if epsilon is None else epsilon
    said = list[str]()
    for column, own in tolerances.columns.items():
        share = f"; if it is a category, in {percent(times * own)} of the rows"
        off = f"may be off by {times * own:g} on average{share if own < 1.0 else ''}"
        said.append(f"{column} {off if own else 'cannot be wrong'}.")
    for kind, value in (("numbers", tolerances.numbers), ("categories", tolerances.categories)):
        if value is None:
            said.append(f"Other {kind} may be off by sampling error on average.")
        elif value == 0.0:
            said.append(f"Other {kind} cannot be wrong.")
        elif kind == "numbers":
            said.append(f"Other numbers may be off by {times * value:g} standard deviations.")
        else:
            said.append(f"Other categories may be wrong in {percent(times * value)} of the rows.")
    return said


def _columns(
    epsilon: float, costs: Any, features: Features, groups: Sequence[Sequence[int]]
) -> list[str]:
    """How far each column of a table alone may be off."""
    if np.ndim(costs) == 2:
        return ["Several numbers may be off together, at the cost of a matrix."]
    if isinstance(costs, Mapping):
        costs = np.array([costs[name] for name in features.names])
    used = np.ones(costs.size, dtype=bool)
    if not features.are_columns:
        used = np.array([feature.columns.size > 0 for feature in features.each])
    names: Any = list(features.names) if groups else features.names
    said = list[str]()
    category = features.categories.copy()
    for group in groups:  # one name for all columns of a category
        category[group], used[group[1:]] = True, False
        names[group[0]] = " or ".join(str(names[j]) for j in group)
    still = used & np.isinf(costs)
    moved = used & ~still & ~category
    changed = used & ~still & category
    off = epsilon / costs[moved]
    times = off / features.deviations[moved]
    if times.size > 1 and np.ptp(times) <= 1e-3 * times.max():
        said.append(f"Each number may be off by {times[0]:.3g} standard deviations on average.")
    elif times.size:
        amounts = [f"{value:.3g}" for value in off.tolist()]
        said.append(f"Numbers may be off on average: {_each(names, moved, amounts, 'by')}.")
    if changed.any():
        shares = [_share_at(epsilon, cost) for cost in costs[changed].tolist()]
        said.append(f"Categories may be wrong: {_each(names, changed, shares, 'in')} of the rows.")
    if still.any():
        said.append(f"Cannot be wrong: {listed(names[j] for j in np.flatnonzero(still).tolist())}.")
    return said


def listed(names: Iterable[Any], most: int = 8) -> str:
    """The first names, and how many there are besides."""
    shown = [f"{name!s:.60}" for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def _each(names: Sequence[Any], which: BoolArray, amounts: list[str], word: str) -> str:
    """Columns with what they may be off by; together if it is the same."""
    if len(set(amounts)) == 1 < len(amounts):
        return f"each {word} {amounts[0]}"
    places = np.flatnonzero(which).tolist()
    pairs = zip(places, amounts, strict=True)
    return listed(f"{names[j]} {word} {amount}" for j, amount in pairs)


def _share_at(epsilon: float, cost: float) -> str:
    return percent(epsilon / cost if cost > 0.0 else 1.0)


def percent(share: float) -> str:
    """A share as text; not more than all."""
    return f"{100.0 * min(share, 1.0):.3g} %"
