"""Data sets that go by a name instead of a file: those of the catalogue, and a bundled one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import datasets
from ..files.columns import FileSamples, Header, Wanted, take_columns
from ..files.reading import read_samples

#: Comes with scikit-learn, so it is there without a network.
BUNDLED = "breast-cancer"


def read_data(
    text: str, wanted: Wanted, *, label_file: str | None = None, download: bool = True
) -> FileSamples:
    """Samples of a file or, if there is no such file, of the data set of that name."""
    path = Path(text)
    if path.exists() or not is_known(text):
        if not path.exists():
            raise FileNotFoundError(
                f"{text}: no such file, and no data set has that name (drlogit datasets lists them)"
            )
        return read_samples(path, wanted, label_file=label_file)
    if label_file is not None:
        raise ValueError(f"{text} has labels of its own: --labels is for files")
    return _choose(load_known(text, download=download), wanted)


def is_known(name: str) -> bool:
    """Whether there is a data set of that name."""
    if name == BUNDLED:
        return True
    try:
        datasets.info(name)
    except ValueError:
        return False
    return True


def load_known(name: str, *, data_home: str | None = None, download: bool = True) -> FileSamples:
    """A data set by name, with its own labels."""
    if name == BUNDLED:
        from sklearn.datasets import load_breast_cancer

        cancer: Any = load_breast_cancer()
        labels = np.asarray(cancer.target_names)[cancer.target].astype(str)
        names = [str(feature) for feature in cancer.feature_names]
        return FileSamples(cancer.data, labels, None, names, "diagnosis", name)
    data = datasets.load(name, data_home=data_home, download=download)
    return FileSamples(data.data, data.target, None, data.feature_names, None, name)


def _choose(samples: FileSamples, wanted: Wanted) -> FileSamples:
    if wanted.weights is not None:
        raise ValueError(f"{samples.source} has no column for --weights")
    header = Header(samples.feature_names, samples.X.shape[1], samples.source)
    roles = header.roles(Wanted(labels=False, features=wanted.features, drop=wanted.drop))
    return replace(
        samples,
        X=take_columns(samples.X, roles.features),
        labels=samples.labels if wanted.labels else None,
        feature_names=header.feature_names(roles, wanted),
    )
