"""The samples' half of the method: one block function for each pass over the data.

Each sample has a margin u, the slope s and the curvature of its log-loss at the point of
linearisation, and its distance ``v = u - κλ`` from the kink.  Samples whose distance is within a
``width`` form the *band*; those above and outside of it are flipped for certain, those below not
at all.  (Widths in proportion to the length of the sample leave no fewer in it.)  Widths are read
off histograms with geometric bins, so that one visit answers for all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...problem.losses import entropy, flip_gain, log_loss, log_loss_terms
from ...rows.arrays import BoolArray, FloatArray, IndexArray, Matrix
from ...rows.blocks import Block
from ...rows.reductions import Stack, Sum

#: Edges of the bins for distances, eight to an octave: where the first bits of a double change.
_SHIFT = 49
_FIRST = int(np.float64(2.0**-27).view(np.int64)) >> _SHIFT
EDGES = ((_FIRST + np.arange(54 * 8 + 1)) << _SHIFT).view(np.float64)


class Near(NamedTuple):
    """Per-sample state: margin, slope and curvature of the loss, the band, and a step."""

    u: FloatArray
    s: FloatArray
    curvature: FloatArray
    inside: BoolArray
    du: FloatArray
    a: FloatArray
    doubt: FloatArray


class Distances(NamedTuple):
    """Histograms of the distances from the kink; none where there is no kink."""

    samples: IndexArray
    entries: IndexArray
    weight: FloatArray
    above: FloatArray  # weight above the kink


class Followed(NamedTuple):
    """What the driver learns of a step."""

    crossed: float  # weight of those outside of the band that cross the kink, times how far they go
    changes: IndexArray  # histogram of the changes of v
    loss: float  # after the whole step
    cut: int  # doubts that had to be cut to [0, 1]
    value: float  # Σ w H(s) of the doubts s times a factor


def linearise(
    block: Block, _: None, coefficients: FloatArray, kink: float, rough: bool
) -> tuple[Near, tuple[Sum, Sum, Sum, Sum[Distances]]]:
    """Margins and slopes as state; Gram matrix, gradient with flips above the kink, and loss.

    Last come the distances from the kink.
    """
    w = block.weights
    u = block.margins(coefficients)
    loss = log_loss_terms(u)
    r = w * ((u > kink) - loss.slope)
    gram, adjoint = block.gram_and_adjoint(w * loss.curvature, r[:, None], rough=rough)
    inside, none = np.zeros(u.size, dtype=bool), np.zeros(0)
    near = Near(u, loss.slope, loss.curvature, inside, none, none, none)
    value = _robust_loss(w, loss.value, u, kink)
    away = _distances(block, near, kink, 0.0)
    return near, (Sum(gram), Sum(adjoint[:, 0]), Sum(value), Sum(away))


def advance(block: Block, k: Near, length: float, kink: float) -> tuple[Near, tuple[Sum, Sum]]:
    """The samples after part of the step; the curvature stays that of the Gram matrix."""
    u = k.u + length * k.du
    loss = log_loss_terms(u)
    r = block.weights * ((u > kink) - loss.slope)
    moved = k._replace(u=u, s=loss.slope)
    value = _robust_loss(block.weights, loss.value, u, kink)
    return moved, (Sum(block.adjoint(r)), Sum(value))


def distances(
    block: Block, k: Near, kink: float, dkink: float
) -> tuple[Near, tuple[Sum[Distances]]]:
    """The distances from the kink after the step in the state, if there is one."""
    return k, (Sum(_distances(block, k, kink, dkink)),)


def _distances(block: Block, k: Near, kink: float, dkink: float) -> Distances:
    if kink == np.inf:
        none = np.zeros(0)
        return Distances(none.astype(np.intp), none.astype(np.intp), none, none)
    place = _places(k, kink, dkink)
    w, size = block.weights, EDGES.size + 1
    counts = np.bincount(place, minlength=size)
    entries = block.X.shape[1] * counts
    if sp.issparse(block.X):
        entries = np.bincount(place, np.diff(block.X.indptr), minlength=size)
    weight = np.bincount(place, w, minlength=size)
    above = np.bincount(place, w * (k.u > kink), minlength=size)
    return Distances(counts, entries, np.asarray(weight), np.asarray(above))


def choose(block: Block, k: Near, kink: float, dkink: float, last: int) -> tuple[Near, tuple[()]]:
    """The samples up to a bin of the histogram as the band."""
    return k._replace(inside=_places(k, kink, dkink) <= last), ()


def _places(k: Near, kink: float, dkink: float) -> IndexArray:
    """The bin of each sample: that of its distance after the step, the first if it crosses."""
    v = k.u - kink
    if not k.du.size:
        return _bins(np.abs(v))
    after = v + k.du - dkink
    return _bins(np.where((after > 0.0) == (v > 0.0), np.abs(after), 0.0))


def widen(block: Block, k: Near, kink: float, dkink: float) -> tuple[Near, tuple[Sum]]:
    """The band with those that the step takes across the kink, or close to it."""
    v = k.u - kink
    dv = k.du - dkink
    crossed = (v + dv > 0.0) != (v > 0.0)
    inside = k.inside | crossed | (np.abs(v + dv) <= 0.5 * np.abs(dv))
    return k._replace(inside=inside), (Sum(_entries(block.X, inside)),)


def gather(block: Block, pair: tuple[Near, int], stride: int) -> tuple[None, tuple[Stack, ...]]:
    """The samples of the band, or every ``stride``-th: numbers, margins, labels, weights, rows."""
    k, offset = pair
    index = np.flatnonzero(k.inside)[::stride]
    X = block.X[index]
    numbers = Stack(offset + index), Stack(k.u[index]), Stack(block.y[index])
    weights = Stack(block.weights[index])
    if sp.issparse(X):
        entries = Stack(X.data), Stack(X.indices), Stack(np.diff(X.indptr))
        return None, (*numbers, weights, *entries)
    return None, (*numbers, weights, Stack(X))


def gathered_matrix(parts: tuple[Any, ...], n_features: int) -> Matrix:
    """The rows of :func:`gather` as one matrix."""
    if len(parts) == 1:
        return parts[0]
    data, indices, counts = parts
    # Integers of one size, as in the blocks: the compiled loop is compiled anew for others.
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
    matrix = sp.csr_array((data, indices, ends), shape=(counts.size, n_features))
    matrix.has_canonical_format = True  # as the blocks' own rows
    return matrix


def follow(
    block: Block,
    pair: tuple[Near, int],
    step: FloatArray,
    kink: float,
    dkink: float,
    numbers: IndexArray,
    shares: FloatArray,
    shift: float,
    factor: float,
) -> tuple[Near, tuple[Sum[Followed]]]:
    """The step's margins, flip shares and doubts as state.

    The doubts are ``s`` after the whole step, linearised as the Gram matrix has it, with the
    intercept going on by ``shift``.
    """
    k, offset = pair
    w = block.weights
    du = block.margins(step)
    v = k.u - kink
    dv = du - dkink
    above = v > 0.0
    a = above.astype(np.float64)
    first, last = np.searchsorted(numbers, [offset, offset + w.size])
    a[numbers[first:last] - offset] = shares[first:last]
    crossed = ~k.inside & ((v + dv > 0.0) != above)
    changes = np.bincount(_bins(np.abs(dv)), minlength=EDGES.size + 1)
    u = k.u + du
    s = k.s - k.curvature * (du + shift * block.y if shift else du)
    doubt = np.clip(s, 0.0, 1.0)
    followed = Followed(
        crossed=float(w[crossed] @ np.abs(v + dv)[crossed]),
        changes=changes,
        loss=_robust_loss(w, log_loss(u), u, kink + dkink),
        cut=int(np.count_nonzero(doubt != s)),
        value=float(w @ entropy(factor * doubt)),
    )
    return k._replace(du=du, a=a, doubt=doubt), (Sum(followed),)


def loss_after(block: Block, k: Near, length: float, kink: float) -> tuple[Near, tuple[Sum]]:
    """The loss after part of the step, with the kink there."""
    u = k.u + length * k.du
    return k, (Sum(_robust_loss(block.weights, log_loss(u), u, kink)),)


def flips(block: Block, k: Near) -> tuple[FloatArray, tuple[()]]:
    """``a`` of all samples after the whole step."""
    return k.a, ()


def doubts(block: Block, k: Near) -> tuple[FloatArray, tuple[()]]:
    """``s`` of all samples after the whole step."""
    return k.doubt, ()


def _robust_loss(w: FloatArray, loss: FloatArray, u: FloatArray, kink: float) -> float:
    return float(w @ loss) + float(w @ flip_gain(u, kink))


def _bins(q: FloatArray) -> IndexArray:
    """Number of the bin of each distance: bin k ends before ``EDGES[k]``, the last has no end."""
    return np.asarray(np.clip((q.view(np.int64) >> _SHIFT) - (_FIRST - 1), 0, EDGES.size))


def _entries(X: Matrix, inside: BoolArray) -> int:
    """Stored entries of some rows."""
    if sp.issparse(X):
        return int(np.diff(X.indptr)[inside].sum())
    return int(inside.sum()) * int(X.shape[1])
