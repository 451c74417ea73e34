"""Samples as estimators take them: X as a matrix of numbers, labels as codes, weights by class.

A table with categories, or with gaps that are to be filled, is encoded; every other X is checked by
scikit-learn and used as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..fitting.posing import pose_samples
from ..problem.ball import Ball
from ..problem.features import Feature, Features
from ..problem.problem import Problem
from ..rows.arrays import FloatArray, IndexArray, Matrix, is_dask, is_dataset
from ..rows.building import coded
from ..rows.checks import (
    AS_NUMBERS,
    check_numeric,
    check_unmasked,
    check_weights,
    is_float_matrix,
    label_array,
    settled,
)
from ..rows.parquet import labels_in, levels_in, mapped, parts_of
from ..rows.warn import warn
from .tables.encoding import (
    FILLS,
    categories_of,
    is_sparse,
    matrix_of_part,
    matrix_of_table,
    names_of_columns,
    side_by_side,
)
from .tables.frames import TableColumn, columns_of, is_frame, is_table
from .tables.remarks import SORTED, remarks_on, remarks_on_labels, remarks_on_new
from .tables.statistics import (
    Statistics,
    merged,
    seen_in,
    statistics_in,
    statistics_of,
    statistics_of_part,
)

#: Nobody looks at the columns of wider frames of numbers, and remarks on them would take a second;
#: arrays of numbers get none.
_LOOKED_AT = 1000


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Samples that have been checked, and their problem, once: fits take them as they are.

    ``codes`` are the labels as positions among the classes.  ``ball`` is resolved, and knows the
    features; ``names`` are those of the columns of the matrix.  Remarks are made on ``described``:
    each column of a table, and what makes a category of it.
    """

    matrix: Matrix
    classes: np.ndarray[Any, Any]
    codes: IndexArray
    given_weights: Any
    problem: Problem
    ball: Ball
    names: Any
    described: Sequence[tuple[TableColumn, str | None]]

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        return np.asarray(self.classes[self.codes])

    @property
    def is_sorted(self) -> bool:
        """Whether the rows are sorted by label, which no accident does with ten of each."""
        if is_dask(self.codes) or np.bincount(self.codes).min() < 10:
            return False
        return bool(np.count_nonzero(np.diff(self.codes)) == self.classes.size - 1)

    def remarks(self) -> list[str]:
        """What the table and the labels hide."""
        said = [said for column, kind in self.described for said in remarks_on(column, kind)]
        if self.is_sorted and self.described:
            said.append(SORTED)
        return [*said, *remarks_on_labels(self.classes.tolist())]

    def reported(self, coef: FloatArray, intercept: Any, epsilon: float) -> tuple[Any, Any]:
        """A model as it is shown: levels of a table relative to the average sample.

        Every sample has one level of each category, so a number can be added to the coefficients
        of all its levels and taken from the intercept: scores, worst case and certificate stay.
        With several classes the norm bounds the coefficients of categories that can change, and
        another number for all of them would be another worst case: those stay as they are.
        """
        features, rows = self.ball.features, self.problem.rows
        assert features is not None
        if not rows.intercept or not features.categories.any():
            return coef, intercept
        coef, costs, means = coef.copy(), self.problem.ball.costs, rows.totals.means
        for j in np.flatnonzero(features.categories).tolist():
            group = features.each[j].columns
            movable = epsilon > 0.0 and np.isfinite(costs[group]).all()
            if self.classes.size > 2 and movable:
                continue
            mean = coef[..., group] @ means[group]  # of categories, which are not centred
            coef[..., group] -= mean[..., None]
            intercept = intercept + mean
        return coef, intercept


def training_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any, ball: Ball, n_jobs: int | None = None
) -> TrainingData:
    """Check and encode the samples of a fit, and resolve the ball for them.

    The estimator gets the attributes that describe them: classes, and columns.
    """
    if estimator.missing not in FILLS:
        raise ValueError(
            f"missing must be one of {', '.join(map(repr, FILLS))}, got {estimator.missing!r}"
        )
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    if is_dataset(X):
        y, X = labels_in(X, y), _Stored(X, y)
    check_unmasked(y, "y")
    table = _read(estimator, X, sample_weight, ball)
    classes, codes = coded(y if is_dask(y) else label_array(y, warn=True), table.matrix)
    if classes.dtype.kind not in "biuUS":  # labels, not measurements
        # A few will do: from 20 on, as many classes as samples are worth a warning to it.
        check_classification_targets(classes[:20])
    estimator.classes_, given = classes, sample_weight
    if is_dask(codes):
        weights = given
        if estimator.class_weight is not None:
            raise ValueError(
                "class_weight must be None if y is a Dask collection, got "
                f"{estimator.class_weight!r}: multiply sample_weight by the weights of the classes "
                "instead"
            )
    else:
        if given is not None:
            check_weights(given, codes.size)
            given = np.array(given, dtype=np.float64)
        weights = with_class_weights(given, estimator.class_weight, classes, codes)
        totals = np.bincount(codes, weights)
        if not totals.all():
            raise ValueError(
                "every class needs a positive weight, but all samples of class "
                f"{classes[totals == 0.0].tolist()[0]!r} have weight 0"
            )
    encoded = table.features
    names: Any = [*getattr(estimator, "feature_names_in_", ())] or range(estimator.n_features_in_)
    if encoded is not None:
        names = names_of_columns(encoded)
    problem, ball = pose_samples(
        *(table.matrix, classes, codes, given, weights, ball),
        names=names,
        fit_intercept=estimator.fit_intercept,
        n_jobs=n_jobs,
        encoded=encoded,
        seen=table.seen,
    )
    return TrainingData(table.matrix, classes, codes, given, problem, ball, names, table.described)


