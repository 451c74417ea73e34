"""Shifts: how far columns moved, what the ball covers, and why the loss changed."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit


def said(found):
    """The sentences, without the breaks of their lines."""
    return " ".join(str(found).split())


def made(seed, n, moved=0.0, turned=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[:, 0] += moved
    y = (1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0.0).astype(int)
    return X, np.where(rng.random(n) < turned, 1 - y, y)


@pytest.fixture(scope="module")
def model():
    return drlogit.DRLogisticRegression(0.1, 1.0).fit(*made(0, 400))


@pytest.fixture(scope="module")
def hearts():
    table = drlogit.datasets.load_heart_disease()
    columns = [name for name in table if name not in ("hospital", "disease")]
    home = table[table["hospital"] == "cleveland"].sample(frac=1.0, random_state=0)
    ball = {"epsilon": 0.1, "kappa": 2.0, "missing": "median"}
    fitted = drlogit.DRLogisticRegression(**ball).fit(home[columns][:200], home["disease"][:200])
    return fitted, home[columns][200:], home["disease"][200:]


def test_the_ball_covers_the_worst_loss_around_the_reference_rows(model):
    found = drlogit.measure_shift(model, *made(1, 300), *made(2, 300))
    worst = drlogit.worst_case(model, *made(1, 300), "log_loss")
    assert found.loss_covered == pytest.approx(worst.value, abs=1e-12)
    assert found.loss_ref == pytest.approx(worst.nominal, abs=1e-12)
    assert found.ball == worst.ball
    plain = -model.predict_log_proba(made(2, 300)[0])[np.arange(300), made(2, 300)[1]].mean()
    assert found.loss_new == pytest.approx(plain, abs=1e-9)


def distance(X, Z, costs, norm):
    """The transport distance of two samples, by a linear program over all plans."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    lengths = np.linalg.norm((X[:, None] - Z) * costs, order, axis=2)
    n, m = lengths.shape
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    masses = np.concatenate([np.full(n, 1.0 / n), np.full(m, 1.0 / m)])
    return linprog(lengths.ravel(), A_eq=sums, b_eq=masses).fun


@pytest.mark.filterwarnings("ignore:columns left the range")
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_distance_is_below_that_of_the_cheapest_transport(norm):
    rng = np.random.default_rng(3)
    for _ in range(5):
        X, Z = rng.normal(size=(25, 3)), rng.normal(size=(30, 3)) + rng.normal(size=3)
        y = np.arange(25) % 2
        costs = rng.uniform(0.5, 2.0, 3)
        ball = drlogit.Ball(0.5, norm=norm, feature_costs=dict(enumerate(costs.tolist())))
        found = drlogit.measure_shift((np.ones(3), 0.0), X, y, Z, ball=ball)
        exact = distance(X, Z, costs, norm)
        assert 0.3 * exact < 0.5 * found.distance <= exact + 1e-9


def test_new_rows_outside_of_the_ball_are_named_first(model):
    far = drlogit.measure_shift(model, *made(1, 500), *made(2, 500, moved=2.0))
    assert far.distance > 10.0
    assert str(far).startswith("The new rows lie outside of the ball: they are at least")
    assert far.columns["column"][0] == 0
    assert far.columns["moved"][0] == pytest.approx(2.0, abs=0.2)
    wide = far.ball.replace(epsilon=5.0)
    near = drlogit.measure_shift(model, *made(1, 500), *made(2, 500, moved=2.0), ball=wide)
    assert near.distance < 1.0
    assert str(near).startswith("The columns do not show that the new rows lie outside")


def test_what_chance_moves_is_said(model):
    """Samples of one population are as far apart as is said of them."""
    found = [drlogit.measure_shift(model, *made(k, 200), made(50 + k, 300)[0]) for k in range(20)]
    moved, by_chance = (np.mean([f.columns[name].mean() for f in found]) for name in
                        ("moved", "by_chance"))  # fmt: skip
    assert moved == pytest.approx(by_chance, rel=0.2)
    assert np.mean([f.distance for f in found]) == pytest.approx(
        np.mean([f.by_chance for f in found]), rel=0.25
    )


def test_a_change_of_the_loss_is_split_into_rows_and_answers(model):
    reference = made(5, 3000)
    X, y = made(6, 3000)
    same = drlogit.measure_shift(model, *reference, X, y)
    turned = drlogit.measure_shift(model, *reference, *made(6, 3000, turned=0.2))
    scores = np.abs(model.decision_function(X))
    easy = scores > np.median(scores)
    other = drlogit.measure_shift(model, *reference, X[easy], y[easy])
    for found in (same, turned, other):
        assert found.from_rows + found.from_answers == pytest.approx(
            found.loss_new - found.loss_ref
        )
    assert abs(same.from_rows) < 0.02
    assert turned.from_answers > 0.05
    assert abs(turned.from_rows) < 0.02
    assert other.from_rows < -0.03
    assert abs(other.from_answers) < 0.03


