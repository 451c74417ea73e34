"""Wasserstein distributionally robust logistic regression, with a certificate.

:func:`solve` fits the model and says how far from optimal the answer can be.  The radius
``epsilon`` bounds how far the data may shift, ``kappa`` is the cost of flipping a label, and
``epsilon / kappa`` is the largest share of labels that may be wrong.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import paper as paper
    from .estimators.choosing import RegularizationPath as RegularizationPath
    from .estimators.choosing import epsilon_max as epsilon_max
    from .estimators.choosing import regularization_path as regularization_path
    from .estimators.classifier import DRLogisticRegression as DRLogisticRegression
    from .estimators.classifier_cv import DRLogisticRegressionCV as DRLogisticRegressionCV
    from .files.model_file import load_model as load_model
    from .files.model_file import save_model as save_model
    from .fitting.solving import solve as solve
    from .problem.ball import Ball as Ball
    from .problem.result import Result as Result
    from .problem.result import Status as Status
    from .report.audit import audit as audit
    from .robustness.promise import guarantee as guarantee
    from .robustness.shift import measure_shift as measure_shift
    from .robustness.threshold import choose_threshold as choose_threshold
    from .robustness.worst_case import worst_case as worst_case
    from .verification.verifying import verify as verify

__version__ = "0.1.0"

#: Where the names are defined.  Each module is imported when one of its names is first used.
_HOMES = {
    "estimators.choosing": "RegularizationPath epsilon_max regularization_path",
    "estimators.classifier": "DRLogisticRegression",
    "estimators.classifier_cv": "DRLogisticRegressionCV",
    "files.model_file": "load_model save_model",
    "fitting.solving": "solve",
    "problem.ball": "Ball",
    "problem.dual_point": "DualPoint",
    "problem.result": "Result Status Trace",
    "report.audit": "Audit audit",
    "robustness.promise": "Promise guarantee",
    "robustness.shift": "Shift measure_shift",
    "robustness.threshold": "ThresholdChoice choose_threshold",
    "robustness.worst_case": "BreakingPoint WorstCase worst_case",
    "verification.verifying": "Verification verify",
}

__all__ = ["__version__", "datasets", "paper", *" ".join(_HOMES.values()).split()]


def __getattr__(name: str) -> Any:
    if name in ("datasets", "paper", "report"):
        return import_module(f".{name}", __name__)
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{home}", __name__)
    for each in _HOMES[home].split():
        value = globals()[each] = getattr(module, each)
        if isinstance(value, type):
            # Where a class is defined is our business: pickles name it by its public address.
            value.__module__ = __name__
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
