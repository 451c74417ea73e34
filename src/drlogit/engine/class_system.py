"""The Newton system of several classes: conjugate gradients on it, and what makes these short.

The matrix is that of the samples, ``Σ w L_i ⊗ x_i x_iᵀ`` with a Laplacian L_i between the classes
of each sample, and that of the cone.  A product with it takes two passes over the rows; forming it
takes a weighted Gram matrix for every pair of classes.  So it is formed of some rows only, drawn
with probabilities π in proportion to what they weigh in it, and of weight 1/π: with r rows for each
column the eigenvalues of one matrix with respect to the other are about ``(1 ± √(1/r))²``.  That is
the preconditioner, exact where there are few rows or small matrices.

Shifts of all classes together change nothing but the distances to the bounds of ``RangeCone``,
whose stiffness falls with μ: they are eliminated, and the last class stands still.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..dual.classes import pairs
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.matrix import held
from ..rows.reductions import Sum
from ..starts.sample import places
from ._classes import curvature_gram, curvature_product
from ._cones import Cone, PairwiseCones
from .settings import SETTINGS
from .wide import conjugate_gradients

#: Coefficients of all classes but one up to which a matrix is formed: 512 MB then, enough for ten
#: classes of 28 × 28 pixels.  Diagonal blocks of it, one for each class, take hundreds of products
#: for a step where labels can change: a sample on a kink holds a difference between two classes,
#: and blocks hold both of them ((1500, 150, 5): 11,615 products in all, 1,220 without such labels,
#: against 9).
MOST_COEFFICIENTS = 8000

_SHIFTS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)

#: (p, D) of a block's samples, and what each label costs them.
Curved: TypeAlias = tuple[FloatArray, FloatArray]


class RangeStiffness:
    """The cone under ℓ1 transport: ``low x² + up (λ - x)²``, least over shifts of a feature.

    Each feature is to the classes what a sample is: pushes that total zero.
    """

    def __init__(self, low: FloatArray, up: FloatArray) -> None:
        self.low, self.up = low, up
        self.lows, self.ups = low.sum(axis=0), up.sum(axis=0)
        total = self.lows + self.ups
        self.inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0)

    def reduced(self, right: FloatArray) -> tuple[FloatArray, float]:
        """A right-hand side without shifts, and what that adds to λ's."""
        total = right.sum(axis=0) * self.inverse
        return right - (self.low + self.up) * total, float(self.ups @ total)

    def shifted(self, x: FloatArray, lam: float, right: FloatArray | float = 0.0) -> FloatArray:
        """With the best shift of each feature."""
        pull = (self.low * x + self.up * (x - lam)).sum(axis=0)
        return np.asarray(x + (right - pull) * self.inverse)

    def product(self, x: FloatArray, lam: float) -> tuple[FloatArray, float]:
        """What coefficients and λ are pushed by."""
        x = self.shifted(x, lam)
        up = self.up * (x - lam)
        return self.low * x + up, -float(up.sum())

    def add(self, blocks: FloatArray) -> None:
        """To the matrix of all classes but the last, (class, column, class, column)."""
        both, own = self.low + self.up, np.arange(len(self.low) - 1)
        between = both[:-1, None] * (both * self.inverse)
        between[own, own] = 0.0
        inside = np.einsum("kfjf->kjf", blocks)
        inside -= between[:, :-1]
        inside[own, own] += between.sum(axis=1)

    def column(self) -> tuple[FloatArray, float]:
        """λ's."""
        found = (self.low * self.ups - self.up * self.lows) * self.inverse
        return found, float((self.lows * self.ups) @ self.inverse)


class PairStiffness:
    """A cone for each pair of classes: diag(own) + v vᵀ for (difference, λ)."""

    def __init__(self, stiffness: FloatArray, where: IndexArray, shape: tuple[int, int]) -> None:
        self.own, self.v = stiffness
        self.where, self.pairs, self.shape = where, pairs(shape[0]), shape

    def _spread(self, push: FloatArray) -> tuple[FloatArray, float]:
        found, (one, other) = np.zeros(self.shape), self.pairs
        inside = np.zeros((self.shape[0], self.where.size))
        np.add.at(inside, one, push[:, :-1])
        np.subtract.at(inside, other, push[:, :-1])
        found[:, self.where] = inside
        return found, float(push[:, -1].sum())

    def reduced(self, right: FloatArray) -> tuple[FloatArray, float]:
        """Nobody minds shifts."""
        return right, 0.0

    def shifted(self, x: FloatArray, lam: float, right: FloatArray) -> FloatArray:
        """Nobody minds shifts."""
        return x

    def product(self, x: FloatArray, lam: float) -> tuple[FloatArray, float]:
        """What coefficients and λ are pushed by."""
        (one, other), moves = self.pairs, x[:, self.where]
        step = np.column_stack([moves[one] - moves[other], np.full(one.size, lam)])
        return self._spread(self.own * step + (self.v * step).sum(axis=1, keepdims=True) * self.v)

    def add(self, blocks: FloatArray) -> None:
        """To the matrix of all classes but the last, (class, column, class, column)."""
        for j, k, own, v in zip(*self.pairs, self.own[:, :-1], self.v[:, :-1], strict=True):
            stiff = np.diag(own) + np.outer(v, v)
            inside = [int(i) for i in (j, k) if i < len(blocks)]
            for one in inside:
                for other in inside:
                    at = np.ix_(np.array([one]), self.where, np.array([other]), self.where)
                    blocks[at] += (stiff if one == other else -stiff)[None, :, None, :]

    def column(self) -> tuple[FloatArray, float]:
        """λ's."""
        found, corner = self._spread(self.v[:, -1:] * self.v)
        return found, corner + float(self.own[:, -1].sum())


