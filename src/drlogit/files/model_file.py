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
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.classifier import DRLogisticRegression
from ..estimators.classifier_cv import DRLogisticRegressionCV
from ..estimators.robust_classifier import set_result
from ..estimators.tables.encoding import features_stated, statement_of
from ..problem.domains import check_domains
from ..problem.features import Features, numbers
from ..problem.label_costs import FlipCosts, flip_costs
from ..problem.parameters import check_cost_matrix, check_costs, check_epsilon
from ..problem.result import Result, Status, Trace
from ..problem.transport import ResultBall
from ..rows.checks import TOO_LARGE
from .packing import pack, pack_ball, unpack, unpack_ball
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


# --- the keys of a file ---------------------------------------------------------------------

#: What was read before, by key.
Found = Mapping[str, Any]


def _numbers(value: Any, *shape: int | None) -> Any:
    """Finite numbers of that shape, in which None is any size."""
    found = np.array(value, dtype=float)
    fits = found.ndim == len(shape) and all(
        wanted in (None, size) for wanted, size in zip(shape, found.shape, strict=True)
    )
    if not fits or not (np.abs(found) < TOO_LARGE).all():
        size = " times ".join("any" if each is None else str(each) for each in shape)
        wanted = f"{size} numbers" if shape else "a number"
        raise ValueError(f"must be {wanted} below {TOO_LARGE:g}")
    return found if shape else float(found)


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


def _intercept(value: Any, found: Found) -> Any:
    return _numbers(value, found["coefficients"].shape[0])


def _columns(value: Any, found: Found) -> list[dict[str, Any]] | None:
    """What becomes of the columns of a raw table, if the model has one."""
    if value is None:
        return None
    width = sum(feature.columns.size for feature in features_stated(value))
    if width != found["coefficients"].shape[1]:
        raise ValueError(f"must make {found['coefficients'].shape[1]} features, got {width}")
    return list(value)


def _n_columns(found: Found) -> int:
    """The number of columns of the table, or of the matrix if there is none."""
    columns = found["columns"]
    return int(found["coefficients"].shape[1] if columns is None else len(columns))


def _feature_names(value: Any, found: Found) -> Any:
    if value is None:
        return None
    texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
    if not texts or len(value) != _n_columns(found):
        raise ValueError(f"must be {_n_columns(found)} texts or null")
    return np.array(value, dtype=object)


def _seen(value: Any, found: Found) -> Any:
    """The range of each column in training, NaN for categories."""
    seen = None if value is None else np.array(value, dtype=float)  # null is NaN
    if seen is not None:
        _numbers(np.nan_to_num(seen), 3, _n_columns(found))
        if (seen[2] < 0.0).any() or (seen[2] > 1.0).any():
            raise ValueError("must have shares of missing values, from 0 to 1, in its third row")
    return seen


def _features(value: Any, found: Found) -> Features:
    """The columns of the table as the ball sees them."""
    shares, count = value["class_shares"], _n_columns(found)
    rows = _numbers(value["n_rows"]), None if shares is None else dict(shares)
    deviations, columns = _numbers(value["deviations"], count), found["columns"]
    seen = _seen(value["seen"], found)
    if not (deviations > 1.0 / TOO_LARGE).all():
        raise ValueError(f"must have deviations above {1.0 / TOO_LARGE:g}")
    if columns is None:
        names = found["feature_names"]
        return numbers(range(count) if names is None else names.tolist(), deviations, *rows, seen)
    each = features_stated(columns, deviations.tolist())
    return Features(each, found["coefficients"].shape[1], *rows, seen)


def _ball(value: Any, found: Found) -> Any:
    ball = unpack_ball(value).seen_with(found["features"])
    check_epsilon(ball.epsilon)
    if not isinstance(ball.kappa, str):
        flip_costs(ball.kappa, found["classes"])
    elif ball.kappa != "by row":
        raise ValueError(f"kappa must be a number, got {ball.kappa!r:.40}")
    costs = ball.feature_costs
    if isinstance(costs, dict) and list(costs) == list(found["features"].names):
        costs = np.array([*costs.values()], dtype=float)
    if not isinstance(costs, np.ndarray):
        raise ValueError("feature_costs must be a cost for each column")
    if costs.ndim == 1 and not (costs > 1.0 / TOO_LARGE).all():
        raise ValueError(f"feature_costs must be above {1.0 / TOO_LARGE:g}")
    _numbers(ball.epsilon)
    ball.on(found["features"])
    return ball


def _one(value: Any, _: Found) -> float:
    return float(_numbers(value))


def _parameters(value: Any, _: Found) -> dict[str, Any]:
    known = DRLogisticRegression().get_params()
    stated = {name: unpack(each) for name, each in value.items()}
    unknown = stated.keys() - known.keys()
    if unknown:
        raise ValueError(f"{min(unknown)!r:.40} is not a parameter")
    return stated


def _kept_parameters(model: Any) -> dict[str, Any]:
    """The parameters that a refit needs; those of a search are what it chose."""
    given = model.get_params(deep=False)
    if isinstance(model, DRLogisticRegressionCV):
        ball = model.ball_
        given |= {"epsilon": ball.epsilon, "kappa": None if ball.kappa == "by row" else ball.kappa}
    known = DRLogisticRegression().get_params().keys() - {"n_jobs", "verbose"}
    return {name: pack(given[name], name) for name in sorted(known & given.keys())}


def _stated_features(model: Any) -> dict[str, Any]:
    features = model.ball_.features
    shares = features.class_shares
    return {
        "deviations": features.deviations,
        "n_rows": features.n_rows,
        "class_shares": None if shares is None else [[*pair] for pair in shares.items()],
        "seen": features.seen,
    }


