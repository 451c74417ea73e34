"""Svmlight (libsvm) text: its lines, samples in memory, and row blocks."""
