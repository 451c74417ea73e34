"""A model's coefficients in the units of the table, and columns that work against each other.

Two columns that are nearly the same, with coefficients that cancel, let a small change of one of
them alone do much: a frequent reason for a fragile model, and easy to mend.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from .adversary import Adversary
from .pair_audit import PairAudit
from .sample_values import moments_of

#: Columns whose correlations are looked at: those with the largest effects.
_COMPARED = 200

#: Correlation from which two columns count as nearly the same: they share nine tenths of their
#: variance.
_SAME = 0.95


@dataclass(frozen=True)
class Coefficient:
    """The log-odds that one unit of a feature adds, or that a level adds to the average sample.

    ``effect`` is that of one standard deviation of the number, or of the 0 or 1 of the level.
    """

    feature: str
    level: str | None
    value: float
    effect: float


@dataclass(frozen=True)
class Opposites:
    """Two columns with the correlation and the effects that make them cancel."""

    one: str
    other: str
    correlation: float
    effects: tuple[float, float]


def coefficients(audit: PairAudit) -> tuple[list[Coefficient], float]:
    """All coefficients, and the intercept that goes with them, in the units of the table."""
    beta = audit.coefficients[:-1]
    deviations, means = deviations_and_means(audit)
    found, intercept = [], audit.problem.split(audit.coefficients)[1]
    for feature in audit.features:
        own = beta[feature.columns]
        if feature.levels is None:
            effect = float(own[0] * deviations[feature.columns[0]])
            found.append(Coefficient(feature.name, None, float(own[0] * feature.scale), effect))
            intercept += float(own[0] * feature.shift)
            continue
        average = float(own @ means[feature.columns])
        intercept += average
        for level, j, value in zip(feature.levels, feature.columns, own - average, strict=True):
            effect = float(value * deviations[j])
            found.append(Coefficient(feature.name, level, float(value), effect))
    return found, float(intercept)


def opposites(audit: PairAudit) -> list[Opposites]:
    """Numbers that are nearly the same (or nearly opposite) and whose effects cancel."""
    beta = audit.coefficients[:-1]
    deviations, _ = deviations_and_means(audit)
    effects = beta * deviations
    numbers = {
        int(feature.columns[0]): feature.name
        for feature in audit.features
        if feature.levels is None and effects[feature.columns[0]] != 0.0
    }
    chosen = np.array(sorted(numbers, key=lambda j: -abs(effects[j]))[:_COMPARED], dtype=np.intp)
    if chosen.size < 2:
        return []
    _, covariances = moments_of(audit, chosen)
    scale = np.sqrt(np.maximum(np.diag(covariances), np.finfo(float).tiny))
    correlations = covariances / np.outer(scale, scale)
    found = []
    for a, b in zip(*np.nonzero(np.triu(np.abs(correlations) >= _SAME, 1)), strict=True):
        one, other = float(effects[chosen[a]]), float(effects[chosen[b]])
        if one * other * correlations[a, b] < 0.0:
            names = numbers[int(chosen[a])], numbers[int(chosen[b])]
            found.append(Opposites(*names, float(correlations[a, b]), (one, other)))
    # What cancels most comes first.
    return sorted(found, key=lambda pair: -min(map(abs, pair.effects)))


def deviations_and_means(audit: Adversary) -> tuple[FloatArray, FloatArray]:
    """Standard deviations and means of all columns of the matrix."""
    rows = audit.problem.rows
    _, (means,) = rows.run(_means)
    means = np.asarray(means)[: audit.measured.costs.size]
    squares = rows.column_scale[: means.size] ** 2
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    return deviations, means if rows.shift is None else means + rows.shift


def _means(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    return None, (Sum(block.means),)
