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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from ..rows.arrays import FloatArray, is_dask
from ..rows.checks import ParameterError, as_numbers
from .ball_words import sentences
from .features import Feature, Features, position_of
from .label_costs import BY_ROW
from .norms import get_norm
from .parameters import check_epsilon, check_kappa, is_number
from .stated_tolerances import TOLERATED, StatedTolerances
from .table_statistics import features_of

#: ε, or a tolerance that is not named, in units of 1/√N: the size of the sampling error.
SAMPLING: Final = 0.5


@dataclass(frozen=True, eq=False)
class ColumnBall:
    """A ball for the columns of one matrix, in plain numbers.

    ``costs`` has one number for each column, or is a cost matrix.  ``groups`` are the columns of
    each category, with None where "none of these columns" is a category, too.  In a result κ is a
    :class:`~drlogit.problem.label_costs.FlipCosts`; if it differs between samples it only says so.
    """

    epsilon: float
    kappa: Any
    norm: str
    costs: FloatArray
    groups: list[list[int | None]]
    lower: FloatArray
    upper: FloatArray
    fit_intercept: bool = True


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
        self._set(epsilon=epsilon, kappa=kappa, norm=norm, feature_costs=feature_costs)
        self._set(categories=categories, bounds=bounds, _tolerances=None, _features=None)
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
        elif np.ndim(self.kappa) == 1 or is_dask(self.kappa):
            pass  # one cost for each row, checked with the rows
        elif not (isinstance(self.kappa, str) and self.kappa in (BY_ROW, TOLERATED)):
            check_kappa(self.kappa, least=0.0)
        bounds, groups = self.bounds, self.categories
        if not (bounds is None or isinstance(bounds, Mapping) or _is_listed(bounds, 2)):
            raise ParameterError(
                "bounds", f"must be a pair (lower, upper) or a dict of pairs, got {bounds!r:.60}"
            )
        if groups is not None and not (_is_listed(groups) and all(map(_is_listed, groups))):
            raise ParameterError(
                "categories",
                f"must be a list of groups, each a list of columns, got {groups!r:.60}",
            )
        costs = self.feature_costs
        if isinstance(costs, str) and costs not in ("std", TOLERATED):
            raise ValueError(
                "feature_costs must be 'std', None, a dict of columns to costs, one cost for each "
                f"column or a matrix, got {costs!r:.60}"
            )
        if not isinstance(costs, str | Mapping | None):
            costs = as_numbers(costs, "feature_costs")
            if costs.ndim not in (1, 2) or (costs.ndim == 1 and not (costs > 0.0).all()):
                raise ParameterError(
                    "feature_costs",
                    f"must be numbers > 0 (inf: cannot be wrong), got {costs!r:.50}",
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

    @property
    def stated_tolerances(self) -> dict[str, Any] | None:
        """The arguments of :meth:`tolerating`, if the ball was stated so."""
        return None if self._tolerances is None else self._tolerances.arguments

    @property
    def tolerates(self) -> bool:
        """Whether the labels' part is stated as a tolerance."""
        return isinstance(self.kappa, str) and self.kappa == TOLERATED

    def seen_with(self, features: Features) -> Ball:
        """The same resolved ball, of a model that was fitted to these features."""
        made = self.replace()
        made._set(_features=features)
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
        made = object.__new__(Ball)  # of values that have been checked
        made._set(**self.__dict__ | changes | {"_tolerances": None, "_features": features})
        return made

    @property
    def features(self) -> Features | None:
        """Of a resolved ball the features of its fit; None if it has not seen a table."""
        return self._features

    @property
    def is_resolved(self) -> bool:
        """Whether all of its fields are plain numbers."""
        costs, features = self.feature_costs, self._features
        if features is None or self.epsilon is None or isinstance(costs, str | None):
            return False
        return not isinstance(costs, Mapping) or all(name in costs for name in features.names)

    def _plain_kappa(self, features: Features) -> Any:
        if not isinstance(self.kappa, str):
            return float(self.kappa) if is_number(self.kappa) else self.kappa
        if self.kappa == BY_ROW:
            return self.kappa
        assert self._tolerances is not None
        return self._tolerances.kappa(features.class_shares)

    def _plain_costs(self, features: Features, sampling: float) -> Any:
        """A cost for each feature in its own units; a cost matrix stays one."""
        stated = self.feature_costs
        if np.ndim(stated) == 2:
            return stated
        if np.ndim(stated) == 1:
            costs = as_numbers(stated, "feature_costs")
            if costs.size != len(features.each):
                raise ValueError(
                    f"feature_costs must be {len(features.each)} numbers > 0, got {costs!r:.60}"
                )
            return _by_name(costs, features)
        grouped = features.categories.copy()
        for group in self.categories or ():
            for column in group:
                if column is not None:
                    grouped[position_of(column, features.names, "categories")] = True
        tolerance = np.ones(grouped.size)
        own: Mapping[int, float] = {}
        if isinstance(stated, Mapping):
            own = {position_of(c, features.names, "feature_costs"): v for c, v in stated.items()}
        elif stated == TOLERATED:
            assert self._tolerances is not None
            own, kinds = self._tolerances.of_columns(features), self._tolerances
            usual = [sampling if t is None else t for t in (kinds.numbers, kinds.categories)]
            tolerance = np.where(grouped, usual[1], usual[0])
        if stated is not None:
            tolerance = tolerance * np.where(grouped, 1.0, features.deviations)
        with np.errstate(divide="ignore"):  # a tolerance of 0 is an infinite cost
            costs = 1.0 / tolerance
        costs[list(own)] = list(own.values())
        return _by_name(costs, features)

    def on(self, features: Features) -> ColumnBall:
        """The ball for the columns of a matrix.

        A ball that is not resolved takes deviations and shares from these features.
        """
        plain = self.resolved(features)
        width = features.n_columns
        lower, upper = np.full(width, -np.inf), np.full(width, np.inf)
        for feature, ends in _stated_bounds(plain.bounds, features):
            lower[feature.columns], upper[feature.columns] = ends
        groups: list[list[int | None]] = [
            features.each[j].columns.tolist()
            for j in np.flatnonzero(features.categories).tolist()
            if features.each[j].columns.size
        ]
        for group in plain.categories or ():
            groups.append(
                [
                    None if column is None else int(features.named(column, "categories").columns[0])
                    for column in group
                ]
            )
        costs = plain.feature_costs
        if np.ndim(costs) < 2:
            costs = _costs_of_columns(costs, features)
        elif features.categories.any() or not len(costs) == len(features.each) == width:
            raise ValueError(
                "a matrix of feature_costs needs a table of numbers, all of which the model uses"
            )
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
        groups = []
        if self._features is not None:
            names = self._features.names
            groups = [
                [position_of(column, names, "categories") for column in group if column is not None]
                for group in self.categories or ()
            ]
        return sentences(*stated, self._tolerances, self._features, groups)


def _by_name(costs: FloatArray, features: Features) -> Any:
    """Costs as ``{column: cost}``; as they are, if columns have no names."""
    if not features.are_named:
        return costs
    return dict(zip(features.names, costs.tolist(), strict=True))


def _costs_of_columns(stated: Any, features: Features) -> FloatArray:
    """Costs of the features as costs of the columns of the matrix."""
    if isinstance(stated, Mapping):
        missing = [name for name in features.names if name not in stated]
        if missing:
            raise ValueError(
                f"the ball has no cost for the column {missing[0]!r:.60}; it has costs for "
                f"{list(stated)!r:.80}"
            )
        stated = [stated[name] for name in features.names]
    costs = np.asarray(stated, dtype=np.float64)
    if costs.size != len(features.each):
        raise ValueError(f"the ball has costs for {costs.size} columns, got {len(features.each)}")
    if features.are_columns:
        return costs
    columns = np.full(features.n_columns, np.inf)  # those of no feature cannot move
    for feature, cost in zip(features.each, costs, strict=True):
        columns[feature.columns] = cost
    return columns


def _stated_bounds(bounds: Any, features: Features) -> list[tuple[Feature, tuple[float, float]]]:
    """The ends of each number that has a range."""
    if bounds is None:
        return []
    if isinstance(bounds, Mapping):
        given = [(features.named(column, "bounds"), pair) for column, pair in bounds.items()]
    else:
        ends = [as_numbers(end, "bounds") for end in bounds]
        wrong = [end.shape for end in ends if end.shape not in ((), (len(features.each),))]
        if wrong:
            raise ParameterError(
                "bounds",
                f"must be two numbers, or two arrays with one per feature, {len(features.each)}, "
                f"got shape {wrong[0]}",
            )
        pairs = [np.broadcast_to(end, len(features.each)).tolist() for end in ends]
        given = list(zip(features.each, zip(*pairs, strict=True), strict=True))
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


def _is_listed(value: Any, size: int | None = None) -> bool:
    """Whether a value is a sequence, of this size."""
    listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    return listed and (size is None or len(value) == size)


def _same(one: Any, other: Any) -> bool:
    """Equal, also if they are arrays, or have some."""
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if np.ndim(one) or np.ndim(other):
        return np.shape(one) == np.shape(other) and bool(np.all(np.equal(one, other)))
    return type(one) is type(other) and bool(one == other) if isinstance(one, str) else one == other
