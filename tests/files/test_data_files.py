"""Reading samples from files of every format, and what is said about those that are not right."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from drlogit.files.columns import Wanted
from drlogit.files.reading import read_samples

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

X = np.array([[1.0, 2.5, 0.0], [0.0, -3.0, 4.0], [0.5, 0.0, 1e-3], [7.0, 1.0, 0.0]])
LABELS = ["no", "yes", "yes", "no"]
CODES = [-1, 1, 1, -1]
CSV = "a,b,c,target\n1,2.5,0,no\n0,-3,4,yes\n0.5,0,1e-3,yes\n7,1,0,no\n"
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(path, contents):
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return path


def svmlight(zero_based=False):
    buffer = io.BytesIO()
    dump_svmlight_file(X, CODES, buffer, zero_based=zero_based)
    return buffer.getvalue()


def parquet(**columns):
    buffer = io.BytesIO()
    table = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "c": X[:, 2], "y": LABELS, **columns}
    pq.write_table(pa.table({k: v for k, v in table.items() if v is not None}), buffer)
    return buffer.getvalue()


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)


# --- the same samples in every form ---------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["data.csv", "data.txt", "data.svm", "data"])
def test_text_compressed_or_not(name, suffix, tmp_path):
    text = CSV.encode() if name in ("data.csv", "data.txt") else svmlight()
    samples = read_samples(write(tmp_path / f"{name}{suffix}", PACK[suffix](text)), Wanted())
    assert np.array_equal(dense(samples.X), X)
    assert samples.labels.tolist() in (LABELS, CODES)
    assert samples.labels.dtype.kind in "iU"
    assert samples.names in (["a", "b", "c"], ["1", "2", "3"])


@pytest.mark.parametrize(
    ("contents", "labels"),
    [
        (parquet(), LABELS),
        (parquet(a=pa.array([1.0, 0.0, 0.5, 7.0]).cast(pa.decimal128(5, 2))), LABELS),
        (parquet(y=[False, True, True, False]), [False, True, True, False]),
        (parquet(y=pa.array(LABELS).dictionary_encode()), LABELS),
    ],
)
def test_binary_files_by_how_they_begin(contents, labels, tmp_path):
    samples = read_samples(write(tmp_path / "data", contents), Wanted())
    assert np.asarray(samples.X).dtype.kind == "f"
    assert np.allclose(samples.X, X, rtol=1e-7)
    assert samples.labels.tolist() == labels


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (CSV.replace(",", ";"), {}),
        (CSV.replace(",", "\t"), {}),
        (CSV.replace(",", "|"), {}),
        (CSV.replace(",", " , "), {}),
        (CSV.replace("\n", "\r\n"), {}),
        ("\ufeff" + CSV, {}),
        (CSV.replace("no", '"no"').replace("a,", '"a",'), {}),
        (CSV.replace("target", "Label"), {}),
        (CSV.replace("target", "outcome"), {}),  # the last
        (CSV.replace("yes\n", "yes\n\n"), {}),
        ("\n".join(line for line in CSV.split("\n")[1:]), {}),  # no header, text labels
        (CSV, {"target": "-1"}),
        (CSV, {"target": "3"}),
        (CSV, {"features": ("a", "b", "c")}),
        ("name," + CSV.replace("\n", "\nAnn,")[:-4], {"drop": ("name",)}),
    ],
)
def test_csv_variants(text, options, tmp_path):
    samples = read_samples(write(tmp_path / "data.csv", text), Wanted(**options))
    assert np.array_equal(samples.X, X)
    assert samples.labels.tolist() == LABELS


@pytest.mark.parametrize("header", [True, False])
def test_headers_can_be_forced(header, tmp_path):
    path = write(tmp_path / "data.csv", "1,2,0\n3,4,1\n5,6,0\n")
    samples = read_samples(path, Wanted(header=header))
    assert samples.X.shape == ((2, 2) if header else (3, 2))
    assert samples.feature_names == (["1", "2"] if header else None)


# --- columns and labels ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("data.csv", CSV.replace("target", "y")),
        ("data.parquet", parquet()),
    ],
)
def test_columns_are_chosen_by_name(name, contents, tmp_path):
    path = write(tmp_path / name, contents)
    chosen = read_samples(path, Wanted(features=("c", "a")))
    assert np.array_equal(chosen.X, X[:, [2, 0]])
    assert chosen.feature_names == ["c", "a"]
    rest = read_samples(path, Wanted(drop=("b",), weights="a"))
    assert np.array_equal(rest.X, X[:, [2]])
    assert np.array_equal(rest.weights, X[:, 0])


def test_svmlight_columns_go_by_their_numbers(tmp_path):
    path = write(tmp_path / "data.svm", svmlight())
    assert read_samples(path, Wanted()).names == ["1", "2", "3"]
    assert read_samples(path, Wanted(n_features=5)).X.shape == (4, 5)
    from_zero = write(tmp_path / "zero.svm", svmlight(zero_based=True))
    assert np.array_equal(read_samples(from_zero, Wanted(zero_based=True)).X.toarray(), X)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("n_columns", [3, 4])
def test_files_without_names_are_taken_by_position(labels, n_columns, tmp_path):
    """Who predicts may have the labels in the file or not."""
    lines = [line.split(",")[:n_columns] for line in CSV.split()[1:]]
    path = write(tmp_path / "data.csv", "\n".join(map(",".join, lines)))
    wanted = Wanted(with_labels=labels, target="3", n_features=3)
    if labels and n_columns == 3:
        with pytest.raises(ValueError, match="no column '3'"):
            read_samples(path, wanted)
        return
    samples = read_samples(path, wanted)
    assert np.array_equal(samples.X, X)
    assert (samples.labels is not None) == labels


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (("1", "2"), [1, 2]),
        (("-1", "+1"), [-1, 1]),
        (("0.5", "1"), [0.5, 1.0]),
        (("1", "x"), ["1", "x"]),
        (("True", "False"), ["True", "False"]),
    ],
)
def test_kinds_of_labels(texts, labels, tmp_path):
    text = "a,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(texts))
    data = write(tmp_path / "d.csv", text)
    assert read_samples(data, Wanted()).labels.tolist() == labels


# --- what is not right, in one line ---------------------------------------------------------


COMPLAINTS = [
    ("d.csv", "", {}, "d.csv is empty"),
    ("d.csv", "a,b,y\n", {}, "has a header but no rows"),
    ("d.csv", CSV, {"target": "targt"}, "has no column 'targt' (--target): did you mean 'target'?"),
    ("d.csv", CSV, {"features": ("z",)}, "has no column 'z' (--features)"),
    ("d.csv", CSV, {"drop": ("a", "b", "c")}, "has no feature"),
    ("d.csv", CSV.replace(",-3", ',"2,5"'), {}, "'2,5': state --decimal , if the comma"),
    ("d.csv", CSV.replace(",-3", ',"1,012.5"'), {}, "or remove it if it separates thousands"),
    ("d.csv", "a,y\n1,01\n2,1\n3,02\n", {}, "'01' and '1', which are the same number"),
    ("d.csv", CSV + "1,2,3\n", {}, "line 6 has 3 fields, expected 4"),
    ("d.csv", CSV.replace("7,1", "7,1,1"), {}, "Expected 4 fields in line 5, saw 5"),
    ("d.csv", CSV.replace("yes", "", 1), {}, "(column 'target'): the label of row 2 is missing"),
    ("d.csv", CSV.replace("a,b", ",b"), {}, "column 1 of"),
    ("d.csv", CSV.replace("a,b", "b,b"), {}, "has two columns named 'b'"),
    ("d.csv", CSV.replace("a,b", "b,b"), {"weights": "b"}, "has 2 columns named 'b'"),
    ("d.csv", CSV.replace("a", "\xe4").encode("latin-1"), {}, "is not UTF-8 text"),
    ("d.csv.bz2", bz2.compress(CSV.encode())[:-5], {}, "d.csv.bz2 cannot be read"),
    ("d.what", "nothing of the kind\n", {}, "the format of"),
    ("d.xls", b"\xd0\xcf\x11\xe0" + bytes(600), {}, "d.xls is a spreadsheet or an archive"),
    ("d.svm", "1 2:x\n", {}, "cannot be read as svmlight text"),
    ("d.svm", svmlight(), {"weights": "w"}, "svmlight text, whose columns have no names"),
    ("d.svm", svmlight(), {"features": ("1",)}, "svmlight text, whose columns have no names"),
    ("d.svm", svmlight(), {"n_features": 2}, "n_features was set to 2, but input file contains 3"),
    ("d.svm", svmlight(True), {}, "columns are numbered from 0: state --zero-based"),
    ("d.parquet", parquet(y=[None, "a", "b", "a"]), {}, "(column 'y'): the label of row 1 is miss"),
    ("d.parquet", b"PAR1 and nonsense", {}, "d.parquet cannot be read; it may be damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "contents", "options", "complaint"), COMPLAINTS)
def test_what_is_said(name, contents, options, complaint, tmp_path):
    path = write(tmp_path / name, contents)
    with pytest.raises(ValueError, match=r"d\.") as failure:
        read_samples(path, Wanted(**options))
    assert complaint in str(failure.value)
    assert "\n" not in str(failure.value)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_samples(str(tmp_path / "nowhere.csv"), Wanted())
    with pytest.raises(IsADirectoryError, match="not a data file"):
        read_samples(str(tmp_path), Wanted())


def test_missing_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write(tmp_path / "data.parquet", b"PAR1")
    with pytest.raises(ImportError, match=r'not installed: pip install "drlogit\[parquet\]"'):
        read_samples(path, Wanted())
