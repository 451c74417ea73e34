"""NumPy's own formats: arrays (.npy), archives of them (.npz), and row blocks."""
