"""The model with a given ball, as a scikit-learn classifier."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import ArrayLike

from ..fitting.solving import persistently
from ..problem.norms import NormName
from ..problem.result import Result
from ..problem.stopping import Stop
from .robust_classifier import RobustLinearClassifier, result_of
from .training_data import TrainingData, training_data


@dataclass(eq=False, repr=False)
class DRLogisticRegression(RobustLinearClassifier):
    """Wasserstein distributionally robust logistic regression.

    Minimises the worst expected log-loss over all distributions in a :class:`~drlogit.Ball` around
    the training data: rows may be moved and labels may be flipped, at a cost, as long as the mean
    cost is at most ``epsilon``.  Every fit has a certificate: on the data of the fit, no linear
    model has a worst-case loss below ``worst_case_loss_ - dual_gap_``.

    Parameters
    ----------
    epsilon : float, optional
        Radius of the ball, at least 0 (0: plain logistic regression).
    kappa : float or dict, optional
        Cost of flipping a label, positive: at most a share ``epsilon / kappa`` of the labels can
        be wrong.  ``inf`` means that labels are correct.  A dict has a cost for each label.
    norm : {"l1", "l2", "linf"}, optional
        Norm in which moves of several numbers of a row are added.
    ball : Ball, optional
        What may be wrong with the data.  ``epsilon``, ``kappa`` and ``norm`` replace its parts if
        they are given beside it.  The default is :class:`~drlogit.Ball()`: sampling error, with
        correct labels.
    fit_intercept : bool
        Whether to fit an intercept.  It is not penalised.
    categorical_features : "from_dtype", list of columns, or None
        Which columns of a table are categories.  ``"from_dtype"`` takes the columns of text,
        categories or truth values of a pandas or polars frame.  A missing value is a level of its
        own.  A level that is not in the training data is scored like the average training sample.
    missing : {"error", "median", "mean"}
        Replacement for missing numbers in a frame or dense array; ``"error"`` refuses them.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply those of the samples; ``"balanced"`` gives every
        class the same total weight.
    tol : float
        Largest duality gap, absolute, in nats of log-loss.
    max_iter : int, optional
        Largest number of iterations; None for the default of the method.
    max_time : float, optional
        Time limit in seconds, checked between iterations.  The best certified model so far is
        kept, with a ``ConvergenceWarning``.
    warm_start : bool
        Whether to start from the previous fit, if there is one of this shape.
    n_jobs : int, optional
        Number of threads; None chooses by the size of the data (see :func:`~drlogit.solve`).
    verbose : int
        If positive, print a line per iteration, and how much of a dataset is read.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients β.  Two classes have one row, which speaks for the second of ``classes_``; more
        classes have one row each, and the rows sum to zero.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts b.
    ball_ : Ball
        The ball of the fit in plain numbers and in the units of the table; ``str(ball_)`` says what
        it allows.  If there was one ``kappa`` for each row, its ``kappa`` is ``"by row"``.
    lambda_ : float
        λ, the price of a unit of ``epsilon``: its effect on the worst-case loss.
    worst_case_loss_ : float
        Worst expected log-loss within the ball, in nats.  It is not a bound for new samples.  With
        more than two classes, categories and bounds count as numbers, and this is an upper bound.
    dual_gap_ : float
        Certified duality gap, in nats: no linear model has a worst-case loss that is lower by more.
    n_iter_ : int
        Iterations of the solver.
    encoding_ : ColumnTransformer or None
        The encoding of a table with categories or replaced values.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if they all have one that is a string.

    See Also
    --------
    DRLogisticRegressionCV : Chooses ``epsilon`` and ``kappa`` by cross-validation.
    drlogit.solve : The same fit as a function of arrays.

    Examples
    --------
    >>> import drlogit
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ball = drlogit.Ball.tolerating(labels=0.05, numbers=0.1)
    >>> model = drlogit.DRLogisticRegression(ball=ball).fit(X, y)
    >>> print(f"{model.score(X, y):.2f}")
    0.96
    >>> model.dual_gap_ <= 1e-6
    True
    """

    epsilon: float | None = None
    kappa: Any = None
    norm: NormName | None = None
    _: KW_ONLY
    warm_start: bool = False

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        kappa: ArrayLike | None = None,
    ) -> DRLogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features; also ``np.memmap``, Dask arrays or data frames, and a
            ``pyarrow.dataset.Dataset``, which may be larger than memory.
        y : array of shape (n_samples,)
            Class labels of any type; also a Dask array or series, and of a dataset the name of
            the column that has them.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights, which count as repetitions.
        kappa : array of shape (n_samples,), optional
            Cost of flipping each label, in place of the parameter.  Pipelines and searches route it
            like weights.

        Returns
        -------
        DRLogisticRegression
            The fitted estimator itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            The duality gap is larger than ``tol``.
        UserWarning
            The model is constant because ``epsilon`` is too large; more than a tenth of the labels
            may be wrong; a column is ignored or looks like something else than it is; many
            coefficients are not penalised; a class is almost never predicted.

        Raises
        ------
        KeyboardInterrupt
            The fit was interrupted (Ctrl-C).  If iterations had begun, the estimator keeps the best
            certified model so far.  A second interrupt aborts at once.
        """
        stop = Stop(self.max_time, keeps=True)
        fitted = copy.copy(self)  # a fit that fails leaves the estimator as it was
        fitted._fit(X, y, sample_weight, kappa, stop)
        self.__dict__ = fitted.__dict__
        if stop.interrupted:  # so that a search, a pipeline or a script stops as well
            raise KeyboardInterrupt(
                f"{type(self).__name__} was interrupted. It keeps the best certified model so far; "
                f"the duality gap is {self.dual_gap_:.2e} nats"
            )
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, kappa: Any, stop: Stop) -> None:
        ball = self._stated_ball()
        if kappa is not None:
            ball = ball.replace(kappa=kappa)

        data: TrainingData

        def fit(known: Result | None) -> Result:
            nonlocal data
            data = training_data(self, X, y, sample_weight, ball, self.n_jobs)
            if known is None:
                self._advise(data)
                known = self._start(data)
            return self._solved(data.problem, stop, verbose=self.verbose, start=known)

        result = persistently(fit, stop)
        self._conclude(data, result)

    def _start(self, data: TrainingData) -> Result | None:
        """The earlier result, if ``warm_start`` is set and its shape matches."""
        earlier = result_of(self) if self.warm_start and hasattr(self, "coef_") else None
        K, width = data.classes.size, data.matrix.shape[1]
        shape = (width,) if K == 2 else (K, width)
        return earlier if earlier is not None and earlier.coef.shape == shape else None
