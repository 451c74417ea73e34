"""A fitted model as one of scikit-learn's own, to be served without us.

That is a ``LogisticRegression`` with the same coefficients.  A table's encoding becomes a
``ColumnTransformer`` in front: missing texts are replaced by a word, every level has its column in
a ``OneHotEncoder`` that ignores what it does not know, and so has each text that means "missing",
with the same coefficient; numbers pass, or are filled in where they are missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rows.arrays import IndexArray
from .tables.encoding import EncodedColumn, Encoding

#: What stands for a missing text; made longer until it is no level.
_MISSING = "missing"


def plain_model(model: Any) -> Any:
    """A ``LogisticRegression``, or a pipeline that ends in one."""
    names = getattr(model, "feature_names_in_", None)
    if model.encoding_ is None:
        return _classifier(model, names)
    from sklearn.pipeline import Pipeline

    columns = _columns(model.encoding_, names)
    classifier = _classifier(model, None, _weights(model.encoding_))
    return Pipeline([("columns", columns), ("classifier", classifier)])


def _weights(encoding: Encoding) -> IndexArray:
    """Which coefficient goes with each column that scikit-learn makes of the table."""
    found = []
    for column, place in zip(encoding.columns, encoding.places, strict=True):
        found.append(place)
        extra = len(_levels(column, encoding.missing_marks)) - place.size if column.levels else 0
        found.append(np.repeat(place[-1:], extra))  # the missing level is the last
    return np.concatenate(found)


def _classifier(model: Any, names: Any, weights: Any = slice(None)) -> Any:
    from sklearn.linear_model import LogisticRegression

    plain = LogisticRegression()
    plain.coef_, plain.intercept_ = model.coef_[:, weights].copy(), model.intercept_.copy()
    plain.classes_, plain.n_features_in_ = model.classes_, plain.coef_.shape[1]
    plain.n_iter_ = np.array([0], dtype=np.int32)
    if names is not None:
        plain.feature_names_in_ = np.array(names, dtype=object)
    return plain


def _columns(encoding: Encoding, names: Any) -> Any:
    """The transformer of a table, fitted to two rows that show it the kinds of the columns."""
    from pandas import DataFrame
    from sklearn.compose import ColumnTransformer

    columns, marks = encoding.columns, encoding.missing_marks
    steps = [(f"{j}", _step(column, marks), [j]) for j, column in enumerate(columns)]
    rows = {
        j: np.resize(_levels(column, marks), 2) if column.levels else np.zeros(2)
        for j, column in enumerate(columns)
    }
    shown = DataFrame(rows) if names is None else DataFrame(rows).set_axis(names, axis=1)
    return ColumnTransformer(steps, sparse_threshold=0.0).fit(shown)


def _step(column: EncodedColumn, marks: tuple[str, ...]) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    if column.left_out:
        return "drop"
    if column.levels is None:
        if column.fill is None:
            return "passthrough"
        return SimpleImputer(strategy="constant", fill_value=column.fill)
    word = _word(column)
    encoder = OneHotEncoder(
        categories=[_levels(column, marks)], handle_unknown="ignore", sparse_output=False
    )
    if column.kind != "text":
        return encoder
    filled = [
        SimpleImputer(missing_values=gone, strategy="constant", fill_value=word)
        for gone in (np.nan, None)  # as text, NaN would be no value for the other
    ]
    return make_pipeline(*filled, encoder)


def _levels(column: EncodedColumn, marks: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """The levels as they stand in the table; texts that mean "missing" follow that level."""
    levels = column.levels or ()
    if column.kind == "text":
        found = [_word(column) if level is None else level for level in levels]
        found += [mark for mark in marks if None in levels and mark not in found]
        return np.array(found, dtype=object)
    if column.kind == "number":
        return np.array([np.nan if level is None else float(level) for level in levels])
    if None in levels:
        raise ValueError(
            f"the category {column.name!r:.60} has truth values and missing ones, which "
            "scikit-learn cannot encode: turn the column into text before the fit"
        )
    return np.array([level == "True" for level in levels])


def _word(column: EncodedColumn) -> str:
    """A text that is no level of the column."""
    word = _MISSING
    while word in (column.levels or ()):
        word += "_"
    return word
