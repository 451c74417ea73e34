"""The samples' half of the interior point with pieces: one block function for each pass.

Sample i has an epigraph variable ``top_i``, and each of its pieces a slack ``r = top_i - h(v) +
λd`` with v its margin and d its cost, and a multiplier q; the multipliers of a sample sum to its
weight. Wanted products q r are in proportion to the weight as well, so "μ" is per unit of mass.

A direction ``(dx, dλ)`` and *aims*, wanted changes of the products, determine the changes of
everything else: with the stiffness ``D = q/r`` and the slope's product ``∇f·dx = -s dv - d dλ``,

    dq = aim/r - D (dtop - ∇f·dx),      Σ_k dq = w - Σ_k q      gives dtop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...problem.domains import Domains, ItemTable
from ...problem.losses import log_loss, log_loss_terms
from ...problem.piece_gram import piece_gram
from ...problem.piece_weights import Weights
from ...problem.pieces import Pieces, find_pieces, unmoved, width
from ...problem.worst_moves import Weighed
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.reductions import Min, Sum
from ..interior_point.norm_cone import longest_step, outlier_correction


class Samples(NamedTuple):
    """A block at an iterate: scores and epigraph variables of samples, margins and q of pieces."""

    table: ItemTable
    scores: FloatArray
    top: FloatArray
    pieces: Pieces
    margin: FloatArray
    q: FloatArray
    #: Pieces found since, which are not yet among the others.
    waiting: tuple[Pieces, ...]


class Local(NamedTuple):
    """The samples with what every direction from there needs."""

    at: Samples
    slope: FloatArray  # s = -h'(v)
    value: FloatArray  # h(v) - λd
    slack: FloatArray
    stiffness: FloatArray
    total_stiffness: FloatArray  # per sample
    missing: FloatArray  # w - Σ q, per sample


class Direction(NamedTuple):
    """A direction of a block's samples, with the aims that it follows."""

    local: Local
    aim: FloatArray
    dscores: FloatArray
    dmargin: FloatArray
    push: FloatArray  # ∇f·dx
    dtop: FloatArray
    dslack: FloatArray
    dq: FloatArray


class PieceConditions(NamedTuple):
    """What the optimality conditions at a point ask of the samples, summed over them.

    The columns are ``Σ q ∇f`` and the response to aims ``-q r`` (all products to zero) and ``w``
    (one unit of centring); λ comes last in them.
    """

    gram: FloatArray
    gradient: FloatArray
    affine: FloatArray
    centring: FloatArray
    products: float
    mass: float  # of all pieces, which is what products are counted in
    n_pieces: int


class PiecePrediction(NamedTuple):
    """What follows from a predictor: how products change, and the second-order term's pull."""

    with_dual: float
    with_primal: float
    with_both: float
    pull: FloatArray


class Waiting(NamedTuple):
    """How many pieces wait, and how many there are already."""

    new: int
    present: int


class Attempted(NamedTuple):
    """The mean loss after a step, the part of it above ``top``, and how many pieces are missing."""

    loss: float
    over: float
    found: int


class Attempt(NamedTuple):
    """Where part of a direction leads, and the pieces that are missing there."""

    start: Samples
    there: Samples
    predicted: FloatArray  # slacks, to first order
    found: Pieces


def open_samples(
    block: Block,
    table: ItemTable,
    domains: Domains,
    x: FloatArray,
    lam: float,
    kappa: float,
    mu: float,
) -> tuple[Samples, tuple[()]]:
    """Samples with unmoved pieces on the central path: ``q r = μ w`` and ``Σ q = w``."""
    pieces = unmoved(block, kappa, width(domains, block.n_columns))
    scores = block.y * block.margins(x[: block.n_columns])
    margin = pieces.sign * pieces.scores(scores, x)
    value = log_loss(margin) - lam * pieces.cost
    top = _centred(pieces, value, mu, block.y.size)
    q = block.weights[pieces.own] * mu / (top[pieces.own] - value)
    return Samples(table, scores, top, pieces, margin, q, ()), ()


