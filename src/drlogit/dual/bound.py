"""The lower bound that a dual point proves, over all models of a stated class.

For masses q and probabilities s of pieces (rows z at cost d; the flip pair has two per sample)
Fenchel and Young alone give, for every model x and every λ ≥ ‖β/c‖_*,

    F(x, λ)  ≥  Σ q H(s) + λ (ε - used) - g·x over the free coordinates,
    g = Σ q s z,    used = ‖c g‖ + Σ q d

The bound speaks of models whose *free* coefficients are at most ``ADMITTED`` log-odds per standard
deviation, so that what is left of g there is charged.  Rounding of the sums is charged as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..problem.norms import Norm
from ..problem.parameters import ADMITTED
from ..rows.arrays import FloatArray, IndexArray

#: Kinds of coordinates; ``GROUP + g`` is a category of group g, ``-1 - g`` its highest one.
IN_NORM, FREE, GROUP = 0, 1, 2

_UNIT = 2.0**-53
_STRICTLY = 1.0 - 1e-12  # inside, so that another order of summation agrees
_OPERATIONS = 8  # roundings of a term before it is added, and of the entropy's logarithms
_UNDERFLOW = 1e-300  # more than underflow can take from any sum


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What the bound has to know of each coordinate of a model; λ is none of them.

    They are (β, b), or with domains (categories, high of each group, bounded, unbounded, b), where
    0 ≤ category ≤ high of its group.  All arrays have one entry per coordinate.

    Attributes
    ----------
    kind : int array
        ``IN_NORM``, ``FREE`` (immovable, bounded, intercept), ``GROUP + g``, or ``-1 - g``.
        At ε = 0 nothing is in the norm.
    costs : array
        Transport costs of those in the norm; others are not looked at.
    norm : Norm
        The transport norm.
    spread : array
        Standard deviations of free columns (root mean squares without an intercept), 1 for the
        intercept.  0 is for columns that are a multiple of the intercept's, or zero: no charge.
    mean : array
        Weighted means of the columns, 0 where they are centred, for categories, and without an
        intercept: the reference point at which the log-odds are admitted.
    size : array
        At least ``Σ |terms|`` of the sum behind each entry of the gradient: root mean squares do
        where a sample has one term (Cauchy and Schwarz).
    intercept : int or None
        The place of b.
    """

    kind: NDArray[np.int32]
    costs: FloatArray
    norm: Norm
    spread: FloatArray
    mean: FloatArray
    size: FloatArray
    intercept: int | None

    @cached_property
    def in_norm(self) -> IndexArray:
        """Places of the coordinates that the norm bounds."""
        return np.flatnonzero(self.kind == IN_NORM)

    @cached_property
    def charged(self) -> IndexArray:
        """Places of the free coordinates that count."""
        return np.flatnonzero((self.kind == FREE) & (self.spread > 0.0))

    @cached_property
    def groups(self) -> tuple[IndexArray, IndexArray, IndexArray]:
        """Places of the categories, the group of each, and the place of the highest of a group."""
        categories, highs = np.flatnonzero(self.kind >= GROUP), np.flatnonzero(self.kind < 0)
        own = (self.kind[categories] - GROUP).astype(np.intp)
        return categories, own, highs[np.argsort(-self.kind[highs])]

    @cached_property
    def sizes(self) -> FloatArray:
        """What rounding errors of the gradient at the reference point are in proportion to."""
        around = 0.0 if self.intercept is None else np.abs(self.mean) * self.size[self.intercept]
        return np.asarray(self.size + around)

    def used(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """``‖c g‖``, at most, if the sums are right up to ``rounding`` of their terms."""
        kept = self.in_norm
        left = self.left(gradient)[kept], rounding * self.sizes[kept] + _UNDERFLOW
        moves = self.costs[kept] * (np.abs(left[0]) + left[1])
        largest = float(moves.max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return largest
        return largest * self.norm.value(moves / largest) * (1.0 + (kept.size + 8) * _UNIT)

    def charge(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """The most that g·x can be over free coordinates of admitted models."""
        left, kept = self.left(gradient), self.charged
        error = rounding * self.sizes + _UNDERFLOW
        total = float(((np.abs(left[kept]) + error[kept]) / self.spread[kept]).sum())
        categories, own, highs = self.groups
        if highs.size:
            most = left + error
            upwards = np.bincount(own, np.maximum(most[categories], 0.0), minlength=highs.size)
            total += float(np.maximum(upwards + most[highs], 0.0).sum())
        return ADMITTED * total * (1.0 + (left.size + 8) * _UNIT)

    def admits(self, model: FloatArray) -> bool:
        """Whether the bound speaks of a model: what it proves says nothing of others."""
        odds, (_, _, highs) = model.copy(), self.groups
        if self.intercept is not None:
            odds[self.intercept] += self.mean @ model
        sizes = np.abs(odds[self.charged]) * self.spread[self.charged]
        return bool((sizes <= ADMITTED).all() and (odds[highs] <= ADMITTED).all())

    def left(self, gradient: FloatArray) -> FloatArray:
        """The gradient by the log-odds at the reference point instead of b."""
        if self.intercept is None:
            return gradient
        left: FloatArray = gradient - self.mean * gradient[self.intercept]
        left[self.intercept] = gradient[self.intercept]
        return left


class DualSums(NamedTuple):
    """Sums over the pieces of a dual point; a sample's masses total at most its weight.

    ``gradient`` is Σ q s z in the coordinates (pair: Σ w (s - a) z), ``spent`` is Σ q d (pair:
    Σ w κ a), ``entropy`` is Σ q H(s), and ``additions`` the longest chain of additions behind any.
    """

    gradient: FloatArray
    spent: float
    entropy: float
    additions: float


def lower_bound(
    coordinates: Coordinates, epsilon: float, sums: DualSums, lam: float | None = None
) -> tuple[float, float]:
    """The bound over admitted models, and the factor that scales the point into the ball.

    Times θ the point uses θ of ε, owes θ of the charge, and keeps at least θ of its entropy: what
    is taken from a piece goes back to its sample with s = 0.  At a given λ nothing is scaled.
    """
    n = (sums.additions + _OPERATIONS) * _UNIT
    rounding = n / (1.0 - n) if n < 1.0 else np.inf
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        charge = coordinates.charge(sums.gradient, rounding)
        used = coordinates.used(sums.gradient, rounding) + sums.spent * (1.0 + rounding)
        kept = sums.entropy * (1.0 - rounding) - charge
        if lam is None:
            factor = 1.0 if used <= epsilon else epsilon / used * _STRICTLY
            value = factor * kept * _rounded_down(kept)
        else:
            factor, rest = 1.0, lam * (epsilon - used)
            value = kept + rest - 8.0 * _UNIT * (abs(kept) + lam * (epsilon + used))
    if not np.isfinite(value):
        return 0.0, 0.0
    return (value, factor) if value > 0.0 else (0.0, factor)


def _rounded_down(value: float) -> float:
    return 1.0 - 8.0 * _UNIT if value > 0.0 else 1.0 + 8.0 * _UNIT
