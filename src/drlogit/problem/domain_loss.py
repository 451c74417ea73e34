"""The worst-case loss of a linear model whose features have domains, at every radius at once.

With ``R_i(λ)`` from :mod:`drlogit.problem.worst_moves`, problem (P) becomes

    (P')   minimise over β, b, λ   F(β, b, λ) = ελ + Σ w_i R_i(β, b, λ)    s.t.  ‖β_U/c‖_* ≤ λ,

convex because ``R_i`` is a maximum of convex functions.  For given ``(β, b)`` each ``R_i`` is a
maximum of lines in λ, so with the edges e of all samples' envelopes, their rates and costs,

    F(λ) = ελ + Σ w_i h(u_i) + Σ_e w_e cost_e (rate_e - λ)_+ .

Its minimiser is the smallest rate above which edges cost at most ε together, or ``‖β_U/c‖_*`` if
that is larger: a weighted quantile, found exactly.  Read the other way round, the adversary takes
edges in the order of their rates until ε is spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from .domains import ItemTable
from .losses import log_loss
from .transport import TransportCost
from .weighted_quantile import Weighted, upper_quantile
from .worst_moves import Envelopes, Weighed, envelopes

#: The share of a guessed λ above which the best one should be.
_BELOW = 0.95


class Edges(NamedTuple):
    """A block's envelopes, the rates and masses of their edges, and the scores they belong to."""

    table: ItemTable
    scores: FloatArray
    envelopes: Envelopes
    mass: FloatArray  # w cost


@dataclass(frozen=True, eq=False)
class Prices:
    """What the adversary can buy of a model, and at which prices."""

    rows: Rows
    least: float  # ‖β_U/c‖_*
    loss: float  # Σ w h(u)
    edges: State
    model: Weighed

    @cached_property
    def _rates(self) -> State:
        return self.rows.run(_rates, self.edges)[0]

    def best_lambda(self, epsilon: float) -> float:
        """The λ that minimises F."""
        return upper_quantile(self.rows, self._rates, epsilon, self.least)

    def value(self, epsilon: float, lam: float | None = None) -> float:
        """``F(λ)``, by default at the best λ; infinite where λ is not allowed."""
        if lam is None:
            lam = self.best_lambda(epsilon)
        elif lam < self.least * (1.0 - 1e-12):
            return float("inf")
        _, (gained,) = self.rows.run(_gained, self._rates, lam)
        return epsilon * lam + self.loss + float(gained)


def prices_of(
    rows: Rows, cost: TransportCost, coefficients: FloatArray, *, floor: float = 0.0
) -> Prices:
    """The prices of a model on samples with domains; with ``floor`` only those above it."""
    if cost.domains is None:
        raise ValueError("the features have no domains")
    model = Weighed.by(cost.domains, coefficients)
    least = max(cost.dual_norm(coefficients), floor)
    tables = cost.domains.tables(rows)
    edges, (loss,) = rows.run(_edges, tables, coefficients, cost.kappa, least, model)
    return Prices(rows, least, float(loss), edges, model)


def best_price(
    rows: Rows,
    cost: TransportCost,
    coefficients: FloatArray,
    epsilon: float,
    guess: float | None = None,
) -> tuple[float, float]:
    """The best λ of a model at a radius, and ``F`` there.

    Edges with a rate below the best λ do not matter: only those above a little less than ``guess``
    are listed; all of them, if that was too high.
    """
    if guess is not None:
        prices = prices_of(rows, cost, coefficients, floor=_BELOW * guess)
        lam = prices.best_lambda(epsilon)
        if lam > prices.least or prices.least == cost.dual_norm(coefficients):
            return lam, prices.value(epsilon, lam)
    prices = prices_of(rows, cost, coefficients)
    lam = prices.best_lambda(epsilon)
    return lam, prices.value(epsilon, lam)


def _edges(
    block: Block,
    table: ItemTable,
    coefficients: FloatArray,
    kappa: float,
    least: float,
    model: Weighed,
) -> tuple[Edges, tuple[Sum]]:
    margins = block.margins(coefficients)
    scores = block.y * margins
    found = envelopes(scores, block.y, block.flip_costs(kappa), least, table, model)
    mass = block.weights[found.own] * found.cost
    return Edges(table, scores, found, mass), (Sum(float(block.weights @ log_loss(margins))),)


def _rates(block: Block, edges: Edges) -> tuple[Weighted, tuple[()]]:
    return (edges.envelopes.rate, edges.mass), ()


def _gained(block: Block, state: Weighted, lam: float) -> tuple[Weighted, tuple[Sum]]:
    rates, mass = state
    return state, (Sum(float(mass @ np.maximum(rates - lam, 0.0))),)
