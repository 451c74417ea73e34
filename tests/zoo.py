"""Small problems for the tests: a zoo of awkward ones, and planted ones with known solutions.

``ZOO`` is a list of cases, each a name with what ``stated.solve`` takes:

    @pytest.mark.parametrize("case", zoo.ZOO, ids=repr)
    def test_something(case):
        result = stated.solve(case.X, case.y, **case.options)

``planted(seed, ...)`` makes a case around a chosen solution, so its optimal value is known to
rounding.  All optima are attained; everything is derived from fixed seeds.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from benchmarks import stated

import drlogit
from drlogit.dual.label_points import LabelPoint, two_labels
from drlogit.fitting.solving import solve_problem
from drlogit.problem.losses import flip_probability
from drlogit.problem.problem import Problem
from drlogit.problem.result import Result
from drlogit.robustness.models import measured

NORM_NAMES = ("l1", "l2", "linf")


def by_matrices(
    X: Any,
    y: Any,
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    start: Result | None = None,
    **options: Any,
) -> Result:
    """``drlogit.solve`` without the methods that form no matrix: a judge of theirs."""
    problem = stated.problem(X, y, **options)
    return solve_problem(problem, solver="interior-point", tol=tol, max_iter=max_iter, start=start)


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One problem: what ``stated.solve`` takes, under a name."""

    name: str
    X: Any
    y: np.ndarray
    options: dict[str, Any]

    def build(self, **changes: Any) -> Problem:
        """The Problem, with some options changed."""
        return stated.problem(self.X, self.y, **(self.options | changes))

    def __repr__(self) -> str:
        return self.name


def dual_point(problem: Problem, coefficients: Any, a: Any, s: Any = None) -> LabelPoint:
    """The dual point of two labels with these flip shares, and s by default that of a model."""
    rows = problem.rows
    s = flip_probability(rows.gather(problem.margins(coefficients))) if s is None else s
    return two_labels(rows, rows.pair(rows.scatter(s), rows.scatter(a)))


# --- problems with a known solution ---------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Planted(Case):
    """A case with its solution: coefficients, λ, flip shares and the optimal value."""

    coef: np.ndarray = field(kw_only=True)
    intercept: float = field(kw_only=True)
    lam: float = field(kw_only=True)
    flip_share: np.ndarray = field(kw_only=True)
    objective: float = field(kw_only=True)

    @property
    def coefficients(self) -> np.ndarray:
        """β, then b if there is one: the vector that Problem and certificate take."""
        if self.options["fit_intercept"]:
            return np.append(self.coef, self.intercept)
        return self.coef

    def point(self, problem: Problem, coefficients: np.ndarray) -> LabelPoint:
        """The dual point of a model with the planted flips."""
        return dual_point(problem, coefficients, self.flip_share)