class ClassSystem:
    """The system behind products, as :class:`~drlogit.engine.wide.WideSystem` is of two classes.

    ``rtol`` is how exactly it is solved, in the norm of the preconditioner.
    """

    rtol = 1e-8

    def __init__(
        self, rows: Rows, scale: FloatArray, n_classes: int, cone: Cone, kept: IndexArray
    ) -> None:
        width = rows.n_columns
        if (n_classes - 1) * width > MOST_COEFFICIENTS:
            raise ValueError(
                f"several classes in one problem take up to {MOST_COEFFICIENTS} coefficients for "
                f"all of them but one, got {(n_classes - 1) * width}: select features, or fit one "
                "class against the rest with scikit-learn's OneVsRestClassifier("
                "DRLogisticRegression())"
            )
        self.kept = kept  # the columns in the norm
        self.rows, self.cone, self.shape, self.products = rows, cone, (n_classes, width), 0
        self.matrix = np.empty(2 * [(n_classes - 1) * width + 1])  # new memory costs as a copy does
        self.scale, self.unit = scale[:width], float(scale[-1])
        # As many rows as there are coefficients may be on kinks of the loss: none is to be missed.
        self.wanted = float((SETTINGS.class_rows + n_classes) * width)
        few = rows.n_samples <= 2.0 * self.wanted
        self.every = few or (n_classes - 1) * width <= SETTINGS.class_direct

    def build(
        self,
        curved: State,
        data: FloatArray,
        column: FloatArray,
        coupling: FloatArray,
        own: FloatArray,
        rank_one: FloatArray,
        pinned: bool,
    ) -> bool:
        """Set up from (p, D) of the samples and what Newton's ``build`` knows of the rest."""
        self.curved, self.pinned = curved, pinned
        self.stiffness: RangeStiffness | PairStiffness
        if isinstance(self.cone, PairwiseCones):
            self.stiffness = PairStiffness(self.cone.stiffness(), self.kept, self.shape)
        else:
            low, up = np.zeros((2, *self.shape))
            if self.kept.size:
                up[:, self.kept], low[:, self.kept] = self.cone.stiffness().reshape(
                    2, self.shape[0], -1
                )
            self.stiffness = RangeStiffness(low, up)
        pushed, corner = self.stiffness.column()
        self.rest = 0.0 if corner > 0.0 else float(coupling[-1])  # of λ ≥ 0 alone
        traces = self.rows.run(_traces, curved)[0]
        rate = 0.0 if self.every else self._rate(traces)
        state = self.rows.pair(self.rows.pair(curved, traces), self.rows.offsets)
        _, (gram, drawn) = self.rows.run(_gram, state, rate, self.shape[0] - 1)
        if rate:
            column = np.append(np.tile(self.scale, self.shape[0]), self.unit) * self.unit * drawn
        border = (column[:-1].reshape(self.shape) + pushed)[:-1]
        border = np.append(border.ravel(), column[-1] + corner + self.rest)
        border *= not self.pinned
        blocks = gram.reshape(self.shape[0] - 1, self.shape[1], self.shape[0] - 1, self.shape[1])
        blocks *= self.scale
        blocks *= self.scale[:, None, None]
        self.stiffness.add(blocks)
        matrix = self.matrix
        matrix[:-1, :-1], matrix[:-1, -1], matrix[-1] = gram, border[:-1], border
        return self._factorise(matrix)

    def _factorise(self, matrix: FloatArray) -> bool:
        """At unit diagonal, with the smallest shift that lets a factor exist."""
        diagonal = np.diagonal(matrix)
        self.diagonal = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        matrix *= self.diagonal
        matrix *= self.diagonal[:, None]
        for shift in _SHIFTS:
            np.fill_diagonal(matrix, 1.0 + shift)
            self.factor, failed = dpotrf(matrix.T, lower=1, clean=0)
            if not failed:
                return True
        return False

    def _rate(self, traces: State) -> float:
        """The factor of traces at which as many rows as wanted are drawn: Σ min(1, rate t)."""
        rate, known = 0.0, -1.0
        while True:
            _, (certain, others) = self.rows.run(_drawn, traces, rate)
            if not known < certain < self.wanted or not others > 0.0:
                return rate
            rate, known = (self.wanted - float(certain)) / float(others), float(certain)

    def solve(self, rhs: FloatArray) -> FloatArray:
        """(dx, dλ) for a right-hand side."""
        given = rhs[:-1].reshape(self.shape)
        right, more = self.stiffness.reduced(given)
        lam = 0.0 if self.pinned else rhs[-1] + more
        right = np.append(right[:-1].ravel(), lam)
        if self.rtol >= 1.0:
            found = self._precondition(right)
        else:
            found = conjugate_gradients(
                self._product, self._precondition, right, rtol=self.rtol,
                max_steps=SETTINGS.class_steps,
            )  # fmt: skip
        x = self._with_last(found[:-1])
        return np.append(self.stiffness.shifted(x, found[-1], given.sum(axis=0)).ravel(), found[-1])

    def _with_last(self, x: FloatArray) -> FloatArray:
        return np.vstack([x.reshape(-1, self.shape[1]), np.zeros(self.shape[1])])

    def _precondition(self, r: FloatArray) -> FloatArray:
        return np.asarray(self.diagonal * dpotrs(self.factor, self.diagonal * r, lower=1)[0])

    def _product(self, v: FloatArray) -> FloatArray:
        """Sample by sample and slack by slack: what is stiff is a small difference, made first."""
        self.products += 1
        x, lam = self._with_last(v[:-1]), float(v[-1])
        coef = np.append((self.scale * x).ravel(), self.unit * lam)
        _, (data,) = self.rows.run(_weighted_product, self.curved, coef)
        pushed, side = self.stiffness.product(x, lam)
        image = self.scale * data[:-1].reshape(self.shape) + pushed
        corner = lam if self.pinned else self.unit * data[-1] + side + self.rest * lam
        return np.append(image[:-1].ravel(), corner)


