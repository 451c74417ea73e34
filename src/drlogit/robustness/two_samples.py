"""The distance between two samples: by column and by score.

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
from .measured_features import MeasuredFeature
from .old_adversary import Adversary

#: Bins of scores with equal shares of the pooled rows, to which reference rows are reweighted.
_BINS = 8


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
