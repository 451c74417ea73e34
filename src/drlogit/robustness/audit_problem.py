"""A linear model, samples, and the Wasserstein ball around them.

:func:`audit_problem` checks them and puts them together in the space where distance is measured
(:mod:`.measured_model`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from ..estimators.tables.by_column import (
    resolve_bounds,
    resolve_costs,
)
from ..problem.domains import Declared, check_domains
from ..problem.label_costs import (
    BY_SAMPLE,
    FlipCosts,
    StatedKappa,
    flip_costs,
    is_stated_singly,
    own_kappa,
)
from ..problem.norms import Norm, get_norm
from ..problem.parameters import check_cost_matrix, check_costs, check_epsilon, check_kappa
from ..problem.problem import Problem, ground_cost
from ..problem.result import Result
from ..problem.transport import ResultBall
from ..rows.arrays import FloatArray, IndexArray, Matrix
from ..rows.blocks import Block
from ..rows.building import checked_rows
from ..rows.checks import as_numbers, check_features, check_weights
from ..rows.threads import one_blas_thread
from .linear_model import codes_of
from .measured_features import MeasuredFeature
from .measured_model import (
    MeasuredModel,
    fitted_ball,
    measure,
    with_the,
    words_of,
)
from .old_adversary import Adversary


class BallOptions(TypedDict, total=False):
    """How distance is measured and how much each row counts; all of them have a default.

    :func:`drlogit.worst_case_loss` documents them.
    """

    norm: str | Norm | None
    feature_costs: Any
    categories: Any
    bounds: Any
    sample_weight: ArrayLike | None


@one_blas_thread
def audit_problem(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float | None = None,
    kappa: Any = None,
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    sample_weight: ArrayLike | None = None,
    common: tuple[str, Adversary] | None = None,
) -> Adversary:
    """Check everything and put it together; ``ValueError`` says what is wrong.

    Whatever is None is taken from the fit of an estimator or result of ours.  Another model is
    measured in the ℓ1 norm with κ = 1, and needs an epsilon.  ``common`` is the name and the audit
    of another model, whose costs and bounds replace those of this model's fit.
    """
    measured, own_ball = measure(model, X, categories), fitted_ball(model)
    epsilon = check_epsilon(own_ball.radius if epsilon is None else epsilon)
    kappa = own_kappa(own_ball.kappa) if kappa is None else kappa
    if is_stated_singly(kappa) and not isinstance(kappa, FlipCosts):
        check_kappa(kappa)
    transport = get_norm(own_ball.norm if norm is None else norm)
    linear, matrix = measured.linear, check_features(measured.X)
    n_samples, n_features = matrix.shape
    if linear.coef.shape[-1] != n_features:
        raise ValueError(f"X has {n_features} features, but the model has {linear.coef.shape[-1]}")
    check_scores(model, measured, X, matrix)
    weights = check_weights(sample_weight, n_samples)
    own = getattr(model if isinstance(model, Result) else measured.fit, "result_", model)
    if categories is not None and isinstance(own, Result) and own.column_ball is not None:
        categories = _with_none_of(own.column_ball, categories, n_features, measured.names)
    measured, declared = _in_ball(
        measured, matrix, weights, feature_costs, categories, bounds, common
    )
    codes, classes = codes_of(linear, y, n_samples)
    if isinstance(kappa, FlipCosts):
        kappa = kappa.stated(np.asarray(classes))
    rows = checked_rows(matrix, np.ones(n_samples), weights, intercept=True, n_jobs=1)
    rows, cost = ground_cost(
        rows, transport, measured.costs, FlipCosts(np.inf), declared, measured.names,
        for_numbers=linear.several,
    )  # fmt: skip
    if measured.matrix is not None:
        domains = cost.domains is not None
        check_cost_matrix(measured.matrix, n_features, transport.name, domains or linear.several)
        cost = replace(cost, matrix=measured.matrix)
    problem = Problem(rows, epsilon, cost, fit_intercept=True)
    as_given = not linear.several or problem.domains is None
    if not as_given:
        said = "; categories and bounds as numbers, so worst cases are upper bounds"
        measured = replace(measured, space=measured.space + said)
        problem = problem.as_numbers
    models = zip(np.atleast_2d(linear.coef), np.atleast_1d(linear.intercept), strict=True)
    coefficients = np.array([problem.join(*each) for each in models])
    scores = rows.gather(rows.run(_scores, None, coefficients)[0]).T
    if not linear.several:  # the other class has a score of zero
        coefficients, scores = (
            np.concatenate([np.zeros_like(each), each]) for each in (coefficients, scores)
        )
    before = np.arange(len(classes) - 1)[:, None]
    others = before + (before >= codes)
    label_costs, stated = _label_costs(kappa, np.asarray(classes), codes, others)
    return Adversary(
        problem, coefficients, classes, codes, others, np.ascontiguousarray(scores), label_costs,
        stated, measured, as_given,
    )  # fmt: skip


def _scores(block: Block, _: None, coefficients: FloatArray) -> tuple[FloatArray, tuple[()]]:
    return np.column_stack([block.margins(row) for row in coefficients]), ()


def _label_costs(
    kappa: Any, classes: NDArray[Any], codes: IndexArray, others: IndexArray
) -> tuple[FloatArray, StatedKappa]:
    """The cost of giving each sample each of the other labels, and κ as a user states it."""
    if np.ndim(kappa) == 1:
        flips: Any = as_numbers(kappa, "kappa")
        stated: StatedKappa = BY_SAMPLE
        if flips.shape != codes.shape or not (flips >= 0.0).all():
            raise ValueError(
                f"kappa must be {codes.size} numbers >= 0 (0: unknown label, inf: certain label), "
                f"got shape {flips.shape}"
            )
    else:
        stated = kappa if is_stated_singly(kappa) else flip_costs(kappa, classes)
        flips = np.array([*stated.values()])[codes] if isinstance(stated, dict) else stated
    # A tiny cost for unknown labels, so that the samples stay as they are at ε = 0.
    return np.broadcast_to(np.maximum(flips, 1e-18), others.shape), stated


def _in_ball(
    measured: MeasuredModel,
    matrix: Matrix,
    weights: FloatArray,
    costs: Any,
    categories: Any,
    bounds: Any,
    common: tuple[str, Adversary] | None,
) -> tuple[MeasuredModel, Declared]:
    """Costs, categories and bounds for each column: stated, of a common ball, or of the fit.

    The values that a column can take come from the model, its encoder or the user.  The rows at
    hand matter only for "none" in categories that a user states here.
    """
    n_features, encoding = matrix.shape[1], measured.encoding
    said, own = words_of(costs, categories, bounds), []
    if not measured.columns or measured.fit is not None:  # else the categories of a pipeline
        own = words_of(measured.costs, measured.categories, measured.bounds)
    groups = measured.categories if categories is None else categories
    declared = check_domains(groups, None, n_features, measured.names)
    measured = replace(measured, X=matrix, categories=declared.groups)
    if common is not None:
        there = _carried_over(common, measured.features, n_features, for_bounds=costs is not None)
        other = common[1].measured
        measured = replace(
            measured, costs=there[0], bounds=there[1], space=other.space,
            bounds_from_rows=other.bounds_from_rows,
        )  # fmt: skip
    else:
        of_fit = with_the([word for word in own if word not in said], "of the fit")
        measured = replace(measured, space=measured.space + of_fit + with_the(said, "given"))
    together = check_cost_matrix(
        measured.costs if costs is None else costs, n_features, "l2", domains=False
    )
    if together is not None:  # costs by column are then those of moves of the column alone
        measured = replace(measured, costs=np.sqrt(np.diagonal(together)), matrix=together)
        costs = None
    names = measured.names or list(range(n_features))
    if encoding is not None:
        names = [column.name for column in encoding.columns]
    if costs is not None and (np.ndim(costs) != 1 or np.size(costs) != n_features):
        costs = resolve_costs(costs, matrix, weights, names, encoding)
    stated_bounds = bounds
    if bounds is not None:
        bounds = resolve_bounds(bounds, matrix, names, encoding)
    from_rows = False
    if bounds is None:
        bounds = measured.bounds
        from_rows = _warn_of_rows_beyond(measured, matrix) or measured.bounds_from_rows
    costs = check_costs(measured.costs if costs is None else costs, n_features)
    measured = replace(measured, costs=costs, bounds=bounds, bounds_from_rows=from_rows)
    ends = check_domains(measured.categories, bounds, n_features, measured.names)
    return measured, ends._replace(
        with_none=declared.with_none,
        rows_add_none=categories is not None,
        rows_within=stated_bounds is not None,
    )


def _with_none_of(
    ball: ResultBall, categories: Any, n_features: int, names: Sequence[Any] | None
) -> list[Any]:
    """Stated groups, with None in those of which "none" was a category in the fit of a result."""
    none = () if ball.with_none is None else ball.with_none
    known = {tuple(np.sort(own)) for own, some in zip(ball.groups, none, strict=False) if some}
    groups = check_domains(categories, None, n_features, names).groups
    given = zip(categories, groups, strict=True)
    return [[*own, None] if tuple(np.sort(each)) in known else own for own, each in given]


def _carried_over(
    common: tuple[str, Adversary],
    features: tuple[MeasuredFeature, ...],
    n_columns: int,
    *,
    for_bounds: bool,
) -> tuple[FloatArray, tuple[FloatArray, FloatArray] | None]:
    """The costs and bounds of a common ball for the columns of another matrix.

    Models can be compared at the same radius only if it allows the same changes.  So a ball is
    carried over by feature, in the units of the feature, however either model scales or encodes it.
    With ``for_bounds`` only the bounds are needed.
    """
    model, measured = common[0], common[1].measured
    known = {(feature.name, feature.levels is None): feature for feature in common[1].features}
    bounds = (-np.inf, np.inf) if measured.bounds is None else measured.bounds
    ends = np.array([np.broadcast_to(end, measured.costs.size) for end in bounds])
    costs, limits = np.ones(n_columns), np.tile([[-np.inf], [np.inf]], n_columns)
    for feature in features:
        there = known.get((feature.name, feature.levels is None))
        if there is None and not for_bounds:
            raise ValueError(
                f"the ball of {model} has no cost for {feature.name!r:.60}, which another model "
                "uses: state feature_costs by name, or audit each model by itself"
            )
        if there is not None:
            j, factor = there.columns[0], feature.scale / there.scale
            costs[feature.columns] = measured.costs[j] / abs(factor)
            if feature.levels is None:
                moved = factor * (ends[:, j] - there.shift) + feature.shift
                limits[:, feature.columns[0]] = np.sort(moved)
    return costs, (limits[0], limits[1]) if np.isfinite(limits).any() else None


def _warn_of_rows_beyond(measured: MeasuredModel, matrix: Matrix) -> bool:
    """Warn if rows lie beyond the bounds of a fit, which stay as they are; whether they do.

    Such a row keeps its place or moves back; the adversary moves no other row beyond the bounds.
    """
    if measured.bounds is None:
        return False
    lower, upper = (np.broadcast_to(end, matrix.shape[1]) for end in measured.bounds)
    least, most = (
        np.asarray(end.toarray() if sp.issparse(end) else end).ravel()
        for end in (matrix.min(axis=0), matrix.max(axis=0))
    )
    outside = np.flatnonzero((least < lower) | (most > upper))
    if outside.size:
        j, names = outside[0], measured.names
        warnings.warn(
            f"rows lie beyond the bounds of the fit in {outside.size} columns "
            f"({j if names is None else names[j]!r:.40}: rows from {least[j]:.4g} to {most[j]:.4g},"
            f" bounds {lower[j]:.4g} to {upper[j]:.4g}): the adversary moves no other row there",
            UserWarning,
            stacklevel=5,
        )
    return bool(outside.size)


def check_scores(model: Any, measured: MeasuredModel, X: Any, matrix: Matrix) -> None:
    """Compare the model's own scores with those of ``(β, b)`` on all rows.

    This catches subclasses that transform their input, other column orders than that of the fit,
    and one-vs-rest models of several classes, which are not a softmax.
    """
    if not hasattr(model, "decision_function"):
        return
    linear, name = measured.linear, type(model).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "X does not have valid feature names"
        scores, shares = np.asarray(model.decision_function(X)), None
        if linear.several and measured.fit is None:
            shares = model.predict_proba(X) if hasattr(model, "predict_proba") else np.nan
    if shares is not None and not np.allclose(shares, softmax(scores, 1)):
        raise ValueError(
            f"{name} was fitted on {len(linear.coef)} classes and is no softmax; expected two "
            "classes. Ask about one class against the rest: model (coef_[k], intercept_[k]) or "
            "estimators_[k], labels y == classes_[k]"
        )
    scores = scores if linear.several else scores.ravel()
    ours = matrix @ linear.coef.T + linear.intercept
    same = scores.shape == ours.shape
    if same:
        error = np.abs(scores - ours)
        apart = (error > 1e-4 * np.abs(scores)).reshape(matrix.shape[0], -1).any(axis=1)
        # Single precision, and cancellation: compare with the size of the terms of the sum.
        terms = abs(matrix[apart]) @ np.abs(linear.coef.T) + np.abs(linear.intercept)
        same = bool((error[apart] <= 1e-4 * (terms + np.abs(scores[apart]))).all())
    if not same:
        raise ValueError(
            f"the scores of {name} are not x·coef + intercept of the model found in it: it is not "
            "linear in X. Transform the data first, or pass (coef, intercept)"
        )
