"""Fitted models as plain JSON files: reading one runs no code and trusts nothing in it.

    drlogit.save_model(model, "model.json")
    model = drlogit.load_model("model.json")      # a fitted DRLogisticRegression

A file has a schema and a version, the model (ε, κ, norm, costs), and the coefficients (one list per
class if there are more than two) with their certificate: objective, dual bound, gap and status.
Numbers are read back exactly.  Files are written whole or not at all, and carry a digest of their
contents, so that a damaged file is not read as another model.  A file with a forged digest is still
refused if it has NaN, wrong lengths, or a certificate that contradicts itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.robust_classifier import set_result
from ..estimators.tables.encoding import EncodedColumn, Encoding
from ..estimators.tables.frames import MISSING_MARKS
from ..problem.domains import check_domains
from ..problem.features import Feature, Features, numbers
from ..problem.label_costs import FlipCosts, flip_costs
from ..problem.norms import get_norm
from ..problem.parameters import check_cost_matrix, check_costs, check_epsilon
from ..problem.result import Result, Status, Trace
from ..problem.transport import ResultBall
from ..rows.checks import TOO_LARGE
from .kept_parameters import kept_parameters, pack_ball, read_ball, read_parameters
from .writing import json_text, write_text

SCHEMA, VERSION = "drlogit-model", 5

#: What rounding may leave of the difference of two objectives, relative to them.
_ROUNDING = 1e-12


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
        It can predict, be audited, and be fitted again.  ``result_`` has no trace.

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


# --- both -----------------------------------------------------------------------------------

Fields = Mapping[str, Any]

#: The numbers of a fit, and what a :class:`Result` calls them.
_NUMBERS_OF_FIT = {
    "lambda": "lam",
    "objective": "objective",
    "dual_bound": "dual_objective",
    "gap": "gap",
    "setup_seconds": "setup_time",
    "solve_seconds": "solve_time",
}


def _checked_classes(classes: list[Any]) -> list[Any]:
    """Two or more distinct labels, all numbers, all text or all truth values."""
    kept = np.array(classes)
    distinct = len(set(classes)) == max(len(classes), 2)
    # What is not the same again: NaN, 2^70, text with a NUL, numbers beside text.
    if not distinct or kept.dtype.kind not in "biufU" or kept.tolist() != classes:
        raise ValueError(
            "'classes' must be two or more distinct labels, all numbers or all text, got "
            f"{classes!r:.60}"
        )
    return classes


def _digest(document: Fields) -> str:
    """Of what a file says, however it is spelt: spaces, 0.5 or 5e-1, the order of the names."""
    contents = {name: document[name] for name in sorted(document) if name != "digest"}
    return hashlib.sha256(json_text(contents, indent=None).encode()).hexdigest()


# --- writing --------------------------------------------------------------------------------


def write_model(model: Any, path: str | os.PathLike[str], origin: Fields) -> None:
    """Do what :func:`save_model` does, with how the data were read beside the model."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    document = {**_document(model), "origin": dict(origin)}
    head = {name: document.pop(name) for name in ("schema", "version")}
    digest = _digest({**head, **document})
    write_text(path, json_text({**head, "digest": digest, **document}) + "\n")


def _document(model: Any) -> dict[str, Any]:
    from .. import __version__

    if not isinstance(model, DRLogisticRegression | DRLogisticRegressionCV):
        raise ValueError(
            "model must be a fitted DRLogisticRegression or DRLogisticRegressionCV, got "
            f"{type(model).__name__}; in place of a pipeline with StandardScaler, fit with "
            "feature_costs='std', which gives the same model on the original features"
        )
    check_is_fitted(model, "coef_")
    classes = _checked_classes(np.asarray(model.classes_).tolist())
    result = model.result_
    n_features, encoding = int(model.coef_.shape[1]), model.encoding_
    names = getattr(model, "feature_names_in_", None) if encoding is None else encoding.names
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "drlogit_version": __version__,
        "n_features": n_features,
        "feature_names": None if names is None else [str(name) for name in names],
        "ball": pack_ball(model.ball_),
        "features": _packed_features(model.ball_.features),
        "columns": None if encoding is None else [asdict(column) for column in encoding.columns],
        "columns_seen": model.columns_seen_,
        "missing_marks": None if encoding is None else MISSING_MARKS,
        "classes": classes,
        "fit_intercept": bool(model.fit_intercept),
        "tol": float(model.tol),
        "parameters": kept_parameters(model),
        "fits": [
            {
                "class": classes[1] if len(classes) == 2 else None,
                "status": result.status.name,
                "solver": result.solver,
                "n_iter": int(result.n_iter),
                "intercept": result.intercept,
                **{key: float(getattr(result, name)) for key, name in _NUMBERS_OF_FIT.items()},
                "coefficients": result.coef,
                **({"as_numbers": True} if result.info.get("as_numbers") else {}),
            }
        ],
    }  # fmt: skip


