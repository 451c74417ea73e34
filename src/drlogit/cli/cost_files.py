"""Costs of moving features, from ``--feature-costs`` and ``--immovable``."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..files import strict_json
from ..files.limits import check_memory
from ..files.opening import not_utf8
from ..rows.arrays import FloatArray
from .labels import as_number

#: Bytes that a letter of a file of costs can take once it is read.
_COST_BYTES = 64


def read_costs(
    file: str | os.PathLike[str] | None,
    immovable: tuple[str, ...],
    names: list[str],
    source: str,
) -> FloatArray | None:
    """The costs of moving features, from ``--feature-costs`` and ``--immovable``."""
    if file is None and not immovable:
        return None
    position = {name: j for j, name in enumerate(names)}
    costs = np.ones(len(names))
    if file is not None:
        given = _cost_file(Path(file))
        if isinstance(given, list):
            if len(given) != len(names):
                raise ValueError(f"{file} lists {len(given)} costs for {len(names)} features")
            given = dict(zip(names, given, strict=True))
        for name, cost in given.items():
            if name not in position:
                raise ValueError(f"{file}: {name!r} is not a feature of {source}")
            costs[position[name]] = _cost(cost, name, file)
    for name in immovable:
        if name not in position:
            raise ValueError(f"--immovable: {name!r} is not a feature of {source}")
        costs[position[name]] = np.inf
    return costs


def _cost_file(path: Path) -> Any:
    if path.suffix.lower() == ".json":
        try:
            given = strict_json.read(path)
        except ValueError as error:
            raise ValueError(f"{path} is not JSON: {error}") from None
        if not isinstance(given, list | dict):
            raise ValueError(f"{path} must hold a JSON object or list, got {given!r:.40}")
        return given
    check_memory(_COST_BYTES * path.stat().st_size, str(path))
    try:
        text = path.read_text("utf-8-sig")
        rows = [row for row in csv.reader(text.splitlines(), strict=True) if row]
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from None
    if rows and len(rows[0]) == 2 and as_number(rows[0][1]) is None:
        rows = rows[1:]  # a header
    for row in rows:
        if len(row) != 2:
            raise ValueError(f"{path}: a line must be name,cost, got {','.join(row)!r:.60}")
    return {name.strip(): cost.strip() for name, cost in rows}


def _cost(value: Any, name: str, file: str | os.PathLike[str]) -> float:
    try:
        cost = float(value)
    except (TypeError, ValueError, OverflowError):
        cost = np.nan
    if not cost > 0.0 or isinstance(value, bool):
        raise ValueError(
            f"{file}: the cost of {name!r} must be a positive number or inf, got {value!r:.40}"
        )
    return cost
