"""What a fit starts from, and how far that is from the optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..dual.certify import pieces_of_dual_point
from ..dual.label_points import two_labels
from ..problem.problem import Problem
from ..problem.result import Result
from ..rows.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Start:
    """A model to start from.

    Attributes
    ----------
    model : array
        Coefficients, with the intercept if there is one, as the problem's rows have them.
    lam : float
        λ; not a number where the best one for the model is to be found first.
    distance : float
        By how much its objective is expected to be above the optimum, in nats.
    sampled : bool
        Whether that is a sampling error: it is the best model for other samples like these.
    """

    model: FloatArray
    lam: float
    distance: float
    sampled: bool = False


def sampling_error(n_columns: int, n_samples: float, other: float = np.inf) -> float:
    """The expected excess loss of the best model on a sample, in nats: on new samples or all."""
    return 0.5 * n_columns * abs(1.0 / n_samples - 1.0 / other)


def start_from(problem: Problem, result: Result) -> Start | None:
    """An earlier result, for these or other samples, radii, costs or norms, as a start.

    None if its coefficients are not finite, or not those of as many classes.
    """
    if problem.several and len(np.atleast_2d(result.coef)) != problem.n_classes:
        return None
    model = problem.join(result.coef, result.intercept)
    if not np.isfinite(model).all():
        return None
    # No step moves coefficients of columns without an entry, which other samples may have had.
    model[..., problem.rows.column_scale == 0.0] = 0.0
    ball, rows, epsilon, kappa = result.column_ball, problem.rows, problem.epsilon, problem.kappa
    same = result.flip_share.shape == (rows.n_samples,)
    known = ball is not None and ball.norm == problem.norm.name
    lam = result.lam if known and np.isfinite(result.lam) else np.nan
    error = 0.0 if same else 2.0 * sampling_error(rows.n_columns, rows.n_samples)
    if ball is None or epsilon == 0.0 or not lam > 0.0:
        return Start(model, lam, max(error, _UNKNOWN), not same)
    # The optimum is concave in ε with slope λ, which falls no faster than 1/ε; κλ hardly changes
    # with κ as long as labels are what the adversary changes most.
    change = (epsilon - ball.epsilon) ** 2 / min(epsilon, ball.epsilon or epsilon)
    own = ball.kappa.unit
    if own != kappa:
        if not np.isfinite(own + kappa):
            return Start(model, np.nan, _UNKNOWN)
        change += epsilon * (kappa / own - 1.0) ** 2
        lam *= own / kappa
    change *= 0.5 * lam
    return Start(model, lam, error + change, not same and error > change)


def with_lambda(problem: Problem, start: Start) -> Start:
    """The start with a λ that its model allows: its own, or else the best one."""
    if start.lam > 0.0 and problem.allows(start.model, start.lam):
        return start
    return replace(start, lam=problem.best_lambda(start.model))


def dual_point_of(problem: Problem, start: Result) -> Any:
    """The dual point of a result for this radius, flip cost and samples, as a state of the rows.

    None if it has none, and with several classes.
    """
    dual, rows, ball = start.dual, problem.rows, start.column_ball
    wanted = problem.epsilon, problem.kappa
    changed = ball is not None and (ball.epsilon, ball.kappa.unit) != wanted
    if changed or problem.several:
        return None
    if problem.domains is not None:
        return pieces_of_dual_point(problem, dual)
    if dual is None or dual.s.shape != (rows.n_samples,):
        return None
    return two_labels(rows, rows.pair(rows.scatter(dual.s), rows.scatter(dual.flip_share)))


#: Distance of a result of which nothing is known, in nats: a tenth of what a constant model has.
_UNKNOWN = 0.07
