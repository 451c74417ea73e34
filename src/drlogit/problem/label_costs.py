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
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray, is_dask
from ..rows.blocks import Block
from ..rows.checks import as_numbers
from ..rows.interface import Rows, State
from ..rows.reductions import Max, Min
from .parameters import check_kappa

#: Where κ is one for each sample, of which nothing is kept.
BY_SAMPLE: Final = "by sample"

#: Solvers leave flips out that cost more than this times ε.  No such flip pays from ``λ = u/κ`` on:
#: without them the objective is too small by ``ε u/κ`` at most, 1e-15 of a margin u.  Certificates
#: count every flip at its own κ.
_OUT_OF_REACH = 2.0**50

#: How the multiples of a problem's κ are stated: not at all, as a matrix whose rows are the two
#: observed labels, or sample by sample.
Trust: TypeAlias = FloatArray | str | None


#: κ in a user's terms: a number, by label, ``"by sample"``, or with several classes a matrix.
StatedKappa: TypeAlias = float | dict[Any, float] | str | FloatArray


@dataclass(frozen=True)
class CostsByShare:
    """κ at which a budget of ε alone flips these shares of classes, each by itself."""

    epsilon: float
    shares: Mapping[Any, float]

    def costs(self, classes: NDArray[Any], weights: FloatArray) -> dict[Any, float]:
        """κ by label, where the classes have these weights in all."""
        given = dict(zip(classes.tolist(), (weights / weights.sum()).tolist(), strict=True))
        return {
            label: self.epsilon / (share * given.get(label, 1.0)) if share > 0.0 else math.inf
            for label, share in self.shares.items()
        }


def is_stated_singly(kappa: Any) -> bool:
    """Whether κ is one number for all labels."""
    return isinstance(kappa, float) or (
        np.ndim(kappa) == 0 and not isinstance(kappa, Mapping | CostsByShare)
    )


def flip_costs(
    kappa: Any, classes: NDArray[Any], codes: Any, weights: FloatArray | None = None
) -> Any:
    """κ as one number, as a matrix, or as an array with one for each sample.

    ``kappa`` is a number, a dict of labels to numbers, one number for each sample, or a matrix
    whose rows are observed labels, or :class:`CostsByShare`; ``codes`` are the labels as positions
    among the ``classes``.
    """
    if isinstance(kappa, CostsByShare):
        if codes is None or is_dask(codes):
            raise ValueError(
                "shares of classes that may be wrong are for labels in memory and an estimator's "
                "fit; state kappa as numbers"
            )
        totals = np.bincount(codes, weights, minlength=classes.size).astype(np.float64)
        kappa = kappa.costs(classes, totals)
    if is_stated_singly(kappa):
        return check_kappa(kappa, least=0.0) if classes.size > 2 else check_kappa(kappa)
    if is_dask(kappa):
        return kappa
    if not isinstance(kappa, Mapping) and np.ndim(kappa) == 1:
        return as_numbers(kappa, "kappa")
    return cost_matrix(kappa, classes)


def cost_matrix(kappa: Any, classes: NDArray[Any]) -> FloatArray:
    """What it costs to turn one label into another, rows for the observed one.

    From a number, a dict of labels to numbers (by the observed label), or the matrix itself.
    """
    K = classes.size
    if is_stated_singly(kappa):
        costs = np.full((K, K), check_kappa(kappa, least=0.0))
    elif isinstance(kappa, Mapping):
        costs = np.repeat(_of_labels(kappa, classes)[:, None], K, axis=1)
    else:
        costs = as_numbers(kappa, "kappa").copy()
        if costs.shape != (K, K):
            raise ValueError(
                f"kappa for {K} classes must be a number, a dict of labels to costs, one for each "
                f"sample or an array of shape ({K}, {K}), a row for each observed label; got shape "
                f"{costs.shape}"
            )
        if not (costs >= 0.0).all():
            raise ValueError(f"kappa must be >= 0, got {costs[~(costs >= 0.0)][0]}")
        if costs.diagonal().any():
            raise ValueError(
                "kappa as a matrix must be zero on its diagonal (a label that stays), got "
                f"{costs.diagonal().tolist()}"
            )
    np.fill_diagonal(costs, 0.0)
    return costs


def scaled_costs(costs: Any, factor: float) -> Any:
    """κ, one or a matrix, times a factor; what costs nothing still does."""
    if np.ndim(costs) == 0:
        return costs * factor
    return np.where(costs > 0.0, np.where(costs > 0.0, costs, 1.0) * factor, 0.0)


class LabelCosts(NamedTuple):
    """What it costs to turn a sample's label into another, several classes.

    ``matrix`` has a row for each observed label; samples may have multiples of it, where it is one
    number.  At ε = 0 labels are as they are, ``fixed``.
    """

    matrix: FloatArray
    fixed: bool = False

    def of(self, block: Block, codes: NDArray[np.intp]) -> FloatArray:
        """Those of a block's samples, with a column for each label."""
        found = self.matrix[codes]
        if block.trust is not None:
            found = np.where(found > 0.0, block.flip_costs(self.matrix[0, 1])[:, None], 0.0)
        return np.where(
            np.arange(len(self.matrix)) == codes[:, None], 0.0, np.inf if self.fixed else found
        )


