"""The documentation tells the truth: what its pages show runs, and what they name exists.

Blocks fenced as ``python`` run; ``py`` is for sketches that need files or a cluster.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from benchmarks import default_ball, shift, tolerances
from benchmarks.pipelines import usual
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import drlogit
import fenced
from drlogit import cli

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:levels are new:UserWarning"),
]

DATA = Path(os.environ.get("DRLOGIT_DATA", ""), "tables")
DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))


@pytest.mark.filterwarnings("ignore:columns left the range:UserWarning")
@pytest.mark.filterwarnings("ignore:numbers are outside the range:UserWarning")
@pytest.mark.filterwarnings("ignore:levels are new:UserWarning")
@pytest.mark.filterwarnings("ignore:none of 123 rows:UserWarning")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if fenced.python_examples(page)], ids=lambda page: page.stem
)
def test_python_runs_and_prints_what_it_says(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages may write files
    assert fenced.run(page, capsys) > 0


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "reference.md").read_text("utf-8"), re.M)
    names = set(drlogit.__all__) - {"__version__", "datasets", "paper"}
    names |= {f"paper.{name}" for name in drlogit.paper.__all__ if name != "INNER_SOLVERS"}
    assert names <= set(listed)
    for name in listed:
        __import__("drlogit.report")
        value = drlogit
        for part in name.split("."):
            value = getattr(value, part)


def test_every_page_is_reached():
    index = (DOCS / "index.md").read_text("utf-8")
    missing = [page.stem for page in PAGES if f"\n{page.stem}\n" not in index]
    assert missing == ["index"], "pages are listed in a toctree of docs/index.md"


def test_displayed_formulas_stand_alone():
    """Within a list, Markdown does not recognise a formula that touches the text around it."""
    for page in DOCS.glob("*.md"):
        lines = ["", *page.read_text("utf-8").splitlines(), ""]
        marks = [i for i, line in enumerate(lines) if line.strip() == "$$"]
        touching = [i for i in marks[::2] if lines[i - 1]] + [
            i for i in marks[1::2] if lines[i + 1]
        ]
        assert not touching, f"{page.name}: blank lines around the formulas in lines {touching}"


def test_files_named_in_the_docs_exist():
    root = DOCS.parent
    for page in [*PAGES, root / "CONTRIBUTING.md", root / "README.md"]:
        for name in re.findall(
            r"`((?:examples|benchmarks|docs)/[\w./-]+)`", page.read_text("utf-8")
        ):
            assert (root / name).exists(), f"{page.name} names {name}"
    rooms = "|".join(path.name for path in (root / "src/drlogit").iterdir() if path.is_dir())
    for page in (DOCS / "algorithm.md", root / "CONTRIBUTING.md"):
        for name in re.findall(rf"`((?:{rooms})/[\w./]+)`", page.read_text("utf-8")):
            assert (root / "src/drlogit" / name).exists(), f"{page.name} names {name}"


def test_tables_of_evidence_are_those_of_the_rows():
    page = (DOCS / "elsewhere.md").read_text("utf-8")
    found = pd.read_csv(shift.ROWS)
    assert shift.summary(found) in page
    assert shift.reasons(found) in page
    page = (DOCS / "balls.md").read_text("utf-8")
    assert tolerances.summary(pd.read_csv(tolerances.ROWS)) in page
    assert tolerances.trust(pd.read_csv(tolerances.TRUSTED)) in " ".join(page.split())
    assert default_ball.summary(pd.read_csv(default_ball.ROWS)) in page


def test_the_front_page_states_the_cost_that_was_measured():
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    said = readme[readme.index("## What it costs") :]
    table = tolerances.summary(pd.read_csv(tolerances.ROWS))
    cells = [line.split("|") for line in table.splitlines()]
    for row in (cells[2], cells[4]):
        assert row[1].strip() in ("default", "labels=0.02")
        loss, error, gain = (abs(float(row[k])) for k in (2, 5, 6))
        for number in (f"{loss:.3f}", f"{error:.1f}", f"{gain:.2f}"):
            assert number.removeprefix("0") in said


@pytest.mark.skipif(not DATA.is_dir(), reason="DRLOGIT_DATA names no folder with tables")
@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize(
    ("table", "wrong", "column", "breaks_at", "next_radii"),
    [("colic", 0.19, "surgery", 0.06, 3.5), ("sick", 0.036, "T3", 0.03, 1.15)],
)
def test_what_audits_find(table, wrong, column, breaks_at, next_radii):
    """The findings of docs/audit.md."""
    frame = pd.read_csv(DATA / f"{table}.csv.bz2", na_values=["?"])
    y = frame.pop(frame.columns[-1]).astype(str)
    X, X_kept, y, y_kept = train_test_split(frame, y, test_size=0.4, random_state=0)
    pipeline = usual(X, LogisticRegression(max_iter=2000)).fit(X, y)
    ball = drlogit.Ball.tolerating(labels=0.02, numbers=0.1, categories=0.05)
    report = drlogit.audit(pipeline, X_kept, y_kept, metric="log_loss", ball=ball.resolve(X, y))
    assert (pipeline.predict(X_kept) != y_kept).mean() == pytest.approx(wrong, abs=0.005)
    columns = report.to_frame("columns").query("kind != 'labels'").reset_index()
    assert columns.loc[0, "column"] == column
    assert columns.loc[0, "breaks_at"] == pytest.approx(breaks_at, abs=0.005)
    assert columns.loc[1, "radii"] == pytest.approx(next_radii, rel=0.05)


def test_no_page_has_a_gap():
    for page in [*PAGES, DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        text = page.read_text("utf-8")
        assert not re.findall("PLACEHOLDER|TODO|FIXME", text)


def test_commands_of_the_documentation_are_understood():
    for page in [*PAGES, DOCS.parent / "README.md"]:
        text = "".join(text for language, text in fenced.blocks(page) if language == "sh")
        for line in re.findall(r"^drlogit .*$", text, re.M):
            words = shlex.split(line, comments=True)[1:]
            assert cli.parsed(words).command == words[0]


def test_links_between_pages_lead_somewhere():
    root = DOCS.parent
    for page in [*PAGES, root / "README.md", root / "CONTRIBUTING.md"]:
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
        for target, _, anchor in re.findall(r"\]\((?!https?:)([\w./-]+)(#([\w-]+))?\)", text):
            there = page.parent / target
            if target.startswith("tutorials/"):
                there = DOCS / "tutorial" / f"{Path(target).name}.py"
            assert there.exists(), f"{page.name} links to {target}"
            if anchor and there.suffix == ".md":
                heads = re.findall(r"^#+ (.*)$", there.read_text("utf-8"), re.M)
                slugs = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
                assert anchor in slugs, f"{page.name} links to {target}#{anchor}"
