"""The benchmark harness and its references."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import environment, fuzz_files, fuzz_models, stated
from benchmarks.ipopt import ipopt
from benchmarks.judge import plain_objective_and_gap, robust_objective_and_gap
from sklearn.linear_model import LogisticRegression

import drlogit

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_gap_of_the_plain_problem(C):
    X, y = drlogit.datasets.make_synthetic(80, 4, random_state=1)
    y[:20] = 1  # an intercept that matters
    plain = LogisticRegression(C=C, tol=1e-10).fit(X, y)
    best, gap = plain_objective_and_gap(X, y, plain.coef_, plain.intercept_[0], C)
    assert -1e-15 <= gap < 1e-12
    for shift in (0.01, 0.1):
        value, gap = plain_objective_and_gap(X, y, plain.coef_ + shift, plain.intercept_[0], C)
        assert 0.0 < value - best <= gap
        value, gap = plain_objective_and_gap(X, y, plain.coef_, plain.intercept_[0] + shift, C)
        assert 0.0 < value - best <= gap


def test_digest_covers_cython_and_ignores_comments(monkeypatch):
    code = [("engine", ".pyx", "cdef int f():\n    return 1\n"), ("paper", ".py", "x = 1\n")]

    def digest(sources, *packages):
        environment.source_digest.cache_clear()
        monkeypatch.setattr(environment, "_SOURCES", sources)
        return environment.source_digest(*packages)

    before, engine = digest(code), digest(code, "engine")
    commented = [("engine", ".pyx", '"""Doc."""\ncdef int f():  # one\n\n    return 1\n'), code[1]]
    assert digest(commented) == before
    assert digest([("engine", ".pyx", "cdef int f():\n    return 2\n"), code[1]]) != before
    assert digest([code[0], ("paper", ".py", "x = 2\n")]) != before
    assert digest([code[0], ("paper", ".py", "x = 2\n")], "engine") == engine
    monkeypatch.undo()
    environment.source_digest.cache_clear()
    assert any(suffix == ".pyx" for _, suffix, _ in environment._SOURCES)


# --- IPOPT ------------------------------------------------------------------------------------


def sample(n_samples: int = 40, n_features: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)) * np.geomspace(0.5, 2.0, n_features)
    score = X @ rng.standard_normal(n_features) + 0.5 + rng.standard_normal(n_samples)
    return X, np.where(score > 0.0, 1, -1)


@pytest.mark.parametrize("kappa", [0.25, math.inf])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("costs", [None, [0.5, 2.0, math.inf, 1.0]])
def test_ipopt_agrees(norm, kappa, costs):
    pytest.importorskip("casadi")
    X, y = sample()
    options = {
        "epsilon": 0.02, "kappa": kappa, "norm": norm, "feature_costs": costs,
        "fit_intercept": costs is not None,
        "sample_weight": np.random.default_rng(2).permutation(np.arange(40.0)),
    }  # fmt: skip
    found = ipopt(sp.csr_array(X), y, tol=1e-8, **options)
    value, gap = robust_objective_and_gap(X, y, found.coef, found.intercept, **options)
    exact = stated.solve(X, y, tol=1e-9, **options)
    assert found.status == "OPTIMAL"
    assert value == pytest.approx(exact.objective, abs=1e-7)
    assert -1e-12 <= gap <= 1e-6
    assert found.lam == pytest.approx(exact.lam, abs=1e-3)


def test_mutants_of_files_end_in_one_line(tmp_path):
    """The fuzz runs, a few of each; ``python -m benchmarks.fuzz_models`` runs more."""
    fuzz_files.mp.mp.dps = fuzz_files.DIGITS
    attempts = (
        ("models", fuzz_models.try_model, fuzz_models.sound_models()),
        ("proofs", fuzz_files.try_proof, fuzz_files.sound_problems()),
    )
    for kind, attempt, sound in attempts:
        assert fuzz_files.run(kind, 150, 50_000, attempt, sound) == 0
