"""Fitted models as plain JSON files: reading one runs no code and trusts nothing in it.

    drlogit.save_model(model, "model.json")
    model = drlogit.load_model("model.json")      # a fitted DRLogisticRegression

``_TABLE`` has the keys of a file: what each is of a model, and how its value is read and checked.
Numbers are read back exactly.  Files are written whole or not at all, and carry a digest of their
contents, so that a damaged file is not read as another model.  A file with a forged digest is still
refused if it has NaN, wrong lengths, or a certificate that contradicts itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.robust_classifier import result_of, set_result
from ..estimators.tables.encoding import features_stated, statement_of
from ..problem.ball import Ball, ColumnBall
from ..problem.domains import check_domains
from ..problem.features import Features, numbers
from ..problem.label_costs import BY_ROW, FlipCosts, flip_costs
from ..problem.parameters import check_cost_matrix
from ..problem.result import Result, Status, Trace
from ..rows.arrays import FloatArray
from ..rows.checks import TOO_LARGE
from .packing import pack, pack_ball, unpack, unpack_ball
from .writing import json_text, write_text

#: What every file begins with.
_SCHEMA = {"schema": "drlogit-model", "version": 7}


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a JSON file.

    Parameters
    ----------
    model : DRLogisticRegression, DRLogisticRegressionCV, or a search over them
        A fitted model.  For a search, the chosen model is written, without the scores.
    path : path
        File to write.  An existing file is replaced in one step.

    Raises
    ------
    ValueError
        The model is of another kind, or its labels are neither numbers nor text.

    Examples
    --------
    >>> import drlogit, os, tempfile
    >>> X, y = drlogit.datasets.make_synthetic(100, 3, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> drlogit.save_model(drlogit.DRLogisticRegression(0.05).fit(X, y), path)
    >>> drlogit.load_model(path).predict(X[:2]).shape
    (2,)
    """
    write_model(model, path, {})


