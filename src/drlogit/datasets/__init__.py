"""The data of the paper's experiments: a generator, and loaders for the public sets.

    X, y = drlogit.datasets.make_synthetic(1000, 100, random_state=0)
    X, y = drlogit.datasets.load("a9a", return_X_y=True)

A set is looked for in the folder ``DRLOGIT_DATA``, then in the user's cache, and is otherwise
downloaded from its public source; what is read is checked against one table
(:mod:`drlogit.datasets.catalogue`) either way.
"""

from .catalogue import DataFile, DatasetInfo, info, names
from .loading import load
from .synthetic import make_synthetic

__all__ = ["DataFile", "DatasetInfo", "info", "load", "make_synthetic", "names"]
