"""Tables that are there without a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _breast_cancer() -> Any:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    return data.frame.drop(columns="target").assign(
        diagnosis=data.target_names[data.target.to_numpy()]
    )


#: What each one is, and how to get it as a data frame whose last column is the target.
BUNDLED: dict[str, tuple[str, Callable[[], Any]]] = {
    "breast-cancer": ("Tumours, malignant or benign; comes with scikit-learn.", _breast_cancer),
}


def load_bundled(name: str) -> Any:
    """A table by name, as a data frame whose last column is the target."""
    if name not in BUNDLED:
        raise ValueError(f"no data set is named {name!r}: there is {', '.join(BUNDLED)}")
    return BUNDLED[name][1]()
