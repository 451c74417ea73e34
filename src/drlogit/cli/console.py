"""What a command prints: its answer as text or JSON, its progress as a bar or as lines.

The answer goes to standard output, all else to standard error: ``drlogit … --json | jq`` works.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from ..files.strict_json import dumps
from ..problem.result import Iterate

DONE, BAD_INPUT, USAGE, NOT_CONVERGED = 0, 1, 2, 3
INTERRUPTED = 130  # what shells report for SIGINT

_BAR = 24

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
        """A bar or lines about work that takes a while; use it in a ``with`` statement."""
        return Progress(title, silent=self.quiet)


class Progress:
    """A bar that is redrawn on a terminal, and a line now and then in a log."""

    def __init__(
        self,
        title: str,
        *,
        silent: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = title
        self._stream = sys.stderr if stream is None else stream
        self._silent = silent
        self._clock = clock
        self._terminal = self._stream.isatty()
        self._every = 0.1 if self._terminal else 2.0
        # Work that is over before that shows nothing.
        self._next = clock() + (0.3 if self._terminal else self._every)
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()

    def show(self, share: float, detail: str = "") -> None:
        """Say that a share (0 to 1) of the work is done."""
        now = self._clock()
        if self._silent or now < self._next:
            return
        self._next = now + self._every
        share = min(max(share, 0.0), 1.0)
        if not self._terminal:
            self._stream.write(f"{self._title}: {share:.0%}, {detail}\n")
        else:
            filled = round(_BAR * share)
            line = f"{self._title} [{'#' * filled}{'.' * (_BAR - filled)}] {share:4.0%}  {detail}"
            line = line[: shutil.get_terminal_size().columns - 1]  # a longer one would not be wiped
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        self._stream.flush()

    def iterations(self, tol: float) -> Callable[[Iterate], None]:
        """A callback for a solver: what is done is measured by the gap, in powers of ten."""
        first: list[float] = []

        def callback(iterate: Iterate) -> None:
            gap = max(iterate.gap, 1e-300)
            if not math.isfinite(gap):
                return
            first.append(gap) if not first else None
            way = math.log(first[0] / tol) if first[0] > tol else 1.0
            share = math.log(first[0] / gap) / way
            self.show(share, f"iteration {iterate.n_iter}, {iterate.elapsed:.1f} s, gap {gap:.1e}")

        return callback
