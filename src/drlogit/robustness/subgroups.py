"""Loss, error and worst case in each part of the samples: by sex, by region, by year.

The worst case of a subgroup is that of its samples alone, within the same radius: ε is how far they
may move on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray
from .misclassification import worst_error
from .old_adversary import Adversary

#: The largest number of subgroups: a page with more would not be read.
MOST_SUBGROUPS = 30


@dataclass(frozen=True, eq=False)
class Subgroup:
    """A part of the samples; ``column`` and ``value`` say which."""

    column: str
    value: str
    members: IndexArray

    def __str__(self) -> str:
        return f"{self.column} = {self.value}"

    def part_of(self, weights: FloatArray) -> FloatArray:
        """The weights of the members, and 0 elsewhere."""
        part = np.zeros_like(weights)
        part[self.members] = weights[self.members]
        return part


def subgroups(groups: Any, X: Any, n_samples: int) -> tuple[Subgroup, ...]:
    """The groups by columns of X (a name or several) or by values of the samples."""
    if groups is None:
        return ()
    if isinstance(groups, Mapping):
        columns = {str(name): np.asarray(values) for name, values in groups.items()}
    elif isinstance(groups, str):
        columns = {groups: _column(X, groups)}
    elif isinstance(groups, list) and len(groups) != n_samples and set(map(type, groups)) <= {str}:
        columns = {name: _column(X, name) for name in groups}
    else:
        columns = {str(getattr(groups, "name", None) or "group"): np.asarray(groups)}
    found = []
    for name, values in columns.items():
        if values.shape != (n_samples,):
            raise ValueError(
                f"groups must have one value per sample, {n_samples}, got shape {values.shape}"
            )
        found += _parts(name, values)
    return tuple(found)


def _column(X: Any, name: str) -> NDArray[Any]:
    if name not in list(getattr(X, "columns", ())):
        raise ValueError(f"groups names the column {name!r:.60}, which X does not have")
    return np.asarray(X[name])


def _parts(name: str, values: NDArray[Any]) -> list[Subgroup]:
    texts = np.array(["missing" if v is None or v != v else str(v) for v in values.tolist()])
    levels, codes = np.unique(texts, return_inverse=True)
    if levels.size > MOST_SUBGROUPS:
        raise ValueError(
            f"groups must have at most {MOST_SUBGROUPS} different values, got {levels.size} in "
            f"{name!r:.60}: cut it into ranges"
        )
    return [
        Subgroup(name, str(level), np.flatnonzero(codes == k)) for k, level in enumerate(levels)
    ]


def subgroup_risks(
    audits: Iterable[Adversary], parts: tuple[Subgroup, ...], radii: FloatArray
) -> list[dict[str, Any]]:
    """Loss and error of models on each subgroup, now and in the worst case; None without weight."""
    found: list[dict[str, Any]] = [
        {"column": part.column, "value": part.value, "size": part.members.size, "models": []}
        for part in parts
    ]
    for audit in audits if parts else ():
        for part, entry in zip(parts, found, strict=True):
            weights = part.part_of(audit.weights)
            total = float(weights.sum())
            weights /= total or 1.0
            risk = {
                "loss": float(weights @ audit.losses),
                "error": float(weights[audit.wrong].sum()),
                "worst_loss": audit.loss_curve(weights).at(radii),
                "worst_error": worst_error(audit, weights).at(radii),
            }
            entry["models"].append(risk if total > 0.0 else None)
    return found
