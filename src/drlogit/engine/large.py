"""Many samples: the driver on a model of the loss, hinges only where they can bend.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],     u = Zβ
    subject to  ‖β / c‖_* ≤ λ

Between two *surveys* of all rows the log-loss is its quadratic model at the last point (one Gram
matrix), and samples further from the kink than a step can carry them stay on their side of it.  The
driver, unchanged, sees a matrix and the samples near the kink, which are gathered into memory.

1. Start: a quarter of the rows, by the same method, and so on down to a sample that is solved as it
   is; or a point that somebody knows.  The best multiple of it: no sample crosses the kink.
2. Model: Gram matrix and gradient there.  Near the kink is who a step can carry across it: as far as
   its force goes against the curvature of the loss and the samples that it flips on its way.
3. The driver on the model, to a small share of the distance.
4. Survey at its answer: objective, next gradient, and the bound of the dual point that the model's
   multipliers make (``s - h''·Z(d + c)``, a).  Too little gained: those who crossed unseen come along.
5. Until the bound is within the tolerance: 2, with the old Gram matrix where that told the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..dual.bound import Coordinates, DualSums, lower_bound
from ..problem.problem import Problem
from ..problem.result import Status
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Stack, Sum
from ..starts.sample import Samples, most_entries, part, sampled, stacked
from . import driver
from ._pair import correct_pair, linearise_pair, open_loss, open_pair, predict_pair
from ._survey import look, near_shares, survey
from .settings import SETTINGS

#: A linear loss of no slope, for the driver's samples: the model has theirs.
_NO_LOSS = np.full(2, 1e-300)

#: Edges of the bins for distances from the kink, eight to an octave: where the first bits of a
#: double change.
_SHIFT = 49
_FIRST = int(np.float64(2.0**-40).view(np.int64)) >> _SHIFT
_EDGES = ((_FIRST + np.arange(70 * 8 + 1)) << _SHIFT).view(np.float64)


@dataclass
class Work:
    """What a fit took, in Gram matrices of all its samples, and in visits to them."""

    grams: float = 0.0
    sample_grams: float = 0.0
    near_grams: float = 0.0
    iterations: int = 0
    surveys: int = 0
    log: list[Any] = field(default_factory=list)

    @property
    def total(self) -> float:
        return self.grams + self.sample_grams + self.near_grams


class Sight(NamedTuple):
    """What a block remembers: margins, the curvatures of the Gram matrix, the band, the last survey."""

    u: FloatArray
    curvature: Any = None
    inside: Any = None
    ahead: Any = None
    s: Any = None
    a: Any = None


class Distances(NamedTuple):
    """Histograms of the distances from the kink."""

    weight: FloatArray
    above: FloatArray  # weight above the kink
    entries: FloatArray


class Found(NamedTuple):
    """Where a level was left: the model with λ, the objective, the bound, and what proves it."""

    model: FloatArray
    objective: float
    bound: float
    point: State | None
    status: Status


@dataclass(frozen=True, eq=False)
class Parabola:
    """The loss around a model (with λ), without the hinges of the samples that the driver sees."""

    centre: FloatArray
    value: float
    gradient: FloatArray
    gram: FloatArray

    def at(self, model: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        d = model - self.centre
        curved = self.gram @ d
        return self.value + float(d @ (self.gradient + 0.5 * curved)), self.gradient + curved


class ModelSamples:
    """The driver's samples: a parabola, and the hinges near the kink."""

    def __init__(self, near: Block, kappa: float, parabola: Parabola, least: float) -> None:
        self.rows, self.kappa, self.parabola = near.compiled, np.array([kappa]), parabola
        self.least, self.light = least, 1e-9 * float(near.weights.mean()) if near.y.size else 0.0
        self.gram_rows = 0.0

    def open(self, coef: FloatArray, mu: float) -> Any:
        return open_pair(self.rows, self.kappa, coef, mu), coef, None

    def linearise(self, state: Any, coef: FloatArray, primal: float, dual: float, mu: float) -> Any:
        P = coef.size
        pair, sums = linearise_pair(
            self.rows, state[0], coef, primal, dual, _NO_LOSS, True, self.least
        )
        value, slope = self.parabola.at(coef)
        self.gram_rows += sums[-1]
        sums[: P * P] += self.parabola.gram.ravel()
        sums[P * P : P * P + P] += slope
        scalars = sums[P * P + 3 * P :]
        scalars[0] += value
        scalars[1] += value
        scalars[5] += value - slope @ coef
        return (pair, coef, slope), sums

    def predict(self, state: Any, dcoef: FloatArray) -> Any:
        pair, sums = predict_pair(self.rows, state[0], dcoef, self.light)
        return (pair, *state[1:]), sums

    def correct(self, state: Any, dcoef: FloatArray, centre: float, share: float) -> Any:
        pair, coef, slope = state
        pair, sums = correct_pair(
            self.rows, pair, dcoef, centre, share, self.light, _NO_LOSS
        )
        sums[0], sums[1] = slope @ dcoef, dcoef @ self.parabola.gram @ dcoef
        return (pair, coef, slope), sums

    def certify(self, state: Any, point: Any, dcoef: FloatArray) -> Any:
        """The dual point is that of the loss's slopes at a model, and the flips of the near."""
        model, shares = (state[1], None) if point is None else point
        model = model + dcoef
        shares, adjoint = near_shares(self.rows, state[0], shares, dcoef, self.least)
        value, slope = self.parabola.at(model)
        return (model, shares), np.concatenate([slope + adjoint, [value - slope @ model, 0.0]])