@pytest.mark.filterwarnings("ignore:numbers are outside the range:UserWarning")
def test_a_column_in_other_units_is_not_put_down_to_the_labels(hearts):
    fitted, X, y = hearts
    other = X.assign(cholesterol=X["cholesterol"] / 38.67)  # mmol/l
    with pytest.warns(UserWarning, match="columns left the range .*: cholesterol; check their un"):
        found = drlogit.measure_shift(fitted, X, y, other, y)
    text = said(found)
    assert found.left == {"cholesterol": "100 %"}
    assert "cholesterol in 100 % of the new rows" in text
    assert text.index("Check the units") < text.index("log-loss")
    assert "labels differ" not in text
    assert found.columns["column"][0] == "cholesterol"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drlogit.measure_shift(fitted, X, y, X, y).distance == 0.0


def test_categories_move_by_shares(hearts):
    fitted, X, y = hearts
    turned = X.assign(sex=np.where(np.arange(len(X)) < 10, "female", X["sex"]))
    changed = float((turned["sex"] != X["sex"]).mean())
    columns = drlogit.measure_shift(fitted, X, y, turned).columns.set_index("column")
    assert columns.at["sex", "moved"] == pytest.approx(changed)
    assert columns.at["sex", "kind"] == "category"
    assert (columns.drop("sex")["moved"] == 0.0).all()


def test_without_labels_the_loss_is_that_of_reweighted_reference_rows(model):
    (A, a), B = made(7, 400), 0.3 * made(8, 300)[0]  # the scores shrink, the answers stay
    blind = drlogit.measure_shift(model, A, a, B)
    assert (blind.loss_new, blind.from_answers) == (None, None)
    b = (1.5 * B[:, 0] - B[:, 1] + np.random.default_rng(2).logistic(size=300) > 0).astype(int)
    known = drlogit.measure_shift(model, A, a, B, b)
    assert known.from_rows == blind.from_rows
    assert blind.loss_ref + blind.from_rows == pytest.approx(known.loss_new, abs=0.06)
    assert "without labels this cannot be seen" in said(blind)


@pytest.mark.filterwarnings("ignore:columns left the range")
def test_pipelines_classes_and_far_scores():
    X, y = made(9, 300)
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, y)
    ball = drlogit.Ball.tolerating(numbers=0.1)
    found = drlogit.measure_shift(pipeline, frame, y, 2.0 * frame, y, ball=ball)
    assert set(found.columns["column"]) == {"a", "b"}
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    several = LogisticRegression().fit(X, three)
    moved = drlogit.measure_shift(several, X, three, X + 50.0, ball=drlogit.Ball(0.1), y_new=three)
    assert moved.beyond > 0.0
    assert "scores that no reference row has" in said(moved)
    nothing = drlogit.measure_shift(several, X, three, X, ball=drlogit.Ball(0.0))
    assert math.isnan(nothing.distance)


def test_it_is_drawn(model):
    pytest.importorskip("matplotlib").use("agg")
    found = drlogit.measure_shift(model, *made(1, 100), *made(2, 100, moved=1.0))
    assert "radii" in found.plot().get_xlabel()


def test_warnings_of_predict_are_given_once_for_the_line_that_asks(hearts):
    fitted, X, y = hearts
    other = X.assign(cholesterol=X["cholesterol"] / 38.67)
    asked = {
        "audit": lambda: drlogit.audit({"one": fitted, "two": fitted}, other, y),
        "shift": lambda: drlogit.measure_shift(fitted, X, y, other),
    }
    for name, ask in asked.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask()
        assert [each.filename for each in caught] == [__file__], name
        assert "cholesterol" in str(caught[0].message)


def test_a_distance_that_chance_explains_says_so():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((120, 6))
    y = (X[:, 0] + rng.logistic(size=120) > 0.0).astype(int)
    model = drlogit.DRLogisticRegression(0.01).fit(X, y)
    rows = rng.standard_normal((60, 6))
    assert "so that chance explains it" in said(drlogit.measure_shift(model, X, y, rows))
    with pytest.warns(UserWarning, match="left the range"):
        assert "chance" not in said(drlogit.measure_shift(model, X, y, rows + 1.0))
