"""Any fitted linear classifier: its scores, and the table that a ball is stated for.

:func:`measured` reads our own estimators and results, plain ``(coef, intercept)``, linear
classifiers of scikit-learn, and pipelines, searches, frozen and thresholded estimators around them.
A model has up to two tables.  Its *own* table is the one that it was fitted to, with the ball of
the fit.  The *raw* table is the X that it is given: a ball that a user states for a pipeline is in
the units of the columns of X, which the steps have scaled or encoded (:mod:`.raw_columns`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.tables.frames import rows_of
from ..estimators.training_data import matrix_of
from ..problem.ball import Ball
from ..problem.features import Feature, Features, numbers
from ..problem.result import Result
from ..problem.table_statistics import class_shares, deviations, names_of
from ..rows.arrays import FloatArray, Matrix
from ..rows.checks import as_numbers, check_features
from ..rows.matrix import row_chunks
from .raw_columns import Column, follow_steps, kinds_of, level_column

#: The number of rows on which the scores of a model are compared with those that are computed here.
_COMPARED = 1000
#: What to do about a pipeline whose columns cannot be followed.
_LAST_STEP = (
    "transform the data first and ask about the last step alone: model[-1] with "
    "model[:-1].transform(X)"
)


class Table(NamedTuple):
    """Rows as a matrix of numbers, the model of its columns, and what they mean.

    ``columns`` says where the columns of the matrix come from in X; empty if they are those of X.
    ``from_rows``: deviations are those of the rows at hand, because those of the rows of the fit
    are not known.
    """

    matrix: Matrix
    coef: FloatArray
    intercept: Any
    features: Features
    columns: tuple[Column, ...]
    from_rows: bool = False


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

    def own_table(self, X: Any) -> Table:
        """The rows as the model was fitted; ``ball`` is stated for this table."""
        assert self.ball is not None
        assert self.ball.features is not None
        columns = self._columns(self._names(X))
        return Table(self._matrix(X), self.coef, self.intercept, self.ball.features, columns)

    def raw_table(self, X: Any, y: Any, weights: FloatArray | None) -> Table:
        """The rows in the units of X; ``y`` and weights are for shares and deviations."""
        if self.steps is None and self.ball is not None:
            return self.own_table(X)
        names, matrix, shares = self._names(X), self._matrix(X), class_shares(y, weights)
        total = float(matrix.shape[0] if weights is None else weights.sum())
        columns = self._columns(names)
        if self.steps is None:
            features = numbers(names, deviations(matrix, weights), total, shares)
            return Table(matrix, self.coef, self.intercept, features, columns, from_rows=True)
        self._refuse_unknown(columns)
        coef, intercept = self.coef, self.intercept
        hot = np.array([column.group is not None for column in columns])
        scale = np.where(hot, [column.scale for column in columns], 1.0)
        shift = np.where(hot, [column.shift for column in columns], 0.0)
        if (scale != 1.0).any() or shift.any():
            matrix = _zeros_and_ones(matrix, hot=hot, scale=scale, shift=shift)
            coef, intercept = coef * scale, intercept + coef @ shift
        seen = next((column.n_rows for column in columns if column.n_rows), None)
        known = all(c.deviation is not None for c in columns if c.is_number)
        deviation = np.ones(len(columns)) if known else deviations(matrix, weights)
        each = [_feature(j, name, columns, deviation) for j, name in enumerate(names)]
        features = Features(tuple(each), len(columns), seen or total, shares)
        return Table(matrix, coef, intercept, features, columns, not (known and seen))

    def check_scores(self, X: Any, table: Table) -> bool:
        """Whether scores are log-odds; ``ValueError`` if the model's own scores are others.

        This compares some rows.  It catches subclasses that transform their input, other column
        orders than that of the fit, and one-vs-rest models of several classes.
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
        terms = abs(matrix) @ np.abs(table.coef.T) + np.abs(table.intercept)
        if theirs.shape != ours.shape or (np.abs(theirs - ours) > 1e-4 * (terms + 1e-12)).any():
            raise ValueError(
                f"{self.name} does not score rows as x·coef_ + intercept_: {_LAST_STEP}"
            )
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
        changes = sp.csc_array(changes)
        some = np.unique(sp.find(changes)[1]).tolist()
        columns = {j: table.columns[j] if table.columns else Column(j) for j in some}
        for unknown in (column for column in columns.values() if column.source is None):
            raise ValueError(
                f"the worst case changes what step {unknown.step} has made, which is not a column "
                f"of X: {_LAST_STEP}"
            )
        found = _changed(X, self._names(X), index, changes, columns)
        if self.scorer is not None:
            ours = scores_of(table.matrix[index] + changes, table.coef, table.intercept)
            theirs = self._said("decision_function", found)
            if not np.allclose(theirs, ours, rtol=1e-4, atol=1e-6 * (1.0 + np.abs(ours).max())):
                raise ValueError(
                    "the worst case cannot be written in the columns of X, because a step uses one "
                    f"of them in several ways: {_LAST_STEP}"
                )
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

    def _columns(self, names: Sequence[Any]) -> tuple[Column, ...]:
        """Where the columns of the matrix come from in X."""
        features = None if self.fit is None else self.fit.ball_.features
        table = None if features is None or features.are_columns else features.each
        if self.steps is None and table is None:
            return ()
        columns, width = [Column(j) for j in range(len(names))], int(self.coef.shape[-1])
        if self.steps is not None:
            seen = width if self.fit is None else self.fit.n_features_in_
            columns = follow_steps(self.steps.steps, columns, seen)
        return tuple(columns if table is None else _encoded(table, columns))

    def _refuse_unknown(self, columns: Sequence[Column]) -> None:
        """``ValueError`` if the model uses columns that are not columns of X, scaled or encoded."""
        used = [bool(own.any()) for own in np.atleast_2d(self.coef).T]
        for column in (c for c, own in zip(columns, used, strict=True) if own and c.step):
            raise ValueError(
                f"a ball is stated for the columns of X, and step {column.step} is not known to "
                f"scale, encode or choose columns: {_LAST_STEP}"
            )


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
    if not hasattr(model, "fit") and not hasattr(model, "coef_"):
        raise ValueError(
            "model must be a fitted linear classifier, a Result or a tuple (coef, intercept), "
            f"got {type(model).__name__}"
        )
    scorer, cut = _unwrapped(model, {})
    classifier = scorer
    if hasattr(scorer, "steps"):
        classifier, cut = _unwrapped(scorer.steps[-1][1], cut)
    name, classes = type(classifier).__name__, getattr(classifier, "classes_", None)
    if is_regressor(classifier):
        raise ValueError(f"{name} predicts numbers, not labels: only classifiers can be audited")
    if not hasattr(classifier, "coef_"):
        raise ValueError(
            f"{name} has no coef_: only linear models can be audited. Of one-vs-rest classifiers, "
            "audit estimators_[k] with the labels y == classes_[k]"
        )
    labels = None if classes is None else tuple(np.asarray(classes).tolist())
    coef, intercept = _numbers(
        classifier.coef_,
        getattr(classifier, "intercept_", 0.0),
        f"_ of {name}",
        len(labels or "ab"),
    )
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
    method = model.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    if isinstance(threshold, str):
        threshold = 0.5 if method == "predict_proba" else 0.0
    probability = float(threshold if method == "predict_proba" else expit(threshold))
    pos_label = getattr(model, "pos_label", None)
    return {"threshold": probability, "pos_label": pos_label}


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