class Level:
    """A set of samples, with what the last look and survey found."""

    def __init__(self, problem: Problem, coordinates: Coordinates, scaling: Any, work: Work) -> None:
        self.problem, self.coordinates, self.scaling, self.work = problem, coordinates, scaling, work
        self.rows, self.kappa = problem.rows, np.array([problem.kappa])
        self.hinge = math.isfinite(problem.kappa)
        self.share = 1.0  # of all samples: in what work is counted

    def solve(
        self, model: FloatArray, distance: float, sampled: bool, tol: float, proven: bool
    ) -> Found | None:
        """From a model that is about ``distance`` nats from the best; None if that leads nowhere.

        ``sampled``: it is the best one on other samples.  Without ``proven`` an estimate suffices.
        """
        bound, point, objective = 0.0, None, math.inf
        state, model, gram, sums = self._open(model)
        objective = self._objective(model, sums[-3:])
        flat, gradient = sums[-1], sums[:-3]
        for _ in range(SETTINGS.most_models):
            tol_here = max(tol, 0.0)
            near = self._near(state, model, flat, distance, sampled)
            if near is None:
                return None
            state, distance = near
            sampled = False
            target = max(SETTINGS.inner * distance, 0.1 * tol_here)
            begin, off = model, distance
            for again in range(SETTINGS.most_widenings):
                samples = self._gather(state)
                if samples is None:
                    return None
                inner = self._run(model, begin, samples, gram, gradient, objective, flat, off, target)
                if inner is None:
                    return None
                best, promised, corrected, shares = inner
                step = 1.0
                while True:
                    ahead = model + step * (best - model)
                    after, seen = self._survey(
                        state, model, best, corrected, samples.numbers, shares, step
                    )
                    P = model.size
                    value = self._objective(ahead, seen[2 * P + 2 :])
                    found = DualSums(-seen[: P - 1], -seen[P - 1], seen[2 * P], seen[2 * P + 1])
                    known, _ = lower_bound(self.coordinates, self.problem.epsilon, found)
                    if known > bound or point is None:
                        bound, point = known, after
                    gained, missed = objective - value, value - promised
                    good = gained >= SETTINGS.gained * step * (objective - promised)
                    good = good or min(objective, value) - bound <= tol
                    unseen = seen[2 * P + 4]
                    last = again + 1 == SETTINGS.most_widenings
                    if good or step < 1e-3 or (step == 1.0 and not last and unseen > 0.5 * missed):
                        break
                    step *= 0.5
                self.work.log.append((self.rows.n_samples, len(samples.numbers), min(value, objective) - bound, step, distance, objective - promised, missed, unseen))
                if good or step < 1.0:
                    break
                state, _ = self.rows.run(_widen, after, self._kink(model), self._kink(ahead))
                begin, off = best, missed
            before = distance
            if value <= objective:
                state, _ = self.rows.run(_accept, after)
                model, objective, gradient = ahead, value, seen[P : 2 * P]
            certified = max(objective - bound, 0.0)
            distance = min(certified, 3.0 * (abs(missed) + target))
            if certified <= tol or (not proven and distance <= tol):
                return Found(model, objective, bound, point, Status.OPTIMAL)
            if 3.0 * abs(missed - unseen) > SETTINGS.keep_gram * before:
                state, _, gram, sums = self._look(state, model, 1.0)
                flat = sums[-1]
        return Found(model, objective, bound, point, Status.STALLED)

    def _kink(self, model: FloatArray) -> float:
        return self.problem.kappa * float(model[-1]) if self.hinge else math.inf

    def _objective(self, model: FloatArray, losses: FloatArray) -> float:
        """From the sums of loss and hinges."""
        return float(self.problem.epsilon * model[-1] + losses[0] + losses[1])

    def _open(self, model: FloatArray) -> tuple[State, FloatArray, FloatArray, FloatArray]:
        """Margins and the loss's model at the best multiple of a model."""
        state, _ = self.rows.run(_open, None, model)
        factor = self._multiple(state, model) if self.hinge else 1.0
        self.work.log.append(("multiple", factor))
        return self._look(state, factor * model, factor)

    def _multiple(self, state: State, model: FloatArray) -> float:
        """The best multiple of a model: it leaves every sample on its side of the kink."""
        factor, flat = 1.0, math.nan
        for _ in range(8):
            _, (sums,) = self.rows.run(_ray, state, factor, self._kink(model))
            over, slope, curvature = sums
            if math.isnan(flat):
                flat = self.problem.epsilon * model[-1] + over
            new = factor - (flat - slope) / curvature if curvature > 0.0 else factor
            new = min(max(new, 0.2 * factor), 5.0 * factor)
            done, factor = abs(new - factor) <= 0.01 * factor, new
            if done:
                break
        return max(factor, SETTINGS.least_multiple)

    def _look(
        self, state: State, model: FloatArray, factor: float
    ) -> tuple[State, FloatArray, FloatArray, FloatArray]:
        """The loss's model: Gram matrix, gradient with flips above the kink and scalars."""
        P = model.size
        state, (sums,) = self.rows.run(_look, state, self.kappa, factor, float(model[-1]))
        self.work.grams += self.share
        lower = sums[: P * P].reshape(P, P)
        gram = lower + np.tril(lower, -1).T
        return state, model, gram, sums[P * P :]

    def _near(
        self, state: State, model: FloatArray, flat: float, distance: float, sampled: bool
    ) -> tuple[State, float] | None:
        """Who a step can carry across the kink, and how much it can gain.

        A step of length r in the margins works against ``r·h'' + W(r)/2``, where W(r) is the weight
        within r of the kink.  A sampling error is a force; any other distance is an energy.
        """
        if not self.hinge:
            return state, distance
        kink, problem = self._kink(model), self.problem
        _, (seen,) = self.rows.run(_distances, state, kink)
        within = np.cumsum(seen.weight)
        push = _EDGES * flat + 0.5 * within[:-1]
        if sampled:
            force = SETTINGS.reach * math.sqrt(2.0 * distance * SETTINGS.null_curvature)
            k = int(np.searchsorted(push, force))
        else:
            k = int(np.searchsorted(_EDGES * push, 2.0 * SETTINGS.reach**2 * distance))
        least = (model.size + 1) / self.rows.n_samples
        k = max(k, int(np.searchsorted(within, least)))
        # Flips that are certain leave some of ε.
        beyond = problem.kappa * (seen.above.sum() - np.cumsum(seen.above))
        k = min(max(k, int(np.argmax(beyond <= 0.9 * problem.epsilon))), _EDGES.size - 1)
        if sampled:
            distance = 0.5 * float(_EDGES[k] * push[k]) / SETTINGS.reach**2
        if seen.entries[: k + 1].sum() > most_entries(self.rows):
            return None
        if within[k] > SETTINGS.crowded:
            return None
        state, _ = self.rows.run(_choose, state, kink, float(_EDGES[k]))
        return state, distance

    def _gather(self, state: State) -> Samples | None:
        if not self.hinge:
            state, _ = self.rows.run(_nobody, state)
        rows = self.rows
        return Samples(rows, rows.run(_gather, rows.pair(state, rows.offsets))[1])

    def _run(
        self, model: FloatArray, begin: FloatArray, samples: Samples, gram: FloatArray,
        gradient: FloatArray, objective: float, flat: float, off: float, target: float,
    ) -> tuple[FloatArray, float, FloatArray, FloatArray] | None:  # fmt: skip
        """The driver on the model: its model and objective, and its dual point."""
        problem, near = self.problem, samples.block
        v = samples.u - self._kink(model)
        above = np.where(v > 0.0, near.weights, 0.0)
        parabola = Parabola(
            model,
            objective - problem.epsilon * float(model[-1]) - float(above @ np.maximum(v, 0.0)) if v.size else objective - problem.epsilon * float(model[-1]),
            gradient - np.append(near.adjoint(above), -problem.kappa * above.sum() if v.size else 0.0),
            gram,
        )  # fmt: skip
        held = ModelSamples(near, problem.kappa, parabola, SETTINGS.curved * flat)
        newton = self.scaling.newton(problem, self.coordinates)
        x = begin / self.scaling.scale
        mu = min(SETTINGS.start_mu, off / (2.0 * float(near.weights.sum()) + 1.0))
        if v.size:
            mu = max(mu, SETTINGS.sharp * float(np.abs(v).max()))
        x[-1] += min(off / newton.epsilon, 0.1 * x[-1])
        newton.open(x, mu)
        found = driver.run(held, newton, held.open(newton.trial(0.0), mu), mu, target, 60)
        self.work.log.append((found.n_iter, found.status.name, mu))
        self.work.iterations += found.n_iter
        self.work.near_grams += self.share * held.gram_rows / self.rows.n_samples
        if found.point is None:
            return None
        return newton.best_model(), float(newton.best), *found.point

    def _survey(
        self, state: State, model: FloatArray, best: FloatArray, corrected: FloatArray,
        numbers: Any, shares: FloatArray, step: float,
    ) -> tuple[State, FloatArray]:  # fmt: skip
        self.work.surveys += 1
        state, (sums,) = self.rows.run(
            _survey, self.rows.pair(state, self.rows.offsets), self.kappa, numbers, shares,
            best - model, corrected - model, step, float(model[-1]),
        )  # fmt: skip
        return state, sums


