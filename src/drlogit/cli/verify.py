"""Check the bounds of a model against its data and its proof.

Computes both bounds of a model again from the data of the fit, the coefficients and the proof, and
accounts for every rounding. Exit code 0: the claims of the model are proven. Exit code 4: they are
not, and a sentence says why.

    drlogit fit data.csv --epsilon 0.1 -o model.json --proof proof.npz
    drlogit verify model.json data.csv --proof proof.npz
    drlogit verify model.json data.csv --proof proof.npz --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ..verification.verifying import verify
from . import options
from .asking import read_asked
from .console import DONE, NOT_PROVEN, Console


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add("--proof FILE", "proof file written by drlogit fit --proof", required=True)
    options.add_sample_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    samples = asked.samples
    verdict = verify(
        asked.model, samples.X, asked.labels, arguments.proof, sample_weight=samples.weights,
        kappa=samples.kappa,
    )  # fmt: skip
    record = {"model": arguments.model, "data": samples.source, "proof": arguments.proof}
    record |= {**asdict(verdict), "gap": verdict.gap}
    text = [
        f"{'proven' if verdict.ok else 'NOT PROVEN'}: {verdict.reason}",
        f"  worst-case log-loss of the model, at most     {verdict.upper:.12f}",
        f"  worst-case log-loss of any model, at least    {verdict.lower:.12f}",
        f"  gap, including all rounding                   {verdict.gap:.1e}",
    ]
    console.answer(record, "\n".join(text))
    return DONE if verdict.ok else NOT_PROVEN
