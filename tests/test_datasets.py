"""Data sets: the generator, the table, finding, downloading, checking and reading files."""

from __future__ import annotations

import bz2
import functools
import gzip
import hashlib
import http.server
import io
import lzma
import os
import socket
import sys
import threading
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from drlogit import datasets
from drlogit.datasets import DataFile, DatasetInfo, catalogue, formats, storage

needs_data = pytest.mark.skipif(
    not os.environ.get("DRLOGIT_DATA"),
    reason="DRLOGIT_DATA is not set: it names a folder with the real data sets",
)

TINY = b"+1 1:1 3:0.5 \n-1 2:1 \n-1 \n"
LIBSVM_NAMES = [name for name in datasets.names() if datasets.info(name).format == "libsvm"]


# --- the generator of the paper ------------------------------------------------------------


def test_synthetic_is_the_papers_recipe():
    X, y = datasets.make_synthetic(50, 7, random_state=3)
    rng = np.random.default_rng(3)
    beta = rng.normal(size=7)
    features = rng.normal(size=(50, 7))
    z = rng.uniform(size=50)
    probability = 1 / (1 + np.exp(-features @ beta / np.sqrt((beta**2).sum())))
    np.testing.assert_array_equal(X, features)
    np.testing.assert_array_equal(y, 2 * (z < probability).astype(int) - 1)


def test_synthetic_types_and_seeds():
    X, y = datasets.make_synthetic(np.int64(20), 3, random_state=np.int32(0))
    assert X.shape == (20, 3)
    assert X.dtype == np.float64
    assert y.shape == (20,)
    assert y.dtype == np.int64
    assert set(y) == {-1, 1}
    again, labels = datasets.make_synthetic(20, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(X, datasets.make_synthetic(20, 3, 1)[0])
    assert not np.array_equal(X, datasets.make_synthetic(20, 3)[0])
    rng = np.random.default_rng(0)
    first, second = (datasets.make_synthetic(20, 3, rng)[0] for _ in range(2))
    assert not np.array_equal(first, second)


def test_synthetic_labels_follow_a_unit_coefficient():
    X, y = datasets.make_synthetic(200_000, 4, random_state=0)
    # For x ~ N(0, I) and a unit β, E[y x] = β E[expit'(g)] 2 = 0.4132 β, with g ~ N(0, 1).
    assert np.linalg.norm(y @ X / y.size) == pytest.approx(0.4132, abs=0.01)
    assert abs(y.mean()) < 0.01


@pytest.mark.parametrize("size", [0, -1, 2.0, "3", None, True])
def test_synthetic_refuses_sizes(size):
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1, got"):
        datasets.make_synthetic(size, 2)
    with pytest.raises(ValueError, match="n_features must be an integer >= 1, got"):
        datasets.make_synthetic(2, size)


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True])
def test_synthetic_refuses_seeds(seed):
    with pytest.raises(ValueError, match=r"random_state must be .* got"):
        datasets.make_synthetic(2, 2, random_state=seed)


# --- the table -----------------------------------------------------------------------------


def test_names_are_the_sets_of_the_paper():
    names = datasets.names()
    wanted = [f"{family}{k}a" for family, last in (("a", 9), ("w", 8)) for k in range(1, last + 1)]
    wanted += ["adult", "mnist-0v3", "mnist-0v4", "mnist-0v6", "mnist-2v3", "mnist-2v5"]
    wanted += ["mnist-5v8", "mnist-5v9", "mnist-6v9"]
    wanted += [f"{name}.t" for name in wanted]
    wanted += ["mushrooms", "phishing", "news20", "farm-ads", "skin"]
    assert sorted(names) == sorted(wanted)


@pytest.mark.parametrize("name", datasets.names())
def test_entries_are_complete(name):
    entry = datasets.info(name)
    assert entry.name == name
    assert entry.description
    assert entry.features > 0
    assert set(entry.labels) == {-1, 1}
    assert min(entry.labels.values()) > 0
    assert entry.rows == sum(entry.labels.values())
    assert set(entry.coding.values()) == {-1, 1}
    assert entry.source.startswith("https://")
    assert list(entry.digests) == [file.path for file in entry.files]
    for file in entry.files:
        assert file.url.startswith("https://")
        assert len(file.sha256) == 64
        assert set(file.sha256) <= set("0123456789abcdef")