def within_reach(costs: FloatArray, epsilon: float) -> FloatArray:
    """What flips cost for a solver: infinite where ε pays for next to nothing of one."""
    return np.where(costs <= _OUT_OF_REACH * epsilon, costs, np.inf)


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


def as_stated(cost: Any, classes: NDArray[Any]) -> StatedKappa:
    """The κ of a problem's ground cost in a user's terms."""
    if isinstance(cost.trust, str):
        return cost.trust
    kappa = cost.kappa if cost.trust is None else scaled_costs(cost.trust, cost.kappa)
    if is_stated_singly(kappa):
        return float(kappa)
    rows = [row[k != np.arange(row.size)] for k, row in enumerate(kappa)]
    if all((row == row[0]).all() for row in rows):
        return dict(zip(classes.tolist(), [float(row[0]) for row in rows], strict=True))
    return np.asarray(kappa)


def kappa_text(kappa: StatedKappa) -> str:
    """κ in a line of text."""
    if isinstance(kappa, Mapping):
        return ", ".join(f"{value:g} for {label}" for label, value in kappa.items())
    if isinstance(kappa, np.ndarray):
        return "a matrix"
    return kappa if isinstance(kappa, str) else f"{kappa:g}"


def can_flip(kappa: StatedKappa) -> bool:
    """Whether any label can."""
    if isinstance(kappa, Mapping):
        return not all(math.isinf(value) for value in kappa.values())
    if isinstance(kappa, np.ndarray):
        return bool(np.isfinite(kappa[~np.eye(len(kappa), dtype=bool)]).any())
    return isinstance(kappa, str) or math.isfinite(kappa)


def flips_in_words(epsilon: float, kappa: StatedKappa) -> str:
    """How many labels may be wrong, as far as κ says."""
    if isinstance(kappa, str):
        return "labels may be wrong at a cost for each sample"
    if isinstance(kappa, np.ndarray):
        return "labels may be wrong at a cost for each pair of them"
    if not isinstance(kappa, Mapping):
        if kappa == 0.0:
            return "labels are unknown"
        if math.isinf(kappa):
            return "labels are right"
        return f"up to {_share(epsilon, kappa)} of labels may be wrong"
    said = []
    for label, value in kappa.items():
        if value == 0.0:
            said.append(f"labels {label} are unknown")
        elif math.isinf(value):
            said.append(f"labels {label} are right")
        else:
            share = _share(epsilon, value)
            said.append(f"at most {share} of all samples may be wrong, those labelled {label}")
    return ", ".join(said)


def _share(epsilon: float, kappa: float) -> str:
    return f"{100.0 * min(epsilon / kappa, 1.0):.3g} %"


def own_kappa(kappa: StatedKappa | None) -> Any:
    """The κ that a model was fitted with, for who asks about other samples; 1 if there is none."""
    if isinstance(kappa, str):
        raise ValueError("kappa must be given here: the model was fitted with one for each sample")
    return 1.0 if kappa is None else kappa


def with_flip_costs(rows: Rows, kappa: Any) -> tuple[Rows, float, Trust]:
    """Rows that carry what :func:`flip_costs` found, the unit, and how the multiples are stated."""
    if is_stated_singly(kappa):
        return rows, check_kappa(kappa), None
    if np.ndim(kappa) == 2:
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
    unit = _unit(positive)
    trust: Trust = scaled_costs(kappa, 1.0 / unit) if np.ndim(kappa) == 2 else BY_SAMPLE
    return rows.with_trust(rows.run(_in_units, costs, unit)[0]), unit, trust


def unit_and_trust(kappa: StatedKappa, classes: NDArray[Any]) -> tuple[Any, Trust]:
    """The unit and the multiples of it, where κ is known in a user's terms only."""
    if isinstance(kappa, str):
        return 1.0, BY_SAMPLE
    if is_stated_singly(kappa):
        return kappa, None
    costs = cost_matrix(kappa, classes)
    if classes.size > 2:
        return costs, None
    unit = _unit(float(np.min(costs[costs > 0.0], initial=np.inf)))
    return unit, scaled_costs(costs, 1.0 / unit)


def _unit(positive: float) -> float:
    """The power of two below the least positive κ, large enough to divide by."""
    return 2.0 ** max(math.floor(math.log2(positive)), -900) if math.isfinite(positive) else 1.0


def _by_class(block: Block, _: None, costs: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return np.where(block.y > 0.0, costs[1, 0], costs[0, 1]), ()


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
    with np.errstate(over="ignore"):  # 1e308 times as much as another label is infinite
        return costs / unit, ()
