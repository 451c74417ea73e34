"""What a column of text is, where it is no category: names of rows, numbers in disguise, dates.

One rule for frames and files.  Text of which most rows have their own tells rows apart, and next to
nothing can be learnt from a level that occurs once.  Amounts, percentages, numbers among words and
dates are texts to a computer; what they would say as numbers is lost on levels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...rows.arrays import FloatArray

#: Columns of more levels than this are identifiers if they have more than so many per row.
_FEW_LEVELS, _IDENTIFIES = 20, 0.5

#: From this share of the rows on, what they look like is said.
_MOST = 0.9

#: Numbers among words: fewer are a word's accident ("7up"), and levels after all.
_HALF = 0.5

_DIGITS = r"(?:\d{1,3}(?:[,' \u00a0]\d{3})+|\d+)?(?:\.\d+|\.)?(?:[eE][-+]?\d+)?"
_PLAIN = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*")
_DRESSED = re.compile(rf"\s*\(?[-+]?\s*[$€£¥]?\s*[-+]?{_DIGITS}\s*[$€£¥%]?\s*\)?\s*")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})"
    rf"|\d{{1,2}}[- ]{_MONTH},?[- ](?:\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}})"
    r"(?:[T ]\s*\d{1,2}:\d{2}.*)?\s*",
    re.IGNORECASE,
)


class Remedies(NamedTuple):
    """What to do about a column of text, in the words of who reads it; ``{name}`` is the column."""

    keep: str
    numbers: str
    dates: str


IN_PYTHON = Remedies(
    "name it in categorical_features to take it as a category all the same",
    "pandas.to_numeric(X[{name!r:.60}].str.replace('[$,%]', '', regex=True), 'coerce') reads it",
    "(pandas.to_datetime(X[{name!r:.60}]) - pandas.Timestamp(0)).dt.days makes days of it",
)


def remark_on_text(name: Any, levels: Counter[Any], remedies: Remedies = IN_PYTHON) -> str | None:
    """What is to be said of a column of text that nobody called a category, if anything.

    ``levels`` has the number of rows of each, None for a missing one.
    """
    counts = {level: count for level, count in levels.items() if level is not None}
    seen = seen_in_text(counts)
    apart = identifies(len(counts), levels.total())
    if seen is not None:
        become = "is left out" if apart else f"becomes a category of {len(counts)} levels"
        way = remedies.dates if seen.startswith("dates") else remedies.numbers
        return f"column {name!r:.60} holds {seen}, and {become}: {way.format(name=name)}"
    if not apart:
        return None
    return (
        f"column {name!r:.60} is left out, as it tells rows apart ({len(counts)} different texts): "
        f"{remedies.keep.format(name=name)}"
    )


def identifies(n_levels: int, n_rows: int) -> bool:
    """Whether so many levels tell rows apart."""
    return n_levels > max(_FEW_LEVELS, _IDENTIFIES * n_rows)


def seen_in_text(levels: Mapping[str, int]) -> str | None:
    """What texts look like that are no levels, and in how many rows; None for ordinary ones.

    ``levels`` has the number of rows of each.
    """
    total = sum(levels.values())
    plain, dressed, dates, words = (Counter[str]() for _ in range(4))
    for text, count in levels.items():
        if _PLAIN.fullmatch(text):
            plain[text] = count
        elif _DATE.fullmatch(text):
            dates[text] = count
        elif any(c.isdigit() for c in text) and _DRESSED.fullmatch(text):
            dressed[text] = count
        else:
            words[text] = count
    if dates.total() >= _MOST * total:
        return f"dates, such as {_shown(dates)}"
    numbers = plain.total() + dressed.total()
    among = f", and {words.total() / total:.0%} other text, such as {_shown(words)}"
    if dressed and numbers >= _HALF * total:
        return f"numbers written as {_shown(dressed)}{among if words else ''}"
    if words and len(plain) > 2 and plain.total() >= _HALF * total:
        return f"numbers{among}"
    if not words and len(plain) > _FEW_LEVELS:
        return f"numbers kept as text, such as {_shown(plain)}"
    return None


def numbers_in_text(texts: Iterable[str | None]) -> FloatArray:
    """The numbers that texts hold, NaN for those that hold none.

    Signs of currencies, thousands' separators and blanks are passed over, ``12 %`` is 12 and
    ``(3)`` is -3, as accountants write it.
    """
    return np.array([np.nan if text is None else _number(text) for text in texts], dtype=np.float64)


def _number(text: str) -> float:
    if not (any(c.isdigit() for c in text) and _DRESSED.fullmatch(text)):
        return np.nan
    value = float(re.sub(r"[$€£¥%,'\s()]", "", text))
    return -value if "(" in text else value


def _shown(texts: Counter[str]) -> str:
    """The two most frequent."""
    return " and ".join(f"{text!r:.30}" for text, _ in texts.most_common(2))
