"""The machine, the versions and the limit on threads that go with what is measured."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import patch

from threadpoolctl import threadpool_limits

PACKAGES = ("numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "moreau", "casadi")

#: Read by BLAS, OpenMP, Numba and Clarabel's threads when they are loaded.
THREAD_VARIABLES = tuple(
    f"{library}_NUM_THREADS" for library in "OMP OPENBLAS MKL BLIS NUMBA RAYON".split()
)

_ROOT = Path(__file__).parents[1]


def unchanged_since(commit: str, path: str) -> bool:
    """Whether a folder of this checkout is as it was at a commit; not without git."""
    with suppress(OSError):
        return not subprocess.call(["git", "-C", _ROOT, "diff", "--quiet", commit, "--", path])
    return False


def environment() -> dict[str, Any]:
    """Commit, processor and versions; nothing that names the machine or its folders."""
    found: dict[str, Any] = {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    with suppress(OSError, subprocess.CalledProcessError):
        git = ["git", "-C", str(_ROOT), "rev-parse", "--short=10", "HEAD"]
        found["drlogit_commit"] = subprocess.check_output(git, text=True).strip()
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package.replace("-", "_")] = metadata.version(package)
    return found


def cpu_model() -> str:
    """The processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@contextmanager
def thread_limits(threads: int) -> Iterator[None]:
    """The same limit for BLAS, OpenMP and our own threads.

    Libraries that are loaded later read :data:`THREAD_VARIABLES`.
    """
    own = patch.dict(os.environ, OMP_NUM_THREADS=str(threads))
    with threadpool_limits(limits=threads), own:
        yield
