"""Correct a dual candidate until the bound it proves is as good as it gets.

Move s so that ``g = Σ w_i (s_i - a_i) z_i`` becomes zero on free columns and fits into the ball
that the constraint allows, at the least cost to the bound.  The step comes from a quadratic model
with the logistic Hessian (:mod:`drlogit.problem.dual_step`); it is linear in s, so that the
equations hold exactly, as long as s stays in [0, 1], and damped and in β̃ where it does not.  The
bound then loses second order in the error of β̃.
"""

from __future__ import annotations

import math

import numpy as np

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Max, Sum
from .dual_bounds import DualBound, balanced_bound, held_bound, levelled_bound
from .dual_candidates import Candidate, DualState
from .dual_step import DenseModel, DualModel, ImplicitModel
from .few_samples import bound_by_few
from .flip_shares import no_flips
from .free_equations import (
    FreeEquations,
    free_equations,
    intercept_equation,
    with_held_columns,
)
from .problem import Problem

#: Up to this many coefficients the correction factors the Hessian; beyond, it uses CG.
DIRECT_LIMIT = 3000

#: Steps in β̃ before the linear one; near a solution none is needed.
_MAX_MOVES = 3

#: Rounds in which samples are taken out where free equations cannot be met.
_ROUNDS = 6

#: If that is not enough, samples whose ``w s`` and ``w a`` are below this share of the mean weight
#: go first: beside others they are too light for the Hessian to see them.
_LIGHT = (0.0, 1e-9, 1e-7, 1e-5)

#: Share of the mean weight below which ``w s`` is what rounding left of nothing.
_LEFTOVER = 1e-12

#: Free columns whose matrix is put together by products with it where no Hessian is formed.
_FEW_FREE = 64


def dual_bound(
    problem: Problem,
    coefficients: FloatArray,
    flip_share: State,
    *,
    step: FloatArray | None = None,
    doubt: State | None = None,
    lam: float | None = None,
    wanted: float = math.inf,
) -> DualBound:
    """Best lower bound from the candidate ``(β̃, a)``, stopping early once it is ``wanted``.

    With ``step`` the candidate is the one that a linear step from β̃ leads to; with ``doubt`` its s
    is given, and β̃ only stands for it.
    """
    if not problem.cost.pair.flips:
        flip_share = no_flips(problem, flip_share)
    if doubt is None:
        candidate = Candidate.at(problem, coefficients, flip_share, step)
    else:
        candidate = Candidate.given(problem, coefficients, doubt, flip_share)
    if lam is None:
        candidate = candidate.within_budget(problem)
    best = balanced_bound(problem, candidate, lam)
    if best.value >= wanted:
        return best
    level = best
    if lam is None and problem.cost.pair.flips:
        level = levelled_bound(problem, candidate)
        if level.value >= wanted:
            return level
    return _better(level, _corrected(problem, candidate, best, lam, wanted))


def _corrected(
    problem: Problem, candidate: Candidate, best: DualBound, lam: float | None, wanted: float
) -> DualBound:
    """The best bound of a candidate and its corrections, or the first that is enough."""
    candidate = first = candidate.with_curvature(problem)
    model = quadratic_model(problem, candidate.state)
    equations = _equations(problem, model, candidate.state)
    if equations is not None:  # now that there is a way to pay for them
        best = _better(best, balanced_bound(problem, candidate, lam, equations))
        if best.value >= wanted:
            return best
    shifted = None
    for _ in range(_MAX_MOVES + 1):
        step = model.step(
            candidate.gradient, candidate.coefficients, candidate.budget(problem), lam
        )
        shifted = candidate.shifted(problem, step)
        if shifted is not None:
            break
        damped = _damped(problem, step)
        if damped is None:
            break
        candidate = candidate.moved(problem, damped)
        best = _better(best, balanced_bound(problem, candidate, lam, equations))
        if best.value >= wanted:
            return best
    best = _settled(problem, model, equations, shifted, best, lam, wanted)
    if best.value < wanted and lam is None and candidate.feels_rounding(problem):
        best = _better(best, _held(problem, shifted or candidate, wanted))
    if best.value > 0.0 or best.value >= wanted or problem.free.sum() == problem.fit_intercept:
        return best
    # Free equations that could not be met: the bound is still the trivial one.
    if lam is None:
        best = _better(best, bound_by_few(problem, first) or best)
        if best.value > 0.0:
            return best
    for light in _LIGHT:
        fewer = first.without_light(problem, light) if light else first
        best = _without_separated_samples(problem, fewer, best, lam, wanted)
        if best.value > 0.0:
            break
    return best


def _held(problem: Problem, candidate: Candidate, wanted: float) -> DualBound:
    """The bound of the exact point next to a candidate, where rounding counts beside ε."""
    candidate = candidate.with_curvature(problem)
    equations = None
    if problem.rows.n_columns <= DIRECT_LIMIT:
        _, (hessian,) = problem.rows.run(_hessian, candidate.state)
        free = np.flatnonzero(problem.free)
        if free.size > problem.fit_intercept:
            equations = _equations_of(problem, free, hessian[np.ix_(free, free)], candidate.state)
        elif problem.fit_intercept:
            equations = intercept_equation(candidate.curvature, problem.costs.size)
        else:
            equations = FreeEquations.none()
        if equations is not None:
            equations = with_held_columns(
                equations, np.flatnonzero(problem.penalised), hessian, problem.rows.n_samples
            )
    return held_bound(problem, candidate, equations, wanted)


