"""How robust is this model?  Worst-case loss and error of fitted models over a range of radii.

    report = drlogit.audit({"plain": lr, "robust": drlr}, X, y, kappa=0.5, groups="sex")
    print(report)
    report.to_html("report.html")

No model is refitted.  If possible, use samples that the models were not fitted to.  Parts of the
page that the text does not show are computed on request.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.class_recall import ClassRecall
from ..files.writing import write_text
from ..problem.label_costs import can_flip, kappa_text
from ..problem.parameters import check_epsilon
from ..robustness.audit_problem import BallOptions
from ..robustness.audited_models import (
    AuditOutcome,
    ModelAudit,
    audit_model,
    audit_problems,
    default_radii,
    own_radius,
)
from ..robustness.extremes import Extremes
from ..robustness.guarantees import guarantee_of
from ..robustness.misclassification import CONFUSED, confusion, worst_confusions
from ..robustness.old_adversary import Adversary
from ..robustness.old_metrics import metric_of
from ..robustness.old_worst import with_groups, worst_case_of
from ..robustness.subgroups import subgroups
from .audit_data import RECORDS, audit_data
from .audit_page import audit_page
from .paragraph import paragraph

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Height of the page in a notebook, in pixels: a screen without its bars.
_NOTEBOOK_HEIGHT = 760


class Audit(AuditOutcome):
    """The result of :func:`audit`; print it, show it, index it by model name, or take its rows."""

    def __getitem__(self, name: str) -> ModelAudit:
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(repr(model.name) for model in self.models)
        raise KeyError(f"no model {name!r} in this audit, only {known}")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One flat record per model and radius."""
        return [asdict(row) for model in self.models for row in model.rows]

    def to_dict(self) -> dict[str, Any]:
        """The printed report as plain dictionaries, lists, strings and numbers, for JSON.

        Infinite numbers stay floats, which ``json.dumps`` writes as ``Infinity``.
        """
        return {
            "kappa": self.kappa,
            "norm": self.norm,
            "n_samples": self.n_samples,
            "epsilons": self.epsilons,
            "models": [asdict(model) for model in self.models],
            "spaces": self.spaces,
            "ball": self.ball,
            "classes": {name: _recall(each).record for name, each in self.audited.items()},
            "guarantees": {name: asdict(each) for name, each in self.guarantees.items()},
            "decided": {name: [asdict(e) for e in found] for name, found in self.decided.items()},
        }

    @cached_property
    def data(self) -> dict[str, Any]:
        """Everything on the page as numbers and text; computed on the first access."""
        return audit_data(self)

    def to_frame(self, part: str = "radii") -> Any:
        """A part of the audit as a pandas data frame.

        Parameters
        ----------
        part : {"radii", "features", "samples", "groups"}
            ``"radii"`` has a row per model and radius; ``"features"`` a row per model, radius and
            feature, with its share of the budget and the worst-case loss if it could not move;
            ``"samples"`` a row per model and fragile sample; ``"groups"`` a row per model, radius
            and subgroup.
        """
        if part not in ("radii", *RECORDS):
            known = ", ".join(map(repr, ("radii", *RECORDS)))
            raise ValueError(f"part must be one of {known}, got {part!r:.40}")
        import pandas as pd

        return pd.DataFrame(self.rows if part == "radii" else RECORDS[part](self.data))

    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None,
        subtitle: str | None = None,
    ) -> str:  # fmt: skip
        """The audit as one page that needs no network; written to a file if ``path`` is given.

        Parameters
        ----------
        path : path, optional
            File to write, whole or not at all.
        title, subtitle : str, optional
            Headings of the page; by default a question, and the number of samples.

        Returns
        -------
        str
            The page.
        """
        page = audit_page(self.data, title=title, subtitle=subtitle)
        if path is not None:
            write_text(path, page)
        return page

    def to_paragraph(self, model: str | None = None) -> str:
        """The model, its certificate and its guarantee in one paragraph, for a paper."""
        return paragraph(self, self._named(model))

    def _named(self, model: str | None) -> str:
        return self.models[0].name if model is None else self[model].name

    def _repr_html_(self) -> str:
        """For notebooks: the page in a frame of its own, which contains its styles."""
        return (
            f'<iframe srcdoc="{escape(self.to_html())}" title="Audit" loading="lazy" '
            f'style="width: 100%; height: {_NOTEBOOK_HEIGHT}px; border: 0"></iframe>'
        )

    def __str__(self) -> str:
        return "\n".join(_report(self))


