"""The ball: all that may be wrong with the data, in the units of the user's table.

An adversary may move the rows, at a cost, as long as the mean cost is at most ε:

    cost of a row  =  ‖c (x - x')‖  +  Σ_g c_g [category of g changes]  +  κ [label changes]

A ball can be stated in these numbers, or as *tolerances*: by how much a number is off on average,
in which share of the rows a category or a label is wrong.  A tolerance t is the cost 1/t at ε = 1,
so all of the budget spent on one thing does to it what was declared; tolerances are alternatives.

A :class:`Ball` keeps what was written.  :meth:`Ball.resolved` turns it into plain numbers for the
features of a fit, and :meth:`Ball.on` into one cost for each column of a matrix.
"""

from __future__ import annotations

import math
import numbers as number_types
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from ..rows.arrays import FloatArray
from ..rows.checks import as_numbers
from .ball_words import sentences
from .features import Feature, Features, position_of
from .norms import get_norm
from .parameters import check_epsilon, check_kappa
from .stated_tolerances import TOLERATED, StatedTolerances, cost_of, is_number
from .table_statistics import features_of

#: ε, or a tolerance that is not named, in units of 1/√N: the size of the sampling error.
SAMPLING: Final = 0.5

#: Stands for costs of labels that differ between rows; a fit does not keep the costs themselves.
BY_ROW: Final = "by row"


