"""The samples of K ≥ 2 labels, and the problem in the engine's coordinates.

    minimise    ελ + Σ w_i [ lse(s_i) - s_iy + max_k (s_iy - s_ik - κ_ik λ) ]
    subject to  ‖(β_j - β_k)/c‖_* ≤ λ  for every two labels

Adding the same vector to all labels changes nothing, so the first label's coefficients are zero.
Two labels are "another one" and "the observed one", whose score is the margin: its coefficients are
those of the margins.

Derivation: docs/algorithm.md, (1), (17), sections 2 and 11.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dual.coordinates import label_coordinates
from ..dual.label_points import LabelPoint
from ..problem.label_costs import FlipCosts, within_reach
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ._cones import Cone, PairwiseCones, cone_of, no_norm
from ._labels import (
    LabelState,
    certify_labels,
    correct_labels,
    linearise_labels,
    open_labels,
    predict_labels,
)
from ._newton import Newton
from ._sums import CHANGES
from .protocols import Samples
from .systems import LabelSystem
from .wide import WideSystem, is_wide, refuse_large, takes_outer


class LabelScaling:
    """(β, b, λ) = scale · x for all labels but the first, so that a typical row has length one.

    ``unit`` is the cost that counts as one, by default that of a typical row.
    """

    def __init__(self, problem: Problem, *, unit: float | None = None) -> None:
        coordinates = label_coordinates(problem)
        kept = np.flatnonzero(problem.penalised)
        lengths = coordinates.size[kept] * problem.costs[kept]
        sigma = math.sqrt(lengths @ lengths)
        self.sigma = unit or (sigma if math.isfinite(sigma) and sigma > 0.0 else 1.0)
        one = 1.0 / np.where(coordinates.spread > 0.0, coordinates.spread, 1.0)
        one[kept] = problem.costs[kept] / self.sigma
        self.problem: Any = problem
        self.n_labels, self.coordinates, self.one = problem.n_classes, coordinates, one
        self.kept = kept
        self.scale = np.append(np.tile(one, self.n_labels - 1), 1.0 / self.sigma)

    def newton(self, epsilon: float) -> Newton:
        """The system of the steps, with the norm's cone or cones."""
        problem, rows = self.problem, self.problem.rows
        length, K, cone = 300.0 + rows.n_samples / 50.0, self.n_labels, self._cone(epsilon)
        if problem.several:
            system = LabelSystem(rows, self.one, 1.0 / self.sigma, K, cone, self.kept)
            return Newton(self.scale, epsilon, cone, self.coordinates, length, system)
        if is_wide(rows):
            refuse_large(rows)
        wide = WideSystem(rows, self.scale) if takes_outer(rows) and self.kept.size else None
        return Newton(self.scale, epsilon, cone, self.coordinates, length, wide)

    def _cone(self, epsilon: float) -> Cone:
        norm, last = self.problem.norm.name, self.scale.size - 1
        if not self.kept.size and epsilon > 0.0:
            return no_norm(last)
        if not (self.problem.several and self.kept.size):
            return cone_of(norm, self.kept, last)
        return PairwiseCones(norm, self.kept, self.n_labels, self.one.size, last)

    def of_all(self, found: FloatArray) -> FloatArray:
        """The coefficients of two labels, or a row for each of several, without λ."""
        model = found[:-1].reshape(-1, self.one.size)
        return np.vstack([0.0 * model[0], model]) if self.problem.several else model[0]


class LabelSamples(Samples[LabelPoint]):
    """The samples of a problem, in which flips out of reach of ε are left out.

    ``slopes`` are probabilities p, (labels, samples), of a linear loss ``p·s`` in place of lse(s);
    all flips are within reach then.  Hinges of less stiffness than ``least`` stay
    out of the matrix.
    """

    def __init__(
        self, problem: Problem, newton: Newton, slopes: State | None = None, least: float = 0.0
    ) -> None:
        super().__init__(problem.rows)
        self.least = least
        self.problem, self.newton, self.slopes = problem, newton, slopes
        self.flips = problem.flips or slopes is not None
        self.gram = newton.square > 0
        self.terms = newton.wide is None or newton.wide.terms

    def open(self, coef: FloatArray, mu: float) -> State:
        self.visits += 1
        return opened(self.problem, coef, mu, self.slopes)

    def linearise(
        self, state: State, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[State, FloatArray]:
        self.coef = coef
        return self.visit(
            linearise_labels, state, coef, primal, dual, self.gram, self.terms, self.least
        )

    def curved(self, state: State) -> tuple[State, FloatArray]:
        """The samples, and the coefficients that they are at."""
        return state, self.coef

    def predict(self, state: State, dcoef: FloatArray) -> tuple[State, FloatArray]:
        if not self.flips:
            return state, np.zeros(dcoef.size + CHANGES)
        return self.visit(predict_labels, state, dcoef, self.terms)

    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        return self.visit(correct_labels, state, dcoef, centre, share)

    def certify(
        self, state: State, point: LabelPoint | None, dcoef: FloatArray
    ) -> tuple[LabelPoint, FloatArray]:
        """With the flow between several labels that the corrected multipliers of the cones make."""
        both, system = state if point is None else self.rows.pair(state, point[0]), self.newton.wide
        if isinstance(system, WideSystem):
            self.visits += 1
            known = self.rows.pair(both, system.margins)
            shares, (sums,) = self.rows.run(_certify_changes, known, dcoef)
            return LabelPoint(shares), sums
        shares, sums = self.visit(certify_labels, both, dcoef, self.least)
        flow = None
        if isinstance(self.newton.cone, PairwiseCones) and self.problem.norm.name != "l1":
            flow = self.newton.cone.flow() / system.scale[system.kept]
        return LabelPoint(shares, flow), sums

    def flow_of(self, point: LabelPoint) -> FloatArray | None:
        return point.flow


def opened(problem: Problem, coef: FloatArray, mu: float, slopes: State | None = None) -> State:
    """The samples on the central path (5) at these coefficients; ``LabelSamples`` has the rest."""
    rows, costs = problem.rows, problem.cost.labels
    known = problem.positions if slopes is None else rows.pair(problem.positions, slopes)
    epsilon = problem.epsilon if slopes is None else math.inf
    flipped = costs if problem.flips or slopes is not None else None
    state: State = rows.run(_open, known, flipped, problem.n_classes, epsilon, coef, mu)[0]
    return state


def _open(
    block: Block,
    known: Any,
    costs: FlipCosts | None,
    n_classes: int,
    epsilon: float,
    coef: FloatArray,
    mu: float,
) -> tuple[LabelState, tuple[()]]:
    """The samples of these positions (``Problem.positions``), and perhaps with slopes."""
    positions, slopes = known if isinstance(known, tuple) else (known, np.zeros((0, 0)))
    codes, kappa = positions, None
    if not isinstance(positions, np.ndarray):
        codes = np.ones(block.y.size, np.int32)
    if costs is not None:
        kappa = within_reach(costs.by_label(block, codes, n_classes), epsilon)
    return open_labels(block.compiled, codes, kappa, slopes, coef, mu), ()


def _certify_changes(block: Block, known: Any, dcoef: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    both, changes = known
    point, sums = certify_labels(block.compiled, both, dcoef, 0.0, changes)
    return point, (Sum(sums),)