def test_no_two_files_share_path_or_digest():
    files = {file for name in datasets.names() for file in datasets.info(name).files}
    assert len({file.path for file in files}) == len({file.sha256 for file in files}) == len(files)


@pytest.mark.parametrize(
    ("family", "pool"), [(f"a{k}a", "a9a") for k in range(1, 9)] + [("w3a", "w8a"), ("w7a", "w8a")]
)
def test_training_and_test_sets_make_up_the_pool(family, pool):
    train, test = datasets.info(family).labels, datasets.info(f"{family}.t").labels
    assert {sign: train[sign] + test[sign] for sign in (-1, 1)} == datasets.info(pool).labels


@pytest.mark.parametrize(("name", "rows"), [("mnist-0v3", 12054), ("mnist-5v9.t", 1901)])
def test_mnist_pairs(name, rows):
    assert datasets.info(name).rows == rows


def test_any_two_digits_are_a_data_set():
    forward, backward = datasets.info("mnist-7v1"), datasets.info("mnist-1v7")
    assert forward.labels == {-1: 6742, 1: 6265} == {-1: backward.labels[1], 1: backward.labels[-1]}
    assert forward.coding == {7: 1, 1: -1}


@pytest.mark.parametrize("name", ["mnist-3v3", "mnist-3v", "mnist-10v2", "a10a", "", None, 3])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="unknown data set"):
        datasets.info(name)
    with pytest.raises(ValueError, match="unknown data set"):
        datasets.load(name)


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ValueError, match="did you mean 'mushrooms'"):
        datasets.info("mushroom")


