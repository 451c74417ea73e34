"""``verify``: is it true that no model promises less, and that this one promises no more?"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.robust_classifier import RobustLinearClassifier
from ..estimators.training_data import with_class_weights
from ..problem.dual_point import ClassDualPoint
from ..problem.parameters import ADMITTED
from ..problem.proof import BrokenProofError, Proof, read_proof
from ..problem.result import Result
from ..robustness.linear_model import LinearModel, as_linear, codes_of, last_step
from ..robustness.measured_model import measure
from ..rows import chunks
from ..rows.checks import TOO_LARGE, check_weights
from ..rows.chunks import in_memory
from ..rows.threads import one_blas_thread
from .classes import class_lower_bound, class_upper_bound
from .lower import admits, lower_bound
from .samples import samples_of
from .upper import upper_bound

#: What rounding may leave between a claim, which does not account for all of it, and its proof.
CLAIM = 1e-9


@dataclass(frozen=True)
class Verification:
    """What :func:`verify` found; true in a condition if the claim holds.

    Attributes
    ----------
    ok : bool
        Whether the claims of the fit about itself are proven.
    lower, upper : float
        No linear model promises less than ``lower``; this one promises at most ``upper``.  Both
        account for all rounding, and hold whether ``ok`` or not.
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
    proof: Proof | str | os.PathLike[str] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
) -> Verification:
    """Recompute both bounds of a fit from the samples, the coefficients and the proof alone.

    The arithmetic accounts for every rounding, and shares nothing with the solvers and the
    certificate that it judges.  It assumes that ``log``, ``log1p`` and ``exp`` of this machine are
    within 4 units in the last place, and nothing else.

    Parameters
    ----------
    model : Result or estimator
        A fit; also a search that ended with one, or a pipeline that does.
    X, y, sample_weight
        The samples that it was fitted to, in any form that :func:`drlogit.solve` takes; for an
        estimator that was fitted to a table, that table; for a pipeline, the samples before its
        steps.  The ``class_weight`` of estimators is counted.
    proof : path or Proof, optional
        What :meth:`drlogit.Result.save_proof` wrote; a Result with its ``dual`` needs none.
    kappa : array of shape (n_samples,), optional
        What flips cost, for a model that was fitted with a κ for each sample.

    Returns
    -------
    Verification

    Raises
    ------
    ValueError
        X or y are no input to a fit, or nothing says what the model was fitted against.

    Examples
    --------
    >>> import drlogit
    >>> X, y = drlogit.datasets.make_synthetic(200, 5, random_state=0)
    >>> result = drlogit.solve(X, y, epsilon=0.05, kappa=1.0)
    >>> drlogit.verify(result, X, y).ok
    True
    """
    linear, X, result, fitted = _fit_of(model, X)
    ball, coef, intercept = result.ball, linear.coef, linear.intercept
    if ball is None:
        raise ValueError("the model must know its ball, as results of drlogit.solve do")
    X = chunks.checked_features(X)
    n_samples, n_features = chunks.shape_of(X)
    if not (np.abs(np.append(coef, intercept)) < TOO_LARGE).all():
        raise ValueError(f"coefficients must be numbers below {TOO_LARGE:g}")
    if n_features != coef.shape[-1]:
        raise ValueError(f"X has {n_features} features, but the model has {coef.shape[-1]}")
    codes, several = codes_of(linear, in_memory(y), n_samples)[0], coef.ndim > 1
    weights = None if sample_weight is None else in_memory(sample_weight)
    if fitted is not None and fitted.class_weight is not None:
        weights = with_class_weights(weights, fitted.class_weight, fitted.classes_, codes)
    signs: Any = codes if several else np.where(codes > 0, 1.0, -1.0)
    costs = ball.label_costs(codes, len(coef) if several else 2, kappa)
    upper = math.inf
    try:
        shares = check_weights(weights, n_samples)
        samples = samples_of(X, np.ones(n_samples) if several else signs, shares, ball, costs)
        above: Any = class_upper_bound if several else upper_bound
        upper = above(samples, coef, intercept, result.lam)
        if proof is None:
            if result.dual is None:
                raise BrokenProofError("there is no proof: pass the file that save_proof wrote")
            proof = Proof(result.dual)
        found = proof if isinstance(proof, Proof) else read_proof(proof, n_samples, *coef.T.shape)
        point: Any = found.point
        if isinstance(point, ClassDualPoint) != several:
            raise BrokenProofError("another model: the proof is about other classes")
        data = found.data and chunks.digest_of_samples(chunks.digest_of_features(X), signs, weights)
        if len(point.codes if several else point.s) != n_samples or found.data != data:
            raise BrokenProofError("other data: the proof is about other samples or weights")
        below: Any = class_lower_bound if several else lower_bound
        admitted = admits(samples, coef, intercept)
        lower = below(samples, point) if admitted else 0.0
    except BrokenProofError as error:
        return Verification(False, 0.0, upper, str(error))
    too_high = not upper <= result.objective + CLAIM
    too_low = not lower >= result.dual_objective - CLAIM
    claim = f"{result.objective if too_high else result.dual_objective:.12g} that the model claims"
    both = f"less than {lower:.12g}, and this one promises at most {upper:.12g}"
    reason = f"no linear model can promise {both}"
    if too_high:
        reason = f"other coefficients: these promise at most {upper:.12g}, not the {claim}"
    elif too_low:
        reason = f"the dual point proves {lower:.12g}, not the {claim}"
    if not admitted:
        reason = f"a model beyond {ADMITTED:g} log-odds, of which no bound above 0 holds: {reason}"
    return Verification(not (too_high or too_low), lower, upper, reason)


def _fit_of(model: Any, X: Any) -> tuple[LinearModel, Any, Result, Any]:
    """The linear model, the samples in the space of distances, the result, and the estimator."""
    last = last_step(model) if hasattr(model, "fit") else model
    if isinstance(last, Result):
        return as_linear(last), X, last, None
    if not isinstance(last, RobustLinearClassifier):
        raise ValueError(f"expected a fitted drlogit model, got {type(last).__name__}")
    measured = measure(model, X, "fitted")
    return measured.linear, measured.X, last.result_, last
