"""What a command prints: its answer as text or JSON, remarks and progress.

The answer goes to standard output, all else to standard error: ``drlogit … --json | jq`` works.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..files.writing import json_text

DONE, BAD_INPUT, USAGE, NOT_CONVERGED, NOT_PROVEN = 0, 1, 2, 3, 4
INTERRUPTED = 130  # what shells report for SIGINT

#: Seconds between two lines about how far the work is, on a terminal and in a log; what is over
#: sooner shows none.
_EVERY, _EVERY_IN_LOG = 0.2, 15.0

#: What moves a terminal's cursor, or changes the direction of text, instead of being seen.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


#: A remedy in Python and, in brackets, the same as an option.
_TWO_REMEDIES = re.compile(r"\S+ \((--[^()]*) on the command line\)")


def printable(text: str) -> str:
    """Text with remedies as options, and control characters spelt out, as names may have some."""
    text = _TWO_REMEDIES.sub(r"\1", text)
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def as_options(message: str, given: Collection[str]) -> str:
    """An error message in which parameters of Python that are options are called as options."""
    message = re.sub(r"^sample_weight must", "--weights must", message)
    names = "|".join(name for name in given if "_" in name)
    message = re.sub(rf"(?<![\w'-])({names})(?![\w'])", _option, message) if names else message
    return re.sub(rf"^({'|'.join(given)}) must", lambda found: f"{_option(found)} must", message)


def _option(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')}"


class Console:
    """The two streams, and how much the user wants on them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.json: bool = arguments.json
        self.quiet: bool = arguments.quiet
        self.verbose: bool = arguments.verbose

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

    def watcher(self, show: Callable[..., None]) -> Callable[..., None]:
        """A progress callback for an estimator, with a method ``say`` for remarks."""
        watching = partial(show)
        watching.say = self.note  # type: ignore[attr-defined]
        return watching

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[[Callable[[], str]], None]]:
        """Show progress: in one overwritten line on a terminal, in occasional lines in a log.

        The callback receives a function that returns the text, because computing it may take a pass
        over the data.  With ``--verbose`` every step has its own line.
        """
        if self.verbose:
            yield lambda where: print(f"{title}: {where()}", file=sys.stderr, flush=True)
            return
        terminal = sys.stderr.isatty()
        every = _EVERY if terminal else _EVERY_IN_LOG
        due = time.monotonic() + every

        def say(where: Callable[[], str]) -> None:
            nonlocal due
            if not self.quiet and time.monotonic() >= due:
                due = time.monotonic() + every
                start, end = ("\r\x1b[K", "") if terminal else ("", "\n")
                print(f"{start}{title}: {where()}", end=end, file=sys.stderr, flush=True)

        try:
            yield say
        finally:
            if terminal and not self.quiet:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
