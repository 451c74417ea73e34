"""Arrays in NumPy's own format, from files and from members of archives: numbers and text only.

NumPy believes the header of an array: it allocates what is claimed there, and may unpickle what
follows, which can run code.  So here it reads only what has a header that agrees with the number of
bytes that follow it, fits in memory, and names numbers or text.
"""

from __future__ import annotations

import io
import math
import os
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..limits import check_memory

_PICKLED = (
    "holds pickled Python objects, which could run code and are never read; save numbers and text "
    "as arrays of their own type"
)


#: Bytes in which a header must end: the longest that NumPy reads, and what comes before it.
_LONGEST = 10_000 + 12


class NpyHeader(NamedTuple):
    """What the beginning of an array says, and where the array itself begins."""

    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]
    offset: int


def read_header(file: IO[bytes], size: int, source: str) -> NpyHeader:
    """The header of an array in a stream of ``size`` bytes; ``ValueError`` unless they agree."""
    try:
        start = io.BytesIO(file.read(_LONGEST))  # whatever length the header claims to have
        # Versions 2 and 3 differ in their encoding only, and only for types that are refused.
        reader = "1_0" if np.lib.format.read_magic(start) == (1, 0) else "2_0"
        with _old_headers():
            shape, by_column, dtype = getattr(np.lib.format, f"read_array_header_{reader}")(start)
    except Exception as error:  # the header is a Python expression: it fails in many ways
        found = " ".join(str(error).split())
        raise ValueError(f"{source} is damaged or no NumPy array: {found:.120}") from error
    offset = start.tell()
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
    """The array in a stream of ``size`` bytes that can be read from its start again."""
    read_header(file, size, source)
    check_memory(size, source)
    file.seek(0)
    try:
        with _old_headers():
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        # Reading on to the end is what makes an archive compare its checksum.
        whole = not file.read(1)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise ValueError(f"{source} is damaged or incomplete: {error!s:.120}") from error
    if not whole:
        raise ValueError(f"{source} is damaged or incomplete")
    if array.dtype.kind == "b":  # NumPy would compute with other bytes than 0 and 1
        array = array.view(np.uint8) != 0
    if array.dtype.kind == "U":
        letters = np.ravel(array, order="K").view(
            np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        )
        if letters.max(initial=0) > sys.maxunicode:  # NumPy fails on these when it is too late
            raise ValueError(f"{source} is damaged: it holds text that is not Unicode")
    return array


@contextmanager
def _old_headers() -> Iterator[None]:
    """Let pass what NumPy has to say of headers that Python 2 wrote."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def load_array(path: Path) -> NDArray[Any]:
    """The array in a ``.npy`` file."""
    with open(path, "rb") as file:
        return read_array(file, os.fstat(file.fileno()).st_size, str(path))
