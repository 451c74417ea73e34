"""The interior point for several classes: samples, scaling, start, run.

    minimise    ελ + Σ w_i [ lse(s_i) + max_k ( -s_ik - κ(y_i, k) λ ) ]
    subject to  ‖(B_j - B_k)/c‖_* ≤ λ  for every two classes

Adding the same vector to all classes changes nothing, so the last class is fixed at zero.

Derivation: docs/algorithm.md, (17).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import softmax

from ..dual.classes import ClassCoordinates, ClassPoint
from ..problem.classes import ClassProblem, Scored
from ..problem.label_costs import FlipCosts, within_reach
from ..problem.result import Monitor, Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ..starts.start import Start
from ._classes import (
    ClassState,
    certify_classes,
    correct_classes,
    curvature_gram,
    linearise_classes,
    open_classes,
    predict_classes,
)
from ._cones import Cone, PairwiseCones, cone_of, no_norm
from ._newton import Newton
from ._sums import CHANGES
from .class_system import ClassSystem, add_pairs
from .front import RowSamples, greatest_gain, run
from .pair import Scaling
from .settings import SETTINGS


class ClassSamples(RowSamples[ClassPoint]):
    """Scores of every sample, and slacks and multipliers of all its labels.

    ``slopes`` p of the samples replace the loss lse(s) by ``p·s`` (``least_budget``).
    """

    def __init__(self, problem: ClassProblem, newton: Newton, slopes: State | None = None) -> None:
        super().__init__(problem.rows)
        self.problem, self.newton, self.slopes = problem, newton, slopes

    def open(self, coef: FloatArray, mu: float) -> State:
        self.visits += 1
        codes, costs = self.problem.codes, self.problem.label_costs
        codes = codes if self.slopes is None else self.rows.pair(codes, self.slopes)
        epsilon = self.problem.epsilon if self.slopes is None else math.inf
        return self._on_blocks(_open, codes, costs, self.problem.n_classes, epsilon, coef, mu)

    def linearise(
        self, state: State, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[State, FloatArray]:
        return self._visit(linearise_classes, state, coef, primal, dual)

    def curved(self, state: State) -> State:
        return self._on_blocks(_curved, state)

    def predict(self, state: State, dcoef: FloatArray) -> tuple[State, FloatArray]:
        if not self.problem.flips:
            return state, np.zeros(dcoef.size + CHANGES)
        return self._visit(predict_classes, state, dcoef)

    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        return self._visit(correct_classes, state, dcoef, centre, share)

    def certify(
        self, state: State, point: ClassPoint | None, dcoef: FloatArray
    ) -> tuple[ClassPoint, FloatArray]:
        """With the flow between classes that the corrected multipliers of the cones make."""
        both = state if point is None else self.rows.pair(state, point.shares)
        shares, sums = self._visit(certify_classes, both, dcoef)
        cone, system, flow = self.newton.cone, self.newton.wide, None
        if isinstance(cone, PairwiseCones) and self.problem.norm.name != "l1":
            flow = cone.flow() / system.scale[system.kept]
        return ClassPoint(shares, flow), sums

    def coordinates(self, newton: Newton, point: ClassPoint) -> ClassCoordinates:
        known: ClassCoordinates = newton.coordinates
        return known.with_flow(point.flow)


def _open(
    block: Block,
    codes: Any,
    costs: FlipCosts,
    n_classes: int,
    epsilon: float,
    coef: FloatArray,
    mu: float,
) -> tuple[ClassState, tuple[()]]:
    codes, slopes = codes if isinstance(codes, tuple) else (codes, np.zeros((0, 0)))
    kappa = within_reach(costs.by_label(block, codes, n_classes), epsilon)
    return open_classes(block.compiled, codes, kappa, slopes, coef, mu), ()


def _curved(block: Block, state: ClassState) -> tuple[Any, tuple[()]]:
    return (state.curved, state.kappa), ()


class ClassScaling:
    """(B, b, λ) = scale · x: each class is scaled as in two classes; the last is fixed at zero."""

    def __init__(
        self, problem: ClassProblem, *, free_only: bool = False, unit: float | None = None
    ) -> None:
        one = Scaling(problem, free_only=free_only, unit=unit)  # type: ignore[arg-type]
        scale = np.tile(one.scale[:-1], (problem.n_classes, 1))
        scale[-1] = 0.0
        self.problem, self.sigma, self.kept, self.one = problem, one.sigma, one.kept, one.scale[:-1]
        self.scale = np.append(scale.ravel(), one.scale[-1])

    def newton(self, epsilon: float) -> Newton:
        """The system of the steps, with the norm's cones."""
        problem, K, last = self.problem, self.problem.n_classes, self.scale.size - 1
        if self.kept.size:
            cone: Cone = PairwiseCones(problem.norm.name, self.kept, K, self.one.size, last)
        else:
            cone = no_norm(last) if problem.epsilon > 0.0 else cone_of("l1", self.kept, last)
        system = ClassSystem(problem.rows, self.one, self.scale[-1], K, cone, self.kept)
        length = 300.0 + problem.rows.n_samples / 50.0
        return Newton(self.scale, epsilon, cone, ClassCoordinates(problem), length, system)


