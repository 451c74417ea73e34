"""Early ends of a run: a time limit, or an interrupt (Ctrl-C).

Solvers check between iterations, so that they always return a point with its certificate.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..rows.checks import ParameterError
from ..rows.interface import ends
from .parameters import is_number

#: A second interrupt within this many seconds aborts, even if another run has begun since.
_TWICE = 1.0


class Stop:
    """When to end a run, or several runs that share a time limit of ``max_time`` seconds.

    Attributes
    ----------
    deadline
        In seconds of ``time.time``, on which the processes of several machines agree.
    keeps
        Whether an interrupt ends the run with its best point so far instead of an exception.
    interrupted
        Whether this has happened.
    """

    _last = -math.inf  # interrupt of any run

    def __init__(self, max_time: Any = None, *, keeps: bool = False) -> None:
        if max_time is not None and not (is_number(max_time) and max_time > 0.0):
            raise ParameterError(
                "max_time", f"must be a number of seconds > 0 or None, got {max_time!r}"
            )
        self.max_time = max_time
        self.deadline = math.inf if max_time is None else time.time() + float(max_time)
        self.keeps, self.interrupted = keeps, False

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return time.time() >= self.deadline

    @property
    def over(self) -> bool:
        """Whether the run should end."""
        return self.interrupted or self.late

    def sooner(self, share: float) -> Stop:
        """A stop after a share of the remaining time."""
        left = self.deadline - time.time()
        return Stop(max(share * left, 1e-9) if math.isfinite(left) else None)

    def interrupt(self, *_: Any) -> None:
        """Record an interrupt; raise it if it is the second one, or if ``keeps`` is false."""
        before, Stop._last = Stop._last, time.monotonic()
        if not self.keeps or self.interrupted or Stop._last - before < _TWICE:
            raise KeyboardInterrupt
        self.interrupted = True
        print(
            "drlogit: interrupted. The fit ends after this iteration with its best certified "
            "point so far. Interrupt again to abort at once.",
            file=sys.stderr,
            flush=True,
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record interrupts inside this context instead of raising them.

        Only the main thread can handle signals.  A handler other than Python's own, such as that of
        a service, stays in place.
        """
        here = threading.current_thread() is threading.main_thread()
        with self.heeded():
            if not (self.keeps and here and signal.getsignal(signal.SIGINT) is _OWN):
                yield
                return
            signal.signal(signal.SIGINT, self.interrupt)
            try:
                yield
            finally:
                signal.signal(signal.SIGINT, _OWN)

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Let rows that wait for workers know when the run should end."""
        before = ends.set(lambda: self.over)
        try:
            yield
        finally:
            ends.reset(before)


_OWN = signal.default_int_handler
