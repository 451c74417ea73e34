"""Samples that occur several times, merged into one of their joint weight.

Data of few distinct values repeat themselves: of the samples of w8a 30 % are copies of
others, of those of phishing 47 %.  Copies have the same margin at every β and the same flip
share in a best dual point, so a solver may work with one of them; what it finds holds for all.

Copies are recognised by two random projections of features and label.  That they agree for
different samples has a probability of about 1e-20 per million samples, and would show in the
certificate, which never sees merged samples.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from .arrays import FloatArray, IndexArray, Matrix
from .matrix import DENSE_COPY_BYTES, matvec, take_rows

#: Merging copies the samples that stay; it pays if at most this share of them does ...
_WORTHWHILE = 0.9

#: ... and is not even looked for among fewer samples than this.
_FEW = 500


def merge_repeats(
    X: Matrix, y: FloatArray, weights: FloatArray, trust: FloatArray | None = None
) -> tuple[Matrix, FloatArray, FloatArray, FloatArray | None, IndexArray] | None:
    """Distinct samples with summed weights, and for each sample the one that stands for it.

    Labels of different ``trust`` are different.

    None where merging would not pay.
    """
    if y.size < _FEW or not (sp.issparse(X) or X.nbytes <= DENSE_COPY_BYTES):
        return None
    rng = np.random.default_rng(0)
    projection = rng.standard_normal((2, X.shape[1] + 1))
    # The labels as numbers that tell classes and costs of flips apart.
    label = y if trust is None else y * (1.0 + np.unique(trust, return_inverse=True)[1])
    found = _print(X, label, projection[0])
    # Most data have hardly any.  Where a fifth are copies of others, so are five of 5 √N samples.
    some = np.sort(rng.choice(found, 5 * math.isqrt(y.size), replace=False, shuffle=False))
    if (some[1:] != some[:-1]).all():
        return None
    order = np.argsort(found)
    one, other = found[order], _print(X, label, projection[1])[order]
    begins = np.append(True, (one[1:] != one[:-1]) | (other[1:] != other[:-1]))
    if begins.sum() > _WORTHWHILE * y.size:
        return None
    kept, stand_in, place = order[begins], np.empty_like(order), np.empty_like(order)
    stand_in[order] = kept[np.cumsum(begins) - 1]
    kept.sort()
    if sp.issparse(X):  # by length: loops over their entries end where the last one did
        length = np.diff(X.indptr)[kept].astype(np.uint16)  # which NumPy sorts by radix
        kept = kept[np.argsort(length, kind="stable")]
    place[kept] = np.arange(kept.size)
    origin = place[stand_in]
    merged = np.bincount(origin, weights).astype(np.float64)
    return take_rows(X, kept), y[kept], merged, None if trust is None else trust[kept], origin


def _print(X: Matrix, label: FloatArray, projection: FloatArray) -> FloatArray:
    """What copies have in common."""
    return np.asarray(matvec(X, projection[:-1]) + label * projection[-1])
