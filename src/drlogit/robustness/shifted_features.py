"""The worst-case distribution of single features, beside that of the data."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from .features import Feature, plain_number
from .pair_audit import PairAudit
from .sample_values import levels_of, values_of
from .worst_case import WorstCaseDistribution

#: Between the 1st and the 99th percentile; what lies outside has a bin at each end.
_BINS = 18


@dataclass(frozen=True, eq=False)
class Bins:
    """A feature cut into bins: the levels of a category, or ranges of a number.

    ``labels`` name the bins; ``places`` are those of the samples; ``edges`` those of a number.
    """

    feature: Feature
    labels: tuple[str, ...]
    places: IndexArray
    values: FloatArray | None = None
    edges: FloatArray | None = None

    @property
    def own_edges(self) -> FloatArray:
        """The edges of a number's ranges in its own units, in the order of the bins."""
        assert self.edges is not None
        return (self.edges - self.feature.shift) / self.feature.scale

    def shares(self, mass: FloatArray) -> FloatArray:
        """The share of each bin in the data."""
        return _sums(self.places, mass, len(self.labels))

    def shares_in(self, distribution: WorstCaseDistribution) -> FloatArray:
        """The share of each bin in a distribution of the samples after their moves."""
        columns, index = self.feature.columns, distribution.index
        places = self.places[index]
        changed = None if distribution.changes is None else distribution.changes[:, columns]
        if self.values is None:
            if changed is not None:
                entries = changed.tocoo()
                left, entered = entries.data < 0.0, entries.data > 0.0
                places[entries.row[left]] = columns.size
                places[entries.row[entered]] = entries.col[entered]
        else:
            values = self.values[index] + distribution.shift * distribution.direction[columns[0]]
            if changed is not None:
                values = values + changed.toarray()[:, 0]
            places = _binned(values, self.edges)
        return _sums(places, distribution.mass, len(self.labels))


def bins_of(audit: PairAudit, feature: Feature) -> Bins:
    """Cut a feature into bins; "none of its levels" is the last of a category."""
    if feature.levels is not None:
        places = levels_of(audit, feature.columns)
        places = np.where(places < 0, feature.columns.size, places)
        return Bins(feature, (*feature.levels, feature.otherwise), places)
    values = values_of(audit, int(feature.columns[0]))
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
    return Bins(feature, labels, _binned(values, edges), values, edges)


def _sums(places: IndexArray, mass: FloatArray, count: int) -> FloatArray:
    return np.bincount(places, mass, minlength=count).astype(np.float64)


def _binned(values: FloatArray, edges: FloatArray | None) -> IndexArray:
    assert edges is not None
    # The last range includes its end, as histograms do.
    places = np.searchsorted(edges, values, side="right")
    return np.where(values == edges[-1], edges.size - 1, places)
