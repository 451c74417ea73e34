"""Samples from files: svmlight text, CSV, Parquet and NPZ, by whatever name their columns go.

:func:`read_samples` takes a path and a :class:`Wanted` (which columns are what) and gives
:class:`Samples`; :func:`read_data` also knows data sets by name.  One module per format; each
raises ``ValueError`` with the file, the column and the row where something is wrong.  Nothing read
here can run code.
"""

from .columns import Samples, Wanted, tidy_labels
from .known import BUNDLED, is_known, load_known, read_data
from .opening import format_of
from .reading import read_samples

__all__ = [
    "BUNDLED",
    "Samples",
    "Wanted",
    "format_of",
    "is_known",
    "load_known",
    "read_data",
    "read_samples",
    "tidy_labels",
]
