"""Fenced blocks of Markdown pages, for tests that run what the pages show."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path


def blocks(path: Path) -> list[tuple[str, str]]:
    """Fenced blocks as (language, text), in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S)


def python_examples(path: Path) -> list[tuple[str, str | None]]:
    """Each Python block with the text block that follows it, if one does."""
    return [
        (code, after if after_language == "text" else None)
        for (language, code), (after_language, after) in pairwise([*blocks(path), ("", "")])
        if language == "python"
    ]


def run(path: Path, capsys) -> int:
    """Run a page's Python in order and in one session, as a reader would paste it."""
    session = {"__name__": path.stem}
    examples = python_examples(path)
    for code, printed in examples:
        exec(compile(code, str(path), "exec"), session)
        out = capsys.readouterr().out
        if printed is not None:
            assert out == printed
    return len(examples)
