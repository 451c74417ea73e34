"""Files that claim more than they hold, or more than there is: one line each, at once, for free."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import drlogit
from drlogit import cli
from drlogit.files import limits as file_limits
from drlogit.files import strict_json
from drlogit.files.columns import Wanted
from drlogit.files.reading import read_labels, read_samples
from drlogit.files.svmlight import blocks as svmlight_blocks

X = np.array([[1.0, 2.5, 0.0], [0.0, -3.0, 4.0], [0.5, 0.0, 1e-3], [7.0, 1.0, 0.0]])
Y = np.array([0, 1, 1, 0])
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
MEMORY = 1 << 34  # as if so much were free, so that the outcome is the same everywhere


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    monkeypatch.delenv(file_limits.VARIABLE, raising=False)
    monkeypatch.setattr(file_limits, "free_memory", lambda: MEMORY)


def refused(read, *arguments, most=1 << 25, seconds=3.0, **options):
    """The line by which a file is refused; no warning, little memory and time."""
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r".") as failure:  # warnings are errors here
            read(*arguments, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(failure.value)
    assert "\n" not in message
    assert len(message) < 600
    assert peak < most
    assert time.process_time() - started < seconds
    return message


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def header(text, version=1):
    """The beginning of a .npy file."""
    length = struct.pack("<H" if version == 1 else "<I", len(text) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode("latin-1") + b"\n"


def claim(shape, descr="<f8"):
    return header(f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}")


def archive(path, method=zipfile.ZIP_DEFLATED, **members):
    """An NPZ archive of arrays, or of bytes as they are."""
    with zipfile.ZipFile(path, "w", method) as file:
        for name, contents in members.items():
            raw = contents if isinstance(contents, bytes) else npy(np.asarray(contents))
            file.writestr(f"{name}.npy", raw)
    return path


def sparse(form="csr", **changed):
    matrix = sp.csr_matrix(X).asformat(form)
    parts = {"format": np.array(form), "shape": np.array(X.shape), "y": Y}
    if form == "coo":
        parts |= {"data": matrix.data, "row": matrix.row, "col": matrix.col}
    elif form == "dia":
        parts |= {"data": matrix.data, "offsets": matrix.offsets}
    else:
        parts |= {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return {name: np.asarray(value) for name, value in (parts | changed).items()}


# --- bombs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("line", [b"\n", b"1 1:1\n", b"1,2\n"])
def test_compressed_files_may_not_grow_out_of_proportion(suffix, line, tmp_path, monkeypatch):
    monkeypatch.setattr(file_limits, "FLOOR", 1 << 14)
    monkeypatch.setattr(file_limits, "GROWTH", 50)
    monkeypatch.setattr(svmlight_blocks, "_TEXT_BYTES", 1 << 15)
    form = "svmlight" if b":" in line else "csv"
    path = tmp_path / f"data{suffix}"
    path.write_bytes(PACK[suffix](line * ((1 << 17) // len(line))))
    wanted = Wanted(format=form, header=False)
    assert "unpacks to more than 16 KiB" in refused(read_samples, path, wanted)
    labels = tmp_path / f"labels{suffix}"
    labels.write_bytes(path.read_bytes())
    assert "unpacks to more than 16 KiB" in refused(read_labels, labels)
    if b"," not in line:
        assert "unpacks to more than 16 KiB" in refused(drlogit.open_blocks, path)
    monkeypatch.setenv(file_limits.VARIABLE, str(1 << 30))
    if line != b"\n":
        assert read_samples(path, wanted).X.shape[0] == (1 << 17) // len(line)


def test_what_honest_files_may_do():
    """Bounds that text of samples, which shrinks to a hundredth at best, never meets."""
    assert file_limits.most_unpacked(10) == file_limits.FLOOR == 16 << 20
    assert file_limits.most_unpacked(1 << 20) == 1000 << 20


@pytest.mark.parametrize(
    ("name", "text", "limit"),
    [
        ("d.csv", "1,2,3,a\n" * 4000, 500_000),
        ("d.svm", "1 1:1 2:1\n" * 4000, 200_000),
        ("y.txt", "a\n" * 4000, 200_000),
        ("d.csv", "1," + "a" * 100_000 + "\n" + "1,b\n" * 100, 20_000_000),  # all as the longest
    ],
)
def test_text_must_fit_in_memory(name, text, limit, tmp_path, monkeypatch):
    monkeypatch.setenv(file_limits.VARIABLE, str(limit))
    (tmp_path / name).write_text(text)
    read = read_labels if name == "y.txt" else read_samples
    arguments = [] if name == "y.txt" else [Wanted(header=False if name == "d.csv" else None)]
    message = refused(read, tmp_path / name, *arguments)
    assert "of memory or more, and DRLOGIT_MAX_BYTES allows" in message
    monkeypatch.setenv(file_limits.VARIABLE, str(1 << 30))
    read(tmp_path / name, *arguments)


@pytest.mark.parametrize("name", ["d.csv", "d.svm", "y.txt"])
@pytest.mark.parametrize("text", ["1" * 200_000, '"\n",' * 50_000, "1,1:1 " * 40_000])
def test_lines_may_not_be_longer_than_memory_allows(name, text, tmp_path, monkeypatch):
    monkeypatch.setenv(file_limits.VARIABLE, str(64 * 100_000))
    (tmp_path / name).write_text(text)
    if name == "y.txt":
        if "\n" not in text:
            assert "y.txt, line 1: a line of" in refused(read_labels, tmp_path / name)
        return
    message = refused(read_samples, tmp_path / name, Wanted(header=False))
    assert "a line of" in message or "not svmlight text" in message or "not a CSV" in message
    if name == "d.svm" and "\n" not in text:
        monkeypatch.setattr(svmlight_blocks, "_TEXT_BYTES", 30_000)
        assert "a line of" in refused(drlogit.open_blocks, tmp_path / name)


@pytest.mark.parametrize("value", ["much", "-1", "1e9", "١", "9" * 30])
def test_the_limit_must_be_a_number(value, tmp_path, monkeypatch):
    monkeypatch.setenv(file_limits.VARIABLE, value)
    np.savez(tmp_path / "d.npz", X=X, y=Y)
    message = refused(read_samples, tmp_path / "d.npz", Wanted())
    assert "DRLOGIT_MAX_BYTES must be a number of bytes" in message


# --- shapes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (claim((10**12, 4)) + bytes(100), "its header says float64 of shape (1000000000000, 4)"),
        (claim((2**32, 2**32)) + bytes(8), "its header says"),  # the product is 2^64
        (claim((2**62, 4)) + bytes(8), "its header says"),
        (claim((0, 10**30)), "its header says"),
        (claim((-1, 4)) + bytes(8), "its header says"),
        (claim((-1, -1)) + bytes(8), "its header says"),
        (claim((10**15,), "<U0"), "must be numbers or text"),
        (claim((1,), "|V8") + bytes(8), "must be numbers or text"),
        (claim((1,), "<c16") + bytes(16), "must be numbers or text"),
        (claim((1,), "<M8[s]") + bytes(8), "must be numbers or text"),
        (claim((1,), "|O") + b"\x80\x04N.", "pickled Python objects, which could run code"),
        (claim((1,), "<U1") + b"\xff\xff\xff\xff", "text that is not Unicode"),
        (claim((1,), "<U1") + struct.pack("<I", 0xD800), "not all text"),
        (claim((1,), "|S1") + b"\xff", "not all text"),
        (npy(Y)[:-1], "its header says"),
        (npy(Y) + b"\0", "its header says"),
        (header("-" * 9000 + "1"), "no NumPy array"),
        (header("(" * 2000), "no NumPy array"),  # Python reads 200
        (header("__import__('os').abort()"), "no NumPy array"),
        (b"\x93NUMPY\x09\x00", "no NumPy array"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "no NumPy array"),
        (b"\x80\x04N.", "no NumPy array"),
        (b"", "no NumPy array"),
    ],
)
def test_arrays(raw, complaint, tmp_path):
    """The same for a file of labels, a file of features, and members of an archive."""
    (tmp_path / "y.npy").write_bytes(raw)
    assert complaint in refused(read_labels, tmp_path / "y.npy")
    archive(tmp_path / "d.npz", X=X, y=raw)
    assert complaint in refused(read_samples, tmp_path / "d.npz", Wanted())
    archive(tmp_path / "e.npz", X=raw, y=Y)
    assert "e.npz" in refused(read_samples, tmp_path / "e.npz", Wanted())
    np.save(tmp_path / "X.npy", X)
    if "not all text" not in complaint:  # which whoever uses the labels finds
        message = refused(drlogit.open_blocks, tmp_path / "X.npy", target=tmp_path / "y.npy")
        assert complaint in message
    refused(drlogit.open_blocks, tmp_path / "y.npy", target=tmp_path / "X.npy")


def test_arrays_must_fit_in_memory(tmp_path, monkeypatch):
    archive(tmp_path / "d.npz", X=np.zeros((50_000, 20)), y=np.zeros(50_000))
    monkeypatch.setenv(file_limits.VARIABLE, str(1 << 20))
    message = refused(read_samples, tmp_path / "d.npz", Wanted(), most=1 << 20)
    assert "would take 7.63 MiB of memory or more, and DRLOGIT_MAX_BYTES allows 1 MiB" in message
    monkeypatch.setenv(file_limits.VARIABLE, str(8_200_000))  # X alone has room
    assert "d.npz" in refused(read_samples, tmp_path / "d.npz", Wanted())
    monkeypatch.setenv(file_limits.VARIABLE, str(9_000_000))
    assert read_samples(tmp_path / "d.npz", Wanted()).X.shape == (50_000, 20)


def test_bytes_that_are_no_truth_values_count_as_true(tmp_path):
    truth = claim((4,), "|b1") + bytes([0, 1, 2, 255])
    archive(tmp_path / "d.npz", X=X, y=truth)
    labels = read_samples(tmp_path / "d.npz", Wanted()).labels
    assert labels.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_numbers_beyond_double_precision_are_not_read_as_infinite(tmp_path):
    big = np.full((4, 3), np.longdouble(2) ** 1100 if np.longdouble(2) ** 1100 < np.inf else 1e200)
    archive(tmp_path / "d.npz", X=big, y=Y)
    assert "too large" in refused(read_samples, tmp_path / "d.npz", Wanted())


@pytest.mark.parametrize(
    ("form", "changed", "complaint"),
    [
        ("coo", {"shape": [10**15, 3]}, "a matrix of 1000000000000000 rows and 3 columns would"),
        ("coo", {"shape": [4, 10**15]}, "would take"),
        ("coo", {"shape": [-4, 3]}, "cannot be"),
        ("coo", {"shape": [4, 3, 2]}, "shape must be two numbers"),
        ("coo", {"shape": [4.0, 3.0]}, "must hold whole numbers"),
        ("coo", {"row": [0] * 6 + [4]}, "not a sound SciPy sparse matrix"),
        ("coo", {"col": [0] * 6 + [-1]}, "not a sound SciPy sparse matrix"),
        ("csr", {"shape": [4, 2]}, "not a sound SciPy sparse matrix"),
        ("csr", {"indices": [0, 1, 1, 2, 0, 2, 10**9]}, "not a sound SciPy sparse matrix"),
        ("csr", {"indices": [0, 1, 1, 2, 0, 2, -5]}, "not a sound SciPy sparse matrix"),
        ("csr", {"indices": [0.0, 1, 1, 2, 0, 2, 0]}, "must hold whole numbers"),
        ("csr", {"indptr": [0, 5, 2, 6, 7]}, "not a sound SciPy sparse matrix"),
        ("csr", {"indptr": [0, 2, 4, 6, 700]}, "not a sound SciPy sparse matrix"),
        ("csr", {"indptr": [1, 2, 4, 6, 7]}, "not a sound SciPy sparse matrix"),
        ("csr", {"data": [1j] * 7}, "must be numbers or text"),
        ("csr", {"data": list("abcdefg")}, "data must hold numbers"),
        ("csr", {"format": "exe"}, "is not known"),
        ("csr", {"format": []}, "is not known"),
        ("csc", {"shape": [10**14, 3]}, "would take"),
        ("bsr", {"data": np.zeros((7, 0, 0))}, "sparse matrix"),
        ("dia", {"offsets": [10**18] * 5}, "sparse matrix"),
    ],
)
def test_sparse_matrices(form, changed, complaint, tmp_path):
    changed = {name: np.asarray(value) for name, value in changed.items()}
    archive(tmp_path / "d.npz", **sparse(form, **changed))
    assert complaint in refused(read_samples, tmp_path / "d.npz", Wanted())


def test_archives(tmp_path, recwarn):
    path = tmp_path / "d.npz"
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        archive(path, method, X=X, y=Y)
        assert "by a method that NumPy does not write" in refused(read_samples, path, Wanted())
    archive(path, X=X, y=Y)
    inner = path.read_bytes()
    archive(path, X=inner, y=Y)  # an archive in an archive
    assert "no NumPy array" in refused(read_samples, path, Wanted())
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as file:
        warnings.simplefilter("ignore")
        for name in ("X.npy", "y.npy", "X.npy"):
            file.writestr(name, npy(Y))
    assert "two arrays named 'X'" in refused(read_samples, path, Wanted())
    with zipfile.ZipFile(path, "w") as file:
        for name in ("../../X.npy", "/y.npy", "a\nb.npy"):
            file.writestr(name, npy(Y))
    before = sorted(tmp_path.iterdir())
    assert "has no array 'X'" in refused(read_samples, path, Wanted())
    assert sorted(tmp_path.iterdir()) == before
    # A size in the directory that is not that of the member.
    archive(path, zipfile.ZIP_STORED, X=X, y=Y)
    raw = path.read_bytes()
    size = struct.pack("<I", len(npy(X)))
    assert raw.count(size) == 4
    for lie in (2**31, 10, len(npy(X)) + 8):
        path.write_bytes(raw.replace(size, struct.pack("<I", lie)))
        assert "d.npz" in refused(read_samples, path, Wanted())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 1000000000000000:1\n", "an index is 2^31 or more"),
        ("1 99999999999999999999:1\n", "an index is 2^31 or more"),
        ("1 2147483647:1\n", "a matrix of 0 rows and 2147483647 columns would take 256 GiB"),
        ("1 -3:1\n", "not svmlight text"),
        ("1 1:1_0\n", "not svmlight text"),
        ("1 1_0:1\n", "not svmlight text"),
        ("1_0 1:1\n", "not svmlight text"),
        ("1 1:1\0\n", "not svmlight text"),
    ],
)
def test_svmlight(text, complaint, tmp_path):
    path = tmp_path / "d.svm"
    path.write_text(text)
    assert complaint in refused(read_samples, path, Wanted())
    assert complaint.partition("2147483647")[0] in refused(drlogit.open_blocks, path)


def test_widths_that_are_asked_for(tmp_path):
    (tmp_path / "d.svm").write_text("1 1:1\n0 1:2\n")
    for wanted in (Wanted(n_features=10**12), Wanted(features=("1", "1" + "0" * 12))):
        assert "would take" in refused(read_samples, tmp_path / "d.svm", wanted)
    assert "would take" in refused(drlogit.open_blocks, tmp_path / "d.svm", n_features=10**12)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('a,b\n1,"x\n2,y\n3,z\n', "not a CSV file: unexpected end of data"),
        ("a,b\n1_2,x\n2,y\n", "column 'a' holds '1_2'"),
        ("a,b\n1,x\0\n2,y\n", "line 2: a NUL byte"),
        (f"{'a' * 9000},b\nx,1\n2,2\n", "column 'aaaa"),
        (f"a,{'b' * 9000}\n1,\n2,y\n", "is missing"),
        (f"{'a' * 9000},{'a' * 9000},b\n1,1,2\n", "two columns named 'aaaa"),
        ("a,b\n1,-nan\n2,y\n", "the label (column 'b') is missing"),
        ("a,b\n1,x" + "x" * 140_000 + "\n", "field larger than field limit"),
        ("\ufeffa,b\n1,x\n".encode("utf-16"), "not UTF-8 text"),
        ("1," * 10**6 + "1\n", "line 1: a line of"),
    ],
)
def test_csv(text, complaint, tmp_path, monkeypatch):
    monkeypatch.setenv(file_limits.VARIABLE, str(100_000_000))
    path = tmp_path / "d.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert complaint in refused(read_samples, path, Wanted(), most=1 << 28)


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["9007199254740993", "9007199254740992"], [9007199254740993, 9007199254740992]),
        ([str(10**30), str(10**30 + 1)], [str(10**30), str(10**30 + 1)]),
        (["1e999", "2"], ["1e999", "2"]),
        (["inf", "1"], ["inf", "1"]),
        (["1_2", "12"], ["1_2", "12"]),
        (["1" * 5000, "2"], ["1" * 5000, "2"]),
    ],
)
def test_labels_that_differ_stay_different(texts, labels, tmp_path):
    (tmp_path / "y.txt").write_text("\n".join(texts))
    assert read_labels(tmp_path / "y.txt").tolist() == labels


def test_parquet(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    n = 12345
    pq.write_table(pa.table({"a": np.zeros(n), "b": np.ones(n), "y": np.arange(n) % 2}), path)
    raw = path.read_bytes()
    rows, more = b"\xf2\xc0\x01", b"\xfe\xff\x7f"  # 12345 and 1048575 as Thrift writes them
    start = len(raw) - 8 - struct.unpack("<I", raw[-8:-4])[0]
    footer = raw[start:]
    assert rows in footer
    for lie, complaint in (
        (footer.replace(rows, more, 1), "and its parts"),
        (footer.replace(rows, more), "damaged"),
    ):
        path.write_bytes(raw[:start] + lie)
        assert complaint in refused(read_samples, path, Wanted())
        assert complaint in refused(drlogit.open_blocks, path, target="y")
    path.write_bytes(raw)  # 300 kB of numbers in some hundred bytes each
    monkeypatch.setenv(file_limits.VARIABLE, str(400_000))
    assert "12345 rows of 3 columns, would take" in refused(read_samples, path, Wanted())
    monkeypatch.setenv(file_limits.VARIABLE, str(190_000))
    message = refused(drlogit.open_blocks, path, target="y")
    assert "the copy of" in message
    assert "would take 193 KiB" in message


def test_parquet_text(tmp_path, monkeypatch):
    """A long label that is repeated: some kilobytes on disk, 160 MB as an array of NumPy's."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    text = pa.array(["a" * 20_000, "b"]).take(pa.array(np.arange(2000) % 2))
    pq.write_table(pa.table({"x": np.arange(2000.0), "y": text}), path)
    assert path.stat().st_size < 40_000
    monkeypatch.setenv(file_limits.VARIABLE, str(100_000_000))
    assert "20000 letters" in refused(read_samples, path, Wanted())
    assert "20000 letters" in refused(drlogit.open_blocks, path, target="y")
    nested = pa.table({"x": pa.array([[1], [2]]), "y": [0, 1]})
    pq.write_table(nested, path)
    assert "features must be numbers" in refused(read_samples, path, Wanted())
    assert "does not hold numbers" in refused(drlogit.open_blocks, path, target="y")


