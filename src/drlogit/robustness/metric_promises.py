"""What a metric can be on the population that unseen rows come from, at a confidence.

At a price γ that was fixed without the rows, weak duality gives for the unknown distribution P

    sup { E_Q f : W(Q, P) ≤ ε }  ≤  γε + E_P[R_γ],

and ``R_γ`` lies between the least and the largest value of f.  So the mean of ``R_γ`` over the rows
has an upper limit that holds for every number of them (:func:`.unseen_rows.bounded_limit`).  γ is
chosen on a part of the rows that takes no further part.

A ratio ``E[a]/E[b]`` is at most θ where ``sup E[a - θ b] ≤ 0``.  Values of θ are tested one after
another, from the safe end on, and the last before the first that fails is promised.  To promise a θ
that is too small, the largest of these must have been rejected falsely, so each test takes the
whole confidence (fixed-sequence testing).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem.label_costs import StatedKappa, flips_in_words
from ..rows.arrays import FloatArray, IndexArray
from ..rows.threads import one_blas_thread
from .breakpoints import Hulls
from .extremes import Extremes
from .smooth_metrics import Smooth
from .unseen_rows import LEAST_ROWS, bounded_limit

#: The share of the rows on which prices are chosen.
_CHOOSING = 0.2

#: Ratios are promised in steps of this size.
_STEP = 0.01


_ASSUMED = (
    "Assumed: the rows are independent, of one population, and the model was fixed before they "
    "were looked at."
)


@dataclass(frozen=True)
class MetricPromise:
    """A limit of a metric on the population that rows come from; ``float()`` is the limit.

    Attributes
    ----------
    value, nominal : float
        The limit, from above or, for benefits such as precision, from below, under every
        distribution within ``epsilon`` of the population; and the metric of the rows as they are.
    metric : str
        What it is, with its threshold.
    confidence : float
        With which the limit holds, together with those of all others that were tried.
    n : int
        Rows that it rests on.
    epsilon, kappa : float, or κ by label, or "by sample"
        The ball.
    is_benefit : bool
        Whether the limit is one from below.
    assumed : str
        What the limit rests on.
    """

    value: float
    nominal: float
    metric: str
    confidence: float
    n: int
    epsilon: float
    kappa: StatedKappa
    is_benefit: bool
    assumed: str

    def __float__(self) -> float:
        return self.value

    @property
    def bound(self) -> str:
        return "at least" if self.is_benefit else "at most"

    def __str__(self) -> str:
        return (
            f"With {self.confidence:.0%} confidence, for every distribution within epsilon = "
            f"{self.epsilon:g} ({flips_in_words(self.epsilon, self.kappa)}) of the one that these "
            f"{self.n} rows come from: {self.metric} is {self.bound} {self.value:.4g} "
            f"({self.nominal:.4g} on the rows as they are)"
        )


def split_rows(weights: FloatArray, random_state: int) -> tuple[IndexArray, IndexArray]:
    """Rows that choose, and rows that judge."""
    some = np.flatnonzero(weights > 0.0)
    if some.size < LEAST_ROWS:
        raise ValueError(
            f"a promise needs at least {LEAST_ROWS} rows of positive weight, got {some.size}"
        )
    order = np.random.default_rng(random_state).permutation(some)
    choosing, judged = np.split(order, [max(int(_CHOOSING * order.size), 2)])
    return choosing, judged


@one_blas_thread
def promise_of(
    asked: Extremes,
    confidence: float,
    choosing: IndexArray,
    judged: IndexArray,
    tried: int = 1,
    wanted: float | None = None,
) -> MetricPromise:
    """The limit of a metric, as one of ``tried`` that hold together.

    ``wanted`` is a limit of a ratio that is to be tested for certain, after few others.
    """
    audit, metric = asked.audit, asked.metric
    alpha, epsilon = (1.0 - confidence) / tried, audit.problem.epsilon
    if metric.name == "log_loss":
        raise ValueError("the log-loss has no largest value: guarantee() without metric limits it")
    sign, ends = metric.worst_sign, [1.0]
    if metric.name == "calibration":
        ends, alpha = [-1.0, 1.0], 0.5 * alpha
    if metric.below is not None:
        value = _ratio(asked, choosing, judged, alpha, wanted)
    else:
        found = [_mean(asked, side * sign, choosing, judged, alpha) for side in ends]
        value = max(found, key=abs) if metric.name == "calibration" else found[0]
    weights = np.zeros_like(audit.weights)
    weights[judged] = audit.weights[judged]
    some, assumed = weights[judged], _ASSUMED
    if some.max() > some.min() * (1.0 + 1e-9):
        assumed += " No row of the population has a larger weight than the largest of these."
    return MetricPromise(
        value, asked.nominal(weights), str(metric), confidence, judged.size, epsilon, audit.kappa,
        sign < 0.0, assumed,
    )  # fmt: skip


def _mean(
    asked: Extremes, sign: float, choosing: IndexArray, judged: IndexArray, alpha: float
) -> float:
    table = asked.metric.table
    ends = (float(asked.metric.name == "calibration") * -1.0, 1.0)  # of smooth functions
    if table is not None:
        ends = float((sign * table).min()), float((sign * table).max())
    return sign * min(_limit(asked, asked.part(sign), ends, choosing, judged, alpha), ends[1])


def _ratio(
    asked: Extremes,
    choosing: IndexArray,
    judged: IndexArray,
    alpha: float,
    wanted: float | None,
) -> float:
    """The last θ that passes, from the safe end on: in large steps up to one that is wanted."""
    sign = asked.metric.worst_sign
    promised = 0.5 + 0.5 * sign
    steps = promised - sign * np.arange(_STEP, 1.0, _STEP)
    if wanted is not None:
        before = [theta for theta in steps[9::10] if sign * theta > sign * wanted]
        steps = np.array([*before, wanted, *steps[sign * steps < sign * wanted - 0.5 * _STEP]])
    for theta in steps.tolist():
        table = sign * asked.metric.less(theta)
        ends = float(table.min()), float(table.max())
        if _limit(asked, asked.part(sign, theta), ends, choosing, judged, alpha) > 0.0:
            break
        promised = theta
    return promised


def _limit(
    asked: Extremes, part: Hulls | Smooth, ends: tuple[float, float], choosing: IndexArray,
    judged: IndexArray, alpha: float,
) -> float:  # fmt: skip
    """The upper limit of ``γε + E[R_γ]`` from the rows that judge."""
    audit, (low, high) = asked.audit, ends
    epsilon, w = audit.problem.epsilon, audit.weights
    weights = np.zeros_like(w)
    weights[choosing] = w[choosing] / w[choosing].sum()
    price = asked.price_of(part, weights, epsilon) if epsilon > 0.0 else 1e300
    gained = part.at_price(price)[0][judged]
    confidence = 1.0 - alpha
    mean = bounded_limit(np.clip(gained, low, high), w[judged], confidence, low=low, high=high)
    return mean + (price * epsilon if epsilon > 0.0 else 0.0)
