"""The worst-case distribution beside the data: probabilities against what happens, and features.

It is the one that is worst for the log-loss; that of the error is another
(:mod:`.misclassification`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ..rows.arrays import FloatArray, IndexArray
from .features import Feature, plain_number
from .pair_audit import PairAudit
from .worst_case import WorstCaseDistribution

#: Bins of probabilities.
_TENTHS = 10

#: Bins of a number between the 1st and the 99th percentile; what lies outside has one at each end.
_BINS = 18

#: Levels of a category that are told apart; the others are taken together.
_LEVELS = 8


def calibration(audit: PairAudit, distribution: WorstCaseDistribution) -> dict[str, Any]:
    """Of each tenth of the probabilities: mass, mean probability, and share of positive labels.

    Of empty tenths the latter two are 0; the expected calibration ``error`` is how far apart they
    are on average.
    """
    scores = (audit.signs * audit.u)[distribution.index] + audit.sensitivity * distribution.shift
    if distribution.changes is not None:
        scores = scores + distribution.changes @ audit.coefficients[:-1]
    positive = (audit.codes[distribution.index] == 1) != distribution.flipped
    p, w = expit(scores), distribution.mass
    places = np.minimum((p * _TENTHS).astype(np.intp), _TENTHS - 1)
    mass, predicted, observed = (
        np.bincount(places, values, minlength=_TENTHS).astype(np.float64)
        for values in (w, w * p, w * positive)
    )
    some = np.where(mass > 0.0, mass, 1.0)
    probability, share = predicted / some, observed / some
    error = float(mass @ np.abs(probability - share))
    return {"mass": mass, "probability": probability, "observed": share, "error": error}


def shifted_features(
    audit: PairAudit, features: Sequence[Feature], distributions: Iterable[WorstCaseDistribution]
) -> list[dict[str, Any]]:
    """Shares of a feature's bins in the data, and in each of the distributions."""
    drawn = [_bins_of(audit, feature) for feature in features]
    if not drawn:
        return []
    shares = [[bins.shares_in(each) for bins in drawn] for each in distributions]
    found = []
    for bins, worst in zip(drawn, zip(*shares, strict=True), strict=True):
        data, moved = _sums(bins.places, audit.weights, len(bins.labels)), np.array(worst)
        labels, edges = list(bins.labels), None
        if bins.edges is None:
            labels, data, moved = _most_changed(labels, data, moved)
        else:
            edges = (bins.edges - bins.feature.shift) / bins.feature.scale
        name = bins.feature.name
        found.append({"name": name, "edges": edges, "labels": labels, "data": data, "worst": moved})
    return found


def _most_changed(
    labels: list[str], data: FloatArray, moved: FloatArray
) -> tuple[list[str], FloatArray, FloatArray]:
    """Levels that change most first, then the frequent ones; the others share a bar."""
    change, most = np.abs(moved - data).max(axis=0), np.maximum(data, moved.max(axis=0))
    order = np.lexsort((-most, -np.round(change, 9)))
    order = order[most[order] > 0.0]
    kept, rest = order[:_LEVELS], order[_LEVELS:]
    labels = [labels[j] for j in kept]
    if not rest.size:
        return labels, data[kept], moved[:, kept]
    return (
        [*labels, f"{rest.size} others"],
        np.append(data[kept], data[rest].sum()),
        np.column_stack([moved[:, kept], moved[:, rest].sum(axis=1)]),
    )


@dataclass(frozen=True, eq=False)
class _Bins:
    """A feature cut into bins: the levels of a category, or ranges of a number.

    ``labels`` name the bins; ``places`` are those of the samples; ``edges`` those of a number.
    """

    feature: Feature
    labels: tuple[str, ...]
    places: IndexArray
    values: FloatArray | None = None
    edges: FloatArray | None = None

    def shares_in(self, distribution: WorstCaseDistribution) -> FloatArray:
        """The share of each bin in a distribution of the samples after their moves."""
        columns, index = self.feature.columns, distribution.index
        places = self.places[index]
        changed = None if distribution.changes is None else distribution.changes[:, columns]
        if self.values is not None and self.edges is not None:
            values = self.values[index] + distribution.shift * distribution.direction[columns[0]]
            if changed is not None:
                values = values + changed.toarray()[:, 0]
            places = _binned(values, self.edges)
        elif changed is not None:
            entries = changed.tocoo()
            left, entered = entries.data < 0.0, entries.data > 0.0
            places[entries.row[left]] = columns.size
            places[entries.row[entered]] = entries.col[entered]
        return _sums(places, distribution.mass, len(self.labels))


def _bins_of(audit: PairAudit, feature: Feature) -> _Bins:
    """Cut a feature into bins; "none of its levels" is the last of a category."""
    if feature.levels is not None:
        levels = audit.values_of(feature.columns)
        places = np.where(levels.any(axis=1), levels.argmax(axis=1), feature.columns.size)
        return _Bins(feature, (*feature.levels, feature.otherwise), places)
    values = audit.values_of(feature.columns)[:, 0]
    low, high = np.quantile(values, [0.01, 0.99])
    if low == high:
        low, high = values.min(), values.max()
    distinct = np.unique(values[(values >= low) & (values <= high)])
    if distinct.size <= _BINS:  # whole numbers, most often: a bin for each
        middles = 0.5 * (distinct[1:] + distinct[:-1])
        step = np.diff(distinct).min(initial=1.0)
        edges = np.concatenate([[distinct[0] - 0.5 * step], middles, [distinct[-1] + 0.5 * step]])
    else:
        edges = np.linspace(low, high, _BINS + 1)
    own = (edges - feature.shift) / feature.scale
    ends = [plain_number(edge, 4) for edge in own.tolist()]
    ranges = [f"{a} to {b}" for a, b in itertools.pairwise(ends)]
    before, after = ("below", "above") if feature.scale > 0.0 else ("above", "below")
    labels = (f"{before} {ends[0]}", *ranges, f"{after} {ends[-1]}")
    return _Bins(feature, labels, _binned(values, edges), values, edges)


def _sums(places: IndexArray, mass: FloatArray, count: int) -> FloatArray:
    return np.bincount(places, mass, minlength=count).astype(np.float64)


def _binned(values: FloatArray, edges: FloatArray) -> IndexArray:
    # The last range includes its end, as histograms do.
    places = np.searchsorted(edges, values, side="right")
    return np.where(values == edges[-1], edges.size - 1, places)
