"""Pictures, in scikit-learn's Display convention, and pages that hold them.

RobustnessDisplay.from_estimators({"plain": lr, "robust": drlr}, X, y, kappa=1.0)
RegularizationPathDisplay.from_data(X, y, kappa=1.0)
CVSurfaceDisplay.from_estimator(cv)
ConvergenceDisplay.from_results({"interior point": result})
CoefficientsDisplay.from_estimators({"plain": lr, "robust": drlr})
"""

from .displays.coefficients import CoefficientsDisplay
from .displays.convergence import ConvergenceDisplay
from .displays.cv_surface import CVSurfaceDisplay
from .displays.path import RegularizationPathDisplay
from .displays.robustness import RobustnessDisplay

__all__ = [
    "CVSurfaceDisplay",
    "CoefficientsDisplay",
    "ConvergenceDisplay",
    "RegularizationPathDisplay",
    "RobustnessDisplay",
]
