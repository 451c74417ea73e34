"""Solutions moved to the face of the constraint that they lie next to.

Interior points and splitting methods come close to ``‖β/c‖_* = λ`` and to β = 0 without ever
arriving: a model that is constant then predicts from the last digits of its solver.  Here a
certified solution is compared with the points that it is close to,

* the null model, which is optimal from ``epsilon_max`` on: its value is an entropy, known without
  a look at the features;
* with ℓ∞ transport (``Σ|β_j/c_j| ≤ λ``) the point whose negligible coefficients are zero;
* with ℓ1 transport (``|β_j/c_j| ≤ λ``) the point whose coefficients next to the bound are there,

and gives way to them.  This can do no harm.  The lower bound holds for every β: of the new point
it proves a gap that is within ``tol`` if that of the old one was.  The null model must not be
worse by more than a thousandth of ``tol``; a face may cost, where margins leave the kink of the
loss, as much as the gap, which is what the solver left undecided anyhow.  It takes a product or two
with the data, and none where there is nothing to move.  With domains, and with several classes,
there is the null model only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from ..dual.certify import Certificate, primal_value
from ..engine.classes import null_model_of_classes
from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from .null_model import (
    constant_model,
    constant_value,
    has_immovable_features,
    levelled_model,
    null_model,
    weight_of_positives,
)

#: The null model may be worse than the solution by this share of ``tol``, which is not for last
#: bits to decide, and by the relative error of an objective: 1e-16 times the root of some thousand.
_UNDECIDED = 1e-3
_ROUNDING = 1e-14

#: Coefficients count as negligible up to these multiples of ``gap/ε``, fewer of them where all
#: together cost too much.  A multiplier of the order of ε keeps them where they are, and a product
#: of both is part of the gap.
_NEXT_TO = (10.0, 1.0)

#: ... but never if they are more than this share of the largest.
_LARGE = 1e-3

#: With immovable features the null model is fitted if the solution without the other coefficients
#: has a gap of at most this multiple of √tol: it is not yet the null model, and next to a kink of
#: the loss its distance from that, not the square of it, adds to the gap.
_PLAUSIBLE = 1.0


def on_exact_face(
    problem: Problem | ClassProblem,
    coef: FloatArray,
    intercept: Any,
    certificate: Certificate,
    tol: float,
) -> tuple[FloatArray, Any, Certificate]:
    """The solution ``(β, b)``, or a point of a face next to it, and its certificate."""
    coefficients = problem.join(coef, intercept)
    if is_constant(problem, coefficients):
        return coef, intercept, certificate
    rounding = certificate.primal * (1.0 + _ROUNDING)
    room = min(certificate.primal + _UNDECIDED * tol, certificate.dual + tol)
    no_worse = max(rounding, room)
    if isinstance(problem, ClassProblem):
        return _null_of_classes(problem, coefficients, certificate, tol, no_worse)
    numbers = problem
    if problem.domains is not None:
        numbers = problem.as_numbers
    elif not problem.penalised.any():
        return coef, intercept, certificate
    nulls = _null_models(numbers, coefficients, certificate, tol, no_worse)
    if numbers is not problem and not problem.fit_intercept:  # a group may stand for the intercept
        nulls = chain([_levelled(problem, coefficients)], nulls)
    for null in nulls:
        if problem.objective(problem.join(*problem.split(null))) <= no_worse:
            return *problem.split(null), _under_same_bound(problem, null, certificate)
    if problem.domains is not None:
        return coef, intercept, certificate
    for next_to in _NEXT_TO:
        face = _face(problem, coefficients, certificate, next_to)
        if face is None:
            break
        moved = _under_same_bound(problem, face, certificate)
        if moved.gap <= max(certificate.gap, min(2.0 * certificate.gap, tol)):
            return *problem.split(face), moved
    return coef, intercept, certificate


def is_constant(problem: Problem | ClassProblem, coefficients: FloatArray) -> bool:
    """Whether no feature that the adversary can move has an effect."""
    if isinstance(problem, ClassProblem):
        used = np.ptp(coefficients[:, problem.penalised], axis=0)
        return used.size > 0 and not used.any()
    used = coefficients[problem.penalised]
    if problem.domains is not None:
        low, high = problem.domains.ranges(coefficients)
        used = np.concatenate([used, high - low, coefficients[problem.domains.bounded]])
    return used.size > 0 and not used.any()


def _null_of_classes(
    problem: ClassProblem,
    coefficients: FloatArray,
    certificate: Certificate,
    tol: float,
    no_worse: float,
) -> tuple[FloatArray, Any, Certificate]:
    """The null model of several classes, if it is no worse."""
    alone = np.where(problem.free, coefficients, 0.0)  # a rough null model
    plausible = problem.penalised.any() and (
        problem.objective(alone) - certificate.dual <= _PLAUSIBLE * math.sqrt(tol)
    )
    if plausible:
        found = null_model_of_classes(problem) if problem.free.any() else alone
        coef, intercept = problem.split(found)
        lam, value = problem.best(problem.join(coef, intercept))
        if value <= no_worse:
            return coef, intercept, replace(certificate, primal=value, lam=lam)
    return *problem.split(coefficients), certificate


def _levelled(problem: Problem, coefficients: FloatArray) -> FloatArray:
    """The solution without what it says of features that the adversary can move."""
    level = np.where(problem.free, coefficients, 0.0)
    if problem.domains is not None:
        level[problem.domains.bounded] = 0.0
        for group, none in zip(problem.domains.groups, problem.domains.with_none, strict=True):
            level[group] = 0.0 if none else level[group].mean()
    return level


def _null_models(
    problem: Problem,
    coefficients: FloatArray,
    certificate: Certificate,
    tol: float,
    no_worse: float,
) -> Iterator[FloatArray]:
    """Models without penalised features, as long as they may be optimal."""
    positive = weight_of_positives(problem)
    if not has_immovable_features(problem):
        if constant_value(problem, positive) <= no_worse:
            yield constant_model(problem, positive)
        return
    if math.log(2.0) <= no_worse:
        yield levelled_model(problem, positive)
    # Without its other coefficients the solution is a rough null model: far above the bound, no
    # better one will be optimal.
    alone = _levelled(problem, coefficients)
    if _under_same_bound(problem, alone, certificate).gap <= _PLAUSIBLE * math.sqrt(tol):
        yield null_model(problem)


def _under_same_bound(
    problem: Problem, coefficients: FloatArray, known: Certificate
) -> Certificate:
    """Another point, as it will be returned, with the lower bound that is known."""
    coefficients = problem.join(*problem.split(coefficients))
    if problem.domains is not None:
        from ..problem.domain_loss import best_price  # compiled

        lam, primal = best_price(problem.rows, problem.cost, coefficients, problem.epsilon)
        return replace(known, primal=primal, lam=lam)
    margins = problem.margins(coefficients)
    lam, primal = primal_value(problem, coefficients, margins, None, known.lam)
    return replace(known, primal=primal, lam=lam)


def _face(
    problem: Problem, coefficients: FloatArray, certificate: Certificate, next_to: float
) -> FloatArray | None:
    """The coefficients with those next to a bound moved there; None if there are none."""
    kept = problem.penalised
    theta = coefficients[kept] / problem.costs[kept]
    size = np.abs(theta)
    largest = float(size.max())
    near = min(next_to * certificate.gap / problem.epsilon, _LARGE * largest)
    if problem.norm.name == "linf":
        exact = np.where(size <= near, 0.0, theta)
    elif problem.norm.name == "l1" and certificate.lam <= largest + near:
        exact = np.where(largest - size <= near, np.copysign(largest, theta), theta)
    else:
        return None  # λ is larger than any coefficient, or the ball is round
    if (exact == theta).all():
        return None
    moved = coefficients.copy()
    moved[kept] = np.where(exact == theta, coefficients[kept], exact * problem.costs[kept])
    return moved
