"""What an adversary can do to the rows that a model is judged on, within a ball.

The scores of two classes are 0 and ``s = β·x + b``.  Moving s by Δ costs ``|Δ| / L``, with
``L = ‖β/c‖_*``, where the features may be any numbers; features with domains have other ways
(:mod:`.crossings`).  Another label costs κ.  At the price λ ≥ L a row is worth to the adversary

    loss of the row  +  max over the labels k of  [ (s_y - s_k) - κλ ]_+ ,

and a decision costs the least move of the score across the threshold.  All worst cases of a mean
follow from the hulls of these options (:mod:`.hulls`), and those of a ratio from hulls of tilted
means (:func:`Adversary.ratio`).

For several classes L is the largest ``‖(B_j - B_k)/c‖_*``, and categories and bounds count as
numbers, so that worst cases are upper bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from ..problem.ball import Ball, ColumnBall
from ..problem.domains import Declared, check_domains, dense_columns, domains_of
from ..problem.features import Features, numbers
from ..problem.label_costs import BY_ROW, FlipCosts, codes_among
from ..problem.norms import get_norm
from ..problem.parameters import check_cost_matrix
from ..problem.transport import TransportCost
from ..rows.arrays import BoolArray, FloatArray, IndexArray, refuse_elsewhere
from ..rows.building import checked_rows
from ..rows.checks import as_numbers, check_label_column, check_labels, check_weights
from ..rows.threads import one_blas_thread
from ..rows.warn import warn
from .crossings import Crossings
from .hulls import Decisions, Hull, single_edges
from .metrics import Metric, resolve
from .models import MeasuredModel, measured, scores_of
from .raw_table import Table

#: A label that flips at no cost has this one, so that rows stay as they are at ε = 0.
_FREE = 1e-18


@dataclass(frozen=True, eq=False)
class Adversary:
    """A model, rows, and the ball around them; build it with :meth:`of`.

    Attributes
    ----------
    model : MeasuredModel
    table : Table
        The rows and the model in the table that the ball is stated for.
    ball : Ball
        In plain numbers.
    classes : tuple
        The labels; a positive score stands for the second of two.
    codes : array
        The labels of the rows, as positions among the classes.
    scores : array
        One score for each row, or a row of scores for each of several classes.
    weights : array
        They sum to one.
    log_odds : bool
        Whether scores are log-odds.
    from_rows : bool
        Whether the ball has its deviations from these rows, because those of the rows of the fit
        are not known.
    """

    model: MeasuredModel
    table: Table
    ball: Ball
    classes: tuple[Any, ...]
    codes: IndexArray
    scores: FloatArray
    weights: FloatArray
    log_odds: bool = True
    from_rows: bool = False
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    @one_blas_thread
    def of(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike,
        ball: Ball | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Adversary:
        """Read the model, check the rows and resolve the ball; ``ValueError`` says what is wrong.

        Without a ball it is that of the fit.
        """
        refuse_elsewhere("what asks for the worst case", X, y)
        found = measured(model)
        X = np.asarray(X) if isinstance(X, list | tuple) else X
        if not np.shape(X)[0]:
            raise ValueError(f"X must have at least one row, got shape {np.shape(X)}")
        y = check_label_column(y, np.shape(X)[0])
        given = None if sample_weight is None else as_numbers(sample_weight, "sample_weight")
        weights = check_weights(sample_weight, np.shape(X)[0])
        ball = found.ball if ball is None else ball
        if ball is None:
            raise ValueError(
                f"{found.name or 'a plain model'} was not fitted with a ball, so one is needed, "
                "for example ball=drlogit.Ball.tolerating(labels=0.05)"
            )
        if not isinstance(ball, Ball):
            raise ValueError(f"ball must be a drlogit.Ball, got {ball!r:.60}")
        own = found.ball is not None and _of_same_fit(ball, found.ball)
        table = found.table(X, y, given, own=own)
        log_odds = found.check_scores(X, table)
        if found.classes is None and not found.several:
            check_labels(y, y.size)  # two kinds, or it says so
        classes = np.unique(y) if found.classes is None else np.asarray(found.classes)
        return cls(
            found,
            table,
            ball.resolved(table.features),
            tuple(classes.tolist()),
            codes_among(y, classes),
            scores_of(table.matrix, table.coef, table.intercept),
            weights,
            log_odds,
            from_rows=table.from_rows and _needs_rows(ball, table.features),
        )

    def with_ball(self, ball: Ball) -> Adversary:
        """The same rows with another ball for the same table."""
        return replace(self, ball=ball.resolved(self.table.features))

    # --- the ball, for the columns of the matrix ---------------------------------------------

    @property
    def class_scores(self) -> FloatArray:
        """A score for each class; that of the first of two is zero."""
        if self.several:
            return self.scores
        return np.stack([np.zeros_like(self.scores), self.scores], axis=1)

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return self.scores.ndim == 2

    @cached_property
    def flips(self) -> FloatArray:
        """The cost of another label for each row."""
        kappa, size = self.ball.kappa, len(self.classes)
        if isinstance(kappa, str):
            raise ValueError(
                "kappa differs between the rows of this fit: pass those of these rows as "
                "ball=model.ball_.replace(kappa=values)"
            )
        by_row = BY_ROW if np.ndim(kappa) else None
        stated = FlipCosts.from_stated(by_row or kappa, np.asarray(self.classes))
        # At ε = 0 rows stay as they are, also where a label costs nothing.
        costs = stated.of_samples(self.codes, size, 1.0, kappa if by_row else None)
        return np.asarray(np.maximum(costs.max(axis=1), _FREE))

    @cached_property
    def plain(self) -> ColumnBall:
        """The ball for the columns of the matrix."""
        return self.ball.on(self.table.features)

    @cached_property
    def has_domains(self) -> bool:
        """Whether categories or bounds restrict the moves."""
        ends = np.isfinite(self.plain.lower) | np.isfinite(self.plain.upper)
        return bool(self.plain.groups or ends.any())

    @cached_property
    def cost(self) -> TransportCost:
        """What moves cost; the last entry is that of the intercept."""
        plain, matrix = self.plain, self.table.matrix
        n, norm, domains = matrix.shape[1], get_norm(plain.norm), None
        together = check_cost_matrix(plain.costs, n, norm.name, self.has_domains or self.several)
        costs = np.ones(n) if together is not None else plain.costs.copy()
        if self.has_domains:
            declared = check_domains(plain.groups, (plain.lower, plain.upper), n)
            # Of groups that are stated here, "none of these columns" is a category if it occurs
            # here; a fit knows whether it occurred there.
            of_fit = self.model.ball is not None and _of_same_fit(self.ball, self.model.ball)
            here = bool(self.ball.categories) and not of_fit
            declared = declared._replace(rows_add_none=here, rows_within=False)
            rows = checked_rows(
                matrix, np.ones(matrix.shape[0]), self.weights, intercept=True, n_jobs=1
            )
            domains, costs = domains_of(declared, costs, rows)
            self._warn_beyond(declared)
        if domains is not None:
            costs[domains.columns] = domains.costs_as_numbers if self.several else np.inf
        costs, inside = np.append(costs, np.inf), None if self.several else domains
        return TransportCost(norm, costs, FlipCosts(np.inf), inside, together)

    def _warn_beyond(self, declared: Declared) -> None:
        """Warn of rows beyond the bounds, which keep their place or move back."""
        ends = declared.lower, declared.upper
        columns = np.flatnonzero(np.isfinite(ends).any(axis=0))
        part = dense_columns(self.table.matrix, columns)
        outside = ((part < ends[0][columns]) | (part > ends[1][columns])).any(axis=1)
        if outside.any():
            warn(
                f"{np.count_nonzero(outside)} rows lie beyond the bounds of the ball: they keep "
                "their place or move back, and no other row moves there",
            )

    @cached_property
    def coefficients(self) -> FloatArray:
        """One row for each class, the intercept last; of two classes the first is zero."""
        coef, intercept = np.atleast_2d(self.table.coef), np.atleast_1d(self.table.intercept)
        found = np.column_stack([coef, intercept])
        return found if self.several else np.vstack([np.zeros_like(found), found])

    @cached_property
    def pair_norms(self) -> FloatArray:
        """``‖(B_j - B_k)/c‖_*`` of all pairs of classes."""
        b, norm = self.coefficients, self.cost.dual_norm
        return np.array([[norm(one - other) for other in b] for one in b])

    @cached_property
    def slope(self) -> float:
        """``L``: the gain of unbounded moves per unit of transport.

        They separate two scores, of classes of which a row can have one.
        """
        had = np.bincount(self.codes, self.weights, minlength=len(self.classes)) > 0.0
        had |= bool((np.isfinite(self.flips) & (self.weights > 0.0)).any())
        return float(self.pair_norms[had | had[:, None]].max())

    @cached_property
    def crossings(self) -> Crossings | None:
        """Moves of features with domains; None if there are no such features."""
        domains = self.cost.domains
        if domains is None:
            return None
        return Crossings(self.table.matrix, domains, self.coefficients[1], self.slope)

    # --- metrics ----------------------------------------------------------------------------

    def metric(self, name: Any, threshold: float = 0.5, pos_label: Any = None) -> Metric:
        """The metric for the classes of this model.

        A ``FixedThresholdClassifier`` has a cut-off of its own, which takes the place of 0.5.
        """
        own = self.model
        if own.threshold is not None and threshold == 0.5:
            positive = self.classes[1] if own.pos_label is None else own.pos_label
            pos_label = positive if pos_label is None else pos_label
            threshold = own.threshold if pos_label == positive else 1.0 - own.threshold
        found = resolve(name, self.classes, threshold, pos_label)
        if found.name == "log_loss" and not self.log_odds:
            raise ValueError(
                f"metric 'log_loss' needs scores that are log-odds, and those of {own.name} are "
                "not: ask for a metric of decisions, such as 'error'"
            )
        return found

    @one_blas_thread
    def hull(
        self,
        metric: Metric,
        weights: FloatArray | None = None,
        sign: float | None = None,
        theta: float = 0.0,
    ) -> Hull:
        """The largest mean of ``sign`` times the metric (by default in the worst direction).

        Of a ratio ``E[a] / E[b]`` it is the mean of ``a - θ b``.  The value at a radius is
        ``sign * hull.at(epsilon)``; that of the least log-loss is a lower bound.
        """
        sign = metric.sign if sign is None else sign
        if metric.table is not None:
            return self.decisions(metric, weights).hull(sign * metric.mean(theta))
        found = self._loss_hull(sign) if metric.name == "log_loss" else self._error_hull(sign)
        return found if weights is None else replace(found, weights=weights)

    def nominal(self, metric: Metric, weights: FloatArray | None = None) -> float:
        """The metric of the rows as they are; NaN for a ratio that is not defined there."""
        if metric.table is None:
            return self.hull(metric, weights).nominal
        return self.decisions(metric, weights).nominal(metric)

    @one_blas_thread
    def value(
        self,
        metric: Metric,
        epsilon: float,
        sign: float | None = None,
        weights: FloatArray | None = None,
    ) -> float:
        """The worst value, or the largest (sign 1) or least (-1), in a ball of this radius."""
        sign = metric.sign if sign is None else sign
        if metric.below is not None:
            return self.decisions(metric, weights).ratio(metric, sign, epsilon)[0]
        return sign * self.hull(metric, weights, sign).at(epsilon) + 0.0  # no -0

    @one_blas_thread
    def radius_of(self, metric: Metric, limit: float, weights: FloatArray | None = None) -> float:
        """The least radius at which the worst value reaches a limit; inf if none does."""
        sign = metric.sign
        if sign * (self.nominal(metric, weights) - limit) >= 0.0:
            return 0.0
        if metric.below is not None:
            return self.decisions(metric, weights).radius_of_ratio(metric, sign, limit)
        return self.hull(metric, weights).radius_of(sign * limit)

    def is_exact(self, metric: Metric) -> bool:
        """Whether distributions in the ball come arbitrarily close to the worst value."""
        if self.several:
            return metric.name == "log_loss" and not self.has_domains
        return metric.name == "log_loss" or self.crossings is None or self.crossings.exact

    @cached_property
    def own_scores(self) -> FloatArray:
        """The scores of the rows' own labels."""
        return np.take_along_axis(self.class_scores, self.codes[:, None], axis=1)[:, 0]

    @cached_property
    def losses(self) -> FloatArray:
        """The log-losses of the rows."""
        return np.asarray(np.logaddexp.reduce(self.class_scores, axis=1) - self.own_scores)

    @cached_property
    def leads(self) -> FloatArray:
        """What the worst other label would add to the loss; 0 if the own one is the worst."""
        return np.asarray(self.own_scores - self.class_scores.min(axis=1))

    def decisions(
        self, metric: Metric, weights: FloatArray | None = None, margin: float = 0.0
    ) -> Decisions:
        """Labels and decisions at the threshold of a metric.

        With a margin, rows that change their decision end that far beyond the threshold.
        """
        key = (metric.positive, metric.threshold, margin)
        if self._kept.get("key") != key:
            self._kept.update(key=key, decisions=self._decisions(metric, margin))
        found: Decisions = self._kept["decisions"]
        return found if weights is None else replace(found, weights=weights)

    def _decisions(self, metric: Metric, margin: float) -> Decisions:
        decided, gap, down = self.gaps(metric)
        label = self.codes == metric.positive
        if self.crossings is None:
            reach = lengths(gap + margin, self.slope)
        else:
            every = np.arange(gap.size)
            if margin > 0.0:
                reach = self.crossings.across(every, gap, down, decided, margin).cost
            else:
                reach = self.crossings.cheapest(every, gap, down, decided).least
        return Decisions(label, decided, reach, self.flips, self.weights)

    def gaps(self, metric: Metric) -> tuple[BoolArray, FloatArray, BoolArray]:
        """Whether rows are decided positive, how far scores are from the threshold, and above.

        "Above" means that the score has to fall to change the decision.
        """
        assert metric.threshold is not None
        turned = 1.0 if metric.positive else -1.0
        score, cut = turned * self.scores, float(logit(metric.threshold))
        # The model compares probabilities, which rounding may put on the other side.
        decided = (expit(score) >= metric.threshold) & (metric.threshold < 1.0)
        gap = np.maximum(np.where(decided, score - cut, cut - score), 0.0)
        return decided, gap, decided == (turned > 0.0)

    def _loss_hull(self, sign: float) -> Hull:
        """The largest log-loss, or an upper bound of minus the log-loss."""
        options = np.zeros(self.codes.size, dtype=np.intp)
        if sign > 0.0 and self.crossings is not None:
            signs = np.where(self.codes > 0, 1.0, -1.0)
            edges = self.crossings.loss_edges(self.scores, signs, self.flips)
            return Hull(self.losses, options, edges, self.weights, self.slope)
        gain, slope, most = self.leads, self.slope, math.inf
        if sign < 0.0:
            gain = self.class_scores.max(axis=1) - self.own_scores
            slope, most = self._any_slope, 0.0
        edges = single_edges(self.weights > 0.0, self.flips, gain, -1, slope)
        return Hull(sign * self.losses, options, edges, self.weights, slope, most)

    @property
    def _any_slope(self) -> float:
        """A bound on the gain of all moves per unit of cost, those within domains included."""
        slope = float(self.pair_norms.max())
        if self.crossings is None:
            return slope
        domains = self.crossings.domains
        rates = np.abs(self.coefficients[1][domains.columns]) / domains.costs_as_numbers
        return max(slope, float(rates.max()))

    def _error_hull(self, sign: float) -> Hull:
        """The largest error of several classes, or an upper bound of minus the least."""
        every = np.arange(self.codes.size)
        wrong = self.scores.argmax(axis=1) != self.codes
        apart = sign * (self.own_scores[:, None] - self.scores)
        far = lengths(apart, self.pair_norms[self.codes])
        far[every, self.codes] = np.inf if sign > 0.0 else 0.0
        # One other label is enough to be wrong, and to be right all of them must be passed.
        reach = far.min(axis=1) if sign > 0.0 else far.max(axis=1)
        some = (wrong == (sign < 0.0)) & (self.weights > 0.0)
        edges = single_edges(some, np.minimum(reach, self.flips), np.ones(every.size), 1)
        none = np.zeros_like(every)
        return Hull(sign * wrong, none, edges, self.weights, most=max(sign, 0.0))


def _of_same_fit(ball: Ball, own: Ball) -> bool:
    """Whether a ball was made from that of a fit."""
    return ball.features is not None and ball.features.same_as(own.features)


def _needs_rows(ball: Ball, features: Features) -> bool:
    """Whether the ball would be another one with other rows of the fit."""
    shares = {label: 0.5 * share for label, share in (features.class_shares or {}).items()}
    other = numbers(features.names, 2.0 * features.deviations, 9.0 * features.n_rows, shares)
    if not features.are_columns:
        each = [replace(each, deviation=2.0 * each.deviation) for each in features.each]
        other = replace(other, each=each, n_columns=features.n_columns)
    return ball.resolved(features) != ball.resolved(other)


def lengths(gaps: FloatArray, rate: Any) -> FloatArray:
    """The cost of closing gaps between scores at a rate per unit of transport."""
    gaps = np.maximum(gaps, 0.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.where(rate > 0.0, gaps / rate, np.inf)
