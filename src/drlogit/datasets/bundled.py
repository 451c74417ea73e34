"""Tables that are there without a network."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any

from ..rows.whole_files import write_bytes


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


def write_hospitals(folder: str | os.PathLike[str]) -> list[str]:
    """Write the table of each hospital as CSV, without the column that names it; the paths."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = []
    for hospital, rows in load_heart_disease().groupby("hospital"):
        paths.append(str(place / f"{hospital}.csv"))
        text = rows.drop(columns="hospital").to_csv(index=False, lineterminator="\n")
        write_bytes(paths[-1], text.encode())
    return paths
