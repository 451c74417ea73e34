"""Samples of the truncated interior point: label shares with a barrier, for two or more classes.

The samples of both kinds of problem have K scores each, K label costs κ, probabilities p and label
shares a on the simplex.  With two classes the scores are 0 (the label as it is) and -u (the other
one); the coefficients are one row.  With K classes there are K rows of coefficients.

The shares maximise ``a·v - δ/2 ‖a - a_now‖²`` over the simplex, with ``v = -ς - κλ``.  Their
slacks x have ``a x = μ`` on the central path.  The proximal term δ caps the curvature of a kink at
1/δ: without it conjugate gradients would need more steps from iteration to iteration.

Derivation: docs/algorithm.md, section 9.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..problem.label_costs import FlipCosts, within_reach
from ..problem.losses import Codes
from ..problem.problem import Problem
from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.matrix import held
from ..rows.reductions import Sum
from ._truncated import bend, mixed_entropies, pair_product, softmax, worst_labels

#: Step lengths, at which samples that would be passed book their complementarity.
LENGTHS = np.array(
    [
        0.001,
        0.002,
        0.005,
        0.01,
        0.02,
        0.03,
        0.05,
        0.07,
        0.1,
        0.15,
        0.2,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
        0.95,
        1.0,
    ]
)

#: What a share or slack keeps of itself when a step passes its boundary, ...
KEPT = 0.1

#: ... and the share of the way to a boundary that a step goes.
_SHORT_OF = 0.95

#: The curvature of a hinge between labels from which a sample is on a kink; that of the loss is at
#: most a quarter.
_KINK = 0.03

_EMPTY = np.zeros((0, 0))

#: Scores (or log p), label shares and free columns of a block's samples.
Balancing: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

#: The observed labels, and the costs of the others.
Fixed: TypeAlias = tuple[Codes, FloatArray]


class WideSamples(NamedTuple):
    """What is known of a block's samples; arrays are (samples, classes) where nothing is said."""

    own: Codes  # (samples,): the label as it is
    kappa: FloatArray  # zero where out of reach
    reach: BoolArray
    free: FloatArray  # (samples, free columns)
    scores: FloatArray
    a: FloatArray
    slack: FloatArray
    p: FloatArray = _EMPTY
    curved: FloatArray = _EMPTY  # (2, samples, classes): p and D
    towards: FloatArray = _EMPTY  # change of a at a step of zero
    step: FloatArray = _EMPTY  # (3, samples, classes): changes of scores, a and slack


def row_sums(values: FloatArray) -> FloatArray:
    """Sums over the classes: a product is faster than NumPy's sum over a short axis."""
    return np.asarray(values @ np.ones(values.shape[1]))


def class_weights(block: Block, curved: FloatArray) -> FloatArray:
    """Weights of the samples in the matrix of each class alone, (classes, samples)."""
    smooth, hinge = class_curvatures(curved)
    return np.ascontiguousarray((block.weights[:, None] * (smooth + hinge)).T)


def class_curvatures(curved: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The diagonals of the samples' Laplacians, (samples, classes): of the loss, of the hinges."""
    p, D = curved
    total = (D @ np.ones(D.shape[1]))[:, None]
    share = np.divide(D, total, out=np.zeros_like(D), where=total > 0.0)
    return p * (1.0 - p), D * (1.0 - share)


def forward(block: Block, coef: FloatArray) -> FloatArray:
    """Scores of coefficients, (1 or K, columns)."""
    if len(coef) == 1:
        scores = np.zeros((block.y.size, 2))
        scores[:, 1] = -block.margins(coef[0])
        return scores
    return block.scores(coef)


def backward(block: Block, r: FloatArray, rows: int) -> FloatArray:
    """The adjoint of :func:`forward`."""
    if rows == 1:
        return -block.adjoint(np.ascontiguousarray(r[:, 1]))[None]
    return np.ascontiguousarray(block.adjoint(r).T)


def opened(problem: Problem, coef: FloatArray, free: IndexArray, mu: float) -> State:
    """Samples at given coefficients, with about nine tenths of ε spent on labels."""
    codes: Any = None
    costs: Any = problem.kappa if problem.flips else None
    if problem.several:
        codes, costs = problem.codes, problem.label_costs
    state: State = problem.rows.run(_open, codes, costs, problem.epsilon, coef, free, mu)[0]
    return state


def _open(
    block: Block,
    codes: Any,
    costs: FlipCosts | float | None,
    epsilon: float,
    coef: FloatArray,
    free: IndexArray,
    mu: float,
) -> tuple[WideSamples, tuple[()]]:
    n, K = block.y.size, max(len(coef), 2)
    own = np.zeros(n, np.int32) if codes is None else codes
    if isinstance(costs, FlipCosts):
        kappa = within_reach(costs.by_label(block, own, K), epsilon)
    else:
        kappa = np.full((n, 2), np.inf)
        kappa[:, 0] = 0.0
        if costs is not None:
            kappa[:, 1] = within_reach(block.flip_costs(costs), epsilon)
    reach = np.isfinite(kappa)
    reach[np.arange(n), own] = True
    kappa[~reach] = 0.0
    share = np.divide(epsilon, kappa, out=np.full((n, K), 0.5), where=kappa > 2.0 * epsilon)
    a = np.where(reach, 0.9 * share / (K - 1), 0.0)
    a[np.arange(n), own] = 0.0
    a[np.arange(n), own] = 1.0 - row_sums(a)
    slack = np.where(reach, mu / np.where(reach, a, 1.0), 0.0)
    return WideSamples(own, kappa, reach, _columns(block, free), forward(block, coef), a, slack), ()


def _columns(block: Block, free: IndexArray) -> FloatArray:
    """The free columns of a block, dense, the constant among them, with the labels' signs."""
    last = block.X.shape[1]
    part = block.X[:, free[free < last]]
    part = np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float64)
    found = np.ones((block.y.size, free.size))
    found[:, free < last] = part
    return found * block.y[:, None]