def load_model(path: str | os.PathLike[str]) -> DRLogisticRegression:
    """Read a model from a JSON file.

    Parameters
    ----------
    path : path
        A file written by :func:`save_model` or ``drlogit fit``.

    Returns
    -------
    DRLogisticRegression
        A fitted estimator with the parameters of the saved one (for a search, those that it chose).
        It can predict, be audited, and be fitted again.

    Raises
    ------
    ValueError
        The file is not a model file, or is damaged; the message says what was found.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     drlogit.save_model(model, Path(folder) / "model.json")
    ...     again = drlogit.load_model(Path(folder) / "model.json")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    model, _ = read_model(path)
    return model


# --- the keys of a file ---------------------------------------------------------------------

#: What was read before, by key.
Found = Mapping[str, Any]


def _numbers(value: Any, *shape: int | None) -> Any:
    """Finite numbers of that shape, in which None is any size."""
    found = np.array(value, dtype=float)
    fits = len(shape) == found.ndim and all(
        wanted in (None, size) for wanted, size in zip(shape, found.shape, strict=True)
    )
    if not fits or not (np.abs(found) < TOO_LARGE).all():
        size = " times ".join("any" if each is None else str(each) for each in shape)
        raise ValueError(f"must be {size or 'single'} numbers below {TOO_LARGE:g}")
    return found if shape else float(found)


def _check_moderate(values: FloatArray, name: str) -> None:
    """Neither they nor their inverses may be too large."""
    if not ((values > 1.0 / TOO_LARGE) & (values < TOO_LARGE)).all():
        raise ValueError(f"must have {name} from {1.0 / TOO_LARGE:g} to {TOO_LARGE:g}")


def _classes(value: Any, _: Found) -> Any:
    """Two or more distinct labels, all numbers, all text or all truth values."""
    kept = np.array(value)
    distinct = isinstance(value, list) and len(set(value)) == len(value) >= 2
    # What is not the same again: NaN, 2^70, text with a NUL, numbers beside text.
    if not distinct or kept.dtype.kind not in "biufU" or kept.tolist() != value:
        raise ValueError("must be two or more distinct labels, all numbers or all text")
    return kept


def _coefficients(value: Any, found: Found) -> Any:
    size = found["classes"].size
    return _numbers(value, 1 if size == 2 else size, None)


def _stated_features(model: Any) -> dict[str, Any]:
    """The columns of X and their statistics; ``columns`` says how a raw table is encoded."""
    features, shares = model.ball_.features, model.ball_.features.class_shares
    return {
        "names": list(features.names) if features.are_named else None,
        "columns": None if features.are_columns else statement_of(features.each),
        "deviations": features.deviations,
        "n_rows": features.n_rows,
        "class_shares": None if shares is None else [*shares.items()],
        "seen": features.seen,
    }


def _features(value: Any, found: Found) -> Features:
    """The columns of the table as the ball sees them."""
    columns, width = value["columns"], found["coefficients"].shape[1]
    names = range(width) if value["names"] is None else value["names"]
    if not all(isinstance(name, str | int) for name in names):
        raise ValueError("names must be texts")
    deviations = _numbers(value["deviations"], len(names))
    _check_moderate(deviations, "deviations")
    seen = None if value["seen"] is None else np.array(value["seen"], dtype=float)  # null is NaN
    if seen is not None:
        _numbers(np.nan_to_num(seen), 3, len(names))
    shares = None if value["class_shares"] is None else dict(value["class_shares"])
    rows = _numbers(value["n_rows"]), shares, seen
    _numbers([each["fill"] or 0.0 for each in columns or ()], None)
    each = () if columns is None else features_stated(names, columns, deviations.tolist())
    made = len(names) if columns is None else sum(feature.columns.size for feature in each)
    if made != width:
        raise ValueError(f"must make {width} columns, one for each coefficient, got {made}")
    return numbers(names, deviations, *rows) if columns is None else Features(each, width, *rows)


def _ball(value: Any, found: Found) -> tuple[Ball, ColumnBall]:
    """The ball as it is stated for the table, and for the columns of the matrix."""
    ball, classes = unpack_ball(value).seen_with(found["features"]), found["classes"]
    if not ball.is_resolved:
        raise ValueError("must have numbers for epsilon and feature_costs")
    _numbers(ball.epsilon)
    columns, n = ball.on(found["features"]), found["coefficients"].shape[1]
    if columns.costs.ndim == 1:
        _check_moderate(columns.costs[np.isfinite(columns.costs)], "feature_costs")
    ends = columns.lower, columns.upper
    check_domains(columns.groups or None, ends if np.isfinite(ends).any() else None, n)
    check_cost_matrix(columns.costs, n, columns.norm, domains=False)
    kappa = ball.kappa if ball.kappa == BY_ROW else flip_costs(ball.kappa, classes)
    return ball, replace(columns, kappa=FlipCosts.from_stated(kappa, classes))


def _kept_parameters(model: Any) -> dict[str, Any]:
    """The parameters that a refit needs; those of a search are what it chose."""
    given, ball = model.get_params(deep=False), model.ball_
    if isinstance(model, DRLogisticRegressionCV):
        given |= {"epsilon": ball.epsilon, "kappa": None if ball.kappa == BY_ROW else ball.kappa}
    known = DRLogisticRegression().get_params().keys() - {"n_jobs", "verbose"}
    return {name: pack(given[name], name) for name in sorted(known & given.keys())}


def _certified(value: Any, found: Found) -> dict[str, Any]:
    """How the fit ended, with its bounds; what contradicts itself is an error."""
    known = {name: read(value[name]) for name, read in _OF_RESULT.items()}
    known["gap"] = max(known["objective"] - known["dual_objective"], 0.0)
    known["info"] = {"seen_scores": _numbers(value["seen_scores"], None)}
    tol = _numbers(found["parameters"].tol)
    if known["status"] is Status.OPTIMAL and known["gap"] > tol:
        raise ValueError(f"has a gap of {known['gap']:.3g} and the status OPTIMAL at tol={tol:g}")
    return known


def _result(model: Any) -> dict[str, Any]:
    result = result_of(model)
    stated = {name: getattr(result, name) for name in _OF_RESULT}
    return {**stated, "status": result.status.name, "seen_scores": result.info["seen_scores"]}


#: What a file has of the result of a fit.
_OF_RESULT: dict[str, Callable[[Any], Any]] = {
    "status": Status.__getitem__,
    "solver": str,
    "n_iter": int,
    "solve_time": _numbers,
    "lam": _numbers,
    "objective": _numbers,
    "dual_objective": _numbers,
}

#: What a file has of a model, and how that is read, in this order: a value may rest on those
#: before.
_TABLE: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Found], Any]]] = {
    "classes": (lambda model: model.classes_.tolist(), _classes),
    "coefficients": (attrgetter("coef_"), _coefficients),
    "intercept": (
        attrgetter("intercept_"),
        lambda value, found: _numbers(value, found["coefficients"].shape[0]),
    ),
    "features": (_stated_features, _features),
    "ball": (lambda model: pack_ball(model.ball_), _ball),
    "parameters": (
        _kept_parameters,
        lambda value, _: DRLogisticRegression(**{name: unpack(value[name]) for name in value}),
    ),
    "result": (_result, _certified),
}


def _digest(document: Mapping[str, Any]) -> str:
    """Of what a file says, however it is spelt: spaces, 0.5 or 5e-1, the order of the names."""
    contents = {name: document[name] for name in sorted(document) if name != "digest"}
    return hashlib.sha256(json_text(contents, indent=None).encode()).hexdigest()


# --- writing and reading --------------------------------------------------------------------


def write_model(model: Any, path: str | os.PathLike[str], notes: Mapping[str, Any]) -> None:
    """Do what :func:`save_model` does, with notes of the command line beside the model."""
    from .. import __version__

    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    if not isinstance(model, DRLogisticRegression | DRLogisticRegressionCV):
        raise ValueError(
            "model must be a fitted DRLogisticRegression or DRLogisticRegressionCV, got "
            f"{type(model).__name__}; in place of a pipeline with StandardScaler, fit to the table "
            "itself: distances are in standard deviations by default"
        )
    check_is_fitted(model, "coef_")
    document = {**_SCHEMA, "drlogit_version": __version__, "notes": dict(notes)}
    document |= {key: get(model) for key, (get, _) in _TABLE.items()}
    _classes(document["classes"], {})
    write_text(path, json_text({**document, "digest": _digest(document)}) + "\n")


def read_model(path: str | os.PathLike[str]) -> tuple[DRLogisticRegression, dict[str, Any]]:
    """Do what :func:`load_model` does, and return the notes of the command line."""
    contents = Path(path).read_bytes()
    if contents.startswith(b"\x80"):
        raise ValueError(
            f"{path} is a pickle, which can run code when it is read: write the model with "
            "drlogit.save_model instead"
        )
    try:
        document = json.loads(contents.decode("utf-8-sig"))
        known = {name: document[name] for name in _SCHEMA}
        if known != _SCHEMA:
            raise ValueError(f"expected {_SCHEMA}, got {known!r:.100}; fit the model again")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a model file written by drlogit fit -o or save_model of this version, "
            f"or is incomplete: {error}"
        ) from None
    found: dict[str, Any] = {}
    key = "digest"
    try:
        if document[key] != _digest(document):
            raise ValueError(
                "does not match the contents, so the file was changed after it was written; to "
                "change a model, load it and save it again"
            )
        for key, (_, parse) in _TABLE.items():
            found[key] = parse(document[key], found)
        key = "notes"
        return _model(found), dict(document[key])
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        said = f"has no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ValueError(f"{path} is not a valid model file: {key!r} {said:.160}") from None


def _model(found: Found) -> DRLogisticRegression:
    """The fitted estimator."""
    model: DRLogisticRegression = found["parameters"]
    features, (ball, columns) = found["features"], found["ball"]
    model.classes_, model.n_features_in_ = found["classes"], len(features.each)
    if all(isinstance(name, str) for name in features.names):
        model.feature_names_in_ = np.array(features.names, dtype=object)
    two = model.classes_.size == 2
    result = Result(
        coef=found["coefficients"][0] if two else found["coefficients"],
        intercept=float(found["intercept"][0]) if two else found["intercept"],
        dual=None,
        setup_time=0.0,
        trace=Trace(),
        column_ball=replace(columns, fit_intercept=bool(model.fit_intercept)),
        ball=ball,
        **found["result"],
    )
    set_result(model, result)
    return model
