"""Reading data files of every format, and what is said about those that are not right."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from drlogit.files.reading import DataFile

X = np.array([[1.0, 2.5, 0.0], [0.0, -3.0, 4.0], [0.5, 0.0, 1e-3], [7.0, 1.0, 0.0]])
LABELS = ["no", "yes", "yes", "no"]
CSV = "a,b,c,y\n1,2.5,0,no\n0,-3,4,yes\n0.5,0,1e-3,yes\n7,1,0,no\n"
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(path, contents):
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return str(path)


def svmlight(zero_based=False):
    buffer = io.BytesIO()
    dump_svmlight_file(X, [-1, 1, 1, -1], buffer, zero_based=zero_based)
    return buffer.getvalue()


def check(frame):
    assert list(frame) == ["a", "b", "c", "y"]
    np.testing.assert_array_equal(frame[["a", "b", "c"]].to_numpy(), X)
    assert frame["y"].tolist() == LABELS


@pytest.mark.parametrize("suffix", PACK)
def test_text_compressed_or_not(suffix, tmp_path, monkeypatch):
    check(DataFile(write(tmp_path / f"data.csv{suffix}", PACK[suffix](CSV.encode()))).read_table())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    check(DataFile("-").read_table())
    for zero_based in (False, True):
        path = write(tmp_path / f"data.svm{suffix}", PACK[suffix](svmlight(zero_based)))
        matrix, labels = DataFile(path, zero_based=zero_based).read_svmlight(n_features=5)
        np.testing.assert_array_equal(matrix.toarray(), np.pad(X, ((0, 0), (0, 2))))
        assert labels.tolist() == [-1, 1, 1, -1]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (CSV.replace(",", ";"), {"delimiter": ";"}),
        (CSV.replace(",", "\t"), {"delimiter": "\t"}),
        (CSV.replace(",", ";").replace(".", ","), {"delimiter": ";", "decimal": ","}),
        (CSV.replace(",", ", "), {}),
        (CSV.replace("\n", "\r\n"), {}),
        ("\ufeff" + CSV, {}),
        (CSV.replace("no", '"no"').replace("a,", '"a",'), {}),
        (CSV.replace("yes\n", "yes\n\n"), {}),
        (CSV.encode("utf-16"), {"encoding": "utf-16"}),
    ],
)
def test_csv_variants(text, form, tmp_path):
    check(DataFile(write(tmp_path / "data.csv", text), **form).read_table())


def test_parquet_keeps_its_types(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=[*"abc"]).assign(y=LABELS)
    frame.to_parquet(tmp_path / "data.parquet")
    check(DataFile(str(tmp_path / "data.parquet")).read_table())
    named = frame.assign(code=["007", "1", "02", "3"]).set_index("code")
    named.to_parquet(tmp_path / "named.pq")
    assert DataFile(str(tmp_path / "named.pq")).read_table()["code"].tolist()[0] == "007"


def test_a_stated_format_goes_before_the_name(tmp_path):
    path = write(tmp_path / "train.csv", svmlight())
    assert DataFile(path, format="svmlight").kind == "svmlight"
    assert DataFile("train.LIBSVM.bz2").kind == "svmlight"
    assert DataFile("train").kind == "csv"


def test_codes_identifiers_and_gaps(tmp_path):
    text = "id,code,n,t\n001,01,?,a\nNA,NA,2,\n3,2,3,?\n"
    frame = DataFile(write(tmp_path / "d.csv", text)).read_table(texts=["code"], exact=["id"])
    assert frame["id"].tolist() == ["001", "NA", "3"]
    assert frame["code"].fillna("gap").tolist() == ["01", "gap", "2"]
    assert frame["n"].isna().tolist() == [True, False, False]
    assert frame["t"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("name", "contents", "complaint"),
    [
        ("d.csv", "", "d.csv is empty"),
        ("d.csv", "a,b,y\n", "d.csv has no rows"),
        ("d.csv", CSV + "1,2,3\n", "line 6 has 3 fields, expected 4"),
        ("d.csv", CSV.replace("7,1", "7,1,1"), "Expected 4 fields in line 5, saw 5"),
        ("d.csv", CSV.replace(",no", ",no,9").replace(",yes", ",yes,9"), "delimiter must be what"),
        ("d.csv", CSV.replace("a,b", ",b"), "d.csv has a column without a name"),
        ("d.csv", CSV.replace("a,b", "b,b"), "has two columns named 'b'"),
        ("d.csv", CSV.replace("a", "\xe4").encode("latin-1"), "encoding must be that of"),
        ("d.csv", CSV.encode("utf-16"), "which is not utf-8 text: try latin1 or utf-16"),
        ("d.csv", CSV.encode("utf-16-le"), "which is not utf-8 text"),
        ("d.csv.bz2", bz2.compress(CSV.encode())[:-5], "d.csv.bz2 cannot be read as csv"),
        ("d.csv.gz", b"no archive", "d.csv.gz cannot be read as csv"),
        ("d.xls", b"\xd0\xcf\x11\xe0" + bytes(600), "save the sheet of a spreadsheet as CSV"),
        ("d.csv", b"PK\x03\x04" + bytes(600), "save the sheet of a spreadsheet as CSV"),
        ("d.svm", "1 2:x\n", "cannot be read as svmlight"),
        ("d.svm", svmlight(True), "cannot be read as svmlight"),
        ("d.parquet", b"PAR1 and nonsense", "d.parquet cannot be read as parquet"),
    ],
)
def test_what_is_said(name, contents, complaint, tmp_path):
    file = DataFile(write(tmp_path / name, contents))
    with pytest.raises(ValueError, match=r"d\.") as failure:
        file.read_svmlight() if file.kind == "svmlight" else file.read_table()
    assert complaint in str(failure.value)
    assert "\n" not in str(failure.value)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        DataFile(str(tmp_path / "nowhere.csv")).read_table()
    with pytest.raises(IsADirectoryError):
        DataFile(str(tmp_path)).read_table()


def test_missing_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write(tmp_path / "data.parquet", b"PAR1")
    with pytest.raises(ImportError, match="pyarrow"):
        DataFile(path).read_table()
