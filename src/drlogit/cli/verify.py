"""Check the bounds of a model against its data and its proof.

Computes both bounds of a model again from the data of the fit, the coefficients and the proof. Exit
code 0: the claims of the model are proven. Exit code 4: they are not, and a sentence says why.

    drlogit fit data.csv --target label -o model.json --proof proof.npz
    drlogit verify model.json data.csv --proof proof.npz
    drlogit verify model.json data.csv --proof proof.npz --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ..verification.verifying import verify
from . import options
from .console import Console, Exit
from .data import read_asked


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.MODEL)
    add(*options.DATA)
    add("--proof FILE", "proof file written by drlogit fit --proof", required=True)
    options.add_file_options(parser)


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console, arguments.data)
    samples = asked.samples
    data = samples.X, samples.labels, arguments.proof
    with console.progress("verify"):
        verdict = verify(asked.model, *data, sample_weight=samples.sample_weight)
    record = {"model": arguments.model, "data": samples.file.name, "proof": arguments.proof}
    record |= {**asdict(verdict), "gap": verdict.gap}
    text = [
        f"{'proven' if verdict.ok else 'NOT PROVEN'}: {verdict.reason}",
        f"  worst-case log-loss of the model, at most     {verdict.upper:.12f}",
        f"  worst-case log-loss of any model, at least    {verdict.lower:.12f}",
        f"  gap, with a slack for rounding                {verdict.gap:.1e}",
    ]
    console.answer(record, "\n".join(text))
    return Exit.DONE if verdict.ok else Exit.NOT_PROVEN
