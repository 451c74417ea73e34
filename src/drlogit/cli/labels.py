"""Labels as they stand in a file, and the classes that a command makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def choose_classes(
    labels: list[Any], codes: NDArray[np.intp], positive: str | None, source: str
) -> tuple[list[Any], NDArray[np.intp]]:
    """The classes in order, and the class of each sample, from labels and positions among them.

    Of two classes the positive one comes second.  A positive label among more than two makes
    two classes: it, and "not" it.
    """
    if len(labels) < 2:
        raise ValueError(
            f"all {codes.size} labels of {source} are {labels[0]!r}; two classes are wanted"
        )
    if positive is None:
        if len(labels) > max(20, codes.size // 10):
            raise ValueError(
                f"{source} has {len(labels)} different labels in {codes.size} samples: is the "
                "column of the labels the right one? Name it with --target, or choose a label "
                "with --positive"
            )
        return labels, codes.astype(np.intp)
    chosen = find_label(positive, labels, source)
    codes = (codes == chosen).astype(np.intp)
    if len(labels) == 2:
        return [labels[1 - chosen], labels[chosen]], codes
    return [f"not {labels[chosen]}", str(labels[chosen])], codes


def find_label(text: str, classes: list[Any], source: str) -> int:
    """Position of a label given as text."""
    for position, label in enumerate(classes):
        if str(label) == text:
            return position
        if isinstance(label, int | float) and as_number(text) == label:
            return position
    shown = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
    raise ValueError(f"no sample of {source} has the label {text!r}; its labels are {shown}")


def as_number(text: str) -> float | None:
    """The number that a text spells, if it does."""
    try:
        return float(text)
    except ValueError:
        return None
