"""Options that several commands share, each group in one place."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

Commands = Any  # argparse has no public name for what add_subparsers returns


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults after each option, and examples with their own line ends."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        # "(default: None)" and "(default: False)" tell nobody anything.
        if action.default is None or isinstance(action.default, bool):
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


def add_model_options(
    parser: argparse.ArgumentParser, *, epsilon: float, kappa: float
) -> argparse._ArgumentGroup:
    """Which model is meant, for every command that fits one."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--epsilon", type=float, default=epsilon, help="how far the data may shift (radius, >= 0)"
    )
    group.add_argument(
        "--kappa",
        type=float,
        default=kappa,
        help="cost of flipping a label (> 0, or inf); at most a share epsilon/kappa can be flipped",
    )
    group.add_argument(
        "--norm",
        choices=("l1", "l2", "linf"),
        default="l1",
        help="transport norm on the features",
    )
    return group
