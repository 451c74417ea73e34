"""Many samples: a quadratic model of the loss, and hinges only in an active set.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],     u = Zβ
    subject to  ‖β / c‖_* ≤ λ

Between two surveys of all rows the log-loss is replaced by its quadratic model at the last point
(one Gram matrix), and only the samples of an active set keep their hinges.  The driver sees a
matrix and the active samples, which are gathered into memory.

1. Start: the optimum on a subsample, or an earlier result.  One Newton step finds a better multiple
   of it; along multiples of the model no sample crosses its kink.
2. Quadratic model: Gram matrix and gradient at the point of expansion.  Active set: the samples
   whose margin may cross the kink κλ during this step.  How far a step carries margins follows from
   its force, the curvature of the loss, and the samples that it flips on its way.
3. The driver solves the model, to a small share of the distance from the optimum.
4. A survey at its solution gives the objective, the next gradient, and the bound of the dual point
   that the model's multipliers make (``s - h''·Z(d + c)``, a).  If the step gains too little and
   samples outside the active set have crossed their kink, these join it.
5. Repeat from 2 until the bound is within the tolerance.  The Gram matrix is kept while steps gain
   what it predicts.  Along multiples of the model it gets its present curvature, which a survey
   computes: the optimum on a subsample overfits, and most of the remaining error is removed by
   scaling β down.

Derivation: docs/algorithm.md, section 10, (20) and (21).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dual.bound import DualSums, lower_bound
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import BoolArray, FloatArray
from ..rows.blocks import Block
from ..rows.interface import BlockFunction, Rows, State
from ..rows.reductions import Sum
from ..starts.sample import GatheredSamples, gathered, most_entries, picked, sampled
from ..starts.start import Start, sampling_error, with_lambda
from . import _survey, driver
from ._labels import (
    LabelState,
    certify_labels,
    correct_labels,
    linearise_labels,
    open_labels,
    predict_labels,
)
from ._sums import COUNT, CURVATURE, ENTROPY, LOSS, PROOF_ENTROPY, SLOPE, VALUE
from ._survey import EDGES, SurveyStep, survey, survey_step
from .front import distinct_samples
from .interior_point import solve_scaled
from .labels import LabelScaling
from .protocols import Samples
from .settings import SETTINGS
from .wide import is_wide

#: Expansions, and solutions of one model with a growing active set, before the driver takes over.
MOST_MODELS = 12

#: How exactly the driver solves a model, in units of the distance (.0002 to .02 are alike).
_INNER = 0.002

#: A step is taken if it gains this share of what the model predicts.
_GAINED = 0.5

#: Report of the objective, the bound and λ; True ends the run.
Report = Callable[[float, float, float], bool]


@dataclass
class WorkCounts:
    """What a fit took, in Gram matrices of all its samples, and visits to the rows."""

    grams: float = 0.0
    sample_grams: float = 0.0
    near_grams: float = 0.0  # of active sets
    visits: int = 0

    @property
    def total(self) -> float:
        """All Gram matrices."""
        return float(self.grams + self.sample_grams + self.near_grams)


class LargeFit(NamedTuple):
    """Where the method ended: the model with λ, the bound, and the dual point (s, a) of it."""

    model: FloatArray
    objective: float
    bound: float
    point: State | None
    status: Status


class SurveyState(NamedTuple):
    """What a block remembers: margins, h'' at the expansion, the active set, a survey's (s, a)."""

    u: FloatArray
    curvature: FloatArray = np.zeros(0)
    active: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
    point: FloatArray = np.zeros((2, 0))


class Expansion(NamedTuple):
    """A point that the loss can be expanded at.

    ``gradient`` is that of loss and hinges with the flips above the kink; ``product`` is the
    Hessian of the loss times the model; ``histograms`` are those of distances from the kink
    (``_survey``).  After a step, ``excess`` is the objective above that of the quadratic model, and
    ``crossed`` how much of it is due to samples outside the active set.
    """

    state: State
    model: FloatArray  # with λ
    objective: float
    gradient: FloatArray
    product: FloatArray
    histograms: FloatArray
    excess: float = 0.0
    crossed: float = 0.0