def planted(
    seed: int = 0,
    *,
    norm: str = "l1",
    kappa: float = 1.0,
    fit_intercept: bool = True,
    weighted: bool = False,
    costs: float = 0.0,
    correlation: float = 0.0,
    n_free: int = 0,
    binding: bool = True,
    n_samples: int = 24,
    n_features: int = 5,
) -> Planted:
    """Data, weights and ε for which a chosen point is optimal.

    With ``s = 1/(1+e^u)``, a point is optimal iff some ``a`` that is 0 below the kink κλ, 1
    above and anything in [0,1] on it satisfies

        Σ w (s - a) z = ν n / c,   ε = κ Σ w a + ν,   ν (λ - ‖β/c‖_*) = 0,   ν ≥ 0,

    with ``n`` in the subdifferential of the dual norm at ``β/c`` and 0 on free columns.  So
    choose β, b, λ, margins ``u``, shares ``a`` and weights; what is left to satisfy are the
    equations ``Xβ = m`` and ``Xᵀq = g``, which two corrections of rank one bring about.

    ``binding=False`` plants ``ν = 0``: a λ above ``‖β/c‖_*`` when κ is finite (the budget goes
    into flips alone), plain logistic regression otherwise; the weights are then unequal.
    All features free (``n_free == n_features``) implies it.  ``costs`` is their spread in powers of
    ten; unequal costs are equivalent to columns of unequal scale.
    """
    rng = np.random.default_rng(seed)
    binding = binding and n_free < n_features
    flips = math.isfinite(kappa)
    unequal = weighted or not binding
    half = max(n_samples // 2, 6 if unequal else 12)  # too few equal samples leave no ν > 0
    y = np.repeat([-1.0, 1.0], half)
    scale = 10.0 ** rng.uniform(-0.5, 0.5)
    free = np.arange(n_features) >= n_features - n_free
    prices = 10.0 ** rng.uniform(-costs, costs, n_features)

    theta, normal = _on_dual_sphere(norm, n_features - n_free, rng)
    kink = rng.uniform(0.5, 1.5)  # κλ, or just the scale of the margins if κ is infinite
    lam = kink / kappa if flips else 1.0 / scale
    coef = rng.standard_normal(n_features) / scale
    coef[~free] = lam * theta * prices[~free] * (1.0 if binding else 0.6)
    intercept = float(rng.standard_normal()) if fit_intercept else 0.0

    nu = -1.0
    while nu < 0.0:  # nearly always at once
        u, a = _margins(half, kink, flips, twins=fit_intercept and not unequal, rng=rng)
        s = 1.0 / (1.0 + np.exp(u))
        weights = rng.uniform(0.5, 1.5, 2 * half) if unequal else np.ones(2 * half)
        if unequal:
            _rescale(weights, (s - a) * u, y, binding)
        if unequal and fit_intercept:
            negative, positive = ((weights * (s - a))[y == label].sum() for label in (-1.0, 1.0))
            if min(negative, positive) <= 0.0:
                continue
            weights[y > 0.0] *= negative / positive
        weights /= weights.sum()
        r = weights * (s - a)
        nu = float(r @ u) / lam if binding else 0.0

    # Rows: first Xβ = m, then Xᵀq = g, which leaves the first alone as (g - Xᵀq)·β = 0.
    gradient = np.zeros(n_features)
    gradient[~free] = nu * normal / prices[~free]
    q, m = r * y, y * u - intercept
    common, own = rng.standard_normal((2 * half, 1)), rng.standard_normal((2 * half, n_features))
    X = scale * (math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * own)
    X += np.outer(m - X @ coef, coef / (coef @ coef))
    X += np.outer(q, gradient - X.T @ q) / (q @ q)

    epsilon = nu + (kappa * float(weights @ a) if flips else 0.0)
    loss = np.logaddexp(0.0, -u)
    if flips:
        loss += np.maximum(u - kink, 0.0)
    elif not binding:
        lam = 0.0
        epsilon = 0.1 if free.all() else 0.0  # nothing to move, or no budget to move it
    order = rng.permutation(2 * half)
    return Planted(
        name=f"planted-{norm}-{seed}",
        X=X[order],
        y=y[order],
        options={
            "epsilon": epsilon,
            "kappa": kappa,
            "norm": norm,
            "fit_intercept": fit_intercept,
            "feature_costs": np.where(free, np.inf, prices) if costs or n_free else None,
            "sample_weight": weights[order] if unequal else None,
        },
        coef=coef,
        intercept=intercept,
        lam=lam,
        flip_share=a[order],
        objective=epsilon * lam + float(weights @ loss),
    )


def _margins(
    half: int, kink: float, flips: bool, *, twins: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Margins and ``a``: most samples between 0 and the kink, some below, above and on it.

    With equal weights the intercept's equation asks for twins: one sample in each class.
    """
    u = kink * rng.uniform(0.05, 0.95, (2, half))
    a = np.zeros((2, half))
    u[:, 0] = -kink * rng.uniform(0.1, 0.4, 2)
    if flips:
        u[:, 1], a[:, 1] = kink * rng.uniform(1.05, 1.3, 2), 1.0
        u[:, 2:4], a[:, 2:4] = kink, rng.uniform(0.05, 0.4, (2, 2))
    if twins:
        u[1], a[1] = u[0], a[0]
    return u.ravel(), a.ravel()


def _rescale(weights: np.ndarray, slopes: np.ndarray, y: np.ndarray, binding: bool) -> None:
    """Make ``Σ w (s - a) u``, which is νλ, positive (binding) or zero, in each class."""
    for label in (-1.0, 1.0):
        part = np.where(y == label, weights * slopes, 0.0)
        gains, losses = part[part > 0.0].sum(), -part[part < 0.0].sum()
        if not binding or losses > 0.5 * gains:
            weights[part < 0.0] *= (0.5 if binding else 1.0) * gains / losses


def _on_dual_sphere(
    norm: str, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A point of dual norm one, and a subgradient of the dual norm there."""
    if size == 0:
        return np.zeros(0), np.zeros(0)
    signs = rng.choice([-1.0, 1.0], size)
    active = rng.permutation(size) < max(1, size // 2)
    share = np.where(active, rng.uniform(0.2, 1.0, size), 0.0)
    spread = signs * share / share.sum()
    inside = rng.uniform(-0.9, 0.9, size)
    if norm == "l1":  # dual: the largest entry; its subgradients are spread over the largest
        return np.where(active, signs, inside), spread
    if norm == "linf":  # dual: the sum of entries; its subgradients are open at the zeros
        return spread, np.where(active, signs, inside)
    point = rng.standard_normal(size)
    point /= np.linalg.norm(point)
    return point, point


# --- the zoo --------------------------------------------------------------------------------


def _clouds(
    n_samples: int, n_features: int, seed: int, noise: float = 1.5
) -> tuple[np.ndarray, np.ndarray]:
    """Labels that depend on the features, but not entirely: no hyperplane separates them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) + 0.3
    score = X @ rng.standard_normal(n_features) + noise * rng.standard_normal(n_samples)
    return X, np.where(score > np.median(score), 1, -1)


def _data_sets() -> dict[str, tuple[Any, np.ndarray]]:
    """Data sets with one peculiarity each."""
    rng = np.random.default_rng(20240229)
    X, y = _clouds(40, 4, seed=1)
    sets: dict[str, tuple[Any, np.ndarray]] = {"clouds": (X, y)}
    sets["imbalanced"] = (X, np.where(X @ [1.0, -1.0, 0.5, 0.0] > 2.2, 1, -1))
    sets["duplicated-columns"] = (np.column_stack([X, X[:, :2], -X[:, 0]]), y)
    sets["zero-columns"] = (np.column_stack([np.zeros(40), X, np.zeros(40)]), y)
    sets["zero-rows"] = (np.where(np.arange(40)[:, None] % 5 == 0, 0.0, X), y)
    sets["constant-feature"] = (np.column_stack([X, np.full(40, 2.0)]), y)
    sets["contradictory"] = (np.vstack([X, X[:15]]), np.concatenate([y, -y[:15]]))
    sets["duplicated-rows"] = (np.repeat(X[:20], 2, axis=0), np.repeat(y[:20], 2))
    sets["wide"] = _clouds(10, 25, seed=2)
    sets["one-feature"] = _clouds(30, 1, seed=3)
    sets["two-samples"] = (np.array([[1.0, 0.0, 2.0], [-1.0, 0.5, 2.0]]), np.array([1, -1]))
    sets["separable"] = (X, np.where(X @ [1.0, 2.0, -1.0, 0.0] > 0.2, 1, -1))
    sets["unscaled"] = (X * [1e-3, 1.0, 30.0, 1e3], y)
    sets["float32"] = (X.astype(np.float32), y)
    entries = rng.random((60, 15)) < 0.15
    entries[:, 7] = False  # an empty column
    words, score = np.where(entries, rng.exponential(size=(60, 15)), 0.0), rng.standard_normal(15)
    topics = np.where(words @ score + 0.5 * rng.standard_normal(60) > 0.0, 1, -1)
    sets["sparse"] = (sp.csr_array(words), topics)
    group = rng.integers(0, 5, 50)
    outcome = np.where(rng.random(50) < np.array([0.1, 0.3, 0.5, 0.7, 0.9])[group], 1, -1)
    sets["one-hot"] = (sp.csc_matrix(np.eye(5)[group]), outcome)
    return sets


def _zoo() -> list[Case]:
    sets = _data_sets()
    cases: list[Case] = []

    def add(name: str, data: str, **options: Any) -> None:
        defaults = {"epsilon": 0.03, "kappa": 0.5, "norm": "l1", "fit_intercept": True}
        X, y = sets[data]
        cases.append(Case(f"{data}-{name}".removesuffix("-"), X, y, defaults | options))

    for norm in NORM_NAMES:
        for kappa in (0.5, math.inf):
            for fit_intercept in (True, False):
                name = f"{norm}-kappa{kappa:g}" + ("" if fit_intercept else "-no-intercept")
                add(name, "clouds", norm=norm, kappa=kappa, fit_intercept=fit_intercept)
    # Every other set with every norm, and the other options in turn.
    turns = [(0.25, True), (math.inf, True), (1.0, False), (2.0, True), (math.inf, False)]
    others = [data for data in sets if data != "clouds"]
    for i, data in enumerate(others):
        for j, norm in enumerate(NORM_NAMES):
            kappa, fit_intercept = turns[(i + 2 * j) % len(turns)]
            name = f"{norm}-kappa{kappa:g}" + ("" if fit_intercept else "-no-intercept")
            add(name, data, norm=norm, kappa=kappa, fit_intercept=fit_intercept)
    weights = np.where(np.arange(40) % 4 == 0, 0.0, 1.0 + np.arange(40) % 3)
    for norm, kappa in (("l1", 0.5), ("l2", math.inf), ("linf", 1.0)):
        add(f"{norm}-weights", "clouds", norm=norm, kappa=kappa, sample_weight=weights)
        costs = np.array([0.3, 1.0, 5.0, 2.0])
        add(f"{norm}-costs", "clouds", norm=norm, kappa=kappa, feature_costs=costs)
        free = np.array([1.0, np.inf, 2.0, np.inf])
        add(f"{norm}-free", "clouds", norm=norm, kappa=kappa, feature_costs=free)
        add(f"{norm}-large-radius", "clouds", norm=norm, kappa=kappa, epsilon=3.0)
        add(f"{norm}-tiny-radius", "clouds", norm=norm, kappa=kappa, epsilon=1e-4)
        add(f"{norm}-tiny-radius", "separable", norm=norm, kappa=kappa, epsilon=1e-3)
    free = np.full(4, np.inf)
    add("all-free", "clouds", kappa=0.5, feature_costs=free)
    add("all-free-kappainf", "clouds", kappa=math.inf, feature_costs=free)
    add("no-radius", "clouds", epsilon=0.0, kappa=0.5)
    add("no-radius-kappainf", "clouds", epsilon=0.0, kappa=math.inf, norm="l2")
    return cases


ZOO = _zoo()


def logistic_data(n_samples=2000, n_features=8, seed=0):
    """Columns of unlike scales and labels drawn from a logistic model of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) * rng.uniform(0.3, 2.0, n_features)
    margin = X @ rng.standard_normal(n_features)
    y = np.where(rng.random(n_samples) < 1.0 / (1.0 + np.exp(-2.0 * margin)), 1, -1)
    return X, y


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


def judged(found, X, y, options):
    """The engine's optimum, which lies between the bound and the objective of ``found``."""
    judge = by_matrices(X, y, tol=1e-8, **options)
    assert found.dual_objective <= judge.objective + 1e-10
    assert found.objective <= judge.objective + found.gap + 1e-10
    return judge


def thin_data(n_samples=300, n_features=6):
    """Columns with zeros, of single precision, and labels of a noisy score of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.4)
    X = X.astype(np.float32).astype(np.float64)
    return X, X @ rng.standard_normal(n_features) + rng.standard_normal(n_samples) > 0.0


def mapped(X):
    """The same array in a file that is mapped."""
    with tempfile.TemporaryFile() as file:
        found = np.memmap(file, X.dtype, "w+", shape=X.shape)
    found[:] = X
    return found


def wide_indices(X):
    """CSR with indices of 64 bits."""
    csr = sp.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def worst_in(model, X, y, metric="log_loss", *, sample_weight=None, threshold=0.5, **ball):
    """The worst case in a ball of plain numbers; the rest is as in the fit, or 1 for each unit."""
    fitted = measured(model).ball
    if fitted is None:
        fitted = drlogit.Ball(norm="l1", feature_costs=None)
    return drlogit.worst_case(
        model,
        X,
        y,
        metric,
        ball=fitted.replace(**ball),
        sample_weight=sample_weight,
        threshold=threshold,
    )


def worst_loss(model, X, y, **ball):
    return worst_in(model, X, y, **ball).value


def worst_error(model, X, y, **ball):
    return worst_in(model, X, y, "error", **ball)


def worst_distribution(model, X, y, metric="log_loss", **ball):
    return worst_in(model, X, y, metric, **ball).distribution()
