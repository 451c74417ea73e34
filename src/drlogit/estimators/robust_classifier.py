"""What the two scikit-learn classifiers have in common: how they are fitted, and what they answer.

Contract only: check, encode labels, pose the Problem, solve, copy attributes; each of it once.
More than two classes are one problem, with one certificate.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..fitting.critical_radius import largest_radius
from ..fitting.exact_zeros import is_constant
from ..fitting.posing import check_ball
from ..fitting.solving import solve_problem
from ..problem.ball import Ball
from ..problem.label_costs import kappa_text
from ..problem.norms import NormName
from ..problem.problem import Problem
from ..problem.result import Callback, Result
from ..problem.stopping import Stop
from ..rows.arrays import (
    FloatArray,
    Matrix,
    beyond_memory,
    is_dask,
    is_dataset,
    refuse_elsewhere,
)
from ..rows.parquet import labels_in, parts_of
from ..rows.warn import warn
from .class_recall import decided, neglected
from .tables.encoding import Fill, column_transformer
from .tables.frames import listed
from .tables.remarks import SORTED
from .training_data import TrainingData, matrix_of, training_data

#: ``fit`` warns if there are fewer samples than this for each unpenalised coefficient, the rule of
#: thumb for plain logistic regression (Peduzzi et al. 1996).
_SAMPLES_EACH = 10

#: A fit keeps the scores of about this many of its rows.
_KNOWN_ROWS = 256


@dataclass(eq=False, repr=False, kw_only=True)
class ModelParameters:
    """The parameters that both estimators have; :class:`DRLogisticRegression` explains them."""

    ball: Ball | None = None
    fit_intercept: bool = True
    categorical_features: Any = "from_dtype"
    missing: Fill = "error"
    class_weight: Mapping[Any, float] | str | None = None
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    n_jobs: int | None = None
    verbose: int = 0


class RobustLinearClassifier(ModelParameters, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The methods that both estimators have: fitting a checked problem, and predictions."""

    norm: NormName | None

    _result: Result | None = None

    _if_constant = "Choose a smaller epsilon."

    #: Called after every iteration, to show progress; if it has a method ``say``, that is called
    #: with the size of a long fit.  Not a parameter: the command line sets it.
    on_iteration: Callback | None = None

    #: The same for the folds of a search: called with the number of finished folds and of all.
    on_fold: Callable[[int, int], None] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def _stated_ball(self) -> Ball:
        """The ball of the parameters; what is given beside a ball replaces that part of it."""
        ball = Ball() if self.ball is None else self.ball
        check_ball(ball)
        given = {name: getattr(self, name, None) for name in ("epsilon", "kappa", "norm")}
        given = {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            if isinstance(value, Ball):
                raise ValueError(f"{name} must be a number, got a Ball: pass it as ball=…")
        ball = ball.replace(**given) if given else ball
        if np.ndim(ball.kappa) == 1 or is_dask(ball.kappa):
            raise ValueError(
                "kappa with one cost for each row belongs to fit(X, y, kappa=…), which splits it "
                "with the rows"
            )
        return ball

    def _advise(self, data: TrainingData) -> None:
        """Warn of what was left out, left free, or stated as a cost that allows very much."""
        said, problem, kappa = data.remarks(), data.problem, data.ball.kappa
        costs, epsilon, n_samples = problem.ball.costs, problem.epsilon, problem.rows.n_samples
        if epsilon > 0.0 and np.ndim(costs) == 1 and np.isinf(costs).any():
            said.append(_unpenalised(costs, data.ball.features, n_samples))
        least = min(kappa.values()) if isinstance(kappa, Mapping) else kappa
        if (
            not isinstance(least, str)
            and epsilon > 0.1 * least
            and not self._stated_ball().tolerates
        ):
            share = min(epsilon / least, 1.0) if least > 0.0 else 1.0
            said.append(
                f"epsilon / kappa = {epsilon:.3g} / {kappa_text(kappa)} allows {share:.0%} of the "
                "labels to be wrong: kappa is the cost of a wrong label, not a share. To allow a "
                f"share of 5 %, use kappa={epsilon / 0.05:.3g} or Ball.tolerating(labels=0.05)"
            )
        if data.given_weights is not None and data.given_weights.max() < 1.0:
            said.append(
                "sample_weight counts as repetitions, and all weights are below 1: the "
                f"{n_samples} rows count as {float(data.given_weights.sum()):.3g}"
            )
        for each in filter(None, said):
            warn(each)

    # --- from samples to fitted attributes --------------------------------------------------

    def _solved(
        self, problem: Problem, stop: Stop, *, verbose: int, start: Result | None = None
    ) -> Result:
        return solve_problem(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            start=start,
            verbose=verbose,
            callback=self.on_iteration,
            stop=stop,
            keeps_dual=False,
        )

    def _conclude(self, data: TrainingData, result: Result) -> None:
        """Set the fitted attributes, and warn."""
        problem = data.problem
        # One that was stopped may have got no further than that.
        model = problem.join(result.coef, result.intercept)
        constant = result.converged and is_constant(problem, model)
        coef, intercept = data.reported(result.coef, result.intercept, problem.epsilon)
        result = replace(result, coef=coef, intercept=intercept, dual=None, ball=data.ball)
        info = {**result.info, "seen_scores": _some_scores(data.matrix, result)}
        set_result(self, replace(result, info=info))
        title = type(self).__name__
        if not result.converged:
            warn(
                f"{title} {result.status}: the duality gap is {result.gap:.2e} nats, tol is "
                f"{self.tol:.2e} nats. {result.status.remedy}",
                ConvergenceWarning,
            )
        said = None
        if constant:
            limit = largest_radius(problem, exact=False)
            said = (
                f"{title} is constant: epsilon = {problem.epsilon:.4g} is at least epsilon_max = "
                f"{limit:.4g} of these data and this ball, so all coefficients are zero. "
                f"{self._if_constant}"
            )
        elif result.converged and not (is_dask(data.codes) or beyond_memory(data.matrix)):
            # Another pass over such samples would be a price for everyone.
            scores = self._scores(data.matrix)
            said = neglected(self.classes_.tolist(), data.codes, scores, self.ball_)
            if said is not None and data.is_sorted and not data.described:
                said += f" Also, {SORTED}."
        if said is not None:
            warn(said)

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
        refuse_elsewhere("a proof", X, y)
        ball = self.ball_ if kappa is None else self.ball_.replace(kappa=kappa)
        if isinstance(ball.kappa, str):
            raise ValueError(
                "kappa must be given, because the model was fitted with one kappa for each row"
            )
        data = training_data(clone(self), X, y, sample_weight, ball, self.n_jobs)
        result = solve_problem(data.problem, tol=self.tol, max_iter=self.max_iter)
        result.save_proof(path)

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
            ``x·β + b``; with two classes, positive where the second is predicted.
        """
        check_is_fitted(self, "coef_")
        n_columns = self.classes_.size if self.classes_.size > 2 else None
        return self._answers(X, _flat, n_columns)

    def to_sklearn(self) -> Any:
        """The fitted model as one of scikit-learn's own, to be served without drlogit.

        Returns
        -------
        LogisticRegression or Pipeline
            With the same coefficients; with the encoding of a table in front, if there is one.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import Pipeline

        check_is_fitted(self, "coef_")
        plain = LogisticRegression()
        plain.coef_, plain.intercept_ = self.coef_.copy(), self.intercept_.copy()
        plain.classes_, plain.n_features_in_ = self.classes_, self.coef_.shape[1]
        plain.n_iter_ = np.array([0], dtype=np.int32)
        encoding = self.encoding_
        if encoding is not None:
            return Pipeline([("columns", encoding), ("classifier", plain)])
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = np.array(self.feature_names_in_, dtype=object)
        return plain

    @property
    def encoding_(self) -> Any:
        """The encoding of a table as a fitted ``ColumnTransformer``; None if there is none."""
        check_is_fitted(self, "coef_")
        features = self.ball_.features
        if features.are_columns:
            return None
        return column_transformer(features.each, getattr(self, "feature_names_in_", None))

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
            odds of a row of zeros.  ``class`` is the class that the coefficient speaks for.  With
            an intercept, the coefficients of a category are relative to the average training
            sample.
        """
        import pandas as pd

        check_is_fitted(self, "coef_")
        features = self.ball_.features
        places = [
            (feature.name, level)
            for feature in features.each
            for level in (feature.levels or [None] * feature.columns.size)
        ]
        K, costs = self.coef_.shape[0], self.ball_.on(features).costs
        costs = np.sqrt(np.diag(costs)) if np.ndim(costs) == 2 else costs
        coef = self.coef_
        if self.fit_intercept:
            places, costs = [("(intercept)", None), *places], np.append(np.inf, costs)
            coef = np.column_stack([self.intercept_, coef])
        found = pd.DataFrame(places * K, columns=["column", "level"], dtype=object)
        found.insert(0, "class", np.repeat(self.classes_[-K:], len(places)))
        found["cost"], found["coefficient"] = np.tile(costs, K), coef.ravel()
        if K == 1:
            with np.errstate(over="ignore"):  # infinite odds are an answer
                found["odds_ratio"] = np.exp(found["coefficient"])
        return found

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most probable class of each sample of X."""
        check_is_fitted(self, "coef_")
        return self._answers(X, partial(_labels, self.classes_), None, self.classes_.dtype)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities for each sample of X, a column for each of ``classes_``.

        With more than two classes, the softmax of the scores.
        """
        probabilities: FloatArray = np.exp(self.predict_log_proba(X))  # lazy if X is
        return probabilities

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of :meth:`predict_proba`, finite however sure the model is."""
        check_is_fitted(self, "coef_")
        return self._answers(X, log_probabilities, self.classes_.size)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the samples whose class is predicted; of a Dask collection part by part."""
        if not is_dask(X):
            y = labels_in(X, y) if is_dataset(X) else y
            return float(super().score(X, y, sample_weight))
        from ..rows.dask_collections import share_of

        check_is_fitted(self, "coef_")
        return share_of(lambda X, y: self.predict(X) == np.asarray(y).ravel(), X, y, sample_weight)

    def _answers(
        self,
        X: Any,
        of_scores: Callable[[FloatArray], Any],
        n_columns: int | None,
        dtype: Any = np.float64,
    ) -> np.ndarray[Any, Any]:
        """What a function makes of the scores, lazily for a Dask collection."""
        if is_dataset(X):
            names = self.feature_names_in_
            known = self.ball_.features  # without remarks on each part
            parts = (matrix_of(self, part, known) for part in parts_of(X, names))
            return np.concatenate([of_scores(self._scores(part)) for part in parts])
        if is_dask(X):
            from ..rows.dask_collections import map_rows  # an optional package

            part = partial(self._answers, of_scores=of_scores, n_columns=n_columns)
            lazy: np.ndarray[Any, Any] = map_rows(part, X, n_columns, dtype)
            return lazy
        return np.asarray(of_scores(self._scores(matrix_of(self, X))))

    def _scores(self, matrix: Matrix) -> FloatArray:
        """A column of scores for each row of coefficients."""
        product = safe_sparse_dot(matrix, self.coef_.T, dense_output=True)
        return np.asarray(product + self.intercept_)


def result_of(model: RobustLinearClassifier) -> Result:
    """The result of the fit, which keeps nothing of the length of the data."""
    check_is_fitted(model, "coef_")
    assert model._result is not None
    return model._result


def set_result(model: RobustLinearClassifier, result: Result) -> None:
    """Set the fitted attributes that follow from the result of the fit."""
    model.coef_ = np.atleast_2d(result.coef)
    model.intercept_ = np.atleast_1d(result.intercept)
    model.lambda_ = float(result.lam)
    model.worst_case_loss_ = float(result.objective)
    model.dual_gap_ = float(result.gap)
    model.n_iter_ = int(result.n_iter)
    model.ball_, model._result = result.ball, result


def _some_scores(X: Any, result: Result) -> FloatArray:
    """Scores of some rows of the fit, by which a promise knows them; none if not in memory."""
    if is_dask(X) or beyond_memory(X):
        return np.empty(0)
    rows = X[:: -(-X.shape[0] // _KNOWN_ROWS)]
    scores = rows @ np.atleast_2d(result.coef)[0] + np.atleast_1d(result.intercept)[0]
    return np.asarray(scores, dtype=np.float64)


def _unpenalised(costs: FloatArray, features: Any, n_samples: int) -> str:
    """A warning if infinite costs leave many coefficients unpenalised for few samples, or ""."""
    free = [feature for feature in features.each if np.isinf(costs[feature.columns]).any()]
    count = sum(max(feature.columns.size - 1, 1) for feature in free)
    if count * _SAMPLES_EACH <= n_samples:
        return ""
    return (
        f"{count} coefficients are not penalised, and there are only {n_samples} samples: the cost "
        f"of {listed([f'{feature.name!r:.40}' for feature in free], 5)} is infinite. The model may "
        "overfit. Give these columns a finite cost or a tolerance."
    )


def _labels(classes: np.ndarray[Any, Any], scores: FloatArray) -> np.ndarray[Any, Any]:
    return np.asarray(classes[decided(scores)])


def _flat(scores: FloatArray) -> FloatArray:
    return scores[:, 0] if scores.shape[1] == 1 else scores


def log_probabilities(scores: FloatArray) -> FloatArray:
    """A column for each class; of two classes there is one score."""
    if scores.shape[1] == 1:
        return np.asarray(log_expit(np.column_stack([-scores, scores])))
    return np.asarray(log_softmax(scores, axis=1))
