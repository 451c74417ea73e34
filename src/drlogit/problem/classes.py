"""Several classes in one problem: the worst-case log-loss of a softmax over a Wasserstein ball.

    minimise over B, b, λ    ελ + Σ w_i [ lse(s_i) + max_k ( -s_ik - κ(y_i, k) λ ) ]
    subject to               ‖(B_j - B_k) / c‖_* ≤ λ  for every two classes,   s_i = B x_i + b

``κ(y, k) ≥ 0`` is the cost of turning the label y into k, and ``κ(y, y) = 0``.  It may be infinite.
It needs neither symmetry nor the triangle inequality, because a transport plan moves each sample
once.  Alternatively, each sample has one cost for all other labels.  With two classes this is (P)
with ``β = B_2 - B_1``.  Only differences between classes matter; the rows of a returned model sum
to zero.

Categories and bounds are treated as numbers (:attr:`drlogit.problem.problem.Problem.as_numbers`).
That adversary is stronger, so the worst case is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from .label_costs import FlipCosts, flip_costs
from .problem import PosedProblem, pose_problem
from .robust_loss import RobustLoss

#: Scores (one column per class) and labels (positions among the classes) of a block's samples.
Codes: TypeAlias = NDArray[np.int32]
Scored: TypeAlias = tuple[FloatArray, Codes]

#: Weights of samples, and the gain and the cost of each label for each of them.
Changing: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassProblem(PosedProblem):
    """One instance of the problem.  Coefficients have the shape (K, columns), intercepts last.

    The labels in ``rows`` are all +1.  ``codes`` is a state of the rows that holds the labels as
    positions in ``classes``.  ``as_given`` is false if categories or bounds are treated as numbers.
    """

    codes: State
    classes: np.ndarray[Any, Any]
    as_given: bool = True

    several = True

    @property
    def n_classes(self) -> int:
        return int(self.classes.size)

    @cached_property
    def label_costs(self) -> FlipCosts:
        """``κ(y, k)``; at ε = 0 no label can change."""
        return FlipCosts(math.inf) if self.epsilon == 0.0 else self.cost.labels

    @cached_property
    def flip_costs(self) -> FloatArray:
        """The finite label costs; if samples differ, their unit and their largest cost."""
        labels = self.cost.labels
        by_sample = isinstance(labels.multiples, str)
        found = np.ravel([self.kappa, self.dearest_flip] if by_sample else labels.kappa)
        return np.asarray(found[np.isfinite(found)])

    @property
    def least_flip_cost(self) -> float:
        """The least positive label cost, infinite if there is none."""
        return float(self.flip_costs[self.flip_costs > 0.0].min(initial=np.inf))

    @property
    def flips(self) -> bool:
        """Whether any label can change."""
        return self.epsilon > 0.0 and self.flip_costs.size > 0

    def split(self, coefficients: FloatArray) -> tuple[FloatArray, Any]:
        """``(B, b)`` of the original features, with rows that sum to zero."""
        centred = coefficients - coefficients.mean(axis=0)
        given = np.stack([self.moved(row, -1.0) for row in centred])
        if not self.fit_intercept:
            return given, np.zeros(self.n_classes)
        return given[:, :-1].copy(), given[:, -1].copy()

    def join(self, coef: FloatArray, intercept: Any) -> FloatArray:
        """The coefficients of ``(B, b)``."""
        rows = np.column_stack([coef, intercept]) if self.fit_intercept else np.asarray(coef)
        return np.stack([self.moved(row, 1.0) for row in rows.astype(np.float64)])

    @property
    def as_numbers(self) -> ClassProblem:
        """The problem itself, which has no domains."""
        return self

    def dual_norm(self, coefficients: FloatArray) -> float:
        """``max ‖(B_j - B_k)/c‖_*``: the least feasible λ."""
        kept, K = self.penalised, self.n_classes
        scaled = coefficients[:, kept] / self.costs[kept]
        if self.norm.name == "l1":
            return float(np.ptp(scaled, axis=0).max(initial=0.0))
        return max(self.norm.dual(scaled[j] - scaled[k]) for k in range(1, K) for j in range(k))

    def scores(self, coefficients: FloatArray) -> State:
        """Scores and labels of the samples, per block."""
        return self.rows.run(_scores, self.codes, coefficients)[0]

    def robust_loss(self, coefficients: FloatArray, floor: float = 0.0) -> RobustLoss:
        """The objective of a model as a function of λ ≥ ``floor``."""
        least, scored = max(self.dual_norm(coefficients), floor), self.scores(coefficients)
        changing, (loss,) = self.rows.run(_changing, scored, self.label_costs, least)
        return RobustLoss(self.rows, least, float(loss), _worst_labels, changing)


def pose_classes(
    make_rows: Callable[..., Rows],
    codes: Any,
    classes: np.ndarray[Any, Any],
    *,
    epsilon: float,
    kappa: Any,
    **model: Any,
) -> ClassProblem:
    """Pose the problem on the rows of ``make_rows(intercept=…)``, whose labels are all +1."""
    kappa = flip_costs(kappa, classes)
    by_sample = np.ndim(kappa) == 1
    given = pose_problem(
        make_rows,
        epsilon=epsilon,
        kappa=kappa if by_sample else math.inf,
        for_numbers=True,
        **model,
    )
    if given.matrix is not None:
        raise ValueError(
            f"a matrix of feature_costs needs two classes, got {classes.size}: pass one cost for "
            "each feature instead"
        )
    plain = given.as_numbers
    cost = plain.cost
    if not by_sample:
        cost = replace(cost, labels=FlipCosts.from_stated(kappa, classes))
    return ClassProblem(
        plain.rows,
        plain.epsilon,
        cost,
        plain.fit_intercept,
        codes=plain.rows.run(_as_codes, plain.rows.scatter(codes))[0],
        classes=classes,
        as_given=given.domains is None,
    )


def _as_codes(_: Block, codes: FloatArray) -> tuple[Codes, tuple[()]]:
    return codes.astype(np.int32), ()


def _scores(block: Block, codes: Codes, coefficients: FloatArray) -> tuple[Scored, tuple[()]]:
    return (block.scores(coefficients), codes), ()


def _changing(
    block: Block, scored: Scored, costs: FlipCosts, least: float
) -> tuple[Changing, tuple[Sum]]:
    """The samples that gain from another label at the least λ, and the loss without changes.

    A label that does not pay at the least λ does not pay at a larger one.
    """
    scores, codes = scored
    ahead = scores - np.take_along_axis(scores, codes[:, None], axis=1)
    most = ahead.max(axis=1)
    loss = block.weights @ (most + np.log(np.exp(ahead - most[:, None]).sum(axis=1)))
    price = costs.by_label(block, codes, scores.shape[1])
    gains = np.where(np.isfinite(price), -ahead, -np.inf)
    price = np.where(np.isfinite(price), price, 0.0)
    some = np.flatnonzero((gains - least * price).max(axis=1) > 0.0)
    return (block.weights[some], gains[some], price[some]), (Sum(float(loss)),)


def _worst_labels(block: Block, state: Changing, lam: float) -> tuple[Changing, tuple[Sum, Sum]]:
    """``Σ w max_k(s_y - s_k - κ_k λ)`` and ``Σ w κ`` of the labels that attain it."""
    w, gains, price = state
    values = gains - lam * price
    at = values.argmax(axis=1)[:, None]
    worst, paid = (np.take_along_axis(part, at, axis=1)[:, 0] for part in (values, price))
    return state, (Sum(float(w @ worst)), Sum(float(w @ paid)))
