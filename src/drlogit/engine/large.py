"""Many samples: a quadratic model of the loss, and hinges only in an active set.

    minimise    ελ + Σ w_i [ h(u_i) + (u_i - κλ)_+ ],     u = Zβ
    subject to  ‖β / c‖_* ≤ λ

Between two surveys of all rows the log-loss is replaced by its quadratic model at the last point
(one Gram matrix), and only the samples of an active set keep their hinges.  The driver sees a
matrix and the active samples, which are gathered into memory.

1. Start: the optimum on a subsample, or an earlier result.
2. Quadratic model: Gram matrix and gradient at the best point.  Active set: the samples whose
   margin may cross the kink κλ during this step.  How far a step carries margins follows from its
   force, the curvature of the loss, and the samples that it flips on its way.
3. The driver solves the model, to a small share of the distance from the optimum.
4. A survey at its solution gives the objective, the next gradient, and the bound of the dual point
   that the model's multipliers make (``s - h''·Z(d + c)``, a).
5. Repeat from 2 until the bound is within the tolerance.  The Gram matrix is kept while steps gain
   what it predicts.  Along multiples of the model it gets its present curvature, which a survey
   computes: the optimum on a subsample overfits, and most of the remaining error is removed by
   scaling β down.

Derivation: docs/algorithm.md, section 10, (20) and (21).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..dual.bound import DualSums, lower_bound
from ..dual.label_points import LabelPoint, two_labels
from ..problem.losses import flip_probability
from ..problem.problem import Problem
from ..problem.result import Monitor, Solution, Status
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State, WorkersLostError
from ..rows.local import memory_rows
from ..rows.reductions import Sum
from ..starts.sample import gathered, most_entries, picked, sampled
from ..starts.start import Start, sampling_error, with_lambda
from . import _survey
from ._newton import Newton
from ._sums import COUNT, CURVATURE, ENTROPY, LOSS, PROOF_ENTROPY, SLOPE, VALUE
from ._survey import survey
from .driver import run
from .interior_point import distinct_samples, solve_scaled
from .labels import LabelSamples, LabelScaling
from .settings import SETTINGS
from .wide import is_wide

#: Quadratic models before the driver takes over.
MOST_MODELS = 12

#: How exactly the driver solves a model, in units of the distance (.0002 to .02 are alike), and in
#: how many iterations.
_INNER, _MOST_INNER = 0.002, 20

#: A step that gains less than this share of what the model predicts has carried samples outside the
#: active set across their kink; the set then reaches so much farther.
_GAINED, _WIDENED = 0.5, 3.0

#: Distances from the kink are counted in bins of which twelve make a factor of e.
_PER_E, _BINS = 12, (-320, 250)

#: The largest distance of each bin.
EDGES = np.exp(np.arange(_BINS[0], _BINS[1] + 1) / _PER_E)

#: Gram matrices of all samples, of a subsample and of active sets, in those of all; visits.
WorkCounts = dict[str, float]

#: Report of the objective, the bound and λ; True ends the run.
Report = Callable[[float, float, float], bool]


class SurveyState(NamedTuple):
    """What a block remembers: margins, h'' of the Gram matrix, (s, a)."""

    u: FloatArray
    bent: FloatArray
    point: tuple[FloatArray, FloatArray]


class Surveyed(NamedTuple):
    """A point that the loss can be expanded at.

    ``gradient`` is that of loss and hinges with the flips above the kink; ``product`` is the
    Hessian of the loss times the model.
    """

    state: State
    model: FloatArray  # with λ
    objective: float
    gradient: FloatArray
    product: FloatArray


class QuadraticSamples(LabelSamples):
    """The samples of a quadratic model: a parabola for the loss, and the hinges of the active set.

    Hinges of less stiffness than ``least`` count as straight.  A dual point has, in place of a
    flow, the model at which the parabola has its slopes.
    """

    def __init__(
        self,
        active: Problem,
        newton: Newton,
        least: float,
        centre: FloatArray,
        value: float,
        gradient: FloatArray,
        hessian: FloatArray,
    ) -> None:
        no_slope = active.rows.run(_observed)[0]  # the parabola has it
        super().__init__(active, newton, no_slope, least)
        self.centre, self.value, self.gradient, self.hessian = centre, value, gradient, hessian
        self.grams = 0.0

    def _parabola(self, model: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at a model (with λ)."""
        d = model - self.centre
        curved = self.hessian @ d
        return self.value + float(d @ (self.gradient + 0.5 * curved)), self.gradient + curved

    def linearise(
        self, state: State, coef: FloatArray, primal: float, dual: float, mu: float
    ) -> tuple[State, FloatArray]:
        state, sums = super().linearise(state, coef, primal, dual, mu)
        P = coef.size
        value, self.slope = self._parabola(coef)
        scalars = sums[P * P + 3 * P :]
        self.grams += scalars[COUNT]
        sums[: P * P] += self.hessian.ravel()
        sums[P * P : P * P + P] += self.slope
        scalars[LOSS] += value
        scalars[VALUE] += value
        scalars[ENTROPY] += value - self.slope @ coef
        return state, sums

    def correct(
        self, state: State, dcoef: FloatArray, centre: float, share: float
    ) -> tuple[State, FloatArray]:
        state, sums = super().correct(state, dcoef, centre, share)
        sums[SLOPE], sums[CURVATURE] = self.slope @ dcoef, dcoef @ self.hessian @ dcoef
        return state, sums

    def certify(
        self, state: State, point: LabelPoint | None, dcoef: FloatArray
    ) -> tuple[LabelPoint, FloatArray]:
        begin = self.coef if point is None else point[1]
        assert begin is not None
        model = begin + dcoef
        (shares, _), sums = super().certify(state, point, dcoef)
        value, slope = self._parabola(model)
        sums[: dcoef.size] += slope
        sums[dcoef.size + PROOF_ENTROPY] = value - slope @ model
        return LabelPoint(shares, model), sums

    def flow_of(self, point: LabelPoint) -> None:
        """Two labels have none."""


