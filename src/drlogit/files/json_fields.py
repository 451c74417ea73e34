"""JSON objects whose fields are checked as they are read; ``ValueError`` says what was found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Fields:
    """The fields of a JSON object, each checked as it is read."""

    def __init__(self, fields: dict[str, Any], known: frozenset[str]) -> None:
        unknown = sorted(fields.keys() - known)
        if unknown:
            raise ValueError(f"{unknown[0]!r:.40} is no name that a model file has")
        self._fields = fields

    def has(self, key: str) -> bool:
        return key in self._fields

    def get(self, key: str) -> Any:
        if key not in self._fields:
            raise ValueError(f"{key!r} is missing")
        return self._fields[key]

    def number(self, key: str, *, least: float = -math.inf, infinite: bool = False) -> float:
        value = checked_number(self.get(key), key, infinite)
        if value < least:
            raise ValueError(f"{key!r} must be at least {least:g}, got {value}")
        return value

    def whole(self, key: str, *, least: int) -> int:
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{key!r} must be a whole number >= {least}, got {value!r:.40}")
        return value

    def truth(self, key: str) -> bool:
        value = self.get(key)
        if not isinstance(value, bool):
            raise ValueError(f"{key!r} must be true or false, got {value!r:.40}")
        return value

    def text(self, key: str, known: Any = None) -> str:
        value = self.get(key)
        if not isinstance(value, str):
            raise ValueError(f"{key!r} must be text, got {value!r:.40}")
        if known is not None and value not in known:
            raise ValueError(f"{key!r} must be one of {', '.join(known)}, got {value!r:.40}")
        return value

    def listed(self, key: str) -> list[Any]:
        value = self.get(key)
        if not isinstance(value, list):
            raise ValueError(f"{key!r} must be a list, got {value!r:.40}")
        return value

    def texts(self, key: str, length: int) -> list[str] | None:
        if self.get(key) is None:
            return None
        values = self._sized(key, length)
        for value in values:
            if not isinstance(value, str):
                raise ValueError(f"{key!r} must hold text, got {value!r:.40}")
        return values

    def numbers(
        self, key: str, length: int, *, optional: bool = False, infinite: bool = False
    ) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        if optional and self.get(key) is None:
            return None
        return np.array(
            [checked_number(value, key, infinite) for value in self._sized(key, length)]
        )

    def _sized(self, key: str, length: int) -> list[Any]:
        values = self.listed(key)
        if len(values) != length:
            raise ValueError(f"{key!r} must have {length} entries, got {len(values)}")
        return values


def checked_number(value: Any, key: str, infinite: bool) -> float:
    """A finite number or, if it may be so, ``"inf"``."""
    if infinite and value == "inf":
        return math.inf
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{key!r} must be a number, got {value!r:.40}")
    number = float(value) if abs(value) < 1e308 or isinstance(value, float) else math.inf
    if not math.isfinite(number):  # 1e999 is legal JSON
        raise ValueError(f"{key!r} must be finite, got {value!r:.40}")
    return number
