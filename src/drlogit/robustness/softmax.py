"""The audit of a softmax over several classes, exactly.

For scores s of a sample with label y the adversary changes the label to k at the cost κ(y, k),
which adds ``m_k = s_y - s_k`` to the loss, and moves features at the slope
``L = max ‖(B_j - B_k)/c‖_*``.  What a label is worth at the price λ is the line
``m_k - κ(y, k) λ``; the upper hull of a sample's lines, from λ = ∞ down to L, is its breakpoints.
From there on everything is as for two classes.

*Errors.*  A sample is wrong once its score is not the largest, or its label another one:

    cost to break  =  min( min_k (s_y - s_k) / ‖(B_y - B_k)/c‖_*,  min_k κ(y, k) )

which is exact.  To mend a wrong one, another label or a move against every class above it: the
largest of the single moves is a lower bound of the cost, and the label's an upper bound.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.robust_classifier import RobustLinearClassifier
from ..problem.classes import ClassProblem, Scored, pose_classes
from ..problem.label_costs import own_kappa
from ..problem.norms import Norm
from ..problem.result import Result
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.checks import check_features, check_label_column, check_weights
from ..rows.memory import MemoryRows
from ..rows.row_blocks import is_in_blocks
from .breakpoints import Breakpoints, Crossings, LossCurve
from .measured_model import fitted_with, last_step


def is_softmax(model: Any) -> bool:
    """Whether a model is a softmax over more than two classes, as ours and scikit-learn's are."""
    if isinstance(model, Result):
        return np.ndim(model.coef) == 2
    if isinstance(model, tuple):
        return len(model) == 2 and np.ndim(model[0]) == 2 and len(model[0]) > 2
    if not hasattr(model, "fit"):
        return False
    last = last_step(model)
    if len(getattr(last, "classes_", ())) <= 2 or not hasattr(last, "coef_"):
        return False
    if isinstance(last, RobustLinearClassifier):
        return True
    name, ours = type(last).__name__, type(last).__module__.startswith("sklearn.")
    one_by_one = getattr(last, "multi_class", None) == "ovr" or (
        getattr(last, "solver", None) == "liblinear"
    )
    return ours and "Logistic" in name and not one_by_one


