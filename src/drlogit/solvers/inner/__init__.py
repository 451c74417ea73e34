"""Solvers of the inner problem (C), a quadratic over the ball of the dual norm."""
