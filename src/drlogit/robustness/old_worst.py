"""Records of worst cases for audits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..problem.label_costs import StatedKappa, flips_in_words
from ..rows.arrays import FloatArray
from .extremes import Extremes
from .subgroups import Subgroup

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class WorstCase:
    """A metric over the Wasserstein ball; ``float()`` is the worst value.

    Attributes
    ----------
    value, best, nominal : float
        The metric in the worst case, in the best case, and on the samples as they are.
    low, high : float
        The least and the largest value in the ball.
    epsilon, kappa : float, or κ by label, or "by sample"
        The ball.
    metric : str
        Its name, with the threshold.
    n : int
        The number of samples.
    exact : bool
        Whether some distribution in the ball comes arbitrarily close to the worst value; otherwise
        it is a bound that may be slightly too pessimistic.
    group : str
        The group of samples that the record describes; empty for all samples.
    groups : tuple of WorstCase
        The record of each group, in a ball of the same radius around the group alone.
    """

    value: float
    best: float
    nominal: float
    low: float
    high: float
    epsilon: float
    kappa: StatedKappa
    metric: str
    n: int
    exact: bool
    group: str = ""
    groups: tuple[WorstCase, ...] = ()

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        said = f"at {'least' if self.value < self.high else 'most'} {self.value:.4g}"
        lines = [
            f"{self.metric} is {self.nominal:.4g} on these {self.n} rows. Within epsilon = "
            f"{self.epsilon:g} of them ({flips_in_words(self.epsilon, self.kappa)}) it is {said}; "
            f"the best case is {self.best:.4g}."
        ]
        lines += [
            f"  {part.group} ({part.n} rows): {part.nominal:.4g}; worst case {part.value:.4g}"
            for part in self.groups
        ]
        return "\n".join(lines)


def with_groups(asked: Extremes, epsilon: float, parts: tuple[Subgroup, ...]) -> WorstCase:
    """The record of a metric, with each group of samples and the largest gap between two."""
    whole, defined = worst_case_of(asked, epsilon), _defined(asked, parts)
    if not defined:
        return whole
    found = [
        worst_case_of(asked, epsilon, weights, str(part), part.members.size)
        for part, weights in defined
    ]
    return replace(whole, groups=tuple(found))


def worst_case_of(
    asked: Extremes,
    epsilon: float,
    weights: FloatArray | None = None,
    group: str = "",
    n: int | None = None,
) -> WorstCase:
    """The record of a metric on all samples, or on those with positive ``weights``."""
    audit, sign = asked.audit, asked.metric.worst_sign
    if weights is not None:
        weights = weights / float(weights.sum())
    low, high = (asked.end(side, epsilon, weights) for side in (-1.0, 1.0))
    value, best = (high, low) if sign > 0.0 else (low, high)
    return WorstCase(
        value, best, asked.nominal(weights), low, high, epsilon, audit.kappa, str(asked.metric),
        audit.weights.size if n is None else n, asked.is_exact(sign), group,
    )  # fmt: skip


def _defined(asked: Extremes, parts: tuple[Subgroup, ...]) -> list[tuple[Subgroup, FloatArray]]:
    """The groups in which the metric is defined, each with weights that are 0 elsewhere."""
    found = []
    for part in parts:
        weights = part.part_of(asked.audit.weights)
        try:
            if float(weights.sum()) == 0.0:
                raise ValueError("the group has no weight")
            asked.nominal(weights)
        except ValueError as error:
            warnings.warn(f"group {part} is skipped: {error}", UserWarning, stacklevel=4)
        else:
            found.append((part, weights))
    return found
