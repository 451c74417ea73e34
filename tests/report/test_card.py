"""Model cards: metadata that a hub reads, numbers that others compute, and no empty claims."""

import numpy as np
import pytest
import yaml
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import drlogit

TABLE = drlogit.datasets.load_heart_disease()
TABLE = TABLE[TABLE["hospital"] == "cleveland"].drop(columns="hospital")
X, Y = TABLE.drop(columns="disease"), TABLE["disease"].to_numpy()
ALLOWED = drlogit.tolerances(labels=0.02, numbers=0.05, categories=0.02)
MODEL = drlogit.DRLogisticRegression(**ALLOWED.parameters, missing="median")
MODEL.fit(X[:200], Y[:200])
KEPT = X[200:], Y[200:]


@pytest.fixture(scope="module")
def report():
    return drlogit.audit({"heart": MODEL}, *KEPT, groups="sex", holdout=KEPT)


def cells(card: str, name: str) -> list[str]:
    (line,) = [line for line in card.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_metadata_are_those_of_the_hugging_face_hub(report):
    _, front, body = report.to_card().split("---\n", 2)
    found = yaml.safe_load(front)
    assert found["library_name"] == "drlogit"
    assert found["pipeline_tag"] == "tabular-classification"
    (entry,) = found["model-index"]
    assert entry["name"] == "heart"
    (result,) = entry["results"]
    assert {"task", "dataset", "metrics"} <= result.keys()
    values = {metric["type"]: metric["value"] for metric in result["metrics"]}
    p = MODEL.predict_proba(KEPT[0])[:, 1]
    assert values["log_loss"] == pytest.approx(log_loss(KEPT[1] == "yes", p), abs=1e-4)
    assert body.lstrip().startswith("# heart")


def test_performance_is_what_scikit_learn_computes(report):
    card = report.to_card(threshold=0.2)
    p, y = MODEL.predict_proba(KEPT[0])[:, 1], KEPT[1] == "yes"
    score = MODEL.decision_function(KEPT[0])
    assert float(cells(card, "area under the ROC curve")[1]) == pytest.approx(
        roc_auc_score(y, p), abs=1e-4
    )
    assert float(cells(card, "Brier score")[1]) == pytest.approx(brier_score_loss(y, p), abs=1e-4)
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(score[:, None], y)
    assert float(cells(card, "calibration slope")[1]) == pytest.approx(plain.coef_[0, 0], abs=2e-4)
    shift = float(cells(card, "calibration intercept")[1])
    assert (1 / (1 + np.exp(-score - shift))).mean() == pytest.approx(y.mean(), abs=1e-4)
    benefit = ((p >= 0.2) & y).mean() - 0.25 * ((p >= 0.2) & ~y).mean()
    assert float(cells(card, "net benefit at 0.2")[1]) == pytest.approx(benefit, abs=1e-4)
    for name in ("log-loss", "error", "Brier score", "false positive rate at 0.2"):
        _, value, interval, worst = cells(card, name)
        low, high = map(float, interval.split(" to "))
        assert low < float(value) < high
        assert float(worst) > float(value)
    worst = drlogit.worst_case(MODEL, *KEPT, "log_loss").value
    assert float(cells(card, "log-loss")[3]) == pytest.approx(worst, abs=1e-4)


def test_the_checklist_has_numbers_and_says_what_only_authors_know(report):
    card = report.to_card()
    assert "log-loss" in cells(card, "23")[3]
    assert cells(card, "13")[3].startswith("no 5")
    assert cells(card, "14")[3] == "subgroups by sex"
    assert cells(card, "6")[3] == "*to be filled in by the authors*"
    assert "| sex | female | 40 |" in card
    assert "With 95% confidence" in card
    numbers = [
        int(line.split("|")[1].split("–")[0])
        for line in card.splitlines()
        if "to be filled in" in line
    ]
    assert numbers == sorted(numbers)


def test_the_paragraph_states_fit_tolerances_and_guarantee(report):
    said = report.to_paragraph()
    promise = drlogit.guarantee(MODEL, *KEPT)
    assert f"drlogit {drlogit.__version__}" in said
    assert "up to 2 % of labels may be wrong" in said
    assert f"the expected log-loss is at most {promise.loss:.3f}" in said
    assert "{" not in said
    # This guarantee is no better than a coin, and the paragraph says so.
    assert promise.says_nothing in said
    plain = drlogit.audit({"heart": MODEL}, *KEPT)
    assert "On 103 rows, the log-loss is" in plain.to_paragraph()
    assert "None: the audit had no rows" in plain.to_card()


def test_models_of_others_and_of_several_classes_have_cards():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((90, 2))
    for labels in (np.arange(90) % 2, np.arange(90) % 3):
        model = LogisticRegression().fit(Z, labels)
        card = drlogit.audit({"a | b": model}, Z, labels).to_card()
        assert cells(card, "certificate")[1] == "none: the model was not fitted by drlogit"
        assert "nan" not in card
        assert yaml.safe_load(card.split("---\n")[1])["model-index"][0]["name"] == "a | b"


def test_scores_that_separate_the_classes_have_no_slope():
    Z = np.linspace(-1, 1, 40)[:, None]
    card = drlogit.audit(((np.array([3.0]), 0.0)), Z, Z[:, 0] > 0, epsilons=[0.1]).to_card()
    assert cells(card, "calibration slope")[1] == "–"
