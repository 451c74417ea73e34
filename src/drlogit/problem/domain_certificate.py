"""Lower bounds on the optimum of (P') from pieces, proven.

Let sample i have pieces k with signs ``y_k``, costs ``d_k`` and rows ``z_k = x_i + e_k``
(:mod:`drlogit.problem.pieces`), masses ``q_k ≥ 0`` that sum to ``w_i``, and ``0 ≤ p_k ≤ q_k``.
Since ``h(v) ≥ H(s) - s v`` for every s in [0, 1], for every ``(β, b, λ)`` with ``‖β_U/c‖_* ≤ λ``
and with ``θ = (β, b, low, high)``, low and high being the ranges of β over the groups'
categories,

    F(β, b, λ) ≥ ελ + Σ q_k [h(y_k z_k·θ) - λ d_k]
               ≥ Σ q_k H(p_k/q_k)  +  λ (ε - Σ q_k d_k)  -  g·θ,        g = Σ p_k y_k z_k.

**What is left of g** is small in a good candidate, but never zero, and multiplies coefficients of
the optimum.  On U it fits into the budget: ``g_U·β_U ≤ λ ‖c g_U‖``.  Where ``‖c g_U‖ + Σ q d``
exceeds ε, ``(p, q)`` are scaled by f < 1 towards ``(0, unmoved)``, which scales everything below
as well and, H being concave, takes at most the same share of the value.  The rest is of two kinds.

*Immovable features and the offset* may have any coefficient, so their equations must hold exactly.
(The offset is the intercept, or what moves all categories of a complete group.)  Pieces of one
sample agree in these columns.  So :func:`drlogit.problem.free_pieces.nearby` shows that a point p'
exists which satisfies them, in the distance τ from p, with ``Σ|p' - p| ≤ Δ``, and whose value is
less by ``f (A τ + τ²)`` at most.

*Bounded features and groups.*  Around the middle of a group's range, and with ``ρ = high - low``,

    Σ_k G_k β_k + g_low low + g_high high  ≤  ρ E_g,   E_g = ½ (Σ|G_k| - g_low + g_high),

where ``G_k`` are the entries of g at the group's columns: the middle itself is multiplied by the
offset's equation.  If "none" is a category, ``low ≤ 0 ≤ high`` and ``E_g = max(0, Σ(G_k)_+ +
g_high, Σ(-G_k)_+ - g_low)`` serves without that equation.  What multiplies these leftovers is
bounded for every point with ``F ≤ V = log 2``, which the constant model satisfies:

*Theorem.*  Let ``P_±`` be the sums of p' over pieces with ``y_k = ±1``, P their sum, ``P_f`` that
over flipped pieces, ``[l'_j, u'_j]`` any part of the domain of a bounded feature, C the mean cost
over p' of changing all groups and moving all bounded features to either of these ends, and

    σ_j = min(P_- u'_j - P_+ l'_j,  P_+ u'_j - P_- l'_j)   for bounded features,
    τ_g = min(P_+, P_-)                                    for groups.

Then ``Σ σ_j |β_j| + Σ τ_g ρ_g ≤ S := max(V, (V/ε) (‖c g'_U‖ + C + κ P_f))``.

*Proof.*  ``R_i ≥ 0``, so ``λ ≤ V/ε``.  Let the adversary take the share ``p'_k/w_i`` of sample i,
give it the label ``y_k`` and move everything against it: ``h(m) ≥ -m`` of its margin m, at a cost
of C at most in all, and κ if flipped.  So with ``Σ w R ≤ V - ελ``

    V - ελ  ≥  -g'_U·β_U - g'_I·β_I - g'_b b + Σ_j φ_j + Σ_g (P_- high_g - P_+ low_g)
               - λ (C + κ P_f),

``φ_j = |β_j| (P_- u'_j - P_+ l'_j)`` for ``β_j > 0``, ``|β_j| (P_+ u'_j - P_- l'_j)`` otherwise.
The terms in β_I and b vanish, and ``P_- high - P_+ low ≥ τ_g ρ_g``: where "none" is a category
because ``low ≤ 0 ≤ high``, else because the offset's equation says ``P_+ = P_-``.  ∎

So the masses that prove the bound also bound what it is charged with; with an offset ``σ_j`` is
half of ``P (u'_j - l'_j)``.  Altogether, with ``r = max(|g'_j|/σ_j, E'_g/τ_g)``,

    optimum  ≥  Σ q^f H(f p/q^f) - f (A τ + τ² + r S).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.interface import State
from .best_price import best_price
from .certificate import Certificate
from .domains import Domains
from .free_equations import UNIT, rounding_of_sum
from .free_pieces import Nearby, nearby, without_specks
from .piece_equations import Equations, immovable_columns
from .piece_weights import (
    WeightSums,
    flip_shares,
    mean_slopes,
    no_flips,
    scaled_value,
    within,
)
from .problem import Problem

#: Entries of g, relative to ``Σ p``, from which a category counts as one that moves stop at;
#: tried in turn, each with so many corrections of p.
_THRESHOLDS = (1e-6, 1e-4, 1e-9)
_CORRECTIONS = 2

#: How far the adversary of the theorem goes, in root mean squares of a bounded feature.
_NEAR = 4.0

#: The value of the constant model at λ = 0.
_CONSTANT = math.log(2.0)


@dataclass(frozen=True, eq=False)
class PieceBound:
    """A lower bound, and what it took.

    That is the factor of the scaling, and the dual point, corrected but not scaled.
    """

    value: float
    factor: float
    weights: State


def piece_bound(problem: Problem, weights: State, wanted: float = math.inf) -> PieceBound:
    """The best bound that masses of pieces prove, with p corrected where that helps.

    A bound of ``wanted`` ends the search.
    """
    rows = problem.rows
    weights, _ = rows.run(within, weights)
    if immovable_columns(problem).size:
        weights, _ = rows.run(without_specks, weights)
    here = WeightSums.of(rows, weights)
    best = _bound(problem, here)
    # Corrections are for equations: they do not raise the value itself.
    hopeless = wanted < math.inf and rows.run(scaled_value, weights, 1.0)[1][0] < wanted
    for threshold in () if hopeless else _THRESHOLDS:
        there: WeightSums | None = here
        for _ in range(_CORRECTIONS):
            if best.value >= wanted:
                return best
            assert there is not None
            there = Equations.of(problem, there, threshold).corrected(there)
            if there is None:
                break
            best = max(best, _bound(problem, there), key=lambda bound: bound.value)
    return best


def _bound(problem: Problem, here: WeightSums) -> PieceBound:
    nothing = PieceBound(0.0, 0.0, here.weights)
    exact = nearby(problem, here)
    if exact is None:
        return nothing
    p = problem.rows.n_columns
    scale = problem.rows.column_scale
    slack = exact.distance * 0.5 + _noise(problem) * here.size
    across = problem.transport_norm(np.abs(here.g[:p]) + slack * scale)
    leftover = _leftover(problem, here, exact, across)
    if not math.isfinite(leftover):
        return nothing
    used = across + here.spent * (1.0 + _noise(problem))
    factor = min(1.0, problem.epsilon / used * (1.0 - 4.0 * UNIT)) if used > 0.0 else 1.0
    _, (value, square) = problem.rows.run(scaled_value, here.weights, factor)
    charge = (math.sqrt(float(square)) + exact.distance) * exact.distance + leftover
    return PieceBound(max(float(value) - factor * charge, 0.0), factor, here.weights)


def _noise(problem: Problem) -> float:
    """What rounding may make of a sum over pieces, relative to the sum of its terms' sizes.

    A piece's entry is that of its sample and a change: twice its size goes through the sum.
    """
    return 2.0 * rounding_of_sum(problem.rows.n_samples) + 64.0 * UNIT


def _leftover(problem: Problem, here: WeightSums, exact: Nearby, across: float) -> float:
    """``r S``; infinite where nothing bounds a coefficient.  ``across`` bounds ``‖c g'_U‖``."""
    domains = problem.domains
    assert domains is not None
    noise, total = _noise(problem), here.total
    moved = exact.moved + noise * total
    negative, positive = here.classes
    # Σ p |x_j| and, because moves cost what they cost, Σ p |e_j| over the pieces.
    scale = problem.rows.column_scale[domains.bounded]
    stay, away = here.size * scale, here.spent / domains.bounded_costs
    lower, upper = _near(domains, scale)
    furthest = np.maximum(np.abs(lower), np.abs(upper))
    left = here.g[domains.bounded]
    change = 0.5 * exact.distance * scale + exact.furthest * away + noise * (stay + 2.0 * away)
    if exact.offset is None:
        tau = min(negative, positive) - moved
        sigma = np.minimum(negative * upper - positive * lower, positive * upper - negative * lower)
        sigma -= 2.0 * moved * furthest
    else:
        tau = 0.5 * (total - moved)
        sigma = tau * (upper - lower)
        left = left - 0.5 * exact.offset * (lower + upper)
        change += moved * furthest
    if not (tau > 0.0 and (sigma > 0.0).all()):
        return math.inf
    excess = np.maximum(_excesses(problem, here.g), 0.0) + 2.0 * noise * total + exact.moved
    ratio = max(
        np.max((np.abs(left) + change) / sigma, initial=0.0), np.max(excess / tau, initial=0.0)
    )
    spent = float(domains.group_costs.sum()) * (total + moved)
    # To an end it is no further than the domain is wide, nor than both are from zero.
    reach = stay + 0.5 * exact.distance * scale + (total + moved) * furthest
    spent += float(domains.bounded_costs @ np.minimum(reach, (total + moved) * domains.widths))
    if here.flipped > 0.0:
        spent += problem.kappa * (here.flipped + moved)
    return float(ratio) * _CONSTANT * max(1.0, (across + spent) / problem.epsilon)