# --- visits to a block ---------------------------------------------------------------------------


def _open(block: Block, _: None, model: FloatArray) -> tuple[Sight, tuple[()]]:
    return Sight(open_loss(block.compiled, model)), ()


def _ray(block: Block, k: Sight, factor: float, kink: float) -> tuple[Sight, tuple[Sum]]:
    w, u = block.weights, k.u
    s = 1.0 / (1.0 + np.exp(np.minimum(factor * u, 700.0)))
    slope = w * s
    sums = [w @ np.maximum(u - kink, 0.0), slope @ u, (slope * (1.0 - s)) @ (u * u)]
    return k, (Sum(np.array(sums)),)


def _look(
    block: Block, k: Sight, kappa: FloatArray, factor: float, lam: float
) -> tuple[Sight, tuple[Sum]]:
    u, curvature, sums = look(block.compiled, kappa, k.u, factor, lam, True)
    return Sight(u, curvature), (Sum(sums),)


def _distances(block: Block, k: Sight, kink: float) -> tuple[Sight, tuple[Sum[Distances]]]:
    place, size = _bins(np.abs(k.u - kink)), _EDGES.size + 1
    weight = np.bincount(place, block.weights, minlength=size)
    above = np.bincount(place, block.weights * (k.u > kink), minlength=size)
    if sp.issparse(block.X):
        entries = np.bincount(place, np.diff(block.X.indptr), minlength=size)
    else:
        entries = block.X.shape[1] * np.bincount(place, minlength=size)
    return k, (Sum(Distances(weight, above, entries)),)


