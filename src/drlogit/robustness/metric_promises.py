"""Confidence limits of a metric in the population that unseen rows come from.

The mean of a metric has the limit of :mod:`.unseen_rows`: its values lie between known ends, so the
limit holds for every number of rows.

A ratio ``E[a]/E[b]`` is at most θ where ``sup E[a - θ b] ≤ 0``.  Values of θ are tested one after
another, starting from the safe end, and the last one before the first failure is promised.  To
promise a θ that is too small, the largest of these must have been rejected falsely, so each test
takes the whole confidence (fixed-sequence testing).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ..problem.label_costs import StatedKappa, flips_in_words
from ..rows.arrays import IndexArray
from .metrics import Metric
from .subgroups import Subgroup
from .unseen_rows import AskedRows, PricedRows, UnseenRows

#: Ratios are promised in steps of this size.
_STEP = 0.01


@dataclass(frozen=True)
class MetricPromise:
    """A limit of a metric on the population that rows come from; ``float()`` is the limit.

    Attributes
    ----------
    value, nominal : float
        The limit, from above or, for benefits such as precision, from below, under every
        distribution within ``epsilon`` of the population; and the metric on the rows as they are.
    metric : str
        Its name, with the threshold.
    confidence : float
        The probability with which the limit holds, together with those of all groups and of all
        candidates that were compared.
    n : int
        The number of rows that the limit rests on.
    epsilon, kappa : float, or κ by label, or "by sample"
        The ball.
    is_benefit : bool
        Whether the limit is a limit from below.
    assumed : str
        The assumptions, in words.
    group : str
        The group of rows that the limit describes; empty for all rows.
    groups : tuple of MetricPromise
        The limit of each group.
    folds, tried : int
        The number of cross-validation models that the limit averages (0: it is about the model
        itself), and the number of settings that the rows were used to compare.
    n_price : int
        The number of further rows, which set the price of the adversary's moves.
    """

    value: float
    nominal: float
    metric: str
    confidence: float
    n: int
    epsilon: float
    kappa: StatedKappa
    is_benefit: bool
    assumed: str
    group: str = ""
    groups: tuple[MetricPromise, ...] = ()
    folds: int = 0
    tried: int = 1
    n_price: int = 0

    def __float__(self) -> float:
        return self.value

    @property
    def bound(self) -> str:
        return "at least" if self.is_benefit else "at most"

    def __str__(self) -> str:
        lines = [
            f"{scope(self)}: {self.metric} is {self.bound} {self.value:.4g}. On these rows it is "
            f"{self.nominal:.4g}."
        ]
        lines += [
            f"  {part.group} ({part.n} rows): {self.bound} {part.value:.4g} "
            f"({part.nominal:.4g} on these rows)"
            for part in self.groups
        ]
        return "\n".join([*lines, *about_folds(self.folds, self.tried)])

    @property
    def about_price(self) -> str:
        """Why the limit does not rest on all rows; empty if it does."""
        return about_price(self.n_price)


def scope(found: Any) -> str:
    """For which population the limits of a promise hold, and with what confidence."""
    whose = f" with {found.group}" if found.group else ""
    return (
        f"With {found.confidence:.0%} confidence, in the population of these {found.n} rows{whose} "
        f"and in every distribution within epsilon = {found.epsilon:g} of it "
        f"({flips_in_words(found.epsilon, found.kappa)})"
    )


def about_folds(folds: int, tried: int) -> list[str]:
    """What to say about limits that come from cross-validation or from compared settings."""
    lines = []
    if folds:
        lines.append(
            f"Limits for the average of {folds} cross-validation models, not the final model."
        )
    if tried > 1:
        lines.append(f"Corrected for comparing {tried} settings.")
    return lines


def about_price(n_price: int) -> str:
    """Why limits do not rest on the rows that set the price."""
    if not n_price:
        return ""
    return (
        f"{n_price} other rows chose the dual price of transport; the rows of a limit may not "
        "choose its price."
    )


def promise_of(
    rows: UnseenRows,
    metric: Metric,
    confidence: float,
    parts: tuple[Subgroup, ...] = (),
    tried: int = 1,
    wanted: float | None = None,
    finer: bool = True,
) -> MetricPromise:
    """The limit of a metric on all rows and on groups, as one of ``tried`` that hold together.

    ``wanted`` is a limit of a ratio that is tested before ``finer`` ones, if these are tested.
    """
    if metric.name == "log_loss":
        raise ValueError("the log-loss is unbounded: call guarantee() without metric to limit it")
    asked, audit = AskedRows(rows, metric), rows.audit
    sides = (-1.0, 1.0) if metric.name == "calibration" else (1.0,)
    alpha = (1.0 - confidence) / (tried * rows.tried * (1 + len(parts)) * len(sides))
    sign = metric.worst_sign
    priced = cache(asked.priced)
    found = []
    for name, own in (("", rows.rest), *((f"{p.column} = {p.value}", p.members) for p in parts)):
        some = rows.rest[np.isin(rows.rest, own)]
        if metric.below is not None:
            value = _ratio(priced, metric, some, alpha, wanted, finer=finer)
        else:
            limits = [side * sign * priced(side * sign).limit(some, alpha) for side in sides]
            value = max(limits, key=abs)
        one = MetricPromise(
            value, priced(sign).nominal(some), str(metric), confidence, int(some.size),
            audit.problem.epsilon, audit.kappa, sign < 0.0, rows.assumptions(), name,
            folds=len(rows.folds) if rows.out_of_fold else 0, tried=rows.tried,
            n_price=rows.order.size - rows.rest.size,
        )  # fmt: skip
        if math.isnan(one.nominal):
            where = f"in {name}" if name else "in these rows"
            raise ValueError(f"{metric} is not defined {where}: no row counts for its denominator")
        found.append(one)
    return replace(found[0], groups=tuple(found[1:]))


def _ratio(
    priced: Callable[..., PricedRows],
    metric: Metric,
    rows: IndexArray,
    alpha: float,
    wanted: float | None,
    *,
    finer: bool,
) -> float:
    """The last θ that passes, starting from the safe end; in large steps up to ``wanted``."""
    sign = metric.worst_sign
    promised = 0.5 + 0.5 * sign
    steps = promised - sign * np.arange(_STEP, 1.0, _STEP)
    if wanted is not None:
        before = [theta for theta in steps[9::10] if sign * theta > sign * wanted]
        after = [theta for theta in steps if sign * theta < sign * wanted - 0.5 * _STEP]
        steps = np.array([*before, wanted, *(after if finer else ())])
    for theta in steps.tolist():
        if priced(sign, theta).limit(rows, alpha) > 0.0:
            break
        promised = theta
    return promised