# --- finding and downloading files ---------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and neither a data folder nor anything of the user's in sight."""
    monkeypatch.delenv("DRLOGIT_DATA", raising=False)
    monkeypatch.setenv("DRLOGIT_CACHE", str(tmp_path / "cache"))
    for name in ("NO_PROXY", "no_proxy"):  # the second goes first
        monkeypatch.setenv(name, "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def server(tmp_path):
    """A folder, and the address at which it is served on this machine."""
    folder = tmp_path / "public"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def register(monkeypatch):
    """Put a small data set into the table: 3 rows, 4 features, one label +1."""

    def put(url="http://127.0.0.1:9/tiny", contents=TINY, **options):
        sha256 = hashlib.sha256(contents).hexdigest()
        entry = DatasetInfo(
            name="tiny",
            description="Three samples.",
            source="nowhere",
            features=4,
            labels={-1: 2, 1: 1},
            files=(DataFile("libsvm/tiny", sha256, url, **options),),
            format="libsvm",
            coding={-1: -1, 1: 1},
        )
        monkeypatch.setitem(catalogue._TABLE, "tiny", entry)

    put()
    return put


def place(folder: Path, contents: bytes, suffix: str = "") -> Path:
    path = folder / "libsvm" / f"tiny{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    return path


def test_load_returns_a_bunch(cache, register):
    path = place(cache, TINY)
    bunch = datasets.load("tiny")
    assert sp.issparse(bunch.data)
    assert bunch.data.format == "csr"
    assert bunch.data.indices.dtype == bunch.data.indptr.dtype == np.int32
    assert bunch.data.dtype == np.float64
    assert bunch.data.has_canonical_format
    np.testing.assert_array_equal(
        bunch.data.toarray(), [[1, 0, 0.5, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(bunch.target, [1, -1, -1])
    assert bunch.target.dtype == np.int64
    assert bunch.name == "tiny"
    assert bunch.feature_names is None
    assert bunch.verified is True
    assert bunch.paths == [path]
    assert "Three samples." in bunch.DESCR
    assert "2 labelled -1" in bunch.DESCR
    X, y = datasets.load("tiny", return_X_y=True)
    np.testing.assert_array_equal(X.toarray(), bunch.data.toarray())
    np.testing.assert_array_equal(y, bunch.target)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".bz2", bz2.compress), (".gz", gzip.compress), (".xz", lzma.compress)],
)
def test_compressed_or_not(cache, register, suffix, compress):
    path = place(cache, compress(TINY), suffix)
    assert datasets.load("tiny", download=False).paths == [path]


def test_where_files_are_looked_for(cache, register, tmp_path, monkeypatch):
    in_cache, in_home = place(cache, TINY), place(tmp_path / "home", TINY)
    in_data = place(tmp_path / "data", TINY)
    assert datasets.load("tiny").paths == [in_cache]
    assert datasets.load("tiny", data_home=tmp_path / "home").paths == [in_home]
    monkeypatch.setenv("DRLOGIT_DATA", str(tmp_path / "nothing here"))
    assert datasets.load("tiny").paths == [in_cache]
    monkeypatch.setenv("DRLOGIT_DATA", str(tmp_path / "data"))
    assert datasets.load("tiny").paths == [in_data]
    assert datasets.load("tiny", data_home=tmp_path / "home").paths == [in_data]


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("DRLOGIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert storage.cache_folder() == tmp_path / "drlogit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert storage.cache_folder() == Path.home() / ".cache" / "drlogit"
    monkeypatch.setenv("DRLOGIT_CACHE", "~/elsewhere")
    assert storage.cache_folder() == Path.home() / "elsewhere"
    assert storage.cache_folder("~/here") == Path.home() / "here"


def test_download_is_kept(cache, register, server):
    folder, address = server
    (folder / "tiny.bz2").write_bytes(bz2.compress(TINY))
    register(f"{address}/tiny.bz2")
    bunch = datasets.load("tiny")
    kept = cache / "libsvm" / "tiny"
    assert bunch.verified
    assert bunch.paths == [kept]
    assert kept.read_bytes() == TINY
    assert [path.name for path in kept.parent.iterdir()] == ["tiny"]
    (folder / "tiny.bz2").unlink()
    assert datasets.load("tiny").paths == [kept]


def test_download_goes_to_data_home_and_leaves_the_data_folder_alone(
    cache, register, server, tmp_path, monkeypatch
):
    folder, address = server
    (folder / "tiny").write_bytes(TINY)
    register(f"{address}/tiny")
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DRLOGIT_DATA", str(tmp_path / "data"))
    datasets.load("tiny", data_home=str(tmp_path / "home"))
    assert (tmp_path / "home" / "libsvm" / "tiny").read_bytes() == TINY
    assert not cache.exists()
    assert not list((tmp_path / "data").iterdir())


def test_download_of_a_zip_archive(cache, register, server):
    folder, address = server
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr("tiny-vect", TINY)
    register(f"{address}/all.zip", member="tiny-vect")
    assert datasets.load("tiny").verified
    (cache / "libsvm" / "tiny").unlink()
    register(f"{address}/all.zip", member="other")
    with pytest.raises(ValueError, match=r"all\.zip has no member 'other'"):
        datasets.load("tiny")


@pytest.mark.parametrize(
    ("contents", "published", "message"),
    [
        (TINY.replace(b"0.5", b"0.4"), True, "damaged or another version: the SHA-256"),
        (TINY[:14], False, "cannot be tiny: found 1 rows of 4 features, expected 3 of 4"),
        (TINY.replace(b"+", b"-"), False, "found 3 samples labelled -1 and 0 labelled .1"),
        (b"<html>please log in</html>\n", False, "found something other than LIBSVM text"),
    ],
)
def test_bad_download_is_not_kept(cache, register, server, contents, published, message):
    folder, address = server
    (folder / "tiny").write_bytes(contents)
    register(f"{address}/tiny", published=published)
    with pytest.raises(ValueError, match=message) as caught:
        datasets.load("tiny")
    assert f"{address}/tiny" in str(caught.value)
    assert not cache.exists()


def test_rebuilt_sets_accept_the_published_spelling(cache, register):
    place(cache, b"-1 2:1\n-1\n+1 1:1.0 3:0.5\n")
    register(published=False)
    bunch = datasets.load("tiny")
    assert bunch.verified is False
    np.testing.assert_array_equal(bunch.target, [-1, -1, 1])


def test_line_ends_do_not_matter(cache, register):
    place(cache, TINY.replace(b"\n", b"\r\n"))
    assert datasets.load("tiny").verified


def test_nothing_found_and_no_download(cache, register, tmp_path, monkeypatch):
    monkeypatch.setenv("DRLOGIT_DATA", str(tmp_path / "data"))
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("tiny", download=False)
    message = str(caught.value)
    assert "libsvm/tiny is not in" in message
    assert "\n" not in message
    assert f"{tmp_path / 'data'} (DRLOGIT_DATA)" in message
    assert f"{cache} (cache)" in message
    assert "set DRLOGIT_DATA to a folder that holds" in message
    assert "download=False" in message


def test_offline(cache, register):
    with socket.socket() as unused:  # bound, not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/tiny"
        register(url)
        with pytest.raises(FileNotFoundError) as caught:
            datasets.load("tiny")
    message = str(caught.value)
    assert f"could not be downloaded from {url} (ConnectionError)" in message
    assert str(cache) in message
    assert "set DRLOGIT_DATA" in message
    assert "\n" not in message
    assert not cache.exists()


def test_gone_from_its_source(cache, register, server):
    register(f"{server[1]}/tiny")
    with pytest.raises(FileNotFoundError, match=r"\(HTTP status 404\)"):
        datasets.load("tiny")


def test_without_pooch(cache, register, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="pip install pooch") as caught:
        datasets.load("tiny")
    assert "libsvm/tiny" in str(caught.value)
    assert "DRLOGIT_DATA" in str(caught.value)
    place(cache, TINY)
    assert datasets.load("tiny").verified


def test_interrupted_write_leaves_nothing(cache, register, server, monkeypatch):
    folder, address = server
    (folder / "tiny").write_bytes(TINY)
    register(f"{address}/tiny")

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage.os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            datasets.load("tiny")
    assert list((cache / "libsvm").iterdir()) == []
    assert datasets.load("tiny").verified


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".bz2", bz2.compress), (".gz", gzip.compress), (".xz", lzma.compress)],
)
@pytest.mark.parametrize("published", [True, False])
def test_damaged_files(cache, register, suffix, compress, published):
    register(published=published)
    packed = compress(TINY)
    middle = len(packed) // 2
    changed = packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :]
    for contents in (packed[:-9], packed[:5], b"", b"other", changed):
        path = place(cache, contents, suffix)
        with pytest.raises(ValueError, match=r"tiny\.(bz2|gz|xz) (is damaged|cannot be tiny)"):
            datasets.load("tiny")
        path.unlink()


