"""Data to try things on: the synthetic data of Li, Huang and So (2019), and bundled tables."""

from .bundled import load_heart_disease
from .synthetic import make_synthetic

__all__ = ["load_heart_disease", "make_synthetic"]
