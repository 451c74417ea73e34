"""Parquet files of several row groups: the fit of the same table in memory."""

from __future__ import annotations

import numpy as np
import pytest

import drlogit

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")
pd = pytest.importorskip("pandas")


def table(n_rows=3000, levels=30):
    """Numbers of several units, levels of few parts only, missing values, an identifier."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((n_rows, 3)) * [1.0, 10.0, 0.1], columns=list("xyz"))
    frame["day"] = 20_200_101.0 + rng.integers(0, 300, n_rows)
    frame["few"] = rng.choice(["a", "b", "c"], n_rows)
    frame["many"] = np.sort(rng.choice([f"m{k:02d}" for k in range(levels)], n_rows))
    frame.loc[rng.random(n_rows) < 0.05, "few"] = None
    frame.loc[: n_rows // 4, "few"] = None  # of which the first part has no level at all
    frame["truth"] = rng.random(n_rows) < 0.3
    frame["id"] = [f"row {k}" for k in range(n_rows)]
    frame["zip"] = rng.integers(4, size=n_rows)
    score = frame.x + frame.truth + (frame.many > "m15") + rng.logistic(size=n_rows)
    return frame, np.where(score > 1.0, "yes", "no")


@pytest.fixture(params=[4, 30])
def stored(request, tmp_path, monkeypatch):
    """A table, and the same in two files of several row groups, with the labels in a column."""
    monkeypatch.setattr("drlogit.rows.parquet._ROWS", 500)
    frame, labels = table(levels=request.param)
    for k, part in enumerate((slice(0, 1200), slice(1200, None))):
        some = frame[part].assign(label=labels[part])
        pq.write_table(pa.Table.from_pandas(some), tmp_path / f"{k}.parquet", row_group_size=400)
    return frame, labels, ds.dataset(tmp_path)


@pytest.mark.filterwarnings("ignore:column 'id'")
@pytest.mark.parametrize(
    ("parameters", "weights"),
    [
        ({}, np.arange(3000) % 3),
        ({"ball": drlogit.Ball(kappa=np.inf, feature_costs="std")}, None),
        ({"missing": "mean", "class_weight": "balanced"}, None),
        ({"categorical_features": ["few", "many", "zip", "truth"]}, None),
    ],
)
def test_fits_are_those_of_memory(stored, parameters, weights):
    frame, labels, dataset = stored
    if "categorical_features" in parameters:
        frame = frame.drop(columns="id")
        dataset = ds.dataset(dataset.to_table([*frame, "label"]))
    here, there = (drlogit.DRLogisticRegression(0.01, **parameters) for _ in range(2))
    here.fit(frame, labels, sample_weight=weights)
    there.fit(dataset, "label", sample_weight=weights)
    assert there.dual_gap_ <= 1e-6
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-9)
    np.testing.assert_allclose(there.predict_proba(dataset), here.predict_proba(frame), atol=1e-9)
    np.testing.assert_array_equal(there.predict(dataset), here.predict(frame))
    assert there.score(dataset, "label") == here.score(frame, labels)
    pd.testing.assert_frame_equal(there.coefficient_table(), here.coefficient_table())


def test_what_is_said_of_datasets(stored, capsys):
    _, _, dataset = stored
    with pytest.warns(UserWarning, match="column 'id' is ignored"):
        drlogit.DRLogisticRegression(0.01, verbose=1).fit(dataset, "label")
    assert capsys.readouterr().out.count("3000 of 3000 rows read\n") == 2
    frame, labels = table(200)
    model = drlogit.DRLogisticRegression(0.01).fit(frame[["x", "few"]], labels)
    for refused in (
        lambda: drlogit.DRLogisticRegressionCV().fit(dataset, "label"),
        lambda: drlogit.regularization_path(dataset, "label", drlogit.Ball(0.1)),
        lambda: drlogit.solve(dataset, "label", drlogit.Ball(0.1)),
        lambda: drlogit.audit(model, dataset, "label"),
        lambda: drlogit.guarantee(model, dataset, "label"),
        lambda: model.save_proof("nowhere.npz", dataset, "label"),
    ):
        with pytest.raises(TypeError, match=r"memory, got a pyarrow .*draw a sample, or predict"):
            refused()
    for parameters, y, wrong in (
        ({}, "target", "y must be the name of a column of the dataset, got 'target'"),
        ({"missing": "median"}, "label", "missing='median' needs X in memory"),
        ({"categorical_features": ["nowhere"]}, "label", "nowhere"),
    ):
        with pytest.raises(ValueError, match=wrong):
            drlogit.DRLogisticRegression(0.01, **parameters).fit(dataset, y)
