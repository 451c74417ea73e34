"""Tables that are there without a network."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any


def _breast_cancer() -> Any:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    return data.frame.drop(columns="target").assign(
        diagnosis=data.target_names[data.target.to_numpy()]
    )


def load_heart_disease() -> Any:
    """Heart disease in four hospitals: a table with a real shift.

    Returns
    -------
    pandas.DataFrame
        920 patients of four hospitals (``hospital``: cleveland, budapest, switzerland, long-beach),
        ten features with gaps, and ``disease`` (yes, no), last.  From the UCI Machine Learning
        Repository (Janosi, Steinbrunn, Pfisterer and Detrano 1988, CC BY 4.0); HEART_DISEASE.txt
        beside the file has source, licence and changes.

    Examples
    --------
    >>> import drlogit
    >>> table = drlogit.datasets.load_heart_disease()
    >>> table.shape, table["hospital"].nunique()
    ((920, 12), 4)
    """
    import pandas as pd

    with resources.files(__package__).joinpath("heart_disease.csv").open("rb") as file:
        return pd.read_csv(file)


def _hospital(name: str) -> Callable[[], Any]:
    def load() -> Any:
        table = load_heart_disease()
        own = table[table["hospital"] == name]
        return own.drop(columns="hospital").reset_index(drop=True)

    return load


#: What each one is, and how to get it as a data frame whose last column is the target.
BUNDLED: dict[str, tuple[str, Callable[[], Any]]] = {
    "heart-disease": ("Heart disease in four hospitals (UCI, CC BY 4.0).", load_heart_disease),
    **{
        f"heart-{name}": (f"Its patients in {place}.", _hospital(name))
        for name, place in (
            ("cleveland", "Cleveland"),
            ("budapest", "Budapest"),
            ("switzerland", "Zurich and Basel"),
            ("long-beach", "Long Beach"),
        )
    },
    "breast-cancer": ("Tumours, malignant or benign; comes with scikit-learn.", _breast_cancer),
}


def load_bundled(name: str) -> Any:
    """A table by name, as a data frame whose last column is the target."""
    if name not in BUNDLED:
        raise ValueError(f"no data set is named {name!r}: there is {', '.join(BUNDLED)}")
    return BUNDLED[name][1]()
