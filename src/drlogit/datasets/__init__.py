"""Data to try things on: the synthetic data of Li, Huang and So (2019), and what is bundled."""

from .synthetic import make_synthetic

__all__ = ["make_synthetic"]
