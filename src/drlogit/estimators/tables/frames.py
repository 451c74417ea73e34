"""Tables column by column, from pandas, polars or arrays.

A column is read as numbers (missing: NaN) or as levels, which are texts, truth values or numbers
(missing: None).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...rows.arrays import FloatArray, IndexArray, is_dask

#: What pandas finds in columns that are taken, and what that is here.
_KINDS = {
    "string": "text",
    "boolean": "truth",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "empty": "number",
}


def is_frame(X: Any) -> bool:
    """Whether X has columns of different kinds: a frame of pandas or polars."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X must be in memory, got a polars LazyFrame: pass X.collect()")
    return hasattr(X, "columns") and (hasattr(X, "iloc") or _is_polars(X)) and not is_dask(X)


def _is_polars(X: Any) -> bool:
    return hasattr(X, "iter_columns")


def is_table(X: Any) -> bool:
    """Whether X has columns that can be encoded: a frame, or a dense array."""
    return (isinstance(X, np.ndarray) and X.ndim == 2) or is_frame(X)


def rows_of(X: Any, rows: IndexArray) -> Any:
    """Some rows of a frame or matrix."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def columns_of(X: Any) -> list[TableColumn]:
    """The columns of a table, in order."""
    from pandas import DataFrame, Series  # rarely needed for other tables, so imported here

    if _is_polars(X):
        return [TableColumn(each.name, Series(each.to_numpy())) for each in X.iter_columns()]
    frame = X if hasattr(X, "iloc") else DataFrame(X)
    return [TableColumn(name, values) for name, values in frame.items()]


@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column of a table, as a series of pandas; what it holds is found out once."""

    name: Any
    values: Any

    @cached_property
    def _inferred(self) -> str:
        """What pandas finds in it."""
        from pandas.api.types import infer_dtype

        levels = getattr(self.values.dtype, "categories", None)
        found = str(infer_dtype(self.values if levels is None else levels, skipna=True))
        return "empty" if found == "string" and self.values.array.isna().all() else found

    def _refused(self) -> str:
        """What is found in a column that is refused, and a remedy."""
        if "date" in self._inferred or "time" in self._inferred:
            return f"{self._inferred}: convert it to a number of days"
        texts = [row for row, value in enumerate(self.values) if isinstance(value, str)]
        if not self._inferred.startswith("mixed") or not texts:
            return f"{self._inferred}: convert it"
        at = f"{self.values.iloc[texts[0]]!r:.40} in row {texts[0]}"
        return f"numbers and texts, such as {at}: correct it, convert all to text"

    @property
    def kind(self) -> str:
        """What the levels are: "text", "truth" or "number"; others are taken as text."""
        return _KINDS.get(self._inferred, "text")

    @property
    def holds_levels(self) -> bool:
        """Whether the type of the column says that it holds levels and not numbers.

        Text, categories and truth values are levels.  ``ValueError`` for what is neither, such as
        dates.
        """
        if self._inferred not in _KINDS:
            raise ValueError(
                f"column {self.name!r:.60} must hold numbers, text or truth values, got "
                f"{self._refused()}, or leave the column out"
            )
        return hasattr(self.values.dtype, "categories") or self.kind != "number"

    @cached_property
    def numbers(self) -> FloatArray:
        """The column as numbers, NaN where one is missing."""
        try:
            dtype = self.values.dtype
            if isinstance(dtype, np.dtype) and dtype.kind != "O":  # knows its missing values
                return np.asarray(self.values, dtype=np.float64)
            if self.kind != "text":
                return np.asarray(self.values.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            pass
        raise ValueError(
            f"column {self.name!r:.60} must hold numbers, or be one of categorical_features, "
            f"got {self.values.dtype!s:.60}"
        )

    @cached_property
    def distinct(self) -> tuple[list[Any], IndexArray]:
        """The levels that occur, None for missing, and which of them each row has.

        What comes after is done once for each of them: most tables have many rows of few levels.
        """
        codes, values = self.values.array.factorize()
        convert = {"text": str, "truth": bool, "number": float}[self.kind]
        found = [convert(value) for value in np.asarray(values).tolist()]
        return [*found, None], np.where(codes < 0, len(found), codes)

    @cached_property
    def counts(self) -> Counter[Any]:
        """How often each level occurs, None for a missing one."""
        levels, codes = self.distinct
        counts: Counter[Any] = Counter()
        for level, count in zip(levels, np.bincount(codes, minlength=len(levels)), strict=True):
            counts[level] += int(count)
        return +counts

    def codes(self, levels: Sequence[Any]) -> IndexArray:
        """Where each value is among some levels, -1 if it is none of them.

        Levels that are equal as text are the same, since a reader of files may make 3 of ``"3"``.
        """
        own, codes = self.distinct
        known = {spelt(level): k for k, level in enumerate(levels)}
        return np.array([known.get(spelt(level), -1) for level in own], dtype=np.intp)[codes]


def spelt(level: Any) -> str:
    """A level as text; whole numbers have no decimal point, and "missing" is no text of a level."""
    if level is None:
        return "\0missing"
    if isinstance(level, float) and level.is_integer():
        return str(int(level))
    return str(level)


def listed(texts: Sequence[Any], most: int = 6) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(map(str, texts[:most])) + more
