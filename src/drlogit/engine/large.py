"""Many samples: the driver on a model of the loss, hinges only where they can bend.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],     u = Zβ
    subject to  ‖β / c‖_* ≤ λ

Between two *surveys* of all rows the log-loss is its quadratic model at the last point (one Gram
matrix), and samples further from the kink than a step can carry them stay on their side of it.  The
driver, unchanged, sees a matrix and the samples near the kink, which are gathered into memory.

1. Start: the best model on a share of the rows, or one that somebody knows.  A better multiple of
   it: no sample crosses the kink.
2. Model: Gram matrix and gradient there.  Near the kink is who a step can carry across it: as far
   as its force goes against the curvature of the loss and the samples that it flips on its way.
3. The driver on the model, to a small share of the distance.
4. Survey at its answer: objective, next gradient, and the bound of the dual point that the model's
   multipliers make (``s - h''·Z(d + c)``, a).  Too little gained: who crossed unseen comes along.
5. Until the bound is within the tolerance: 2, with the old Gram matrix where that told the truth.
   Only along multiples of the model it has the curvature of now, which a survey knows: the best
   model on a sample is too long by what it owes to chance, and most of what is left is to shrink.

Derivation: docs/algorithm.md, section 10, (20) and (21).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..dual.bound import DualSums, lower_bound
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Status
from ..rows.arrays import BoolArray, FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.reductions import Sum
from ..starts.sample import GatheredSamples, gathered, most_entries, picked, sampled
from ..starts.start import Start, sampling_error
from . import driver
from ._pair import certify_pair, correct_pair, linearise_pair, open_pair, predict_pair
from ._survey import EDGES, survey
from .settings import SETTINGS

#: Report of the objective, the bound and λ; True ends the run.
Report = Callable[[float, float, float], bool]


@dataclass
class Work:
    """What a fit took, in Gram matrices of all its samples; visits are counted."""

    grams: float = 0.0
    sample_grams: float = 0.0
    near_grams: float = 0.0
    visits: int = 0

    @property
    def total(self) -> float:
        """All of it in Gram matrices."""
        return float(self.grams + self.sample_grams + self.near_grams)


class LargeFit(NamedTuple):
    """Where the method ended: the model with λ, the bound, and the state (s, a) that proves it."""

    model: FloatArray
    objective: float
    bound: float
    point: State | None
    status: Status


class Sight(NamedTuple):
    """What a block remembers: margins, the model's curvatures, the near, a survey's (s, a)."""

    u: FloatArray
    curvature: Any = None
    near: Any = None
    point: Any = None


class Here(NamedTuple):
    """A model (with λ), its objective, the gradient of its loss with flips above the kink, its
    Hessian times the model, and histograms of distances from the kink (``_survey``).  After a step:
    what it misses of the model's promise, and what of that crossed the kink unseen.
    """

    state: State
    model: FloatArray
    objective: float
    gradient: FloatArray
    bent: FloatArray
    crowd: FloatArray
    missed: float = 0.0
    unseen: float = 0.0


class Promise(NamedTuple):
    """The driver's answer: a model and its objective; how the dual point changes margins, by the
    model's curvature and, as a multiple of them, by that of now; flips of samples near the kink.
    """

    model: FloatArray
    objective: float
    dual_change: FloatArray
    multiple: float
    flips: FloatArray


class ModelSamples:
    """What the driver sees: a parabola, and the hinges of the samples near the kink.

    A state is (pairs, model, gradient of the parabola there).  Of the near samples the parabola has
    the loss, not the hinges; hinges of less curvature than ``least`` do not bend.  In the first
    iterations many bend, and alike: their Gram matrix is not formed.
    """

    def __init__(
        self, near: Block, kappa: float, least: float, centre: FloatArray, value: float,
        gradient: FloatArray, gram: FloatArray,
    ) -> None:  # fmt: skip
        self.rows, self.kappa = near.compiled, near.flip_costs(kappa)
        self.slopes = np.zeros(near.y.size)  # the parabola has their loss
        self.centre, self.value, self.gradient, self.gram = centre, value, gradient, gram
        self.least, self.gram_rows = least, 0.0
        many = SETTINGS.many_columns <= centre.size < near.y.size / SETTINGS.least_samples
        self.alike = SETTINGS.alike if many else 0  # iterations to come

    def _parabola(self, model: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at a model (with λ)."""
        d = model - self.centre
        curved = self.gram @ d
        return self.value + float(d @ (self.gradient + 0.5 * curved)), self.gradient + curved

    def open(self, coef: FloatArray, mu: float) -> Any:
        return open_pair(self.rows, self.kappa, self.slopes, coef, mu), coef, None

    def linearise(self, state: Any, coef: FloatArray, primal: float, dual: float, mu: float) -> Any:
        P, formed = coef.size, self.alike == 0
        pairs, sums = linearise_pair(self.rows, state[0], coef, primal, dual, formed, self.least)
        if not formed:
            self.alike -= 1
            sums = np.concatenate([self._alike(sums[:P], sums[P : 2 * P]).ravel(), sums[2 * P :]])
        value, slope = self._parabola(coef)
        scalars = sums[P * P + 3 * P :]
        self.gram_rows += scalars[7] * formed
        sums[: P * P] += self.gram.ravel()
        sums[P * P : P * P + P] += slope
        scalars[:2] += value
        scalars[5] += value - slope @ coef
        return (pairs, coef, slope), sums

    def _alike(self, squares: FloatArray, column: FloatArray) -> FloatArray:
        """A Gram matrix of this diagonal and λ's column, the rest correlated as in the loss's."""
        along = column / math.sqrt(max(column[-1], 1e-300))
        own = np.diag(self.gram)
        left = np.sqrt(np.maximum(squares - along * along, 0.0) / np.where(own > 0.0, own, 1.0))
        return np.outer(along, along) + np.outer(left, left) * self.gram

    def predict(self, state: Any, dcoef: FloatArray) -> Any:
        pairs, sums = predict_pair(self.rows, state[0], dcoef)
        return (pairs, *state[1:]), sums

    def correct(self, state: Any, dcoef: FloatArray, centre: float, share: float) -> Any:
        pairs, sums = correct_pair(self.rows, state[0], dcoef, centre, share)
        sums[0], sums[1] = state[2] @ dcoef, dcoef @ self.gram @ dcoef
        return (pairs, *state[1:]), sums

    def certify(self, state: Any, point: Any, dcoef: FloatArray) -> Any:
        """The dual point is (the model at which the parabola has its slopes, flips of the near)."""
        model, pairs = (state[1], state[0]) if point is None else (point[0], (state[0], point[1]))
        model = model + dcoef
        value, slope = self._parabola(model)
        shares, sums = certify_pair(self.rows, pairs, dcoef, self.least)
        sums[: dcoef.size] += slope
        sums[dcoef.size] = value - slope @ model
        return (model, shares), sums


