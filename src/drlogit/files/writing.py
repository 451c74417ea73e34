"""Writing files whole or not at all, and JSON as the standard has it.

The contents of a file go to a temporary one in the same folder, reach the disk, and only then take
the place of the old file, which is one step for the operating system: whoever reads the file sees
all of the old contents or all of the new.  A process killed on the way leaves the old file as
it was, and at worst a temporary file beside it (``.drlogit-….tmp``).  In JSON, infinite numbers are
the strings "inf" and "-inf", and NaN is null.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import uuid
from pathlib import Path
from typing import Any


def json_text(value: Any, *, indent: int | None = 1) -> str:
    """A value as JSON, on one line if ``indent`` is None; arrays count as lists."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, indent=indent)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0.0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in UTF-8 with line ends as they are, whole or not at all."""
    write_bytes(path, text.encode())


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
