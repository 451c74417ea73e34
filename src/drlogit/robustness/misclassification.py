"""The smallest and largest error rate of a linear classifier over the Wasserstein ball.

A sample with margin ``u > 0`` is classified correctly.  To make it wrong the adversary moves it
to the decision boundary, at distance ``u / L`` with ``L = ‖β/c‖_*``, or flips its label, at cost κ:
``min(u/L, κ)`` per unit of mass, whichever is cheaper.  A budget ε buys the cheapest first (a
fractional knapsack), so the worst error is a concave, piecewise linear function of ε; the best
error is the same with the misclassified samples made right.  Shafieezadeh-Abadeh, Mohajerin
Esfahani and Kuhn (2015, arXiv:1509.09259) give the two linear programs whose values these are.

A margin of exactly 0 counts as wrong in the worst case and as right in the best: the bounds hold
whatever the classifier does on its boundary, and samples may be moved right onto it.

The confusion in the worst case is that of the distribution that is worst for the error: a move
changes a prediction, a flip a label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..rows.arrays import FloatArray
from .breakpoints import Curve
from .old_adversary import Adversary

if TYPE_CHECKING:
    pass

#: With more classes than this, no confusion matrix is shown: it would not fit on the page.
CONFUSED = 10


def worst_error(audit: Adversary, weights: FloatArray | None = None) -> Curve:
    """The largest error rate at every radius; ``weights`` are others that sum to one."""
    curve = audit.error_hulls.curve(audit.weights if weights is None else weights)
    return curve._replace(values=np.minimum(curve.values, 1.0))


def best_error(audit: Adversary) -> Curve:
    """The smallest error rate at every radius."""
    curve = audit.predictions.hulls(np.eye(len(audit.classes)) - 1.0).curve(audit.weights)
    return curve._replace(values=np.maximum(-curve.values, 0.0))


def confusion(audit: Adversary) -> FloatArray:
    """Shares of actual labels (rows) by predicted ones, as things are.

    On the boundary the first class is predicted, as scikit-learn does.
    """
    size = len(audit.classes)
    cells = np.bincount(size * audit.codes + audit.predicted, audit.weights, minlength=size * size)
    return cells.astype(np.float64).reshape(size, size)


def worst_confusions(audit: Adversary, radii: FloatArray) -> FloatArray:
    """The same in the worst case for the error, at each radius; on the boundary all are wrong."""
    found, size = audit.error_hulls, len(audit.classes)
    cells = [
        found.other_curve(audit.weights, cell.reshape(size, size)).at(radii)
        for cell in np.eye(size * size)
    ]
    return np.maximum(np.stack(cells, axis=-1), 0.0).reshape(-1, size, size)
