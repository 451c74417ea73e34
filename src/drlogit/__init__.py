"""Wasserstein distributionally robust logistic regression, with a certificate.

:func:`solve` fits the model and says how far from optimal the answer can be.  The radius
``epsilon`` bounds how far the data may shift, ``kappa`` is the cost of flipping a label, and
``epsilon / kappa`` is the largest share of labels that may be wrong.
"""

from . import datasets
from .estimators.choosing import (
    RegularizationPath,
    epsilon_max,
    regularization_path,
    suggest_radius,
)
from .estimators.classifier import DRLogisticRegression
from .estimators.classifier_cv import DRLogisticRegressionCV
from .estimators.tolerances import Tolerances, allowances, tolerances
from .estimators.unlike_units import UnscaledDataWarning
from .files.block_files import open_blocks
from .files.model_file import load_model, save_model
from .files.onnx_model import register_onnx, to_onnx
from .fitting.solving import solve, solve_subproblem
from .plots.audits import Audit, audit
from .problem.dual_point import DualPoint
from .problem.result import Result, Status, Trace
from .robustness.guarantees import Guarantee, guarantee
from .robustness.misclassification import MisclassificationBounds, misclassification_bounds
from .robustness.worst_case import WorstCaseDistribution, worst_case_distribution, worst_case_loss
from .rows.row_blocks import RowBlocks
from .verification.verifying import Verification, verify

__version__ = "0.1.0.dev0"

__all__ = [
    "Audit",
    "DRLogisticRegression",
    "DRLogisticRegressionCV",
    "DualPoint",
    "Guarantee",
    "MisclassificationBounds",
    "RegularizationPath",
    "Result",
    "RowBlocks",
    "Status",
    "Tolerances",
    "Trace",
    "UnscaledDataWarning",
    "Verification",
    "WorstCaseDistribution",
    "__version__",
    "allowances",
    "audit",
    "datasets",
    "epsilon_max",
    "guarantee",
    "load_model",
    "misclassification_bounds",
    "open_blocks",
    "register_onnx",
    "regularization_path",
    "save_model",
    "solve",
    "solve_subproblem",
    "suggest_radius",
    "to_onnx",
    "tolerances",
    "verify",
    "worst_case_distribution",
    "worst_case_loss",
]

# Where a class is defined is our business: pickles name it by its public address.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = "drlogit"
