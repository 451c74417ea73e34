"""Options that several commands share, each defined once."""

from __future__ import annotations

import argparse
import codecs
import csv
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..estimators.tables.encoding import FILLS
from ..files.formats import FORMATS
from ..problem.norms import NORMS

#: What adds an option to a group: ``add("-o --output FILE", "what it is for")``.
Add = Callable[..., None]

MODEL = ("MODEL", "model file, as drlogit fit writes it")
DATA = ("DATA", "data file: CSV, svmlight (libsvm) or Parquet; text files may end in .gz, "
        ".bz2 or .xz; - is standard input")  # fmt: skip
COSTS = (
    "--costs A:B=1,B:A=5",
    "A:B=1 is the cost of deciding B when the label is A; pairs that are not named cost 0",
)


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults after each option, and examples with their own line ends."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        # Defaults such as None, False and () are not informative.
        if action.default in (None, ()) or isinstance(action.default, bool):
            return action.help
        return super()._get_help_string(action)


class _Together(argparse.Action):
    """Lists stated in several options are one list; of any other value the last counts."""

    def __call__(self, _: Any, namespace: argparse.Namespace, value: Any, __: Any = None) -> None:
        # Which options were stated, though it be with the value of their default.
        namespace.stated = {*getattr(namespace, "stated", ()), self.dest}
        before = getattr(namespace, self.dest)
        if before is not self.default and type(before) is type(value):
            if isinstance(value, tuple):
                value = (*before, *value)
            elif isinstance(value, dict):
                value = before | value
        setattr(namespace, self.dest, value)


def describe_command(parser: argparse.ArgumentParser, module: ModuleType) -> None:
    """Give a parser what its command is, and its options, with those that every command has.

    What its module says of itself is its help: a line, what it does, and examples to paste.
    """
    _, description, examples = (module.__doc__ or "\n\n\n\n").split("\n\n", 2)
    parser.description = textwrap.fill(description, 79)
    parser.epilog = "examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  ")
    parser.formatter_class = _HelpFormatter
    parser.set_defaults(run=module.run)
    add = group(parser)
    add("--json", "print the answer as JSON")
    add("--quiet", "print no progress and no remarks")
    add("--verbose", "print a line for every iteration, fold or radius")
    add("--debug", "show the traceback of an error")
    module.add_options(parser)


def group(
    parser: argparse.ArgumentParser, title: str | None = None, *, one_of_them: bool = False
) -> Add:
    """What adds options to a group of a parser; ``one_of_them``: exactly one must be stated.

    An option without a word for its value is a switch; a word alone is a positional argument.
    """
    place: Any = parser if title is None else parser.add_argument_group(title)
    if one_of_them:
        place = place.add_mutually_exclusive_group(required=True)

    def add(flags: str, help: str, **settings: Any) -> None:
        words = flags.split()
        names = [word for word in words if word.startswith("-")]
        if len(names) < len(words):
            settings["metavar"] = words[-1]
            if names:
                settings.setdefault("action", _Together)
        elif "choices" not in settings:
            settings.setdefault("action", "store_true")
        place.add_argument(*(names or [words[0].lower()]), help=help, **settings)

    return add


# --- data -----------------------------------------------------------------------------------


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """How to read the samples that a model is fitted to, and what their columns are."""
    add = add_sample_options(parser, "a column named target, label, class or y, else the last")
    add("--features A,B", "use only these columns (not for svmlight)", type=names)
    add("--drop A,B", "ignore these columns (not for svmlight)", type=names, default=())
    add("--positive LABEL", "of two classes, the one whose probability is reported (default: the "
        "class that sorts last)")  # fmt: skip
    add("--balanced", "give every class the same total weight")
    add("--standardize", "measure every number in standard deviations; the model still applies to "
        "the original data")  # fmt: skip
    add("--n-features N", "svmlight: number of columns, if this file does not use the last ones",
        type=int)  # fmt: skip
    add = group(parser, "tables (text columns are categories)")
    add("--categorical A,B", "treat these columns of numbers as categories (CSV, Parquet)",
        type=names, default=())  # fmt: skip
    add("--missing", "replacement for missing numbers; error refuses them; missing text is a "
        "category of its own", choices=FILLS, default="error")  # fmt: skip
    add("--bounds A=0..9,B=0..1", "range of each column, also as 0.. or ..9; data: as observed",
        type=_bounds)  # fmt: skip


