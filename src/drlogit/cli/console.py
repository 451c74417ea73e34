"""What a command prints: its answer as text or JSON, remarks and progress.

The answer goes to standard output, all else to standard error: ``drlogit … --json | jq`` works.
"""

from __future__ import annotations

import argparse
import enum
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..files.writing import json_text


class Exit(enum.IntEnum):
    """What a command returns."""

    DONE = 0
    BAD_INPUT = 1
    USAGE = 2
    NOT_CONVERGED = 3
    NOT_PROVEN = 4
    INTERRUPTED = 130  # what shells report for SIGINT


#: Seconds until progress is shown, between two pictures on a terminal, and between lines in a log.
_PATIENCE, _EVERY, _EVERY_IN_LOG = 2.0, 0.2, 15.0

#: What moves a terminal's cursor, or changes the direction of text, instead of being seen.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text with control characters spelt out; names in files may have some."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Progress:
    """How far a computation is, in a few words."""

    def __init__(self, title: str) -> None:
        self.title, self.begin, self.words = title, time.monotonic(), ""

    def folds(self, done: int, total: int) -> None:
        """So many folds of a search are done."""
        self.words = f"{done} of {total} folds, "

    def gap(self, gap: float, tol: float) -> None:
        """A fit has this gap; it is done at ``tol``."""
        self.words = f"gap {gap:.0e}, done at {tol:.0e}, "

    def __str__(self) -> str:
        return f"{self.title}: {self.words}{time.monotonic() - self.begin:.0f} s"


class Console:
    """The two streams, and how much the user wants on them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.json: bool = arguments.json
        self.quiet: bool = arguments.quiet

    def answer(self, record: Any, text: str | Callable[[], str]) -> None:
        """Print the answer of a command, as text or (with ``--json``) as JSON."""
        if self.json:
            print(json_text(record))
        else:
            print(printable(text if isinstance(text, str) else text()))

    def note(self, text: str) -> None:
        """Say something beside the answer."""
        if not self.quiet:
            print(printable(text), file=sys.stderr)

    @contextmanager
    def progress(self, title: str) -> Iterator[Progress]:
        """Show progress after two seconds: one changing line on a terminal, lines in a log.

        A thread prints, so that no step of the work is silent, however long it takes.
        """
        progress, done, terminal = Progress(title), threading.Event(), sys.stderr.isatty()

        def show() -> None:
            pause = _PATIENCE
            while not done.wait(pause):
                pause = _EVERY if terminal else _EVERY_IN_LOG
                start, end = ("\r\x1b[K", "") if terminal else ("", "\n")
                print(f"{start}{progress}", end=end, file=sys.stderr, flush=True)
            if terminal and pause != _PATIENCE:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

        thread = threading.Thread(target=show, daemon=True)
        if not self.quiet:
            thread.start()
        try:
            yield progress
        finally:
            done.set()
            if not self.quiet:
                thread.join()
