"""One step: the quadratic program on a band of samples that is wide enough for its solution.

How wide is known from the step before, or from the sampling error of a start.  Where it is not,
or where the band has very many samples, a *probe* goes first: a rough solution on some of them.  It
tells how far the step goes, and around the point where it ends a narrower band will do, since
the gradient of all other samples is exact and only what the band's samples change is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...rows.arrays import FloatArray, IndexArray
from ...rows.blocks import Block
from ...rows.interface import Rows, State
from ...rows.matrix import held, thin_copy
from ...rows.memory import MemoryRows
from ..interior_point.scaled import Scaled
from .kink_band import (
    EDGES,
    Distances,
    choose,
    distances,
    follow,
    gather,
    gathered_matrix,
    widen,
)
from .quadratic_barrier import (
    Expansion,
    QuadraticSolution,
    Waypoint,
    opening,
    solve_quadratic,
)

#: The band reaches this multiple of what 99.5 % of the samples moved by in the step before.
_BAND = 2.0
_QUANTILE = 0.995
_LEAST_SAMPLES = 20

#: It is widened until flips that are certain leave this share of ε.
_LEAST_BUDGET = 0.02

#: A probe takes in this share of the samples, those nearest to the kink, if nothing is known, looks
#: at no more than so many of them, and stops early.
_PROBE_SHARE = 0.3
_PROBE_SAMPLES = 1500
_PROBE_TOL = 1e-4
_PROBE_ITERATIONS = 15

#: A band of more than this multiple of that number, with so many entries that products with it
#: take most of the time, is probed first; the band around the probe's end reaches this share of the
#: way there.
_MANY = 2
_MANY_ENTRIES = 300_000
_REFINED = 0.3

#: Where a start of unknown distance leaves a large band, of more than this share of all samples, a
#: fit from nothing takes less work (all of w8a for a fold: that of 24 to 48 iterations, not 10).
_CROWDED = 0.5

#: Samples that crossed the kink outside of the band may cost this share of tol; they are taken in
#: not more often than this.
_CROSSED = 0.1
_MOST_WIDENINGS = 5

#: The quadratic program is solved to this share of tol, in at most so many iterations.
_INNER_TOL = 0.1
_INNER_ITERATIONS = 60

#: Of samples that are elsewhere, this share of all entries may be gathered here, or so many if that
#: is more, but never more than half a gigabyte.
_GATHERED_SHARE = 1.0 / 16.0
_FEW_ENTRIES, _MOST_ENTRIES = 1 << 20, 1 << 26


@dataclass(eq=False)
class Work:
    """What a run took beside full Gram matrices."""

    inner_iterations: int = 0
    band_work: float = 0.0  # iterations times the share of samples in the band
    sample_grams: float = 0.0  # Gram matrices of samples, in full ones
    gradient_steps: float = 0.0  # before the first of them, in visits to all samples
    spread: float | None = None  # how far the first step went


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The log-loss to second order at a point."""

    coefficients: FloatArray
    lam: float
    samples: State  # kink_band.Near
    hessian: FloatArray
    gradient: FloatArray  # of the log-loss, and of the hinge where the margin is above the kink
    objective: float
    away: Distances | None = None  # of the samples from the kink, if known
    chords: int = 0  # steps since the Hessian was built


@dataclass(frozen=True, eq=False)
class Balance:
    """What the quadratic program knows of the dual point ``(s - h''·Zd, a)`` of its solution.

    Its intercept's equation is met once the intercept goes on by ``shift``; then the point is
    feasible if it is scaled by ``factor``.
    """

    shift: float
    factor: float


