"""The samples of the barrier method, their hinge kept exact: a model for ``predictor_corrector``.

For each sample there are a margin u, slacks ``t ≥ 0`` and ``r = t - u + κλ ≥ 0`` of the hinge, and
their multipliers ``c + a = 1``.  A change ``dv`` of ``u - κλ`` and wanted changes of the products
``c t`` and ``a r`` determine the changes of all four.  Changes of slacks, multipliers and products
are kept in proportion to these, which takes fewer operations and gives the step lengths at once.
:class:`HingeSamples` is what drivers see; each of its methods is one pass over the data, by the
block function of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...problem.losses import (
    LogLoss,
    flip_gain,
    flip_probability,
    linear_loss_terms,
    log_loss_terms,
)
from ...rows.arrays import BoolArray, FloatArray
from ...rows.blocks import Block
from ...rows.interface import Rows, State
from ...rows.reductions import Max, Sum
from .norm_cone import outlier_correction
from .predictor_corrector import Conditions, Lengths, Predicted, Pull
from .wide_system import wide

#: What a sample keeps of a slack or of a multiplier that a step takes to zero or beyond; from 0.1
#: to 0.3 serves alike.
_KEPT = 0.1

#: What it costs to leave a sample behind: its products, and this share of what is added to them.
_PRICE = 1.0 / 30.0

#: Samples of less than this share of the mean weight never hold up steps: where one hardly counts,
#: or not at all, its slacks may follow from its margin.
_LIGHT = 1e-9

#: Levels of the lengths that samples allow: sixteen for each factor of two.
_LEVELS, _PER_OCTAVE = 256, 16.0


class Hinges(NamedTuple):
    """Per-sample state of an iterate: margins, slacks t and r, their multipliers c and a.

    ``loss`` holds the loss and its derivatives at these margins.
    """

    u: FloatArray
    t: FloatArray
    r: FloatArray
    c: FloatArray
    a: FloatArray
    loss: LogLoss


class LocalHinges(NamedTuple):
    """The samples with what every direction from there needs.

    Stiffnesses are ``c/t`` and ``a/r``, ``give`` is one over their sum, products are ``c t`` and
    ``a r``; ``d`` are the weights of the Gram matrix, kept if it is not formed.
    """

    at: Hinges
    inverse_t: FloatArray
    inverse_r: FloatArray
    stiff_t: FloatArray
    stiff_r: FloatArray
    give: FloatArray
    product_t: FloatArray
    product_r: FloatArray
    d: FloatArray | None


class HingeDirection(NamedTuple):
    """A direction of the samples; slacks and multipliers change in proportion to themselves.

    ``aim_t`` and ``aim_r`` are the wanted changes of the products, in proportion too, and hold
    the second-order terms of the predictor until a corrector has been asked for.
    """

    local: LocalHinges
    du: FloatArray
    dt: FloatArray
    dr: FloatArray
    dc: FloatArray
    da: FloatArray
    aim_t: FloatArray
    aim_r: FloatArray


@dataclass(frozen=True, eq=False)
class HingeSamples:
    """The samples with slacks and multipliers of their hinges, κ in the driver's units.

    With ``linear`` the log-loss is replaced by its slope at the margins of the coefficients
    ``null``, ``-s u``, or by nothing without these.  Primal and dual steps may leave
    samples ``behind`` at these costs, in units of the objective: what all of them allow is as short
    as one wants it.
    """

    rows: Rows
    kappa: float
    linear: bool = False
    null: FloatArray | None = None
    behind: Lengths = (0.0, 0.0)

    degree = 2.0

    def open(self, coefficients: FloatArray, lam: float, mu: float) -> State:
        arguments = coefficients, self.kappa * lam, mu, self.linear, self.null
        return self.rows.run(open_samples, None, *arguments)[0]

    def linearise(self, samples: State, lam: float, rough: bool) -> tuple[State, Conditions]:
        here, (conditions,) = self.rows.run(
            linearise, samples, self.kappa * lam, wide(self.rows), rough
        )
        return here, conditions

    def predict(
        self, here: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths, Predicted]:
        step, (*limits, predicted) = self.rows.run(predict, here, dcoefficients, self.kappa * dlam)
        return step, self._lengths(*limits), predicted

    def correct(
        self, predictor: State, dcoefficients: FloatArray, dlam: float, centre: float, share: float
    ) -> tuple[State, Lengths]:
        dkink = self.kappa * dlam
        step, limits = self.rows.run(correct, predictor, dcoefficients, dkink, centre, share)
        return step, self._lengths(*limits)

    def pull_back(self, step: State, trial: Lengths, centre: float) -> tuple[State, Pull]:
        pulled, (pull,) = self.rows.run(pull_back, step, *trial, centre)
        return pulled, pull

    def follow(
        self, pulled: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths]:
        step, limits = self.rows.run(follow_aims, pulled, dcoefficients, self.kappa * dlam)
        return step, self._lengths(*limits)

    def _lengths(self, costs: FloatArray, steepest: FloatArray) -> Lengths:
        """Longest primal and dual steps that leave no more than ``behind`` behind."""
        if not steepest.any():
            return 1.0, 1.0
        costs_from = costs[:, ::-1].cumsum(axis=1)[:, ::-1]
        held = costs_from > np.array(self.behind)[:, None]
        primal, dual = np.where(held, steepest, 1.0).max(axis=1)
        return 1.0 / max(float(primal), 1.0), 1.0 / max(float(dual), 1.0)

    def advance(self, step: State, alphas: Lengths) -> tuple[State, float]:
        """The samples after a step of these lengths, and their loss."""
        samples, (loss,) = self.rows.run(advance, step, *alphas, self.linear)
        return samples, loss

    def parabola(self, step: State) -> tuple[float, float]:
        _, (slope, curvature) = self.rows.run(parabola, step)
        return slope, curvature

    def gram_weights(self, here: State) -> State:
        return self.rows.run(gram_weights, here)[0]

    def flip_share(self, samples: State) -> State:
        return self.rows.run(flip_share, samples)[0]

    def full_share(self, predictor: State) -> State:
        return self.rows.run(full_share, predictor)[0]


def open_samples(
    block: Block,
    _: None,
    coefficients: FloatArray,
    kink: float,
    mu: float,
    linear: bool,
    null: FloatArray | None,
) -> tuple[Hinges, tuple[()]]:
    """Samples on the central path."""
    u = block.margins(coefficients)
    t, r = central_slacks(u - kink, mu)
    if linear:
        slope = np.zeros_like(u) if null is None else flip_probability(block.margins(null))
        loss = linear_loss_terms(u, slope)
    else:
        loss = log_loss_terms(u)
    return Hinges(u, t, r, mu / t, mu / r, loss), ()


def central_slacks(v: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
    """Slacks t and r on the central path: ``t - r = v``, ``c t = a r = μ``, ``c + a = 1``."""
    root = np.hypot(v, 2.0 * mu)
    large = 0.5 * (2.0 * mu + np.abs(v) + root)
    small = mu + 2.0 * mu * mu / (np.abs(v) + root)
    return np.where(v > 0.0, large, small), np.where(v > 0.0, small, large)


def linearise(
    block: Block,
    s: Hinges,
    kink: float,
    diagonal_only: bool,
    rough: bool,
) -> tuple[LocalHinges, tuple[Sum[Conditions]]]:
    """Gram matrix (or its diagonal), gradients and sums at the present point."""
    w, loss = block.weights, s.loss
    inverse_t, inverse_r = 1.0 / s.t, 1.0 / s.r
    stiff_t, stiff_r = s.c * inverse_t, s.a * inverse_r
    give = 1.0 / (stiff_t + stiff_r)
    omega = stiff_r * (stiff_t * give)
    product_t, product_r = s.c * s.t, s.a * s.r
    columns = np.empty((4, w.size))
    np.multiply(w, s.a - loss.slope, out=columns[0])
    np.multiply(w, omega, out=columns[1])
    # What a becomes at dv = 0 when all products go to zero, and per unit of centring.
    np.multiply(w, stiff_r * give - s.a, out=columns[2])
    np.multiply(w, (s.c - s.a) * inverse_t * inverse_r * give, out=columns[3])
    d = w * (loss.curvature + omega)
    if diagonal_only:
        gram, adjoints = block.squared_columns(d), block.adjoint(columns.T)
    else:
        gram, adjoints = block.gram_and_adjoint(d, columns.T, rough=rough)
    local = LocalHinges(
        s, inverse_t, inverse_r, stiff_t, stiff_r, give, product_t, product_r,
        d if diagonal_only else None,
    )  # fmt: skip
    totals = (
        w @ loss.value, w @ flip_gain(s.u, kink), w @ (product_t + product_r), 0.0, w @ s.a,
        *columns[1:].sum(axis=1),
    )  # fmt: skip
    conditions = Conditions._make([gram, *adjoints.T, *map(float, totals)])
    return local, (Sum(conditions),)


def predict(
    block: Block, k: LocalHinges, dcoefficients: FloatArray, dkink: float
) -> tuple[HingeDirection, tuple[Sum, Max, Sum[Predicted]]]:
    """Predictor: longest steps, products after it, and the second-order term's pull."""
    w = block.weights
    du = block.margins(dcoefficients)
    dv = du - dkink
    # Both products are to vanish, so dc = -c - (c/t) dt, da = -a - (a/r) dr, and c + a = 1.
    dt = (k.stiff_r * dv - 1.0) * k.give * k.inverse_t
    dr = (k.stiff_t * dv + 1.0) * -k.give * k.inverse_r
    dc, da = -1.0 - dt, -1.0 - dr
    second_t, second_r = dt * dc, dr * da
    # Opposite aims undo the second-order terms.
    pull = w * _hinge_response(k, -second_t, -second_r)
    first = float(w @ (k.product_t * dt + k.product_r * dr))
    second = float(w @ (k.product_t * second_t + k.product_r * second_r))
    step = HingeDirection(k, du, dt, dr, dc, da, second_t, second_r)
    return step, (
        *_limits(step, block),
        Sum(Predicted(first, second, block.adjoint(pull), float(pull.sum()))),
    )


