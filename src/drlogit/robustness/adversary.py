"""What the adversary can do to the samples of an audit, whatever the model.

A model of the samples says what each costs: its breakpoints (:mod:`.breakpoints`), and what it
takes to bring it across the decision boundary.  Worst-case loss, errors, guarantees, budget shares
and subgroups follow from these alone: for two classes, with domains or without
(:mod:`.pair_audit`), and for several (:mod:`.class_audit`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..problem.label_costs import StatedKappa, as_stated
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .breakpoints import Breakpoints, Crossings, Curve
from .features import Feature, describe
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
    def predicted(self) -> IndexArray:
        """Predictions, as positions among the classes."""

    @property
    @abstractmethod
    def u(self) -> FloatArray:
        """Margins: negative for samples predicted wrong."""

    @property
    @abstractmethod
    def losses(self) -> FloatArray:
        """Log-losses of the samples as they are."""

    @property
    @abstractmethod
    def flip_costs(self) -> FloatArray:
        """What it costs to change the label of each sample."""

    @property
    @abstractmethod
    def cheapest_label(self) -> IndexArray:
        """The other label that costs least."""

    @property
    @abstractmethod
    def flip_unit(self) -> float:
        """The least cost of a flip, of those that cost anything."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """``L``: what a unit of transport gains in the end."""

    @property
    @abstractmethod
    def steepest_model(self) -> FloatArray:
        """The coefficients of the margin that a unit of transport changes most."""

    @property
    @abstractmethod
    def falling(self) -> int:
        """The label whose samples move against the direction."""

    @property
    @abstractmethod
    def costs_to_break(self) -> FloatArray:
        """Least cost of moves across the boundary, or a little less; 0 if predicted wrong."""

    @property
    @abstractmethod
    def nearest_class(self) -> IndexArray:
        """The other class that takes the least to be predicted, or is already."""

    @property
    @abstractmethod
    def costs_to_mend(self) -> FloatArray:
        """The least cost back for samples predicted wrong."""

    @property
    @abstractmethod
    def exact_crossings(self) -> bool:
        """Whether the costs to break are the least, and not a little below."""

    @property
    @abstractmethod
    def worst_loss(self) -> float:
        """The worst-case log-loss at the radius of the problem."""

    @abstractmethod
    def breakpoints(self, upto: float | None = None) -> Breakpoints:
        """Those of all samples, or at least those that a budget of ``upto`` pays for."""

    @abstractmethod
    def ends(self, index: IndexArray, piece: IndexArray) -> Ends:
        """Where these pieces of samples end."""

    @abstractmethod
    def costs_of_labels(self, index: IndexArray, codes: IndexArray) -> FloatArray:
        """What it costs to give samples these labels."""

    @abstractmethod
    def paid_for_labels(self, found: Breakpoints) -> FloatArray:
        """The part of the cost of breakpoints that goes into labels."""

    @cached_property
    def kappa(self) -> StatedKappa:
        """κ in a user's terms."""
        return as_stated(self.problem.cost, np.array(self.classes))

    @cached_property
    def direction(self) -> FloatArray:
        """The move of cost one that gains most in the end, for all labels but one."""
        return np.asarray(self.problem.cost.aligned_move(self.steepest_model)[:-1])

    @cached_property
    def move_shares(self) -> FloatArray:
        """Parts of the columns in what a move without end gains."""
        return np.asarray(self.steepest_model[:-1] * self.direction / self.sensitivity)

    def holding(self: _Same, columns: IndexArray) -> _Same:
        """The same, if some features could not move."""
        cost = self.problem.cost
        costs = cost.costs.copy()
        costs[columns] = np.inf
        domains = None if cost.domains is None else cost.domains.without(columns)
        held = replace(cost, costs=costs, domains=domains)
        return replace(self, problem=replace(self.problem, cost=held))

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The columns as the features that people know."""
        at = self.measured
        return describe(at.costs.size, at.names, at.categories or (), at.features)

    @cached_property
    def weights(self) -> FloatArray:
        return np.asarray(self.problem.rows.weights())

    @cached_property
    def wrong(self) -> BoolArray:
        """Samples predicted wrong."""
        return np.asarray(self.predicted != self.codes)

    def observed(self, index: IndexArray) -> list[Any]:
        """The labels of samples, as given."""
        return list(np.asarray(self.classes)[self.codes[index]].tolist())

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