def test_damaged_copies_are_made_again_or_refused(tmp_path):
    path, cache = tmp_path / "d.svm", tmp_path / "cache"
    path.write_text("1 1:1 2:2\n0 2:3\n")
    drlogit.open_blocks(path, cache=cache)
    copy = cache / "d.svm.blocks"
    about = json.loads((copy / "about.json").read_text())
    lies = [{"shape": [2**40, 2]}, {"shape": [2]}, {"n_entries": -1}, {"dtype": "O"}, {"of": 3}]
    for lie in lies:
        (copy / "about.json").write_text(json.dumps(about | lie))
        blocks, _ = drlogit.open_blocks(path, cache=cache)
        assert blocks.block(0).toarray().tolist() == [[1, 2], [0, 3]]
    for name in ("data", "indices", "indptr", "labels.npy"):
        (copy / name).write_bytes((copy / name).read_bytes()[:-1])
        blocks, _ = drlogit.open_blocks(path, cache=cache)
        assert blocks.block(0).toarray().tolist() == [[1, 2], [0, 3]]
    # Sound in size, but leading compiled code to other people's memory.
    for name, values in (("indices", [0, 10**9, 1]), ("indices", [-7, 0, 1])):
        np.array(values, dtype=np.int32).tofile(copy / name)
        assert "is damaged: remove it" in refused(blocks.block, 0)
    np.array([0, 1, 1], dtype=np.int32).tofile(copy / "indices")
    for ends in ([0, 3, 2], [-8, 2, 3], [0, 2, 10**12]):
        np.array(ends, dtype=np.int64).tofile(copy / "indptr")
        assert "damaged" in refused(blocks.block, 0)