# --- reading --------------------------------------------------------------------------------


def read_model(path: str | os.PathLike[str]) -> tuple[DRLogisticRegression, dict[str, Any]]:
    """Do what :func:`load_model` does, and tell how the data were read."""
    path = Path(path)
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a model file written by drlogit fit -o or save_model, or is "
            f"incomplete: {error}"
        ) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else document
        raise ValueError(
            f"{path} is JSON but not a model file: its schema is {found!r:.60}, expected {SCHEMA!r}"
        )
    version = document.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise ValueError(
            f"{path} has version {version!r:.20} of the model format, expected version {VERSION}: "
            "fit the model again"
        )
    if document.pop("digest", None) != _digest(document):
        raise ValueError(
            f"{path} is not a valid model file: its 'digest' does not match its contents, so it "
            "was changed after it was written; to change a model, load it and save it again"
        )
    try:
        return _parse(document), dict(document["origin"])
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        missing = " is missing" if isinstance(error, KeyError) else ""
        raise ValueError(f"{path} is not a valid model file: {error}{missing}") from None


def _numbers(fields: Fields, key: str, *shape: int, finite: bool = True) -> Any:
    """Numbers of that shape, "inf" and "-inf" among them if they need not be ``finite``."""
    found = np.array(fields[key], dtype=float)
    if key in ("coefficients", "intercept") and (np.abs(found) >= TOO_LARGE).any():
        raise ValueError(f"{key!r} must be below {TOO_LARGE:g}, got {fields[key]!r:.40}")
    if found.shape != shape or np.isnan(found).any() or (finite and np.isinf(found).any()):
        size = f"{' times '.join(map(str, shape))} numbers" if shape else "a number"
        raise ValueError(f"{key!r} must be {size}, got {fields[key]!r:.40}")
    return found if shape else float(found)


def _parse(top: Fields) -> DRLogisticRegression:
    """The fitted estimator that a file describes; inconsistent values are an error."""
    (fit,) = top["fits"]
    n, names, width = top["n_features"], top["feature_names"], np.shape(fit["coefficients"])[-1:]
    if type(n) is not int or (n,) != width:
        raise ValueError(f"'n_features' must be the number of coefficients, {width}, got {n!r:.40}")
    encoding = _parse_encoding(top, n)
    classes = _checked_classes(top["classes"])
    K = () if len(classes) == 2 else (len(classes),)
    features = _parse_features(top["features"], n)
    ball = read_ball(top["ball"]).seen_with(features)
    columns = ball.on(features)
    check_epsilon(ball.epsilon)
    model = DRLogisticRegression(fit_intercept=bool(top["fit_intercept"]), tol=_numbers(top, "tol"))
    model.classes_, model.n_features_in_ = np.array(classes), n
    if encoding is not None:
        table = [column.name for column in encoding.columns]
        names = table if all(isinstance(name, str) for name in table) else None
        model.n_features_in_ = len(table)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
        texts = all(isinstance(name, str) for name in names)
        if model.feature_names_in_.shape != (model.n_features_in_,) or not texts:
            raise ValueError(f"'feature_names' must be {n} texts, got {names!r:.60}")
    model.encoding_ = encoding
    if top["columns_seen"] is not None:
        model.columns_seen_ = np.array(top["columns_seen"], dtype=float)  # null is NaN
        if model.columns_seen_.shape != (3, model.n_features_in_):
            raise ValueError(f"'columns_seen' must be three rows of {model.n_features_in_} numbers")
    bounded = np.isfinite([columns.lower, columns.upper]).any()
    bounds = (columns.lower, columns.upper) if bounded else None
    domains = check_domains(columns.groups or None, bounds, n)
    kappa = ball.kappa if isinstance(ball.kappa, str) else flip_costs(ball.kappa, model.classes_)
    labels = FlipCosts.from_stated(kappa, model.classes_)
    costs = check_cost_matrix(columns.costs, n, columns.norm, domains=False)
    costs = check_costs(columns.costs, n) if costs is None else costs
    plain = ResultBall(
        float(ball.epsilon or 0.0),
        labels,
        get_norm(ball.norm).name,
        costs,
        model.fit_intercept,
        *domains[:3],
        domains.with_none,
    )
    set_result(model, replace(_parse_fit(fit, plain, K, n, model.tol), ball=ball))
    model.set_params(**read_parameters(top["parameters"]))
    return model


