"""The command line, and what importing the package costs."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import warnings

import pytest

import drlogit
from drlogit import cli

pytestmark = pytest.mark.slow


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter, as a user's shell would."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_demo_compares_models_in_other_hospitals(tmp_path):
    page = tmp_path / "demo.html"
    run = python("-W", "error", "-m", "drlogit", "demo", "--json", "--quiet", "-o", str(page))
    assert (run.returncode, run.stderr) == (cli.Exit.DONE, "")
    found = json.loads(run.stdout)
    home, zeros, measured = found["places"]
    assert [home["n"], zeros["n"], measured["n"]] == [103, 123, 123]
    assert zeros["plain"] > measured["plain"] + 0.05  # what the zeros did
    assert found["moved"]["column"] == "cholesterol"
    assert found["moved"]["radii"] > 100.0
    assert 0.0 <= found["gap"] <= 1e-6
    assert "<html" in page.read_text("utf-8")


def test_demo_in_words(capsys):
    """The verdict first, and no more than fits on a screen."""
    assert cli.main(["demo"]) == cli.Exit.DONE
    printed, said = capsys.readouterr()
    assert len(printed.splitlines()) <= 24
    assert max(map(len, printed.splitlines())) <= 100
    verdict = printed.split("\n\n")[1].replace("\n  ", " ")
    assert "of the predictions are wrong. The model is better" in verdict
    assert "cholesterol moved by" in printed
    assert "warning" not in said


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="a web page"):
        cli.main(["audit", "m.json", "data.csv", "-o", "page.pdf", "--debug"])


@pytest.mark.parametrize(
    "command",
    ["", "nonsense", "demo --tolerate x", "fit", "fit a.csv --norm l3", "fit a.csv --solver magic",
     "fit a.csv --epsilon much", "fit a.csv --tolerate ab", "audit m.json a.csv --epsilons 1,x",
     "datasets"],
)  # fmt: skip
def test_usage_errors(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(command.split())
    assert stop.value.code == cli.Exit.USAGE
    assert "--help explains the usage" in capsys.readouterr().err


def test_version_is_the_installed_one(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"drlogit {drlogit.__version__}\n"
    assert drlogit.__version__ == importlib.metadata.version("drlogit")


@pytest.mark.skipif(os.name == "nt", reason="pipes close differently on Windows")
def test_a_reader_who_leaves_is_no_error():
    command = [sys.executable, "-m", "drlogit", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "drlogit: interrupted"),
        (MemoryError(), 1, "drlogit demo: error: MemoryError"),
        (MemoryError("8 GiB"), 1, "drlogit demo: error: 8 GiB"),
        (ValueError("two\nlines"), 1, "drlogit demo: error: two lines"),
        (ValueError(), 1, "drlogit demo: error: ValueError"),
    ],
)
def test_whatever_ends_a_command_is_one_line(error, code, line, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("drlogit.cli.demo.run", fail)
    assert cli.main(["demo"]) == code
    assert capsys.readouterr().err == line + "\n"


def test_warnings_are_one_line_without_our_place_in_the_code(monkeypatch, capsys):
    def warn(*_):
        warnings.warn("not\nso good", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr("drlogit.cli.demo.run", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert cli.main(["demo"]) == 0
        assert capsys.readouterr().err == "drlogit: warning: not so good\n"
        assert cli.main(["demo", "--quiet"]) == 0
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_examples_of_the_help_are_right(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    examples = re.findall(rf"^  (drlogit {name}.*)$", capsys.readouterr().out, re.M)
    assert examples
    for words in (shlex.split(example)[1:] for example in examples):
        assert cli.parsed(words).command == name
