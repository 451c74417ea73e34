"""What a column of text is, where it is no category: names of rows, numbers in disguise, dates.

One rule for frames and files.  Text of which most rows have their own tells rows apart, and next to
nothing can be learnt from a level that occurs once.  Amounts, percentages, numbers among words and
dates are texts to a computer; what they would say as numbers is lost on levels.  Numbers in text
have a decimal point or a decimal comma; ``1,234`` alone may have either, so a column decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...rows.arrays import FloatArray
from .frames import TableColumn, is_number

#: Columns of more levels than this are identifiers if they have more than so many per row.
_FEW_LEVELS, _IDENTIFIES = 20, 0.5

#: From this share of the rows on, what they look like is said; less is an accident ("7up").
_MOST = 0.5

_DIGITS = r"(?:\d{1,3}(?:[,' \u00a0]\d{3})+|\d+)?(?:\.\d+|\.)?(?:[eE][-+]?\d+)?"
_NUMBER = re.compile(rf"(?=.*\d)\s*\(?[-+]?\s*[$€£¥]?\s*[-+]?{_DIGITS}\s*[$€£¥%]?\s*\)?\s*")
_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))"
    r"(?:[T ]\s*\d{1,2}:\d{2}.*)?\s*"
)


def remark_on_text(name: Any, levels: Counter[Any]) -> str | None:
    """What is to be said of a column of text that nobody called a category, if anything.

    ``levels`` has the number of rows of each, None for a missing one.
    """
    counts = {level: count for level, count in levels.items() if level is not None}
    seen, apart = seen_in_text(counts), tells_rows_apart(levels)
    if seen is not None:
        become = "is ignored" if apart else f"becomes a category of {len(counts)} levels"
        way = "convert it to a number of days"
        if not seen.startswith("dates"):
            way = "to read it as numbers, name it in numbers (--numbers on the command line)"
        return f"column {name!r:.60} holds {seen}, and {become}; {way}"
    if not apart:
        return None
    return (
        f"column {name!r:.60} is ignored because it looks like a row identifier ({len(counts)} "
        "different texts); name it in categorical_features (--categorical on the command line) to "
        "keep it"
    )


def tells_rows_apart(levels: Counter[Any]) -> bool:
    """Whether there are so many levels, in the rows of each, that they name rows."""
    return len(levels.keys() - {None}) > max(_FEW_LEVELS, _IDENTIFIES * levels.total())


def seen_in_text(levels: Mapping[str, int]) -> str | None:
    """What texts look like that are no levels, and in how many rows; None for ordinary ones.

    ``levels`` has the number of rows of each.
    """
    total = sum(levels.values())
    dates, numbers, words = Counter[str](), Counter[str](), Counter[str]()
    for text, count in levels.items():
        number = any(_NUMBER.fullmatch(_with_point(text, mark)) for mark in ".,")
        kind = dates if _DATE.fullmatch(text) else numbers if number else words
        kind[text] = count
    if dates and dates.total() >= _MOST * total:
        return f"dates, such as {_shown(dates)}"
    plain = not words and all(map(is_number, numbers))
    if numbers.total() < _MOST * total or len(numbers) <= (_FEW_LEVELS if plain else 2):
        return None
    share = words.total() / total
    among = f", and {share:.0%} other text, such as {_shown(words)}" if words else ""
    return f"numbers as text, such as {_shown(numbers)}{among}"


def numbers_of(column: TableColumn, decimal: str) -> FloatArray:
    """The numbers that a column holds, as text with this decimal mark or as they are."""
    if not column.holds_levels:
        return column.numbers()
    texts, codes = column.distinct
    return numbers_in_text(texts, decimal)[codes]


def decimal_mark(column: TableColumn) -> tuple[str, str | None]:
    """The point or comma with which more texts are numbers; what is to be said of other texts."""
    counts = {text: count for text, count in column.counts.items() if text is not None}
    lacking = {mark: np.isnan(numbers_in_text(counts, mark)) for mark in ".,"}
    mark = "," if lacking[","].sum() < lacking["."].sum() else "."
    other = [text for text, lacks in zip(counts, lacking[mark], strict=True) if lacks]
    if not other:
        return mark, None
    return mark, (
        f"{sum(counts[text] for text in other)} texts of column {column.name!r:.60} are not "
        f"numbers and count as missing, such as {other[0]!r:.40}"
    )


def numbers_in_text(texts: Iterable[str | None], decimal: str = ".") -> FloatArray:
    """The numbers that texts hold, NaN for those that hold none.

    Signs of currencies, thousands' separators and blanks are passed over, ``12 %`` is 12 and
    ``(3)`` is -3, as accountants write it.
    """
    given = (None if text is None else _with_point(text, decimal) for text in texts)
    return np.array([np.nan if text is None else _number(text) for text in given], dtype=np.float64)


def _with_point(text: str, decimal: str) -> str:
    """The text with a decimal point, and commas between thousands."""
    return text if decimal == "." else text.translate({ord(","): ".", ord("."): ","})


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        return np.nan
    value = float(re.sub(r"[$€£¥%,'\s()]", "", text))
    return -value if "(" in text else value


def _shown(texts: Counter[str]) -> str:
    """The two most frequent."""
    return " and ".join(f"{text!r:.30}" for text, _ in texts.most_common(2))
