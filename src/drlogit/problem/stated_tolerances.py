"""How much may be wrong with the data, and the costs at which ε = 1 allows just that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..rows.checks import ParameterError
from .features import Features, position_of
from .parameters import is_number

#: Stands for costs that follow from tolerances, which are resolved with the rows of a fit.
TOLERATED: Final = "tolerated"


@dataclass(frozen=True)
class StatedTolerances:
    """What was declared.

    ``labels`` is a share of the labels, or has one for each label.  ``numbers`` is a share of a
    standard deviation and ``categories`` one of the rows; None stands for sampling error.
    """

    labels: Any
    numbers: float | None
    categories: float | None
    columns: dict[Any, float]

    @classmethod
    def checked(
        cls,
        labels: Any,
        numbers: float | None,
        categories: float | None,
        columns: Mapping[Any, float],
    ) -> StatedTolerances:
        """``ValueError`` names what was typed, the value found and the value wanted."""
        _check("labels", labels.values() if isinstance(labels, Mapping) else [labels], 1.0)
        _check("numbers", [] if numbers is None else [numbers], math.inf)
        _check("categories", [] if categories is None else [categories], 1.0)
        for column, value in columns.items():
            _check("columns", [value], math.inf, f" for {column!r:.60}")
        labels = dict(labels) if isinstance(labels, Mapping) else labels
        return cls(labels, numbers, categories, dict(columns))

    def kappa(self, class_shares: Mapping[Any, float] | None) -> Any:
        """The cost of a wrong label, by label if the tolerances are."""
        given = self.labels
        if not isinstance(given, Mapping):
            return cost_of(given)
        if class_shares is None:
            raise ValueError("labels has a share for each label, so y is needed, too")
        if set(given) != set(class_shares):
            raise ValueError(
                f"labels must have a share for each of the labels {list(class_shares)!r:.80}, got "
                f"them for {list(given)!r:.80}"
            )
        return {label: cost_of(given[label] * share) for label, share in class_shares.items()}

    def of_columns(self, features: Features) -> dict[int, float]:
        """The costs of the columns that were named, by position."""
        found = {}
        for column, value in self.columns.items():
            place = position_of(column, features.names, "columns")
            if features.each[place].is_category:
                _check("columns", [value], 1.0, f" for the category {column!r:.60}")
            found[place] = cost_of(value)
        return found

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that state these tolerances."""
        stated = {k: v for k, v in vars(self).items() if v is not None and v != {}}
        if stated.get("labels") == 0:
            del stated["labels"]
        return stated

    def as_written(self) -> str:
        """The same as text."""
        return ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())


def cost_of(tolerance: float) -> float:
    """The cost at which a budget of one pays for the tolerance; ``inf`` if nothing may be wrong."""
    return 1.0 / tolerance if tolerance > 0.0 else math.inf


def _check(name: str, values: Any, most: float, of: str = "") -> None:
    wanted = "a finite number >= 0" if most > 1.0 else "a share from 0 to 1, such as 0.05"
    for value in values:
        if not (is_number(value) and 0.0 <= value <= most and math.isfinite(value)):
            raise ParameterError(
                name, f"must be {wanted}{of} (0: cannot be wrong), got {value!r:.40}"
            )
