"""An audit as a web page that explains itself.

The page is ``audit.html`` with ``audit.css`` and ``audit.js`` in it, and nothing from elsewhere: it
reads the same from a mail attachment as from a server.  Each section has sentences first, then
figures, then tables.  The script draws figures and tables from the data in the page, so that they
follow the slider together.  Text that must be there without a script (printed text, mail readers)
is inserted here, and everything that users supply is escaped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from html import escape
from importlib import resources
from string import Template
from typing import Any


def audit_page(
    content: dict[str, Any], *, title: str | None = None, subtitle: str | None = None
) -> str:
    """The page of an audit."""
    models, K = content["models"], len(content["classes"])
    several = len(models) > 1
    parts = {
        "several": several,
        "groups": bool(content["groups"]),
        "two_classes": content["two_classes"],
        "confusion": any("confusion" in each for each in models),
    }
    page = re.sub(
        r"\{(\w+)\}((?:(?!\{end\}).)*)\{end\}",
        lambda found: found[2] if parts[found[1]] else "",
        _packaged("audit.html"),
        flags=re.S,
    )
    title = title or ("How robust are these models?" if several else "How robust is this model?")
    columns = dict.fromkeys(group["column"] for group in content["groups"])
    words = {
        "title": title,
        "subtitle": subtitle or _subtitle(content),
        "last": len(content["radii"]) - 1,
        "start": content["start"],
        "epsilon": f"{content['radii'][content['start']]:.4g}",
        "ball": _ball(content),
        "guess": "a coin has 0.693" if K == 2 else f"{K} classes at random have {math.log(K):.3f}",
        "columns": " and ".join(columns),
        "rows": "go by their names" if content["rows_named"] else "count from 0",
        "norm": content["norm"],
        "spaces": "; or ".join(content["spaces"]),
        "labels": _labels(content["kappa"]),
    }
    written = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Template(page).substitute(
        {name: escape(str(value)) for name, value in words.items()},
        promise=_decided(content) + _promise(content["guarantees"]),
        all_radii=_all_radii(content),
        alone="" if several else " hidden",
        caveats=_bullets(_caveats(content)),
        # No text in the data can end the element that contains the data.
        data=written.replace("<", "\\u003c"),
        styles=_packaged("audit.css"),
        script=_packaged("audit.js"),
    )


def _packaged(name: str) -> str:
    """The text of a file beside this one."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"<li>{escape(item)}</li>" for item in items)


def _decided(content: dict[str, Any]) -> str:
    """The page opens with what the reader decides by: threshold, costs, and groups side by side."""
    found = content["decided"]
    if not found:
        return ""
    metric, epsilon = found[0]["metric"], found[0]["epsilon"]
    bound = "at least" if found[0]["value"] < found[0]["high"] else "at most"
    lines = [
        f"{of['model']}: {metric} is {bound} {of['value']:.4g} within ε = {epsilon:g}; it is "
        f"{of['nominal']:.4g} on these samples as they are and {of['best']:.4g} in the best case."
        for of in found
    ]
    columns = {"radius ε": [f"{each['epsilon']:.4g}" for each in found[0]["radii"]]}
    for of in found:
        columns[of["model"]] = [f"{each['value']:.4g}" for each in of["radii"]]
    tables = [_number_table(f"{metric} in the worst case", columns)]
    if found[0]["groups"]:
        names = [part["group"] for part in found[0]["groups"]]
        columns = {"group": [escape(name) for name in names]}
        for of in found:
            by_name = {part["group"]: part for part in of["groups"]}
            parts = [by_name.get(name) for name in names]
            for end, words in (("nominal", "as they are"), ("value", "worst case")):
                columns[f"{of['model']}, {words}"] = [
                    "–" if part is None else f"{part[end]:.4g}" for part in parts
                ]
        caption = f"{metric} of each group alone, in a ball of radius ε = {epsilon:g}"
        tables.append(_number_table(caption, columns))
    head = f'<p class="lead">{escape(content["decides"])}</p>\n' if content["decides"] else ""
    return f"{head}<ul>\n{_bullets(lines)}\n</ul>\n" + "\n".join(tables) + "\n"


