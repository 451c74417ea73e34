"""How much must go wrong in the data before the number you act on fails, and through which column?

    report = drlogit.audit({"plain": pipeline, "robust": clf}, X, y, by="sex")
    print(report)
    report.to_html("report.html")

No model is refitted.  If possible, use rows that the models were not fitted to.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..files.writing import write_text
from ..problem.ball import Ball
from ..problem.parameters import check_epsilon
from ..robustness.adversary import Adversary
from ..robustness.metrics import Metric
from ..robustness.models import measured
from ..robustness.promise import Promise, guarantee
from ..robustness.words import rounded, warning_once, wrapped
from ..robustness.worst_case import groups_of
from ..rows.arrays import FloatArray
from .breaking import best_constant, breaking_columns, fragile_rows
from .sentences import amount, decides, said

#: The number of radii of an audit that names none, besides that of the ball.
_RADII = 9

#: The number of rows that are listed as those that break first.
_LISTED = 10


@dataclass(frozen=True, eq=False)
class ModelAudit:
    """What an audit says about one model.

    Attributes
    ----------
    nominal : float
        The metric on the rows as they are.
    epsilon : float
        The least radius at which the metric reaches the limit; ``inf`` if none does.
    values : tuple of float
        The worst value at each radius of the audit.
    exact : bool
        Whether worst values are attained; otherwise they may be too pessimistic.
    columns, rows : pandas.DataFrame
        The breaking points of labels and columns, and the rows that break first.
    promise : Promise or None
        What holds for new rows, if there were unseen ones.
    groups : dict
        The weights of the rows of each group in which the metric is defined.
    """

    name: str
    nominal: float
    epsilon: float
    values: tuple[float, ...]
    exact: bool
    columns: Any = field(repr=False)
    rows: Any = field(repr=False)
    promise: Promise | None
    groups: Mapping[str, FloatArray] = field(repr=False)
    adversary: Adversary = field(repr=False)
    metric: Metric = field(repr=False)

    def leading(self) -> list[Any]:
        """The rows of ``columns`` about labels and the first column, if they reach the limit."""
        some = self.columns[np.isfinite(self.columns["breaks_at"])]
        labels = some["kind"] == "labels"
        return [*some[labels].itertuples(), *some[~labels].head(1).itertuples()]


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of :func:`audit`: print it or show it.

    Attributes
    ----------
    models : dict of ModelAudit
    ball : Ball
        In plain numbers.
    limit : float
        The value that the metric should not reach.
    stated_limit : bool
        Whether you stated it; otherwise the best constant model has it.
    epsilons : tuple of float
        The radii.
    n : int
        The number of rows.
    """

    models: Mapping[str, ModelAudit]
    ball: Ball
    limit: float
    stated_limit: bool
    epsilons: tuple[float, ...]
    n: int

    @property
    def first(self) -> ModelAudit:
        """The model that breaks last; of those beyond the limit the best one."""
        models = self.models.values()
        return max(models, key=lambda each: (each.epsilon, -each.metric.sign * each.nominal))

    def to_frame(self, part: str = "radii") -> Any:
        """A part of the audit as a pandas data frame.

        Parameters
        ----------
        part : {"radii", "columns", "rows", "groups", "promises"}
            The worst value at each radius, the breaking points of labels and columns, the rows that
            break first, the worst value of each group at each radius, or the promises for new rows;
            each for every model.
        """
        import pandas as pd

        if part in ("columns", "rows"):
            frames = {name: getattr(each, part) for name, each in self.models.items()}
            return pd.concat(frames, names=["model"]).reset_index(level=0).reset_index(drop=True)
        if part == "radii":
            records = [
                {"model": name, "epsilon": epsilon, "nominal": each.nominal, "value": value}
                for name, each in self.models.items()
                for epsilon, value in zip(self.epsilons, each.values, strict=True)
            ]
        elif part == "groups":
            records = [
                {
                    "model": name,
                    "epsilon": epsilon,
                    "group": group,
                    "nominal": each.adversary.nominal(each.metric, weights),
                    "value": each.adversary.value(each.metric, epsilon, None, weights),
                }
                for name, each in self.models.items()
                for group, weights in each.groups.items()
                for epsilon in self.epsilons
            ]
        elif part == "promises":
            made = {name: each.promise for name, each in self.models.items() if each.promise}
            records = [
                {"model": name, "n": each.n, "nominal": each.nominal, "value": each.value}
                for name, each in made.items()
            ]
        else:
            raise ValueError(f"part must be radii, columns, rows, groups or promises, got {part!r}")
        return pd.DataFrame(records)

    # --- sentences --------------------------------------------------------------------------

    def verdict(self) -> list[str]:
        """What it takes until the limit is reached, a paragraph for each model."""
        several = len(self.models) > 1
        return [
            (f"{each.name}: " if several else "") + " ".join(self._verdict(each))
            for each in self.models.values()
        ]

    def _verdict(self, each: ModelAudit) -> list[str]:
        metric, sign = each.metric, each.metric.sign
        lines = [f"As the data are, {said(metric, each.nominal)}."]
        limit = said(metric, self.limit)
        whose = "your limit" if self.stated_limit else "the best constant answer"
        if each.epsilon == 0.0 and sign * (each.nominal - self.limit) >= 0.0:
            return [*lines, f"That is no better than {whose}: {limit}."]
        until, first = "until" if each.exact else "at least until", each.leading()
        ways = f"{until} {', or '.join(map(amount, first))}"
        if not first:
            ways = "whatever share of the labels, or whichever single column, is wrong"
        lines.append(f"The model is better than {whose} ({limit}) {ways}.")
        lines += [f"The column to check first is {r.column}." for r in first if r.kind != "labels"]
        value = each.adversary.value(metric, self.ball.epsilon or 0.0)
        word = "" if each.exact else "at most " if sign > 0 else "at least "
        lines.append(f"At the worst that the ball allows, {word}{said(metric, value, sign)}.")
        return lines

    def next_steps(self) -> list[str]:
        """What to do next, a sentence or two each."""
        each, epsilon, steps = self.first, self.ball.epsilon or 0.0, []
        if len(self.models) > 1:
            steps.append(f"Use {each.name}: of these models it breaks last.")
        for row in each.leading() if each.epsilon > 0.0 else ():
            times = f", {rounded(row.radii, -1.0, 3)} times what the ball allows"
            steps.append(
                f"Check {row.column} for errors, and whether other places record the same. "
                f"The limit is reached once {amount(row)}"
                f"{times if math.isfinite(row.radii) else ''}."
            )
        share = each.epsilon / epsilon if epsilon else math.inf
        if each.epsilon == 0.0:
            steps.append(
                "Look for a better model or other columns, or state another limit, before you ask "
                "how robust the model is."
            )
        elif share <= 1.0:
            other = "decide by another model or cut-off"
            if each.adversary.model.fit is None:
                other = "fit a model for it, DRLogisticRegression(ball=ball), and compare"
            steps.append(
                f"The ball reaches the limit, at {rounded(share, -1.0, 3)} of its radius: measure "
                f"better, or {other}."
            )
        elif math.isfinite(share):
            steps.append(
                f"The limit is kept within the ball, and up to {rounded(share, -1.0, 3)} times its "
                "radius. Ask whether more than that can go wrong where the model is used."
            )
        if each.promise is None:
            steps.append(
                "Pass rows that no model has seen as holdout=(X, y) (--unseen): then this report "
                "has limits that hold for new rows."
            )
        return steps

    def caveats(self) -> list[str]:
        """What the report does not say."""
        lines = [
            "These numbers are about these rows. On the rows of the fit they are too good; what "
            "holds for new rows is a promise.",
            "The worst case is not a forecast: it says what the stated errors could do, not that "
            "they occur.",
            "Errors are averages over the rows and alternatives within one budget. A single row "
            "may change by more, and several columns may be wrong together by less each.",
        ]
        if any(each.adversary.from_rows for each in self.models.values()):
            lines.append(
                "Standard deviations are those of these rows, because those of the rows of the fit "
                "are not known: ball.resolve(X_train, y_train) gives them."
            )
        bounds = [name for name, each in self.models.items() if not each.exact]
        if bounds:
            lines.append(
                f"Worst values of {', '.join(bounds)} are bounds, which may be too pessimistic."
            )
        return lines

    def subtitle(self) -> str:
        """The rows, and how the models decide."""
        return f"{', '.join(self.models)}, on {self.n} rows. {decides(self.first.metric)}".strip()

    def __str__(self) -> str:
        in_ball = self.to_frame("groups")
        if len(in_ball):
            in_ball = in_ball[in_ball["epsilon"] == self.ball.epsilon]
        promises = {k: each.promise for k, each in self.models.items() if each.promise}
        parts = {
            "Do this next": [f"{k}. {step}" for k, step in enumerate(self.next_steps(), 1)],
            "For new rows": [f"{k}: {next(made.sentences())}" for k, made in promises.items()],
            "The ball": self.ball.allowed(),
            "Worst values": self.to_frame(),
            "Breaking points": self.to_frame("columns"),
            "By group, within the ball": in_ball if len(in_ball) else [],
            "What this does not say": self.caveats(),
        }
        text = [wrapped([self.subtitle(), "", *self.verdict()])]
        for title, content in parts.items():
            if isinstance(content, list):
                inner = wrapped(f"  {line}" for line in content)
            else:
                inner = indent(content.to_string(index=False), "  ")
            text += [f"\n{title}:\n{inner}"] if inner else []
        return "\n".join(text)

    def to_paragraph(self, model: str | None = None) -> str:
        """The model, its ball, its certificate and its promise, for a methods section."""
        each = self.first if model is None else self.models[model]
        fit, lines = each.adversary.model.fit, [f"{each.name} is a linear classifier."]
        if fit is not None:
            from .. import __version__

            gap = max(float(np.ravel(fit.dual_gap_)[0]), fit.tol)
            lines = [
                "The model was fitted by distributionally robust logistic regression (drlogit "
                f"{__version__}): the fit minimises the largest expected log-loss over all "
                "distributions within a Wasserstein ball around the data. On the data of the fit, "
                f"this loss is {np.ravel(fit.worst_case_loss_)[0]:.3f}; no linear model is lower "
                f"by more than {gap:.0e}."
            ]
        allowed = " ".join(self.ball.allowed())
        lines.append(f"The ball states what may be wrong with the data. {allowed}")
        lines.append(f"On {self.n} rows, {said(each.metric, each.nominal)}.")
        lines.append(decides(each.metric))
        if each.promise is not None:
            made, sign = each.promise, each.metric.sign
            lines.append(
                f"With {100.0 * made.confidence:.10g} % confidence, in the population of {made.n} "
                "rows that the model had not seen and in every one within the ball around it, at "
                f"{'most' if sign > 0.0 else 'least'} {said(each.metric, made.value, sign)}."
            )
        return " ".join(filter(None, lines))

    # --- pictures ---------------------------------------------------------------------------

    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None
    ) -> str:
        """The audit as one page that needs no network; written to a file if ``path`` is given."""
        from .page import page_of

        page = page_of(self, title or "How much may go wrong in the data?")
        if path is not None:
            write_text(path, page)
        return page

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the worst value of each model against the radius; returns the axes."""
        from .plots import draw_curves

        return draw_curves(self, ax)

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own, which contains its styles."""
        return (
            f'<iframe srcdoc="{escape(self.to_html())}" title="Audit" loading="lazy" '
            f'style="width: 100%; height: 760px; border: 0"></iframe>'
        )


