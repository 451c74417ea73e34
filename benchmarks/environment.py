"""The machine, the versions and the limit on threads that go with every measured row."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from unittest.mock import patch

from threadpoolctl import threadpool_limits

import drlogit
from drlogit.rows.threads import core_count

from .store import Row

PACKAGES = ("numpy", "scipy", "scikit-learn", "cvxpy", "clarabel", "moreau", "casadi")

#: Read by BLAS, OpenMP, Numba and Clarabel's threads when they are loaded.
THREAD_VARIABLES = tuple(
    f"{library}_NUM_THREADS" for library in "OMP OPENBLAS MKL BLIS NUMBA RAYON".split()
)

#: Packages of the library that show, store or check what the others compute.
_NOT_MEASURED = ("cli", "files", "report", "verification")

# Of the checkout: an installed package has no Cython sources.
_ROOT = Path(__file__).parents[1] / "src" / "drlogit"

#: The library's files by package, read when it is loaded: they may be edited while it runs.
_SOURCES = [
    (path.relative_to(_ROOT).parts[0], path.suffix, path.read_text(encoding="utf-8"))
    for path in _ROOT.rglob("*.p*")
    if path.suffix in (".py", ".pyx", ".pxd")
]


@cache
def source_digest(*packages: str) -> str:
    """A digest of the library's code, which changes more often than its version.

    With ``packages`` only these count; without, all that compute something.  Comments, docstrings,
    imports and the order of definitions do not count: they do not change what is measured.
    """
    parts = [
        part
        for package, suffix, source in _SOURCES
        if (package in packages if packages else package not in _NOT_MEASURED)
        for part in (_statements(source) if suffix == ".py" else _lines(source))
    ]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:10]


def _statements(source: str) -> list[str]:
    """The statements of a Python module without imports and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [part for part in body if not isinstance(part, ast.Import | ast.ImportFrom)]
            if kept and isinstance(kept[0], ast.Expr) and isinstance(kept[0].value, ast.Constant):
                del kept[0]
            node.body = kept  # type: ignore[attr-defined]
    return [ast.unparse(part) for part in tree.body]


def _lines(source: str) -> list[str]:
    """The lines of a Cython module without comments and docstrings, as one part."""
    code = re.sub(r'"""[\s\S]*?"""|#.*', "", source)
    return ["\n".join(line.rstrip() for line in code.split("\n") if line.strip())]


@cache
def commit() -> str | None:
    """The commit of this checkout, with a ``+`` if the library was edited; None without git."""
    git = ["git", "-C", str(_ROOT)]
    with suppress(OSError, subprocess.CalledProcessError):
        found = subprocess.check_output([*git, "rev-parse", "--short=10", "HEAD"], text=True)
        edited = subprocess.call([*git, "diff", "--quiet", "HEAD", "--", "."])
        return found.strip() + "+" * bool(edited)
    return None


@cache
def environment() -> Row:
    """Versions and processor; nothing that names the machine or its folders."""
    return {
        "cpu": cpu_model(),
        "cores": core_count(),
        "python": platform.python_version(),
        "drlogit": drlogit.__version__,
        "drlogit_source": source_digest(),
        "drlogit_commit": commit(),
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
    """The same limit for BLAS, OpenMP and our own threads.

    Libraries that are loaded later read :data:`THREAD_VARIABLES`.
    """
    own = patch.dict(os.environ, OMP_NUM_THREADS=str(threads))
    with threadpool_limits(limits=threads), own:
        yield
