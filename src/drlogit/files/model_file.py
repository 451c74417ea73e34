"""Fitted models as plain JSON files: reading one runs no code and trusts nothing in it.

    drlogit.save_model(model, "model.json")
    model = drlogit.load_model("model.json")      # a fitted DRLogisticRegression

A file has a schema and a version, what the model is (ε, κ, norm, costs), and its coefficients (with
more than two classes a list for each) with their certificate: objective, dual bound, gap, and how
the solver ended.  Numbers are read back exactly as they were; ``inf`` is
written as a string, as JSON has no word for it.  Files are written whole or not at all, and carry
a digest of their contents, so that no accident to a file makes another model of it.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.original_units import in_original_units
from ..estimators.tables.encoding import EncodedColumn, Encoding
from ..estimators.tables.frames import MISSING_MARKS
from ..problem.classes import label_costs
from ..problem.result import Result, Status, Trace
from . import strict_json
from .atomic import write_text

#: Version 2 adds the way from a raw table to numbers, and domains; models that need neither are
#: written as version 1, which older readers know.  Version 3 is for more than two classes in one
#: problem, where costs κ may be a matrix.
SCHEMA, VERSIONS = "drlogit-model", (1, 2, 3)

#: The numbers of a fit, as attributes of a :class:`Result` and keys of a file.
_FIT_KEYS = {
    "lambda": "lam",
    "objective": "objective",
    "dual_bound": "dual_objective",
    "gap": "gap",
    "setup_seconds": "setup_time",
    "solve_seconds": "solve_time",
}


#: All that a file has, and each fit: a name that is misspelt is not taken for one left out.
_KEYS = frozenset(
    "schema version digest drlogit_version n_features feature_names feature_costs classes epsilon "
    "kappa norm fit_intercept tol fits origin".split()
)
_KEYS_OF_TABLES = frozenset({"columns", "missing_marks", "categories", "bounds"})
_KEYS_OF_COLUMN = frozenset({"name", "levels", "fill", "kind"})
_KEYS_OF_FIT = frozenset(
    {"class", "status", "solver", "n_iter", "coefficients", "intercept", "as_numbers", *_FIT_KEYS}
)


#: What rounding may leave of the difference of two objectives, relative to them.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model and what a file says besides: ``origin`` tells how its data were read."""

    model: DRLogisticRegression
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str] | None:
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def converged(self) -> bool:
        """Whether the fit reached its tolerance."""
        return self.model.result_.converged


def save_model(
    model: Any,
    path: str | os.PathLike[str],
) -> None:
    """Write a fitted model to a JSON file.

    Parameters
    ----------
    model : DRLogisticRegression, DRLogisticRegressionCV, a pipeline or a search
        A fitted one.  Of a search, the model chosen is written, not the scores.  Of a pipeline of
        ``StandardScaler`` and one of these, the model of the features before the scaler, in whose
        units costs are then: the same probabilities and the same certificate.
    path : path
        File to write; one that is there is replaced at once, when all is written.

    Raises
    ------
    ValueError
        The model is of another kind, or its labels are neither numbers nor text.
    """
    write_model(model, path)


def load_model(path: str | os.PathLike[str]) -> DRLogisticRegression:
    """Read a model from a JSON file.

    Parameters
    ----------
    path : path
        A file that :func:`save_model` or ``drlogit fit`` has written.

    Returns
    -------
    DRLogisticRegression
        A fitted estimator, ready to predict and to be audited.  ``result_`` holds no trace.

    Raises
    ------
    ValueError
        The file is no model, or is damaged; the message says what was found.
    """
    return read_model(path).model