def _centred(pieces: Pieces, value: FloatArray, mu: float, n: int) -> FloatArray:
    """``top`` with ``Σ_k μ/(top - value_k) = 1``, by Newton's method from below."""
    highest = np.full(n, -np.inf)
    np.maximum.at(highest, pieces.own, value)
    highest[~np.isfinite(highest)] = 0.0  # samples without pieces
    below = highest[pieces.own] - value
    room = np.full(n, mu)
    for _ in range(60):
        inverse = mu / (room[pieces.own] + below)
        first, second = pieces.totals(inverse, n), pieces.totals(inverse**2, n) / mu
        # Of 1/Σ = 1, which is concave in top.
        step = np.where(first > 0.0, (first - 1.0) * first / np.maximum(second, 1e-300), 0.0)
        room += step
        if (np.abs(step) <= 1e-12 * room).all():
            break
    return np.asarray(highest + room)


def seek(
    block: Block,
    s: Samples,
    model: Weighed,
    lam: float,
    kappa: float,
    codes: NDArray[np.uint64],
    below: float,
    most: int,
) -> tuple[Samples, tuple[Sum[Waiting]]]:
    """Look for pieces within ``below`` of a sample's ``top`` that are not there yet."""
    _, found = find_pieces(
        s.scores, block.y, kappa, lam, s.table, model, s.pieces, codes,
        np.where(block.weights > 0.0, s.top - below, np.inf), most, block.n_columns,
    )  # fmt: skip
    waiting = _distinct((*s.waiting, found))
    count = sum(pieces.own.size for pieces in waiting)
    return s._replace(waiting=waiting), (Sum(Waiting(count, s.pieces.own.size)),)


def _distinct(waiting: tuple[Pieces, ...]) -> tuple[Pieces, ...]:
    """What waits as one list in which nothing is twice."""
    some = [pieces for pieces in waiting if pieces.own.size]
    if not some:
        return ()
    joined = some[0]
    for pieces in some[1:]:
        joined, _ = joined.joined(pieces, 0)
    if len(some) > 1:
        order = np.lexsort((joined.key, joined.own))
        own, key = joined.own[order], joined.key[order]
        first = np.append(True, (own[1:] != own[:-1]) | (key[1:] != key[:-1]))
        joined = joined.picked(np.sort(order[first]))
    return (joined,)


def admit(
    block: Block, s: Samples, x: FloatArray, lam: float, mu: float, lift: float
) -> tuple[Samples, tuple[()]]:
    """Take in the pieces that wait.

    ``top`` is lifted until a new slack is at least ``lift μ``; a new multiplier is μ w over its
    slack, half of the weight at most, and those of its sample are scaled to the weight again.
    """
    if not s.waiting:
        return s, ()
    (new,) = s.waiting
    n, w = block.y.size, block.weights
    margin = new.sign * new.scores(s.scores, x)
    value = log_loss(margin) - lam * new.cost
    top = s.top.copy()
    np.maximum.at(top, new.own, value + lift * mu)
    share = np.minimum(mu / (top[new.own] - value), 0.5)
    pieces, order = s.pieces.joined(new, n)
    q = np.concatenate([s.q, w[new.own] * share])[order]
    changed = np.zeros(n, dtype=bool)
    changed[new.own] = True
    scale = np.ones(n)
    scale[changed] = w[changed] / pieces.totals(q, n)[changed]
    return Samples(
        s.table, s.scores, top, pieces, np.concatenate([s.margin, margin])[order],
        q * scale[pieces.own], (),
    ), ()  # fmt: skip


def linearise(block: Block, s: Samples, lam: float) -> tuple[Local, tuple[Sum[PieceConditions]]]:
    """The optimality conditions at the present point."""
    n, w = block.y.size, block.weights
    pieces = s.pieces
    loss = log_loss_terms(s.margin)
    value = loss.value - lam * pieces.cost
    slack = s.top[pieces.own] - value
    stiffness = s.q / slack
    total = pieces.totals(stiffness, n)
    total[total == 0.0] = 1.0
    missing = w - pieces.totals(s.q, n)
    missing[w == 0.0] = 0.0
    local = Local(s, loss.slope, value, slack, stiffness, total, missing)
    gram = piece_gram(block, pieces, -loss.slope * pieces.sign, s.q * loss.curvature, stiffness)
    conditions = PieceConditions(
        gram,
        gradient(block, local, s.q),
        affine=gradient(block, local, response(local, -s.q * slack, missing)),
        centring=gradient(block, local, response(local, w[pieces.own], None)),
        products=float(s.q @ slack),
        mass=float(w[pieces.own].sum()),
        n_pieces=pieces.own.size,
    )
    return local, (Sum(conditions),)


