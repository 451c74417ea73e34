"""Cross-validation over (ε, κ): scores of a fold, and the table of all."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax

from ..fitting.critical_radius import constant_model
from ..fitting.paths import solve_radii
from ..problem.ball import Ball
from ..problem.label_costs import FlipCosts
from ..problem.problem import Problem
from ..problem.result import Status
from ..rows.arrays import FloatArray, IndexArray, Matrix
from ..rows.threads import one_blas_thread
from .robust_classifier import RobustLinearClassifier
from .tables.frames import rows_of
from .training_data import matrix_of, training_data


@dataclass(frozen=True, eq=False)
class Grid:
    """The pairs (κ, ε) of a search: flip costs ascending, and for each its radii descending.

    ``kappas`` are factors of the ball's own κ if that ``differs`` between labels or rows.  Radii
    that descend ``from_largest`` begin where the model is constant.
    """

    kappas: FloatArray
    epsilons: Sequence[FloatArray]
    differs: bool
    from_largest: bool


def flip_unit(problem: Problem, *, differs: bool) -> FlipCosts:
    """The flip costs that a grid multiplies."""
    return problem.cost.labels if differs else FlipCosts(1.0)


def _fits(
    problem: Problem, radii: FloatArray, kappa: FlipCosts, grid: Grid, controls: dict[str, Any]
) -> Iterator[tuple[FloatArray, Any, float, int, float]]:
    """Coefficients, intercept, seconds, iterations and gap of the models over radii.

    At the first radius of all a fit would be the longest, of a model that is nearly constant: the
    constant one is taken.
    """
    constant = None
    if grid.from_largest:
        constant = constant_model(problem.with_radius(float(radii[0]), kappa))
    if constant is not None:
        yield *constant, 0.0, 0, 0.0
        radii = radii[1:]
    for fit in solve_radii(problem, radii, kappa, **controls):
        if fit.status is Status.MAX_TIME:
            return
        yield fit.coef, fit.intercept, fit.solve_time, fit.n_iter, fit.gap


@one_blas_thread
def score_fold(
    learner: RobustLinearClassifier,
    ball: Ball,
    grid: Grid,
    samples: Sequence[Any],
    split: Sequence[IndexArray],
    controls: dict[str, Any],
    scorer: Any,
) -> FloatArray:
    """Fit each pair of a grid on the training part of a fold, and score the rest.

    ``samples`` are X, y, weights and flip costs by row, of which ``split`` says where to learn and
    where to score.  Levels and replacements are learnt from the former, and the ball is resolved
    for it.  Returns scores, seconds in the solver, iterations and gaps, a column for each pair; NaN
    for those whose fits were not done in time.
    """
    learner = copy.copy(learner)  # others may be at work with the same one
    (X, y, weights, kappas), (train, test) = samples, split
    classes = learner.classes_
    if kappas is not None:
        ball = ball.replace(kappa=kappas[train])
    weight = None if weights is None else weights[train]
    training = training_data(learner, rows_of(X, train), y[train], weight, ball)
    missing = np.setdiff1d(classes, training.classes).tolist()
    if missing:
        raise ValueError(
            f"class {missing[0]!r} has no sample in the training part of a fold, but every class "
            "needs one: use fewer folds, or stratified folds"
        )
    X, y = rows_of(X, test), y[test]
    X = matrix_of(learner, X, training.features)
    score_params = {} if weights is None else {"sample_weight": weights[test]}
    problem = training.pose(0.0)
    unit = flip_unit(problem, differs=grid.differs)
    classifier = type(learner)()  # of the matrix, not of the table
    classifier.classes_, classifier.n_features_in_ = classes, X.shape[1]
    found: list[tuple[float, ...]] = []
    n_pairs = 0
    for kappa, radii in zip(grid.kappas.tolist(), grid.epsilons, strict=True):
        n_pairs += radii.size
        fits = _fits(problem, radii, unit.times(kappa), grid, controls)
        # Fewer fits than radii, if the time is up.
        for radius, (coef, intercept, *cost) in zip(radii.tolist(), fits, strict=False):
            coef, intercept = training.reported(coef, intercept, radius)
            classifier.coef_ = np.atleast_2d(coef)
            classifier.intercept_ = np.atleast_1d(intercept)
            found.append((float(scorer(classifier, X, y, **score_params)), *cost))
        found += [(math.nan,) * 4] * (n_pairs - len(found))
    return np.array(found).T


def mean_log_likelihood(
    classifier: Any, X: Matrix, y: np.ndarray[Any, Any], sample_weight: Any = None
) -> float:
    """Score of a fitted classifier: minus its log-loss.

    As scikit-learn's ``neg_log_loss``, but some classes may be missing in y, and without checks of
    what has been checked, which would take a tenth of the time of a search.
    """
    codes = np.searchsorted(classifier.classes_, y)
    scores = np.asarray(X @ classifier.coef_.T) + classifier.intercept_
    if scores.shape[1] == 1:
        likelihoods = log_expit(np.where(codes == 1, scores[:, 0], -scores[:, 0]))
    else:
        likelihoods = log_softmax(scores, axis=1)[np.arange(codes.size), codes]
    if sample_weight is not None and not np.sum(sample_weight) > 0.0:
        raise ValueError("all rows of a test fold have weight zero: use other folds")
    return float(np.average(likelihoods, weights=sample_weight))


def tabulate(grid: Grid, found: FloatArray) -> dict[str, Any]:
    """Scores as a table with a row for each pair, in the form of scikit-learn's searches.

    ``found`` is what :func:`score_fold` has for each fold.  If κ differs between labels or rows,
    there is no one share of labels.
    """
    kappa = np.repeat(grid.kappas, [radii.size for radii in grid.epsilons])
    epsilon = np.concatenate(grid.epsilons)
    scores, seconds, n_iters, gaps = found.transpose(1, 0, 2)
    mean = scores.mean(axis=0)
    order = np.where(np.isnan(mean), -np.inf, mean)
    pairs = zip(epsilon.tolist(), kappa.tolist(), strict=True)
    return {
        "param_kappa": kappa,
        "param_epsilon": epsilon,
        "params": [{"epsilon": e, "kappa": k} for e, k in pairs],
        **({} if grid.differs else {"flip_budget": epsilon / kappa}),
        **{f"split{i}_test_score": row for i, row in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": 1 + (order[:, None] < order).sum(axis=1),
        "mean_fit_time": seconds.mean(axis=0),
        "mean_n_iter": n_iters.mean(axis=0),
        "max_gap": gaps.max(axis=0),
    }