# --- columns ------------------------------------------------------------------------------------


def _feature(j: int, name: Any, columns: Sequence[Column], deviation: FloatArray) -> Feature:
    """The feature of the column j of X, whose deviations in the matrix are known."""
    places = np.array([k for k, c in enumerate(columns) if c.source == j], dtype=np.intp)
    own = [columns[k] for k in places]
    if len({c.group for c in own}) > 1 or (len(own) > 1 and own[0].is_number):
        raise ValueError(
            f"the pipeline uses the column {name!r:.60} in several ways, so that its moves have no "
            f"single cost: {_LAST_STEP}"
        )
    if not own:
        return Feature(name, places)
    first = own[0]
    if first.is_number:
        known = first.deviation or float(deviation[places[0]]) / abs(first.scale)
        return Feature(name, places, scale=first.scale, shift=first.shift, deviation=known)
    levels, otherwise = tuple(c.level for c in own), first.otherwise
    return Feature(name, places, levels, with_none=first.with_none, otherwise=otherwise)


def _zeros_and_ones(Z: Any, *, hot: Any, scale: FloatArray, shift: FloatArray) -> Matrix:
    """The samples with one-hot columns as they were before they were scaled and shifted."""
    if sp.issparse(Z):  # what is sparse was not shifted
        Z = sp.csr_array(Z, dtype=np.float64, copy=True)
        some = hot[Z.indices]
        Z.data[some] = np.rint(Z.data[some] / scale[Z.indices[some]])
        return Z
    Z = np.array(Z, dtype=np.float64)
    Z[:, hot] = np.rint((Z[:, hot] - shift[hot]) / scale[hot])
    return Z


def _changed(
    X: Any, names: Sequence[Any], index: Any, changes: Any, columns: Mapping[int, Column]
) -> Any:
    """Rows of X with changes of the columns of a matrix, in the units of X."""
    if sp.issparse(X):
        places = [*columns], [column.source for column in columns.values()]
        scales = [1.0 / column.scale for column in columns.values()]
        back = sp.csr_array((scales, places), shape=(changes.shape[1], X.shape[1]))
        return sp.csr_array(sp.csr_array(X)[index] + changes @ back)
    if hasattr(X, "to_pandas"):
        return type(X)(_changed(X.to_pandas(), names, index, changes, columns))
    if not hasattr(X, "iloc"):
        import pandas as pd

        frame = _changed(pd.DataFrame(np.asarray(X)), range(len(names)), index, changes, columns)
        return frame.to_numpy()
    found = rows_of(X, index).copy()
    for entering in (False, True):  # a category is left before another one is entered
        for j, column in columns.items():
            own = slice(*changes.indptr[j : j + 2])
            rows, steps = changes.indices[own], changes.data[own]
            assert column.source is not None
            place = found.columns.get_loc(names[column.source])
            series = found.iloc[:, place]
            if column.group is None and not entering:
                series = series.astype(np.float64)
                series.iloc[rows] += steps / column.scale
                found.isetitem(place, series)
            elif column.group is not None:
                some = rows[(steps > 0.0) == entering]
                value = column.value if entering else column.other_value
                series = series.astype(object)
                series.iloc[some] = [value] * some.size
                found.isetitem(place, series)
    return found


def _encoded(table: Sequence[Feature], columns: list[Column]) -> list[Column]:
    """The columns of the matrix of one of our models, in terms of those of its table."""
    made = []
    for k, (column, feature) in enumerate(zip(columns, table, strict=True)):
        if feature.values is None:
            made += [column] * feature.columns.size
        for said, value in zip(feature.levels or (), feature.values or (), strict=True):
            made.append(level_column(column, ("encoding", k), said, value))
    return made
