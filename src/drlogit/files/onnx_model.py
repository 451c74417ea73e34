"""Fitted models as ONNX graphs, by way of skl2onnx.

    drlogit.to_onnx(model)                 # of a model of ours, for a table or a matrix
    drlogit.to_onnx(pipeline, X)           # of a pipeline that ends in one, with rows like X

skl2onnx converts scikit-learn's steps; :func:`register_onnx` tells it of ours.  The graph computes
in double precision what ``predict_proba`` does.  A table has an input for each column, of shape
(rows, 1): text as text, numbers and truth values as such, a missing number as NaN.  Runtimes have
no missing text, but spell it in one of a few ways (``""``, ``"None"``, ``"nan"``), which are among
the texts that mean "missing" in the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.linear_predictions import refuse_label_noise
from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.tables.encoding import EncodedColumn, Encoding
from ..estimators.tables.frames import TableColumn, columns_of, is_frame
from ..rows.arrays import FloatArray, IndexArray

_ALIAS = "DrlogitRobustLinearClassifier"


def to_onnx(model: Any, X: Any = None, **settings: Any) -> Any:
    """Turn a fitted model into an ONNX graph with the same predictions.

    Parameters
    ----------
    model : DRLogisticRegression, DRLogisticRegressionCV, or any estimator that skl2onnx converts
        A fitted one, such as a pipeline that ends in one of ours.
    X : array or data frame, optional
        Some rows as the model takes them, of which the graph learns names and kinds of its inputs.
        Not needed for a model of ours.
    **settings
        As in ``skl2onnx.to_onnx``.  Unless ``options`` says otherwise, probabilities are an array
        and not a list of dicts (``{"zipmap": False}``).

    Returns
    -------
    onnx.ModelProto
        With outputs ``label`` and ``probabilities``; write ``SerializeToString()`` to a file.  Its
        input is ``X``, or one of shape (rows, 1) for each column of a table, in their order; names
        become identifiers.  Missing text is ``""``.

    Raises
    ------
    ValueError
        X is needed, or the model has columns that ONNX has no type for, or knows of
        ``label_noise``.
    """
    check_is_fitted(model)
    register_onnx()
    from skl2onnx import to_onnx as convert

    settings.setdefault("options", {"zipmap": False})
    return convert(model, initial_types=_input_types(model, X), **settings)


def register_onnx() -> None:
    """Tell skl2onnx of our estimators, for those who call ``skl2onnx.to_onnx`` themselves."""
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("ONNX needs skl2onnx: pip install 'drlogit[onnx]'") from error

    for kind in (DRLogisticRegression, DRLogisticRegressionCV):
        update_registered_converter(
            kind,
            _ALIAS,
            _set_output_types,
            _convert,
            # The last two are asked for by skl2onnx, and not offered.
            options={
                "zipmap": [True, False, "columns"],
                "nocl": [False],
                "output_class_labels": [False],
            },
        )


# --- inputs ---------------------------------------------------------------------------------


def _input_types(model: Any, X: Any) -> list[tuple[str, Any]]:
    """Name and type of each input: double precision for whatever is a number."""
    from skl2onnx.common.data_types import BooleanTensorType, DoubleTensorType, StringTensorType

    kinds = {"text": StringTensorType, "truth": BooleanTensorType, "number": DoubleTensorType}
    encoding = getattr(model, "encoding_", None)
    if encoding is not None and hasattr(model, "feature_names_in_"):
        return [(str(c.name), kinds[_kind(c)]([None, 1])) for c in encoding.columns]
    if is_frame(X):
        return [
            (str(column.name), kinds[_kind_in_frame(column)]([None, 1])) for column in columns_of(X)
        ]
    if X is None and not isinstance(model, RobustLinearClassifier):
        raise ValueError(
            f"X must be some rows that {type(model).__name__} takes, for their names and kinds, "
            "got None"
        )
    width = model.n_features_in_ if X is None else np.shape(X)[1]
    return [("X", DoubleTensorType([None, int(width)]))]


def _kind(column: EncodedColumn) -> str:
    if column.levels is None or (column.kind == "truth" and None in column.levels):
        return "number"  # a truth value has no NaN
    return column.kind


def _kind_in_frame(column: TableColumn) -> str:
    if not column.holds_levels:
        return "number"
    if column.kind == "truth":
        return "number" if column.missing.any() else "truth"
    return "text"


# --- the graph ------------------------------------------------------------------------------


def _set_output_types(operator: Any) -> None:
    """What skl2onnx calls a shape calculator."""
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )

    model = operator.raw_operator
    options = operator.scope_inst.get_options(model, {"zipmap": True})
    text = model.classes_.dtype.kind in "OUST"
    operator.outputs[0].type = (StringTensorType if text else Int64TensorType)([None])
    # A ZipMap takes single precision only; else the precision of a matrix is kept.
    single = isinstance(operator.inputs[0].type, FloatTensorType) and model.encoding_ is None
    number = FloatTensorType if single or options["zipmap"] is True else DoubleTensorType
    operator.outputs[1].type = number([None, model.classes_.size])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes: encoded columns, scores, labels and probabilities."""
    from skl2onnx.algebra import onnx_ops as ops
    from skl2onnx.common.data_types import FloatTensorType

    model = operator.raw_operator
    refuse_label_noise(model, "ONNX graphs")
    version = container.target_opset

    def node(kind: str, *inputs: Any, **attributes: Any) -> Any:
        return getattr(ops, f"Onnx{kind}")(*inputs, op_version=version, **attributes)

    graph = _Graph(node)
    features, weights = graph.features(model, operator.inputs)
    coef, intercept = model.coef_[:, weights].T, model.intercept_
    if model.classes_.size == 2:
        coef, intercept = np.hstack([-coef, coef]), np.concatenate([-intercept, intercept])
    scores = node("Add", node("MatMul", features, coef), intercept[None, :])

    text = model.classes_.dtype.kind in "OUST"
    classes = model.classes_ if text else model.classes_.astype(np.int64)
    best = node("ArgMax", scores, axis=1, keepdims=0)
    label = node("Gather", classes, best, axis=0, output_names=operator.outputs[:1])

    if model.classes_.size == 2:
        wanted = node("Sigmoid", scores)
    else:
        wanted = node("Softmax", scores, axis=1)
    precision = _FLOAT if isinstance(operator.outputs[1].type, FloatTensorType) else _DOUBLE
    wanted = node("Cast", wanted, to=precision, output_names=operator.outputs[1:])
    for output in (label, wanted):
        output.add_to(scope, container)


