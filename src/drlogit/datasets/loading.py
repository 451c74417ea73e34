"""Loading a data set by name."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ..rows.arrays import Matrix
from .catalogue import info
from .formats import read
from .storage import cache_folder, keep, obtain


@overload
def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = ...,
    download: bool = ...,
    return_X_y: Literal[False] = ...,
) -> Bunch: ...
@overload
def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = ...,
    download: bool = ...,
    return_X_y: Literal[True],
) -> tuple[Matrix, NDArray[np.int64]]: ...
def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    return_X_y: bool = False,
) -> Any:
    """One of the data sets of the paper, by name.

    Parameters
    ----------
    name : str
        One of :func:`drlogit.datasets.names`, such as ``"a9a"``, ``"w8a.t"``, ``"mushrooms"``
        or ``"mnist-0v3"`` (any two digits, the first is the positive class); ``.t`` is the
        test set.
    data_home : path, optional
        Folder where downloads are kept.  By default the environment variable
        ``DRLOGIT_CACHE``, else ``drlogit`` in the user's cache.  A folder named by
        ``DRLOGIT_DATA`` is looked at before it and never written to.
    download : bool
        Whether a set that is in neither may be fetched from its public source.
    return_X_y : bool
        Return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``: canonical CSR matrix for the LIBSVM sets, else a dense array, in double
        precision.  ``target``: -1 or +1.  ``original_target``: labels as in the file.
        ``feature_names``: list, or None where they are not known.  ``name``, ``DESCR``.
        ``paths``: the files read.  ``verified``: whether their contents have the digests of
        the catalogue, which is certain except for sets it knows only by a rebuild.  The sets
        ``adult`` and ``adult.t`` have ``one_hot``, which marks the columns of categories.

    Raises
    ------
    ValueError
        The name is unknown, or a file is damaged or has other contents than it should.
    FileNotFoundError
        A file is nowhere to be found and cannot be downloaded.
    """
    entry = info(name)
    cache = cache_folder(data_home)
    copies = [obtain(file, cache, download=download) for file in entry.files]
    try:
        table, y = read(entry, [copy.contents for copy in copies])
    except ValueError as error:
        places = " and ".join(copy.place for copy in copies)
        raise ValueError(f"{places} cannot be {entry.name}: {error}") from error
    # Kept only now: a download that is not the data set never reaches the cache.
    paths = [keep(copy, cache) for copy in copies]
    if return_X_y:
        return table.X, y
    return Bunch(
        data=table.X,
        target=y,
        original_target=table.labels,
        feature_names=table.feature_names,
        name=entry.name,
        DESCR=(
            f"{entry.name}: {entry.description}\n\n{entry.rows} samples ({entry.labels[-1]} "
            f"labelled -1, {entry.labels[1]} labelled +1), {entry.features} features.\n"
            f"Source: {entry.source}"
        ),
        paths=paths,
        verified=all(copy.verified for copy in copies),
        **table.extra,
    )
