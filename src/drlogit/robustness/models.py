"""Any fitted linear classifier: its scores, and the table that a ball is stated for.

:func:`measured` reads our own estimators and results, plain ``(coef, intercept)``, linear
classifiers of scikit-learn, and pipelines, searches, frozen and thresholded estimators around them.
A model has up to two tables.  Its *own* table is the one that it was fitted to, with the ball of
the fit.  The *raw* table is the X that it is given: a ball that a user states for a pipeline is in
the units of the columns of X, which the steps have scaled or encoded (:mod:`.raw_table`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.tables.frames import is_frame, rows_of
from ..estimators.training_data import matrix_of
from ..problem.ball import Ball
from ..problem.features import Features, numbers
from ..problem.result import Result
from ..problem.table_statistics import class_shares, deviations, names_of, total_weight
from ..rows.arrays import FloatArray, Matrix
from ..rows.checks import as_numbers, check_features
from ..rows.matrix import row_chunks
from .raw_table import NO_SUM, Table, kinds_of, raw_table

#: The number of rows on which the scores of a model are compared with those that are computed here.
_COMPARED = 1000


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A linear classifier, as :func:`measured` finds it.

    Attributes
    ----------
    name : str
        The class of the classifier; empty for plain numbers.
    coef, intercept
        One score for two classes, positive for the second; one for each class of a softmax.
    classes : tuple or None
        The labels; None if those of the data, in sorted order, are the classes.
    steps : transformer or None
        The steps of a pipeline before the classifier.
    scorer : estimator or None
        The model that is given X, to compare scores with.
    fit : estimator or None
        The classifier, if it is one of ours.
    ball : Ball or None
        The ball of the fit in plain numbers, if it is known.
    threshold, pos_label
        Of a ``FixedThresholdClassifier``; None for others.
    """

    name: str
    coef: FloatArray
    intercept: Any
    classes: tuple[Any, ...] | None = None
    steps: Any = None
    scorer: Any = None
    fit: RobustLinearClassifier | None = None
    ball: Ball | None = None
    threshold: float | None = None
    pos_label: Any = None

    @property
    def several(self) -> bool:
        """Whether it is a softmax of more than two classes."""
        return self.coef.ndim == 2

    def table(self, X: Any, y: Any, weights: FloatArray | None, *, own: bool) -> Table:
        """The rows as the model was fitted (``own``), or in the units of X.

        ``y`` and weights are for shares and deviations.
        """
        names = self._names(X)
        if self.steps is not None and not own:
            scores = partial(self._said, "decision_function")
            scores(rows_of(X, np.arange(1)))  # what is wrong with X itself, the pipeline says
            return raw_table(scores, self.steps, X[names] if is_frame(X) else X, names, y, weights)
        matrix, shares = self._matrix(X), class_shares(y, weights)
        known = None if self.ball is None else self.ball.features
        if known is not None:
            return Table(matrix, self.coef, self.intercept, known)
        found, total = deviations(matrix, weights), total_weight(weights, matrix.shape[0])
        features = numbers(names, found, total, shares)
        return Table(matrix, self.coef, self.intercept, features, from_rows=True)

    def check_scores(self, X: Any, table: Table) -> bool:
        """Whether scores are log-odds; ``ValueError`` if the model's own scores are others.

        This compares some rows.  It catches pipelines in which columns do not add up, subclasses
        that transform their input, other column orders than that of the fit, and one-vs-rest models
        of several classes.
        """
        if self.scorer is None:
            return True
        n = table.matrix.shape[0]
        some = np.unique(np.linspace(0, n - 1, min(n, _COMPARED)).astype(np.intp))
        there, matrix = rows_of(X, some), table.matrix[some]
        ours = scores_of(matrix, table.coef, table.intercept)
        theirs, shares = self._said("decision_function", there), None
        if hasattr(self.scorer, "predict_proba"):
            shares = self._said("predict_proba", there)
        # Single precision, and cancellation: compare with the size of the terms of the sum.
        size = abs(matrix) @ np.abs(table.coef.T) + np.abs(table.intercept)
        if self.steps is not None:
            size = np.minimum(size, np.abs(theirs).max(axis=0))
        if theirs.shape != ours.shape or (np.abs(theirs - ours) > 1e-4 * (size + 1e-12)).any():
            plain = f"{self.name} does not score rows as x·coef_ + intercept_"
            raise ValueError(plain if self.steps is None else NO_SUM)
        expected = softmax(ours, 1) if self.several else np.stack([expit(-ours), expit(ours)], 1)
        same = shares is not None and np.allclose(shares, expected, atol=1e-6)
        if self.several and not same:
            raise ValueError(
                f"{self.name} was fitted on {len(self.coef)} classes and is no softmax: ask about "
                "one class against the rest, with (coef_[k], intercept_[k])"
            )
        return same

    def moved(self, X: Any, table: Table, index: Any, changes: Any) -> Any:
        """Rows of X after changes of the matrix, a sparse array with a row for each."""
        if self.steps is not None and table.features is getattr(self.ball, "features", None):
            raise ValueError(
                "the ball of this fit is in the columns that the steps of its pipeline make: state "
                "one for the columns of X, or ask about the last step alone"
            )
        there = table.matrix[index] + changes
        found = _moved_rows(X, index, table.features, there, changes)
        self.check_scores(found, table._replace(matrix=there))
        return found

    def _said(self, method: str, X: Any) -> Any:
        """What the model itself says of rows, without its warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(self.scorer, method)(X)

    def _matrix(self, X: Any) -> Matrix:
        """The rows that the coefficients are for."""
        Z = X if self.steps is None else self.steps.transform(X)
        matrix = check_features(Z) if self.fit is None else matrix_of(self.fit, Z)
        if matrix.shape[1] != self.coef.shape[-1]:
            raise ValueError(
                f"X has {matrix.shape[1]} features, but the model has {self.coef.shape[-1]}"
            )
        return matrix

    def _names(self, X: Any) -> list[Any]:
        """The columns of X, as the model knows them."""
        first = self.steps if self.steps is not None else self.fit
        named = getattr(first, "feature_names_in_", None)
        return list(names_of(X, np.shape(X)[1]) if named is None else named)


def scores_of(matrix: Matrix, coef: FloatArray, intercept: Any) -> FloatArray:
    """One score for each row, or a column of scores for each class."""
    found = np.empty((matrix.shape[0], *coef.shape[:-1]))
    for rows in row_chunks(*matrix.shape):  # converted to double precision a chunk at a time
        found[rows] = matrix[rows] @ coef.T
    return np.asarray(found + intercept)


def measured(model: Any) -> MeasuredModel:
    """The linear classifier in an estimator, a Result or a tuple; ``ValueError`` if none is."""
    if isinstance(model, Result):
        return MeasuredModel("", model.coef, model.intercept, ball=model.ball)
    if isinstance(model, tuple):
        if len(model) != 2:
            raise ValueError(f"a plain model is (coef, intercept), got a tuple of {len(model)}")
        return MeasuredModel("", *_numbers(*model, "", 2))
    scorer, cut = _unwrapped(model, {})
    classifier = scorer
    if hasattr(scorer, "steps"):
        classifier, cut = _unwrapped(scorer.steps[-1][1], cut)
    name, classes = type(classifier).__name__, getattr(classifier, "classes_", None)
    if hasattr(classifier, "fit") and is_regressor(classifier):
        raise ValueError(f"{name} predicts numbers, not labels: only classifiers can be audited")
    if not hasattr(classifier, "coef_"):
        raise ValueError(
            f"{name} has no coef_: a model must be a fitted linear classifier, a Result or a tuple "
            "(coef, intercept). Of one-vs-rest classifiers, audit estimators_[k] with the labels "
            "y == classes_[k]"
        )
    labels = None if classes is None else tuple(np.asarray(classes).tolist())
    offset, size = getattr(classifier, "intercept_", 0.0), len(labels or "ab")
    coef, intercept = _numbers(classifier.coef_, offset, f"_ of {name}", size)
    steps = scorer[:-1] if hasattr(scorer, "steps") and len(scorer.steps) > 1 else None
    fit = classifier if isinstance(classifier, RobustLinearClassifier) else None
    return MeasuredModel(
        name, coef, intercept, labels, steps, scorer, fit, getattr(fit, "ball_", None), **cut
    )


def _unwrapped(model: Any, cut: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The estimator in searches, frozen and thresholded ones, with the outermost cut-off."""
    while True:
        kinds = kinds_of(model)
        if "BaseThresholdClassifier" in kinds:
            cut = cut or _cut(model)
            model = getattr(model, "estimator_", model.estimator)
        elif "FrozenEstimator" in kinds:
            model = model.estimator
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            if hasattr(model, "fit"):
                check_is_fitted(model)
            return model, cut