# --- one visit each -------------------------------------------------------------------------------


def balance(block: Block, state: Balancing, move: FloatArray) -> tuple[Balancing, tuple[Sum, Sum]]:
    """Scores moved by free coefficients, (1 or K, free columns): what is left of their equations.

    ``state`` are scores, shares and free columns.  Returns gradient and Hessian.
    """
    scores, a, free = state
    C = len(move)
    moved = free @ move.T
    scores = scores + (moved if C > 1 else np.column_stack([np.zeros(len(a)), -moved]))
    p, _ = softmax(scores)
    w = block.weights
    r = w[:, None] * (p - a)
    if C == 1:
        hessian = (free.T * (w * p[:, 0] * p[:, 1])) @ free
        return (scores, a, free), (Sum(-r[:, 1] @ free), Sum(hessian))
    f = free.shape[1]
    wide = (p[:, :, None] * free[:, None, :]).reshape(len(p), C * f)
    hessian = -(wide.T * w) @ wide
    for k in range(C):
        hessian[k * f : k * f + f, k * f : k * f + f] += (free.T * (w * p[:, k])) @ free
    return (scores, a, free), (Sum((r.T @ free).ravel()), Sum(hessian))


def measure(
    block: Block, state: WideSamples, lams: FloatArray
) -> tuple[WideSamples, tuple[Sum, Sum]]:
    """Probabilities; loss with the worst labels at each λ, and (Σ w lse, complementarity)."""
    p, lse = softmax(state.scores)
    w = block.weights
    worst = [worst_labels(state.scores, state.kappa, state.reach, lam) for lam in lams]
    losses = np.array([w @ (lse + each) for each in worst])
    return state._replace(p=p), (Sum(losses), Sum(float(w @ row_sums(state.a * state.slack))))


def linearise(
    block: Block, state: WideSamples, lam: float, mu: float, delta: float, rows: int
) -> tuple[WideSamples, tuple[Sum, Sum]]:
    """Curvatures; gradient at the shares of a step of zero, (spent, corner)."""
    w, a, p = block.weights, state.a, state.p
    inside = np.where(state.reach, a, 1.0)
    D = state.reach / (delta + state.slack / inside)
    total = row_sums(D)
    e = np.where(state.reach, -state.scores - lam * state.kappa + mu / inside, 0.0)
    towards = D * (e - (row_sums(D * e) / total)[:, None])
    gradient = backward(block, w[:, None] * (p - a - towards), rows)
    kD = row_sums(state.kappa * D)
    corner = w @ (row_sums(state.kappa**2 * D) - kD**2 / total)
    spent = w @ row_sums(state.kappa * (a + towards))
    curved = np.stack([p, D])
    found = Sum(gradient), Sum(np.array([spent, corner]))
    return state._replace(curved=curved, towards=towards), found


def diagonal(block: Block, state: WideSamples, rows: int) -> tuple[None, tuple[Sum]]:
    """The diagonal of the samples' matrix."""
    weights = class_weights(block, state.curved)[-rows:]
    return None, (Sum(np.stack([block.squared_columns(weight) for weight in weights])),)


def mean_gram(block: Block, _: None) -> tuple[None, tuple[Sum]]:
    """The Gram matrix of the rows, by their weights."""
    return None, (Sum(block.gram(block.weights)),)


