"""Settings shared by all tests."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Test problems are small and tests run side by side: one BLAS thread each, or they fight for
# the cores.  Set before NumPy is first imported; what the environment says goes first.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# A shell starts background jobs with interrupts ignored.  Tests of Ctrl-C need Python's handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# "ci" tries the same examples every time, so that a failure is the fault of the change at
# hand; "explore" looks for new ones: HYPOTHESIS_PROFILE=explore make test
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", parent=settings.get_profile("ci"), derandomize=False, max_examples=1000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# What is loaded and collected stays until the end.  Looking through it for garbage takes a quarter
# of the time that collecting takes, and a quarter of a second each time that somebody asks for it.
gc.disable()


@pytest.fixture(scope="session")
def cancer():
    """Breast cancer in Wisconsin: standardised features, and labels 0 and 1."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
