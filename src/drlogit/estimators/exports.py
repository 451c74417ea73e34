"""A fitted model as a scikit-learn model, to be used without drlogit.

It is a ``LogisticRegression`` with the same coefficients, behind the encoding of a table.  Every
known level has a column, and so has each text that means "missing", with the same coefficient.
Unknown levels have none.  Numbers pass through, or are replaced if they are missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rows.arrays import FloatArray
from .tables.encoding import EncodedColumn, Encoding
from .tables.frames import MISSING_MARKS


def plain_model(model: Any) -> Any:
    """A ``LogisticRegression``, or a pipeline that ends in one."""
    encoding = model.encoding_
    if encoding is None:
        return _classifier(model)
    from sklearn.pipeline import Pipeline

    columns = _column_transformer(encoding, getattr(model, "feature_names_in_", None))
    return Pipeline([("columns", columns), ("classifier", _classifier(model))])


def _classifier(model: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    plain, encoding = LogisticRegression(), model.encoding_
    plain.coef_, plain.intercept_ = _coefficients(model), model.intercept_.copy()
    plain.classes_, plain.n_features_in_ = model.classes_, plain.coef_.shape[1]
    plain.n_iter_ = np.array([0], dtype=np.int32)
    if encoding is None and hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = np.array(model.feature_names_in_, dtype=object)
    return plain


def _coefficients(model: Any) -> FloatArray:
    """Those that go with each column that is made of a table."""
    encoding = model.encoding_
    if encoding is None:
        return np.array(model.coef_)
    found = []
    for column, place in zip(encoding.columns, encoding.places, strict=True):
        found.append(place)
        extra = len(_levels(column)) - place.size if column.levels else 0
        found.append(np.repeat(place[-1:], extra))  # the missing level is the last
    return np.asarray(model.coef_[:, np.concatenate(found)])


def _levels(column: EncodedColumn) -> list[Any]:
    """The levels as values of the table; missing text appears as each of its marks."""
    levels = column.levels or ()
    if column.kind == "text":
        found: list[Any] = [level for level in levels if level is not None]
        return [*found, *MISSING_MARKS] if None in levels else found
    if column.kind == "number":
        return [np.nan if level is None else float(level) for level in levels]
    return [np.nan if level is None else level == "True" for level in levels]


# --- scikit-learn ---------------------------------------------------------------------------


def _column_transformer(encoding: Encoding, names: Any) -> Any:
    """The transformer of a table, fitted to two rows that show it the kinds of the columns."""
    from pandas import DataFrame
    from sklearn.compose import ColumnTransformer

    columns = encoding.columns
    steps = [(f"{j}", _step(column), [j]) for j, column in enumerate(columns)]
    rows = {
        j: np.resize(_array(column), 2) if column.levels else np.full(2, column.fill or 0.0)
        for j, column in enumerate(columns)
    }
    shown = DataFrame(rows) if names is None else DataFrame(rows).set_axis(names, axis=1)
    return ColumnTransformer(steps, sparse_threshold=0.0).fit(shown)


def _array(column: EncodedColumn) -> np.ndarray[Any, Any]:
    return np.array(_levels(column), dtype=object if column.kind == "text" else None)


def _step(column: EncodedColumn) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    if column.left_out:
        return "drop"
    if column.levels is None:
        if column.fill is None:
            return "passthrough"
        return SimpleImputer()  # with the mean of those rows: a constant suits no whole numbers
    encoder = OneHotEncoder(
        categories=[_array(column)], handle_unknown="ignore", sparse_output=False
    )
    if column.kind != "text":
        return encoder
    filled = [
        SimpleImputer(missing_values=gone, strategy="constant", fill_value=MISSING_MARKS[0])
        for gone in (np.nan, None)  # as text, NaN would be no value for the other
    ]
    return make_pipeline(*filled, encoder)
