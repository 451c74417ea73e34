"""The truncated interior point: many columns or classes, and no matrix of size n×n or N×N.

Every iteration solves the Newton system by conjugate gradients, in products with the rows, and ends
them as soon as more steps no longer pay.  So the multipliers do not meet the equations of the dual.
The dual point is that of the *smoothed* step, whose residual falls from step to step; it is scaled
into the ball and mixed with the best one so far.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from ..dual.classes import ClassCoordinates, ClassPoint
from ..dual.coordinates import pair_coordinates
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import FloatArray
from ..rows.interface import BlockFunction, State
from ..starts.start import Start
from . import truncated_samples as visits
from .front import distinct_samples
from .preconditioners import Blocks, Diagonal, Preconditioner
from .truncated_cones import BoxCone, Flow, RoundCone, TruncatedCone

#: Complementarity to aim at, as a share of what there is, after a long step and after a short one,
#: and at least as a share of the gap.  With flips that is a low one if the preconditioner has
#: matrices, or while the gap falls: where systems are solved roughly, a low aim takes many more
#: products (farm-ads).  Numbers here were chosen on farm-ads at ε = .01 and on embeddings,
#: (4000, 192) with twenty classes.
_CENTRE, _CENTRE_SHORT, _OF_GAP, _OF_GAP_LOW = 0.1, 0.3, 0.1, 0.02

#: The proximal term of the label shares, per root of the gap, and its ends: a small one takes more
#: steps of conjugate gradients, a large one more iterations.
_DELTA, _LEAST_DELTA, _MOST_DELTA = 1.5, 0.1, 0.3

#: Conjugate gradients end when a step gains less than this share of the mean step, the residual has
#: fallen to this share, and it costs the bound no more than so many gaps.  That is halved after an
#: iteration in which the gap did not fall to ``_FALLEN``: else iterations may settle at a few steps
#: each (generated problems, seeds below 60; (2000, 100) with twenty classes at a gap of 2e-5).
#: Without flips there is no such limit until then, ...
_GAIN, _RESIDUAL, _GAPS, _FALLEN = 0.1, 0.3, 2.0, 0.7

#: ... or when the residual of the smoothed step costs the bound less than this share of the aim.
_SMALL = 0.5
_MOST_STEPS = 300

#: Directions that curve less, beside the preconditioner, do so by rounding: no step is right.
_LEAST_CURVATURE = 1e-13

#: Passing boundaries may cost this share of the complementarity.
_PRICE = 0.03

#: Shares of a new dual point in mixtures with the best one.
_MIXES = (1.0, 0.5, 0.2, 0.07, 0.02)

#: Accuracy of the free columns' equations and the largest number of steps: iterates, dual points.
_ROUGHLY, _EXACTLY = (1e-9, 3), (1e-16, 12)

#: Several classes have a preconditioner with a matrix for each class, if these matrices have no
#: more entries, and their factors cost no more than so many products with flips, and without.
#: Generated data, (600, 700) with ten classes, at a cost of 68: with flips 2 to 6 times as fast as
#: the diagonal alone, without 6 times as slow; (400, 700) with twenty, at 102: .3 to 7 times as
#: fast with flips.  They are formed again when conjugate gradients have taken as many products as
#: that costs.
_MOST_ENTRIES, _MOST_PRODUCTS, _MOST_PRODUCTS_NO_FLIPS = 20_000_000, 100.0, 10.0

#: What an iteration takes besides its conjugate gradients, in products, and the progress that a run
#: with limited patience is credited with at first.
_VISITS, _CREDIT = 3, 0.1

#: A step in x and in λ.
Direction: TypeAlias = tuple[FloatArray, float]

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
    run ends as stalled where it falls behind a pace of ``patience`` products for all digits of
    ``tol``.
    """
    with np.errstate(all="ignore"):
        if problem.several:
            return _Run(problem, monitor).solve(tol, max_iter, patience)
        problem, of_all = distinct_samples(problem)
        found = _Run(problem, monitor).solve(tol, max_iter, patience)
        return replace(found, point=of_all(found.point))


def _progress(first: float, gap: float, tol: float) -> float:
    """The share of the digits from the first gap to ``tol`` that a run has, at least its credit."""
    if not first > max(gap, tol):
        return _CREDIT
    return max(_CREDIT, math.log(first / gap) / math.log(first / tol))


