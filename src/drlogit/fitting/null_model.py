"""The null model: the best model without penalised features.

    minimise over v_F, λ ≥ 0    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],        u = Z_F v_F

over the free columns F, the intercept and immovable features.  Its dual is that of (P) without the
norm: maximise ``Σ w_i H(s_i)`` subject to ``κ Σ w_i a_i ≤ ε`` and the equations of F.

If only the intercept is free and κ is one number, there is a closed form.  Let p be the weight of
the smaller class.  Flips reduce the larger class: the dual probability s of its samples is
``p + ε/κ``, at most one half, and that of the others is 1 - s.  The value is the entropy ``H(s)``,
and ``b`` is the logit.

If flips can balance the free columns completely, the model is zero and its value is log 2.  Its
predictions are then arbitrary.  An intercept keeps the sign of the larger class, at a size that
does not change the objective in double precision.
"""

from __future__ import annotations

import math

import numpy as np

from ..engine.interior_point import null_model as best_of_free
from ..problem.problem import Problem
from ..rows.arrays import FloatArray

#: Class weights that differ by less count as equal.
_EQUAL = 1e-12

#: An intercept that changes no objective in double precision.
_LEANING = 1e-18


def null_model(problem: Problem) -> FloatArray:
    """Coefficients of the null model of any problem."""
    if not problem.several and is_arithmetic(problem):
        return constant_model(problem)
    return best_of_free(problem)


def is_arithmetic(problem: Problem) -> bool:
    """Whether the null model has a closed form: only the intercept is free, and κ is one number."""
    if not problem.fit_intercept:
        return not problem.free.any()
    alike = problem.cost.labels.multiples is None or math.isinf(problem.kappa)
    return alike and int(np.count_nonzero(problem.free)) == 1


def constant_model(problem: Problem) -> FloatArray:
    """Coefficients of the null model in closed form."""
    v, s = balanced_model(problem), larger_class_s(problem)
    if s < 0.5:
        v[-1] = math.copysign(math.log1p(-s) - math.log(s), _lean(problem))
    return v


def constant_value(problem: Problem) -> float:
    """The objective of the null model in closed form."""
    s = larger_class_s(problem)
    return -s * math.log(s) - (1.0 - s) * math.log1p(-s)


def balanced_model(problem: Problem) -> FloatArray:
    """The zero model, with a negligible intercept that has the sign of the larger class."""
    v, lean = np.zeros(problem.costs.size), _lean(problem)
    if problem.fit_intercept and abs(lean) > _EQUAL:
        v[-1] = math.copysign(_LEANING, lean)
    return v


def larger_class_s(problem: Problem) -> float:
    """The dual probability s of the larger class's samples in the null model."""
    if not problem.fit_intercept:
        return 0.5
    return min(0.5 - abs(_lean(problem)) + problem.epsilon / float(problem.kappa), 0.5)


def _lean(problem: Problem) -> float:
    """The weight of the positive class above one half."""
    return float(problem.rows.totals.classes[1]) - 0.5
