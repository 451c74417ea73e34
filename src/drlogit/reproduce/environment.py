"""The machine, the versions and the limit on threads that go with every measured row."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from threadpoolctl import threadpool_limits

import drlogit

from ..threads import limit_threads
from .store import Row

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel", "casadi")

#: Read by BLAS, OpenMP, Numba and Clarabel's threads when they are loaded.
THREAD_VARIABLES = tuple(
    f"{library}_NUM_THREADS" for library in "OMP OPENBLAS MKL BLIS NUMBA RAYON".split()
)

#: Parts of the package that no measured figure depends on: they show, they do not solve.
#: What is measured in ``reproduce`` is spelled out in the rows themselves.
_SHOWS = ("cli", "reproduce", "__main__.py", "html_page.py", "plots.py", "atomic.py")


def source_digest() -> str:
    """Which state of the library is measured: versions do not change with every edit."""
    digest = hashlib.sha256()
    folder = Path(drlogit.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0] not in _SHOWS:
            digest.update(name.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:10]


#: Taken when the library is loaded, not later, when its files may have been edited.
SOURCE = source_digest()


@cache
def environment() -> Row:
    """Versions and processor; nothing that names the machine or its folders."""
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": platform.python_version(),
        "drlogit": drlogit.__version__,
        "drlogit_source": SOURCE,
        **{package.replace("-", "_"): version(package) for package in PACKAGES},
    }


def cpu_model() -> str:
    """The processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(package: str) -> str | None:
    """Of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@contextmanager
def thread_limits(threads: int) -> Iterator[None]:
    """The same limit for BLAS, OpenMP and our own loops.

    Libraries that are loaded later read :data:`THREAD_VARIABLES`.
    """
    with threadpool_limits(limits=threads), limit_threads(threads):
        yield
