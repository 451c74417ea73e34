"""Run the attempts of a plan; keep the best model and the best lower bound of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

from ..dual.certify import Certificate, certify
from ..engine.plan import Attempt, Method
from ..problem.problem import Problem
from ..problem.result import Monitor, Result, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.interface import WorkersLostError
from ..starts.start import Start, dual_point_of, start_from
from .exact_zeros import with_exact_zeros

#: Largest gap, in nats, of a model that the next attempt opens near: a constant model has .7.
_NEAR = 0.1

#: What the information about attempts adds up.
_COUNTED = ("grams", "visits", "products", "sample_grams", "near_grams")


@dataclass
class BestProven:
    """The best model and the best bound so far, which may be of different attempts.

    ``returned`` are its coefficients and intercepts for the user, for the features as they were
    given: what is certified.
    """

    problem: Problem
    tol: float
    judged: bool
    keeps_dual: bool
    returned: tuple[FloatArray, Any] | None = None
    certificate: Certificate | None = None
    dual: Any = None
    status: Status = Status.FAILED
    n_iter: int = 0
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """The certified gap, infinite before the first attempt."""
        return inf if self.certificate is None else self.certificate.gap

    @property
    def model(self) -> FloatArray:
        """The model for the features as the problem has them."""
        assert self.returned is not None
        return self.problem.join(*self.returned)

    @property
    def near(self) -> Start | None:
        """The model as a start, if it is close to the optimum."""
        if self.certificate is None or self.gap > _NEAR:
            return None
        return Start(self.model, self.certificate.lam, self.gap)

    def run(
        self,
        attempts: Iterable[Attempt],
        *,
        max_iter: int | None,
        monitor: Monitor,
        start: Result | None,
    ) -> None:
        """Run attempts until the certified gap is within ``tol``, or a limit is reached.

        The status is LOST if the samples are; ``WorkersLostError`` if there is no model then.
        """
        problem, given, tried_cold = self.problem, None, set[Method]()
        known: dict[str, Any] = {"tol": self.tol, "monitor": monitor}
        try:
            if start is not None:
                given = start_from(problem, start)
                if given is not None and (point := dual_point_of(problem, start)) is not None:
                    info = {"solver": "interior-point", "grams": 0, "visits": 0}
                    self._add(Solution(given.model, Status.STALLED, 0, point, info, start.lam))
            for attempt in attempts:
                begin = None if attempt.cold else self.near or given
                if self.gap <= self.tol or (begin is None and attempt.method in tried_cold):
                    continue  # or the same again
                left = None if max_iter is None else max_iter - self.n_iter
                found = attempt.run(problem, max_iter=left, start=begin, **known)
                if found is None:
                    continue
                if begin is None:
                    tried_cold.add(attempt.method)
                self._add(found, brief=attempt.brief and found.status is Status.STALLED)
                if found.status is Status.STOPPED or self.n_iter >= (max_iter or inf):
                    break
            self._settle()
        except WorkersLostError:
            if self.certificate is None:
                raise
            self.status = Status.LOST

    def _add(self, found: Solution, *, brief: bool = False) -> None:
        """Certify a solution; its own proof serves if the samples are lost.

        If not ``judged``, it serves as well if it suffices.
        """
        returned = self.problem.split(found.coefficients)
        own = Certificate(*(found.proven or (inf, 0.0)), found.lam or 0.0, None)
        if not self.judged and own.gap <= self.tol:
            return self._keep(found, returned, own)
        model = self.problem.join(*returned)
        try:
            tol = inf if brief else self.tol
            new = certify(self.problem, model, point=found.point, guess=found.lam, tol=tol)
        except WorkersLostError:
            if isfinite(own.primal):
                self._keep(found, returned, own)
            raise
        return self._keep(found, returned, new)

    def _settle(self) -> None:
        """Move the model to zeros next to it; perhaps keep the dual point in plain numbers."""
        assert self.certificate is not None
        moved = with_exact_zeros(self.problem, self.model, self.certificate, self.tol)
        self.returned, self.certificate = moved or (self.returned, self.certificate)
        if self.keeps_dual:  # it is as long as the samples
            self.dual = self.certificate.dual_point(self.problem)

    def _keep(self, found: Solution, returned: tuple[FloatArray, Any], new: Certificate) -> None:
        """Keep the model, or the bound, or both, if it is better."""
        kept = self.certificate or new
        if self.returned is None or new.primal < kept.primal:
            self.returned, kept = returned, replace(kept, primal=new.primal, lam=new.lam)
        if new.dual > kept.dual:
            kept = replace(kept, dual=new.dual, point=new.point)
        info = self.info | found.info
        for counted in self.info.keys() & _COUNTED:
            info[counted] = self.info[counted] + found.info.get(counted, 0)
        self.certificate, self.status, self.info = kept, found.status, info
        self.n_iter += found.n_iter
