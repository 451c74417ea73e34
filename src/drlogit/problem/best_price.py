"""The best λ of a model whose features have domains, without a list of what nobody would buy."""

from __future__ import annotations

from typing import NamedTuple

from ..rows.arrays import FloatArray
from ..rows.interface import State
from .domain_loss import prices_of
from .problem import Problem

#: Samples from which the best λ is guessed, and the share of the guess above which it should be.
_SAMPLE = 20_000
_BELOW = 0.95


class BestPrice(NamedTuple):
    """The λ that minimises F for given coefficients, and ``F`` there."""

    lam: float
    value: float


def best_price(
    problem: Problem,
    coefficients: FloatArray,
    tables: State | None = None,
    guess: float | None = None,
) -> BestPrice:
    """The best λ at the problem's radius; ``tables`` are those of its domains, if at hand.

    Edges with a rate below the best λ do not matter.  So only those above a little less than
    ``guess``, by default the best λ of a sample, are listed; if that was too high, all are.
    """
    rows, cost, epsilon = problem.rows, problem.cost, problem.epsilon
    if tables is None and cost.domains is not None:
        tables = cost.domains.tables(rows)
    if guess is None and rows.n_samples > _SAMPLE:
        step = rows.n_samples // _SAMPLE + 1
        guess = prices_of(rows, cost, coefficients, tables, step=step).best_lambda(epsilon)
    if guess is not None:
        prices = prices_of(rows, cost, coefficients, tables, floor=_BELOW * guess)
        lam = prices.best_lambda(epsilon)
        if lam > prices.least or prices.least == cost.dual_norm(coefficients):
            return BestPrice(lam, prices.value(epsilon, lam))
    prices = prices_of(rows, cost, coefficients, tables)
    lam = prices.best_lambda(epsilon)
    return BestPrice(lam, prices.value(epsilon, lam))
