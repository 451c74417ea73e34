"""What the two scikit-learn classifiers have in common.

Contract only: check, encode labels, pose the Problem, solve, copy attributes; each of it once.
More than two classes are fitted one against the rest, each with its own certificate, on rows that
differ in their signs alone.
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
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ..fitting.critical_radius import epsilon_max_of
from ..fitting.solving import solve_problem
from ..problem.problem import Problem
from ..problem.result import Callback, Result
from ..rows.arrays import FloatArray, IndexArray
from ..rows.checks import (
    check_numeric,
    check_unmasked,
    check_weights,
    find_classes,
    settled,
)
from ..rows.row_blocks import RowBlocks, is_dask, is_in_blocks
from .training_data import TrainingData, balanced_weights

#: Where penalised features together move the margins by less than this, it is worth asking
#: whether the model is constant.
_NEARLY_CONSTANT = 1e-2

#: How scikit-learn is to hand over X that is in memory.
_AS_NUMBERS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class RobustLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the data they take, the model they fit, and prediction."""

    norm: str
    fit_intercept: bool
    feature_costs: ArrayLike | None
    categories: Any
    bounds: Any
    solver: str
    tol: float
    max_iter: int | None
    class_weight: Mapping[Any, float] | str | None
    n_jobs: int | None
    verbose: int

    _if_constant = "Choose a smaller epsilon."

    #: Told of every iteration, for who shows progress; not a parameter, and nothing for users.
    _callback: Callback | None = None

    #: Whether results keep their dual points, which are as long as the data; likewise.
    _keep_dual = False

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
        X = validate_data(self, check_numeric(X), reset=False, **_AS_NUMBERS)
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
        from ..rows.distributed import map_rows

        lazy: np.ndarray[Any, Any] = map_rows(method, X, n_columns, dtype)
        return lazy

    # --- from X and y to checked samples ----------------------------------------------------

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Check the samples, remember features and classes, fold class weights into weights."""
        if isinstance(X, np.memmap):
            X = RowBlocks.from_array(X)  # checked where it lies, as other blocks are
        if is_in_blocks(X):
            self._remember_columns(X)
            if is_dask(y):
                return self._with_lazy_labels(X, y, sample_weight)
            check_unmasked(y, "y")
            return self._with_labels(X, column_or_1d(y), sample_weight)
        check_unmasked(y, "y")
        X, y = validate_data(self, check_numeric(X), y, **_AS_NUMBERS)
        return self._with_labels(settled(X), y, sample_weight)

    def _remember_columns(self, X: Any) -> None:
        """What scikit-learn does with X in memory; the features are checked by the fit."""
        self.n_features_in_ = int(X.shape[1])
        names = X.feature_names or [] if isinstance(X, RowBlocks) else [*getattr(X, "columns", [])]
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)

    def _with_lazy_labels(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Samples whose labels are a Dask collection, too."""
        if self.class_weight is not None:
            raise ValueError(
                "class_weight must be None where y is a Dask collection; put the weights of the "
                f"classes into sample_weight, got {self.class_weight!r}"
            )
        from ..rows.distributed import encode

        self.classes_, codes = encode(y)
        self._check_classes()
        return TrainingData(X, y, codes, sample_weight, self.classes_.size)

    def _with_labels(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Samples with labels and weights in memory, wherever X is."""
        self.classes_ = find_classes(y)
        self._check_classes()
        codes = np.searchsorted(self.classes_, y)
        weights = None
        if sample_weight is not None:
            check_weights(sample_weight, codes.size)
            weights = np.array(sample_weight, dtype=np.float64)
        if self.class_weight is not None:
            weights = self._with_class_weights(codes, weights)
        if weights is not None:
            totals = np.bincount(codes, weights, minlength=self.classes_.size)
            if not totals.all():
                missing = self.classes_[totals == 0.0].tolist()[0]
                raise ValueError(f"every class needs a positive weight, class {missing!r} has none")
        return TrainingData(X, y, codes, weights, self.classes_.size)

    def _check_classes(self) -> None:
        """Two labels or more, and labels, not measurements."""
        classes = self.classes_
        if classes.dtype.kind == "f":  # scikit-learn takes whole numbers only
            fractions = classes[classes != np.rint(classes)]
            classes = fractions if fractions.size else classes
        # A few will do: from 20 on, as many classes as samples are worth a warning to it.
        check_classification_targets(classes[:20])
        if self.classes_.size < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class: {self.classes_.tolist()[0]!r}"
            )

    def _with_class_weights(self, codes: IndexArray, weights: FloatArray | None) -> FloatArray:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return balanced_weights(codes, weights, self.classes_.size)
        if not isinstance(self.class_weight, Mapping):
            raise ValueError(
                "class_weight must be None, 'balanced' or a dict of class labels to weights, "
                f"got {self.class_weight!r}"
            )
        of_class = compute_class_weight(
            dict(self.class_weight), classes=self.classes_, y=self.classes_[codes]
        )
        return np.asarray((1.0 if weights is None else weights) * of_class[codes])

    # --- from samples to fitted attributes --------------------------------------------------

    def _model(self) -> dict[str, Any]:
        """What a problem is besides data, ε and κ."""
        return {
            "norm": self.norm,
            "fit_intercept": self.fit_intercept,
            "feature_costs": self.feature_costs,
            "categories": self.categories,
            "bounds": self.bounds,
            "names": getattr(self, "feature_names_in_", None),
        }

    def _controls(self) -> dict[str, Any]:
        """What ``solve_problem`` wants to know besides the problem."""
        return {"solver": self.solver, "tol": self.tol, "max_iter": self.max_iter}

    def _pose(self, data: TrainingData, epsilon: float, kappa: float) -> Problem:
        """The problem of the first class; the others' differ in their signs alone."""
        n_jobs = None if self._fits_apart(data) else self.n_jobs
        return data.pose(epsilon=epsilon, kappa=kappa, n_jobs=n_jobs, **self._model())

    def _fits_apart(self, data: TrainingData) -> bool:
        """Whether classes share the jobs: blocks have threads or workers of their own."""
        return data.n_classes > 2 and not is_in_blocks(data.X)

    def _fit_classes(
        self,
        data: TrainingData,
        problem: Problem,
        *,
        verbose: int,
        starts: list[Result | None] | None = None,
    ) -> None:
        """Solve for every class (once, if there are two) and set the fitted attributes."""
        controls = {**self._controls(), "verbose": verbose, "callback": self._callback}
        classes = data.fitted_classes
        fits = Parallel(n_jobs=self.n_jobs if self._fits_apart(data) else 1)(
            delayed(_fit_one)(each, {**controls, "start": start}, self._keep_dual)
            for each, start in zip(
                data.against_rest(problem), starts or [None] * len(classes), strict=True
            )
        )
        self._set_results([fit.result for fit in fits], problem.epsilon)
        names = [""] if len(fits) == 1 else [f" (class {c!r})" for c in self.classes_.tolist()]
        for fit, name in zip(fits, names, strict=True):
            self._warn(fit, problem, name)

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

    def _warn(self, fit: _Fit, problem: Problem, name: str) -> None:
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
                f"{title} is constant: epsilon={problem.epsilon:.4g} is not below "
                f"epsilon_max={fit.epsilon_max:.4g} (for kappa={problem.kappa:g}, "
                f"norm={self.norm!r}), the radius from which on the worst case leaves nothing to "
                "learn from the features. "
                f"{self._if_constant}",
                UserWarning,
                stacklevel=4,
            )


class _Fit(NamedTuple):
    result: Result
    epsilon_max: float | None  # only if the model is constant


def _fit_one(problem: Problem, controls: dict[str, Any], keep_dual: bool) -> _Fit:
    """One class against the rest, if wanted without what has the length of the data."""
    result = solve_problem(problem, **controls)
    limit = epsilon_max_of(problem) if _may_be_constant(problem, result) else math.inf
    kept = result if keep_dual else replace(result, dual=None)
    return _Fit(kept, limit if problem.epsilon >= limit else None)


def _may_be_constant(problem: Problem, result: Result) -> bool:
    """Whether the features that the norm bounds hardly move the margins."""
    coefficients = problem.join(result.coef, result.intercept)
    effect = np.abs(coefficients) * problem.rows.column_scale
    return bool(problem.penalised.any() and effect[problem.penalised].sum() < _NEARLY_CONSTANT)
