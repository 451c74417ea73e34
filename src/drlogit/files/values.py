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
from ..rows.checks import TOO_LARGE

#: A column of more distinct numbers than this, and few other texts, is one of numbers with a slip.
_MANY_NUMBERS, _FEW_TEXTS = 20, 0.1

#: From here on doubles do not hold every whole number.
_LARGEST_WHOLE = 2**53


def feature(
    column: Any, name: str, source: str, *, as_text: bool, table: bool, marks: Collection[str]
) -> Any:
    """A column of a frame as numbers, truth values or a categorical; ``ValueError`` if it is none.

    Text becomes numbers if all that is there are some, unless it is wanted ``as_text``; what is no
    number is refused unless it is for a ``table``, and what may be meant in two ways always.
    """
    import pandas as pd

    where, kind = f"{source}: column {name!r:.60}", getattr(column.dtype, "kind", "O")
    if kind in "iufb" and not as_text:
        return column.to_numpy() if kind != "b" or table else column.to_numpy(np.float64)
    try:
        if kind in "mM":
            raise TypeError
        codes, found = pd.factorize(column)
        if not as_text and not all(isinstance(value, str) for value in found):
            truths = all(isinstance(value, bool) for value in found)
            return column.to_numpy(dtype=object if truths else np.float64)
    except TypeError:  # dates, lists
        raise ValueError(
            f"{where} holds {column.dtype}, such as {column.iloc[0]!r:.40}, but features must be "
            f"numbers or text: leave it out with --drop {name!r:.60}, or make it a number"
        ) from None
    texts = [str(value).strip() for value in found]
    there = [text for text in texts if text not in marks]
    other = [text for text in there if not is_number(text)]
    if not as_text and not other:
        numbers = [np.nan if text in marks else float(text) for text in texts]
        return np.append(numbers, np.nan)[codes]
    if not as_text and all("," in text and is_number(text.replace(",", "")) for text in other):
        raise ValueError(f"{where} holds {other[0]!r:.60}: {_about_comma(other[0])}")
    many_numbers = not as_text and len(there) - len(other) > _MANY_NUMBERS
    if there and (many_numbers or not table):
        rows = np.flatnonzero(np.isin(codes, [texts.index(text) for text in other or there]))
        found = f"{texts[codes[rows[0]]]!r:.40} in row {rows[0] + 1}"
        if not table:
            raise ValueError(
                f"{where} holds {found}, but features must be numbers: leave it out with --drop "
                f"{name!r:.60}, or code it as numbers (a column per category)"
            )
        if rows.size < _FEW_TEXTS * codes.size:
            raise ValueError(
                f"{where} holds numbers, but {found}: correct it, leave it empty, take such texts "
                f"as missing with --numbers {name!r:.60}, or the column as a category with "
                "--categorical"
            )
    levels = {text: place for place, text in enumerate(dict.fromkeys(there))}
    places = np.array([*(levels.get(text, -1) for text in texts), -1])
    return pd.Categorical.from_codes(places[codes], list(levels))


def _about_comma(text: str) -> str:
    """What to write for a number with commas, without a guess at what they mean."""
    plain, point = text.replace(",", ""), text.replace(",", ".")
    if text.count(",") > 1 or "." in text:
        return f"write {plain:.60}, without commas"
    if re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", text):
        return f"write {plain:.60} if its comma groups thousands, {point:.60} if it is decimal"
    return "write a decimal point, not a comma"


def check_finite(X: Any, names: Sequence[str], source: str, *, gaps: bool = False) -> None:
    """``ValueError`` with column and row of the first value that cannot be computed with.

    With ``gaps``, missing ones are somebody else's business.
    """
    values = X.data if sp.issparse(X) else X
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(values) if values.dtype == np.float32 else np.abs(values) < TOO_LARGE
    bad = np.argwhere(~(usable | np.isnan(values)) if gaps else ~usable)
    if not bad.size:
        return
    value = values[tuple(bad[0])]
    if sp.issparse(X):
        row = int(np.searchsorted(X.indptr, bad[0, 0], side="right")) - 1
        column = X.indices[bad[0, 0]]
    else:
        row, column = bad[0]
    what = "is missing (NaN)" if np.isnan(value) else f"is {value}, which is too large"
    raise ValueError(
        f"{source}: the value of column {names[column]!r:.60} in row {row + 1} {what}; fill in or "
        "leave out such rows first"
    )


def tidy_labels(labels: Any, source: str) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as numbers, else as text; none may be missing."""
    array = np.asarray(labels)
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"labels of {source} must be one column, got shape {array.shape}")
    if array.dtype.kind not in "biufOUST":
        raise ValueError(f"labels of {source} must be numbers or text, got {array.dtype!s:.60}")
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind == "f":
        numbers = array.astype(np.float64)
        _refuse_missing(~np.isfinite(numbers), source)
        return _whole(numbers)
    import pandas as pd

    codes, found = pd.factorize(np.char.decode(array) if array.dtype.kind == "S" else array)
    if not all(isinstance(value, str) for value in found):
        _refuse_missing(codes < 0, source)
        return tidy_labels(np.array(found.tolist())[codes], source)
    texts = [text.strip() for text in found]
    gone = [text in MISSING_MARKS for text in texts]
    _refuse_missing(np.array([*gone, True])[codes], source)
    return np.asarray(_parsed(texts, source)[codes])


def _refuse_missing(gone: NDArray[Any], source: str) -> None:
    if gone.any():
        raise ValueError(f"{source}: the label of row {gone.argmax() + 1} is missing")


def _whole(numbers: NDArray[Any]) -> NDArray[Any]:
    whole = (numbers == np.rint(numbers)).all() and np.abs(numbers).max(initial=0) < _LARGEST_WHOLE
    return numbers.astype(np.int64) if whole else numbers


def _parsed(texts: list[str], source: str) -> NDArray[Any]:
    """Distinct labels; those that only leading zeros tell apart may be two codes or one number.

    Numbers that 64 bits do not tell apart, or that are none (infinity), stay text.
    """
    if not all(is_number(text) for text in texts):
        return np.array(texts)
    numbers = np.array([float(text) for text in texts])
    if not (np.abs(numbers) < 2.0**63).all():
        return np.array(texts)
    spelt: dict[str, str] = {}
    for text in (text.removeprefix("+") for text in texts):
        other = spelt.setdefault(re.sub(r"^(-?)0+(?=\d)", r"\1", text), text)
        if other != text:
            raise ValueError(
                f"{source} has the labels {other!r:.60} and {text!r:.60}, which are one number: "
                "spell them alike, or with a letter if they are two codes"
            )
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except ValueError:
        return numbers
