"""Readers of the formats the data come in: bytes to features and labels.

Each takes the catalogue's entry and the contents of its files, and raises ``ValueError`` with
what is wrong with them.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..files.svmlight.text import parse_svmlight
from ..rows.arrays import Matrix
from .catalogue import DatasetInfo, Format

_MISSING = "?"

#: Attributes of UCI Adult in the order of the file; () for continuous ones.  The categories
#: are written down because one country does not occur in the test set.
_ADULT: dict[str, tuple[str, ...]] = {
    "age": (),
    "workclass": tuple(
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
        "Never-worked".split()
    ),
    "fnlwgt": (),
    "education": tuple(
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th "
        "Masters 1st-4th 10th Doctorate 5th-6th Preschool".split()
    ),
    "education-num": (),
    "marital-status": tuple(
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse".split()
    ),
    "occupation": tuple(
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
        "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
        "Priv-house-serv Protective-serv Armed-Forces".split()
    ),
    "relationship": tuple("Wife Own-child Husband Not-in-family Other-relative Unmarried".split()),
    "race": tuple("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black".split()),
    "sex": ("Female", "Male"),
    "capital-gain": (),
    "capital-loss": (),
    "hours-per-week": (),
    "native-country": tuple(
        "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) "
        "India Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica "
        "Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti "
        "Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
        "Trinadad&Tobago Peru Hong Holand-Netherlands".split()
    ),
}


@dataclass(frozen=True, eq=False)
class FileContents:
    """What a file holds: features, labels as written there, names of the columns if known."""

    X: Matrix
    labels: NDArray[Any]
    feature_names: list[str] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def read(entry: DatasetInfo, contents: Sequence[bytes]) -> tuple[FileContents, NDArray[np.int64]]:
    """Features and ±1 labels of a data set, with the size and label counts of its entry."""
    table = _READERS[entry.format](entry, *contents)
    if table.X.shape != (entry.rows, entry.features):
        raise ValueError(
            f"found {table.X.shape[0]} rows of {table.X.shape[1]} features, expected "
            f"{entry.rows} of {entry.features}"
        )
    if not np.isfinite(table.X.data if sp.issparse(table.X) else table.X).all():
        raise ValueError("found a value that is not finite")
    classes, index = np.unique(table.labels, return_inverse=True)
    unknown = [label for label in classes.tolist() if label not in entry.coding]
    if unknown:
        raise ValueError(f"found the label {unknown[0]!r}, expected one of {list(entry.coding)}")
    y = np.array([entry.coding[label] for label in classes.tolist()], dtype=np.int64)[index]
    counts = {sign: int(np.count_nonzero(y == sign)) for sign in entry.labels}
    if counts != entry.labels:
        raise ValueError(
            f"found {counts[-1]} samples labelled -1 and {counts[1]} labelled +1, expected "
            f"{entry.labels[-1]} and {entry.labels[1]}"
        )
    return table, y


def _read_libsvm(entry: DatasetInfo, contents: bytes) -> FileContents:
    # n_features is given because several files stop short of their last column.
    try:
        X, labels = parse_svmlight(
            io.BytesIO(contents), "it", n_features=entry.features, zero_based=False
        )
    except ValueError as error:
        raise ValueError(f"found something other than LIBSVM text ({error})") from error
    odd = labels[labels != np.rint(labels)]
    if odd.size:
        raise ValueError(f"found the label {odd[0]}, expected one of {list(entry.coding)}")
    X.sum_duplicates()
    X.eliminate_zeros()  # some copies pad rows with 123:0
    # scikit-learn indexes with int64; half of that is enough, and is what SciPy would choose.
    narrow = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return FileContents(sp.csr_matrix(narrow, shape=X.shape), labels.astype(np.int64))


def _read_mnist(entry: DatasetInfo, images: bytes, labels: bytes) -> FileContents:
    digits = _idx(labels, 1)
    pixels = _idx(images, 3)
    if pixels.shape != (digits.size, 28, 28):
        raise ValueError(f"found images {pixels.shape} for {digits.size} labels")
    kept = np.isin(digits, [int(digit) for digit in entry.coding])
    return FileContents(
        pixels[kept].reshape(-1, 784) / 255.0,
        digits[kept].astype(np.int64),
        [f"pixel_{row}_{column}" for row in range(28) for column in range(28)],
    )


def _idx(contents: bytes, ndim: int) -> NDArray[np.uint8]:
    """An array of bytes in the IDX format of MNIST."""
    start = 4 + 4 * ndim
    if contents[:4] != bytes([0, 0, 8, ndim]) or len(contents) < start:
        raise ValueError(f"found no IDX header for a {ndim}-dimensional array of bytes")
    shape = tuple(np.frombuffer(contents, ">u4", count=ndim, offset=4).tolist())
    data = np.frombuffer(contents, np.uint8, offset=start)
    if data.size != math.prod(shape):
        raise ValueError(f"found {data.size} bytes for an array of shape {shape}")
    return data.reshape(shape)


def _read_adult(entry: DatasetInfo, contents: bytes) -> FileContents:
    # The test file opens with a comment; both end in an empty line.
    lines = contents.decode("ascii").splitlines()
    rows = [line.split(", ") for line in lines if line and not line.startswith("|")]
    wrong = next((row for row in rows if len(row) != len(_ADULT) + 1), None)
    if wrong is not None:
        raise ValueError(f"found a row of {len(wrong)} fields, expected {len(_ADULT) + 1}")

    X = np.zeros((len(rows), sum(len(categories) or 1 for categories in _ADULT.values())))
    names: list[str] = []
    one_hot: list[bool] = []
    for position, (attribute, categories) in enumerate(_ADULT.items()):
        values = [row[position] for row in rows]
        first = len(names)
        if not categories:
            X[:, first] = [float(value) for value in values]
            names.append(attribute)
            one_hot.append(False)
            continue
        column = {category: first + k for k, category in enumerate(categories)} | {_MISSING: -1}
        unknown = set(values) - column.keys()
        if unknown:
            raise ValueError(f"found {attribute} {min(unknown)!r}, which is not a category")
        chosen = np.array([column[value] for value in values], dtype=np.intp)
        known = np.flatnonzero(chosen >= 0)
        X[known, chosen[known]] = 1.0
        names.extend(f"{attribute}={category}" for category in categories)
        one_hot.extend([True] * len(categories))
    labels = np.array([row[-1].rstrip(".") for row in rows])  # the test file ends them so
    return FileContents(X, labels, names, {"one_hot": np.array(one_hot)})


def _read_skin(entry: DatasetInfo, contents: bytes) -> FileContents:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty file: the size is checked anyway
        values = np.loadtxt(io.BytesIO(contents), dtype=np.int64, ndmin=2)
    if values.shape[1] != 4:
        raise ValueError(f"found {values.shape[1]} columns, expected 3 colours and a label")
    return FileContents(values[:, :3].astype(np.float64), values[:, 3], ["blue", "green", "red"])


_READERS: dict[Format, Callable[..., FileContents]] = {
    "libsvm": _read_libsvm,
    "mnist": _read_mnist,
    "adult": _read_adult,
    "skin": _read_skin,
}
