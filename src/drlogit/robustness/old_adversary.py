"""The adversary's options on the samples of an audit, for models of two and of more classes.

With scores ``s = B x + b``, one for each class, the loss of label k is ``lse(s) - s_k``, and
turning the label y into k costs ``κ(y, k)``.  At the price λ ≥ L a sample is worth to the adversary

    lse(s) - s_y  +  max over k of  [ (s_y - s_k) - κ(y, k) λ ],       L = max ‖(B_j - B_k)/c‖_*,

the upper hull of K lines: its corners are the sample's breakpoints (:mod:`.breakpoints`).  A
prediction breaks at the nearest of K - 1 boundaries, ``(s_y - s_j) / ‖(B_y - B_j)/c‖_*`` away.  To
correct a wrong prediction, all boundaries must be crossed; the distance to the furthest is a lower
bound.  Worst-case loss, errors, guarantees, budget shares and subgroups follow from these.

Two classes are the scores 0 and ``β·x + b``, and their features may have domains, which add
breakpoints and other ways across the boundary (:mod:`.domain_moves`).  Features of several classes
move as numbers do: worst cases are upper bounds where they have domains.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..problem.label_costs import StatedKappa
from ..problem.problem import Problem
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .breakpoints import Breakpoints, Curve, Hulls
from .decisions import Decisions
from .domain_moves import DomainMoves
from .measured_features import MeasuredFeature
from .measured_model import MeasuredModel


@dataclass(frozen=True, eq=False)
class Adversary:
    """A model, samples, and the Wasserstein ball around them.

    Arrays that depend on samples have a column for each sample.
    """

    problem: Problem  # rows, radius and what moves cost; labels are here
    coefficients: FloatArray  # a row for each class, the intercept last; of two the first is zero
    classes: tuple[Any, ...]
    codes: IndexArray  # labels, as positions among the classes
    others: IndexArray  # the labels that are not the sample's own, a row for each
    scores: FloatArray  # a row for each class
    label_costs: FloatArray  # of the others
    kappa: StatedKappa  # the same in a user's terms
    measured: MeasuredModel  # where distance is measured, with costs and bounds of all columns
    as_given: bool = True  # whether features with domains move as they can

    def with_radius(self, epsilon: float) -> Adversary:
        """The same problem with another radius."""
        return replace(self, problem=self.problem.with_radius(epsilon))

    def with_labels_right(self) -> Adversary:
        """The same problem with certain labels."""
        never = np.broadcast_to(np.inf, self.label_costs.shape)
        return replace(self, label_costs=never, kappa=np.inf)

    def holding(self, columns: IndexArray) -> Adversary:
        """The same problem with some features immovable."""
        cost = self.problem.cost
        costs = cost.costs.copy()
        costs[columns] = np.inf
        domains = None if cost.domains is None else cost.domains.without(columns)
        held = replace(cost, costs=costs, domains=domains)
        return replace(self, problem=replace(self.problem, cost=held))

    # --- labels and scores ------------------------------------------------------------------

    @cached_property
    def gaps(self) -> FloatArray:
        """``s_y - s_k``: the lead of the sample's own label over each other label."""
        own = np.take_along_axis(self.scores, self.codes[None], axis=0)
        return np.asarray(own - np.take_along_axis(self.scores, self.others, axis=0))

    @cached_property
    def u(self) -> FloatArray:
        """Margins: negative for samples predicted wrong."""
        return np.asarray(self.gaps.min(axis=0))

    @cached_property
    def losses(self) -> FloatArray:
        """Log-losses of the samples as they are."""
        top = np.maximum(-self.u, 0.0)
        return np.asarray(top + np.log(np.exp(-top) + np.exp(-self.gaps - top).sum(axis=0)))

    @cached_property
    def predicted(self) -> IndexArray:
        """Predictions as positions among the classes; the first class on a boundary."""
        return np.asarray(self.scores.argmax(axis=0))

    @cached_property
    def wrong(self) -> BoolArray:
        """Whether each sample is predicted wrong."""
        return np.asarray(self.predicted != self.codes)

    @cached_property
    def signs(self) -> FloatArray:
        """Labels of two classes as ±1."""
        return np.where(self.codes > 0, 1.0, -1.0)

    @cached_property
    def flip_costs(self) -> FloatArray:
        """The least cost of another label for each sample."""
        return np.asarray(self.label_costs.min(axis=0))

    # --- moves ------------------------------------------------------------------------------

    @cached_property
    def pair_norms(self) -> FloatArray:
        """``‖(B_j - B_k)/c‖_*`` of all pairs."""
        b, norm = self.coefficients, self.problem.cost.dual_norm
        return np.array([[norm(one - other) for other in b] for one in b])

    @cached_property
    def steepest(self) -> tuple[int, int]:
        """The two labels whose scores a move separates most, and of which a sample can have one."""
        size, can = len(self.classes), self.weights * np.isfinite(self.label_costs)
        had = np.bincount(self.codes, self.weights, minlength=size) > 0.0
        had |= np.bincount(self.others.ravel(), can.ravel(), minlength=size) > 0.0
        norms = np.where(had | had[:, None], self.pair_norms, -1.0)
        pairs = np.tril_indices(size, -1)
        best = int(norms[pairs].argmax())
        return int(pairs[0][best]), int(pairs[1][best])

    @property
    def _steepest_pair(self) -> FloatArray:
        one, other = self.steepest
        return np.asarray(self.coefficients[one] - self.coefficients[other])

    @cached_property
    def sensitivity(self) -> float:
        """``L``: the gain of unbounded moves per unit of transport."""
        return float(self.pair_norms[self.steepest])

    @cached_property
    def direction(self) -> FloatArray:
        """The move of cost 1 that raises the first of the two steepest scores most."""
        return self.problem.cost.steepest_move(self._steepest_pair)[:-1]

    @cached_property
    def move_shares(self) -> FloatArray:
        """The share of each column in the gain of an unbounded move."""
        return np.asarray(self._steepest_pair[:-1] * self.direction / self.sensitivity)

    @cached_property
    def domain_moves(self) -> DomainMoves | None:
        """Moves of features with domains; None if there are no such features."""
        rows, domains = self.problem.rows, self.problem.domains
        if domains is None:
            return None
        return DomainMoves(rows, domains, self.coefficients[1], self.sensitivity)

    def decisions(self, cuts: tuple[float, ...] | None = None, attained: bool = False) -> Decisions:
        """Decisions for the largest score or, with two classes, by the range that a score is in.

        Decision d is for scores between the cuts d - 1 and d.  Costs are the least possible ones or
        slightly below; with ``attained``, they are costs of moves that were found.
        """
        if len(self.classes) > 2:
            decided = self.predicted
            reach = np.array([self._lead(d) for d in range(len(self.classes))])
        else:
            ends = np.concatenate([[-np.inf], cuts or (0.0,), [np.inf]])
            decided = np.searchsorted(ends[1:-1], self.scores[1])
            pairs = itertools.pairwise(ends.tolist())
            reach = np.array([self._reach(low, high, attained) for low, high in pairs])
        labels = np.zeros_like(self.scores)
        np.put_along_axis(labels, self.others, self.label_costs, axis=0)
        return Decisions(self.codes, decided, labels, reach, self.weights)

    def _lead(self, d: int) -> FloatArray:
        """A lower bound of the cost of giving class d the largest score."""
        pairs = zip(self.scores, self.pair_norms[d], strict=True)
        found = [lengths(score - self.scores[d], float(norm)) for score, norm in pairs]
        return np.asarray(np.max(found, axis=0))

    def _reach(self, low: float, high: float, attained: bool) -> FloatArray:
        """The cost of moving the score of two classes between two ends."""
        score = self.scores[1]
        gap = np.maximum(np.maximum(low - score, score - high), 0.0)
        if self.domain_moves is not None:
            sides = np.where(score > high, 1.0, -1.0)
            return self.domain_moves.crossing_costs(gap, sides, attained)
        return lengths(gap, self.sensitivity)

    @cached_property
    def predictions(self) -> Decisions:
        """The decisions of the model itself."""
        return self.decisions()

    @cached_property
    def costs_to_break(self) -> FloatArray:
        """Least cost of moves across the boundary, or slightly less; 0 if predicted wrong."""
        reach = self.predictions.reach.copy()
        np.put_along_axis(reach, self.codes[None], np.inf, axis=0)
        return np.where(self.u > 0.0, reach.min(axis=0), 0.0)

    @cached_property
    def error_hulls(self) -> Hulls:
        """The hulls of the errors."""
        return self.predictions.hulls(1.0 - np.eye(len(self.classes)))

    @property
    def errors(self) -> Breakpoints:
        """The breakpoints of the errors, in the order in which the adversary makes them."""
        return self.error_hulls.edges

    @property
    def exact_crossings(self) -> bool:
        """Whether the costs to break are exact and not slightly below the least cost."""
        return self.as_given and (self.domain_moves is None or self.domain_moves.exact_crossings)

    # --- breakpoints ------------------------------------------------------------------------

    @cached_property
    def breakpoints(self) -> Breakpoints:
        """The breakpoints of the log-loss of all samples, at most K - 1 for each."""
        if self.domain_moves is not None:
            return self.domain_moves.breakpoints(self.scores[1], self.signs, self.flip_costs)
        return self._label_hulls(self.gaps)

    def _label_hulls(self, gaps: FloatArray) -> Breakpoints:
        """The hull edges of labels with these gains, down to the rate of unbounded moves."""
        costs = self.label_costs
        with np.errstate(invalid="ignore"):  # 0·∞, which is no corner
            worth = ((gaps > 0.0) & (gaps >= self.sensitivity * costs)).any(axis=0)
        some = np.flatnonzero(worth & (self.weights > 0.0))
        found = Breakpoints.of_hulls(
            costs[:, some], gaps[:, some], some, 1 + np.arange(len(costs)), self.sensitivity
        )
        # Pieces go by the label that they have: -1 - k for the label k.
        before, after = (
            np.where(piece > 0, -1 - self.others[piece - 1, found.sample], 0)
            for piece in (found.before, found.after)
        )
        return Breakpoints.joined([found._replace(before=before, after=after)])

    def label_of(self, sample: IndexArray, piece: IndexArray) -> IndexArray:
        """The labels of pieces, as positions among the classes."""
        own = self.codes[sample]
        other = -1 - piece if self.domain_moves is None else 1 - own
        return np.where(piece < 0, other, own)

    def costs_of_labels(self, sample: IndexArray, label: IndexArray) -> FloatArray:
        """The cost of giving samples these labels."""
        own, last = self.codes[sample], len(self.others) - 1
        paid = self.label_costs[np.minimum(label - (label > own), last), sample]
        return np.where(label == own, 0.0, paid)

    def paid_for_labels(self, found: Breakpoints) -> FloatArray:
        """The part of the cost of each breakpoint that pays for a label."""
        if self.domain_moves is None:
            return found.cost
        flipped = found.flipped()
        return flipped * np.where(flipped != 0.0, self.flip_costs[found.sample], 0.0)

    # --- what follows -----------------------------------------------------------------------

    @property
    def features(self) -> tuple[MeasuredFeature, ...]:
        """The features of the table that the columns belong to."""
        return self.measured.features

    @cached_property
    def weights(self) -> FloatArray:
        return np.asarray(self.problem.rows.weights())

    def observed(self, index: IndexArray) -> list[Any]:
        """The labels of samples, as given."""
        return list(np.asarray(self.classes)[self.codes[index]].tolist())

    def flip_limits(self, radii: FloatArray) -> FloatArray:
        """The largest share of labels that each radius can flip: the cheapest ones."""
        flips, every, one = self.flip_costs[None], np.arange(self.codes.size), np.arange(1, 2)
        found = Breakpoints.joined([Breakpoints.of_hulls(flips, np.ones_like(flips), every, one)])
        shares = found.curve(self.weights, found.gain).at(radii)
        return np.where(shares > 1.0 - 1e-12, 1.0, shares)

    @property
    def loss_hulls(self) -> Hulls:
        """The hulls of the log-losses."""
        return Hulls(self.losses, self.breakpoints, self.sensitivity)

    @property
    def least_loss_hulls(self) -> Hulls:
        """Upper bounds of minus the log-losses: a move gains at most ``L`` per unit of cost."""
        return Hulls(-self.losses, self._label_hulls(-self.gaps), self.sensitivity)

    def loss_curve(self, weights: FloatArray | None = None) -> Curve:
        """The worst-case log-loss at every radius; ``weights`` are others that sum to one."""
        return self.loss_hulls.curve(self.weights if weights is None else weights)


def lengths(gaps: FloatArray, rate: float) -> FloatArray:
    """The cost of closing gaps between scores at a rate per unit of transport."""
    gaps = np.maximum(gaps, 0.0)
    if rate == 0.0:
        return np.where(gaps > 0.0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(gaps / rate)
