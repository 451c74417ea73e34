"""Parameters of estimators as JSON, and back: numbers, text, lists, mappings and balls.

A list is a JSON list.  What JSON cannot tell from it, or from text, is an object of one entry, the
name of which says what it is: ``{"tuple": [...]}``, ``{"mapping": [[key, value], ...]}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..estimators.classifier import DRLogisticRegression
from ..problem.ball import Ball
from ..problem.stated_tolerances import TOLERATED

#: Of the parameters, those that a file has besides; what they were is in the fit, as they are here.
_ELSEWHERE = {"fit_intercept", "tol", "n_jobs", "verbose"}


def kept_parameters(model: Any) -> dict[str, Any]:
    """The parameters that a refit needs, as JSON has them.

    Of κ, shares of classes, which data decide.  All others are numbers that the fit has, chosen
    ones included.
    """
    given, known = model.get_params(deep=False), DRLogisticRegression().get_params()
    kept = {name: given[name] for name in known if name in given and name not in _ELSEWHERE}
    if "epsilon" not in given:  # a search
        kept |= {"epsilon": model.ball_.epsilon, "kappa": model.ball_.kappa}
        kept["kappa"] = None if kept["kappa"] == "by row" else kept["kappa"]
    return {name: _packed(value, name) for name, value in kept.items()}


def pack_ball(ball: Ball) -> dict[str, Any]:
    """A ball as it was written, or in plain numbers if it was resolved."""
    fields = {name: value for name, value in vars(ball).items() if not name.startswith("_")}
    tolerances = ball.stated_tolerances
    stated = {
        name: _packed(value, name)
        for name, value in fields.items()
        if not (isinstance(value, str) and value == TOLERATED)
    }
    return {**stated, **({} if tolerances is None else {"tolerating": _packed(tolerances, "")})}


def read_ball(stated: Mapping[str, Any]) -> Ball:
    """The inverse of :func:`pack_ball`; ``ValueError`` or ``TypeError`` for what is no ball."""
    given = {name: _unpacked(value) for name, value in stated.items()}
    tolerances = given.pop("tolerating", None)
    ball = Ball() if tolerances is None else Ball.tolerating(**tolerances)
    return ball.replace(**given)


def read_parameters(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a file has."""
    return {name: _unpacked(value) for name, value in stated.items()}


def _packed(value: Any, name: str) -> Any:
    def each(values: Any) -> list[Any]:
        return [_packed(one, name) for one in values]

    if isinstance(value, Ball):
        return {"ball": pack_ball(value)}
    if isinstance(value, Mapping):
        return {"mapping": [each(pair) for pair in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": each(value)}
    if isinstance(value, np.ndarray):
        return {"array": each(value.tolist())}
    value = value.tolist() if hasattr(value, "tolist") else value  # of NumPy or pandas
    if isinstance(value, list):
        return each(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(
        f"a model file can only keep numbers, text, lists and mappings, got "
        f"{type(value).__name__} as the parameter {name}"
    )


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "ball":
        return read_ball(content)
    return _KINDS[kind](_unpacked(content))


_KINDS: dict[str, Any] = {
    "mapping": dict,
    "tuple": tuple,
    "array": np.array,
    "number": float,
}
