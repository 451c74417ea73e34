"""Pictures, in scikit-learn's Display convention, and pages that hold them.

RobustnessDisplay.from_estimators({"plain": lr, "robust": drlr}, X, y, kappa=1.0)
RegularizationPathDisplay.from_data(X, y, kappa=1.0)
CVSurfaceDisplay.from_estimator(cv)
ConvergenceDisplay.from_results({"interior point": result})
CoefficientsDisplay.from_estimators({"plain": lr, "robust": drlr})
"""

from .displays import (
    CoefficientsDisplay,
    ConvergenceDisplay,
    CVSurfaceDisplay,
    RegularizationPathDisplay,
    RobustnessDisplay,
)

__all__ = [
    "CVSurfaceDisplay",
    "CoefficientsDisplay",
    "ConvergenceDisplay",
    "RegularizationPathDisplay",
    "RobustnessDisplay",
]
