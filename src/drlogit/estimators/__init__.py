"""The model as scikit-learn classifiers."""
