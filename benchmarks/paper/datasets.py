"""The public data sets of the paper's experiments, by name.

    X, y = load("a9a")            # also a9a.t (test), w8a, mushrooms, phishing, news20, farm-ads
    X, y = load("mnist-0v3")      # any two digits, the first is the positive class

A set is looked for in the folder ``DRLOGIT_DATA``, then in the cache (``~/.cache/drlogit``), plain
or as ``.bz2``, ``.gz`` or ``.xz``, and is otherwise downloaded to the cache from its public source.
What is read is held against the table below: digest, size, and how many labels of each kind.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import urllib.request
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from drlogit.datasets import make_synthetic

from .published import TABLE_4

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_FARM_ADS = "https://archive.ics.uci.edu/static/public/218/farm+ads.zip"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"

_OPEN = {"": None, ".bz2": bz2.decompress, ".gz": gzip.decompress, ".xz": lzma.decompress}

#: Name, features, samples labelled -1, +1, and the SHA-256 of the uncompressed text: = of the
#: published file, ~ of a faithful rebuild, from which the published one may differ in spelling.
_SETS = """
a1a         123  1210   395 = eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e
a1a.t       123 23510  7446 = 0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d
a2a         123  1693   572 ~ 535782f1be62e60938d8accb1573043542b3ac11265522927574dcbb28360a2f
a2a.t       123 23027  7269 ~ 5b4cd01725b4c364acda943067b4b859a48f1b9c43207f828b8e15e1e0f09767
a3a         123  2412   773 ~ 2d513572f103d25e84bebe4b9f2f52ee9445764b5a393caff7db9c482cfc1ee4
a3a.t       123 22308  7068 ~ c46c9ea67e06f38e81d59c4883e3d670cbe55de6a5c32564b38fc89dcda3adac
a4a         123  3593  1188 ~ 694d5abff492bdb8ce9749ddf3bf5af1c6f1f0ad6e3a0ae7818000d4d4c4847b
a4a.t       123 21127  6653 ~ 23fef5e5ac0d1bc17a4ac55a16c03d361e41e890a83595a3e7da6eca9660e4bf
a5a         123  4845  1569 = 5cb3a6603de0a0eb43afcdd45b1820c71ee7f20da1c09f054696bb71cbc45ad8
a5a.t       123 19875  6272 = 9ddbc60c0a3c5a8249e51f663d7110c4050e40d67301640418e9f44186db1bd1
a6a         123  8528  2692 ~ 6023becedbd392fdc6a62ad94b60c9363149370d4c57ef13949fcc765842a031
a6a.t       123 16192  5149 ~ e3134665304b612ac013d4f541d9b0ff9bf96709c446352e4ad5c487c7c783ac
a7a         123 12182  3918 = d383cf150d4d9f9097b91cc88022cd0ac473c3a72da3f33b4c17801a4bfccdc6
a7a.t       123 12538  3923 = 9614161fbc7ac8ae52509d19ed0be987aef752d446838816af402fc36ffccce9
a8a         123 17190  5506 = d08a37b3fadd4bd3c8b3fc30bdc93b54d7c0f371265c90cbfb931a7efe97cd28
a8a.t       123  7530  2335 = fc16c3580048add99056ee4d14105c93f0af63fb8ff6a78f3d66bf5d87c13cd3
a9a         123 24720  7841 = f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906
a9a.t       123 12435  3846 = 1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9
w1a         300  2405    72 ~ 0ae2b1c40f6a99061d1c6f4a1f3b50eea58a2f3b8bf851a337c25c2a65a49d32
w1a.t       300 45865  1407 ~ c5e489a499286d69c8c2035cb04bc48e2ea1f73e56153c72cc50b29732a9316a
w2a         300  3363   107 ~ 3f9536f675195eba4f0816a1f2fd45202414763ba29a8f715bd4993057ccfe71
w2a.t       300 44907  1372 ~ 727c87a869aa29a02a1cb77870087556a6399913510e6c3ed8f5be6e507a0f4d
w3a         300  4769   143 = f050c32d3bd2f18eccbe3847cfe8a3ba9dae4de67d73236013c4a7b9afb48cc7
w3a.t       300 43501  1336 = 623e195812435d3c54a0a87120ba9a927ed9771b1d29f9e35fdfa381416b2fb3
w4a         300  7150   216 = 36a72c5519d51f46302b4a0695ff1b8c6894e5fd3b586c72b1b10743372f1cd7
w4a.t       300 41120  1263 = 6a9d9cd379b55ff6714fb8aafb02a41f55aa651e483e86100025f980b292157c
w5a         300  9607   281 ~ 50599ff799c35726061b747912c106ee1b084280411c086f10e5adb3487c3993
w5a.t       300 38663  1198 ~ 6b1650f830ce8025c7566d788cc288693853521ffa890a53158ab81956c99f71
w6a         300 16663   525 = 0db197939896da01e6677f8dc39fe824dffcb75c185bd681bb870d33c93c8f82
w6a.t       300 31607   954 = 8dea4842824392911f095fbc8b5aa764bb173a12bdc43cc07283ba13854d72c6
w7a         300 23952   740 = bd02f445a1a2f4aaefd27d7dcc31f1f6a8521f904157f2ee7c96d1294cd26e36
w7a.t       300 24318   739 = a52edcfe9871e3b0db5d864959bf32230491ddfeca3334cfec93c1d932ea32b9
w8a         300 48270  1479 = 6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2
w8a.t       300 14497   454 = 618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde
mushrooms   112  3916  4208 = f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538
phishing     68  4898  6157 = 0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a
news20    62061  7951  7984 = 1d6eb77c42e1c78e86f36af834268de933da3607f38e3703aef15f7a9f11e506
farm-ads  54877  1933  2210 ~ 37581bf67dde093b466d917dc4ff53bd09191bf70c1c5239da4e4b5494918bfe
"""

#: Digits of each kind, and the files of images and labels with their digests.
_MNIST_PARTS = {
    "": (
        (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        """
