"""A ball in sentences: what it allows to be wrong, in the units of the table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .features import Features
from .stated_tolerances import StatedTolerances

_RIGHT = "No label is wrong."


def sentences(
    epsilon: float | None,
    kappa: Any,
    costs: Any,
    tolerances: StatedTolerances | None,
    features: Features | None,
) -> list[str]:
    """What a ball allows, a sentence each; without ``features`` it has not seen a table."""
    if epsilon == 0.0:
        return ["epsilon = 0: nothing may be wrong."]
    if tolerances is not None and isinstance(kappa, str):
        labels = _tolerated_labels(epsilon, tolerances)
    else:
        labels = _labels(epsilon, kappa)
    if features is not None and epsilon is not None:
        columns = _columns(epsilon, costs, features)
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
    if not isinstance(tolerances.labels, tuple):
        return _wrong_labels(times * tolerances.labels)
    each = [f"{percent(times * t)} of those labelled {c!r}" for c, t in tolerances.labels]
    return f"Labels may be wrong: {', '.join(each)}."


def _wrong_labels(share: float) -> str:
    return f"Up to {percent(share)} of the labels may be wrong." if share else _RIGHT


def _tolerated_columns(epsilon: float | None, tolerances: StatedTolerances) -> list[str]:
    """What was declared of columns that have not been seen."""
    times = 1.0 if epsilon is None else epsilon
    said = [
        f"{column} may be off by {times * value:g} on average; if it is a category, in "
        f"{percent(times * value)} of the rows."
        if value
        else f"{column} cannot be wrong."
        for column, value in tolerances.columns
    ]
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


def _columns(epsilon: float, costs: Any, features: Features) -> list[str]:
    """How far each column of a table alone may be off."""
    if not isinstance(costs, Mapping):
        return ["Several numbers may be off together, at the cost of a matrix."]
    still, moved, changed, multiples = [], {}, {}, set()
    for feature in features.each:
        cost = costs[feature.name]
        if math.isinf(cost):
            still.append(str(feature.name))
        elif feature.is_category:
            changed[str(feature.name)] = _share_at(epsilon, cost)
        else:
            moved[str(feature.name)] = f"{epsilon / cost:.3g}"
            multiples.add(f"{epsilon / cost / feature.deviation:.3g}")
    said = []
    if len(multiples) == 1 and len(moved) > 1:
        many = multiples.pop()
        said.append(f"Each number may be off by {many} standard deviations on average.")
    elif moved:
        said.append(f"Numbers may be off on average: {_each(moved, 'by')}.")
    if changed:
        said.append(f"Categories may be wrong: {_each(changed, 'in')} of the rows.")
    if still:
        said.append(f"Cannot be wrong: {listed(still)}.")
    return said


def listed(names: Iterable[Any], most: int = 8) -> str:
    """The first names, and how many there are besides."""
    shown = [f"{name:.60}" for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def _each(found: Mapping[str, str], word: str) -> str:
    """Columns with the same tolerance together."""
    if len(set(found.values())) == 1 and len(found) > 1:
        return f"each {word} {next(iter(found.values()))}"
    return listed(f"{name} {word} {value}" for name, value in found.items())


def _share_at(epsilon: float, cost: float) -> str:
    return percent(epsilon / cost if cost > 0.0 else 1.0)


def percent(share: float) -> str:
    """A share as text; not more than all."""
    return f"{100.0 * min(share, 1.0):.3g} %"