class LargeRun:
    """A run of the method, with the Gram matrix of the last model and the best bound so far.

    ``scaling`` is the problem in the engine's coordinates.
    """

    def __init__(self, scaling: Any, work: Work) -> None:
        self.scaling, self.work = scaling, work
        self.problem: Problem = scaling.problem
        self.rows, self.kappa = self.problem.rows, self.problem.kappa
        self.newton = scaling.newton(self.problem.epsilon)
        self.bound, self.point = 0.0, None
        self.gram, self.flat = np.zeros((0, 0)), 0.0  # of the last model: matrix, mean curvature
        # How far a step moves margins, and how many samples may be near the kink.
        entries = max(self.rows.n_nonzeros / self.rows.n_samples, 1.0)
        self.moved, self.most = 0.0, most_entries(self.rows) / entries

    def solve(self, start: Start, tol: float, report: Report) -> LargeFit | None:
        """The best model from a start; None where that leads nowhere."""
        here, distance, sampled = self._open(start), start.distance, start.sampled
        if not sampled:
            self.most = min(self.most, SETTINGS.crowded * self.rows.n_samples)
        for _ in range(SETTINGS.most_models):
            chosen = self._choose(here, distance, sampled)
            if chosen is None:
                return None
            state, distance = chosen
            target = max(SETTINGS.inner * distance, 0.1 * tol)
            there = self._step(here._replace(state=state), distance, target, tol, sampled)
            if there is None:
                return None
            before, sampled = distance, False
            here = there if there.objective <= here.objective else here
            certified = max(here.objective - self.bound, 0.0)
            distance = min(certified, 3.0 * (abs(there.missed) + target))
            stop = report(here.objective, self.bound, float(here.model[-1]))
            if certified <= tol or stop:
                status = Status.OPTIMAL if certified <= tol else Status.STOPPED
                return LargeFit(here.model, here.objective, self.bound, self.point, status)
            if distance > SETTINGS.keep_gram * before:
                here = self._look(here.state, here.model, 1.0)
        return LargeFit(here.model, here.objective, self.bound, self.point, Status.STALLED)

    # --- the loss's model ------------------------------------------------------------------------

    def _visit(self, function: Any, state: Any, *arguments: Any) -> Any:
        self.work.visits += 1
        return self.rows.run(function, state, *arguments)

    def _kink(self, model: FloatArray) -> float:
        return self.problem.cost.kink(float(model[-1]))

    def _open(self, start: Start) -> Here:
        """The loss's model at a start, or at a better multiple: no sample crosses the kink."""
        model = np.append(start.model, start.lam)
        state, ((slope, curvature),) = self._visit(_open, None, model, self._kink(model))
        slope += self.problem.epsilon * start.lam
        factor = 1.0 - slope / curvature if curvature > 0.0 else 1.0  # Newton's method, one step
        factor = min(max(factor, SETTINGS.least_multiple), 2.0)
        return self._look(state, factor * model, factor)

    def _look(self, state: State, model: FloatArray, factor: float) -> Here:
        """The Gram matrix, the gradient with flips above the kink, and the objective."""
        state, (gram, sums) = self._visit(_look, state, factor, self._kink(model), self.kappa)
        self.gram = np.zeros((model.size, model.size))
        self.gram[:-1, :-1] = gram
        self.work.grams += 1.0
        self.flat = float(self._split(sums)[3][2])
        return self._here(state, model, sums)

    def _split(self, sums: FloatArray) -> list[FloatArray]:
        """Adjoint, gradient, Hessian times the model, scalars, histograms (``_survey``)."""
        P = self.rows.n_columns + 1
        return np.split(sums, [P, 2 * P, 3 * P, sums.size - 2 * (EDGES.size + 1)])

    def _here(self, state: State, model: FloatArray, sums: FloatArray) -> Here:
        """Of the sums at a model."""
        _, gradient, bent, (loss, hinges, *_), crowd = self._split(sums)
        objective = float(self.problem.epsilon * model[-1] + loss + hinges)
        return Here(state, model, objective, gradient, bent, crowd.reshape(2, -1))

    def _choose(self, here: Here, distance: float, sampled: bool) -> tuple[State, float] | None:
        """Who a step can carry across the kink, and how much it can gain; None: too many.

        A step of r in the margins works against ``r·h'' + W(r)/2``, where W(r) is the weight of
        samples within r of the kink.  A sampling error is a force, any other distance an energy.
        """
        if not self.problem.flips:
            return self.rows.run(_choose, here.state, math.inf, 0.0)[0], distance
        within, below = np.cumsum(here.crowd, axis=1)
        beyond = below[-1] - below
        force = EDGES * self.flat + 0.5 * within[:-1]
        if sampled:
            k = np.searchsorted(force, SETTINGS.reach * math.sqrt(0.5 * distance))
        else:
            k = np.searchsorted(EDGES * force, 2.0 * SETTINGS.reach**2 * distance)
        self.moved = float(EDGES[np.minimum(k, EDGES.size - 1)]) / SETTINGS.reach
        # As many as can be at the kink, and so many that certain flips leave some of ε.
        k = max(k, np.searchsorted(within, (here.model.size + 1) / self.rows.n_samples))
        k = max(k, np.argmax(self.problem.kappa * beyond <= 0.9 * self.problem.epsilon))
        k = np.minimum(k, EDGES.size - 1)
        if sampled:
            distance = 0.5 * float(EDGES[k] * force[k]) / SETTINGS.reach**2
        kink = self._kink(here.model)
        state, (count,) = self.rows.run(_choose, here.state, kink, float(EDGES[k]))
        return None if count > self.most else (state, distance)

    # --- a step ----------------------------------------------------------------------------------

    def _step(
        self, here: Here, distance: float, target: float, tol: float, sampled: bool
    ) -> Here | None:
        """The driver's step on the model, with all who would cross the kink unseen; or shorter.

        On the way from a sample to all the driver need not prove how far it is from the optimum.
        """
        begin, off = here.model, distance
        for _ in range(SETTINGS.most_models):
            near = gathered(self.rows, _gather, self.rows.pair(here.state, self.rows.offsets))
            self.work.visits += 1
            run = self._run(here, begin, near, off, target, sampled)
            if run is None:
                return None
            length, there = 1.0, self._survey(here, run, near, 1.0)
            while not (enough := self._enough(here, run, there, length, tol)) and length > 1e-3:
                if length == 1.0 and there.unseen > 0.5 * there.missed:
                    break
                length *= 0.5
                there = self._survey(here, run, near, length)
            if enough or length < 1.0:
                return there
            kinks = self._kink(here.model), self._kink(run.model)
            both = self.rows.pair(here.state, there.state)
            state, (count,) = self.rows.run(_widen, both, *kinks)
            if count > self.most:
                return None
            here, begin, off = here._replace(state=state), run.model, there.missed
        return None

    def _run(
        self, here: Here, begin: FloatArray, near: GatheredSamples, off: float, target: float,
        estimated: bool,
    ) -> Promise | None:  # fmt: skip
        """The driver on the loss's model, in which multiples of ours have the curvature of now."""
        newton, model, kink = self.newton, here.model, self._kink(here.model)
        gain, slope = _above(near.block, near.u, kink, self.kappa)
        value = here.objective - self.problem.epsilon * float(model[-1]) - gain
        bent = np.stack([self.gram @ model, here.bent])  # then, now
        along = np.where(bent @ model > 0.0, bent @ model, math.inf)
        gram = self.gram + (bent.T * [-1.0 / along[0], 1.0 / along[1]]) @ bent
        samples = ModelSamples(
            near.block, self.kappa, SETTINGS.bent * self.flat, model, value, here.gradient - slope,
            gram,
        )  # fmt: skip
        # Blurred as far as a step goes: sharper hinges block it.
        mu = max(off / (2.0 * float(near.block.weights.sum()) + 1.0), self.moved)
        mu = min(SETTINGS.start_mu, mu)
        x = begin / self.scaling.scale
        x[-1] += min(off / newton.epsilon, 0.1 * x[-1])
        newton.open(x, mu)

        def enough(*_: Any) -> bool:
            distance = max(newton.best - newton.expected, newton.complementarity)
            return estimated and newton.dual > 0.0 and bool(distance <= target)

        opened = samples.open(newton.trial(0.0), mu)
        found = driver.run(samples, newton, opened, mu, target, 60, enough)
        self.work.near_grams += samples.gram_rows / self.rows.n_samples
        if found.point is None:
            return None
        slopes_at, (_, flips) = found.point
        change = slopes_at - model
        then, now = bent @ change / along
        return Promise(
            newton.best_model(), float(newton.best), change - then * model, float(now), flips
        )

    def _survey(self, here: Here, run: Promise, near: GatheredSamples, length: float) -> Here:
        """All samples after a step of this length; the bound that its dual point proves is kept."""
        change = run.model - here.model
        model = here.model + length * change
        state, (sums,) = self._visit(
            _survey, self.rows.pair(here.state, self.rows.offsets), near.numbers, run.flips,
            self.kappa, self._kink(here.model), self._kink(model), change, length, run.dual_change,
            run.multiple,
        )  # fmt: skip
        adjoint, *_, (*_, unseen, entropy, additions), _ = self._split(sums)
        bound, _ = lower_bound(
            self.scaling.coordinates, self.problem.epsilon,
            DualSums(-adjoint[:-1], -float(adjoint[-1]), entropy, additions),
        )  # fmt: skip
        if bound > self.bound or self.point is None:
            self.bound, self.point = bound, state
        there = self._here(state, model, sums)
        return there._replace(missed=there.objective - run.objective, unseen=float(unseen))

    def _enough(self, here: Here, run: Promise, there: Here, length: float, tol: float) -> bool:
        """Whether a step brings its share of what was promised, or all that is needed."""
        promised, gained = here.objective - run.objective, here.objective - there.objective
        needed = min(here.objective, there.objective) - self.bound > tol
        return gained >= SETTINGS.gained * length * promised or not needed


