"""A class that a model almost never predicts.

Accuracy hides a rare class: with 6 % sick, "always healthy" is right in 94 % of the cases.  Two
things make a robust model predict a rare class less often.  A larger ε shrinks the coefficients, so
that every probability comes closer to the share of its class, which is far below one half.  And
ε/κ is a share of *all* labels: 2 % of all labels are a third of a class of 6 %.  The order of the
samples suffers little from either, so that a lower threshold finds most of the class again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from ..problem.ball import Ball
from ..rows.arrays import FloatArray, IndexArray

#: A class counts as neglected if it is predicted for less than this multiple of its samples.
_ALMOST_NEVER = 0.1


def decided(scores: FloatArray) -> IndexArray:
    """The class of the largest score in each row; of two classes there is one score."""
    codes = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0.0
    return np.asarray(codes, dtype=np.intp)


def neglected(
    classes: Sequence[Any], codes: IndexArray, scores: FloatArray, ball: Ball
) -> str | None:
    """A warning about the rarest class that is almost never predicted, or None.

    ``codes`` are the classes of the samples, as positions; ``ball`` is that of the fit.
    """
    shares, predicted = (
        np.bincount(each, minlength=len(classes)) / codes.size for each in (codes, decided(scores))
    )
    never = np.flatnonzero((shares > 0.0) & (predicted <= _ALMOST_NEVER * shares))
    if not never.size:
        return None
    k = int(never[shares[never].argmin()])
    said = (
        f"class {classes[k]!r:.60} is almost never predicted: {shares[k]:.2%} of the samples have "
        f"it, and the model predicts it for {predicted[k]:.2%}."
    )
    epsilon, kappa = float(ball.epsilon or 0.0), ball.kappa
    if epsilon > 0.0:
        said += f" The radius epsilon = {epsilon:.3g} moves probabilities to the class shares."
    if epsilon > 0.0 and isinstance(kappa, float) and math.isfinite(kappa):
        flips = min(epsilon / kappa, 1.0)
        said += (
            f" epsilon/kappa allows {flips:.2%} of all labels to be wrong, which is "
            f"{min(flips / shares[k], 1.0):.0%} of the size of this class."
        )
    said += " Remedies: class_weight='balanced' (--class-weight balanced)"
    if len(classes) == 2:
        own = scores[:, 0] if k == 1 else -scores[:, 0]
        threshold = expit(np.quantile(own, 1.0 - shares[k]))
        said += (
            f", a threshold below 0.5 (--threshold of drlogit predict; a threshold of "
            f"{threshold:.2g} predicts the class as often as it occurs)"
        )
    return f"{said}, or smaller tolerances (a smaller epsilon, a larger kappa)."
