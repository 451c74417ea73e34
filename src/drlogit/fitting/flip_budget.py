"""What it costs to explain a null model's doubts away: the budget ψ behind ``epsilon_max``.

For ``s_i = 1/(1+e^{u_i})`` at the margins of a model that uses free columns alone,

    ψ(s) = min over a ∈ [0,1]^N of  ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i
                              subject to  Σ w_i (s_i - a_i) z_i = 0 on free columns
         = max over ‖β/c‖_* ≤ 1 and free coefficients of  Σ w_i [ s_i u_i - (u_i - κ)_+ ],   u = Zβ.

Every β bounds ψ from below and every feasible ``a`` from above.  The maximum is a linear (or second
order cone) program with a hinge per sample, which the barrier of the interior point solves as it
stands, with the log-loss replaced by ``-s u`` and λ fixed.  The problem is homogeneous: at λ its
value is ``λ ψ``.  So it is posed in the coordinates of :class:`Scaled`, where a typical row has
norm one, and at a λ there that makes the larger of norm and kink one as well; features measured
in millions then are no other problem than the same in units.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Status
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from ..solvers.interior_point.barrier import solve_with_barrier
from ..solvers.interior_point.scaled import Scaled

#: Relative distance of the bounds at which they count as one number.
_ACCURACY = 1e-10

#: What rounding may leave of a free column's equation, relative to the column's size.
_ROUNDING = 1e-14

#: Times that what is left of the free columns' equations is made up for.
_REPAIRS = 3

#: Iterations of the barrier; 979 random problems, columns spread over six decades, took 32 at most.
_MAX_ITER = 200


class FlipBudget(NamedTuple):
    """``lower ≤ ψ ≤ upper``, and coefficients of dual norm at most one that show the former."""

    lower: float
    upper: float
    coefficients: FloatArray


def flip_budget(problem: Problem, null: FloatArray, *, free_only: bool = False) -> FlipBudget:
    """ψ for the doubts ``s`` of the model ``null``; κ is finite, ε plays no role.

    With ``free_only`` penalised features are left out altogether: what remains is the least
    budget of flips that levels the free columns.
    """
    scaled = Scaled.of(problem.with_radius(1.0))
    kappa = problem.kappa / scaled.sigma
    level = 1.0 / min(1.0, kappa)  # λ in scaled coordinates
    # ε only shifts the objective by ελ: small, so that no digits of the rest are lost.
    scaled = Scaled.of(problem.with_radius(scaled.sigma * min(1.0, kappa)))
    if free_only:
        scaled = replace(scaled, scale=np.where(problem.penalised, 0.0, scaled.scale))
    judge = _Judge(scaled.problem, null, free_only)
    with np.errstate(all="ignore"):
        solve_with_barrier(scaled, judge, max_iter=_MAX_ITER, lam=level / scaled.sigma, null=null)
    return FlipBudget(judge.lower, max(judge.upper, judge.lower), judge.coefficients)


class _Judge:
    """Stops when the bounds on ψ from β below and from ``a`` above meet."""

    def __init__(self, problem: Problem, null: FloatArray, free_only: bool) -> None:
        self.problem = problem
        self.free_only = free_only
        self.status = Status.MAX_ITER
        self.tol = 0.0  # no candidates besides the iterates
        self.lower = 0.0
        self.coefficients = np.zeros_like(null)
        # a = s is always feasible, and a = 0 wherever the model fits the free columns by itself.
        self._doubts, (share,) = problem.rows.run(_doubts, None, null)
        self.upper = problem.kappa * float(share)
        self._offer(problem.rows.run(_none, self._doubts)[0])

    def report(
        self,
        coefficients: FloatArray,
        primal: float,
        flip_share: State,
        estimate: float,
        lam: float,
    ) -> bool:
        value = self.problem.epsilon - primal / lam
        if value > self.lower and self.problem.allows(coefficients, lam):
            self.lower, self.coefficients = value, coefficients / lam
        self._offer(flip_share)
        met = self.upper - self.lower <= _ACCURACY * self.upper
        exhausted = not estimate / lam > 1e-15 * self.upper
        if met or exhausted:
            self.status = Status.OPTIMAL if met else Status.STALLED
        return met or exhausted

    def try_step(
        self, coefficients: FloatArray, step: FloatArray, length: float, flip_share: State
    ) -> bool:
        return False

    def _offer(self, flip_share: State) -> None:
        """The cost of flip shares, after they were made feasible."""
        problem = self.problem
        free = np.flatnonzero(problem.free)
        rounding = _ROUNDING * problem.rows.column_scale[free]
        for attempt in range(_REPAIRS + 1):
            pairs = problem.rows.pair(self._doubts, flip_share)
            _, (gradient, flips) = problem.rows.run(_flip_sums, pairs)
            if (np.abs(gradient[free]) <= rounding).all():
                moved = 0.0 if self.free_only else problem.transport_norm(gradient)
                self.upper = min(self.upper, moved + problem.kappa * float(flips))
                return
            if attempt == _REPAIRS or problem.kappa * float(flips) > 2.0 * self.upper:
                return
            flip_share = _repaired(problem, flip_share, gradient, free)


def _repaired(problem: Problem, flip_share: State, gradient: FloatArray, free: IndexArray) -> State:
    """Flip shares moved where they are neither 0 nor 1, so that free equations hold."""
    _, (gram,) = problem.rows.run(_free_gram, flip_share, free)
    scale = np.sqrt(np.diagonal(gram))
    scale = np.where(scale > 0.0, scale, 1.0)
    unit = gram / scale / scale[:, None]
    c = np.linalg.lstsq(unit, gradient[free] / scale, rcond=1e-12)[0] / scale
    step = np.zeros_like(gradient)
    step[free] = c
    return problem.rows.run(_shifted_shares, flip_share, step)[0]


def _doubts(block: Block, _: None, null: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    s = flip_probability(block.margins(null))
    return s, (Sum(float(block.weights @ s)),)


def _none(block: Block, s: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return np.zeros_like(s), ()


def _flip_sums(
    block: Block, pair: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    s, a = pair
    return a, (Sum(block.adjoint(block.weights * (s - a))), Sum(float(block.weights @ a)))


def _free_gram(block: Block, a: FloatArray, free: IndexArray) -> tuple[FloatArray, tuple[Sum]]:
    """``Z_Fᵀ diag(w a (1-a)) Z_F``, a column at a time: free columns are few."""
    d = block.weights * a * (1.0 - a)
    columns = []
    for j in free:
        unit = np.zeros(block.n_columns)
        unit[j] = 1.0
        columns.append(block.adjoint(d * block.margins(unit))[free])
    return a, (Sum(np.array(columns).reshape(free.size, free.size)),)


def _shifted_shares(block: Block, a: FloatArray, step: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return np.clip(a + a * (1.0 - a) * block.margins(step), 0.0, 1.0), ()
