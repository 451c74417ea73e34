"""What ``verify`` must not accept, and honest fits that it must not refuse."""

from __future__ import annotations

import io
import math
import os
import zipfile
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from benchmarks import stated
from benchmarks.false_bounds import Judge
from benchmarks.problems import Generated, awkward

import drlogit
from drlogit.problem.dual_point import DualPoint, Moves

INF = math.inf


def proven(result: drlogit.Result, case: dict[str, Any], proof: Any = None) -> Any:
    by_sample = case["kappa"] if np.ndim(case["kappa"]) else None
    if isinstance(proof, DualPoint):
        result, proof = replace(result, dual=proof), None
    weights = case.get("sample_weight")
    return drlogit.verify(
        result, case["X"], case["y"], proof, sample_weight=weights, kappa=by_sample
    )


# --- what is false -------------------------------------------------------------------------------


def pieces_beyond_their_samples(n_samples: int, excess: float) -> DualPoint:
    """Four pieces of each sample, s = 1/2, whose shares add up to ``1 + excess``."""
    n = 4 * n_samples
    share = np.full(n, 0.25)
    share[::4] += excess
    flipped = np.arange(n) % 2 == 1  # so that nothing is left of the constant
    moves = Moves(
        np.repeat(np.arange(n_samples), 4), flipped, np.zeros((n, 1), np.uint8), share,
        np.full(n, 0.5),
    )  # fmt: skip
    return DualPoint(np.zeros(n_samples), np.zeros(n_samples), moves)


