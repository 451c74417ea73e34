"""The problem itself: its objective, the best λ, the bound on λ, and what input it accepts."""

from __future__ import annotations

import math
import re
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import zoo
from drlogit.fitting.solving import JOINT_SOLVERS, SUBPROBLEM_SOLVERS, solve, solve_subproblem
from drlogit.problem import weighted_quantile
from drlogit.problem.norms import NORMS
from drlogit.problem.problem import Problem, build_problem
from drlogit.rows.checks import check_labels, check_weights

ORDERS = {"l1": np.inf, "l2": 2, "linf": 1}  # of the dual norm


# --- references, written down as in docs/model.md -------------------------------------------


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


def brute_force_lambda(problem: Problem, coefficients) -> float:
    """Best of all breakpoints of the piecewise linear function of λ."""
    margins = problem.margins(coefficients)
    least = problem.dual_norm(coefficients)
    breakpoints = problem.rows.gather(margins) / problem.kappa
    candidates = np.append(breakpoints[breakpoints > least], least)
    return min(problem.objective_at(margins, lam) for lam in candidates)


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


@pytest.mark.parametrize("norm", zoo.NORM_NAMES)
def test_costs_divide_in_the_dual_norm_and_multiply_in_the_norm(norm):
    costs = np.array([0.5, 2.0, 10.0])
    X, y = np.eye(3), np.array([1, -1, 1])
    problem = build_problem(
        X, y, epsilon=0.1, kappa=1.0, norm=norm, feature_costs=costs, fit_intercept=False
    )
    v = np.array([1.0, -2.0, 3.0])
    assert problem.dual_norm(v) == pytest.approx(NORMS[norm].dual(v / costs))
    assert problem.transport_norm(v) == pytest.approx(NORMS[norm].value(v * costs))


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


# --- the best λ ------------------------------------------------------------------------------

dyadic = st.integers(0, 8).map(lambda k: k / 8.0)


