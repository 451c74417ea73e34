"""The synthetic data of the paper, Section 5.1."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..rows.arrays import FloatArray


def make_synthetic(
    n_samples: int,
    n_features: int,
    random_state: int | np.random.Generator | None = None,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Samples of a logistic model with a random unit coefficient vector.

    ``β* = β/‖β‖`` with ``β ~ N(0, I)``, features ``x_i ~ N(0, I)``, and the label is +1 with
    probability ``1 / (1 + exp(-β*·x_i))``.  Since ``β*·x_i`` is standard normal whatever the
    number of features, even the true model gets about one label in three wrong.

    Parameters
    ----------
    n_samples, n_features : int
        Size of the data, each at least 1.
    random_state : int, numpy.random.Generator or None
        Seed, or the generator to draw from (and advance).  None draws fresh entropy.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Labels -1 and +1.  A handful of samples may all have the same one.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((200, 5), [-1, 1])
    """
    n_samples = _check_size("n_samples", n_samples)
    n_features = _check_size("n_features", n_features)
    rng = _generator(random_state)
    beta = rng.standard_normal(n_features)
    beta /= np.linalg.norm(beta)
    X = rng.standard_normal((n_samples, n_features))
    z = rng.random(n_samples)
    y = np.where(z < expit(X @ beta), 1, -1).astype(np.int64)
    return X, y


def _check_size(name: str, value: Any) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    return int(value)


def _generator(random_state: Any) -> np.random.Generator:
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if not is_seed or random_state < 0:
        raise ValueError(
            f"random_state must be an integer >= 0, a numpy Generator or None, got {random_state!r}"
        )
    return np.random.default_rng(int(random_state))
