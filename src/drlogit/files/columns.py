"""Which columns of a file are features, which is the label, which the weight.

Columns go by their name, or by their number: from 0 in files without names (-1 is the last), and
as written in svmlight files.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.tables.frames import MISSING_MARKS
from ..rows.arrays import FloatArray, Matrix
from ..rows.checks import TOO_LARGE
from .limits import check_memory

#: Columns taken for the labels if nobody says which, whatever their case; else the last one.
USUAL_TARGETS = ("target", "label", "class", "y")

#: Names among which one that is not there is looked for; each takes a millisecond.
_COMPARED = 1000


@dataclass(frozen=True)
class Wanted:
    """What to take from a file.

    ``n_features`` is the width a model asks for, or that of a svmlight file whose last columns
    happen to be empty.  With ``labels=False`` the target is only named so as not to take it for
    a feature.  ``table`` says that features may be text, or missing: X is then a
    :class:`~drlogit.estimators.tables.frames.ColumnTable`, in which the columns ``texts`` are text
    whatever they look like; texts among ``missing_marks`` are missing numbers.
    """

    labels: bool = True
    target: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    weights: str | None = None
    n_features: int | None = None
    format: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    zero_based: bool = False
    table: bool = False
    texts: tuple[str, ...] = ()
    missing_marks: tuple[str, ...] = MISSING_MARKS


@dataclass(frozen=True, eq=False)
class FileSamples:
    """What was in a file.  ``X`` may be anything that :func:`drlogit.solve` takes.

    Features without names go by numbers, the first of which is ``first_number``.
    """

    X: Any
    labels: NDArray[Any] | None
    weights: FloatArray | None
    feature_names: list[str] | None
    target: str | None
    source: str
    first_number: int = 0

    @property
    def names(self) -> list[str]:
        """How features are called: by name or by number."""
        if self.feature_names is not None:
            return self.feature_names
        return [str(self.first_number + j) for j in range(self.X.shape[1])]


@dataclass(frozen=True)
class Roles:
    """Positions of the columns by what they are for."""

    features: list[int]
    target: int | None
    weights: int | None


class Header:
    """The columns of a file and how to speak of them.

    ``names`` is None where columns only have numbers, the first of which is ``first``.
    """

    def __init__(
        self, names: Sequence[str] | None, count: int, source: str, first: int = 0
    ) -> None:
        self.named = names is not None
        self.names = list(names) if names is not None else [str(first + j) for j in range(count)]
        self.source = source
        self._first = first
        self._last = {name: j for j, name in enumerate(self.names)}
        self._times = Counter(self.names) if len(self._last) < len(self.names) else None

    def find(self, text: str, purpose: str) -> int:
        """Position of a column given by name or number; ``ValueError`` if there is none."""
        if text in self._last:
            times = 1 if self._times is None else self._times[text]
            if times > 1:
                raise ValueError(
                    f"{self.source} has {times} columns named {text!r:.60} ({purpose})"
                )
            return self._last[text]
        try:
            number = int(text)
        except ValueError:
            self._not_there(text, purpose)
        position = number - self._first if number >= 0 else number + len(self.names)
        if not 0 <= position < len(self.names):
            self._not_there(text, purpose)
        return position

    def roles(self, wanted: Wanted) -> Roles:
        """What each column is for."""
        weights = None if wanted.weights is None else self.find(wanted.weights, "--weights")
        target = self._target(wanted, weights)
        if target is not None and target == weights:
            raise ValueError(f"column {self.names[target]!r:.60} is both target and weights")
        if wanted.features is not None:
            features = [self.find(name, "feature") for name in wanted.features]
            repeated = [self.names[j] for j, times in Counter(features).items() if times > 1]
            if repeated:
                raise ValueError(f"feature {repeated[0]!r:.60} is named twice")
            for role, taken in (("target", target), ("weights", weights)):
                if taken is not None and taken in features:
                    raise ValueError(f"column {self.names[taken]!r:.60} is both {role} and feature")
        else:
            dropped = {self.find(name, "--drop") for name in wanted.drop} | {target, weights}
            features = [j for j in range(len(self.names)) if j not in dropped]
            self._check_names(features)
        if not features:
            raise ValueError(f"{self.source} has no column left to be a feature")
        return Roles(features, target, weights)

    def feature_names(self, roles: Roles, wanted: Wanted) -> list[str] | None:
        """Names by which another file can be asked for the same features; None: by position."""
        chosen = wanted.features is not None or wanted.drop
        return [self.names[j] for j in roles.features] if self.named or chosen else None

    def _target(self, wanted: Wanted, weights: int | None) -> int | None:
        if not wanted.labels:
            # Who predicts needs no labels; if the file has them they are no feature.
            extra = wanted.n_features is not None and len(self.names) == wanted.n_features + 1
            if wanted.features is None and extra and wanted.target is not None:
                return self.find(wanted.target, "--target")
            return None
        if wanted.target is not None:
            return self.find(wanted.target, "--target")
        if self.named:
            lowered = [name.lower() for name in self.names]
            usual = [lowered.index(name) for name in USUAL_TARGETS if lowered.count(name) == 1]
            if usual:
                return usual[0]
        taken = set() if weights is None else {weights}
        return max(set(range(len(self.names))) - taken, default=None)

    def _check_names(self, features: Iterable[int]) -> None:
        """Names must tell the features apart, if there are names."""
        if not self.named:
            return
        names = [self.names[j] for j in features]
        if "" in names:
            position = self.names.index("") + 1
            raise ValueError(
                f"column {position} of {self.source} has no name; if it is a row number, as pandas "
                "writes it, leave it out with --drop ''"
            )
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise ValueError(f"{self.source} has two columns named {repeated[0]!r:.60}")

    def _not_there(self, text: str, purpose: str) -> NoReturn:
        if not self.named:
            last = self._first + len(self.names) - 1
            have = f"its columns have no names, only the numbers {self._first} to {last}"
        else:
            near = " or ".join(f"{name!r:.60}" for name in self._near(text))
            listed = ", ".join(f"{name!r:.30}" for name in self.names[:8]) + (
                f", … ({len(self.names)} columns)" if len(self.names) > 8 else ""
            )
            have = f"did you mean {near}? It has {listed}" if near else f"it has {listed}"
        raise ValueError(f"{self.source} has no column {text!r:.60} ({purpose}): {have}")

    def _near(self, text: str) -> list[str]:
        """Up to three names that may have been meant: misspelt, in other case, or cut short."""
        found = difflib.get_close_matches(text, self.names[:_COMPARED], n=3, cutoff=0.6)
        lowered = text.lower()
        if len(lowered) >= 2:
            found += [
                name
                for name in self.names
                if lowered in name.lower() or (len(name) >= 3 and name.lower() in lowered)
            ]
        return list(dict.fromkeys(found))[:3]


# --- values ---------------------------------------------------------------------------------


def is_missing(text: str) -> bool:
    """Whether a field of a text file stands for no value; a hyphen alone may be a label."""
    return text.strip() in MISSING_MARKS


def parse_labels(texts: Sequence[str], source: str) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as numbers if all are, else as text.

    Numbers that 64 bits do not tell apart, or that are none (infinity), stay text.  Labels that
    only leading zeros tell apart are refused: they may be two codes or one number.
    """
    stripped = [text.strip() for text in texts]
    if any("_" in text for text in stripped):  # int would read 1_2 as 12
        return text_labels(stripped, source)
    numbers: NDArray[Any]
    try:
        numbers = np.array([int(text) for text in stripped], dtype=np.int64)
    except OverflowError:
        return text_labels(stripped, source)
    except ValueError:
        try:
            numbers = np.array([float(text) for text in stripped])
        except (ValueError, OverflowError):
            return text_labels(stripped, source)
        if not np.isfinite(numbers).all():
            return text_labels(stripped, source)
    _check_leading_zeros(stripped, source)
    return numbers


