"""The README tells the truth: its Python runs, and what it says is printed is printed."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from drlogit import cli

README = Path(__file__).parent.parent / "README.md"

#: Fenced blocks as (language, text), in order.
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)


#: Each Python block with the text block that follows it, if one does.
EXAMPLES = [
    (code, after if after_language == "text" else None)
    for (language, code), (after_language, after) in pairwise([*BLOCKS, ("", "")])
    if language == "python"
]


def test_python_runs_and_prints_what_it_says(capsys):
    """In order and in one session, as a reader would paste it."""
    session = {"__name__": "readme"}
    for code, printed in EXAMPLES:
        exec(compile(code, str(README), "exec"), session)
        out = capsys.readouterr().out
        if printed is not None:
            assert out == printed


def test_there_is_an_example():
    assert any(printed for _, printed in EXAMPLES)


def test_demo_prints_what_the_readme_shows(capsys):
    (session,) = [text for language, text in BLOCKS if language == "console"]
    command, *shown = session.splitlines()
    assert command == "$ make demo"
    assert cli.main(["demo"]) == cli.DONE
    printed = capsys.readouterr().out.splitlines()
    assert shown
    assert [line for line in shown if line not in printed] == []
