"""A worst distribution in the ball, as atoms that come from the rows.

Decisions, labels and moves within domains are bought in the order of their rates (:mod:`.hulls`),
so a distribution that attains the worst case takes at most one row apart.

The log-loss grows by less than ``L`` per unit of an unbounded move, and comes close to it only far
away.  For two classes, mass at the margin u that moves a distance d loses

    L d - [h(u - L d) - h(u)]  ≤  h(-u),        h(u) = log(1 + e^{-u}),

against the limit.  So what the budget has left after flips and moves within domains goes into moves
of as much mass as a shortfall of 1e-4 nats allows, of the least margins first, all equally far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .adversary import Adversary
from .hulls import Spent
from .metrics import Metric

if TYPE_CHECKING:
    import pandas as pd

#: How close the log-loss comes to its supremum, in nats.
_SHORTFALL = 1e-4
#: How far beyond the threshold scores end, as a share of their size.
_BEYOND = 1e-9


@dataclass(frozen=True, eq=False)
class WorstCaseDistribution:
    """A distribution in the ball, as atoms that come from rows.

    Attributes
    ----------
    index : array of shape (n_atoms,)
        The row that each atom's mass comes from, in ascending order.  A row that is divided appears
        more than once; one of weight zero not at all.
    mass : array of shape (n_atoms,)
        Probabilities, which sum to one.
    label : array of shape (n_atoms,)
        Labels, in the coding of the data.
    flipped : bool array of shape (n_atoms,)
        Whether the label is not the row's own.
    distance : array of shape (n_atoms,)
        The cost of the changes of the features.
    value : float
        The metric under this distribution.
    supremum : float
        The worst value in the ball.
    transport_cost : float
        What all changes cost on average, at most the radius of the ball.
    """

    index: IndexArray = field(repr=False)
    mass: FloatArray = field(repr=False)
    label: NDArray[Any] = field(repr=False)
    flipped: BoolArray = field(repr=False)
    distance: FloatArray = field(repr=False)
    value: float
    supremum: float
    transport_cost: float
    _changes: Any = field(repr=False)
    _adversary: Adversary = field(repr=False)

    def points(self, X: Any) -> Any:
        """The features of the atoms in the form of X, the rows of the worst case.

        A data frame gives a data frame.  ``ValueError`` if a step of a pipeline makes features that
        are no columns of X.
        """
        adversary = self._adversary
        return adversary.model.moved(X, adversary.table, self.index, self._changes)

    def to_frame(self) -> pd.DataFrame:
        """One row for each atom."""
        import pandas as pd

        names = ["index", "mass", "label", "flipped", "distance"]
        return pd.DataFrame({name: getattr(self, name) for name in names})


def worst_distribution(
    adversary: Adversary, metric: Metric, weights: FloatArray, supremum: float
) -> WorstCaseDistribution:
    """A distribution that attains the worst value, or comes close to that of the log-loss."""
    if adversary.several:
        raise ValueError(
            "there is a worst-case distribution for two classes only: ask about two of the "
            "classes, with (coef_[k] - coef_[j], intercept_[k] - intercept_[j])"
        )
    build = _of_loss if metric.table is None else _of_decisions
    index, mass, codes, distance, changes, value = build(adversary, metric, weights)
    flipped = codes != adversary.codes[index]
    paid = distance + np.where(flipped, adversary.flips[index], 0.0)
    value = metric.sign * min(metric.sign * value, metric.sign * supremum)  # but for rounding
    label, cost = np.asarray(adversary.classes)[codes], float(mass @ paid)
    found = index, mass, label, flipped, distance, value, supremum, cost
    return WorstCaseDistribution(*found, changes, adversary)


class _Atoms(NamedTuple):
    """Rows, masses and labels of atoms, what moves cost, the moves, and the metric."""

    rows: IndexArray
    mass: FloatArray
    codes: IndexArray
    distance: FloatArray
    changes: Any
    value: float


def _spendable(adversary: Adversary) -> float:
    """The part of the radius that stays within it however its parts are added up again."""
    n = adversary.codes.size + int(adversary.table.matrix.shape[1])
    return float(adversary.ball.epsilon or 0.0) * (1.0 - (2 * n + 16) * 2.0**-52)


def _atoms(spent: Spent, weights: FloatArray) -> tuple[IndexArray, IndexArray, FloatArray]:
    """The row, option and mass of each part; the row that is divided has two."""
    index, option = np.flatnonzero(weights > 0.0), spent.option
    mass = weights[index]
    place = int(np.searchsorted(index, spent.divided))
    if spent.share > 0.0:
        moved = spent.share * weights[spent.divided]
        index = np.insert(index, place, spent.divided)
        mass = np.insert(mass, place, weights[spent.divided] - moved)
        mass[place + 1] = moved
    option = option[index]
    if spent.share > 0.0:
        option[place + 1] = spent.next
    return index[mass > 0.0], option[mass > 0.0], mass[mass > 0.0]


def _of_decisions(adversary: Adversary, metric: Metric, weights: FloatArray) -> _Atoms:
    """Atoms beyond the threshold, with another label, or both."""
    assert metric.table is not None
    decided, gap, down = adversary.gaps(metric)
    margin = _BEYOND * (1.0 + float(np.abs(adversary.scores).max(initial=0.0)))
    decisions = adversary.decisions(metric, weights, margin)
    budget = _spendable(adversary)
    if metric.below is not None:
        spent = decisions.ratio(metric, metric.sign, budget)[1]
    else:
        spent = decisions.hull(metric.sign * metric.table).spend(budget)
    index, option, mass = _atoms(spent, weights)
    positive, crossed = option >= 2, (option % 2 == 1) != decided[index]
    codes = np.where(positive, metric.positive, 1 - metric.positive)
    some = index[crossed]
    rows = np.flatnonzero(crossed)
    far, distance = np.zeros(index.size), np.zeros(index.size)
    distance[rows] = far[rows] = decisions.reach[some]
    changes = sp.csr_array((index.size, adversary.table.matrix.shape[1]))
    if adversary.crossings is not None and some.size:
        across = adversary.crossings
        crossing = across.across(some, gap[some], down[some], decided[some], margin)
        moves = across.changes_across(some, crossing, down[some]).tocoo()
        changes = sp.csr_array((moves.data, (rows[moves.row], moves.col)), shape=changes.shape)
        far[rows] = crossing.further
    towards = np.where(down[index], -1.0, 1.0) * far  # of the score of the second class
    changes = changes + _along(adversary, towards)
    above = float(mass @ metric.table.ravel()[option])
    below = 1.0 if metric.below is None else float(mass @ metric.below.ravel()[option])
    return _Atoms(index, mass, codes, distance, changes, above / below)


def _along(adversary: Adversary, far: FloatArray) -> Any:
    """Moves that cost ``far``, in the direction that raises the score most, or against it."""
    direction = adversary.cost.steepest_move(adversary.coefficients[1])[:-1]
    return sp.csr_array(far[:, None]) @ sp.csr_array(direction[None, :])


def _of_loss(adversary: Adversary, metric: Metric, weights: FloatArray) -> _Atoms:
    """Atoms with flipped labels and moves within domains, and some that move far."""
    spent = adversary.hull(metric, weights).spend(_spendable(adversary))
    index, option, mass = _atoms(spent, weights)
    own = adversary.codes[index]
    codes = np.where(option < 0, 1 - own, own)
    signs = np.where(codes > 0, 1.0, -1.0)
    margins, distance = signs * adversary.scores[index], np.zeros(index.size)
    changes = sp.csr_array((index.size, adversary.table.matrix.shape[1]))
    if adversary.crossings is not None:
        changes, distance = adversary.crossings.changes_of_loss(index, signs, option)
        margins += signs * (changes @ adversary.coefficients[1, :-1])
    # Each atom is divided into what stays and what moves; one of the two may be nothing.
    moved, far = _moved(margins, mass), 0.0
    if adversary.slope > 0.0 and spent.left > 0.0:
        far = spent.left / float(moved.sum())
    place, lengths = np.repeat(np.arange(index.size), 2), np.tile([0.0, far], index.size)
    mass = np.column_stack([mass - moved, moved]).ravel()
    place, lengths, mass = place[mass > 0.0], lengths[mass > 0.0], mass[mass > 0.0]
    losses = np.logaddexp(0.0, adversary.slope * lengths - margins[place])
    moves = changes[place] + _along(adversary, -signs[place] * lengths)
    distance = distance[place] + lengths
    return _Atoms(index[place], mass, codes[place], distance, moves, float(mass @ losses))


def _moved(margins: FloatArray, mass: FloatArray) -> FloatArray:
    """The mass of each atom that moves: that of the least margins, as much as loses no more."""
    lost, moved = np.logaddexp(0.0, margins) / _SHORTFALL, np.zeros_like(mass)
    order = np.argsort(lost, kind="stable")
    before = np.append(0.0, np.cumsum((mass * lost)[order])[:-1])
    with np.errstate(divide="ignore"):
        moved[order] = np.clip((1.0 - before) / np.maximum(lost[order], 1e-300), 0.0, mass[order])
    return moved
