"""The cost κ of flipping a label: a number, or one for each class, pair of classes or sample.

Costs by class express which labels to trust.  A recorded fraud is certain, but a recorded
non-fraud may be a fraud that nobody noticed.  A label that an expert has reviewed cannot flip
(κ = ∞); a guessed label flips at no cost (κ = 0).  A cost by class belongs to the label *as
recorded*.  :class:`FlipCosts` carries κ from the call to kernels, certificates and audits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, IndexArray, in_memory, is_dask
from ..rows.blocks import Block
from ..rows.checks import as_numbers
from ..rows.interface import Rows, State
from ..rows.reductions import Max, Min
from .parameters import check_kappa

#: Stands for costs that differ between samples; a fit does not keep the costs themselves.
BY_ROW: Final = "by row"

#: Solvers ignore flips that cost more than this times ε.  Such a flip does not pay at any
#: λ > u/κ, so ignoring it lowers the objective by at most ``ε u/κ``, 1e-15 of the margin u.
#: Certificates count every flip at its own κ.
_OUT_OF_REACH = 2.0**50

#: κ as users state it: a number, a dict by label, or ``"by sample"``.
StatedKappa: TypeAlias = float | dict[Any, float] | str


@dataclass(frozen=True, eq=False)
class FlipCosts:
    """κ as one unit and its multiples; a search over κ changes the unit.

    ``multiples`` is None if every flip costs the unit, an array with a number for each observed
    label, or ``BY_ROW``.  Unless it is None, the rows hold the multiples of the samples
    (``Block.flip_multiples``).
    """

    unit: float
    multiples: FloatArray | str | None = None

    @classmethod
    def from_stated(cls, kappa: StatedKappa, classes: NDArray[Any]) -> FlipCosts:
        """κ as users state it."""
        if isinstance(kappa, str):
            return cls(1.0, BY_ROW)
        if not isinstance(kappa, Mapping):
            return cls(float(kappa))
        costs = np.array([*costs_by_label(kappa, classes).values()])
        unit = _unit(float(np.min(costs[costs > 0.0], initial=np.inf)))
        return cls(unit, _scaled(costs, 1.0 / unit))

    @property
    def kappa(self) -> float | FloatArray:
        """κ as a number, or an array by observed label; the unit, if κ differs between samples."""
        if self.multiples is None or isinstance(self.multiples, str):
            return self.unit
        return _scaled(self.multiples, self.unit)

    @cached_property
    def possible(self) -> bool:
        """Whether any label can flip."""
        return bool(np.isfinite(self.kappa).any())

    def times(self, factor: float) -> FlipCosts:
        """All costs times a factor."""
        return FlipCosts(self.unit * factor, self.multiples)

    def by_label(self, block: Block, codes: NDArray[np.int32], n_classes: int) -> FloatArray:
        """The cost of each label for the samples of a block, (labels, samples)."""
        found = block.flip_costs(self.unit)
        return np.where(np.arange(n_classes)[:, None] == codes, 0.0, found)

    def of_samples(
        self, codes: IndexArray, n_classes: int, epsilon: float, kappa: Any = None
    ) -> FloatArray:
        """The cost of each label for each sample; pass ``kappa`` if it differs between samples.

        ``codes`` are the labels as positions among the classes.  At ε = 0 no label can change.
        """
        if (kappa is None) == isinstance(self.multiples, str):
            raise ValueError(
                "pass kappa if, and only if, the model was fitted with one kappa for each sample"
            )
        if kappa is None:
            found = np.broadcast_to(self.kappa, n_classes)[codes]
        else:
            found = as_numbers(in_memory(kappa), "kappa")
            if found.shape != codes.shape or not (found >= 0.0).all():
                raise ValueError(f"kappa must be {codes.size} numbers >= 0, got {found.shape}")
        found = found if epsilon > 0.0 else np.full(codes.shape, np.inf)
        return np.where(np.arange(n_classes) == codes[:, None], 0.0, found[:, None])

    def stated(self, classes: NDArray[Any]) -> StatedKappa:
        """κ as a user would state it."""
        if isinstance(self.multiples, str):
            return BY_ROW
        if self.multiples is None:
            return self.unit
        return dict(zip(classes.tolist(), np.asarray(self.kappa).tolist(), strict=True))


def is_stated_singly(kappa: Any) -> bool:
    """Whether κ is one number for all labels."""
    return isinstance(kappa, float) or (np.ndim(kappa) == 0 and not isinstance(kappa, Mapping))


def flip_costs(kappa: Any, classes: NDArray[Any] | None) -> Any:
    """Check a user's ``kappa``: a number, a dict by label, or an array with one cost per sample.

    The labels of the dict are in the order of the classes.
    """
    if is_stated_singly(kappa):
        several = classes is not None and classes.size > 2
        return check_kappa(kappa, least=0.0 if several else None)
    if isinstance(kappa, Mapping):
        assert classes is not None
        return costs_by_label(kappa, classes)
    if not is_dask(kappa) and np.ndim(kappa) != 1:
        raise ValueError(
            "kappa must be a number, a dict of labels to costs or one number for each sample, got "
            f"an array of shape {np.shape(kappa)}"
        )
    return kappa if is_dask(kappa) else as_numbers(kappa, "kappa")


def costs_by_label(kappa: Mapping[Any, Any], classes: NDArray[Any]) -> dict[Any, float]:
    """The costs of all labels in the order of the classes; ``ValueError`` if one is missing."""
    labels = classes.tolist()
    unknown = [label for label in kappa if label not in labels]
    missing = [label for label in labels if label not in kappa]
    if unknown or missing:
        raise ValueError(
            f"kappa must have a cost for each of the labels {labels!r:.80}, got them for "
            f"{list(kappa)!r:.80}"
        )
    return {label: check_kappa(kappa[label], least=0.0) for label in labels}


def codes_among(labels: NDArray[Any], known: Any) -> IndexArray:
    """Labels as positions among the classes of a model; ``ValueError`` for other labels."""
    matches = np.column_stack([np.asarray(labels == label, dtype=bool) for label in known])
    unknown = labels[~matches.any(axis=1)].tolist()
    if unknown:
        names = " or ".join(repr(label) for label in np.asarray(known).tolist()[:8])
        raise ValueError(f"y must hold labels of the model, {names}, got {unknown[0]!r}")
    return np.asarray(matches.argmax(axis=1))


def _scaled(costs: FloatArray, factor: float) -> FloatArray:
    """Costs times a factor; zero costs stay zero even if the factor is inf."""
    return np.where(costs > 0.0, np.where(costs > 0.0, costs, 1.0) * factor, 0.0)


def within_reach(costs: FloatArray, epsilon: float) -> FloatArray:
    """Flip costs for a solver: infinite where ε can pay for only a negligible share of a flip."""
    return np.where(costs <= _OUT_OF_REACH * epsilon, costs, np.inf)


def kappa_text(kappa: StatedKappa) -> str:
    """κ as a short text."""
    if isinstance(kappa, Mapping):
        return ", ".join(f"{value:g} for {label}" for label, value in kappa.items())
    return kappa if isinstance(kappa, str) else f"{kappa:g}"


def with_flip_costs(
    rows: Rows, kappa: Any, classes: NDArray[Any] | None, codes: State | None
) -> tuple[Rows, FlipCosts]:
    """Check κ; attach costs that differ between samples to the rows.

    ``codes`` are several labels as positions; of two, the rows have the signs.
    """
    kappa = flip_costs(kappa, classes)
    if is_stated_singly(kappa):
        return rows, FlipCosts(kappa)
    by_label = np.array([*kappa.values()]) if isinstance(kappa, Mapping) else None
    if by_label is not None:
        costs: State = rows.run(_by_label, codes, by_label)[0]
    else:
        if not is_dask(kappa) and kappa.shape != (rows.n_samples,):
            raise ValueError(f"kappa must have shape ({rows.n_samples},), got {kappa.shape}")
        costs = rows.scatter(kappa)
    _, (least, most, positive, good) = rows.run(_range, costs)
    if not good:
        raise ValueError("kappa must hold numbers >= 0 (0: unknown label, inf: certain label)")
    if not (most > 0.0 or codes is not None):
        raise ValueError("kappa must be > 0 for some labels, got 0 for all of them")
    if least == most:
        return rows, FlipCosts(float(least))
    unit = _unit(positive)
    multiples = BY_ROW if by_label is None else _scaled(by_label, 1.0 / unit)
    rows = rows.with_flip_multiples(rows.run(_in_units, costs, unit)[0])
    return rows, FlipCosts(unit, multiples)


def _unit(positive: float) -> float:
    """The power of two just below the least positive κ: multiplying by it is exact.

    It is not so small that dividing by it overflows.
    """
    return 2.0 ** max(math.floor(math.log2(positive)), -900) if math.isfinite(positive) else 1.0


def _by_label(
    block: Block, codes: NDArray[np.int32] | None, costs: FloatArray
) -> tuple[FloatArray, tuple[()]]:
    return costs[np.intp(block.y > 0.0) if codes is None else codes], ()


def _range(block: Block, costs: FloatArray) -> tuple[FloatArray, tuple[Min, Max, Min, Min]]:
    """The least, the greatest and the least positive cost, and whether all costs are valid."""
    positive = costs[(costs > 0.0) & np.isfinite(costs)]
    good = costs.size == block.y.size and bool((costs >= 0.0).all())
    return costs, (
        Min(np.min(costs, initial=np.inf)),
        Max(np.max(costs, initial=-np.inf)),
        Min(np.min(positive, initial=np.inf)),
        Min(float(good)),
    )


def _in_units(block: Block, costs: FloatArray, unit: float) -> tuple[FloatArray, tuple[()]]:
    with np.errstate(over="ignore"):  # a ratio above 1e308 becomes inf
        return costs / unit, ()