@given(
    margins=st.lists(
        st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]), min_size=2, max_size=12
    ),
    weights=st.data(),
    share=dyadic,
    kappa=st.sampled_from([0.25, 1.0, 4.0]),
)
def test_best_lambda_with_ties(margins, weights, share, kappa):
    """Margins, weights and ε/κ on coarse grids, so that every kind of tie occurs."""
    w = weights.draw(st.lists(st.integers(0, 3), min_size=len(margins), max_size=len(margins)))
    y = np.where(np.arange(len(margins)) % 2, 1.0, -1.0)
    w[0], w[1] = max(w[0], 1), max(w[1], 1)  # two classes are needed
    total = sum(w)
    kwargs = {"epsilon": share * kappa, "kappa": kappa, "sample_weight": w, "fit_intercept": False}
    X = (y * np.array(margins))[:, None]
    problem = build_problem(X, y, **kwargs)
    for v in (np.array([1.0]), np.array([-1.0]), np.array([0.0])):
        lam = problem.best_lambda(v)
        best = brute_force_lambda(problem, v)
        assert problem.objective(v) == pytest.approx(best, rel=1e-14, abs=1e-14)
        assert lam >= problem.dual_norm(v)
        # q is a margin that occurs; the weight above it is at most ε/κ
        u = problem.rows.gather(problem.margins(v))
        above = np.asarray(w)[u > kappa * lam * (1.0 + 1e-15)].sum() / total
        assert above <= share + 1e-15
    for n_blocks in (2, 5, 17):
        cut = build_problem(X, y, n_blocks=n_blocks, **kwargs)
        for v in (np.array([1.0]), np.array([-0.5])):
            with patch.object(weighted_quantile, "_FEW", 0):  # by histograms alone
                value = cut.objective(v)
            assert value == pytest.approx(problem.objective(v), rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("seed", range(30))
def test_best_lambda_against_brute_force(seed, monkeypatch):
    monkeypatch.setattr(weighted_quantile, "_FEW", (0, 20, 4096)[seed // 3 % 3])
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 400))
    X = rng.standard_normal((n, 3)) * 10.0 ** rng.uniform(-3, 3)
    y = np.where(np.arange(n) % 2, 1, -1)
    weights = rng.random(n) * (rng.random(n) < 0.7)
    weights[:2] = 1.0
    options = {
        "epsilon": 10.0 ** rng.uniform(-4, 1),
        "kappa": 10.0 ** rng.uniform(-2, 2),
        "norm": zoo.NORM_NAMES[seed % 3],
        "sample_weight": weights if seed % 2 else None,
    }
    problem = build_problem(X, y, **options)
    cuts = [build_problem(X, y, n_blocks=k, **options) for k in (2, 5, 17)]
    for _ in range(5):
        v = rng.standard_normal(4) * 10.0 ** rng.uniform(-3, 2)
        assert problem.objective(v) == pytest.approx(brute_force_lambda(problem, v), rel=1e-13)
        assert problem.best_lambda(v) == pytest.approx(
            max(problem.dual_norm(v), quantile(problem, v) / problem.kappa), rel=1e-14
        )
        for cut in cuts:
            assert cut.best_lambda(v) == pytest.approx(problem.best_lambda(v), rel=1e-13)
        assert_guesses_do_no_harm(problem, v, rng)


def assert_guesses_do_no_harm(problem: Problem, v, rng) -> None:
    """λ and the objective there, from guesses that are right, nearly so, and wrong."""
    lam, loss = problem.best_lambda(v), problem.flip_loss(v, problem.margins(v))
    wanted = pytest.approx((lam, loss.value(problem.epsilon, lam)), rel=1e-13)
    off = 10.0 ** rng.uniform(-8, 0)
    for guess in (lam, lam * (1.0 + off), lam * (1.0 - off), 0.0, 10.0 * lam, math.inf, math.nan):
        assert loss.best(problem.epsilon, guess) == wanted


def quantile(problem: Problem, v) -> float:
    """Smallest margin of positive weight with weight at most ε/κ strictly above, by sorting."""
    u = problem.rows.gather(problem.margins(v))
    w = np.concatenate([block.weights for block in problem.rows.blocks])
    u, w = u[w > 0.0], w[w > 0.0]
    allowed = [q for q in u if w[u > q].sum() <= problem.epsilon / problem.kappa]
    return min(allowed)


# --- invariances -----------------------------------------------------------------------------

CASES = [case for case in zoo.ZOO if not sp.issparse(case.X)][::3]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_integer_weights_are_duplicated_rows(case):
    counts = 1 + np.arange(len(case.y)) % 3
    weights = case.options.get("sample_weight")
    rest = {k: v for k, v in case.options.items() if k != "sample_weight"}
    base = np.ones(len(case.y)) if weights is None else weights
    weighted = build_problem(case.X, case.y, sample_weight=counts * base, **rest)
    repeated = build_problem(
        np.repeat(case.X, counts, axis=0), np.repeat(case.y, counts),
        sample_weight=np.repeat(base, counts), **rest,
    )  # fmt: skip
    assert_equal_objectives(weighted, repeated, lambda v: v)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_columns_in_another_order_and_sign(case):
    rng = np.random.default_rng(2)
    n = case.X.shape[1]
    order, signs = rng.permutation(n), rng.choice([-1.0, 1.0], n)
    costs = case.options.get("feature_costs")
    options = case.options | {"feature_costs": None if costs is None else costs[order]}
    changed = build_problem((case.X * signs)[:, order].astype(case.X.dtype), case.y, **options)
    assert_equal_objectives(
        case.build(), changed, lambda v: np.append((v[:n] * signs)[order], v[n:])
    )


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_flipped_labels_flip_the_coefficients(case):
    assert_equal_objectives(
        case.build(), build_problem(case.X, -case.y, **case.options), np.negative
    )


@pytest.mark.parametrize("case", CASES, ids=repr)
@pytest.mark.parametrize("c", [1e-3, 4.0])
def test_data_radius_and_flip_cost_scale_together(case, c):
    """``(X, ε, κ) → c (X, ε, κ)`` gives ``(β, λ)/c``."""
    options = case.options
    radius = {"epsilon": c * options["epsilon"], "kappa": c * options["kappa"]}
    scaled = build_problem(c * case.X.astype(np.float64), case.y, **(options | radius))
    n = case.X.shape[1]
    assert_equal_objectives(
        case.build(), scaled, lambda v: np.append(v[:n] / c, v[n:]), lambda lam: lam / c
    )


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
    "tuple of tuples": lambda: tuple(map(tuple, X)),
    "pandas": lambda: pd.DataFrame(X, columns=list("abc")),
    "pandas nullable": lambda: pd.DataFrame(X).astype("Float64"),
    "pandas sparse": lambda: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
    "polars": lambda: pl.DataFrame(X),
    "object": lambda: X.astype(object),
    "sparse": lambda: sp.coo_matrix(X),
}


