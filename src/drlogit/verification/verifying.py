"""``verify``: is it true that no model promises less, and that this one promises no more?"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.robust_classifier import RobustLinearClassifier
from ..problem.ball import Ball
from ..problem.domains import check_domains
from ..problem.label_costs import (
    BY_SAMPLE,
    ByClass,
    Trust,
    flip_costs,
    is_stated_singly,
    own_kappa,
)
from ..problem.moves import Moves
from ..problem.norms import Norm, get_norm
from ..problem.parameters import check_costs, check_epsilon
from ..problem.proof import Proof, model_digest
from ..problem.result import Result
from ..robustness.linear_model import LinearModel, as_linear
from ..robustness.measured_model import last_step, measure
from ..rows.arrays import BoolArray, FloatArray
from ..rows.checks import as_numbers, check_label_column, check_labels
from ..rows.pieces import (
    checked_features,
    digest_of_features,
    digest_of_samples,
    in_memory,
    shape_of,
)
from ..rows.row_blocks import is_dask
from .bounds import Lower, item_bits, lower_bound, piece_lower_bound, upper_bound
from .domain import Domain, OutsideError, domain_of
from .instance import Instance
from .proof_file import BrokenProofError, read_proof
from .worst_case import worst_case

#: What rounding may leave between a claim, which does not account for all of it, and its proof.
CLAIM = 2e-10

#: Scaling of the dual point beyond which it counts as infeasible and not as rounded.
_ROUNDED = 1e-9


@dataclass(frozen=True)
class Verification:
    """What :func:`verify` found; true in a condition if the claim holds.

    Attributes
    ----------
    ok : bool
        Whether the claims are proven: those of a fitted model about itself, or a gap within
        ``tol`` if it makes none.
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


@dataclass(frozen=True)
class _Claim:
    """What a model says about itself."""

    lower: float
    upper: float


def verify(
    model: Any,
    X: Any,
    y: ArrayLike,
    proof: Proof | str | os.PathLike[str] | None = None,
    *,
    epsilon: float | None = None,
    kappa: Any = None,
    norm: str | Norm | None = None,
    fit_intercept: bool | None = None,
    feature_costs: ArrayLike | None = None,
    categories: Any = None,
    bounds: Any = None,
    sample_weight: ArrayLike | None = None,
    of_class: Any = None,
    tol: float | None = None,
) -> Verification:
    """Recompute both bounds of a fit from the samples, the coefficients and the proof alone.

    The arithmetic accounts for every rounding, and shares nothing with the solvers and the
    certificate that it judges.  It assumes that ``log``, ``log1p`` and ``exp`` of this machine are
    within 4 units in the last place, and nothing else.

    Parameters
    ----------
    model : Result, estimator or tuple (coef, intercept)
        A fit; also a search that ended with one, or a pipeline that does.
    X, y, sample_weight
        The samples that it was fitted to, in any form that :func:`drlogit.solve` takes; for an
        estimator that was fitted to a table, that table; for a pipeline, the samples before its
        steps.  The ``class_weight`` of estimators is counted.
    proof : path or Proof, optional
        What :meth:`drlogit.Result.save_proof` wrote; a Result with its ``dual`` needs none.
    epsilon, kappa, norm, fit_intercept, feature_costs, categories, bounds
        The Wasserstein ball; by default the model's own.  A κ for each sample has to be given.
    of_class : label, optional
        Of a model of several classes, the one whose fit against the rest is asked about.
    tol : float, optional
        Gap to be proven for a model that claims none, 1e-6 by default.  For models that do, None
        stands for their claims.

    Returns
    -------
    Verification

    Raises
    ------
    ValueError
        X, y or the ball are no input to a fit, or nothing says what the ball is.
    """
    fit = _asked_about(model, X, of_class)
    linear, claim, X = fit.linear, fit.claim, fit.X
    ball = _ball(fit, epsilon, kappa, norm, fit_intercept, feature_costs, categories, bounds)
    if kappa is None:
        kappa = _own_kappa(ball)
    kappa = in_memory(kappa) if is_dask(kappa) else kappa
    X = checked_features(X)
    n_samples, n_features = shape_of(X)
    if n_features != linear.coef.size:
        raise ValueError(f"X has {n_features} features, but the model has {linear.coef.size}")
    if not ball.fit_intercept and linear.intercept != 0.0:
        raise ValueError(f"a model without an intercept is wanted, got {linear.intercept}")
    y = in_memory(y)
    given_weights = _with_class_weights(
        fit.model, y, None if sample_weight is None else in_memory(sample_weight)
    )
    if of_class is not None:
        labels = check_label_column(y, n_samples)
        kappa = flip_costs(kappa, fit.model.classes_, np.searchsorted(fit.model.classes_, labels))
        y = labels == of_class
    signs = _signs(y, n_samples, linear)
    classes = np.unique(y) if linear.classes is None else np.array(linear.classes)
    costs = _each(flip_costs(kappa, classes, None), signs)
    ball = _with_costs(ball, costs)
    weights = _weights(given_weights, n_samples)
    try:
        domain, ball = domain_of(ball, X, weights)
    except OutsideError as error:
        return Verification(False, 0.0, math.inf, f"other data: {error}")
    given = Instance(X, signs, weights, ball, costs, linear.coef, linear.intercept, domain)
    wanted = -math.inf if claim is None else claim.upper + CLAIM
    upper = (upper_bound if domain is None else worst_case)(given, fit.lam, wanted)
    refused = _Refusal(upper)
    try:
        found = _proof_of(fit, proof)
    except BrokenProofError as error:
        return refused(str(error))
    if found is None:
        return refused(
            "there is no proof: pass what save_proof wrote, or a Result with its dual point"
        )
    problem = _mismatch(found, given, given_weights) or _infeasible(found, given)
    if problem is not None:
        return refused(problem)
    if domain is None:
        lower = lower_bound(given, found.s[0], found.flip_share[0])
    else:
        lower = piece_lower_bound(given, found.s[0], _moves_of(found, domain))
    return _judged(lower, upper, claim, tol)


