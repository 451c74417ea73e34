"""What it costs to flip a label: one κ, one for each class, or one for each sample.

A recorded fraud is certain, a recorded non-fraud may be one that nobody noticed; a label that an
expert has reviewed is beyond doubt (κ = ∞), one that is a guess is unknown (κ = 0).  By class, κ
belongs to the label *as recorded*.

Rows carry κ as multiples of a unit, the κ of the problem (``Block.trust``), so that a search over
κ multiplies one number.  The unit is a power of two, which multiplies exactly, near the least
positive κ: no more than about ``ε / unit`` of the labels can flip.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.checks import as_numbers
from ..rows.interface import Rows, State
from ..rows.reductions import Max, Min
from ..rows.row_blocks import is_dask
from .parameters import check_kappa

#: What stands for the κ of unknown labels, in units: times λ it vanishes beside any loss, and still
#: nothing is divided by zero.
_UNKNOWN = 2.0**-60


class ByClass(NamedTuple):
    """A number for each of two classes, the one that sorts first before the other."""

    negative: float
    positive: float

    def times(self, factor: float) -> ByClass:
        """Each multiplied by a positive number."""
        return ByClass(factor * self.negative, factor * self.positive)


#: How the multiples of a problem's κ are stated: not at all, by class, or sample by sample.
Trust: TypeAlias = ByClass | Literal["by sample"] | None


def is_stated_singly(kappa: Any) -> bool:
    """Whether κ is one number for all labels."""
    return np.ndim(kappa) == 0 and not isinstance(kappa, Mapping)


def flip_costs(kappa: Any, classes: NDArray[Any], codes: Any) -> Any:
    """κ as one number, as :class:`ByClass`, or as an array with one for each sample.

    ``kappa`` is a number, a dict of labels to numbers, one number for each sample, or a matrix
    whose rows are observed labels; ``codes`` are the labels as positions among the ``classes``.
    """
    if is_stated_singly(kappa):
        return check_kappa(kappa)
    if isinstance(kappa, Mapping):
        each = _of_labels(kappa, classes)
    elif isinstance(kappa, ByClass) or is_dask(kappa):
        return kappa
    else:
        values = as_numbers(kappa, "kappa")
        if values.ndim == 1:
            return values
        each = _of_matrix(values, classes)
    return ByClass(*each.tolist()) if classes.size == 2 else each[np.asarray(codes)]


def _of_labels(kappa: Mapping[Any, Any], classes: NDArray[Any]) -> FloatArray:
    labels = classes.tolist()
    unknown = [label for label in kappa if label not in labels]
    missing = [label for label in labels if label not in kappa]
    if unknown or missing:
        raise ValueError(
            f"kappa must have a cost for each of the labels {labels!r:.80}, got them for "
            f"{list(kappa)!r:.80}"
        )
    return np.array([check_kappa(kappa[label], least=0.0) for label in labels])


def _of_matrix(matrix: FloatArray, classes: NDArray[Any]) -> FloatArray:
    """The costs off the diagonal of a 2 × 2 matrix."""
    if classes.size != 2 or matrix.shape != (2, 2):
        raise ValueError(
            f"kappa as a matrix must have a row and a column for each of {classes.size} labels, "
            f"two at most, got shape {matrix.shape}"
        )
    if matrix.diagonal().any():
        raise ValueError(
            "kappa as a matrix must be zero on its diagonal (a label that stays), got "
            f"{matrix.diagonal().tolist()}"
        )
    return matrix[[0, 1], [1, 0]]


def with_flip_costs(rows: Rows, kappa: Any) -> tuple[Rows, float, Trust]:
    """Rows that carry what :func:`flip_costs` found, the unit, and how the multiples are stated."""
    if is_stated_singly(kappa):
        return rows, check_kappa(kappa), None
    if isinstance(kappa, ByClass):
        costs: State = rows.run(_by_class, None, kappa)[0]
    else:
        if not is_dask(kappa) and kappa.shape != (rows.n_samples,):
            raise ValueError(f"kappa must have shape ({rows.n_samples},), got {kappa.shape}")
        costs = rows.scatter(kappa)
    _, (least, most, positive, good) = rows.run(_range, costs)
    if not good:
        raise ValueError("kappa must be numbers >= 0 (0: label unknown, inf: beyond doubt)")
    if not most > 0.0:
        raise ValueError("kappa must be > 0 for some labels, got 0 for all of them")
    if least == most:
        return rows, float(least), None
    unit = 2.0 ** math.floor(math.log2(positive)) if math.isfinite(positive) else 1.0
    trust: Trust = kappa.times(1.0 / unit) if isinstance(kappa, ByClass) else "by sample"
    return rows.with_trust(rows.run(_in_units, costs, unit)[0]), unit, trust


def _by_class(block: Block, _: None, costs: ByClass) -> tuple[FloatArray, tuple[()]]:
    return np.where(block.y > 0.0, costs.positive, costs.negative), ()


def _range(block: Block, costs: FloatArray) -> tuple[FloatArray, tuple[Min, Max, Min, Min]]:
    """The least and the greatest cost, the least positive one, and whether all are costs."""
    positive = costs[(costs > 0.0) & np.isfinite(costs)]
    good = costs.size == block.y.size and bool((costs >= 0.0).all())
    return costs, (
        Min(np.min(costs, initial=np.inf)),
        Max(np.max(costs, initial=-np.inf)),
        Min(np.min(positive, initial=np.inf)),
        Min(float(good)),
    )


def _in_units(block: Block, costs: FloatArray, unit: float) -> tuple[FloatArray, tuple[()]]:
    return np.where(costs == 0.0, _UNKNOWN, costs / unit), ()
