"""The model with given (ε, κ), as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import ArrayLike

from ..problem.result import Result
from ..problem.stopping import Stop
from .robust_classifier import RobustLinearClassifier
from .training_data import TrainingData, training_data


@dataclass(eq=False, repr=False)
class DRLogisticRegression(RobustLinearClassifier):
    """Wasserstein distributionally robust logistic regression.

    Minimises the worst expected log-loss over all distributions within Wasserstein distance
    ``epsilon`` of the training data.  Moving a sample costs the transport norm of the move, and
    flipping its label costs ``kappa``, so ``epsilon / kappa`` is the largest share of labels that
    the adversary may flip.  Every fit has a certificate: on the data of the fit, no linear model
    has a worst-case loss below ``worst_case_loss_ - dual_gap_``.

    Features are used in their own units.  Scale them, or state with ``feature_costs`` what moving
    each of them costs.

    Parameters
    ----------
    epsilon : float
        Radius of the Wasserstein ball, at least 0 (0: plain logistic regression).
    kappa : float, dict or array of shape (n_samples,)
        Cost of flipping a label, positive: at most a share ``epsilon / kappa`` of the labels can
        be flipped.  ``inf`` means that labels are correct, 0 that they are unknown.  The cost may
        depend on the recorded label, as ``{"good": 5.0, "bad": inf}``, or on the
        sample, as an array.
    norm : {"l1", "l2", "linf"}
        Norm in which moves of the features are measured.  ``"l1"`` bounds ``max|β_j|`` by λ,
        ``"l2"`` bounds the length of β, and ``"linf"`` bounds ``Σ|β_j|``, which sets coefficients
        to zero.
    fit_intercept : bool
        Whether to fit an intercept.  It is not penalised.
    feature_costs : array of shape (n_features,), dict or "std", optional
        Cost of moving each column by one unit, or of changing its category.  A column with cost
        ``inf`` cannot move, and its coefficient is not penalised.  A dict gives costs for some
        columns, by name or position; the others cost 1.  ``"std"`` (also as a cost in a dict)
        measures a number in standard deviations without rescaling it.
    categories : list of lists of columns, optional
        Groups of one-hot columns, by position or name.  The adversary may only change one category
        of a group into another, at the common ``feature_costs`` of its columns.  "None of these
        columns" is also a category if a training row has no 1 in the group, as with a dropped
        level, or if the group contains None.
    bounds : pair (lower, upper), dict or "data", optional
        Range of each feature: two numbers, or two arrays with one number per feature, infinite
        for none; or a dict of columns to pairs, as ``{"age": (0, 120)}``; or ``"data"`` for the
        range in the training data.
    categorical_features : "from_dtype", list of columns, or None
        Which columns of a table are categories.  ``"from_dtype"`` takes the columns of text,
        categories or truth values of a pandas or polars frame.  A missing value is a level of its
        own.  A level that is not in the training data is scored like the average training sample.
    numbers : list of columns, optional
        Columns of text that hold numbers, such as ``"$1,234.50"``, ``"12 %"`` or ``"1.234,5"``.
        The column decides whether the decimal mark is a point or a comma.  Other text counts as
        missing.
    missing : {"error", "median", "mean"}
        Replacement for missing numbers in a frame or dense array; ``"error"`` refuses them.
    solver : str
        ``"auto"`` or the name of a solver of the joint problem, as in :func:`~drlogit.solve`.
    tol : float
        Largest duality gap, absolute, in nats of log-loss.
    max_iter : int, optional
        Largest number of iterations; None for the default of the solver.
    max_time : float, optional
        Time limit in seconds, checked between iterations.  The best certified model so far is
        kept, with a ``ConvergenceWarning``.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply those of the samples; ``"balanced"`` gives every
        class the same total weight.
    label_noise : float, dict or matrix, optional
        Known share of wrongly recorded labels: of every true class, by true class (dict), or of
        each true class (rows) as each recorded class (columns).  The fit and its certificate are
        about recorded labels; :meth:`predict` and :meth:`predict_proba` are about true labels.
    warm_start : bool
        Whether to start from the previous fit, if there is one of this shape.
    n_jobs : int, optional
        Number of threads; None chooses by the size of the data (see :func:`~drlogit.solve`).
    verbose : int
        If positive, print a line per iteration.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients β.  Two classes have one row; more classes have one row each, and the rows sum
        to zero.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts b.
    lambda_ : array of shape (1,)
        λ, the price of a unit of ``epsilon``: its effect on the worst-case loss.
    worst_case_loss_ : array of shape (1,)
        Worst expected log-loss within the radius of the training data, in nats.  It is not a bound
        for new samples.  With more than two classes, categories and bounds count as numbers, and
        this is an upper bound (``result_.info["as_numbers"]``).
    dual_gap_ : array of shape (1,)
        Certified duality gap, in nats: no linear model has a worst-case loss that is lower by more.
    n_iter_ : array of shape (1,)
        Iterations of the solver.
    epsilon_ : float
        The radius used.
    kappa_ : float, dict or "by sample"
        The flip cost used.
    result_ : Result
        Status, times and trace of the fit.  It keeps nothing of the length of the training data, so
        ``flip_share`` is empty; a worst case's ``distribution()`` has the flips.
    encoding_ : Encoding or None
        The encoding of a table with categories or replaced values; ``encoding_.names`` are the
        names of the columns of ``coef_``.  :meth:`coefficient_table` is easier to read.
    feature_costs_, categories_, bounds_
        Costs, groups and bounds of the columns of ``coef_``.
    label_noise_ : array of shape (n_classes, n_classes) or None
        Shares of each true class (rows) that are recorded as each class (columns).
    columns_seen_ : array of shape (3, n_columns) or None
        Smallest number, largest number and share of missing values of each column of a frame;
        :meth:`predict` uses them for its warnings.
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

    epsilon: float = 0.01
    kappa: Any = 1.0
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
            Features; also ``np.memmap``, and Dask arrays or data frames.
        y : array of shape (n_samples,)
            Class labels of any type; also a Dask array or series.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights.  Only their proportions matter, so ``epsilon`` keeps its
            meaning.  A weight of two equals a repeated sample.
        kappa : array of shape (n_samples,), optional
            Cost of flipping each label, in place of the parameter ``kappa``.  Pipelines and
            searches route it like weights.

        Returns
        -------
        DRLogisticRegression
            The fitted estimator itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            The duality gap is larger than ``tol``.
        UserWarning
            The model is constant because ``epsilon`` is too large; a column is ignored or looks
            like numbers written as text; many coefficients are not penalised; a class is almost
            never predicted.
        UnscaledDataWarning
            Some columns vary by orders of magnitude more than others, and no costs are stated.

        Raises
        ------
        KeyboardInterrupt
            The fit was interrupted (Ctrl-C).  If iterations had begun, the estimator keeps the best
            certified model so far.  A second interrupt aborts at once.
        """
        stop = Stop(self.max_time, keeps=True)
        with self._unless_it_fails():
            self._fit(X, y, sample_weight, self.kappa if kappa is None else kappa, stop)
        if stop.interrupted:  # so that a search, a pipeline or a script stops as well
            raise KeyboardInterrupt(
                f"{type(self).__name__} was interrupted. It keeps the best certified model so far; "
                f"the duality gap is {self.dual_gap_[0]:.2e} nats"
            )
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, kappa: Any, stop: Stop) -> None:
        data = training_data(self, X, y, sample_weight, kappa)
        problem = data.pose(self.epsilon, kappa, self.n_jobs)
        self._advise(problem.rows, robust=problem.epsilon > 0.0)
        self._fit_problem(data, problem, stop, verbose=self.verbose, start=self._start(data))

    def _start(self, data: TrainingData) -> Result | None:
        """The earlier result, if ``warm_start`` is set and its shape matches."""
        earlier = getattr(self, "result_", None) if self.warm_start else None
        shape = (data.X.shape[1],) if data.n_classes == 2 else (data.n_classes, data.X.shape[1])
        return earlier if earlier is not None and earlier.coef.shape == shape else None