def audit(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilons: Iterable[float] | None = None,
    kappa: Any = None,
    metric: Any = None,
    threshold: float = 0.5,
    groups: Any = None,
    holdout: tuple[Any, ArrayLike] | None = None,
    confidence: float = 0.95,
    n_listed: int = 5,
    **ball: Unpack[BallOptions],
) -> Audit:
    """Compute worst-case loss and error of fitted models over a range of radii.

    The ball is around the samples given here.  Several models are measured in one ball: norm, κ,
    costs and bounds that are not stated are those of the first model of this package.

    Parameters
    ----------
    model : a model, or a list or mapping of models
        Each as in :func:`drlogit.worst_case_loss`.  Models in a mapping are called by their keys,
        others by their class.
    X, y
        As in :func:`drlogit.worst_case_loss`.
    epsilons : iterable of float, optional
        Radii, sorted for the report.  By default 0 to 20 % of κ or, where that is less, of the
        mean distance between the samples predicted right and the decision boundary, and the radii
        that models of ours were fitted for.
    kappa : float, dict or array of shape (n_samples,), optional
        Cost of flipping a label, positive, ``inf`` if labels are certain; at most a share
        ``epsilon / kappa`` of the labels can be flipped.  By label or by sample as in
        :func:`drlogit.solve`.  By default that of the first model of this package, or 1.
    metric, threshold : optional
        The number that you decide by, such as costs ``{(label, decision): cost}``, as in
        :func:`drlogit.worst_case`.  The report and its page then begin with it, with the groups
        side by side.
    groups : optional
        Report each value separately: the name of a column of X (or a list of names), an array with
        a value per sample, or a mapping of such arrays.
    holdout : tuple (X, y), optional
        Rows that were used neither to fit nor to choose a model; X and y themselves, if that is so.
        The report then begins with what holds for the population that they come from
        (:func:`drlogit.guarantee`), in the same ball, at a radius that a model was fitted for.
    confidence : float
        The confidence of the guarantee of each model, between 0 and 1.
    n_listed : int
        The number of samples to list.
    **ball
        ``norm``, ``feature_costs``, ``categories``, ``bounds``, ``space`` and ``sample_weight`` as
        in :func:`drlogit.worst_case_loss`.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05).fit(X, y)
    >>> report = drlogit.audit(model, X, y, epsilons=[0.0, 0.05])
    >>> report.to_frame()[["epsilon", "best_error", "worst_error"]].round(2)
       epsilon  best_error  worst_error
    0     0.00        0.32         0.32
    1     0.05        0.14         0.53
    """
    options: dict[str, Any] = {**ball, "kappa": kappa}
    audits, common = audit_problems(model, X, y, **options)
    if epsilons is None:
        radii = default_radii(audits.values())
    else:
        radii = tuple(sorted({check_epsilon(epsilon) for epsilon in epsilons}))
        if not radii:
            raise ValueError("epsilons must hold at least one radius, got none")
    first = next(iter(audits.values()))
    n_samples = first.problem.rows.n_samples
    names = tuple(X.index.tolist()) if hasattr(X, "iloc") else None
    parts = subgroups(groups, X, n_samples)
    decided, judged = {}, metric if metric is None else metric_of(first, metric, threshold)
    for name, each in audits.items() if judged is not None else ():
        asked = Extremes(each, metric_of(each, metric, threshold))
        found = [worst_case_of(asked, radius) for radius in radii]
        decided[name] = (*found, with_groups(asked, own_radius(audits.values(), radii), parts))
    guarantees = {}
    if holdout is not None:
        unseen, _ = audit_problems(model, *holdout, **options | {"sample_weight": None})
        radius = own_radius(audits.values(), radii)
        for name, each in unseen.items():
            guarantees[name] = guarantee_of(each.with_radius(radius), confidence)
    return Audit(
        kappa=first.kappa,
        norm=first.problem.norm.name,
        n_samples=n_samples,
        epsilons=radii,
        models=tuple(
            audit_model(name, each, radii, n_listed, names) for name, each in audits.items()
        ),
        spaces=tuple(dict.fromkeys(each.measured.space for each in audits.values())),
        ball=common,
        row_names=names,
        audited=audits,
        subgroups=parts,
        guarantees=guarantees,
        decided=decided,
        metric=judged,
    )


# --- the report -----------------------------------------------------------------------------


def _report(report: Audit) -> list[str]:
    several = len(report.models) > 1
    subject = f"{len(report.models)} models" if several else report.models[0].name
    lines = [f"Audit of {subject} on {report.n_samples} samples, {report.norm} transport"]
    if not can_flip(report.kappa):
        lines.append("kappa = inf: labels cannot be flipped, only features move")
    elif isinstance(report.kappa, float):
        lines.append(
            f"kappa = {report.kappa:g}: at most a share epsilon/kappa of the labels can be flipped"
        )
    else:
        lines.append(f"kappa = {kappa_text(report.kappa)}: what it costs to flip a label")
    where = f"one ball for all, that of {report.ball}: " if several else ""
    lines.append(f"{where}distances {report.spaces[0]}")
    lines += [*_decided(report), *_guarantees(report), "", *_tables(report)]
    for model in report.models:
        prefix = f"{model.name}: " if several else ""
        lines += ["", f"{prefix}half of the predictions can be wrong {_half_wrong(model)}"]
        if model.first_flipped:
            lines.append("labels that the worst case flips first (those with the largest margins):")
            lines += [
                f"  row {s.row}: label {s.label!r}, margin {s.margin:.3g}"
                f", flipped from epsilon = {s.epsilon:.3g}"
                for s in model.first_flipped
            ]
        elif can_flip(report.kappa):
            lines.append("no label is worth flipping: moving features hurts this model more")
        lines.append("labels that the model finds least likely (never flipped in the worst case):")
        lines += [
            f"  row {s.row}: label {s.label!r}, margin {s.margin:.3g}"
            for s in model.most_surprising
        ]
        audited = report.audited[model.name]
        lines += ["on these samples:", *_recall(audited).lines(), *_neglected(audited)]
        lines += _confusion(audited, report.epsilons[-1])
    return lines


