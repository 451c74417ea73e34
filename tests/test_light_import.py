"""What an import and a fit of a dense array leave alone: packages that take longer than they do."""

import subprocess
import sys

SCRIPT = """
import sys, sklearn.base
before = set(sys.modules)  # some versions of scikit-learn import pandas where it is installed
import drlogit
print(*sys.modules.keys() - before)
import drlogit.plots, numpy as np
X = np.random.default_rng(0).standard_normal((30, 4))
drlogit.solve(X, X[:, 0] > 0, epsilon=0.1, kappa=1.0)
print(*sys.modules.keys() - before)
"""

HEAVY = {"numba", "cvxpy", "casadi", "matplotlib", "pandas", "dask", "pooch", "requests", "rich"}


def test_heavy_packages_are_left_alone():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    imported, used = (set(line.split()) for line in run.stdout.splitlines())
    assert "drlogit" in imported
    assert not {name for name in used if name.startswith("drlogit.paper.")}
    assert imported & (HEAVY | {"sklearn.datasets", "sklearn.model_selection"}) == set()
    assert used & HEAVY == set()
