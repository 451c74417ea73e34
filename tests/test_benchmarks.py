"""The benchmark harness and its references."""

from __future__ import annotations

import pytest
from benchmarks import fuzz_files
from benchmarks.judge import plain_objective_and_gap
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


def test_mutants_of_files_end_in_one_line(tmp_path):
    """The fuzz runs, a few of each; ``python -m benchmarks.fuzz_files`` runs more."""
    attempts = (
        ("models", fuzz_files.try_model, fuzz_files.sound_models()),
        ("proofs", fuzz_files.try_proof, fuzz_files.sound_problems()),
    )
    for kind, attempt, sound in attempts:
        assert fuzz_files.run(kind, 150, 50_000, attempt, sound) == 0