@pytest.mark.parametrize("excess", [1e-15, 1e-12, 1e-11, 1e-9, 1e-3])
def test_pieces_are_no_more_than_their_samples(excess: float) -> None:
    """A tolerance that grows with the number of all pieces lets 10⁴ samples exceed log 2."""
    n_samples = 10_000
    X = np.zeros((n_samples, 2))
    X[: n_samples // 2, 0] = X[n_samples // 2 :, 1] = 1.0
    y = np.arange(n_samples) % 2
    case = {"X": X, "y": y, "epsilon": 10.0, "kappa": 0.01, "categories": [[0, 1]]}
    result = stated.solve(**case)
    honest = proven(result, case, pieces_beyond_their_samples(n_samples, 0.0))
    assert honest.lower == pytest.approx(math.log(2.0), abs=1e-8)
    found = proven(result, case, pieces_beyond_their_samples(n_samples, excess))
    assert found.lower <= mp.log(2)
    assert "infeasible dual point" in found.reason


def test_a_change_to_the_highest_category_counts_once() -> None:
    """At ``ε = c/2`` the labels of two categories that separate them are as good as coins."""
    X, y = np.repeat(np.eye(2), 30, axis=0), np.repeat([1, 0], 30)
    case = {"X": X, "y": y, "epsilon": 0.35, "kappa": INF, "categories": [[0, 1]]}
    result = stated.solve(**case)
    assert result.objective < 0.65
    result = replace(result, coef=np.zeros(2), intercept=0.0)  # promises log 2
    own = np.flatnonzero(y == 0)
    for share in (0.1, 0.5, 0.68, 1.0):
        moves = Moves(
            own, own < 0, np.full((30, 1), 128, np.uint8), np.full(30, share), np.full(30, 0.5)
        )
        assert proven(result, case, DualPoint(np.full(60, 0.5), np.zeros(60), moves)).lower < 0.65
    enough = {**case, "epsilon": 0.51}
    point = DualPoint(np.full(60, 0.5), np.zeros(60), moves)
    assert proven(stated.solve(**enough), enough, point).lower == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_a_model_beyond_the_class_has_no_lower_bound(epsilon: float) -> None:
    """Two free columns that agree to within 1e-7: a coefficient of 1e7 each does what no model of
    the class can, and the bound of the class is none for it."""
    rng = np.random.default_rng(0)
    x, direction = rng.standard_normal((2, 200))
    X = np.column_stack([x, x + 1e-7 * direction])
    y = np.where(direction + 0.5 * rng.logistic(size=200) > 0.0, 1, -1)
    case = {"X": X, "y": y, "epsilon": epsilon, "kappa": INF, "feature_costs": [INF, INF]}
    fit = stated.solve(**case)
    # The optimum of the problem with the direction as a column of its own.
    other = stated.solve(np.column_stack([x, direction]), y, epsilon=0.0, kappa=INF)
    slope = other.coef[1] * 1e7
    better = replace(
        fit, coef=np.array([other.coef[0] - slope, slope]), intercept=other.intercept,
        objective=other.objective + 1e-6,
    )  # fmt: skip
    in_class = DualPoint(fit.dual.s, fit.dual.flip_share)
    found = proven(replace(better, dual_objective=0.5), case, in_class)
    assert not found.ok
    assert found.lower == 0.0 < found.upper
    assert "beyond 10000 log-odds" in found.reason
    assert "\n" not in found.reason
    # What it claims honestly is proven: its worst case, and a bound of 0.
    assert proven(replace(better, dual_objective=0.0), case, in_class).ok


def test_a_column_with_zeros_has_a_deviation_that_its_mean_bounds() -> None:
    """The one zero has almost no weight, so that the weighted deviation is below rounding."""
    rng = np.random.default_rng(0)
    X, weights = np.column_stack([np.full(30, 1e3), rng.standard_normal(30)]), np.ones(30)
    X[7, 0], weights[7] = 0.0, 1e-24
    case = {"X": X, "y": rng.integers(0, 2, 30), "epsilon": 0.05, "kappa": 1.0,
            "feature_costs": np.array([INF, 1.0]), "sample_weight": weights}  # fmt: skip
    found = proven(stated.solve(**case), case)
    assert found.ok, found.reason


def test_what_overflows_proves_nothing() -> None:
    X, y = np.array([[1e149, 1.0], [-1e149, 0.0], [1e149, 0.5], [1.0, 2.0]]), [1, 0, 0, 1]
    fit = stated.solve(X, y, epsilon=0.1, kappa=1.0)
    point = DualPoint(np.full(4, 0.5), np.zeros(4))
    assert drlogit.verify(replace(fit, dual=point), X, y).lower <= fit.objective
    with pytest.raises(ValueError, match=r"coefficients must be numbers below 1e\+150"):
        drlogit.verify(replace(fit, coef=np.array([1e200, 0.0])), X, y)


# --- what is true --------------------------------------------------------------------------------


# The last are far columns: with two labels, and with several in a ball that is nearly used up.
@pytest.mark.parametrize("seed", [*range(80), 101_833, 101_981, 426, 730, 1190])
def test_honest_fits_are_accepted(seed: int) -> None:
    """Far columns without an intercept, extreme weights, separated classes."""
    case = awkward(np.random.default_rng([seed, 4]))
    result = stated.solve(**case)
    assert result.dual is not None
    found = proven(result, case)
    assert found.ok, found.reason
    assert found.lower <= found.upper


def far_column_and_group(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, 40)
    far = 5e8 + 0.03 * rng.standard_normal(40)
    X = np.column_stack([np.eye(3)[level], far, rng.standard_normal(40)])
    y = X[:, 4] + 20.0 * (far - 5e8) + rng.logistic(size=40) > 0.0
    return {
        "X": X, "y": y, "epsilon": 0.01, "kappa": INF, "norm": "linf", "fit_intercept": False,
        "categories": [[0, 1, 2]], "feature_costs": np.array([1.0, 1.0, 1.0, INF, 1.0]),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_a_group_takes_up_the_constant_with_one_rounding(seed: int) -> None:
    """Coefficients of 1e10 with an error of 1e-6 beside scores of order one."""
    mp.mp.dps = 50
    case = far_column_and_group(seed)
    result, options = stated.solve(**case), {k: v for k, v in case.items() if k not in ("X", "y")}
    value = Judge(Generated("", case["X"], case["y"], options)).value(result)
    assert value <= result.objective + 1e-12
    found = proven(result, case)
    assert found.ok, found.reason
    assert value <= found.upper <= value + 2e-9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separated_fits_have_a_proof(n_classes: int, tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    level = rng.integers(0, n_classes, 30)
    X, path = np.column_stack([np.eye(n_classes)[level], rng.random(30)]), tmp_path / "proof.npz"
    options = {"epsilon": 1e-9, "kappa": INF, "categories": [list(range(n_classes))]}
    for most in (1, 2, 200):
        fit = stated.solve(X, level, max_iter=most, **options)
        fit.save_proof(path)
        found = drlogit.verify(replace(fit, dual=None), X, level, path)
        assert found.ok, found.reason


@pytest.mark.filterwarnings("ignore:class .* is almost never predicted:UserWarning")
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("intercept", [False, True])
def test_tables_of_several_classes_are_proven_from_their_files(
    norm: str, intercept: bool, tmp_path: Any
) -> None:
    """Categories are numbers there, at half of their cost."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.standard_normal(60), "job": rng.choice(list("xyz"), 60)})
    frame["own"] = rng.random(60) < 0.4
    y = rng.choice(list("pqr"), 60)
    model = stated.classifier(0.02, norm=norm, fit_intercept=intercept).fit(frame, y)
    model.save_proof(tmp_path / "p.npz", frame, y)
    drlogit.save_model(model, tmp_path / "m.json")
    for each in (model, drlogit.load_model(tmp_path / "m.json")):
        found = drlogit.verify(each, frame, y, tmp_path / "p.npz")
        assert found.ok, found.reason


# --- files ---------------------------------------------------------------------------------------


@pytest.fixture
def honest(tmp_path: Any) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    X, y, path = rng.standard_normal((50, 3)), rng.integers(0, 2, 50), tmp_path / "proof.npz"
    fit = stated.solve(X, y, epsilon=0.05, kappa=1.0)
    fit.save_proof(path)
    return fit, X, y, path


def test_a_proof_is_written_whole_or_not_at_all(honest: Any, monkeypatch: Any) -> None:
    fit, X, y, path = honest

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        fit.save_proof(path)
    assert os.listdir(path.parent) == [path.name]
    assert drlogit.verify(fit, X, y, path).ok


def archive_of(arrays: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w", method) as archive:
        for name, raw in arrays.items():
            archive.writestr(f"{name}.npy", raw)
    return contents.getvalue()


def raw_of(values: Any, version: Any = (1, 0)) -> bytes:
    contents = io.BytesIO()
    np.lib.format.write_array(contents, np.asarray(values), version)
    return contents.getvalue()


def test_an_archive_too_large_for_the_data_is_not_decompressed(
    honest: Any, monkeypatch: Any
) -> None:
    fit, X, y, path = honest
    raw = {name: raw_of(np.load(path)[name]) for name in ("s", "flip_share")}
    path.write_bytes(archive_of(raw | {"more": bytes(50_000_000)}))
    assert path.stat().st_size < 100_000

    def opened(*_: Any) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "open", opened)
        reason = drlogit.verify(fit, X, y, path).reason
    assert "too many for these data" in reason
    # The same size in the array itself, for samples that are known and for others.
    path.write_bytes(archive_of(raw | {"s": raw_of(np.zeros(6_000_000))}))
    assert "too many for these data" in drlogit.verify(fit, X, y, path).reason


def test_headers_must_keep_their_word(honest: Any) -> None:
    fit, X, y, path = honest
    raw = {name: raw_of(np.load(path)[name]) for name in ("s", "flip_share")}
    path.write_bytes(archive_of(raw))
    assert drlogit.verify(fit, X, y, path).ok
    s = raw["s"]
    for wrong, complaint in (
        (s.replace(b"(50,), }         ", b"(50000000000,), }"), "what its header says"),
        (s.replace(b"(50,)", b"(-1,)"), "what its header says"),
        (s + b"\0", "what its header says"),
        (s[:-8], "what its header says"),
        (raw_of(np.zeros(50), (2, 0)), "version 1.0"),
        (raw_of(np.zeros((50, 1))), "must be 1-D"),
        (raw_of(np.zeros(50, dtype=np.float32)), "must be 1-D of <f8"),
    ):
        assert wrong != s
        path.write_bytes(archive_of(raw | {"s": wrong}))
        found = drlogit.verify(fit, X, y, path)
        assert not found.ok
        assert complaint in found.reason
    path.write_bytes(archive_of(raw, zipfile.ZIP_LZMA))
    assert "must be deflated" in drlogit.verify(fit, X, y, path).reason


def test_the_equation_of_the_intercept_is_charged() -> None:
    """Coins for labels of which a quarter are positive: a constant does better."""
    X, y = np.tile([1.0, -1.0], 20)[:, None], (np.arange(40) % 4 < 1).astype(int)
    case = {"X": X, "y": y, "epsilon": 10.0, "kappa": INF}
    point = DualPoint(np.full(40, 0.5), np.zeros(40))
    best = stated.solve(**case)
    coins = replace(best, coef=np.zeros(1), intercept=0.0)  # promises log 2
    assert proven(coins, case, point).lower <= best.objective < 0.6
