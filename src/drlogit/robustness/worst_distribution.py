"""A worst distribution in the Wasserstein ball for a given linear model and a metric.

For fixed ``(β, b)`` with margins ``u_i`` and sensitivity ``L = ‖β/c‖_*``, the adversary spends a
budget ε of transport.  Flipping the label of sample i costs κ per unit of mass and adds
``h(-u_i) - h(u_i) = u_i`` to the loss; moving its features a distance d along the direction that
attains ``L`` costs d and adds ``h(u_i - L d) - h(u_i) < L d``.  So the best flips are those of the
largest margins, as long as they exceed κL.  The rest of ε goes into moves, whose gain approaches L
per unit of cost as less mass moves further.  The supremum

    max { E_Q log-loss : W(Q, P) ≤ ε }  =  min over λ ≥ L of  ελ + Σ w_i [h(u_i) + (u_i - κλ)_+]

is :func:`drlogit.worst_case_loss`; :func:`worst_case_distribution` returns a distribution in the
ball that comes as close to it as asked, with no move longer than that takes.

The worst case of a metric of decisions is attained: atoms lie on a threshold, where either decision
is a limit.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.checks import check_features
from .audit_problem import BallOptions, audit_problem
from .extremes import Extremes
from .old_adversary import Adversary
from .old_metrics import metric_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False)
class WorstCaseDistribution:
    """A distribution in the Wasserstein ball, as atoms that come from samples.

    Attributes
    ----------
    index : array of shape (n_atoms,)
        The sample that each atom's mass comes from, in ascending order.  A sample that is split
        (in part flipped, in part moved) appears more than once; one of weight zero not at all.
    mass : array of shape (n_atoms,)
        Probabilities; they sum to one.
    label : array of shape (n_atoms,)
        Labels, in the coding of the data.
    flipped : bool array of shape (n_atoms,)
        Whether the label is not the sample's own.
    distance : array of shape (n_atoms,)
        How far the features moved, in the transport norm with its costs.
    shift : array of shape (n_atoms,)
        Its signed form: the atom lies at ``X[index] + shift * direction`` (see :meth:`points`).
    direction : array of shape (n_features,)
        The direction of transport length one along which the score rises fastest, of several
        classes the difference of two scores; zero for features that cannot move.
    expected_loss, supremum : float
        The expected log-loss of this distribution, or another metric of it, and the limit that no
        distribution in the ball exceeds.  They are equal where only labels are flipped.
    transport_cost, epsilon : float
        What it cost to get here from the samples, at most the radius ε.
    changes : sparse array of shape (n_atoms, n_features), optional
        Where features have domains, what changed in them: -1 at a category that is left and +1 at
        the one that is entered, and the moves of bounded features.  ``distance`` counts it,
        ``shift`` does not.
    """

    index: NDArray[np.intp]
    mass: FloatArray
    label: NDArray[Any]
    flipped: BoolArray
    distance: FloatArray
    shift: FloatArray
    direction: FloatArray
    expected_loss: float
    supremum: float
    transport_cost: float
    epsilon: float
    changes: Any = None

    @property
    def gap(self) -> float:
        """How far it is from the supremum, which longer moves could come closer to."""
        return abs(self.supremum - self.expected_loss)

    @property
    def flipped_mass(self) -> float:
        """Share of the mass whose label is flipped, at most ``ε/κ``."""
        return float(self.mass[self.flipped].sum())

    @property
    def moved_mass(self) -> float:
        """Share of the mass whose features moved."""
        return float(self.mass[self.distance > 0.0].sum())

    @property
    def longest_move(self) -> float:
        return float(self.distance.max(initial=0.0))

    def points(self, X: Any) -> Any:
        """Features of the atoms, given the samples (dense, or CSR if X is sparse)."""
        matrix = check_features(X)
        if matrix.shape[1] != self.direction.size or matrix.shape[0] <= self.index[-1]:
            raise ValueError(
                f"X must be the samples, {self.direction.size} features of at least "
                f"{self.index[-1] + 1} rows, got shape {matrix.shape}"
            )
        start = matrix[self.index].astype(np.float64)
        moves = sp.csr_array(self.shift[:, None]) @ sp.csr_array(self.direction[None, :])
        if self.changes is not None:
            moves = moves + self.changes
        return sp.csr_array(start + moves) if sp.issparse(start) else start + moves.toarray()

    def __repr__(self) -> str:
        return (
            f"WorstCaseDistribution(expected_loss={self.expected_loss:.6g}, gap={self.gap:.2g}, "
            f"transport_cost={self.transport_cost:.6g}, flipped_mass={self.flipped_mass:.4g}, "
            f"moved_mass={self.moved_mass:.4g}, longest_move={self.longest_move:.4g})"
        )


def worst_case_distribution(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    kappa: Any,
    metric: Any = "log_loss",
    threshold: float = 0.5,
    tol: float = 1e-4,
    **ball: Unpack[BallOptions],
) -> WorstCaseDistribution:
    """Find a worst distribution in the Wasserstein ball, for the log-loss up to ``tol``.

    If only labels are flipped, the worst case is attained.  With moves, the worst case of the
    log-loss is a supremum that no distribution attains: less and less mass moves further and
    further.  The budget that is left after flips is spent on the shortest moves that come within
    ``tol``; their length grows like ``1 / tol``.  For models of several classes, categories and
    bounds are treated as free numbers.

    Parameters
    ----------
    model, X, y, epsilon, kappa, **ball
        As in :func:`drlogit.worst_case_loss`.
    metric, threshold
        The log-loss or, with two classes, a metric of decisions, as in :func:`drlogit.worst_case`.
    tol : float
        How close to the supremum of the log-loss, in nats, positive.

    Returns
    -------
    WorstCaseDistribution
        Atoms with their masses, expected loss and transport cost.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05).fit(X, y)
    >>> found = drlogit.worst_case_distribution(model, X, y, epsilon=0.05, kappa=1.0)
    >>> worst = drlogit.worst_case_loss(model, X, y, epsilon=0.05, kappa=1.0)
    >>> bool(worst - 1e-4 <= found.expected_loss <= worst)
    True
    """
    if not isinstance(tol, numbers.Real) or isinstance(tol, bool) or not 0.0 < tol < math.inf:
        raise ValueError(f"tol must be finite and > 0, got {tol!r}")
    audit = audit_problem(model, X, y, epsilon=epsilon, kappa=kappa, **ball)
    asked = Extremes(audit, metric_of(audit, metric, threshold))
    if asked.metric.name == "log_loss":
        return _of_log_loss(audit, float(tol))
    if len(audit.classes) > 2 or asked.metric.table is None:
        raise ValueError(
            f"there is no worst-case distribution of {asked.metric} for {len(audit.classes)} "
            "classes: use the log-loss, or a metric of decisions of two classes"
        )
    return _of_decisions(asked)


def _of_decisions(asked: Extremes) -> WorstCaseDistribution:
    """Atoms on the threshold, with another label, or both."""
    audit, metric, sign = asked.audit, asked.metric, asked.metric.worst_sign
    epsilon, w = audit.problem.epsilon, audit.weights
    supremum = asked.end(sign, epsilon)
    decisions = audit.decisions(metric.cuts, attained=True)
    found = decisions.hulls(sign * metric.less(supremum))
    index, piece, mass, _ = found.edges.pieces(w, _spendable(epsilon, 2 * w.size))
    assert found.begins is not None
    option = np.where(piece > 0, piece - 1, found.begins[index])
    label, decision = np.divmod(option, decisions.n_decisions)
    ends, score = np.concatenate([[-np.inf], metric.cuts or (0.0,), [np.inf]]), audit.scores[1]
    above, below = score[index] - ends[decision + 1], ends[decision] - score[index]
    gap, down = np.maximum(np.maximum(above, below), 0.0), above > 0.0
    changes, signs = None, np.where(down, 1.0, -1.0)
    if audit.domain_moves is None:
        far = distance = decisions.reach[decision, index]
    else:
        crossing, moves = audit.domain_moves.moves_across(index, gap, signs)
        changes, far = sp.csr_array(moves), crossing.further
        distance = crossing.cost
    value = float(mass @ metric.less(0.0).ravel()[option])
    if metric.below is not None:
        # Where the denominator vanishes, the supremum is a limit.
        below = float(mass @ metric.below.ravel()[option])
        value = value / below if below > 0.0 else supremum
    return _atoms(audit, index, mass, label, distance, -signs * far, value, supremum, changes)


def _atoms(
    audit: Adversary,
    index: IndexArray,
    mass: FloatArray,
    label: IndexArray,
    distance: FloatArray,
    shift: FloatArray,
    value: float,
    supremum: float,
    changes: Any = None,
) -> WorstCaseDistribution:
    paid = distance + audit.costs_of_labels(index, label)
    return WorstCaseDistribution(
        index, mass, np.asarray(audit.classes)[label], label != audit.codes[index], distance, shift,
        audit.direction, value, supremum, float(mass @ paid), audit.problem.epsilon, changes,
    )  # fmt: skip


def _of_log_loss(audit: Adversary, tol: float) -> WorstCaseDistribution:
    epsilon = audit.problem.epsilon
    supremum = float(audit.loss_curve().at(epsilon))
    budget = _spendable(epsilon, audit.u.size + audit.coefficients[0].size)
    index, piece, mass, left = audit.breakpoints.pieces(audit.weights, budget)
    ends = _ends(audit, index, piece)
    # Of each piece, what stays and what moves on.
    unspent = audit.sensitivity * (epsilon - budget)
    shortfall = max(tol - unspent, 0.5 * tol)
    moved, further = _moves(ends, mass, audit.sensitivity, left, shortfall)
    place = np.tile(np.arange(index.size), 2)
    moves = np.repeat([False, True], index.size)
    mass = np.concatenate([mass - moved, moved])
    kept = np.flatnonzero(mass > 0.0)
    kept = kept[np.argsort(place[kept], kind="stable")]
    place, moves, mass = place[kept], moves[kept], mass[kept]
    on = place[moves]
    losses = ends.losses[place]
    losses[moves] += audit.sensitivity * (ends.tolls[on] + further) - ends.lost(on, further)
    travelled = np.where(moves, further, 0.0)
    distance = ends.distance[place] + travelled
    codes = np.where(moves, ends.moving_codes[place], ends.codes[place])
    shift = np.where(codes == audit.steepest[0], -travelled, travelled)
    value = min(float(mass @ losses), supremum)  # flips attain it, but for rounding
    changes = None if ends.changes is None else ends.changes[place]
    return _atoms(audit, index[place], mass, codes, distance, shift, value, supremum, changes)


class _Ends(NamedTuple):
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


def _ends(audit: Adversary, index: IndexArray, piece: IndexArray) -> _Ends:
    """Where these pieces of samples end.

    What moves on has one of the two steepest labels: its own, or the cheaper one.  It moves towards
    the other one, o, and loses ``lse(s) - s_o - lse(s(d) - s_o(d))`` against ``L d``; what a label
    costs more than it gains comes on top.
    """
    every, codes, scores = (
        np.arange(index.size),
        audit.label_of(index, piece),
        audit.scores[:, index],
    )
    distance, changed, B = np.zeros(index.size), None, audit.coefficients[:, :-1]
    if audit.domain_moves is not None:
        signs = np.where(codes > 0, 1.0, -1.0)
        changed = audit.domain_moves.changed_features(index, signs, piece)
        scores = scores + (changed @ B.T).T
        distance = np.asarray(audit.domain_moves.item_costs(changed).sum(axis=1)).ravel()
    level, own = np.logaddexp.reduce(scores), scores[codes, every]
    paid, pair = audit.costs_of_labels(index, codes), np.array(audit.steepest)
    costs = [audit.costs_of_labels(index, np.full_like(codes, label)) for label in pair]
    second = np.where(np.isin(codes, pair), codes == pair[1], costs[1] < costs[0]).astype(np.intp)
    label, towards, cost = pair[second], pair[1 - second], np.choose(second, costs)
    # A label that costs less than the piece's own is not paid back.
    tolls = np.maximum(np.where(np.isfinite(cost), cost, 0.0) - paid, 0.0)
    limits = audit.sensitivity * tolls - own + scores[label, every] + level - scores[towards, every]
    limits, signs = np.where(np.isfinite(cost), limits, np.inf), 2.0 * second - 1.0
    slopes = B @ audit.direction

    def lost(some: IndexArray, far: float) -> FloatArray:
        to = towards[some]
        ahead = scores[:, some] - scores[to, some]
        ahead += far * signs[some] * (slopes[:, None] - slopes[to])
        return np.asarray(limits[some] - np.logaddexp.reduce(ahead))

    return _Ends(codes, level - own, distance, changed, label, tolls, limits, lost)


def _spendable(epsilon: float, n_terms: int) -> float:
    """The part of a radius that stays within it however its parts are added up again.

    A sum of k positive numbers is off by at most k/2 units of the last place, in whatever order
    they are taken; so is what was spent here, and what others find that it cost.  Sixteen more are
    for the few roundings of each term.
    """
    return epsilon * (1.0 - (n_terms + 16) * float(np.finfo(np.float64).eps))


def _moves(
    ends: _Ends, mass: FloatArray, sensitivity: float, budget: float, tol: float
) -> tuple[FloatArray, float]:
    """Mass to move of each piece, and the one distance that it all moves.

    What moves loses something against the limit ``L`` per unit of cost, at most ``limits``: those
    with the least go first.  All moves have one length because the loss is convex: between 0 and d,
    mixtures of the two ends yield more than anything between.
    """
    moved = np.zeros_like(mass)
    if budget <= 0.0 or sensitivity == 0.0:
        return moved, 0.0
    order = np.argsort(ends.limits, kind="stable")
    order = order[(mass[order] > 0.0) & np.isfinite(ends.limits[order])]
    m, tolls = mass[order], ends.tolls[order]

    def choice(distance: float) -> FloatArray:
        cost = distance + tolls
        # What those before take.  Not a sum less the last term: that is off by the last place of
        # m, which may be large beside all of the mass that moves.
        before = np.append(0.0, np.cumsum(m * cost)[:-1])
        return np.asarray(np.clip((budget - before) / cost, 0.0, m))

    def shortfall(distance: float) -> float:
        eta = choice(distance)
        last = int(np.count_nonzero(eta))
        return float(eta[:last] @ ends.lost(order[:last], distance))

    low = high = budget / float(m.sum())  # where all of the mass moves
    while shortfall(high) > tol:
        low, high = high, 2.0 * high
    while high > low * (1.0 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if shortfall(middle) > tol else (low, middle)
    moved[order] = choice(high)
    return moved, high
