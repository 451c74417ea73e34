"""``verify``: is it true that no model promises less, and that this one promises no more?"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.robust_classifier import RobustLinearClassifier, result_of
from ..estimators.training_data import matrix_of, with_class_weights
from ..problem.label_costs import codes_among
from ..problem.parameters import ADMITTED
from ..problem.proof import BrokenProofError, read_proof
from ..problem.result import Result
from ..rows.checks import TOO_LARGE, check_features, check_label_column, check_weights, find_classes
from ..rows.threads import one_blas_thread
from .bounds import lower_bound, slack, upper_bound
from .samples import SamplesInBall


@dataclass(frozen=True)
class Verification:
    """What :func:`verify` found; true in a condition if the claim holds.

    Attributes
    ----------
    ok : bool
        Whether the claims of the fit about itself are proven, to 2e-9 or 2e-9 of the value.
    lower, upper : float
        No linear model of the class that :class:`Result` states promises less than ``lower``; this
        one promises at most ``upper``.  Both hold whether ``ok`` or not, and give away 1e-9 (or
        1e-9 of the value) for rounding.
    reason : str
        The sentence that says what was proven, or why nothing was.
    """

    ok: bool
    lower: float
    upper: float
    reason: str

    @property
    def gap(self) -> float:
        """By how much the model can be improved at most."""
        return max(self.upper - self.lower, 0.0)

    def __bool__(self) -> bool:
        return self.ok


@one_blas_thread
def verify(
    model: Any,
    X: Any,
    y: ArrayLike,
    proof: str | os.PathLike[str] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
) -> Verification:
    """Recompute both bounds of a fit from the samples, the coefficients and the proof alone.

    The arithmetic shares nothing with the solvers and the certificate that it judges.  Rounding is
    bounded where it is amplified, and a slack of 1e-9 covers the rest.

    Parameters
    ----------
    model : Result or estimator
        A fit; also a search that ended with one, or a pipeline that does.
    X, y, sample_weight
        The samples that it was fitted to, in any form that :func:`drlogit.solve` takes; for an
        estimator that was fitted to a table, that table; for a pipeline, the samples before its
        steps.  The ``class_weight`` of estimators is counted.
    proof : path, optional
        What :meth:`drlogit.Result.save_proof` wrote; a Result with its ``dual`` needs none.
    kappa : array of shape (n_samples,), optional
        What flips cost, for a model that was fitted with a κ for each sample.

    Returns
    -------
    Verification

    Raises
    ------
    ValueError
        X or y are no input to a fit, nothing says what the model was fitted against, or its
        feature costs are a matrix, for which there are no proofs.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> result = drlogit.solve(X, y, drlogit.Ball(0.05, kappa=1.0))
    >>> drlogit.verify(result, X, y).ok
    True
    """
    result, X, fitted = _fit_of(model, X)
    ball, coef, intercept, upper = result.column_ball, result.coef, result.intercept, math.inf
    if ball is None:
        raise ValueError("the model must know its ball, as results of drlogit.solve do")
    if ball.costs.ndim == 2:
        raise ValueError("a matrix of feature_costs has no proof: give each feature a cost")
    X = check_features(X)
    size = n_samples, n_features = int(X.shape[0]), int(X.shape[1])
    if not (np.abs(np.append(coef, intercept)) < TOO_LARGE).all():
        raise ValueError(f"coefficients must be numbers below {TOO_LARGE:g}")
    if n_features != coef.shape[-1]:
        raise ValueError(f"X has {n_features} features, but the model has {coef.shape[-1]}")
    n_classes = len(coef) if coef.ndim > 1 else 2
    labels = check_label_column(y, n_samples)
    known = find_classes(labels) if fitted is None else fitted.classes_
    if len(known) != n_classes:
        raise ValueError(f"y must hold the {n_classes} classes of the model, got {len(known)}")
    codes = codes_among(labels, known)
    weights: Any = sample_weight
    if fitted is not None:
        weights = with_class_weights(weights, fitted.class_weight, fitted.classes_, codes)
    costs = ball.kappa.of_samples(codes, n_classes, ball.epsilon, kappa)
    try:
        samples = SamplesInBall(X, check_weights(weights, n_samples), ball, costs)
        upper = upper_bound(samples, coef, intercept, result.lam)
        if proof is None and result.dual is None:
            raise BrokenProofError("there is no proof: pass the file that save_proof wrote")
        point = result.dual if proof is None else read_proof(proof, *size, n_classes)
        lower = lower_bound(samples, codes, point)
    except BrokenProofError as error:
        return Verification(False, 0.0, upper, str(error))
    beyond = lower > upper  # as only a model outside of the class can promise less
    if beyond:
        lower = 0.0
    high, low = result.objective, result.dual_objective
    too_high = not upper <= high + 2.0 * slack(high)
    too_low = not lower >= low - 2.0 * slack(low)
    reason = f"no linear model can promise less than {lower:.12g}; this one promises {upper:.12g}"
    if too_high:
        reason = f"other coefficients or data: these promise at most {upper:.12g}, not {high:.12g}"
    elif too_low:
        reason = f"the dual point proves {lower:.12g} for these data, not {low:.12g}"
    if beyond:
        reason = f"a model beyond {ADMITTED:g} log-odds, of which no bound above 0 holds: {reason}"
    return Verification(not (too_high or too_low), lower, upper, reason)


def _fit_of(model: Any, X: Any) -> tuple[Result, Any, Any]:
    """The result of a fit, the samples that it was fitted to, and the estimator if there is one."""
    while not isinstance(model, Result):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model, X = model[-1], model[:-1].transform(X)
        elif isinstance(model, RobustLinearClassifier):
            return result_of(model), matrix_of(model, X), model
        else:
            raise ValueError(f"expected a fitted drlogit model, got {type(model).__name__}")
    return model, X, None
