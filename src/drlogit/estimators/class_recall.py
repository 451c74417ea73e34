"""How much of each class a model finds, beside the model that always predicts the largest class.

Accuracy hides a rare class: with 6 % sick, "always healthy" is right in 94 % of the cases.  Two
things make a robust model predict a rare class less often.  A larger ε shrinks the coefficients, so
that every probability comes closer to the share of its class, which is far below one half.  And
ε/κ is a share of *all* labels: 2 % of all labels are a third of a class of 6 %.  The order of the
samples suffers little from either, so that a lower threshold finds most of the class again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from .tables.frames import listed

#: A class counts as neglected if it is predicted for less than this multiple of its samples.
_ALMOST_NEVER = 0.1


@dataclass(frozen=True, eq=False)
class ClassRecall:
    """Samples by class (rows of ``confusion``) and by predicted class (columns), as weights."""

    classes: Sequence[Any]
    confusion: FloatArray

    @classmethod
    def of(
        cls, classes: Sequence[Any], codes: IndexArray, predicted: IndexArray, weights: Any = None
    ) -> ClassRecall:
        """The same from the class and the predicted class of each sample, as positions."""
        K = len(classes)
        cells = np.bincount(K * codes + predicted, weights, minlength=K * K)
        return cls(classes, cells.astype(np.float64).reshape(K, K))

    @property
    def shares(self) -> FloatArray:
        """The share of the samples that each class has."""
        return np.asarray(self.confusion.sum(axis=1) / self.confusion.sum())

    @property
    def accuracy(self) -> float:
        return float(self.confusion.trace() / self.confusion.sum())

    @property
    def recalls(self) -> dict[Any, float]:
        """The share of each class that is predicted to be of it; classes that occur only."""
        totals, right = self.confusion.sum(axis=1), self.confusion.diagonal()
        there = zip(self.classes, totals, right, strict=True)
        return {label: float(hit / total) for label, total, hit in there if total > 0.0}

    @property
    def constant(self) -> dict[str, Any]:
        """The best that a model without features can do on these samples."""
        shares = self.shares
        some = shares[shares > 0.0]
        return {
            "label": self.classes[int(shares.argmax())],
            "accuracy": float(shares.max()),
            "log_loss": float(-some @ np.log(some)),
        }

    @property
    def record(self) -> dict[str, Any]:
        """For a script."""
        return {"accuracy": self.accuracy, "recall": self.recalls, "constant_model": self.constant}

    def lines(self) -> list[str]:
        """For a reader: what is found of each class, and the constant model."""
        found = listed([f"{label} {share:.1%}" for label, share in self.recalls.items()], 12)
        least = self.constant
        return [
            f"  accuracy              {self.accuracy:.1%}",
            f"  recall by class       {found}",
            f"  constant model        log-loss {least['log_loss']:.4f}, accuracy "
            f"{least['accuracy']:.1%} (always {least['label']})",
        ]

    def neglected(
        self, epsilon: float, kappa: Any, as_often_from: float | None = None
    ) -> str | None:
        """A warning about the rarest class that is almost never predicted, or None.

        ``epsilon`` and ``kappa`` are those of the fit.  With the threshold ``as_often_from``, the
        class would be predicted as often as it occurs.
        """
        shares, predicted = self.shares, self.confusion.sum(axis=0) / self.confusion.sum()
        never = np.flatnonzero((shares > 0.0) & (predicted <= _ALMOST_NEVER * shares))
        if not never.size:
            return None
        k = int(never[shares[never].argmin()])
        others = f" (the same holds for {never.size - 1} other classes)" if never.size > 1 else ""
        said = [
            f"class {self.classes[k]!r:.60} is almost never predicted: {shares[k]:.2%} of the "
            f"samples have it, and the model predicts it for {predicted[k]:.2%}{others}."
        ]
        if epsilon > 0.0:
            said.append(
                f"The radius epsilon = {epsilon:.3g} shrinks the coefficients, so probabilities "
                "stay near the shares of the classes."
            )
        if epsilon > 0.0 and isinstance(kappa, float) and math.isfinite(kappa):
            flips = min(epsilon / kappa, 1.0)
            said.append(
                f"epsilon/kappa allows {flips:.2%} of all labels to be wrong, which is "
                f"{min(flips / shares[k], 1.0):.0%} of the size of this class."
            )
        often = "" if as_often_from is None else (
            f"; a threshold of {as_often_from:.2g} predicts the class as often as it occurs"
        )  # fmt: skip
        said.append(
            "Remedies: class_weight='balanced' (--balanced on the command line), a threshold below "
            f"0.5 (--threshold of drlogit predict{often}), or smaller tolerances (a smaller "
            "epsilon, a larger kappa)."
        )
        return " ".join(said)
