"""Costs of moving features, from ``--feature-costs`` and ``--immovable``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators.tables.frames import is_number
from ..files import strict_json
from ..rows.arrays import FloatArray


def read_costs(
    file: str | None, immovable: tuple[str, ...], names: list[str], source: str
) -> FloatArray | None:
    """A cost for each feature; None if none is stated."""
    if file is None and not immovable:
        return None
    given = {} if file is None else _cost_file(Path(file))
    if isinstance(given, list):
        if len(given) != len(names):
            raise ValueError(f"{file} lists {len(given)} costs for {len(names)} features")
        given = dict(zip(names, given, strict=True))
    costs = dict.fromkeys(names, 1.0)
    for option, stated in ((file, given), ("--immovable", dict.fromkeys(immovable, np.inf))):
        for name, cost in stated.items():
            if name not in costs:
                raise ValueError(f"{option}: {name!r} is not a feature of {source}")
            costs[name] = _cost(cost, name, option)
    return np.array(list(costs.values()))


def _cost_file(path: Path) -> Any:
    """A JSON object or list, or CSV lines name,cost with a header or not."""
    try:
        if path.suffix.lower() == ".json":
            given = strict_json.read(path)
            if not isinstance(given, list | dict):
                raise ValueError(f"it must hold an object or a list, got {given!r:.40}")
            return given
        rows = [row for row in csv.reader(path.read_text("utf-8-sig").splitlines()) if row]
        for row in rows:
            if len(row) != 2:
                raise ValueError(f"a line must be name,cost, got {','.join(row)!r:.60}")
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: no file of costs: {error}") from None
    if rows and not is_number(rows[0][1]):
        rows = rows[1:]  # a header
    return {name.strip(): cost for name, cost in rows}


def _is_cost(value: Any) -> bool:
    try:
        return float(value) > 0.0 and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        return False


def _cost(value: Any, name: str, option: Any) -> float:
    if not _is_cost(value):
        raise ValueError(
            f"{option}: the cost of {name!r} must be a positive number or inf, got {value!r:.40}"
        )
    return float(value)
