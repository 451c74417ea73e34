"""Reading samples from files of every format, and what is said about those that are not right."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from drlogit import open_blocks
from drlogit.files.columns import Wanted
from drlogit.files.reading import read_samples

X = np.array([[1.0, 2.5, 0.0], [0.0, -3.0, 4.0], [0.5, 0.0, 1e-3], [7.0, 1.0, 0.0]])
LABELS = ["no", "yes", "yes", "no"]
CSV = "a,b,c,target\n1,2.5,0,no\n0,-3,4,yes\n0.5,0,1e-3,yes\n7,1,0,no\n"
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def svmlight(labels=(-1, 1, 1, -1), zero_based=False):
    buffer = io.BytesIO()
    dump_svmlight_file(X, labels, buffer, zero_based=zero_based)
    return buffer.getvalue()


def dense(X):
    return X.toarray() if sp.issparse(X) else X


# --- CSV ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
def test_csv(suffix, tmp_path):
    path = write(tmp_path / f"data.csv{suffix}", PACK[suffix](CSV.encode()))
    samples = read_samples(path, Wanted())
    assert np.array_equal(samples.X, X)
    assert samples.labels.tolist() == LABELS
    assert samples.feature_names == ["a", "b", "c"]
    assert samples.target == "target"


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
    ],
)
def test_csv_variants(text, options, tmp_path):
    samples = read_samples(write(tmp_path / "data.csv", text), Wanted(**options))
    assert np.array_equal(samples.X, X)
    assert samples.labels.tolist() == LABELS


def test_csv_columns(tmp_path):
    path = write(tmp_path / "data.csv", CSV)
    chosen = read_samples(path, Wanted(features=("c", "a")))
    assert np.array_equal(chosen.X, X[:, [2, 0]])
    assert chosen.feature_names == ["c", "a"]
    rest = read_samples(path, Wanted(drop=("b",), weights="a"))
    assert np.array_equal(rest.X, X[:, [2]])
    assert np.array_equal(rest.weights, X[:, 0])


def test_text_columns_that_are_not_used_do_no_harm(tmp_path):
    text = "name,a,y\nAnn,1,0\nBob,2,1\n"
    samples = read_samples(write(tmp_path / "data.csv", text), Wanted(drop=("name",)))
    assert samples.X["a"].tolist() == [1.0, 2.0]
    assert samples.labels.tolist() == [0, 1]


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
    assert read_samples(write(tmp_path / "d.csv", text), Wanted()).labels.tolist() == labels


@pytest.mark.parametrize("header", [True, False])
def test_headers_can_be_forced(header, tmp_path):
    path = write(tmp_path / "data.csv", "1,2,0\n3,4,1\n5,6,0\n")
    samples = read_samples(path, Wanted(header=header))
    assert samples.X.shape == ((2, 2) if header else (3, 2))
    assert samples.feature_names == (["1", "2"] if header else None)


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("", {}, "data.csv is empty"),
        ("a,b,y\n", {}, "has a header but no samples"),
        (CSV, {"target": "targt"}, "has no column 'targt' (--target): did you mean 'target'?"),
        (CSV, {"target": "9"}, "has no column '9' (--target): it has 'a', 'b', 'c', 'target'"),
        (CSV, {"features": ("z",)}, "has no column 'z' (feature)"),
        (CSV, {"features": ("a", "a")}, "feature 'a' is named twice"),
        (CSV, {"features": ("target",)}, "'target' is both target and feature"),
        (CSV, {"drop": ("a", "b", "c")}, "no column left to be a feature"),
        (
            CSV.replace(",-3", "," + "abc"),
            {},
            "column 'b' holds 'abc' in row 2, but features must be",
        ),
        (CSV.replace(",-3", "," + ""), {}, "the value of column 'b' in row 2 is missing (NaN);"),
        (CSV.replace(",-3", "," + "NA"), {}, "the value of column 'b' in row 2 is missing (NaN)"),
        (CSV.replace("2.5", "2_5"), {}, "column 'b' holds '2_5' in row 1, but features must be"),
        (CSV + "1,2,3\n", {}, "line 6: found 3 fields, expected 4"),
        (CSV.replace(",-3", "," + "nan"), {}, "the value of column 'b' in row 2 is missing (NaN)"),
        (
            CSV.replace(",-3", "," + "inf"),
            {},
            "the value of column 'b' in row 2 is inf, which is too",
        ),
        (CSV.replace(",-3", ",-3e200"), {}, "column 'b' in row 2 is -3e+200, which is too large"),
        (CSV.replace("2.5", '"2,5"'), {}, "holds '2,5': write a decimal point, not a comma"),
        (CSV, {"weights": "target"}, "'target' is both target and weights"),
        (CSV, {"weights": "b", "features": ("a", "b")}, "'b' is both weights and feature"),
        (CSV.replace("yes", "", 1), {}, "the label (column 'target') of row 2 is missing"),
        (CSV.replace("7,1", "7,1,1"), {}, "line 5: found 5 fields, expected 4"),
        (CSV.replace("a,b", ",b"), {}, "column 1 of"),
        (CSV.replace("a,b", "b,b"), {}, "has two columns named 'b'"),
        (CSV.replace("a", "\xe4").encode("latin-1"), {}, "is not UTF-8 text"),
    ],
)
def test_what_is_said_about_csv(text, options, complaint, tmp_path):
    path = write(tmp_path / "data.csv", text)
    with pytest.raises(ValueError, match=r"data\.csv|feature|column") as failure:
        read_samples(path, Wanted(**options))
    assert complaint in str(failure.value)
    assert "\n" not in str(failure.value)


# --- svmlight -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["data.svm", "data", "data.t"])
def test_svmlight(name, suffix, tmp_path):
    path = write(tmp_path / f"{name}{suffix}", PACK[suffix](svmlight()))
    samples = read_samples(path, Wanted())
    assert sp.issparse(samples.X)
    assert np.array_equal(samples.X.toarray(), X)
    assert samples.labels.tolist() == [-1, 1, 1, -1]
    assert samples.labels.dtype.kind == "i"
    assert samples.names == ["1", "2", "3"]


def test_svmlight_is_padded_to_the_width_of_the_model(tmp_path):
    path = write(tmp_path / "data.svm", svmlight())
    assert read_samples(path, Wanted(n_features=5)).X.shape == (4, 5)
    with pytest.raises(ValueError, match="row 2 uses feature 3, but the model has only 2 features"):
        read_samples(path, Wanted(n_features=2))
    padded = write(tmp_path / "padded.svm", "1 1:1 9:0\n-1 2:1\n")
    assert read_samples(padded, Wanted(n_features=3)).X.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]


def test_svmlight_columns_go_by_their_numbers(tmp_path):
    path = write(tmp_path / "data.svm", svmlight())
    chosen = read_samples(path, Wanted(features=("3", "1", "8")))
    assert np.array_equal(chosen.X.toarray(), np.column_stack([X[:, 2], X[:, 0], np.zeros(4)]))
    assert chosen.feature_names == ["3", "1", "8"]
    rest = read_samples(path, Wanted(drop=("2",)))
    assert np.array_equal(rest.X.toarray(), X[:, [0, 2]])
    assert rest.feature_names == ["1", "3"]


def test_svmlight_from_zero(tmp_path):
    path = write(tmp_path / "data.svm", svmlight(zero_based=True))
    with pytest.raises(ValueError, match="numbers its columns from 0: say so with --zero-based"):
        read_samples(path, Wanted())
    assert np.array_equal(read_samples(path, Wanted(zero_based=True)).X.toarray(), X)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("1 2:x\n", "is not svmlight text"),
        ("1 2:3 1:4\n", "is not svmlight text"),
        ("1 1:nan\n", "the value of column '1' in row 1 is missing"),
        ("nan 1:1\n1 1:2\n", "the label of row 1 is missing"),
    ],
)
def test_what_is_said_about_svmlight(text, complaint, tmp_path):
    path = write(tmp_path / "data.svm", text)
    with pytest.raises(ValueError, match=complaint):
        read_samples(path, Wanted())


# --- NPZ ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_dense_npz(kind, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=X.astype(kind), y=np.array(LABELS), w=np.arange(4.0))
    samples = read_samples(path, Wanted(weights="w", drop=("1",)))
    assert np.array_equal(samples.X, X.astype(kind)[:, [0, 2]])
    assert samples.labels.tolist() == LABELS
    assert samples.weights.tolist() == [0, 1, 2, 3]
    assert samples.feature_names == ["0", "2"]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_npz_with_labels_beside_it(form, tmp_path):
    path = tmp_path / "data.npz"
    sp.save_npz(path, sp.csr_matrix(X).asformat(form))
    np.save(tmp_path / "y.npy", [0, 1, 1, 0])
    write(tmp_path / "y.txt", "no\nyes\nyes\nno\n\n")
    with pytest.raises(ValueError, match="labels can come from a file of their own: --labels"):
        read_samples(path, Wanted())
    samples = read_samples(path, Wanted(), label_file=tmp_path / "y.npy")
    assert np.array_equal(samples.X.toarray(), X)
    assert samples.labels.tolist() == [0, 1, 1, 0]
    text = read_samples(path, Wanted(), label_file=tmp_path / "y.txt")
    assert text.labels.tolist() == LABELS


def test_sparse_npz_with_labels_in_it(tmp_path):
    csr = sp.csr_matrix(X)
    np.savez(
        tmp_path / "data.npz", format=b"csr", shape=csr.shape, data=csr.data,
        indices=csr.indices, indptr=csr.indptr, y=[0, 1, 1, 0],
    )  # fmt: skip
    samples = read_samples(tmp_path / "data.npz", Wanted())
    assert np.array_equal(samples.X.toarray(), X)
    assert samples.labels.tolist() == [0, 1, 1, 0]


class Trap:
    def __reduce__(self):
        return (sys.exit, ("pickle was loaded",))


@pytest.mark.parametrize("name", ["X", "y"])
def test_pickles_are_never_loaded(name, tmp_path):
    arrays = {"X": X, "y": np.arange(4) % 2, name: np.array([Trap()] * 4, dtype=object)}
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match="pickled Python objects, which could run code"):
        read_samples(tmp_path / "data.npz", Wanted())
    np.save(tmp_path / "y.npy", np.array([Trap()] * 4, dtype=object))
    np.savez(tmp_path / "sound.npz", X=X)
    with pytest.raises(ValueError, match="pickle"):
        read_samples(tmp_path / "sound.npz", Wanted(), label_file=tmp_path / "y.npy")


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"A": X}, "has no array 'X' (features); its arrays: A"),
        ({"X": X}, "has no array 'y' (--target)"),
        ({"X": X[0], "y": [0]}, "X must be 2-D and not empty, got shape (3,)"),
        ({"X": np.array([["a"]]), "y": [0]}, "X must hold numbers, got <U1"),
        ({"X": X[:0], "y": []}, "X must be 2-D and not empty, got shape (0, 3)"),
        ({"X": X, "y": [0, 1]}, "2 labels in 'y' for 4 rows"),
        ({"X": np.where(X > 6, np.nan, X), "y": [0, 1, 0, 1]}, "column '0' in row 4 is missing"),
        ({"X": X, "y": X}, "must be one column, got shape (4, 3)"),
        ({"X": X, "y": [0, 1, np.nan, 1]}, "the label of row 3 is missing"),
        ({"X": X, "y": [0, 1, 0, 1], "feature_names": ["a"]}, "1 feature_names for 3 columns"),
    ],
)
def test_what_is_said_about_npz(arrays, complaint, tmp_path):
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match=r"data\.npz") as failure:
        read_samples(tmp_path / "data.npz", Wanted())
    assert complaint in str(failure.value)


# --- Parquet --------------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def save(**columns):
        table = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "c": X[:, 2], **columns}
        path = tmp_path / "data.parquet"
        pq.write_table(pa.table({k: v for k, v in table.items() if v is not None}), path)
        return path

    return save


@pytest.mark.parametrize("labels", [LABELS, [0, 1, 1, 0], [False, True, True, False]])
def test_parquet(labels, parquet):
    samples = read_samples(parquet(c=[0, 4, 0, 0], d=[True, False] * 2, y=labels), Wanted())
    assert np.array_equal(samples.X[["a", "b"]], X[:, :2])
    assert samples.X["d"].tolist() == [1, 0, 1, 0]
    assert samples.labels.tolist() == labels
    assert samples.feature_names == ["a", "b", "c", "d"]


def test_what_is_said_about_parquet(parquet, tmp_path):
    with pytest.raises(
        ValueError, match="column 't' holds 'a' in row 1, but features must be numbers"
    ):
        read_samples(parquet(t=list("abcd"), y=LABELS), Wanted())
    with pytest.raises(ValueError, match="column 'c' in row 2 is missing"):
        read_samples(parquet(c=[1.0, None, 1.0, 1.0], y=LABELS), Wanted())
    with pytest.raises(ValueError, match=r"the label \(column 'y'\) of row 1 is missing"):
        read_samples(parquet(y=[None, "a", "b", "a"]), Wanted())
    with pytest.raises(ValueError, match="damaged or no Parquet file"):
        read_samples(write(tmp_path / "bad.parquet", b"nonsense"), Wanted())


def test_other_files_named_npz(tmp_path):
    with pytest.raises(ValueError, match="damaged or no NPZ archive"):
        read_samples(write(tmp_path / "data.npz", b"\x80\x04nonsense"), Wanted())
    np.savez_compressed(tmp_path / "sound.npz", X=np.arange(200.0).reshape(50, 4), y=np.arange(50))
    damaged = bytearray((tmp_path / "sound.npz").read_bytes())
    damaged[150:170] = bytes(20)
    with pytest.raises(ValueError, match="damaged"):
        read_samples(write(tmp_path / "damaged.npz", bytes(damaged)), Wanted())


def test_missing_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'not installed: pip install "drlogit\[parquet\]"'):
        read_samples(write(tmp_path / "data.parquet", b"PAR1"), Wanted())
    with pytest.raises(ImportError, match=r'not installed: pip install "drlogit\[parquet\]"'):
        open_blocks(tmp_path / "data.parquet", target="y")


# --- all formats ----------------------------------------------------------------------------


def test_formats_agree(parquet, tmp_path):
    write(tmp_path / "data.csv", CSV)
    write(tmp_path / "data.svm", svmlight())
    np.savez(tmp_path / "data.npz", X=X, y=LABELS)
    parquet(y=LABELS)
    for name in ("data.csv", "data.svm", "data.npz", "data.parquet"):
        assert np.array_equal(dense(read_samples(tmp_path / name, Wanted()).X), X), name


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("n_columns", [3, 4])
def test_files_without_names_are_taken_by_position(labels, n_columns, tmp_path):
    """Who predicts may have the labels in the file or not."""
    lines = [line.split(",")[:n_columns] for line in CSV.split()[1:]]
    path = write(tmp_path / "data.csv", "\n".join(map(",".join, lines)))
    wanted = Wanted(labels=labels, target="3", n_features=3)
    if labels and n_columns == 3:
        with pytest.raises(ValueError, match="no column '3'"):
            read_samples(path, wanted)
        return
    samples = read_samples(path, wanted)
    assert np.array_equal(samples.X, X)
    assert (samples.labels is not None) == labels


def test_formats_are_told_by_their_contents(tmp_path):
    assert read_samples(write(tmp_path / "data.txt", CSV), Wanted()).labels.tolist() == LABELS
    with pytest.raises(ValueError, match=r"cannot tell what .*data\.what is"):
        read_samples(write(tmp_path / "data.what", "nothing of the kind\n"), Wanted())
    with pytest.raises(ValueError, match="is empty"):
        read_samples(write(tmp_path / "nothing", ""), Wanted())


def test_damaged_compression(tmp_path):
    for suffix, pack in PACK.items():
        if suffix:
            path = write(tmp_path / f"data.csv{suffix}", pack(CSV.encode())[:-5])
            with pytest.raises(ValueError, match="is damaged or incomplete"):
                read_samples(path, Wanted())
            with pytest.raises(ValueError, match="is damaged or incomplete"):
                read_samples(write(path, CSV), Wanted())


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_samples(str(tmp_path / "nowhere.csv"), Wanted())
    with pytest.raises(IsADirectoryError, match="not a data file"):
        read_samples(str(tmp_path), Wanted())


# --- what is not right, in one line --------------------------------------------------------


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "labels.txt is empty"),
        (b"\n\n", "labels.txt is empty"),
        (b"no\nyes\nNA\nno\n", "labels.txt, line 3: the label is missing"),
        (b"no\nyes\n", "labels.txt has 2 labels for 4 samples"),
        (b"\xff\xfe\x00", "labels.txt is neither .npy nor text with one label per line"),
    ],
)
def test_wrong_label_files(contents, message, tmp_path):
    labels = write(tmp_path / "labels.txt", contents)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_samples(write(tmp_path / "data.svm", svmlight()), Wanted(), label_file=labels)


def test_labels_of_an_array_file(tmp_path):
    path = write(tmp_path / "data.svm", svmlight())
    for labels in (np.array([LABELS]).T, np.array(LABELS, dtype="S3")):
        np.save(tmp_path / "y.npy", labels)
        samples = read_samples(path, Wanted(), label_file=tmp_path / "y.npy")
        assert samples.labels.tolist() == LABELS
    np.save(tmp_path / "y.npy", np.array([1j, 2, 3, 4]))
    with pytest.raises(ValueError, match="must be numbers or text, none missing, got complex128"):
        read_samples(path, Wanted(), label_file=tmp_path / "y.npy")
    write(tmp_path / "y.npy", b"")
    with pytest.raises(ValueError, match=r"y\.npy is damaged or no NumPy array"):
        read_samples(path, Wanted(), label_file=tmp_path / "y.npy")


def test_formats_by_how_a_file_begins(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, y=LABELS)
    (tmp_path / "data.npz").rename(tmp_path / "archive")
    assert read_samples(tmp_path / "archive", Wanted()).labels.tolist() == LABELS
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: X[:, j] for j, name in enumerate("abc")}
    kinds = pa.array(LABELS).dictionary_encode()
    pq.write_table(pa.table({**columns, "w": [1, 2, 3, 4], "y": kinds}), tmp_path / "table")
    samples = read_samples(tmp_path / "table", Wanted(weights="w"))
    assert samples.labels.tolist() == LABELS
    assert samples.weights.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert samples.feature_names == ["a", "b", "c"]
    pq.write_table(pa.table({"a": pa.array([], "f8"), "y": pa.array([], "f8")}), tmp_path / "none")
    with pytest.raises(ValueError, match="none has no samples"):
        read_samples(tmp_path / "none", Wanted())


def test_sparse_matrices_that_are_none(tmp_path):
    path = tmp_path / "data.npz"
    good = sp.csr_array(X)
    parts = {"shape": good.shape, "data": good.data, "indices": good.indices, "y": LABELS}
    np.savez(path, format="csr", indptr=good.indptr, **parts | {"data": good.data.astype(int)})
    whole = read_samples(path, Wanted())
    assert whole.X.dtype == np.float64
    np.testing.assert_array_equal(whole.X.toarray(), X.astype(int))
    for form, indptr in (("csr", good.indptr[:-1]), ("xyz", good.indptr)):
        np.savez(path, format=form, indptr=indptr, **parts)
        with pytest.raises(ValueError, match="is not a sound SciPy sparse matrix"):
            read_samples(path, Wanted())


def test_other_things_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match="svmlight text, which has no column for --weights"):
        read_samples(write(tmp_path / "data.svm", svmlight()), Wanted(weights="w"))
    twice = write(tmp_path / "twice.csv", CSV.replace("a,b", "b,b"))
    with pytest.raises(ValueError, match="has 2 columns named 'b'"):
        read_samples(twice, Wanted(weights="b"))
    # A name with other delimiters in it, more of them than there are tabs.
    tabs = write(tmp_path / "tabs.tsv", "1;2;3;4;5" + CSV[1:].replace(",", "\t"))
    assert read_samples(tabs, Wanted()).feature_names == ["1;2;3;4;5", "b", "c"]
