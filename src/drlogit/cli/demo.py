"""Audit a model of one hospital and use it in another (bundled data).

Two models of heart disease are fitted to 200 patients of Cleveland: plain logistic regression, and
a robust one that is told that 5 % of the labels may be wrong. How much must go wrong until they
fail, and what went wrong in Switzerland?

    drlogit demo
    drlogit demo -o demo.html
    drlogit demo --write tables
"""

from __future__ import annotations

import textwrap
import warnings
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..datasets.bundled import load_heart_disease, write_hospitals
from ..estimators.classifier import DRLogisticRegression
from ..problem.ball import Ball
from ..report.audit import audit
from ..robustness.shift import measure_shift
from . import options
from .console import Console, Exit

#: How many patients of Cleveland are fitted, in a random order; the others are kept aside.
_FITTED, _SEED = 200, 0


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add("-o --output FILE", "web page to write: an audit of both models (.html)")
    add("--write DIR", "write the tables of the four hospitals to this folder, as CSV, and stop")


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    if arguments.write is not None:
        written = write_hospitals(arguments.write)
        console.answer({"files": written}, f"Written: {', '.join(written)}")
        return Exit.DONE
    parts, recorded = hospitals(as_recorded=False), hospitals(as_recorded=True)
    X, y = parts["cleveland"]
    order = np.random.default_rng(_SEED).permutation(y.size)
    fitted, kept = ((X.iloc[rows], y[rows]) for rows in (order[:_FITTED], order[_FITTED:]))
    with console.progress("demo"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the text says so
        models = fitted_models(Ball.tolerating(labels=0.05), *fitted)
        robust = models["robust"]
        places = {
            "Cleveland, patients kept aside": kept,
            "Switzerland, as recorded": recorded["switzerland"],
            "Switzerland, 0 read as missing": parts["switzerland"],
        }
        report = audit(models, *kept, ball=robust.ball_)
        moved = measure_shift(robust, *kept, recorded["switzerland"][0]).columns.iloc[0]
        if arguments.output is not None:
            report.to_html(arguments.output)
        record = {
            "verdict": report.verdict(),
            "places": [
                {"place": name, "n": len(rows[1]), **errors(models, *rows)}
                for name, rows in places.items()
            ],
            "moved": moved.to_dict(),
            "worst_case_loss": robust.worst_case_loss_,
            "gap": robust.dual_gap_,
        }
    console.answer(record, lambda: _text(record, arguments.output))
    return Exit.DONE if robust.dual_gap_ <= robust.tol else Exit.NOT_CONVERGED


def fitted_models(ball: Ball, X: Any, y: Any) -> dict[str, Any]:
    """An ordinary pipeline of scikit-learn and our model, fitted to the same rows."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    plain = make_pipeline(columns, LogisticRegression(max_iter=2000)).fit(X, y)
    robust = DRLogisticRegression(ball=ball, missing="median").fit(X, y)
    return {"plain": plain, "robust": robust}


def hospitals(*, as_recorded: bool) -> dict[str, tuple[Any, Any]]:
    """Features and labels of each hospital."""
    return {
        name: (rows.drop(columns=["hospital", "disease"]), rows["disease"].to_numpy())
        for name, rows in load_heart_disease(as_recorded=as_recorded).groupby("hospital")
    }


def errors(models: dict[str, Any], X: Any, y: Any) -> dict[str, float]:
    """The share of wrong predictions of each model on the rows of one place."""
    return {name: float(np.mean(model.predict(X) != y)) for name, model in models.items()}


def _text(record: dict[str, Any], page: str | None) -> str:
    moved, verdict = record["moved"], record["verdict"][0].removeprefix("plain: ")
    rows = [
        f"  {place['place']:32}{place['plain']:>8.1%}{place['robust']:>9.1%}"
        for place in record["places"]
    ]
    models = (
        f"That is plain logistic regression, fitted to {_FITTED} patients of Cleveland and asked "
        "about others. The robust model has the smallest worst case if 5 % of the labels are "
        f"wrong: its worst-case log-loss is {record['worst_case_loss']:.4f}, and it is proven that "
        f"no linear model is more than {record['gap']:.0e} below it. In Switzerland much does go "
        'wrong: a cholesterol of 0 stands for "not measured".'
    )
    seen = (
        f"drlogit shift sees it before any label is there: {moved['column']} moved by "
        f"{moved['moved']:.0f}, which is {moved['radii']:.0f} times what the ball allows. "
        f"{f'Written: {page}.' if page else 'drlogit demo -o demo.html writes the whole audit.'}"
    )
    return "\n".join(
        [
            "How much must go wrong until a model of heart disease fails?\n",
            textwrap.indent(textwrap.fill(verdict), "  ") + "\n",
            textwrap.fill(models) + "\n",
            f"  {'wrong predictions':32}{'plain':>8}{'robust':>9}",
            *rows,
            f"\n{textwrap.fill(seen)}",
            "The same in Python: README.md; with files: docs/tables.md.",
        ]
    )
