"""JSON as the standard has it: no NaN, no Infinity, every number read back as it was.

Infinite numbers are written as the strings ``"inf"`` and ``"-inf"``, and NaN as ``null``.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def dumps(value: Any, *, indent: int | None = 1) -> str:
    """A value as JSON text, on one line if ``indent`` is None.

    NumPy arrays and scalars count as lists and numbers.
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, indent=indent)


def loads(text: str) -> Any:
    """The value of JSON text; ``ValueError`` for anything the standard does not allow."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0.0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
