"""What the page of an audit shows: the library's numbers, and their parts add up."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from drlogit import audit

RNG = np.random.default_rng(3)
N = 90
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(20, 60, N).astype(float),
        "job": RNG.choice(["clerk", "cook", "boss"], N),
        "pay": 1000.0 * RNG.exponential(size=N),
        "home": RNG.choice(["own", "rent"], N),
    }
)
SCORE = (
    0.1 * (FRAME.age - 40) + (FRAME.job == "boss") - 0.5 * (FRAME.home == "rent") + FRAME.pay / 1500
)
Y = np.where(SCORE - 0.5 + RNG.logistic(size=N) > 0, "paid", "late")
ENCODER = make_column_transformer(
    (StandardScaler(), ["age", "pay"]), (OneHotEncoder(drop="first"), ["job", "home"])
)
PIPE = make_pipeline(ENCODER, LogisticRegression()).fit(FRAME, Y)
ROBUST = stated.classifier(epsilon=0.1, kappa=1.5, feature_costs="std").fit(FRAME, Y)
#: Models, their samples, and how they are measured.
BALLS = {
    "table": (ROBUST, FRAME, {"kappa": 1.5, "bounds": {"age": (18.0, 60.0)}}),
    "pipeline": (PIPE, FRAME, {"kappa": 3.0}),
    "l2": (PIPE[-1], np.asarray(ENCODER.transform(FRAME)), {"kappa": 4.0, "norm": "l2"}),
    "flips": (PIPE[-1], np.asarray(ENCODER.transform(FRAME)), {"kappa": 0.5}),
    "labels are right": (PIPE, FRAME, {"kappa": math.inf, "norm": "linf"}),
}


@pytest.fixture(params=BALLS, scope="module")
def case(request):
    model, X, ball = BALLS[request.param]
    report = audit(model, X, Y, epsilons=[0.0, 0.15, 0.4], groups={"home": FRAME.home}, **ball)
    return report, report.data, model, X, ball


def test_shares_of_the_budget_add_up_to_it(case):
    report, content, *_ = case
    frame = report.to_frame("features")
    total = frame.groupby("epsilon")["budget"].sum()
    assert total.to_numpy() == pytest.approx(np.array(content["radii"]), rel=1e-5)
    # With the labels right, too; and none is negative, up to the digits that are kept.
    moves = content["models"][0]["moves"]
    parts = [each["use"] for each in moves["features"]] + [moves["others"], moves["unspent"]]
    assert np.sum(parts, axis=0) == pytest.approx(np.array(content["radii"]), rel=1e-5)
    assert np.min(parts) >= 0.0
    assert max(moves["flips"]) == 0.0


def test_fragile_samples_break_where_the_page_says():
    """The change, made in the table, takes the sample to the boundary; nothing is cheaper."""
    report = audit(PIPE, FRAME, Y, kappa=3.0, epsilons=[0.1])
    shown = report.data["models"][0]
    cost = report.audited["LogisticRegression"].costs_to_break
    u = np.where(Y == "paid", 1.0, -1.0) * PIPE.decision_function(FRAME)
    cheapest = np.sort(cost[u > 0])[: len(shown["fragile"])]
    assert [each["cost"] for each in shown["fragile"]] == pytest.approx(cheapest, rel=1e-6)
    for each in shown["fragile"]:
        row = FRAME.iloc[[each["row"]]].copy()
        assert each["label"] == Y[each["row"]] == PIPE.predict(row)[0]
        for change in each["changes"]:
            name, before, after = re.fullmatch(r"(\w+): (.+) → (.+)", change).groups()
            number = row[name].dtype.kind == "f"
            assert row[name].iloc[0] == (
                pytest.approx(float(before), rel=1e-3) if number else before
            )
            row[name] = float(after) if number else after
        margin = (1.0 if each["label"] == "paid" else -1.0) * PIPE.decision_function(row)[0]
        assert margin < 0.02


def as_pipeline(table):
    """The same model as a pipeline of scaled numbers and one-hot columns."""
    scaler, encoder = StandardScaler(), OneHotEncoder()
    columns = make_column_transformer((scaler, ["age", "pay"]), (encoder, ["job", "home"]))
    last = LogisticRegression().fit(columns.fit_transform(FRAME), Y)
    scaler, encoder = columns.named_transformers_.values()
    coef = dict(zip(table.encoding_.names, table.coef_[0], strict=True))
    numbers = np.array([coef["age"], coef["pay"]])
    texts = zip(["job", "home"], encoder.categories_, strict=True)
    levels = [coef[f"{name}={level}"] for name, known in texts for level in known]
    last.coef_[0] = [*(numbers * scaler.scale_), *levels]
    last.intercept_[0] = table.intercept_[0] + numbers @ scaler.mean_
    return make_pipeline(columns, last)


def test_one_ball_whatever_scales_and_encodes_the_features():
    """Bounds and prices are those of the features, not of what a pipeline makes of them."""
    ours = stated.classifier(0.1, 1.5, feature_costs="std", bounds={"age": (-20.0, 200.0)}).fit(
        FRAME, Y
    )
    models = {"scaled": as_pipeline(ours), "ours": ours}
    report = audit(models, FRAME, Y, epsilons=[0.1, 2.0])
    assert report.ball == "ours"
    for a, b in zip(report["scaled"].rows, report["ours"].rows, strict=True):
        assert a.worst_case_loss == pytest.approx(b.worst_case_loss, rel=1e-9)
        assert a.worst_error == pytest.approx(b.worst_error, abs=1e-9)


def test_models_that_no_ball_fits():
    X = FRAME[["age", "pay"]]
    ours = stated.classifier(0.1, 1.5, feature_costs="std").fit(X, Y)
    models = {"ours": ours, "unlike": make_pipeline(PCA(2), LogisticRegression()).fit(X, Y)}
    with pytest.raises(ValueError, match=r"the ball of ours has no cost .* by itself"):
        audit(models, X, Y)


def test_forms(tmp_path):
    raw = stated.classifier(epsilon=0.1, kappa=1.5).fit(FRAME, Y)
    report = audit({"plain": PIPE, "raw": raw}, FRAME, Y, kappa=1.5, groups="home")
    page = report.to_html(tmp_path / "page.html", title="Title", subtitle="Under it")
    assert (tmp_path / "page.html").read_text("utf-8") == page
    assert len(page) < 1_000_000
    assert re.findall(r"<iframe|@import|https?://(?!www\.w3\.org/)", page) == []
    assert "All models are measured in one ball, that of raw: l1 norm" in page
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "</script>" not in shown  # escaped, as an attribute must be
    named = audit(PIPE, FRAME.set_axis([f"p{k}" for k in range(N)]), Y, epsilons=[0.1])
    assert named.to_frame("samples")["row"].str.startswith("p").all()
    assert f"row p{named.models[0].most_surprising[0].index}:" in str(named)
    frame, again = report.to_frame(), json.loads(json.dumps(report.to_dict()))
    assert frame["model"].tolist() == [row["model"] for row in report.rows]
    assert again["models"][0]["rows"][1]["worst_case_loss"] == frame["worst_case_loss"][1]
    sizes = report.to_frame("groups").drop_duplicates(["column", "value"])["size"]
    assert sizes.sum() == N
    assert set(report.to_frame("samples")["model"]) == {"plain", "raw"}
    with pytest.raises(ValueError, match=r"part must be one of 'radii', .* got 'all'"):
        report.to_frame("all")


class Nesting(HTMLParser):
    """Checks that tags nest, and collects the attributes that are asked about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found += [("tag", tag), *attrs]
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, *names):
        return [value for name, value in self.found if name in names]


