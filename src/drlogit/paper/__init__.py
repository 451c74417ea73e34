"""The algorithms of Li, Huang and So (2019), by their numbers and with their defaults.

======================================  ===========================================
:func:`framework`                       Algorithm 2 over Algorithm 1; a sound variant
:func:`lp_admm_steps`                   Algorithm 1, LP-ADMM, iterate by iterate
:func:`golden_section`                  Algorithm 2
:func:`standard_admm_steps`             Algorithm 3 (with Algorithm 4)
:func:`semismooth_newton`               Algorithm 4
:func:`projected_gradient`              Algorithm 5, for problem (C)
:func:`active_set_cg`                   Algorithm 6, for problem (C)
:func:`coordinate_minimization`         the coordinate minimisation of Appendix B
:func:`ball_least_squares`              problem (C) by any of these
:func:`linearized_admm_steps`, :func:`pdhg_steps`, :func:`subgradient_steps`  the baselines
:func:`averages`                        the averaged iterates of Theorem 4.2
======================================  ===========================================

``drlogit.solve(solver="lp-admm")`` and ``drlogit.solve_subproblem`` run the same iterations until
the certified gap is within ``tol``.
"""

from __future__ import annotations

from .ball_qp import (
    INNER_SOLVERS,
    NormBall,
    Quadratic,
    active_set_cg,
    ball_least_squares,
    coordinate_anderson,
    coordinate_minimization,
    coordinate_newton,
    projected_gradient,
    scaled_gradient,
    secular_equation,
)
from .first_order import FrameworkResult, ResidualRuleWarning, Subproblem, framework, golden_section
from .iterates import PaperIterate, averages
from .linearized_admm import linearized_admm_steps
from .lp_admm import lp_admm_steps
from .pdhg import pdhg_steps
from .standard_admm import semismooth_newton, standard_admm_steps
from .subgradient import subgradient_steps

__all__ = [
    "INNER_SOLVERS", "FrameworkResult", "NormBall", "PaperIterate", "Quadratic",
    "ResidualRuleWarning", "Subproblem", "active_set_cg", "averages", "ball_least_squares",
    "coordinate_anderson", "coordinate_minimization", "coordinate_newton", "framework",
    "golden_section", "linearized_admm_steps", "lp_admm_steps", "pdhg_steps", "projected_gradient",
    "scaled_gradient", "secular_equation", "semismooth_newton", "standard_admm_steps",
    "subgradient_steps",
]  # fmt: skip
