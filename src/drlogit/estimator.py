"""The model as scikit-learn classifiers: one with given (ε, κ), one that chooses them.

Contract only: check, encode labels, build the Problem, solve, copy attributes.  More than two
classes are fitted one against the rest, each with its own certificate.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .checks import check_kappa, check_weights
from .losses import FloatArray
from .matrix import Matrix
from .path import (
    Chain,
    Samples,
    check_count,
    check_kappas,
    check_radii,
    choose,
    is_count,
    kappas_around,
    mean_log_likelihood,
    radii_below,
    score_chain,
    tabulate,
    warn_about_gaps,
)
from .problem import Problem, build_problem
from .radius import epsilon_max_of, suggest_radius
from .result import Result
from .row_blocks import RowBlocks, is_dask, is_in_blocks
from .solve import solve_problem

#: A radius from theory above this share of ε_max deserves a word.
_MUCH_OF_LIMIT = 0.5

#: Where penalised features together move the margins by less than this, it is worth asking
#: whether the model is constant.
_NEARLY_CONSTANT = 1e-2


class _RobustLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the data they take, the model they fit, and prediction."""

    norm: str
    fit_intercept: bool
    feature_costs: ArrayLike | None
    solver: str
    tol: float
    max_iter: int | None
    class_weight: Mapping[Any, float] | str | None
    n_jobs: int | None
    verbose: int

    _if_constant = "Choose a smaller epsilon."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: Any) -> FloatArray:
        """Signed scores: the margin of the second class, or one column for each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            ``x·β + b``; with two classes, positive where the second is predicted.
        """
        check_is_fitted(self, "coef_")
        if is_in_blocks(X):
            n_columns = None if self.classes_.size == 2 else self.classes_.size
            return self._by_block(self.decision_function, X, n_columns, np.float64)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Class labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples,)
            The most probable class of each sample.
        """
        if is_in_blocks(X):
            return self._by_block(self.predict, X, None, self.classes_.dtype)
        scores = self.decision_function(X)
        codes = (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes.

        With more than two classes, the one-against-rest probabilities divided by their sum.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples, n_classes)
            A column for each of ``classes_``; rows sum to one.
        """
        if is_in_blocks(X):
            return self._by_block(self.predict_proba, X, self.classes_.size, np.float64)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        # Normalised in logarithms: one against the rest, all classes can underflow at once.
        return np.asarray(softmax(log_expit(scores), axis=1))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, finite however sure the model is.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples, n_classes)
            A column for each of ``classes_``.
        """
        if is_in_blocks(X):
            return self._by_block(self.predict_log_proba, X, self.classes_.size, np.float64)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(log_expit(scores), axis=1))

    def _by_block(
        self, method: Callable[[Any], Any], X: Any, n_columns: int | None, dtype: Any
    ) -> np.ndarray[Any, Any]:
        """Predictions block by block; for Dask collections as a Dask array."""
        check_is_fitted(self, "coef_")
        if isinstance(X, RowBlocks):
            return np.asarray(X.map(method))
        from .dask_rows import map_rows

        lazy: np.ndarray[Any, Any] = map_rows(method, X, n_columns, dtype)
        return lazy

    def _check_blocks(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """What :meth:`_check_data` does, for X that is not in memory and perhaps y neither.

        Features are checked by the fit, where they are.
        """
        self.n_features_in_ = int(X.shape[1])
        names = X.feature_names or [] if isinstance(X, RowBlocks) else [*getattr(X, "columns", [])]
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)
        if not is_dask(y):
            return self._with_labels(X, column_or_1d(y), sample_weight)
        if self.class_weight is not None:
            raise ValueError(
                "class_weight must be None where y is a Dask collection; put the weights of the "
                f"classes into sample_weight, got {self.class_weight!r}"
            )
        from .dask_rows import encode

        self.classes_, codes = encode(y)
        if self.classes_.size < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class: {self.classes_.tolist()[0]!r}"
            )
        return Samples(X, y, codes, sample_weight, self.classes_.size)

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Validate the samples, remember the classes, and fold class weights into weights."""
        if is_in_blocks(X):
            return self._check_blocks(X, y, sample_weight)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order=None
        )
        return self._with_labels(X, y, sample_weight)

    def _with_labels(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Samples with labels and weights in memory, wherever X is."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_classes = self.classes_.size
        if n_classes < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class: {self.classes_.tolist()[0]!r}"
            )
        weights = None
        if sample_weight is not None:
            check_weights(sample_weight, codes.size)
            weights = np.array(sample_weight, dtype=np.float64)
        if self.class_weight is not None:
            weights = np.ones(codes.size) if weights is None else weights
            weights *= self._class_weights(codes, weights)[codes]
        if weights is not None:
            totals = np.bincount(codes, weights, minlength=n_classes)
            if not totals.all():
                missing = self.classes_[totals == 0.0].tolist()[0]
                raise ValueError(f"every class needs a positive weight, class {missing!r} has none")
        return Samples(X, y, codes, weights, n_classes)

    def _class_weights(
        self, codes: np.ndarray[Any, np.dtype[np.intp]], weights: FloatArray
    ) -> FloatArray:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            # In the weights of the samples: those of weight two count twice.
            totals = np.bincount(codes, weights, minlength=self.classes_.size)
            return np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
        if not isinstance(self.class_weight, Mapping):
            raise ValueError(
                "class_weight must be None, 'balanced' or a dict of class labels to weights, "
                f"got {self.class_weight!r}"
            )
        return np.asarray(
            compute_class_weight(
                dict(self.class_weight), classes=self.classes_, y=self.classes_[codes]
            ),
            dtype=np.float64,
        )

    def _model(self) -> dict[str, Any]:
        """What ``build_problem`` wants to know besides data, ε and κ."""
        return {
            "norm": self.norm,
            "fit_intercept": self.fit_intercept,
            "feature_costs": self.feature_costs,
        }

    def _controls(self) -> dict[str, Any]:
        """What ``solve_problem`` wants to know besides the problem."""
        return {"solver": self.solver, "tol": self.tol, "max_iter": self.max_iter}

    def _fit_classes(
        self,
        samples: Samples,
        epsilon: float,
        kappa: float,
        *,
        verbose: int,
        starts: list[Result | None] | None = None,
    ) -> None:
        """Solve for every class (once, if there are two) and set the fitted attributes."""
        targets = samples.targets
        apart = len(targets) > 1 and not is_in_blocks(samples.X)  # blocks have threads or workers
        fits = Parallel(n_jobs=self.n_jobs if apart else 1)(
            delayed(_fit_one)(
                samples.X, target, samples.weights, epsilon, kappa,
                {**self._model(), "n_jobs": None if apart else self.n_jobs},
                {**self._controls(), "verbose": verbose, "start": start},
            )
            for target, start in zip(targets, starts or [None] * len(targets), strict=True)
        )  # fmt: skip
        self._set_results([fit.result for fit in fits], epsilon)
        names = [""] if len(fits) == 1 else [f" (class {c!r})" for c in self.classes_.tolist()]
        for fit, name in zip(fits, names, strict=True):
            self._warn(fit, epsilon, kappa, name)

    def _set_results(self, results: list[Result], epsilon: float) -> None:
        """Set the fitted attributes that follow from the results of the fits."""
        self.coef_ = np.array([result.coef for result in results])
        self.intercept_ = np.array([result.intercept for result in results])
        self.lambda_ = np.array([result.lam for result in results])
        self.worst_case_loss_ = np.array([result.objective for result in results])
        self.dual_gap_ = np.array([result.gap for result in results])
        self.n_iter_ = np.array([result.n_iter for result in results])
        self.epsilon_ = float(epsilon)
        self.results_ = results

    def _warn(self, fit: _Fit, epsilon: float, kappa: float, name: str) -> None:
        title = type(self).__name__ + name
        if not fit.result.converged:
            warnings.warn(
                f"{title} {fit.result.status}: the gap is {fit.result.gap:.2e} nats, tol is "
                f"{self.tol:.2e} nats. Raise max_iter, or tol if that gap is small enough for you.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if fit.epsilon_max is not None:
            warnings.warn(
                f"{title} is constant: epsilon={epsilon:.4g} is not below "
                f"epsilon_max={fit.epsilon_max:.4g} (for kappa={kappa:g}, norm={self.norm!r}), the "
                "radius from which on the worst case leaves nothing to learn from the features. "
                f"{self._if_constant}",
                UserWarning,
                stacklevel=4,
            )


class DRLogisticRegression(_RobustLinearClassifier):
    """Wasserstein distributionally robust logistic regression.

    Minimises the worst expected log-loss over all distributions within Wasserstein distance
    ``epsilon`` of the training data, where moving a sample costs the transport norm of the move
    and flipping its label costs ``kappa``: ``epsilon / kappa`` is the largest share of labels
    that the adversary may flip.  Every fit comes with a certificate: no linear model has a
    worst-case loss below ``worst_case_loss_ - dual_gap_``.

    Features are used as given.  Scale them so that a step of one means the same everywhere, or
    say with ``feature_costs`` how hard each is to move.

    Parameters
    ----------
    epsilon : float or "auto"
        Radius of the Wasserstein ball, at least 0 (0: plain logistic regression).  ``"auto"``
        takes it from :func:`~drlogit.suggest_radius`, which needs no tuning; with more than two
        classes, the largest of the radii that the classes would get.  It allows for sampling
        error of labels that do not flip, so it goes best with ``kappa=inf``: a small ``kappa``
        turns the same radius into a large share of flipped labels and can bring it close to
        :func:`~drlogit.epsilon_max`, where nothing is learnt; ``fit`` warns of that.  Weights
        enter it through ``Σ w_i²`` (unequal ones make for fewer effective samples), so here a
        weight of two is not the same as a repeated sample.
    kappa : float
        Cost of flipping a label, positive: at most a share ``epsilon / kappa`` of the labels can
        be flipped.  ``inf`` if labels are beyond doubt.
    norm : {"l1", "l2", "linf"}
        Transport norm on the features.  ``"l1"`` bounds ``max|β_j|`` by λ, ``"l2"`` the length
        of β, ``"linf"`` bounds ``Σ|β_j|`` (and sets coefficients to zero).
    fit_intercept : bool
        Whether to fit an intercept.  It is not penalised.
    feature_costs : array of shape (n_features,), optional
        How hard each feature is to move; ``inf`` for features that cannot move, whose
        coefficients are not penalised.
    solver : str
        ``"auto"`` or the name of a solver of the joint problem, as in :func:`~drlogit.solve`.
    tol : float
        Wanted duality gap, absolute, in nats of log-loss.
    max_iter : int, optional
        Limit on iterations; None for the solver's own.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply those of the samples; ``"balanced"`` gives every
        class the same total weight.
    warm_start : bool
        Whether to start from the previous fit's coefficients, if there is one of this shape.
    n_jobs : int, optional
        How many classes to fit at a time, if there are more than two; with two, how many
        threads the fit uses (None: as many as pay, see :func:`~drlogit.solve`).
    verbose : int
        Print a line per iteration if positive.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients β; one row if there are two classes.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts b.
    lambda_ : array of shape (1,) or (n_classes,)
        λ, what a unit of ``epsilon`` adds to the worst-case loss.
    worst_case_loss_ : array of shape (1,) or (n_classes,)
        Worst expected log-loss of each fit within the radius, in nats.
    dual_gap_ : array of shape (1,) or (n_classes,)
        How much lower the worst-case loss of the best model can be at most, in nats.
    n_iter_ : array of shape (1,) or (n_classes,)
        Iterations of the solver.
    epsilon_ : float
        The radius used.
    results_ : list of Result
        How each fit ended: status, times, trace.  Training data are not kept, and nothing of
        their length: ``flip_share`` is empty here.  Ask
        :func:`~drlogit.worst_case_distribution` for the flips.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if they all have one that is a string.

    See Also
    --------
    DRLogisticRegressionCV : Chooses ``epsilon`` and ``kappa`` by cross-validation.
    drlogit.solve : The same fit as a function of arrays.

    Examples
    --------
    >>> from drlogit import DRLogisticRegression
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DRLogisticRegression(epsilon=0.05, kappa=1.0)  # up to 5 % of labels may be wrong
    >>> pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    >>> print(f"{pipeline.score(X, y):.2f}")
    0.96
    >>> bool(model.dual_gap_[0] <= 1e-6)
    True
    """

    def __init__(
        self,
        epsilon: float | str = 0.01,
        kappa: float = 1.0,
        *,
        norm: str = "l1",
        fit_intercept: bool = True,
        feature_costs: ArrayLike | None = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.kappa = kappa
        self.norm = norm
        self.fit_intercept = fit_intercept
        self.feature_costs = feature_costs
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> DRLogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features; also :class:`~drlogit.RowBlocks` and Dask arrays or data frames.
        y : array of shape (n_samples,)
            Class labels, of any kind; with Dask also as an array or series there.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights.  Only their proportions matter, so ``epsilon`` keeps its
            meaning; a weight of two is as good as a repeated sample (but not for
            ``epsilon="auto"``).

        Returns
        -------
        DRLogisticRegression
            The fitted estimator itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            The duality gap is larger than ``tol``.
        UserWarning
            ``epsilon`` is so large that the model is constant; or ``"auto"`` came close to that.
        """
        samples = self._check_data(X, y, sample_weight)
        epsilon = self._radius(samples)
        samples = samples.prepared()
        if self.epsilon == "auto":
            self._warn_if_nearly_constant(samples, epsilon)
        starts = self._starts(samples)
        self._fit_classes(samples, epsilon, self.kappa, verbose=self.verbose, starts=starts)
        return self

    def _radius(self, samples: Samples) -> float:
        if not isinstance(self.epsilon, str):
            return self.epsilon
        if self.epsilon != "auto":
            raise ValueError(f"epsilon must be a number >= 0 or 'auto', got {self.epsilon!r}")
        return max(
            float(suggest_radius(samples.X, t, sample_weight=samples.weights, **self._model()))
            for t in samples.targets
        )

    def _warn_if_nearly_constant(self, samples: Samples, epsilon: float) -> None:
        """Warn where flips make a radius that was not made for them very large."""
        kappa = check_kappa(self.kappa)
        if math.isinf(kappa):
            return
        problems = (
            build_problem(
                samples.X, target, epsilon=epsilon, kappa=kappa, sample_weight=samples.weights,
                **self._model(),
            )
            for target in samples.targets
        )  # fmt: skip
        limit = max(epsilon_max_of(problem) for problem in problems)
        if _MUCH_OF_LIMIT * limit < epsilon < limit:
            warnings.warn(
                f"epsilon='auto' is {epsilon:.4g}, {epsilon / limit:.0%} of "
                f"epsilon_max={limit:.4g} (for kappa={kappa:g}, norm={self.norm!r}), from which on "
                "the model is constant. The radius allows for sampling error, with labels that "
                "do not flip: choose a larger kappa, inf if labels are right, or epsilon yourself.",
                UserWarning,
                stacklevel=3,
            )

    def _starts(self, samples: Samples) -> list[Result | None] | None:
        """Earlier results to start from, if wanted and of this shape."""
        earlier = getattr(self, "results_", []) if self.warm_start else []
        n_samples, n_features = samples.X.shape
        if len(earlier) != len(samples.targets) or earlier[0].coef.size != n_features:
            return None
        # Flip shares are not kept: a solver that starts from them finds none.
        flips: Any
        if is_dask(samples.X):
            from .dask_rows import map_rows

            flips = map_rows(_no_flips, samples.X, None, np.float64)
        else:
            flips = np.zeros(n_samples)
        return [replace(result, flip_share=flips) for result in earlier]


class DRLogisticRegressionCV(_RobustLinearClassifier):
    """Distributionally robust logistic regression with ``epsilon`` and ``kappa`` chosen by CV.

    Fits :class:`DRLogisticRegression` for every κ and, for each, over radii from ε_max (where
    the model becomes constant) downwards, on every fold; then takes the pair with the best mean
    score and fits it to all data.  ``epsilon / kappa`` is the largest share of labels that the
    adversary may flip.

    Held-out data from the same source reward robustness only where it helps prediction on data
    like these.  If you expect a shift or wrong labels that the folds do not show, choose
    ``epsilon`` and ``kappa`` by what they mean instead, or set ``one_standard_error``.

    Parameters
    ----------
    epsilons : int or array
        How many radii for each κ, evenly spaced on a logarithmic scale from ε_max of that κ
        down to ``min_fraction`` of it; or the radii themselves, the same for each κ.
    kappas : int or array
        Costs of flipping a label (``inf``: labels are beyond doubt); or how many of them, on
        the scale of the data: ``inf``, and the others evenly spaced on a logarithmic scale
        around twice the ε_max of ``kappa = inf``, where flips and moves matter alike.
    min_fraction : float
        The smallest radius as a fraction of ε_max.
    cv : int, splitter or iterable
        Folds (stratified, if a number), as in scikit-learn.
    scoring : str or callable, optional
        What to maximise, as in scikit-learn.  By default the negative log-loss, which unlike
        accuracy sees probabilities that are too sure; weighted, if samples have weights.
    one_standard_error : bool
        Take the largest radius, at the best κ, whose mean score is within one standard error
        of the best: more robustness at no price that the folds could measure.
    refit : bool
        Whether to fit the chosen model to all data; without, the estimator cannot predict.
    norm, fit_intercept, feature_costs, solver, tol, max_iter, class_weight
        As in :class:`DRLogisticRegression`.
    n_jobs : int, optional
        How many pairs of a fold and a κ to work on at a time.
    verbose : int
        Print a line for each such pair if positive, and one per iteration of the last fit if
        above 1.

    Attributes
    ----------
    epsilon_, kappa_ : float
        The pair chosen.
    cv_results_ : dict of arrays
        An entry for each pair, κ ascending and ε descending within: ``param_kappa``,
        ``param_epsilon``, ``params``, ``flip_budget`` (ε/κ, the largest share of flipped
        labels), ``split0_test_score`` …, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``mean_fit_time``, ``mean_n_iter``, ``max_gap``.
        ``pandas.DataFrame(cv_results_)`` makes a table of it.
    best_index_ : int
        Index of the pair chosen in ``cv_results_``.
    best_score_ : float
        Its mean score over the folds.
    n_splits_ : int
        Number of folds.
    classes_, n_features_in_, feature_names_in_
        As in :class:`DRLogisticRegression`.
    coef_, intercept_, lambda_, worst_case_loss_, dual_gap_, n_iter_, results_
        As in :class:`DRLogisticRegression`, for the last fit; if ``refit``.

    Notes
    -----
    :meth:`score` is the accuracy, as for any classifier, whatever ``scoring`` is.

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

    _if_constant = "No smaller radius scored better on the folds."

    def __init__(
        self,
        epsilons: int | ArrayLike = 10,
        kappas: int | ArrayLike = 5,
        *,
        min_fraction: float = 1e-3,
        cv: Any = 5,
        scoring: str | Callable[..., float] | None = None,
        one_standard_error: bool = False,
        refit: bool = True,
        norm: str = "l1",
        fit_intercept: bool = True,
        feature_costs: ArrayLike | None = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilons = epsilons
        self.kappas = kappas
        self.min_fraction = min_fraction
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.refit = refit
        self.norm = norm
        self.fit_intercept = fit_intercept
        self.feature_costs = feature_costs
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any
    ) -> DRLogisticRegressionCV:
        """Choose ``epsilon`` and ``kappa``, and fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.
        y : array of shape (n_samples,)
            Class labels, of any kind.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights, for the fits and for the scores.  Only their proportions
            matter.
        **params
            Metadata for the splitter and the scorer, if scikit-learn's metadata routing is
            enabled.

        Returns
        -------
        DRLogisticRegressionCV
            The fitted estimator itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            Duality gaps are larger than ``tol``.
        UserWarning
            The model chosen is constant.
        """
        from sklearn.model_selection import check_cv  # takes a tenth of a second to import

        split_params, score_params = self._route(sample_weight, params)
        if is_in_blocks(X):
            raise TypeError(
                f"DRLogisticRegressionCV needs X in memory, got {type(X).__name__}; choose epsilon "
                "on a part of the rows, then fit DRLogisticRegression to all of them"
            )
        samples = self._check_data(X, y, sample_weight)
        splits = list(
            check_cv(self.cv, samples.y, classifier=True).split(
                samples.X, samples.y, **split_params
            )
        )
        self._check_folds(samples, splits)
        kappas, epsilons = self._grid(samples)
        chains = self._run_folds(samples, splits, kappas, epsilons, score_params)
        self.n_splits_ = len(splits)
        self.cv_results_ = tabulate(kappas, epsilons, chains)
        self.best_index_ = choose(
            self.cv_results_, self.n_splits_, one_standard_error=self.one_standard_error
        )
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.epsilon_ = float(self.cv_results_["param_epsilon"][self.best_index_])
        self.kappa_ = float(self.cv_results_["param_kappa"][self.best_index_])
        if self.refit:
            verbose = max(self.verbose - 1, 0)
            self._fit_classes(samples.prepared(), self.epsilon_, self.kappa_, verbose=verbose)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which metadata go to the splitter and to the scorer.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            Routing information.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(
                scorer=self._scorer(),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        )

    def _route(
        self, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Metadata for the splitter and for the scorer."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **weights, **params)
            # Our own score always wants weights; others say so by themselves.
            return routed.splitter.split, weights if self.scoring is None else routed.scorer.score
        if params:
            raise ValueError(
                f"fit takes {', '.join(params)} only with scikit-learn's metadata routing enabled; "
                "for groups, pass cv=list(splitter.split(X, y, groups))"
            )
        return {}, weights

    def _scorer(self) -> Callable[..., float]:
        if self.scoring is None:
            return mean_log_likelihood
        from sklearn.metrics import check_scoring

        scorer: Callable[..., float] = check_scoring(self, scoring=self.scoring)
        return scorer

    def _check_folds(self, samples: Samples, splits: list[tuple[Any, Any]]) -> None:
        """Every class must be there to learn from in every fold."""
        for fold, (train, _) in enumerate(splits, 1):
            weights = None if samples.weights is None else samples.weights[train]
            totals = np.bincount(samples.codes[train], weights, minlength=samples.n_classes)
            if not totals.all():
                missing = self.classes_[totals == 0.0].tolist()[0]
                raise ValueError(
                    f"class {missing!r} has no sample in the training part of fold {fold} of "
                    f"{len(splits)}; every class needs one: use fewer folds, or stratified ones"
                )

    def _grid(self, samples: Samples) -> tuple[FloatArray, list[FloatArray]]:
        """Flip costs, and the radii for each."""
        counted = samples.prepared()
        problems = [
            build_problem(
                counted.X, target, epsilon=0.0, kappa=np.inf, sample_weight=counted.weights,
                **self._model(),
            )
            for target in counted.targets
        ]  # fmt: skip

        def limit(kappa: float) -> float:
            return max(epsilon_max_of(problem.with_radius(0.0, kappa)) for problem in problems)

        if is_count(self.kappas):
            kappas = kappas_around(limit(np.inf), check_count(self.kappas, "kappas"))
        else:
            kappas = check_kappas(self.kappas)
        if not is_count(self.epsilons):
            return kappas, [check_radii(self.epsilons)] * kappas.size
        count, least = check_count(self.epsilons, "epsilons"), self.min_fraction
        return kappas, [radii_below(limit(float(kappa)), count, least) for kappa in kappas]

    def _run_folds(
        self,
        samples: Samples,
        splits: list[tuple[Any, Any]],
        kappas: FloatArray,
        epsilons: list[FloatArray],
        score_params: dict[str, Any],
    ) -> list[list[Chain]]:
        """Scores of every radius, for each κ and each fold: ``chains[κ][fold]``."""
        scorer = self._scorer()
        model = DRLogisticRegression()
        model.classes_, model.n_features_in_ = self.classes_, samples.X.shape[1]
        tasks = [
            (k, fold, float(kappa)) for k, kappa in enumerate(kappas) for fold in range(len(splits))
        ]
        running = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(score_chain)(
                samples, *splits[fold], epsilons[k], kappa, self._model(), self._controls(),
                model, scorer, score_params,
            )
            for k, fold, kappa in tasks
        )  # fmt: skip
        chains: list[list[Chain]] = [[] for _ in kappas]
        for done, ((k, fold, kappa), chain) in enumerate(zip(tasks, running, strict=True), 1):
            chains[k].append(chain)
            if self.verbose:
                best = int(np.argmax(chain.scores))
                print(
                    f"[{done:{len(str(len(tasks)))}d}/{len(tasks)}] kappa {kappa:.4g}, fold "
                    f"{fold + 1}/{len(splits)}: {chain.scores.size} radii in "
                    f"{chain.seconds.sum():.2f} s, best score {chain.scores[best]:.4f} "
                    f"at epsilon {epsilons[k][best]:.4g}",
                    flush=True,
                )
        gaps = [gap for row in chains for chain in row for gap in chain.gaps.tolist()]
        warn_about_gaps(type(self).__name__, gaps, self.tol, stacklevel=4)
        return chains


def _no_flips(rows: Any) -> FloatArray:
    return np.zeros(rows.shape[0])


class _Fit(NamedTuple):
    result: Result
    epsilon_max: float | None  # only if the model is constant


def _fit_one(
    X: Matrix,
    target: np.ndarray[Any, np.dtype[np.bool_]],
    weights: FloatArray | None,
    epsilon: float,
    kappa: float,
    model: dict[str, Any],
    controls: dict[str, Any],
) -> _Fit:
    """One class against the rest, without what has the length of the data."""
    problem = build_problem(X, target, epsilon=epsilon, kappa=kappa, sample_weight=weights, **model)
    result = solve_problem(problem, **controls)
    limit = None
    if _may_be_constant(problem, result):
        limit = epsilon_max_of(problem)
        limit = limit if epsilon >= limit else None
    return _Fit(replace(result, flip_share=np.zeros(0)), limit)


def _may_be_constant(problem: Problem, result: Result) -> bool:
    """Whether the features that the norm bounds hardly move the margins."""
    coefficients = problem.join(result.coef, result.intercept)
    effect = np.abs(coefficients) * problem.rows.column_scale
    return bool(problem.penalised.any() and effect[problem.penalised].sum() < _NEARLY_CONSTANT)
