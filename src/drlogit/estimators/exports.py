"""A fitted model as one of scikit-learn's own, and as an ONNX graph, to be served without us.

    model.to_sklearn()
    drlogit.to_onnx(model)                 # of a model of ours, for a table or a matrix
    drlogit.to_onnx(pipeline, X)           # of a pipeline that ends in one, with rows like X

Both are a ``LogisticRegression`` with the same coefficients, behind the encoding of a table.  There
every level has its column, ones it does not know have none, and so has each text that means
"missing", with the same coefficient; numbers pass, or are filled in where they are missing.  For
scikit-learn the encoding is a ``ColumnTransformer``.  In ONNX, whose converters of such encoders
compute in single precision and with whole numbers, it is a few nodes of ours in double precision;
skl2onnx converts the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..rows.arrays import IndexArray
from .tables.encoding import EncodedColumn, Encoding
from .tables.frames import columns_of, is_frame


def plain_model(model: Any) -> Any:
    """A ``LogisticRegression``, or a pipeline that ends in one."""
    encoding = model.encoding_
    if encoding is None:
        return _classifier(model)
    return _behind(_column_transformer(encoding, getattr(model, "feature_names_in_", None)), model)


def _behind(columns: Any, model: Any) -> Any:
    """The coefficients of a model behind what encodes its table."""
    from sklearn.pipeline import Pipeline

    return Pipeline([("columns", columns), ("classifier", _classifier(model))])


def _classifier(model: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    if model.label_noise_ is not None:
        raise ValueError(
            "other forms of a model do not know of label_noise; fit without it, and correct what "
            "is predicted where it is used"
        )
    plain, encoding = LogisticRegression(), model.encoding_
    weights = slice(None) if encoding is None else _weights(encoding)
    plain.coef_, plain.intercept_ = model.coef_[:, weights].copy(), model.intercept_.copy()
    plain.classes_, plain.n_features_in_ = model.classes_, plain.coef_.shape[1]
    plain.n_iter_ = np.array([0], dtype=np.int32)
    if encoding is None and hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = np.array(model.feature_names_in_, dtype=object)
    return plain


def _weights(encoding: Encoding) -> IndexArray:
    """Which coefficient goes with each column that is made of the table."""
    found = []
    for column, place in zip(encoding.columns, encoding.places, strict=True):
        found.append(place)
        extra = len(_levels(column, encoding.missing_marks)) - place.size if column.levels else 0
        found.append(np.repeat(place[-1:], extra))  # the missing level is the last
    return np.concatenate(found)


def _levels(column: EncodedColumn, marks: tuple[str, ...]) -> list[Any]:
    """The levels as they stand in the table; of text, one that is missing goes by all its marks."""
    levels = column.levels or ()
    if column.kind == "text":
        found: list[Any] = [level for level in levels if level is not None]
        return [*found, *marks] if None in levels else found
    if column.kind == "number":
        return [np.nan if level is None else float(level) for level in levels]
    return [np.nan if level is None else level == "True" for level in levels]


# --- scikit-learn ---------------------------------------------------------------------------


def _column_transformer(encoding: Encoding, names: Any) -> Any:
    """The transformer of a table, fitted to two rows that show it the kinds of the columns."""
    from pandas import DataFrame
    from sklearn.compose import ColumnTransformer

    columns, marks = encoding.columns, encoding.missing_marks
    steps = [(f"{j}", _step(column, marks), [j]) for j, column in enumerate(columns)]
    rows = {
        j: np.resize(_array(column, marks), 2) if column.levels else np.full(2, column.fill or 0.0)
        for j, column in enumerate(columns)
    }
    shown = DataFrame(rows) if names is None else DataFrame(rows).set_axis(names, axis=1)
    return ColumnTransformer(steps, sparse_threshold=0.0).fit(shown)


def _array(column: EncodedColumn, marks: tuple[str, ...]) -> np.ndarray[Any, Any]:
    return np.array(_levels(column, marks), dtype=object if column.kind == "text" else None)


def _step(column: EncodedColumn, marks: tuple[str, ...]) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    if column.left_out:
        return "drop"
    if column.levels is None:
        if column.fill is None:
            return "passthrough"
        return SimpleImputer()  # with the mean of those rows: a constant suits no whole numbers
    if column.kind == "truth" and None in column.levels:
        raise ValueError(
            f"the category {column.name!r:.60} has truth values and missing ones, which "
            "scikit-learn cannot encode: turn the column into text before the fit"
        )
    encoder = OneHotEncoder(
        categories=[_array(column, marks)], handle_unknown="ignore", sparse_output=False
    )
    if column.kind != "text":
        return encoder
    filled = [
        SimpleImputer(missing_values=gone, strategy="constant", fill_value=marks[0])
        for gone in (np.nan, None)  # as text, NaN would be no value for the other
    ]
    return make_pipeline(*filled, encoder)


# --- ONNX -----------------------------------------------------------------------------------


def to_onnx(model: Any, X: Any = None, **settings: Any) -> Any:
    """Turn a fitted model into an ONNX graph with the same predictions.

    Parameters
    ----------
    model : DRLogisticRegression, DRLogisticRegressionCV, a pipeline that ends in one, or a search
        A fitted one.
    X : array or data frame, optional
        Some rows as the model takes them, of which the graph learns names and kinds of its inputs.
        Not used for a model of ours, which knows them.
    **settings
        As in ``skl2onnx.to_onnx``.  Unless ``options`` says otherwise, probabilities are an array
        and not a list of dicts (``{"zipmap": False}``).

    Returns
    -------
    onnx.ModelProto
        In double precision, with outputs ``label`` and ``probabilities``; write
        ``SerializeToString()`` to a file.  Its input is ``X``, or one of shape (rows, 1) for each
        column of a table, in their order; names become identifiers.  A missing number is NaN,
        missing text is ``""``.

    Raises
    ------
    ValueError
        X is needed, or the model has columns that ONNX has no type for, or knows of
        ``label_noise``.
    """
    check_is_fitted(model)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError("ONNX needs skl2onnx: pip install 'drlogit[onnx]'") from error

    skl2onnx.update_registered_converter(
        EncodedTable, _ALIAS, lambda operator: None, _add_nodes, parser=_declare
    )
    settings.setdefault("options", {"zipmap": False})
    return skl2onnx.to_onnx(_to_convert(model), initial_types=_inputs(model, X), **settings)


#: How skl2onnx calls our step.
_ALIAS = "DrlogitEncodedTable"


class EncodedTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The encoding of a table as a step that skl2onnx can be told of; it transforms nothing."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding


def _to_convert(model: Any) -> Any:
    """The same model out of steps that skl2onnx knows, and of ours."""
    if hasattr(model, "encoding_"):
        encoding = model.encoding_
        return _classifier(model) if encoding is None else _behind(EncodedTable(encoding), model)
    if hasattr(model, "steps"):
        name, last = model.steps[-1]
        return type(model)([*model.steps[:-1], (name, _to_convert(last))])
    return model


def _inputs(model: Any, X: Any) -> list[tuple[str, Any]]:
    """Name and type of each input: double precision for whatever is a number."""
    from skl2onnx.common.data_types import BooleanTensorType, DoubleTensorType, StringTensorType

    if hasattr(model, "encoding_"):
        if model.encoding_ is None or not hasattr(model, "feature_names_in_"):
            return [("X", DoubleTensorType([None, int(model.n_features_in_)]))]
        columns = model.encoding_.columns
        kinds = {each.name: "number" if each.levels is None else each.kind for each in columns}
        gaps = {each.name for each in columns if None in (each.levels or ())}
    elif is_frame(X):
        table = columns_of(X)
        kinds = {each.name: each.kind if each.holds_levels else "number" for each in table}
        gaps = {each.name for each in table if each.missing.any()}
    elif X is None:
        raise ValueError(
            f"X must be some rows that {type(model).__name__} takes, for their names and kinds, "
            "got None"
        )
    else:
        return [("X", DoubleTensorType([None, int(np.shape(X)[1])]))]
    types = {"text": StringTensorType, "truth": BooleanTensorType, "number": DoubleTensorType}
    return [
        # A truth value has no NaN.
        (str(name), types["number" if kind == "truth" and name in gaps else kind]([None, 1]))
        for name, kind in kinds.items()
    ]


def _declare(scope: Any, table: Any, inputs: Any, **_: Any) -> Any:
    """What skl2onnx calls a parser: our step, with an output in double precision."""
    from skl2onnx.common.data_types import DoubleTensorType

    operator = scope.declare_local_operator(_ALIAS, table)
    operator.inputs.extend(inputs)
    width = DoubleTensorType([None, _weights(table.encoding).size])
    operator.outputs.append(scope.declare_local_variable("features", width))
    return operator.outputs


#: The code of double precision in ONNX.
_DOUBLE = 11


def _add_nodes(scope: Any, operator: Any, container: Any) -> None:
    """Add what makes features of the columns of a table, each an input or all of them one."""
    from skl2onnx.algebra import onnx_ops

    encoding, inputs = operator.raw_operator.encoding, operator.inputs

    def node(kind: str, *given: Any, **attributes: Any) -> Any:
        make = getattr(onnx_ops, f"Onnx{kind}")
        return make(*given, op_version=container.target_opset, **attributes)

    def encoded(column: EncodedColumn, given: Any) -> Any:
        levels = _levels(column, encoding.missing_marks)
        if column.levels is not None and column.kind == "text":
            hot = node("OneHotEncoder", given, cats_strings=levels, zeros=1)
            hot = node("Reshape", hot, np.array([-1, len(levels)], dtype=np.int64))
            return node("Cast", hot, to=_DOUBLE)
        numbers, fill = node("Cast", given, to=_DOUBLE), column.fill
        values = np.array(levels, dtype=np.float64)
        if None in (column.levels or ()):
            fill = 2.0 * max(0.0, *values[~np.isnan(values)]) + 1.0  # no level, in place of NaN
            values[np.isnan(values)] = fill
        if fill is not None:
            numbers = node("Where", node("IsNaN", numbers), np.array([fill]), numbers)
        if column.levels is None:
            return numbers
        return node("Cast", node("Equal", numbers, values[None, :]), to=_DOUBLE)

    found = []
    for j, column in enumerate(encoding.columns):
        given = inputs[j if len(inputs) > 1 else 0]
        if len(inputs) < len(encoding.columns):
            given = node("Gather", given, np.array([j], dtype=np.int64), axis=1)
        if not column.left_out:
            found.append(encoded(column, given))
    node("Concat", *found, axis=1, output_names=operator.outputs).add_to(scope, container)
