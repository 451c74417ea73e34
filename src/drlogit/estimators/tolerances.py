"""Tolerances: how much may be wrong with the data, in plain words, and the ball that allows it.

People know that up to 2 % of labels are wrong, that an income is off by a tenth of a standard
deviation on average, that one occupation in twenty is miscoded.  The Wasserstein ball has a radius
ε and costs: κ for a label, c for moving a number by one or for changing a category.  An adversary
that does only one thing, at cost c, can do ε/c of it on average over the samples.  So with
``c = ε / tolerance`` each tolerance alone uses up the budget: tolerances are alternatives, not a
sum.  Only the ratios matter.  ε is the tolerance of numbers if there is one; then the unit is a
standard deviation.

Unspecified numbers and categories get a tolerance of a tenth.  An infinite cost would leave their
coefficients unpenalised, and a table with many levels would be overfitted.  ``inf`` declares a
column exact.
"""

from __future__ import annotations

import math
import numbers as number_types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..problem.label_costs import CostsByShare, StatedKappa, can_flip, flips_in_words
from .robust_classifier import RobustLinearClassifier
from .tables.by_column import CostsByKind
from .tables.frames import listed

#: The default tolerance: a tenth of a standard deviation, one entry in ten.  Measured on held-out
#: rows of 15 public tables with labels=0.05, the mean log-loss is .42; it is .40 if all columns are
#: exact and .36 with plain logistic regression.  On tables of 540 rows with eleven text columns,
#: four of them with 30 to 120 levels, it is .67, 1.05 and .62.  Half of the default gives .41 and
#: .82.  A class of 2 to 10 % is predicted too rarely (docs/choosing.md), with half of it, too.
_UNSAID = 0.1


