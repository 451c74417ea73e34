"""Run the attempts of a plan; keep the best model and the best lower bound of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

from ..dual.certify import Certificate, certify
from ..engine.plan import Attempt
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.interface import WorkersLostError
from ..starts.start import Start, dual_point_of, start_from

#: Largest gap, in nats, of a model that the next attempt opens near: a constant model has .7.
_NEAR = 0.1

#: What the information about attempts adds up.
_COUNTED = ("grams", "visits", "products", "sample_grams", "near_grams")


@dataclass
class BestProven:
    """The best model and the best bound so far, which may be of different attempts."""

    problem: Problem
    tol: float
    judged: bool
    model: FloatArray | None = None
    returned: tuple[FloatArray, Any] | None = None  # its coefficients and intercepts for the user
    certificate: Certificate | None = None
    status: Status = Status.FAILED
    n_iter: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    lost: bool = False  # whether the samples are out of reach

    @property
    def gap(self) -> float:
        """The certified gap, infinite before the first attempt."""
        return float("inf") if self.certificate is None else self.certificate.gap

    @property
    def near(self) -> Start | None:
        """The model as a start, if it is close to the optimum."""
        if self.model is None or self.certificate is None or self.gap > _NEAR:
            return None
        return Start(self.model, self.certificate.lam, self.gap)

    def add(self, found: Solution, *, brief: bool = False) -> None:
        """Certify a solution, as the user gets it: for the features as they were given."""
        returned = self.problem.split(found.coefficients)
        model = self.problem.join(*returned)
        try:
            new = self._certificate(found, model, inf if brief else self.tol)
        except WorkersLostError:
            if found.proven is None or not isfinite(found.proven[0]):
                raise
            new, self.lost = Certificate(*found.proven, found.lam or 0.0, None), True
        old = self.certificate
        if old is None or new.primal < old.primal:
            self.model, self.returned = model, returned
            kept = new if old is None else replace(old, primal=new.primal, lam=new.lam)
        else:
            kept = old
        if new.dual > kept.dual:
            kept = replace(kept, dual=new.dual, point=new.point)
        counts = {
            key: self.info[key] + found.info.get(key, 0) for key in self.info.keys() & _COUNTED
        }
        self.info = self.info | found.info | counts
        self.certificate, self.status = kept, found.status
        self.n_iter += found.n_iter

    def _certificate(self, found: Solution, model: FloatArray, tol: float) -> Certificate:
        """The certificate of a solution; if not ``judged``, the solver's own if it suffices."""
        if not self.judged and found.proven is not None:
            objective, bound = found.proven
            if objective - bound <= self.tol:
                return Certificate(objective, bound, found.lam or 0.0, None)
        return certify(self.problem, model, point=found.point, guess=found.lam, tol=tol)


def best_proven(
    problem: Problem,
    attempts: Iterable[Attempt],
    *,
    tol: float,
    max_iter: int | None,
    monitor: Monitor,
    start: Result | None,
    judged: bool,
) -> BestProven:
    """Run attempts until the certified gap is within ``tol``, or a limit is reached."""
    best, given = BestProven(problem, tol, judged), None
    if start is not None:
        given = start_from(problem, start)
        if given is not None and (point := dual_point_of(problem, start)) is not None:
            info = {"solver": "interior-point", "grams": 0, "visits": 0}
            best.add(Solution(given.model, Status.STALLED, 0, point, info, start.lam))
    tried_cold = set()
    for attempt in attempts:
        if best.gap <= tol:
            break
        begin = None if attempt.cold else best.near or given
        if begin is None and attempt.method in tried_cold:
            continue  # the same again
        try:
            found = attempt.run(
                problem,
                tol=tol,
                monitor=monitor,
                max_iter=None if max_iter is None else max_iter - best.n_iter,
                start=begin,
            )
        except WorkersLostError:
            if best.certificate is None:
                raise
            best.lost = True
            break
        if found is None:
            continue
        if begin is None:
            tried_cold.add(attempt.method)
        best.add(found, brief=attempt.brief and found.status is Status.STALLED)
        used_up = max_iter is not None and best.n_iter >= max_iter
        if found.status is Status.STOPPED or used_up or best.lost:
            break
    return best
