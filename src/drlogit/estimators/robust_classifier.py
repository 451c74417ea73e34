"""What the two scikit-learn classifiers have in common: how they are fitted, and what they answer.

Contract only: check, encode labels, pose the Problem, solve, copy attributes; each of it once.
More than two classes are one problem, with one certificate.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..engine import tables as _engine_of_tables  # noqa: F401  (no first fit waits for it)
from ..fitting.exact_zeros import is_constant
from ..fitting.solving import SolverName, solve_problem
from ..problem.classes import ClassProblem
from ..problem.label_costs import StatedKappa, kappa_text
from ..problem.norms import NormName
from ..problem.problem import Problem
from ..problem.result import Callback, Result
from ..problem.stopping import Stop
from ..rows.arrays import FloatArray, IndexArray, beyond_memory, is_dask
from ..rows.interface import Rows
from .class_recall import ClassRecall
from .label_noise import true_probabilities
from .tables.by_column import UnscaledDataWarning, unlike_units, unpenalised
from .tables.encoding import Encoding, Fill
from .training_data import TrainingData, matrix_of, names_given, table_of, training_data


@dataclass(eq=False, repr=False, kw_only=True)
class ModelParameters:
    """The parameters that both estimators have; :class:`DRLogisticRegression` explains them."""

    norm: NormName = "l1"
    fit_intercept: bool = True
    feature_costs: Any = None
    categories: Any = None
    bounds: Any = None
    categorical_features: Any = "from_dtype"
    numbers: Sequence[Any] | None = None
    missing: Fill = "error"
    solver: SolverName = "auto"
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    class_weight: Mapping[Any, float] | str | None = None
    label_noise: Any = None
    n_jobs: int | None = None
    verbose: int = 0


class RobustLinearClassifier(ModelParameters, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The methods that both estimators have: fitting a checked problem, and predictions."""

    # These stay None if X is a matrix of numbers and no such parameter was given.
    encoding_: Encoding | None = None
    feature_costs_: Any = None
    categories_: Any = None
    bounds_: Any = None
    columns_seen_: FloatArray | None = None

    #: Shares of true classes (rows) that are recorded as others, if labels are known to be wrong.
    label_noise_: FloatArray | None = None

    _if_constant = "Choose a smaller epsilon."

    #: Called after every iteration, to show progress; if it has a method ``say``, that is called
    #: with the size of a long fit.  Not a parameter: the command line sets it.
    on_iteration: Callback | None = None

    #: The same for the folds of a search: called with the number of finished folds and of all.
    on_fold: Callable[[int, int], None] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @contextmanager
    def _unless_it_fails(self) -> Iterator[None]:
        """Leave the estimator as it was if a fit fails or is interrupted."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _advise(self, rows: Rows, *, robust: bool = True) -> None:
        """Warn of what was left out or left free, and of units that have little in common."""
        said = [] if self.encoding_ is None else [*self.encoding_.remarks]
        if robust and self.feature_costs_ is not None:
            costs = np.asarray(self.feature_costs_, dtype=np.float64)
            if np.isinf(costs).any():
                said.append(unpenalised(costs, table_of(self), rows.n_samples) or "")
        for each in filter(None, said):
            warnings.warn(each, UserWarning, stacklevel=4)
        if self.feature_costs is not None or not robust:
            return
        names = names_given(self) if self.encoding_ is None else self.encoding_.names
        deviation = rows.column_deviations[: len(names)]
        for group in self.categories_ or ():  # levels have no unit
            deviation[[j for j in group if j is not None]] = 0.0
        found = unlike_units(deviation, names)
        if found is not None:
            warnings.warn(found, UnscaledDataWarning, stacklevel=4)

    # --- from samples to fitted attributes --------------------------------------------------

    def _fit_problem(
        self,
        data: TrainingData,
        problem: Problem | ClassProblem,
        stop: Stop,
        *,
        verbose: int,
        start: Result | None = None,
    ) -> bool:
        """Solve, and set the fitted attributes.

        Returns whether the model is constant, of which there is a warning.
        """
        result = solve_problem(
            problem, solver=self.solver, tol=self.tol, max_iter=self.max_iter, start=start,
            verbose=verbose, callback=self.on_iteration, stop=stop,
        )  # fmt: skip
        # One that was stopped may have got no further than that.
        model = problem.join(result.coef, result.intercept)
        constant = result.converged and is_constant(problem, model)
        coef, intercept = data.reported(result.coef, result.intercept, problem.epsilon)
        result = replace(result, coef=coef, intercept=intercept, dual=None)
        if problem.domains is not None and self.categories_ is not None:
            self.categories_ = problem.domains.with_none_stated(self.categories_)
        set_result(self, result, problem.epsilon, problem.cost.labels.stated(self.classes_))
        self._warn(result, problem, constant=constant)
        if result.converged and not constant:
            self._warn_of_neglect(data)
        return constant

    def _warn_of_neglect(self, data: TrainingData) -> None:
        """Warn of a class that the model almost never predicts for the samples of the fit."""
        if is_dask(data.X) or is_dask(data.codes) or beyond_memory(data.X):
            return  # another pass over such samples would be a price for everyone
        scores = safe_sparse_dot(data.X, self.coef_.T, dense_output=True) + self.intercept_
        found = ClassRecall.of(self.classes_.tolist(), data.codes, _decided(scores))
        often = None
        if data.n_classes == 2:
            rare = int(found.shares.argmin())
            own = scores[:, 0] if rare == 1 else -scores[:, 0]
            often = float(expit(np.quantile(own, 1.0 - found.shares[rare])))
        said = found.neglected(self.epsilon_, self.kappa_, often)
        if said is not None:
            warnings.warn(said, UserWarning, stacklevel=5)

    def save_proof(
        self,
        path: str | os.PathLike[str],
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        kappa: Any = None,
    ) -> None:
        """Write the proof of the certificate, with which :func:`drlogit.verify` checks it.

        A fitted model keeps nothing of the length of its data, so this takes another fit.

        Parameters
        ----------
        path : path
            A NumPy archive, ``.npz``.
        X, y, sample_weight
            The data of the fit.
        kappa : array of shape (n_samples,), optional
            What flips cost, if that was stated for each sample.
        """
        check_is_fitted(self, "coef_")
        kappa = self.kappa_ if kappa is None else kappa
        if isinstance(kappa, str):
            raise ValueError(
                "kappa must be given, because the model was fitted with one kappa for each sample"
            )
        given = training_data(clone(self), X, y, sample_weight, kappa)
        result = solve_problem(
            given.pose(self.epsilon_, kappa, self.n_jobs), solver=self.solver, tol=self.tol,
            max_iter=self.max_iter,
        )  # fmt: skip
        result.save_proof(path)

    def _warn(self, result: Result, problem: Problem | ClassProblem, *, constant: bool) -> None:
        title = type(self).__name__
        if not result.converged:
            warnings.warn(
                f"{title} {result.status}: the duality gap is {result.gap:.2e} nats, tol is "
                f"{self.tol:.2e} nats. {result.status.remedy}",
                ConvergenceWarning,
                stacklevel=5,
            )
        if constant:
            warnings.warn(
                f"{title} is constant: epsilon={problem.epsilon:.4g} is at least epsilon_max (for "
                f"kappa={kappa_text(self.kappa_)}, norm={self.norm!r}), so all coefficients are "
                f"zero. {self._if_constant}",
                UserWarning,
                stacklevel=5,
            )

    # --- what a fitted model answers --------------------------------------------------------

    def decision_function(self, X: Any) -> FloatArray:
        """Signed scores: the margin of the second class, or one column for each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            ``x·β + b``; with two classes, positive where the second is predicted.  With
            ``label_noise`` these are scores of labels as recorded.
        """
        check_is_fitted(self, "coef_")
        if is_dask(X):
            n_columns = None if self.classes_.size == 2 else self.classes_.size
            return self._by_block(self.decision_function, X, n_columns, np.float64)
        X = matrix_of(self, X)
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def to_sklearn(self) -> Any:
        """The fitted model as one of scikit-learn's own, to be served without drlogit.

        Returns
        -------
        LogisticRegression or Pipeline
            With the same coefficients; with the encoding of a table in front, if there is one.

        Raises
        ------
        ValueError
            A category has truth values and missing ones; or the model knows of ``label_noise``.
        """
        from .exports import plain_model

        check_is_fitted(self, "coef_")
        return plain_model(self)

    def coefficient_table(self) -> Any:
        """The coefficients by column and level, as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row for the intercept, if there is one, for each number, and for each level of a
            category.  ``column`` is ``"(intercept)"`` or the name of the column; ``level`` is None
            for numbers.  ``cost`` is the cost of moving the number by one, or of changing the
            category; ``inf`` means not penalised.  ``coefficient`` is in log-odds.  Models of two
            classes have ``odds_ratio``, the exponential of the coefficient: for the intercept the
            odds of a row of zeros.  Models of more classes have ``class`` in front.  With an
            intercept, the coefficients of a category are relative to the average training sample.
        """
        import pandas as pd

        check_is_fitted(self, "coef_")
        places = [
            (column.name, level)
            for column in table_of(self).columns
            for level in column.shown_levels
        ]
        K, costs = self.coef_.shape[0], self.feature_costs_
        costs = np.ones(len(places)) if costs is None else np.asarray(costs)
        coef = self.coef_
        if self.fit_intercept:
            places, costs = [("(intercept)", None), *places], np.append(np.inf, costs)
            coef = np.column_stack([self.intercept_, coef])
        found = pd.DataFrame(places * K, columns=["column", "level"], dtype=object)
        found["cost"], found["coefficient"] = np.tile(costs, K), coef.ravel()
        if K > 1:
            found.insert(0, "class", np.repeat(self.classes_, len(places)))
        else:
            with np.errstate(over="ignore"):  # infinite odds are an answer
                found["odds_ratio"] = np.exp(found["coefficient"])
        return found

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most probable class of each sample of X."""
        if is_dask(X):
            return self._by_block(self.predict, X, None, self.classes_.dtype)
        if self.label_noise_ is not None:
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        scores = self.decision_function(X)
        return np.asarray(self.classes_[_decided(scores.reshape(len(scores), -1))])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities for each sample of X, a column for each of ``classes_``.

        Of the true classes, where ``label_noise`` is known; with more than two, the softmax of the
        scores.
        """
        if is_dask(X):
            return self._by_block(self.predict_proba, X, self.classes_.size, np.float64)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            recorded = np.column_stack([expit(-scores), expit(scores)])
        else:
            recorded = np.asarray(softmax(scores, axis=1))
        noise = self.label_noise_
        return recorded if noise is None else true_probabilities(recorded, noise)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, finite however sure the model is."""
        if is_dask(X):
            return self._by_block(self.predict_log_proba, X, self.classes_.size, np.float64)
        if self.label_noise_ is not None:
            return np.asarray(np.log(self.predict_proba(X)))
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    def _by_block(
        self, method: Callable[[Any], Any], X: Any, n_columns: int | None, dtype: Any
    ) -> np.ndarray[Any, Any]:
        """Predictions for a Dask collection, block by block, as a Dask array."""
        check_is_fitted(self, "coef_")
        from ..rows.dask_collections import map_rows

        lazy: np.ndarray[Any, Any] = map_rows(method, X, n_columns, dtype)
        return lazy


def set_result(
    model: RobustLinearClassifier, result: Result, epsilon: float, kappa: StatedKappa
) -> None:
    """Set the fitted attributes that follow from the result of the fit."""
    model.coef_ = np.atleast_2d(result.coef)
    model.intercept_ = np.atleast_1d(result.intercept)
    model.lambda_ = np.array([result.lam])
    model.worst_case_loss_ = np.array([result.objective])
    model.dual_gap_ = np.array([result.gap])
    model.n_iter_ = np.array([result.n_iter])
    model.epsilon_, model.kappa_ = float(epsilon), kappa
    model.result_ = result


def _decided(scores: FloatArray) -> IndexArray:
    """The class of the largest score in each row; of two classes there is one score."""
    codes = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0.0
    return np.asarray(codes, dtype=np.intp)
