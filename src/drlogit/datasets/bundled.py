"""Tables that are there without a network."""

from __future__ import annotations

import os
from importlib import resources
from typing import Any


def load_heart_disease(*, as_recorded: bool = False) -> Any:
    """Heart disease in four hospitals: a table with a real shift.

    The source has a cholesterol of 0 for every patient of Switzerland and a quarter of those of
    Long Beach, and one blood pressure of 0.  Nobody has such values: they were not measured, and
    are missing here.

    Parameters
    ----------
    as_recorded : bool
        Whether to keep these zeros, as a table would arrive from the hospital.

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
        table = pd.read_csv(file)
    if not as_recorded:
        measured = ["cholesterol", "blood_pressure"]
        table[measured] = table[measured].replace(0.0, float("nan"))
    return table


def write_hospitals(folder: str | os.PathLike[str]) -> list[str]:
    """Write the table of each hospital as CSV, without the column that names it; the paths."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for hospital, rows in load_heart_disease().groupby("hospital"):
        paths.append(os.path.join(folder, f"{hospital}.csv"))
        rows.drop(columns="hospital").to_csv(paths[-1], index=False, lineterminator="\n")
    return paths
