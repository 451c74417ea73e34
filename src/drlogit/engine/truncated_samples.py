"""Samples of the truncated interior point: label shares with a barrier, one visit each.

Tables are (labels, samples), as in ``_labels.pyx``; two labels are "another one", with scores of
zero, and "the observed one", whose scores are the margins.  What products need is (samples,
labels), the order in which rows return scores.

The shares maximise ``a·v - δ/2 ‖a - a_now‖²`` over the simplex, with ``v = -ς - κλ``.  Their
slacks r have ``a r = μ`` on the central path.  The proximal term δ caps the curvature of a kink at
1/δ: without it conjugate gradients would need more steps from iteration to iteration.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problem.losses import Codes
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.matrix import held
from ..rows.reductions import Sum
from ._labels import LabelState
from ._truncated import bend, pair_product

#: Step lengths, at which samples that would be passed book their complementarity.
LENGTHS = np.linspace(0.0, 1.0, 31)[1:] ** 2

#: What a share or slack keeps of itself when a step passes its boundary, ...
KEPT = 0.1

#: ... and the share of the way to a boundary that a step goes.
_SHORT_OF = 0.95

#: The curvature of a hinge between labels from which a sample is on a kink; that of the loss is at
#: most a quarter.
_KINK = 0.03

#: The slack of a label out of reach.
_FAR = 1e300

_EMPTY = np.zeros((0, 0))


class Shares(NamedTuple):
    """What is known of a block's samples; tables are (labels, samples)."""

    own: Codes  # the observed labels
    kappa: FloatArray  # zero where out of reach
    free: FloatArray  # (samples, free columns), scaled
    scores: FloatArray
    a: FloatArray  # label shares, zero where out of reach
    slack: FloatArray
    p: FloatArray = _EMPTY
    curved: FloatArray = _EMPTY  # p and D, (2, samples, labels)
    costs: FloatArray = _EMPTY  # κ, (samples, labels)
    towards: FloatArray = _EMPTY  # change of a at a step of zero
    step: FloatArray = _EMPTY  # changes of scores, a and slack


class DualShares(NamedTuple):
    """A dual point of a block, and what its equations need."""

    p: FloatArray
    a: FloatArray
    own: Codes
    kappa: FloatArray
    free: FloatArray


def pairs(n_labels: int) -> tuple[IndexArray, IndexArray]:
    """(j, k) of all pairs of labels, j < k, in the order of flows: k rises slowest."""
    k, j = np.tril_indices(n_labels, -1)
    return j, k


