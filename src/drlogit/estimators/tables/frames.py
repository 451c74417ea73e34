"""Tables column by column, whoever made them: pandas, polars, arrays.

A column is read as numbers (NaN where one is missing) or as levels (text, None where missing).
Levels are compared as text, a whole number without a decimal point: pandas makes ``3.0`` of a 3
when some other row has no value, and a file holds text anyway.  Texts that say "no value here"
(:data:`MISSING_MARKS`) are missing, whoever has read the table: pandas knows most of them, but not
all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from ...rows.arrays import FloatArray, IndexArray
from ...rows.row_blocks import is_dask

#: Texts that stand for no value: those of pandas' readers, a question mark, and ``na``.
MISSING_MARKS = (
    "", "?", "NA", "N/A", "NaN", "NULL", "None", "na", "n/a", "nan", "null", "-NaN", "-nan", "+nan",
    "<NA>", "#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip

#: Types of polars' text and levels, and of what is neither number nor level.
_POLARS_LEVELS = frozenset({"Boolean", "Categorical", "Enum", "String", "Utf8"})


def is_frame(X: Any) -> bool:
    """Whether X has columns of different kinds: a frame of pandas or polars."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X must be in memory, got a LazyFrame of polars: collect() it")
    return hasattr(X, "columns") and (hasattr(X, "iloc") or _is_polars(X)) and not is_dask(X)


def _is_polars(X: Any) -> bool:
    return hasattr(X, "iter_columns")


def is_table(X: Any) -> bool:
    """Whether X has columns that can be encoded: a frame, or a dense array."""
    return is_frame(X) or (isinstance(X, np.ndarray) and X.ndim == 2)


def column_names(X: Any) -> list[Any]:
    """Names of the columns, numbers from 0 where X is an array."""
    return list(X.columns) if is_frame(X) else list(range(X.shape[1]))


def rows_of(X: Any, rows: IndexArray) -> Any:
    """Some rows of a frame or matrix."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def columns_of(X: Any) -> Iterator[Any]:
    """The columns, each as the table keeps it."""
    if not is_frame(X):
        for j in range(X.shape[1]):
            yield X[:, j]
    elif _is_polars(X):
        yield from X.iter_columns()
    else:
        for _, column in X.items():
            yield column


def holds_levels(column: Any, name: Any) -> bool:
    """Whether the type of a column says that it holds levels and not numbers.

    Text, categories and truth values are levels.  ``ValueError`` for what is neither, such as
    dates.
    """
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        base = str(dtype.base_type())
        if dtype.is_numeric() or base == "Null":
            return False
        if base in _POLARS_LEVELS:
            return True
        kind = "O" if base == "Object" else "M"
    else:
        kind = getattr(dtype, "kind", "O")
    if kind in "iuf":
        return False
    if kind in "bUST" or hasattr(dtype, "categories"):
        return True
    if kind == "O":
        kinds = _kinds(column)
        if all(issubclass(each, str | bool | np.bool_) for each in kinds):
            return bool(kinds)
        if all(
            issubclass(each, int | float | np.number) and not issubclass(each, bool)
            for each in kinds
        ):
            return False
        found = ", ".join(sorted(each.__name__ for each in kinds))
        raise ValueError(
            f"column {name!r:.60} must hold text, or numbers, or truth values, got values of types "
            f"{found:.80}: convert it, or leave it out"
        )
    raise ValueError(
        f"column {name!r:.60} must hold numbers, text or truth values, got {dtype!s:.60}: convert "
        "it to a number (such as days since a date), or leave it out"
    )


def _values(column: Any) -> Any:
    return column.to_list() if hasattr(column, "to_list") else column.tolist()


def missing(column: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where a column has no value."""
    if hasattr(column, "is_null"):  # polars, which tells NaN from no value
        gone = column.is_null()
        if column.dtype.is_float():
            gone = gone | column.is_nan().fill_null(False)
        return np.asarray(gone.to_numpy(), dtype=bool)
    if hasattr(column, "isna"):
        return np.asarray(column.array.isna(), dtype=bool)
    array = np.asarray(column)
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    if array.dtype.kind != "O":
        return np.zeros(array.size, dtype=bool)
    return np.array([value is None or value != value for value in array.tolist()], dtype=bool)


