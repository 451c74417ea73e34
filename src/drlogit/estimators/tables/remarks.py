"""What the columns of a table hide: said once when a model is fitted, and of new rows.

A column of text with a different text in most rows identifies rows, and a level that occurs once
teaches almost nothing.  Amounts, numbers with units and dates lose their meaning as levels.  Of
numbers, dates written as one number and codes for "missing" are told, and so are columns that are
constant or nearly empty.

A model scores every row.  Ages in months, or a column that a new export leaves empty, get scores
like all others, so ``predict`` warns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...problem.features import Features
from ...rows.arrays import FloatArray
from .frames import TableColumn, listed, spelt

#: A column is an identifier if it has more levels than this, and more than this many per row.
_FEW_LEVELS, _IDENTIFIES = 20, 0.5

#: Numbers or dates in at least this share of the rows are worth a remark; fewer are an accident.
_MOST = 0.5

#: A column with at least this share of missing values is nearly empty.
_EMPTY = 0.95

#: Numbers that stand for "missing" in many files.
_CODES = (0.0, -1.0, -9.0, -99.0, -999.0, 9.0, 99.0, 999.0, 9999.0)

#: Of rows that are in the order of their labels.
SORTED = "the rows are sorted by label: shuffle them before they are split"

_KINDS_OF_NUMBERS = ("numbers as text", "numbers with units")

_DIGITS = r"(?:\d{1,3}(?:[,' \u00a0]\d{3})+|\d+)?(?:\.\d+|\.)?(?:[eE][-+]?\d+)?"
_NUMBER = re.compile(rf"(?=.*\d)\s*\(?[-+]?\s*[$€£¥]?\s*[-+]?{_DIGITS}\s*[$€£¥%]?\s*\)?\s*")
_WITH_UNIT = re.compile(r"\s*[-+]?\d[\d.,]*\s*[^\W\d_][\w/²³]{0,7}\s*")
_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))"
    r"(?:[T ]\s*\d{1,2}:\d{2}.*)?\s*"
)


def tells_rows_apart(levels: Counter[Any]) -> bool:
    """Whether the levels identify rows."""
    return len(levels.keys() - {None}) > max(_FEW_LEVELS, _IDENTIFIES * levels.total())


def remarks_on(column: TableColumn, category: str | None) -> list[str]:
    """Remarks on a column; a ``category`` is "stated" or found "by type"."""
    name, total, only = f"column {column.name!r:.60}", len(column.values), None
    levels = Counter[Any]() if category is None else +column.counts
    missing = levels.pop(None, 0)
    if category is None:
        known = column.numbers[np.isfinite(column.numbers)]
        missing = total - known.size
        if known.size and known.min() == known.max():
            only = f"{known[0]:g}"
    elif len(levels) == 1 and not missing:
        only = f"{next(iter(levels))!r:.40}"
    if missing >= _EMPTY * total:
        ignored = ", and is ignored" if category is None and missing == total else ""
        return [f"{name} has no value in {missing} of {total} rows{ignored}"]
    if only is not None:
        return [f"{name} is constant: {only} in every row"] if total > 1 else []
    if category is None:
        return _on_numbers(known, name, total)
    if column.kind != "text":
        return []
    return _alike(levels, name) + (_on_text(levels, name, column) if category == "by type" else [])


def _on_text(levels: Counter[str], name: str, column: TableColumn) -> list[str]:
    """Remarks on text that became a category because it is text."""
    seen, apart = _seen_in_text(levels), tells_rows_apart(column.counts)
    if seen:
        become = "is ignored" if apart else f"becomes a category of {len(levels)} levels"
        way = "a number of days" if seen.startswith("dates") else "numbers"
        return [f"{name} holds {seen}, and {become}; to use it, convert it to {way}"]
    if not apart:
        return []
    return [
        f"{name} is ignored because it looks like a row identifier ({len(levels)} different "
        "texts); name it in categorical_features (--categorical-features) to keep it"
    ]


def remarks_on_labels(classes: Sequence[Any]) -> list[str]:
    """Remarks on labels that differ only in case or blanks, and on labels that are amounts."""
    if len(classes) > _FEW_LEVELS and not any(isinstance(label, str) for label in classes):
        return [
            f"y has {len(classes)} different numbers, each of which is a class: of a measurement, "
            "state whether it is above a limit"
        ]
    return _alike([label for label in classes if isinstance(label, str)], "y")


def _alike(levels: Iterable[str], name: str) -> list[str]:
    """A remark on levels that differ only in case or blanks."""
    same: dict[str, list[str]] = {}
    for level in levels:
        same.setdefault(" ".join(level.split()).casefold(), []).append(level)
    alike = next((each for each in same.values() if len(each) > 1), None)
    if alike is None:
        return []
    shown = listed([f"{level!r:.40}" for level in sorted(alike)], 3)
    return [f"{name} has levels that differ only in case or blanks: {shown}; spell them alike"]


def _on_numbers(known: FloatArray, name: str, total: int) -> list[str]:
    """Remarks on numbers that are something else."""
    low, high = known.min(), known.max()
    if low >= 19_000_101 and high < 21_000_000 and (known == np.rint(known)).all():
        month, day = known // 100 % 100, known % 100
        if ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
            return [
                f"{name} holds dates as numbers, such as {low:.0f}, whose differences are no "
                "number of days: convert it to one"
            ]
    code = _code_for_missing(known, low, high)
    if code is None:
        return []
    return [
        f"{name} is {code:g} in {int((known == code).sum())} of {total} rows, unlike its other "
        "values: if that means missing, put NaN there"
    ]


def _code_for_missing(values: FloatArray, low: float, high: float) -> float | None:
    """A number at one end that repeats, unlike the rest, and is a usual code; or None."""
    for end in (low, high):
        rest = values[values != end]
        if end not in _CODES or not max(5.0, 0.01 * values.size) <= values.size - rest.size:
            continue
        others = np.unique(rest)
        if others.size < (10 if abs(end) < 99.0 else 3):  # 0 and 9 may be ordinary, -99 is none
            continue
        gap = min(abs(end - others[0]), abs(end - others[-1]))
        middle = np.subtract(*np.quantile(rest, [0.75, 0.25]))
        is_apart = gap > 0.75 * middle and gap > 5.0 * np.median(np.diff(others))
        if is_apart or end < 0.0 <= others[0]:  # one negative number among amounts is a code, too
            return float(end)
    return None


def _seen_in_text(levels: Counter[str]) -> str:
    """What most of these texts are, with examples; "" if they are ordinary ones."""
    kinds = {kind: Counter[str]() for kind in ("words", "dates", *_KINDS_OF_NUMBERS)}
    for text, count in levels.items():
        kinds[_kind_of_text(text)][text] = count
    kind, texts = max(kinds.items(), key=lambda pair: pair[1].total())
    few = kind in _KINDS_OF_NUMBERS and len(texts) <= _FEW_LEVELS
    if kind == "words" or few or texts.total() < _MOST * levels.total():
        return ""
    shown = " and ".join(f"{text!r:.30}" for text, _ in texts.most_common(2))
    other = "".join(f", beside {text!r:.30}" for text, _ in kinds["words"].most_common(1))
    return f"{kind}, such as {shown}{other}"


def _kind_of_text(text: str) -> str:
    if _DATE.fullmatch(text):
        return "dates"
    with_point = text.translate({ord(","): ".", ord("."): ","})
    if _NUMBER.fullmatch(text) or _NUMBER.fullmatch(with_point):
        return "numbers as text"
    return "numbers with units" if _WITH_UNIT.fullmatch(text) else "words"


# --- new rows -----------------------------------------------------------------------------------

#: Numbers are told if they are outside the training range in more than half of the rows (ages in
#: decades), if their distance from it exceeds its width in more than this share of the rows (ages
#: of 18 to 90 reach from -54 to 162; 20 years are 240 months), or this multiple of its width in any
#: row (amounts and incomes have long tails).
_SHARE, _ABSURD = 0.05, 10.0

#: A column without any value is worth a warning if that is less probable than this, given the share
#: of missing values in the training data.
_BY_ACCIDENT = 1e-3


def remarks_on_new(columns: Sequence[TableColumn], features: Features) -> list[str]:
    """Warnings about new rows, given the features of the fit."""
    assert features.seen is not None
    new, gone, far, total = list[str](), list[str](), list[str](), len(columns[0].values)
    for column, feature, seen in zip(columns, features.each, features.seen.T, strict=True):
        if not feature.columns.size:
            continue
        name = f"{column.name!r:.40}"
        if feature.values is None:
            missing = int(np.isnan(column.numbers).sum())
            outside = _outside(column.numbers, *seen[:2].tolist())
            far += [f"{name} ({outside})"] if outside else []
        else:
            known = {spelt(level) for level in (None, *feature.values)}
            unseen = Counter({k: n for k, n in column.counts.items() if spelt(k) not in known})
            missing = column.counts[None]
            for level, _ in unseen.most_common(1):
                new.append(
                    f"{name} ({unseen.total()} of {total} rows, such as {spelt(level)!r:.30}; the "
                    f"training data have {(feature.levels or ('',))[0]!r:.30})"
                )
        if missing == total and seen[2] ** total < _BY_ACCIDENT:
            gone.append(name)
    said = {
        "levels are new in {}; they count as the average training sample. Check spelling and "
        "coding": new,
        f"none of {total} rows has a value in {{}}, but the training data have some; the scores "
        "use the replacement for missing values": gone,
        "numbers are outside the range of the training data in {}; check whether they are in other "
        "units": far,
    }
    return [
        text.format(f"{'column' if len(found) == 1 else 'columns'} {listed(found, 3)}")
        for text, found in said.items()
        if found
    ]


def _outside(values: FloatArray, low: float, high: float) -> str:
    """A description of numbers that are far outside a range, or ""."""
    if not high > low or not (np.fmin.reduce(values) < low or np.fmax.reduce(values) > high):
        return ""  # a column that did not vary in training has no scale
    widths = np.maximum(low - values, values - high) / (high - low)
    limits = ((1.0, _SHARE), (0.0, 0.5))
    limit = next((at for at, share in limits if (widths > at).mean() > share), _ABSURD)
    far = values[widths > limit]
    if not far.size:
        return ""
    return (
        f"{far.size} of {values.size} rows, such as {far[0]:.6g}; the training data have {low:.6g} "
        f"to {high:.6g}"
    )
