"""The result of a fit, and reports of its progress.

A solver hands over a :class:`Solution`; :func:`drlogit.solve` certifies it and turns it into
a :class:`Result`.  On the way a solver reports :class:`Iterate` records to a callback;
:class:`Trace` is a callback that remembers them.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..rows.arrays import FloatArray
from .ball import Ball, ColumnBall
from .dual_point import DualPoint
from .proof import save_proof
from .stopping import Stop


class Status(enum.Enum):
    """How a solve ended; the value is the sentence for the user."""

    OPTIMAL = "optimal: the certified duality gap is within tol"
    MAX_ITER = "stopped at max_iter before the duality gap was within tol"
    MAX_TIME = "stopped at max_time before the duality gap was within tol"
    INTERRUPTED = "was interrupted before the duality gap was within tol"
    STALLED = "stopped because no further progress was possible in floating point"
    UNPROVEN = "ended by its own stopping rule, but the certified duality gap is above tol"
    STOPPED = "stopped by the callback"
    LOST = "stopped because workers were lost too often or did not answer"
    FAILED = "the external solver failed; the point returned is only a feasible start"

    def __str__(self) -> str:
        return self.value

    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        """Support skops, which calls this method; pickle calls Enum's ``__reduce_ex__``."""
        return Status, (self.value,)

    def judged(self, gap: float, tol: float) -> Status:
        """The certified status: a solver's own status counts only if the gap is too large."""
        if gap <= tol:
            return Status.OPTIMAL
        return Status.UNPROVEN if self is Status.OPTIMAL else self

    @property
    def remedy(self) -> str:
        """Advice for a gap that is too large."""
        limit = {Status.MAX_ITER: "max_iter, or ", Status.MAX_TIME: "max_time, or "}
        return f"Raise {limit.get(self, '')}tol if that gap is small enough for you."


#: A lower bound, or a function that computes it.
Bound: TypeAlias = float | Callable[[], float]


@dataclass
class Iterate:
    """The state of a solver after one iteration.  ``elapsed`` excludes the time of callbacks.

    A lower bound may need products with the data that the solver itself does not use.  It is
    therefore computed only if a callback reads ``dual_objective`` or ``gap``.  After the callback,
    an iterate whose bound was not read holds the best bound known at that time.
    """

    n_iter: int
    objective: float
    bound: Bound = field(repr=False)
    lam: float
    elapsed: float
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def dual_objective(self) -> float:
        """Certified lower bound on the optimum."""
        if callable(self.bound):
            self.bound = self.bound()
        return self.bound

    @property
    def gap(self) -> float:
        """Certified distance from optimal."""
        return self.objective - self.dual_objective

    def settle(self, known: float) -> None:
        """Fix the bound: keep a computed one, and replace a function by the ``known`` bound."""
        if callable(self.bound):
            self.bound = known


#: Called once per iteration; returning True stops the solver.
Callback = Callable[[Iterate], Any]


class Trace:
    """A callback that remembers every :class:`Iterate` it is given."""

    def __init__(self) -> None:
        self.iterates: list[Iterate] = []

    def __call__(self, iterate: Iterate) -> None:
        self.iterates.append(iterate)

    def __len__(self) -> int:
        return len(self.iterates)

    def __repr__(self) -> str:
        return f"Trace({len(self)} iterates)"

    def column(self, name: str) -> FloatArray:
        """One quantity over the iterations: a field, a property or an ``extra`` entry."""
        return np.array(
            [
                it.extra[name] if name in it.extra else float(getattr(it, name))
                for it in self.iterates
            ]
        )


