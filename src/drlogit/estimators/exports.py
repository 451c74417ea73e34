"""A fitted model as a scikit-learn model or an ONNX graph, to be used without drlogit.

    model.to_sklearn()
    drlogit.to_onnx(model)

Both are a ``LogisticRegression`` with the same coefficients, behind the encoding of a table.  Every
known level has a column, and so has each text that means "missing", with the same coefficient.
Unknown levels have none.  Numbers pass through, or are replaced if they are missing.  For
scikit-learn the encoding is a ``ColumnTransformer``.  Converters of such encoders to ONNX compute
in single precision, so the graph is written directly, in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

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
    if model.label_noise_ is not None:
        raise ValueError(
            "a model with label_noise cannot be exported: fit it without label_noise, and correct "
            "its probabilities where they are used"
        )
    encoding = model.encoding_
    if encoding is None:
        return np.array(model.coef_)
    texts = [column.name for column in encoding.columns if column.decimal is not None]
    if texts:
        raise ValueError(
            f"a model that reads text as numbers (column {texts[0]!r:.60}) cannot be exported: "
            "convert the column to numbers before the fit"
        )
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
    if column.kind == "truth" and None in column.levels:
        raise ValueError(
            f"column {column.name!r:.60} has truth values and missing values, which scikit-learn "
            "cannot encode: convert the column to text before the fit"
        )
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


# --- ONNX -----------------------------------------------------------------------------------


def to_onnx(model: Any) -> Any:
    """Turn a fitted model into an ONNX graph with the same predictions.

    Of a pipeline that ends in one of our models, skl2onnx makes a graph where :meth:`to_sklearn` of
    the model takes its place.

    Parameters
    ----------
    model : DRLogisticRegression, DRLogisticRegressionCV, or a search over them
        A fitted one.

    Returns
    -------
    onnx.ModelProto
        In double precision, with outputs ``label`` and ``probabilities``; write
        ``SerializeToString()`` to a file.  Its input is ``X``, or one of shape (rows, 1) for each
        column of a table, in their order.  A missing number is NaN, missing text is ``""``.

    Raises
    ------
    ValueError
        The model is none of ours, or knows of ``label_noise``.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05).fit(X, y)
    >>> graph = drlogit.to_onnx(model)
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities']
    """
    check_is_fitted(model)
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if not hasattr(model, "encoding_"):
        raise ValueError(
            f"model must be a drlogit estimator, got {type(model).__name__}; to convert a pipeline "
            "with skl2onnx, replace its last step by the result of to_sklearn()"
        )
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install 'drlogit[onnx]'") from error

    encoding, double = model.encoding_, TensorProto.DOUBLE
    inputs, nodes, constants = list[Any](), list[Any](), list[Any]()

    def add_input(name: str, kind: int, width: int) -> str:
        inputs.append(helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def node(kind: str, *given: Any, output: str = "", **attributes: Any) -> str:
        """What a node makes of others, by name, and of constants."""
        names = []
        for each in given:
            if not isinstance(each, str):
                each = numpy_helper.from_array(np.asarray(each), f"/constant {len(constants)}")
                constants.append(each)
            names.append(each if isinstance(each, str) else each.name)
        output = output or f"/node {len(nodes)}"
        nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def encoded(column: EncodedColumn, given: str) -> str:
        levels = _levels(column)
        if column.levels is not None and column.kind == "text":
            hot = node("OneHotEncoder", given, cats_strings=levels, zeros=1, domain="ai.onnx.ml")
            hot = node("Reshape", hot, np.array([-1, len(levels)], dtype=np.int64))
            return node("Cast", hot, to=double)
        numbers, fill = node("Cast", given, to=double), column.fill
        values = np.array(levels, dtype=np.float64)
        if None in (column.levels or ()):
            fill = 2.0 * max(0.0, *values[~np.isnan(values)]) + 1.0  # no level, in place of NaN
            values[np.isnan(values)] = fill
        if fill is not None:
            numbers = node("Where", node("IsNaN", numbers), np.array([fill]), numbers)
        if column.levels is None:
            return numbers
        return node("Cast", node("Equal", numbers, values[None, :]), to=double)

    coef, intercept = _coefficients(model), model.intercept_
    if encoding is None:
        features = add_input("X", double, model.n_features_in_)
    else:
        kinds, found = {"text": TensorProto.STRING, "truth": TensorProto.BOOL}, []
        for column in encoding.columns:
            # A truth value has no NaN.
            number = column.levels is None or (column.kind == "truth" and None in column.levels)
            kind = double if number else kinds.get(column.kind, double)
            given = add_input(str(column.name), kind, 1)
            if not column.left_out:
                found.append(encoded(column, given))
        features = node("Concat", *found, axis=1)
    if len(coef) == 1:  # the softmax of 0 and the score
        coef, intercept = np.vstack([0.0 * coef, coef]), np.append(0.0, intercept)
    scores = node("Add", node("MatMul", features, coef.T), intercept)
    classes = model.classes_.astype(object) if model.classes_.dtype.kind == "U" else model.classes_
    node("Gather", classes, node("ArgMax", scores, axis=1, keepdims=0), output="label")
    node("Softmax", scores, axis=1, output="probabilities")
    label = helper.np_dtype_to_tensor_dtype(classes.dtype)
    outputs = [
        helper.make_tensor_value_info("label", label, [None]),
        helper.make_tensor_value_info("probabilities", double, [None, len(coef)]),
    ]
    graph = helper.make_graph(nodes, "drlogit", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