class _Run:
    """A run on a problem with ε > 0; the coefficients are ``scale · x``, one row or K rows."""

    def __init__(self, problem: Problem, monitor: Monitor) -> None:
        self.problem, self.monitor, self.rows = problem, monitor, problem.rows
        self.one = pair_coordinates(problem)
        self.C, self.coordinates = 1, cast(Any, self.one)
        if problem.several:
            self.C, self.coordinates = problem.n_classes, ClassCoordinates(problem)
        self.kept, self.free = np.flatnonzero(problem.penalised), np.flatnonzero(problem.free)
        spread = np.where(self.one.spread > 0.0, self.one.spread, 1.0)
        self.scale = np.where(problem.penalised, problem.costs, 1.0 / spread)
        self.flips, self.products = bool(problem.flips), 0
        n, N, stored = self.rows.n_columns, self.rows.n_samples, max(self.rows.n_nonzeros, 1)
        # What matrices for the classes cost, in products: their factors, and about all else.
        factors = n**3 / (12.0 * stored)
        most = _MOST_PRODUCTS if self.flips else _MOST_PRODUCTS_NO_FLIPS
        small = self.C * n * n <= _MOST_ENTRIES and factors <= most
        self.by_class, self.gram = self.C > 1 and small, np.zeros((0, 0))
        self.cost = factors + n * n * N / (4.0 * stored * self.C)
        # With ℓ1 transport the matrix may be nearly singular, as far as single precision can tell.
        self.single = problem.norm.name == "l2"
        self.blocks, self.products_before = cast(Blocks | None, None), 0

    def _after(self, function: BlockFunction, state: State, *arguments: object) -> State:
        """The state after a visit that reduces nothing."""
        return self.rows.run(function, state, *arguments)[0]

    def solve(self, tol: float, max_iter: int, patience: float) -> Solution:
        """Iterate until the certified gap is within ``tol``."""
        epsilon, K = self.problem.epsilon, max(self.C, 2)
        x, lam = np.zeros((self.C, self.scale.size)), self._first_lambda()
        state = visits.opened(self.problem, x, self.free, mu=0.1)
        self.fixed = self._after(visits.fixed, state)
        self.point, (spent, value) = self.rows.run(visits.labels_only, state, epsilon)
        self.gradient, self.spent = np.zeros_like(x), float(spent)
        self.flow: Flow | None = None
        self.value = float(value)
        cone = CONES[self.problem.norm.name](x[:, self.kept], lam, epsilon)
        best, best_x, best_lam, length, status = math.inf, x, lam, 1.0, Status.MAX_ITER
        gap, first, most = math.inf, math.inf, _GAPS if self.flips else math.inf
        gaps = most
        for n_iter in range(max_iter):
            state, x = self._balanced(state, x)
            cone.place(x[:, self.kept], lam)
            lams = np.array([lam, cone.size])
            state, (losses, hinges) = self.rows.run(visits.measure, state, lams)
            objectives = epsilon * lams + losses
            at = int(objectives.argmin())
            if objectives[at] < best:
                best, best_x, best_lam = float(objectives[at]), x, float(lams[at])
            gap, before = best - self.value, gap
            first = min(first, gap) if n_iter == 0 else first
            gaps = min(2.0 * gaps, most) if gap <= _FALLEN * before else min(0.5 * gaps, _GAPS)
            if gap <= tol:
                status = Status.OPTIMAL
            elif self.monitor.report(n_iter, best, self.value, best_lam):
                status = Status.STOPPED
            elif self.products + _VISITS * n_iter > patience * _progress(first, gap, tol):
                status = Status.STALLED
            if status is not Status.MAX_ITER or not math.isfinite(gap):
                break
            comp = cone.complementarity + self.flips * float(hinges)
            low = self.flips and (self.by_class or gap <= _FALLEN * before)
            least = (_OF_GAP_LOW if low else _OF_GAP) * min(gap, 1.0)
            aim = max((_CENTRE if length > 0.5 else _CENTRE_SHORT) * comp, least)
            mu = aim / (2.0 * K)
            delta = min(_MOST_DELTA, max(_LEAST_DELTA, _DELTA * math.sqrt(gap)))
            state, (gradient, corners) = self.rows.run(
                visits.linearise, state, lam, mu, delta, self.C
            )
            gradient = gradient * self.scale
            force, budget = cone.force(aim / (2.0 if self.flips else 1.0) / cone.degree)
            gradient[:, self.kept] += force
            cone.prepare(self._preconditioner(state, cone), float(corners[1]))
            right = -gradient, float(budget - epsilon + corners[0])
            step, smooth, gained = self._conjugate_gradients(state, cone, right, aim, gaps * gap)
            self._prove(state, cone, *smooth)
            state, length = self._step(state, cone, step, comp, gained, mu)
            x, lam = x + length * step[0], lam + length * step[1]
            inside = cone.inside(x[:, self.kept], lam)
            if inside is not None:
                x[:, self.kept] = inside
                state = self._after(visits.rescored, state, x * self.scale)
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

    def _first_lambda(self) -> float:
        """About the λ of the optimum, by the size of rows and by what flips cost."""
        problem, epsilon = self.problem, self.problem.epsilon
        lengths = (self.one.size * problem.costs)[self.kept]
        size = math.sqrt(lengths @ lengths)
        lam = 2.0 / size if size > 0.0 else 1.0
        kappa = problem.kappa
        if problem.several:
            kappa = problem.least_flip_cost
        if 0.0 < kappa < math.inf:
            odds = kappa / epsilon - 1.0
            lam = max(lam, (math.log(odds) if odds > 1.3 else 0.5) / kappa)
        return min(lam, 0.2 * math.log(max(self.C, 2)) / epsilon)

    # --- free columns ----------------------------------------------------------------------------

    def _balanced(self, state: State, x: FloatArray) -> tuple[State, FloatArray]:
        """Free coefficients near their optimum for the present label shares."""
        if not self.free.size:
            return state, x
        part, moved = self._meet(self._after(visits.to_balance, state), *_ROUGHLY)
        x = x.copy()
        x[:, self.free] += moved
        return self._after(visits.with_scores, self.rows.pair(state, part)), x

    def _meet(self, part: State, enough: float, most: int) -> tuple[State, FloatArray]:
        """Newton steps to the equations of the free columns; what they move x by in all."""
        scale = self.scale[self.free]
        moved = move = np.zeros((self.C, scale.size))
        for k in range(most + 1):
            part, (gradient, hessian) = self.rows.run(visits.balance, part, move * scale)
            gradient = gradient.reshape(move.shape) * scale
            if k == most or not np.abs(gradient).max() > enough:
                break
            unit = np.tile(scale, self.C)
            matrix = unit[:, None] * hessian * unit
            inverse = np.linalg.pinv(matrix, 1e-12, hermitian=True)
            move = np.clip(-(inverse @ gradient.ravel()).reshape(move.shape), -1.0, 1.0)
            moved = moved + move
        return part, moved

    def _preconditioner(self, state: State, cone: TruncatedCone) -> Preconditioner:
        """The preconditioner of the samples' matrix and the cone's diagonal."""
        kept, scale = self.kept, self.scale
        if not self.by_class:
            _, (diagonal,) = self.rows.run(visits.diagonal, state, self.C)
            diagonal = diagonal * scale**2
            diagonal[:, kept] += cone.diagonal()
            return Diagonal(diagonal, kept)
        if self.blocks is not None and self.products - self.products_before < self.cost:
            return self.blocks
        self.products_before = self.products
        if not self.gram.size:
            self.gram = self.rows.run(visits.mean_gram, None)[1][0]
        _, (matrices, weights) = self.rows.run(visits.class_matrices, state)
        matrices += weights[:, None, None] * self.gram
        matrices *= scale[:, None] * scale
        matrices[:, kept, kept] += cone.diagonal()
        self.blocks = Blocks(matrices, kept)
        return self.blocks

    # --- steps -----------------------------------------------------------------------------------

    def _conjugate_gradients(
        self, state: State, cone: TruncatedCone, right: Direction, aim: float, allowed: float
    ) -> tuple[Direction, Direction, float]:
        """The truncated step, the smoothed one, and what the quadratic model gains by the first.

        A step is a pair, of x and of λ.  The smoothed one has the least residual, in the norm of
        the preconditioner, of all mixtures of the steps so far.
        """
        kept, scale = self.kept, self.scale

        r, rlam = right
        x, xlam = np.zeros_like(r), 0.0
        smooth, smooth_lam, left, left_lam = x.copy(), 0.0, r.copy(), rlam
        z, zlam = cone.precondition(r, rlam)
        p, plam = z, zlam
        rho = first = float((r * z).sum() + rlam * zlam)
        inverse, gained, owed = 1.0 / max(rho, 1e-300), 0.0, math.inf
        for k in range(_MOST_STEPS):
            flat = np.append((scale * p).ravel(), plam)
            _, (image,) = self.rows.run(visits.curvature, state, flat, self.single)
            self.products += 1
            own, own_lam = cone.product(p[:, kept], plam)
            o, olam = image[:-1].reshape(p.shape) * scale, float(image[-1]) + own_lam
            if self.C > 1:  # what all classes have in common has no curvature, but for rounding
                o -= o.mean(axis=0)
            o[:, kept] += own
            bent = float((p * o).sum() + plam * olam)
            if not bent > _LEAST_CURVATURE * rho:
                break
            alpha = rho / bent
            x += alpha * p
            xlam += alpha * plam
            r = r - alpha * o
            rlam -= alpha * olam
            gain = alpha * rho
            gained += gain
            z, zlam = cone.precondition(r, rlam)
            after = float((r * z).sum() + rlam * zlam)
            if not after > 1e-28:
                smooth, smooth_lam = x.copy(), xlam
                break
            inverse += 1.0 / after
            share = 1.0 / (inverse * after)
            smooth += share * (x - smooth)
            smooth_lam += share * (xlam - smooth_lam)
            left += share * (r - left)
            left_lam += share * (rlam - left_lam)
            if k % 3 == 2:
                owed = cone.lam * (cone.norm(left[:, kept]) + abs(left_lam))
                owed += float(np.abs(left[:, self.free]).sum())
                if owed <= _SMALL * aim or self.monitor.stop.late:
                    break
            slow = (k + 1) * gain <= _GAIN * gained and after <= _RESIDUAL**2 * first
            if slow and owed <= allowed:
                break
            p *= after / rho
            p += z
            plam = zlam + (after / rho) * plam
            rho = after
        self.single = self.single and k + 1 < _MOST_STEPS
        return (x, xlam), (smooth, smooth_lam), gained

    def _step(
        self,
        state: State,
        cone: TruncatedCone,
        step: Direction,
        comp: float,
        gained: float,
        mu: float,
    ) -> tuple[State, float]:
        """Samples and cone after a step of the length that they and the loss allow."""
        x, dlam = step
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
        cone.move(length)
        return self._after(visits.move, state, length), length

    # --- bounds ----------------------------------------------------------------------------------

    def _prove(self, state: State, cone: TruncatedCone, x: FloatArray, dlam: float) -> None:
        """The bound of a step's dual point, or of a mixture with the best one so far."""
        epsilon, rows, kept = self.problem.epsilon, self.rows, self.kept
        part = self._after(visits.point_of, state, x * self.scale, dlam)
        if self.free.size:
            part = self._meet(part, *_EXACTLY)[0]
        point, (G, spent) = self.rows.run(visits.sums_of_point, rows.pair(part, self.fixed), self.C)
        flow = cone.flow(x[:, kept], dlam)
        tried = []
        for share in _MIXES if flow is None or self.C == 1 else _MIXES[:1]:  # flows do not mix
            gradient = self.gradient + share * (G - self.gradient)
            flips = self.spent + share * (float(spent) - self.spent)
            used = cone.used(gradient[:, kept] * self.scale[kept], flow) + flips
            factor = 1.0 if used <= epsilon else epsilon / used * (1.0 - 1e-12)
            charge = self.coordinates.charge(-gradient.ravel(), 2.0**-47)
            tried.append((share, factor, factor * gradient, factor * flips, factor * charge))
        both = rows.pair(rows.pair(self.point, point), self.fixed)
        _, (entropies,) = self.rows.run(visits.entropies, both, [each[:2] for each in tried])
        values = entropies - np.array([each[-1] for each in tried])
        at = int(np.argmax(values))
        if values[at] > self.value:
            share, factor, self.gradient, self.spent, _ = tried[at]
            self.value = float(values[at])
            self.point = self._after(visits.mixture, both, share, factor)
            self.flow = flow and (factor * flow[0], factor * flow[1], flow[2], flow[3])

    def _final(self, cone: TruncatedCone) -> State | ClassPoint:
        """The dual point in the form of the certificate."""
        if self.C == 1:
            return self._after(visits.as_pair, self.point)
        if isinstance(cone, BoxCone):
            return ClassPoint(self.point, None)
        flow = np.zeros((cone.degree, self.kept.size))
        if self.flow is not None:
            flow = cone.flows(self.flow) / self.scale[self.kept]
        return ClassPoint(self.point, flow)
