"""Proofs of several classes: what they prove, and what is no proof."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import stated

import drlogit
from drlogit.verification.bounds import slack

BY_LABEL = {0: 1.0, 1: math.inf, 2: 0.0}
BY_SAMPLE = np.random.default_rng(0).choice([0.0, 0.5, 2.0, math.inf], 80)


def samples(n_samples: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n_samples, 4))
    return X, (X[:, :3] + rng.gumbel(size=(n_samples, 3))).argmax(axis=1)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [1.0, math.inf, BY_LABEL, BY_SAMPLE])
@pytest.mark.parametrize("more", [{}, {"feature_costs": [1.0, 2.0, math.inf, 1.0]}])
def test_a_proof_proves_what_the_fit_claims(
    norm: str, kappa: Any, more: dict[str, Any], tmp_path: Path
) -> None:
    X, y = samples()
    X[:, 1] += 1e4
    weights = np.linspace(0.5, 2.0, y.size)
    fit = stated.solve(X, y, epsilon=0.05, kappa=kappa, norm=norm, sample_weight=weights, **more)
    fit.save_proof(tmp_path / "p.npz")
    again = kappa if np.ndim(kappa) == 1 else None
    data = (X, y, tmp_path / "p.npz")
    found = drlogit.verify(fit, *data, sample_weight=weights, kappa=again)
    assert found, found.reason
    if again is not None:
        assert not drlogit.verify(fit, *data, sample_weight=weights, kappa=0.5 * again)
    assert found.gap <= fit.gap + 4.0 * slack(fit.objective)
    assert found.lower <= fit.objective


def test_other_labels_are_other_data(tmp_path: Path) -> None:
    """Labels 1 and 2 exchanged: neither bound is what the fit claims."""
    X, y = samples()
    fit = stated.solve(X, y, epsilon=0.05, kappa=1.0)
    fit.save_proof(tmp_path / "p.npz")
    exchanged = np.array([0, 2, 1])[y]
    assert drlogit.verify(fit, X, y, tmp_path / "p.npz")
    found = drlogit.verify(fit, X, exchanged, tmp_path / "p.npz")
    assert not found
    assert "or data" in found.reason


def test_flips_spend_the_radius() -> None:
    """All labels at random, as the predictions: only what that costs speaks against it."""
    X, y = samples()
    fit = stated.solve(X, y, epsilon=0.05, kappa=1.0)
    assert fit.dual is not None
    even = np.full((y.size, 3), 1.0 / 3.0)
    constant = replace(fit, coef=np.zeros((3, 4)), intercept=np.zeros(3))  # promises log 3
    forged = replace(constant, dual=replace(fit.dual, probabilities=even, labels=even))
    assert drlogit.verify(forged, X, y).lower <= fit.objective


@pytest.mark.parametrize("part", ["probabilities", "labels", "flow"])
def test_what_is_no_proof(part: str) -> None:
    X, y = samples()
    fit = stated.solve(X, y, epsilon=0.02, kappa=math.inf, norm="l2")
    assert fit.dual is not None
    good = getattr(fit.dual, part)
    for wrong in (good[:-1], good + 0.1, -good, np.full_like(good, np.nan)):
        spoiled = replace(fit, dual=replace(fit.dual, **{part: wrong}))
        found = drlogit.verify(spoiled, X, y)
        assert not found
        assert found.lower <= fit.objective
