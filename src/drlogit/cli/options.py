"""Options that several commands share, each group in one place."""

from __future__ import annotations

import argparse
import csv
import textwrap
from typing import Any

from ..estimators.tables.encoding import FILLS
from ..fitting.grids import check_count, check_kappas, check_radii
from ..fitting.solving import JOINT_SOLVERS, check_controls
from ..problem.parameters import check_epsilon, check_kappa

Commands = Any  # argparse has no public name for what add_subparsers returns

DATA_HELP = "file of samples: CSV, svmlight (libsvm), Parquet or NPZ, text also .gz, .bz2 or .xz"


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults after each option, and examples with their own line ends."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        # "(default: None)", "(default: False)" and "(default: ())" tell nobody anything.
        if action.default in (None, ()) or isinstance(action.default, bool):
            return action.help
        return super()._get_help_string(action)


def new_parser(
    commands: Commands, name: str, *, help: str, description: str, examples: str = ""
) -> argparse.ArgumentParser:
    """The parser of a command, with the options that every command has.

    ``examples`` are commands to paste, one per line.
    """
    epilog = "examples:\n" + "".join(f"  {line.strip()}\n" for line in examples.strip().split("\n"))
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=textwrap.fill(description, 79),
        epilog=epilog if examples.strip() else None,
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    parser.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,  # so as not to undo a --debug before the command
        help="show where an error came from, as a traceback",
    )
    return parser


# --- data -----------------------------------------------------------------------------------


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """How to read the samples that a model is fitted to."""
    group = _add_reading_options(
        parser, target="a column named target, label, class or y, else the last one"
    )
    group.add_argument(
        "--features", type=names, metavar="A,B", help="columns to use; all others are left out"
    )
    group.add_argument("--drop", type=names, default=(), metavar="A,B", help="columns to leave out")
    group.add_argument(
        "--positive",
        metavar="LABEL",
        help="the label of the positive class (default: the one that sorts last); of more than two "
        "labels, this one against the rest",
    )
    group.add_argument(
        "--balanced", action="store_true", help="give every class the same total weight"
    )
    group.add_argument(
        "--standardize",
        action="store_true",
        help="measure every number in standard deviations; the model is written for the data as "
        "they are",
    )
    group.add_argument(
        "--n-features",
        type=int,
        metavar="N",
        help="svmlight: number of columns, if this file does not use the last ones",
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """What the columns of a raw table are, and what they can be."""
    group = parser.add_argument_group("tables (text columns are categories, with all their levels)")
    group.add_argument(
        "--categorical",
        type=names,
        default=(),
        metavar="A,B",
        help="columns of numbers that are categories, too (CSV, Parquet)",
    )
    group.add_argument(
        "--numbers",
        type=names,
        default=(),
        metavar="A,B",
        help="columns of text that are numbers, such as $1,234.50 or 12 %%; other text is missing",
    )
    group.add_argument(
        "--missing",
        choices=FILLS,
        default="error",
        help="what stands in for missing numbers; a missing text is a category of its own",
    )
    group.add_argument(
        "--bounds",
        type=_bounds,
        metavar="A=0..9,B=0..1",
        help="what columns can be, also as 0.. or ..9; data: the range that they have in the data",
    )


def _bounds(text: str) -> Any:
    """``age=0..120,share=0..1`` as ends by name, or ``data``."""
    if text == "data":
        return text
    found = {}
    for part in names(text):
        name, equals, ends = part.rpartition("=")
        low, dots, high = ends.partition("..")
        if not (name and equals and dots):
            raise ValueError
        found[name] = (float(low or "-inf"), float(high or "inf"))
    return found


_bounds.__name__ = "list of name=low..high, or data"


def amounts(text: str) -> dict[str, float]:
    """``labels=0.02,age=2`` as numbers by name."""
    found = {}
    for part in names(text):
        name, equals, amount = part.rpartition("=")
        if not (name and equals):
            raise ValueError
        if amount.endswith("%"):
            share = float(amount[:-1]) / 100.0
            raise argparse.ArgumentTypeError(f"write {name}={share:g} for {part}")
        found[name] = float(amount)
    return found


amounts.__name__ = "list of name=amount"


def add_sample_options(parser: argparse.ArgumentParser) -> None:
    """How to read the samples that a model is asked about; it knows its features."""
    _add_reading_options(parser, target="that of the model")


def _add_reading_options(parser: argparse.ArgumentParser, *, target: str) -> Any:
    group = parser.add_argument_group("data (columns by name, or by number from 0; -1 is the last)")
    group.add_argument(
        "--target", metavar="COLUMN", help=f"column of the labels (default: {target}); NPZ: array"
    )
    group.add_argument(
        "--labels",
        metavar="FILE",
        help="labels in a file of their own: .npy, or text with one per line",
    )
    group.add_argument(
        "--weights", metavar="COLUMN", help="column of the sample weights; NPZ: array"
    )
    group.add_argument(
        "--format",
        choices=("csv", "npz", "parquet", "svmlight"),
        help="(default: by name or contents)",
    )
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="CSV: whether the first line names the columns (default: if it looks so)",
    )
    group.add_argument(
        "--delimiter", metavar="CHAR", type=_character, help="CSV: (default: found out)"
    )
    group.add_argument(
        "--zero-based",
        action="store_true",
        default=None,
        help="svmlight: columns are numbered from 0 instead of 1",
    )
    return group


