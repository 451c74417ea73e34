"""An audit as a web page that explains itself: what can go wrong, how far, and where from.

Sentences first, figures second, tables third.  Figures and tables are drawn by ``audit.js`` from
the data in the page, so that they follow the slider together; what the page must say without a
script (print to text, mail readers) is here.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

from ..robustness.guarantees import ASSUMED
from .html_page import Page, packaged

_FOOTER = (
    "Worst cases are over all distributions within the Wasserstein radius ε of the samples. No "
    "model was refitted for this page."
)

#: Anchors and words of the sections, for the list of contents.
_SECTIONS = (
    ("worst", "Worst case"),
    ("risk", "Which features"),
    ("groups", "Subgroups"),
    ("samples", "Single samples"),
    ("confusion", "Confusion"),
    ("calibration", "Calibration"),
    ("shift", "Shifted data"),
    ("coefficients", "Coefficients"),
    ("limits", "What it does not say"),
)

#: Sections that only models of two classes have.
_OF_TWO_CLASSES = ("samples", "calibration", "shift", "coefficients")

_CHART = (
    "<figure><figcaption>{0}<small>{1}</small></figcaption>"
    '<div class="chart" id="{2}"></div></figure>'
)

_CONFUSION = (
    "<figure><figcaption>Right and wrong<small>share of samples as they are <span "
    'class="arrow">→</span> in the worst case for the error</small></figcaption>'
    '<div id="confusion-table"></div></figure>'
)


def audit_page(
    content: dict[str, Any], *, title: str | None = None, subtitle: str | None = None
) -> Page:
    """The page of an audit."""
    several = len(content["models"]) > 1
    page = Page(
        title or ("How robust are these models?" if several else "How robust is this model?"),
        subtitle=subtitle or _subtitle(content),
        footer=_FOOTER,
    )
    page.style(packaged("audit.css"))
    _promise(page, content)
    _contents(page, content)
    _controls(page, content)
    _worst_case(page, content)
    _features(page)
    if content["groups"]:
        _groups(page, content)
    if content["two_classes"]:
        _closer_look(page, content)
        _coefficients(page)
    if _has_confusion(content):
        _confusion(page)
    _limits(page, content)
    page.script(packaged("audit.js"), content)
    return page


def _promise(page: Page, content: dict[str, Any]) -> None:
    """First of all what holds for new rows, where the models were tried on some."""
    found = content["guarantees"]
    if not found:
        return
    each = "each " if len(found) > 1 else ""
    page.text(
        f"For new data of the same population, {each}with {found[0]['confidence']:.0%} "
        f"confidence, whatever changes within the radius ε = {found[0]['epsilon']:g}:"
    )
    page.bullets(
        f"{of['model']}, on {of['n']:,} rows it had not seen: expected log-loss at most "
        f"{of['loss']:.3f}, wrong predictions at most {of['error']:.1%} (on these rows as they "
        f"are: {of['mean_loss']:.3f} and {of['mean_error']:.1%})."
        for of in found
    )
    students = [of["model"] for of in found if not of["exact_loss"]]
    how = f" The limit of the log-loss of {', '.join(students)} is Student's." if students else ""
    page.text(ASSUMED + how, note=True)


def _subtitle(content: dict[str, Any]) -> str:
    names = [model["name"] for model in content["models"]]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
    return f"{shown}, on {content['n_samples']:,} samples"


def _contents(page: Page, content: dict[str, Any]) -> None:
    listed = "".join(
        f'<li><a href="#{anchor}">{words}</a></li>'
        for anchor, words in _SECTIONS
        if (anchor != "groups" or content["groups"])
        and (anchor not in _OF_TWO_CLASSES or content["two_classes"])
        and (anchor != "confusion" or _has_confusion(content))
    )
    page.fragment(f'<nav aria-label="Contents"><ul>{listed}</ul></nav>')


def _controls(page: Page, content: dict[str, Any]) -> None:
    last, start = len(content["radii"]) - 1, content["start"]
    page.fragment(
        '<div class="controls" role="region" aria-label="What the figures show">'
        '<div class="slider"><label for="radius">How much may be wrong with the data?</label>'
        f'<input type="range" id="radius" min="0" max="{last}" step="1" value="{start}">'
        f'<output id="epsilon" for="radius">ε = {content["radii"][start]:.4g}</output></div>'
        '<fieldset id="models"><legend>Models</legend></fieldset></div>'
        '<p id="allowed" class="quiet" aria-live="polite"></p>'
    )
    if len(content["models"]) > 1:
        page.text(_ball(content), note=True)
    page.fragment(
        '<ul id="summary" class="lead"></ul><noscript><p class="note">Figures and most tables of '
        "this page are drawn by a script in it, which is switched off here.</p></noscript>"
    )


def _ball(content: dict[str, Any]) -> str:
    """In which ball, or balls, several models are measured."""
    if content["ball"]:
        return (
            f"All models are measured in one ball, that of {content['ball']}: {content['norm']} "
            f"norm, distances {content['spaces'][0]}."
        )
    return (
        "Each model is measured in its own ball, as it was fitted: the same radius allows "
        "different things (see the sentences under the slider), so the models are not ranked."
    )


def _worst_case(page: Page, content: dict[str, Any]) -> None:
    _heading(page, "worst", "How bad can it get?")
    page.text(
        "Whatever happens to these samples within the radius, loss and error stay below these "
        "lines, and something within the radius brings them there: the lines are exact, no "
        "estimates. They are no bounds for other samples."
    )
    K = len(content["classes"])
    guess = "a coin has 0.693" if K == 2 else f"{K} classes at random have {math.log(K):.3f}"
    page.fragment(
        '<div class="charts">'
        + _CHART.format("Worst-case log-loss", f"nats; {guess}", "loss-chart")
        + _CHART.format("Worst-case error", "thin: best case within the radius", "error-chart")
        + '</div><div id="now-table"></div>'
    )
    page.fragment("<details><summary>All radii</summary>")
    page.table(
        *_all_radii(content), caption="Worst-case log-loss, and error from best to worst case"
    )
    page.fragment("</details>")


def _all_radii(content: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    columns = ["radius ε"]
    finite = content["kappa"] is not None
    if finite:
        columns.append("labels wrong up to")
    for model in content["models"]:
        columns += [f"log-loss, {model['name']}", f"error, {model['name']}"]
    rows = []
    for k in content["tables_at"]:
        radius = content["radii"][k]
        row = [f"{radius:.4g}"]
        if finite:
            row.append(f"{content['flip_limits'][k]:.1%}")
        for model in content["models"]:
            row += [
                f"{model['worst_loss'][k]:.4f}",
                f"{model['best_error'][k]:.1%} to {model['worst_error'][k]:.1%}",
            ]
        rows.append(row)
    return columns, rows


def _features(page: Page) -> None:
    _heading(page, "risk", "Which features carry the risk?")
    page.text(
        "The worst case has a budget, the radius, and spends it where the loss grows most per "
        "cost. A bar is the share of that budget that goes into a feature, or into wrong labels."
    )
    page.fragment(
        '<p><label class="check"><input type="checkbox" id="labels-right"> Suppose that the labels '
        "are right: only features change</label></p>"
        '<ul id="risk-words"></ul><div class="bars" id="risk-bars"></div>'
        "<details open><summary>As a table, with the loss if a feature could not change</summary>"
        '<div id="risk-table"></div></details>'
    )


def _groups(page: Page, content: dict[str, Any]) -> None:
    columns = list(dict.fromkeys(group["column"] for group in content["groups"]))
    _heading(page, "groups", f"Is it the same for everyone? By {' and '.join(columns)}")
    page.text(
        "Each subgroup on its own, with the same radius: its samples may move that far on average. "
        "Hollow: as the samples are. Filled: in the worst case."
    )
    page.fragment(
        '<ul id="group-words"></ul><div class="charts">'
        + _CHART.format("Error", "share of wrong predictions", "group-error")
        + _CHART.format("Log-loss", "nats", "group-loss")
        + '</div><div id="group-table"></div>'
    )


def _closer_look(page: Page, content: dict[str, Any]) -> None:
    hidden = "" if len(content["models"]) > 1 else " hidden"
    page.fragment(
        f'<div class="pick"><h2 id="samples">A closer look</h2><span{hidden}><label for="focus">'
        'at </label><select id="focus"></select></span></div>'
        "<h3>Predictions that break first</h3>"
    )
    page.text(
        "Samples predicted right, and the cheapest change of features that takes each to the "
        "decision boundary; its cost is in the units of the radius. Rows "
        f"{'go by their names' if content['rows_named'] else 'count from 0'}. The label stays as "
        "it is."
    )
    page.fragment(
        '<ul id="broken-words"></ul><div id="level-table"></div><div id="fragile-table"></div>'
        '<div class="charts">'
        + _CHART.format(
            "How much it takes to break a prediction",
            "share of right predictions that a change of at most this cost breaks",
            "broken-chart",
        )
        + "</div>"
        "<details><summary>Labels worth a look, and labels an error in which would cost most"
        '</summary><div id="label-tables"></div></details>'
        '<h3 id="calibration">Calibration and confusion</h3>'
        '<p id="calibration-words"></p><div class="charts">'
        + _CHART.format(
            "Probability against what happens",
            "hollow: the data; filled: the worst case for the log-loss; size: share of samples",
            "calibration-chart",
        )
        + _CONFUSION
        + "</div>"
        '<h3 id="shift">The worst case beside the data</h3>'
        '<p id="shift-words"></p><div class="charts" id="shift-charts"></div>'
    )


def _has_confusion(content: dict[str, Any]) -> bool:
    """Whether confusion has a section of its own: of two classes, it is with the calibration."""
    return not content["two_classes"] and any("confusion" in each for each in content["models"])


def _confusion(page: Page) -> None:
    _heading(page, "confusion", "Which class for which?")
    page.fragment(f'<div class="charts">{_CONFUSION}</div>')


def _coefficients(page: Page) -> None:
    _heading(page, "coefficients", "What the models weigh")
    page.fragment(
        '<p id="coefficient-words"></p><div id="opposites"></div><div id="coefficient-table"></div>'
    )


def _limits(page: Page, content: dict[str, Any]) -> None:
    _heading(page, "limits", "What this page does and does not say")
    ball = f"Distances are measured with the {content['norm']} norm, " + "; or ".join(
        content["spaces"]
    )
    if content["kappa"] is None:
        labels = "Labels are certain (κ = ∞): only features move."
    elif isinstance(content["kappa"], str):
        labels = f"Flipping one label counts as moving a sample by κ = {content['kappa']}."
    else:
        labels = (
            f"Flipping one label counts as moving a sample by κ = {content['kappa']:g}, so at most "
            "a share ε/κ of them is flipped."
        )
    drawn = f"; the distributions drawn are within {content['drawn_tol']:g} nats of it."
    drawn = drawn if content["two_classes"] else "."
    page.bullets(
        [
            "It bounds what any change of the data within the radius can do. It does not say how "
            "likely such a change is.",
            "The samples stand for the population. If a model was fitted to these very samples, it "
            "looks better here than it is: audit it on others, if there are any.",
            f"{ball}. {labels}",
            "Moves only approach the worst case, ever less mass going ever further" + drawn,
            *_measured(content),
        ]
    )
    page.fragment('<div id="fact-table"></div>')


def _measured(content: dict[str, Any]) -> list[str]:
    """Caveats that only some audits need."""
    lines = []
    inexact = [model["name"] for model in content["models"] if not model["exact"]]
    if not content["two_classes"]:
        lines.append("Of several classes, the best error is a bound from below.")
        if inexact:
            lines.append(
                f"Categories and bounds of {', '.join(inexact)} are taken as numbers: worst cases "
                "are upper bounds, exact where no such move pays."
            )
    elif inexact:
        lines.append(
            f"Worst-case errors of {', '.join(inexact)} are upper bounds, a little too large: "
            "there are too many combinations of categories of different costs to try them all."
        )
    return lines


def _heading(page: Page, anchor: str, words: str) -> None:
    page.fragment(f'<h2 id="{anchor}">{escape(words)}</h2>')