def gradient(block: Block, local: Local, values: FloatArray) -> FloatArray:
    """``Σ values ∇f``, λ last."""
    pieces = local.at.pieces
    along = pieces.adjoint(block, -values * local.slope * pieces.sign)
    return np.append(along, -float(values @ pieces.cost))


def response(local: Local, aim: FloatArray, missing: FloatArray | None) -> FloatArray:
    """The change of q that aims ask for while nothing else moves."""
    pieces = local.at.pieces
    wanted = aim / local.slack
    total = pieces.totals(wanted, local.total_stiffness.size)
    base = (total if missing is None else total - missing) / local.total_stiffness
    return np.asarray(wanted - local.stiffness * base[pieces.own])


def follow(block: Block, local: Local, aim: FloatArray, dx: FloatArray, dlam: float) -> Direction:
    """Everything that goes with ``(dx, dλ)`` and the aims."""
    pieces = local.at.pieces
    dscores = block.y * block.margins(dx[: block.n_columns])
    dmargin = pieces.sign * pieces.scores(dscores, dx)
    push = -local.slope * dmargin - dlam * pieces.cost
    wanted = aim / local.slack
    total = pieces.totals(wanted + local.stiffness * push, local.total_stiffness.size)
    dtop = (total - local.missing) / local.total_stiffness
    dslack = dtop[pieces.own] - push
    dq = wanted - local.stiffness * dslack
    return Direction(local, aim, dscores, dmargin, push, dtop, dslack, dq)


def _longest(d: Direction) -> tuple[Min[float], Min[float]]:
    return Min(longest_step(d.local.slack, d.dslack)), Min(longest_step(d.local.at.q, d.dq))


def predict(
    block: Block, local: Local, dx: FloatArray, dlam: float
) -> tuple[Direction, tuple[Min[float], Min[float], Sum[PiecePrediction]]]:
    """Predictor: all products to zero; the pull of its second-order terms."""
    aim = -local.at.q * local.slack
    d = follow(block, local, aim, dx, dlam)
    second = d.dq * d.dslack
    pull = gradient(block, local, response(local, -second, None))
    predicted = PiecePrediction(
        float(d.dq @ local.slack), float(local.at.q @ d.dslack), float(second.sum()), pull
    )
    return d, (*_longest(d), Sum(predicted))


def correct(
    block: Block, d: Direction, dx: FloatArray, dlam: float, centre: float, share: float
) -> tuple[Direction, tuple[Min[float], Min[float]]]:
    """Direction towards ``centre``, with a share of the predictor's second-order terms."""
    local = d.local
    target = centre * block.weights[local.at.pieces.own]
    aim = target - local.at.q * local.slack - share * d.dq * d.dslack
    new = follow(block, local, aim, dx, dlam)
    return new, _longest(new)


def pull_back(
    block: Block, d: Direction, primal: float, dual: float, centre: float
) -> tuple[Direction, tuple[Sum[FloatArray]]]:
    """Aims that bring the outliers of a trial step back, and their pull on the gradient."""
    local = d.local
    target = centre * block.weights[local.at.pieces.own]
    products = (local.at.q + dual * d.dq) * (local.slack + primal * d.dslack)
    back = outlier_correction(products, target)
    pull = gradient(block, local, response(local, back, None))
    return d._replace(aim=d.aim + back), (Sum(pull),)


def follow_aims(
    block: Block, d: Direction, dx: FloatArray, dlam: float
) -> tuple[Direction, tuple[Min[float], Min[float]]]:
    """The direction that goes with the aims kept in ``d``."""
    new = follow(block, d.local, d.aim, dx, dlam)
    return new, _longest(new)


