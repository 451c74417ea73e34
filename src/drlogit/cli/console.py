"""What a command prints: its answer as text or JSON, and on a terminal how far it is.

The answer goes to standard output, all else to standard error: ``drlogit … --json | jq`` works.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from ..files.strict_json import dumps
from ..problem.result import Iterate

DONE, BAD_INPUT, USAGE, NOT_CONVERGED, NOT_PROVEN = 0, 1, 2, 3, 4
INTERRUPTED = 130  # what shells report for SIGINT

#: Seconds between two lines about how far the work is; what is over sooner shows none.
_EVERY = 0.2

#: What moves a terminal's cursor, or changes the direction of text, instead of being seen.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text with its control characters spelt out: labels and names come from files."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Console:
    """The two streams, and how much the user wants on them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.json: bool = arguments.json
        self.quiet: bool = arguments.quiet

    def answer(self, record: Any, text: str | Callable[[], str]) -> None:
        """Print the answer of a command: as JSON if that is wanted, else as text."""
        if self.json:
            print(dumps(record))
        else:
            print(printable(text if isinstance(text, str) else text()))

    def note(self, text: str) -> None:
        """Say something beside the answer."""
        if not self.quiet:
            print(printable(text), file=sys.stderr)

    def progress(self, title: str) -> Progress:
        """A line about work that takes a while; use it in a ``with`` statement."""
        return Progress(title, shown=not self.quiet and sys.stderr.isatty())


class Progress:
    """A line that is written anew on a terminal while there is work."""

    def __init__(self, title: str, *, shown: bool) -> None:
        self._title, self._shown = title, shown
        self._next = time.monotonic() + _EVERY

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    @property
    def _due(self) -> bool:
        return self._shown and time.monotonic() >= self._next

    def parts(self, done: int, total: int, what: str) -> None:
        """Say that so many parts of the work are done, and what the last of them was."""
        if self._due:
            self._next = time.monotonic() + _EVERY
            line = f"\r\x1b[K{self._title}: {done} of {total}, {what}"
            print(line, end="", file=sys.stderr, flush=True)

    def iteration(self, iterate: Iterate) -> None:
        """Say where a fit is; its gap takes products with the data, so it is asked for seldom."""
        if self._due:
            self._next = time.monotonic() + _EVERY
            line = f"\r\x1b[K{self._title}: iteration {iterate.n_iter}, {iterate.elapsed:.1f} s, "
            print(f"{line}gap {iterate.gap:.1e}", end="", file=sys.stderr, flush=True)
