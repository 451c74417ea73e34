"""The Wasserstein ball that a model is fitted against, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..rows.arrays import FloatArray, IndexArray
from .label_costs import Trust


@dataclass(frozen=True, eq=False)
class Ball:
    """ε, κ, the transport norm by name, a cost for each feature, and whether there is an intercept.

    ``trust`` is how many times κ a flip costs, by class, if classes differ; if samples do, it says
    so, and who asks about samples has to say what their flips cost.
    ``feature_costs`` is None where every feature costs 1.  ``groups`` are columns of categories,
    also of those that cannot change if each sample has one, and ``lower`` and ``upper`` are the
    ends of what each feature can be, infinite for none.
    """

    epsilon: float
    kappa: float
    norm: str
    feature_costs: FloatArray | None = None
    fit_intercept: bool = True
    groups: tuple[IndexArray, ...] = ()
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    trust: Trust = None
