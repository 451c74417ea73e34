"""A folder with tables and models, and what runs commands there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from drlogit import cli
from patients import TABLE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The rows of a fit, others, and a model."""
    monkeypatch.chdir(tmp_path)
    TABLE[:250].to_csv("fitted.csv", index=False)
    TABLE[250:].to_csv("kept.csv", index=False)
    TABLE[250:].assign(age=TABLE.age + 20.0).drop(columns="state").to_csv("new.csv", index=False)
    command = "fit fitted.csv --target state --positive ill --tolerate labels=0.02 age=2"
    assert cli.main([*command.split(), "-o", "model.json", "--quiet"]) == cli.Exit.DONE
    return tmp_path


@pytest.fixture
def run(folder, capsys) -> Callable[[str], tuple[int, str, str]]:
    """Run a command in the folder: its code, and what it printed to both streams."""

    def called(command: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = cli.main(shlex.split(command))
        except SystemExit as stop:
            code = int(stop.code or 0)
        return (code, *capsys.readouterr())

    return called


@pytest.fixture
def answer(run) -> Callable[..., Any]:
    """Run a command with --json: the answer."""

    def called(command: str, code: int = cli.Exit.DONE) -> Any:
        found, out, err = run(f"{command} --json")
        assert found == code, err
        return json.loads(out)

    return called
