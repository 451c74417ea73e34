"""Fit a model in one hospital and use it in three others (bundled data).

Heart disease in four hospitals. Two models are fitted to 200 patients of Cleveland: plain logistic
regression, and a robust one that is told that 5 % of the labels may be wrong. How much must go
wrong until they fail, and what went wrong elsewhere?

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
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
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
    ball = Ball.tolerating(labels=0.05)
    models = fitted_models(ball, *fitted)
    robust = models["robust"]
    places = {
        "Cleveland, kept aside": kept,
        "Budapest": parts["budapest"],
        "Long Beach": parts["long-beach"],
        "  as recorded, with zeros": recorded["long-beach"],
        "Switzerland": parts["switzerland"],
        "  as recorded, all zeros": recorded["switzerland"],
    }
    with console.progress("demo"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the text says so
        report = audit(models, *kept, ball=robust.ball_)
        moved = measure_shift(robust, *kept, *recorded["switzerland"])
        if arguments.output is not None:
            report.to_html(arguments.output)
    record = {
        "places": [
            {"place": name, "n": len(rows[1]), **scores(models, *rows)}
            for name, rows in places.items()
        ],
        "verdict": report.verdict(),
        "worst_case_loss": robust.worst_case_loss_,
        "gap": robust.dual_gap_,
    }
    console.answer(record, lambda: _text(record, str(moved)))
    return Exit.DONE if robust.dual_gap_ <= robust.tol else Exit.NOT_CONVERGED


def fitted_models(ball: Ball, X: Any, y: Any) -> dict[str, Any]:
    """Both models, fitted to the same rows."""
    robust = DRLogisticRegression(ball=ball, missing="median").fit(X, y)
    return {"plain": _plain_model(X, y), "robust": robust}


def hospitals(*, as_recorded: bool) -> dict[str, tuple[Any, Any]]:
    """Features and labels of each hospital."""
    return {
        name: (rows.drop(columns=["hospital", "disease"]), rows["disease"].to_numpy())
        for name, rows in load_heart_disease(as_recorded=as_recorded).groupby("hospital")
    }


def _plain_model(X: Any, y: Any) -> Any:
    """Logistic regression of scikit-learn, its penalty chosen by cross-validation."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    strengths = {"logisticregression__C": np.logspace(-3.0, 2.0, 11)}
    model = make_pipeline(columns, LogisticRegression(max_iter=2000))
    return GridSearchCV(model, strengths, scoring="neg_log_loss").fit(X, y).best_estimator_


def scores(models: dict[str, Any], X: Any, y: Any) -> dict[str, dict[str, float]]:
    """Log-loss and error of each model on the rows of one place."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a column without values
        for name, model in models.items():
            loss = log_loss(y, model.predict_proba(X), labels=["no", "yes"])
            error = np.mean(model.predict(X) != y)
            found[name] = {"log_loss": float(loss), "error": float(error)}
    return found


def _text(record: dict[str, Any], moved: str) -> str:
    forms = (("log_loss", ".3f"), ("error", ".1%"))
    columns = [(model, *form) for form in forms for model in ("plain", "robust")]
    rows = "\n".join(
        f"  {place['place']:28}{place['n']:>5}"
        + "".join(f"{place[model][metric]:>10{form}}" for model, metric, form in columns)
        for place in record["places"]
    )
    return f"""\
Heart disease in four hospitals (UCI, CC BY 4.0). Two models are fitted to {_FITTED} patients of
Cleveland: plain logistic regression, its penalty chosen by cross-validation; and a robust one,
which is told that 5 % of the labels may be wrong. How much must go wrong until they fail? For
patients of Cleveland who were kept aside:

{_filled(record["verdict"])}

What went wrong elsewhere? In Long Beach and Switzerland, a cholesterol of 0 means "not measured",
and nobody told the models. Where it is read as missing, it does no harm.

{"":35}{"log-loss":>10}{"":10}{"wrong":>10}
  {"hospital":28}{"rows":>5}{"plain":>10}{"robust":>10}{"plain":>10}{"robust":>10}
{rows}

How would one have known? From the columns, before any label is there. The robust model, from
Cleveland to Switzerland as recorded:

{_filled(moved.splitlines())}

Is there a better model? On the fitted patients, the robust model's worst-case log-loss is
{record["worst_case_loss"]:.6f}. It is proven that no linear model is {record["gap"]:.0e} below it.

The same with files, from drlogit demo --write . on: docs/tables.md"""


def _filled(paragraphs: list[str]) -> str:
    return "\n".join(textwrap.indent(textwrap.fill(each, 96), "  ") for each in paragraphs)
