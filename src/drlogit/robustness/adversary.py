"""What the adversary can do to the samples of an audit, whatever the model.

With scores ``s = B x + b``, one for each class, the loss of label k is ``lse(s) - s_k``, and
turning the label y into k costs ``κ(y, k)``.  At the price λ ≥ L the adversary gets of a sample

    lse(s) - s_y  +  max over k of  [ (s_y - s_k) - κ(y, k) λ ],       L = max ‖(B_j - B_k)/c‖_*,

the upper hull of K lines: its corners are the sample's breakpoints (:mod:`.breakpoints`).  A
prediction breaks at the nearest of K - 1 boundaries, ``(s_y - s_j) / ‖(B_y - B_j)/c‖_*`` away.  To
mend one, all of them must be crossed, of which the furthest is a bound from below.  Worst-case
loss, errors, guarantees, budget shares and subgroups follow from these alone.

Two classes are the scores 0 and ``β·x + b``; features with domains add breakpoints
(:mod:`.pair_audit`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import logsumexp

from ..problem.domains import dense_columns
from ..problem.label_costs import StatedKappa, as_stated
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from .breakpoints import Breakpoints, Crossings, Curve
from .features import Feature
from .measured_model import MeasuredModel

_Same = TypeVar("_Same", bound="Adversary")


class Ends(NamedTuple):
    """Where pieces of samples end, and what becomes of their mass if it moves on without end.

    Labels are positions among the classes.  Mass that moves on may get another one first, for
    ``tolls``; moved a distance d, it loses ``lost(pieces, d)`` per unit against the limit ``L`` per
    unit of cost, which is never more than ``limits``.
    """

    codes: IndexArray
    losses: FloatArray
    distance: FloatArray
    changes: Any  # of features that have a domain
    moving_codes: IndexArray
    tolls: FloatArray
    limits: FloatArray
    lost: Callable[[IndexArray, float], FloatArray]


@dataclass(frozen=True, eq=False)
class Adversary(ABC):
    """A model, the samples it is asked about, and the Wasserstein ball around them."""

    problem: Any
    coefficients: FloatArray  # the intercept last, or last in each row
    classes: tuple[Any, ...]
    measured: MeasuredModel  # where distance is measured, with costs and bounds of all columns

    @property
    @abstractmethod
    def codes(self) -> IndexArray:
        """Labels, as positions among the classes."""

    @property
    @abstractmethod
    def scores(self) -> FloatArray:
        """Those of each sample, a column for each class."""

    @property
    @abstractmethod
    def label_costs(self) -> FloatArray:
        """What each sample's label costs to turn into the others."""

    @property
    @abstractmethod
    def flip_unit(self) -> float:
        """The least cost of a flip, of those that cost anything."""

    @property
    @abstractmethod
    def exact_crossings(self) -> bool:
        """Whether the costs to break are the least, and not a little below."""

    @abstractmethod
    def ends(self, index: IndexArray, piece: IndexArray) -> Ends:
        """Where these pieces of samples end."""

    @cached_property
    def kappa(self) -> StatedKappa:
        """κ in a user's terms."""
        return as_stated(self.problem.cost, np.array(self.classes))

    def holding(self: _Same, columns: IndexArray) -> _Same:
        """The same, if some features could not move."""
        cost = self.problem.cost
        costs = cost.costs.copy()
        costs[columns] = np.inf
        domains = None if cost.domains is None else cost.domains.without(columns)
        held = replace(cost, costs=costs, domains=domains)
        return replace(self, problem=replace(self.problem, cost=held))

    # --- labels and scores ------------------------------------------------------------------

    @cached_property
    def gaps(self) -> FloatArray:
        """``s_y - s_k``: what each label is behind the sample's own."""
        own = np.take_along_axis(self.scores, self.codes[:, None], axis=1)
        return np.asarray(own - self.scores)

    @cached_property
    def others(self) -> BoolArray:
        """Labels that are not the sample's own."""
        return np.asarray(self.codes[:, None] != np.arange(len(self.classes)))

    @cached_property
    def u(self) -> FloatArray:
        """Margins: negative for samples predicted wrong."""
        return np.asarray(np.where(self.others, self.gaps, np.inf).min(axis=1))

    @cached_property
    def losses(self) -> FloatArray:
        """Log-losses of the samples as they are."""
        return np.asarray(logsumexp(-self.gaps, axis=1))

    @cached_property
    def predicted(self) -> IndexArray:
        """Predictions, as positions among the classes: on the boundary the first, as usual."""
        return np.asarray(self.scores.argmax(axis=1))

    @cached_property
    def wrong(self) -> BoolArray:
        """Samples predicted wrong."""
        return np.asarray(self.predicted != self.codes)

    @cached_property
    def flip_costs(self) -> FloatArray:
        """What it costs to change the label of each sample."""
        return np.asarray(np.where(self.others, self.label_costs, np.inf).min(axis=1))

    @cached_property
    def cheapest_label(self) -> IndexArray:
        """The other label that costs least."""
        return np.asarray(np.where(self.others, self.label_costs, np.inf).argmin(axis=1))

    def costs_of_labels(self, index: IndexArray, codes: IndexArray) -> FloatArray:
        """What it costs to give samples these labels."""
        return np.asarray(self.label_costs[index, codes])

    # --- moves ------------------------------------------------------------------------------

    @cached_property
    def class_coefficients(self) -> FloatArray:
        """A row of coefficients for each class; of two, those of the first are zero."""
        b = self.coefficients
        return b if b.ndim == 2 else np.stack([np.zeros_like(b), b])

    @cached_property
    def pair_norms(self) -> FloatArray:
        """``‖(B_j - B_k)/c‖_*`` of all pairs."""
        costs, K = self.problem.costs, len(self.classes)
        movable = np.isfinite(costs)
        scaled = self.class_coefficients[:, movable] / costs[movable]
        dual = self.problem.norm.dual
        return np.array([[dual(scaled[j] - scaled[k]) for k in range(K)] for j in range(K)])

    @cached_property
    def steepest(self) -> tuple[int, int]:
        """The two labels between which a move counts most, the first of which a sample can have."""
        had = np.asarray(np.isfinite(self.label_costs[self.weights > 0.0]).any(axis=0))
        norms = np.where(had[:, None], self.pair_norms, -1.0)
        one, other = np.unravel_index(int(norms.argmax()), norms.shape)
        return int(one), int(other)

    @property
    def falling(self) -> int:
        """The label whose samples move against the direction."""
        return self.steepest[0]

    @cached_property
    def sensitivity(self) -> float:
        """``L``: what a unit of transport gains in the end."""
        return float(self.pair_norms[self.steepest])

    @cached_property
    def direction(self) -> FloatArray:
        """The move of cost one that gains most in the end, for all labels but ``falling``."""
        pair, costs = self._steepest_pair, self.problem.costs
        move, kept = np.zeros_like(pair), np.isfinite(costs)
        move[kept] = self.problem.norm.aligned(pair[kept] / costs[kept]) / costs[kept]
        return np.asarray(move[:-1])

    @cached_property
    def move_shares(self) -> FloatArray:
        """Parts of the columns in what a move without end gains."""
        return np.asarray(self._steepest_pair[:-1] * self.direction / self.sensitivity)

    @property
    def _steepest_pair(self) -> FloatArray:
        one, other = self.steepest
        return np.asarray(self.class_coefficients[one] - self.class_coefficients[other])

    @cached_property
    def costs_to_break(self) -> FloatArray:
        """Least cost of moves across the boundary, or a little less; 0 if predicted wrong."""
        return np.where(self.u > 0.0, self._distances(self.gaps, np.inf).min(axis=1), 0.0)

    @cached_property
    def costs_to_mend(self) -> FloatArray:
        """The least cost back for samples predicted wrong, or less."""
        return np.where(self.u < 0.0, self._distances(-self.gaps, 0.0).max(axis=1), 0.0)

    @cached_property
    def nearest_class(self) -> IndexArray:
        """The other class that takes the least to be predicted, or is already."""
        ahead = np.where(self.others, self.gaps, np.inf).argmin(axis=1)
        near = self._distances(self.gaps, np.inf).argmin(axis=1)
        return np.asarray(np.where(self.u > 0.0, near, ahead))

    def _distances(self, gaps: FloatArray, own: float) -> FloatArray:
        """From the boundaries with other labels; ``own`` for the sample's own."""
        gaps = np.maximum(gaps, 0.0)
        norms = self.pair_norms[self.codes]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            far = np.where(gaps > 0.0, gaps / norms, 0.0)
        return np.where(self.others, far, own)

    # --- breakpoints ------------------------------------------------------------------------

    def breakpoints(self) -> Breakpoints:
        """Those of all samples: corners of their hulls, one of each at a time, at most K - 1."""
        costs, going = self.label_costs, np.flatnonzero(self.weights > 0.0)
        label = self.codes
        none, nothing = np.empty(0, dtype=np.intp), np.empty(0)
        found = [(none, nothing, nothing, nothing, none)]
        for _ in self.classes[1:]:
            now = label[going, None]
            further = costs[going] - np.take_along_axis(costs[going], now, axis=1)
            more = self.gaps[going] - np.take_along_axis(self.gaps[going], now, axis=1)
            worth = (more > 0.0) & (further >= 0.0) & np.isfinite(further)
            with np.errstate(divide="ignore", invalid="ignore"):  # a label may cost nothing
                rates = np.where(worth, more / further, -np.inf)
            # Of labels with the same rate the one that gains most: among those that cost nothing
            # more, the others do not count.
            rate = rates.max(axis=1)
            k = np.where(rates == rate[:, None], more, -np.inf).argmax(axis=1)
            some = np.flatnonzero((rate > 0.0) & (rate >= self.sensitivity))
            going, k = going[some], k[some]
            found.append((going, rate[some], further[some, k], more[some, k], -1 - k))
            label = label.copy()
            label[going] = k
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        by_sample = np.argsort(columns[0], kind="stable")
        return Breakpoints.in_order(*(column[by_sample] for column in columns))

    def paid_for_labels(self, found: Breakpoints) -> FloatArray:
        """The part of the cost of breakpoints that goes into labels."""
        return found.cost

    # --- what follows -----------------------------------------------------------------------

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns as the features that people know."""
        return self.measured.features

    @cached_property
    def weights(self) -> FloatArray:
        return np.asarray(self.problem.rows.weights())

    def observed(self, index: IndexArray) -> list[Any]:
        """The labels of samples, as given."""
        return list(np.asarray(self.classes)[self.codes[index]].tolist())

    def values_of(self, columns: IndexArray) -> FloatArray:
        """Some columns of the matrix, as they were before any shift."""
        rows = self.problem.rows
        found = rows.gather(rows.run(_columns, None, columns)[0])
        return np.asarray(found if rows.shift is None else found + rows.shift[columns])

    def flip_limits(self, radii: FloatArray) -> FloatArray:
        """The largest share of labels that each radius can flip: the cheapest ones."""
        every = np.arange(self.flip_costs.size)
        _, spent, mass = Crossings.of(self.flip_costs, every, self.weights)
        shares = np.interp(radii, spent, mass)
        return np.where(shares > 1.0 - 1e-12, 1.0, shares)

    def loss_curve(
        self, found: Breakpoints | None = None, weights: FloatArray | None = None
    ) -> Curve:
        """The worst-case log-loss at every radius, of ``found`` breakpoints or of all there are.

        ``weights`` are other weights of the samples, which sum to one.
        """
        found = self.breakpoints() if found is None else found
        weights = self.weights if weights is None else weights
        start = float(weights @ self.losses)
        return found.curve(weights, found.gain, start, self.sensitivity)

    def with_radius(self: _Same, epsilon: float, kappa: float | None = None) -> _Same:
        """The same in a ball of another radius, and with another cost of flips."""
        return replace(self, problem=self.problem.with_radius(epsilon, kappa))

    def with_labels_right(self: _Same) -> _Same:
        """The same, if labels were certain."""
        return self.with_radius(self.problem.epsilon, np.inf)


def _columns(block: Block, _: None, columns: IndexArray) -> tuple[FloatArray, tuple[()]]:
    return dense_columns(block.X, columns), ()