def _bins(q: FloatArray) -> Any:
    """Number of the bin of each distance: bin k ends before ``_EDGES[k]``, the last has no end."""
    return np.clip((q.view(np.int64) >> _SHIFT) - (_FIRST - 1), 0, _EDGES.size)


def _choose(block: Block, k: Sight, kink: float, reach: float) -> tuple[Sight, tuple[()]]:
    return k._replace(inside=(np.abs(k.u - kink) < reach).view(np.uint8)), ()


def _nobody(block: Block, k: Sight) -> tuple[Sight, tuple[()]]:
    return k._replace(inside=np.zeros(k.u.size, np.uint8)), ()


def _widen(block: Block, k: Sight, kink: float, kink_ahead: float) -> tuple[Sight, tuple[()]]:
    """Those who crossed the kink, and all who moved half as far as it is, come along."""
    v, after = k.u - kink, k.ahead - kink_ahead
    near = ((after > 0.0) != (v > 0.0)) | (np.abs(v) <= 2.0 * np.abs(after - v))
    return k._replace(inside=k.inside | near.view(np.uint8)), ()


def _accept(block: Block, k: Sight) -> tuple[Sight, tuple[()]]:
    return Sight(k.ahead, k.curvature), ()


def _gather(block: Block, pair: tuple[Sight, int]) -> tuple[None, tuple[Stack, ...]]:
    k, offset = pair
    return stacked(block, offset, k.u, np.flatnonzero(k.inside))