# --- reading -------------------------------------------------------------------------------


def entry_like(name: str, rows: tuple[int, int], features: int) -> DatasetInfo:
    known = datasets.info(name)
    return DatasetInfo(
        name=name,
        description="",
        source="",
        features=features,
        labels={-1: rows[0], 1: rows[1]},
        files=(),
        format=known.format,
        coding=known.coding,
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\n",
        b"1 1\n",
        b"1 0:1\n",
        b"1 5:1\n",
        b"1 99999999999:1\n",
        b"1 2:1 1:1\n",
        b"1 1:nan\n",
        b"1.5 1:1\n",
        b"nan 1:1\n",
        b"3 1:1\n",
        b"1 1:1\n1 1:1\n",
    ],
)
def test_libsvm_text_that_is_not(text):
    with pytest.raises(ValueError, match="found"):
        formats.read(entry_like("a1a", (0, 1), 4), [text])


def test_libsvm_padding_is_dropped():
    table, _ = formats.read(entry_like("a1a", (1, 1), 4), [b"+1 1:1 4:0\n-1 2:1\n"])
    assert table.X.nnz == 2
    assert table.X.shape == (2, 4)


def test_multiclass_is_made_binary():
    text = b"".join(b"%d 1:1\n" % group for group in range(20, 0, -1))
    table, y = formats.read(entry_like("news20", (10, 10), 1), [text])
    np.testing.assert_array_equal(table.labels, np.arange(20, 0, -1))
    np.testing.assert_array_equal(y, [1] * 10 + [-1] * 10)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def test_mnist_pair():
    images = np.random.default_rng(0).integers(0, 256, (6, 28, 28))
    digits = np.array([3, 0, 5, 3, 3, 0])
    table, y = formats.read(entry_like("mnist-0v3", (3, 2), 784), [idx(images), idx(digits)])
    np.testing.assert_array_equal(table.X, images[digits != 5].reshape(-1, 784) / 255)
    np.testing.assert_array_equal(y, [-1, 1, -1, -1, 1])
    np.testing.assert_array_equal(table.labels, [3, 0, 3, 3, 0])
    assert table.X.dtype == np.float64
    assert table.feature_names[:2] == ["pixel_0_0", "pixel_0_1"]
    assert len(table.feature_names) == 784


