"""One predictor-corrector for every model of the samples, and what it needs compiled."""
