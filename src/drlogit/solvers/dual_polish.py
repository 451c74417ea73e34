"""The best lower bound that given flip shares allow.

For fixed ``a`` the dual of (P), or of (B) at fixed λ, is the dual of a smooth problem:

    minimise  Σ w_i [h(u_i) + a_i u_i]   over  ‖β/c‖_* ≤ λ            (B)
    minimise  Σ w_i [h(u_i) + a_i u_i] + (ε - κ Σ w_i a_i) ‖β/c‖_*    (P)

whose solution β̃ gives the best ``s = 1/(1+e^{Zβ̃})``.  A first-order method's ``a`` is good long
before its β is, because errors enter the bound through the norm of the gradient, all of
them with a plus sign.  One Newton step from its β (a quadratic over the ball, solved as
in the β-step, but with the logistic Hessian) removes most of that.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from ..certificate import DIRECT_LIMIT, DualBound, dual_bound
from ..losses import FloatArray, flip_probability
from ..problem import Problem
from ..rows import Block, State, Sum
from .beta_step import BetaStep

#: Newton steps with one Hessian; what they leave is far below the error of ``a``.
_STEPS = 2

#: The radius sought is at most this power of two above the one at hand.
_DOUBLINGS = 5


def polished_bound(
    problem: Problem,
    beta: FloatArray,
    flip_share: State,
    *,
    lam: float | None = None,
    wanted: float = math.inf,
) -> DualBound:
    """Lower bound of (P), or of (B) at ``lam``, from shares ``a`` and a β near the optimum."""
    if problem.rows.n_columns > DIRECT_LIMIT:
        return dual_bound(problem, beta, flip_share, lam=lam, wanted=wanted)
    _, (hessian, gradient, flips) = problem.rows.run(_model, flip_share, beta)
    step = BetaStep.from_matrix(problem, hessian)
    point = beta
    for k in range(_STEPS):
        if k > 0:
            _, (gradient,) = problem.rows.run(_gradient, flip_share, point)
        target = hessian @ point + gradient
        if lam is not None:
            point = step(target, lam, point, 0.0)
        else:
            budget = problem.epsilon - (problem.kappa * flips if flips > 0.0 else 0.0)
            point = _penalised_step(problem, step, hessian, target, budget, point)
    return dual_bound(problem, point, flip_share, lam=lam, wanted=wanted, hessian=hessian)


def _penalised_step(
    problem: Problem,
    step: BetaStep,
    hessian: FloatArray,
    target: FloatArray,
    budget: float,
    point: FloatArray,
) -> FloatArray:
    """Minimiser of ``½βᵀHβ - targetᵀβ + budget·‖β/c‖_*``, as the ball with the right radius.

    The norm of the gradient at the constrained minimiser falls as the radius grows; the
    right radius is where it meets the budget.
    """

    def excess(radius: float) -> float:
        solution = step(target, radius, point, 0.0)
        return problem.transport_norm(target - hessian @ solution) - budget

    # Between zero, where the gradient is largest, and a radius at which it is small enough.
    high = max(problem.dual_norm(point), 1e-6 * problem.lambda_upper_bound)
    for _ in range(_DOUBLINGS):
        if excess(high) <= 0.0:
            break
        high *= 2.0
    else:
        return step(target, high, point, 0.0)
    if excess(0.0) <= 0.0:
        return step(target, 0.0, point, 0.0)
    return step(target, float(brentq(excess, 0.0, high, xtol=1e-12 * high)), point, 0.0)


def _model(
    block: Block, a: FloatArray, beta: FloatArray
) -> tuple[FloatArray, tuple[Sum, Sum, Sum]]:
    """Hessian and gradient (with a minus) of the smooth problem, and ``Σ w a``."""
    s = flip_probability(block.margins(beta))
    return a, (
        Sum(block.gram(block.weights * s * (1.0 - s))),
        Sum(block.adjoint(block.weights * (s - a))),
        Sum(float(block.weights @ a)),
    )


def _gradient(block: Block, a: FloatArray, beta: FloatArray) -> tuple[FloatArray, tuple[Sum]]:
    s = flip_probability(block.margins(beta))
    return a, (Sum(block.adjoint(block.weights * (s - a))),)
