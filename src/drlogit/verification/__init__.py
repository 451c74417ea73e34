"""Checks of what the other packages claim, by arithmetic of its own."""
