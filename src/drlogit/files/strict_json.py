"""JSON as the standard has it, from strangers too: every number is read back as it was.

Refused is what readers take differently: NaN and infinities, names that occur twice in an object,
numbers that no double can hold.  Infinite numbers are written as the strings ``"inf"`` and
``"-inf"``, and NaN as ``null``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np


def dumps(value: Any, *, indent: int | None = 1) -> str:
    """A value as JSON text, on one line if ``indent`` is None.

    NumPy arrays and scalars count as lists and numbers.
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, indent=indent)


def read(path: Path) -> Any:
    """The value of a JSON file; ``ValueError`` without its name says what is wrong with it."""
    try:
        return loads(path.read_text("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None


def loads(text: str) -> Any:
    """The value of JSON text."""
    try:
        return json.loads(
            text, parse_constant=_double, parse_float=_double, parse_int=_whole,
            object_pairs_hook=_object,
        )  # fmt: skip
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _double(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text:.40} is not a JSON number that a double can hold")
    return float(text)


def _whole(text: str) -> int:
    _double(text)
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name occurs twice in an object")
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0.0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