@dataclass(frozen=True, eq=False)
class ColumnBall:
    """A ball for the columns of one matrix, in plain numbers.

    ``costs`` has one number for each column, or is a cost matrix.  ``groups`` are the columns of
    each category, with None where "none of these columns" is a category, too.
    """

    epsilon: float
    kappa: Any
    norm: str
    costs: FloatArray
    groups: list[list[int | None]]
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ball:
    """What may be wrong with the data.

    The adversary may move rows as long as the mean cost of the moves is at most ``epsilon``.  The
    default covers sampling error only: labels are correct, and numbers may be off by half of a
    standard deviation divided by the root of the number of rows.  :meth:`tolerating` states a ball
    in words of the data instead.

    Parameters
    ----------
    epsilon : float, optional
        Radius of the ball, at least 0.  None is ½/√N, for N rows of the fit.
    kappa : float, dict or array of shape (n_samples,)
        Cost of a wrong label, positive: at most a share ``epsilon / kappa`` of the labels can be
        wrong.  ``inf`` means that labels are correct.  The cost may depend on the recorded label,
        as ``{"good": 5.0, "bad": inf}``, or on the row.
    norm : {"l1", "l2", "linf"}
        Norm in which moves of several numbers of a row are added.
    feature_costs : "std", dict, array or None
        Cost of moving each number by one unit, or of changing a category.  ``"std"`` is one for a
        standard deviation, and one for a change of a category.  A dict has costs for some columns;
        the others are as in ``"std"``.  None: one unit of each column costs 1.  ``inf`` is a column
        that cannot be wrong; its coefficient is not penalised.  With ``norm="l2"`` and numbers
        only, a positive definite matrix M is the cost ``√(ΔᵀMΔ)`` of a move Δ.
    categories : list of lists of columns, optional
        Groups of one-hot columns of X: a row changes from one category of a group to another.
        None in a group says that "none of these columns" is a category, too.
    bounds : dict of columns to pairs, or pair (lower, upper), optional
        The range in which numbers stay; a pair has numbers or one number for each column.

    See Also
    --------
    Ball.tolerating : The same in the units of the table.

    Examples
    --------
    >>> import drlogit
    >>> ball = drlogit.Ball.tolerating(labels=0.05, columns={"age": 2, "sex": 0})
    >>> ball.replace(epsilon=2)  # twice what was declared
    Ball.tolerating(labels=0.05, columns={'age': 2, 'sex': 0}).replace(epsilon=2)
    """

    epsilon: float | None
    kappa: Any
    norm: str
    feature_costs: Any
    categories: Any
    bounds: Any

    #: What was tolerated, if the ball was stated so.
    _tolerances: StatedTolerances | None

    #: Of a resolved ball: the features of its fit, for sentences about it.
    _features: Features | None

    def __init__(
        self,
        epsilon: float | None = None,
        kappa: Any = math.inf,
        *,
        norm: str = "l2",
        feature_costs: Any = "std",
        categories: Any = None,
        bounds: Any = None,
    ) -> None:
        stated = {
            "epsilon": epsilon,
            "kappa": kappa,
            "norm": norm,
            "feature_costs": feature_costs,
            "categories": categories,
            "bounds": bounds,
        }
        self._set(_tolerances=None, _features=None, **stated)
        self._check()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            kept = dict(value) if isinstance(value, Mapping) else value
            object.__setattr__(self, name, kept)

    def _check(self) -> None:
        """Refuse what no table could make sense of; columns are checked with their table."""
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        get_norm(self.norm)
        if isinstance(self.kappa, Mapping):
            for value in self.kappa.values():
                check_kappa(value, least=0.0)
        elif np.ndim(self.kappa) == 1 or _is_dask(self.kappa):
            pass  # one cost for each row, checked with the rows
        elif not (isinstance(self.kappa, str) and self.kappa in (BY_ROW, TOLERATED)):
            check_kappa(self.kappa, least=0.0)
        costs = self.feature_costs
        if isinstance(costs, str) and costs not in ("std", TOLERATED):
            raise ValueError(
                "feature_costs must be 'std', None, a dict of columns to costs, one cost for each "
                f"column or a matrix, got {costs!r:.60}"
            )
        for column, cost in costs.items() if isinstance(costs, Mapping) else ():
            if not (is_number(cost) and cost > 0.0):
                raise ValueError(
                    "feature_costs must be > 0 (inf: cannot be wrong), got "
                    f"{cost!r:.40} for {column!r:.40}"
                )

    @classmethod
    def tolerating(
        cls,
        *,
        labels: Any = 0,
        numbers: float | None = None,
        categories: float | None = None,
        columns: Mapping[Any, float] | None = None,
    ) -> Ball:
        """The ball that tolerates what is declared, with ε = 1.

        ``replace(epsilon=2)`` is twice what was declared.  Tolerances are alternatives: each of
        them alone may use up the whole budget.

        Parameters
        ----------
        labels : float or dict
            Share of labels that may be wrong, from 0 (all are correct) to 1; or a share for each
            label, as ``{"good": 0.05, "bad": 0}``.
        numbers : float, optional
            How far a number may be off on average, in its standard deviations.  None is ½/√N, the
            sampling error of N rows; 0 says that numbers cannot be wrong.
        categories : float, optional
            Share of the entries of a category that may be wrong; None and 0 as for numbers.
        columns : dict, optional
            Other tolerances for some columns: of a number in its own units, of a category as a
            share; 0 for a column that cannot be wrong.

        Returns
        -------
        Ball
        """
        written = StatedTolerances.checked(labels, numbers, categories, columns or {})
        ball = cls(1.0)
        ball._set(kappa=TOLERATED, feature_costs=TOLERATED, _tolerances=written)
        return ball

    def replace(self, **changes: Any) -> Ball:
        """The same ball with other values of some fields.

        In a ball of tolerances ``kappa`` replaces that of labels, and ``feature_costs`` those of
        all columns.
        """
        known = [field.name for field in fields(self) if not field.name.startswith("_")]
        wrong = [name for name in changes if name not in known]
        if wrong:
            raise TypeError(f"a Ball has {', '.join(known)}, and no {wrong[0]!r}")
        made = object.__new__(Ball)
        made._set(**{**self.__dict__, **changes})
        made._check()
        return made

    # --- plain numbers ----------------------------------------------------------------------

    def resolve(self, X: Any, y: Any = None, sample_weight: Any = None) -> Ball:
        """The ball in plain numbers, for the rows that a model was fitted to.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            The rows.
        y : array, optional
            Their labels; needed where tolerances differ between labels.
        sample_weight : array, optional
            Weights, which count as repetitions.

        Returns
        -------
        Ball
            With numbers for ``epsilon`` and ``kappa``, and a cost for each column.
        """
        return self.resolved(features_of(X, y, sample_weight))

    def resolved(self, features: Features) -> Ball:
        """The ball in plain numbers, for the features of a fit.

        A ball that has been resolved keeps the deviations and shares of its own fit.
        """
        if self.is_resolved:
            return self
        features = self._features or features
        sampling = SAMPLING / math.sqrt(features.n_rows)
        changes = {
            "epsilon": sampling if self.epsilon is None else float(self.epsilon),
            "kappa": self._plain_kappa(features),
            "feature_costs": self._plain_costs(features, sampling),
        }
        made = self.replace(**changes)
        made._set(_tolerances=None, _features=features)
        return made

    @property
    def features(self) -> Features | None:
        """Of a resolved ball the features of its fit; None if it has not seen a table."""
        return self._features

    @property
    def is_resolved(self) -> bool:
        """Whether all of its fields are plain numbers."""
        if self._features is None or self.epsilon is None:
            return False
        costs = self.feature_costs
        return np.ndim(costs) == 2 or (
            isinstance(costs, Mapping) and all(name in costs for name in self._features.names)
        )

    def _plain_kappa(self, features: Features) -> Any:
        if not isinstance(self.kappa, str):
            return float(self.kappa) if isinstance(self.kappa, number_types.Real) else self.kappa
        if self.kappa == BY_ROW:
            return self.kappa
        assert self._tolerances is not None
        return self._tolerances.kappa(features.class_shares)

    def _plain_costs(self, features: Features, sampling: float) -> Any:
        """``{column: cost}`` in the units of the table; a cost matrix stays one."""
        stated = self.feature_costs
        grouped = {
            position_of(column, features.names, "categories")
            for group in self.categories or ()
            for column in group
            if column is not None
        }
        if np.ndim(stated) == 2:
            return stated
        if np.ndim(stated) == 1:
            values = as_numbers(stated, "feature_costs")
            if values.shape != (len(features.each),) or not (values > 0.0).all():
                raise ValueError(
                    f"feature_costs must be {len(features.each)} numbers > 0 (inf: cannot be "
                    f"wrong), got {values!r:.60}"
                )
            return dict(zip(features.names, values.tolist(), strict=True))
        own: dict[int, float] = {}
        if isinstance(stated, Mapping):
            own = {position_of(c, features.names, "feature_costs"): v for c, v in stated.items()}
        tolerances = self._tolerances if isinstance(stated, str) and stated == TOLERATED else None
        if tolerances is not None:
            own = tolerances.of_columns(features)
        costs = {}
        for place, feature in enumerate(features.each):
            is_category = feature.is_category or place in grouped
            deviation = 1.0 if is_category or stated is None else feature.deviation
            tolerance = 1.0
            if tolerances is not None:
                named = tolerances.categories if is_category else tolerances.numbers
                tolerance = sampling if named is None else named
            costs[feature.name] = own.get(place, cost_of(tolerance * deviation))
        return costs

    def on(self, features: Features) -> ColumnBall:
        """The ball for the columns of a matrix.

        A ball that is not resolved takes deviations and shares from these features.
        """
        plain = self.resolved(features)
        width = features.n_columns
        lower, upper = np.full(width, -np.inf), np.full(width, np.inf)
        for feature, ends in _stated_bounds(plain.bounds, features):
            moved = feature.scale * np.array(ends) + feature.shift
            lower[feature.columns], upper[feature.columns] = np.sort(moved)
        groups: list[list[int | None]] = [
            [*feature.columns.tolist(), *[None] * feature.with_none]
            for feature in features.each
            if feature.is_category and feature.columns.size
        ]
        for group in plain.categories or ():
            groups.append(
                [
                    None if column is None else int(features.named(column, "categories").columns[0])
                    for column in group
                ]
            )
        costs: Any = plain.feature_costs
        if isinstance(costs, Mapping):
            known, stated = list(costs), costs
            costs = np.full(width, np.inf)  # columns of no feature cannot move
            for feature in features.each:
                if feature.name not in stated:
                    raise ValueError(
                        f"the ball has no cost for the column {feature.name!r:.60}; it has costs "
                        f"for {known!r:.80}"
                    )
                unit = 1.0 if feature.is_category else abs(feature.scale)
                costs[feature.columns] = stated[feature.name] / unit
        assert plain.epsilon is not None
        return ColumnBall(plain.epsilon, plain.kappa, plain.norm, costs, groups, lower, upper)

    # --- words ------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ball):
            return NotImplemented
        mine, others = self._written(), other._written()
        return all(_same(mine[name], others[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def _written(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_features"}

    def __repr__(self) -> str:
        base = Ball() if self._tolerances is None else Ball.tolerating()
        written, usual = self._written(), base._written()
        given = {k: v for k, v in written.items() if k[0] != "_" and not _same(v, usual[k])}
        said = ", ".join(f"{name}={value!r}" for name, value in given.items())
        if self._tolerances is None:
            return f"Ball({said})"
        replaced = f".replace({said})" if said else ""
        return f"Ball.tolerating({self._tolerances.as_written()}){replaced}"

    def __str__(self) -> str:
        """What the ball allows, in sentences."""
        return "\n".join(self.allowed())

    def allowed(self) -> list[str]:
        """What the ball allows to be wrong, a sentence each: alternatives within one budget."""
        stated = self.epsilon, self.kappa, self.feature_costs
        return sentences(*stated, self._tolerances, self._features)


def _stated_bounds(bounds: Any, features: Features) -> list[tuple[Feature, tuple[float, float]]]:
    """The ends of each number that has a range."""
    if bounds is None:
        return []
    if isinstance(bounds, Mapping):
        given = [(features.named(column, "bounds"), pair) for column, pair in bounds.items()]
    else:
        ends = [np.broadcast_to(as_numbers(end, "bounds"), len(features.each)) for end in bounds]
        given = list(zip(features.each, np.transpose(ends), strict=True))
    for feature, pair in given:
        low_high = as_numbers(pair, f"bounds of column {feature.name!r:.60}")
        if low_high.shape != (2,) or not low_high[0] <= low_high[1]:
            raise ValueError(
                "bounds must be pairs (lower, upper) with lower <= upper, got "
                f"{pair!r:.60} for column {feature.name!r:.60}"
            )
    stated = [(feature, (float(pair[0]), float(pair[1]))) for feature, pair in given]
    category = next((f for f, ends in stated if f.is_category and np.isfinite(ends).any()), None)
    if category is not None and isinstance(bounds, Mapping):
        raise ValueError(f"bounds are for numbers, and {category.name!r:.60} is a category")
    return [(feature, ends) for feature, ends in stated if not feature.is_category]


def _is_dask(value: Any) -> bool:
    return hasattr(value, "dask")


def _same(one: Any, other: Any) -> bool:
    """Equal, also if they are arrays."""
    if np.ndim(one) or np.ndim(other):
        return np.shape(one) == np.shape(other) and bool(np.all(np.equal(one, other)))
    return type(one) is type(other) and bool(one == other) if isinstance(one, str) else one == other
