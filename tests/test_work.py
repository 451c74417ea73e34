"""Speed in numbers that no other process can disturb: iterations, Gram matrices, passes.

The limits are what the solver needed when they were written, and a little room for the rounding
of other machines.  Who needs fewer may lower them; who needs more has made fits slower.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit.rows.blocks import Block


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def synthetic(n_samples, n_features):
    return drlogit.datasets.make_synthetic(n_samples, n_features, random_state=0)


#: Methods of a block that read the data, and what is counted.
KINDS = {"gram": "gram", "gram_and_adjoint": "gram", "margins": "margins", "adjoint": "adjoint"}


@pytest.fixture
def work(monkeypatch):
    """Calls of what touches the data."""
    calls = Counter()

    def counted(name, method):
        def wrapper(self, *arguments, **options):
            calls[name] += 1
            return method(self, *arguments, **options)

        return wrapper

    for name, kind in KINDS.items():
        monkeypatch.setattr(Block, name, counted(kind, getattr(Block, name)))
    return calls


#: data, ε, κ, norm → iterations, Gram matrices, products with Z and with Zᵀ.
LIMITS = [
    (cancer, (), 0.1, 1.0, "l1", (11, 11, 36, 18)),
    (cancer, (), 0.1, 1.0, "l2", (10, 10, 26, 13)),
    (cancer, (), 0.1, 1.0, "linf", (14, 14, 39, 19)),
    (cancer, (), 0.01, math.inf, "l1", (10, 10, 17, 2)),
    (synthetic, (3000, 20), 0.05, 1.0, "l1", (1, 9, 25, 18)),
    (synthetic, (12000, 10), 0.05, 1.0, "l1", (1, 10, 40, 32)),
    (synthetic, (12000, 10), 0.01, 0.25, "l2", (1, 8, 36, 30)),
]


@pytest.mark.parametrize(("load", "size", "epsilon", "kappa", "norm", "limits"), LIMITS)
def test_work_of_a_fit(load, size, epsilon, kappa, norm, limits, work):
    result = drlogit.solve(*load(*size), epsilon=epsilon, kappa=kappa, norm=norm)
    assert result.gap <= 1e-6
    found = (result.n_iter, work["gram"], work["margins"], work["adjoint"])
    assert all(f <= math.ceil(1.15 * limit) for f, limit in zip(found, limits, strict=True)), found


@pytest.mark.parametrize(("epsilon", "hinge"), [(0.03, "barrier"), (0.002, "smoothed")])
def test_a_class_that_flips_can_wipe_out_is_left_to_the_barrier(epsilon, hinge):
    """Most samples share a margin there, which starts and smoothing do not like."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12000, 10))
    score = X @ rng.standard_normal(10) + rng.logistic(size=12000)
    y = score > np.quantile(score, 0.98)
    result = drlogit.solve(X, y, epsilon=epsilon, kappa=1.0)
    assert result.gap <= 1e-6
    assert result.info["hinge"] == hinge
    assert result.n_iter <= 14
