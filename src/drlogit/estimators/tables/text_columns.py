"""Columns of text that are not categories: row identifiers, numbers written as text, dates.

The same rule applies to frames and files.  A column with a different text in most rows identifies
rows, and a level that occurs once teaches almost nothing.  Amounts, percentages, numbers among
words and dates lose their meaning as levels.  Numbers in text have a decimal point or a decimal
comma; ``1,234`` alone may have either, so the column decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .frames import is_number

#: A column is an identifier if it has more levels than this, and more than this many per row.
_FEW_LEVELS, _IDENTIFIES = 20, 0.5

#: Numbers or dates in at least this share of the rows are worth a remark; fewer are an accident.
_MOST = 0.5

_DIGITS = r"(?:\d{1,3}(?:[,' \u00a0]\d{3})+|\d+)?(?:\.\d+|\.)?(?:[eE][-+]?\d+)?"
_NUMBER = re.compile(rf"(?=.*\d)\s*\(?[-+]?\s*[$€£¥]?\s*[-+]?{_DIGITS}\s*[$€£¥%]?\s*\)?\s*")
_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))"
    r"(?:[T ]\s*\d{1,2}:\d{2}.*)?\s*"
)


def remark_on_text(name: Any, levels: Counter[Any]) -> str | None:
    """A remark on a column of text that was not declared a category, or None.

    ``levels`` has the number of rows of each level; the key None counts missing values.
    """
    counts = {level: count for level, count in levels.items() if level is not None}
    seen, apart = seen_in_text(counts), tells_rows_apart(levels)
    if seen is not None:
        become = "is ignored" if apart else f"becomes a category of {len(counts)} levels"
        way = (
            "convert it to a number of days, or leave it out with drop (--drop on the command line)"
        )
        if not seen.startswith("dates"):
            way = "to use it as numbers, convert it before the fit"
        return f"column {name!r:.60} holds {seen}, and {become}; {way}"
    if not apart:
        return None
    return (
        f"column {name!r:.60} is ignored because it looks like a row identifier ({len(counts)} "
        "different texts); name it in categorical_features (--categorical on the command line) "
        "to keep it"
    )


def tells_rows_apart(levels: Counter[Any]) -> bool:
    """Whether the levels identify rows."""
    return len(levels.keys() - {None}) > max(_FEW_LEVELS, _IDENTIFIES * levels.total())


def seen_in_text(levels: Mapping[str, int]) -> str | None:
    """A description of texts that look like numbers or dates; None for ordinary ones.

    ``levels`` has the number of rows of each text.
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


def _with_point(text: str, decimal: str) -> str:
    """The text with a decimal point, and commas between thousands."""
    return text if decimal == "." else text.translate({ord(","): ".", ord("."): ","})


def _shown(texts: Counter[str]) -> str:
    """The two most frequent."""
    return " and ".join(f"{text!r:.30}" for text, _ in texts.most_common(2))