def class_matrices(block: Block, state: WideSamples) -> tuple[None, tuple[Sum, Sum]]:
    """The samples' matrix for each class alone, in two parts.

    Samples on a kink are few and curve much: the first part is their matrix for each class,
    (classes, columns, columns).  The second part is the sum of the other weights of each class,
    for the mean matrix of all rows.
    """
    smooth, hinge = class_curvatures(state.curved)
    kink = hinge > _KINK
    found = []
    for own, weights in zip(kink.T, hinge.T, strict=True):
        at = np.flatnonzero(own)
        d = block.weights[at] * weights[at]
        found.append(Block(held(block.X[at]), block.y[at], d, block.intercept).gram(d))
    return None, (Sum(np.stack(found)), Sum(block.weights @ (smooth + np.where(kink, 0.0, hinge))))


def curvature(
    block: Block, state: WideSamples, v: FloatArray, single: bool
) -> tuple[WideSamples, tuple[Sum]]:
    """The samples' matrix times (B, λ), flat; in single precision if that is asked for.

    Conjugate gradients solve to a tenth or so, and what a step misses is in the next gradient.
    """
    if state.a.shape[1] == 2 and v.size == block.n_columns + 1:
        return state, (Sum(pair_product(block.compiled, state.curved, state.kappa, v)),)
    product = single_product if single and block.single is not None else curvature_product
    return state, (Sum(product(block, state.curved, state.kappa, v)),)


def curvature_product(
    block: Block, curved: FloatArray, kappa: FloatArray, coef: FloatArray
) -> FloatArray:
    """The samples' matrix times (B, λ), flat; ``curved`` is (p, D), (2, samples, labels)."""
    v = block.scores(coef[:-1].reshape(kappa.shape[1], -1))
    side = bend(curved, kappa, block.weights, float(coef[-1]), v)
    return np.append(block.adjoint(v).T, side)


def single_product(
    block: Block, curved: FloatArray, kappa: FloatArray, coef: FloatArray
) -> FloatArray:
    """That product with the rows in single precision: little more than half the time."""
    X = block.single
    assert X is not None
    # Steps are short in the end: with a largest entry of one, nothing underflows.
    size = max(float(np.abs(coef).max()), 1e-300)
    B = (coef[:-1] / size).reshape(kappa.shape[1], -1)
    v = (X @ np.float32(B[:, : X.shape[1]]).T).astype(np.float64)
    v += B[:, X.shape[1] :].sum(axis=1)  # the intercept
    side = bend(curved, kappa, block.weights, float(coef[-1]) / size, v)
    found = np.empty(B.shape)
    found[:, : X.shape[1]], found[:, X.shape[1] :] = np.float32(v).T @ X, v.sum(axis=0)[:, None]
    return size * np.append(found, side)


def point_of(
    block: Block, state: WideSamples, coef: FloatArray, dlam: float
) -> tuple[Balancing, tuple[()]]:
    """The dual point of a step: (log p, a, free columns), linear in the step but for its bounds."""
    p, a = _moved(state, forward(block, coef), dlam)
    p, a = np.maximum(p, 0.0), np.maximum(a, 0.0)
    a /= row_sums(a)[:, None]
    return (np.log(np.maximum(p, 1e-300)), a, state.free), ()


def _moved(state: WideSamples, ds: FloatArray, dlam: float) -> tuple[FloatArray, FloatArray]:
    """P and a after a step in scores and λ, both to first order."""
    p, D = state.curved
    moved = p + p * (ds - row_sums(p * ds)[:, None])
    dv = -ds - dlam * state.kappa
    a = state.a + state.towards + D * (dv - (row_sums(D * dv) / row_sums(D))[:, None])
    return moved, a


