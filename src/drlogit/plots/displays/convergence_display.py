"""Gaps against iterations or seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...problem.result import Result
from ...rows.arrays import FloatArray
from .axes import new_axes, styles


class ConvergenceDisplay:
    """Certified duality gap against iterations or seconds, for one or several solves.

    Parameters
    ----------
    results : mapping of str to Result
        Their traces are drawn, ending with the gap that was certified in the end.

    Attributes
    ----------
    results
        As given.
    figure_, ax_
        Figure and axes.
    lines_ : list
        One line per result.
    """

    def __init__(self, results: Mapping[str, Result]) -> None:
        self.results = dict(results)

    @classmethod
    def from_results(
        cls,
        results: Result | Sequence[Result] | Mapping[str, Result],
        *,
        against: str = "iterations",
        tol: float | None = None,
        ax: Any = None,
    ) -> ConvergenceDisplay:
        """Draw the traces of results; those without a name go by their solver."""
        if isinstance(results, Result):
            results = [results]
        if not isinstance(results, Mapping):
            solvers = [result.solver for result in results]
            results = {
                name if solvers.count(name) == 1 else f"{name} {i}": result
                for i, (name, result) in enumerate(zip(solvers, results, strict=True), 1)
            }
        return cls(results).plot(against=against, tol=tol, ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> ConvergenceDisplay:
        """Draw the fit of an estimator."""
        return cls.from_results({type(estimator).__name__: estimator.result_}, **options)

    def plot(
        self, *, against: str = "iterations", tol: float | None = None, ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw against ``"iterations"`` or ``"seconds"``, with a line at ``tol`` if given."""
        if against not in ("iterations", "seconds"):
            raise ValueError(f"against must be 'iterations' or 'seconds', got {against!r}")
        self.ax_ = ax = new_axes(ax, (6.0, 3.9))
        self.figure_ = ax.figure
        self.lines_: list[Any] = []
        for (name, result), style in zip(self.results.items(), styles(), strict=False):
            x, gap = _trace(result, against)
            few = len(x) <= 50
            self.lines_ += ax.plot(x, gap, label=name, marker="." if few else None, **style)
        ax.set_yscale("log")
        if tol is not None:
            ax.axhline(tol, color="0.4", linewidth=0.8, linestyle=":", zorder=0)
            ax.annotate(
                f"tol = {tol:g}", (1.0, tol), (-4, 3), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", color="0.4", fontsize="small",
            )  # fmt: skip
        ax.set_xlabel("iteration" if against == "iterations" else "seconds in the solver")
        ax.set_ylabel("certified duality gap (nats)")
        if against == "iterations":
            ax.xaxis.get_major_locator().set_params(integer=True)
        if len(self.results) > 1:
            ax.legend(frameon=False)
        return self


def _trace(result: Result, against: str) -> tuple[FloatArray, FloatArray]:
    """Points of a trace whose gap is known, and the end; a gap of 0 at machine precision."""
    x = result.trace.column("n_iter" if against == "iterations" else "elapsed")
    gap = result.trace.column("gap")
    end = float(result.n_iter) if against == "iterations" else result.solve_time
    x, gap = np.append(x, end), np.append(gap, result.gap)
    known = np.isfinite(gap)
    return x[known], np.maximum(gap[known], np.finfo(float).eps)
