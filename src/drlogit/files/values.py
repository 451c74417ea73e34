"""What the values of a file mean: numbers, categories, missing ones, labels.

Ours are the questions that matter to who analyses the data and that readers of files answer one way
or the other without a word: a column of numbers with one text in it, a comma in a number, ``1_2``,
labels that only leading zeros tell apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.tables.frames import MISSING_MARKS, is_number
from ..rows.arrays import FloatArray
from ..rows.checks import TOO_LARGE

#: A column of more distinct numbers than this, and few other texts, is one of numbers with a slip.
_MANY_NUMBERS, _FEW_TEXTS = 20, 0.1

#: From here on doubles do not hold every whole number.
_LARGEST_WHOLE = 2**53


def text_column(
    codes: NDArray[Any], texts: Sequence[str], name: str, source: str, *,
    as_text: bool, table: bool, marks: Collection[str],
) -> Any:  # fmt: skip
    """A column of texts, as codes (-1: missing) and the texts that they stand for.

    Doubles if all that is there are numbers, else a categorical of pandas; ``ValueError`` for what
    may be meant in more than one way and, unless it is for a ``table``, for what is no number.
    """
    import pandas as pd

    there = [text for text in texts if text not in marks]
    odd = [text for text in there if not is_number(text)]
    if not as_text and not odd:
        numbers = [np.nan if text in marks else float(text) for text in texts]
        return np.append(numbers, np.nan)[codes]
    column, code_of = f"{source}: column {name!r:.60}", {text: k for k, text in enumerate(texts)}
    commas = [text for text in odd if _is_comma_number(text)]
    if commas and len(commas) == len(odd) and not as_text:
        raise ValueError(f"{column} holds {commas[0]!r:.60}: {_about_comma(commas[0])}")
    if not table:
        text = (odd or there)[0]
        row = int(np.flatnonzero(codes == code_of[text])[0]) + 1
        raise ValueError(
            f"{column} holds {text!r:.40} in row {row}, but features must be numbers: leave it out "
            f"with --drop {name!r:.60}, or code it as numbers (a column per category)"
        )
    if not as_text and len(there) - len(odd) > _MANY_NUMBERS:
        where = np.isin(codes, [code_of[text] for text in odd])
        if where.mean() < _FEW_TEXTS:
            row = int(np.flatnonzero(where)[0]) + 1
            raise ValueError(
                f"{column} holds numbers, but {odd[0]!r:.40} in row {row}: correct it, leave it "
                f"empty, take such texts as missing with --numbers {name!r:.60}, or the column as "
                "a category with --categorical"
            )
    kept = list(dict.fromkeys(there))
    place = {text: k for k, text in enumerate(kept)}
    moved = np.array([*(place.get(text, -1) for text in texts), -1])
    return pd.Categorical.from_codes(moved[codes], kept)


def _is_comma_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?\d*(,\d+)+([.]\d*)?", text) is not None


def _about_comma(text: str) -> str:
    """What to write for a number with commas, without a guess at what they mean."""
    plain = text.replace(",", "")
    thousands = re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+([.]\d*)?", text)
    decimal = text.count(",") == 1 and "." not in text
    if thousands and decimal:
        point = text.replace(",", ".")
        return f"write {plain:.60} if its comma groups thousands, {point:.60} if it is decimal"
    if thousands:
        return f"write {plain:.60}, without commas between thousands"
    return "write a decimal point, not a comma" if decimal else "write it without commas"


def check_whole(column: Any, name: str, source: str) -> None:
    """``ValueError`` for whole numbers that doubles do not tell from their neighbours."""
    if getattr(column.dtype, "kind", "") not in "iu" or not len(column):
        return
    value = max(int(column.max()), int(column.min()), key=abs)
    if abs(value) > _LARGEST_WHOLE:
        raise ValueError(
            f"{source}: column {name!r:.60} holds the whole number {value}, beyond 2^53, which "
            "double precision would round: leave the column out if it is a key, else store it as "
            "doubles"
        )


def check_finite(
    X: Any, names: Sequence[str], source: str, *, gaps: bool = False, first_row: int = 0
) -> None:
    """``ValueError`` with column and row of the first value that cannot be computed with.

    With ``gaps``, missing ones are somebody else's business.
    """
    values = X.data if sp.issparse(X) else X
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(values) if values.dtype == np.float32 else np.abs(values) < TOO_LARGE
    bad = np.argwhere(~(usable | np.isnan(values)) if gaps else ~usable)
    if not bad.size:
        return
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, bad[0, 0], side="right")) - 1
        column, value = int(X.indices[bad[0, 0]]), values[bad[0, 0]]
    else:
        row, column = (int(k) for k in bad[0])
        value = X[row, column]
    what = "is missing (NaN)" if np.isnan(value) else f"is {value}, which is too large"
    raise ValueError(
        f"{source}: the value of column {names[column]!r:.60} in row {first_row + row + 1} {what}; "
        "fill in or leave out such rows first"
    )


# --- labels ----------------------------------------------------------------------------------


def is_missing(text: str) -> bool:
    """Whether a field of a text file stands for no value; a hyphen alone may be a label."""
    return text.strip() in MISSING_MARKS


def parse_labels(texts: Sequence[str], source: str) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as numbers if all are, else as text.

    Numbers that 64 bits do not tell apart, or that are none (infinity), stay text.  Labels that
    only leading zeros tell apart are refused: they may be two codes or one number.
    """
    stripped = [text.strip() for text in texts]
    if not all(is_number(text) for text in stripped):
        return np.array(stripped)
    try:
        numbers: NDArray[Any] = np.array([int(text) for text in stripped], dtype=np.int64)
    except OverflowError:
        return np.array(stripped)
    except ValueError:
        numbers = np.array([float(text) for text in stripped])
        if not np.isfinite(numbers).all():
            return np.array(stripped)
    spelt: dict[str, str] = {}
    for text in stripped:
        number = re.sub(r"^(-?)0+(?=\d)", r"\1", text.removeprefix("+"))
        other = spelt.setdefault(number, text.removeprefix("+"))
        if other != text.removeprefix("+"):
            raise ValueError(
                f"{source} has the labels {other!r:.60} and {text!r:.60}, which are one number: "
                "spell them alike, or with a letter if they are two codes"
            )
    return numbers


def tidy_labels(labels: Any, source: str) -> NDArray[Any]:
    """Labels of an array: whole numbers as such, text as text, none missing."""
    array = np.asarray(labels)
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"labels of {source} must be one column, got shape {array.shape}")
    if array.dtype.kind == "O" and all(isinstance(label, str) for label in array.tolist()):
        array = array.astype(str)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind not in "biufU":
        raise ValueError(
            f"labels of {source} must be numbers or text, none missing, got {array.dtype!s:.60}"
        )
    if array.dtype.kind == "f":
        array = as_double(array)
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise ValueError(f"{source}: the label of row {bad[0] + 1} is missing")
        if (array == np.rint(array)).all() and np.abs(array).max(initial=0.0) < _LARGEST_WHOLE:
            array = array.astype(np.int64)
    return array


def as_double(array: NDArray[Any]) -> FloatArray:
    """Numbers in double precision; what is too large becomes infinite, without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float64, copy=False)
