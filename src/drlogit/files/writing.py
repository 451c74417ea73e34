"""Text files and JSON, written whole or not at all (:mod:`drlogit.rows.whole_files`).

In JSON, infinite numbers are the strings "inf" and "-inf", and NaN is null.
"""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any

from ..rows.whole_files import write_bytes

#: Numbers that may begin with a sign, as CSV files have them.
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf", re.IGNORECASE)


def json_text(value: Any, *, indent: int | None = 1) -> str:
    """A value as JSON, on one line if ``indent`` is None; arrays count as lists."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, indent=indent)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0.0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def safe_cell(value: Any) -> Any:
    """A value for a CSV file; a text that a spreadsheet would run as a formula gets an apostrophe.

    Those are the texts that begin with ``= + - @``, a tab or a line end, numbers excepted.
    """
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    return f"'{value}" if risky and not _NUMBER.fullmatch(value) else value


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in UTF-8 with line ends as they are, whole or not at all."""
    write_bytes(path, text.encode())
