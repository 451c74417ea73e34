"""What people see of an audit: text, tables, a page; and pictures."""

from .displays import CVSurfaceDisplay, RegularizationPathDisplay, RobustnessDisplay

__all__ = ["CVSurfaceDisplay", "RegularizationPathDisplay", "RobustnessDisplay"]
