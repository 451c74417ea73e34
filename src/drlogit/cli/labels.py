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
    """Position of a label given as text, such as 1 or 1.0."""
    found = [k for k, label in enumerate(classes) if same_label(np.array([label]), text)[0]]
    if found:
        return found[0]
    shown = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
    raise ValueError(f"no sample of {source} has the label {text!r}; its labels are {shown}")


def same_label(labels: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Which labels are this one: as numbers where both are, else as text."""
    if labels.dtype.kind != "U":
        try:
            return np.asarray(labels == float(label))
        except ValueError:
            pass
    return np.asarray(labels.astype(str) == str(label))


def match_labels(
    labels: NDArray[Any], classes: list[Any], against_rest: Any, source: str
) -> NDArray[np.intp]:
    """Positions of labels in the classes of a model."""
    if against_rest is not None:
        return same_label(labels, against_rest).astype(np.intp)
    codes = np.full(labels.size, -1, dtype=np.intp)
    for position, label in enumerate(classes):
        codes[same_label(labels, label)] = position
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        shown = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
        raise ValueError(
            f"{source}: row {unknown[0] + 1} has the label {labels[unknown[0]].item()!r}, which "
            f"the model does not know; its classes are {shown}"
        )
    return codes