@dataclass(frozen=True, eq=False)
class SoftmaxAudit:
    """A softmax, the samples it is asked about, and the Wasserstein ball around them."""

    problem: ClassProblem
    coefficients: FloatArray  # (K, features and the intercept)
    space: str  # where distance is measured, in words

    @property
    def classes(self) -> Any:
        return self.problem.classes

    @cached_property
    def signs(self) -> IndexArray:
        """The labels as positions among the classes."""
        codes: IndexArray = np.asarray(self.problem.rows.gather(self.problem.codes)).astype(np.intp)
        return codes

    @cached_property
    def scores(self) -> FloatArray:
        rows = self.problem.rows
        scored = self.problem.scores(self.coefficients)
        return np.asarray(rows.gather(rows.run(_scores, scored)[0]))

    @cached_property
    def weights(self) -> FloatArray:
        return self.problem.rows.weights()

    @cached_property
    def leads(self) -> FloatArray:
        """``s_y - s_k`` of each sample and class."""
        own = self.scores[np.arange(self.signs.size), self.signs]
        return np.asarray(own[:, None] - self.scores)

    @cached_property
    def u(self) -> FloatArray:
        """By how much the score of a sample's own label leads all others."""
        return np.asarray(np.where(self._other, self.leads, np.inf).min(axis=1))

    @property
    def _other(self) -> BoolArray:
        found: BoolArray = np.arange(self.classes.size) != self.signs[:, None]
        return found

    @property
    def wrong(self) -> BoolArray:
        """Samples predicted wrong, ties as ``argmax`` decides them."""
        return np.asarray(self.scores.argmax(axis=1) != self.signs)

    @cached_property
    def losses(self) -> FloatArray:
        """Log-losses of the samples as they are."""
        low = -self.leads
        most = low.max(axis=1)
        return np.asarray(most + np.log(np.exp(low - most[:, None]).sum(axis=1)))

    @cached_property
    def slopes(self) -> FloatArray:
        """``‖(B_j - B_k)/c‖_*`` of every two classes."""
        kept, norm = self.problem.penalised, self.problem.norm
        kept = np.isfinite(self.problem.costs) if self.problem.epsilon == 0.0 else kept
        theta = self.coefficients[:, kept] / self.problem.costs[kept]
        return np.array([[norm.dual(a - b) for b in theta] for a in theta])

    @property
    def sensitivity(self) -> float:
        """L: by how much one unit of transport can change a difference of scores."""
        return float(self.slopes.max())

    @cached_property
    def label_costs(self) -> FloatArray:
        """What it costs each sample to get each label."""
        return self.problem.with_radius(1.0).label_costs[self.signs]

    @property
    def flip_costs(self) -> FloatArray:
        """Infinite: what labels cost is among the costs to break and to mend."""
        return np.full(self.signs.size, np.inf)

    @property
    def kappa(self) -> Any:
        """κ in a user's terms."""
        return self.problem.stated_kappa

    def flip_limits(self, radii: FloatArray) -> FloatArray:
        """The largest share of labels that each radius can change: the cheapest ones."""
        cheapest = np.where(self._other, self.label_costs, np.inf).min(axis=1)
        found = Crossings.of(cheapest, np.arange(cheapest.size), self.weights)
        return np.asarray(np.interp(radii, found.spent, np.minimum(found.mass, 1.0)))

    def breakpoints(self, upto: float | None = None) -> Breakpoints:
        """Of all samples: hulls of lines, one change of label after the other."""
        cost = np.where(np.isfinite(self.label_costs), self.label_costs, np.nan)
        live = np.flatnonzero(self.weights > 0.0)
        paid, gained = np.zeros(self.signs.size), np.zeros(self.signs.size)
        found: list[tuple[Any, ...]] = []
        while live.size:
            more, gain = cost[live] - paid[live, None], self.leads[live] - gained[live, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                rate = np.where(gain > 0.0, gain / np.maximum(more, 0.0), -np.inf)
            rate = np.where((more >= 0.0) & ~np.isnan(rate), rate, -np.inf)
            # Of equal rates the one that leads furthest.
            best = rate.max(axis=1)
            step = np.where(rate == best[:, None], gain, -np.inf).argmax(axis=1)
            goes = (best > -np.inf) & (best >= self.sensitivity)
            live, step, best = live[goes], step[goes], best[goes]
            further, value = more[goes][np.arange(live.size), step], gain[goes]
            value = value[np.arange(live.size), step]
            found.append((live, best, further, value, -1 - step))
            paid[live] += further
            gained[live] += value
        sample, rate, price, worth, after = (
            np.concatenate(column) for column in zip(*found, strict=True)
        )
        order = np.lexsort((-rate, sample))
        return Breakpoints.in_order(
            sample[order], rate[order], price[order], worth[order], after[order].astype(np.intp)
        )

    def loss_curve(
        self, found: Breakpoints | None = None, weights: FloatArray | None = None
    ) -> LossCurve:
        """The worst-case log-loss at every radius."""
        found = self.breakpoints() if found is None else found
        weights = self.weights if weights is None else weights
        return LossCurve.of(found, weights, self.losses, self.sensitivity)

    @cached_property
    def _faces(self) -> FloatArray:
        """What it costs to bring each sample to each class's side, by moves."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            cost = np.maximum(self.leads, 0.0) / self.slopes[self.signs]
        return np.where(self._other & ~np.isnan(cost), cost, np.inf)

    @cached_property
    def costs_to_break(self) -> tuple[FloatArray, FloatArray]:
        """Least cost of a wrong prediction, from below and above: exact."""
        labels = np.where(self._other, self.label_costs, np.inf).min(axis=1)
        cost = np.where(self.u > 0.0, np.minimum(self._faces.min(axis=1), labels), 0.0)
        return cost, cost

    @cached_property
    def costs_to_mend(self) -> tuple[FloatArray, FloatArray]:
        """Least cost of a right prediction, from below and above."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            moves = np.maximum(-self.leads, 0.0) / self.slopes[self.signs]
        least = np.where(np.isnan(moves), 0.0, moves).max(axis=1)
        label = self.label_costs[np.arange(self.signs.size), self.scores.argmax(axis=1)]
        return np.minimum(least, label), label

    def confusion(self, epsilon: float = 0.0) -> FloatArray:
        """Shares of samples by label (rows) and prediction (columns), in the worst case for errors.

        Each broken sample goes to the nearest class, or gets the cheapest label.
        """
        K, w = self.classes.size, self.weights
        predicted = self.scores.argmax(axis=1)
        table = np.zeros((K, K))
        np.add.at(table, (self.signs, predicted), w)
        cost, right = self.costs_to_break[0], np.flatnonzero(self.u > 0.0)
        order = right[np.argsort(cost[right], kind="stable")]
        order = order[np.isfinite(cost[order])]
        before = np.append(0.0, np.cumsum(w[order] * cost[order]))[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip((epsilon - before) / (w[order] * cost[order]), 0.0, 1.0)
        moved = np.where(np.isnan(share), 1.0, share) * w[order]
        labels = np.where(self._other, self.label_costs, np.inf)[order]
        faces = self._faces[order]
        flips = labels.min(axis=1) < faces.min(axis=1)
        own = self.signs[order]
        rows = np.where(flips, labels.argmin(axis=1), own)
        columns = np.where(flips, own, faces.argmin(axis=1))
        np.add.at(table, (own, own), -moved)
        np.add.at(table, (rows, columns), moved)
        return np.maximum(table, 0.0)

    def with_radius(self, epsilon: float) -> SoftmaxAudit:
        """The same in a ball of another radius."""
        return replace(self, problem=self.problem.with_radius(epsilon))

    def labels(self, codes: IndexArray) -> Any:
        return self.classes[codes]

    def ball_of(self, model: str) -> FloatArray:
        """The costs of this audit's ball, for other models."""
        return self.problem.costs[:-1]

    def atoms(self, epsilon: float, budget: float, tol: float) -> dict[str, Any]:
        """Those of a distribution within ``tol`` of the worst, for a budget just below ε.

        What changes of labels leave of the budget moves little mass far, of samples that have a
        label of the two classes between which a move counts most: moved by d, one of label c loses
        at most ``lse(s) - s_o`` against the limit ``L d``, o being the other of the two.
        """
        found = self.breakpoints(epsilon)
        supremum = float(self.loss_curve(found).at(np.array(epsilon)))
        (index, piece, mass), left = found.pieces(self.weights, budget)
        label = np.where(piece < 0, -1 - piece, self.signs[index])
        one, other = np.unravel_index(int(self.slopes.argmax()), self.slopes.shape)
        kept = np.isfinite(self.problem.costs[:-1])
        costs = np.where(kept, self.problem.costs[:-1], 1.0)
        theta = ((self.coefficients[one] - self.coefficients[other])[:-1] / costs)[kept]
        direction = np.zeros(costs.size)
        direction[kept] = self.problem.norm.aligned(theta) / costs[kept]
        scores, atoms = self.scores[index], np.arange(index.size)
        lse = _lse(scores)
        moved, travelled = np.zeros(index.size), 0.0
        if left > 0.0 and self.sensitivity > 0.0:
            opposite = np.where(label == one, other, one)
            short = lse - scores[atoms, opposite]
            can = np.flatnonzero((label == one) | (label == other))
            can = can[np.argsort(short[can], kind="stable")]
            lost = np.append(0.0, np.cumsum(mass[can] * short[can]))[:-1]
            room = 0.5 * tol - lost
            with np.errstate(divide="ignore"):
                moved[can] = np.clip(room / np.maximum(short[can], 1e-300), 0.0, mass[can])
            travelled = left / float(moved.sum())
        place = np.concatenate([atoms, atoms])
        distance = np.repeat([0.0, travelled], index.size)
        share = np.concatenate([mass - moved, moved])
        some = np.flatnonzero(share > 0.0)
        some = some[np.argsort(place[some], kind="stable")]
        place, distance, share = place[some], distance[some], share[some]
        sign = np.where(label[place] == one, -1.0, 1.0)
        shift = sign * distance
        ends = scores[place] + np.outer(shift, self.coefficients[:, :-1] @ direction)
        loss = _lse(ends) - ends[np.arange(place.size), label[place]]
        own = self.signs[index[place]]
        flipped = label[place] != own
        paid = distance + self.label_costs[index[place], label[place]]
        return {
            "index": index[place], "mass": share, "label": self.labels(label[place]),
            "flipped": flipped, "distance": distance, "shift": shift, "direction": direction,
            "expected_loss": min(float(share @ loss), supremum), "supremum": supremum,
            "transport_cost": float(share @ paid), "epsilon": epsilon,
        }  # fmt: skip


def _scores(block: Block, scored: Scored) -> tuple[FloatArray, tuple[()]]:
    return scored[0], ()


def _lse(scores: FloatArray) -> FloatArray:
    most = scores.max(axis=1)
    return np.asarray(most + np.log(np.exp(scores - most[:, None]).sum(axis=1)))


def softmax_audit(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float = 0.0,
    kappa: Any = None,
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    sample_weight: ArrayLike | None = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    ball: Any = None,
) -> SoftmaxAudit:
    """Check everything and put it together; ``ValueError`` says what is wrong.

    The model is ours, scikit-learn's ``LogisticRegression``, a pipeline or a search that ends in
    one (measured where its last step is fitted), a Result, or ``(coef, intercept)`` of K rows.
    What is None is measured as the model was fitted; the ℓ1 norm and κ = 1 if it does not know.
    Categories and bounds are taken as numbers, which makes the adversary stronger.
    """
    if is_in_blocks(X):
        raise ValueError("audits of several classes take X in memory, got row blocks")
    if space != "fitted":
        raise ValueError(f"space must be 'fitted' for several classes, got {space!r}")
    where, classes, known, costs = "in the units of X", None, fitted_with(model), None
    declared, limits = categories, bounds
    if isinstance(model, tuple | Result):
        given = model if isinstance(model, tuple) else (model.coef, model.intercept)
        coef, intercept = np.asarray(given[0], float), np.asarray(given[1], float)
    else:
        last, found = last_step(model), model
        while hasattr(found, "best_estimator_"):
            found = found.best_estimator_
        if len(getattr(found, "steps", ())) > 1:
            X = found[:-1].transform(X)
            where = f"in the space in which {type(last).__name__} was fitted"
        coef, intercept = np.asarray(last.coef_, float), np.asarray(last.intercept_, float)
        classes = np.asarray(last.classes_)
        if isinstance(last, RobustLinearClassifier):
            costs = last.feature_costs_
            declared = last.categories_ if categories is None else categories
            limits = last.bounds_ if bounds is None else bounds
            X = last._as_matrix(X) if last.encoding_ is not None else X
    matrix = check_features(X)
    intercept = np.broadcast_to(intercept, len(coef))
    if coef.shape[1] != matrix.shape[1]:
        raise ValueError(f"X has {matrix.shape[1]} features, but the model has {coef.shape[1]}")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("the coefficients of the model must be finite")
    labels = check_label_column(y, matrix.shape[0])
    if classes is None:
        classes = np.unique(labels)
    unknown = ~np.isin(labels, classes)
    if unknown.any() or classes.size != len(coef):
        shown = ", ".join(repr(c) for c in classes.tolist()[:8])
        wrong = repr(labels[unknown][:1].tolist()[0]) if unknown.any() else f"{classes.size} labels"
        raise ValueError(f"y must hold labels of the model's {len(coef)}, {shown}, got {wrong}")
    weights = check_weights(sample_weight, labels.size)
    if ball is not None and feature_costs is None:
        costs = ball
    costs = costs if feature_costs is None else feature_costs
    if isinstance(costs, str) and costs == "std":
        spread = np.sqrt(np.average((matrix - np.average(matrix, axis=0, weights=weights)) ** 2,
                                    axis=0, weights=weights))  # fmt: skip
        costs = np.where(spread > 0.0, 1.0 / np.where(spread > 0.0, spread, 1.0), 1.0)

    def make_rows(*, intercept: bool) -> Any:
        ones = np.ones(labels.size)
        return MemoryRows.from_arrays(matrix, ones, weights, intercept=intercept)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        problem = pose_classes(
            make_rows, np.searchsorted(classes, labels), classes, epsilon=epsilon,
            kappa=own_kappa(known.kappa) if kappa is None else kappa,
            norm=(known.norm or "l1") if norm is None else norm, feature_costs=costs,
            categories=None if ball is not None else declared,
            bounds=None if ball is not None else limits,
        )  # fmt: skip
    where += "" if problem.as_given else ", categories and bounds taken as numbers"
    return SoftmaxAudit(problem, problem.join(coef, intercept), where)