def add_sample_options(parser: argparse.ArgumentParser, target: str = "that of the model") -> Add:
    """How to read samples; a model that is asked about them knows its features."""
    add = group(parser, "data (columns by name, or by number from 0; -1 is the last)")
    add("--target COLUMN", f"column with the labels (default: {target})")
    add("--weights COLUMN", "column with the sample weights")
    add("--kappa-column COLUMN", "column with the cost of flipping each label, in place of "
        "--kappa")  # fmt: skip
    add("--format", "format of the file (default: from name or contents)", choices=FORMATS)
    add("--header", "CSV: whether the first line names the columns (default: detected)",
        action=argparse.BooleanOptionalAction)  # fmt: skip
    add("--delimiter CHAR", "CSV: delimiter of the fields (default: detected)", type=_character)
    add("--decimal CHAR", "CSV: decimal mark of numbers", type=_character, default=".")
    add("--encoding NAME", "CSV: encoding of the text, such as latin1", type=_encoding,
        default="utf-8-sig")  # fmt: skip
    add("--zero-based", "svmlight: columns are numbered from 0 instead of 1", default=None)
    return add


# --- model ----------------------------------------------------------------------------------


def add_model_options(parser: argparse.ArgumentParser, **defaults: float) -> Add:
    """Which model is meant, for every command that fits one; ε and κ if they have a default."""
    add = group(parser, "model")
    if "epsilon" in defaults:
        add("--epsilon RADIUS", "how far the rows may move on average, >= 0", type=float,
            default=defaults["epsilon"])  # fmt: skip
    if "kappa" in defaults:
        add("--kappa COST", "cost of flipping a label, > 0; inf if labels are correct; at most a "
            "share epsilon/kappa of the labels can be flipped; by label: good=5,bad=inf",
            type=by_label, default=defaults["kappa"])  # fmt: skip
    add("--norm", "transport norm on the features", choices=tuple(NORMS), default="l1")
    return add


def add_solver_options(parser: argparse.ArgumentParser) -> None:
    """Options of the fit itself."""
    add = group(parser, "fit")
    add("--no-intercept", "fit no intercept")
    add("--immovable A,B", "these features cannot move, and their coefficients are not penalised",
        type=names, default=())  # fmt: skip
    add("--feature-costs A=2,B=inf", "cost of moving a feature by one unit; features that are not "
        "named cost 1", type=amounts)  # fmt: skip
    add("--solver", "solver of the fit", choices=("auto", "interior-point"), default="auto")
    add("--tol GAP", "largest duality gap, in nats of log-loss", type=float, default=1e-6)
    add("--max-iter N", "largest number of iterations", type=int)
    add("--max-time SECONDS", "time limit; the best certified model so far is kept", type=float)


def add_ball_options(parser: argparse.ArgumentParser, title: str) -> Add:
    """The ball in which a model is measured."""
    add = group(parser, title)
    add("--epsilon RADIUS", "radius of the ball (default: that of the model)", type=float)
    add("--kappa COST", "cost of flipping a label (default: that of the model)", type=by_label)
    return add


def add_threshold(parser: argparse.ArgumentParser) -> None:
    """The probability from which on the positive class is predicted."""
    group(parser)("--threshold SHARE", "for two classes: predict the positive class from this "
        "probability on (default: predict the more likely class)", type=float)  # fmt: skip


# --- what options hold; argparse gives the name of the function in its messages --------------


def names(text: str) -> tuple[str, ...]:
    """``a,b,"c,d"`` as names."""
    return tuple(name.strip() for name in next(csv.reader([text])) or [""])


def numbers(text: str) -> tuple[float, ...]:
    """``0.1,1,inf`` as numbers."""
    return tuple(float(part) for part in text.split(","))


def amounts(text: str) -> dict[str, float]:
    """``labels=2%,age=2`` as numbers by name."""
    return {
        name: float(amount.removesuffix("%")) / (100.0 if amount.endswith("%") else 1.0)
        for name, amount in _pairs(text)
    }


def by_label(text: str) -> float | dict[str, float]:
    """A number, or ``good=5,bad=inf``."""
    return amounts(text) if "=" in text else float(text)


def _bounds(text: str) -> Any:
    """``age=0..120,share=0..1`` as ends by name, or ``data``."""
    if text == "data":
        return text
    found = {}
    for name, ends in _pairs(text):
        low, dots, high = ends.partition("..")
        if not dots:
            raise ValueError
        found[name] = (float(low or "-inf"), float(high or "inf"))
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = [part.rpartition("=") for part in names(text)]
    if not all(name and equals for name, equals, _ in pairs):
        raise ValueError
    return [(name, value) for name, _, value in pairs]


def _character(text: str) -> str:
    character = {"\\t": "\t", "tab": "\t", "space": " "}.get(text, text)
    if len(character) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return character


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"unknown encoding: {text!r}") from None


by_label.__name__ = "number, or list of label=number"
numbers.__name__ = "list of numbers"
amounts.__name__ = "list of name=number"
_bounds.__name__ = "list of name=low..high, or data"
