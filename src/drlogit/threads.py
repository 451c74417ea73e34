"""How many threads the compiled loops may use.

BLAS has its own limit, set by ``OMP_NUM_THREADS`` and the like or by threadpoolctl; our
loops read the same environment variables, so that one setting governs both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_limit: ContextVar[int | None] = ContextVar("drlogit_thread_limit", default=None)


def thread_count() -> int:
    """Threads allowed here: the innermost :func:`limit_threads`, else environment, else cores."""
    limit = _limit.get()
    if limit is not None:
        return limit
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    asked = int(wanted) if wanted.isdigit() and int(wanted) > 0 else cores or 1
    return max(1, min(asked, cores or 1))


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Within the block, compiled loops of this thread use at most ``count`` threads."""
    token = _limit.set(max(1, int(count)))
    try:
        yield
    finally:
        _limit.reset(token)
