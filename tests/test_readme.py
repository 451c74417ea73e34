"""The README tells the truth: its commands and its Python run, and print what it says."""

from __future__ import annotations

import re
import shlex
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


#: What README has a reader type, but for make and pip, which are tried by hand.
COMMANDS = [
    line
    for language, text in BLOCKS
    if language == "sh"
    for line in text.splitlines()
    if not line.startswith(("make ", "pip "))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a reader would be."""
    return tmp_path_factory.mktemp("readme")


def test_commands_run(folder, monkeypatch, capsys):
    """In order and in one folder, as a reader would paste them."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(folder)
    assert {shlex.split(command)[1] for command in COMMANDS} >= {"fit", "predict", "audit"}
    for command in COMMANDS:
        program, *arguments = shlex.split(command, comments=True)
        assert program == "drlogit"
        assert cli.main(arguments) == cli.DONE, capsys.readouterr().err
        written = [name for name in arguments if name.endswith((".csv", ".json", ".html", ".png"))]
        assert [name for name in written if not (folder / name).stat().st_size] == []
        assert capsys.readouterr().out or arguments[0] == "predict"


def test_python_runs_and_prints_what_it_says(folder, monkeypatch, capsys):
    """In order and in one session, as a reader would paste it."""
    monkeypatch.chdir(folder)
    if not (folder / "model.json").exists():  # when run alone
        fit = next(command for command in COMMANDS if " fit " in command)
        for command in (COMMANDS[0], fit):
            assert cli.main(shlex.split(command, comments=True)[1:]) == cli.DONE
        capsys.readouterr()
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
