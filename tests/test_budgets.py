"""Each room of the package keeps to the lines of code that CONTRIBUTING.md gives it."""

from __future__ import annotations

import ast
import io
import pathlib
import re
import tokenize

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "drlogit"
#: What a room may exceed its number by while a mechanism is being replaced.
IN_A_SERIES = 1000
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def budgets() -> dict[str, int]:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (\w+)(\*?) \| (\d+) \|$", text, re.MULTILINE)
    return {room: int(most) + IN_A_SERIES * bool(star) for room, star, most in rows}


def docstring_lines(text: str) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.update(range(first.lineno, (first.end_lineno or 0) + 1))
    return found


def lines_of_code(path: pathlib.Path) -> int:
    text = path.read_text()
    if path.suffix == ".py":
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in _NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        return len(lines - docstring_lines(text))
    text = re.sub(r'^\s*[ru]?""".*?"""\s*$', "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"/\*.*?\*/|<!--.*?-->", "", text, flags=re.DOTALL)
    stripped = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith(("#", "//")) for line in stripped)


def rooms() -> dict[str, int]:
    found: dict[str, int] = {}
    for path in PACKAGE.rglob("*"):
        if path.suffix in {".py", ".pyx", ".pxd", ".html", ".css", ".js"}:
            parts = path.relative_to(PACKAGE).parts
            room = parts[0] if len(parts) > 1 else "top"
            found[room] = found.get(room, 0) + lines_of_code(path)
    return found


def test_every_room_keeps_to_its_number():
    found, most = rooms(), budgets()
    assert found.keys() <= most.keys()
    assert not {room: lines for room, lines in found.items() if lines > most[room]}
