"""Fits at many radii: the regularisation path.

The data are checked and scaled once; every fit then differs only in ε and κ.  Radii are visited
from the largest to the smallest, each fit starting from the one before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..problem.norms import Norm
from ..problem.problem import Problem, build_problem
from ..problem.result import Result
from ..rows.arrays import FloatArray
from .critical_radius import epsilon_max_of
from .grids import check_count, check_radii, radii_below
from .solving import solve_problem


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Models over a range of radii, one entry or row for each, the largest radius first.

    Attributes
    ----------
    epsilons : array of shape (n_epsilons,)
        Radii ε, descending.
    coefs : array of shape (n_epsilons, n_features)
        Coefficients β.
    intercepts, lambdas : arrays of shape (n_epsilons,)
        Intercepts b and multipliers λ.
    objectives, gaps : arrays of shape (n_epsilons,)
        Worst-case expected log-losses, and how far from optimal each can be at most, in nats.
    n_iters : array of shape (n_epsilons,)
        Iterations of the solver.
    kappa, norm
        The flip cost κ and the transport norm, the same for all.
    epsilon_max : float
        The radius from which on the model is constant.
    """

    epsilons: FloatArray
    coefs: FloatArray
    intercepts: FloatArray
    lambdas: FloatArray
    objectives: FloatArray
    gaps: FloatArray
    n_iters: np.ndarray[Any, np.dtype[np.int64]]
    kappa: float
    norm: str
    epsilon_max: float

    def __len__(self) -> int:
        return self.epsilons.size

    def __repr__(self) -> str:
        return (
            f"RegularizationPath({len(self)} radii from {self.epsilons[0]:.4g} to "
            f"{self.epsilons[-1]:.4g}, kappa={self.kappa:g}, norm={self.norm!r}, "
            f"largest gap {self.gaps.max():.1e})"
        )


def regularization_path(
    X: Any,
    y: ArrayLike,
    epsilons: ArrayLike | None = None,
    *,
    n_epsilons: int = 30,
    min_fraction: float = 1e-3,
    kappa: float = 1.0,
    norm: str | Norm = "l1",
    fit_intercept: bool = True,
    feature_costs: ArrayLike | None = None,
    categories: Any = None,
    bounds: Any = None,
    sample_weight: ArrayLike | None = None,
    solver: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    warm_start: bool = True,
    callback: Callable[[Result], Any] | None = None,
) -> RegularizationPath:
    """Fit the model over a range of radii, from the one that makes it constant downwards.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Features.
    y : array of shape (n_samples,)
        Labels of two kinds; the one that sorts last is the positive class.
    epsilons : array, optional
        Radii, in any order; by default ``n_epsilons`` of them, evenly spaced on a logarithmic
        scale from :func:`~drlogit.epsilon_max` down to ``min_fraction`` of it.
    n_epsilons : int
        How many radii, if they are not given.
    min_fraction : float
        The smallest radius as a fraction of the largest, if radii are not given.
    kappa : float
        Cost of flipping a label: ``epsilon / kappa`` is the largest share of labels that the
        adversary may flip.  ``inf`` if labels are beyond doubt.
    norm, fit_intercept, feature_costs, categories, bounds, sample_weight, solver, tol, max_iter
        As in :func:`~drlogit.solve`.
    warm_start : bool
        Whether each fit starts where the ones before lead to.
    callback : callable, optional
        Called with the :class:`~drlogit.Result` of each radius as soon as it is there.

    Returns
    -------
    RegularizationPath
        Radii in descending order with their models and certificates.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        Some gaps are larger than ``tol``.

    Examples
    --------
    >>> import drlogit
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> path = drlogit.regularization_path(X, y, n_epsilons=5, kappa=1.0)
    >>> path.coefs.shape
    (5, 30)
    >>> bool((path.gaps <= 1e-6).all())
    True
    """
    problem = build_problem(
        X, y, epsilon=0.0, kappa=kappa, norm=norm, fit_intercept=fit_intercept,
        feature_costs=feature_costs, categories=categories, bounds=bounds,
        sample_weight=sample_weight,
    )  # fmt: skip
    limit = epsilon_max_of(problem)
    if epsilons is None:
        radii = radii_below(limit, check_count(n_epsilons, "n_epsilons"), min_fraction)
    else:
        radii = check_radii(epsilons)
    results = []
    for result in solve_radii(
        problem, radii, kappa, warm_start=warm_start, solver=solver, tol=tol, max_iter=max_iter
    ):
        results.append(result)
        if callback is not None:
            callback(result)
    warn_about_gaps("regularization_path", [result.gap for result in results], tol)
    return RegularizationPath(
        epsilons=radii,
        coefs=np.array([result.coef for result in results]),
        intercepts=np.array([result.intercept for result in results]),
        lambdas=np.array([result.lam for result in results]),
        objectives=np.array([result.objective for result in results]),
        gaps=np.array([result.gap for result in results]),
        n_iters=np.array([result.n_iter for result in results]),
        kappa=problem.kappa,
        norm=problem.norm.name,
        epsilon_max=limit,
    )


def solve_radii(
    problem: Problem,
    epsilons: FloatArray,
    kappa: float,
    *,
    warm_start: bool = True,
    **controls: Any,
) -> Iterator[Result]:
    """Results for the radii in the order given, each started from the one before."""
    last: Result | None = None
    for epsilon in epsilons:
        here = problem.with_radius(float(epsilon), kappa)
        last = solve_problem(here, start=last if warm_start else None, **controls)
        yield last


def warn_about_gaps(caller: str, gaps: Sequence[float], tol: float) -> None:
    """One ``ConvergenceWarning`` for all fits whose gap is larger than ``tol``."""
    open_gaps = [gap for gap in gaps if gap > tol]
    if open_gaps:
        warnings.warn(
            f"{caller}: {len(open_gaps)} of {len(gaps)} fits stopped before the duality gap was "
            f"within tol; the largest gap is {max(open_gaps):.2e} nats, tol is {tol:.2e} nats. "
            "Raise max_iter, or tol if that gap is small enough for you.",
            ConvergenceWarning,
            stacklevel=3,
        )
