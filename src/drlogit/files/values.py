"""Values of files that readers would silently interpret in one way or another.

Examples are a column of numbers with one text in it, a comma in a number, ``1_2``, and labels that
differ in leading zeros only.  Such values are refused, or read by one stated rule.  Everything else
about a column is decided by the estimators, as for any frame.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.tables.frames import MISSING_MARKS, is_number, listed

#: A column of more distinct numbers than this, and few other texts, is one of numbers with a slip.
_MANY_NUMBERS, _FEW_TEXTS = 20, 0.1

#: From here on doubles do not hold every whole number.
_LARGEST_WHOLE = 2**53


def feature(
    column: Any,
    name: str,
    source: str,
    *,
    as_text: bool,
    served: bool,
    marks: Collection[str],
    decimal: str,
) -> Any:
    """A column of a frame: numbers if all its texts are numbers, otherwise a categorical.

    With ``as_text`` it is always a categorical.  Any other column that is ``served`` to a model
    must hold numbers.  ``ValueError`` for values with two possible meanings.
    """
    import pandas as pd

    where = f"{source}: column {name!r:.60}"
    if not as_text and getattr(column.dtype, "kind", "O") != "O":
        return column.to_numpy()
    try:
        codes, found = pd.factorize(column)
        if not as_text and not all(isinstance(value, str) for value in found):
            truths = all(isinstance(value, bool) for value in found)
            return column if truths else column.to_numpy(np.float64)  # decimals
    except TypeError:  # dates, lists
        return column
    texts = [str(value).strip() for value in found]
    there = [text for text in texts if text not in marks]
    if not as_text:
        other = [text for text in there if not is_number(text.replace(decimal, "."))]
        if not other:
            given = [text if text in marks else text.replace(decimal, ".") for text in texts]
            numbers = [np.nan if text in marks else float(text) for text in given]
            return np.append(numbers, np.nan)[codes]
        if all("," in text and is_number(text.replace(",", "")) for text in other):
            raise ValueError(
                f"{where} holds {other[0]!r:.60}: state --decimal , if the comma is a decimal "
                "mark, or remove it if it separates thousands"
            )
        rows = np.flatnonzero(np.isin(codes, [texts.index(text) for text in other]))
        slip = f"{texts[codes[rows[0]]]!r:.40} in row {rows[0] + 1}"
        if served:
            raise ValueError(f"{where} holds {slip}, but the model expects numbers there")
        if len(there) - len(other) > _MANY_NUMBERS and rows.size < _FEW_TEXTS * codes.size:
            raise ValueError(
                f"{where} holds numbers, but {slip}: correct or empty this field, "
                "or declare the column a category with "
                "--categorical"
            )
    levels = {text: place for place, text in enumerate(dict.fromkeys(there))}
    places = np.array([*(levels.get(text, -1) for text in texts), -1])
    return pd.Categorical.from_codes(places[codes], list(levels))


def tidy_labels(labels: Any, source: str) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as numbers, else as text; none may be missing."""
    import pandas as pd

    array = np.asarray(labels)
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"labels of {source} must be one column, got shape {array.shape}")
    if array.dtype.kind not in "biufOUST":
        raise ValueError(f"labels of {source} must be numbers or text, got {array.dtype!s:.60}")
    codes, found = pd.factorize(np.char.decode(array) if array.dtype.kind == "S" else array)
    found = [value.strip() if isinstance(value, str) else value for value in found.tolist()]
    gone = np.array([*(value in MISSING_MARKS for value in found), True])[codes]
    if gone.any():
        raise ValueError(
            f"{source}: the label of row {gone.argmax() + 1} is missing: fill it in, or leave out "
            "rows without a label"
        )
    return np.asarray(_as_numbers(found, source)[codes])


def _as_numbers(found: list[Any], source: str) -> NDArray[Any]:
    """Distinct labels as numbers if they can be, each as another."""
    if not all(isinstance(value, str) for value in found):
        numbers = np.array(found)
    elif all(is_number(text) for text in found):
        try:
            numbers = np.array([int(text) for text in found], dtype=np.int64)
        except (ValueError, OverflowError):
            numbers = np.array([float(text) for text in found])
    else:
        return np.array(found)
    if numbers.dtype.kind == "f":
        if not (np.abs(numbers) < _LARGEST_WHOLE).all():
            return np.array(found)  # infinity, or more than a double can tell apart
        whole = (numbers == np.rint(numbers)).all()
        numbers = numbers.astype(np.int64) if whole else numbers
    _, firsts = np.unique(numbers, return_index=True)
    if firsts.size < numbers.size:
        again = min(set(range(numbers.size)) - set(firsts.tolist()))
        same = found[numbers.tolist().index(numbers[again])]
        raise ValueError(
            f"{source} has the labels {same!r:.60} and {found[again]!r:.60}, which are the same "
            "number: spell them alike, or add a letter if they are different codes"
        )
    return numbers


def match_labels(labels: NDArray[Any], classes: list[Any], source: str) -> NDArray[np.intp]:
    """Positions of labels in the classes of a model; ``ValueError`` for one it does not know."""
    codes = np.full(labels.size, -1, dtype=np.intp)
    for position, label in enumerate(classes):
        codes[_same(labels, label)] = position
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        raise ValueError(
            f"{source}: the label {labels[unknown[0]].item()!r} in row {unknown[0] + 1} is not a "
            f"class of the model; its classes are {listed(classes, 8)}: spell the labels as in the "
            "fit, or name another column with --target"
        )
    return codes


def keyed_by_label(stated: Any, classes: list[Any], source: str) -> Any:
    """What is stated by label as text, by label; a number as it is."""
    if not isinstance(stated, Mapping):
        return stated
    found = {}
    for text, value in stated.items():
        same = [label for label in classes if _same(np.array([label]), text)[0]]
        if not same:
            raise ValueError(f"{source} has no label {text!r}; its labels are {listed(classes, 8)}")
        found[same[0]] = value
    return found


def _same(labels: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Which labels are this one: as numbers where both are (1 and 1.0), else as text."""
    if labels.dtype.kind != "U":
        try:
            return np.asarray(labels == float(label))
        except ValueError:
            pass
    return np.asarray(labels.astype(str) == str(label))
