"""JSON as the standard has it: infinite numbers are the strings "inf" and "-inf", NaN is null."""

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
        return json.loads(path.read_text("utf-8-sig"), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0.0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
