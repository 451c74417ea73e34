"""Write files atomically: completely, or not at all.

The contents are written to a temporary file in the same folder, which then replaces the old file in
one step of the operating system.  A reader sees either the old or the new contents.  If the process
is killed meanwhile, the old file stays as it was, and at worst a temporary file remains beside it
(``.drlogit-….tmp``).
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path


def write_bytes(path: str | os.PathLike[str], contents: bytes) -> None:
    """Write a file atomically; ``OSError`` names the file that could not be written."""
    target = Path(os.path.realpath(path))  # through a symbolic link, as every other program would
    if target.exists() and not target.is_file():
        target.write_bytes(contents)  # a pipe or /dev/stdout has no old contents to protect
        return
    temporary = target.with_name(f".drlogit-{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            # Name the user's file, not the temporary one.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
