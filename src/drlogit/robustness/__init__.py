"""What the adversary can do to a fitted linear model, ours or any other."""
