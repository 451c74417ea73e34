"""The model with (ε, κ) chosen by cross-validation, as a scikit-learn classifier."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from ..fitting.critical_radius import constant_model, largest_radius
from ..fitting.paths import (
    check_count,
    check_kappas,
    check_radii,
    kappas_around,
    radii_below,
    solve_radii,
    warn_about_gaps,
)
from ..fitting.solving import announce
from ..problem.ball import Ball
from ..problem.label_costs import FlipCosts
from ..problem.norms import NormName
from ..problem.parameters import is_count
from ..problem.problem import Problem
from ..problem.result import Status
from ..problem.stopping import Stop
from ..rows.arrays import FloatArray, IndexArray, Matrix, refuse_elsewhere
from ..rows.checks import as_numbers
from ..rows.threads import one_blas_thread
from ..rows.warn import warn
from .classifier import DRLogisticRegression
from .robust_classifier import RobustLinearClassifier, log_probabilities
from .tables.frames import is_table, rows_of
from .training_data import TrainingData, matrix_of, training_data

#: Gap of fits within folds, if ``tol`` is smaller.  With 1e-4 mean scores of six tables (of the
#: bars) moved by up to .44 standard errors, though each chose the pair that 1e-6 chose.
FOLD_TOL = 1e-5

#: The smallest of the radii that are chosen here, as a share of the largest.
SMALLEST = 1e-3


@dataclass(eq=False, repr=False)
class DRLogisticRegressionCV(RobustLinearClassifier):
    """Distributionally robust logistic regression with ``epsilon`` and ``kappa`` chosen by CV.

    On every fold, fits :class:`DRLogisticRegression` for each κ and for radii from ε_max (where the
    model becomes constant) downwards.  Then takes the pair with the best mean score and fits it to
    all data.  ``epsilon / kappa`` is the largest share of labels that the adversary may flip.
    Levels, replacements for missing values and standard deviations are learnt from the training
    part of each fold.

    Cross-validation rewards robustness only where it helps on data from the same source.  If you
    expect a shift or wrong labels that the folds do not show, choose ``epsilon`` and ``kappa`` by
    their meaning, or take a larger radius of ``cv_results_`` whose score is nearly as good.

    Parameters
    ----------
    epsilons : int or array
        Number of radii for each κ, evenly spaced on a logarithmic scale from ε_max of that κ
        down to a thousandth of it; or the radii themselves, the same for each κ.  At ε_max the
        constant model is scored without a fit.
    kappas : int or array
        Costs of flipping a label (``inf``: labels are correct), or their number.  A number n
        chooses ``inf`` and n - 1 values on a logarithmic scale from 0.2 to 6 times the ε_max of
        ``kappa = inf``.  With a ``ball``, these are factors of its κ.
    norm : {"l1", "l2", "linf"}, optional
        Norm in which moves of several numbers of a row are added.
    ball : Ball, optional
        The ball to search around: its own ε and κ are always among those that are tried, and costs
        and tolerances are resolved for the rows of each fold.
    cv : int, splitter or iterable
        Folds (stratified, if a number), as in scikit-learn.  With ``LeaveOneGroupOut()`` or
        ``GroupKFold()`` and ``fit(..., groups=part)``, each fold is another part.
    scoring : str or callable, optional
        Score to maximise, as in scikit-learn; by default the negative log-loss, weighted if the
        samples have weights.
    fit_intercept, categorical_features, missing, class_weight, tol, max_iter
        As in :class:`DRLogisticRegression`.
    max_time : float, optional
        Time limit in seconds for the whole search, including the final fit.  If it is reached, the
        choice uses the complete folds (``n_splits_``), with a ``ConvergenceWarning``.
    n_jobs : int, optional
        Number of folds to fit at the same time.
    verbose : int
        Verbosity of joblib; above 1, the final fit prints a line per iteration.

    Attributes
    ----------
    ball_ : Ball
        The ball chosen, in plain numbers.
    cv_results_ : dict of arrays
        One entry for each pair, with κ ascending and ε descending: ``param_kappa``,
        ``param_epsilon``, ``params``, ``flip_budget`` (ε/κ, the largest share of flipped
        labels), ``split0_test_score`` …, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``mean_fit_time``, ``mean_n_iter``, ``max_gap`` (at most 1e-5, or
        ``tol`` if that is larger).  ``pandas.DataFrame(cv_results_)`` makes a table.  If κ
        differs between labels or rows, ``param_kappa`` has factors of it, and there is no
        ``flip_budget``.
    best_index_ : int
        Index of the pair chosen in ``cv_results_``.
    best_score_ : float
        Its mean score over the folds.
    n_splits_ : int
        Number of folds.
    classes_, n_features_in_, feature_names_in_, encoding_
        As in :class:`DRLogisticRegression`.
    coef_, intercept_, lambda_, worst_case_loss_, dual_gap_, n_iter_
        As in :class:`DRLogisticRegression`, for the last fit.

    Notes
    -----
    :meth:`score` is the accuracy, whatever ``scoring`` is.  The scores of the chosen pair are those
    it was chosen by: for a promise about new data, keep rows out of the search and give them to
    ``drlogit.guarantee``.

    Examples
    --------
    >>> from drlogit import DRLogisticRegressionCV
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = DRLogisticRegressionCV(epsilons=5, kappas=[1.0, float("inf")]).fit(X, y)
    >>> len(model.cv_results_["mean_test_score"])
    10
    >>> print(f"{model.score(X, y):.2f}")
    0.99
    """

    epsilons: int | ArrayLike = 7
    kappas: int | ArrayLike = 2
    norm: NormName | None = None
    _: KW_ONLY
    cv: Any = 5
    scoring: str | Callable[..., float] | None = None

    _if_constant = "No smaller radius scored better on the folds."

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        kappa: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> DRLogisticRegressionCV:
        """Choose ``epsilon`` and ``kappa``, and fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features, in memory.
        y : array of shape (n_samples,)
            Class labels of any type.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights, for the fits and for the scores.
        kappa : array of shape (n_samples,), optional
            Cost of flipping each label, in place of that of the ball; split into folds with the
            samples, and multiplied by factors.
        groups : array of shape (n_samples,), optional
            The group of each sample, for splitters such as ``LeaveOneGroupOut`` and
            ``GroupKFold``.

        Returns
        -------
        DRLogisticRegressionCV
            The fitted estimator itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            Duality gaps are larger than ``tol``, or ``max_time`` ended the search.
        UserWarning
            The chosen model is constant, or a fold has one label only because rows are sorted by
            label; also those of :meth:`DRLogisticRegression.fit`.
        """
        fitted = copy.copy(self)  # a fit that fails leaves the estimator as it was
        fitted._fit(X, y, sample_weight, kappa, groups)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, kappa: Any, groups: Any) -> None:
        stop = Stop(self.max_time)
        refuse_elsewhere("a search", X, y, sample_weight, kappa)
        ball = self._stated_ball()
        around = self.ball is not None or kappa is not None
        if kappa is not None:
            kappa = as_numbers(kappa, "kappa")
            ball = ball.replace(kappa=kappa)
        data = training_data(self, X, y, sample_weight, ball, self.n_jobs)
        splits, scorer = self._splits(data, groups), self._scorer()
        problem = data.problem.with_radius(0.0)
        self._advise(data)
        grid = self._grid(data.ball if around else None, problem)
        n_fits = len(splits) * sum(radii.size for radii in grid.epsilons)
        announce(problem, self.on_fold, self.verbose, n_fits)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        samples = X if is_table(X) else data.matrix, data.labels, weights, kappa
        # Not a copy of this search, whose cv or progress callback may not be picklable.
        ours, learner = self.get_params(deep=False), DRLogisticRegression()
        learner.set_params(**{name: ours[name] for name in learner.get_params() if name in ours})
        learner.classes_ = self.classes_
        # These fits only serve the choice, so they need no certificate.
        controls: dict[str, Any] = {"tol": max(self.tol, FOLD_TOL), "max_iter": self.max_iter}
        controls |= {"judged": False, "stop": stop.sooner(1.0 - 1.0 / (len(splits) + 1.0))}
        running = Parallel(n_jobs=self.n_jobs, return_as="generator", verbose=self.verbose)(
            delayed(_score_fold)(learner, ball, grid, samples, split, controls, scorer)
            for split in splits
        )
        scored: list[FloatArray] = []
        for each in running:
            scored.append(each)
            if self.on_fold is not None:
                self.on_fold(len(scored), len(splits))
        found = self._in_time(np.array(scored))
        if data.is_sorted and any(np.ptp(data.codes[test]) == 0 for _, test in splits):
            warn(
                "the rows are sorted by label, and a fold has one label only: shuffle the rows, or "
                "use folds that do, such as cv=5",
            )
        self.n_splits_ = len(found)
        self.cv_results_ = _tabulated(grid, found)
        self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        ended = Status.STALLED if self.max_iter is None else Status.MAX_ITER
        gaps = found[:, -1].ravel().tolist()
        warn_about_gaps(type(self).__name__, gaps, max(self.tol, FOLD_TOL), ended)
        epsilon, factor = self.cv_results_["params"][self.best_index_].values()
        cost = grid.unit(problem).times(factor)
        chosen = problem.with_radius(epsilon, cost)
        ball = data.ball.replace(epsilon=epsilon, kappa=cost.stated(data.classes))
        # From nothing, so that the model is exactly that of a fit with these parameters.
        result = self._solved(chosen, stop, verbose=max(self.verbose - 1, 0))
        self._conclude(replace(data, problem=chosen, ball=ball), result)

    def _scorer(self) -> Callable[..., float]:
        if self.scoring is None:
            return _mean_log_likelihood
        from sklearn.metrics import check_scoring  # takes a tenth of a second to import

        scorer: Callable[..., float] = check_scoring(self, scoring=self.scoring)
        return scorer

    def _splits(self, data: TrainingData, groups: Any) -> list[tuple[IndexArray, IndexArray]]:
        """Training and test rows of each fold."""
        from sklearn.model_selection import check_cv  # takes a tenth of a second to import

        labels = data.labels
        every, cv = np.arange(labels.size), check_cv(self.cv, labels, classifier=True)
        return [
            (np.sort(every[train]), np.sort(every[test]))  # ascending: the order that blocks want
            for train, test in cv.split(data.matrix, labels, groups)
        ]

    def _in_time(self, found: FloatArray) -> FloatArray:
        """The folds in which all pairs were scored in time."""
        whole = found[~np.isnan(found[:, -1]).any(axis=1)]
        if not len(whole):
            raise TimeoutError(
                f"max_time={self.max_time:g} seconds ended the search before any fold was done: "
                "allow more time, or choose epsilon and kappa yourself"
            )
        if len(whole) < len(found):
            warn(
                f"{type(self).__name__} stopped at max_time: the choice is by {len(whole)} of "
                f"{len(found)} folds.",
                ConvergenceWarning,
            )
        return whole

    def _grid(self, ball: Ball | None, problem: Problem) -> Grid:
        """Flip costs, as multiples of the unit, and the radii for each.

        They are around a resolved ``ball``, whose own ε and κ are among them, or chosen here.
        """
        differs = ball is not None and not isinstance(ball.kappa, float)  # between labels or rows
        unit = problem.cost.labels if differs else FlipCosts(1.0)

        @cache
        def limit(kappa: float) -> float:
            return largest_radius(problem.with_radius(0.0, unit.times(kappa)), exact=False)

        own: list[float] = []
        if not is_count(self.kappas):
            kappas = check_kappas(self.kappas)
        elif ball is None:
            kappas = kappas_around(limit(np.inf), check_count(self.kappas, "kappas"))
        else:
            count = check_count(self.kappas, "kappas")  # powers of three around one
            kappas = np.asarray(3.0 ** (np.arange(count) - count // 2), dtype=np.float64)
        if ball is not None:
            own = [float(ball.epsilon or 0.0)]
            kappas = np.unique((1.0 if differs else ball.kappa) * np.append(kappas, 1.0))
        counted = is_count(self.epsilons)
        if counted:
            count = check_count(self.epsilons, "epsilons")
            epsilons = [radii_below(limit(kappa), count, SMALLEST) for kappa in kappas.tolist()]
        else:
            epsilons = [check_radii(self.epsilons)] * kappas.size
        epsilons = [check_radii([*radii, *own]) for radii in epsilons]
        return Grid(kappas, epsilons, differs, counted)


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

    def unit(self, problem: Problem) -> FlipCosts:
        """The flip costs that ``kappas`` multiply."""
        return problem.cost.labels if self.differs else FlipCosts(1.0)


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
def _score_fold(
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
    missing = np.setdiff1d(classes, y[train]).tolist()
    if missing:
        raise ValueError(
            f"class {missing[0]!r} has no sample in the training part of a fold, but every class "
            "needs one: use fewer folds, or stratified folds, or shuffle the rows"
        )
    weight = None if weights is None else weights[train]
    training = training_data(learner, rows_of(X, train), y[train], weight, ball)
    X, y = rows_of(X, test), y[test]
    X = matrix_of(learner, X, training.ball.features)
    score_params = {} if weights is None else {"sample_weight": weights[test]}
    problem = training.problem.with_radius(0.0)
    classifier = type(learner)()  # of the matrix, not of the table
    classifier.classes_, classifier.n_features_in_ = classes, X.shape[1]
    found: list[tuple[float, ...]] = []
    n_pairs = 0
    for kappa, radii in zip(grid.kappas.tolist(), grid.epsilons, strict=True):
        n_pairs += radii.size
        fits = _fits(problem, radii, grid.unit(problem).times(kappa), grid, controls)
        # Fewer fits than radii, if the time is up.
        for radius, (coef, intercept, *cost) in zip(radii.tolist(), fits, strict=False):
            coef, intercept = training.reported(coef, intercept, radius)
            classifier.coef_ = np.atleast_2d(coef)
            classifier.intercept_ = np.atleast_1d(intercept)
            found.append((float(scorer(classifier, X, y, **score_params)), *cost))
        found += [(math.nan,) * 4] * (n_pairs - len(found))
    return np.array(found).T


def _mean_log_likelihood(
    classifier: RobustLinearClassifier,
    X: Matrix,
    y: np.ndarray[Any, Any],
    sample_weight: Any = None,
) -> float:
    """Score of a fitted classifier: minus its log-loss.

    As scikit-learn's ``neg_log_loss``, but some classes may be missing in y, and without checks of
    what has been checked, which would take a tenth of the time of a search.
    """
    codes = np.searchsorted(classifier.classes_, y)
    scores = np.asarray(X @ classifier.coef_.T) + classifier.intercept_
    likelihoods = log_probabilities(scores)[np.arange(codes.size), codes]
    if sample_weight is not None and not np.sum(sample_weight) > 0.0:
        raise ValueError("all rows of a test fold have weight zero: use other folds")
    return float(np.average(likelihoods, weights=sample_weight))


def _tabulated(grid: Grid, found: FloatArray) -> dict[str, Any]:
    """Scores as a table with a row for each pair, in the form of scikit-learn's searches.

    ``found`` is what :func:`_score_fold` has for each fold.  If κ differs between labels or rows,
    there is no one share of labels.
    """
    kappa = np.repeat(grid.kappas, [radii.size for radii in grid.epsilons])
    epsilon = np.concatenate(grid.epsilons)
    scores, seconds, n_iters, gaps = found.transpose(1, 0, 2)
    mean = scores.mean(axis=0)
    pairs = zip(epsilon.tolist(), kappa.tolist(), strict=True)
    return {
        "param_kappa": kappa,
        "param_epsilon": epsilon,
        "params": [{"epsilon": e, "kappa": k} for e, k in pairs],
        **({} if grid.differs else {"flip_budget": epsilon / kappa}),
        **{f"split{i}_test_score": row for i, row in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": 1 + (mean[:, None] < mean).sum(axis=1),
        "mean_fit_time": seconds.mean(axis=0),
        "mean_n_iter": n_iters.mean(axis=0),
        "max_gap": gaps.max(axis=0),
    }