def names(text: str) -> tuple[str, ...]:
    """``a,b,"c,d"`` as names."""
    return tuple(name.strip() for name in next(csv.reader([text])) or [""])


def numbers(text: str) -> tuple[float, ...]:
    """``0.1,1,inf`` as numbers."""
    return tuple(float(part) for part in text.split(","))


def _character(text: str) -> str:
    character = {"\\t": "\t", "tab": "\t", "space": " "}.get(text, text)
    if len(character) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return character


# --- model ----------------------------------------------------------------------------------


def add_model_options(
    parser: argparse.ArgumentParser, *, epsilon: float | None, kappa: float | None
) -> None:
    """Which model is meant, for every command that fits one; None leaves the option out."""
    group = parser.add_argument_group("model")
    if epsilon is not None:
        group.add_argument(
            "--epsilon",
            type=_radius,
            default=epsilon,
            metavar="RADIUS",
            help="how far the data may shift on average, >= 0; auto: a radius from theory",
        )
    if kappa is not None:
        group.add_argument(
            "--kappa",
            type=float,
            default=kappa,
            metavar="COST",
            help="cost of flipping a label, > 0, inf if labels are beyond doubt; at most a share "
            "epsilon/kappa of the labels can be flipped",
        )
    group.add_argument(
        "--norm",
        choices=("l1", "l2", "linf"),
        default="l1",
        help="transport norm on the features",
    )


def _radius(text: str) -> float | str:
    return "auto" if text == "auto" else float(text)


# argparse names the function in its messages.
_radius.__name__ = "number or auto"
numbers.__name__ = "list of numbers"


def add_solver_options(parser: argparse.ArgumentParser) -> None:
    """The rest of what a fit can be told."""
    group = parser.add_argument_group("fit")
    group.add_argument("--no-intercept", action="store_true", help="fit no intercept")
    group.add_argument(
        "--immovable",
        type=names,
        default=(),
        metavar="A,B",
        help="features that cannot move: their coefficients are not penalised",
    )
    group.add_argument(
        "--feature-costs",
        metavar="FILE",
        help="how hard each feature is to move (default 1, inf: immovable), in the units of the "
        "fit: JSON object of names and costs, JSON list, or CSV lines name,cost",
    )
    group.add_argument("--solver", choices=("auto", *JOINT_SOLVERS), default="auto", help="method")
    group.add_argument(
        "--tol", type=float, default=1e-6, help="wanted duality gap, in nats of log-loss"
    )
    group.add_argument("--max-iter", type=int, metavar="N", help="limit on iterations")


def check_numbers(arguments: argparse.Namespace) -> None:
    """Find out before the data are read that a number cannot be meant; ``ValueError`` says so."""
    given = vars(arguments)
    if given.get("epsilon") not in (None, "auto"):
        check_epsilon(given["epsilon"])
    if given.get("kappa") is not None:
        check_kappa(given["kappa"])
    for name, check in (("epsilons", check_radii), ("kappas", check_kappas)):
        if isinstance(given.get(name), int):
            check_count(given[name], name)
        elif given.get(name) is not None:
            check(given[name])
    if given.get("folds", 2) < 2:
        raise ValueError(f"--folds must be at least 2, got {given['folds']}")
    if "tol" in given:
        check_controls(given["tol"], given["max_iter"])


def add_block_option(parser: argparse.ArgumentParser) -> None:
    """For data that do not fit in memory."""
    group = parser.add_argument_group("data larger than memory")
    group.add_argument(
        "--block-rows",
        type=int,
        metavar="N",
        help="read the file N rows at a time: svmlight text, CSV or Parquet (columns of numbers, "
        "as they are, with --target), or .npy (with --labels)",
    )
