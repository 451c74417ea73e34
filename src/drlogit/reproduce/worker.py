"""Calls in a process of their own that can be ended: for solvers that cannot be interrupted.

A solver in C neither looks at a clock nor lets Python look at one, and may ask for more memory than
there is.  In another process it can be limited by the operating system, and only that one dies.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: Wall seconds granted for each second of the processor: the machine may be busy with others.
_PATIENCE = 10.0


class WorkerDiedError(Exception):
    """The process ended before it answered; most often it was out of memory."""


class Worker:
    """A process that serves one call after the other; a new one is made when it has died."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def call(self, function: Callable[[Any], Any], argument: Any, seconds: float) -> Any:
        """``function(argument)``, or ``TimeoutError`` after so many seconds of the processor.

        Exceptions of the function are raised here.
        """
        if self._process is None:
            self._start()
        patience = seconds if resource is None else _PATIENCE * (seconds + 1.0)
        try:
            self._pipe.send((function, argument, seconds))
            if not self._pipe.poll(patience):
                raise TimeoutError
            succeeded, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            code = self._end()
            if isinstance(error, TimeoutError) or code == -getattr(signal, "SIGXCPU", 0):
                raise TimeoutError(f"no answer within {seconds:g} s") from None
            raise WorkerDiedError(f"the process of the solver ended with code {code}") from None
        if not succeeded:
            raise answer
        return answer

    def close(self) -> None:
        """End the process, which knows that it is no longer wanted when the pipe is gone."""
        if self._process is not None:
            self._end(patience=5.0)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _end(self, patience: float = 0.2) -> int | None:
        self._pipe.close()
        self._process.join(timeout=patience)  # it may be about to end by itself
        self._process.kill()
        self._process.join()
        code: int | None = self._process.exitcode
        self._process = self._pipe = None
        return code


def _serve(pipe: Any) -> None:
    """Answer calls until the other side is gone."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    while True:
        try:
            function, argument, seconds = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        _limit_processor(seconds)
        try:
            answer = (True, function(argument))
        except Exception as error:
            answer = (False, error)
        with contextlib.suppress(OSError):
            pipe.send(answer)


def _follow_parent() -> None:
    """Do not go on for nobody: a killed parent cannot end its children."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _limit_processor(seconds: float) -> None:
    """Let the system end this process when it has used so many more seconds."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
