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
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from .. import __version__
from .console import Console, Exit, printable

__all__ = ["Exit", "main", "parsed"]

#: In the order of the help text.
COMMANDS = {
    "demo": "audit a model of one hospital and use it in another (bundled data)",
    "fit": "fit a robust model to a file and write it as JSON",
    "predict": "predict labels and probabilities",
    "audit": "show how much must go wrong until models fail, and what can be promised",
    "threshold": "choose the cut-off of decisions with the best promise for new data",
    "shift": "measure how far new data have moved, and what that does to a model",
    "verify": "check the bounds of a model against its data and its proof",
}


class _Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong, in place of the usage of every option."""

    def error(self, message: str) -> NoReturn:
        text = f"{self.prog}: error: {message} ({self.prog} --help explains the usage)\n"
        self.exit(Exit.USAGE, printable(text))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (usage errors raise ``SystemExit(2)``)."""
    arguments = parsed(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warner()
            # Users should see these warnings, whatever filters the interpreter has.
            warnings.simplefilter("default", UserWarning)
            if arguments.quiet:
                warnings.simplefilter("ignore")
            _check_outputs(arguments.command, vars(arguments))
            code: int = arguments.run(arguments, Console(arguments))
        sys.stdout.flush()  # so that a closed pipe is met here and not at exit
    except BrokenPipeError:
        # The reader (head, less) has seen enough: not an error, and nothing left to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if arguments.debug:
            raise
        words = _describe(error, arguments.flags)
        print(printable(f"drlogit {arguments.command}: error: {words}"), file=sys.stderr)
        return Exit.BAD_INPUT
    except KeyboardInterrupt:
        print("drlogit: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    return code


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """What the words say; ``flags`` are the options of the command by the parameter they state."""
    parser = _Parser(
        prog="drlogit",
        description="How much must go wrong in the data before the number you act on fails, and "
        "through which column?",
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
        from difflib import get_close_matches

        flags = arguments.flags.values()
        near = [name for word in unknown for name in get_close_matches(word, flags, n=1)]
        hint = f": did you mean {near[0]}?" if near else ""
        commands.choices[arguments.command].error(
            f"unknown option or extra argument {' '.join(unknown)}{hint}"
        )
    return arguments


def _check_outputs(command: str, given: Mapping[str, Any]) -> None:
    """Find out before the work that an outcome cannot be written, or would destroy something."""
    read = [given.get("data"), given.get("new"), given.get("model"), *given.get("others", ())]
    if command == "threshold":  # which may write its model again
        read.remove(given["model"])
    taken = {os.path.realpath(path): "an input file" for path in read if path}
    written = {"-o": given.get("output"), "--holdout": (given.get("holdout") or [None])[-1]}
    if command == "fit":
        written["--proof"] = given["proof"]
    for option, path in written.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if os.path.isdir(place) or not os.path.isdir(os.path.dirname(place)):
            raise ValueError(f"{option} {path} must be a file in an existing folder")
        if not os.access(place if os.path.exists(place) else os.path.dirname(place), os.W_OK):
            raise ValueError(f"{option} {path} cannot be written to")
        if place in taken:
            raise ValueError(f"{option} {path} would overwrite {taken[place]}: name another file")
        taken[place] = f"the file of {option}"
        if command in ("audit", "demo") and not path.lower().endswith((".html", ".htm")):
            raise ValueError(f"-o {path} must be a web page: name a file that ends in .html")


def _describe(error: BaseException, flags: dict[str, str]) -> str:
    """What went wrong, in one line; a parameter is called as the option that states it."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    parameter = getattr(error, "parameter", None)
    text = str(error)
    if parameter in flags:
        text = f"{flags[parameter]} {getattr(error, 'problem', '')}"
    return " ".join(text.split()) or type(error).__name__


def _warner() -> Callable[..., None]:
    """What shows warnings as one line, once, and without the place in our code they came from."""
    shown = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            print(printable(f"drlogit: warning: {text}"), file=sys.stderr)

    return show