def _check_leading_zeros(texts: Sequence[str], source: str) -> None:
    """``ValueError`` for labels such as 01 and 1 in one column."""
    spelt: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        without_sign = text.removeprefix("+")
        number = re.sub(r"^(-?)0+(?=\d)", r"\1", without_sign)
        other = spelt.setdefault(number, without_sign)
        if other != without_sign:
            raise ValueError(
                f"{source} has the labels {other!r:.60} and {text!r:.60}, which are one number: "
                "spell them alike, or with a letter if they are two codes"
            )


def text_labels(texts: Sequence[str], source: str) -> NDArray[np.str_]:
    """Labels as an array of text, every one of which takes as much as the longest."""
    longest = max(map(len, texts), default=0)
    check_memory(
        4 * longest * len(texts), f"{source}: {len(texts)} labels, one of {longest} letters,"
    )
    labels = np.array(texts, dtype=np.str_)
    check_text(labels, f"labels of {source}")
    return labels


def check_text(array: NDArray[Any], what: str) -> None:
    """``ValueError`` for text that is not Unicode, or that holds the NUL which NumPy strips."""
    try:
        for text in set(array.ravel().tolist()):
            text.encode()
            if "\0" in text:
                raise ValueError("a NUL character")
    except ValueError as error:
        raise ValueError(f"{what} are not all text: {error}") from error


