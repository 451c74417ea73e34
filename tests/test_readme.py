"""The README tells the truth: its commands and its Python run, and print what it says."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import fenced
from drlogit import cli

README = Path(__file__).parent.parent / "README.md"

BLOCKS = fenced.blocks(README)
EXAMPLES = fenced.python_examples(README)


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
    fenced.run(README, capsys)


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
