"""The columns that a fitted ``ColumnTransformer`` chose for one of its transformers."""

from __future__ import annotations

from typing import Any

import numpy as np


def chosen_columns(step: Any, columns: Any) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Their positions, whether they were named, masked or numbered."""
    positions = np.arange(step.n_features_in_)
    names = {name: i for i, name in enumerate(getattr(step, "feature_names_in_", ()))}
    if isinstance(columns, slice) and isinstance(columns.start or columns.stop, str):
        first = names[columns.start] if columns.start is not None else 0
        last = names[columns.stop] if columns.stop is not None else positions.size - 1
        return positions[first : last + 1]  # by name, the end is included
    if isinstance(columns, slice):
        return positions[columns]
    several = np.atleast_1d(np.asarray(columns))
    if several.dtype.kind in "biu":
        return np.asarray(positions[several])
    return np.array([names[name] for name in several.tolist()], dtype=np.intp)