@dataclass(frozen=True, eq=False)
class BandStep:
    """A solution of the quadratic program, followed into the samples."""

    d: FloatArray
    lam: float
    samples: State
    objective: float  # after the whole step
    cut: int  # entries of the dual point that had to be cut to [0, 1]
    bound: float  # what the dual point proves if none had to be
    spread: float  # what 99.5 % of the margins change by at most
    way: list[Waypoint]  # with estimates in units of the objective


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The band as a state, its samples, entries and weight, and what all weigh above the kink."""

    samples: State
    count: int
    entries: int
    weight: float
    above: float

    @property
    def large(self) -> bool:
        return self.count > _MANY * _PROBE_SAMPLES and self.entries > _MANY_ENTRIES


@dataclass(frozen=True, eq=False)
class _Band:
    """The quadratic program on the band: its problem, and which samples there are."""

    scaled: Scaled
    rows: MemoryRows
    quadratic: Expansion
    numbers: IndexArray
    weight: float


class StepFinder:
    """Steps for one problem, with what they share."""

    def __init__(self, scaled: Scaled, tol: float, work: Work) -> None:
        self.scaled, self.tol, self.work = scaled, tol, work
        self.problem, self.rows = scaled.problem, scaled.problem.rows
        self.kappa = self.problem.kappa if scaled.hinge else 0.0

    def kink(self, lam: float) -> float:
        """Where the hinge has its kink, infinitely far off if there is none."""
        return self.kappa * lam if self.scaled.hinge else math.inf

    def step(
        self, here: Linearisation, spread: float | None, way: list[Waypoint] | None
    ) -> BandStep | None:
        """Solve the quadratic program; None where it cannot be done."""
        chosen: _Chosen | None = _Chosen(here.samples, 0, 0, 1.0, 0.0)
        if self.scaled.hinge:
            chosen, way = self._first_band(here, spread, way)
        for _ in range(_MOST_WIDENINGS + 1):
            if chosen is None:
                return None
            band = self._band(here, chosen)
            if band is None:
                return None
            solution = self._solve(here, band, way, _INNER_TOL * self.tol, _INNER_ITERATIONS)
            if not solution.converged:
                return None
            step, crossed = self._follow(here, chosen.samples, band, solution)
            if crossed <= _CROSSED * self.tol:
                return step
            dkink = self.kappa * (step.lam - here.lam)
            samples, (entries,) = self.rows.run(widen, step.samples, self.kink(here.lam), dkink)
            chosen = None if self._too_many(entries) else replace(chosen, samples=samples)
            way = from_level(step.way, 1e-3)
        return None

    def _first_band(
        self, here: Linearisation, spread: float | None, way: list[Waypoint] | None
    ) -> tuple[_Chosen | None, list[Waypoint] | None]:
        """The band to begin with, after a probe where one is called for, and the way into it."""
        chosen = self._around(here, spread)
        if chosen is None or not (chosen.large or spread is None):
            return chosen, way
        probe = self._probe(here, chosen)
        if spread is None:
            chosen = None if probe is None else self._around(here, probe.spread)
            crowded = chosen is not None and chosen.large and self._is_crowded(chosen)
            return None if crowded else chosen, way
        if probe is None:  # so few samples seem to leave nothing of ε, which all of them will
            return chosen, way
        if probe.objective < here.objective:  # and not lost with so few samples
            origin = probe.samples, probe.lam - here.lam
            return self._choose(here, *origin, _REFINED * probe.spread), from_level(probe.way, 1e-3)
        if probe.spread < spread:  # as few samples exaggerate it
            chosen = self._around(here, probe.spread)
        return chosen, way

    def _around(self, here: Linearisation, spread: float | None) -> _Chosen | None:
        """The band around the point of linearisation for a step of this spread, if known."""
        width = None if spread is None else _BAND * spread
        return self._choose(here, here.samples, 0.0, width, here.away)

    def _choose(
        self,
        here: Linearisation,
        samples: State,
        dlam: float,
        width: float | None,
        away: Distances | None = None,
    ) -> _Chosen | None:
        """The band around where the step in the state leads to, of this width at least.

        Without a width, the share of the samples that a probe takes in.  ``away`` are the distances
        from there, if they are known.
        """
        kinks = self.kink(here.lam), self.kappa * dlam
        if away is None:
            _, (away,) = self.rows.run(distances, samples, *kinks)
            assert away is not None  # for mypy
        inside, total = np.cumsum(away.samples), float(away.above.sum())
        left = self.problem.epsilon - self.kappa * (total - np.cumsum(away.above))
        least = min(_LEAST_SAMPLES, self.rows.n_samples)
        if width is None:
            least = max(least, int(_PROBE_SHARE * self.rows.n_samples))
        enough = (inside >= least) & (left > _LEAST_BUDGET * self.problem.epsilon)
        enough[:-1] &= (width or 0.0) <= EDGES
        if not enough[:-1].any():
            return None
        k = int(np.flatnonzero(enough)[0])
        gathered, weight = int(away.entries[: k + 1].sum()), float(away.weight[: k + 1].sum())
        if self._too_many(gathered):
            return None
        samples, _ = self.rows.run(choose, samples, *kinks, k)
        return _Chosen(samples, int(inside[k]), gathered, weight, total)

    def _is_crowded(self, chosen: _Chosen) -> bool:
        return chosen.count > _CROWDED * self.rows.n_samples

    def _too_many(self, entries: int) -> bool:
        return entries > most_entries(self.rows)

    def _band(self, here: Linearisation, chosen: _Chosen, stride: int = 1) -> _Band | None:
        """The quadratic program on the band, or on some of its samples for all of them."""
        problem, scaled = self.problem, self.scaled
        n_features = self.rows.n_columns - problem.fit_intercept
        gradient, epsilon = here.gradient, problem.epsilon
        if scaled.hinge:
            pairs = self.rows.pair(chosen.samples, self.rows.offsets)
            _, (numbers, u, y, w, *parts) = self.rows.run(gather, pairs, stride)
            X = gathered_matrix(tuple(parts), n_features)
            if (np.diff(numbers) < 0).any():
                order = np.argsort(numbers)
                numbers, u, y, w, X = numbers[order], u[order], y[order], w[order], X[order]
            own = float(w.sum())
            weight = chosen.weight if stride > 1 else own
            block = Block(held(X), y, w / own, problem.fit_intercept, thin_copy(X))
            flipped = (u > self.kink(here.lam)) * (w / own)
            gradient = gradient - weight * block.adjoint(flipped)
            epsilon -= self.kappa * (chosen.above - weight * float(flipped.sum()))
        else:
            numbers, weight, empty = np.zeros(0, dtype=np.intp), 1.0, np.zeros(0)
            block = Block(np.zeros((0, n_features)), empty, empty, problem.fit_intercept)
        if not (weight > 0.0 and epsilon > 0.0):
            return None
        rows = MemoryRows([block], 1, block)
        rows.column_scale = self.rows.column_scale
        part = replace(problem, rows=rows, epsilon=epsilon / weight)
        quadratic = Expansion(here.coefficients, gradient / weight, here.hessian / weight)
        return _Band(Scaled(part, scaled.scale, scaled.sigma), rows, quadratic, numbers, weight)

    def _solve(
        self,
        here: Linearisation,
        band: _Band,
        way: list[Waypoint] | None,
        tol: float,
        max_iter: int,
    ) -> QuadraticSolution:
        """The solution on the band, from the point of linearisation or from one on the way."""
        scaled = self.scaled
        if way:
            x, lam = way[0].x, way[0].lam
            mu = way[0].estimate / band.weight / 3.0  # two for the hinge, one for the cone
        else:
            x, lam, mu = opening(
                band.scaled, here.coefficients / scaled.scale, here.lam * scaled.sigma
            )
        solution = solve_quadratic(
            band.scaled, band.quadratic, x, lam, mu, tol=tol / band.weight, max_iter=max_iter
        )
        self.work.inner_iterations += solution.iterations
        self.work.band_work += solution.iterations * band.numbers.size / self.rows.n_samples
        return solution

    def _follow(
        self, here: Linearisation, samples: State, band: _Band, solution: QuadraticSolution
    ) -> tuple[BandStep, float]:
        """The step's way through all samples, and what those cost that crossed outside the band."""
        scaled = self.scaled
        lam = solution.lam / scaled.sigma
        d = scaled.coefficients(solution.x) - here.coefficients
        share = np.clip(solution.flip_share, 0.0, 1.0)
        balance = self._balance(band, d, share)
        followed, (found,) = self.rows.run(
            follow, self.rows.pair(samples, self.rows.offsets), d, self.kink(here.lam),
            self.kappa * (lam - here.lam), band.numbers, share, balance.shift, balance.factor,
        )  # fmt: skip
        way = [Waypoint(p.estimate * band.weight, p.x, p.lam) for p in solution.way]
        objective = float(found.loss) + self.problem.epsilon * lam
        spread, bound = _quantile(found.changes), float(found.value)
        step = BandStep(d, lam, followed, objective, int(found.cut), bound, spread, way)
        return step, float(found.crossed)

    def _balance(self, band: _Band, d: FloatArray, share: FloatArray) -> Balance:
        """From the gradient of the quadratic program but for its cone, and what its flips cost."""
        hessian, shift = band.quadratic.hessian, 0.0
        gradient = band.quadratic.gradient + hessian @ d
        spent = self.problem.epsilon - band.weight * band.scaled.problem.epsilon
        if self.scaled.hinge:
            (block,) = band.rows.blocks
            flipped = block.weights * share
            gradient = gradient + block.adjoint(flipped)
            spent += self.kappa * band.weight * float(flipped.sum())
        if self.problem.fit_intercept and hessian[-1, -1] > 0.0:
            shift = -float(gradient[-1] / hessian[-1, -1])
            gradient = gradient + shift * hessian[-1]
        used = self.problem.transport_norm(band.weight * gradient) + spent
        return Balance(shift, min(1.0, self.problem.epsilon / used) if used > 0.0 else 1.0)

    def _probe(self, here: Linearisation, chosen: _Chosen) -> BandStep | None:
        """A rough solution on some of the samples of the band."""
        band = self._band(here, chosen, max(1, chosen.count // _PROBE_SAMPLES))
        if band is None:
            return None
        solution = self._solve(here, band, None, _PROBE_TOL, _PROBE_ITERATIONS)
        return self._follow(here, chosen.samples, band, solution)[0]


def most_entries(rows: Rows) -> float:
    """How many entries of samples may be gathered in this process."""
    if isinstance(rows, MemoryRows):
        return math.inf
    return min(_MOST_ENTRIES, max(_FEW_ENTRIES, _GATHERED_SHARE * rows.n_nonzeros))


def from_level(way: list[Waypoint], level: float) -> list[Waypoint]:
    """The way from the last point on it that was still at this level."""
    before = [k for k, point in enumerate(way) if point.estimate >= level]
    return way[before[-1] if before else 0 :]


def _quantile(counts: IndexArray) -> float:
    """The distance that most samples of a histogram do not exceed."""
    total = np.cumsum(counts)
    k = int(np.flatnonzero(total >= _QUANTILE * total[-1])[0])
    return float(EDGES[min(k, EDGES.size - 1)])