def correct(
    block: Block,
    d: HingeDirection,
    dcoefficients: FloatArray,
    dkink: float,
    centre: float,
    share: float,
) -> tuple[HingeDirection, tuple[Sum, Max]]:
    """Direction towards ``centre``, with a share of the predictor's second-order terms."""
    k = d.local
    aimed = d._replace(
        aim_t=centre / k.product_t - 1.0 - share * d.aim_t,
        aim_r=centre / k.product_r - 1.0 - share * d.aim_r,
    )
    return follow_aims(block, aimed, dcoefficients, dkink)


def follow_aims(
    block: Block, d: HingeDirection, dcoefficients: FloatArray, dkink: float
) -> tuple[HingeDirection, tuple[Sum, Max]]:
    """Direction that changes the products as the aims say.

    Each multiplier is changed through its own product, which keeps its relative accuracy.
    """
    k = d.local
    du = block.margins(dcoefficients)
    dv = du - dkink
    push = k.at.c * d.aim_t + k.at.a * d.aim_r
    dt = (push + k.stiff_r * dv) * k.give * k.inverse_t
    dr = (push - k.stiff_t * dv) * k.give * k.inverse_r
    dc, da = d.aim_t - dt, d.aim_r - dr
    step = HingeDirection(k, du, dt, dr, dc, da, d.aim_t, d.aim_r)
    return step, _limits(step, block)


