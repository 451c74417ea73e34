"""Writing files whole or not at all.

The contents of a file go to a temporary one in the same folder, reach the disk, and only then take
the place of the old file, which is one step for the operating system: whoever reads the file sees
all of the old contents or all of the new.  A process killed on the way leaves the old file as
it was, and at worst a temporary file beside it (``.drlogit-….tmp``).
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path


def write_bytes(path: str | os.PathLike[str], contents: bytes) -> None:
    """Write a file, whole or not at all; ``OSError`` names the file that could not be written."""
    target = Path(os.path.realpath(path))  # through a symbolic link, as every other program would
    if target.exists() and not target.is_file():
        target.write_bytes(contents)  # a pipe or /dev/stdout has no other contents to protect
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
            # In the words of the user, who never heard of the temporary file.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
