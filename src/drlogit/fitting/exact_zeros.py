"""Solutions moved to the zeros that they lie next to.

Interior points and splitting methods come close to coefficients of zero without ever arriving: a
model that is constant then predicts from the last digits of its solver.  Here a certified solution
is compared with the points that it is close to,

* the null model, which is optimal from ``epsilon_max`` on: its value is an entropy, known without
  a look at the features;
* with ℓ∞ transport (``Σ|β_j/c_j| ≤ λ``) the point whose negligible coefficients are zero,

and gives way to them.  This can do no harm.  The lower bound holds for every β: of the new point
it proves a gap that is within ``tol`` if that of the old one was.  The null model must not be
worse by more than a thousandth of ``tol``; zeros may cost, where margins leave the kink of the
loss, as much as the gap, which is what the solver left undecided anyhow.  It takes a product or two
with the data, and none where there is nothing to move.  With domains, and with several classes,
there is the null model only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..dual.certify import Certificate, primal_value
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from .null_model import (
    balanced_model,
    constant_model,
    constant_value,
    is_arithmetic,
    null_model,
)

#: The null model may be worse than the solution by this share of ``tol``, which is not for last
#: bits to decide.
_UNDECIDED = 1e-3

#: Coefficients count as negligible up to these multiples of ``gap/ε``, fewer of them where all
#: together cost too much.  A multiplier of the order of ε keeps them where they are, and a product
#: of both is part of the gap.
_NEXT_TO = (10.0, 1.0)

#: ... but never if they are more than this share of the largest.
_LARGE = 1e-3


def with_exact_zeros(
    problem: Problem, coefficients: FloatArray, certificate: Certificate, tol: float
) -> tuple[tuple[FloatArray, Any], Certificate] | None:
    """A nearby point ``(β, b)`` with exact zeros and its certificate, or None."""
    if is_constant(problem, coefficients):
        return None
    room = min(certificate.primal + _UNDECIDED * tol, certificate.dual + tol)
    no_worse = max(certificate.primal, room)
    for null in _null_models(problem, coefficients, certificate, tol, no_worse):
        moved = _under_same_bound(problem, null, certificate)
        if moved.primal <= no_worse:
            return problem.split(null), moved
    for sparser in _sparser(problem, coefficients, certificate):
        moved = _under_same_bound(problem, sparser, certificate)
        if moved.gap <= max(certificate.gap, min(2.0 * certificate.gap, tol)):
            return problem.split(sparser), moved
    return None


def is_constant(problem: Problem, coefficients: FloatArray) -> bool:
    """Whether no feature that the adversary can move has an effect."""
    used = coefficients[..., problem.penalised]
    if problem.several:
        used = np.ptp(used, axis=0)
    if problem.domains is not None:
        low, high = problem.domains.ranges(coefficients)
        used = np.concatenate([used, high - low, coefficients[problem.domains.bounded]])
    return used.size > 0 and not used.any()


def _under_same_bound(
    problem: Problem, coefficients: FloatArray, known: Certificate
) -> Certificate:
    """The certificate of another point, with the known lower bound."""
    returned = problem.join(*problem.split(coefficients))
    lam, primal = primal_value(problem, returned, known.lam)
    return replace(known, primal=primal, lam=lam)


def _null_models(
    problem: Problem,
    coefficients: FloatArray,
    certificate: Certificate,
    tol: float,
    no_worse: float,
) -> Iterator[FloatArray]:
    """Null models that may be optimal: models without features that the adversary can move."""
    numbers = problem.as_numbers
    if not numbers.penalised.any():
        return
    if not numbers.several:
        if numbers is not problem and not numbers.fit_intercept:  # a group may stand for it
            yield _levelled(problem, coefficients)
        if is_arithmetic(numbers):
            if constant_value(numbers) <= no_worse:
                yield constant_model(numbers)
            return
        if math.log(2.0) <= no_worse:
            yield balanced_model(numbers)
    # Without its other coefficients the solution is a rough null model.  It is not yet the best
    # one, and next to a kink of the loss its distance from that, not the square of it, adds to the
    # gap; but far above the bound, no better one will be optimal.
    alone = _levelled(problem, coefficients)
    if _under_same_bound(problem, alone, certificate).gap <= math.sqrt(tol):
        yield null_model(numbers)


def _levelled(problem: Problem, coefficients: FloatArray) -> FloatArray:
    """The solution with coefficients of movable features set to zero."""
    level = np.where(problem.free, coefficients, 0.0)
    if problem.domains is not None:
        level[problem.domains.bounded] = 0.0
        for group, none in zip(problem.domains.groups, problem.domains.with_none, strict=True):
            level[group] = 0.0 if none else level[group].mean()
    return level


def _sparser(
    problem: Problem, coefficients: FloatArray, certificate: Certificate
) -> Iterator[FloatArray]:
    """Copies of the coefficients with the negligible ones set to zero."""
    kept = problem.penalised
    plain = not problem.several and problem.domains is None
    if not plain or problem.norm.name != "linf" or not kept.any():
        return
    size = np.abs(coefficients / problem.costs)
    for next_to in _NEXT_TO:
        near = min(next_to * certificate.gap / problem.epsilon, _LARGE * size.max())
        negligible = kept & (size > 0.0) & (size <= near)
        if not negligible.any():
            return
        yield np.where(negligible, 0.0, coefficients)