class LargeRun:
    """A run of the method: the last Gram matrix, the best point, the best bound and its proof."""

    def __init__(self, posed: LabelScaling, work: WorkCounts) -> None:
        self.posed, self.work = posed, work
        self.problem: Problem = posed.problem
        self.rows: Rows = self.problem.rows
        self.newton = posed.newton(self.problem.epsilon)
        self.bound, self.proof, self.reach = -1.0, State(), SETTINGS.reach
        self.at: Surveyed | None = None
        # How far a step moves margins, and how many samples the active set may have.
        entries = max(self.rows.n_nonzeros / self.rows.n_samples, 1.0)
        self.moved, self.most = 0.0, most_entries(self.rows) / entries

    def solve(self, start: Start, tol: float, report: Report) -> Status | None:
        """From a start to the optimum; None where the method does not pay or fails."""
        model = np.append(start.model, start.lam)
        distance, subsampled = start.distance, start.sampled
        if not subsampled:
            self.most = min(self.most, SETTINGS.crowded * self.rows.n_samples)
        zero = np.zeros(model.size)
        origin = Surveyed(self.rows.run(_origin)[0], zero, math.inf, zero, zero)
        self.at = at = self._survey(origin, model, zero, 0.0, None)
        expand = True
        for _ in range(MOST_MODELS):
            if expand:
                at = at._replace(state=self._expanded(at.state))
            chosen = self._active_set(at, distance, subsampled)
            if chosen is None:
                return None
            within, before = chosen
            target = max(_INNER * before, 0.1 * tol)
            found = self._step(at, within, before, target)
            if found is None:
                return None
            new, predicted = found
            gained, subsampled = at.objective - new.objective, False
            enough = gained >= _GAINED * (at.objective - predicted)
            at = self.at = new if gained >= 0.0 else at
            gap = max(at.objective - self.bound, 0.0)
            distance = min(gap, 3.0 * (abs(new.objective - predicted) + target))
            stop = report(at.objective, self.bound, float(at.model[-1]))
            if gap <= tol or stop:
                return Status.OPTIMAL if gap <= tol else Status.STOPPED
            self.reach *= 1.0 if enough else _WIDENED
            expand = enough and distance > SETTINGS.helpful * before
        return Status.STALLED

    def _kink(self, model: FloatArray) -> float:
        return self.problem.cost.kink(float(model[-1]))

    def _expanded(self, state: State) -> State:
        """The Gram matrix of the loss at the margins of a state."""
        self.work["grams"] += 1
        self.work["visits"] += 1
        state, (gram, self.mean_curvature) = self.rows.run(_expand, state)
        self.gram = np.zeros((self.newton.size, self.newton.size))
        self.gram[:-1, :-1] = gram
        return state

    def _active_set(
        self, at: Surveyed, distance: float, subsampled: bool
    ) -> tuple[float, float] | None:
        """How far from the kink margins may cross it, and the distance; None: they are too many.

        A step of r in the margins works against ``r·h'' + W(r)/2``, where W(r) is the weight of
        samples within r of the kink.  The error of a subsample is a force on the margins, any other
        distance an energy.
        """
        problem, kink = self.problem, self._kink(at.model)
        if not problem.flips:
            return 0.0, distance
        _, ((weights, above, counts),) = self.rows.run(_near_kink, at.state, kink)
        within, beyond = np.cumsum(weights), above.sum() - np.cumsum(above)
        force = EDGES * self.mean_curvature + 0.5 * within
        if subsampled:
            far = force >= self.reach * math.sqrt(0.5 * distance)
        else:
            far = EDGES * force >= 2.0 * self.reach**2 * distance
        far[-1] = True
        self.moved = float(EDGES[np.argmax(far)]) / self.reach
        # At least as many as can be at the kink, and so many that the flips of the others leave
        # a part of ε.
        far &= within >= min((at.model.size + 1) / self.rows.n_samples, within[-1])
        far &= problem.kappa * beyond <= 0.9 * problem.epsilon
        k = np.argmax(far)
        if subsampled:
            distance = 0.5 * float(EDGES[k] * force[k]) / self.reach**2
        return None if counts[: k + 1].sum() > self.most else (float(EDGES[k]), distance)

    def _step(
        self, at: Surveyed, within: float, distance: float, target: float
    ) -> tuple[Surveyed, float] | None:
        """The solution of the quadratic model (20), surveyed, and the objective that it predicts.

        The model has the present curvature along multiples of the point.
        """
        newton, model, kink = self.newton, at.model, self._kink(at.model)
        both = self.rows.pair(at.state, self.rows.offsets)
        active = gathered(self.rows, _active, both, kink, within)
        self.work["visits"] += 1
        gain, slope = _flips_above(active.block, active.u, kink, self.problem.kappa)
        value = at.objective - self.problem.epsilon * float(model[-1]) - gain
        products = np.stack([self.gram @ model, at.product])  # of the expansion, and now
        along = np.where(products @ model > 0.0, products @ model, math.inf)
        gram = self.gram + (products.T * [-1.0 / along[0], 1.0 / along[1]]) @ products
        hinges = replace(self.problem, rows=memory_rows(active.block))
        samples = QuadraticSamples(
            hinges,
            newton,
            SETTINGS.bent * self.mean_curvature,
            model,
            value,
            at.gradient - slope,
            gram,
        )
        # A μ as large as a step: sharper hinges would block it.
        mu = max(distance / (2.0 * float(active.block.weights.sum()) + 1.0), self.moved)
        mu = min(SETTINGS.start_mu, mu)
        x = model / self.posed.scale
        x[-1] += min(distance / newton.epsilon, 0.1 * x[-1])
        newton.open(x, mu)
        found = run(samples, newton, mu, target, _MOST_INNER)
        self.work["near_grams"] += samples.grams / self.rows.n_samples
        if found.point is None:
            return None
        point, slopes_at = found.point
        assert slopes_at is not None
        _, ((flips,),) = hinges.rows.run(_flips, point)
        change = slopes_at - model
        then, now = products @ change / along
        chosen = active.numbers, flips
        new = self._survey(
            at, newton.best_model() - model, change - then * model, float(now), chosen
        )
        return new, float(newton.best)

    def _survey(
        self,
        at: Surveyed,
        change: FloatArray,
        dual_change: FloatArray,
        multiple: float,
        flips: tuple[IndexArray, FloatArray] | None,
    ) -> Surveyed:
        """All samples after a step; the bound of its dual point is kept.

        The dual point changes margins along ``dual_change`` by the curvature of the expansion and,
        as a ``multiple`` of the margins, by their present one.  ``flips`` are the samples of the
        active set and their shares; without, no label flips.
        """
        problem, model, P = self.problem, at.model + change, change.size
        kinks = math.inf if flips is None else self._kink(at.model), self._kink(model)
        numbers, shares = (np.zeros(0, np.intp), np.zeros(0)) if flips is None else flips
        self.work["visits"] += 1
        state, (sums,) = self.rows.run(
            _survey_step,
            self.rows.pair(at.state, self.rows.offsets),
            numbers,
            shares,
            problem.kappa,
            kinks,
            change,
            dual_change,
            multiple,
        )
        adjoint, gradient, product, scalars = np.split(sums, [P, 2 * P, 3 * P])
        dual = DualSums(
            -adjoint[:-1],
            -float(adjoint[-1]),
            scalars[_survey.ENTROPY],
            scalars[_survey.ADDITIONS],
        )
        bound, _ = lower_bound(self.posed.coordinates, problem.epsilon, dual)
        if bound > self.bound:
            self.bound, self.proof = bound, state
        objective = float(problem.epsilon * model[-1] + scalars[_survey.LOSS])
        return Surveyed(state, model, objective, gradient, product)


