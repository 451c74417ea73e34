"""JSON as the standard has it: no NaN, no Infinity, every number read back as it was.

Nor what the standard leaves open and readers take differently: names that occur twice in an
object, numbers that no double can hold, halves of surrogate pairs.

Infinite numbers are written as the strings ``"inf"`` and ``"-inf"``, and NaN as ``null``.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .limits import check_memory

#: Bytes that a character of JSON can take once it is read: ``[[],[],…``.
_GROWTH = 32

#: Digits of the largest double, and some.
_DIGITS = 320


def dumps(value: Any, *, indent: int | None = 1) -> str:
    """A value as JSON text, on one line if ``indent`` is None.

    NumPy arrays and scalars count as lists and numbers.
    """
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, indent=indent)


def loads(text: str) -> Any:
    """The value of JSON text; ``ValueError`` for anything the standard does not allow."""
    try:
        value = json.loads(
            text, parse_constant=_refuse, parse_int=_whole, parse_float=_double,
            object_pairs_hook=_object,
        )  # fmt: skip
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is no character") from None
    return value


def read(path: Path) -> Any:
    """The value of a JSON file; ``ValueError`` without its name, as for text."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        check_memory(_GROWTH * size, "it")
        contents = file.read(size + 1)
    if len(contents) > size:  # no file that has an end, such as /dev/zero
        raise ValueError("its size is not known")
    try:
        return loads(contents.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"a number of {len(text)} digits is too large for a double")
    return int(text)


def _double(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.40} is too large for a double")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{twice!r:.40} occurs twice in an object")
    return fields


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
