"""The truncated interior point against the engine that forms matrices, on generated wide data."""

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


def truncated(X, y, options, tol=1e-6, **more):
    """The result of the method, whatever rule would choose."""
    problem = stated.problem(X, y, **options)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(solving, "plan", lambda *_, **__: [Attempt(truncated_interior_point)])
        return solving.solve_problem(problem, tol=tol, **more)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("seed", "n_classes"),
    [*((seed, 2) for seed in range(12)), *((100 + seed, 3 + seed % 3) for seed in range(6))],
)
def test_bounds_and_objectives_agree_with_the_engine(seed, n_classes, norm):
    X, y, options = zoo.wide_problem(seed, norm, n_classes=n_classes)
    found = truncated(X, y, options)
    assert found.solver == "truncated-interior-point"
    assert found.gap <= 1e-6
    zoo.judged(found, X, y, options)


@pytest.mark.parametrize("seed", [6005, 6023])
def test_rounding_in_what_all_classes_share_does_no_harm(seed):
    """A shift of all classes has no curvature: rounding there must not become a step."""
    X, y, options = zoo.wide_problem(seed, "l2", n_classes=3 + seed % 4, columns=(30, 90))
    assert truncated(X, y, options).gap <= 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_working_sets_agree_with_the_engine(seed):
    """ℓ∞ transport: the columns are few, and those left out are in the bound."""
    X, y, options = zoo.wide_problem(200 + seed, "linf", columns=(400, 600))
    found = stated.solve(X, y, **options)
    assert found.solver == "working-sets"
    assert found.gap <= 1e-6
    zoo.judged(found, X, y, options)


def test_a_column_left_out_lowers_the_bound(monkeypatch):
    """The one informative column is not in the first set: no bound may ignore it."""
    monkeypatch.setattr(working_set, "_FIRST", 3)
    monkeypatch.setattr(working_set, "_MOST_SETS", 1)
    X, y, options = zoo.wide_problem(3, "linf", columns=(400, 600))
    found = stated.solve(X, y, **options)
    assert found.status is not drlogit.Status.OPTIMAL
    assert zoo.judged(found, X, y, options).objective <= found.objective


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_blocks_change_nothing(norm, monkeypatch):
    """One block in memory, and blocks of Dask."""
    monkeypatch.setattr(row_space, "_SHARE", 0)
    X, y, options = zoo.wide_problem(11, norm, columns=(400, 600))
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
    X, y, options = zoo.wide_problem(7, "l2")
    stop = Stop(keeps=True) if interrupted else Stop(0.05)
    stop.interrupted = interrupted
    found = truncated(X, y, options, tol=1e-15, stop=stop)
    status = drlogit.Status.INTERRUPTED if interrupted else drlogit.Status.MAX_TIME
    assert found.status is status
    assert zoo.judged(found, X, y, options).objective <= found.objective + 2e-8
