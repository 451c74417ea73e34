"""The radius at which the worst case of a metric reaches a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .audit_problem import BallOptions, audit_problem
from .extremes import Extremes
from .feature_risk import allowed_at
from .metrics import metric_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class BreakingPoint:
    """The radius at which the worst case of a metric reaches a limit; ``float()`` is the radius.

    Attributes
    ----------
    epsilon : float
        The smallest radius of a ball that contains a distribution at the limit: 0 if the samples
        are already past it, ``inf`` if no radius is large enough.
    limit, nominal : float
        The limit, and the metric on the samples as they are.
    metric : str
        Its name, with the threshold.
    allowed : tuple of str
        The errors in the data that the radius allows, one sentence each.
    exact : bool
        Whether the radius is exact; otherwise it may be slightly too small.
    """

    epsilon: float
    limit: float
    nominal: float
    metric: str
    allowed: tuple[str, ...]
    exact: bool

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        now = f"{self.metric} is {self.nominal:.4g} on these rows"
        if math.isinf(self.epsilon):
            return f"{now}. It cannot reach {self.limit:.4g} at any radius."
        if self.epsilon == 0.0:
            return f"{now}, which is already past the limit {self.limit:.4g}."
        means = "".join(f"\n  {sentence}" for sentence in self.allowed)
        at = f"It can reach {self.limit:.4g} at epsilon = {self.epsilon:.4g}"
        return f"{now}. {at}, which allows:{means}"


def breaking_point(
    model: Any,
    X: Any,
    y: ArrayLike,
    metric: Any,
    limit: float,
    *,
    threshold: Any = 0.5,
    kappa: Any = None,
    **ball: Unpack[BallOptions],
) -> BreakingPoint:
    """Find the smallest radius at which the worst case of a metric reaches a limit.

    Parameters
    ----------
    model, X, y, metric, threshold, kappa, **ball
        As in :func:`drlogit.worst_case`.
    limit : float
        The value that the metric must not exceed or, for benefits such as precision, must not fall
        below.  A negative limit of the calibration is a limit from below.

    Returns
    -------
    BreakingPoint
        ``.epsilon``; ``str()`` also lists the errors in the data that this radius allows.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 3, random_state=0)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.0).fit(X, y)
    >>> drlogit.breaking_point(model, X, y, "error", 0.5).epsilon > 0.0
    True
    """
    if not math.isfinite(limit):
        raise ValueError(f"limit must be a finite number, got {limit!r}")
    audit = audit_problem(model, X, y, epsilon=0.0, kappa=kappa, **ball)
    asked = Extremes(audit, metric_of(audit, metric, threshold))
    sign = asked.metric.worst_sign
    if asked.metric.name == "calibration":
        sign = math.copysign(1.0, limit)
    epsilon = asked.radius_of(float(limit), sign)
    allowed = allowed_at(audit, np.array([epsilon]))[0] if math.isfinite(epsilon) else []
    return BreakingPoint(
        epsilon, float(limit), asked.nominal(), str(asked.metric), tuple(allowed),
        asked.is_exact(sign),
    )  # fmt: skip
