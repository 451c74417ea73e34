"""The command line, and what importing the package costs."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import drlogit
from drlogit import cli


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter, as a user's shell would."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def demo_output() -> str:
    run = python("-W", "error", "-m", "drlogit", "demo")
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def number_after(text: str, output: str) -> float:
    found = re.search(re.escape(text) + r"\s*([-+.\de]+\d)", output)
    assert found, f"{text!r} not in\n{output}"
    return float(found[1])


def test_demo_explains_the_radius(demo_output):
    assert "epsilon/kappa = 0.1 of all labels may be flipped (about 57 of 569)" in demo_output


def test_demo_compares_plain_and_robust(demo_output):
    line = next(line for line in demo_output.splitlines() if "worst case allowed" in line)
    plain, robust = map(float, line.split()[-2:])
    assert plain == pytest.approx(2.172, abs=1e-3)
    assert robust == pytest.approx(0.517, abs=1e-3)


def test_demo_says_why_the_worst_error_is_higher(demo_output):
    line = next(line for line in demo_output.splitlines() if "error, worst case" in line)
    plain, robust = (float(word.rstrip("%")) for word in line.split()[-2:])
    assert (plain, robust) == (12.7, 35.0)
    assert "kappa guards the loss, not the error" in demo_output


def test_demo_makes_a_page(tmp_path, capsys):
    page = tmp_path / "demo.html"
    assert cli.main(["demo", "-o", str(page)]) == cli.DONE
    assert f"a page to look at: {page}" in capsys.readouterr().out
    assert "worst radius" in page.read_text("utf-8")


def test_demo_certifies(demo_output):
    objective = number_after("worst-case loss is", demo_output)
    bound = number_after("can have one below", demo_output)
    gap = number_after("the gap of", demo_output)
    assert 0.0 <= gap <= 1e-6
    assert objective - bound == pytest.approx(gap, abs=2e-7)  # seven digits are printed


def test_demo_lists_the_surest_samples_first(demo_output):
    rows = re.findall(r"^ +(\d+)  (malignant|benign) +([\d.]+)% +100%$", demo_output, re.M)
    assert len(rows) == 5
    probabilities = [float(row[2]) for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)
    assert rows[0][0] == "567"


def test_demo_without_flips(capsys):
    assert cli.main(["demo", "--kappa", "inf"]) == cli.DONE
    output = capsys.readouterr().out
    assert "labels are beyond doubt" in output
    assert "flips no label" in output


def test_demo_says_when_it_did_not_converge(monkeypatch, capsys):
    solve = drlogit.solve

    def hasty(X, y, **options):
        return solve(X, y, **options, tol=1e-300)

    monkeypatch.setattr(sys.modules["drlogit.fitting.solving"], "solve", hasty)
    assert cli.main(["demo"]) == cli.NOT_CONVERGED
    assert "Not converged: stopped" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"), [("--epsilon", "-1"), ("--epsilon", "nan"), ("--kappa", "0")]
)
def test_bad_values_give_one_line(option, value, capsys):
    assert cli.main(["demo", option, value]) == cli.BAD_INPUT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(
        rf"drlogit demo: error: {option[2:]} must be .*, got {float(value)}\n", printed.err
    )


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="epsilon must be"):
        cli.main(["--debug", "demo", "--epsilon", "-1"])


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["demo", "--epsilon", "x"], ["demo", "--norm", "l3"]]
)
def test_usage_errors(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == cli.USAGE
    assert "usage: drlogit" in capsys.readouterr().err


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


def test_everything_exported_is_there():
    assert sorted(drlogit.__all__) == sorted(set(drlogit.__all__))
    for name in drlogit.__all__:
        assert getattr(drlogit, name) is not None


def test_blas_keeps_to_one_thread():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    wanted = min(int(os.environ["OPENBLAS_NUM_THREADS"]), os.cpu_count())
    np.ones((2, 2)) @ np.ones((2, 2))
    for pool in threadpoolctl.threadpool_info():
        if pool["user_api"] == "blas":
            assert pool["num_threads"] == wanted


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "drlogit: interrupted"),
        (MemoryError(), 1, "drlogit demo: error: not enough memory"),
        (MemoryError("8 GiB"), 1, "drlogit demo: error: not enough memory: 8 GiB"),
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
    def warn(_):
        warnings.warn("not\nso good", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr("drlogit.cli.demo.run", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert cli.main(["demo"]) == 0
        assert capsys.readouterr().err == "drlogit: warning: not so good\n"
        assert cli.main(["demo", "--quiet"]) == 0
        assert capsys.readouterr().err == ""
