"""Who uses the cores: the blocks of a fit, or BLAS.

Threads pay most where one of them does everything for a block of samples, because the vectors
of a block, on which BLAS has no say, take as long as its products where features are few.  So
within a fit the blocks have the cores, and BLAS is held to one thread; more threads than cores
would be slower than one.

``OMP_NUM_THREADS`` limits both, so that one setting governs the process.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import joblib

from .matrix import MANY_ENTRIES

#: Multiplications of a Gram matrix up to which BLAS has too little to do to use threads at all (of
#: two, with 5.9 million at 300 × 140 a fit takes 7 times as long, with 24 at 20000 × 35 1.5 times;
#: with 1.4 at 1500 × 30 and 400 × 60, 3.8 at 1500 × 50, 12 at 3000 × 63 as long).
_FEW_PRODUCTS = 2_000_000


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


@contextmanager
def single_threaded_blas(n_entries: int, n_columns: int) -> Iterator[None]:
    """Hold BLAS to one thread, in the whole process, while a fit of this size runs."""
    if n_entries * n_columns < _FEW_PRODUCTS:
        yield
        return
    with _blas().limit(limits=1):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # looks at all loaded libraries: once

    return ThreadpoolController().select(user_api="blas")