@dataclass(frozen=True)
class Tolerances:
    """The radius and costs of stated tolerances.

    Attributes
    ----------
    epsilon : float
        Radius.
    kappa : float or CostsByShare
        Cost of flipping a label.  By class it depends on the sizes of the classes, and ``fit``
        computes it.
    feature_costs : CostsByKind
        The parameter ``feature_costs`` of the estimators.
    """

    epsilon: float
    kappa: float | CostsByShare
    feature_costs: CostsByKind

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of an estimator: ``DRLogisticRegression(**tolerances(…).parameters)``."""
        names = ("epsilon", "kappa", "feature_costs")
        return {name: getattr(self, name) for name in names}


def tolerances(
    *,
    labels: float | Mapping[Any, float] = 0.0,
    numbers: float = _UNSAID,
    categories: float = _UNSAID,
    columns: Mapping[Any, float | str] | None = None,
) -> Tolerances:
    """Turn statements about what may be wrong with the data into ε, κ and costs.

    Tolerances are alternatives, not a sum: each alone may use up the whole budget.

    Parameters
    ----------
    labels : float or mapping
        Share of labels that may be wrong, from 0 (all are correct) to 1; or a share for each label,
        as ``{"good": 0.05, "bad": 0}``.
    numbers : float
        How far a number may be off, in its standard deviations, on average over the samples.
        ``inf`` declares numbers exact.  Their coefficients are then not penalised, and ``fit``
        warns if there are many of them for few samples.
    categories : float
        Share of the entries of a category that may be miscoded; ``inf`` as for numbers.
    columns : mapping, optional
        Other tolerances for some columns, by name or position: for a number in its own units or,
        as ``"0.1 std"``, in standard deviations; for a category the share miscoded; ``inf`` for an
        exact column.

    Returns
    -------
    Tolerances
        ``DRLogisticRegression(**found.parameters)`` is the model.  :func:`allowances` of the fitted
        model states the tolerances again.

    Examples
    --------
    >>> import drlogit
    >>> found = drlogit.tolerances(labels=0.02, numbers=0.1, categories=0.05)
    >>> found.epsilon, found.kappa, found.feature_costs.categories
    (0.1, 5.0, 2.0)
    """
    shares: dict[Any, Any] = dict(labels) if isinstance(labels, Mapping) else {"all": labels}
    amounts = {name: _amount(value) for name, value in (columns or {}).items()}
    for share in shares.values():
        if not _is_number(share) or not 0.0 <= share <= 1.0:
            raise ValueError(
                f"labels must be a share from 0 to 1, such as 0.05 for 5 %, got {share!r:.40}"
            )
    for name, value, most in (
        ("numbers", numbers, math.inf),
        ("categories", categories, 1.0),
        *((f"columns[{name!r}]", amount, math.inf) for name, amount in amounts.items()),
    ):
        if not _is_number(value) or not (0.0 < value <= most or value == math.inf):
            raise ValueError(
                f"{name} must be a positive number{'' if most > 1.0 else ' up to 1'}, or inf if it "
                f"is exact (then its coefficients are not penalised), got {value!r:.40}"
            )
    every = [numbers, categories, *shares.values(), *amounts.values()]
    finite = [float(value) for value in every if 0.0 < value < math.inf]
    if not finite:
        raise ValueError(
            "tolerances must allow something to be wrong, got none: for a plain fit use epsilon=0"
        )
    epsilon = finite[0]

    def price(tolerance: float) -> float:
        """The cost for a tolerance; ``inf`` for exact columns and for correct labels."""
        return epsilon / tolerance if 0.0 < tolerance < math.inf else math.inf

    named: dict[Any, Any] = {
        name: (price(amount), "std") if isinstance((columns or {})[name], str) else price(amount)
        for name, amount in amounts.items()
    }
    by_class = isinstance(labels, Mapping)
    kappa = CostsByShare(epsilon, shares) if by_class else price(shares["all"])
    return Tolerances(epsilon, kappa, CostsByKind(price(numbers), price(categories), named))


def allowances(model: Any) -> list[str]:
    """Say in sentences what ε, κ and costs of a fitted model allow to be wrong.

    Parameters
    ----------
    model : DRLogisticRegression or DRLogisticRegressionCV
        A fitted model.

    Returns
    -------
    list of str
        The inverse of :func:`tolerances`: how far each column alone may be off, on average over
        the samples, with numbers in their own units.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(100, 2, random_state=0)
    >>> print(drlogit.allowances(drlogit.DRLogisticRegression(0.05, 1.0).fit(X, y))[0])
    up to 5 % of labels may be wrong
    """
    if not isinstance(model, RobustLinearClassifier):
        raise ValueError(
            "model must be a fitted DRLogisticRegression or DRLogisticRegressionCV, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model, "coef_")
    costs = model.feature_costs_
    costs = np.ones(model.coef_.shape[1]) if costs is None else np.asarray(costs)
    costs = np.sqrt(np.diagonal(costs)) if costs.ndim == 2 else costs  # of a column alone
    return allowed_by(
        model.epsilon_,
        model.kappa_,
        [Priced(name, float(costs[place]), kind) for name, place, kind in _columns(model)],
    )


class Priced(NamedTuple):
    """A column, the cost of moving it by one (or of changing its level), and its deviation."""

    name: str
    cost: float
    is_category: bool
    deviation: float | None = None


def allowed_by(epsilon: float, kappa: StatedKappa, columns: Iterable[Priced]) -> list[str]:
    """What a ball allows to be wrong, in sentences; ``columns`` have their costs.

    Numbers are in their own units, or in standard deviations if these are known and all numbers may
    be off by the same multiple.
    """
    if epsilon == 0.0:
        return ["epsilon = 0: nothing may be wrong"]
    sentences = [flips_in_words(epsilon, kappa)]
    still: list[str] = []
    moved: dict[str, str] = {}
    changed: dict[str, str] = {}
    multiples = set()
    for name, cost, is_category, deviation in columns:
        if math.isinf(cost):
            still.append(name)
        elif is_category:
            changed[name] = _share(min(epsilon / cost, 1.0))
        else:
            moved[name] = f"{epsilon / cost:.3g}"
            multiples.add(f"{epsilon / cost / deviation:.3g}" if deviation else None)
    if len(multiples) == 1 and None not in multiples:
        (many,) = multiples
        each = " each" if len(moved) > 1 else ""
        sentences.append(f"numbers may be off by {many} standard deviations{each} on average")
    elif moved:
        sentences.append(f"numbers may be off on average: {_each(moved, 'by')}")
    if changed:
        sentences.append(f"categories may be miscoded: {_each(changed, 'in')}")
    if still:
        sentences.append(f"assumed to be exact: {listed(still)}")
    if len(moved) + len(changed) + can_flip(kappa) > 1:
        sentences.append("these are alternatives, not a sum")
    return sentences


def _columns(model: Any) -> list[tuple[str, int, bool]]:
    """Name, first column of the matrix, and whether it is a category, for each feature."""
    width, encoding = model.coef_.shape[1], model.encoding_
    names = (
        getattr(model, "feature_names_in_", range(width)) if encoding is None else encoding.names
    )
    groups = [[int(j) for j in group if j is not None] for group in model.categories_ or []]
    called = {group[0]: " or ".join(str(names[j]) for j in group) for group in groups}
    for column, place in zip(encoding.columns, encoding.places, strict=True) if encoding else ():
        if column.levels:
            called[int(place[0])] = str(column.name)
    grouped = {j for group in groups for j in group}
    numbers = [(str(name), j, False) for j, name in enumerate(names) if j not in grouped]
    return [*numbers, *((name, j, True) for j, name in called.items())]


def _each(found: dict[str, str], word: str) -> str:
    """Columns with the same tolerance together."""
    if len(set(found.values())) == 1 and len(found) > 1:
        return f"{word} {next(iter(found.values()))} each"
    return listed([f"{name} {word} {value}" for name, value in found.items()])


def _amount(stated: float | str) -> float:
    """A tolerance as a number: 0.1 of ``"0.1 std"``."""
    if not isinstance(stated, str):
        return stated
    number, _, unit = stated.strip().rpartition(" ")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if unit != "std" or not value >= 0.0:
        raise ValueError(
            f"a tolerance must be a number, or text such as '0.1 std', got {stated!r:.40}"
        )
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, number_types.Real) and not isinstance(value, bool)


def _share(value: float) -> str:
    return f"{100.0 * value:.3g} %"