def interior_point_for_classes(
    problem: ClassProblem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Start | None = None,
) -> Solution:
    """Solve the problem to a certified gap of ``tol``."""
    return _run(ClassScaling(problem), tol, monitor, max_iter, start)


def null_model_of_classes(problem: ClassProblem, tol: float = 1e-12) -> FloatArray:
    """Coefficients of the best model of the free columns alone."""
    return _run(ClassScaling(problem, free_only=True), tol, Monitor(None, 0), 200).coefficients


def least_budget(problem: ClassProblem, fixed: State) -> float:
    """The least budget of moves and flips that explains given probabilities p.

    ``max - Σ w [p·s + max_k(-s_k - κ_k)]`` over ``‖(B_j - B_k)/c‖_* ≤ 1`` and free columns: the
    problem with a linear loss at a fixed λ.
    """

    def posed(unit: float) -> tuple[Newton, ClassSamples]:
        newton = ClassScaling(problem, unit=unit).newton(0.0)
        return newton, ClassSamples(problem, newton, fixed)

    costs = problem.flip_costs[problem.flip_costs > 0.0]
    return greatest_gain(posed, ClassScaling(problem).sigma, *costs)


def loss_hessian(problem: ClassProblem, coefficients: FloatArray) -> FloatArray:
    """That of the log-loss in all coefficients, class by class."""
    _, (grams,) = problem.rows.run(_loss_grams, problem.scores(coefficients))
    K, width = coefficients.shape
    matrix = np.zeros((K, width, K, width))
    add_pairs(grams, matrix)
    half = matrix.reshape(K * width, -1)
    return half + np.tril(half, -1).T


def _loss_grams(block: Block, scored: Scored) -> tuple[None, tuple[Sum]]:
    p = softmax(scored[0], axis=1)
    return None, (Sum(curvature_gram(block.compiled, np.stack([p, np.zeros_like(p)]))),)


def _run(
    scaling: ClassScaling, tol: float, monitor: Monitor, max_iter: int, start: Start | None = None
) -> Solution:
    problem = scaling.problem
    newton = scaling.newton(problem.epsilon)
    samples = ClassSamples(problem, newton)
    x, mu = _opening(scaling, start)
    newton.open(x, mu)
    found = run(samples, newton, mu, tol, max_iter, monitor)
    best = newton.best_model()
    assert isinstance(newton.wide, ClassSystem)
    info = {
        "solver": "interior-point",
        "grams": found.n_iter,
        "visits": samples.visits,
        "products": newton.wide.products,
        "classes": problem.n_classes,
        **({} if problem.as_given else {"as_numbers": True}),
    }
    return Solution(
        best[:-1].reshape(problem.n_classes, -1),
        found.status,
        found.n_iter,
        found.point,
        info=info,
        lam=float(best[-1]),
        proven=(newton.best, newton.dual),
    )


def _opening(scaling: ClassScaling, start: Start | None) -> tuple[FloatArray, float]:
    """(x, λ) and μ to open with: all classes alike, or near an earlier model."""
    problem, sigma, K = scaling.problem, scaling.sigma, scaling.problem.n_classes
    x, mu = np.zeros(scaling.scale.size), SETTINGS.class_mu / K
    if problem.epsilon == 0.0:
        return x, mu
    mu = mu if start is None else SETTINGS.near_mu
    lam = 2.0 * mu / problem.epsilon  # about on the central path
    if start is not None:
        known = start.lam if start.lam > 0.0 else 0.0
        lam = (1.0 + SETTINGS.start_room) * max(lam, problem.dual_norm(start.model), known)
        x[:-1] = ((start.model - start.model[-1]) / scaling.one).ravel()
    x[-1] = lam * sigma
    return x, mu
