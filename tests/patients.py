"""A table of patients, most of whom are well."""

from __future__ import annotations

import numpy as np
import pandas as pd

N = 400


def table() -> pd.DataFrame:
    """Patients of two wards; one in five is ill."""
    rng = np.random.default_rng(5)
    ill = np.arange(N) % 5 == 0
    return pd.DataFrame(
        {
            "age": rng.normal(50.0, 10.0, N) + 12.0 * ill,
            "dose": rng.normal(0.0, 1.0, N) + 1.5 * ill,
            "ward": rng.choice(["north", "south"], N),
            "state": np.where(ill, "ill", "well"),
        }
    ).sample(frac=1.0, random_state=0)


TABLE = table()