# --- visits to a block ---------------------------------------------------------------------------


def _open(block: Block, _: None, model: FloatArray, kink: float) -> tuple[Sight, tuple[Sum]]:
    """Margins; slope and curvature of loss and hinges along multiples of the model."""
    w, u = block.weights, block.margins(model[:-1])
    s = flip_probability(u)
    over = np.maximum(u - block.flip_costs(kink), 0.0)
    return Sight(u), (Sum(np.array([w @ over - w @ (s * u), w @ (s * (1.0 - s) * u * u)])),)


def _look(
    block: Block, k: Sight, factor: float, kink: float, kappa: float
) -> tuple[Sight, tuple[Sum, Sum]]:
    costs = block.flip_costs(1.0)
    u, curvature, _, sums = survey(block.compiled, costs, kappa, kink, factor * k.u)
    return Sight(u, curvature), (Sum(block.gram(block.weights * curvature)), Sum(sums))


def _above(block: Block, u: FloatArray, kink: float, kappa: float) -> tuple[float, FloatArray]:
    """What flips of all above the kink gain, and the gradient of that."""
    over = np.maximum(u - block.flip_costs(kink), 0.0)
    flipped = np.where(over > 0.0, block.weights, 0.0)
    gain = float(block.weights @ over)
    spent = kappa * float(block.flip_sizes(flipped).sum()) if gain > 0.0 else 0.0  # and not ∞·0
    return gain, np.append(block.adjoint(flipped), -spent)