def _infeasible(proof: Proof, given: Instance) -> str | None:
    """Why a proof has no dual point."""
    s, a, ball, domain = proof.s[0], proof.flip_share[0], given.ball, given.domain
    never = np.isinf(given.flip_costs)
    moves = next(iter(proof.moves), None)
    if not ((s >= 0.0) & (s <= 1.0)).all():
        wrong = f"s must lie in [0, 1], got {s[~((s >= 0.0) & (s <= 1.0))][0]}"
    elif not ((a >= 0.0) & (a <= 1.0)).all():
        wrong = f"flip_share must lie in [0, 1], got {a[~((a >= 0.0) & (a <= 1.0))][0]}"
    elif a.any() and (a[never].any() or ball.epsilon == 0.0):
        wrong = "labels are flipped where none can be"
    elif domain is None:
        if moves is None:
            return None
        wrong = "it moves features within domains, and there are none"
    elif a.any():
        wrong = "with categories or bounds, flips are among the moves"
    else:
        found = None if moves is None else _wrong_moves(moves, s.size, domain, never)
        if found is None:
            return None
        wrong = found
    return f"infeasible dual point: {wrong}"


def _wrong_moves(moves: Moves, n_samples: int, domain: Domain, never: BoolArray) -> str | None:
    """Why these are no pieces, masses and probabilities."""
    n_pieces = moves.sample.size
    if any(array.shape[0] != n_pieces for array in moves.arrays):
        return "its arrays of moves differ in length"
    if moves.items.shape != (n_pieces, -(-domain.n_items // 8)):
        return f"moves must have {domain.n_items} items"
    if n_pieces and not (moves.sample.min() >= 0 and moves.sample.max() < n_samples):
        return "moves must be of samples that there are"
    if (np.diff(moves.sample) < 0).any():
        return "moves must be in the order of the samples"
    if not ((moves.s >= 0.0) & (moves.s <= 1.0)).all():
        return "s of moves must lie in [0, 1]"
    total = np.bincount(moves.sample, moves.share, minlength=n_samples)
    if not ((moves.share >= 0.0).all() and (total <= 1.0 + 1e-15 * n_pieces).all()):
        return "shares of moves must be at least 0, and at most 1 for a sample"
    if never[moves.sample[moves.flipped]].any():
        return "labels are flipped where none can be"
    ends = item_bits(moves.items, domain)[:, domain.n_groups :]
    if ends.reshape(n_pieces, domain.bounded.size, 2).all(axis=2).any():
        return "a feature is moved to both of its ends"
    return None


def _moves_of(proof: Proof, domain: Domain) -> Moves:
    """Those of the proof; a proof without any says that nothing moves."""
    none = np.zeros(0)
    items = np.zeros((0, -(-domain.n_items // 8)), dtype=np.uint8)
    nothing = Moves(none.astype(np.int64), none.astype(bool), items, none, none)
    return next(iter(proof.moves), None) or nothing


@dataclass(frozen=True)
class _Refusal:
    """A verdict without a proof: the upper bound needs none, the lower is then 0."""

    upper: float

    def __call__(self, reason: str) -> Verification:
        return Verification(False, 0.0, self.upper, reason)


def _judged(lower: Lower, upper: float, claim: _Claim | None, tol: float | None) -> Verification:
    def verdict(ok: bool, reason: str) -> Verification:
        return Verification(ok, lower.value, upper, reason)

    if claim is not None and tol is None:
        wanted = f"the {claim.lower:.12g} that the model claims"
        weak = lower.value < claim.lower - CLAIM
    else:
        claim, gap = None, 1e-6 if tol is None else tol
        wanted = f"a gap of {gap:g}"
        weak = not upper - lower.value <= gap
    if claim is not None and upper > claim.upper + CLAIM:
        return verdict(
            False,
            f"other coefficients: these promise at most {upper:.12g}, and the model claims "
            f"{claim.upper:.12g}",
        )
    if weak:
        return verdict(False, _too_weak(lower, wanted))
    return verdict(
        True,
        f"no linear model can promise less than {lower.value:.12g}, and this one promises at "
        f"most {upper:.12g}",
    )


def _too_weak(lower: Lower, wanted: str) -> str:
    if lower.excess > _ROUNDED:
        return (
            f"infeasible dual point: it breaks the constraint of the ball by {lower.excess:.2g} of "
            f"the radius; scaled, it proves {lower.value:.12g}, not {wanted}"
        )
    if lower.charge > _ROUNDED:
        return (
            "infeasible dual point: what it leaves of the equations of free coefficients "
            f"(intercept, immovable features, domains) costs {lower.charge:.2g}; it proves "
            f"{lower.value:.12g}, not {wanted}"
        )
    return f"the dual point proves {lower.value:.12g}, not {wanted}"


# --- what is asked --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _AskedAbout:
    """A fit: its linear model, and the samples where it measures distance."""

    model: Any  # without searches and pipelines around it
    linear: LinearModel
    X: Any
    result: Result | None = None
    place: int = 0  # among the fits of a model of several classes
    n_fits: int = 1

    @property
    def claim(self) -> _Claim | None:
        """What it says about itself."""
        if self.result is None:
            return None
        return _Claim(self.result.dual_objective, self.result.objective)

    @property
    def lam(self) -> float | None:
        """Where its promise is least."""
        return None if self.result is None else self.result.lam


def _asked_about(model: Any, X: Any, of_class: Any) -> _AskedAbout:
    last = last_step(model) if hasattr(model, "fit") else model
    if not isinstance(last, RobustLinearClassifier):
        name = type(last).__name__
        if hasattr(last, "estimators_"):
            raise ValueError(
                f"{name} is made of other models: verify estimators_[k], with the y that it got"
            )
        if of_class is not None:
            raise ValueError(f"of_class is for models of several classes, got {name}")
        return _AskedAbout(model, as_linear(model), X, last if isinstance(last, Result) else None)
    classes = last.classes_.tolist()
    n_fits = len(last.results_)
    if n_fits > 1 and of_class not in classes:
        raise ValueError(
            f"{type(last).__name__} has {n_fits} fits, one per class: of_class must be one of "
            f"{', '.join(map(repr, classes))}, got {of_class!r}"
        )
    if n_fits == 1 and of_class is not None:
        raise ValueError(f"of_class is for models of several classes, this one has {len(classes)}")
    k = 0 if n_fits == 1 else classes.index(of_class)
    measured = measure(model, X, "fitted", of_class=k if n_fits > 1 else None)
    linear = measured.linear
    if n_fits > 1:
        linear = replace(linear, classes=(False, True))
    return _AskedAbout(last, linear, measured.X, last.results_[k], k, n_fits)


def _with_class_weights(model: Any, y: Any, weights: Any) -> Any:
    """The weights that an estimator was fitted with."""
    if getattr(model, "class_weight", None) is None:
        return weights
    codes = np.searchsorted(model.classes_, y)
    return model._with_class_weights(codes, None if weights is None else np.asarray(weights))


def _ball(
    fit: _AskedAbout, epsilon: Any, kappa: Any, norm: Any, fit_intercept: Any,
    feature_costs: Any, categories: Any, bounds: Any,
) -> Ball:  # fmt: skip
    """What was asked for and, for the rest, what the model was fitted against."""
    own = None if fit.result is None else fit.result.ball
    if own is None and hasattr(fit.model, "epsilon_"):
        own = fitted_ball(fit.model)
    if own is None and (epsilon is None or kappa is None):
        raise ValueError(
            "epsilon and kappa are wanted: nothing says what this model was fitted against"
        )
    base = own or Ball(0.0, math.inf, "l1")
    n_features = fit.linear.coef.size
    costs = base.feature_costs if feature_costs is None else feature_costs
    ball = replace(
        base,
        epsilon=check_epsilon(base.epsilon if epsilon is None else epsilon),
        kappa=base.kappa if kappa is None else 1.0,
        norm=get_norm(base.norm if norm is None else norm).name,
        feature_costs=None if costs is None else check_costs(costs, n_features),
        fit_intercept=base.fit_intercept if fit_intercept is None else bool(fit_intercept),
    )
    if categories is None and bounds is None:
        return ball
    groups, lower, upper = check_domains(categories, bounds, n_features)
    return replace(ball, groups=groups, with_none=None, lower=lower, upper=upper)


def _own_kappa(ball: Ball) -> Any:
    """What flips cost in a ball that somebody was fitted against."""
    if isinstance(ball.trust, ByClass):
        return ball.trust.times(ball.kappa)
    return own_kappa(ball.kappa if ball.trust is None else ball.trust)


def _each(kappa: Any, signs: FloatArray) -> FloatArray:
    """What it costs to flip each label."""
    if isinstance(kappa, ByClass):
        return np.where(signs > 0.0, kappa.positive, kappa.negative)
    if is_stated_singly(kappa):
        return np.full(signs.size, kappa)
    if kappa.shape != signs.shape or not (kappa >= 0.0).all():
        raise ValueError(f"kappa must be {signs.size} numbers >= 0, got shape {kappa.shape}")
    return np.asarray(kappa, dtype=np.float64)


def _with_costs(ball: Ball, costs: FloatArray) -> Ball:
    """The ball with one κ, or the word that there are several."""
    if (costs == costs[0]).all():
        return replace(ball, kappa=float(costs[0]), trust=None)
    return replace(ball, trust=BY_SAMPLE)


def fitted_ball(model: Any) -> Ball:
    """The ball of a fitted estimator, as far as its attributes tell."""
    costs, n_features = model.feature_costs_, model.coef_.shape[1]
    groups, lower, upper = check_domains(
        getattr(model, "categories_", None), getattr(model, "bounds_", None), n_features
    )
    kappa = model.kappa_
    trust: Trust = ByClass(*kappa.values()) if isinstance(kappa, dict) else None
    return Ball(
        float(model.epsilon_), kappa if isinstance(kappa, float) else 1.0,
        get_norm(model.norm).name, None if costs is None else np.asarray(costs, dtype=float),
        bool(model.fit_intercept), groups, None, lower, upper,
        BY_SAMPLE if isinstance(kappa, str) else trust,
    )  # fmt: skip


def _signs(y: Any, n_samples: int, linear: LinearModel) -> FloatArray:
    """Labels as ±1, in the sense of the model if it has one."""
    if linear.classes is None:
        return check_labels(y, n_samples)
    labels = check_label_column(y, n_samples)
    known = np.isin(labels, np.asarray(linear.classes))
    if not known.all():
        raise ValueError(
            f"y must hold labels of the model, {linear.classes[0]!r} or {linear.classes[1]!r}, got "
            f"{labels[~known][0]!r}"
        )
    return np.where(labels == linear.classes[1], 1.0, -1.0)


def _weights(sample_weight: Any, n_samples: int) -> FloatArray:
    """Weights as given, over a power of two: at most one, and exact."""
    if sample_weight is None:
        return np.ones(n_samples)
    weights = as_numbers(sample_weight, "sample_weight")
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise ValueError("sample_weight must be finite, >= 0 and not all zero")
    _, exponent = np.frexp(weights.max())
    scaled = np.ldexp(weights, -exponent)
    if not (np.ldexp(scaled, exponent) == weights).all():
        raise ValueError("sample_weight must not span more than the range of doubles")
    return np.asarray(scaled)


def _proof_of(fit: _AskedAbout, proof: Any) -> Proof | None:
    if proof is not None:
        found = proof if isinstance(proof, Proof) else read_proof(proof)
        return found if fit.n_fits == 1 else found.split(fit.n_fits)[fit.place]
    dual = None if fit.result is None else fit.result.dual
    return None if dual is None else dual.proof()


def _mismatch(proof: Proof, given: Instance, weights: Any) -> str | None:
    """Why a proof is not about these samples, this ball or this model."""
    n_samples = given.signs.size
    if proof.s.shape != (1, n_samples) or proof.flip_share.shape != (1, n_samples):
        fits, found = proof.s.shape if proof.s.ndim == 2 else (1, proof.s.size)
        return (
            f"other data: the proof is about {found} samples in {fits} fits, not {n_samples} in one"
        )
    if proof.data[0] and proof.data[0] != digest_of_samples(
        digest_of_features(given.X), given.signs, weights
    ):
        return "other data: the proof is about other samples, labels or weights"
    if proof.ball and proof.ball != given.ball.digest:
        return (
            "wrong ball: the proof is about another epsilon, kappa, norm, cost, intercept, "
            "category or bound"
        )
    if proof.model[0] and proof.model[0] != model_digest(given.coef, given.intercept):
        return "other coefficients: the proof came with another model"
    return None
