"""Which columns of a file are features, which is the label, which the weight.

Columns go by their name, or by their number: from 0 in files without names (-1 is the last), and
as written in svmlight files.
"""

from __future__ import annotations

import difflib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, NoReturn

import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.tables.frames import MISSING_MARKS, listed
from ..rows.arrays import FloatArray

#: Default names of the column with the labels, in any case; otherwise it is the last column.
USUAL_TARGETS = ("target", "label", "class", "y")


@dataclass(frozen=True)
class Wanted:
    """What to take from a file, as the options of the command line call it.

    ``n_features`` is the width that a model expects, or that of a svmlight file whose last columns
    are empty.  With ``with_labels=False`` the target is only named so that it is not used as a
    feature.  ``categorical`` columns are always text; if the rows are ``served`` to a model, no
    other column is.  Texts among ``missing_marks`` are missing.
    """

    with_labels: bool = True
    target: str | None = None
    named_by: str = "--features"  # what names the features, for messages
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    weights: str | None = None
    kappa_column: str | None = None
    n_features: int | None = None
    format: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8-sig"
    zero_based: bool | None = None
    served: bool = False
    categorical: tuple[str, ...] = ()
    missing_marks: tuple[str, ...] = MISSING_MARKS

    @classmethod
    def stated(cls, options: Mapping[str, Any], **others: Any) -> Wanted:
        """What options state, and others in their place."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: options[name] for name in known & options.keys()} | others)


@dataclass(frozen=True, eq=False)
class FileSamples:
    """What was in a file; ``X`` is a data frame or a matrix.

    Features without names go by numbers, the first of which is ``first_number``.
    """

    X: Any
    labels: NDArray[Any] | None
    weights: Any
    feature_names: list[str] | None
    target: str | None
    source: str
    first_number: int = 0
    kappa: FloatArray | None = None  # what it costs to flip each label

    @property
    def names(self) -> list[str]:
        """How features are called: by name or by number."""
        if self.feature_names is not None:
            return self.feature_names
        return [str(self.first_number + j) for j in range(self.X.shape[1])]

    def as_text(self, weights: str | None, kappa: str | None) -> str:
        """The samples as svmlight text or CSV, which reads as they do.

        ``weights`` and ``kappa`` are the names of these columns.
        """
        if sp.issparse(self.X):
            from sklearn.datasets import dump_svmlight_file

            buffer = io.BytesIO()
            dump_svmlight_file(self.X, self.labels, buffer, zero_based=self.first_number == 0)
            return buffer.getvalue().decode()
        if self.feature_names is None:
            raise ValueError(
                f"the columns of {self.source} have no names, so its rows cannot be written as a "
                "table: add a header line with names"
            )
        others = {self.target: self.labels, weights: self.weights, kappa: self.kappa}
        frame = self.X.assign(**{str(name): values for name, values in others.items() if name})
        return str(frame.to_csv(index=False, lineterminator="\n"))


class Roles(NamedTuple):
    """Positions of the columns by what they are for."""

    features: list[int]
    target: int | None
    weights: int | None
    kappa: int | None
    texts: set[int]

    @property
    def every(self) -> list[int]:
        return [j for j in (*self.features, *self[1:4]) if j is not None]


class Header:
    """The columns of a file; ``names`` is None if columns go by number."""

    def __init__(self, names: Sequence[str] | None, count: int, source: str) -> None:
        self.named = names is not None
        self.names = [str(j) for j in range(count)] if names is None else list(names)
        self.source = source

    def find(self, text: str, purpose: str) -> int:
        """Position of a column given by name or number; ``ValueError`` if there is none."""
        times = self.names.count(text)
        if times > 1:
            raise ValueError(f"{self.source} has {times} columns named {text!r:.60} ({purpose})")
        if times:
            return self.names.index(text)
        try:
            return range(len(self.names))[int(text)]
        except (ValueError, IndexError):
            self._not_there(text, purpose)

    def roles(self, wanted: Wanted) -> Roles:
        """What each column is for."""
        named = {"--weights": wanted.weights, "--kappa-column": wanted.kappa_column}
        weights, kappa = (
            None if name is None else self.find(name, option) for option, name in named.items()
        )
        target = self._target(wanted, {weights, kappa})
        if wanted.features is not None:
            features = [self.find(name, wanted.named_by) for name in wanted.features]
        else:
            dropped = {self.find(name, "--drop") for name in wanted.drop} | {target, weights, kappa}
            features = [j for j in range(len(self.names)) if j not in dropped]
            self._check_names([self.names[j] for j in features])
        if not features:
            raise ValueError(
                f"{self.source} has no feature: every column is the target, the weights, kappa or "
                "dropped"
            )
        texts = {self.find(name, "--categorical") for name in wanted.categorical}
        roles = Roles(features, target, weights, kappa, texts)
        (taken, times), *_ = Counter(roles.every).most_common(1)
        if times > 1:
            raise ValueError(
                f"{self.source}: column {self.names[taken]!r:.60} is used twice (as feature, "
                "target, weights or kappa)"
            )
        return roles

    def feature_names(self, roles: Roles, wanted: Wanted) -> list[str] | None:
        """Names by which another file can be asked for the same features; None: by position."""
        chosen = wanted.features is not None or wanted.drop
        return [self.names[j] for j in roles.features] if self.named or chosen else None

    def _target(self, wanted: Wanted, others: set[int | None]) -> int | None:
        if not wanted.with_labels:
            # Predictions need no labels; if the file has them, they are not a feature.
            extra = wanted.n_features is not None and len(self.names) == wanted.n_features + 1
            if wanted.features is None and extra and wanted.target is not None:
                return self.find(wanted.target, "--target")
            return None
        if wanted.target is not None:
            return self.find(wanted.target, "--target")
        lowered = [name.lower() for name in self.names]
        usual = [lowered.index(name) for name in USUAL_TARGETS if lowered.count(name) == 1]
        if usual:
            return usual[0]
        return max(set(range(len(self.names))) - others, default=None)

    def _check_names(self, names: list[str]) -> None:
        """Names must tell the features apart."""
        if "" in names:
            raise ValueError(
                f"column {self.names.index('') + 1} of {self.source} has no name; if it is the row "
                "number that pandas writes, drop it with --drop ''"
            )
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise ValueError(f"{self.source} has two columns named {repeated[0]!r:.60}")

    def _not_there(self, text: str, purpose: str) -> NoReturn:
        if not self.named:
            have = f"its columns have no names, only the numbers 0 to {len(self.names) - 1}"
        else:
            near = " or ".join(f"{name!r:.60}" for name in near_names(text, self.names))
            shown = listed([f"{name!r:.30}" for name in self.names], 8)
            have = f"did you mean {near}? It has {shown}" if near else f"it has {shown}"
        raise ValueError(f"{self.source} has no column {text!r:.60} ({purpose}): {have}")


def near_names(text: str, names: Sequence[str]) -> list[str]:
    """Up to three names that may have been meant: misspelt, in other case, or cut short."""
    low = text.lower()
    within = [name for name in names if len(low) > 1 and low in name.lower()]
    found = difflib.get_close_matches(text, names[:1000], n=3)  # each takes a millisecond
    return list(dict.fromkeys(found + within))[:3]