def with_class_weights(
    weights: FloatArray | None, class_weight: Any, classes: Any, codes: IndexArray
) -> FloatArray | None:
    """Weights of samples times those of their classes.

    ``"balanced"`` gives every class the same total, samples of weight two counting twice; classes
    without any weight keep none.
    """
    if class_weight is None:
        return weights
    each = np.ones(codes.size) if weights is None else weights
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, each, minlength=len(classes))
        given = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
    else:
        given = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    return np.asarray(each * given[codes])


# --- X as a matrix of numbers, in a fit and for a fitted model ------------------------------


class ReadTable(NamedTuple):
    """X as a matrix, and what is known of its columns.

    ``features`` are None if all columns are numbers as they are.  ``seen`` are the smallest number,
    the largest number and the share of missing values of each column, as three rows.  Remarks are
    made on what is ``described``.
    """

    matrix: Matrix
    features: tuple[Feature, ...] | None = None
    seen: FloatArray | None = None
    described: Sequence[tuple[TableColumn, str | None]] = ()


def _read(estimator: Any, X: Any, sample_weight: Any, ball: Ball) -> ReadTable:
    """X for a fit; the estimator remembers the names of its columns."""
    wanted, fill = estimator.categorical_features, estimator.missing
    if isinstance(X, _Stored) or is_dask(X):
        return _read_parts(estimator, X, sample_weight, ball)
    framed = is_frame(X)
    if isinstance(wanted, str) and wanted == "from_dtype" and not framed:
        wanted = None  # an array has one type
    if wanted is not None and not is_table(X):
        raise ValueError(
            "categorical_features needs a data frame or a dense array, got "
            f"{type(X).__name__}; declare one-hot columns with the categories of a ball"
        )
    fills = fill != "error" and not sp.issparse(X)
    if fills and wanted is None and not framed:
        X = _with_gaps(estimator, X, reset=True)
    columns = columns_of(X) if framed or fills or wanted is not None else []
    categories = categories_of(columns, wanted, ball.categories)
    encodes = fills or bool(categories)
    if encodes:
        _check_table(estimator, X, reset=True)
    else:
        matrix = _numbers(estimator, X, reset=True)
    each = [(column, categories.get(column.name)) for column in columns]
    described = each if categories or (framed and len(each) <= _LOOKED_AT) else []
    if not encodes:
        seen = None
        if described and not sp.issparse(matrix):
            seen = np.stack([matrix.min(axis=0), matrix.max(axis=0), np.zeros(len(each))])
        return ReadTable(matrix, None, seen, described)
    known = statistics_of(columns, categories, check_weights(sample_weight, X.shape[0]), fill)
    features = side_by_side(column.encoding(name, fill) for name, column in known.items())
    if not any(feature.columns.size for feature in features):
        said = (remark for column in each for remark in remarks_on(*column))
        raise ValueError(f"X has no usable column: {'; '.join(said):.300}")
    matrix = matrix_of_table(features, columns)
    return ReadTable(matrix, features, seen_in(known) if described else None, described)


class _Stored(NamedTuple):
    """A dataset, and the column of its labels."""

    dataset: Any
    target: str


