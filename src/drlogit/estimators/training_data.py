"""Training data as an estimator hands them to its fits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.classes import ClassProblem, pose_classes
from ..problem.problem import Problem, pose_problem
from ..rows.arrays import FloatArray, IndexArray, Matrix
from ..rows.building import checked_rows
from ..rows.checks import check_weights, signs_of
from ..rows.interface import Rows
from ..rows.row_blocks import is_dask, is_in_blocks


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Samples that have been checked, once: fits take them as they are.

    ``codes`` are the labels as positions among the classes; ``weights`` include those of the
    classes.  ``kappa`` is what flips cost, as :func:`~drlogit.problem.label_costs.flip_costs` has
    it, None where it has yet to be chosen.  ``origin`` has, for each sample that was given, which
    of these it has become, -1 for none; it is None if they are the same.
    """

    X: Matrix
    y: np.ndarray[Any, Any]
    codes: IndexArray
    weights: FloatArray | None
    classes: np.ndarray[Any, Any]
    kappa: Any = None
    origin: IndexArray | None = None

    @property
    def n_classes(self) -> int:
        return int(self.classes.size)

    def pose(
        self, *, kappa: Any, n_jobs: int | None = None, **model: Any
    ) -> Problem | ClassProblem:
        """The problem of these samples; their own κ, if they have one, comes first."""
        kappa = kappa if self.kappa is None else self.kappa
        rows = partial(self._rows, n_jobs)
        if self.n_classes == 2:
            return pose_problem(rows, kappa=kappa, **model)
        return pose_classes(rows, self.codes, self.classes, kappa=kappa, **model)

    def unit(self, problem: Problem | ClassProblem) -> Any:
        """What one is in a search over κ: the samples' own κ as posed, if they have one."""
        return 1.0 if self.kappa is None else problem.kappa

    def _rows(self, n_jobs: int | None, *, intercept: bool) -> Rows:
        signs = signs_of(self.codes, 1)
        if self.n_classes > 2:
            signs = 0.0 * signs + 1.0  # labels are beside the rows
        if is_dask(self.X):
            from ..rows.dask_collections import dask_rows  # an optional package

            return dask_rows(self.X, signs, self.weights, intercept=intercept, signs=True)
        weights = None if self.weights is None else check_weights(self.weights, signs.size)
        return checked_rows(self.X, signs, weights, intercept=intercept, n_jobs=n_jobs)

    def column_means(self) -> FloatArray:
        """Mean of every feature, where X is in memory."""
        weights = np.ones(self.codes.size) if self.weights is None else self.weights
        return np.asarray((weights / weights.sum()) @ self.X).ravel()

    def picked(self, index: Any) -> Any:
        """The index in the form that X takes: ascending numbers where X is in blocks."""
        return np.sort(np.arange(self.codes.size)[index]) if is_in_blocks(self.X) else index

    def part(self, index: Any) -> TrainingData:
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[index]
        return replace(
            self, X=self.X[index], y=self.y[index], codes=self.codes[index], weights=weights,
            kappa=self.kappa_of(index),
        )  # fmt: skip

    def kappa_of(self, index: Any) -> Any:
        """What flips of some of the samples cost."""
        by_sample = isinstance(self.kappa, np.ndarray) and self.kappa.ndim == 1
        return self.kappa[index] if by_sample else self.kappa

    def prepared(self) -> TrainingData:
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
            there = self.weights > 0.0
            origin = np.where(there, np.cumsum(there) - 1, -1)
            counted = replace(self.part(np.flatnonzero(there)), origin=origin)
        n_samples, n_features = counted.X.shape
        return counted if n_samples >= 2 * n_features else counted._merged()

    def _merged(self) -> TrainingData:
        """Each distinct sample once, in the order of a digest of its contents."""
        weights = np.ones(self.codes.size) if self.weights is None else self.weights
        by_sample = isinstance(self.kappa, np.ndarray) and self.kappa.ndim == 1
        each = self.kappa if by_sample else np.zeros(self.codes.size)
        labels = enumerate(zip(self.codes.tolist(), each.tolist(), strict=True))
        digests = np.array([_digest(self.X, i, label) for i, label in labels], dtype="S16")
        _, first, group = np.unique(digests, return_index=True, return_inverse=True)
        origin = (
            group if self.origin is None else np.where(self.origin >= 0, group[self.origin], -1)
        )
        return replace(
            self.part(first), weights=np.bincount(group, weights).astype(np.float64), origin=origin
        )


def balanced_weights(codes: IndexArray, weights: FloatArray | None, n_classes: int) -> FloatArray:
    """Weights by which every class gets the same total; those of weight two count twice.

    Classes without any weight keep none.
    """
    weights = np.ones(codes.size) if weights is None else weights
    totals = np.bincount(codes, weights, minlength=n_classes)
    shares = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
    return weights * shares[codes]


def _digest(X: Matrix, row: int, label: tuple[int, float]) -> bytes:
    """Sixteen bytes that stand for the contents of a row, its class, and what a flip costs."""
    digest = hashlib.blake2b(repr(label).encode(), digest_size=16)
    if sp.issparse(X):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        digest.update(X.indices[entries])
        digest.update(X.data[entries])
    else:
        digest.update(np.ascontiguousarray(X[row]).data)
    return digest.digest()