def tidy_labels(labels: Any, source: str) -> NDArray[Any]:
    """Labels of an array: whole numbers as such, text as text, none missing."""
    array = np.asarray(labels)
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"labels of {source} must be one column, got shape {array.shape}")
    if array.dtype.kind == "S":
        check_memory(4 * array.nbytes, f"labels of {source}")
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"labels of {source} are not all text: {error}") from error
    if array.dtype.kind not in "biufU":
        raise ValueError(f"labels of {source} must be numbers or text, got {array.dtype!s:.60}")
    if array.dtype.kind == "U":
        check_text(array, f"labels of {source}")
    if array.dtype.kind == "f":
        array = as_double(array)
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise ValueError(f"{source}: the label of row {bad[0] + 1} is missing")
        if (array == np.rint(array)).all() and np.abs(array).max(initial=0.0) < 2.0**53:
            array = array.astype(np.int64)
    return array


def as_double(array: NDArray[Any]) -> FloatArray:
    """Numbers in double precision; what is too large becomes infinite, without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float64, copy=False)


def check_finite(X: Matrix, names: Sequence[str] | None, source: str, *, first: int = 0) -> None:
    """``ValueError`` with column and row of the first value that cannot be computed with.

    Columns without names go by numbers, the first of which is ``first``.
    """
    if sp.issparse(X):
        bad = np.flatnonzero(~_usable(X.data))
        if not bad.size:
            return
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        column, value = int(X.indices[bad[0]]), X.data[bad[0]]
    else:
        usable = _usable(X)
        if usable.all():
            return
        row, column = (int(k) for k in np.argwhere(~usable)[0])
        value = X[row, column]
    name = f"{names[column] if names is not None else str(first + column)!r:.60}"
    what = "is missing (NaN)" if np.isnan(value) else f"is {value}, which is too large"
    raise ValueError(
        f"{source}: the value of column {name} in row {row + 1} {what}; fill in or leave out such "
        "rows first"
    )


def _usable(values: Any) -> Any:
    """Which values are numbers whose square is one too, in double precision."""
    if values.dtype == np.float32:
        return np.isfinite(values)
    return np.abs(values) < TOO_LARGE  # not so for NaN


def take_columns(X: Matrix, columns: Sequence[int]) -> Matrix:
    """Some of the columns; X itself if that is all of them in order."""
    if list(columns) == list(range(X.shape[1])):
        return X
    return X[:, list(columns)]