@warning_once
def audit(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    ball: Ball | None = None,
    metric: Any = "error",
    limit: float | None = None,
    threshold: float = 0.5,
    pos_label: Any = None,
    by: Any = None,
    epsilons: Iterable[float] | None = None,
    holdout: tuple[Any, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Audit:
    """Say how much must go wrong in the data until a metric reaches a limit.

    Parameters
    ----------
    model : a model, or a dict of models
        Each as in :func:`drlogit.worst_case`.
    X, y, sample_weight
        The rows that the ball is around.
    ball : Ball, optional
        One ball for all models; by default that of the first model that was fitted with one.
    metric, threshold, pos_label, by
        As in :func:`drlogit.worst_case`.
    limit : float, optional
        The value that the metric should not reach; by default what the best model has that gives
        all rows the same answer.
    epsilons : iterable of float, optional
        Radii to report; by default from 0 to beyond the ball and the breaking point.
    holdout : tuple (X, y), optional
        Rows that were used neither to fit nor to choose a model; X and y themselves, if that is so.
        The report then has a promise for each model (:func:`drlogit.guarantee`).

    Returns
    -------
    Audit
        ``str()`` and ``to_html(path)`` begin with a verdict; ``to_frame()`` has the numbers.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05).fit(X, y)
    >>> report = drlogit.audit(model, X, y)
    >>> bool(report.first.epsilon > 0.0)
    True
    """
    models = named_models(model)
    balls = dict.fromkeys(models, ball) if ball is not None else _balls_of_fits(models)
    adversaries = {
        name: Adversary.of(each, X, y, balls[name], sample_weight) for name, each in models.items()
    }
    first = next(iter(adversaries.values()))
    decided = {"threshold": threshold, "pos_label": pos_label}
    judged = {name: each.metric(metric, **decided) for name, each in adversaries.items()}
    undefined = [
        name for name, each in adversaries.items() if math.isnan(each.nominal(judged[name]))
    ]
    if undefined:
        raise ValueError(
            f"{judged[undefined[0]]} is not defined: no row counts for its denominator"
        )
    goal = best_constant(first, judged[next(iter(judged))]) if limit is None else float(limit)
    if not math.isfinite(goal):
        raise ValueError(f"limit must be a finite number, got {limit!r}")
    breaks = {name: each.radius_of(judged[name], goal) for name, each in adversaries.items()}
    radii = _radii(first.ball.epsilon or 0.0, breaks.values(), epsilons)
    names = X.index.tolist() if hasattr(X, "iloc") else None
    found = {}
    for name, each in adversaries.items():
        promise = None
        if holdout is not None:
            options = {**decided, "ball": balls[name], "random_state": 0}
            promise = guarantee(models[name], *holdout, metric, **options)
        found[name] = ModelAudit(
            name=name,
            nominal=each.nominal(judged[name]),
            epsilon=breaks[name],
            values=tuple(each.value(judged[name], radius) for radius in radii),
            exact=each.is_exact(judged[name]),
            columns=breaking_columns(each, judged[name], goal),
            rows=fragile_rows(each, judged[name], names, _LISTED),
            promise=promise,
            groups=groups_of(by, X, each, judged[name]),
            adversary=each,
            metric=judged[name],
        )
    return Audit(found, first.ball, goal, limit is not None, radii, first.codes.size)


def _balls_of_fits(models: Mapping[str, Any]) -> dict[str, Ball | None]:
    """The ball of the first fit for all models; None for the model that has it."""
    known = {name: measured(each) for name, each in models.items()}
    owner = next((name for name, each in known.items() if each.ball is not None), None)
    if owner is None or len(models) == 1:
        return dict.fromkeys(models)
    if known[owner].steps is not None:
        raise ValueError(
            f"the ball of {owner} is in the units that the steps of its pipeline make: state one "
            "for all models in the units of X, for example ball=drlogit.Ball.tolerating(labels=.05)"
        )
    return {name: None if name == owner else known[owner].ball for name in models}


def _radii(
    epsilon: float, breaks: Iterable[float], given: Iterable[float] | None
) -> tuple[float, ...]:
    """Radii from 0 to beyond the ball and the breaking points, that of the ball among them."""
    if given is not None:
        radii = sorted({check_epsilon(each) for each in given})
        if not radii:
            raise ValueError("epsilons must hold at least one radius, got none")
        return tuple(radii)
    most = max([2.0 * epsilon, *(1.25 * each for each in breaks if math.isfinite(each))])
    steps = np.linspace(0.0, most or 1.0, _RADII)
    some = steps[np.abs(steps - epsilon) > 0.2 * steps[1]]
    return tuple(sorted({*some.tolist(), epsilon}))


def named_models(model: Any) -> dict[str, Any]:
    """The models under their names."""
    if not isinstance(model, Mapping):
        return {_name(model): model}
    if not model:
        raise ValueError("no model to audit: the dict is empty")
    return {str(name): each for name, each in model.items()}


def _name(model: Any) -> str:
    if isinstance(model, tuple):
        return "(coef, intercept)"
    return _name(model.steps[-1][1]) if hasattr(model, "steps") else type(model).__name__
