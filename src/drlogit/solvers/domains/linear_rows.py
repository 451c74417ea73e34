"""Linear inequalities beside the pieces: what ties categories to their group, and trust rows.

    β_k - low_g ≥ 0,   high_g - β_k ≥ 0          for every category k of group g (β = 0 for "none")
    T_g c_g λ - (high_g - low_g) ≥ 0             trust rows of groups
    T_j c_j λ ∓ β_j ≥ 0                          trust rows of bounded features

At T = 1 the trust rows say that no item pays, which is the model of the same data as numbers; the
larger T, the less they say.  They are no part of the problem: they keep the iterates where
few pieces matter, follow them outwards, and are left out of every bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...problem.domains import Domains
from ...rows.arrays import FloatArray, IndexArray
from ..interior_point.norm_cone import ConeStep, LinearCone

#: A trust row is at least so far out, and so far beyond what the iterate asks for.
_LEAST_TRUST = 1.1
_AHEAD = 1.2
_AHEAD_AT_START = 1.3


@dataclass(frozen=True, eq=False)
class LinearRows(LinearCone):
    """The inequalities ``body x + price λ ≥ 0`` with slacks and multipliers.

    The last ``costs.size`` of them are trust rows.  Products aim at ``weight · centre``.
    """

    body: _Body
    price: FloatArray
    costs: FloatArray

    @classmethod
    def at(
        cls, domains: Domains, n_columns: int, x: FloatArray, lam: float, mu: float, weight: float
    ) -> LinearRows:
        """All rows at a point inside the groups' ones, on the central path."""
        body, costs = _body(domains, n_columns)
        n_true = body.columns.shape[1] - costs.size
        asked = np.maximum(-(body @ x)[n_true:], 0.0) / (costs * lam)
        price = np.zeros(body.columns.shape[1])
        price[n_true:] = costs * np.maximum(_LEAST_TRUST, _AHEAD_AT_START * asked)
        slack = body @ x + price * lam
        return cls(slack, weight * mu / slack, weight, body, price, costs)

    @property
    def n_true(self) -> int:
        return self.slack.size - self.costs.size

    def gradient(self) -> tuple[FloatArray, float]:
        """What the multipliers add to the optimality conditions in x and λ."""
        return -(self.body.adjoint(self.multiplier)), -float(self.price @ self.multiplier)

    def trust_gradient(self) -> tuple[FloatArray, float]:
        """The part of it that is the trust rows'."""
        z = np.where(np.arange(self.slack.size) < self.n_true, 0.0, self.multiplier)
        return -(self.body.adjoint(z)), -float(self.price @ z)

    def without_trust(self) -> LinearRows:
        """The rows of the problem itself."""
        n = self.n_true
        return LinearRows(
            self.slack[:n], self.multiplier[:n], self.weight,
            self.body.first(n), self.price[:n], np.empty(0),
        )  # fmt: skip

    def pushed(self, step: ConeStep) -> LinearRows:
        """The same slacks with multipliers that moved, as far as they may."""
        return replace(self, multiplier=np.maximum(self.multiplier + step.multiplier, 0.0))

    def curvature(self) -> tuple[FloatArray, FloatArray, float]:
        """Blocks of the matrix: x with x, x with λ, λ with λ."""
        stiff = self.multiplier / self.slack
        priced = stiff * self.price
        return self.body.gram(stiff), self.body.adjoint(priced), float(priced @ self.price)

    def drive(self, aim: FloatArray) -> tuple[FloatArray, float]:
        push = aim / self.slack
        return -(self.body.adjoint(push)), -float(self.price @ push)

    def direction(self, dx: FloatArray, dlam: float, aim: FloatArray) -> ConeStep:
        slack = self.body @ dx + self.price * dlam
        return ConeStep(slack, (aim - self.multiplier * slack) / self.slack)

    def moved_to(
        self, x: FloatArray, lam: float, step: ConeStep, dual: float, mu: float, held: bool
    ) -> LinearRows:
        """The rows at a new point; trust rows follow outwards.

        With ``held`` those whose multipliers are largest take what pieces should: they double.
        """
        n_true = self.n_true
        multiplier = self.multiplier + dual * step.multiplier
        asked = np.maximum(-(self.body @ x)[n_true:], 0.0) / (self.costs * lam)
        trust = np.maximum(
            self.price[n_true:] / self.costs, np.maximum(_LEAST_TRUST, _AHEAD * asked)
        )
        if held and self.costs.size:
            pull = multiplier[n_true:] * self.costs
            trust = np.where(pull > 0.1 * pull.max(), 2.0 * trust, trust)
        price = self.price.copy()
        price[n_true:] = self.costs * trust
        slack = self.body @ x + price * lam
        wider = np.flatnonzero(price > self.price)
        multiplier[wider] = self.weight * mu / slack[wider]
        return replace(self, price=price, slack=slack, multiplier=multiplier)


@dataclass(frozen=True, eq=False)
class _Body:
    """Rows with two entries each, the second of which may be zero."""

    columns: IndexArray  # in two rows
    entries: FloatArray
    width: int

    def __matmul__(self, x: FloatArray) -> FloatArray:
        return np.asarray((self.entries * x[self.columns]).sum(axis=0))

    def adjoint(self, z: FloatArray) -> FloatArray:
        return np.bincount(
            self.columns.ravel(), (self.entries * z).ravel(), minlength=self.width
        ).astype(np.float64)

    def gram(self, d: FloatArray) -> FloatArray:
        places = self.columns[:, None] * self.width + self.columns
        products = d * self.entries[:, None] * self.entries
        flat = np.bincount(places.ravel(), products.ravel(), minlength=self.width**2)
        return flat.reshape(self.width, self.width).astype(np.float64)

    def first(self, n: int) -> _Body:
        return _Body(self.columns[:, :n], self.entries[:, :n], self.width)


def _body(domains: Domains, n_columns: int) -> tuple[_Body, FloatArray]:
    """The rows without λ, trust rows last, and the costs of the latter."""
    n_groups = domains.n_groups
    low = n_columns + np.arange(n_groups)
    high = low + n_groups
    grouped = np.concatenate([*domains.groups, np.empty(0, dtype=np.intp)]).astype(np.intp)
    below, above = low[domains.group_of], high[domains.group_of]
    none = domains.with_none
    bounded = domains.bounded
    parts = [
        (grouped, 1.0, below, -1.0),
        (above, 1.0, grouped, -1.0),
        (low[none], -1.0, low[none], 0.0),
        (high[none], 1.0, high[none], 0.0),
        (low, 1.0, high, -1.0),
        (bounded, -1.0, bounded, 0.0),
        (bounded, 1.0, bounded, 0.0),
    ]
    columns = [np.concatenate([one for one, _, _, _ in parts])]
    columns.append(np.concatenate([other for _, _, other, _ in parts]))
    entries = [np.concatenate([np.full(one.size, value) for one, value, _, _ in parts])]
    entries.append(np.concatenate([np.full(one.size, value) for one, _, _, value in parts]))
    body = _Body(np.stack(columns).astype(np.intp), np.stack(entries), n_columns + 2 * n_groups)
    return body, np.concatenate([domains.group_costs, domains.bounded_costs, domains.bounded_costs])
