"""The table "paper → code → test" of docs/paper.md has no empty cell and names what exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import drlogit

ROOT = Path(__file__).parents[2]


def table():
    """The cells of each line."""
    page = (ROOT / "docs" / "paper.md").read_text("utf-8")
    section = page.split("## Paper → code → test\n")[1].split("\n\n")[1]
    lines = [line for line in section.splitlines()[2:] if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def definitions(path):
    """The names of the functions in a file."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_table_has_all_numbered_parts_of_the_paper():
    cells = table()
    assert all(len(line) == 3 and all(line) for line in cells)
    parts = " ".join(line[0] for line in cells)
    names = "(A), (B), (C), Proposition 3.1, Proposition 4.1, Theorem 4.2, linearised ADMM, PDHG"
    others = [*names.split(", "), "subgradient", "Tables 1–4", "Figures 2, 3"]
    for part in [*(f"Algorithm {k}" for k in range(1, 7)), *others]:
        assert part in parts


@pytest.mark.parametrize("line", table(), ids=lambda line: line[0])
def test_named_functions_and_tests_exist(line):
    _, code, tests = line
    functions = re.findall(r"\{func\}`([\w.]+)`", code)
    files = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", code)
    assert functions or files
    for name in functions:
        value = drlogit
        for part in name.split(".")[1:]:
            value = getattr(value, part)
        assert callable(value)
    for file, name in files:
        folder = ROOT if file.startswith("benchmarks/") else ROOT / "src" / "drlogit" / "paper"
        assert (folder / file).is_file()
        assert not name or name in definitions(folder / file)
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", tests)
    assert len(named) == tests.count("`") // 2 > 0
    for file, name in named:
        folder = ROOT if file.startswith("tests/") else ROOT / "tests" / "paper"
        assert name in definitions(folder / file)
