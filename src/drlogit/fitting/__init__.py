"""Fits of one problem or many: by name of a solver, along a path, at a radius with a meaning."""
