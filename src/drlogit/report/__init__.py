"""What people see of an audit: text, tables, a page; and pictures."""

from .decision_displays import CalibrationBandDisplay, DecisionCurveDisplay, RocBoxDisplay
from .displays import RegularizationPathDisplay, RobustnessDisplay

__all__ = [
    "CalibrationBandDisplay",
    "DecisionCurveDisplay",
    "RegularizationPathDisplay",
    "RobustnessDisplay",
    "RocBoxDisplay",
]