def fitted_model(
    result: Result,
    classes: list[Any],
    feature_names: list[str] | None,
    encoding: Encoding | None = None,
    categories: Any = None,
    bounds: Any = None,
    **parameters: Any,
) -> DRLogisticRegression:
    """The estimator that this is the fit of; ``epsilon`` must be a number."""
    model = DRLogisticRegression(**parameters)
    model.classes_ = np.array(classes)
    model.n_features_in_ = result.coef.shape[-1]
    if encoding is not None:
        model.n_features_in_ = len(encoding.columns)
        table = [column.name for column in encoding.columns]
        feature_names = table if all(isinstance(name, str) for name in table) else None
        model.feature_costs = None  # those of the encoded columns are no parameter
    if feature_names is not None:
        model.feature_names_in_ = np.array(feature_names, dtype=object)
    model.encoding_, model.categories_, model.bounds_ = encoding, categories, bounds
    model.feature_costs_ = parameters.get("feature_costs")
    model._set_result(result, parameters["epsilon"], parameters["kappa"])
    return model


# --- writing --------------------------------------------------------------------------------


def write_model(
    model: Any, path: str | os.PathLike[str], origin: Mapping[str, Any] | None = None
) -> None:
    """Do what :func:`save_model` does, with how the data were read beside the model."""
    document = _document(_without_scalers(model), origin or {})
    head = {name: document.pop(name) for name in ("schema", "version")}
    digest = _digest({**head, **document})
    write_text(path, strict_json.dumps({**head, "digest": digest, **document}) + "\n")


