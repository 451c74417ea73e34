"""A radius from past shifts: what the next hospital, year or school may bring.

The rows come in K parts.  Each part in turn is left out, a model is fitted to the others, and the
part's covering radius (:mod:`.shifts`) is measured around some of their rows.  If the next part is
exchangeable with these K, its covering radius is at most the k-th smallest of them,
``k = ⌈confidence · (K + 1)⌉``, with that confidence.  So the worst-case loss at this radius is a
promise about a part that nobody has seen.

For a model and reference rows that were fixed beforehand this is a theorem (split conformal
prediction with covering radii as scores).  With a model fitted anew without each part it is an
approximation, because the models differ.  Parts that follow a trend in time are not exchangeable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..estimators.tables.frames import rows_of
from ..rows.arrays import FloatArray, IndexArray
from ..rows.checks import check_label_column
from .adversary import Adversary
from .audit_problem import BallOptions, audit_problem
from .misclassification import worst_error
from .shifts import codes_as, losses_of, one_score, scored_rows
from .two_samples import score_weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The share of the other parts' rows around which the radius of a part is measured.
_REFERENCE = 0.2


@dataclass(frozen=True)
class PartsPromise:
    """Limits for the next part, with a confidence.

    Attributes
    ----------
    loss, error : float
        Upper limits of mean log-loss and share of wrong predictions on the next part, each with
        the stated confidence.
    confidence : float
        The confidence of each limit, if the next part is exchangeable with the past ones.
    n_parts : int
        The number of past parts.
    theorem : bool
        Whether the model and the reference rows were fixed before the parts were looked at.
    weighted : bool
        Whether the limits look at the (unlabelled) rows of the next part.
    """

    loss: float
    error: float
    confidence: float
    n_parts: int
    theorem: bool
    weighted: bool

    def __str__(self) -> str:
        how = (
            "The model was fixed beforehand, so this is exact for exchangeable parts."
            if self.theorem
            else "Approximate: each past radius comes from a model fitted without that part."
        )
        return (
            f"With {self.confidence:.0%} confidence, the next part has a mean log-loss of at most "
            f"{self.loss:.4f}; with {self.confidence:.0%} confidence, at most {self.error:.1%} of "
            f"its rows are predicted wrong. Assumed: the next part is exchangeable with the "
            f"{self.n_parts} past parts. Parts that follow a trend in time are not. {how}"
        )


@dataclass(frozen=True, eq=False)
class RadiusFromParts:
    """Covering radii of past parts, and a radius for the next part.

    Attributes
    ----------
    radii, radii_error : array of shape (n_parts,)
        The covering radius of each part, for the loss and for the error.
    radius, radius_error : float
        With the stated confidence, the next part stays within these radii.
    confidence : float
    parts : tuple
        The parts, in the order of the radii.
    table : pandas.DataFrame
        A row for each part: rows, loss and error there and on the reference rows, radii.
    theorem : bool
        Whether the model and the reference rows were fixed beforehand.
    """

    radii: FloatArray
    radii_error: FloatArray
    radius: float
    radius_error: float
    confidence: float
    parts: tuple[Any, ...]
    table: Any
    theorem: bool
    _weighted: tuple[float, float]
    _model: Any
    _ball: dict[str, Any]

    def __str__(self) -> str:
        middle, largest = float(np.median(self.radii)), float(self.radii.max())
        return (
            f"Covering radii of {len(self.parts)} parts: median {middle:.3g}, largest "
            f"{largest:.3g}. With {self.confidence:.0%} confidence the next part stays within a "
            f"radius of {self.radius:.3g}, if it is exchangeable with these."
        )

    def promise(self, model: Any, X_ref: Any, y_ref: ArrayLike, X_new: Any = None) -> PartsPromise:
        """Limits of loss and error on the next part.

        Parameters
        ----------
        model : estimator
            The model that will be used there: fitted like those of the parts (the same estimator
            with the same parameters), or the very model if it was fixed beforehand.  A radius that
            was measured with one kind of model does not hold for another.
        X_ref, y_ref
            Labelled rows around which the worst case is taken; best not those of the fit.  For a
            model that was fixed beforehand, the reference rows that the radii were measured around.
        X_new : optional
            Rows of the next part, without labels.  The reference rows are then reweighted to their
            scores, as they were for the past parts, which makes the promise tighter.
        """
        self._check_kind(model)
        audit = audit_problem(model, X_ref, y_ref, epsilon=0.0, **self._ball)
        weights, radii = None, (self.radius, self.radius_error)
        if X_new is not None:
            weights, radii = _weights(audit, scored_rows(model, X_new)[1]), self._weighted
        loss, error = (
            math.inf if math.isinf(radius) else float(curve.at(radius))
            for curve, radius in zip(_curves(audit, weights), radii, strict=True)
        )
        return PartsPromise(
            loss, min(error, 1.0), self.confidence, len(self.parts), self.theorem, X_new is not None
        )

    def _check_kind(self, model: Any) -> None:
        ours, theirs = self._model, model
        if self.theorem:
            same = ours is theirs
        else:
            same = type(ours) is type(theirs) and _parameters(ours) == _parameters(theirs)
        if not same:
            raise ValueError(
                "the radii were measured with another model and do not hold for this one: call "
                "radius_from_parts with this estimator"
            )


def radius_from_parts(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike,
    confidence: float = 0.9,
    *,
    reference: tuple[Any, ArrayLike] | None = None,
    kappa: Any = None,
    random_state: int = 0,
    **ball: Unpack[BallOptions],
) -> RadiusFromParts:
    """Find a radius for the next part (hospital, year, region) from the shifts of past parts.

    Parameters
    ----------
    estimator : classifier
        It is cloned and fitted without each part in turn.  With ``reference``, a fitted model that
        is not refitted.
    X, y
        Rows of all past parts.
    groups : array of shape (n_samples,)
        The part of each row.
    confidence : float
        The confidence of the radius; it needs ``confidence / (1 - confidence)`` parts, rounded up.
    reference : (X, y), optional
        Labelled rows around which radii are measured, for a model that was fixed beforehand.  By
        default a fifth of the rows of the other parts, which the fit does not see.
    kappa : optional
        The cost of a flipped label; by default that of each fit.
    random_state : int
        Seed for choosing the rows that each fit leaves out.
    **ball
        ``norm``, ``feature_costs``, ``categories`` and ``bounds`` as in
        :func:`drlogit.worst_case_loss`; by default those of each fit.

    Returns
    -------
    RadiusFromParts
        The radii, and :meth:`~RadiusFromParts.promise`.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(500, 3, random_state=0)
    >>> hospital = [place for place in "abcde" for _ in range(100)]
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05)
    >>> found = drlogit.radius_from_parts(model, X, y, hospital, confidence=0.8)
    >>> len(found.radii), bool(found.radius == max(found.radii))
    (5, True)
    """
    import pandas as pd

    labels = check_label_column(y, np.size(y))
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    if member.shape != labels.shape:
        raise ValueError(
            f"groups must name the part of each of {labels.size} rows, got {member.size}"
        )
    place = _place(confidence, names.size)
    stated = {**ball, "kappa": kappa}
    rng = np.random.default_rng(random_state)
    records = []
    for k, name in enumerate(names.tolist()):
        own, others = np.flatnonzero(member == k), np.flatnonzero(member != k)
        if reference is None:
            model, kept = _fitted_without(estimator, X, labels, others, rng)
            audit = audit_problem(model, rows_of(X, kept), labels[kept], epsilon=0.0, **stated)
        else:
            model = estimator
            audit = audit_problem(model, *reference, epsilon=0.0, **stated)
        records.append({"part": name, "rows": own.size, **_covering(audit, model, X, labels, own)})
    table = pd.DataFrame(records)
    radius, radius_error, *weighted = (
        float(np.sort(table[column].to_numpy())[place - 1])
        for column in ("radius", "radius_error", "radius_weighted", "radius_error_weighted")
    )
    return RadiusFromParts(
        table["radius"].to_numpy(), table["radius_error"].to_numpy(), radius, radius_error,
        confidence, tuple(names.tolist()), table, reference is not None,
        (weighted[0], weighted[1]), estimator, stated,
    )  # fmt: skip


def _place(confidence: float, n_parts: int) -> int:
    """The rank of the radius with this confidence; ``ValueError`` if there are too few parts."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    place = math.ceil(confidence * (n_parts + 1) - 1e-9)
    if place > n_parts:
        needed = math.ceil(confidence / (1.0 - confidence) - 1e-9)
        raise ValueError(
            f"{n_parts} parts allow a confidence of at most {n_parts / (n_parts + 1):.0%}; "
            f"{confidence:.0%} needs {needed} parts"
        )
    return place