def numbers_of(column: Any, name: Any, marks: Collection[str] | None = None) -> FloatArray:
    """A column of numbers, NaN where one is missing.

    With ``marks`` it is known to hold numbers, which may be spelt out among texts that are missing.
    """
    try:
        if holds_levels(column, name) and not _holds_truth(column):
            if marks is None:
                raise TypeError  # NumPy would read "3" as a number
            found, codes = _distinct_texts(column)
            texts = [text.strip() if text else None for text in found]
            if not all(text is None or text in marks or is_number(text) for text in texts):
                raise TypeError
            values = [np.nan if t is None or t in marks else float(t) for t in texts]
            return np.array(values)[codes]
        if hasattr(column, "is_null"):
            return np.array(column.cast(float).to_numpy(), dtype=np.float64)
        if hasattr(column, "iloc") and not _is_plain(column):
            return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
        array = np.asarray(column)
        if array.dtype.kind == "O":
            array = np.where(missing(array), np.nan, array)
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r:.60} must hold numbers, or be one of categorical_features, got "
            f"{column.dtype!s:.60}"
        ) from None


def _is_plain(column: Any) -> bool:
    """Whether NumPy holds the numbers, of which pandas need not be asked which are missing."""
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb"


def _holds_truth(column: Any) -> bool:
    kind = getattr(column.dtype, "kind", "")
    return kind == "b" or str(column.dtype) == "Boolean"


def is_number(text: str) -> bool:
    """Whether a text is a number as we write it: ``float`` would read 1_2 as 12."""
    if "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def levels_of(column: Any) -> np.ndarray[Any, Any]:
    """A column of levels as text, None where one is missing."""
    texts, codes = _distinct_texts(column)
    return np.array([_unless_missing(text) for text in texts], dtype=object)[codes]


def level_counts(column: Any) -> Counter[str | None]:
    """How often each level of a column occurs, as text, None for a missing one."""
    texts, codes = _distinct_texts(column)
    counts: Counter[str | None] = Counter()
    for text, count in zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True):
        counts[_unless_missing(text)] += count
    return counts


def _unless_missing(text: str | None) -> str | None:
    return None if text is None or text.strip() in MISSING_MARKS else text


def level_codes(
    column: Any, levels: Sequence[str | None], marks: Collection[str]
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Where each value of a column is among some levels, -1 if it is none of them.

    A level that is spelt another way is known if it is like one of them alone: readers of files
    leave spaces or not, and make ``True`` of ``TRUE`` and 3 of ``3.0``.
    """
    texts, codes = _distinct_texts(column)
    known: dict[str | None, int] = {level: k for k, level in enumerate(levels)}
    alike = {_alike(level): k for level, k in known.items() if level is not None}
    times = Counter(_alike(level) for level in levels if level is not None)
    for text in set(texts) - known.keys():
        if text is None or text.strip() in marks:
            known[text] = known.get(None, -1)
        else:
            known[text] = alike[_alike(text)] if times[_alike(text)] == 1 else -1
    return np.array([known[text] for text in texts], dtype=np.intp)[codes]


def _alike(level: str) -> str:
    """What the spellings of one level have in common."""
    text = level.strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    # Not 007, which is a code.
    return str(float(text)) if re.fullmatch(r"-?(0|[1-9]\d*)([.]\d+)?", text) else text


def _distinct_texts(column: Any) -> tuple[list[str | None], IndexArray]:
    """The values that occur, as they are spelt, None for no value; and which of them each row has.

    What comes after is done once for each of them: most tables have many rows of few levels.
    """
    values = _factorised(column)
    if values is not None:
        levels, codes = values
        spelt: list[str | None] = [_spelt(level) for level in levels]
        if codes.min(initial=0) == -1:
            return [*spelt, None], np.where(codes < 0, len(spelt), codes)
        return spelt, codes
    known: dict[str | None, int] = {}
    each = zip(_values(column), missing(column), strict=True)
    texts = (None if gone else _spelt(value) for value, gone in each)
    codes = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.intp)
    return list(known), codes


def _factorised(column: Any) -> tuple[list[Any], IndexArray] | None:
    """Distinct values and codes, -1 for no value, where pandas knows: text and categories."""
    if not hasattr(column, "iloc"):
        return None
    dtype = column.dtype
    if not (type(dtype).__name__ == "StringDtype" or hasattr(dtype, "categories")):
        return None
    codes, values = column.array.factorize()
    return values.tolist(), np.asarray(codes, dtype=np.intp)


def _kinds(column: Any) -> set[type]:
    """The types of the values that are there."""
    if type(column.dtype).__name__ == "StringDtype":  # of pandas
        return set() if missing(column).all() else {str}
    each = zip(_values(column), missing(column), strict=True)
    return {type(value) for value, gone in each if not gone}


def kind_of_levels(column: Any) -> str:
    """What the levels of a column are: "text", "truth" or "number"; mixed ones are text."""
    kinds = _kinds(column)
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return "truth"
    if kinds and all(
        issubclass(kind, int | float | np.number) and not issubclass(kind, bool) for kind in kinds
    ):
        return "number"
    return "text"


def _spelt(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