class ModelSolution(NamedTuple):
    """The solution of a quadratic model.

    The dual point changes margins along ``dual_change`` by the curvature of the expansion and, as a
    ``multiple`` of the margins, by their present one.  ``flips`` are those of the active set.
    """

    model: FloatArray
    objective: float
    dual_change: FloatArray
    multiple: float
    flips: FloatArray


#: A state of the quadratic model: that of the hinges, the model, the parabola's gradient there.
QuadraticState = tuple[LabelState, FloatArray, FloatArray]

#: Its dual point: the model at which the parabola has its slopes, and the flips of the active set.
QuadraticPoint = tuple[FloatArray, FloatArray]


class QuadraticSamples(Samples[QuadraticState, QuadraticPoint]):
    """The samples of a quadratic model: a parabola for the loss, and the hinges of the active set.

    Hinges of less stiffness than ``least`` count as straight.
    """

    def __init__(
        self,
        active: Block,
        kappa: float,
        least: float,
        centre: FloatArray,
        value: float,
        gradient: FloatArray,
        gram: FloatArray,
    ) -> None:
        self.rows, n = active.compiled, active.y.size
        self.kappa = np.zeros((2, n))
        self.kappa[0] = active.flip_costs(kappa)
        self.fixed = np.repeat([[0.0], [1.0]], n, axis=1)  # the parabola has their loss
        self.centre, self.value, self.gradient, self.gram = centre, value, gradient, gram
        self.least, self.gram_rows = least, 0.0

    def _parabola(self, model: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at a model (with λ)."""
        d = model - self.centre
        curved = self.gram @ d
        return self.value + float(d @ (self.gradient + 0.5 * curved)), self.gradient + curved

    def open(self, coef: FloatArray, mu: float) -> QuadraticState:
        own = np.ones(self.kappa.shape[1], np.int32)
        state = open_labels(self.rows, own, self.kappa, self.fixed, coef, mu)
        return state, coef, self.gradient

    def linearise(
        self, state: QuadraticState, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[QuadraticState, FloatArray]:
        P = coef.size
        visit = state[0], coef, primal, dual, True, True, self.least
        pairs, sums = linearise_labels(self.rows, *visit)
        value, slope = self._parabola(coef)
        scalars = sums[P * P + 3 * P :]
        self.gram_rows += scalars[COUNT]
        sums[: P * P] += self.gram.ravel()
        sums[P * P : P * P + P] += slope
        scalars[LOSS] += value
        scalars[VALUE] += value
        scalars[ENTROPY] += value - slope @ coef
        return (pairs, coef, slope), sums

    def predict(
        self, state: QuadraticState, dcoef: FloatArray
    ) -> tuple[QuadraticState, FloatArray]:
        pairs, sums = predict_labels(self.rows, state[0], dcoef)
        return (pairs, state[1], state[2]), sums

    def correct(
        self, state: QuadraticState, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[QuadraticState, FloatArray]:
        pairs, sums = correct_labels(self.rows, state[0], dcoef, centre, share)
        sums[SLOPE], sums[CURVATURE] = state[2] @ dcoef, dcoef @ self.gram @ dcoef
        return (pairs, state[1], state[2]), sums

    def certify(
        self, state: QuadraticState, point: QuadraticPoint | None, dcoef: FloatArray
    ) -> tuple[QuadraticPoint, FloatArray]:
        model = (state[1] if point is None else point[0]) + dcoef
        pairs = state[0] if point is None else (state[0], point[1])
        value, slope = self._parabola(model)
        shares, sums = certify_labels(self.rows, pairs, dcoef, self.least)
        sums[: dcoef.size] += slope
        sums[dcoef.size + PROOF_ENTROPY] = value - slope @ model
        return (model, shares), sums


class LargeRun:
    """A run of the method: the Gram matrix of the last expansion and the best bound so far."""

    def __init__(self, posed: LabelScaling, work: WorkCounts) -> None:
        self.posed, self.work = posed, work
        self.problem: Problem = posed.problem
        self.rows: Rows = self.problem.rows
        self.kappa = self.problem.kappa
        self.newton = posed.newton(self.problem.epsilon)
        self.bound = 0.0
        self.point: State | None = None
        self.gram, self.mean_curvature = np.zeros((0, 0)), 0.0
        # How far a step moves margins, and how many samples the active set may have.
        entries = max(self.rows.n_nonzeros / self.rows.n_samples, 1.0)
        self.moved, self.most = 0.0, most_entries(self.rows) / entries

    def solve(self, start: Start, tol: float, report: Report) -> LargeFit | None:
        """The optimum from a start; None where the method does not pay or fails."""
        at, distance, subsampled = self._open(start), start.distance, start.sampled
        if not subsampled:
            self.most = min(self.most, SETTINGS.crowded * self.rows.n_samples)
        for _ in range(MOST_MODELS):
            chosen = self._active_set(at, distance, subsampled)
            if chosen is None:
                return None
            state, distance = chosen
            target = max(_INNER * distance, 0.1 * tol)
            new = self._step(at._replace(state=state), distance, target, tol, subsampled)
            if new is None:
                return None
            before, subsampled = distance, False
            at = new if new.objective <= at.objective else at
            certified = max(at.objective - self.bound, 0.0)
            distance = min(certified, 3.0 * (abs(new.excess) + target))
            stop = report(at.objective, self.bound, float(at.model[-1]))
            if certified <= tol or stop:
                status = Status.OPTIMAL if certified <= tol else Status.STOPPED
                return LargeFit(at.model, at.objective, self.bound, self.point, status)
            if distance > SETTINGS.helpful * before:
                at = self._expand(at.state, at.model, 1.0)
        return LargeFit(at.model, at.objective, self.bound, self.point, Status.STALLED)

    # --- the quadratic model -----------------------------------------------------------------

    def _visit(
        self, function: BlockFunction, state: State | None, *arguments: Any
    ) -> tuple[State, tuple[Any, ...]]:
        self.work.visits += 1
        return self.rows.run(function, state, *arguments)

    def _kink(self, model: FloatArray) -> float:
        return self.problem.cost.kink(float(model[-1]))

    def _open(self, start: Start) -> Expansion:
        """Expand at the best multiple of a start that one Newton step finds."""
        model = np.append(start.model, start.lam)
        state, ((slope, curvature),) = self._visit(_open, None, model, self._kink(model))
        slope += self.problem.epsilon * start.lam
        factor = 1.0 - slope / curvature if curvature > 0.0 else 1.0
        factor = min(max(factor, 0.1), 2.0)  # .1 and .2 are alike near ε_max
        return self._expand(state, factor * model, factor)

    def _expand(self, state: State, model: FloatArray, factor: float) -> Expansion:
        """Gram matrix, gradient and objective at a model, ``factor`` times that of the state."""
        state, (gram, sums) = self._visit(_expand, state, factor, self._kink(model), self.kappa)
        self.gram = np.zeros((model.size, model.size))
        self.gram[:-1, :-1] = gram
        self.work.grams += 1.0
        parts = _survey.parts_of(sums, model.size)
        self.mean_curvature = float(parts.scalars[_survey.CURVATURE])
        return self._expansion(state, model, parts)

    def _expansion(self, state: State, model: FloatArray, parts: _survey.SurveySums) -> Expansion:
        loss = parts.scalars[_survey.LOSS] + parts.scalars[_survey.HINGES]
        objective = float(self.problem.epsilon * model[-1] + loss)
        return Expansion(state, model, objective, parts.gradient, parts.product, parts.histograms)

    def _active_set(
        self, at: Expansion, distance: float, subsampled: bool
    ) -> tuple[State, float] | None:
        """The samples whose margin may cross the kink, and the distance; None: they are too many.

        A step of r in the margins works against ``r·h'' + W(r)/2``, where W(r) is the weight of
        samples within r of the kink.  The error of a subsample is a force on the margins, any other
        distance an energy.
        """
        if not self.problem.flips:
            return self.rows.run(_within, at.state, math.inf, 0.0)[0], distance
        within, below = np.cumsum(at.histograms, axis=1)
        beyond = below[-1] - below
        force = EDGES * self.mean_curvature + 0.5 * within[:-1]
        if subsampled:
            k = np.searchsorted(force, SETTINGS.reach * math.sqrt(0.5 * distance))
        else:
            k = np.searchsorted(EDGES * force, 2.0 * SETTINGS.reach**2 * distance)
        self.moved = float(EDGES[np.minimum(k, EDGES.size - 1)]) / SETTINGS.reach
        # At least as many as can be at the kink, and so many that the flips of the others leave
        # a part of ε.
        k = max(k, np.searchsorted(within, (at.model.size + 1) / self.rows.n_samples))
        k = max(k, np.argmax(self.problem.kappa * beyond <= 0.9 * self.problem.epsilon))
        k = np.minimum(k, EDGES.size - 1)
        if subsampled:
            distance = 0.5 * float(EDGES[k] * force[k]) / SETTINGS.reach**2
        kink = self._kink(at.model)
        state, (count,) = self.rows.run(_within, at.state, kink, float(EDGES[k]))
        return None if count > self.most else (state, distance)

    # --- a step ------------------------------------------------------------------------------

    def _step(
        self, at: Expansion, distance: float, target: float, tol: float, subsampled: bool
    ) -> Expansion | None:
        """A step to the solution of the quadratic model, or a shorter one.

        Samples that cross their kink outside the active set join it, and the model is solved again.
        On the way from a subsample to all rows the driver need not prove its distance.
        """
        begin, off = at.model, distance
        for _ in range(MOST_MODELS):
            active = gathered(self.rows, _gather, self.rows.pair(at.state, self.rows.offsets))
            self.work.visits += 1
            solution = self._solve_model(at, begin, active, off, target, subsampled)
            if solution is None:
                return None
            length, new = 1.0, self._survey(at, solution, active, 1.0)
            while not (enough := self._enough(at, solution, new, length, tol)) and length > 1e-3:
                if length == 1.0 and new.crossed > 0.5 * new.excess:
                    break
                length *= 0.5
                new = self._survey(at, solution, active, length)
            if enough or length < 1.0:
                return new
            kinks = self._kink(at.model), self._kink(solution.model)
            both = self.rows.pair(at.state, new.state)
            state, (count,) = self.rows.run(_widened, both, *kinks)
            if count > self.most:
                return None
            at, begin, off = at._replace(state=state), solution.model, new.excess
        return None

    def _solve_model(
        self,
        at: Expansion,
        begin: FloatArray,
        active: GatheredSamples,
        off: float,
        target: float,
        estimated: bool,
    ) -> ModelSolution | None:
        """The driver on the quadratic model (20), with the present curvature along the model.

        ``off`` is the distance of ``begin`` from the solution; ``estimated``: an estimate of the
        distance ends the run, too.
        """
        newton, model, kink = self.newton, at.model, self._kink(at.model)
        gain, slope = _flips_above(active.block, active.u, kink, self.kappa)
        value = at.objective - self.problem.epsilon * float(model[-1]) - gain
        products = np.stack([self.gram @ model, at.product])  # of the expansion, and now
        along = np.where(products @ model > 0.0, products @ model, math.inf)
        gram = self.gram + (products.T * [-1.0 / along[0], 1.0 / along[1]]) @ products
        samples = QuadraticSamples(
            active.block,
            self.kappa,
            SETTINGS.bent * self.mean_curvature,
            model,
            value,
            at.gradient - slope,
            gram,
        )
        # A μ as large as a step: sharper hinges would block it.
        mu = max(off / (2.0 * float(active.block.weights.sum()) + 1.0), self.moved)
        mu = min(SETTINGS.start_mu, mu)
        x = begin / self.posed.scale
        x[-1] += min(off / newton.epsilon, 0.1 * x[-1])
        newton.open(x, mu)

        def enough(*_: object) -> bool:
            distance = max(newton.best - newton.expected, newton.complementarity)
            return estimated and newton.dual > 0.0 and bool(distance <= target)

        opened = samples.open(newton.trial(0.0), mu)
        found = driver.run(samples, newton, opened, mu, target, 60, enough)
        self.work.near_grams += samples.gram_rows / self.rows.n_samples
        if found.point is None:
            return None
        slopes_at, shares = found.point
        change = slopes_at - model
        then, now = products @ change / along
        return ModelSolution(
            newton.best_model(),
            float(newton.best),
            change - then * model,
            float(now),
            shares[1, 0],
        )

    def _survey(
        self, at: Expansion, solution: ModelSolution, active: GatheredSamples, length: float
    ) -> Expansion:
        """All samples after a step of this length; the bound of its dual point is kept."""
        change = solution.model - at.model
        model = at.model + length * change
        state, (sums,) = self._visit(
            _survey_step,
            self.rows.pair(at.state, self.rows.offsets),
            active.numbers,
            solution.flips,
            self.kappa,
            self._kink(at.model),
            self._kink(model),
            change,
            length,
            solution.dual_change,
            solution.multiple,
        )
        parts = _survey.parts_of(sums, model.size)
        dual = DualSums(
            -parts.adjoint[:-1],
            -float(parts.adjoint[-1]),
            parts.scalars[_survey.ENTROPY],
            parts.scalars[_survey.ADDITIONS],
        )
        bound, _ = lower_bound(self.posed.coordinates, self.problem.epsilon, dual)
        if bound > self.bound or self.point is None:
            self.bound, self.point = bound, state
        new = self._expansion(state, model, parts)
        crossed = float(parts.scalars[_survey.CROSSED])
        return new._replace(excess=new.objective - solution.objective, crossed=crossed)

    def _enough(
        self, at: Expansion, solution: ModelSolution, new: Expansion, length: float, tol: float
    ) -> bool:
        """Whether a step gains its share of what the model predicts, or all that is needed."""
        predicted, gained = at.objective - solution.objective, at.objective - new.objective
        needed = min(at.objective, new.objective) - self.bound > tol
        return gained >= _GAINED * length * predicted or not needed


# --- visits to a block -----------------------------------------------------------------------


def _open(block: Block, _: None, model: FloatArray, kink: float) -> tuple[SurveyState, tuple[Sum]]:
    """Margins; slope and curvature of loss and hinges along multiples of the model."""
    w, u = block.weights, block.margins(model[:-1])
    s = flip_probability(u)
    over = np.maximum(u - block.flip_costs(kink), 0.0)
    along = np.array([w @ over - w @ (s * u), w @ (s * (1.0 - s) * u * u)])
    return SurveyState(u), (Sum(along),)


def _expand(
    block: Block, k: SurveyState, factor: float, kink: float, kappa: float
) -> tuple[SurveyState, tuple[Sum, Sum]]:
    costs = block.flip_costs(1.0)
    u, curvature, sums = survey(block.compiled, costs, kappa, kink, factor * k.u)
    return SurveyState(u, curvature), (Sum(block.gram(block.weights * curvature)), Sum(sums))


def _flips_above(
    block: Block, u: FloatArray, kink: float, kappa: float
) -> tuple[float, FloatArray]:
    """What the flips of all samples above the kink gain, and the gradient of that."""
    over = np.maximum(u - block.flip_costs(kink), 0.0)
    flipped = np.where(over > 0.0, block.weights, 0.0)
    gain = float(block.weights @ over)
    spent = kappa * float(block.flip_sizes(flipped).sum()) if gain > 0.0 else 0.0  # and not ∞·0
    return gain, np.append(block.adjoint(flipped), -spent)


def _within(
    block: Block, k: SurveyState, kink: float, reach: float
) -> tuple[SurveyState, tuple[Sum]]:
    """The active set: samples whose margin is within ``reach`` of the kink."""
    return _with_active(k, np.abs(k.u - block.flip_costs(kink)) < reach)


def _widened(
    block: Block, both: tuple[SurveyState, SurveyState], kink: float, kink_after: float
) -> tuple[SurveyState, tuple[Sum]]:
    """The active set with the samples that crossed the kink or moved half as far as it is."""
    k, after = both
    v, v_after = k.u - block.flip_costs(kink), after.u - block.flip_costs(kink_after)
    crossed = ((v_after > 0.0) != (v > 0.0)) | (np.abs(v) <= 2.0 * np.abs(v_after - v))
    return _with_active(k, crossed | k.active.view(bool))


def _with_active(k: SurveyState, active: BoolArray) -> tuple[SurveyState, tuple[Sum]]:
    """The state with an active set, and its size."""
    return k._replace(active=active.view(np.uint8)), (Sum(np.count_nonzero(active)),)


def _gather(block: Block, pair: tuple[SurveyState, int]) -> tuple[None, tuple[Sum]]:
    k, offset = pair
    return picked(block, offset, k.u, np.flatnonzero(k.active))


def _survey_step(
    block: Block,
    pair: tuple[SurveyState, int],
    numbers: NDArray[np.intp],
    flips: FloatArray,
    kappa: float,
    kink: float,
    kink_after: float,
    change: FloatArray,
    length: float,
    dual_change: FloatArray,
    multiple: float,
) -> tuple[SurveyState, tuple[Sum]]:
    k, offset = pair
    first, last = np.searchsorted(numbers, [offset, offset + k.u.size])
    step = SurveyStep(
        change, length, kink_after, k.curvature, dual_change, multiple, k.active, flips[first:last]
    )
    u, point, sums = survey_step(block.compiled, block.flip_costs(1.0), kappa, kink, k.u, step)
    return k._replace(u=u, point=point), (Sum(sums),)


def _surveyed_point(block: Block, k: SurveyState) -> tuple[FloatArray, tuple[()]]:
    """The dual point (s, a) of a survey."""
    return k.point, ()


# --- from a subsample to all rows ------------------------------------------------------------


def pays(problem: Problem) -> bool:
    """Whether there are enough samples for a subsample to pay.

    Rare features are in few rows of a subsample, and rows of few entries crowd at the kink: sparse
    rows are left to the driver (a7a, a9a, w8a take 0.8 to 3.9 times as long with subsamples).
    """
    rows = problem.rows
    dense = 2 * rows.n_nonzeros >= rows.n_samples * (rows.n_columns - rows.intercept)
    if not dense or rows.n_nonzeros < SETTINGS.many_entries:
        return False
    return _share(rows) * rows.n_samples >= 0.25 * SETTINGS.many_samples * rows.n_columns


def _share(rows: Rows) -> float:
    """The share of the samples in the subsample."""
    share = SETTINGS.sample_share * math.sqrt(rows.n_columns / rows.n_samples)
    return min(0.25, share, most_entries(rows) / rows.n_nonzeros)


def many_samples(
    problem: Problem,
    *,
    tol: float,
    monitor: Monitor,
    max_iter: int = 200,
    start: Start | None = None,
) -> Solution | None:
    """Solve (P) by quadratic models, from a start or else from the optimum on a subsample.

    None where there are too few samples, or the start is too far, for that to pay.
    """
    problem, of_all = distinct_samples(problem)
    serves = problem.epsilon > 0.0 and max_iter >= MOST_MODELS and not is_wide(problem.rows)
    if not serves or not (pays(problem) if start is None else _near(problem, start)):
        return None
    work = WorkCounts()

    def report(objective: float, bound: float, lam: float) -> bool:
        return monitor.report(math.ceil(work.total), objective, bound, lam)

    with np.errstate(all="ignore"):
        start = _start_from_sample(problem, monitor, work) if start is None else start
        if start is None:
            return None
        found = LargeRun(LabelScaling(problem), work).solve(
            with_lambda(problem, start), tol, report
        )
    if found is None:
        return None
    point = problem.rows.run(_surveyed_point, found.point)[0]
    return Solution(
        found.model[:-1],
        found.status,
        math.ceil(work.total),
        of_all(point),
        info={
            "solver": "interior-point",
            "distinct_samples": problem.rows.n_samples,
            "grams": work.total,
            "visits": work.visits,
            "sample_grams": work.sample_grams,
            "near_grams": work.near_grams,
        },
        lam=float(found.model[-1]),
        proven=(found.objective, found.bound),
    )


def _near(problem: Problem, start: Start) -> bool:
    """Whether a model of the loss at a start pays."""
    rows = problem.rows
    many = rows.n_samples >= 0.5 * SETTINGS.many_samples * rows.n_columns
    large = rows.n_nonzeros >= 0.25 * SETTINGS.many_entries
    return many and large and start.distance <= SETTINGS.near_nats


def _start_from_sample(problem: Problem, monitor: Monitor, work: WorkCounts) -> Start | None:
    """The optimum on a subsample; None if a class is missing there."""
    share, n = _share(problem.rows), problem.rows.n_columns
    rows = sampled(problem.rows, share)
    if rows is None:
        return None
    tol = SETTINGS.sample_tolerance * n / rows.n_samples
    scaling = LabelScaling(replace(problem, rows=rows))
    newton, _, found = solve_scaled(
        scaling, tol, 60, None, Monitor(stop=monitor.stop), estimated=True
    )
    work.sample_grams += share * found.n_iter
    model = newton.best_model()
    distance = sampling_error(n, rows.n_samples, problem.rows.n_samples)
    return Start(model[:-1], float(model[-1]), distance, True)