# --- JSON -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "sound.json"
    drlogit.save_model(drlogit.DRLogisticRegression(0.1).fit(X, Y), path)
    return path.read_text()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"version"', '"version": 1, "version"', "'version' occurs twice in an object"),
        ('"coefficients"', '"gap": 0, "coefficients"', "'gap' occurs twice in an object"),
        ('"tol"', '"tool": 1, "tol"', "'tool' is no name that a model file has"),
        ('"coefficients"', '"x": 0, "coefficients"', "'x' is no name that a model file has"),
        ('"digest"', '"dagest"', "'dagest' is no name that a model file has"),
        ('"origin": {}', '"origin": {"a": 1e999}', "1e999 is too large for a double"),
        ('"origin": {}', '"origin": ' + "[" * 10**6, "it is nested too deeply"),
        ('"origin": {}', '"origin": {"a": ' + "9" * 5000 + "}", "a number of 5000 digits"),
        ('"origin": {}', '"origin": {"a": "\\ud800"}', "half of a surrogate pair"),
        ('"origin": {}', '"origin": {"a": 1}', "'digest' is not that of its contents"),
        ('"epsilon": 0.1', '"epsilon": 0.2', "'digest' is not that of its contents"),
        ('"classes": [\n  0,\n  1', '"classes": [\n  2,\n  1', "'digest' is not that of"),
        ('"classes": [\n  0', f'"classes": [\n  {2**70}', "labels that NumPy can hold"),
        ('"gap": ', '"gap": 1', "'gap' must be 'objective' less 'dual_bound'"),
        ('"gap": ', '"gap": -1', "'gap' must be 'objective' less 'dual_bound'"),
        ('"lambda": ', '"lambda": -1', "'lambda' must be at least 0"),
        ('"tol": 1e-06', '"tol": 1e-300', "'status' cannot be OPTIMAL with a gap of"),
    ],
)
def test_models(model, old, new, complaint, tmp_path):
    assert model.count(old) == 1
    path = tmp_path / "model.json"
    path.write_text(model.replace(old, new))
    message = refused(drlogit.load_model, path)
    assert complaint in message
    assert "model.json" in message


