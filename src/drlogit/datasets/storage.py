"""Files of data: found in a folder, or downloaded, unpacked and kept.

A data folder holds files under the paths of the catalogue (``libsvm/a1a``,
``mnist/train-images-idx3-ubyte``, ``uci/adult.data``), plain or as ``.bz2``, ``.gz`` or
``.xz``.  ``DRLOGIT_DATA`` names one that is only read; the cache is another, where downloads
are kept, uncompressed.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..files.atomic import write_bytes
from ..files.compressed import SUFFIXES, damage_named, unpacked
from ..files.limits import (
    TooLargeError,
    check_memory,
    most_bytes,
    most_unpacked,
    too_large_unpacked,
)
from .catalogue import DataFile


@dataclass(frozen=True)
class Copy:
    """The uncompressed contents of a file, and where they came from.

    ``path`` is None for a download that has not been kept yet.
    """

    file: DataFile
    contents: bytes
    place: str
    path: Path | None
    verified: bool


def cache_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """``data_home``, else ``DRLOGIT_CACHE``, else ``drlogit`` in the user's cache folder."""
    if data_home is not None:
        return Path(data_home).expanduser()
    chosen = os.environ.get("DRLOGIT_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "drlogit"


def obtain(file: DataFile, cache: Path, *, download: bool) -> Copy:
    """The contents of a file, from ``DRLOGIT_DATA``, the cache or its public source.

    A file that is found but damaged is an error, not a reason to look further: whoever put
    it there would want to know.
    """
    looked: list[str] = []
    given = os.environ.get("DRLOGIT_DATA")
    if given:
        looked.append(f"{given} (DRLOGIT_DATA)")
    looked.append(f"{cache} (cache)")
    folders = [Path(given).expanduser(), cache] if given else [cache]
    for folder in folders:
        path = _find(folder, file.path)
        if path is not None:
            check_memory(path.stat().st_size, str(path))
            return _open(file, path.read_bytes(), path.name, str(path), path)

    missing = f"{file.path} is not in {' or '.join(looked)}"
    remedy = (
        f"set DRLOGIT_DATA to a folder that holds {file.path} (plain, .bz2, .gz or .xz), or put "
        f"it at {cache / file.path}"
    )
    if not download:
        raise FileNotFoundError(f"{missing} and download=False; {remedy}, or allow the download")
    try:
        raw = _download(file.url)
    except ImportError as error:
        raise ImportError(
            f"{missing}, and downloading it from {file.url} needs the package pooch; install it "
            f"with pip install pooch, or {remedy}"
        ) from error
    except OSError as error:  # which the exceptions of requests are
        raise FileNotFoundError(
            f"{missing} and could not be downloaded from {file.url} ({_reason(error)}); {remedy}"
        ) from error
    return _open(file, raw, file.url, file.url, None)


def keep(copy: Copy, cache: Path) -> Path:
    """Put a download into the cache, whole or not at all; where it is now."""
    if copy.path is not None:
        return copy.path
    target = cache / copy.file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    # At once, so that two processes fetching the same set do not meet in the middle of one.
    write_bytes(target, copy.contents)
    return target


def _find(folder: Path, name: str) -> Path | None:
    """The file of that name in the folder, compressed or not."""
    candidates = (folder / f"{name}{suffix}" for suffix in ("", *SUFFIXES))
    return next((path for path in candidates if path.is_file()), None)


def _open(file: DataFile, raw: bytes, name: str, place: str, path: Path | None) -> Copy:
    """Unpack a file and compare its digest; ``ValueError`` if it is damaged."""
    contents = _unpack(raw, name, file.member if path is None else None, place)
    # The digest takes 1 to 8 per cent of the time of a load, so nothing is read without it.
    text = contents if file.binary else contents.replace(b"\r\n", b"\n")
    digest = hashlib.sha256(text).hexdigest()
    if file.published and digest != file.sha256:
        raise ValueError(
            f"{place} is damaged or another version: the SHA-256 of its contents is {digest}, "
            f"expected {file.sha256}"
        )
    return Copy(file, contents, place, path, verified=digest == file.sha256)


def _unpack(raw: bytes, name: str, member: str | None, place: str) -> bytes:
    if member is not None:
        return _member(raw, member, place)
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        return raw
    with unpacked(io.BytesIO(raw), suffix, place) as file:
        return _all_of(file, most_bytes(), place)


def _member(raw: bytes, member: str, place: str) -> bytes:
    try:
        with (
            damage_named(place),
            zipfile.ZipFile(io.BytesIO(raw)) as archive,
            archive.open(member) as file,
        ):
            return _all_of(file, min(most_bytes(), most_unpacked(len(raw))), place)
    except KeyError as error:
        raise ValueError(f"{place} has no member {member!r}") from error
    except TooLargeError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        raise ValueError(f"{place} is damaged or incomplete: {error}") from error


def _all_of(file: IO[bytes], most: int, place: str) -> bytes:
    contents = io.BytesIO()
    while chunk := file.read(1 << 20):  # a larger read would allocate as much at once
        contents.write(chunk)
        if contents.tell() > most:
            raise too_large_unpacked(most, place)
    return contents.getvalue()


def _download(url: str) -> bytes:
    """The bytes at a public address."""
    import pooch  # here, because only a download needs it

    # pooch's own digests are of the file as sent; ours, of what is in it, come later.
    with tempfile.TemporaryDirectory(prefix="drlogit-") as folder:
        name = url.rpartition("/")[2]
        fetcher = pooch.create(
            folder, base_url="", registry={name: None}, urls={name: url}, retry_if_failed=1
        )
        return Path(fetcher.fetch(name)).read_bytes()


def _reason(error: OSError) -> str:
    """What went wrong in a few words: requests' own are a paragraph."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"HTTP status {status}" if status is not None else type(error).__name__
