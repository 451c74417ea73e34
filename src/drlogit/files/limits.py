"""How much a file may ask for: never more than the machine has, whatever the file says.

A few bytes can stand for terabytes: a header that claims them, a compressed run of zeros, one
index of 10⁹ in a sparse matrix.  So readers ask here, before they allocate and as they go along.
There are two bounds, and data that could be fitted meet neither:

*Memory.*  What is held at a time must fit in the memory that is free.  Data read in row blocks are
held a block at a time, and on disk as a whole, so these must fit on the disk.

*Growth.*  A compressed file may unpack to ``GROWTH`` times its size, and to ``FLOOR`` bytes in any
case.  This bounds the time, which memory does not where nothing is kept: empty lines without end.
Text of samples shrinks to a tenth, mostly zeros to a hundredth.  gzip cannot shrink anything to
less than a 1032nd; bzip2 and xz can, to a millionth, but only what says the same all over.

The environment variable ``DRLOGIT_MAX_BYTES`` takes the place of both, for whoever knows better.
Everything refused is a ``ValueError`` of one line that names it (a :class:`TooLargeError`).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

VARIABLE = "DRLOGIT_MAX_BYTES"

#: Times its size, and bytes in any case, that a compressed file may unpack to.
GROWTH = 1000
FLOOR = 1 << 24

#: Bytes for a row or column that is claimed, not written out: a fit has some sixteen vectors.
_CLAIMED = 16 * 8

#: A line may take this part of the memory: split into fields, it takes thirty times as much.
_LINE = 1 / 64

#: Where Linux keeps a container's limit on memory and what it uses of it: control groups 2 and 1.
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


class TooLargeError(ValueError):
    """More than may be read."""


def free_memory() -> int:
    """Bytes that this process can still get: of the machine's, and of its container's share."""
    import psutil

    free = int(psutil.virtual_memory().available)
    return min([free, *(room for group in _CONTROL_GROUPS if (room := _room(*group)) is not None)])


def _room(limit: str, used: str) -> int | None:
    """What a container may still take; None where there is none, or no limit on it.

    Its files' cache counts as used, but is given up when memory is wanted.
    """
    try:
        most = int(Path(limit).read_text())  # "max" without a limit
        taken = int(Path(used).read_text())
        lines = Path(used).with_name("memory.stat").read_text().splitlines()
        known = dict(line.split() for line in lines)
    except (OSError, ValueError):
        return None
    cached = known.get("total_inactive_file", known.get("inactive_file", 0))
    return max(most - taken + int(cached), 0)


def most_bytes() -> int:
    """What data may take in memory: as much as is free, or as ``DRLOGIT_MAX_BYTES`` says."""
    chosen = _chosen()
    return free_memory() if chosen is None else chosen


def most_unpacked(packed: int) -> int:
    """What a compressed file of so many bytes may unpack to."""
    chosen = _chosen()
    return max(FLOOR, GROWTH * packed) if chosen is None else chosen


def longest_line() -> int:
    """Characters that a line of text may have."""
    return max(1, int(_LINE * most_bytes()))


class Allowance:
    """The memory that was free when reading began, for what is read of unknown size."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._most = most_bytes()

    def check(self, n_bytes: int) -> None:
        """``ValueError`` if what has been read so far, or is about to be, takes too much."""
        if n_bytes > self._most:
            raise TooLargeError(
                f"{self._what} would take {in_words(n_bytes)} of memory or more, and "
                f"{_bound(self._most, 'free')}"
            )


def check_memory(n_bytes: int, what: str) -> None:
    """``ValueError`` if what is about to be read takes too much memory."""
    Allowance(what).check(n_bytes)


def check_claim(n_rows: int, n_columns: int, source: str) -> None:
    """``ValueError`` for a matrix so long or wide that not even a fit's vectors find room.

    For rows and columns that cost a file nothing, such as those of a sparse matrix.
    """
    shape = f"{source}: a matrix of {n_rows} rows and {n_columns} columns"
    if min(n_rows, n_columns) < 0:
        raise ValueError(f"{shape} cannot be")
    check_memory(_CLAIMED * (n_rows + n_columns), shape)


def check_disk(n_bytes: int, folder: Path, what: str) -> None:
    """``ValueError`` if a copy is too large for the disk it is to be on."""
    chosen = _chosen()
    most = shutil.disk_usage(folder).free if chosen is None else chosen
    if n_bytes > most:
        raise TooLargeError(
            f"{what} would take {in_words(n_bytes)} in {folder}, and {_bound(most, 'free there')}"
        )


def check_line(length: int, most: int, place: str) -> None:
    """``ValueError`` for a line as long as the longest that is read."""
    if length >= most:
        raise TooLargeError(
            f"{place}: a line of {in_words(length)} or more, longer than memory allows; "
            f"{VARIABLE} changes the limit"
        )


def too_large_unpacked(most: int, source: str) -> TooLargeError:
    """What is wrong with a file that unpacks to more than it may."""
    return TooLargeError(
        f"{source} unpacks to more than {in_words(most)}, out of proportion to its own size; "
        f"{VARIABLE} changes the limit"
    )


def in_words(n_bytes: int) -> str:
    """A number of bytes for people."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}" if n_bytes < 1 << 90 else f"over 2^90 {unit}"
    return f"{n_bytes} bytes"


def _bound(most: int, how: str) -> str:
    if _chosen() is not None:
        return f"{VARIABLE} allows {in_words(most)}"
    return f"{in_words(most)} are {how}; {VARIABLE} changes the limit"


def _chosen() -> int | None:
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(f"{VARIABLE} must be a number of bytes, got {text!r:.40}")
    return int(text)
