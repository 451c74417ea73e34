"""What the adversary gets of each row at fixed prices λ and γ, and upper limits of its mean.

Rows are independent draws ``(x, w)`` of a number and a weight, and a limit is one of the weighted
mean ``E[w x] / E[w]`` of the population that they come from.

:func:`bounded_limit` holds for every number of rows.  It needs numbers that lie between known ends,
and weights below a known largest one.  It is the betting limit of Waudby-Smith and Ramdas (2024, J.
R. Stat. Soc. B 86, Theorem 3, one-sided): if the mean were μ, then ``E[w (μ - x)] = 0``, and the
capital ``Π_t (1 + b_t w_t (μ - x_t))`` of bets ``b_t ≥ 0`` placed before row t is seen would be a
martingale.  By Ville's inequality it exceeds ``1/(1 - confidence)`` with the remaining probability
only.  Every μ at which it does is ruled out.  Weights stay inside the bets: dividing by their sum
in the sample would make the mean a ratio, for which the inequality does not hold.

:func:`approximate_limit` is for numbers without a largest one, for which no limit holds for every
population.  It is a Student t limit after Hall's (1992, J. R. Stat. Soc. B 54) transformation,
which removes the effect of skewness: of 8,000 limits of 97.5 % for the log-loss of 60 rows 97.1 %
held (93.9 % without it), and 99.4 % (97.8 %) of as many of 99.6 %.  It fails where most of the loss
is on rows that are too rare to be in the sample.  So it is given only if the rare labels have ten
rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.threads import one_blas_thread
from .adversary import Adversary

#: Fewer rows than this, or fewer rows of the rare labels, have no approximate limit.
LEAST_ROWS = 10

#: A bet never risks more than this share of the capital, so that the capital stays positive.
_MOST = 0.75


def own_lambda(audit: Adversary) -> float | None:
    """The λ of the fit, if it is known, and radius, κ and norm are its own."""
    fit, problem = audit.measured.fit, audit.problem
    if fit is None or fit.result_ is None or not np.all(fit.kappa_ == audit.kappa):
        return None
    same = (fit.epsilon_, fit.norm) == (problem.epsilon, problem.norm.name)
    return max(fit.result_.lam, audit.sensitivity) if same else None


@one_blas_thread
def best_prices(audit: Adversary, rows: IndexArray) -> tuple[float, float]:
    """λ and γ that are best for these rows: what the last that ε pays for gains per cost."""
    epsilon, share = audit.problem.epsilon, np.zeros_like(audit.weights)
    share[rows] = audit.weights[rows] / audit.weights[rows].sum()
    lam = max(audit.breakpoints.price(share, epsilon), audit.sensitivity)
    return lam, audit.errors.price(share, epsilon) if epsilon > 0.0 else math.inf


def _greatest_loss(audit: Adversary) -> float:
    """What R cannot exceed where rows keep to the domains; infinite if a feature has none.

    A level that is not known has zeros in all columns of its category.
    """
    if not audit.coefficients[:, :-1].any():  # constant scores: only labels change
        return float(np.logaddexp.reduce(audit.scores[:, 0]) - audit.scores[:, 0].min())
    if audit.domain_moves is None:
        return math.inf
    domains, costs, b = audit.domain_moves.domains, audit.problem.costs, audit.coefficients[1]
    # Any number may stand in a column that has no domain, whether it can move or not.
    free = b[:-1] != 0.0
    free[domains.columns] = False
    if free.any() or ((b != 0.0) & np.isfinite(costs)).any():
        return math.inf
    low, high = domains.ranges(b)
    ends = np.stack([domains.lower * b[domains.bounded], domains.upper * b[domains.bounded]])
    least = b[-1] + np.minimum(low, 0.0).sum() + ends.min(axis=0).sum()
    greatest = b[-1] + np.maximum(high, 0.0).sum() + ends.max(axis=0).sum()
    return float(np.logaddexp(0.0, max(greatest, -least)))


def constant_model(audit: Adversary, seen: Adversary, rows: IndexArray) -> Adversary:
    """The rows of ``audit`` for the model that gives each of them the shares of labels in others.

    These are some ``rows`` of ``seen``, and half a row more for each label.
    """
    counts = np.bincount(seen.codes[rows], seen.weights[rows], minlength=len(seen.classes))
    odds = np.log(rows.size * counts / counts.sum() + 0.5)
    b = np.zeros_like(audit.coefficients)
    b[:, -1] = odds - odds[0]
    scores = np.repeat(b[:, -1:], audit.codes.size, axis=1)
    return replace(audit, coefficients=b, scores=scores)


@dataclass(frozen=True, eq=False)
class PricedRows:
    """What rows count for at prices λ and γ that were fixed without them."""

    weights: FloatArray
    labels: NDArray[Any]
    losses: FloatArray  # h(u)
    wrong: BoolArray
    robust: FloatArray  # R_λ, at most ``most``
    shares: FloatArray  # (1 - γd)_+
    radius_loss: FloatArray  # ελ
    radius_error: FloatArray  # εγ
    most: float
    classes: tuple[Any, ...]
    largest_weight: float | None = None  # of any row of the population, in the unit of the weights

    @classmethod
    @one_blas_thread
    def of(cls, audit: Adversary, lam: float, gamma: float) -> PricedRows:
        """The rows of an audit."""
        d, found, epsilon = audit.costs_to_err, audit.breakpoints, audit.problem.epsilon
        gained = np.maximum(found.gain - lam * found.cost, 0.0)
        robust = audit.losses + np.bincount(found.sample, gained, minlength=d.size)
        most = _greatest_loss(audit)
        if audit.measured.bounds_from_rows:  # these rows may lie beyond them
            most = max(most, float(robust.max()))
        with np.errstate(invalid="ignore"):  # ∞·0: wrong already; 0·∞: all that can be
            shares = np.maximum(1.0 - gamma * d, 0.0)
        return cls(
            audit.weights,
            np.asarray(audit.classes)[audit.codes],
            audit.losses,
            d == 0.0,
            robust,
            np.where(np.isnan(shares), 1.0, shares),
            np.full_like(d, epsilon * lam),
            np.full_like(d, epsilon * gamma if epsilon > 0.0 else 0.0),
            most,
            audit.classes,
        )

    @classmethod
    def pooled(cls, parts: list[PricedRows], weights: FloatArray | None) -> PricedRows:
        """The rows of several models as one; ``weights`` are as they were given."""
        joined = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(cls)
            if field.name not in ("weights", "most", "classes", "largest_weight")
        }
        weights = np.ones(joined["losses"].size) if weights is None else weights
        classes = tuple({label: None for part in parts for label in part.classes})
        most = max(part.most for part in parts)
        made: dict[str, Any] = {"weights": weights, "most": most, "classes": classes, **joined}
        return cls(**made)

    def shares_of(self, rows: IndexArray) -> FloatArray:
        """The weights of some rows, which sum to one."""
        total = float(self.weights[rows].sum())
        return self.weights[rows] / total if total > 0.0 else self.weights[rows]

    @property
    def largest(self) -> float:
        """No row of the population has a larger weight, as far as anybody says."""
        return float(self.weights.max()) if self.largest_weight is None else self.largest_weight

    @one_blas_thread
    def limit_of_loss(self, rows: IndexArray, alpha: float) -> float:
        """An upper limit that fails with a probability of ``alpha``; infinite if there is none."""
        R, w, confidence = self.robust[rows], self.weights[rows], 1.0 - alpha
        if math.isfinite(self.most):
            largest = self.largest
            limit = bounded_limit(R, w, confidence, high=self.most, largest_weight=largest)
        else:
            limit = math.inf if self.why_no_limit(rows) else approximate_limit(R, w, confidence)
        return limit + float(self.shares_of(rows) @ self.radius_loss[rows])

    @one_blas_thread
    def limit_of_error(self, rows: IndexArray, alpha: float) -> float:
        """The same for the error."""
        values, w = self.shares[rows], self.weights[rows]
        limit = bounded_limit(values, w, 1.0 - alpha, largest_weight=self.largest)
        return min(1.0, limit + float(self.shares_of(rows) @ self.radius_error[rows]))

    def why_no_limit(self, rows: IndexArray) -> str:
        """Why the mean loss of these rows has no limit, neither exact nor approximate, if so.

        The loss of a label that hardly occurs in the rows is not known, and may be most of all.
        """
        if math.isfinite(self.most):
            return ""
        counts = [np.count_nonzero(self.labels[rows] == label) for label in self.classes]
        rare = [k for k, count in enumerate(counts) if count < LEAST_ROWS]
        many = sum(counts[k] for k in rare)
        if rare and many < LEAST_ROWS:
            labels = " or ".join(f"{self.classes[k]!r:.30}" for k in rare[:3])
            have = "row has" if many == 1 else "rows have"
            return f"only {many} {have} the label {labels}, expected at least {LEAST_ROWS}"
        if self.weights[rows].sum() < LEAST_ROWS * self.largest:
            return f"the rows weigh less than {LEAST_ROWS} rows of the largest weight"
        return ""


def bounded_limit(
    values: FloatArray,
    weights: FloatArray | None,
    confidence: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    largest_weight: float | None = None,
) -> float:
    """Upper limit of a weighted mean of numbers from ``low`` to ``high``, for every number of rows.

    Parameters
    ----------
    values, weights : arrays
        One number and one weight for each row, in an order that does not depend on them; None for
        equal weights.
    confidence : float
        How often the limit holds, at least.
    low, high : float
        Ends of what the numbers can be.
    largest_weight : float, optional
        No row of the population has a larger weight; by default the largest weight at hand, and
        then the limit rests on that.
    """
    m, width = values.size, high - low
    if m == 0 or not width > 0.0:
        return high
    w = np.ones(m) if weights is None else weights / (largest_weight or weights.max())
    x = (values - low) / width
    # Bets may depend on the rows seen before, and on m, but not on the row that is bet upon.
    means = (0.5 + np.cumsum(w * x)) / (1.0 + np.cumsum(w))
    counts = np.arange(1, m + 1)
    variances = (0.25 + np.cumsum(np.square(w * (x - means)))) / (counts + 1.0)
    before = np.append(0.25, variances[:-1])
    goal = -math.log1p(-confidence)
    bets = np.sqrt(2.0 * goal / (m * before))

    def ruled_out(mean: float) -> bool:
        # w ≤ 1 and x ≤ 1, so that a bet up to 1/(1 - mean) cannot lose everything.  The capital
        # rises with the mean, also where this limits the bets.
        bounded = np.minimum(bets, _MOST / max(1.0 - mean, 1e-300))
        return bool(np.cumsum(np.log1p(bounded * w * (mean - x))).max() >= goal)

    least, most = 0.0, 1.0
    if not ruled_out(most):
        return high
    for _ in range(50):
        middle = 0.5 * (least + most)
        if ruled_out(middle):
            most = middle
        else:
            least = middle
    return low + most * width


def approximate_limit(values: FloatArray, weights: FloatArray, confidence: float) -> float:
    """Upper limit of a weighted mean of any numbers, where it is about normal.

    The weighted mean of n rows is a ratio, so its error is the mean of ``n w (x - mean)`` with
    weights that sum to one.  Unequal weights count as ``1 / Σ w²`` rows.  It is infinite for fewer
    than three rows.
    """
    n = values.size
    share = weights / weights.sum()
    mean, square = float(share @ values), float(share @ share)
    if n < 3 or square > 0.5:
        return math.inf
    errors = n * share * (values - mean)
    deviation = math.sqrt(float(errors @ errors) / (n - 1))
    if deviation == 0.0:
        return mean
    quantile = float(stats.t.ppf(confidence, 1.0 / square - 1.0))
    third = float(np.sum((errors / deviation) ** 3)) * n / ((n - 1) * (n - 2))
    skewness = max(third, 0.0) / math.sqrt(n)
    if skewness > 1e-6:  # Hall's transformation, inverted
        cube = 1.0 - skewness * (quantile + skewness / 6.0)
        quantile = 3.0 / skewness * (1.0 - float(np.cbrt(cube)))
    return mean + quantile * deviation / math.sqrt(n)
