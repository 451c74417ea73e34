"""A model's coefficients in the units of the table, and columns that work against each other.

Two columns that are nearly the same, with coefficients that cancel, let a small change of one of
them alone do much: a frequent reason for a fragile model, and easy to mend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rows.arrays import FloatArray
from .adversary import Adversary
from .pair_audit import PairAudit
from .sample_values import covariances_of

#: Columns whose correlations are looked at: those with the largest effects.
_COMPARED = 200

#: Correlation from which two columns count as nearly the same: they share nine tenths of their
#: variance.
_SAME = 0.95


def coefficients(audit: PairAudit) -> tuple[list[dict[str, Any]], float]:
    """All coefficients, largest effects first, and the intercept that goes with them.

    A ``value`` is the log-odds that one unit of a feature adds, in the units of the table, or that
    a level adds to the average sample; an ``effect`` that of one standard deviation of the number,
    or of the 0 or 1 of the level.
    """
    beta = audit.coefficients[:-1]
    deviations, means = deviations_and_means(audit)
    intercept = audit.problem.split(audit.coefficients)[1]
    found: list[dict[str, Any]] = []
    levels: tuple[str | None, ...]
    for feature in audit.features:
        columns, own = feature.columns, beta[feature.columns]
        if feature.levels is None:
            levels, values = (None,), own * feature.scale
            effects = own * deviations[columns]
            intercept += float(own[0] * feature.shift)
        else:
            average = float(own @ means[columns])
            levels, values = feature.levels, own - average
            effects = values * deviations[columns]
            intercept += average
        found += [
            {"feature": feature.name, "level": level, "value": value, "effect": effect}
            for level, value, effect in zip(levels, values, effects, strict=True)
        ]
    return sorted(found, key=lambda each: -abs(each["effect"])), float(intercept)


def opposites(audit: PairAudit) -> list[dict[str, Any]]:
    """Numbers that are nearly the same (or nearly opposite) and whose effects cancel.

    What cancels most comes first.
    """
    deviations, _ = deviations_and_means(audit)
    effects = audit.coefficients[:-1] * deviations
    numbers = {
        int(feature.columns[0]): feature.name
        for feature in audit.features
        if feature.levels is None and effects[feature.columns[0]] != 0.0
    }
    chosen = np.array(sorted(numbers, key=lambda j: -abs(effects[j]))[:_COMPARED], dtype=np.intp)
    if chosen.size < 2:
        return []
    covariances = covariances_of(audit, chosen)
    scale = np.sqrt(np.maximum(np.diag(covariances), np.finfo(float).tiny))
    correlations = covariances / np.outer(scale, scale)
    found = []
    for a, b in zip(*np.nonzero(np.triu(np.abs(correlations) >= _SAME, 1)), strict=True):
        pair, correlation = chosen[[a, b]], float(correlations[a, b])
        if np.prod(effects[pair]) * correlation < 0.0:
            one, other = (numbers[int(j)] for j in pair)
            found.append(
                {"one": one, "other": other, "correlation": correlation, "effects": effects[pair]}
            )
    return sorted(found, key=lambda pair: -np.abs(pair["effects"]).min())


def deviations_and_means(audit: Adversary) -> tuple[FloatArray, FloatArray]:
    """Standard deviations and means of all columns of the matrix."""
    rows = audit.problem.rows
    means = rows.column_means[: audit.measured.costs.size]
    squares = rows.column_scale[: means.size] ** 2
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    return deviations, means if rows.shift is None else means + rows.shift