def _survey(
    block: Block, pair: tuple[Sight, int], kappa: FloatArray, numbers: Any, shares: FloatArray,
    change: FloatArray, dual_change: FloatArray, step: float, lam: float,
) -> tuple[Sight, tuple[Sum]]:  # fmt: skip
    k, offset = pair
    inside = np.zeros(k.u.size, np.uint8) if k.inside is None else k.inside
    first, last = np.searchsorted(numbers, [offset, offset + k.u.size])
    ahead, s, a, sums = survey(
        block.compiled, kappa, k.u, k.curvature, inside, shares[first:last], change, dual_change,
        step, lam,
    )  # fmt: skip
    return k._replace(ahead=ahead, s=s, a=a), (Sum(sums),)


# --- from a sample to all ------------------------------------------------------------------------


def shares_of(problem: Problem) -> list[float]:
    """Shares of the samples, ascending, that lead to all of them; none if those are too few."""
    rows = problem.rows
    shares, share = [], 1.0 / SETTINGS.growth
    while share * rows.n_samples >= SETTINGS.least_samples * rows.n_columns:
        if share * rows.n_nonzeros <= most_entries(rows):
            shares.insert(0, share)
        share /= SETTINGS.growth
    return shares


def from_sample(problem: Problem, shares: list[float], cold: Any, make: Any, work: Work) -> Any:
    """The best model on a share of the samples, and that share; None where they do not lead there."""
    block, places = sampled(problem.rows, shares[-1])
    n, model, before = problem.rows.n_columns, None, 0.0
    for share in shares:
        rows = part(block, places < share)
        if rows is None:
            return None
        here, m = replace(problem, rows=rows), rows.n_samples
        tol = SETTINGS.sample_tolerance * n / m
        if model is None:
            for _ in range(8):
                model, n_iter = cold(here, tol)
                work.sample_grams += n_iter * share
                work.log.append(('cold', m, n_iter, here.epsilon, model[-1]))
                # Nearly constant: no direction.  A smaller radius has about the same one.
                if not math.isfinite(here.kappa) or here.kappa * model[-1] > 0.5 * math.sqrt(n / m):
                    break
                here = problem = replace(here, epsilon=0.8 * here.epsilon)
        else:
            level = make(replace(here, epsilon=problem.epsilon))
            level.share = share
            found = level.solve(model, 0.5 * n / problem.rows.n_samples * (1.0 / before - 1.0 / share) if False else 0.5 * n * (1.0 / m_before - 1.0 / m), True, tol, False)
            if found is None:
                return None
            model = found.model
        before, m_before = share, m
    return model, m_before


def solve_large(problem: Problem, coordinates: Any, scaling: Any, cold: Any, make: Any, tol: float, start: Any = None) -> Any:
    work = Work()
    n, N = problem.rows.n_columns, problem.rows.n_samples
    shares = shares_of(problem)
    if not shares:
        return None, work
    with np.errstate(all="ignore"):
        known = from_sample(problem, shares, cold, lambda here: make(here, work), work)
        if known is None:
            return None, work
        model, m = known
        level = make(problem, work)
        found = level.solve(model, 0.5 * n * (1.0 / m - 1.0 / N), True, tol, True)
    return found, work