def hessian(rows: Rows, curved: State, n_classes: int) -> FloatArray:
    """The samples' matrix, of all rows and classes."""
    state = rows.pair(rows.pair(curved, curved), rows.offsets)
    return np.asarray(rows.run(_gram, state, 0.0, n_classes)[1][0])


def _traces(block: Block, curved: Curved) -> tuple[FloatArray, tuple[()]]:
    """The traces of the samples' Laplacians, by weight."""
    p, D = curved[0]
    one, total = np.ones(p.shape[1]), D @ np.ones(D.shape[1])
    inverse = np.divide((D * D) @ one, total, out=np.zeros_like(total), where=total > 0.0)
    return block.weights * (p @ one - (p * p) @ one + total - inverse), ()


def _drawn(block: Block, traces: FloatArray, rate: float) -> tuple[FloatArray, tuple[Sum, Sum]]:
    """How many rows are certainly drawn at a rate, and the traces of the others."""
    certain = rate * traces >= 1.0
    return traces, (Sum(float(certain.sum())), Sum(float(traces[~certain].sum())))


def _gram(
    block: Block, state: tuple[tuple[Curved, FloatArray], int], rate: float, n_classes: int
) -> tuple[None, tuple[Sum, Sum]]:
    """The matrix of so many classes and λ's column, of rows drawn at a rate; or of all (rate 0)."""
    ((curved, costs), traces), offset = state
    if rate == 0.0:
        return None, (Sum(curvature_gram(block.compiled, curved, n_classes)), Sum(0.0))
    chance = np.minimum(rate * traces, 1.0)
    drawn = np.flatnonzero(places(offset + np.arange(chance.size)) < chance)
    X, weights = held(block.X[drawn]), block.weights[drawn] / chance[drawn]
    some = Block(X, block.y[drawn], weights, block.intercept)
    curved, prices = np.ascontiguousarray(curved[:, drawn]), costs[drawn]
    D, prices = curved[1], np.where(np.isfinite(prices), prices, 0.0)
    mean = (D * prices).sum(axis=1) / np.maximum(D.sum(axis=1), 1e-300)
    column = weights[:, None] * D * (prices - mean[:, None])
    coupling = np.append(some.adjoint(column).T.ravel(), (prices * column).sum())
    return None, (Sum(curvature_gram(some.compiled, curved, n_classes)), Sum(coupling))


def _weighted_product(block: Block, curved: Curved, v: FloatArray) -> tuple[Curved, tuple[Sum]]:
    return curved, (Sum(curvature_product(block.compiled, *curved, v)),)
