"""The interior point for problems without domains: scaling, start, run.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κ_i λ)_+ ],     u = Zβ
    subject to  ‖β / c‖_* ≤ λ

The samples are those of the flip pair (``PairSamples``); where no label can flip (κ = ∞, ε = 0),
only margins are left of them (``LossSamples``).

Derivation: docs/algorithm.md, (1), sections 2 and 11.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..dual.coordinates import pair_coordinates
from ..problem.label_costs import within_reach
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ..starts.start import Start
from . import driver
from ._cones import cone_of, no_norm
from ._newton import Newton
from ._pair import PairState, certify_pair, correct_pair, linearise_pair, open_pair, predict_pair
from ._sums import CHANGES
from .front import RowSamples, distinct_samples, greatest_gain, run
from .protocols import System
from .settings import SETTINGS
from .wide import WideSystem, in_one_block, is_wide, refuse_large, takes_outer

#: No slopes of a linear loss, and no costs of flips.
_NONE = np.zeros(0)


class PairSamples(RowSamples[State]):
    """The flip pair of every sample.

    ``kappa`` is the unit of flip costs, None in a problem without flips; flips out of reach of
    ``epsilon`` are left out.  ``slopes`` s of the samples replace the loss by ``-s u``
    (``flip_budget``).  ``system`` is that of a Newton system without an n×n matrix.
    """

    def __init__(
        self,
        rows: Rows,
        kappa: float | None,
        slopes: State | None = None,
        epsilon: float = math.inf,
        system: System | None = None,
    ) -> None:
        super().__init__(rows)
        self.kappa, self.slopes, self.epsilon, self.system = kappa, slopes, epsilon, system

    def open(self, coef: FloatArray, mu: float) -> State:
        self.visits += 1
        return self._on_blocks(_open_pair, self.slopes, self.kappa, self.epsilon, coef, mu)

    def linearise(
        self, state: State, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[State, FloatArray]:
        return self._visit(linearise_pair, state, coef, primal, dual, self.system is None)

    def curved(self, state: State) -> State:
        return state

    def predict(self, state: State, dcoef: FloatArray) -> tuple[State, FloatArray]:
        return self._visit(predict_pair, state, dcoef, self.system is None)

    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        return self._visit(correct_pair, state, dcoef, centre, share)

    def certify(
        self, state: State, point: State | None, dcoef: FloatArray
    ) -> tuple[State, FloatArray]:
        both = state if point is None else self.rows.pair(state, point)
        if self.system is None:
            return self._visit(certify_pair, both, dcoef)
        assert isinstance(self.system, WideSystem)
        self.visits += 1
        known = self.rows.pair(both, self.system.margins)
        point, (sums,) = self.rows.run(_certify_changes, known, dcoef)
        return point, sums


class LossSamples(PairSamples):
    """The log-loss alone: one visit for each iteration, the others cost nothing of size N."""

    def __init__(self, rows: Rows, newton: Newton) -> None:
        super().__init__(rows, None, system=newton.wide)
        self.newton = newton

    def predict(self, state: State, dcoef: FloatArray) -> tuple[State, FloatArray]:
        return state, np.zeros(dcoef.size + CHANGES)

    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        return state, np.array(self.newton.parabola())


# --- visits to a block ---------------------------------------------------------------------------


def _open_pair(
    block: Block,
    slopes: FloatArray | None,
    kappa: float | None,
    epsilon: float,
    coef: FloatArray,
    mu: float,
) -> tuple[PairState, tuple[()]]:
    slopes = _NONE if slopes is None else slopes
    costs = _NONE if kappa is None else within_reach(block.flip_costs(kappa), epsilon)
    return open_pair(block.compiled, costs, slopes, coef, mu), ()


def _certify_changes(block: Block, known: Any, dcoef: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    both, changes = known
    point, sums = certify_pair(block.compiled, both, dcoef, 0.0, changes)
    return point, (Sum(sums),)


# --- the problem in the engine's coordinates ------------------------------------------------------


class Scaling:
    """(β, b, λ) = scale · x, so that a typical row has length one.

    With ``free_only`` penalised features are left out, and the only constraint on λ is λ ≥ 0.
    ``unit`` is the cost that counts as one, by default that of a typical row.
    """

    def __init__(
        self, problem: Problem, *, free_only: bool = False, unit: float | None = None
    ) -> None:
        coordinates = pair_coordinates(problem, free_only=free_only)
        kept, last = np.flatnonzero(problem.penalised), problem.costs.size
        lengths = coordinates.size[kept] * problem.costs[kept]
        sigma = math.sqrt(lengths @ lengths)
        self.sigma = unit or (sigma if math.isfinite(sigma) and sigma > 0.0 else 1.0)
        scale = np.full(last + 1, 1.0 / self.sigma)
        scale[:last] = 1.0 / np.where(coordinates.spread > 0.0, coordinates.spread, 1.0)
        scale[kept] = 0.0 if free_only else problem.costs[kept] / self.sigma
        self.problem, self.coordinates, self.scale = problem, coordinates, scale
        self.kept = kept[:0] if free_only else kept

    def newton(self, epsilon: float) -> Newton:
        """The system of the steps, with the norm's cone."""
        rows, last = self.problem.rows, self.scale.size - 1
        nothing = epsilon > 0.0 and not self.kept.size
        cone = no_norm(last) if nothing else cone_of(self.problem.norm.name, self.kept, last)
        length = 300.0 + rows.n_samples / 50.0
        alone = self.problem.epsilon > 0.0 and not self.kept.size  # the free columns
        if is_wide(rows) and not alone:
            refuse_large(rows)
        outer = takes_outer(rows) or (is_wide(rows) and alone)
        wide = WideSystem(rows, self.scale) if outer else None
        return Newton(self.scale, epsilon, cone, self.coordinates, length, wide)