def _promise(found: list[dict[str, Any]]) -> str:
    """The limits for new rows, if there was a hold-out set."""
    if not found:
        return ""
    each = "each " if len(found) > 1 else ""
    holds = (
        f"For new data of the same population, {each}with {found[0]['confidence']:.0%} "
        f"confidence, whatever changes within the radius ε = {found[0]['epsilon']:g}:"
    )
    limits = _bullets(
        f"{of['model']}, on {of['n']:,} rows it had not seen: {_limit_of_loss(of)}, wrong "
        f"predictions at most {of['error']:.1%} (on these rows as they are: {of['mean_loss']:.3f} "
        f"and {of['mean_error']:.1%}). {of['about_price']} {of['says_nothing']}"
        for of in found
    )
    assumed = " ".join(dict.fromkeys(of["assumed"] for of in found))
    return f'<p>{holds}</p>\n<ul>\n{limits}\n</ul>\n<p class="note">{escape(assumed)}</p>'


def _limit_of_loss(of: dict[str, Any]) -> str:
    if of["loss"] is None:
        return f"no limit of the log-loss ({of['no_limit']})"
    return f"expected log-loss at most {of['loss']:.3f}"


def _subtitle(content: dict[str, Any]) -> str:
    names = [model["name"] for model in content["models"]]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
    return f"{shown}, on {content['n_samples']:,} samples"


def _ball(content: dict[str, Any]) -> str:
    """The ball in which several models are measured."""
    return (
        f"All models are measured in one ball, that of {content['ball']}: {content['norm']} "
        f"norm, distances {content['spaces'][0]}."
    )


def _labels(kappa: float | str | None) -> str:
    if kappa is None:
        return "Labels are certain (κ = ∞): only features move."
    if isinstance(kappa, str):
        return f"Flipping one label counts as moving a sample by κ = {kappa}."
    return (
        f"Flipping one label counts as moving a sample by κ = {kappa:g}, so at most a share ε/κ of "
        "them is flipped."
    )


def _all_radii(content: dict[str, Any]) -> str:
    """The table of all radii, which needs no script."""
    at, models = content["tables_at"], content["models"]
    columns = {"radius ε": [f"{content['radii'][k]:.4g}" for k in at]}
    if content["kappa"] is not None:
        columns["labels wrong up to"] = [f"{content['flip_limits'][k]:.1%}" for k in at]
    for model in models:
        best, worst, name = model["best_error"], model["worst_error"], model["name"]
        columns[f"log-loss, {name}"] = [f"{model['worst_loss'][k]:.4f}" for k in at]
        columns[f"error, {name}"] = [f"{best[k]:.1%} to {worst[k]:.1%}" for k in at]
    return _number_table("Worst-case log-loss, and error from best to worst case", columns)


def _number_table(name: str, columns: dict[str, list[str]]) -> str:
    """A table whose first column names the rows."""
    head = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in columns)
    body = "\n".join(
        f'<tr><th scope="row" class="number">{first}</th>'
        + "".join(f'<td class="number">{cell}</td>' for cell in cells)
        + "</tr>"
        for first, *cells in zip(*columns.values(), strict=True)
    )
    # Focusable, so that it can be scrolled without a mouse.
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">\n'
        f"<table>\n<caption><span>{escape(name)}</span></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def _caveats(content: dict[str, Any]) -> list[str]:
    """Caveats that apply to this audit."""
    inexact = ", ".join(model["name"] for model in content["models"] if not model["exact"])
    if content["two_classes"]:
        words = (
            f"Worst-case errors of {inexact} are upper bounds and may be slightly too large: there "
            "are too many combinations of categories of different costs to try them all."
        )
        return [words] if inexact else []
    words = (
        f"Categories and bounds of {inexact} are taken as numbers: worst cases are upper bounds, "
        "exact where no such move pays."
    )
    several = len(content["classes"]) > 3
    first = ["With more than three classes, the best error is a lower bound."] if several else []
    return [*first, words] if inexact else first
