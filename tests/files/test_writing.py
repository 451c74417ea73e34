"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from drlogit.files.writing import safe_cell, write_bytes, write_text


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_bytes(path, b"first")
    write_text(path, "ä\n")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as failure:
        write_text(path, "new")
    assert failure.value.filename == str(path)
    assert path.read_bytes() == "ä\n".encode()
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_written_is_named(tmp_path):
    wanted = tmp_path / "nowhere" / "file"
    with pytest.raises(FileNotFoundError, match="nowhere") as failure:
        write_text(wanted, "text")
    assert failure.value.filename == str(wanted)
    with pytest.raises(OSError, match="directory"):
        write_text(tmp_path, "text")


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    old = os.umask(0o022)
    try:
        write_text(path, "text")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644  # not the 0600 of temporary files
    path.chmod(0o640)
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+a", "-a", "\tx", "\rx", "\nx", "=", "-1_2"])
def test_formulas_get_an_apostrophe(text):
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-5", "+3.5e2", "-inf", "a=b", "", "'=1", 3, -3.5, None, True])
def test_other_cells_stay(value):
    assert safe_cell(value) is value
