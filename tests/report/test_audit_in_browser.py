"""The page of an audit in a real browser: what follows the slider, what sorts, who can read it.

Needs a Chromium of the system and the extra ``browser`` (playwright drives it, axe judges what
readers with other needs can make of it); both are looked for, and the test says what is missing.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from benchmarks import stated
from sklearn.linear_model import LogisticRegression

import drlogit

pytestmark = pytest.mark.slow

BROWSER = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
if BROWSER is None:
    pytest.skip("no Chromium found: install it, or name it in CHROMIUM", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="pip install 'drlogit[browser]' to test pages in a browser"
)
axe = pytest.importorskip("axe_playwright_python.sync_playwright")


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X = np.column_stack([X, X[:, 0] + 0.05 * rng.normal(size=300)])
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + rng.logistic(size=300) > 0, "yes", "</script>no")
    models = {
        "plain": LogisticRegression(C=100.0).fit(X, y),
        "robust": stated.classifier(epsilon=0.05).fit(X, y),
    }
    return drlogit.audit(models, X, y, groups={"half": np.arange(300) % 2})


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "report.html"
    report.to_html(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def opened(chromium, address):
    """Open the page in a scheme and a width; at the end nothing was said and nothing asked for."""
    said, asked = [], []

    def open_page(scheme: str, width: int):
        page = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open_page
    assert said == []
    assert set(asked) <= {address, "data:,"}


@pytest.fixture(scope="module")
def page(opened):
    return opened("light", 1200)


def column(page, table, j):
    return page.locator(f"#{table} tbody tr > :nth-child({j})").all_inner_texts()


def test_the_slider_moves_all_numbers(page, report):
    content = report.data
    slider = page.locator("#radius")
    shapes = page.locator("#error-chart .now")
    seen = set()
    for k in (0, 7, len(content["radii"]) - 1):
        slider.fill(str(k))
        loss = [f"{model['worst_loss'][k]:.4f}" for model in content["models"]]
        assert column(page, "now-table", 3) == loss
        words = page.locator("#summary").inner_text()
        assert f"{100 * content['models'][1]['worst_error'][k]:.1f}\u00a0%" in words
        groups = [f"{risk['worst_loss'][k]:.4f}" for g in content["groups"] for risk in g["models"]]
        assert column(page, "group-table", 7) == groups
        parts = ("allowed", "risk-words", "confusion-table")
        told = (page.locator(f"#{part}").inner_text() for part in parts)
        seen.add((shapes.get_attribute("x1"), *told))
    assert len(seen) == 3
    slider.press("ArrowLeft")  # the keyboard moves it too
    assert page.locator("#epsilon").inner_text() == f"ε = {content['radii'][-2]:.3g}"


def test_models_are_switched_and_looked_at(page):
    assert page.locator("#loss-chart path").count() == 2
    page.get_by_label("plain", exact=True).uncheck()
    assert page.locator("#loss-chart path").count() == 1
    assert column(page, "now-table", 1) == ["robust"]
    page.get_by_label("plain", exact=True).check()
    page.get_by_label("at", exact=True).select_option("plain")
    assert "of plain that take least to break" in page.locator("#fragile-table").inner_text()


def test_several_classes_follow_the_slider(chromium, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    report = drlogit.audit(LogisticRegression().fit(X, y), X, y, kappa=1.0)
    report.to_html(tmp_path / "classes.html")
    said = []
    page = chromium.new_page()
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "classes.html").as_uri())
    for k in (0, 9):
        page.locator("#radius").fill(str(k))
        shown = page.locator("#confusion-table strong").all_inner_texts()
        cells = report.data["models"][0]["worst_confusion"][k]
        assert shown == [f"{100.0 * cell:.1f}\u00a0%" for cell in cells]
    assert said == []


def test_tables_sort_and_stay_sorted(page):
    head = page.locator("#group-table th", has_text="log-loss now")
    for order in ("descending", "ascending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        texts = column(page, "group-table", 6)
        numbers = [float(text) for text in texts]
        assert numbers == sorted(numbers, reverse=order == "descending")
    page.locator("#radius").fill("3")
    assert column(page, "group-table", 6) == texts


def test_exact_values_under_the_pointer(page, report):
    content = report.data
    page.locator("#loss-chart svg").hover(position={"x": 46, "y": 100})
    tip = page.locator(".tip").inner_text()
    assert f"{content['models'][0]['worst_loss'][0]:.6g}" in tip


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_everyone_can_read_it(page, opened, scheme, width):
    """Contrast, names and labels, by axe; and nothing is wider than the screen."""
    if scheme != "light":
        page = opened("light", width)
        page.locator("#theme").click()
        assert page.locator("html").get_attribute("data-theme") == scheme
    for details in page.locator("details").all():
        details.evaluate("element => { element.open = true; }")
    found = axe.Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