def _observed(block: Block, _: None) -> tuple[FloatArray, tuple[()]]:
    """All probability on the observed label."""
    return np.outer([0.0, 1.0], np.ones(block.y.size)), ()


def _flips(_: Block, point: FloatArray) -> tuple[None, tuple[Sum]]:
    """The shares that flip."""
    return None, (Sum([point[1, 0]]),)


def _flips_above(
    block: Block, u: FloatArray, kink: float, kappa: float
) -> tuple[float, FloatArray]:
    """What the flips of all samples above the kink gain, and the gradient of that."""
    over = np.maximum(u - block.flip_costs(kink), 0.0)
    flipped = np.where(over > 0.0, block.weights, 0.0)
    gain = float(block.weights @ over)
    spent = kappa * float(block.flip_sizes(flipped).sum()) if gain > 0.0 else 0.0  # and not ∞·0
    return gain, np.append(block.adjoint(flipped), -spent)


# --- visits to a block -----------------------------------------------------------------------


def _origin(block: Block, _: None) -> tuple[SurveyState, tuple[()]]:
    """The zero model."""
    zero = np.zeros(block.y.size)
    return SurveyState(zero, zero, (zero, zero)), ()


def _expand(block: Block, k: SurveyState) -> tuple[SurveyState, tuple[Sum, Sum]]:
    """The Gram matrix of the loss, and its mean curvature."""
    bent = flip_probability(k.u)
    bent *= 1.0 - bent
    bends = block.weights * bent
    return k._replace(bent=bent), (Sum(block.gram(bends)), Sum(float(bends.sum())))


