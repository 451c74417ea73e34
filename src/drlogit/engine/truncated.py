"""The truncated interior point: many columns or labels, and no matrix of size n×n or N×N.

Every iteration solves the Newton system by conjugate gradients, in products with the rows, and ends
them as soon as more steps no longer pay.  So the multipliers do not meet the equations of the dual.
The dual point is that of the step, scaled into the ball; the equations of the free columns are met
by Newton's method first.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..dual.coordinates import label_coordinates
from ..dual.label_points import LabelPoint
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.interface import BlockFunction, State
from ..starts.start import Start
from . import truncated_samples as visits
from .conjugate_gradients import ConjugateGradients
from .interior_point import distinct_samples
from .labels import opened
from .preconditioners import Blocks, Diagonal, Preconditioner
from .truncated_cones import BoxCone, Flow, RoundCone, TruncatedCone

#: Complementarity and λ to open with; the latter as a share of log K / ε.
_MU, _LAMBDA = 0.1, 0.1

#: Complementarity to aim at, as a share of what there is, after a long step and after a short one,
#: and at least as a share of the gap.  Numbers here were chosen on farm-ads at ε = .01 and on
#: embeddings, (4000, 192) with twenty classes.
_CENTRE, _CENTRE_SHORT, _OF_GAP = 0.1, 0.3, 0.1

#: The proximal term of the label shares: a small one takes more steps of conjugate gradients, a
#: large one more iterations.
_DELTA = 0.2

#: Conjugate gradients end when a step gains less than this share of the mean step, the residual has
#: fallen to this share, and it costs the bound no more than so many gaps.  That is halved after an
#: iteration in which the gap did not fall to ``_FALLEN``: else iterations may settle at a few steps
#: each (generated problems, seeds below 60; (2000, 100) with twenty classes at a gap of 2e-5).
#: Without flips there is no such limit until then.
_GAIN, _RESIDUAL, _GAPS, _FALLEN, _MOST_STEPS = 0.1, 0.3, 2.0, 0.7, 300

#: Squared residuals below this are rounding.
_LEAST = 1e-28

#: Passing boundaries may cost this share of the complementarity.
_PRICE = 0.03

#: With flips several labels have a preconditioner with a matrix for each label, if these matrices
#: have no more entries, and their factors cost no more than so many products.
#: Generated data, (600, 700) with ten classes, at a cost of 68: with flips 2 to 6 times as fast as
#: the diagonal alone, without flips 6 times as slow; (400, 700) with twenty, at 102: .3 to 7 times
#: as fast with flips.  They are formed again when conjugate gradients have taken as many products
#: as that costs.
_MOST_ENTRIES, _MOST_PRODUCTS = 20_000_000, 100.0

#: What an iteration takes besides its conjugate gradients, in products.
_VISITS = 3

CONES: dict[str, type[TruncatedCone]] = {"l1": BoxCone, "l2": RoundCone}


def truncated_interior_point(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 150,
    start: Start | None = None,
    patience: float = math.inf,
) -> Solution:
    """Solve the problem to a certified gap of ``tol``.

    A ``start`` is ignored: the method opens with the same point whatever was solved before.  The
    run ends as stalled when it has taken ``patience`` products.
    """
    with np.errstate(all="ignore"):
        problem, of_all = distinct_samples(problem)
        found = _Run(problem, monitor).solve(tol, max_iter, patience)
        return found if found.point is None else replace(found, point=of_all(found.point))


class _Run:
    """A run on a problem with ε > 0; the coefficients are ``scale · x``, one row or K rows.

    A step is an array of the changes of x and of λ.
    """

    def __init__(self, problem: Problem, monitor: Monitor) -> None:
        self.problem, self.monitor, self.rows = problem, monitor, problem.rows
        self.coordinates, several = label_coordinates(problem), problem.several
        self.kept, self.free = np.flatnonzero(problem.penalised), np.flatnonzero(problem.free)
        spread = self.coordinates.spread
        spread = np.where(spread > 0.0, spread, 1.0)
        self.scale = np.where(problem.penalised, problem.costs, 1.0 / spread)
        self.C = C = problem.n_classes if several else 1
        self.flips, self.products = bool(problem.flips), 0
        n, N, stored = self.scale.size, self.rows.n_samples, max(self.rows.n_nonzeros, 1)
        # What matrices for the labels cost, in products: their factors, and about all else.
        factors = n**3 / (12.0 * stored)
        few = C * n * n <= _MOST_ENTRIES and factors <= _MOST_PRODUCTS
        self.by_label = several and self.flips and few
        self.cost = factors + n * n * N / (4.0 * stored * C)
        # With ℓ1 transport the matrix may be nearly singular, as far as single precision can tell.
        self.single = problem.norm.name == "l2"
        self.gram: FloatArray | None = None
        self.blocks: Blocks | None = None
        self.products_before = 0
        self.point: State | None = None
        self.flow: Flow | None = None
        self.value = 0.0

    def _after(self, function: BlockFunction, state: State, *arguments: object) -> State:
        """The state after a visit that reduces nothing."""
        return self.rows.run(function, state, *arguments)[0]

    def _parts(self, step: FloatArray) -> tuple[FloatArray, float]:
        """The changes of x, a row for each label, and of λ."""
        return step[:-1].reshape(self.C, -1), float(step[-1])

    def solve(self, tol: float, max_iter: int, patience: float) -> Solution:
        """Iterate until the certified gap is within ``tol``."""
        problem, epsilon, K, kept = (
            self.problem,
            self.problem.epsilon,
            self.problem.n_classes,
            self.kept,
        )
        x, lam = np.zeros((self.C, self.scale.size)), _LAMBDA * math.log(K) / epsilon
        state = opened(problem, np.append(np.zeros((K - 1) * self.scale.size), lam), _MU)
        state = self._after(visits.opened, state, self.free, self.scale[self.free])
        cone = CONES[problem.norm.name](x[:, kept], lam, epsilon)
        best, best_x, best_lam, length, status = math.inf, x, lam, 1.0, Status.MAX_ITER
        gap, most = math.inf, _GAPS if self.flips else math.inf
        gaps = most
        for n_iter in range(max_iter):
            cone.place(x[:, kept], lam)
            lams = np.array([lam, cone.size])
            state, (losses, hinges) = self.rows.run(visits.measure, state, lams)
            objectives = epsilon * lams + losses
            at = int(objectives.argmin())
            if objectives[at] < best:
                best, best_x, best_lam = float(objectives[at]), x, float(lams[at])
            gap, before = best - self.value, gap
            gaps = min(2.0 * gaps, most) if gap <= _FALLEN * before else min(0.5 * gaps, _GAPS)
            if gap <= tol:
                status = Status.OPTIMAL
            elif self.monitor.report(n_iter, best, self.value, best_lam):
                status = Status.STOPPED
            elif self.products + _VISITS * n_iter > patience:
                status = Status.STALLED
            if status is not Status.MAX_ITER or not math.isfinite(gap):
                break
            comp = cone.complementarity + self.flips * float(hinges)
            share = _CENTRE if length > 0.5 else _CENTRE_SHORT
            aim = max(share * comp, _OF_GAP * min(gap, 1.0))
            mu = aim / (2.0 * K)
            state, (gradient, corners) = self.rows.run(
                visits.linearise, state, lam, mu, _DELTA, self.C
            )
            gradient = gradient * self.scale
            force, budget = cone.force(aim / (2.0 if self.flips else 1.0) / cone.degree)
            gradient[:, kept] += force
            cone.prepare(self._preconditioner(state, cone), float(corners[1]))
            right = np.append(-gradient, budget - epsilon + corners[0])
            step, gained = self._direction(state, cone, right, gaps * gap)
            self._prove(state, cone, step)
            state, length = self._follow(state, cone, step, comp, gained, mu)
            dx, dlam = self._parts(step)
            x, lam, inside = x + length * dx, lam + length * dlam, None
            cone.move(length)
            if (moved := cone.inside(x[:, kept], lam)) is not None:
                x[:, kept] = moved
                inside = x * self.scale
            state = self._after(visits.move, state, length, inside)
        coefficients = best_x * self.scale
        info = {"solver": "truncated-interior-point", "products": self.products}
        return Solution(
            coefficients if self.C > 1 else coefficients[0],
            status,
            len(self.monitor.trace),
            self._final(cone),
            info=info,
            lam=best_lam,
            proven=(best, self.value),
        )

    def _preconditioner(self, state: State, cone: TruncatedCone) -> Preconditioner:
        """The preconditioner of the samples' matrix and the cone's diagonal."""
        kept, scale = self.kept, self.scale
        if not self.by_label:
            _, (diagonal,) = self.rows.run(visits.diagonals, state, self.C)
            diagonal = diagonal * scale**2
            diagonal[:, kept] += cone.diagonal()
            return Diagonal(diagonal, kept)
        if self.blocks is None or self.products - self.products_before >= self.cost:
            self.products_before = self.products
            if self.gram is None:
                self.gram = self.rows.run(visits.mean_gram, None)[1][0]
            _, (matrices, weights) = self.rows.run(visits.class_matrices, state)
            matrices += weights[:, None, None] * self.gram
            matrices *= scale[:, None] * scale
            matrices[:, kept, kept] += cone.diagonal()
            self.blocks = Blocks(matrices, kept)
        return self.blocks

    def _product(self, state: State, cone: TruncatedCone, step: FloatArray) -> FloatArray:
        """The matrix of the Newton system times a step."""
        x, dlam = self._parts(step)
        flat = np.append(x * self.scale, dlam)
        _, (image,) = self.rows.run(visits.curvature, state, flat, self.single)
        self.products += 1
        own, own_lam = cone.product(x[:, self.kept], dlam)
        found = image[:-1].reshape(x.shape) * self.scale
        if self.C > 1:  # what all labels have in common has no curvature, but for rounding
            found -= found.mean(axis=0)
        found[:, self.kept] += own
        return np.append(found, image[-1] + own_lam)

    def _direction(
        self, state: State, cone: TruncatedCone, right: FloatArray, allowed: float
    ) -> tuple[FloatArray, float]:
        """The truncated step, and what the quadratic model gains by it."""

        def precondition(r: FloatArray) -> FloatArray:
            z, zlam = cone.precondition(*self._parts(r))
            return np.append(z, zlam)

        solver = ConjugateGradients(lambda v: self._product(state, cone, v), precondition, right)
        owed = math.inf
        while solver.steps < _MOST_STEPS and solver.step() and solver.rho > _LEAST:
            if solver.steps % 3 == 0:
                left, left_lam = self._parts(solver.left)
                owed = cone.lam * (cone.norm(left[:, self.kept]) + abs(left_lam))
                owed += float(np.abs(left[:, self.free]).sum())
                if self.monitor.stop.late:
                    break
            slow = solver.steps * solver.gain <= _GAIN * solver.gained
            if slow and solver.rho <= _RESIDUAL**2 * solver.first and owed <= allowed:
                break
        self.single = self.single and solver.steps < _MOST_STEPS
        return solver.x, solver.gained

    def _follow(
        self,
        state: State,
        cone: TruncatedCone,
        step: FloatArray,
        comp: float,
        gained: float,
        mu: float,
    ) -> tuple[State, float]:
        """Changes along a step; the length that samples, cone and loss allow."""
        x, dlam = self._parts(step)
        state, (booked, (loss, slope, bent)) = self.rows.run(
            visits.follow, state, x * self.scale, dlam, mu
        )
        booked = booked * self.flips
        length = cone.follow(x[:, self.kept], dlam, booked)
        fine = np.flatnonzero(np.cumsum(booked) <= _PRICE * comp)
        length = min(length, float(visits.LENGTHS[fine[-1] if fine.size else 0]))
        allowed = 0.5 * max(min(0.5 * gained, 1.0), comp)
        while length > 1e-6:
            _, (then,) = self.rows.run(visits.loss_at, state, length)
            excess = then - loss - length * (slope + 0.5 * length * bent)
            if excess <= allowed:
                break
            length *= min(0.7, max(0.1, (allowed / excess) ** (1.0 / 3.0)))
        return state, length

    # --- bounds ----------------------------------------------------------------------------------

    def _prove(self, state: State, cone: TruncatedCone, step: FloatArray) -> None:
        """The bound of a step's dual point."""
        x, dlam = self._parts(step)
        part = self._after(visits.point_of, state, x * self.scale, dlam)
        part = self._balanced(part) if self.free.size else part
        part, (G, spent) = self.rows.run(visits.sums_of_point, part, self.C)
        size, flow = cone.used(G[:, self.kept] * self.scale[self.kept], x[:, self.kept], dlam)
        used, epsilon = size + spent, self.problem.epsilon
        factor = 1.0 if used <= epsilon else epsilon / used * (1.0 - 1e-12)
        point, (entropy,) = self.rows.run(visits.scaled, part, factor)
        others = -G[1 - self.problem.n_classes :].ravel()  # of all labels but the first
        value = float(entropy - factor * self.coordinates.charge(others, 2.0**-47))
        if value > self.value:
            self.value, self.point = value, point
            self.flow = flow and (factor * flow[0], factor * flow[1], flow[2], flow[3])

    def _balanced(self, part: State) -> State:
        """A dual point that meets the equations of the free columns, by Newton's method."""
        move = np.zeros((self.C, self.free.size))
        for _ in range(12):
            part, (gradient, hessian) = self.rows.run(visits.balance, part, move)
            if not np.abs(gradient).max() > 1e-16:
                break
            inverse = np.linalg.pinv(hessian, 1e-12, hermitian=True)
            move = np.clip(-(inverse @ gradient.ravel()).reshape(move.shape), -1.0, 1.0)
        return part

    def _final(self, cone: TruncatedCone) -> LabelPoint | None:
        """The dual point in the form of the certificate."""
        if self.point is None:
            return None
        if self.flow is None or self.C == 1:
            return LabelPoint(self.point)
        return LabelPoint(self.point, cone.flows(self.flow) / self.scale[self.kept])