def _names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _encoded(model: Any) -> list[dict[str, Any]] | None:
    return None if model.table_ is None else statement_of(model.table_)


#: What a file has of a model, and how that is read, in this order: a value may rest on those
#: before.
_TABLE: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Found], Any]]] = {
    "classes": (lambda model: model.classes_.tolist(), _classes),
    "coefficients": (attrgetter("coef_"), _coefficients),
    "intercept": (attrgetter("intercept_"), _intercept),
    "columns": (_encoded, _columns),
    "feature_names": (_names, _feature_names),
    "features": (_stated_features, _features),
    "ball": (lambda model: pack_ball(model.ball_), _ball),
    "parameters": (_kept_parameters, _parameters),
    "status": (attrgetter("result_.status.name"), lambda value, _: Status[value]),
    "solver": (attrgetter("result_.solver"), lambda value, _: str(value)),
    "n_iter": (attrgetter("n_iter_"), lambda value, _: int(value)),
    "seconds": (attrgetter("result_.solve_time"), _one),
    "lambda": (attrgetter("lambda_"), _one),
    "objective": (attrgetter("worst_case_loss_"), _one),
    "dual_bound": (attrgetter("result_.dual_objective"), _one),
    "gap": (attrgetter("dual_gap_"), _one),
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
    contents = {"drlogit_version": __version__}
    contents |= {key: get(model) for key, (get, _) in _TABLE.items()}
    _classes(contents["classes"], {})
    head = {"schema": SCHEMA, "version": VERSION}
    document = {**head, **contents, "notes": dict(notes)}
    write_text(path, json_text({**head, "digest": _digest(document), **document}) + "\n")


def read_model(path: str | os.PathLike[str]) -> tuple[DRLogisticRegression, dict[str, Any]]:
    """Do what :func:`load_model` does, and return the notes of the command line."""
    contents, path = Path(path).read_bytes(), Path(path)
    if contents.startswith(b"\x80"):
        raise ValueError(
            f"{path} is a pickle, which can run code when it is read: write the model with "
            "drlogit.save_model instead"
        )
    try:
        document = json.loads(contents.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a model file written by drlogit fit -o or save_model, or is "
            f"incomplete: {error}"
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else document
    if schema != SCHEMA:
        raise ValueError(
            f"{path} is JSON but not a model file: its schema is {schema!r:.60}, expected "
            f"{SCHEMA!r}"
        )
    version = document.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise ValueError(
            f"{path} has version {version!r:.20} of the model format, expected version {VERSION}: "
            "fit the model again"
        )
    if document.get("digest") != _digest(document):
        raise ValueError(
            f"{path} is not a valid model file: its 'digest' does not match its contents, so it "
            "was changed after it was written; to change a model, load it and save it again"
        )
    found: dict[str, Any] = {}
    key = "notes"
    try:
        notes = dict(document[key])
        for key, (_, parse) in _TABLE.items():
            found[key] = parse(document[key], found)
        key = "gap"
        return _model(found), notes
    except KeyError as error:
        raise ValueError(f"{path} is not a valid model file: {key!r} has no {error}") from None
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{path} is not a valid model file: {key!r} {said:.160}") from None


def _model(found: Found) -> DRLogisticRegression:
    """The fitted estimator; a certificate that contradicts itself is an error."""
    model = DRLogisticRegression(**found["parameters"])
    model.classes_, model.n_features_in_ = found["classes"], _n_columns(found)
    if found["feature_names"] is not None:
        model.feature_names_in_ = found["feature_names"]
    if found["columns"] is not None:
        model.table_ = tuple(found["features"].each)
    claimed = max(found["objective"] - found["dual_bound"], 0.0)
    if abs(found["gap"] - claimed) > _ROUNDING * max(1.0, abs(found["objective"])):
        raise ValueError(f"must be 'objective' minus 'dual_bound', {claimed:.3g}")
    tol = _numbers(model.tol)
    if found["status"] is Status.OPTIMAL and found["gap"] > tol:
        raise ValueError(f"must be at most 'tol', {tol:g}, where 'status' is OPTIMAL")
    two = found["classes"].size == 2
    result = Result(
        coef=found["coefficients"][0] if two else found["coefficients"],
        intercept=float(found["intercept"][0]) if two else found["intercept"],
        lam=found["lambda"],
        objective=found["objective"],
        dual_objective=found["dual_bound"],
        gap=found["gap"],
        dual=None,
        status=found["status"],
        n_iter=found["n_iter"],
        solver=found["solver"],
        setup_time=0.0,
        solve_time=found["seconds"],
        trace=Trace(),
        info={},
        column_ball=_ball_of_columns(found, fit_intercept=bool(model.fit_intercept)),
        ball=found["ball"],
    )
    set_result(model, result)
    return model


def _ball_of_columns(found: Found, *, fit_intercept: bool) -> ResultBall:
    """The ball for the columns of the matrix."""
    ball, n = found["ball"], found["coefficients"].shape[1]
    columns, kappa = ball.on(found["features"]), ball.kappa
    if not isinstance(kappa, str):
        kappa = flip_costs(kappa, found["classes"])
    ends = columns.lower, columns.upper
    bounds = ends if np.isfinite(ends).any() else None
    domains = check_domains(columns.groups or None, bounds, n)
    costs = check_cost_matrix(columns.costs, n, columns.norm, domains=False)
    return ResultBall(
        columns.epsilon,
        FlipCosts.from_stated(kappa, found["classes"]),
        columns.norm,
        check_costs(columns.costs, n) if costs is None else costs,
        fit_intercept,
        *domains[:3],
        domains.with_none,
    )
