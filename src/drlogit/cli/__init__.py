"""The command line.

A command is a module of this package, which begins with what it does and examples to paste, and
has two functions: ``add_options(parser)``, and ``run(arguments, console)``, which does the work,
prints the answer through the :class:`~drlogit.cli.console.Console` and returns the exit code.  To
add a command, write its module and name it in ``COMMANDS``.  The module of a command is imported
when it is asked for, and with it scikit-learn: ``drlogit --help`` needs none.

Exit codes: 0 done, 1 bad input (one clear line), 2 usage, 3 not converged to the tolerance, 4 not
proven.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from .. import __version__
from .console import (
    BAD_INPUT,
    DONE,
    INTERRUPTED,
    NOT_CONVERGED,
    NOT_PROVEN,
    USAGE,
    Console,
    as_options,
    printable,
)

__all__ = ["BAD_INPUT", "DONE", "INTERRUPTED", "NOT_CONVERGED", "NOT_PROVEN", "USAGE", "main"]

#: In the order of the help text.
COMMANDS = {
    "demo": "fit a model in one hospital and use it in three others (bundled data)",
    "fit": "fit a robust model to a file and write it as JSON",
    "predict": "predict labels and probabilities",
    "threshold": "choose the threshold with the best guarantee for new data",
    "audit": "show how large loss and error of models can get",
    "shift": "measure how far new data have moved, and what that does to a model",
    "verify": "check the bounds of a model against its data and its proof",
}


#: What argparse says of a mistake, and the same as value expected and value found.
_USAGE_ERRORS = {
    r"argument (\S+): invalid float value: (.*)": r"\1 must be a number, got \2",
    r"argument (\S+): invalid int value: (.*)": r"\1 must be a whole number, got \2",
    r"argument (\S+): invalid (.*) value: (.*)": r"\1 must be a \2, got \3",
    r"argument (\S+): invalid choice: (.*?) \(choose from (.*)\)": r"\1 must be one of \3, got \2",
    r"argument (\S+): expected one argument": r"\1 needs a value",
    r"argument (\S+): not allowed with argument (\S+)": r"\1 and \2 exclude each other",
    r"argument (\S+): ": r"\1 ",
    r"one of the arguments (.*) is required": r"one of \1 is missing",
    r"the following arguments are required: (.*)": r"\1 is missing",
    r"unrecognized arguments": "unknown option or extra argument",
    r"(number.*, got '\d+,\d+')$": r"\1: write decimals with a point",
}


class _Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong, in place of the usage of every option."""

    def error(self, message: str) -> NoReturn:
        for said, better in _USAGE_ERRORS.items():
            message = re.sub(said, better, message)
        text = f"{self.prog}: error: {message} ({self.prog} --help explains the usage)\n"
        self.exit(USAGE, printable(text))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (usage errors raise ``SystemExit(2)``)."""
    arguments = _parsed(sys.argv[1:] if argv is None else argv)
    from .outputs import check_outputs

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warner()
            # Users should see these warnings, whatever filters the interpreter has.
            warnings.simplefilter("default", UserWarning)
            if arguments.quiet:
                warnings.simplefilter("ignore")
            check_outputs(arguments)
            code: int = arguments.run(arguments, Console(arguments))
        sys.stdout.flush()  # so that a closed pipe is met here and not at exit
    except BrokenPipeError:
        # The reader (head, less) has seen enough: not an error, and nothing left to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (ValueError, OSError, ImportError, MemoryError) as error:
        if arguments.debug:
            raise
        words = as_options(_describe(error), vars(arguments))
        print(printable(f"drlogit {arguments.command}: error: {words}"), file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("drlogit: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """What the words say: all commands are known, and the options of the one that is among them."""
    parser = _Parser(
        prog="drlogit",
        description="Logistic regression for data that may be wrong, and for models that are used "
        "somewhere else.",
        epilog="drlogit COMMAND --help explains a command and gives examples.",
    )
    parser.add_argument("--version", action="version", version=f"drlogit {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = next((word for word in words if word in COMMANDS), None)
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line)
        if name == asked:
            from .options import describe_command

            describe_command(command, import_module(f".{name}", __package__))
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        from ..files.columns import near_names

        command = commands.choices[arguments.command]
        known = re.findall(r"--[a-z-]+", command.format_help())
        flags = [word.split("=")[0] for word in unknown if word.startswith("--")]
        near = [name for flag in flags for name in near_names(flag, known)]
        hint = f": did you mean {near[0]}?" if near else ""
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments


def _describe(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    return " ".join(str(error).split()) or type(error).__name__


def _warner() -> Callable[..., None]:
    """What shows warnings as one line, once, and without the place in our code they came from."""
    shown = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            print(printable(f"drlogit: warning: {text}"), file=sys.stderr)

    return show