def _choose(block: Block, k: Sight, kink: float, reach: float) -> tuple[Sight, tuple[Sum]]:
    return _with_near(k, np.abs(k.u - block.flip_costs(kink)) < reach)


def _widen(
    block: Block, both: tuple[Sight, Sight], kink: float, kink_ahead: float
) -> tuple[Sight, tuple[Sum]]:
    """Those who crossed the kink, and all who moved half as far as it is, come along."""
    k, ahead = both
    v, after = k.u - block.flip_costs(kink), ahead.u - block.flip_costs(kink_ahead)
    near = ((after > 0.0) != (v > 0.0)) | (np.abs(v) <= 2.0 * np.abs(after - v))
    return _with_near(k, near | k.near.view(bool))


def _with_near(k: Sight, near: BoolArray) -> tuple[Sight, tuple[Sum]]:
    """These samples are near the kink; how many they are."""
    return k._replace(near=near.view(np.uint8)), (Sum(np.count_nonzero(near)),)


def _gather(block: Block, pair: tuple[Sight, int]) -> tuple[None, tuple[Sum]]:
    k, offset = pair
    return picked(block, offset, k.u, np.flatnonzero(k.near))


def _survey(
    block: Block, pair: tuple[Sight, int], numbers: Any, shares: FloatArray, kappa: float,
    kink: float, kink_ahead: float, change: FloatArray, step: float, dual_change: FloatArray,
    multiple: float,
) -> tuple[Sight, tuple[Sum]]:  # fmt: skip
    k, offset = pair
    first, last = np.searchsorted(numbers, [offset, offset + k.u.size])
    ahead, _, point, sums = survey(
        block.compiled, block.flip_costs(1.0), kappa, kink, k.u, kink_ahead, change, step,
        k.curvature, dual_change, multiple, k.near, shares[first:last],
    )  # fmt: skip
    return k._replace(u=ahead, point=point), (Sum(sums),)


