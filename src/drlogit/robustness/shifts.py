"""How far new data have moved from reference data, in the units of a model's own tolerances.

The *covering radius* is the least radius whose worst case around the reference rows reaches the
loss that the model met on the new rows:

    ε* = min { ε : V(ε) ≥ loss on the new rows },     V(ε) = max { E_Q loss : W(Q, reference) ≤ ε }.

Because the new rows are one of the distributions Q, ``ε* ≤ W(reference, new)``: it bounds the
transport distance from below and does not estimate it.

A change of the loss has two parts: the scores have another distribution (``from_rows``), and labels
differ at equal scores (``from_answers``).  Reweighting the reference rows to the new distribution
of scores separates the two,

    loss_new - loss_ref  =  (weighted loss_ref - loss_ref)  +  (loss_new - weighted loss_ref).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from ..estimators.tables.frames import listed
from ..rows.arrays import FloatArray, IndexArray, Matrix
from ..rows.checks import check_features
from .audit_problem import BallOptions, audit_problem, check_scores
from .breakpoints import Curve
from .feature_risk import allowed_at
from .linear_model import LinearModel, codes_of
from .measured_model import measure, own_fit
from .misclassification import worst_error
from .old_adversary import Adversary
from .two_samples import moved_columns, score_weights

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, eq=False)
class Shift:
    """How new rows differ from reference rows, for one model.

    Attributes
    ----------
    epsilon, epsilon_error : float or None
        The covering radius: the least radius whose worst-case loss (worst-case error) around the
        reference rows reaches what the model met on the new rows.  0 if it did not rise; None
        without labels of the new rows.
    multiple : float or None
        ``epsilon`` as a multiple of the declared radius; None if none was declared.
    declared : float or None
        The declared radius: ``epsilon=``, or that of the model's own fit.
    loss_ref, loss_new, error_ref, error_new : float or None
        Mean log-loss and share of wrong predictions on both samples.
    from_rows, from_answers : float or None
        The parts of ``loss_new - loss_ref`` that are due to another distribution of the scores, and
        to other labels at equal scores.
    expected_loss : float or None
        Without labels of the new rows: their loss if labels at equal scores are as in the
        reference, ``loss_ref + from_rows``.
    features : pandas.DataFrame
        A row for each feature, those that moved furthest first: ``moved`` is the distance between
        its two distributions in its own units (for a category the share of rows that must change),
        ``cost`` what that costs, ``multiple`` the cost in declared radii.
    beyond : float
        Share of new rows whose scores lie where there is no reference row.
    n_ref, n_new : int
        Rows.
    allowed : tuple of str
        What a radius of ``epsilon`` allows to be wrong, in sentences.
    scores : tuple of arrays
        The scores of reference rows and of new rows: log-odds of two classes, of several the
        log-probability of the predicted one.
    curve : tuple of arrays (radii, losses) and a slope
        The worst-case loss around the reference rows, ``V``; beyond its last corner it rises with
        the slope.
    """

    loss_ref: float
    error_ref: float
    declared: float | None
    from_rows: float | None
    features: Any
    beyond: float
    n_ref: int
    n_new: int
    scores: tuple[FloatArray, FloatArray]
    curve: Curve
    epsilon: float | None = None
    multiple: float | None = None
    epsilon_error: float | None = None
    loss_new: float | None = None
    error_new: float | None = None
    from_answers: float | None = None
    expected_loss: float | None = None
    allowed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*self._losses(), *self._columns()])

    def _losses(self) -> list[str]:
        if self.loss_new is None:
            return self._without_labels()
        lines = [
            f"Log-loss {self.loss_ref:.4f} on {self.n_ref} reference rows, {self.loss_new:.4f} on "
            f"{self.n_new} new rows; error {self.error_ref:.1%} and {self.error_new:.1%}."
        ]
        if self.epsilon == 0.0:
            lines.append("The loss did not rise.")
        elif self.epsilon is None or math.isinf(self.epsilon):
            lines.append("No radius covers the new loss, because the model is constant.")
        else:
            declared = ""
            if self.multiple is not None:
                declared = f" ({self.multiple:.2g} times the declared radius)"
            lines += [
                f"The covering radius of this loss is {self.epsilon:.3g}{declared}. It allows:",
                *(f"  {sentence}" for sentence in self.allowed),
            ]
        if self.from_rows is not None and self.from_answers is not None:
            lines.append(
                f"The loss changed by {self.loss_new - self.loss_ref:+.4f}: {self.from_rows:+.4f} "
                f"because the scores have another distribution, and {self.from_answers:+.4f} "
                "because labels differ at equal scores."
            )
        return lines

    def _without_labels(self) -> list[str]:
        expected = "No loss can be estimated: no reference row has scores like the new rows."
        if self.expected_loss is not None:
            expected = (
                f"On {self.n_new} new rows without labels it is about {self.expected_loss:.4f} if "
                "the labels at equal scores have not changed."
            )
        return [
            f"Log-loss {self.loss_ref:.4f} on {self.n_ref} reference rows. {expected}",
            "Rows without labels cannot show whether labels changed at equal scores, which is the "
            "larger part of most shifts.",
        ]

    def _columns(self) -> list[str]:
        moved = self.features[self.features["cost"] > 0.0].head(5)
        unit = "cost" if self.declared is None else "multiple"
        words = [
            f"{name} (declared exact)" if math.isinf(value) else f"{name} {value:.2g}"
            for name, value in zip(moved["feature"], moved[unit], strict=True)
        ]
        of = "in transport cost" if self.declared is None else "in declared radii"
        lines = [f"Columns that moved most, {of}: {listed(words)}."] if words else []
        if self.beyond > 0.0:
            lines.append(
                f"{self.beyond:.1%} of the new rows have scores that no reference row has."
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists, for JSON."""
        kept = ("features", "scores", "curve")
        plain = {name: value for name, value in vars(self).items() if name not in kept}
        features = self.features.to_dict("records")
        return {**plain, "allowed": list(self.allowed), "features": features}


