"""Fit, certify and explain a robust model on bundled data.

Loan applications in a raw table: people round their income, change the purpose that they state,
and some outcomes are booked wrong. Fit plain and robust logistic regression to half of them, and
say how bad each can get on the other half.

    drlogit demo
    drlogit demo -o demo.html
    drlogit demo --tolerate labels=0.05,purpose=0.3,age=inf
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any

import numpy as np

from ..datasets.bundled import load_bundled
from ..estimators.classifier import DRLogisticRegression
from ..estimators.tolerances import allowances, tolerances
from ..report.audits import audit
from . import options
from .audit import compared
from .console import DONE, NOT_CONVERGED, Console
from .outputs import certificate_record

#: Of the 1,000 loans, the first are fitted; the others show what is promised.
_FITTED = 500

#: What may be wrong with an application, unless something else is said.
_TOLERATED = {"labels": 0.02, "numbers": 0.1, "categories": 0.2}


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add("-o --output FILE", "web page to write, which compares the two (.html)")
    add("--tolerate labels=0.02,A=0.1", "what may be wrong, as in drlogit fit",
        type=options.amounts, default=_TOLERATED)  # fmt: skip


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    table = load_bundled("loans")
    X, y = table.drop(columns="outcome"), table["outcome"].to_numpy()
    seen, unseen = slice(None, _FITTED), slice(_FITTED, None)
    stated = dict(arguments.tolerate)
    kinds = {kind: stated.pop(kind) for kind in _TOLERATED if kind in stated}
    tolerated = tolerances(**kinds, columns=stated)
    model = DRLogisticRegression(**tolerated.parameters, missing="median").fit(X[seen], y[seen])
    codes = np.searchsorted(model.classes_, y[seen])
    models = {"robust": model, "plain LR": compared(model, X[seen], codes, None)}
    report = audit(
        models, X[unseen], y[unseen], epsilons=[model.epsilon_ * k / 4 for k in range(9)],
        holdout=(X[unseen], y[unseen]),
    )  # fmt: skip
    if arguments.output is not None:
        subtitle = f"Plain and robust logistic regression on {report.n_samples} loans, made up"
        report.to_html(arguments.output, subtitle=subtitle)
    record = {
        "n_fitted": _FITTED,
        "n_unseen": report.n_samples,
        "tolerated": arguments.tolerate,
        "fit": certificate_record(model.result_),
        "models": [_outcome(report, name, model.epsilon_) for name in ("plain LR", "robust")],
    }
    console.answer(record, lambda: _text(record, model, arguments.output))
    return DONE if model.result_.converged else NOT_CONVERGED


def _outcome(report: Any, name: str, epsilon: float) -> dict[str, Any]:
    """One model on the rows that it has not seen."""
    found = report[name]
    row = next(row for row in found.rows if row.epsilon == epsilon)
    return {
        "model": name,
        "log_loss": found.loss,
        "worst_case_log_loss": row.worst_case_loss,
        "error": found.error,
        "worst_case_error": row.worst_error,
        "guarantee": asdict(report.guarantees[name]),
    }


def _text(record: dict[str, Any], model: Any, page: str | None) -> str:
    models, n_unseen = record["models"], record["n_unseen"]
    promised = [each["guarantee"] for each in models]
    tolerated = ",".join(f"{name}={share:g}" for name, share in record["tolerated"].items())

    def line(words: str, name: str, each: list[dict[str, Any]] = models) -> str:
        form = ".3f" if "loss" in name else ".1%"
        return f"  {words:32}" + "".join(f"{one[name]:>10{form}}" for one in each)

    return f"""\
Loans, a made-up table of numbers, texts and gaps: a model is fitted to {_FITTED}
rows, and judged by {n_unseen} that it has not seen.

What may be wrong with such data?
{chr(10).join(f"  {sentence}" for sentence in allowances(model))}

{f"On the {n_unseen} unseen rows":34}{"plain LR":>10}{"robust":>10}
{line("log-loss, rows as they are", "log_loss")}
{line("log-loss, worst case allowed", "worst_case_log_loss")}
{line("error, rows as they are", "error")}
{line("error, worst case allowed", "worst_case_error")}
For new data like these, with {promised[0]["confidence"]:.0%} confidence
{line("log-loss, worst case, at most", "loss", promised)}
{line("error, worst case, at most", "error", promised)}
  Assumed: rows are independent, of one population, and were not looked at before.
It is the loss that is guarded: a model that is less sure is not wrong less often.

How sure is the fit? On its own rows, the robust model's worst-case log-loss is
  {record["fit"]["objective"]:.7f}, and no linear model can have one below \
{record["fit"]["dual_bound"]:.7f}.

{"The same with files:" if page is None else f"A page to look at: {page}"}
  drlogit datasets export loans loans.csv
  drlogit fit loans.csv --missing median --holdout 0.5 -o model.json --tolerate {tolerated}"""
