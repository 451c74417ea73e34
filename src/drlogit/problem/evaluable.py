"""A bound for models whose margins doubles can tell, where columns agree to their last digits.

Two free columns that differ by no more than their own rounding (a feature in two units, say) span
a direction in which only rounding lives.  Coefficients of 10¹⁶ and opposite signs turn it into
margins, and by the numbers as they were given some such model may be far better than all others.
Nobody can use it: its margins are differences of terms that are only known to that accuracy.
There is then no bound for all models, but there is one for all that can be told apart:

*Theorem.*  Let ``(s, a)`` be in the ball, and ``ρ_j ≥ |Σ w_i (s_i - a_i) z_ij|`` for the free
columns F.  Then ``P(β) + Σ_F ρ_j |β_j| ≥ Σ w_i H(s_i)`` for every β.

*Proof.*  Weak duality, in which ``β_jΣ w_i (s_i - a_i) z_ij`` does not drop out for j in F.  ∎

Objectives are reported with what rounding may hide of their margins,
``P(β) + u_p Σ |β_j| σ_j`` (:func:`~drlogit.problem.certificate.primal_value`).  So if
``ρ_j ≤ u_p σ_j``, no model has an objective below ``Σ w_i H(s_i)`` *as it would be reported*.
Plain sums over the samples know no ρ that small; here they are rounded once.

A free column can also be so faint that only coefficients beyond all measure make something of it:
where no entry is above 2⁻⁹⁹⁰, the bound is for models with coefficients of at most 2⁹⁶⁰.
"""

from __future__ import annotations

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Max
from .dual_bounds import balanced_bound
from .dual_candidates import Candidate
from .dual_corrections import quadratic_model
from .flip_shares import flip_shares_of, no_flips
from .free_equations import FreeEquations, rounding_of_sum
from .problem import Problem

#: Entries of free columns, times their number, up to which they are added up so carefully.
_MOST = 10**8

#: Samples whose ``w s`` and ``w a`` are below this share of the mean weight are left out: free
#: columns that separate them from others would have them vanish.
_LIGHT = 1e-9

#: Steps that remove what is left of the equations.
_STEPS = 4

#: Free columns without a larger entry are faint, and their coefficients are at most the other.
_FAINT = 2.0**-990
_IMMENSE = 2.0**960


def evaluable_bound(
    problem: Problem, coefficients: FloatArray, flip_share: State | None = None
) -> float:
    """What no reported objective of (P) is below; 0 where that is not known."""
    free = np.flatnonzero(problem.free)
    rows = problem.rows
    if free.size == problem.fit_intercept or rows.n_samples * free.size**2 > _MOST:
        return 0.0
    if flip_share is None:
        margins = problem.margins(coefficients)
        flip_share = flip_shares_of(problem, margins, problem.best_lambda(coefficients, margins))
    if not problem.cost.pair.flips:
        flip_share = no_flips(problem, flip_share)
    start = Candidate.at(problem, coefficients, flip_share)
    start = start.within_budget(problem).with_curvature(problem).without_light(problem, _LIGHT)
    model = quadratic_model(problem, start.state)
    step = model.step(start.gradient, start.coefficients, start.budget(problem), None)
    candidate: Candidate | None = start.shifted(problem, step) or start
    _, (largest,) = rows.run(_largest)
    faint = np.where(largest[free] <= _FAINT, largest[free], 0.0)
    allowed = rounding_of_sum(rows.n_columns) * rows.column_scale[free] + 2.0 * faint
    for _ in range(_STEPS):
        if candidate is None:
            break
        left, noise = candidate.sums(problem, free)
        if (np.abs(left) + noise <= allowed).all():
            value = balanced_bound(problem, candidate, None, FreeEquations.none()).value
            return value - 2.0 * _IMMENSE * float(faint.sum())
        excess = np.zeros(rows.n_columns)
        excess[free] = left
        candidate = candidate.shifted(problem, model.free_step(excess))
    return 0.0


def _largest(block: Block, _: None) -> tuple[None, tuple[Max]]:
    return None, (Max(block.largest_entries(np.ones(block.y.size, dtype=bool))),)
