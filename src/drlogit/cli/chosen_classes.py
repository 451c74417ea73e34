"""Labels as they stand in a file, and the classes that a command makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def choose_classes(
    labels: NDArray[Any], positive: str | None, source: str
) -> tuple[list[Any], NDArray[np.intp]]:
    """The classes in order, and the class of each sample; of two the positive one is the second."""
    distinct, codes = np.unique(labels, return_inverse=True)
    classes: list[Any] = distinct.tolist()
    if len(classes) < 2:
        raise ValueError(
            f"all {codes.size} labels of {source} are {classes[0]!r}; two classes are wanted"
        )
    if len(classes) > max(20, codes.size // 10):
        raise ValueError(
            f"{source} has {len(classes)} different labels in {codes.size} samples: is the column "
            "of the labels the right one? Name it with --target"
        )
    if positive is None:
        return classes, codes
    same = _same(distinct, positive)
    if not same.any():
        raise ValueError(
            f"no sample of {source} has the label {positive!r}; its labels are {_listed(classes)}"
        )
    if len(classes) > 2:
        raise ValueError(
            f"--positive is for two labels, and {source} has {_listed(classes)}: leave it out for "
            "one model of all, or make two labels of them"
        )
    return (classes, codes) if same[1] else (classes[::-1], 1 - codes)


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


def keyed_by_label(stated: Any, classes: list[Any], keys: Sequence[Any], source: str) -> Any:
    """What is stated by label as text, by these keys of the classes; a number as it is."""
    if not isinstance(stated, Mapping):
        return stated
    found = {}
    for text, value in stated.items():
        places = [k for k, label in enumerate(classes) if _same(np.array([label]), text)[0]]
        if not places:
            raise ValueError(f"{text!r} is no label of {source}: {_listed(classes)}")
        found[keys[places[0]]] = value
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