def _packed_features(features: Features | None) -> dict[str, Any]:
    """The columns of the table as the ball sees them."""
    assert features is not None  # of a fit
    shares = features.class_shares
    found: dict[str, Any] = {
        "n_rows": features.n_rows,
        "class_shares": None if shares is None else [[*pair] for pair in shares.items()],
        "names": list(features.names) if features.are_named else None,
    }
    if features.are_columns:
        return {**found, "deviations": features.deviations}
    keys = ("levels", "deviation", "with_none", "otherwise")
    return found | {
        "each": [
            {"columns": each.columns, **{key: getattr(each, key) for key in keys}}
            for each in features.each
        ]
    }


def _parse_features(stated: Fields, n: int) -> Features:
    """The inverse of :func:`_packed_features`."""
    shares, names = stated["class_shares"], stated["names"]
    rows = _numbers(stated, "n_rows"), None if shares is None else dict(shares)
    if "each" not in stated:
        deviations = _numbers(stated, "deviations", n)
        if names is not None and len(names) != n:
            raise ValueError(f"'names' must be {n} names, got {names!r:.60}")
        return numbers(range(n) if names is None else names, deviations, *rows)
    each = []
    for name, fields in zip(names, stated["each"], strict=True):
        columns = np.array(fields["columns"], dtype=np.intp)
        levels = None if fields["levels"] is None else tuple(map(str, fields["levels"]))
        if levels is not None and len(levels) != columns.size:
            raise ValueError(f"'levels' must be {columns.size} texts, got {levels!r:.60}")
        each.append(
            Feature(
                name,
                columns,
                levels,
                deviation=_numbers(fields, "deviation"),
                with_none=bool(fields["with_none"]),
                otherwise=str(fields["otherwise"]),
            )
        )
    places = np.concatenate([feature.columns for feature in each])
    if not np.array_equal(np.sort(places), np.arange(n)):
        raise ValueError(f"'features' must have each of {n} columns once")
    return Features(tuple(each), n, *rows)


def _parse_fit(
    fit: Fields, ball: ResultBall, K: tuple[int, ...], n_features: int, tol: float
) -> Result:
    """How a fit ended; what its certificate says of itself must agree, up to rounding."""
    numbers: dict[str, Any] = {name: _numbers(fit, key) for key, name in _NUMBERS_OF_FIT.items()}
    result = Result(
        coef=_numbers(fit, "coefficients", *K, n_features),
        intercept=_numbers(fit, "intercept", *K),
        dual=None,
        info={"as_numbers": True} if fit.get("as_numbers") else {},
        status=Status[fit["status"]],
        n_iter=int(fit["n_iter"]),
        solver=str(fit["solver"]),
        trace=Trace(),
        column_ball=ball,
        **numbers,
    )
    claimed = max(result.objective - result.dual_objective, 0.0)
    if abs(result.gap - claimed) > _ROUNDING * max(1.0, abs(result.objective)):
        raise ValueError(
            f"'gap' must be 'objective' minus 'dual_bound', {claimed:.3g}, got {result.gap}"
        )
    if result.converged and result.gap > tol:
        raise ValueError(
            f"'status' cannot be OPTIMAL with a gap of {result.gap:.3g} and 'tol' {tol:g}"
        )
    return result


def _parse_encoding(top: Fields, n_features: int) -> Encoding | None:
    """The way from a raw table to features, if the model has one."""
    if top["columns"] is None:
        return None
    columns = []
    for each in top["columns"]:
        levels = None if each["levels"] is None else tuple(each["levels"])
        if not all(level is None or isinstance(level, str) for level in levels or ()):
            raise ValueError(f"'levels' must be texts or null, got {each['levels']!r:.60}")
        fill = None if each["fill"] is None else _numbers(each, "fill")
        columns.append(EncodedColumn(each["name"], levels, fill, each["kind"]))
    encoding = Encoding(tuple(columns))
    if top["missing_marks"] != list(MISSING_MARKS):
        raise ValueError("'missing_marks' must be those of this version of drlogit")
    if len(encoding.names) != n_features:
        raise ValueError(f"'columns' must make {n_features} features, got {len(encoding.names)}")
    return encoding
