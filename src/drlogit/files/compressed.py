"""Opening compressed files by their suffix, none of which may unpack out of all proportion."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .limits import most_unpacked, too_large_unpacked

_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}

#: Endings of the names of compressed files, in lower case.
SUFFIXES = tuple(_OPENERS)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The uncompressed bytes of a file, compressed or not.

    What is wrong with the compression is a ``ValueError``, whenever it comes to light.
    """
    with open(path, "rb") as file, unpacked(file, path.suffix, str(path)) as plain:
        yield plain


@contextmanager
def unpacked(file: IO[bytes], suffix: str, source: str) -> Iterator[IO[bytes]]:
    """The same for a file that is open, or for bytes that are in memory."""
    opener = _OPENERS.get(suffix.lower())
    if opener is None:
        yield file
        return
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    with damage_named(source):
        yield io.BufferedReader(_Bounded(opener(file, "rb"), most_unpacked(size), source), 1 << 17)


@contextmanager
def damage_named(source: str) -> Iterator[None]:
    """Turns every way in which decompressors complain into a ``ValueError`` with the file."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{source} is damaged or incomplete: {error}") from error
    except MemoryError as error:  # xz files say themselves how much they need
        raise ValueError(f"{source} needs more memory than there is to be unpacked") from error
    except OSError as error:
        if error.errno is not None:  # bz2 raises a bare one for damage
            raise
        raise ValueError(f"{source} is damaged or incomplete: {error}") from error


class _Bounded(io.RawIOBase):
    """A stream that ends with a ``ValueError`` beyond so many bytes."""

    def __init__(self, file: Any, most: int, source: str) -> None:
        self._file, self._most, self._source = file, most, source

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        if self._file.tell() > self._most:
            raise too_large_unpacked(self._most, self._source)
        return int(count)

    def close(self) -> None:
        self._file.close()
        super().close()
