"""Cross-validation over (ε, κ): scores of a fold, the table of all, and the choice."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax

from ..fitting.critical_radius import constant_model
from ..fitting.paths import solve_radii
from ..problem.ball import Ball
from ..problem.label_costs import FlipCosts
from ..problem.problem import Problem
from ..problem.result import Status
from ..rows.arrays import FloatArray, IndexArray, Matrix, is_dask
from ..rows.chunks import in_memory
from ..rows.threads import one_blas_thread
from .robust_classifier import RobustLinearClassifier
from .tables.frames import rows_of
from .training_data import matrix_of, training_data


def _fits(
    problem: Problem,
    radii: FloatArray,
    kappa: Any,
    from_largest: bool,
    controls: dict[str, Any],
) -> Iterator[tuple[FloatArray, Any, float, int, float]]:
    """Coefficients, intercept, seconds, iterations and gap of the models over radii.

    The first is constant if they descend ``from_largest``: there a fit would be the longest of all,
    of a model that is nearly the constant one.
    """
    constant = None
    if from_largest:
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
    ball: tuple[Ball, bool],
    samples: tuple[Any, ...],
    split: tuple[IndexArray, IndexArray],
    kappas: FloatArray,
    epsilons: Sequence[FloatArray],
    controls: dict[str, Any],
    scorer: Any,
    *,
    classes: np.ndarray[Any, Any],
    from_largest: bool,
) -> FloatArray:
    """Fit each κ over its radii on the training part of a fold, and score the rest.

    ``samples`` are X, y, weights and flip costs, of which ``split`` says where to learn and where
    to score.  The ``learner`` learns levels and fills from the former, and the ball is resolved for
    it.  Beside the ball is whether its κ differs between labels or rows, so that ``kappas`` are
    factors.
    Returns scores, seconds in the solver, iterations and gaps, a column for each pair; NaN for
    those whose fits were not done in time.
    """
    learner = copy.copy(learner)  # others may be at work with the same one
    (X, y, weights, _), (train, test) = samples, split
    stated, differ = ball
    labels, weight, kappa = [part_of(each, train, y.size) for each in samples[1:]]
    if kappa is not None:
        stated = stated.replace(kappa=kappa)
    training = training_data(learner, rows_of(X, train), labels, weight, stated)
    missing = np.setdiff1d(classes, training.classes).tolist()
    if missing:
        raise ValueError(
            f"class {missing[0]!r} has no sample in the training part of a fold, but every class "
            "needs one: use fewer folds, or stratified folds"
        )
    X, y = rows_of(X, test), y[test]
    X = X if is_dask(X) else matrix_of(learner, X, quiet=True)
    score_params = {} if weights is None else {"sample_weight": weights[test]}
    problem = training.pose(0.0, None if differ else np.inf)
    unit = problem.cost.labels if differ else FlipCosts(1.0)
    classifier = type(learner)()  # of the matrix, not of the table
    classifier.classes_, classifier.n_features_in_ = learner.classes_, X.shape[1]
    found: list[tuple[float, ...]] = []
    n_pairs = 0
    for kappa, radii in zip(kappas, epsilons, strict=True):
        n_pairs += radii.size
        fits = _fits(problem, radii, unit.times(float(kappa)), from_largest, controls)
        # Fewer fits than radii, if the time is up.
        for radius, (coef, intercept, seconds, n_iter, gap) in zip(radii, fits, strict=False):
            coef, intercept = training.reported(coef, intercept, float(radius))
            classifier.coef_ = np.atleast_2d(coef)
            classifier.intercept_ = np.atleast_1d(intercept)
            score = float(scorer(classifier, X, y, **score_params))
            found.append((score, seconds, n_iter, gap))
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
    if is_dask(X):
        likelihoods = in_memory(classifier.predict_log_proba(X))[np.arange(codes.size), codes]
    else:
        scores = np.asarray(X @ classifier.coef_.T) + classifier.intercept_
        if scores.shape[1] == 1:
            likelihoods = log_expit(np.where(codes == 1, scores[:, 0], -scores[:, 0]))
        else:
            likelihoods = log_softmax(scores, axis=1)[np.arange(codes.size), codes]
    if sample_weight is not None and not np.sum(sample_weight) > 0.0:
        raise ValueError("all rows of a test fold have weight zero: use other folds")
    return float(np.average(likelihoods, weights=sample_weight))


def part_of(value: Any, index: IndexArray, n_samples: int) -> Any:
    """The entries of some samples, if a value has one for each sample."""
    by_sample = isinstance(value, np.ndarray) and value.shape == (n_samples,)
    return value[index] if by_sample else value


def tabulate(
    kappas: FloatArray,
    epsilons: Sequence[FloatArray],
    found: FloatArray,
    *,
    factors: bool = False,
) -> dict[str, Any]:
    """Scores as a table with a row for each (κ, ε), in the form of scikit-learn's searches.

    ``epsilons[k]`` are the radii of ``kappas[k]``, ``found`` is what :func:`score_fold` has for
    each fold.  If κ are ``factors`` of what flips cost by class or by sample, there is no one share
    of labels.
    """
    counts = [radii.size for radii in epsilons]
    kappa, epsilon = np.repeat(kappas, counts), np.concatenate(epsilons)
    scores, seconds, n_iters, gaps = found.transpose(1, 0, 2)
    mean = scores.mean(axis=0)
    order = _comparable(mean)
    return {
        "param_kappa": kappa,
        "param_epsilon": epsilon,
        "params": [
            {"epsilon": float(e), "kappa": float(k)} for e, k in zip(epsilon, kappa, strict=True)
        ],
        **({} if factors else {"flip_budget": epsilon / kappa}),
        **{f"split{i}_test_score": row for i, row in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": 1 + (order[:, None] < order).sum(axis=1),
        "mean_fit_time": seconds.mean(axis=0),
        "mean_n_iter": n_iters.mean(axis=0),
        "max_gap": gaps.max(axis=0),
    }


def choose(results: dict[str, Any], n_splits: int, *, one_standard_error: bool) -> int:
    """Row of the best mean score; or of the largest radius, at its κ, not clearly worse."""
    mean = _comparable(results["mean_test_score"])
    best = int(np.argmax(mean))
    if not one_standard_error or n_splits == 1:
        return best
    # The standard deviation of the table divides by the number of folds, not by one less.
    error = results["std_test_score"][best] / math.sqrt(n_splits - 1)
    good = (results["param_kappa"] == results["param_kappa"][best]) & (mean >= mean[best] - error)
    return int(np.flatnonzero(good)[0])  # radii descend


def rising_end(results: dict[str, Any], best: int, n_splits: int) -> int | None:
    """The end of the radii, first (0) or last (-1), where the pair is and scores clearly rise.

    Clearly: by more than the standard error of the difference to the radius beside it.
    """
    same = np.flatnonzero(results["param_kappa"] == results["param_kappa"][best]).tolist()
    if len(same) < 2 or best not in (same[0], same[-1]):
        return None
    end, beside = (0, same[1]) if best == same[0] else (-1, same[-2])
    scores = np.array([results[f"split{fold}_test_score"] for fold in range(n_splits)])
    gains = scores[:, best] - scores[:, beside]
    error = gains.std(ddof=1) / math.sqrt(n_splits) if n_splits > 1 else 0.0
    return end if gains.mean() > error else None


def _comparable(scores: FloatArray) -> FloatArray:
    return np.where(np.isnan(scores), -np.inf, scores)
