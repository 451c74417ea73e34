"""The problem itself: its objective, the best λ, the bound on λ, and what input it accepts."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from benchmarks import stated

import zoo
from drlogit.problem.problem import Problem
from drlogit.rows.building import coded
from drlogit.rows.checks import ParameterError

ORDERS = {"l1": np.inf, "l2": 2, "linf": 1}  # of the dual norm


# --- references, written down as in docs/algorithm.md -------------------------------------------


def reference_objective(case: zoo.Case, coefficients, lam: float) -> float:
    """Problem (A) of the paper: ``ελ + Σ w max{h(u), h(-u) - κλ}``, or ∞ outside the ball."""
    options = case.options
    X = np.asarray(case.X.todense() if sp.issparse(case.X) else case.X, dtype=np.float64)
    intercept = options.get("fit_intercept", True)
    beta, b = (coefficients[:-1], coefficients[-1]) if intercept else (coefficients, 0.0)
    weights = options.get("sample_weight")
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    costs = options.get("feature_costs")
    costs = np.ones(X.shape[1]) if costs is None else np.asarray(costs)
    u = case.y * (X @ beta + b)
    loss = np.logaddexp(0.0, -u)
    if math.isfinite(options["kappa"]):
        loss = np.maximum(loss, np.logaddexp(0.0, u) - options["kappa"] * lam)
    bounded = np.isfinite(costs) if options["epsilon"] > 0.0 else np.zeros(costs.size, dtype=bool)
    scaled = np.append(beta[bounded] / costs[bounded], 0.0)  # NumPy 1 has no norm of nothing
    if np.linalg.norm(scaled, ORDERS[options["norm"]]) > lam * (1 + 1e-9):
        return math.inf
    return options["epsilon"] * lam + weights @ loss / weights.sum()


# --- the objective ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", zoo.ZOO, ids=repr)
def test_objective_is_the_papers(case):
    problem = case.build()
    rng = np.random.default_rng(0)
    size = 1.0 / np.maximum(problem.rows.column_scale, 1.0)
    for scale in (0.0, 0.1, 1.0, 30.0):
        given = scale * size * rng.standard_normal(problem.costs.size)
        split = (given[:-1], given[-1]) if problem.fit_intercept else (given, 0.0)
        v = problem.join(*split)
        least = problem.dual_norm(v)
        for lam in (least, 1.5 * least + 0.1, 10.0 * least):
            expected = reference_objective(case, given, lam)
            assert problem.objective(v, lam) == pytest.approx(expected, rel=1e-12)
        assert problem.objective(v) == problem.objective(v, problem.best_lambda(v))


def test_objective_is_infinite_outside_the_ball():
    problem = zoo.planted(costs=0.5, norm="l2").build()
    v = np.ones(problem.costs.size)
    least = problem.dual_norm(v)
    assert problem.allows(v, least)
    assert problem.objective(v, least * (1.0 - 1e-9)) == math.inf
    assert not problem.allows(v, 0.0)
    assert problem.allows(np.zeros_like(v), 0.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_split_and_join_are_inverse(fit_intercept):
    problem = zoo.planted(fit_intercept=fit_intercept, n_features=3).build()
    v = np.arange(1.0, 4.0 + fit_intercept)
    beta, b = problem.split(v)
    assert b == (4.0 if fit_intercept else 0.0)
    np.testing.assert_array_equal(problem.join(beta, b), v)
    np.testing.assert_array_equal(problem.join(beta[None, :].tolist(), b), v)
    assert not np.shares_memory(beta, v)
    with pytest.raises(ValueError, match="expected 3 coefficients, got 2"):
        problem.join([1.0, 2.0], 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_best_lambda_has_the_least_objective_of_all(seed):
    """Few samples and many, ties of all kinds, in one block and several, from guesses or not."""
    rng = np.random.default_rng(seed)
    n, digits = (int(rng.integers(2, 400)), 20_000)[seed % 2], 1 if seed % 3 == 0 else 12
    kappa, weights = 2.0 ** int(rng.integers(-6, 6)), np.append([1, 1], rng.integers(0, 3, n))
    X = kappa * np.round(rng.standard_normal((n + 2, 1)) * 10.0 ** rng.uniform(0, 2), digits)
    problem = stated.problem(
        X, np.arange(n + 2) % 2, kappa=kappa, sample_weight=weights, fit_intercept=False,
        epsilon=kappa * float(rng.choice([0.0, 1e-4, 0.01, 0.5])), n_jobs=1 + seed % 4,
    )  # fmt: skip
    for v in ([1.0], [-0.5], [0.0], [1e-3]):
        margins, least = problem.margins(np.array(v)), problem.dual_norm(np.array(v))
        u, w = problem.rows.gather(margins), problem.rows.together().weights
        # The objective at λ = ‖β‖_* and wherever a flip begins to pay, by sorting.
        u, w = u[order := np.argsort(-u)], w[order]
        lams = np.maximum(np.append(u, 0.0) / kappa, least)
        above = np.searchsorted(-u, -kappa * lams)
        gains, flips = (np.append(0.0, np.cumsum(part))[above] for part in (w * u, w))
        values = problem.epsilon * lams + gains - kappa * lams * flips
        best = w @ np.logaddexp(0.0, -u) + values.min()
        lam, loss = lams[values.argmin()], problem.robust_loss(np.array(v))
        for guess in (None, lam, 1.001 * lam, 0.999 * lam, 0.0, 10.0 * lam, math.inf):
            found, objective = loss.best(problem.epsilon, guess)
            assert objective == pytest.approx(best, rel=1e-13)
            assert loss.value(problem.epsilon, found) == objective


# --- invariances -----------------------------------------------------------------------------

CASES = [case for case in zoo.ZOO if not sp.issparse(case.X)][::3]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_repeated_rows_flipped_labels_and_other_units(case):
    """Integer weights, none included; then ``(X, ε, κ) → c (X, ε, κ)`` gives ``(β, λ)/c``."""
    options, counts = case.options, np.arange(len(case.y)) % 3
    counts[np.unique(case.y, return_index=True)[1]] = 1
    base = options.get("sample_weight")
    base = np.ones(len(case.y)) if base is None else base
    weighted = stated.problem(case.X, case.y, **options | {"sample_weight": counts * base})
    repeated = stated.problem(
        np.repeat(case.X, counts, axis=0), np.repeat(case.y, counts),
        **options | {"sample_weight": np.repeat(base, counts)},
    )  # fmt: skip
    assert_equal_objectives(weighted, repeated, lambda v: v)
    flipped = stated.problem(case.X, -case.y, **options)
    assert_equal_objectives(case.build(), flipped, np.negative)
    n = case.X.shape[1]
    for c in (1e-3, 4.0):
        radius = {"epsilon": c * options["epsilon"], "kappa": c * options["kappa"]}
        scaled = stated.problem(c * case.X.astype(np.float64), case.y, **options | radius)
        scale = np.append(np.full(n, c), np.ones(scaled.costs.size - n))
        assert_equal_objectives(case.build(), scaled, scale.__rtruediv__, lambda lam, c=c: lam / c)


def assert_equal_objectives(one: Problem, other: Problem, convert, convert_lam=lambda lam: lam):
    rng = np.random.default_rng(3)
    for _ in range(5):
        v = rng.standard_normal(one.costs.size) / np.maximum(one.rows.column_scale, 1.0)
        w = convert(v)
        assert other.objective(w) == pytest.approx(one.objective(v), rel=1e-12)
        assert other.best_lambda(w) == pytest.approx(convert_lam(one.best_lambda(v)), rel=1e-9)
        lam = 2.0 * one.dual_norm(v) + 0.1
        expected = one.objective(v, lam)
        assert other.objective(w, convert_lam(lam)) == pytest.approx(expected, rel=1e-12)


# --- input that is accepted -----------------------------------------------------------------

RNG = np.random.default_rng(4)
X = RNG.standard_normal((12, 3))
Y = np.where(np.arange(12) % 3 == 0, 1, -1)
OPTIONS = {"epsilon": 0.1, "kappa": 1.0}
V = np.array([0.5, -1.0, 2.0, 0.25])

MATRICES = {
    "list": lambda: X.tolist(),
    "pandas": lambda: pd.DataFrame(X, columns=list("abc")),
    "pandas sparse": lambda: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
    "polars": lambda: pl.DataFrame(X),
    "sparse": lambda: sp.coo_matrix(X),
}


@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_of_every_kind_give_the_same_problem(kind):
    problem = stated.problem(MATRICES[kind](), Y, **OPTIONS)
    expected = stated.problem(X, Y, **OPTIONS)
    np.testing.assert_allclose(problem.rows.gather(problem.margins(V)), expected.margins(V)[0])
    assert problem.objective(V) == pytest.approx(expected.objective(V), rel=1e-14)


LABELS = {
    "0/1": (Y > 0).astype(int),
    "bool": Y > 0,
    "strings": np.where(Y > 0, "yes", "no"),
    "objects": np.where(Y > 0, "yes", "no").astype(object),
    "column": Y[:, None],
    "pandas": pd.Series(Y, index=np.arange(12)[::-1]),
    "pandas nullable": pd.Series((Y > 0).astype(int), dtype="Int64"),
    "polars": pl.Series(Y),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind(kind):
    """The label that sorts last is the positive class."""
    _, codes = coded(LABELS[kind], X)
    np.testing.assert_array_equal(2 * codes - 1, Y)


def frozen(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def test_input_is_not_modified():
    """Read-only arrays raise where they are written into; other input is compared."""
    unsorted = sp.csr_array((np.ones(4), [2, 0, 1, 1], [0, 2, 4, 4]), shape=(3, 3))
    before = [part.copy() for part in (unsorted.data, unsorted.indices, unsorted.indptr)]
    stated.problem(unsorted, [0, 1, 0], **OPTIONS)
    for part, copy in zip((unsorted.data, unsorted.indices, unsorted.indptr), before, strict=True):
        np.testing.assert_array_equal(part, copy)

    frame = pd.DataFrame(X)
    stated.problem(frame, pd.Series(Y), **OPTIONS)
    np.testing.assert_array_equal(frame.to_numpy(), X)

    weights, costs = frozen(np.arange(1.0, 13.0)), frozen(np.array([1.0, np.inf, 2.0]))
    problem = stated.problem(
        frozen(X), frozen(Y), sample_weight=weights, feature_costs=costs, **OPTIONS
    )
    problem.objective(frozen(V))
    problem.best_lambda(frozen(V))
    assert not np.shares_memory(problem.costs, costs)


# --- input that is not ----------------------------------------------------------------------


def changed(array, index, value):
    copy = np.array(array, dtype=np.float64)
    copy[index] = value
    return copy


#: name: (keyword arguments, what the message says was found, and what it says is wanted)
BAD = {
    "X nan": ({"X": changed(X, (1, 2), np.nan)}, "NaN", "finite"),
    "X inf": ({"X": changed(X, (1, 2), np.inf)}, "inf in row 1 of column 2", "finite"),
    "X too large": ({"X": changed(X, (1, 2), -1e179)}, r"1e\+179", r"below 1e\+150"),
    "X sparse nan": ({"X": sp.csr_array(changed(X, (1, 2), np.nan))}, "NaN", "finite"),
    "X pandas missing": ({"X": pd.DataFrame(X).mask(X > 1)}, "NaN", "finite"),
    "X 1-D": ({"X": X[:, 0]}, "1D", "2-D"),
    "X empty": ({"X": X[:0], "y": []}, "0 sample", "one row"),
    "X no features": ({"X": X[:, :0]}, "0 feature", "one column"),
    "X strings": ({"X": np.full((12, 2), "a")}, "'a'", "numbers"),
    "y nan": ({"y": changed(Y, 3, np.nan)}, "got nan in row 3", "a label for every row"),
    "y inf": ({"y": changed(Y, 3, np.inf)}, "got inf in row 3", "a label for every row"),
    "y missing string": ({"y": np.array(["a", "b", None] * 4, object)}, "NoneType", "missing"),
    "y missing among two": ({"y": np.array([1.0, np.nan] * 6, dtype=object)}, "nan", "missing"),
    "y pandas missing": (
        {"y": pd.Series([0, 1, None] * 4, dtype="Int64")}, "got nan in row 2", "for every row"
    ),
    "y short": ({"y": Y[:9]}, "got 9", "12"),
    "y one class": ({"y": np.ones(12)}, "one class: 1.0", "two classes"),
    "epsilon negative": ({"epsilon": -0.1}, "-0.1", ">= 0"),
    "epsilon inf": ({"epsilon": math.inf}, "inf", "finite"),
    "epsilon string": ({"epsilon": "0.1"}, "'0.1'", "number"),
    "kappa zero": ({"kappa": 0}, "got 0", "> 0"),
    "weights all zero": ({"sample_weight": np.zeros(12)}, "all zeros", "positive"),
    "weights negative": ({"sample_weight": changed(np.ones(12), 2, -0.5)}, "-0.5", ">= 0"),
    "weights nan": ({"sample_weight": changed(np.ones(12), 2, np.nan)}, "nan", "finite"),
    "weights short": ({"sample_weight": np.ones(5)}, r"\(5,\)", r"\(12,\)"),
    "weights strings": ({"sample_weight": ["a"] * 12}, "'a'", "numbers"),
    "weights one class": ({"sample_weight": Y > 0}, "smaller label.*zero", "both classes"),
    "norm unknown": ({"norm": "l3"}, "'l3'", "'l1', 'l2', 'linf'"),
    "costs short": ({"feature_costs": [1.0, 1.0]}, r"\[1., 1.\]", "3 numbers"),
    "costs negative": ({"feature_costs": [1.0, -2.0, 1.0]}, r"-2\.", "> 0"),
    "costs zero": ({"feature_costs": [1.0, 0.0, 1.0]}, r" 0\.", "> 0"),
}  # fmt: skip

#: The same for what only solve takes.
BAD_CALLS = {
    "max_time negative": ({"max_time": -3.0}, r"got -3\.0", "> 0"),
    "tol zero": ({"tol": 0.0}, "got 0.0", "> 0"),
    "tol inf": ({"tol": math.inf}, "inf", "finite"),
    "max_iter zero": ({"max_iter": 0}, "got 0", "positive integer"),
}


def assert_refused(function, bad, **defaults):
    arguments, found, wanted = bad
    arguments = {"X": X, "y": Y, **OPTIONS} | defaults | arguments
    with pytest.raises(ValueError, match=found) as caught:
        function(arguments.pop("X"), arguments.pop("y"), **arguments)
    message = str(caught.value)
    assert re.search(wanted, message), message
    assert len(message) < 400
    assert "\n" not in message
    return caught.value


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_was_found_and_what_is_wanted(name):
    message = str(assert_refused(stated.problem, BAD[name]))
    parameter = next(iter(BAD[name][0]))
    assert re.match(rf"{parameter}\b|every sample with the (smaller|larger) label", message), (
        message
    )


@pytest.mark.parametrize("name", ["epsilon negative", "kappa zero", "weights negative", *BAD_CALLS])
def test_errors_of_numbers_say_which_parameter_for_callers_with_other_names(name):
    bad = (BAD | BAD_CALLS)[name]
    error = assert_refused(stated.solve, bad)
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(error, ParameterError)
    assert (str(again), again.parameter) == (str(error), *bad[0])
