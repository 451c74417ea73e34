"""Threads of a fit: the blocks of samples have the cores, and BLAS has one thread.

Threads pay most where one of them does everything for a block of samples: vectors of a block, which
BLAS does not see, take as long as its products where features are few.  Threads of BLAS on top of
that are more threads than cores, and they wait for each other.  On two busy cores, with two threads
of BLAS instead of one, a fit of 339 samples and 21 classes took 15 times as long, and fits of wide
data (from 60 × 200 to 1500 × 4000) took 4 to 160 times as long.

``OMP_NUM_THREADS`` limits both kinds of threads.
"""

from __future__ import annotations

import numbers
import os
from contextlib import ContextDecorator
from functools import cache
from threading import Lock, local
from typing import Any

import joblib

from .matrix import MANY_ENTRIES


def thread_count() -> int:
    """Threads allowed here: as many as the environment says, and no more than cores."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    asked = int(wanted) if wanted.isdigit() and int(wanted) > 0 else core_count()
    return min(asked, core_count())


@cache
def core_count() -> int:
    """Cores that this process may use: those it is bound to, within its container's quota."""
    return int(joblib.cpu_count())


def threads_for(n_jobs: int | None, n_entries: int) -> int:
    """Threads for a fit to so many stored entries; ``n_jobs`` as in :func:`drlogit.solve`."""
    if n_jobs is None:
        most = n_entries // MANY_ENTRIES
        return min(thread_count(), most) if most > 1 else 1
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if not whole or n_jobs == 0:
        raise ValueError(f"n_jobs must be a positive or negative integer or None, got {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, thread_count() + 1 + int(n_jobs))


class _Limit:
    """One thread for some libraries from the first entry on; the last exit restores their own."""

    def __init__(self, libraries: list[Any]) -> None:
        self.libraries, self.entries = libraries, 0
        self.before: list[int] = []

    def enter(self) -> None:
        if not self.entries:
            self.before = [library.num_threads for library in self.libraries]
            self._set([1] * len(self.libraries))
        self.entries += 1

    def leave(self) -> None:
        self.entries -= 1
        if not self.entries:
            self._set(self.before)

    def _set(self, numbers: list[int]) -> None:
        for library, number in zip(self.libraries, numbers, strict=True):
            # Newer versions let one thread own OpenBLAS, and what others ask for does nothing.
            disown = getattr(library, "clear_controlling_thread", lambda force: None)
            disown(force=True)
            library.set_num_threads(number)
            disown(force=True)


class _OneBlasThread(local, ContextDecorator):
    """Hold BLAS to one thread, in the whole process, while any fit of any thread runs.

    These contexts may overlap in any order, within a thread and between threads.
    """

    _lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            shared, own = _blas()
            if not hasattr(self, "own"):
                self.own = _Limit(own)
            shared.enter()
            self.own.enter()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            _blas()[0].leave()
            self.own.leave()


one_blas_thread = _OneBlasThread()


@cache
def _blas() -> tuple[_Limit, list[Any]]:
    """The loaded BLAS libraries: those of the process, and those with a limit for each thread.

    To find them takes ten milliseconds.
    """
    import scipy.linalg  # noqa: F401  (it brings a BLAS of its own, which compiled loops call)
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    by_thread = [
        library
        for library in found
        if getattr(library, "threading_layer", "") == "openmp"
        and hasattr(library, "clear_controlling_thread")
    ]
    return _Limit([library for library in found if library not in by_thread]), by_thread
