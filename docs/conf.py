"""Settings of the documentation; build it with ``make docs``."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx

import drlogit

project = "drlogit"
author = project_copyright = "The drlogit developers"
version = release = drlogit.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {  # scripts that run when the pages are built, with their output in them
    "examples_dirs": "tutorial",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "copyfile_regex": r".*\.bz2$",
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
    "show_signature": False,
}
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "tutorial"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "drlogit"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["narrow.css"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_math_renderer = "mathml"


def setup(app: Sphinx) -> None:
    """Formulas as MathML, which browsers show by themselves: pages need no internet."""
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    app.connect("source-read", _keep_together)


def _keep_together(app: Sphinx, page: str, source: list[str]) -> None:
    """Numbers and their errors on one line, in narrow tables too."""
    source[0] = source[0].replace(" ± ", "\u00a0±\u00a0")


def _mathml(node: Any, display: str) -> str:
    """A formula as MathML; ``ValueError`` for words of LaTeX that would be shown as they are."""
    latex = node.astext().replace("{aligned}", "{align*}").replace(r"\arg\min", r"\text{arg min}")
    found: str = convert(latex, display=display)
    if "\\" in found or "$" in latex:
        raise ValueError(f"latex2mathml does not understand {latex}")
    return found


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_mathml(node, "inline"))
    raise SkipNode


def _displayed(writer: Any, node: Any) -> None:
    formula = _mathml(node, "block")
    writer.body.append(f'<div class="math" style="overflow-x: auto">{formula}</div>')
    raise SkipNode
