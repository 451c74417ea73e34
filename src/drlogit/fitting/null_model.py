"""The best model without penalised features: what is left when nothing can be learnt from them.

    minimise over v_F, λ ≥ 0    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],        u = Z_F v_F

over the free columns F, the intercept and immovable features.  Its dual is that of (P) without the
norm: maximise ``Σ w_i H(s_i)`` subject to ``κ Σ w_i a_i ≤ ε`` and the equations of F.

With an intercept alone this is arithmetic.  Let p be the weight of the smaller class.  Flips take
from the larger class what makes it larger: the doubt ``s`` about its samples is ``p + ε/κ``, at
most one half, and 1 - s about the others; the value is the entropy ``H(s)`` and ``b`` is the logit.
Where flips cost a κ each, the larger class loses its cheapest labels first.

Where flips can level the free columns altogether the model is zero, and its value log 2.  Its
predictions are then a matter of taste; the intercept, where there is one, keeps the sign of the
larger class, at a size that no objective can tell from zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..engine.classes import null_model_of_classes
from ..engine.pair import null_model as best_of_free
from ..problem.classes import ClassProblem
from ..problem.problem import Problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Stack

#: Classes whose weights differ by less are of equal size but for rounding.
_EQUAL = 1e-12

#: An intercept that changes no objective in double precision.
_LEANING = 1e-18


def null_model(problem: Problem | ClassProblem) -> FloatArray:
    """Coefficients of the null model of any problem."""
    if isinstance(problem, ClassProblem):
        none = np.zeros((problem.n_classes, problem.costs.size))
        return null_model_of_classes(problem) if problem.free.any() else none
    return best_of_free(problem) if has_immovable_features(problem) else constant_model(problem)


def has_immovable_features(problem: Problem) -> bool:
    """Whether columns besides the intercept are free."""
    return int(np.count_nonzero(problem.free)) > int(problem.fit_intercept)


def constant_model(problem: Problem) -> FloatArray:
    """Coefficients of the null model without immovable features, in closed form."""
    v, s = levelled_model(problem), doubt(problem)
    if s < 0.5:
        v[-1] = math.copysign(math.log1p(-s) - math.log(s), _lean(problem))
    return v


def constant_value(problem: Problem) -> float:
    """Its value."""
    s = doubt(problem)
    return -s * math.log(s) - (1.0 - s) * math.log1p(-s)


def levelled_model(problem: Problem) -> FloatArray:
    """No coefficients, and an intercept that does no more than lean to the larger class."""
    v, lean = np.zeros(problem.costs.size), _lean(problem)
    if problem.fit_intercept and abs(lean) > _EQUAL:
        v[-1] = math.copysign(_LEANING, lean)
    return v


def doubt(problem: Problem) -> float:
    """S of the larger class in the null model without immovable features."""
    if not problem.fit_intercept:
        return 0.5
    return min(
        0.5 - abs(_lean(problem)) + Flips.of_larger_class(problem).most(problem.epsilon), 0.5
    )


def _lean(problem: Problem) -> float:
    """By how much the positive class has more than half of the weight."""
    return float(problem.rows.class_weights[1]) - 0.5


class Flips(NamedTuple):
    """What flipping labels of one class costs, cheapest first, and how much weight that flips."""

    cost: FloatArray  # cumulated, from zero on
    weight: FloatArray
    prices: FloatArray

    @classmethod
    def of_larger_class(cls, problem: Problem) -> Flips:
        """Those of the class that the null model predicts."""
        lean = _lean(problem)
        found = np.array([[problem.kappa, 0.5 + abs(lean)]])
        if problem.cost.trust is not None:
            sign = 1.0 if lean >= 0.0 else -1.0
            _, (found,) = problem.rows.run(_flips, None, sign, problem.kappa)
        prices, places = np.unique(found[:, 0], return_inverse=True)
        weight = np.bincount(places, found[:, 1], minlength=prices.size)
        weight, prices = weight[np.isfinite(prices)], prices[np.isfinite(prices)]
        cost, total = (np.append(0.0, np.cumsum(terms)) for terms in (prices * weight, weight))
        return cls(cost, total, prices)

    def most(self, budget: float) -> float:
        """The largest weight that a budget flips."""
        return float(np.interp(budget, self.cost, self.weight))

    def least(self, weight: float) -> float:
        """The least budget that flips so much weight, or all that can be."""
        return float(np.interp(weight, self.weight, self.cost))


def _flips(block: Block, _: None, sign: float, kappa: float) -> tuple[None, tuple[Stack]]:
    """Distinct costs of flips in a class, and what the samples weigh."""
    own = block.y == sign
    costs = np.broadcast_to(block.flip_costs(kappa), own.shape)[own]
    prices, places = np.unique(costs, return_inverse=True)
    weight = np.bincount(places, block.weights[own], minlength=prices.size)
    return None, (Stack(np.column_stack([prices, weight])),)
