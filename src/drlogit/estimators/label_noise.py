"""Known rates of wrong labels: from probabilities of recorded labels to those of true labels.

If a share ``T_kl`` of each true class k is recorded as l, independently of the features, then a
model of the recorded labels estimates ``p̃ = p T``, where p are the probabilities of the true
labels.  So fits and certificates are about recorded labels, and predictions of true labels are ``p̃
T⁻¹``, projected on the simplex if necessary.  With two classes, of which shares ρ₊ and ρ₋ are
recorded as the other, that is ``p = (p̃ - ρ₋) / (1 - ρ₊ - ρ₋)``, clipped.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.arrays import FloatArray
from ..rows.checks import as_numbers

#: Determinant of T from which on recorded labels say something of the true ones.
_LEAST = 1e-6

#: Least probability of a class, times their number: 0 would be infinitely sure.  Measured by
#: ``benchmarks.known_noise``: log-losses are alike from 0.002 to 0.02, and higher than without any
#: correction at 1e-12 where 5 % of the labels are wrong.
_SURE = 1e-2


def noise_matrix(label_noise: Any, classes: NDArray[Any]) -> FloatArray | None:
    """T of a rate, of rates by label, or of a matrix of shares; None for labels that are right."""
    if label_noise is None:
        return None
    n, labels = classes.size, classes.tolist()
    if not isinstance(label_noise, Mapping) and np.ndim(label_noise) == 0:
        label_noise = dict.fromkeys(labels, label_noise)
    if isinstance(label_noise, Mapping):
        unknown = [label for label in label_noise if label not in labels]
        if unknown:
            raise ValueError(
                f"label_noise must give rates for the labels {labels!r:.80}, got the label "
                f"{unknown[0]!r:.40}"
            )
        rates = np.array([_rate(label_noise.get(label, 0.0)) for label in labels])[:, None]
        # What is recorded wrongly is any other label alike.
        shares = np.where(np.eye(n, dtype=bool), 1.0 - rates, rates / (n - 1))
    else:
        shares = as_numbers(label_noise, "label_noise").copy()
        if shares.shape != (n, n):
            raise ValueError(
                f"label_noise as a matrix must have a row for each of {n} true labels and a column "
                f"for each recorded one, got shape {shares.shape}"
            )
        if not shares.diagonal().any():  # the shares that are recorded as another alone
            np.fill_diagonal(shares, 1.0 - shares.sum(axis=1))
        if not (shares >= 0.0).all() or np.abs(shares.sum(axis=1) - 1.0).max() > 1e-9:
            raise ValueError(
                "each row of label_noise must be non-negative and add up to 1, got sums "
                f"{shares.sum(axis=1).tolist()!r:.80}"
            )
    if not np.linalg.det(shares) > _LEAST:
        raise ValueError(
            "label_noise is too large: recorded labels must be informative about the true ones. "
            f"With two labels, the rates must add up to less than 1; got {shares.tolist()!r:.80}"
        )
    return shares


def _rate(rate: Any) -> float:
    real = isinstance(rate, numbers.Real) and not isinstance(rate, bool)
    if not real or not 0.0 <= rate < 1.0:
        raise ValueError(f"label_noise must be a rate in [0, 1), got {rate!r:.40}")
    return float(rate)


def true_probabilities(recorded: FloatArray, noise: FloatArray) -> FloatArray:
    """Probabilities of the true labels, of those of the recorded ones, row by row."""
    p = _on_simplex(np.asarray(np.linalg.solve(noise.T, recorded.T).T, dtype=np.float64))
    p = np.maximum(p, _SURE / p.shape[1])
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _on_simplex(p: FloatArray) -> FloatArray:
    """The nearest probabilities to each row (Held, Wolfe and Crowder 1974)."""
    ordered = np.sort(p, axis=1)[:, ::-1]
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, p.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    return np.asarray(np.maximum(p - excess[np.arange(p.shape[0]), last][:, None], 0.0))
