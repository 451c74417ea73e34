"""Labels as options and files spell them, and as a model has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def match_labels(labels: NDArray[Any], classes: list[Any], source: str) -> NDArray[np.intp]:
    """Positions of labels in the classes of a model; ``ValueError`` for one it does not know."""
    codes = np.full(labels.size, -1, dtype=np.intp)
    for position, label in enumerate(classes):
        codes[_same(labels, label)] = position
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        raise ValueError(
            f"{source}: row {unknown[0] + 1} has the label {labels[unknown[0]].item()!r}, which "
            f"the model does not know; its classes are {_listed(classes)}"
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
            raise ValueError(f"{text!r} is no label of {source}: {_listed(classes)}")
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


def _listed(labels: list[Any]) -> str:
    return ", ".join(map(str, labels[:8])) + (", …" if len(labels) > 8 else "")