def _read_parts(estimator: Any, X: Any, sample_weight: Any, ball: Ball) -> ReadTable:
    """All columns of a dataset but the labels, or of a frame of Dask, encoded part by part."""
    wanted, fill = estimator.categorical_features, estimator.missing
    if isinstance(X, _Stored):
        X, names = X.dataset, [name for name in X.dataset.schema.names if name != X.target]
        first, typed = next(parts_of(X, names)), levels_in(X)
        _check_table(estimator, first, reset=True)
    else:  # checked where it lies, by the fit
        _remember_columns(estimator, X)
        if not hasattr(X, "dtypes"):
            if fill != "error" or not (wanted is None or isinstance(wanted, str)):
                raise ValueError("a Dask array has numbers only: pass a Dask frame to encode it")
            return ReadTable(X)
        from ..rows.dask_collections import map_rows, sums_of_parts  # an optional package

        first, names = X.head(100), [*X.columns]
        typed = {name for name in names if getattr(X.dtypes[name], "kind", "O") not in "iuf"}
    categories = categories_of(columns_of(first), wanted, ball.categories, typed)
    encodes = fill != "error" or bool(categories)
    parts: Iterable[Statistics]
    if fill == "median":
        raise ValueError("missing='median' needs X in memory: use missing='mean', or fill it in")
    if is_dask(X):
        if not encodes:
            return ReadTable(X)
        if sample_weight is not None:
            raise ValueError(
                "sample_weight needs numbers in a Dask frame, or a table in memory or in Parquet"
            )
        parts = sums_of_parts(partial(statistics_of_part, categories=categories), X)
    else:
        weights = check_weights(sample_weight, X.count_rows())
        parts = statistics_in(parts_of(X, names, estimator.verbose), categories, weights)
    known = merged(parts, categories, names)
    features = side_by_side(column.encoding(name, fill) for name, column in known.items())
    for feature in features:
        if not feature.columns.size:
            warn(
                f"column {feature.name!r:.60} is ignored: it has no values, or looks like a row "
                "identifier; name it in categorical_features to keep it",
            )
    width = sum(feature.columns.size for feature in features)
    if not width:
        raise ValueError("X has no usable column: all are without values, or identify rows")
    encode = partial(matrix_of_part, features=features, sparse=is_sparse(len(names), width))
    if is_dask(X):
        matrix = map_rows(encode, X, width, np.float64)
    else:
        encoded = map(encode, parts_of(X, names, estimator.verbose))
        matrix = mapped(encoded, X.count_rows() * len(names))
    return ReadTable(matrix, features if encodes else None, seen_in(known))


def matrix_of(model: Any, X: Any, features: Features | None = None) -> Matrix:
    """What a model's coefficients are multiplied with; warns of rows that are unlike training.

    ``features`` are those of the fit; if they are given, there are no warnings.
    """
    watched = features is None and hasattr(model, "ball_")
    if features is None and watched:
        features = model.ball_.features
        watched = features.seen is not None
    X, columns = _known_columns(model, X), list[TableColumn]()
    if features is None or features.are_columns:
        matrix = _numbers(model, X, reset=False)
        if watched and is_frame(X):
            columns = columns_of(X)
    else:
        if not is_frame(X) and not features.categories.any():
            X = _with_gaps(model, X, reset=False)
        _check_table(model, X, reset=False)
        columns = columns_of(X)
        matrix = matrix_of_table(features.each, columns)
    if watched and columns and features is not None:
        for said in remarks_on_new(columns, features):
            warn(said)
    return matrix


def _known_columns(model: Any, X: Any) -> Any:
    """A frame without the columns that training did not have, if it has all that training had.

    scikit-learn's classifiers refuse other columns, its ``ColumnTransformer`` passes them over, and
    so does the command line: a table to serve has labels and identifiers, too.
    """
    known = {*getattr(model, "feature_names_in_", ())}
    if not known or not is_frame(X) or len(X.columns) <= len(known):
        return X
    kept = [name for name in X.columns if name in known]
    return X[kept] if {*kept} == known else X


def _numbers(estimator: Any, X: Any, *, reset: bool) -> Matrix:
    """X as a matrix of finite numbers, as scikit-learn checks it."""
    if is_float_matrix(X):  # in a tenth of the time
        if reset:
            _remember_columns(estimator, X)
        known = not hasattr(estimator, "feature_names_in_")
        if known and estimator.n_features_in_ == X.shape[1]:
            return settled(X, None)
    _check_distinct(X)
    matrix = validate_data(estimator, check_numeric(X), reset=reset, **AS_NUMBERS)
    return settled(matrix, getattr(X, "columns", None))


def _with_gaps(estimator: Any, X: Any, *, reset: bool) -> Any:
    """An array of numbers, some of which may be missing, as scikit-learn checks it."""
    gaps = {"dtype": np.float64, "ensure_all_finite": False}
    return validate_data(estimator, check_numeric(X), reset=reset, **gaps)


def _remember_columns(estimator: Any, X: Any) -> None:
    """What scikit-learn does with X in memory."""
    estimator.n_features_in_ = int(X.shape[1])
    names = [*getattr(X, "columns", [])]
    if names and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    else:
        estimator.__dict__.pop("feature_names_in_", None)


def _check_distinct(X: Any) -> None:
    """``ValueError`` for a frame with two columns of one name."""
    if is_frame(X):
        repeated = [name for name, times in Counter(X.columns).items() if times > 1]
        if repeated:
            raise ValueError(
                f"X must have distinct column names, got {repeated[0]!r:.60} more than once: "
                "rename or drop one"
            )


def _check_table(estimator: Any, X: Any, *, reset: bool) -> None:
    """Remember the columns of a table, or compare them with those remembered."""
    check_unmasked(X, "X")
    _check_distinct(X)
    if not is_table(X):
        raise ValueError(f"X must be a table, as in the fit, got {type(X).__name__}")
    if X.shape[0] == 0:
        raise ValueError(f"X must have at least one row, got shape {tuple(X.shape)}")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
