"""An audit as a web page that explains itself: what the model is, what can go wrong, how far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import expit

from ..problem.result import Result
from ..robustness.audits import Audit, AuditSample, ModelAudit
from ..rows.arrays import FloatArray
from .displays import CoefficientsDisplay, RobustnessDisplay
from .html_page import Page

#: Coefficients shown.
_LARGEST = 15


@dataclass(frozen=True, eq=False)
class Subject:
    """What is audited, beyond what an :class:`~drlogit.audit.Audit` knows.

    ``epsilon`` is the radius the model was fitted for and ``kappa`` its flip cost, ``result``
    its certificate; ``positive`` is the label that a positive score means.  ``effects`` are the
    coefficients times the standard deviations of the features, and so can be compared.
    """

    name: str
    data: str
    epsilon: float
    kappa: float
    norm: str
    feature_names: Sequence[str]
    effects: FloatArray
    negative: Any
    positive: Any
    result: Result


def audit_page(report: Audit, curves: Audit, subject: Subject) -> Page:
    """The page of an audit of two models: the one in question, and a constant one.

    ``report`` is for the tables, and ``curves`` has more radii, for the figures.
    """
    model, constant = report.models
    page = Page(
        "How robust is this model?",
        subtitle=f"{subject.name} on {subject.data}, {report.n_samples} samples",
        footer="Worst cases are over all distributions within the Wasserstein radius ε of the "
        "samples. No model was refitted for this page.",
    )
    page.bullets(_summary(report, curves, subject))
    _describe_model(page, subject)
    _explain_radius(page, report)
    _show_worst_case(page, report, curves)
    _list_samples(page, report, model)
    page.heading("What this page does not say")
    page.bullets(
        [
            "It bounds what any change of the data within the radius can do. It does not say how "
            "likely such a change is.",
            "The samples stand for the population. If the model was fitted to these very samples, "
            "it looks better here than it is: audit it on others, if there are any.",
            f"Beyond some radius a constant model is as good as any: here its worst-case log-loss "
            f"is {constant.rows[-1].worst_case_loss:.3f} at the largest radius shown.",
        ]
    )
    return page


def _summary(report: Audit, curves: Audit, subject: Subject) -> list[str]:
    model = report.models[0]
    lines = [
        f"On the samples as they are, {model.error:.1%} of the predictions are wrong and the "
        f"log-loss is {model.loss:.3f}."
    ]
    own = [row for row in model.rows if row.epsilon == subject.epsilon]
    if own and subject.epsilon > 0.0:
        row = own[0]
        lines.append(
            f"In the worst case within ε = {row.epsilon:.4g}, the radius it was fitted for, "
            f"{row.worst_error:.1%} are wrong (in the best case {row.best_error:.1%}) and the "
            f"log-loss is {row.worst_case_loss:.3f}."
        )
    if math.isfinite(model.half_wrong_radius):
        lines.append(
            f"Half of the predictions can be wrong from ε = {model.half_wrong_radius:.3g} on."
        )
    else:
        lines.append("At no radius can half of the predictions be wrong.")
    for measure, words in (("worst_case_loss", "log-loss"), ("worst_error", "error")):
        worse = _overtaken(curves, measure)
        if worse is None:
            lines.append(
                f"Its worst-case {words} is below that of a constant model at every radius shown."
            )
        elif worse == 0.0:
            lines.append(f"The {words} of a constant model is no larger, even without a shift.")
        else:
            lines.append(
                f"From about ε = {worse:.3g} on, a constant model has a smaller worst-case {words}."
            )
    return lines


def _overtaken(curves: Audit, measure: str) -> float | None:
    """The first radius at which the constant model is as good."""
    model, constant = curves.models
    for ours, theirs in zip(model.rows, constant.rows, strict=True):
        if getattr(ours, measure) >= getattr(theirs, measure) - 1e-9:
            return ours.epsilon
    return None


def _describe_model(page: Page, subject: Subject) -> None:
    result = subject.result
    page.heading("The model")
    page.text(
        f"A linear classifier: a positive score means {subject.positive}, a negative one "
        f"{subject.negative}. It was fitted for the smallest worst-case log-loss within its "
        "radius; the gap says how far from the best possible it can be at most."
    )
    rows = [
        ["features", str(subject.effects.size)],
        ["radius ε it was fitted for", f"{subject.epsilon:.6g}"],
        ["cost κ of flipping a label", _kappa(subject.kappa)],
        ["transport norm", subject.norm],
        ["worst-case log-loss in training", f"{result.objective:.6f}"],
        ["no linear model is below", f"{result.dual_objective:.6f}"],
        ["gap", f"{result.gap:.1e}"],
        ["outcome", str(result.status)],
        ["solver", f"{result.solver}, {result.n_iter} iterations"],
    ]
    page.table(["", "value"], rows, caption="The model and its certificate")
    display = CoefficientsDisplay({"": subject.effects}, subject.feature_names)
    height = 1.2 + 0.26 * min(subject.effects.size, _LARGEST)
    display.plot(max_features=_LARGEST, ax=_axes(height))
    display.ax_.set_xlabel("log-odds per standard deviation")
    named = [
        f"{subject.feature_names[j]} {subject.effects[j]:+.3g}" for j in display.shown_[:3].tolist()
    ]
    shown = int(display.shown_.size)
    page.figure(
        display.figure_,
        alt=f"Coefficients of the model, the {shown} largest of {subject.effects.size}. The first: "
        + "; ".join(named),
        caption="Coefficients, as the change of the log-odds when a feature changes by its "
        "standard deviation in these samples.",
    )
    _close(display.figure_)


def _explain_radius(page: Page, report: Audit) -> None:
    page.heading("What the radius means")
    page.text(
        "The samples may change: ε is how far they may move on average, measured in the transport "
        f"norm ({report.norm}) on the features. Distances are {'; or '.join(report.spaces)}."
    )
    if math.isinf(report.kappa):
        page.text("Labels are beyond doubt (κ = ∞): only features move.")
        return
    page.text(
        f"Flipping the label of one sample counts as moving it by κ = {report.kappa:g}. So a "
        "radius ε allows at most a share ε/κ of the labels to be flipped, if nothing else moves: "
        f"at the largest radius shown, {min(report.epsilons[-1] / report.kappa, 1.0):.1%}."
    )


def _show_worst_case(page: Page, report: Audit, curves: Audit) -> None:
    page.heading("The worst case")
    axes = [_axes(3.8), _axes(3.8)]  # not one beside the other, which is too wide for a phone
    RobustnessDisplay(curves).plot(ax=axes)
    largest = curves.epsilons[-1]
    page.figure(
        axes[0].figure,
        alt=f"Worst-case log-loss against the radius from 0 to {largest:.3g}: "
        + "; ".join(
            f"{m.name} rises from {m.rows[0].worst_case_loss:.3f} to "
            f"{m.rows[-1].worst_case_loss:.3f}"
            for m in curves.models
        ),
        caption="Worst-case log-loss (nats). A coin has log 2 = 0.693.",
    )
    axes[1].legend(frameon=False)
    page.figure(
        axes[1].figure,
        alt=f"Error against the radius from 0 to {largest:.3g}, best to worst case: "
        + "; ".join(
            f"{m.name} from {m.rows[0].worst_error:.1%} to between {m.rows[-1].best_error:.1%} and "
            f"{m.rows[-1].worst_error:.1%}"
            for m in curves.models
        ),
        caption="Share of wrong predictions: thick lines in the worst case, thin ones in the best.",
    )
    for ax in axes:
        _close(ax.figure)
    _show_table(page, report)


def _show_table(page: Page, report: Audit) -> None:
    finite = math.isfinite(report.kappa)
    columns = ["radius ε", *(["flips up to", "flips made"] if finite else [])]
    for model in report.models:
        columns += [f"log-loss, {model.name}", f"error, {model.name}"]
    rows = []
    for group in zip(*(model.rows for model in report.models), strict=True):
        row = [f"{group[0].epsilon:.4g}"]
        if finite:
            row += [f"{group[0].flip_limit:.1%}", f"{group[0].flip_share:.1%}"]
        for each in group:
            row += [
                f"{each.worst_case_loss:.4f}",
                f"{each.best_error:.1%} to {each.worst_error:.1%}",
            ]
        rows.append(row)
    page.table(columns, rows, caption="Worst-case log-loss, and error from best to worst case")
    if finite:
        page.text(
            "“Flips up to” is ε/κ. “Flips made” is what the worst case for the log-loss of the "
            "model really flips; the rest of its budget goes into moving features."
        )


def _list_samples(page: Page, report: Audit, model: ModelAudit) -> None:
    page.heading("Single samples")
    page.text(
        "Rows are in the order of the file, and the first is row 0. The probability is the one "
        "that the model gives to the label in the file."
    )
    page.heading("Labels worth a look", level=3)
    page.text(
        "Here the model is most surprised by the label. If labels may be wrong, look at these "
        "first. The worst case leaves them as they are: flipping them would help the model."
    )
    page.table(
        ["row", "label", "probability", "margin"],
        [_sample(sample) for sample in model.most_surprising],
        caption="Samples with the smallest margins",
    )
    if not math.isfinite(report.kappa):
        return
    page.heading("Labels the worst case flips first", level=3)
    if not model.first_flipped:
        page.text("None: moving features hurts this model more than flipping any label.")
        return
    page.text(
        "Here the model is surest, so a wrong label would cost most. These are not suspects: they "
        "are where the worst case begins, and where a wrong label does the most damage."
    )
    page.table(
        ["row", "label", "probability", "margin", "flipped from ε ="],
        [[*_sample(sample), f"{sample.epsilon:.4g}"] for sample in model.first_flipped],
        caption="Samples in the order in which the worst case flips them",
    )


def _sample(sample: AuditSample) -> list[str]:
    return [
        str(sample.index),
        str(sample.label),
        f"{float(expit(sample.margin)):.2%}",
        f"{sample.margin:.3f}",
    ]


def _kappa(kappa: float) -> str:
    return "∞ (labels are beyond doubt)" if math.isinf(kappa) else f"{kappa:g}"


def _axes(height: float) -> Any:
    """Axes of a figure that shrinks to the width of a phone and stays legible."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(5.3, height), layout="constrained")[1]


def _close(figure: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(figure)