@pytest.mark.parametrize("several", [False, True], ids=["two classes", "three classes"])
def test_pages_nest_and_hold_all_they_need_whatever_things_are_called(several):
    hostile = """</script><script>alert("$x {end}")</script>'&"""
    y = np.digitize(SCORE, [0.3, 1.2]) if several else Y
    model = make_pipeline(ENCODER, LogisticRegression()).fit(FRAME, y)
    report = audit(
        {hostile: model, "b": model, "c": model}, FRAME, y, epsilons=[0.1],
        groups={hostile: FRAME.home}, holdout=(FRAME, y),
    )  # fmt: skip
    page = report.to_html(title=hostile, subtitle=hostile)
    outline = Nesting(page)
    tags, ids, addresses = outline.all("tag"), outline.all("id"), outline.all("src", "href")
    assert tags.count("script") == 2  # our own, and the data for it
    assert tags.count("h1") == tags.count("main") == 1
    assert [a for a in addresses if not a.startswith(("#", "data:"))] == []
    assert re.findall(r"@import|url\((?!#)", page) == []
    assert len(ids) == len(set(ids))
    assert {a[1:] for a in addresses if a.startswith("#")} <= set(ids)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert json.loads(data[1])["models"][0]["name"] == hostile


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("wage", "groups names the column 'wage', which X does not have"),
        ([1, 2], r"one value per sample, 90, got shape \(2,\)"),
        (np.arange(N), "at most 30 different values, got 90 in 'group': cut it"),
    ],
)
def test_groups_that_cannot_be_meant(groups, message):
    with pytest.raises(ValueError, match=message):
        audit(PIPE, FRAME, Y, groups=groups)
