"""Duality gaps: how far from optimal a point can be, whoever produced it.

The dual of (P), with ``s, a ∈ [0,1]^N`` and ``H`` the binary entropy, is

    maximise    Σ w_i H(s_i)
    subject to  ‖c Σ w_i (s_i - a_i) z_i‖ + κ Σ w_i a_i ≤ ε      (transport norm)
                Σ w_i (s_i - a_i) z_i = 0                          (free columns)

so every feasible ``(s, a)`` bounds the optimum from below.  At fixed λ the norm constraint becomes
the term ``-λ(‖…‖ + κ Σ w_i a_i)`` and only the free columns' equations remain.

A dual candidate is a share ``a`` per sample and a coefficient vector ``β̃``, which stands for
``s = 1/(1+e^{Zβ̃})``: near a solution ``β̃ = β`` is a good one.  A solver that has a Newton step δ at
β̃ may hand that over as well: ``s - s(1-s) Zδ`` is feasible but for what rounding and clipping do to
it, because that is what the step's equations say.  Or it hands over s itself, from a step taken
elsewhere or from an earlier fit.  Candidates are made feasible in two moves: *correct*
(:mod:`drlogit.problem.dual_corrections`), then *balance and scale*
(:mod:`drlogit.problem.dual_bounds`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.interface import State
from .dual_corrections import dual_bound
from .flip_shares import flip_shares_of
from .free_equations import rounding_of_sum
from .problem import Problem

#: A bound above the value of a point, by more than rounding explains, is no bound.
_ALARM = 1e-9


@dataclass(frozen=True, eq=False)
class Certificate:
    """Primal value, certified lower bound, and the dual point that proves it.

    ``gap = primal - dual`` bounds the suboptimality; ``primal`` includes what rounding may have
    taken from the margins, and ``dual`` has been charged for what it left of the free equations.
    ``doubt`` and ``flip_share`` are the feasible ``s`` and ``a``, as states of the rows; with
    domains, ``pieces`` is the dual point.
    """

    primal: float
    dual: float
    lam: float
    doubt: State
    flip_share: State
    dual_coefficients: FloatArray
    pieces: State | None = None

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)


def certify(
    problem: Problem,
    coefficients: FloatArray,
    *,
    lam: float | None = None,
    flip_share: State | None = None,
    dual_coefficients: FloatArray | None = None,
    dual_step: FloatArray | None = None,
    doubt: State | None = None,
    guess: float | None = None,
    tol: float = 0.0,
) -> Certificate:
    """Certificate of ``coefficients`` for (P), or for (B) at fixed ``lam``.

    Work on the bound ends as soon as the gap is within ``tol``; with ``tol=0`` the best
    bound that the corrections reach is returned.  ``guess`` is about the best λ.
    """
    margins = problem.margins(coefficients)
    level, primal = primal_value(problem, coefficients, margins, lam, guess)
    if lam is not None and not problem.allows(coefficients, lam):
        primal = math.inf
    if flip_share is None:
        flip_share = flip_shares_of(problem, margins, level)
    start = coefficients if dual_coefficients is None else dual_coefficients
    bound = dual_bound(
        problem, start, flip_share, step=dual_step, doubt=doubt, lam=lam, wanted=primal - tol
    )
    if bound.value > primal + _ALARM * max(1.0, primal):
        bound = replace(bound, value=0.0)
    return Certificate(primal, bound.value, level, *bound.parts(problem), bound.coefficients)


def primal_value(
    problem: Problem,
    coefficients: FloatArray,
    margins: State,
    lam: float | None,
    guess: float | None = None,
) -> tuple[float, float]:
    """λ, by default the best, and the objective, with what rounding of the margins may hide of it.

    The objective's slope in the margins is one at most.
    """
    if lam is None:
        lam, value = problem.flip_loss(coefficients, margins).best(problem.epsilon, guess)
    else:
        value = problem.objective_at(margins, lam)
    size = float(np.abs(coefficients) @ problem.rows.column_scale)
    return lam, value + rounding_of_sum(coefficients.size) * size