class Monitor:
    """Passes iterates to trace, printed table and callback, and pauses the clock meanwhile.

    ``ended`` is the reason for an early end: the callback, the time limit or an interrupt.
    """

    def __init__(
        self, callback: Callback | None = None, verbose: int = 0, stop: Stop | None = None
    ) -> None:
        self.trace = Trace()
        self.ended: Status | None = None
        self.stop = stop or Stop()
        self._callback = callback
        self._verbose = verbose
        self._started = time.perf_counter()
        self._paused = 0.0

    @property
    def listening(self) -> bool:
        """Whether a callback or a printed table needs every iteration."""
        return self._callback is not None or self._verbose > 0

    @property
    def elapsed(self) -> float:
        """Solver seconds since the start."""
        return time.perf_counter() - self._started - self._paused

    def report(
        self,
        n_iter: int,
        objective: float,
        dual_objective: float,
        lam: float,
        better_bound: Callable[[], float] | None = None,
        **extra: float,
    ) -> bool:
        """Record one iteration; True if the run should end here.

        ``better_bound`` computes a bound above ``dual_objective`` if a callback asks for it.
        """
        now = time.perf_counter()
        elapsed = now - self._started - self._paused
        iterate = Iterate(n_iter, objective, dual_objective, lam, elapsed, extra)
        self.trace.iterates.append(iterate)
        if self._callback is None and not self._verbose:
            return self.over()
        iterate.bound = dual_objective if better_bound is None else better_bound
        if self._verbose:
            self._print(iterate)
        if self._callback is not None:
            try:
                if self._callback(iterate) is True:
                    self.ended = Status.STOPPED
            except KeyboardInterrupt:
                self.stop.interrupt()
        iterate.settle(dual_objective)
        self._paused += time.perf_counter() - now
        return self.over()

    def over(self) -> bool:
        """Whether the run should end; ``ended`` says why."""
        if self.ended is None:
            late = Status.MAX_TIME if self.stop.late else None
            self.ended = Status.INTERRUPTED if self.stop.interrupted else late
        return self.ended is not None

    def _print(self, it: Iterate) -> None:
        if len(self.trace) == 1:
            print(
                f"{'iter':>5} {'objective':>14} {'lower bound':>14} {'gap':>9} {'lambda':>10}"
                f" {'seconds':>8}"
            )
        print(
            f"{it.n_iter:5d} {it.objective:14.8f} {it.dual_objective:14.8f} {it.gap:9.2e}"
            f" {it.lam:10.4g} {it.elapsed:8.3f}",
            flush=True,
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer of a solver, before it is certified.

    ``point`` is its dual point: a :class:`drlogit.dual.label_points.LabelPoint`, or with domains
    :class:`drlogit.dual.pieces.PieceMasses` per block.  If it is None, the certificate derives a
    point from the coefficients.  ``lam`` is approximately the best λ for the coefficients.
    ``proven`` holds the objective and the lower bound by the solver's own sums.
    """

    coefficients: FloatArray
    status: Status
    n_iter: int
    point: Any = None
    info: dict[str, Any] = field(default_factory=dict)
    lam: float | None = None
    proven: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """A certified solution of problem (P), or of its fixed-λ version.

    Attributes
    ----------
    coef, intercept, lam
        β, b and λ; with several classes a row of ``coef`` and an intercept for each.
    objective, dual_objective, gap
        On the data it was fitted to: the worst-case expected log-loss of the model, a certified
        lower bound on what any model of the class can reach, and their difference, all in nats.
        The class consists of models with at most 10,000 log-odds per standard deviation of
        features that cannot move or are bounded, between two categories of one group, and at the
        means of all features (with several classes, between any two classes).  Coefficients of
        features that can move are not restricted.
    dual
        The point of the dual problem that proves ``dual_objective``, as :class:`DualPoint`.  None
        if it was not kept (it is as long as the samples), or if nothing is proven.
    status, n_iter, solver
        How it ended, after how many iterations, and which solver ran.
    setup_time, solve_time
        Seconds spent checking the input, and solving (callbacks excluded).
    trace
        The iterations, as :class:`Trace`.
    info
        Details of some solvers (inner iterations, statuses of other packages).
    ball
        The :class:`~drlogit.Ball` of the fit, resolved; None if it is not known.
    column_ball
        The same in plain numbers for the columns of X.
    """

    coef: FloatArray
    intercept: Any  # a number, or an array with one for each of several classes
    lam: float
    objective: float
    dual_objective: float
    gap: float
    dual: DualPoint | None
    status: Status
    n_iter: int
    solver: str
    setup_time: float
    solve_time: float
    trace: Trace
    info: dict[str, Any] = field(default_factory=dict)
    ball: Ball | None = None
    column_ball: ColumnBall | None = None

    @property
    def flip_share(self) -> FloatArray:
        """``a_i`` in [0, 1]: the share of sample i whose label the worst case flips."""
        return np.zeros(0) if self.dual is None else self.dual.flip_share

    def save_proof(self, path: str | os.PathLike[str]) -> None:
        """Write the dual point to a file, so that :func:`drlogit.verify` can check the bounds.

        Parameters
        ----------
        path : path
            A NumPy archive, ``.npz``.

        Raises
        ------
        ValueError
            The result has no dual point (estimators do not keep one by default), or a matrix of
            feature costs, for which there are no proofs.
        """
        ball = self.column_ball
        if ball is not None and ball.costs.ndim == 2:
            raise ValueError("a matrix of feature_costs has no proof: give each feature a cost")
        if self.dual is None or ball is None:
            raise ValueError(
                "this result has no dual point to save: use a result of drlogit.solve, or the "
                "estimator's save_proof"
            )
        save_proof(path, self.dual)

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance asked for."""
        return self.status is Status.OPTIMAL

    def __repr__(self) -> str:
        return (
            f"Result(objective={self.objective:.8g}, gap={self.gap:.2g}, lam={self.lam:.6g}, "
            f"n_iter={self.n_iter}, solver={self.solver!r}, status={self.status.name})"
        )
