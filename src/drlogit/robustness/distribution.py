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
    if metric.table is None and metric.name != "log_loss":
        raise ValueError(
            "there is no worst-case distribution of the error for several classes: ask for that "
            "of the log-loss, or about one class against the rest"
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
    decisions = adversary.decisions(metric, margin).weighted(weights)
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
    changes = changes + _along(adversary, towards, 1)
    above = float(mass @ metric.table.ravel()[option])
    below = 1.0 if metric.below is None else float(mass @ metric.below.ravel()[option])
    return _Atoms(index, mass, codes, distance, changes, above / below)


def _along(adversary: Adversary, far: FloatArray, towards: int) -> Any:
    """Moves that cost ``far``, along the direction that raises one of the steepest scores."""
    turned = adversary.direction * (1.0 if adversary.steepest[0] == towards else -1.0)
    return sp.csr_array(far[:, None]) @ sp.csr_array(turned[None, :])


def _of_loss(adversary: Adversary, metric: Metric, weights: FloatArray) -> _Atoms:
    """Atoms with flipped labels and moves within domains, and some that move far."""
    spent = adversary.hull(metric).weighted(weights).spend(_spendable(adversary))
    index, option, mass = _atoms(spent, weights)
    own, flipped, every = adversary.codes[index], option < 0, np.arange(index.size)
    scores = adversary.class_scores[index]
    least = np.argmin(scores, axis=1) if adversary.several else 1 - own
    codes = np.where(flipped, least, own)
    changes = sp.csr_array((index.size, adversary.table.matrix.shape[1]))
    distance = np.zeros(index.size)
    if adversary.crossings is not None:
        signs = np.where(codes > 0, 1.0, -1.0)
        changes = adversary.crossings.changes_of_loss(index, signs, option)
        distance = adversary.crossings.costs_of(changes)
        scores = scores + changes @ adversary.coefficients[:, :-1].T
    losses = np.logaddexp.reduce(scores, axis=1) - scores[every, codes]
    # Mass that moves has one of the two steepest labels, and moves towards the other one.
    one, other = adversary.steepest
    label = np.where((codes == one) | (codes == other), codes, np.where(own == one, other, one))
    towards = np.where(label == one, other, one)
    tolls = np.where(flipped | (label == own), 0.0, adversary.flips[index])
    ahead = scores[every, towards] - scores[every, label]
    lost = np.where(np.isinf(tolls), np.inf, adversary.slope * tolls + losses - ahead)
    tolls[np.isinf(tolls)] = 0.0
    moved, far = _moved(lost, tolls, mass, spent.left * (adversary.slope > 0.0))
    some = np.flatnonzero(moved > 0.0)
    # The loss far away: what the score gains, and what other scores add to that.
    gains = adversary.coefficients[:, :-1] @ adversary.direction
    turned = np.where(towards[some] == one, 1.0, -1.0)
    with np.errstate(over="ignore"):
        there = scores[some] + far * turned[:, None] * gains
        rest = there - there[np.arange(some.size), towards[some]][:, None]
        further = ahead[some] + far * adversary.slope + np.logaddexp.reduce(rest, axis=1)
    place = np.concatenate([every, some])
    mass = np.concatenate([mass - moved, moved[some]])
    lengths = np.repeat([0.0, far], [index.size, some.size])
    moves = np.where(np.append(towards, towards[some]) == one, lengths, -lengths)
    order = np.argsort(place, kind="stable")
    order = order[mass[order] > 0.0]
    place, mass, moves = place[order], mass[order], moves[order]
    codes = np.append(codes, label[some])[order]
    value = float(mass @ np.append(losses, further)[order])
    distance = distance[place] + lengths[order]
    changes = changes[place] + _along(adversary, moves, one)
    return _Atoms(index[place], mass, codes, distance, changes, value)


def _moved(
    lost: FloatArray, tolls: FloatArray, mass: FloatArray, budget: float
) -> tuple[FloatArray, float]:
    """The mass of each atom that moves, and how far, if it loses no more than allowed."""
    moved = np.zeros_like(mass)
    order = np.argsort(lost, kind="stable")
    order = order[np.isfinite(lost[order]) & (mass[order] > 0.0)]
    if budget <= 0.0 or not order.size:
        return moved, 0.0
    # Half of the budget is enough for other labels.
    paid = np.maximum(lost[order] / _SHORTFALL, 2.0 * tolls[order] / budget)
    before = np.append(0.0, np.cumsum(mass[order] * paid)[:-1])
    with np.errstate(divide="ignore"):
        moved[order] = np.clip((1.0 - before) / np.maximum(paid, 1e-300), 0.0, mass[order])
    return moved, (budget - float(moved @ tolls)) / float(moved.sum())