def pull_back(
    block: Block, d: HingeDirection, primal: float, dual: float, centre: float
) -> tuple[HingeDirection, tuple[Sum[Pull]]]:
    """Aims that bring the outliers of a trial step back, and their pull on the gradient."""
    k = d.local
    trial_t = k.product_t * (1.0 + primal * d.dt) * (1.0 + dual * d.dc)
    trial_r = k.product_r * (1.0 + primal * d.dr) * (1.0 + dual * d.da)
    back_t = outlier_correction(trial_t, centre) / k.product_t
    back_r = outlier_correction(trial_r, centre) / k.product_r
    pull = block.weights * _hinge_response(k, back_t, back_r)
    pulled = d._replace(aim_t=d.aim_t + back_t, aim_r=d.aim_r + back_r)
    return pulled, (Sum(Pull(block.adjoint(pull), float(pull.sum()))),)


def _hinge_response(k: LocalHinges, aim_t: FloatArray, aim_r: FloatArray) -> FloatArray:
    """The change of ``a`` at dv = 0 that the aims ask for."""
    push = k.at.c * aim_t + k.at.a * aim_r
    return np.asarray(k.at.a * (aim_r - k.inverse_r * k.give * push))


def _limits(d: HingeDirection, block: Block) -> tuple[Sum, Max]:
    """What it costs to leave samples behind, and their steepest fall, by level: primal, then dual.

    One over the fall of what shrinks fastest, in proportion, is the step that a sample allows;
    those that allow the whole one are not counted, nor are light ones.
    """
    k, s, w = d.local, d.local.at, block.weights
    counts = ~_light(block)
    costs, steepest = np.zeros((2, _LEVELS)), np.zeros((2, _LEVELS))
    for kind, changes in enumerate((np.minimum(d.dt, d.dr), np.minimum(d.dc, d.da))):
        short = np.flatnonzero((changes < -1.0) & counts)
        if not short.size:
            continue
        t, r, falls = s.t[short], s.r[short], -changes[short]
        if kind == 0:  # what is missing of a slack is added to both
            added = np.maximum(-t * d.dt[short], -r * d.dr[short])
        else:  # and of a multiplier, taken from the other
            added = np.abs(s.a[short] * d.da[short]) * (t + r)
        level = np.minimum(_PER_OCTAVE * np.log2(falls), _LEVELS - 1.0).astype(np.intp)
        cost = w[short] * (k.product_t[short] + k.product_r[short] + _PRICE * added)
        costs[kind] = np.bincount(level, cost, _LEVELS)
        np.maximum.at(steepest[kind], level, falls)
    return Sum(costs), Max(steepest)