#: Codes of element types in ONNX.
_FLOAT, _DOUBLE = 1, 11


class _Graph:
    """Parts of the graph; ``node`` makes one."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def features(self, model: Any, inputs: list[Any]) -> tuple[Any, Any]:
        """What is multiplied with coefficients, and for each of its columns with which."""
        if model.encoding_ is None:
            return self._beside([self._number(each) for each in inputs]), slice(None)
        found, weights = [], []
        for column, place, given, is_text in self._columns(model.encoding_, inputs):
            if column.left_out:
                continue
            if is_text and column.levels is not None:
                spelt = _spellings(column.levels, model.encoding_.missing_marks)
                found.append(self._one_hot_text(given, list(spelt)))
                weights += place[list(spelt.values())].tolist()
                continue
            if is_text or (column.levels is not None and column.kind == "text"):
                wanted, got = ("numbers", "text") if is_text else ("text", "numbers")
                raise ValueError(f"column {column.name!r:.60} must be {wanted} in ONNX, got {got}")
            numbers = self._number(given)
            found.append(
                self._filled(numbers, column.fill)
                if column.levels is None
                else self._one_hot_numbers(numbers, column)
            )
            weights += place.tolist()
        return self._beside(found), np.array(weights)

    def _columns(
        self, encoding: Encoding, inputs: list[Any]
    ) -> Iterator[tuple[EncodedColumn, IndexArray, Any, bool]]:
        """Each column of a table, its places, its input, and whether that is text."""
        from skl2onnx.common.data_types import StringTensorType

        n_columns = len(encoding.columns)
        if len(inputs) not in (1, n_columns):
            raise ValueError(
                f"a table of {n_columns} columns must have as many inputs in ONNX, or one, got "
                f"{len(inputs)}"
            )
        for j, (column, place) in enumerate(zip(encoding.columns, encoding.places, strict=True)):
            given = inputs[j if len(inputs) > 1 else 0]
            is_text = isinstance(given.type, StringTensorType)
            if len(inputs) < n_columns:
                given = self._node("Gather", given, np.array([j], dtype=np.int64), axis=1)
            yield column, place, given, is_text

    def _beside(self, parts: list[Any]) -> Any:
        return parts[0] if len(parts) == 1 else self._node("Concat", *parts, axis=1)

    def _number(self, given: Any) -> Any:
        return self._node("Cast", given, to=_DOUBLE)

    def _filled(self, numbers: Any, fill: float | None) -> Any:
        if fill is None:
            return numbers
        return self._node("Where", self._node("IsNaN", numbers), np.array([fill]), numbers)

    def _one_hot_text(self, texts: Any, levels: list[str]) -> Any:
        hot = self._node("OneHotEncoder", texts, cats_strings=levels, zeros=1)
        shape = np.array([-1, len(levels)], dtype=np.int64)
        return self._number(self._node("Reshape", hot, shape))

    def _one_hot_numbers(self, numbers: Any, column: EncodedColumn) -> Any:
        """Levels that are numbers or truth values, compared as numbers; the last may be NaN."""
        levels = [level for level in column.levels or () if level is not None]
        values: FloatArray = np.array(
            [level == "True" if column.kind == "truth" else float(level) for level in levels],
            dtype=np.float64,
        )
        parts = [self._number(self._node("Equal", numbers, values[None, :]))] if levels else []
        if None in (column.levels or ()):
            parts.append(self._number(self._node("IsNaN", numbers)))
        return self._beside(parts)


def _spellings(levels: tuple[str | None, ...], marks: tuple[str, ...]) -> dict[str, int]:
    """The place of each level, and of a missing one under all its names."""
    places = {level: place for place, level in enumerate(levels) if level is not None}
    if None in levels:
        places |= {word: levels.index(None) for word in marks if word not in places}
    return places
