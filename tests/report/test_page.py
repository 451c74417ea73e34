"""The page of an audit: complete, harmless, and readable in a browser and on a telephone."""

from __future__ import annotations

import builtins
import os
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import drlogit

BROWSER = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
EVIL = "<script>alert(1)</script>"


class Balanced(HTMLParser):
    """Every tag that is opened is closed; no address but in links that the page has itself."""

    EMPTY = frozenset({"meta", "link", "input", "br", "path", "use", "rect"})

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.addresses = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.addresses += [v for k, v in attributes if k in ("href", "src", "xlink:href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["age", EVIL, "dose"])
    X["job"] = rng.choice([f'"{EVIL}', "clerk"], 200)
    odds = X["age"] + 0.5 * X[EVIL] + (X["job"] == "clerk")
    y = np.where(odds + rng.logistic(size=200) > 0.5, f"yes{EVIL}", "no")
    models = {
        f"plain{EVIL}": drlogit.DRLogisticRegression(0.001, 1.0).fit(X[:100], y[:100]),
        "robust": drlogit.DRLogisticRegression(0.05, 1.0).fit(X[:100], y[:100]),
    }
    return drlogit.audit(models, X[100:], y[100:], by="job", holdout=(X[100:], y[100:]))


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "report.html"
    text = report.to_html(path, title=f"Title {EVIL}")
    assert path.read_text("utf-8") == text
    return path


def test_the_page_begins_with_the_verdict_and_is_whole(report, page):
    text = page.read_text("utf-8")
    found = Balanced(text)
    assert found.open == []
    assert all(address.startswith(("#", "data:,")) for address in found.addresses)
    order = ["As the data are", "Do this next", "For new rows", "How much may go wrong",
             "Which column to check", "The rows that break first", "does not say"]  # fmt: skip
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert text.count('<section class="radius"') == len(report.epsilons)
    assert "best case" not in text
    assert "price" not in text
    assert "$" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.S)


def test_names_and_labels_do_no_harm(page):
    text = page.read_text("utf-8")
    assert EVIL not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert Balanced(text).seen.count("script") == 1


def test_the_same_report_is_the_same_page(report):
    assert report.to_html() == report.to_html()
    assert 'srcdoc="&lt;!doctype html&gt;' in report._repr_html_()


def test_without_matplotlib_there_are_no_curves_and_it_says_so(report, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    text = report.to_html()
    assert "matplotlib is missing" in text
    assert "<svg" not in text
    with pytest.raises(ImportError, match="matplotlib"):
        report.plot()


def test_the_curves_are_those_of_the_report(report):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = report.plot()
    lines = {line.get_label(): line for line in axes.get_lines()}
    for name, each in report.models.items():
        x, values = lines[name].get_data()
        k = int(np.argmax(x >= report.ball.epsilon))
        expected = each.adversary.value(each.metric, x[k])
        assert values[k] == pytest.approx(expected, abs=1e-12)


# --- in a browser ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(page):
    """Open the page at a width; nothing is said in the console, nothing is asked of a network."""
    if BROWSER is None:
        pytest.skip("no Chromium found: install it, or name it in CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs drlogit[browser]")
    said, asked = [], []
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-quic", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=BROWSER, args=arguments)

        def open_page(width):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            tab.on("console", lambda message: said.append(message.text))
            tab.on("pageerror", lambda error: said.append(str(error)))
            tab.on("request", lambda request: asked.append(request.url))
            tab.goto(page.as_uri())
            return tab

        yield open_page
        browser.close()
    assert said == []
    assert set(asked) <= {page.as_uri(), "data:,"}


@pytest.mark.slow
def test_the_slider_shows_one_radius_at_a_time(opened, report):
    tab = opened(1280)
    for k in (0, len(report.epsilons) - 1):
        tab.locator("#radius").fill(str(k))
        shown = tab.locator("section.radius:visible")
        assert shown.count() == 1
        assert shown.locator("h3").inner_text().startswith(f"Radius {report.epsilons[k]:.4g}")
        worst = report.to_frame().query("epsilon == @report.epsilons[@k]")["value"]
        cells = shown.locator("table").first.locator("tbody td:last-child").all_inner_texts()
        assert [float(cell) for cell in cells] == pytest.approx(worst.tolist(), rel=1e-3)
    tab.locator("#radius").press("ArrowLeft")  # the keyboard moves it, too
    assert f"{report.epsilons[-2]:.4g}" in tab.locator("section.radius:visible h3").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_no_column_is_lost(opened, width):
    tab = opened(width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    outside = tab.evaluate(
        """() => [...document.querySelectorAll("td, th")].filter(cell => {
            const box = cell.getBoundingClientRect();
            return box.width > 0 && (box.left < 0 || box.right > window.innerWidth + 1);
        }).length"""
    )
    assert outside == 0
    labels = tab.locator("table").last.locator("tbody tr").first.locator("td")
    names = [cell.get_attribute("data-column") for cell in labels.all()]
    assert names == ["model", "row", "label", "column", "from", "to"]


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_everyone_can_read_it(opened, width):
    """Contrast, names and labels, judged by axe."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(opened(width)).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_several_classes_have_a_page():
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = LogisticRegression().fit(X, y)
    report = drlogit.audit(model, X, y, ball=drlogit.Ball.tolerating(labels=0.05))
    assert "The model predicts the most probable class." in report.to_html()
