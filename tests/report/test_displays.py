"""Pictures: what is on them, not how they look (that was looked at)."""

from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from sklearn.linear_model import LogisticRegression

import drlogit
from drlogit import report

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = drlogit.datasets.make_synthetic(120, 4, random_state=1)
FRAME = pd.DataFrame(X, columns=["age", "pulse", "dose", "sleep"])
PLAIN = LogisticRegression().fit(FRAME, Y)
ROBUST = stated.classifier(epsilon=0.03).fit(FRAME, Y)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def drawn(display):
    """Draw for real, with fonts and layout."""
    display.figure_.canvas.draw()
    return display


def words(axes):
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_robustness_of_one_model_on_given_axes():
    figure, axes = plt.subplots(2, 1)
    display = report.RobustnessDisplay.from_estimator(
        PLAIN, FRAME, Y, kappa=math.inf, max_epsilon=0.5, ax=axes
    )
    drawn(display)
    assert display.figure_ is figure
    assert display.lines_[0, 0].get_xdata()[-1] == 0.5
    assert words(axes[0]) == []
    with pytest.raises(ValueError, match="two axes, for loss and error, got 1"):
        display.plot(ax=axes[0])


def test_robustness_of_an_audit_that_is_at_hand():
    found = drlogit.audit({"plain": PLAIN, "robust": ROBUST}, FRAME, Y)
    display = drawn(report.RobustnessDisplay.from_audit(found))
    assert display.report is found
    np.testing.assert_array_equal(display.lines_[0, 0].get_xdata(), found.epsilons)


def test_path():
    display = drawn(
        report.RegularizationPathDisplay.from_path(
            stated.regularization_path(FRAME, Y, n_epsilons=6, kappa=1.0), n_named=2
        )
    )
    assert display.ax_.get_xscale() == "log"
    assert len(display.lines_) == 4
    np.testing.assert_array_equal(display.lines_[2].get_ydata(), display.path.coefs[:, 2])
    largest = np.argsort(-np.abs(display.path.coefs).max(axis=0))[:2]
    assert words(display.ax_) == FRAME.columns[largest].tolist()
    again = display.path.plot(feature_names=list("abcd"))
    assert isinstance(again, report.RegularizationPathDisplay)
    assert set(words(drawn(again).ax_)) == set("abcd")
    with pytest.raises(ValueError, match="feature_names must have 4 entries, got 1"):
        report.RegularizationPathDisplay.from_path(display.path, feature_names=["a"])


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"drlogit\[plot\]"):
        report.RobustnessDisplay.from_estimator(PLAIN, FRAME, Y)


# --- decisions under shift --------------------------------------------------------------------
