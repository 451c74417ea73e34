"""``drlogit verify``: are the bounds of a model true, rounding and all?"""

from __future__ import annotations

import argparse
from typing import Any

from ..estimators.training_data import with_class_weights
from . import options
from .asking import ModelAndSamples, read_asked
from .console import DONE, NOT_PROVEN, Console


def add_parser(commands: options.Commands) -> None:
    """Add the command."""
    parser = options.new_parser(
        commands,
        "verify",
        run,
        help="check the bounds of a model against its data and its proof",
        description="Compute both bounds of a model again, from the data that it was fitted to, "
        "its coefficients and its proof alone, with every rounding accounted for. Exit code 0: the "
        "model's claims are proven; 4: they are not, and a sentence says why.",
        examples="""
        drlogit fit data.csv --epsilon 0.1 -o model.json --proof proof.npz
        drlogit verify model.json data.csv --proof proof.npz
        drlogit verify model.json data.csv --proof proof.npz --json
        """,
    )
    add = options.group(parser)
    add("MODEL", options.MODEL_HELP)
    add("DATA", options.DATA_HELP)
    add("--proof FILE", "what drlogit fit --proof wrote", required=True)
    options.add_sample_options(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    asked = read_asked(arguments, console)
    verdict = _verify(asked, arguments.proof)
    record = {
        "model": arguments.model,
        "data": asked.samples.source,
        "proof": arguments.proof,
        "ok": verdict.ok,
        "lower": verdict.lower,
        "upper": verdict.upper,
        "gap": verdict.gap,
        "reason": verdict.reason,
    }
    console.answer(record, lambda: _text(verdict))
    return DONE if verdict.ok else NOT_PROVEN


def _verify(asked: ModelAndSamples, proof: str) -> Any:
    from ..verification.verifying import verify

    weights = asked.samples.weights
    if asked.origin.get("balanced"):
        weights = with_class_weights(weights, "balanced", asked.classes, asked.codes)
    return verify(
        asked.model, asked.samples.X, asked.labels, proof, sample_weight=weights,
        kappa=asked.samples.kappa,
    )  # fmt: skip


def _text(verdict: Any) -> str:
    return "\n".join([
        f"{'proven' if verdict.ok else 'NOT PROVEN'}: {verdict.reason}",
        f"  worst-case log-loss on these data, at most    {verdict.upper:.12f}",
        f"  that of any linear model there, at least      {verdict.lower:.12f}",
        f"  gap, all rounding included                    {verdict.gap:.1e}",
    ])  # fmt: skip