def _near_kink(block: Block, k: SurveyState, kink: float) -> tuple[None, tuple[Sum]]:
    """For each bin of distances from the kink: weight, what flips cost above it, samples."""
    v = k.u - block.flip_costs(kink)
    above = block.flip_sizes(np.where(v > 0.0, block.weights, 0.0))
    sizes = np.clip(np.abs(v), 1e-30, 1e30).astype(np.float32)  # whose logarithms take less time
    bins = np.ceil(np.clip(_PER_E * np.log(sizes), *_BINS)).astype(np.intp) - _BINS[0]
    counted = [np.bincount(bins, each, EDGES.size) for each in (block.weights, above, None)]
    return None, (Sum(np.stack(counted)),)


def _active(
    block: Block, pair: tuple[SurveyState, int], kink: float, within: float
) -> tuple[None, tuple[Sum]]:
    """The active set: samples whose margin is this near the kink."""
    k, offset = pair
    active = np.abs(k.u - block.flip_costs(kink)) <= within
    return picked(block, offset, k.u, np.flatnonzero(active))


def _survey_step(
    block: Block,
    pair: tuple[SurveyState, int],
    numbers: IndexArray,
    shares: FloatArray,
    kappa: float,
    kinks: tuple[float, float],
    *step: Any,
) -> tuple[SurveyState, tuple[Sum]]:
    """A survey; samples outside the active set stay on their side of the kink."""
    k, offset = pair
    first, last = np.searchsorted(numbers, [offset, offset + k.u.size])
    a = np.asarray(k.u > block.flip_costs(kinks[0]), np.float64)
    a[numbers[first:last] - offset] = shares[first:last]
    costs = np.broadcast_to(block.flip_costs(1.0), a.shape)
    u, s, sums = survey(block.compiled, costs, kappa, kinks[1], k.u, k.bent, a, *step)
    return k._replace(u=u, point=(s, a)), (Sum(sums),)


def _surveyed_point(block: Block, k: SurveyState) -> tuple[tuple[FloatArray, ...], tuple[()]]:
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
    work: WorkCounts = dict.fromkeys(("grams", "sample_grams", "near_grams", "visits"), 0.0)

    def report(objective: float, bound: float, lam: float) -> bool:
        grams = work["grams"] + work["sample_grams"] + work["near_grams"]
        return monitor.report(math.ceil(grams), objective, bound, lam)

    with np.errstate(all="ignore"):
        start = _start_from_sample(problem, monitor, work) if start is None else start
        if start is None:
            return None
        large, point = LargeRun(LabelScaling(problem), work), None
        try:
            status = large.solve(with_lambda(problem, start), tol, report)
            if status is None:
                return None
            point = of_all(
                two_labels(problem.rows, problem.rows.run(_surveyed_point, large.proof)[0])
            )
        except WorkersLostError:
            if large.at is None:
                raise
            status = Status.STOPPED
    assert large.at is not None
    work["grams"] += work["sample_grams"] + work["near_grams"]
    info = {"solver": "interior-point", "distinct_samples": problem.rows.n_samples}
    return Solution(
        large.at.model[:-1],
        status,
        math.ceil(work["grams"]),
        point,
        info=info | work,
        lam=float(large.at.model[-1]),
        proven=(large.at.objective, large.bound),
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
    newton, _, found = solve_scaled(scaling, tol, 60, None, Monitor(stop=monitor.stop))
    work["sample_grams"] += share * found.n_iter
    model = newton.best_model()
    distance = sampling_error(n, rows.n_samples, problem.rows.n_samples)
    return Start(model[:-1], float(model[-1]), distance, True)
