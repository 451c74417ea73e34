"""From a good start to a certified solution: quadratic programs near the kink."""
