"""The truncated interior point against the engine that forms matrices, on generated wide data."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated

import drlogit
import zoo
from drlogit.engine import row_space, working_set
from drlogit.engine.plan import Attempt
from drlogit.engine.truncated import truncated_interior_point
from drlogit.fitting import solving
from drlogit.problem.stopping import Stop

NORMS = ("l1", "l2")


def wide_problem(seed, norm, n_classes=2, columns=(60, 150)):
    """Fewer samples than columns: sparse or dense, κ of every kind, weights, free columns."""
    rng = np.random.default_rng(seed)
    N, n = int(rng.integers(20, 60)), int(rng.integers(*columns))
    X = rng.standard_normal((N, n)) * 10.0 ** rng.uniform(-0.5, 0.5, n)
    if rng.random() < 0.5:
        X = sp.csr_array(np.where(rng.random((N, n)) < 0.2, X, 0.0))
    scores = np.asarray(X @ rng.standard_normal((n, n_classes)) / math.sqrt(n))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    costs = np.ones(n) if rng.random() < 0.5 else 10.0 ** rng.uniform(-0.3, 0.3, n)
    if rng.random() < 0.4:
        costs[rng.integers(n, size=2)] = np.inf
    epsilon = 10.0 ** rng.uniform(-2.0, -0.3)
    kappa = epsilon * 10.0 ** rng.uniform(0.5, 2.0)
    kind = rng.integers(4)
    options = {
        "epsilon": epsilon,
        "kappa": [kappa, math.inf, {0: kappa, **dict.fromkeys(range(1, n_classes), math.inf)},
                  kappa * rng.uniform(0.5, 2.0, N)][kind],
        "norm": norm,
        "feature_costs": costs,
        "fit_intercept": bool(rng.random() < 0.8),
        "sample_weight": rng.uniform(0.2, 3.0, N) if rng.random() < 0.5 else None,
    }  # fmt: skip
    return X, y, options


def truncated(X, y, options, tol=1e-6, **more):
    """The result of the method, whatever rule would choose."""
    several = np.unique(y).size > 2
    domains = {"categories": None, "bounds": None}
    if several:
        problem = stated.problem(X, y, **domains, **options)
    else:
        problem = stated.problem(X, y, **options)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(solving, "plan", lambda *_, **__: [Attempt(truncated_interior_point)])
        return solving.solve_problem(problem, tol=tol, **more)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(12))
def test_bounds_and_objectives_agree_with_the_engine(seed, norm):
    X, y, options = wide_problem(seed, norm)
    found = truncated(X, y, options)
    judge = zoo.by_matrices(X, y, tol=1e-8, **options)
    assert found.solver == "truncated-interior-point"
    assert found.dual_objective <= judge.objective + 1e-10
    assert found.objective <= judge.objective + found.gap + 1e-10
    assert found.gap <= 1e-6


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(6))
def test_several_classes_agree_with_the_engine(seed, norm):
    X, y, options = wide_problem(100 + seed, norm, n_classes=3 + seed % 3)
    found = truncated(X, y, options)
    judge = zoo.by_matrices(X, y, tol=1e-8, **options)
    assert found.dual_objective <= judge.objective + 1e-10
    assert found.objective <= judge.objective + found.gap + 1e-10
    assert found.gap <= 1e-6


@pytest.mark.parametrize("seed", [6005, 6023])
def test_rounding_in_what_all_classes_share_does_no_harm(seed):
    """A shift of all classes has no curvature: rounding there must not become a step."""
    X, y, options = wide_problem(seed, "l2", n_classes=3 + seed % 4, columns=(30, 90))
    assert truncated(X, y, options).gap <= 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_working_sets_agree_with_the_engine(seed):
    """ℓ∞ transport: the columns are few, and those left out are in the bound."""
    X, y, options = wide_problem(200 + seed, "linf", columns=(400, 600))
    found = stated.solve(X, y, **options)
    judge = zoo.by_matrices(X, y, tol=1e-8, **options)
    assert found.solver == "working-sets"
    assert found.dual_objective <= judge.objective + 1e-10
    assert found.objective <= judge.objective + found.gap + 1e-10
    assert found.gap <= 1e-6


def test_a_column_left_out_lowers_the_bound(monkeypatch):
    """The one informative column is not in the first set: no bound may ignore it."""
    monkeypatch.setattr(working_set, "_FIRST", 3)
    monkeypatch.setattr(working_set, "_MOST_SETS", 1)
    X, y, options = wide_problem(3, "linf", columns=(400, 600))
    found = stated.solve(X, y, **options)
    judge = zoo.by_matrices(X, y, tol=1e-8, **options)
    assert found.status is not drlogit.Status.OPTIMAL
    assert found.dual_objective <= judge.objective <= found.objective


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_blocks_change_nothing(norm, monkeypatch):
    """One block in memory, and blocks of Dask."""
    monkeypatch.setattr(row_space, "_SHARE", 0)
    X, y, options = wide_problem(11, norm, columns=(400, 600))
    X = X.toarray() if sp.issparse(X) else X
    options |= {"sample_weight": None, "kappa": 5.0 * options["epsilon"]}
    one = stated.solve(X, y, n_jobs=1, **options)
    dask = pytest.importorskip("dask.array")
    cut = stated.solve(dask.from_array(X, chunks=(17, -1)), y, **options)
    assert one.solver == cut.solver != "interior-point"
    assert cut.gap <= 1e-6
    assert cut.objective == pytest.approx(one.objective, abs=1e-6)


@pytest.mark.parametrize("interrupted", [False, True])
def test_an_early_end_keeps_a_certified_point(interrupted):
    X, y, options = wide_problem(7, "l2")
    stop = Stop(keeps=True) if interrupted else Stop(0.05)
    stop.interrupted = interrupted
    found = truncated(X, y, options, tol=1e-15, stop=stop)
    judge = zoo.by_matrices(X, y, tol=1e-8, **options)
    status = drlogit.Status.INTERRUPTED if interrupted else drlogit.Status.MAX_TIME
    assert found.status is status
    assert found.dual_objective <= judge.objective + 1e-10 <= found.objective + 2e-8
