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

    for place, said in ((tmp_path / "nowhere" / "file", "nowhere"), (tmp_path, "directory")):
        with pytest.raises(OSError, match=said):
            write_text(place, "text")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as failure:
        write_text(path, "new")
    assert failure.value.filename == str(path)
    assert path.read_bytes() == "ä\n".encode()
    assert os.listdir(tmp_path) == ["file"]


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
    for value in ("-5", "+3.5e2", "-inf", "a=b", "", "'=1", 3, -3.5, None, True):
        assert safe_cell(value) is value