@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_of_every_kind_give_the_same_problem(kind):
    problem = build_problem(MATRICES[kind](), Y, **OPTIONS)
    expected = build_problem(X, Y, **OPTIONS)
    np.testing.assert_allclose(problem.rows.gather(problem.margins(V)), expected.margins(V)[0])
    assert problem.objective(V) == pytest.approx(expected.objective(V), rel=1e-14)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.int8, np.int64, np.uint8, bool, np.longdouble, ">f8"]
)
def test_other_number_types_become_double(dtype):
    data = (3.0 * np.abs(X) * (X > -0.5)).astype(dtype)
    problem = build_problem(data, Y, **OPTIONS)
    assert problem.rows.blocks[0].X.dtype == np.float64
    np.testing.assert_array_equal(problem.rows.blocks[0].X, data.astype(np.float64))


def test_memory_maps_are_read_where_they_are(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    problem = build_problem(mapped, Y, n_blocks=3, **OPTIONS)
    shared, _ = problem.rows.run(lambda block, _: (np.shares_memory(block.X, mapped), ()), None)
    assert list(shared) == [True] * 3
    assert problem.objective(V) == pytest.approx(build_problem(X, Y, **OPTIONS).objective(V))


LABELS = {
    "0/1": (Y > 0).astype(int),
    "bool": Y > 0,
    "float": np.where(Y > 0, 0.5, -2.0),
    "strings": np.where(Y > 0, "yes", "no"),
    "list of strings": np.where(Y > 0, "yes", "no").tolist(),
    "objects": np.where(Y > 0, "yes", "no").astype(object),
    "bytes": np.where(Y > 0, b"b", b"a"),
    "column": Y[:, None],
    "uint8": (Y > 0).astype(np.uint8),
    "pandas": pd.Series(Y, index=np.arange(12)[::-1]),
    "pandas nullable": pd.Series((Y > 0).astype(int), dtype="Int64"),
    "pandas categorical": pd.Series(np.where(Y > 0, "b", "a"), dtype="category"),
    "polars": pl.Series(Y),
    "polars strings": pl.Series(np.where(Y > 0, "b", "a").tolist()),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind(kind):
    """The label that sorts last is the positive class."""
    np.testing.assert_array_equal(check_labels(LABELS[kind], 12), Y)


@pytest.mark.parametrize(
    "weights", [np.ones(12), [2] * 12, pd.Series(np.full(12, 1e-300)), pl.Series([1e300] * 12)]
)
def test_weights_are_normalised(weights):
    np.testing.assert_allclose(check_weights(weights, 12), np.full(12, 1.0 / 12.0), rtol=1e-15)
    np.testing.assert_allclose(check_weights(None, 12), np.full(12, 1.0 / 12.0), rtol=1e-15)


def test_zero_weights_remove_samples():
    weights = np.where(np.arange(12) < 8, 1.0, 0.0)
    some = build_problem(X, Y, sample_weight=weights, **OPTIONS)
    fewer = build_problem(X[:8], Y[:8], **OPTIONS)
    assert some.objective(V) == pytest.approx(fewer.objective(V), rel=1e-14)
    assert some.best_lambda(V) == pytest.approx(fewer.best_lambda(V), rel=1e-14)


def frozen(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def test_input_is_not_modified():
    """Read-only arrays raise where they are written into; other input is compared."""
    unsorted = sp.csr_array((np.ones(4), [2, 0, 1, 1], [0, 2, 4, 4]), shape=(3, 3))
    before = [part.copy() for part in (unsorted.data, unsorted.indices, unsorted.indptr)]
    build_problem(unsorted, [0, 1, 0], **OPTIONS)
    for part, copy in zip((unsorted.data, unsorted.indices, unsorted.indptr), before, strict=True):
        np.testing.assert_array_equal(part, copy)

    frame = pd.DataFrame(X)
    build_problem(frame, pd.Series(Y), **OPTIONS)
    np.testing.assert_array_equal(frame.to_numpy(), X)

    weights, costs = frozen(np.arange(1.0, 13.0)), frozen(np.array([1.0, np.inf, 2.0]))
    problem = build_problem(
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
    "X float32 inf": ({"X": changed(X, 0, -np.inf).astype(np.float32)}, "inf in row 0", "finite"),
    "X too large": ({"X": changed(X, (1, 2), -1e179)}, r"1e\+179", r"below 1e\+150"),
    "X sparse too large": ({"X": sp.csr_array(changed(X, (1, 2), 1e179))}, r"1e\+179", r"1e\+150"),
    "X sparse nan": ({"X": sp.csr_array(changed(X, (1, 2), np.nan))}, "NaN", "finite"),
    "X pandas missing": ({"X": pd.DataFrame(X).mask(X > 1)}, "NaN", "finite"),
    "X polars null": ({"X": pl.DataFrame({"a": [None, *range(11)]})}, "NaN", "finite"),
    "X 1-D": ({"X": X[:, 0]}, "1D", "2-D"),
    "X 3-D": ({"X": X[None]}, "dim 3", "2-D"),
    "X scalar": ({"X": 3.0}, "scalar", "2-D"),
    "X None": ({"X": None}, "scalar", "2-D"),
    "X empty": ({"X": X[:0], "y": []}, "0 sample", "one row"),
    "X no features": ({"X": X[:, :0]}, "0 feature", "one column"),
    "X sparse no features": ({"X": sp.csr_array((12, 0))}, "0 feature", "one column"),
    "X strings": ({"X": np.full((12, 2), "a")}, "'a'", "numbers"),
    "X objects": ({"X": np.full((12, 2), object())}, "object", "numbers"),
    "X complex": ({"X": X + 1j}, "[Cc]omplex", "numbers"),
    "X dates": ({"X": np.zeros((12, 2), "datetime64[s]")}, "Dates", "numbers"),
    "X ragged": ({"X": [[1.0], [1.0, 2.0]]}, "inhomogeneous", "2-D"),
    "y nan": ({"y": changed(Y, 3, np.nan)}, "NaN", "finite"),
    "y inf": ({"y": changed(Y, 3, np.inf)}, "infinity", "finite"),
    "y missing string": ({"y": np.array(["a", "b", None] * 4, object)}, "NoneType", "missing"),
    "y missing among two": ({"y": np.array([1.0, np.nan] * 6, dtype=object)}, "nan", "missing"),
    "y missing date": ({"y": np.array(["2020", "NaT"] * 6, "datetime64[Y]")}, "NaT", "missing"),
    "y pandas missing": ({"y": pd.Series([0, 1, None] * 4, dtype="Int64")}, "NaN", "finite"),
    "y polars null": ({"y": pl.Series([0, 1, None] * 4)}, "NaN", "finite"),
    "y short": ({"y": Y[:9]}, "got 9", "12"),
    "y long": ({"y": np.append(Y, 1)}, "got 13", "12"),
    "y one class": ({"y": np.ones(12)}, r"got 1 \(1.0\)", "two classes"),
    "y three classes": ({"y": [0, 1, 2] * 4}, r"got 3 \(0, 1, 2\)", "two classes"),
    "y continuous": ({"y": X[:, 0]}, "got 12 .*, ...", "two classes"),
    "y 2-D": ({"y": np.stack([Y, Y], axis=1)}, r"\(12, 2\)", "1-D"),
    "y None": ({"y": None}, r"\(\)", "1-D"),
    "y sparse": ({"y": sp.csr_array(Y[None, :])}, "[Ss]parse", "1-D"),
    "epsilon negative": ({"epsilon": -0.1}, "-0.1", ">= 0"),
    "epsilon nan": ({"epsilon": math.nan}, "nan", ">= 0"),
    "epsilon inf": ({"epsilon": math.inf}, "inf", "finite"),
    "epsilon string": ({"epsilon": "0.1"}, "'0.1'", "number"),
    "epsilon bool": ({"epsilon": True}, "True", "number"),
    "epsilon numpy bool": ({"epsilon": np.True_}, "True", "number"),
    "epsilon None": ({"epsilon": None}, "None", "number"),
    "epsilon array": ({"epsilon": np.array([0.1])}, "array", "number"),
    "epsilon complex": ({"epsilon": 1j}, "1j", "number"),
    "kappa zero": ({"kappa": 0}, "got 0", "> 0"),
    "kappa negative": ({"kappa": -1.0}, "-1.0", "> 0"),
    "kappa minus inf": ({"kappa": -math.inf}, "-inf", "> 0"),
    "kappa nan": ({"kappa": math.nan}, "nan", "> 0"),
    "kappa string": ({"kappa": "inf"}, "'inf'", "number"),
    "kappa bool": ({"kappa": True}, "True", "number"),
    "weights all zero": ({"sample_weight": np.zeros(12)}, "all zeros", "positive"),
    "weights negative": ({"sample_weight": changed(np.ones(12), 2, -0.5)}, "-0.5", ">= 0"),
    "weights nan": ({"sample_weight": changed(np.ones(12), 2, np.nan)}, "nan", "finite"),
    "weights inf": ({"sample_weight": changed(np.ones(12), 2, np.inf)}, "inf", "finite"),
    "weights short": ({"sample_weight": np.ones(5)}, r"\(5,\)", r"\(12,\)"),
    "weights 2-D": ({"sample_weight": np.ones((12, 1))}, r"\(12, 1\)", r"\(12,\)"),
    "weights scalar": ({"sample_weight": 2.0}, r"\(\)", r"\(12,\)"),
    "weights strings": ({"sample_weight": ["a"] * 12}, "'a'", "numbers"),
    "weights complex": ({"sample_weight": np.ones(12) + 1j}, "1.j", "numbers"),
    "weights one class": ({"sample_weight": Y > 0}, "smaller label.*zero", "two classes"),
    "weights other class": ({"sample_weight": Y < 0}, "larger label.*zero", "two classes"),
    "norm unknown": ({"norm": "l3"}, "'l3'", "'l1', 'l2', 'linf'"),
    "norm number": ({"norm": 2}, "got 2", "'l1', 'l2', 'linf'"),
    "costs short": ({"feature_costs": [1.0, 1.0]}, r"\(2,\)", r"\(3,\)"),
    "costs long": ({"feature_costs": np.ones(4)}, r"\(4,\)", r"\(3,\)"),
    "costs scalar": ({"feature_costs": 1.0}, r"\(\)", r"\(3,\)"),
    "costs negative": ({"feature_costs": [1.0, -2.0, 1.0]}, "-2.0", "> 0"),
    "costs minus inf": ({"feature_costs": [1.0, -np.inf, 1.0]}, "-inf", "> 0"),
    "costs zero": ({"feature_costs": [1.0, 0.0, 1.0]}, "got 0.0", "> 0"),
    "costs nan": ({"feature_costs": [1.0, np.nan, 1.0]}, "nan", "> 0"),
    "costs strings": ({"feature_costs": ["a", "b", "c"]}, "'a'", "numbers"),
    "intercept string": ({"fit_intercept": "no"}, "'no'", "True or False"),
    "intercept None": ({"fit_intercept": None}, "None", "True or False"),
}  # fmt: skip

#: The same for what only solve and solve_subproblem take.
BAD_CALLS = {
    "solver unknown": ({"solver": "newton"}, "'newton'", "one of .*'conic'"),
    "solver None": ({"solver": None}, "None", "one of"),
    "solver list": ({"solver": ["auto"]}, "auto", "one of"),
    "tol zero": ({"tol": 0.0}, "got 0.0", "> 0"),
    "tol negative": ({"tol": -1e-6}, "-1e-06", "> 0"),
    "tol nan": ({"tol": math.nan}, "nan", "> 0"),
    "tol inf": ({"tol": math.inf}, "inf", "finite"),
    "tol string": ({"tol": "1e-6"}, "'1e-6'", "> 0"),
    "tol bool": ({"tol": True}, "True", "> 0"),
    "max_iter zero": ({"max_iter": 0}, "got 0", "positive integer"),
    "max_iter negative": ({"max_iter": -5}, "-5", "positive integer"),
    "max_iter float": ({"max_iter": 10.0}, "10.0", "positive integer"),
    "max_iter bool": ({"max_iter": True}, "True", "positive integer"),
}
if sp.coo_array(X[:, 0]).ndim == 1:  # SciPy 1.12 makes a row of it
    BAD["X 1-D sparse"] = ({"X": sp.coo_array(X[:, 0])}, r"\(12,\)", "2-D")
BAD_LAMBDAS = {
    "lam negative": ({"lam": -1.0}, "-1.0", ">= 0"),
    "lam nan": ({"lam": math.nan}, "nan", "finite"),
    "lam inf": ({"lam": math.inf}, "inf", "finite"),
    "lam string": ({"lam": "1"}, "'1'", ">= 0"),
    "lam None": ({"lam": None}, "None", ">= 0"),
    "lam bool": ({"lam": True}, "True", ">= 0"),
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
    return message


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_was_found_and_what_is_wanted(name):
    message = assert_refused(build_problem, BAD[name])
    parameter = next(iter(BAD[name][0]))
    assert re.match(rf"{parameter}\b|every sample with the (smaller|larger) label", message), (
        message
    )


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_controls_are_refused(name):
    assert_refused(solve, BAD_CALLS[name])
    assert_refused(solve_subproblem, BAD_CALLS[name], lam=1.0)


@pytest.mark.parametrize("name", BAD_LAMBDAS)
def test_bad_lambda_is_refused(name):
    assert_refused(solve_subproblem, BAD_LAMBDAS[name])


def test_unknown_solver_lists_the_known_ones():
    for function, table in ((solve, JOINT_SOLVERS), (solve_subproblem, SUBPROBLEM_SOLVERS)):
        options = OPTIONS | ({"lam": 1.0} if function is solve_subproblem else {})
        with pytest.raises(ValueError, match="solver must be one of") as caught:
            function(X, Y, solver="simplex", **options)
        for name in table:
            assert repr(name) in str(caught.value)


# --- the zoo is what it says ----------------------------------------------------------------
