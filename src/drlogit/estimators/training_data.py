"""Training data as an estimator hands them to its fits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..rows.arrays import FloatArray, Matrix
from ..rows.row_blocks import is_in_blocks


@dataclass(frozen=True, eq=False)
class Samples:
    """Training data as the fits see them: ``weights`` include those of the classes."""

    X: Matrix
    y: np.ndarray[Any, Any]
    codes: np.ndarray[Any, np.dtype[np.intp]]
    weights: FloatArray | None
    n_classes: int

    @property
    def targets(self) -> list[np.ndarray[Any, np.dtype[np.bool_]]]:
        """What to tell from the rest: each class, or only the second of two."""
        wanted = [1] if self.n_classes == 2 else range(self.n_classes)
        return [self.codes == code for code in wanted]

    def picked(self, index: Any) -> Any:
        """The index in the form that X takes: ascending numbers where X is in blocks."""
        return np.sort(np.arange(self.codes.size)[index]) if is_in_blocks(self.X) else index

    def part(self, index: Any) -> Samples:
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[index]
        return replace(
            self, X=self.X[index], y=self.y[index], codes=self.codes[index], weights=weights
        )

    def prepared(self) -> Samples:
        """The samples as a fit takes them: those of weight zero left out.

        With fewer than two samples per feature, a hyperplane usually separates them (Cover 1965),
        the optimum is a whole set, and rounding decides at which of its points a solver ends.
        There, equal samples are merged and all put in an order of their own, so that neither
        their order nor repeating a sample instead of giving it weight two changes the model.
        """
        counted = self
        if is_in_blocks(self.X):  # larger than this is meant for
            return self
        if self.weights is not None and not self.weights.all():
            counted = self.part(np.flatnonzero(self.weights))
        n_samples, n_features = counted.X.shape
        return counted if n_samples >= 2 * n_features else counted._merged()

    def _merged(self) -> Samples:
        """Each distinct sample once, in the order of a digest of its contents."""
        weights = np.ones(self.codes.size) if self.weights is None else self.weights
        digests = np.array(
            [_digest(self.X, i, code) for i, code in enumerate(self.codes)], dtype="S16"
        )
        _, first, group = np.unique(digests, return_index=True, return_inverse=True)
        return replace(self.part(first), weights=np.bincount(group, weights).astype(np.float64))


def _digest(X: Matrix, row: int, code: int) -> bytes:
    """Sixteen bytes that stand for the contents of a row and its class."""
    digest = hashlib.blake2b(str(code).encode(), digest_size=16)
    if sp.issparse(X):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        digest.update(X.indices[entries])
        digest.update(X.data[entries])
    else:
        digest.update(np.ascontiguousarray(X[row]).data)
    return digest.digest()