def test_whoever_means_a_change_drops_the_digest(model, tmp_path):
    path = tmp_path / "model.json"
    document = json.loads(model)
    del document["digest"]
    document["fits"][0]["intercept"] += 1.0
    path.write_text(json.dumps(document))
    assert drlogit.load_model(path).intercept_[0] == document["fits"][0]["intercept"]


def test_spelling_does_not_matter_to_the_digest(model, tmp_path):
    path = tmp_path / "model.json"
    document = dict(reversed(json.loads(model).items()))
    path.write_text(json.dumps(document).replace('"epsilon": 0.1,', '"epsilon":1e-1 ,'))
    assert drlogit.load_model(path).epsilon == 0.1


def test_json_must_fit_in_memory(model, tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    path.write_text(model)
    monkeypatch.setenv(file_limits.VARIABLE, str(20 * len(model)))
    assert "of memory or more, and DRLOGIT_MAX_BYTES" in refused(drlogit.load_model, path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a file without an end")
def test_files_without_an_end(monkeypatch):
    assert "its size is not known" in refused(strict_json.read, Path("/dev/zero"))
    monkeypatch.setenv(file_limits.VARIABLE, str(1 << 26))
    for form in ("csv", "svmlight"):
        assert "/dev/zero" in refused(read_samples, "/dev/zero", Wanted(format=form))
    for form in ("npz", "parquet"):
        assert "/dev/zero" in refused(read_samples, "/dev/zero", Wanted(format=form))


# --- command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", "[" * 100_000),
        ("c.json", '{"a": 1, "a": 2}'),
        ("c.json", '{"a": 1' + "0" * 400 + "}"),
        ("c.csv", '"a,1'),
        ("c.csv", "a," + "1" * 200_000),
        ("c.csv", b"\xff,1"),
    ],
)
def test_costs(name, text, tmp_path, capsys):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "d.csv").write_text("a,y\n1,0\n2,1\n3,0\n")
    options = ["--feature-costs", str(tmp_path / name), "--epsilon", "0.1"]
    assert cli.main(["fit", str(tmp_path / "d.csv"), *options]) == cli.BAD_INPUT
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("drlogit fit: error: ")
    assert name in line


