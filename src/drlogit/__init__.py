"""Wasserstein distributionally robust logistic regression, with a certificate.

:func:`solve` fits the model and says how far from optimal the answer can be.  The radius
``epsilon`` bounds how far the data may shift, ``kappa`` is the cost of flipping a label, and
``epsilon / kappa`` is the largest share of labels that may be wrong.
"""

from . import datasets
from .result import Result, Status, Trace
from .solve import solve, solve_subproblem

__version__ = "0.1.0.dev0"

__all__ = ["Result", "Status", "Trace", "__version__", "datasets", "solve", "solve_subproblem"]
