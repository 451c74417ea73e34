"""What an import and a fit of a dense array leave alone: all that they do not need."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, sklearn.base
before = set(sys.modules)  # some versions of scikit-learn import pandas where it is installed
import drlogit
print(*sys.modules.keys() - before)
import numpy as np
X = np.random.default_rng(0).standard_normal((30, 4))
drlogit.solve(X, X[:, 0] > 0, drlogit.Ball(0.1, kappa=1.0))
print(*sys.modules.keys() - before)
"""

HEAVY = {"cvxpy", "casadi", "matplotlib", "pandas", "dask", "requests", "rich"}
ABOVE = {"cli", "datasets", "estimators", "files", "paper", "plots", "robustness", "verification"}


def test_what_is_not_needed_is_not_imported():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    imported, used = (set(line.split()) for line in run.stdout.splitlines())
    assert {name for name in imported if name.startswith("drlogit")} == {"drlogit"}
    assert not used & HEAVY
    assert not used & {f"drlogit.{package}" for package in ABOVE}


def test_help_imports_nothing_that_computes():
    script = """
import atexit, sys
from drlogit import cli
atexit.register(lambda: print(*sys.modules))
cli.main(["--help"])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"numpy", "scipy", "sklearn", "pandas"}