def _fitted_without(
    estimator: Any, X: Any, labels: Any, others: IndexArray, rng: np.random.Generator
) -> tuple[Any, IndexArray]:
    """A model fitted to most rows of the other parts, and the rows that it has not seen."""
    order = rng.permutation(others)
    cut = max(int(_REFERENCE * order.size), 1)
    kept, seen = np.sort(order[:cut]), np.sort(order[cut:])
    return clone(estimator).fit(rows_of(X, seen), labels[seen]), kept


def _covering(
    audit: Adversary, model: Any, X: Any, labels: Any, own: IndexArray
) -> dict[str, float]:
    """The covering radii of a part, around the reference rows as they are and reweighted."""
    _, scores = scored_rows(model, rows_of(X, own))
    codes = codes_as(audit, labels[own], own.size)
    loss = float(losses_of(scores, codes).mean())
    error = float((scores.argmax(axis=0) != codes).mean())
    found = {
        "loss_ref": float(audit.weights @ audit.losses), "loss": loss,
        "error_ref": float(audit.weights @ audit.wrong), "error": error,
    }  # fmt: skip
    for weights, suffix in ((None, ""), (_weights(audit, scores), "_weighted")):
        losses, errors = _curves(audit, weights)
        found[f"radius{suffix}"] = losses.radius_of(loss)
        found[f"radius_error{suffix}"] = errors.radius_of(error)
    return found


def _weights(audit: Adversary, scores: FloatArray) -> FloatArray | None:
    return score_weights(one_score(audit.scores), one_score(scores))[0]


def _curves(audit: Adversary, weights: FloatArray | None) -> tuple[Any, Any]:
    """Worst-case loss and error at every radius, around reference rows with these weights."""
    return audit.loss_curve(weights), worst_error(audit, weights)


def _parameters(estimator: Any) -> dict[str, str]:
    """The parameters that affect the fit of an estimator."""
    ignored = ("n_jobs", "verbose")
    given = estimator.get_params().items()
    return {name: repr(value) for name, value in given if name.rpartition("__")[2] not in ignored}
