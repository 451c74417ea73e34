"""The table of data sets: what each one must contain, and where it is published.

Everything :func:`drlogit.datasets.load` checks and :func:`info` reports comes from here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

#: How the contents are written; one reader each in :mod:`drlogit.datasets.formats`.
Format = Literal["libsvm", "mnist", "adult", "skin"]

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI = "https://archive.ics.uci.edu"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"


@dataclass(frozen=True)
class DataFile:
    """One file: its place in a data folder, and its public address.

    ``sha256`` is the digest of the uncompressed contents, line ends as LF unless ``binary``
    (UCI publishes some text with CR LF, and Windows checkouts add their own).  Where
    ``published`` is false the digest is that of a faithful rebuild of the public file, which
    may differ from it in spelling or in the order of its rows: other contents are then
    accepted if size and labels agree.
    """

    path: str
    sha256: str
    url: str
    member: str | None = None  # the file within a zip archive at ``url``
    published: bool = True
    binary: bool = False


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read.

    ``labels`` counts the samples with label -1 and +1; ``coding`` says which labels of the
    file became which.
    """

    name: str
    description: str
    source: str
    features: int
    labels: Mapping[int, int]
    files: tuple[DataFile, ...]
    format: Format
    coding: Mapping[int | str, int]

    @property
    def rows(self) -> int:
        """Number of samples."""
        return sum(self.labels.values())

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the uncompressed contents of each file."""
        return {file.path: file.sha256 for file in self.files}


@dataclass(frozen=True)
class _Family:
    """Data sets that differ in nothing but their rows; ``{}`` in the url is the set's name.

    A line of ``table``: name, features, samples labelled -1, samples labelled +1, digest.
    The sign before the digest is ``=`` for the published file and ``~`` for a rebuild.
    """

    description: str
    source: str
    url: str
    table: str
    format: Format = "libsvm"
    coding: Mapping[int | str, int] = field(default_factory=lambda: {-1: -1, 1: 1})
    paths: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)

    def entries(self) -> dict[str, DatasetInfo]:
        entries = {}
        for line in self.table.split("\n"):
            if not line.strip():
                continue
            name, features, negative, positive, sign, sha256 = line.split()
            file = DataFile(
                path=self.paths.get(name, f"libsvm/{name}"),
                sha256=sha256,
                url=self.url.format(name),
                member=self.members.get(name),
                published=sign == "=",
            )
            entries[name] = DatasetInfo(
                name=name,
                description=self.description,
                source=self.source,
                features=int(features),
                labels={-1: int(negative), 1: int(positive)},
                files=(file,),
                format=self.format,
                coding=self.coding,
            )
        return entries


_FAMILIES = (
    _Family(
        description=(
            "UCI Adult (income above 50 000 dollars: +1), discretised to binary features by "
            "Platt (1998). The sets a1a to a9a are nested, and the test set of each is what is "
            "left of a9a: test a model on the .t of its own training set, or on a9a.t."
        ),
        source=f"{_LIBSVM}/binary.html",
        url=f"{_LIBSVM}/binary/{{}}",
        table="""
            a1a   123  1210   395 = eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e
            a1a.t 123 23510  7446 = 0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d
            a2a   123  1693   572 ~ 535782f1be62e60938d8accb1573043542b3ac11265522927574dcbb28360a2f
            a2a.t 123 23027  7269 ~ 5b4cd01725b4c364acda943067b4b859a48f1b9c43207f828b8e15e1e0f09767
            a3a   123  2412   773 ~ 2d513572f103d25e84bebe4b9f2f52ee9445764b5a393caff7db9c482cfc1ee4
            a3a.t 123 22308  7068 ~ c46c9ea67e06f38e81d59c4883e3d670cbe55de6a5c32564b38fc89dcda3adac
            a4a   123  3593  1188 ~ 694d5abff492bdb8ce9749ddf3bf5af1c6f1f0ad6e3a0ae7818000d4d4c4847b
            a4a.t 123 21127  6653 ~ 23fef5e5ac0d1bc17a4ac55a16c03d361e41e890a83595a3e7da6eca9660e4bf
            a5a   123  4845  1569 = 5cb3a6603de0a0eb43afcdd45b1820c71ee7f20da1c09f054696bb71cbc45ad8
            a5a.t 123 19875  6272 = 9ddbc60c0a3c5a8249e51f663d7110c4050e40d67301640418e9f44186db1bd1
            a6a   123  8528  2692 ~ 6023becedbd392fdc6a62ad94b60c9363149370d4c57ef13949fcc765842a031
            a6a.t 123 16192  5149 ~ e3134665304b612ac013d4f541d9b0ff9bf96709c446352e4ad5c487c7c783ac
            a7a   123 12182  3918 = d383cf150d4d9f9097b91cc88022cd0ac473c3a72da3f33b4c17801a4bfccdc6
            a7a.t 123 12538  3923 = 9614161fbc7ac8ae52509d19ed0be987aef752d446838816af402fc36ffccce9
            a8a   123 17190  5506 = d08a37b3fadd4bd3c8b3fc30bdc93b54d7c0f371265c90cbfb931a7efe97cd28
            a8a.t 123  7530  2335 = fc16c3580048add99056ee4d14105c93f0af63fb8ff6a78f3d66bf5d87c13cd3
            a9a   123 24720  7841 = f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906
            a9a.t 123 12435  3846 = 1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9
        """,
    ),
    _Family(
        description=(
            "Web pages (Platt 1998): binary keyword features, 3 % of the labels +1, and about "
            "one page in twelve without any keyword. Nested like the sets a1a to a9a: test a "
            "model on the .t of its own training set, or on w8a.t."
        ),
        source=f"{_LIBSVM}/binary.html",
        url=f"{_LIBSVM}/binary/{{}}",
        table="""
            w1a   300  2405    72 ~ 0ae2b1c40f6a99061d1c6f4a1f3b50eea58a2f3b8bf851a337c25c2a65a49d32
            w1a.t 300 45865  1407 ~ c5e489a499286d69c8c2035cb04bc48e2ea1f73e56153c72cc50b29732a9316a
            w2a   300  3363   107 ~ 3f9536f675195eba4f0816a1f2fd45202414763ba29a8f715bd4993057ccfe71
            w2a.t 300 44907  1372 ~ 727c87a869aa29a02a1cb77870087556a6399913510e6c3ed8f5be6e507a0f4d
            w3a   300  4769   143 = f050c32d3bd2f18eccbe3847cfe8a3ba9dae4de67d73236013c4a7b9afb48cc7
            w3a.t 300 43501  1336 = 623e195812435d3c54a0a87120ba9a927ed9771b1d29f9e35fdfa381416b2fb3
            w4a   300  7150   216 = 36a72c5519d51f46302b4a0695ff1b8c6894e5fd3b586c72b1b10743372f1cd7
            w4a.t 300 41120  1263 = 6a9d9cd379b55ff6714fb8aafb02a41f55aa651e483e86100025f980b292157c
            w5a   300  9607   281 ~ 50599ff799c35726061b747912c106ee1b084280411c086f10e5adb3487c3993
            w5a.t 300 38663  1198 ~ 6b1650f830ce8025c7566d788cc288693853521ffa890a53158ab81956c99f71
            w6a   300 16663   525 = 0db197939896da01e6677f8dc39fe824dffcb75c185bd681bb870d33c93c8f82
            w6a.t 300 31607   954 = 8dea4842824392911f095fbc8b5aa764bb173a12bdc43cc07283ba13854d72c6
            w7a   300 23952   740 = bd02f445a1a2f4aaefd27d7dcc31f1f6a8521f904157f2ee7c96d1294cd26e36
            w7a.t 300 24318   739 = a52edcfe9871e3b0db5d864959bf32230491ddfeca3334cfec93c1d932ea32b9
            w8a   300 48270  1479 = 6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2
            w8a.t 300 14497   454 = 618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde
        """,
    ),
    _Family(
        description="UCI Mushroom, one-hot coded: edible (2 in the file) is +1, poisonous -1.",
        source=f"{_LIBSVM}/binary.html",
        url=f"{_LIBSVM}/binary/{{}}",
        coding={1: -1, 2: 1},
        table="""
        mushrooms 112 3916 4208 = f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538
        """,
    ),
    _Family(
        description=(
            "UCI Phishing Websites, one-hot coded and each row scaled to unit length: label 1 of "
            "the file is +1, label 0 is -1."
        ),
        source=f"{_LIBSVM}/binary.html",
        url=f"{_LIBSVM}/binary/{{}}",
        coding={0: -1, 1: 1},
        table="""
        phishing 68 4898 6157 = 0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a
        """,
    ),
    _Family(
        description=(
            "Word counts of 20 newsgroups, unscaled: groups 1 to 10 are -1, 11 to 20 are +1 "
            "(original_target holds the group)."
        ),
        source=f"{_LIBSVM}/multiclass.html",
        url=f"{_LIBSVM}/multiclass/{{}}.bz2",
        coding={group: -1 if group <= 10 else 1 for group in range(1, 21)},
        table="""
        news20 62061 7951 7984 = 1d6eb77c42e1c78e86f36af834268de933da3607f38e3703aef15f7a9f11e506
        """,
    ),
    _Family(
        description=(
            "UCI Farm Ads: words of advertisements and of the pages they lead to, binary, and "
            "whether the content owner approved (+1) or not."
        ),
        source=f"{_UCI}/dataset/218/farm+ads",
        url=f"{_UCI}/static/public/218/farm+ads.zip",
        members={"farm-ads": "farm-ads-vect"},
        table="""
        farm-ads 54877 1933 2210 ~ 37581bf67dde093b466d917dc4ff53bd09191bf70c1c5239da4e4b5494918bfe
        """,
    ),
    _Family(
        description=(
            "UCI Adult as published, incomes above 50 000 dollars +1: continuous attributes "
            "unscaled, categorical ones one-hot coded (one_hot marks these columns: candidates "
            "for an infinite feature cost), a missing category all zeros."
        ),
        source=f"{_UCI}/dataset/2/adult",
        url=f"{_UCI}/static/public/2/adult.zip",
        format="adult",
        coding={"<=50K": -1, ">50K": 1},
        paths={"adult": "uci/adult.data", "adult.t": "uci/adult.test"},
        members={"adult": "adult.data", "adult.t": "adult.test"},
        table="""
        adult   105 24720 7841 = 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d
        adult.t 105 12435 3846 = a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05
        """,
    ),
    _Family(
        description="UCI Skin Segmentation: colours of pixels in 0 to 255, skin +1, other -1.",
        source=f"{_UCI}/dataset/229/skin+segmentation",
        url=f"{_UCI}/static/public/229/skin+segmentation.zip",
        format="skin",
        coding={1: 1, 2: -1},
        paths={"skin": "uci/Skin_NonSkin.txt"},
        members={"skin": "Skin_NonSkin.txt"},
        table="""
        skin 3 194198 50859 = 008f1fb6a169498dec54fb5951be6478e5465942cc4f6df3b5dabbe484c9a98f
        """,
    ),
)

#: Pairs of MNIST digits in the paper's tables; any other pair loads as well.
_PAPER_PAIRS = ((0, 3), (0, 4), (0, 6), (2, 3), (2, 5), (5, 8), (5, 9), (6, 9))

#: Part of MNIST: how often each digit occurs, and its files of images and labels.
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


def _mnist(positive: int, negative: int, part: str) -> DatasetInfo:
    """The entry of one pair of digits; ``part`` is "" for training and ".t" for test."""
    counts, files = _MNIST_PARTS[part]
    words = files.split()
    return DatasetInfo(
        name=f"mnist-{positive}v{negative}{part}",
        description=(
            f"MNIST digits {positive} (+1) against {negative} (-1): 28 by 28 grey values, row by "
            "row, divided by 255."
        ),
        source=_MNIST,
        features=784,
        labels={-1: counts[negative], 1: counts[positive]},
        files=tuple(
            DataFile(f"mnist/{name}", sha256, f"{_MNIST}/{name}.gz", binary=True)
            for name, sha256 in zip(words[::2], words[1::2], strict=True)
        ),
        format="mnist",
        coding={negative: -1, positive: 1},
    )


def _table() -> dict[str, DatasetInfo]:
    table: dict[str, DatasetInfo] = {}
    for family in _FAMILIES:
        table |= family.entries()
    for positive, negative in _PAPER_PAIRS:
        for part in _MNIST_PARTS:
            entry = _mnist(positive, negative, part)
            table[entry.name] = entry
    return table


_TABLE = _table()


def names() -> tuple[str, ...]:
    """Names of the data sets, test sets (``.t``) beside their training sets.

    MNIST is listed by the pairs of digits in the paper; ``mnist-AvB`` loads for any two.
    """
    return tuple(_TABLE)


def info(name: str) -> DatasetInfo:
    """Size, label counts, public source and digests of a data set, without reading it."""
    if name in _TABLE:
        return _TABLE[name]
    pair = re.fullmatch(r"mnist-([0-9])v([0-9])(|\.t)", str(name))
    if pair and pair[1] != pair[2]:
        return _mnist(int(pair[1]), int(pair[2]), pair[3])
    close = difflib.get_close_matches(str(name), _TABLE, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(
        f"unknown data set {name!r}; {hint}"
        "drlogit.datasets.names() lists them, and mnist-AvB takes any two distinct digits"
    )
