"""Tables column by column, from pandas, polars or arrays.

A column is read as numbers (missing: NaN) or as levels (text; missing: None).  Levels are compared
as text, and whole numbers have no decimal point, because pandas turns 3 into ``3.0`` when another
row is missing, and a file holds text.  The texts of :data:`MISSING_MARKS` count as missing,
whatever reader was used; pandas knows most of them, but not all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...rows.arrays import BoolArray, FloatArray, IndexArray, is_dask

#: Texts that stand for no value: those of pandas' readers, a question mark, and ``na``.
MISSING_MARKS = (
    "", "?", "NA", "N/A", "NaN", "NULL", "None", "na", "n/a", "nan", "null", "-NaN", "-nan", "+nan",
    "<NA>", "#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip

#: What pandas finds in columns that are taken, and what that is here.
_KINDS = {
    "string": "text", "boolean": "truth", "integer": "number", "floating": "number",
    "mixed-integer-float": "number", "decimal": "number", "empty": "number",
}  # fmt: skip


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
    if hasattr(X, "iloc"):
        return [TableColumn(name, values) for name, values in X.items()]
    from pandas import Series  # rarely needed for other tables, so imported here

    if _is_polars(X):
        return [TableColumn(each.name, Series(each.to_numpy())) for each in X.iter_columns()]
    return [TableColumn(j, Series(X[:, j])) for j in range(X.shape[1])]


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

    def numbers(self) -> FloatArray:
        """The column as numbers, NaN where one is missing; they may be spelt out among marks."""
        try:
            if self._inferred == "boolean" or not self.holds_levels:
                dtype = self.values.dtype
                if isinstance(dtype, np.dtype) and dtype.kind != "O":  # knows its missing values
                    return np.asarray(self.values, dtype=np.float64)
                return np.asarray(self.values.to_numpy(dtype=np.float64, na_value=np.nan))
            found, codes = self.distinct
            return np.array([np.nan if text is None else _number(text) for text in found])[codes]
        except (TypeError, ValueError):
            raise ValueError(
                f"column {self.name!r:.60} must hold numbers, or be one of categorical_features, "
                f"got {self.values.dtype!s:.60}"
            ) from None

    @cached_property
    def distinct(self) -> tuple[list[str | None], IndexArray]:
        """The values that occur, as they are spelt, None for missing; and which each row has.

        What comes after is done once for each of them: most tables have many rows of few levels.
        """
        given = self.values
        if given.dtype == object:  # in which True is 1
            given = given.map(spelt, na_action="ignore")
        codes, values = given.array.factorize()
        found = map(spelt, values.tolist())
        texts = [None if text.strip() in MISSING_MARKS else text for text in found]
        return [*texts, None], np.where(codes < 0, len(texts), codes)

    @cached_property
    def counts(self) -> Counter[str | None]:
        """How often each level occurs, as text, None for a missing one."""
        texts, codes = self.distinct
        counts: Counter[str | None] = Counter()
        for text, count in zip(texts, np.bincount(codes, minlength=len(texts)), strict=True):
            counts[text] += int(count)
        return +counts

    @property
    def absent(self) -> BoolArray:
        """Where a level is missing."""
        texts, codes = self.distinct
        return np.array([text is None for text in texts])[codes]

    @property
    def levels(self) -> np.ndarray[Any, Any]:
        """The levels as text, None where one is missing."""
        texts, codes = self.distinct
        return np.array(texts, dtype=object)[codes]

    def codes(self, levels: Sequence[str | None]) -> IndexArray:
        """Where each value is among some levels, -1 if it is none of them.

        A level that is spelt another way is known if it is like one of them alone: readers of files
        leave spaces or not, and make ``True`` of ``TRUE`` and 3 of ``3.0``.
        """
        texts, codes = self.distinct
        known = {None: -1, **{level: k for k, level in enumerate(levels)}}
        new = [text for text in texts if text not in known]
        like = [_alike(level) for level in levels] if new else []
        for text, same in zip(new, map(_alike, new), strict=True):
            known[text] = like.index(same) if like.count(same) == 1 else -1
        return np.array([known[text] for text in texts], dtype=np.intp)[codes]


def spelt(value: Any) -> str:
    """A value as the text that levels are compared as."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def listed(texts: Sequence[Any], most: int = 6) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(map(str, texts[:most])) + more


def is_number(text: str) -> bool:
    """Whether a text is a number as we write it: ``float`` would read 1_2 as 12."""
    if "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float:
    if not is_number(text):
        raise ValueError
    return float(text)


def _alike(level: str | None) -> str:
    """What the spellings of one level have in common."""
    text = "" if level is None else level.strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    # Not 007, which is a code.
    return str(float(text)) if re.fullmatch(r"-?(0|[1-9]\d*)([.]\d+)?", text) else text
