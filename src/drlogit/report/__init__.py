"""What people see of an audit: text, tables, a page; and pictures."""

from .displays import RegularizationPathDisplay, RobustnessDisplay

__all__ = ["RegularizationPathDisplay", "RobustnessDisplay"]