def test_one_line_and_an_exit_code(model, tmp_path, capsys):
    (tmp_path / "d.svm").write_text("1 2147483647:1\n0 1:1\n")
    (tmp_path / "model.json").write_text(model.replace('"epsilon": 0.1', '"epsilon": 0.3'))
    for command in (["fit", "d.svm"], ["predict", "model.json", "d.svm"]):
        arguments = [command[0], *(str(tmp_path / name) for name in command[1:])]
        assert cli.main(arguments) == cli.BAD_INPUT
        out, err = capsys.readouterr()
        assert not out
        assert len(err.splitlines()) == 1


def test_free_memory_is_known(monkeypatch):
    monkeypatch.undo()
    assert 1 << 20 < file_limits.free_memory() < 1 << 50


@pytest.mark.parametrize(
    ("limit", "room"), [("1000000", 1000000 - 900000 + 200000), ("max\n", None), ("100", 0)]
)
def test_memory_that_a_container_uses_is_not_free(limit, room, tmp_path, monkeypatch):
    monkeypatch.undo()
    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text("900000")
    (tmp_path / "memory.stat").write_text("anon 600000\ninactive_file 200000\n")
    group = (str(tmp_path / "memory.max"), str(tmp_path / "memory.current"))
    machine = file_limits.free_memory()
    monkeypatch.setattr(file_limits, "_CONTROL_GROUPS", (group,))
    found = file_limits.free_memory()
    assert found == room if room is not None else found > machine // 2
