"""ℓ2 transport in the row space of the features, against engines that know nothing of it."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import zoo
from drlogit.engine import row_space
from drlogit.estimators.robust_classifier import result_of
from zoo import wide_problem


def in_columns(monkeypatch, X, y, options, **more):
    """The result of the engine in all columns, with an N×N matrix or one of all classes."""
    with monkeypatch.context() as patched:
        patched.setattr(row_space, "_SHARE", 0)
        return zoo.by_matrices(X, y, **options, **more)


def agree(found, judge):
    """Whether each bound is below the objective of the other, and both are as close as they say."""
    assert found.info["row_space"] > 0
    assert "row_space" not in judge.info
    assert found.dual_objective <= judge.objective + 1e-11
    assert judge.dual_objective <= found.objective + 1e-11


@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_optimum_is_that_of_all_columns(seed, products, monkeypatch):
    X, y, options = wide_problem(seed, "l2", columns=(320, 500))
    found = (stated.solve if products else zoo.by_matrices)(X, y, tol=1e-7, **options)
    assert found.gap <= 1e-7
    agree(found, in_columns(monkeypatch, X, y, options, tol=1e-7))


@pytest.mark.parametrize("seed", range(6))
def test_optimum_of_several_classes(seed, monkeypatch):
    X, y, options = wide_problem(50 + seed, "l2", n_classes=3 + seed % 3, columns=(320, 400))
    found = stated.solve(X, y, tol=1e-7, **options)
    assert found.gap <= 1e-7
    agree(found, in_columns(monkeypatch, X, y, options, tol=1e-6))


RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((24, 400))

#: Awkward rows, and their rank without and with an intercept.
AWKWARD = {
    "repeated rows": (ROWS[np.r_[:4, [3] * 10, 14:24]], (14, 13)),
    "zero rows": (ROWS * (np.arange(24)[:, None] % 3 > 0), (16, 16)),
    "low rank": (ROWS[:, :3] @ ROWS[:3], (3, 3)),
    "two rows": (ROWS[:2], (2, 1)),
    "constant": (np.tile(ROWS[0], (24, 1)), (1, 1)),
    "offset": (ROWS + 40.0, None),
    "far offset": (ROWS + 1e6 * RNG.random(400), None),
    "column of dates": (np.column_stack([1e5 + 1e3 * RNG.random(24), ROWS[:, 1:]]), None),
}


@pytest.mark.parametrize(
    ("kind", "fit_intercept"),
    # A far offset is for an intercept to absorb.
    [(kind, free) for kind in AWKWARD for free in (True, False) if free or kind != "far offset"],
)
def test_awkward_rows(kind, fit_intercept, monkeypatch):
    X, ranks = AWKWARD[kind]
    y = np.arange(len(X)) % 2
    options = {"epsilon": 0.05, "kappa": 0.7, "norm": "l2", "fit_intercept": fit_intercept}
    # The entries of the N×N matrix are 1e10 there, those of the other columns 400.
    tol = 1e-7 if kind == "column of dates" else 1e-8
    found = stated.solve(X, y, tol=tol, **options)
    assert found.gap <= tol
    agree(found, in_columns(monkeypatch, X, y, options))
    if ranks is not None:
        assert found.info["row_space"] == ranks[fit_intercept]


def test_a_cost_matrix_turns_the_features_first(monkeypatch):
    X, y, options = wide_problem(4, "l2", columns=(320, 330))
    X = X.toarray() if sp.issparse(X) else X
    rng = np.random.default_rng(0)
    root = rng.standard_normal((X.shape[1], X.shape[1])) / 30.0
    options["feature_costs"] = np.eye(X.shape[1]) + root @ root.T
    found = stated.solve(X, y, tol=1e-7, **options)
    assert found.gap <= 1e-7
    agree(found, in_columns(monkeypatch, X, y, options))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_models_there_and_back(n_classes):
    """Margins and the norm of a model of the row space are those of its model of the columns."""
    X, y, options = wide_problem(21, "l2", n_classes=n_classes, columns=(320, 400))
    options["feature_costs"][:2] = math.inf
    options |= {"fit_intercept": True, "kappa": 1.0}
    problem = stated.problem(X, y, **options)
    space = row_space.row_space(problem)
    posed = space.posed(problem)
    rng = np.random.default_rng(0)
    found = rng.standard_normal((1 if n_classes == 2 else n_classes, posed.rows.n_columns))
    model = space.model(problem.rows, found)
    rows = problem.rows
    there, here = (
        row_space._scores(each.rows.blocks[0], 0, v, rows.n_samples)[1][0].value
        for each, v in ((posed, found), (problem, model))
    )
    np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-9)
    rank = space.pivots.size
    lengths = np.linalg.norm((model / problem.costs)[:, problem.penalised], axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(found[:, :rank], axis=1), rtol=1e-9)
    np.testing.assert_allclose(space.coordinates(rows, model), found, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_earlier_model_starts_the_fit(n_classes):
    X, y, options = wide_problem(31, "l2", n_classes=n_classes, columns=(320, 400))
    options |= {"epsilon": 0.05, "kappa": 1.0}
    cold = stated.solve(X, y, **options)
    again = stated.solve(X, y, start=cold, **options)
    near = stated.solve(X, y, start=cold, **(options | {"epsilon": 0.049}))
    assert again.n_iter < cold.n_iter
    assert near.n_iter < cold.n_iter
    assert max(again.gap, near.gap) <= 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_blocks_and_dask_change_nothing(n_classes):
    X, y, options = wide_problem(41, "l2", n_classes=n_classes, columns=(320, 400))
    X = X.toarray() if sp.issparse(X) else X
    del options["sample_weight"]
    options |= {"epsilon": 0.05, "kappa": 1.0, "tol": 1e-8}
    one, two = (stated.solve(X, y, n_jobs=n, **options) for n in (1, 2))
    assert two.objective == pytest.approx(one.objective, abs=1e-8)
    assert max(one.gap, two.gap) <= 1e-8
    dask = pytest.importorskip("dask.array")
    model = stated.classifier(**options)
    here, cut = (result_of(model.fit(x, y)) for x in (X, dask.from_array(X, chunks=(17, -1))))
    assert cut.info["row_space"] == here.info["row_space"] > 0
    assert cut.objective == pytest.approx(here.objective, abs=1e-8)
    assert cut.gap <= 1e-8


def test_labels_that_flip_in_one_class_only():
    """Kinks are too stiff for a factor; the truncated method takes over in the row space."""
    X, y, _ = wide_problem(15, "l2", columns=(320, 500))
    options = {"epsilon": 0.02, "kappa": {0: 0.1, 1: math.inf}, "norm": "l2"}
    found = stated.solve(X, y, tol=1e-8, **options)
    assert found.gap <= 1e-8
    assert found.solver == "truncated-interior-point"
    assert found.info["row_space"] > 0


@pytest.mark.parametrize("kappa", [0.3, 2.0, math.inf])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_critical_radius_is_that_of_all_columns(n_classes, kappa, monkeypatch):
    X, y, _ = wide_problem(61, "l2", n_classes=n_classes, columns=(320, 340))
    found = stated.epsilon_max(X, y, kappa=kappa, norm="l2")
    monkeypatch.setattr("drlogit.fitting.critical_radius.has_fewer_columns", lambda _: False)
    assert found == pytest.approx(stated.epsilon_max(X, y, kappa=kappa, norm="l2"), rel=1e-4)


def test_a_path_forms_the_matrix_once(monkeypatch):
    X, y, _ = wide_problem(71, "l2", columns=(320, 400))
    formed, own = [], row_space.dpstrf
    monkeypatch.setattr(row_space, "dpstrf", lambda *a, **k: formed.append(1) or own(*a, **k))
    path = stated.regularization_path(X, y, kappa=1.0, norm="l2", n_epsilons=4)
    assert max(path.gaps) <= 1e-6
    assert len(formed) == 1


def test_data_with_many_rows_keep_their_columns():
    rng = np.random.default_rng(0)
    X, y = sp.csr_array(np.where(rng.random((900, 5000)) < 0.004, 1.0, 0.0)), np.tile([0, 1], 450)
    found = stated.solve(X, y, epsilon=0.05, kappa=1.0, norm="l2", tol=1e-3)
    assert found.solver == "truncated-interior-point"
    assert "row_space" not in found.info


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_plain_logistic_regression_of_dependent_rows(n_classes, norm, monkeypatch):
    """ε = 0: the optimum is that of a basis of the columns, whatever the norm and the costs."""
    rng = np.random.default_rng(n_classes)
    basis, y = rng.standard_normal((60, 4)), np.arange(60) % n_classes
    X = basis @ rng.standard_normal((4, 500))
    costs = np.where(np.arange(500) < 9, np.inf, 2.0)
    options = {"epsilon": 0.0, "kappa": 1.0, "norm": norm}
    found = stated.solve(X, y, feature_costs=costs, **options)
    judge = stated.solve(basis, y, tol=1e-9, **options)
    assert found.info["row_space"] == 4
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(judge.objective, abs=1e-6)


def test_plain_logistic_regression_of_independent_rows_separates_them():
    X, y, _ = wide_problem(81, "l2", columns=(4200, 4300))
    found = stated.solve(X, y, epsilon=0.0, kappa=1.0)
    assert found.gap <= 1e-6
    assert found.objective <= 1e-6
