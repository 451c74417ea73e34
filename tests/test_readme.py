"""The README tells the truth: its Python runs, and what it says is printed is printed."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_python_runs_and_prints_what_it_says(code, printed, capsys):
    exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    if printed is not None:
        assert capsys.readouterr().out == printed


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
