"""The page builder: everything escaped, nothing from elsewhere, figures with words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from drlogit.plots.html_page import Page

VOID = {"meta", "link", "img", "br"}


class Outline(HTMLParser):
    """Checks that tags nest, and collects what is asked about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def figure():
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, axes = plt.subplots(figsize=(4.0, 3.0))
    axes.plot([1.0, 2.0], label="a")
    axes.legend()
    yield figure
    plt.close(figure)


def test_everything_is_escaped(figure):
    hostile = """<script>alert("x")</script>'&"""
    page = Page(hostile, subtitle=hostile, footer=hostile)
    page.heading(hostile)
    page.text(hostile)
    page.bullets([hostile])
    page.table([hostile], [[hostile]], caption=hostile)
    page.figure(figure, alt=hostile, caption=hostile)
    page.script("", {hostile: hostile})
    outline = Outline(page.render())
    assert outline.tags.count("script") == 2  # our own, and the data for it
    words = "".join(outline.words)
    assert words.count("<script>") == 11  # as words, wherever given
    assert words.count(r"\u003cscript>") == 2


def test_nothing_comes_from_elsewhere(figure):
    page = Page("Report")
    page.figure(figure, alt="a line")
    page.figure(figure, alt="a line", format="png")
    text = page.render()
    outside = [a for a in Outline(text).addresses if not a.startswith(("#", "data:"))]
    assert outside == []
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_names_are_used_once_and_resolve(figure):
    page = Page("Report")
    for _ in range(2):
        page.heading("Same words")
        page.figure(figure, alt="a line")
    outline = Outline(page.render())
    assert len(outline.ids) == len(set(outline.ids))
    assert {"same-words", "same-words-2"} <= set(outline.ids)
    referred = {a[1:] for a in outline.addresses if a.startswith("#")}
    referred |= set(re.findall(r"url\(#([^)]+)\)", page.render()))
    assert referred
    assert referred <= set(outline.ids)


def test_figures_follow_the_colour_scheme_and_say_what_they_show(figure):
    page = Page("Report")
    page.figure(figure, alt="The line rises.", caption="A line")
    text = page.render()
    assert 'aria-label="The line rises."' in text
    assert "<figcaption>A line</figcaption>" in text
    assert "currentColor" in text
    assert "#ffffff" not in text.partition("<svg")[2]
    with pytest.raises(ValueError, match="alt must say"):
        page.figure(figure, alt=" ")


def test_numbers_stand_to_the_right():
    page = Page("Report")
    page.table(
        ["name", "number", "text", "time"],
        [["a", 0.123456, "x", "1.5 s"], ["b", 12, "3", None], ["c", "≤ 1e-06", "", "< 0.1 s"]],
        caption="A table",
    )
    text = page.render()
    assert 'class="scroll"' in text
    heads = re.findall(r'<th scope="col"( class="number")?>(\w+)</th>', text)
    assert [name for right, name in heads if right] == ["number", "time"]
    assert '<td class="number">0.1235</td>' in text
    assert '<th scope="row">a</th>' in text
    assert "<caption><span>A table</span></caption>" in text


def test_tables_of_many_columns_are_wider_than_the_text():
    page = Page("Report")
    page.table([f"column {j}" for j in range(7)], [range(7)])
    assert 'class="scroll wide"' in page.render()


def test_rows_must_fit():
    with pytest.raises(ValueError, match="must have 2 cells"):
        Page("Report").table(["a", "b"], [[1]])


def test_equal_pages_are_equal_bytes(figure, tmp_path):
    for name in ("a.html", "b.html"):
        page = Page("Report")
        page.figure(figure, alt="a line")
        page.write(tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
