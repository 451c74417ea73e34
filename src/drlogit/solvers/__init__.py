"""Solvers of the robust problem, one algorithm per file."""
