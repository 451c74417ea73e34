"""The worst-case loss of a linear model whose features have domains, as a function of λ.

With ``R_i(λ)`` from :mod:`drlogit.problem.worst_moves`, problem (P) becomes

    (P')   minimise over β, b, λ   F(β, b, λ) = ελ + Σ w_i R_i(β, b, λ)    s.t.  ‖β_U/c‖_* ≤ λ,

convex because ``R_i`` is a maximum of convex functions.  For given ``(β, b)`` each ``R_i`` is a
maximum of lines in λ, so with the edges e of all samples' envelopes, their rates and costs,

    F(λ) = ελ + Σ w_i h(u_i) + Σ_e w_e cost_e (rate_e - λ)_+ .

If a label flips at no cost (κ = 0), the envelope begins at the worse label, which adds ``(u_i)_+``
at every λ.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows
from ..rows.reductions import Sum
from .domains import Domains, items_of
from .losses import log_loss
from .robust_loss import RobustLoss
from .transport import TransportCost
from .worst_moves import WorstMoves

#: Rates of a block's edges, the total cost of each, and the gain of flips at no cost.
Edges: TypeAlias = tuple[FloatArray, FloatArray, float]


def domain_loss(
    rows: Rows, cost: TransportCost, coefficients: FloatArray, floor: float
) -> RobustLoss:
    """The worst-case loss of a model on samples with domains, at λ of at least ``floor``.

    Edges with lower rates are left out.
    """
    domains = cost.domains
    assert domains is not None
    least = max(cost.dual_norm(coefficients), floor)
    edges, (loss,) = rows.run(_edges, None, coefficients, domains, cost.kappa, least)
    return RobustLoss(rows, least, float(loss), _gained, edges)


def _edges(
    block: Block,
    _: None,
    coefficients: FloatArray,
    domains: Domains,
    kappa: float,
    least: float,
) -> tuple[Edges, tuple[Sum]]:
    margins = block.margins(coefficients)
    w, flips, moves = block.weights, block.flip_costs(kappa), WorstMoves(domains, coefficients)
    found = moves.envelopes(items_of(block, domains), block.y * margins, block.y, flips, least)
    free = float(w @ np.where(flips > 0.0, 0.0, np.maximum(margins, 0.0)))
    return (found.rate, w[found.own] * found.cost, free), (Sum(float(w @ log_loss(margins))),)


def _gained(block: Block, edges: Edges, lam: float) -> tuple[Edges, tuple[Sum, Sum]]:
    rates, mass, free = edges
    above = np.maximum(rates - lam, 0.0)
    return edges, (Sum(float(mass @ above) + free), Sum(float(mass @ (above > 0.0))))