def attempt(
    block: Block,
    d: Direction,
    primal: float,
    dual: float,
    lam: float,
    model: Weighed,
    kappa: float,
    codes: NDArray[np.uint64],
    most: int,
) -> tuple[Attempt, tuple[Sum[Attempted]]]:
    """Part of a direction; what the objective is there and what is missing.

    Curvature is made up for at once: ``top`` rises by the mean error of the linearised losses.
    """
    local, s = d.local, d.local.at
    n, w, pieces = block.y.size, block.weights, s.pieces
    q = s.q + dual * d.dq
    margin = s.margin + primal * d.dmargin
    value = log_loss(margin) - lam * pieces.cost
    error = q * (value - local.value - primal * d.push)
    mass = pieces.totals(q, n)
    top = s.top + primal * d.dtop + pieces.totals(error, n) / np.where(mass > 0.0, mass, 1.0)
    scores = s.scores + primal * d.dscores
    limit = np.where(w > 0.0, top, np.inf)
    worst, found = find_pieces(
        scores, block.y, kappa, lam, s.table, model, pieces, codes, limit, most, block.n_columns
    )
    over = float(w @ np.maximum(worst - top, 0.0))
    there = Samples(s.table, scores, top, pieces, margin, q, ())
    predicted = local.slack + primal * d.dslack
    seen = Attempted(float(w @ worst), over, found.own.size)
    return Attempt(s, there, predicted, found), (Sum(seen),)


def stay(block: Block, t: Attempt) -> tuple[Samples, tuple[()]]:
    """Back to where the attempt began, with the pieces it found waiting."""
    return t.start._replace(waiting=(*t.start.waiting, t.found)), ()


def settle(block: Block, t: Attempt, lam: float, mu: float) -> tuple[Samples, tuple[()]]:
    """Accept the attempt; where a slack has all but vanished, ``top`` is lifted."""
    s = t.there
    slack = s.top[s.pieces.own] - (log_loss(s.margin) - lam * s.pieces.cost)
    floor = 0.05 * np.minimum(mu, np.maximum(t.predicted, 0.0))
    low = slack < floor
    top = s.top
    if low.any():
        lift = np.zeros_like(top)
        np.maximum.at(lift, s.pieces.own[low], (0.3 * mu - slack)[low])
        top = top + lift
    return s._replace(top=top), ()


class Restored(NamedTuple):
    """A dual point on its way to meeting its equations: ``p = q s``, changed linearly with q."""

    local: Local
    q: FloatArray
    p: FloatArray


def weights_of(block: Block, local: Local) -> tuple[Restored, tuple[()]]:
    """The multipliers of the iterate."""
    return Restored(local, local.at.q, local.at.q * local.slope), ()


def restored_sums(block: Block, r: Restored) -> tuple[Restored, tuple[Sum[FloatArray]]]:
    """What pieces contribute to the equations, masses that do not add up included; λ last."""
    pieces, n = r.local.at.pieces, block.y.size
    missing = block.weights - pieces.totals(r.q, n)
    share = r.local.stiffness * (missing / r.local.total_stiffness)[pieces.own]
    along = pieces.adjoint(block, -(r.p + share * r.local.slope) * pieces.sign)
    return r, (Sum(np.append(along, -float((r.q + share) @ pieces.cost))),)


def restore(block: Block, r: Restored, dx: FloatArray, dlam: float) -> tuple[Restored, tuple[()]]:
    """Follow ``(dx, dλ)`` with all products held: linear in ``(q, p)``, as the equations are."""
    local, pieces = r.local, r.local.at.pieces
    missing = block.weights - pieces.totals(r.q, block.y.size)
    missing[block.weights == 0.0] = 0.0
    d = follow(block, local._replace(missing=missing), np.zeros_like(r.q), dx, dlam)
    s = local.slope
    q = np.maximum(r.q + d.dq, 0.0)
    p = r.p + s * d.dq - local.at.q * s * (1.0 - s) * d.dmargin
    return Restored(local, q, np.clip(p, 0.0, q)), ()


def bare(block: Block, r: Restored) -> tuple[Weights, tuple[()]]:
    """The dual point alone."""
    return Weights(r.local.at.pieces, r.q, r.p), ()
