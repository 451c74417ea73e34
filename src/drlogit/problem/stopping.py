"""What ends a run before it is done: a time limit, or an interrupt (Ctrl-C).

Solvers ask between iterations, so that what they return is whole: a point and its certificate.
"""

from __future__ import annotations

import math
import numbers
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds within which a second interrupt aborts, also if another run has begun since.
_TWICE = 1.0


class Stop:
    """When to end a run, or several runs that share a time limit of ``max_time`` seconds.

    Attributes
    ----------
    deadline
        By ``time.time``, which processes on several machines agree on.
    keeps
        Whether an interrupt ends the run with its best point so far instead of an exception.
    interrupted
        Whether there was such an interrupt.
    """

    _last = -math.inf  # interrupt of any run

    def __init__(self, max_time: Any = None, *, keeps: bool = False) -> None:
        real = isinstance(max_time, numbers.Real) and not isinstance(max_time, bool)
        if max_time is not None and not (real and max_time > 0.0):
            raise ValueError(f"max_time must be a number of seconds > 0 or None, got {max_time!r}")
        self.max_time = max_time
        self.deadline = math.inf if max_time is None else time.time() + float(max_time)
        self.keeps, self.interrupted = keeps, False

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.time() >= self.deadline

    def sooner(self, share: float) -> Stop:
        """Another stop, after a share of the time that is left."""
        left = self.deadline - time.time()
        return Stop(max(share * left, 1e-9) if math.isfinite(left) else None)

    def interrupt(self, *_: Any) -> None:
        """Note an interrupt; the second one, or one that nobody keeps, is an exception."""
        before, Stop._last = Stop._last, time.monotonic()
        if not self.keeps or self.interrupted or Stop._last - before < _TWICE:
            raise KeyboardInterrupt
        self.interrupted = True
        print(
            "drlogit: interrupted; after this iteration the fit ends with its best certified "
            "point so far. Interrupt again to abort at once.",
            file=sys.stderr,
            flush=True,
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note interrupts meanwhile, where nobody else handles them.

        Only the main thread may handle signals.  A handler other than Python's own, such as that of
        a service, stays.
        """
        here = threading.current_thread() is threading.main_thread()
        if not (self.keeps and here and signal.getsignal(signal.SIGINT) is _OWN):
            yield
            return
        signal.signal(signal.SIGINT, self.interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, _OWN)


_OWN = signal.default_int_handler