def softmax(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities and log-sum-exp of each sample."""
    most = scores.max(axis=0)
    p = np.exp(scores - most)
    total = p.sum(axis=0)
    return p / total, most + np.log(total)


def forward(block: Block, coef: FloatArray) -> FloatArray:
    """Scores of coefficients, a row for each label, or for the second of two."""
    if len(coef) > 1:
        return np.ascontiguousarray(block.scores(coef).T)
    margins = block.margins(coef[0])
    return np.stack([np.zeros_like(margins), margins])


def backward(block: Block, r: FloatArray, n_rows: int) -> FloatArray:
    """The adjoint of :func:`forward`."""
    return np.ascontiguousarray(block.adjoint(np.ascontiguousarray(r[-n_rows:]).T).T)


def opened(
    block: Block, known: LabelState, free: IndexArray, scale: FloatArray
) -> tuple[Shares, tuple[()]]:
    """The samples that the label kernel has opened at coefficients of zero."""
    _, _, slack, a = known.tables()
    codes, kappa, *_ = known.parts()
    if not known.flips:
        a = 1.0 * (np.arange(known.K)[:, None] == codes)
        kappa, slack = np.zeros_like(a), np.where(a > 0.0, 1.0, _FAR)
    Z = free_columns(block, free, scale)
    return Shares(codes, kappa[: known.K].copy(), Z, np.zeros_like(a), a, slack), ()


def free_columns(block: Block, free: IndexArray, scale: FloatArray) -> FloatArray:
    """The free columns of Z, scaled."""
    units = np.zeros((free.size, block.n_columns))
    units[np.arange(free.size), free] = scale
    return block.scores(units)


def measure(block: Block, state: Shares, lams: FloatArray) -> tuple[Shares, tuple[Sum, Sum]]:
    """Probabilities; the loss with the worst labels at each λ, and the complementarity."""
    p, lse = softmax(state.scores)
    out = np.where(state.a > 0.0, -state.scores, -np.inf)
    worst = [(out - lam * state.kappa).max(axis=0) for lam in lams]
    losses = np.array([block.weights @ (lse + each) for each in worst])
    products = float(block.weights @ (state.a * state.slack).sum(axis=0))
    return state._replace(p=p), (Sum(losses), Sum(products))


def linearise(
    block: Block, state: Shares, lam: float, mu: float, delta: float, n_rows: int
) -> tuple[Shares, tuple[Sum, Sum]]:
    """Curvatures; gradient at the shares of a step of zero, (spent, corner)."""
    w, a, kappa = block.weights, state.a, state.kappa
    D = a / (delta * a + state.slack)
    total = D.sum(axis=0)
    e = mu / np.where(a > 0.0, a, 1.0) - state.scores - lam * kappa
    towards = D * (e - (D * e).sum(axis=0) / total)
    gradient = backward(block, w * (state.p - a - towards), n_rows)
    kD = kappa * D
    corner = w @ ((kappa * kD).sum(axis=0) - kD.sum(axis=0) ** 2 / total)
    spent = w @ (kappa * (a + towards)).sum(axis=0)
    curved = np.ascontiguousarray(np.stack([state.p, D]).transpose(0, 2, 1))
    costs = state.costs if state.costs.size else np.ascontiguousarray(kappa.T)
    found = Sum(gradient), Sum(np.array([spent, corner]))
    return state._replace(curved=curved, costs=costs, towards=towards), found


def class_weights(block: Block, curved: FloatArray) -> FloatArray:
    """Weights of the samples in the matrix of each label alone, (labels, samples)."""
    smooth, hinge = class_curvatures(curved)
    return np.ascontiguousarray(block.weights * (smooth + hinge))


def class_curvatures(curved: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The diagonals of the samples' Laplacians, (labels, samples): of the loss, of the hinges."""
    p, D = curved.transpose(0, 2, 1)
    total = D.sum(axis=0)
    share = np.divide(D, total, out=np.zeros_like(D), where=total > 0.0)
    return p * (1.0 - p), D * (1.0 - share)


def diagonals(block: Block, state: Shares, n_rows: int) -> tuple[None, tuple[Sum]]:
    """The diagonal of the samples' matrix for each label alone."""
    weights = class_weights(block, state.curved)[-n_rows:]
    return None, (Sum(np.stack([block.squared_columns(weight) for weight in weights])),)


def mean_gram(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    """The Gram matrix of the rows, by their weights."""
    return None, (Sum(block.gram(block.weights)),)


def class_matrices(block: Block, state: Shares) -> tuple[None, tuple[Sum, Sum]]:
    """The samples' matrix for each label alone, in two parts.

    Samples on a kink are few and curve much: the first part is their matrix for each label,
    (labels, columns, columns).  The second part is the sum of the other weights of each label,
    for the mean matrix of all rows.
    """
    smooth, hinge = class_curvatures(state.curved)
    kink, found = hinge > _KINK, []
    for own, weights in zip(kink, hinge, strict=True):
        at = np.flatnonzero(own)
        d = block.weights[at] * weights[at]
        found.append(Block(held(block.X[at]), block.y[at], d, block.intercept).gram(d))
    return None, (Sum(np.stack(found)), Sum((smooth + np.where(kink, 0.0, hinge)) @ block.weights))


def curvature(
    block: Block, state: Shares, v: FloatArray, single: bool
) -> tuple[Shares, tuple[Sum]]:
    """The samples' matrix times (B, λ), flat; in single precision if that is asked for.

    Conjugate gradients solve to a tenth or so, and what a step misses is in the next gradient.
    """
    if v.size == block.n_columns + 1:
        return state, (Sum(pair_product(block.compiled, state.curved, state.costs, v)),)
    product = single_product if single and block.single is not None else curvature_product
    return state, (Sum(product(block, state.curved, state.costs, v)),)


def curvature_product(
    block: Block, curved: FloatArray, costs: FloatArray, coef: FloatArray
) -> FloatArray:
    """The samples' matrix times (B, λ), flat; ``curved`` is (p, D), (2, samples, labels)."""
    v = block.scores(coef[:-1].reshape(costs.shape[1], -1))
    side = bend(curved, costs, block.weights, float(coef[-1]), v)
    return np.append(block.adjoint(v).T, side)


def single_product(
    block: Block, curved: FloatArray, costs: FloatArray, coef: FloatArray
) -> FloatArray:
    """That product with the rows in single precision: little more than half the time."""
    X = block.single
    assert X is not None
    # Steps are short in the end: with a largest entry of one, nothing underflows.
    size = max(float(np.abs(coef).max()), 1e-300)
    B = (coef[:-1] / size).reshape(costs.shape[1], -1)
    v = (X @ np.float32(B[:, : X.shape[1]]).T).astype(np.float64)
    v += B[:, X.shape[1] :].sum(axis=1)  # the intercept
    side = bend(curved, costs, block.weights, float(coef[-1]) / size, v)
    found = np.empty(B.shape)
    found[:, : X.shape[1]], found[:, X.shape[1] :] = np.float32(v).T @ X, v.sum(axis=0)[:, None]
    return size * np.append(found, side)


def _moved(state: Shares, ds: FloatArray, dlam: float) -> tuple[FloatArray, FloatArray]:
    """P and a after a step in scores and λ, both to first order."""
    p, D = state.curved.transpose(0, 2, 1)
    dv = -ds - dlam * state.kappa
    da = state.towards + D * (dv - (D * dv).sum(axis=0) / D.sum(axis=0))
    return p + p * (ds - (p * ds).sum(axis=0)), state.a + da


def point_of(
    block: Block, state: Shares, coef: FloatArray, dlam: float
) -> tuple[DualShares, tuple[()]]:
    """The dual point of a step, linear in the step but for its bounds."""
    p, a = (np.maximum(each, 0.0) for each in _moved(state, forward(block, coef), dlam))
    p, a = p / p.sum(axis=0), a / a.sum(axis=0)
    return DualShares(p, a, state.own, state.kappa, state.free), ()


def balance(
    block: Block, point: DualShares, move: FloatArray
) -> tuple[DualShares, tuple[Sum, Sum]]:
    """A dual point with its log-odds moved by free coefficients, a row for each of the model.

    Returns the gradient and the Hessian of the equations of the free columns.
    """
    free, w, C = point.free, block.weights, len(move)
    scores = np.log(np.maximum(point.p, 1e-300))
    scores[-C:] += move @ free.T
    p = softmax(scores)[0]
    gradient = (w * (p - point.a))[-C:] @ free
    f = free.shape[1]
    wide = (p[-C:, None] * free.T).reshape(C * f, -1)
    hessian = -(wide * w) @ wide.T
    for k, own in enumerate(p[-C:]):
        hessian[k * f : k * f + f, k * f : k * f + f] += (free.T * (w * own)) @ free
    return point._replace(p=p), (Sum(gradient), Sum(hessian))


def sums_of_point(
    block: Block, point: DualShares, n_rows: int
) -> tuple[DualShares, tuple[Sum, Sum]]:
    """``Σ w (p - a) xᵀ`` and ``Σ w κ·a``."""
    p, a, _, kappa, _ = point
    spent = block.weights @ (kappa * a).sum(axis=0)
    return point, (Sum(backward(block, block.weights * (p - a), n_rows)), Sum(float(spent)))


def scaled(block: Block, point: DualShares, factor: float) -> tuple[FloatArray, tuple[Sum]]:
    """P and a, (2, labels, samples), scaled towards the observed labels, and ``Σ w H(p)``."""
    found = factor * np.stack([point.p, point.a])
    found[:, point.own, np.arange(point.own.size)] += 1.0 - factor
    entropy = -(found[0] * np.log(np.where(found[0] > 0.0, found[0], 1.0))).sum(axis=0)
    return found, (Sum(float(block.weights @ entropy)),)


def follow(
    block: Block, state: Shares, coef: FloatArray, dlam: float, mu: float
) -> tuple[Shares, tuple[Sum, Sum]]:
    """Changes along a step: costs of passing at LENGTHS; the loss, its slope and curvature."""
    ds, (w, p, a, slack) = forward(block, coef), (block.weights, state.p, state.a, state.slack)
    within = a > 0.0
    da = np.where(within, _moved(state, ds, dlam)[1] - a, 0.0)
    dslack = np.where(within, (mu - slack * da) / np.where(within, a, 1.0) - slack, 0.0)
    booked = np.zeros(LENGTHS.size)
    for value, change in ((a, da), (slack, dslack)):
        book(booked, value, change, w * a * slack)
    mean, loss = (p * ds).sum(axis=0), w @ softmax(state.scores)[1]
    parabola = np.array([loss, w @ mean, w @ ((p * ds * ds).sum(axis=0) - mean**2)])
    return state._replace(step=np.stack([ds, da, dslack])), (Sum(booked), Sum(parabola))


def book(booked: FloatArray, value: FloatArray, change: FloatArray, cost: FloatArray) -> None:
    """Add the costs of values whose boundary at zero a step passes, at the length where it does."""
    passed = change < -_SHORT_OF * value
    if passed.any():
        reached = _SHORT_OF * value[passed] / -change[passed]
        at = np.minimum(np.searchsorted(LENGTHS, reached), LENGTHS.size - 1)
        booked += np.bincount(at, cost[passed], minlength=LENGTHS.size)


def loss_at(block: Block, state: Shares, length: float) -> tuple[Shares, tuple[Sum]]:
    """The loss after a step of this length."""
    _, lse = softmax(state.scores + length * state.step[0])
    return state, (Sum(float(block.weights @ lse)),)


def move(
    block: Block, state: Shares, length: float, coef: FloatArray | None
) -> tuple[Shares, tuple[()]]:
    """The samples after the step; at these coefficients, if it ends elsewhere."""
    ds, da, dslack = state.step
    a = np.maximum(state.a + length * da, KEPT * state.a)
    slack = np.maximum(state.slack + length * dslack, KEPT * state.slack)
    scores = state.scores + length * ds if coef is None else forward(block, coef)
    return state._replace(scores=scores, a=a / a.sum(axis=0), slack=slack, step=_EMPTY), ()