def _without_separated_samples(
    problem: Problem, candidate: Candidate, best: DualBound, lam: float | None, wanted: float
) -> DualBound:
    """The correction after separated samples were taken out of the free equations.

    If free columns separate some samples and are constant on the others (quasi-separation), the
    equations force ``s = 0`` on the former.  The step says so by leaving next to nothing, or less,
    of their s; but no step from ``s > 0`` ends at 0 exactly.
    """
    for _ in range(_ROUNDS):
        model = quadratic_model(problem, candidate.state)
        step = model.step(
            candidate.gradient, candidate.coefficients, candidate.budget(problem), lam
        )
        shifted = candidate.shifted(problem, step)
        if shifted is not None:
            equations = _equations(problem, model, candidate.state)
            return _settled(problem, model, equations, shifted, best, lam, wanted)
        fewer = candidate.emptied(problem, step)
        if fewer is None:
            break
        candidate = fewer
    return best


def _settled(
    problem: Problem,
    model: DualModel,
    equations: FreeEquations | None,
    shifted: Candidate | None,
    best: DualBound,
    lam: float | None,
    wanted: float,
) -> DualBound:
    """The bound of a shifted candidate, after what is left of the free equations is removed."""
    # Rounding, and a model without H, leave something of the free equations.
    candidate = None
    for _ in range(3):
        if shifted is None:
            break
        candidate = shifted
        best = _better(best, balanced_bound(problem, candidate, lam, equations))
        imbalance = candidate.imbalance(problem)
        if best.value >= wanted or not imbalance.any():
            break
        shifted = candidate.shifted(problem, model.free_step(imbalance))
    if candidate is None or equations is None or best.value > 0.0:
        return best
    # After a long shift the curvature at its start says nothing about the room that is left, and
    # samples that the shift meant to empty may have kept the last digits of their s.
    for light in (0.0, _LEFTOVER):
        fresh = candidate.without_light(problem, light).with_curvature(problem)
        model = quadratic_model(problem, fresh.state)
        equations = _equations(problem, model, fresh.state)
        best = _better(best, balanced_bound(problem, fresh, lam, equations))
        if best.value > 0.0:
            break
    return best


def _better(one: DualBound, other: DualBound) -> DualBound:
    return other if other.value > one.value else one


def _damped(problem: Problem, step: FloatArray) -> FloatArray | None:
    """The step, shortened where margins would change too much; None if it is not finite.

    For a largest change m of a margin, ``log(1+m)/m`` is the step length with which Newton's
    method on the log-loss converges from anywhere (Bach 2010, Sun and Tran-Dinh 2019).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if float(np.abs(step) @ problem.rows.column_scale) <= 0.1:
            return step
        _, (change,) = problem.rows.run(_largest_margin, None, step)
    if not math.isfinite(change):
        return None
    return step if change <= 0.5 else step * (math.log1p(change) / change)


def quadratic_model(problem: Problem, state: State) -> DualModel:
    """The model of a candidate with this state, with or without forming the Hessian."""
    if problem.rows.n_columns > DIRECT_LIMIT:
        _, (diagonal,) = problem.rows.run(_hessian_diagonal, state)

        def product(v: FloatArray) -> FloatArray:
            _, (image,) = problem.rows.run(_hessian_product, state, v)
            return np.asarray(image)

        return ImplicitModel(problem, diagonal, product)
    _, (hessian,) = problem.rows.run(_hessian, state)
    return DenseModel(problem, hessian)


def _equations(problem: Problem, model: DualModel, state: State) -> FreeEquations | None:
    """What proves that the equations of several free columns can be met; None if nothing does."""
    free = np.flatnonzero(problem.free)
    if free.size == problem.fit_intercept:
        return None
    matrix = model.among(free) if free.size <= _FEW_FREE or isinstance(model, DenseModel) else None
    return None if matrix is None else _equations_of(problem, free, matrix, state)


def _equations_of(
    problem: Problem, free: IndexArray, matrix: FloatArray, state: State
) -> FreeEquations | None:
    """Those of these free columns, with their rows and columns of the Hessian."""
    active, _ = problem.rows.run(_active, state)
    return free_equations(problem.rows, free, matrix, active)


def _active(block: Block, state: DualState) -> tuple[BoolArray, tuple[()]]:
    """Samples that take part in the equations."""
    s, a, _ = state
    return (s > 0.0) | (a > 0.0), ()


def _hessian(block: Block, state: DualState) -> tuple[DualState, tuple[Sum]]:
    return state, (Sum(block.gram(block.weights * state[2])),)


def _hessian_product(block: Block, state: DualState, v: FloatArray) -> tuple[DualState, tuple[Sum]]:
    return state, (Sum(block.adjoint(block.weights * state[2] * block.margins(v))),)


def _hessian_diagonal(block: Block, state: DualState) -> tuple[DualState, tuple[Sum]]:
    return state, (Sum(block.squared_columns(block.weights * state[2])),)


def _largest_margin(block: Block, _: None, v: FloatArray) -> tuple[None, tuple[Max]]:
    return None, (Max(np.max(np.abs(block.margins(v)), initial=0.0)),)