def sums_of_point(
    block: Block, state: tuple[Balancing, Fixed], rows: int
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    """A dual point (2, samples, classes) from log p and a: ``Σ w (p - a) xᵀ`` and ``Σ w κ·a``."""
    (logs, a, _), (_, kappa) = state
    p, _ = softmax(logs)
    w = block.weights
    G = backward(block, w[:, None] * (p - a), rows)
    return np.stack([p, a]), (Sum(G), Sum(float(w @ row_sums(kappa * a))))


def entropies(
    block: Block, state: tuple[tuple[FloatArray, FloatArray], Fixed], mixes: Any
) -> tuple[Any, tuple[Sum]]:
    """``Σ w H`` of mixtures (share of the second point, factor) of two dual points."""
    (old, new), (own, _) = state
    return state, (Sum(mixed_entropies(block.weights, old[0], new[0], own, mixes)),)


def mixture(
    block: Block, state: tuple[tuple[FloatArray, FloatArray], Fixed], share: float, factor: float
) -> tuple[FloatArray, tuple[()]]:
    """Such a mixture, as a point."""
    (old, new), (own, _) = state
    return _mixed(old, new, own, share, factor), ()


def _mixed(old: FloatArray, new: FloatArray, own: Codes, share: float, factor: float) -> FloatArray:
    """A mixture of two dual points, scaled towards the observed labels."""
    point = new if share == 1.0 else (1.0 - share) * old + share * new
    if factor == 1.0:
        return point
    point = factor * point
    point[:, np.arange(own.size), own] += 1.0 - factor
    return point


def _entropy(p: FloatArray) -> FloatArray:
    return -row_sums(p * np.log(np.where(p > 0.0, p, 1.0)))


def labels_only(
    block: Block, state: WideSamples, epsilon: float
) -> tuple[FloatArray, tuple[Sum, Sum]]:
    """The dual point with p = a: it moves nothing and spends ε on labels."""
    n, K = state.a.shape
    share = np.divide(epsilon, state.kappa, out=np.ones((n, K)), where=state.kappa > epsilon)
    a = np.where(state.reach, np.minimum(share, 1.0) / K, 0.0)
    a[np.arange(n), state.own] = 0.0
    a[np.arange(n), state.own] = 1.0 - row_sums(a)
    spent, entropy = block.weights @ row_sums(state.kappa * a), block.weights @ _entropy(a)
    return np.stack([a, a]), (Sum(float(spent)), Sum(float(entropy)))


def follow(
    block: Block, state: WideSamples, coef: FloatArray, dlam: float, mu: float
) -> tuple[WideSamples, tuple[Sum, Sum]]:
    """Changes along a step: costs of passing at LENGTHS; Σ w lse, its slope and curvature."""
    ds = forward(block, coef)
    w, p = block.weights, state.p
    da = np.where(state.reach, _moved(state, ds, dlam)[1] - state.a, 0.0)
    inside = np.where(state.reach, state.a, 1.0)
    dslack = np.where(state.reach, (mu - state.slack * da) / inside - state.slack, 0.0)
    booked = np.zeros(LENGTHS.size)
    for value, change in ((state.a, da), (state.slack, dslack)):
        book(booked, value, change, w[:, None] * state.a * state.slack)
    mean, loss = row_sums(p * ds), w @ softmax(state.scores)[1]
    bent = np.array([loss, w @ mean, w @ (row_sums(p * ds * ds) - mean**2)])
    return state._replace(step=np.stack([ds, da, dslack])), (Sum(booked), Sum(bent))


def book(booked: FloatArray, value: FloatArray, change: FloatArray, cost: FloatArray) -> None:
    """Add the costs of values whose boundary at zero a step passes, at the length where it does."""
    passed = change < -_SHORT_OF * value
    if passed.any():
        reached = _SHORT_OF * value[passed] / -change[passed]
        at = np.minimum(np.searchsorted(LENGTHS, reached), LENGTHS.size - 1)
        booked += np.bincount(at, cost[passed], minlength=LENGTHS.size)


def loss_at(block: Block, state: WideSamples, length: float) -> tuple[WideSamples, tuple[Sum]]:
    """Σ w lse after a step of this length."""
    _, lse = softmax(state.scores + length * state.step[0])
    return state, (Sum(float(block.weights @ lse)),)


def move(block: Block, state: WideSamples, length: float) -> tuple[WideSamples, tuple[()]]:
    """The samples after the step."""
    ds, da, dslack = state.step
    a = np.maximum(state.a + length * da, KEPT * state.a)
    a /= row_sums(a)[:, None]
    slack = np.maximum(state.slack + length * dslack, KEPT * state.slack)
    moved = state._replace(scores=state.scores + length * ds, a=a, slack=slack)
    return moved._replace(step=_EMPTY, towards=_EMPTY, curved=_EMPTY), ()


def rescored(block: Block, state: WideSamples, coef: FloatArray) -> tuple[WideSamples, tuple[()]]:
    """The samples with the scores of these coefficients."""
    return state._replace(scores=forward(block, coef)), ()


def fixed(block: Block, state: WideSamples) -> tuple[Fixed, tuple[()]]:
    """What does not change in a run."""
    return (state.own, state.kappa), ()


def to_balance(block: Block, state: WideSamples) -> tuple[Balancing, tuple[()]]:
    """The part of the samples' state that :func:`balance` needs."""
    return (state.scores, state.a, state.free), ()


def with_scores(
    block: Block, state: tuple[WideSamples, Balancing]
) -> tuple[WideSamples, tuple[()]]:
    """The samples with the scores of a balance."""
    samples, part = state
    return samples._replace(scores=part[0]), ()


def as_pair(block: Block, point: FloatArray) -> tuple[FloatArray, tuple[()]]:
    """S and a of a point of two classes."""
    return np.ascontiguousarray(point[:, :, 1]), ()