def _without_scalers(model: Any) -> Any:
    """The model of the features that a pipeline of scalers and one of our models takes."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if not hasattr(model, "steps"):
        return model
    check_is_fitted(model)
    *before, (_, last) = model.steps
    scalers = [step for _, step in before if not (step is None or isinstance(step, str))]
    for step in scalers:
        if type(step).__name__ != "StandardScaler":
            raise ValueError(
                "a pipeline must have StandardScaler before its last step to be written as a "
                f"model file, got {type(step).__name__}; a table can be fitted as it is"
            )
    if not isinstance(last, DRLogisticRegression | DRLogisticRegressionCV):
        return last  # which is refused by its name
    tables = last.encoding_ is not None or last.categories_ is not None or last.bounds_ is not None
    if scalers and tables:
        raise ValueError(
            "categories and bounds of scaled features cannot be written as a model file: fit the "
            "table as it is, with feature_costs='std'"
        )
    for scaler in reversed(scalers):
        last = in_original_units(last, scaler)
    if scalers and hasattr(scalers[0], "feature_names_in_"):
        last.feature_names_in_ = scalers[0].feature_names_in_
    return last


def _digest(document: Mapping[str, Any]) -> str:
    """Of what a file says, however it is spelt: spaces, 0.5 or 5e-1, the order of the names."""
    contents = {name: document[name] for name in sorted(document) if name != "digest"}
    return hashlib.sha256(strict_json.dumps(contents, indent=None).encode()).hexdigest()


def _document(model: Any, origin: Mapping[str, Any]) -> dict[str, Any]:
    from .. import __version__

    if not isinstance(model, DRLogisticRegression | DRLogisticRegressionCV):
        raise ValueError(
            "model must be a fitted DRLogisticRegression or DRLogisticRegressionCV, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model, "coef_")
    classes = _checked_classes(np.asarray(model.classes_).tolist())
    result, several = model.result_, len(classes) > 2
    _check_certificate(result, float(model.tol))  # or the file could not be read
    names = getattr(model, "feature_names_in_", None)
    encoding, costs = model.encoding_, model.feature_costs_
    if encoding is not None:
        names = encoding.names
    tables = _tables(model)
    return {
        "schema": SCHEMA,
        "version": VERSIONS[2] if several else VERSIONS[1] if tables else VERSIONS[0],
        "drlogit_version": __version__,
        "n_features": int(model.coef_.shape[1]),
        "feature_names": None if names is None else [str(name) for name in names],
        "feature_costs": None if costs is None else np.asarray(costs, dtype=float).tolist(),
        **tables,
        "classes": classes,
        "epsilon": float(model.epsilon_),
        "kappa": _stated(model.kappa_, model.classes_) if several else float(model.kappa_),
        "norm": model.norm,
        "fit_intercept": bool(model.fit_intercept),
        "tol": float(model.tol),
        "fits": [
            {
                **({} if several else {"class": classes[1]}),
                "status": result.status.name,
                "solver": result.solver,
                "n_iter": int(result.n_iter),
                "intercept": np.asarray(result.intercept, dtype=float).tolist(),
                **{key: float(getattr(result, name)) for key, name in _FIT_KEYS.items()},
                "coefficients": result.coef.tolist(),
                **({"as_numbers": True} if result.info.get("as_numbers") else {}),
            }
        ],
        "origin": dict(origin),
    }


def _stated(kappa: Any, classes: Any) -> Any:
    """A number, or the costs of each label as lists."""
    return (
        float(kappa)
        if np.ndim(kappa) == 0 and not isinstance(kappa, Mapping)
        else (label_costs(kappa, np.asarray(classes)).tolist())
    )


def _tables(model: Any) -> dict[str, Any]:
    """What version 2 says besides: columns of the table, categories and bounds."""
    encoding, categories, bounds = model.encoding_, model.categories_, model.bounds_
    if encoding is None and categories is None and bounds is None:
        return {}
    n_features = int(model.coef_.shape[1])
    return {
        "columns": None if encoding is None else encoding.to_dict(),
        "missing_marks": None if encoding is None else list(encoding.missing_marks),
        "categories": (
            None
            if categories is None
            else [[int(j) for j in np.asarray(group)] for group in categories]
        ),
        "bounds": (
            None
            if bounds is None
            else [np.broadcast_to(np.asarray(e, float), n_features).tolist() for e in bounds]
        ),
    }


# --- reading --------------------------------------------------------------------------------


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Do what :func:`load_model` does, with how the data were read beside the model."""
    path = Path(path)
    try:
        document = strict_json.read(path)
    except ValueError as error:
        raise ValueError(f"{path} is not a model file, or not all of one: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else document
        raise ValueError(
            f"{path} is JSON but not a model file: its schema is {found!r:.60}, wanted {SCHEMA!r}"
        )
    version = document.get("version")
    if isinstance(version, bool) or version not in VERSIONS:
        raise ValueError(
            f"{path} has version {version!r:.20} of the model format, and this "
            f"drlogit reads versions {' and '.join(map(str, VERSIONS))} only"
        )
    try:
        tables = version == VERSIONS[1] or (version == VERSIONS[2] and "columns" in document)
        _check_keys(document, _KEYS | _KEYS_OF_TABLES if tables else _KEYS)
        model = _parse(document, tables=tables, several=version == VERSIONS[2])
        origin = _get(document, "origin", _is(dict), "an object")
        if "digest" in document and document["digest"] != _digest(document):
            raise ValueError(
                "its 'digest' is not that of its contents, so it was changed after it was written; "
                "if that was meant, remove 'digest'"
            )
        return ModelFile(model, origin)
    except ValueError as error:
        raise ValueError(f"{path} is not a sound model file: {error}") from None


def looks_like_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as those that :func:`write_model` writes do."""
    path = Path(path)
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return f'"schema": "{SCHEMA}"'.encode() in file.read(256)


Fields = Mapping[str, Any]
Test = Callable[[Any], bool]


def _check_keys(fields: Fields, known: frozenset[str]) -> None:
    unknown = sorted(fields.keys() - known)
    if unknown:
        raise ValueError(f"{unknown[0]!r:.40} is no name that a model file has")


def _get(fields: Fields, key: str, good: Test, wanted: str) -> Any:
    """A field, if it is as it should be."""
    if key not in fields:
        raise ValueError(f"{key!r} is missing")
    if not good(fields[key]):
        raise ValueError(f"{key!r} must be {wanted}, got {fields[key]!r:.40}")
    return fields[key]


def _is(*kinds: type) -> Test:
    """Of one of these types; a truth value is no number."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


_is_number, _is_text = _is(int, float), _is(str)


def _is_cost(value: Any) -> bool:
    return value == "inf" or (_is_number(value) and value > 0.0)


def _listed(good: Test, length: int | None = None) -> Test:
    """A list of such values, of that length if one is given."""
    return lambda value: (
        isinstance(value, list) and all(map(good, value)) and length in (None, len(value))
    )


def _or_null(good: Test) -> Test:
    return lambda value: value is None or good(value)


def _number(fields: Fields, key: str, least: float = -math.inf) -> float:
    return float(_get(fields, key, lambda v: _is_number(v) and v >= least, _at_least(least)))


def _at_least(least: float) -> str:
    return "a number" if math.isinf(least) else f"a number >= {least:g}"


def _parse(top: Fields, *, tables: bool, several: bool) -> DRLogisticRegression:
    n = _get(top, "n_features", lambda v: _is(int)(v) and v >= 1, "a whole number >= 1")
    names = _get(top, "feature_names", _or_null(_listed(_is_text, n)), f"{n} texts, or null")
    costs = _get(top, "feature_costs", _or_null(_listed(_is_cost, n)), f"{n} positive numbers")
    classes = _checked_classes(_get(top, "classes", _is(list), "a list"))
    if several != (len(classes) > 2):
        raise ValueError(
            f"{len(classes)} classes were fitted one against the rest by an earlier version; fit "
            "them again"
            if len(classes) > 2
            else "'classes' of version 3 must be more than two"
        )
    (fit,) = _get(top, "fits", _listed(_is(dict), 1), "a list of one object")
    _check_keys(fit, _KEYS_OF_FIT)
    if not several and fit.get("class") != classes[1]:
        raise ValueError(f"'class' of the fit must be {classes[1]!r}, got {fit.get('class')!r:.40}")
    tol = _number(top, "tol", 0.0)
    result = _parse_fit(fit, n, len(classes) if several else None)
    _check_certificate(result, tol)
    encoding, categories, bounds = _parse_tables(top, n) if tables else (None,) * 3
    return fitted_model(
        result, classes, names, encoding, categories, bounds,
        epsilon=_number(top, "epsilon", 0.0),
        kappa=_parse_kappa(top, np.array(classes), several=several),
        norm=_get(top, "norm", ("l1", "l2", "linf").__contains__, "l1, l2 or linf"),
        fit_intercept=_get(top, "fit_intercept", _is(bool), "true or false"),
        feature_costs=None if costs is None else np.array(costs, dtype=float),
        tol=tol,
    )  # fmt: skip


def _parse_kappa(top: Fields, classes: Any, *, several: bool) -> Any:
    if not several:
        return float(_get(top, "kappa", _is_cost, "a positive number"))

    def is_price(value: Any) -> bool:
        return value == 0.0 or _is_cost(value)

    rows = _listed(_listed(is_price, len(classes)), len(classes))
    wanted = "a number >= 0, or a list of them for each class"
    found = _get(top, "kappa", lambda value: is_price(value) or rows(value), wanted)
    kappa = np.array(found, dtype=float)
    label_costs(float(kappa) if kappa.ndim == 0 else kappa, classes)
    return float(kappa) if kappa.ndim == 0 else kappa


def _parse_fit(fit: Fields, n_features: int, n_classes: int | None) -> Result:
    vector, intercept, each = _listed(_is_number, n_features), _is_number, ""
    if n_classes is not None:
        vector, intercept = _listed(vector, n_classes), _listed(_is_number, n_classes)
        each = f" for each of {n_classes} classes"
    coef = _get(fit, "coefficients", vector, f"{n_features} numbers{each}")
    offset = np.array(_get(fit, "intercept", intercept, f"a number{each}"), dtype=float)
    status = _get(fit, "status", _is_text, "text")
    if status not in Status.__members__:
        raise ValueError(
            f"'status' must be one of {', '.join(Status.__members__)}, got {status!r:.40}"
        )
    numbers: dict[str, Any] = {name: _number(fit, key) for key, name in _FIT_KEYS.items()}
    return Result(
        coef=np.array(coef, dtype=float),
        intercept=float(offset) if n_classes is None else offset,
        dual=None,
        info={"as_numbers": True} if fit.get("as_numbers") else {},
        status=Status[status],
        n_iter=_get(fit, "n_iter", lambda v: _is(int)(v) and v >= 0, "a whole number >= 0"),
        solver=_get(fit, "solver", _is_text, "text"),
        trace=Trace(),
        **numbers,
    )


def _parse_tables(top: Fields, n_features: int) -> tuple[Encoding | None, Any, Any]:
    """The columns of the raw table, groups of columns of the matrix, and bounds for each."""
    encoding = None
    columns = _get(top, "columns", _or_null(_listed(_is(dict))), "a list of objects, or null")
    if columns is not None:
        marks = top.get("missing_marks", list(MISSING_MARKS))  # files did not always say which
        if not _listed(_is_text)(marks):
            raise ValueError(f"'missing_marks' must be text, got {marks!r:.60}")
        encoding = Encoding(tuple(_parse_column(each) for each in columns), tuple(marks))
        if encoding.n_encoded != n_features:
            raise ValueError(f"'columns' must make {n_features} features, got {encoding.n_encoded}")
        names = [column.name for column in encoding.columns]
        if len(set(names)) != len(names):
            raise ValueError("'columns' must have distinct names")
    lists = _or_null(_listed(lambda group: bool(group) and _listed(_is(int))(group)))
    categories = _get(top, "categories", lists, "lists of features")
    places = [j for group in categories or () for j in group]
    if len(set(places)) != len(places) or not all(0 <= j < n_features for j in places):
        raise ValueError(f"'categories' must be lists of distinct features, got {places!r:.60}")
    ends = _listed(lambda v: v in ("inf", "-inf") or _is_number(v), n_features)
    bounds = _get(top, "bounds", _or_null(_listed(ends, 2)), f"two lists of {n_features} numbers")
    if bounds is not None:
        bounds = tuple(np.array(each, dtype=float) for each in bounds)
        if not (bounds[0] <= bounds[1]).all():
            raise ValueError("'bounds' must have lower ends below upper ones")
    return encoding, categories, bounds


def _parse_column(column: Fields) -> EncodedColumn:
    _check_keys(column, _KEYS_OF_COLUMN)
    levels = _get(column, "levels", _or_null(_listed(_or_null(_is_text))), "texts or null")
    if levels is not None and len(set(levels)) != len(levels):
        raise ValueError(f"'levels' must be distinct, got {levels!r:.40}")
    return EncodedColumn(
        _get(column, "name", _is(str, int), "text or a whole number"),
        None if levels is None else tuple(levels),
        None if column.get("fill") is None else _number(column, "fill"),
        _get(column, "kind", ("text", "truth", "number").__contains__, "text, truth or number"),
    )


def _check_certificate(result: Result, tol: float) -> None:
    """What a certificate says of itself must agree, up to rounding."""
    size = max(1.0, abs(result.objective), abs(result.dual_objective))
    claimed = max(result.objective - result.dual_objective, 0.0)
    if result.gap < 0.0 or abs(result.gap - claimed) > _ROUNDING * size:
        raise ValueError(
            f"'gap' must be 'objective' less 'dual_bound', which is {claimed:.3g}, got {result.gap}"
        )
    if result.lam < 0.0:
        raise ValueError(f"'lambda' must be at least 0, got {result.lam}")
    if result.converged and result.gap > tol:
        raise ValueError(
            f"'status' cannot be OPTIMAL with a gap of {result.gap:.3g} and 'tol' {tol:g}"
        )


def _checked_classes(classes: list[Any]) -> list[Any]:
    """Two or more distinct labels, all numbers, all text or all truth values."""
    kinds = {type(label) for label in classes}
    if not (kinds <= {int, float} or kinds in ({str}, {bool})):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"'classes' must be numbers or text, got {found}")
    if len(classes) < 2 or len(set(classes)) != len(classes):
        raise ValueError(f"'classes' must be two or more distinct labels, got {classes!r:.60}")
    if any(isinstance(label, float) and not math.isfinite(label) for label in classes):
        raise ValueError("'classes' must be finite")
    kept = np.array(classes)
    if kept.dtype.kind not in "biufU" or kept.tolist() != classes:  # 2^70, or text with a NUL
        raise ValueError(f"'classes' must be labels that NumPy can hold, got {classes!r:.60}")
    return classes