def surveyed_point(block: Block, k: Sight) -> tuple[FloatArray, tuple[()]]:
    """The dual point (s, a) of a survey."""
    return k.point, ()


# --- from a sample to all ------------------------------------------------------------------------

#: Solves a problem from nothing: the model with λ, and Gram matrices.
Cold = Callable[[Problem, float], tuple[FloatArray, int]]


def pays(problem: Problem) -> bool:
    """Whether there are so many samples that a share of them leads to all.

    Rare features are in few rows of a sample, and rows of few entries crowd at the kink: sparse
    rows are left to the driver (a7a, a9a, w8a: 0.8 to 3.9 times as long by way of samples).
    """
    rows = problem.rows
    dense = 2 * rows.n_nonzeros >= rows.n_samples * (rows.n_columns - rows.intercept)
    if not dense or rows.n_nonzeros < SETTINGS.many_entries:
        return False
    return _share(rows) * rows.n_samples >= 0.25 * SETTINGS.many_samples * rows.n_columns


def _share(rows: Rows) -> float:
    """The share of the samples that leads to all of them."""
    share = SETTINGS.sample_share * math.sqrt(rows.n_columns / rows.n_samples)
    return min(0.25, share, most_entries(rows) / rows.n_nonzeros)


def start_from_sample(problem: Problem, cold: Cold, work: Work) -> Start | None:
    """The best model on a share of the samples; None if a class is missing there."""
    share, n = _share(problem.rows), problem.rows.n_columns
    rows = sampled(problem.rows, share)
    if rows is None:
        return None
    tol = SETTINGS.sample_tolerance * n / rows.n_samples
    model, grams = cold(replace(problem, rows=rows), tol)
    work.sample_grams += share * grams
    distance = sampling_error(n, rows.n_samples, problem.rows.n_samples)
    return Start(model[:-1], float(model[-1]), distance, True)
