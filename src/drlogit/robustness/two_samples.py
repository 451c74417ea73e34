"""The distance between two samples: by column, by score, and a test of whether it is chance.

Column j must move by the distance ``W₁ⱼ`` between its two distributions, category g must change in
a share ``TV_g`` of the rows.  By Jensen's inequality, ``‖(c_j W₁ⱼ)_j‖ + Σ_g c_g TV_g`` is a lower
bound on the transport distance between the two samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import wasserstein_distance

from ..problem.domains import least_move
from ..rows.arrays import FloatArray, Matrix
from .adversary import Adversary
from .measured_features import MeasuredFeature

#: Bins of scores with equal shares of the pooled rows, to which reference rows are reweighted.
_BINS = 8

#: The permutation test takes at most this many rows of each sample, and the columns on which the
#: scores depend most.  More of them take longer and decide the same.
_TESTED_ROWS, _TESTED_FEATURES, _PERMUTATIONS = 1000, 300, 199


def score_weights(reference: FloatArray, new: FloatArray) -> tuple[FloatArray | None, float]:
    """Weights of reference rows that give their scores the distribution of the new ones, by bins.

    Also the share of new rows in bins without reference rows.  The weights sum to one; they are
    None if no bin has rows of both.
    """
    edges = np.quantile(np.concatenate([reference, new]), np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    here, there = np.searchsorted(edges, reference), np.searchsorted(edges, new)
    p, q = (np.bincount(bins, minlength=_BINS) / bins.size for bins in (here, there))
    weights = q[here] / p[here]
    total = float(weights.sum())
    return weights / total if total > 0.0 else None, float(q[p == 0.0].sum())


def moved_columns(audit: Adversary, old: Matrix, new: Matrix, declared: float | None) -> Any:
    """A frame with a row for each feature; the feature whose move costs most comes first."""
    import pandas as pd

    old, new = (sp.csc_array(each) if sp.issparse(each) else each for each in (old, new))
    costs, found = audit.measured.costs, []
    for feature in audit.features:
        moved = _distance(feature, old, new)
        cost = float(costs[feature.columns[0]])
        paid = moved * cost if moved > 0.0 else 0.0
        own = moved if feature.levels is not None else moved / abs(feature.scale)
        kind = "number" if feature.levels is None else "category"
        found.append((feature.name, kind, own, paid, paid / declared if declared else math.nan))
    frame = pd.DataFrame(found, columns=["feature", "kind", "moved", "cost", "multiple"])
    if not declared:
        frame = frame.drop(columns="multiple")
    return frame.sort_values("cost", ascending=False, kind="stable", ignore_index=True)


def _distance(feature: MeasuredFeature, old: Matrix, new: Matrix) -> float:
    """What a feature must move: ``W₁``, or the total variation of a category."""
    if feature.levels is None:
        j = int(feature.columns[0])
        return float(wasserstein_distance(_dense(old, [j]).ravel(), _dense(new, [j]).ravel()))
    # A row without any of the levels has a level of its own.
    shares = [_dense(each, feature.columns).mean(axis=0) for each in (old, new)]
    change = shares[1] - shares[0]
    return least_move(change)


def _dense(matrix: Matrix, columns: Any) -> FloatArray:
    some = matrix[:, columns]
    return np.asarray(some.toarray() if sp.issparse(some) else some, dtype=np.float64)


def p_value(
    audit: Adversary,
    old: Matrix,
    new: Matrix,
    losses: tuple[FloatArray, FloatArray] | None,
    random_state: int,
) -> float:
    """Permutation test of the hypothesis that both samples come from one population.

    One statistic is the sum of the distances of all columns in standard deviations, another, where
    ``losses`` of both samples are known, the difference of their means.  The smaller of the two
    p-values counts twice (Bonferroni).
    """
    rng = np.random.default_rng(random_state)
    some = [rng.permutation(each.shape[0])[:_TESTED_ROWS] for each in (old, new)]
    rows = [each[rows] for each, rows in zip((old, new), some, strict=True)]
    # Either may be sparse: a table is encoded as one where that is smaller.
    sparse = any(map(sp.issparse, rows))
    pooled = sp.csc_array(sp.vstack([*map(sp.csr_array, rows)])) if sparse else np.concatenate(rows)
    n_old, n_new = (each.size for each in some)
    # Each row of signs splits the pooled rows anew; the first is the split as it is.
    sign = np.repeat([-1.0 / n_old, 1.0 / n_new], [n_old, n_new])
    signs = np.array([sign, *(rng.permutation(sign) for _ in range(_PERMUTATIONS))])
    slopes = np.abs(audit.coefficients[:, :-1]).max(axis=0)
    use = [float(slopes[feature.columns].max()) for feature in audit.features]
    tested = np.argsort(use, kind="stable")[::-1][:_TESTED_FEATURES]
    distances = sum(_distances(audit.features[f], pooled, signs) for f in tested)
    statistics = [np.asarray(distances)]
    if losses is not None:
        both = np.concatenate([each[rows] for each, rows in zip(losses, some, strict=True)])
        statistics.append(np.abs(signs @ both))
    # Equal up to rounding counts as equal: a constant column must not decide.
    least = min(
        float(np.mean(each >= each[0] - 1e-12 * (1.0 + abs(each[0])))) for each in statistics
    )
    return min(1.0, len(statistics) * least)


def _distances(feature: MeasuredFeature, pooled: Matrix, signs: FloatArray) -> FloatArray:
    """The distances of a feature between the two parts of each split."""
    values = _dense(pooled, feature.columns)
    if feature.levels is not None:
        change = signs @ values
        return np.asarray(0.5 * (np.abs(change).sum(axis=1) + np.abs(change.sum(axis=1))))
    column = values[:, 0]
    deviation = float(column.std())
    if deviation == 0.0:
        return np.zeros(signs.shape[0])
    order = np.argsort(column, kind="stable")
    steps = np.diff(column[order]) / deviation
    return np.asarray(np.abs(np.cumsum(signs[:, order], axis=1)[:, :-1]) @ steps)
