"""The algorithms of Li, Huang and So (2019), on plain arrays and with the paper's defaults.

============================  ====================================================
:func:`framework`             Algorithm 2 over Algorithm 1, certified
:func:`lp_admm`               Algorithm 1, LP-ADMM; linearised ADMM with ``eta``
:func:`golden_section`        Algorithm 2
:func:`standard_admm`         Algorithms 3 and 4
:func:`box_qp`                problem (C) by Algorithms 5, 6 and others
:func:`pdhg`                  a baseline of Section 5.2
:func:`subgradient`           another
:func:`averages`              the averaged iterates of Theorem 4.2
:func:`conic`                 problem (A) off the shelf
:func:`gap`                   the worst-case loss of any coefficients, and a certified bound
:func:`sound`                 a variant that stops on its gap, beyond the paper
============================  ====================================================

The methods for fixed λ are generators of :class:`PaperIterate`, ``(k, x, y, w, rho, residual, F)``.
There is no intercept, and samples have equal weights.
"""

from __future__ import annotations

from .baselines import pdhg, subgradient
from .box_qp import box_qp
from .conic import conic
from .framework import ResidualRuleWarning, framework, golden_section
from .gap import gap
from .lp_admm import lp_admm
from .sound import sound
from .standard_admm import standard_admm
from .subproblem import PaperIterate, TransportNorm, averages

__all__ = [
    "PaperIterate",
    "ResidualRuleWarning",
    "TransportNorm",
    "averages",
    "box_qp",
    "conic",
    "framework",
    "gap",
    "golden_section",
    "lp_admm",
    "pdhg",
    "sound",
    "standard_admm",
    "subgradient",
]
