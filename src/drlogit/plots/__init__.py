"""Pictures, in scikit-learn's Display convention, and pages that hold them.

RobustnessDisplay.from_estimators({"plain": lr, "robust": drlr}, X, y, kappa=1.0)
RegularizationPathDisplay.from_data(X, y, kappa=1.0)
CVSurfaceDisplay.from_estimator(cv)
ConvergenceDisplay.from_results({"interior point": result})
CoefficientsDisplay.from_estimators({"plain": lr, "robust": drlr})
"""

from .displays.coefficients_display import CoefficientsDisplay
from .displays.convergence_display import ConvergenceDisplay
from .displays.cv_surface_display import CVSurfaceDisplay
from .displays.path_display import RegularizationPathDisplay
from .displays.robustness_display import RobustnessDisplay

__all__ = [
    "CVSurfaceDisplay",
    "CoefficientsDisplay",
    "ConvergenceDisplay",
    "RegularizationPathDisplay",
    "RobustnessDisplay",
]
