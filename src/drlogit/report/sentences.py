"""The numbers of an audit in sentences; every one about decisions names the positive class."""

from __future__ import annotations

from typing import Any

from ..robustness.metrics import WORDS, Metric
from ..robustness.words import percent, rounded


def said(metric: Metric, value: float, sign: float = 0.0) -> str:
    """That a metric has this value; rounded up (sign 1), down (-1) or to the nearest."""
    if metric.name in ("log_loss", "cost", "net_benefit"):
        names = {"log_loss": "the log-loss", "cost": "the mean cost of decisions"}
        name = names.get(metric.name, f"the net benefit of predicting {_label(metric)}")
        return f"{name} is {rounded(value, sign) if sign else f'{value:.4g}'}"
    share = percent(value, sign) if sign else f"{100.0 * value:.3g} %"
    words = WORDS[metric.name].format(positive=_label(metric), other=_other(metric))
    return f"{share} {words}"


def decides(metric: Metric) -> str:
    """How the model decides, and what decisions cost."""
    if metric.name == "log_loss":
        return ""
    if metric.threshold is None:
        return "The model predicts the most probable class."
    words = f"{_label(metric)} is predicted if its probability is at least {metric.threshold:.4g}."
    if metric.name != "cost" or metric.table is None:
        return words
    names = _other(metric), _label(metric)
    prices = [
        f"{cost:g} if {label} is predicted {names[decision]}"
        for label, row in zip(names, metric.table.tolist(), strict=True)
        for decision, cost in enumerate(row)
        if cost
    ]
    return f"{words} It costs {' and '.join(prices)}."


def amount(column: Any) -> str:
    """How much must go wrong in a column, from a row of the frame of breaking points."""
    if column.kind == "labels":
        return f"{percent(column.breaks_at, -1.0)} of the labels are wrong"
    name = column.column if isinstance(column.column, str) else f"column {column.column}"
    if column.kind == "category":
        return f"{name} is wrong in {percent(column.breaks_at, -1.0)} of the rows"
    return f"{name} is off by {rounded(column.breaks_at, -1.0, 3)} on average"


def _label(metric: Metric) -> str:
    return f"'{metric.classes[metric.positive]}'"


def _other(metric: Metric) -> str:
    return f"'{metric.classes[1 - metric.positive]}'"
