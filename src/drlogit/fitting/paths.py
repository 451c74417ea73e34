"""Fits at many radii: the regularisation path.

The data are checked and scaled once; every fit then differs only in ε and κ.  Radii are visited
from the largest to the smallest, each fit starting where the ones before lead to, which usually
takes one full Gram matrix per radius (``prediction``, ``solvers.sequential_quadratic``).
"""

from __future__ import annotations

import math
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
from ..solvers.starts import start_pays
from .critical_radius import epsilon_max_of
from .grids import check_count, check_radii, radii_below
from .prediction import by_secant, by_sibling, for_cost
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


#: Radii at the beginning of a path that start from nothing: near ε_max the model is hardly more
#: than a constant, and no start for anything.
_FROM_NOTHING = 2

#: With flips, a radius this much smaller than the one before is far away.  Of a coarse path's, the
#: first one more then starts from nothing (a9a, halved: 24 iterations against 44 in the band).  On
#: few samples, where an iteration on some of them takes as long as one on all, so do others as long
#: as flips of more than this share of the labels crowd the kink (a1a: 20 ms against 30, below it
#: 34 against 18).
_FAR = 2.0
_CROWDED = 0.002

#: On as few samples a sibling's start pays if the last one was this close, in nats.  On a1a those
#: of the next κ take 5 to 10 iterations from 1e-4, 6 to 33 from 1e-3 and more from farther away; 12
#: to 15 lead from nothing to the same.
_NEAR = 1e-3


def solve_radii(
    problem: Problem,
    epsilons: FloatArray,
    kappa: float,
    *,
    warm_start: bool = True,
    siblings: Sequence[Result] | None = None,
    **controls: Any,
) -> Iterator[Result]:
    """Results for the radii in the order given, each started where those before lead to.

    ``siblings`` are as many results, if there are any: for these radii on most of the same samples,
    or for another κ on the same ones.
    """
    done: list[tuple[float, Result]] = []
    guide = None if siblings is None or not warm_start else _Guide(siblings)
    for k, epsilon in enumerate(epsilons):
        here = problem.with_radius(float(epsilon), kappa)
        start = None if guide is None else guide.start(here, done)
        if start is None and warm_start and k >= _FROM_NOTHING:
            start = None if _too_far(here, done[-1][0], k) else by_secant(here, *done)
        result = solve_problem(here, start=start, **controls)
        if start is not None and not result.converged and controls.get("max_iter") is None:
            # Not every solver notices a start that leads nowhere.
            cold = solve_problem(here, **controls)
            result = cold if cold.gap < result.gap else result
        if guide is not None:
            guide.learn(result)
        done = [*done[-1:], (here.epsilon, result)]
        yield result


class _Guide:
    """Starts from siblings, one radius after the other, and what the last one was worth."""

    def __init__(self, siblings: Sequence[Result]) -> None:
        self._left = iter(siblings)
        self._before: Result | None = None
        self._predicted = self._excess = math.nan

    def start(self, here: Problem, done: Sequence[tuple[float, Result]]) -> Result | None:
        """A start for the next radius; None where one from nothing is likely to be faster."""
        sibling, before = for_cost(here, next(self._left)), self._before
        self._before, self._predicted = sibling, math.nan
        if before is None or sibling.dual is not None:
            return sibling if self._large(here) or sibling.dual is not None else None
        start = by_sibling(here, sibling, before, done[-1][1])
        self._predicted = start.info["predicted"]
        # Where no prediction was tried before: problems with the same solution have the same value.
        excess = self._excess
        excess = self._predicted - sibling.objective if math.isnan(excess) else excess
        return start if self._large(here) or abs(excess) <= _NEAR else None

    @staticmethod
    def _large(here: Problem) -> bool:
        return start_pays(here.rows.n_nonzeros, known=False)

    def learn(self, result: Result) -> None:
        """By how much a prediction was above the optimum: the next one may be as far from it."""
        self._excess = self._predicted - result.objective


def _too_far(problem: Problem, epsilon_before: float, k: int) -> bool:
    """Whether the k-th radius of a path is reached sooner from nothing than from those before."""
    if not problem.cost.pair.flips or epsilon_before <= _FAR * problem.epsilon:
        return False
    crowded = problem.epsilon > _CROWDED * problem.kappa
    small = not start_pays(problem.rows.n_nonzeros, known=False)
    return k == _FROM_NOTHING or (small and crowded)


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
