"""Arrays in NumPy's own format, from files and from members of archives: numbers and text only.

NumPy believes the header of an array: it allocates what is claimed there, and may unpickle what
follows, which can run code.  Here the header must agree with the number of bytes that follow it,
fit in memory, and name numbers or text.
"""

from __future__ import annotations

import io
import math
import os
import sys
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .limits import check_memory

_PICKLED = (
    "holds pickled Python objects, which could run code and are never read; save numbers and text "
    "as arrays of their own type"
)


#: Bytes before the length of a header, and the longest that NumPy reads.
_MAGIC, _LONGEST = 8, 10_000


class NpyHeader(NamedTuple):
    """What the beginning of an array says, and where the array itself begins."""

    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]
    offset: int


def read_header(file: IO[bytes], size: int, source: str) -> NpyHeader:
    """The header of an array in a stream of ``size`` bytes; ``ValueError`` unless they agree."""
    try:
        start = file.read(_MAGIC)
        version = np.lib.format.read_magic(io.BytesIO(start))
        # Version 2 differs from 1 in how it writes its length, and 3 in its encoding.
        digits = file.read(2 if version == (1, 0) else 4)
        length = int.from_bytes(digits, "little")
        if length > _LONGEST:
            raise ValueError(f"a header of {length} bytes")
        text = file.read(length)
        reader = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers that Python 2 wrote
            shape, by_column, dtype = getattr(np.lib.format, reader)(io.BytesIO(digits + text))
    except Exception as error:  # the header is a Python expression: it fails in many ways
        found = " ".join(str(error).split())
        raise ValueError(f"{source} is damaged or no NumPy array: {found:.120}") from error
    offset = len(start) + len(digits) + len(text)
    header = NpyHeader(tuple(int(length) for length in shape), by_column, dtype, offset)
    if dtype.hasobject:
        raise ValueError(f"{source} {_PICKLED}")
    if dtype.kind not in "biufUS" or not dtype.itemsize:
        raise ValueError(f"{source} must be numbers or text, got {dtype!s:.60}")
    wanted = math.prod(header.shape) * dtype.itemsize
    sides = (0, *header.shape)
    if wanted != size - offset or min(sides) < 0 or max(sides) >= 1 << 60:
        raise ValueError(
            f"{source} is damaged: its header says {dtype} of shape {header.shape!s:.60}, and "
            f"{size - offset} bytes follow"
        )
    return header


def read_array(file: IO[bytes], size: int, source: str) -> NDArray[Any]:
    """The array in a stream of ``size`` bytes."""
    header = read_header(file, size, source)
    check_memory(size, source)
    contents = np.empty(size - header.offset, dtype=np.uint8)
    found = 0
    try:
        while found < contents.size and (chunk := file.read(min(1 << 20, contents.size - found))):
            contents[found : found + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
            found += len(chunk)
        # Reading on to the end is what makes an archive compare its checksum.
        whole = found == contents.size and not file.read(1)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{source} is damaged: {error}") from error
    if not whole:
        raise ValueError(f"{source} is damaged or incomplete")
    if header.dtype.kind == "b":
        np.minimum(contents, 1, out=contents)  # NumPy would compute with other bytes than 0 and 1
    if header.dtype.kind == "U":
        letters = contents.view(np.dtype(np.uint32).newbyteorder(header.dtype.byteorder))
        if letters.max(initial=0) > sys.maxunicode:  # NumPy fails on these when it is too late
            raise ValueError(f"{source} is damaged: it holds text that is not Unicode")
    array = contents.view(header.dtype)
    return array.reshape(header.shape, order="F" if header.by_column else "C")


def load_array(path: Path) -> NDArray[Any]:
    """The array in a ``.npy`` file."""
    with open(path, "rb") as file:
        return read_array(file, os.fstat(file.fileno()).st_size, str(path))