def _cut(model: Any) -> dict[str, Any]:
    """The threshold, as a probability, and the positive class of a thresholded estimator."""
    inner = getattr(model, "estimator_", model.estimator)
    threshold = getattr(model, "best_threshold_", getattr(model, "threshold", "auto"))
    by_probability = model.response_method == "predict_proba"
    if model.response_method == "auto":
        by_probability = hasattr(inner, "predict_proba")
    if isinstance(threshold, str):
        threshold = 0.5 if by_probability else 0.0
    threshold = float(threshold if by_probability else expit(threshold))
    return {"threshold": threshold, "pos_label": getattr(model, "pos_label", None)}


def _numbers(coef: Any, intercept: Any, of: str, n_classes: int) -> tuple[FloatArray, Any]:
    """The coefficients, after their values and shapes were checked."""
    values, offsets = (
        as_numbers(given.toarray() if sp.issparse(given) else given, f"{name}{of}")
        for given, name in ((coef, "coef"), (intercept, "intercept"))
    )
    if not np.isfinite(values).all() or not np.isfinite(offsets).all():
        raise ValueError(f"coef{of} and intercept{of} must be finite, got NaN or infinity")
    if n_classes > 2:
        return values, offsets
    if values.ndim != 1 and values.shape[:-1] != (1,):
        raise ValueError(f"coef{of} must be a vector or a single row, got shape {values.shape}")
    if offsets.size != 1:
        raise ValueError(f"intercept{of} must be one number, got {intercept!r:.80}")
    return values.ravel(), float(offsets.ravel()[0])


def _moved_rows(X: Any, index: Any, features: Features, there: Any, changes: Any) -> Any:
    """Rows of X that have become the rows ``there`` of a matrix, in the form of X."""
    if sp.issparse(X):
        return sp.csr_array(sp.csr_array(X)[index] + changes)
    if hasattr(X, "to_pandas"):
        return type(X)(_moved_rows(X.to_pandas(), index, features, there, changes))
    if not hasattr(X, "iloc"):
        import pandas as pd

        frame = pd.DataFrame(np.asarray(X), columns=list(features.names))
        return _moved_rows(frame, index, features, there, changes).to_numpy()
    found, changed = X.iloc[index].copy(), sp.csc_array(changes)
    for feature in features.each:
        rows = np.unique(changed[:, feature.columns].nonzero()[0])
        if rows.size:
            place = found.columns.get_loc(feature.name)
            values = sp.csr_array(there)[rows][:, feature.columns].toarray()
            series = found.iloc[:, place].astype(object if feature.values else np.float64)
            if feature.values:
                series.iloc[rows] = [feature.values[k] for k in values.argmax(axis=1).tolist()]
            else:
                series.iloc[rows] = values[:, 0]
            found.isetitem(place, series)
    return found
