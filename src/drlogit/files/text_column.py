"""A column of a text file, held as codes and distinct texts: numbers, or levels of a category."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.tables.frames import MISSING_MARKS, is_number

#: Bytes that a field takes, and a text that was not there before; a letter of it.
CODE_BYTES, _TEXT, _LETTER = 8, 256, 4

#: A column of more distinct numbers than this, and few other texts, is one of numbers with a slip.
_MANY_NUMBERS, _FEW_TEXTS = 20, 0.1


class TextColumn:
    """Fields of one column as they come."""

    def __init__(
        self, name: str, source: str, missing_marks: Collection[str] = MISSING_MARKS
    ) -> None:
        self.name, self._source, self._missing = name, source, missing_marks
        self._codes = array("q")
        self._texts: dict[str, int] = {}
        self._letters = 0

    @property
    def size(self) -> int:
        """About how many bytes are held."""
        return CODE_BYTES * len(self._codes) + _TEXT * len(self._texts) + _LETTER * self._letters

    def add(self, field: str) -> None:
        text = field.strip()
        code = self._texts.setdefault(text, len(self._texts))
        if code == len(self._texts) - 1:
            self._letters += len(text)
        self._codes.append(code)

    def array(self, *, as_text: bool = False) -> NDArray[Any]:
        """Doubles, NaN where one is missing; or text as it stands, whatever it means."""
        texts = list(self._texts)
        there = [text for text in texts if text not in self._missing]
        codes = np.frombuffer(self._codes, dtype=np.int64)
        if not as_text and all(is_number(text) for text in there):
            numbers = [np.nan if text in self._missing else float(text) for text in texts]
            return np.array(numbers)[codes]
        with_comma = [text for text in there if is_comma_number(text)]
        if not as_text and with_comma and all(is_number(t) or is_comma_number(t) for t in there):
            raise ValueError(
                f"{self._source}: column {self.name!r:.60} holds {with_comma[0]!r:.60}: "
                f"{about_comma(with_comma[0])}"
            )
        if not as_text:
            self._check_slips(codes, texts, there)
        return np.array(texts, dtype=object)[codes]

    def _check_slips(self, codes: NDArray[Any], texts: list[str], there: list[str]) -> None:
        """``ValueError`` for what looks like a column of numbers, but for a few fields."""
        other = [text for text in there if not is_number(text)]
        share = np.isin(codes, [self._texts[text] for text in other]).mean() if other else 0.0
        if len(there) - len(other) > _MANY_NUMBERS and share < _FEW_TEXTS:
            row = int(np.flatnonzero(codes == self._texts[other[0]])[0])
            raise ValueError(
                f"{self._source}: column {self.name!r:.60} holds numbers, but {other[0]!r:.40} in "
                f"row {row + 1}: correct it, leave it empty, or take the column as a category with "
                f"--categorical {self.name!r:.60}"
            )


def is_comma_number(field: str) -> bool:
    """Whether a field is a number with commas in it."""
    return re.fullmatch(r"[-+]?\d*(,\d+)+([.]\d*)?", field) is not None


def about_comma(field: str) -> str:
    """What to write for a number with commas, without a guess at what they mean."""
    plain = field.replace(",", "")
    thousands = re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+([.]\d*)?", field)
    decimal = field.count(",") == 1 and "." not in field
    if thousands and decimal:
        point = field.replace(",", ".")
        return f"write {plain:.60} if its comma groups thousands, {point:.60} if it is decimal"
    if thousands:
        return f"write {plain:.60}, without commas between thousands"
    return "write a decimal point, not a comma" if decimal else "write it without commas"