def _near(domains: Domains, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends ``l', u'`` within the bounds and, if these are far away, not far from the samples."""
    far = np.where(scale > 0.0, _NEAR * scale, np.inf)
    return np.maximum(domains.lower, -far), np.minimum(domains.upper, far)


def _excesses(problem: Problem, g: FloatArray) -> FloatArray:
    """E_g before it is cut off at zero: by how much each group's categories outweigh its moves."""
    domains = problem.domains
    assert domains is not None
    p, n_groups = problem.rows.n_columns, domains.n_groups
    low, high = g[p : p + n_groups], g[p + n_groups :]
    excess = np.zeros(n_groups)
    for k, group in enumerate(domains.groups):
        entries = g[group]
        if domains.with_none[k]:
            up, down = np.maximum(entries, 0.0).sum(), np.maximum(-entries, 0.0).sum()
            excess[k] = max(up + high[k], down - low[k])
        else:
            excess[k] = 0.5 * (np.abs(entries).sum() - low[k] + high[k])
    return excess


def certify_domains(
    problem: Problem, coefficients: FloatArray, weights: State | None, tol: float
) -> Certificate:
    """Exact value of a point, at its best λ, and the bound of a dual point, if there is one."""
    lam, value = best_price(problem, coefficients)
    primal = value + _rounding_of_margins(problem, coefficients)
    if weights is None:
        none = problem.rows.run(no_flips)[0]
        return Certificate(primal, 0.0, lam, none, none, coefficients)
    bound = piece_bound(problem, weights, wanted=primal - tol)
    flips, _ = problem.rows.run(flip_shares, bound.weights)
    doubt, _ = problem.rows.run(mean_slopes, bound.weights)
    return Certificate(primal, bound.value, lam, doubt, flips, coefficients, bound.weights)


def _rounding_of_margins(problem: Problem, coefficients: FloatArray) -> float:
    """What rounding of margins, after moves as well, may hide: the loss has a slope of one."""
    domains = problem.domains
    assert domains is not None
    low, high = domains.ranges(coefficients)
    size = float(np.abs(coefficients) @ problem.rows.column_scale + (high - low).sum())
    size += float(np.abs(coefficients[domains.bounded]) @ domains.widths)
    return rounding_of_sum(coefficients.size) * size