def test_mnist_files_that_are_not():
    images, digits = idx(np.zeros((2, 28, 28))), idx(np.array([0, 3]))
    entry = entry_like("mnist-0v3", (1, 1), 784)
    formats.read(entry, [images, digits])
    for bad in ([images[:-1], digits], [digits, images], [images, idx(np.zeros(3))]):
        with pytest.raises(ValueError, match="found"):
            formats.read(entry, bad)
    for cut in range(8):
        with pytest.raises(ValueError, match="found"):
            formats.read(entry, [images, digits[:cut]])


ADULT = b"""|1x3 Cross validator
39, ?, 77516, Bachelors, 13, Divorced, Sales, Wife, White, Female, 2174, 0, 40, Cuba, <=50K.
50, Private, 8, Masters, 14, Widowed, ?, Husband, Black, Male, 0, 1, 13, ?, >50K.

"""


def test_adult():
    table, y = formats.read(entry_like("adult", (1, 1), 105), [ADULT])
    np.testing.assert_array_equal(y, [-1, 1])
    assert list(table.labels) == ["<=50K", ">50K"]
    rows = [
        {name: value for name, value in zip(table.feature_names, row, strict=True) if value}
        for row in table.X
    ]
    assert rows[0] == {
        "age": 39,
        "fnlwgt": 77516,
        "education-num": 13,
        "capital-gain": 2174,
        "hours-per-week": 40,
        "education=Bachelors": 1,
        "marital-status=Divorced": 1,
        "occupation=Sales": 1,
        "relationship=Wife": 1,
        "race=White": 1,
        "sex=Female": 1,
        "native-country=Cuba": 1,
    }
    assert rows[1] == {
        "age": 50,
        "workclass=Private": 1,
        "fnlwgt": 8,
        "education=Masters": 1,
        "education-num": 14,
        "marital-status=Widowed": 1,
        "relationship=Husband": 1,
        "race=Black": 1,
        "sex=Male": 1,
        "capital-loss": 1,
        "hours-per-week": 13,
    }
    one_hot = table.extra["one_hot"]
    assert one_hot.dtype == bool
    assert [("=" in name) for name in table.feature_names] == one_hot.tolist()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"Sales", b"Sailor", "found occupation 'Sailor'"),
        (b", Wife", b"", "found a row of 14 fields, expected 15"),
        (b"39", b"old", "could not convert string to float: 'old'"),
        (b">50K", b"rich", "found the label 'rich'"),
    ],
)
def test_adult_that_is_not(old, new, message):
    with pytest.raises(ValueError, match=message):
        formats.read(entry_like("adult", (1, 1), 105), [ADULT.replace(old, new)])


