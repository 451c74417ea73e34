"""Problem (C): every solver to a small gap, on every kind of matrix it may meet."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.sparse import csr_array

from drlogit import paper
from drlogit.paper.subproblem import NORMS

box_qp = import_module("drlogit.paper.box_qp")  # the module; the package has the function

KINDS = (
    "well-conditioned",
    "ill-conditioned",
    "unscaled",
    "duplicated",
    "one-hot",
    "zero-columns",
    "wide",
)

#: What methods that step along gradients or coordinates do not solve in 10,000 steps.
BEYOND = {
    "coordinate": ("ill-conditioned",),
    "projected-gradient": ("unscaled", "ill-conditioned", "duplicated", "one-hot", "wide"),
    "restarted-gradient": ("unscaled", "ill-conditioned"),
    "active-set-cg": ("unscaled",),
}

PAIRS = [
    (norm, name)
    for norm in NORMS
    for name in box_qp.METHODS
    if {"secular": "l2", "active-set-cg": "l1", "coordinate": "l1", "coordinate-newton": "l1"}.get(
        name, norm
    )
    == norm
]


def matrix(kind, n=8):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3 * n, n))
    if kind == "ill-conditioned":
        A = A * np.logspace(0.0, -2.5, n) @ np.linalg.qr(rng.standard_normal((n, n)))[0]
    elif kind == "unscaled":
        A = A * np.logspace(-2.0, 2.0, n)
    elif kind == "duplicated":
        A[:, n // 2 :] = A[:, : n - n // 2]
    elif kind == "one-hot":
        A = np.eye(n)[rng.integers(0, n, 3 * n)]
        A[:, 0] = 1.0  # the sum of the others
    elif kind == "zero-columns":
        A[:, ::3] = 0.0
    elif kind == "wide":
        A = A[: n // 2]
    return A, rng.standard_normal(A.shape[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("norm", "name"), PAIRS)
def test_gap_is_small_for_every_solver_and_matrix(norm, name, kind):
    if kind in BEYOND.get(name, ()):
        return
    A, b = matrix(kind)
    size = NORMS[norm].dual(np.linalg.lstsq(A, b, rcond=1e-12)[0])
    for lam in (0.0, 1e-3 * size, 0.3 * size, 0.9 * size, 3.0 * size):
        start = np.zeros(A.shape[1])
        tol = 1e-9 * lam * NORMS[norm].value(A.T @ b)
        for stop in ("exact", tol):
            x = paper.box_qp(csr_array(A), b, lam, name, stop, norm=norm, start=start)
            assert not start.any()
            assert NORMS[norm].dual(x) <= lam * (1.0 + 1e-12)
            # The gap is computed here, not believed.
            gradient = A.T @ (A @ x - b)
            assert float(gradient @ x) + lam * NORMS[norm].value(gradient) <= tol + 1e-300


@pytest.mark.parametrize("method", ["active-set-cg", "projected-gradient", "coordinate", None])
@pytest.mark.parametrize("limit", [5000, 2])
def test_agrees_with_scipy_with_and_without_the_matrix(method, limit, monkeypatch):
    monkeypatch.setattr(box_qp, "DENSE_LIMIT", limit)
    A, b = matrix("well-conditioned")
    reference = lsq_linear(A, b, (-0.1, 0.1), tol=1e-15, method="bvls").x
    for given in (A, csr_array(A)):
        np.testing.assert_allclose(paper.box_qp(given, b, 0.1, method), reference, atol=1e-12)


def test_algorithm_5_as_misprinted_does_not_get_there():
    """With the gradient at x^k instead of the extrapolated point."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((60, 20)) * np.logspace(0.0, -1.0, 20), rng.standard_normal(60)
    A = A @ np.linalg.qr(rng.standard_normal((20, 20)))[0]
    lam = 0.9 * np.abs(np.linalg.lstsq(A, b)[0]).max()
    H, c = A.T @ A, A.T @ b
    tol = 1e-10 * lam * np.abs(c).sum()

    def gap(x):
        g = H @ x - c
        return float(g @ x) + lam * float(np.abs(g).sum())

    assert gap(paper.box_qp(A, b, lam, "projected-gradient", tol)) <= tol
    step, x, before = 1.0 / np.linalg.eigvalsh(H)[-1], np.zeros(20), np.zeros(20)
    for k in range(1, 10_000):
        y = x + k / (k + 3) * (x - before)
        before, x = x, np.clip(y - step * (H @ x - c), -lam, lam)
    assert gap(x) > 1000.0 * tol


def test_names_are_checked():
    A, b = np.eye(3), np.ones(3)
    with pytest.raises(ValueError, match=r"'secular' for this norm and 3 columns.*got 'cg'"):
        paper.box_qp(A, b, 1.0, "cg", norm="l2")
    with pytest.raises(ValueError, match="got 'active-set-cg'"):
        paper.box_qp(A, b, 1.0, "active-set-cg", norm="linf")
    with pytest.raises(
        ValueError, match=r"'active-set-cg'.* 6000 columns.*got 'coordinate-newton'"
    ):
        paper.box_qp(csr_array((2, 6000)), np.ones(2), 1.0, "coordinate-newton")
