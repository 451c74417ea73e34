"""Arrays in temporary files: what is as long as samples that are larger than memory.

The files are in the folder for temporary files (``TMPDIR``), are read as memory maps, and are gone
with their arrays.  The system keeps as much of them in memory as there is room.
"""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arrays import file_of

#: Bytes from which an array is worth a file.
_LARGE = 1 << 16


def on_disk(value: Any) -> Any:
    """The same with its large arrays in files: an array, a CSR matrix, a tuple, or a state."""
    if isinstance(value, np.ndarray):
        file = file_of(value)
        if file is not None:  # no view of a view of a view, visit by visit
            return file if file.shape == value.shape else value
        return np.array(value) if value.nbytes < _LARGE else _filed(value)
    if sp.issparse(value):
        value.data, value.indices, value.indptr = map(
            on_disk, (value.data, value.indices, value.indptr)
        )
        return value
    if isinstance(value, tuple):
        made = getattr(value, "_make", tuple)
        return made(map(on_disk, value))
    if "__reduce__" in vars(type(value)):  # a compiled state of the engine
        made, parts = value.__reduce__()
        return made(*map(on_disk, parts))
    return value


def _filed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with TemporaryFile() as file:  # which the map keeps open
        array.tofile(file)
        return np.memmap(file, array.dtype, "r+", shape=array.shape)
