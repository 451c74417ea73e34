"""Parameters and balls as JSON, and back.

What JSON has no form for is an object of one entry: ``{"number": "inf"}``,
``{"mapping": [[key, value], ...]}``, ``{"ball": {...}}``.  Tuples and arrays become lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..problem.ball import Ball
from ..problem.stated_tolerances import TOLERATED


def pack(value: Any, name: str) -> Any:
    """A value of a parameter as JSON has it; ``ValueError`` names the parameter."""
    if isinstance(value, Ball):
        return {"ball": pack_ball(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[pack(one, name) for one in pair] for pair in value.items()]}
    value = value.tolist() if hasattr(value, "tolist") else value  # of NumPy or pandas
    if isinstance(value, list | tuple):
        return [pack(one, name) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(
        f"a model file can only keep numbers, text, lists, mappings and balls, got "
        f"{type(value).__name__} as the parameter {name}"
    )


def pack_ball(ball: Ball) -> dict[str, Any]:
    """A ball as it was written, or in plain numbers if it was resolved."""
    fields = {name: value for name, value in vars(ball).items() if not name.startswith("_")}
    stated = {name: pack(each, name) for name, each in fields.items() if str(each) != TOLERATED}
    tolerances = ball.stated_tolerances
    return stated if tolerances is None else {**stated, "tolerating": pack(tolerances, "ball")}


def unpack(value: Any) -> Any:
    """The inverse of :func:`pack`."""
    if isinstance(value, list):
        return [unpack(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "ball":
        return unpack_ball(content)
    return {"number": float, "mapping": dict}[kind](unpack(content))


def unpack_ball(stated: Mapping[str, Any]) -> Ball:
    """The inverse of :func:`pack_ball`; ``ValueError`` or ``TypeError`` for what is no ball."""
    given = {name: unpack(value) for name, value in stated.items()}
    tolerances = given.pop("tolerating", None)
    if isinstance(given.get("feature_costs"), list):
        given["feature_costs"] = np.array(given["feature_costs"])
    ball = Ball() if tolerances is None else Ball.tolerating(**tolerances)
    return ball.replace(**given)
