"""The model with given (ε, κ), as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from ..fitting.solving import SolverName
from ..fitting.suggested_radius import suggested_radius
from ..problem.classes import ClassProblem
from ..problem.label_costs import can_flip, flips_in_words, kappa_text
from ..problem.norms import NormName
from ..problem.problem import Problem
from ..problem.result import Result
from ..problem.stopping import Stop
from .robust_classifier import RobustLinearClassifier
from .tables.encoding import Fill
from .training_data import TrainingData


class DRLogisticRegression(RobustLinearClassifier):
    """Wasserstein distributionally robust logistic regression.

    Minimises the worst expected log-loss over all distributions within Wasserstein distance
    ``epsilon`` of the training data, where moving a sample costs the transport norm of the move
    and flipping its label costs ``kappa``: ``epsilon / kappa`` is the largest share of labels
    that the adversary may flip.  Every fit comes with a certificate: on the data it was fitted to,
    no linear model has a worst-case loss below ``worst_case_loss_ - dual_gap_``.

    Features are used as given.  Scale them so that a step of one means the same everywhere, or
    say with ``feature_costs`` how hard each is to move.

    Parameters
    ----------
    epsilon : float or "auto"
        Radius of the Wasserstein ball, at least 0 (0: plain logistic regression).  ``"auto"``
        takes it from :func:`~drlogit.suggest_radius`, which needs no tuning.  It allows for
        sampling error of labels that do not flip, so it goes best with ``kappa=inf``: a small one
        turns the same radius into a large share of flipped labels; ``fit`` warns of that.  Weights
        enter it through ``Σ w_i²`` (unequal ones make for fewer effective samples), so here a
        weight of two is not the same as a repeated sample.
    kappa : float, dict, array of shape (n_samples,) or matrix
        Cost of flipping a label, positive: at most a share ``epsilon / kappa`` of the labels can
        be flipped.  ``inf`` if labels are beyond doubt.  By label as recorded, as
        ``{"good": 5.0, "bad": inf}`` or a matrix whose rows are the observed labels, or one for
        each sample, where some labels are more certain than others; 0 for labels that are unknown.
    norm : {"l1", "l2", "linf"}
        Transport norm on the features.  ``"l1"`` bounds ``max|β_j|`` by λ, ``"l2"`` the length
        of β, ``"linf"`` bounds ``Σ|β_j|`` (and sets coefficients to zero).
    fit_intercept : bool
        Whether to fit an intercept.  It is not penalised.
    feature_costs : array of shape (n_features,), dict or "std", optional
        How hard each column is to move, by one unit or from one category to another; ``inf`` for
        those that cannot move, whose coefficients are not penalised.  A dict has costs for some
        columns, by name or position, the others keep 1.  ``"std"`` (also as a cost in a dict)
        measures a number in standard deviations; nothing is rescaled.
    categories : list of lists of columns, optional
        Groups of one-hot columns, by position or name; the adversary may only change one category
        of a group into another, at the common ``feature_costs`` of its columns.  "None of these"
        is a category, too, if training rows have no 1 in the group, as with a dropped level, or if
        the group holds None.  A group that is a dict of columns to numbers, as ``{3: 0, 4: 1}``, is
        ordered: a change costs the distance of the two numbers times the columns' cost.
    bounds : pair (lower, upper), dict or "data", optional
        Ends of what each feature can be: numbers, or one per feature, infinite for none; or a dict
        of columns to pairs, as ``{"age": (0, 120)}``; or ``"data"``, the ends in the data.
    categorical_features : "from_dtype", list of columns, or None
        Which columns of a table are categories, each of which is encoded with all its levels and
        moves as a category: those of text, categories or truth values (in a frame of pandas or
        polars), or those given by name or position, or none.  A missing category is a category; a
        level that training did not show is scored as the average sample.
    ordinal : dict of columns to lists of levels, optional
        Columns of a table with ordered levels, as ``{"grade": ["low", "mid", "high"]}``: a change
        by k levels costs k times the column's cost.  An ordered categorical of pandas needs no
        entry.
    numbers : list of columns, optional
        Columns of text that hold numbers, such as ``"$1,234.50"``, ``"12 %"`` or ``"1.234,5"``;
        whether the decimal mark is a point or a comma, the column tells.  Other text is missing.
    missing : {"error", "median", "mean"}
        What stands in for a missing number in a frame or dense array.
    solver : str
        ``"auto"`` or the name of a solver of the joint problem, as in :func:`~drlogit.solve`.
    tol : float
        Wanted duality gap, absolute, in nats of log-loss.
    max_iter : int, optional
        Limit on iterations; None for the solver's own.
    max_time : float, optional
        Limit in seconds, counted from the call and looked at between iterations; None for none.
        The best certified point so far is kept, with a ``ConvergenceWarning``.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply those of the samples; ``"balanced"`` gives every
        class the same total weight.
    label_noise : float, dict or matrix, optional
        Share of labels known to be recorded wrongly: of each true class, of classes by label, or of
        each true class (rows) as each other one (columns).  The fit and its certificate speak of
        labels as recorded, :meth:`predict` and :meth:`predict_proba` of the true ones.
    warm_start : bool
        Whether to start from the previous fit, if there is one of this shape.
    n_jobs : int, optional
        How many threads the fit uses (None: as many as pay, see :func:`~drlogit.solve`).
    verbose : int
        Print a line per iteration if positive.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients β; one row if there are two classes, and with more a softmax, rows that sum to
        zero.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts b.
    lambda_ : array of shape (1,)
        λ, what a unit of ``epsilon`` adds to the worst-case loss.
    worst_case_loss_ : array of shape (1,)
        Worst expected log-loss within the radius of the data it was fitted to, in nats; no bound
        for new samples.  With more than two classes, categories and bounds are taken as numbers
        there, and this is an upper bound (``result_.info["as_numbers"]``).
    dual_gap_ : array of shape (1,)
        How much lower the worst-case loss of the best model can be at most, in nats.
    n_iter_ : array of shape (1,)
        Iterations of the solver.
    epsilon_ : float
        The radius used.
    kappa_ : float, dict or "by sample"
        The flip cost used.
    result_ : Result
        How the fit ended: status, times, trace.  Training data are not kept, and nothing of
        their length: ``flip_share`` is empty here.  Ask
        :func:`~drlogit.worst_case_distribution` for the flips.
    encoding_ : Encoding or None
        How columns became features, if some are categories or filled in: ``encoding_.names`` are
        those of the columns of ``coef_``; :meth:`coefficient_table` is easier to read.
    feature_costs_, categories_, bounds_
        How distance was measured, for each column of ``coef_``.
    label_noise_ : array of shape (n_classes, n_classes) or None
        Shares of each true class (rows) that are recorded as each class (columns).
    columns_seen_ : array of shape (3, n_features_in_) or None
        Of the columns of a frame the smallest and the largest number, and the share of missing
        values: :meth:`predict` warns of numbers far outside, and of columns that are empty now.
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

    def __init__(
        self,
        epsilon: float | str = 0.01,
        kappa: Any = 1.0,
        *,
        norm: NormName = "l1",
        fit_intercept: bool = True,
        feature_costs: Any = None,
        categories: Any = None,
        bounds: Any = None,
        categorical_features: Any = "from_dtype",
        ordinal: Mapping[Any, Sequence[Any]] | None = None,
        numbers: Sequence[Any] | None = None,
        missing: Fill = "error",
        solver: SolverName = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        max_time: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        label_noise: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.kappa = kappa
        self.norm = norm
        self.fit_intercept = fit_intercept
        self.feature_costs = feature_costs
        self.categories = categories
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.ordinal = ordinal
        self.numbers = numbers
        self.missing = missing
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.class_weight = class_weight
        self.label_noise = label_noise
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

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
            Class labels, of any kind; with Dask also as an array or series there.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights.  Only their proportions matter, so ``epsilon`` keeps its
            meaning; a weight of two is as good as a repeated sample (but not for
            ``epsilon="auto"``).
        kappa : array of shape (n_samples,), optional
            What it costs to flip each label, instead of the parameter ``kappa``; as metadata it
            is routed and cut into folds like weights.

        Returns
        -------
        DRLogisticRegression
            The fitted estimator itself.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            The duality gap is larger than ``tol``.
        UserWarning
            ``epsilon`` is so large that the model is constant; or ``"auto"`` meets labels that may
            flip; columns are left out, or look like numbers written as text; many coefficients are
            not penalised.
        UnscaledDataWarning
            Some columns vary by orders of magnitude more than others, and no costs are stated.

        Raises
        ------
        KeyboardInterrupt
            The fit was interrupted (Ctrl-C).  Once iterations have begun the estimator is fitted
            all the same, with the best certified point so far; a second interrupt aborts at once.
        """
        if isinstance(self.epsilon, str) and self.epsilon != "auto":
            raise ValueError(f"epsilon must be a number >= 0 or 'auto', got {self.epsilon!r}")
        stop = Stop(self.max_time, keeps=True)
        with self._unless_it_fails():
            self._fit(X, y, sample_weight, self.kappa if kappa is None else kappa, stop)
        if stop.interrupted:  # whoever called us is to stop as well: a search, a pipeline, a script
            raise KeyboardInterrupt(
                f"{type(self).__name__} was interrupted. It is fitted with the best certified "
                f"point so far; the gap is {self.dual_gap_[0]:.2e} nats"
            )
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, kappa: Any, stop: Stop) -> None:
        data = self._check_data(X, y, sample_weight, kappa)
        epsilon = 1.0 if isinstance(self.epsilon, str) else self.epsilon
        problem = data.pose(epsilon, kappa, self.n_jobs)
        self._advise(problem.rows, robust=epsilon > 0.0)
        if self.epsilon == "auto":
            problem = problem.with_radius(suggested_radius(problem))
        constant = self._fit_problem(
            data, problem, stop, verbose=self.verbose, start=self._start(data)
        )
        if self.epsilon == "auto" and not constant:
            self._warn_about_flips(problem)

    def _warn_about_flips(self, problem: Problem | ClassProblem) -> None:
        """Warn where labels can flip: the radius was not made for that."""
        if can_flip(self.kappa_):
            allowed = flips_in_words(problem.epsilon, self.kappa_)
            warnings.warn(
                f"epsilon='auto' is {problem.epsilon:.4g}, which allows for sampling error with "
                f"labels that do not flip; for kappa={kappa_text(self.kappa_)} {allowed}: choose a "
                "larger kappa, inf if labels are right, or epsilon yourself.",
                UserWarning,
                stacklevel=4,
            )

    def _start(self, data: TrainingData) -> Result | None:
        """The earlier result to start from, if wanted and of this shape."""
        earlier = getattr(self, "result_", None) if self.warm_start else None
        shape = (data.X.shape[1],) if data.n_classes == 2 else (data.n_classes, data.X.shape[1])
        return earlier if earlier is not None and earlier.coef.shape == shape else None
