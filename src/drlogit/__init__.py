"""Wasserstein distributionally robust logistic regression, with a certificate.

:func:`solve` fits the model and says how far from optimal the answer can be.  The radius
``epsilon`` bounds how far the data may shift, ``kappa`` is the cost of flipping a label, and
``epsilon / kappa`` is the largest share of labels that may be wrong.
"""

from . import datasets
from .audit import Audit, audit
from .block_files import open_blocks
from .estimator import DRLogisticRegression
from .estimator_cv import DRLogisticRegressionCV
from .misclassification import MisclassificationBounds, misclassification_bounds
from .model_file import load_model, save_model
from .path import RegularizationPath, regularization_path
from .radius import epsilon_max, suggest_radius
from .result import Result, Status, Trace
from .row_blocks import RowBlocks
from .solve import solve, solve_subproblem
from .worst_case import WorstCaseDistribution, worst_case_distribution, worst_case_loss

__version__ = "0.1.0.dev0"

__all__ = [
    "Audit",
    "DRLogisticRegression",
    "DRLogisticRegressionCV",
    "MisclassificationBounds",
    "RegularizationPath",
    "Result",
    "RowBlocks",
    "Status",
    "Trace",
    "WorstCaseDistribution",
    "__version__",
    "audit",
    "datasets",
    "epsilon_max",
    "load_model",
    "misclassification_bounds",
    "open_blocks",
    "regularization_path",
    "save_model",
    "solve",
    "solve_subproblem",
    "suggest_radius",
    "worst_case_distribution",
    "worst_case_loss",
]