def test_skin():
    table, y = formats.read(
        entry_like("skin", (1, 2), 3), [b"1\t2\t3\t1\n4\t5\t6\t2\n7\t8\t9\t1\n"]
    )
    np.testing.assert_array_equal(table.X, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    np.testing.assert_array_equal(y, [1, -1, 1])
    assert table.X.dtype == np.float64
    assert table.feature_names == ["blue", "green", "red"]
    for bad in (b"", b"1 2 3\n", b"1 2 3 1\n4 5\n", b"1 2 x 1\n", b"1 2 3 1\n"):
        with pytest.raises(ValueError, match=r"found|columns changed|could not convert"):
            formats.read(entry_like("skin", (1, 2), 3), [bad])


# --- the real data -------------------------------------------------------------------------


@pytest.fixture
def real(tmp_path, monkeypatch):
    """The data folder of the environment, with an empty cache behind it."""
    monkeypatch.setenv("DRLOGIT_CACHE", str(tmp_path))
    return functools.partial(datasets.load, download=False)


@needs_data
@pytest.mark.parametrize("name", LIBSVM_NAMES)
def test_table_agrees_with_the_text(name, tmp_path):
    entry = datasets.info(name)
    copy = storage.obtain(entry.files[0], tmp_path, download=False)
    assert copy.verified
    counts = {-1: 0, 1: 0}
    for label, count in Counter(x.split(None, 1)[0] for x in io.BytesIO(copy.contents)).items():
        counts[entry.coding[int(label)]] += count
    assert counts == entry.labels


@needs_data
@pytest.mark.parametrize(
    ("name", "density", "zero_rows"),
    [
        ("a1a", 0.1127, 0),
        ("a4a", 0.1127, 0),
        ("a9a", 0.1128, 0),
        ("w1a", 0.0382, 207),
        ("w2a", 0.0388, 286),
        ("w8a", 0.0388, 4203),
        ("mushrooms", 0.1875, 0),
        ("phishing", 0.4412, 0),
        ("farm-ads", 0.0036, 0),
    ],
)
def test_sparse_sets(real, name, density, zero_rows):
    bunch = real(name)
    X = bunch.data
    assert bunch.verified
    assert X.has_canonical_format
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.dtype == np.float64
    assert round(X.nnz / np.prod(X.shape), 4) == density
    assert np.count_nonzero(np.diff(X.indptr) == 0) == zero_rows
    assert set(bunch.target) == {-1, 1}


@needs_data
@pytest.mark.parametrize(
    ("name", "digits", "columns", "last"),
    [("mnist-0v3", (0, 3), 625, 751), ("mnist-9v6", (9, 6), 658, 779)],
)
def test_mnist_sets(real, name, digits, columns, last):
    bunch = real(name)
    used = np.flatnonzero(bunch.data.any(axis=0))
    assert (used.size, used[-1] + 1) == (columns, last)
    assert bunch.verified
    assert bunch.data.min() == 0.0
    assert bunch.data.max() == 1.0
    np.testing.assert_array_equal(bunch.original_target, np.where(bunch.target == 1, *digits))
    test = real(f"{name}.t")
    assert test.verified
    assert test.data.shape == (datasets.info(f"{name}.t").rows, 784)


@needs_data
def test_adult_sets(real):
    train, test = real("adult"), real("adult.t")
    assert train.verified
    assert test.verified
    assert train.feature_names == test.feature_names
    for bunch, incomplete in ((train, 2399), (test, 1221)):
        held = bunch.data[:, bunch.one_hot]
        assert set(np.unique(held)) == {0.0, 1.0}
        assert np.count_nonzero(held.sum(axis=1) < 8) == incomplete
    assert train.data[:, 0].min() == 17
    assert train.data[:, 0].max() == 90
    # The LIBSVM sets are made from these rows, in this order.
    np.testing.assert_array_equal(train.target, real("a9a").target)
    np.testing.assert_array_equal(test.target, real("a9a.t").target)


@needs_data
def test_skin_set(real):
    bunch = real("skin")
    assert bunch.verified
    assert bunch.data.shape == (245057, 3)
    assert bunch.data.min() == 0
    assert bunch.data.max() == 255
    assert np.count_nonzero(bunch.target == 1) == 50859


@needs_data
def test_news20_keeps_its_groups(real):
    bunch = real("news20")
    assert bunch.verified
    assert bunch.data.shape == (15935, 62061)
    assert bunch.data.nnz == 1272569
    assert set(bunch.original_target) == set(range(1, 21))
    np.testing.assert_array_equal(bunch.target, np.where(bunch.original_target <= 10, -1, 1))
