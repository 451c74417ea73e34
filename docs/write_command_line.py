"""Write docs/command_line.md from the parsers of the command line, as a script."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from pathlib import Path

from drlogit import cli
from drlogit.cli.options import describe_command

PAGE = Path(__file__).parent / "command_line.md"

HEAD = """\
# Command line

`drlogit COMMAND --help` prints the same text. The answer goes to standard output, remarks and
progress to standard error, so `drlogit … --json | jq` works.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | bad input; one line says what was found, what was expected and what to do |
| 2 | wrong usage of the command line |
| 3 | not converged to `--tol`; the model is written all the same |
| 4 | not proven (`verify`) |
| 130 | interrupted |
"""


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command, as the command line builds it."""
    parser = argparse.ArgumentParser(prog=f"drlogit {name}")
    describe_command(parser, import_module(f"drlogit.cli.{name}"))
    return parser


def cell(action: argparse.Action) -> str:
    """An option with its value, as one types it."""
    if not action.option_strings:
        return f"`{action.metavar or '|'.join(action.choices or ())}`"
    flags = ", ".join(f"`{flag}`" for flag in action.option_strings)
    value = "|".join(map(str, action.choices)) if action.choices else action.metavar
    if isinstance(value, tuple):
        value = " ".join(value)
    more = " …" if action.nargs == "+" else ""
    return f"{flags} `{value}{more}`" if value and action.nargs != 0 else flags


def meaning(action: argparse.Action) -> str:
    """Its help text, with the default where one says something."""
    said = _options_as_code((action.help or "").replace("%%", "%"))
    default = action.default
    if default is None or isinstance(default, bool) or default in ((), argparse.SUPPRESS):
        return said
    return f"{said} (default: {default})".strip()


def _options_as_code(text: str) -> str:
    """Options in backticks, so that two hyphens stay two hyphens."""
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text)


def rows(actions: list[argparse.Action]) -> list[str]:
    """A table of options."""
    escaped = [
        [text.replace("|", "\\|") for text in (cell(action), meaning(action))]
        for action in actions
        if action.dest != "help"
    ]
    lines = [f"| {flag} | {said} |" for flag, said in escaped]
    return ["| option | meaning |", "|---|---|", *lines]


def page() -> str:
    """The whole page."""
    common = {"json", "quiet", "debug"}
    lines, seen = [HEAD], dict[str, str]()
    for name, line in cli.COMMANDS.items():
        parser = parser_of(name)
        examples = (parser.epilog or "").removeprefix("examples:\n")
        shown = "\n".join(each[2:] for each in examples.splitlines())
        description = _options_as_code(" ".join((parser.description or line).split()))
        lines += [f"## drlogit {name}", "", description, "", "```sh", shown, "```", ""]
        groups: dict[str, list[argparse.Action]] = {"": []}
        for group in parser._action_groups:
            title = "" if group.title in ("options", "positional arguments") else str(group.title)
            groups.setdefault(title, []).extend(
                a for a in group._group_actions if a.dest not in common
            )
        for title, actions in groups.items():
            if not [a for a in actions if a.dest != "help"]:
                continue
            table = "\n".join(rows(actions))
            if title and table in seen:
                lines += [f"*{title}*: as for `drlogit {seen[table]}`.", ""]
                continue
            seen.setdefault(table, name)
            lines += [*([f"*{title}*:", ""] if title else []), table, ""]
    every = [a for a in parser_of("fit")._actions if a.dest in common]
    lines += ["## Every command", "", *rows(every), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