def shift(
    model: Any,
    X_ref: Any,
    y_ref: ArrayLike,
    X_new: Any,
    y_new: ArrayLike | None = None,
    *,
    epsilon: float | None = None,
    kappa: Any = None,
    **ball: Unpack[BallOptions],
) -> Shift:
    """Measure how far new rows have moved from reference rows, as far as it affects a model.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case_loss`.
    X_ref, y_ref
        Labelled reference rows from the population of the fit, preferably not the fitted rows.
    X_new, y_new
        New rows.  Labels are optional; without them the loss can only be estimated.
    epsilon : float, optional
        The declared radius; the shift is also reported as a multiple of it.  By default that of
        the model's fit.
    kappa : optional
        The cost of a flipped label; by default that of the model's fit.
    **ball
        ``norm``, ``feature_costs``, ``categories`` and ``bounds`` as in
        :func:`drlogit.worst_case_loss`.  The reference rows all count alike.

    Returns
    -------
    Shift
        A record; ``str()`` is a summary in words.

    Notes
    -----
    The covering radius depends on the model: it measures the shift only as far as the loss of this
    model responds to it.  It is at most the transport distance between the two samples, and usually
    far below.

    Examples
    --------
    >>> import drlogit, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 2))
    >>> y = (X[:, 0] + rng.logistic(size=600) > 0).astype(int)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.0).fit(X[:200], y[:200])
    >>> found = drlogit.shift(model, X[200:400], y[200:400], X[400:], 1 - y[400:])
    >>> bool(found.multiple > 1.0)
    True
    """
    fit = own_fit(model)
    if epsilon is None and fit is not None:
        epsilon = fit.ball_.epsilon
    if ball.get("sample_weight") is not None:
        raise ValueError("shift takes no sample_weight: all reference rows count alike")
    reference = audit_problem(model, X_ref, y_ref, epsilon=epsilon or 0.0, kappa=kappa, **ball)
    categories = ball.get("categories")
    old, (new, scores) = reference.measured.X, scored_rows(model, X_new, categories)
    declared = epsilon or None
    own = one_score(reference.scores), one_score(scores)
    weights, beyond = score_weights(*own)
    weighted = None if weights is None else float(weights @ reference.losses)
    loss = float(reference.weights @ reference.losses)
    found: dict[str, Any] = {"expected_loss": weighted}
    if y_new is not None:
        codes = codes_as(reference, y_new, scores.shape[1])
        losses = losses_of(scores, codes)
        found = _with_labels(reference, scores, codes, losses, weighted, declared)
    return Shift(
        loss_ref=loss,
        error_ref=float(reference.weights @ reference.wrong),
        declared=declared,
        from_rows=None if weighted is None else weighted - loss,
        features=moved_columns(reference, old, new, declared),
        beyond=beyond,
        n_ref=reference.codes.size,
        n_new=scores.shape[1],
        scores=own,
        curve=reference.loss_curve(),
        **found,
    )


def _with_labels(
    reference: Adversary,
    scores: FloatArray,
    codes: IndexArray,
    losses: FloatArray,
    weighted: float | None,
    declared: float | None,
) -> dict[str, Any]:
    """The covering radii, and the part of the change that comes from other answers."""
    loss, error = float(losses.mean()), float((scores.argmax(axis=0) != codes).mean())
    radius = reference.loss_curve().radius_of(loss)
    some = 0.0 < radius < math.inf
    return {
        "epsilon": radius,
        "multiple": None if declared is None else radius / declared,
        "epsilon_error": worst_error(reference).radius_of(error),
        "loss_new": loss,
        "error_new": error,
        "from_answers": None if weighted is None else loss - weighted,
        "allowed": tuple(allowed_at(reference, np.array([radius]))[0]) if some else (),
    }


def scored_rows(model: Any, X: Any, categories: Any = None) -> tuple[Matrix, FloatArray]:
    """Rows as the matrix in which distance is measured, and their scores, a row for each class."""
    measured = measure(model, X, categories)
    matrix, linear = check_features(measured.X), measured.linear
    check_scores(model, measured, X, matrix)
    scores = np.asarray(matrix @ linear.coef.T + linear.intercept, dtype=np.float64)
    return matrix, scores.T if linear.several else np.stack([np.zeros_like(scores), scores])


def one_score(scores: FloatArray) -> FloatArray:
    """One number for each row: the log-odds of two classes, the confidence of several."""
    if scores.shape[0] == 2:
        return np.asarray(scores[1] - scores[0])
    return np.asarray(scores.max(axis=0) - logsumexp(scores, axis=0))


def codes_as(reference: Adversary, y: Any, n_samples: int) -> IndexArray:
    """Labels of other rows as positions among the classes of the reference."""
    known = LinearModel(reference.coefficients, 0.0, reference.classes)
    return codes_of(known, y, n_samples)[0]


def losses_of(scores: FloatArray, codes: IndexArray) -> FloatArray:
    """Log-losses of rows with these scores and labels."""
    own = np.take_along_axis(scores, codes[None], axis=0)[0]
    return np.asarray(logsumexp(scores, axis=0) - own)
