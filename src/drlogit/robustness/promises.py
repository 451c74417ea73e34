"""Confidence limits of loss and error, or of a metric, in the population of unseen rows.

The mean of a metric has the limit of :mod:`.unseen_rows`.  Values of all metrics but the log-loss
lie between known ends, so these limits hold for every number of rows.  So does the limit of the
log-loss if every feature has categories or stated bounds; otherwise it is approximate
(:mod:`.limits`).

A ratio ``E[a]/E[b]`` is at most θ where ``sup E[a - θ b] ≤ 0``.  Values of θ are tested one after
another, starting from the safe end, and the last one before the first failure is promised.  To
promise a θ that is too small, the largest of these must have been rejected falsely, so each test
takes the whole confidence (fixed-sequence testing).

Limits that are given together hold at once (a union bound): each may fail with an equal share of
what the confidence leaves.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ..problem.label_costs import StatedKappa, flips_in_words
from ..rows.arrays import IndexArray
from .old_metrics import Metric, metric_of
from .subgroups import Subgroup
from .unseen_rows import AskedRows, PricedRows, UnseenRows, own_lambda

#: Ratios are promised in steps of this size.
_STEP = 0.01


@dataclass(frozen=True, kw_only=True)
class _Promise:
    """The scope of limits: rows, ball, confidence and assumptions."""

    confidence: float
    n: int
    epsilon: float
    kappa: StatedKappa
    assumed: str
    group: str = ""
    groups: tuple[Any, ...] = ()
    folds: int = 0
    tried: int = 1
    n_price: int = 0

    @property
    def scope(self) -> str:
        """For which population the limits hold, and with what confidence."""
        whose = f" with {self.group}" if self.group else ""
        return (
            f"With {self.confidence:.0%} confidence, in the population of these {self.n} "
            f"rows{whose} and in every distribution within epsilon = {self.epsilon:g} of it "
            f"({flips_in_words(self.epsilon, self.kappa)})"
        )

    @property
    def about_price(self) -> str:
        """Why limits do not rest on all rows; empty if they do."""
        if not self.n_price:
            return ""
        return (
            f"{self.n_price} other rows chose the dual price of transport; the rows of a limit may "
            "not choose its price."
        )

    def _about_folds(self) -> list[str]:
        """What to say about limits that come from cross-validation or from compared settings."""
        folds = f"Limits for the average of {self.folds} cross-validation models, not the final "
        tried = f"Corrected for comparing {self.tried} settings."
        return [f"{folds}model."] * bool(self.folds) + [tried] * (self.tried > 1)


@dataclass(frozen=True, kw_only=True)
class MetricPromise(_Promise):
    """A limit of a metric on the population that rows come from; ``float()`` is the limit.

    Attributes
    ----------
    value, nominal : float
        The limit, from above or, for benefits such as precision, from below, under every
        distribution within ``epsilon`` of the population; and the metric on the rows as they are.
    metric : str
        Its name, with the threshold.
    is_benefit : bool
        Whether the limit is a limit from below.
    confidence, n, epsilon, kappa, assumed, group, groups, folds, tried, n_price
        As in :class:`~drlogit.Guarantee`.
    """

    value: float
    nominal: float
    metric: str
    is_benefit: bool

    def __float__(self) -> float:
        return self.value

    @property
    def bound(self) -> str:
        return "at least" if self.is_benefit else "at most"

    def __str__(self) -> str:
        lines = [
            f"{self.scope}: {self.metric} is {self.bound} {self.value:.4g}. On these rows it is "
            f"{self.nominal:.4g}."
        ]
        lines += [
            f"  {part.group} ({part.n} rows): {self.bound} {part.value:.4g} "
            f"({part.nominal:.4g} on these rows)"
            for part in self.groups
        ]
        return "\n".join([*lines, *self._about_folds()])


@dataclass(frozen=True, kw_only=True)
class Guarantee(_Promise):
    """What holds for a model with a stated confidence, on the population of rows it has not seen.

    Attributes
    ----------
    loss, error : float
        Upper limits of the expected log-loss and of the share of wrong predictions, under every
        distribution within ``epsilon`` of the one that the rows come from.  Both hold at once.
        The loss is infinite if these rows give no limit; ``no_limit`` says why.
    confidence : float
        The probability with which all limits hold, with those of groups and of compared settings.
    n : int
        The number of rows that the limits rest on.
    epsilon, kappa : float, or κ by label, or "by sample"
        The radius and the cost of a flipped label.
    mean_loss, mean_error : float
        Log-loss and error of the model on these rows as they are.
    constant_loss, constant_error : float
        The limits of a model that ignores the features, at the same confidence.  A limit that is
        no lower says nothing about the model.
    exact_loss : bool
        Whether the limit of the loss holds for every number of rows under the assumptions.
        Otherwise it is approximate, or it rests on bounds that were found in rows.
    assumed : str
        The assumptions, in words.
    no_limit : str
        Why there is no limit of the loss; empty if there is one.
    group : str
        The group of rows that the limits describe; empty for all rows.
    groups : tuple of Guarantee
        The limits of each group.
    folds, tried : int
        The number of cross-validation models that the limits average (0: they are about the model
        itself), and the number of settings that the rows were used to compare.
    n_error, n_price : int
        The number of rows that the limit of the error rests on, and of those that set the price of
        the adversary's moves.
    """

    loss: float
    error: float
    mean_loss: float
    mean_error: float
    constant_loss: float
    constant_error: float
    exact_loss: bool
    no_limit: str = ""
    n_error: int = 0

    @property
    def limits(self) -> str:
        """Both limits in words."""
        loss = f"log-loss <= {self.loss:.4f}"
        if self.no_limit:
            loss = f"no limit of the log-loss ({self.no_limit})"
        return f"{loss}, error <= {self.error:.1%}"

    @property
    def about_price(self) -> str:
        """Why limits do not rest on all rows; empty if they do."""
        if self.n_price and self.n_error < self.n:
            return (
                f"For the error, {self.n_price} of these rows chose the dual price of transport, "
                f"and the limit rests on the other {self.n_error}."
            )
        return super().about_price

    @property
    def says_nothing(self) -> str:
        """A warning if a model that ignores the features has limits as low; else empty."""
        found, better = {}, True
        if math.isfinite(self.loss) and self.loss >= self.constant_loss:
            found["log-loss"] = f"log-loss <= {self.constant_loss:.4f}"
            better &= self.mean_loss < self.constant_loss
        if self.error >= self.constant_error:
            found["error"] = f"error <= {self.constant_error:.1%}"
            better &= self.mean_error < self.constant_error
        if not found:
            return ""
        limit = "These limits say" if len(found) > 1 else f"The limit on the {min(found)} says"
        helps = "More rows or a smaller epsilon would help."
        if not better:
            helps = "On these rows, too, the model is no better than that."
        return (
            f"{limit} nothing about the model: a model that ignores the features has "
            f"{' and '.join(found.values())} at the same confidence. {helps}"
        )

    def __str__(self) -> str:
        loss = f"has no limit: {self.no_limit}" if self.no_limit else f"<= {self.loss:.4f}"
        lines = [
            f"{self.scope}:",
            f"  expected log-loss {loss}   (on these rows: {self.mean_loss:.4f})",
            f"  error             <= {self.error:.1%}    (on these rows: {self.mean_error:.1%})",
        ]
        for part in self.groups:
            nothing = "; no better than a model that ignores the features"
            said = f"  {part.group} ({part.n} rows): {part.limits}"
            lines.append(said + (nothing if part.says_nothing else ""))
        lines += self._about_folds()
        lines += filter(None, [self.about_price, self.says_nothing])
        return "\n".join([*lines, self.assumed])


def _scope_of(rows: UnseenRows, confidence: float) -> dict[str, Any]:
    """The fields of a promise that are the same for all groups."""
    return {
        "confidence": confidence,
        "epsilon": rows.audit.problem.epsilon,
        "kappa": rows.audit.kappa,
        "folds": len(rows.folds) if rows.out_of_fold else 0,
        "tried": rows.tried,
        "n_price": rows.order.size - rows.rest.size,
    }


def _each_group(rows: UnseenRows, parts: tuple[Subgroup, ...]) -> Iterator[tuple[str, IndexArray]]:
    """The names and members of all rows and of each group."""
    yield "", rows.order
    for part in parts:
        yield str(part), part.members


def loss_and_error(rows: UnseenRows, confidence: float, parts: tuple[Subgroup, ...]) -> Guarantee:
    """The limits of loss and error on all rows and on each group."""
    metrics = [metric_of(rows.audit, name) for name in ("log_loss", "error")]
    loss, error = (AskedRows(rows, metric).priced(own=not k) for k, metric in enumerate(metrics))
    others = rows.ignoring_features()
    constants = [AskedRows(others, metric).priced() for metric in metrics]
    # A λ that was known before the rows leaves all of them for the limit of the loss.
    known = all(own_lambda(fold.unseen) is not None for fold in rows.folds)
    judged, size = rows.order if known else rows.rest, len(loss.classes)
    if known and not rows.out_of_fold:
        _warn_of_seen_rows(rows, loss)
    alpha = (1.0 - confidence) / (2 * (1 + len(parts)) * rows.tried)
    found_in_rows = rows.audit.measured.bounds_from_rows
    exact = math.isfinite(loss.high) and not rows.out_of_fold and not found_in_rows
    assumed, found = _assumptions(rows, loss.high, found_in_rows=found_in_rows), []
    for name, own in _each_group(rows, parts):
        mine, rest = (each[np.isin(each, own)] for each in (judged, rows.rest))
        limits = [
            each.limit(some, alpha)
            for each, some in zip((loss, error, *constants), (mine, rest) * 2, strict=True)
        ]
        # Guessing among K labels has these limits, whatever the rows.
        guess = min(limits[2], math.log(size)), min(limits[3], 1.0 - 1.0 / size)
        one = Guarantee(
            loss=limits[0], error=limits[1], mean_loss=loss.nominal(mine),
            mean_error=error.nominal(mine), constant_loss=guess[0], constant_error=guess[1],
            exact_loss=exact, no_limit=loss.why_no_limit(mine), group=name, n=int(mine.size),
            n_error=int(rest.size), assumed=assumed, **_scope_of(rows, confidence),
        )  # fmt: skip
        found.append(one)
    return replace(found[0], groups=tuple(found[1:]))


def _warn_of_seen_rows(rows: UnseenRows, loss: Any) -> None:
    """Warn if the rows have the very worst-case loss of the fit."""
    fit, w = rows.audit.measured.fit, rows.weights[rows.order]
    value = float(w @ (loss.gained + loss.paid)[rows.order]) / float(w.sum())
    if fit is not None and math.isclose(value, fit.result_.objective, rel_tol=1e-9, abs_tol=1e-9):
        warnings.warn(
            "these look like the rows that the model was fitted to: a guarantee needs rows that "
            "the model has not seen",
            UserWarning,
            stacklevel=4,
        )


def _assumptions(rows: UnseenRows, most: float, *, found_in_rows: bool) -> str:
    """The assumptions of both limits, in words; ``most`` is an upper bound of the loss."""
    if math.isinf(most):
        said = rows.assumptions()
        loss = "is approximate: rare rows with large losses can make it too low"
    else:
        where = (
            "bounds that were found in rows" if found_in_rows else "stated categories and bounds"
        )
        said = rows.assumptions(f"it keeps to the {where}")
        loss = "holds if new rows keep to these bounds"
    if rows.out_of_fold:
        return said
    if math.isfinite(most) and not found_in_rows:
        return f"{said} Both limits hold at every sample size."
    return f"{said} The limit on the error holds at every sample size; that on the loss {loss}."


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
    asked = AskedRows(rows, metric)
    sides = (-1.0, 1.0) if metric.name == "calibration" else (1.0,)
    alpha = (1.0 - confidence) / (tried * rows.tried * (1 + len(parts)) * len(sides))
    sign = metric.worst_sign
    priced = cache(asked.priced)
    found = []
    for name, own in _each_group(rows, parts):
        some = rows.rest[np.isin(rows.rest, own)]
        if metric.below is not None:
            value = _ratio(priced, metric, some, alpha, wanted, finer=finer)
        else:
            limits = [side * sign * priced(side * sign).limit(some, alpha) for side in sides]
            value = max(limits, key=abs)
        one = MetricPromise(
            value=value, nominal=priced(sign).nominal(some), metric=str(metric),
            is_benefit=sign < 0.0, group=name, n=int(some.size), assumed=rows.assumptions(),
            **_scope_of(rows, confidence),
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
