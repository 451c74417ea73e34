"""What a command prints: its answer as text or JSON, its progress as a bar or as lines.

The answer goes to standard output, all else to standard error: ``drlogit … --json | jq`` works.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from ..files.strict_json import dumps
from ..problem.result import Iterate

DONE, BAD_INPUT, USAGE, NOT_CONVERGED, NOT_PROVEN = 0, 1, 2, 3, 4
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

    def progress(self, title: str) -> ProgressBar:
        """A bar or lines about work that takes a while; use it in a ``with`` statement."""
        return ProgressBar(title, silent=self.quiet)


class ProgressBar:
    """A bar that is redrawn on a terminal, and a line now and then in a log.

    Work that is over soon shows nothing.
    """

    def __init__(self, title: str, *, silent: bool = False) -> None:
        self._title, self._silent = title, silent
        self._terminal = sys.stderr.isatty()
        self._every = 0.2 if self._terminal else 2.0
        self._next = time.monotonic() + self._every
        self._shown = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    @property
    def due(self) -> bool:
        """Whether something would be shown now."""
        return not self._silent and time.monotonic() >= self._next

    def show(self, share: float, detail: str) -> None:
        """Say that a share (0 to 1) of the work is done."""
        if not self.due:
            return
        self._next, self._shown = time.monotonic() + self._every, True
        share = min(max(share, 0.0), 1.0)
        if self._terminal:
            filled = round(_BAR * share)
            bar = f"[{'#' * filled}{'.' * (_BAR - filled)}]"
            print(f"\r\x1b[K{self._title} {bar} {share:4.0%}  {detail}", end="", file=sys.stderr)
            sys.stderr.flush()
        else:
            print(f"{self._title}: {share:.0%}, {detail}", file=sys.stderr, flush=True)

    def parts(self, done: int, total: int, what: str) -> None:
        """Say that so many parts of the work are done, and what the last of them was."""
        self.show(done / total, f"{done} of {total}: {what}")

    def iterations(self, tol: float, n_fits: int = 1) -> Callable[[Iterate], None]:
        """A callback for fits, one after the other: what is done is measured by the gap.

        In powers of ten, from the objective of the first iterate.  The gap itself takes products
        with the data, so it is asked for only where it is shown.
        """
        first, begun = 1.0, 0

        def callback(iterate: Iterate) -> None:
            nonlocal first, begun
            if iterate.n_iter == 0 or begun == 0:
                first, begun = max(iterate.objective, tol), begun + 1
            if not self.due or not math.isfinite(iterate.gap):
                return
            gap = max(iterate.gap, 1e-300)
            share = math.log(first / gap) / math.log(first / tol) if first > tol else 1.0
            fit = f"fit {begun} of {n_fits}, " if n_fits > 1 else ""
            self.show(
                (begun - 1 + min(max(share, 0.0), 1.0)) / n_fits,
                f"{fit}iteration {iterate.n_iter}, {iterate.elapsed:.1f} s, gap {gap:.1e}",
            )

        return callback
