"""What a fitted linear classifier answers: scores, labels, probabilities, itself in other forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..rows.arrays import FloatArray
from ..rows.row_blocks import RowBlocks, is_in_blocks
from .label_noise import true_probabilities
from .matrices import matrix_of
from .tables.encoding import Encoding, numbers_only


class LinearPredictions(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Answers of a classifier with ``coef_``, ``intercept_`` and ``classes_``."""

    # Of models that were fitted to a matrix; also of those that were pickled before there were
    # encodings.
    encoding_: Encoding | None = None
    feature_costs_: Any = None
    categories_: Any = None
    bounds_: Any = None

    #: Shares of true classes (rows) that are recorded as others, if labels are known to be wrong.
    label_noise_: FloatArray | None = None

    @property
    def _names_given(self) -> Sequence[Any]:
        """Names of the columns of X, or their positions."""
        if self.encoding_ is not None:
            return [column.name for column in self.encoding_.columns]
        return getattr(self, "feature_names_in_", range(self.n_features_in_))

    @property
    def _table(self) -> Encoding:
        """The columns of X, and the columns of ``coef_`` that each has become."""
        return numbers_only(self._names_given) if self.encoding_ is None else self.encoding_

    def decision_function(self, X: Any) -> FloatArray:
        """Signed scores: the margin of the second class, or one column for each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            ``x·β + b``; with two classes, positive where the second is predicted.  With
            ``label_noise`` these are scores of labels as recorded.
        """
        check_is_fitted(self, "coef_")
        if is_in_blocks(X):
            n_columns = None if self.classes_.size == 2 else self.classes_.size
            return self._by_block(self.decision_function, X, n_columns, np.float64)
        X = matrix_of(self, X)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def to_sklearn(self) -> Any:
        """The fitted model as one of scikit-learn's own, to be served without drlogit.

        Returns
        -------
        LogisticRegression or Pipeline
            With the same coefficients; with the encoding of a table in front, if there is one.

        Raises
        ------
        ValueError
            A category has truth values and missing ones; or the model knows of ``label_noise``.
        """
        from .exports import plain_model

        check_is_fitted(self, "coef_")
        return plain_model(self)

    def coefficient_table(self) -> list[dict[str, Any]]:
        """The coefficients by column and level: ``pandas.DataFrame(model.coefficient_table())``.

        Returns
        -------
        list of dict
            For each column of the training table, and each level of a category: ``column``,
            ``level`` (None for a number), ``cost`` (of moving it by one, or of changing the
            category) and ``coefficient``; with more than two classes, ``class`` in front.
            Those of a category are relative to the average training sample, if there is an
            intercept.
        """
        check_is_fitted(self, "coef_")
        costs = self.feature_costs_
        costs = np.ones(self.coef_.shape[1]) if costs is None else costs
        places = [
            (column.name, level) for column in self._table.columns for level in column.shown_levels
        ]
        several = self.coef_.shape[0] > 1
        return [
            {
                **({"class": self.classes_[k]} if several else {}),
                "column": column,
                "level": level,
                "cost": float(costs[j]),
                "coefficient": float(row[j]),
            }
            for k, row in enumerate(self.coef_)
            for j, (column, level) in enumerate(places)
        ]

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most probable class of each sample of X."""
        if is_in_blocks(X):
            return self._by_block(self.predict, X, None, self.classes_.dtype)
        if self.label_noise_ is not None:
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        scores = self.decision_function(X)
        codes = (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities for each sample of X, a column for each of ``classes_``.

        Of the true classes, where ``label_noise`` is known; with more than two, the softmax of the
        scores.
        """
        if is_in_blocks(X):
            return self._by_block(self.predict_proba, X, self.classes_.size, np.float64)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            recorded = np.column_stack([expit(-scores), expit(scores)])
        else:
            recorded = np.asarray(softmax(scores, axis=1))
        noise = self.label_noise_
        return recorded if noise is None else true_probabilities(recorded, noise)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, finite however sure the model is."""
        if is_in_blocks(X):
            return self._by_block(self.predict_log_proba, X, self.classes_.size, np.float64)
        if self.label_noise_ is not None:
            return np.asarray(np.log(self.predict_proba(X)))
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    def _by_block(
        self, method: Callable[[Any], Any], X: Any, n_columns: int | None, dtype: Any
    ) -> np.ndarray[Any, Any]:
        """Predictions block by block; for Dask collections as a Dask array."""
        check_is_fitted(self, "coef_")
        if isinstance(X, RowBlocks):
            return np.asarray(X.map(method))
        from ..rows.dask_collections import map_rows

        lazy: np.ndarray[Any, Any] = map_rows(method, X, n_columns, dtype)
        return lazy