def _recall(audit: Adversary) -> ClassRecall:
    """The share of each class that a model finds, on the samples as they are."""
    return ClassRecall(audit.classes, confusion(audit))


def _neglected(audit: Adversary) -> list[str]:
    """A warning about a class that is almost never predicted, if there is one."""
    fit = audit.measured.fit
    ball = (0.0, math.inf) if fit is None else (fit.ball_.epsilon or 0.0, fit.ball_.kappa)
    said = _recall(audit).neglected(*ball)
    return [] if said is None else [f"  {said}"]


def _confusion(audit: Adversary, epsilon: float) -> list[str]:
    """The confusion matrix of several classes, now and in the worst case for the error."""
    if not 2 < len(audit.classes) <= CONFUSED:
        return []
    now, then = confusion(audit), worst_confusions(audit, np.array([epsilon]))[0]
    labels = [_short(str(label)) for label in audit.classes]
    columns = [("label", labels)]
    for k, label in enumerate(labels):
        cells = zip(now[:, k], then[:, k], strict=True)
        columns.append((f"as {label}", [f"{one:.1%} -> {other:.1%}" for one, other in cells]))
    return [
        f"predicted, on these samples -> with the worst error at epsilon = {epsilon:.4g}:",
        *(f"  {line}" for line in _table(columns)),
    ]


def _decided(report: Audit) -> list[str]:
    """The metric that people decide by, on the samples as they are and in the worst case."""
    lines: list[str] = []
    columns = [("epsilon", [f"{epsilon:.4g}" for epsilon in report.epsilons])]
    for name, found in report.decided.items():
        cells = [f"{each.nominal:.4g} -> {each.value:.4g}" for each in found[:-1]]
        columns.append((_short(name), cells))
        lines += [f"{name}: {line.strip()}" for line in str(found[-1]).splitlines()]
    if not lines:
        return []
    head = f"{found[0].metric}, on these samples -> in the worst case"
    said = "" if report.metric is None else report.metric.decides(_classes(report))
    return ["", *filter(None, [said]), head, *_table(columns), *lines]


def _classes(report: Audit) -> tuple[Any, ...]:
    return next(iter(report.audited.values())).classes


def _guarantees(report: Audit) -> list[str]:
    """The limits for new rows."""
    if not report.guarantees:
        return []
    found, first = report.guarantees.items(), next(iter(report.guarantees.values()))
    return [
        "",
        f"For new rows: {first.scope[:1].lower()}{first.scope[1:]}:",
        *(
            f"  {name}: {each.limits} (on these {each.n} rows: {each.mean_loss:.4f}, "
            f"{each.mean_error:.1%})"
            for name, each in found
        ),
        *dict.fromkeys(each.about_price for _, each in found if each.about_price),
        *(f"  {name}: {each.says_nothing}" for name, each in found if each.says_nothing),
        *dict.fromkeys(each.assumed for _, each in found),
    ]


def _half_wrong(model: ModelAudit) -> str:
    if math.isinf(model.half_wrong_radius):
        return "at no radius"
    return f"from epsilon = {model.half_wrong_radius:.3g}"


def _tables(report: Audit) -> list[str]:
    """Tables over the radii: loss and error side by side, or one table each for several models."""
    losses = [[f"{row.worst_case_loss:.4f}" for row in model.rows] for model in report.models]
    errors = [
        [f"{row.best_error:.1%} to {row.worst_error:.1%}" for row in model.rows]
        for model in report.models
    ]
    radii = {"epsilon": [f"{epsilon:.4g}" for epsilon in report.epsilons]}
    if can_flip(report.kappa):
        radii["flips up to"] = [f"{row.flip_limit:.1%}" for row in report.models[0].rows]
    names = [_short(model.name) for model in report.models]
    if len(names) == 1:
        return _table([*radii.items(), ("log-loss", losses[0]), ("error", errors[0])])
    return [
        "worst-case log-loss (nats)",
        *_table([*radii.items(), *zip(names, losses, strict=True)]),
        "",
        "error, best to worst case",
        *_table([*radii.items(), *zip(names, errors, strict=True)]),
    ]


def _table(columns: list[tuple[str, list[str]]]) -> list[str]:
    widths = [max(map(len, [head, *cells])) for head, cells in columns]
    lines = [[head for head, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"
