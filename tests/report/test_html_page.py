"""The page builder: everything escaped, nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from drlogit.report.html_page import Page

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


HOSTILE = """<script>alert("x")</script>'&"""


def written(words: str) -> str:
    page = Page(words, subtitle=words, footer=words)
    page.text(words)
    page.bullets([words])
    page.table([words], [[words]], caption=words)
    page.script("", {words: words})
    return page.render()


def test_everything_is_escaped():
    outline = Outline(written(HOSTILE))
    assert outline.tags.count("script") == 2  # our own, and the data for it
    words = "".join(outline.words)
    assert words.count("<script>") == 9  # as words, wherever given
    assert words.count(r"\u003cscript>") == 2


def test_nothing_comes_from_elsewhere_and_names_resolve():
    text = written("Report")
    outline = Outline(text)
    assert [a for a in outline.addresses if not a.startswith(("#", "data:"))] == []
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    assert len(outline.ids) == len(set(outline.ids))
    assert {a[1:] for a in outline.addresses if a.startswith("#")} <= set(outline.ids)


def test_tables_of_many_columns_are_wider_than_the_text():
    page = Page("Report")
    page.table([f"column {j}" for j in range(7)], [list("abcdefg")], caption="Wide")
    assert 'class="scroll wide"' in page.render()
    assert 'class="scroll"' in written("Report")
