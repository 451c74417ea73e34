"""Options that several commands share, each defined once.

An option is called as the parameter of Python that it states, where there is one.  Lists are
separate words: ``--drop id name``, ``--tolerate labels=0.05 age=2``.
"""

from __future__ import annotations

import argparse
import textwrap
from argparse import ArgumentTypeError
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..files.reading import FORMATS

#: What adds an option to a group: ``add("-o --output FILE", "what it is for")``.
Add = Callable[..., None]

MODEL = ("MODEL", "model file, as drlogit fit writes it")
DATA = (
    "DATA",
    "data file: CSV with a line of names, Parquet (.parquet) or svmlight (.svm, .libsvm); text may "
    "be compressed (.gz, .bz2, .xz); - is standard input",
)


def describe_command(parser: argparse.ArgumentParser, module: ModuleType) -> None:
    """Give a parser what its command is, and its options, with those that every command has.

    What its module says of itself is its help: a line, what it does, and examples to paste.
    """
    _, description, examples = (module.__doc__ or "\n\n\n\n").split("\n\n", 2)
    parser.description = textwrap.fill(description, 79)
    parser.epilog = "examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  ")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=module.run, flags={})
    add = group(parser)
    module.add_options(parser)
    add("--json", "print the answer as JSON")
    add("--quiet", "print no progress and no remarks")
    add("--debug", "show the traceback of an error")


def group(
    parser: argparse.ArgumentParser, title: str | None = None, *, one_of_them: bool = False
) -> Add:
    """What adds options to a group of a parser; ``one_of_them``: exactly one must be stated.

    An option without a word for its value is a switch; a word alone is a positional argument.
    Dots after the word stand for a list, two words for two values.
    """
    place: Any = parser if title is None else parser.add_argument_group(title)
    if one_of_them:
        place = place.add_mutually_exclusive_group(required=True)

    def add(flags: str, help: str, **settings: Any) -> None:
        names = [word for word in flags.split() if word.startswith("-")]
        values = [word.removesuffix("...") for word in flags.split() if not word.startswith("-")]
        if not values and "choices" not in settings:
            settings.setdefault("action", "store_true")
        elif values:
            settings["metavar"] = values[0] if len(values) == 1 else tuple(values)
        if flags.endswith("..."):
            settings |= {"nargs": "+", "action": "extend"}
        elif len(values) > 1:
            settings["nargs"] = len(values)
        action = place.add_argument(*(names or [values[0].lower()]), help=help, **settings)
        if names:
            parser.get_default("flags")[action.dest] = names[-1]

    return add


# --- data -----------------------------------------------------------------------------------


def add_file_options(parser: argparse.ArgumentParser, target: str = "that of the model") -> None:
    """How data files are read."""
    add = group(parser, "data file")
    add("--target COLUMN", f"column with the labels (default: {target})")
    add("--weights COLUMN", "column with the sample weights", dest="sample_weight")
    add("--format", "format of the file (default: that of its name, or CSV)", choices=FORMATS)
    add("--delimiter CHAR", "CSV: what separates the fields (default: a comma)", default=",")
    add("--decimal CHAR", "CSV: decimal mark of numbers (default: a point)", default=".")
    add("--encoding NAME", "CSV: encoding of the text (default: utf-8)", default="utf-8")
    add("--zero-based", "svmlight: columns are numbered from 0 instead of 1", default=None)


def add_threshold(parser: argparse.ArgumentParser) -> None:
    """The probability from which on the positive class is predicted."""
    said = "predict the positive class from this probability on (default: that of the model, or .5)"
    group(parser)("--threshold SHARE", said, type=float)


def add_cost(add: Add) -> None:
    """Costs of decisions."""
    said = "cost of a decision where the label is another, such as sick:well=5; others cost 0"
    add("--cost LABEL:DECISION=COST...", said, type=amount)


# --- the ball -------------------------------------------------------------------------------


def add_ball_options(parser: argparse.ArgumentParser, default: str) -> Add:
    """What may be wrong with the data; returns what adds to the advanced options."""
    add = group(parser, "what may be wrong with the data")
    said = (
        "shares of labels (labels=0.05, or of a class: labels:good=0.05), of categories "
        "(categories=0.02), numbers in standard deviations (numbers=0.1), and columns by name, in "
        f"their own units (age=2) or as a share (sex=0.01); alternatives, not a sum (default: "
        f"{default})"
    )
    add("--tolerate NAME=AMOUNT...", said, type=amount)
    shares = {name: f"--tolerate {name}" for name in ("labels", "numbers", "categories")}
    parser.get_default("flags").update(shares, columns="--tolerate")  # of Ball.tolerating
    add = group(parser, "advanced")
    said = "radius of the ball; 2 beside --tolerate is twice what was declared"
    add("--epsilon RADIUS", said, type=float)
    said = (
        "cost of a wrong label: a number, inf, or LABEL=COST for each label; epsilon/kappa is the "
        "largest share of wrong labels"
    )
    add("--kappa COST...", said, type=_cost)
    return add


# --- what options hold ----------------------------------------------------------------------


def amount(text: str) -> tuple[str, float]:
    """``age=2`` or ``labels=5%``: a name and a number."""
    name, equals, value = text.rpartition("=")
    try:
        number = float(value.removesuffix("%")) / (100.0 if value.endswith("%") else 1.0)
    except ValueError:
        number, equals = 0.0, ""
    if not (name and equals):
        raise ArgumentTypeError(f"must be NAME=NUMBER, such as age=2, got {text!r}")
    return name, number


def _cost(text: str) -> Any:
    return amount(text) if "=" in text else float(text)


_cost.__name__ = "cost"
