"""Dual points, the lower bound that they prove, and the file that carries the proof."""