def _light(block: Block) -> BoolArray:
    """Samples that hardly count, or not at all."""
    w = block.weights
    return np.asarray(w <= _LIGHT * w.sum() / max(w.size, 1))


def advance(
    block: Block, d: HingeDirection, primal: float, dual: float, linear: bool
) -> tuple[Hinges, tuple[Sum]]:
    """The samples after a step of these lengths, and their loss."""
    s = d.local.at
    u = s.u + primal * d.du
    loss = linear_loss_terms(u, s.loss.slope) if linear else log_loss_terms(u)
    t, r = s.t + primal * (s.t * d.dt), s.r + primal * (s.r * d.dr)
    c, a = s.c + dual * (s.c * d.dc), s.a + dual * (s.a * d.da)
    # Who is left behind.  Light samples go back to the central path, at the mean product ...
    k = np.flatnonzero((np.minimum(np.minimum(t, r), np.minimum(c, a)) <= 0.0) & _light(block))
    if k.size:
        products = d.local.product_t + d.local.product_r
        counted = block.weights if block.weights.any() else None  # some blocks have no weight
        mu = 0.5 * float(np.average(products, weights=counted))
        t[k], r[k] = central_slacks((t - r)[k], mu)
        c[k], a[k] = mu / t[k], mu / r[k]
    # ... of others t - r and c + a stay what they are.
    k = np.flatnonzero(np.minimum(t, r) <= 0.0)
    if k.size:
        t[k], r[k] = _lifted(t[k], r[k], _KEPT * s.t[k], _KEPT * s.r[k], 1.0)
    k = np.flatnonzero(np.minimum(c, a) <= 0.0)
    if k.size:
        c[k], a[k] = _lifted(c[k], a[k], _KEPT * s.c[k], _KEPT * s.a[k], -1.0)
    return Hinges(u, t, r, c, a, loss), (Sum(float(block.weights @ loss.value)),)


def _lifted(
    one: FloatArray, other: FloatArray, least: FloatArray, least_other: FloatArray, sign: float
) -> tuple[FloatArray, FloatArray]:
    """Both after the one that is further below its least was lifted there, exactly.

    The other goes along, or by as much the other way.
    """
    missing, missing_other = least - one, least_other - other
    first = missing >= missing_other
    return (
        np.where(first, least, one + sign * missing_other),
        np.where(first, other + sign * missing, least_other),
    )


def parabola(block: Block, d: HingeDirection) -> tuple[HingeDirection, tuple[Sum, Sum]]:
    """Slope and curvature of the loss along a direction: what Newton's method takes it for."""
    weighted, loss = block.weights * d.du, d.local.at.loss
    return d, (
        Sum(-float(weighted @ loss.slope)),
        Sum(float(weighted @ (d.du * loss.curvature))),
    )


def gram_weights(block: Block, k: LocalHinges) -> tuple[tuple[FloatArray | None, None], tuple[()]]:
    """The weights d, in the form that ``wide_system`` takes."""
    return (k.d, None), ()


def flip_share(block: Block, k: LocalHinges | Hinges) -> tuple[FloatArray, tuple[()]]:
    """``a``: the share of each sample whose label the worst case flips."""
    return (k.at if isinstance(k, LocalHinges) else k).a, ()


def full_share(block: Block, d: HingeDirection) -> tuple[FloatArray, tuple[()]]:
    """``a`` after a full predictor step, within [0, 1]."""
    a = d.local.at.a
    return np.clip(a + a * d.da, 0.0, 1.0), ()
