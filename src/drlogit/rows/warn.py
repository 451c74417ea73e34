"""Warnings at the line of the program that called the library, however deep they arise."""

from __future__ import annotations

import inspect
import warnings


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """As ``warnings.warn``, with the stack level of the first line outside of this package."""
    own, level, frame = __name__.partition(".")[0], 0, inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] == own:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level + 1)