def interior_point(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Start | None = None,
) -> Solution:
    """Solve (P) to a certified gap of ``tol``; ``start`` is a model to open near.

    ``max_iter`` limits Newton iterations, each one weighted Gram matrix and one factorisation.
    """
    problem, of_all = distinct_samples(problem, in_one_block)
    newton, samples, found = solve_scaled(Scaling(problem), tol, max_iter, start, monitor)
    best = newton.best_model()
    return Solution(
        best[:-1],
        found.status,
        found.n_iter,
        None if found.point is None else of_all(found.point),
        info={
            "solver": "interior-point",
            "distinct_samples": problem.rows.n_samples,
            "grams": found.n_iter,
            "visits": samples.visits,
        },
        lam=float(best[-1]),
        proven=(newton.best, newton.dual),
    )


def solve_scaled(
    scaling: Scaling,
    tol: float,
    max_iter: int,
    start: Start | None,
    monitor: Monitor,
    estimated: bool = False,
) -> tuple[Newton, PairSamples, driver.Found[State, State]]:
    """The driver on all samples; ``estimated``: an estimate of the distance ends the run, too."""
    problem = scaling.problem
    newton = scaling.newton(problem.epsilon)
    samples: PairSamples
    rows = problem.rows
    if problem.flips:
        samples = PairSamples(rows, problem.kappa, epsilon=problem.epsilon, system=newton.wide)
    else:
        samples = LossSamples(rows, newton)
    x, mu = _opening(scaling, start)
    newton.open(x, mu)
    found = run(samples, newton, mu, tol, max_iter, monitor, estimated=estimated)
    return newton, samples, found


def _opening(scaling: Scaling, start: Start | None) -> tuple[FloatArray, float]:
    """(x, λ) and μ to open with."""
    problem, sigma = scaling.problem, scaling.sigma
    x = np.zeros(scaling.scale.size)
    mu = SETTINGS.start_mu if start is None or problem.epsilon == 0.0 else SETTINGS.near_mu
    if problem.epsilon == 0.0:
        if start is not None:
            x[:-1] = start.model / scaling.scale[:-1]
        return x, mu
    least = SETTINGS.start_lambda * mu / problem.epsilon
    if start is None:
        x[-1] = least * sigma
        return x, mu
    model, size = start.model.copy(), problem.dual_norm(start.model)
    # No optimal λ is above .2785/ε (Proposition 3.1).
    lam = min(max(size, least, start.lam), 0.3 / problem.epsilon)
    if size > lam:
        model[problem.penalised] *= lam / size
    x[:-1] = model / scaling.scale[:-1]
    x[-1] = (1.0 + SETTINGS.start_room) * lam * sigma
    return x, mu


def null_model(problem: Problem, tol: float = 1e-12, max_iter: int = 200) -> FloatArray:
    """Coefficients of the best model of the free columns alone."""
    newton, _, _ = solve_scaled(
        Scaling(problem, free_only=True), tol, max_iter, None, Monitor(None, 0)
    )
    return np.asarray(newton.best_model()[:-1])


def flip_budget(problem: Problem, null: FloatArray, *, free_only: bool = False) -> float:
    """``max Σ w [s u - (u - κ)_+]`` over ``‖β/c‖_* ≤ 1`` and free coefficients.

    s is that of the model ``null``; κ is finite.  This is (P) with the loss ``-s u`` at a fixed λ,
    λ times as large.  With ``free_only`` penalised features are left out.
    """
    problem = replace(problem, rows=in_one_block(problem.rows))
    slopes, _ = problem.rows.run(slopes_at, None, null)

    def posed(unit: float) -> tuple[Newton, PairSamples]:
        newton = Scaling(problem, free_only=free_only, unit=unit).newton(0.0)
        return newton, PairSamples(problem.rows, problem.kappa, slopes, system=newton.wide)

    return greatest_gain(posed, Scaling(problem).sigma, problem.kappa, problem.dearest_flip)


def slopes_at(block: Block, _: None, null: FloatArray) -> tuple[FloatArray, tuple[()]]:
    """Dual probabilities of a model: slopes of a loss that is linear there."""
    return flip_probability(block.margins(null)), ()