train-images-idx3-ubyte ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db
train-labels-idx1-ubyte 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
""",
    ),
    ".t": (
        (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        """
t10k-images-idx3-ubyte 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7
t10k-labels-idx1-ubyte ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2
""",
    ),
}


class _Entry(NamedTuple):
    features: int
    negative: int
    positive: int
    published: bool
    sha256: str


def _entry(line: str) -> tuple[str, _Entry]:
    name, features, negative, positive, sign, sha256 = line.split()
    return name, _Entry(int(features), int(negative), int(positive), sign == "=", sha256)


_TABLE = dict(_entry(line) for line in _SETS.strip().splitlines())


def names() -> tuple[str, ...]:
    """Names of the sets, test sets (``.t``) beside their training sets, MNIST by pairs."""
    pairs = [name for name in TABLE_4 if name.startswith("mnist-")]
    return (*_TABLE, *(name + part for name in pairs for part in _MNIST_PARTS))


def load(name: str) -> tuple[Any, Any]:
    """X (CSR, MNIST dense) and labels -1, +1 of a set."""
    pair = re.fullmatch(r"mnist-([0-9])v([0-9])(|\.t)", name)
    if pair and pair[1] != pair[2]:
        return _mnist(int(pair[1]), int(pair[2]), pair[3])
    if name not in _TABLE:
        raise ValueError(f"no data set is named {name!r}: {', '.join(names())}")
    entry = _TABLE[name]
    url = f"{_LIBSVM}/binary/{name}"
    if name == "news20":
        url = f"{_LIBSVM}/multiclass/{name}.bz2"
    elif name == "farm-ads":
        url = _FARM_ADS
    text = _contents(f"libsvm/{name}", url, entry.sha256, published=entry.published)
    # n_features is given because several files stop short of their last column.
    X, labels = load_svmlight_file(io.BytesIO(text), n_features=entry.features, zero_based=False)
    X.sum_duplicates()
    X.eliminate_zeros()  # some copies pad rows with 123:0
    middle = 10.0 if name == "news20" else (np.min(labels) + np.max(labels)) / 2.0
    # scikit-learn indexes with int64; half of that is enough, and is what SciPy would choose.
    narrow = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    y = np.where(labels > middle, 1, -1)
    return _checked(name, sp.csr_matrix(narrow, shape=X.shape), y, entry)


def _mnist(positive: int, negative: int, part: str) -> tuple[Any, Any]:
    counts, files = _MNIST_PARTS[part]
    words = files.split()
    images, labels = (
        _contents(f"mnist/{file}", f"{_MNIST}/{file}.gz", sha256, published=True)
        for file, sha256 in zip(words[::2], words[1::2], strict=True)
    )
    digits = np.frombuffer(labels, np.uint8, offset=8)
    kept = np.isin(digits, (positive, negative))
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)[kept] / 255.0
    name = f"mnist-{positive}v{negative}{part}"
    entry = _Entry(784, counts[negative], counts[positive], True, "")
    return _checked(name, X, np.where(digits[kept] == positive, 1, -1), entry)


def _checked(name: str, X: Any, y: Any, entry: _Entry) -> tuple[Any, Any]:
    found = (X.shape[1], int((y < 0).sum()), int((y > 0).sum()))
    if found != entry[:3]:
        raise ValueError(f"{name}: found {found} features, labels -1 and +1, expected {entry[:3]}")
    return X, y


def _contents(path: str, url: str, sha256: str, *, published: bool) -> bytes:
    """The uncompressed contents of a file, from a folder or its source."""
    cache = Path(os.environ.get("DRLOGIT_CACHE") or "~/.cache/drlogit").expanduser()
    given = os.environ.get("DRLOGIT_DATA")
    folders = [Path(given).expanduser(), cache] if given else [cache]
    places = [folder / f"{path}{suffix}" for folder in folders for suffix in _OPEN]
    place = next((place for place in places if place.is_file()), None)
    if place is None:
        contents = _download(url, f"{path} is not in {' or '.join(map(str, folders))}")
        place = cache / path
    else:
        contents = _unpacked(place.read_bytes(), place.name)
    text = contents if path.startswith("mnist") else contents.replace(b"\r\n", b"\n")
    digest = hashlib.sha256(text).hexdigest()
    if published and digest != sha256:
        raise ValueError(f"{place} is damaged or another version: SHA-256 {digest}, not {sha256}")
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(contents)
    return contents


def _download(url: str, missing: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60.0) as answer:
            raw: bytes = answer.read()
    except OSError as error:
        raise FileNotFoundError(
            f"{missing} and could not be downloaded from {url} ({error}); set DRLOGIT_DATA to a "
            "folder that holds it"
        ) from error
    if url == _FARM_ADS:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return archive.read("farm-ads-vect")
    return _unpacked(raw, url)


def _unpacked(raw: bytes, name: str) -> bytes:
    unpack = _OPEN.get(Path(name).suffix)
    return unpack(raw) if unpack else raw


def synthetic(n_samples: int, n_features: int) -> str:
    """The name of the paper's synthetic data of a size."""
    return f"synthetic-{n_samples}x{n_features}"


def size_of(data: str) -> tuple[int, int]:
    """The size that a name of synthetic data stands for."""
    n_samples, n_features = data.removeprefix("synthetic-").split("x")
    return int(n_samples), int(n_features)


def title_of(data: str) -> str:
    """How tables and figures call a data set."""
    return "({}, {})".format(*size_of(data)) if data.startswith("synthetic-") else data


def as_in_the_paper(data: str, trial: int = 0) -> tuple[Any, Any]:
    """X and y in the paper's shape; ``trial`` seeds synthetic data and means nothing for others."""
    if data.startswith("synthetic-"):
        random = np.random.default_rng(trial)
        while True:  # again in the rare case that ten samples have one label only
            X, y = make_synthetic(*size_of(data), random)
            if np.unique(y).size == 2:
                return X, y
    X, y = load(data)
    if data.startswith("mnist-"):
        # The paper's tables count columns up to one past the last pixel ever used; the columns
        # beyond are zero and change nothing but the time.
        X = np.ascontiguousarray(X[:, : TABLE_4[data].n_features])
    return X, y
