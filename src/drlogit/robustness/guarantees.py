"""A promise about new data: how bad a model can be on the population that unseen rows come from.

The worst-case loss of a fit is about the rows that it was fitted to.  For rows that the model has
not seen, weak duality at a λ that was fixed without them gives

    sup { E_Q loss : W(Q, P) ≤ ε }  ≤  ελ + E_P[R_λ]

for the unknown distribution P behind the rows, ``R_λ`` being what the adversary gets of a row at
the price λ. ``E_P[R_λ]`` is the mean of independent numbers, one per row: it has an upper
confidence limit. So it is for the error, with a price γ and ``(1 - γ d)_+`` in place of ``R_λ``,
d being what it costs to make the prediction of a row wrong. These lie in [0, 1], so that their
limit holds for every number of rows; so does that of the loss where domains leave the adversary
nowhere far to go, and elsewhere it is Student's.

λ is the fit's own where the ball is; else it, like γ, is chosen on a part of the rows that then
takes no part in the limits.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..problem.label_costs import StatedKappa, can_flip, flips_in_words
from ..problem.norms import Norm
from ..rows.arrays import FloatArray, IndexArray
from .adversary import Adversary
from .audit_problem import audit_problem
from .breakpoints import Breakpoints
from .confidence import betting_limit, student_limit
from .measured_model import fitted_with
from .pair_audit import PairAudit
from .subgroups import Subgroup, subgroups

#: The share of the rows on which prices are chosen; it costs the limits a tenth of their precision.
_CHOOSING = 0.2

#: Printed beside every guarantee.
ASSUMED = (
    "Assumed: the rows are independent, of one population, and the model was fixed before they "
    "were looked at."
)

#: Fewer rows than this say nothing about a population.
LEAST_ROWS = 10


@dataclass(frozen=True)
class Guarantee:
    """What holds for a model with a stated confidence, on the population of rows it has not seen.

    Attributes
    ----------
    loss, error : float
        Upper limits of the expected log-loss and of the share of wrong predictions, under every
        distribution within ``epsilon`` of the one that the rows come from.  Both hold at once.
    confidence : float
        Of both together.
    n : int
        Rows that it rests on.
    epsilon, kappa : float, or κ by label, or "by sample"
        The radius and what a flipped label costs.
    mean_loss, mean_error : float
        Of the model on these rows, as they are.
    exact_loss : bool
        Whether the limit of the loss holds for every number of rows, as that of the error does;
        otherwise it is Student's, which wants means that are about normal.
    group : str
        The part of the rows that it speaks of; empty for all of them.
    groups : tuple of Guarantee
        The same for each part, if ``groups`` was given; the confidence is that of all of them.
    """

    loss: float
    error: float
    confidence: float
    n: int
    epsilon: float
    kappa: StatedKappa
    mean_loss: float
    mean_error: float
    exact_loss: bool
    group: str = ""
    groups: tuple[Guarantee, ...] = ()

    def __str__(self) -> str:
        flips = ""
        if can_flip(self.kappa):
            flips = f" ({flips_in_words(self.epsilon, self.kappa)})"
        whose = f" with {self.group}" if self.group else ""
        lines = [
            f"With {self.confidence:.0%} confidence, for every distribution within epsilon = "
            f"{self.epsilon:g}{flips} of the one that these {self.n} rows{whose} come from:",
            f"  expected log-loss <= {self.loss:.4f}   (on the rows as they are: "
            f"{self.mean_loss:.4f})",
            f"  error             <= {self.error:.1%}    (on the rows as they are: "
            f"{self.mean_error:.1%})",
        ]
        lines += [
            f"  {part.group} ({part.n} rows): log-loss <= {part.loss:.4f}, "
            f"error <= {part.error:.1%}"
            for part in self.groups
        ]
        how = (
            "Both limits hold for every number of rows."
            if self.exact_loss
            else "The limit of the error holds for every number of rows, that of the loss is "
            "Student's."
        )
        lines.append(f"{ASSUMED} {how}")
        return "\n".join(lines)


def guarantee(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float | None = None,
    kappa: Any = None,
    confidence: float = 0.95,
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    sample_weight: ArrayLike | None = None,
    groups: Any = None,
    random_state: int = 0,
) -> Guarantee:
    """How bad a model can be on the population that unseen rows come from, at a confidence.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case_loss`.
    X, y : the rows
        Rows that the model was **not** fitted to, nor chosen by.
    epsilon, kappa : optional
        The radius and what a flipped label costs, also by label or by sample; by default the
        model's own (a model that has no radius needs one; κ = 1 if it has none).
    confidence : float
        Of the two limits together, between 0 and 1.
    norm, feature_costs, categories, bounds, space, sample_weight
        As in :func:`drlogit.worst_case_loss`.  Weights say how many rows of the population a row
        stands for; unequal ones count as fewer rows.
    groups : optional
        Parts of the rows to speak of apart, as in :func:`drlogit.audit`; the confidence is then
        that of all statements together.
    random_state : int
        Which rows choose the prices, where the model does not know them.

    Returns
    -------
    Guarantee
        ``loss`` and ``error``, upper limits; ``str()`` is the statement in words, with what it
        assumes.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    radius = fitted_with(model).epsilon if epsilon is None else epsilon
    if radius is None:
        raise ValueError("this model has no radius of its own: say which with epsilon=")
    audit = audit_problem(
        model, X, y, epsilon=radius, kappa=kappa, norm=norm, feature_costs=feature_costs,
        categories=categories, bounds=bounds, space=space, sample_weight=sample_weight,
    )  # fmt: skip
    parts = subgroups(groups, X, audit.weights.size)
    return guarantee_of(audit, confidence, parts, random_state)


def guarantee_of(
    audit: Adversary,
    confidence: float = 0.95,
    parts: tuple[Subgroup, ...] = (),
    random_state: int = 0,
) -> Guarantee:
    """The guarantee of a model on the rows of an audit that it has not seen.

    Any λ that is known before the rows are gives a valid limit, in every ball, and the fit's own a
    good one where radius, κ and norm are its own.
    """
    rows, problem, known = _UnseenRows.of(audit), audit.problem, audit.measured.fitted
    some = np.flatnonzero(audit.weights > 0.0)
    if some.size < LEAST_ROWS:
        raise ValueError(
            f"a guarantee needs at least {LEAST_ROWS} rows of positive weight, got {some.size}"
        )
    order = np.random.default_rng(random_state).permutation(some)
    choosing, rest = np.split(order, [max(int(_CHOOSING * order.size), 2)])
    gamma = rows.best_gamma(choosing)
    own = (known.epsilon, known.norm) == (problem.epsilon, problem.norm.name)
    if known.result is not None and own and np.all(known.kappa == audit.kappa):
        # Known before these rows were: all of them may speak.
        lam, judged = max(known.result.lam, audit.sensitivity), order
        _look_familiar(rows, some, lam, known.result.objective)
    else:
        lam, judged = rows.best_lambda(choosing), rest
    alpha = (1.0 - confidence) / (1 + len(parts))
    whole = rows.limits(judged, rest, lam, gamma, alpha)
    found = []
    for part in parts:
        mine, others = (each[np.isin(each, part.members)] for each in (judged, rest))
        name = f"{part.column} = {part.value}"
        found.append(rows.limits(mine, others, lam, gamma, alpha, name))
    stated = tuple(replace(part, confidence=confidence) for part in found)
    return replace(whole, confidence=confidence, groups=stated)


def _look_familiar(rows: _UnseenRows, some: IndexArray, lam: float, fitted: float) -> None:
    """Warn where the rows give the fit's own number: then they are those that it was fitted to."""
    w = rows.weights[some] / rows.weights[some].sum()
    value = rows.epsilon * lam + float(w @ rows.robust_losses(lam)[some])
    if abs(value - fitted) <= 1e-9 * max(1.0, abs(fitted)):
        warnings.warn(
            "these look like the rows that the model was fitted to: a guarantee speaks of a "
            "population only if the model has not seen its rows",
            UserWarning,
            stacklevel=4,
        )


@dataclass(frozen=True, eq=False)
class _UnseenRows:
    """What the adversary can do to each row, whatever the others are."""

    audit: Adversary
    epsilon: float
    weights: FloatArray
    losses: FloatArray  # h(u)
    breakpoints: Breakpoints
    to_break: FloatArray  # d: least cost of a wrong prediction

    @classmethod
    def of(cls, audit: Adversary) -> _UnseenRows:
        cost = np.minimum(audit.costs_to_break, audit.flip_costs)
        return cls(
            audit,
            audit.problem.epsilon,
            audit.weights,
            audit.losses,
            audit.breakpoints(),
            np.where(audit.u > 0.0, cost, 0.0),
        )

    def robust_losses(self, lam: float) -> FloatArray:
        """``R_λ`` of each row."""
        found = self.breakpoints
        gained = np.maximum(found.gain - lam * found.cost, 0.0)
        return self.losses + np.bincount(found.sample, gained, minlength=self.losses.size)

    def wrong_shares(self, gamma: float) -> FloatArray:
        """``(1 - γ d)_+`` of each row: 1 for those that are wrong already."""
        if math.isinf(gamma):
            return np.where(self.to_break == 0.0, 1.0, 0.0)
        with np.errstate(invalid="ignore"):  # 0·∞ where nothing can be spent or reached
            shares = np.maximum(1.0 - gamma * self.to_break, 0.0)
        return np.where(np.isnan(shares), 1.0, shares)

    def best_lambda(self, rows: IndexArray) -> float:
        """The λ that is best for these rows."""
        share = np.zeros_like(self.weights)
        share[rows] = self.weights[rows] / self.weights[rows].sum()
        spent = np.cumsum(self.breakpoints.masses(share))
        beyond = np.flatnonzero(spent > self.epsilon)
        rate = float(self.breakpoints.rate[beyond[0]]) if beyond.size else 0.0
        return max(rate, self.audit.sensitivity)

    def best_gamma(self, rows: IndexArray) -> float:
        """The best γ for these rows: one over the cost of the last error that ε pays for."""
        if self.epsilon == 0.0:
            return math.inf
        order = rows[np.argsort(self.to_break[rows])]
        spent = np.cumsum(self.weights[order] * self.to_break[order]) / self.weights[rows].sum()
        last = int(np.searchsorted(spent, self.epsilon))
        if last == order.size or not math.isfinite(self.to_break[order[last]]):
            return 0.0
        return 1.0 / float(self.to_break[order[last]])

    def limits(
        self, judged: IndexArray, rest: IndexArray, lam: float, gamma: float, alpha: float,
        group: str = "",
    ) -> Guarantee:  # fmt: skip
        """Both limits, each with half of ``alpha``; errors from ``rest``: others chose γ."""
        each, most = 1.0 - 0.5 * alpha, self._greatest(lam)
        R, w = self.robust_losses(lam)[judged], self._shares(judged)
        if judged.size < LEAST_ROWS:
            loss = most + self.epsilon * lam
        elif math.isfinite(most):
            loss = self.epsilon * lam + _bounded_limit(R / most, w, each) * most
        else:
            loss = self.epsilon * lam + student_limit(R, w, each)
        wrong, v = self.wrong_shares(gamma)[rest], self._shares(rest)
        spent = 0.0 if math.isinf(gamma) else gamma * self.epsilon
        error = min(1.0, spent + _bounded_limit(wrong, v, each))
        return Guarantee(
            loss, error, 1.0 - alpha, int(judged.size), self.epsilon, self.audit.kappa,
            float(w @ self.losses[judged]), float(w @ (self.to_break[judged] == 0.0)),
            math.isfinite(most), group,
        )  # fmt: skip

    def _shares(self, rows: IndexArray) -> FloatArray:
        total = float(self.weights[rows].sum())
        return self.weights[rows] / total if total > 0.0 else self.weights[rows]

    def _greatest(self, lam: float) -> float:
        """What R cannot exceed, whatever the row: finite if every feature is bounded."""
        if not isinstance(self.audit, PairAudit):
            return math.inf
        problem, b = self.audit.problem, self.audit.coefficients
        counts = (b != 0.0) & ~np.isinf(problem.cost.costs)
        domains = problem.domains
        if counts.any() or domains is None:
            return math.inf
        immovable = (b[:-1] != 0.0) & np.isinf(problem.cost.costs[:-1])
        immovable[domains.columns] = False
        if immovable.any():  # any number may stand there
            return math.inf
        low, high = domains.ranges(b)
        ends = np.stack([domains.lower * b[domains.bounded], domains.upper * b[domains.bounded]])
        least = b[-1] + low.sum() + ends.min(axis=0).sum()
        greatest = b[-1] + high.sum() + ends.max(axis=0).sum()
        return float(np.logaddexp(0.0, max(greatest, -least)))


def _bounded_limit(values: FloatArray, shares: FloatArray, confidence: float) -> float:
    """The limit of a mean of values in [0, 1]; weighted rows as values up to the largest weight."""
    if not values.size:
        return 1.0
    relative = shares * values.size
    most = float(relative.max())
    return min(1.0, most * betting_limit(values * relative / most, confidence))
