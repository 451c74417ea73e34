"""The Newton system of several classes, solved by preconditioned conjugate gradients.

The matrix is ``Σ w L_i ⊗ x_i x_iᵀ``, with a Laplacian L_i between the classes of each sample, plus
a matrix of the cones with the same structure: one block for every pair of classes.  The last class
is fixed at zero.  A product takes two passes over the rows; forming the matrix takes a
weighted Gram matrix for every pair.

The preconditioner is the same matrix, formed from a sample of the rows.  Rows are drawn with
probabilities π in proportion to their traces, and get the weight 1/π.  With r rows for each column,
the eigenvalues of the preconditioned matrix are about ``(1 ± √(1/r))²``.  If there are few rows, or
if the matrix is small, all rows are used.  If it would be too large, its diagonal is used.

Derivation: docs/algorithm.md, (18).
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import numpy as np

from ..dual.classes import pairs
from ..dual.shifted_cholesky import ShiftedCholesky
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.matrix import held
from ..rows.reductions import Sum
from ..starts.sample import places
from ._classes import curvature_gram, curvature_product
from ._cones import Cone, PairwiseCones
from .conjugate_gradients import conjugate_gradients
from .settings import SETTINGS

#: Coefficients of all classes but one up to which a matrix is formed, of 512 MB then, and the steps
#: of conjugate gradients at most without one.
MOST_COEFFICIENTS, _MOST_STEPS = 8000, 300

#: (p, D) of a block's samples, and what each label costs them.
Curved: TypeAlias = tuple[FloatArray, FloatArray]


class ClassSystem:
    """The system of several classes: conjugate gradients, and a preconditioner for them."""

    work = 0.0

    def __init__(
        self,
        rows: Rows,
        scale: FloatArray,
        unit: float,
        n_classes: int,
        cone: Cone,
        kept: IndexArray,
    ) -> None:
        width = rows.n_columns
        size = (n_classes - 1) * width
        self.diagonal = size > MOST_COEFFICIENTS
        self.kept = kept  # the columns in the norm
        self.rows, self.cone, self.shape, self.products = rows, cone, (n_classes, width), 0
        # Kept from step to step: new memory costs as much as a copy.
        self.matrix = np.zeros((0, 0) if self.diagonal else (size + 1, size + 1))
        self.scale, self.unit = scale, unit  # of a class, and of λ
        one, other = pairs(n_classes)
        self.differences = np.eye(n_classes)[one] - np.eye(n_classes)[other]
        # As many rows as there are coefficients may be on kinks of the loss: none is to be missed.
        self.wanted = float((SETTINGS.class_rows + n_classes) * width)
        few = rows.n_samples <= 2.0 * self.wanted
        self.every = few or size <= SETTINGS.class_direct

    def build(self, curved: State, cone: FloatArray, pinned: bool) -> bool:
        """Set up from (p, D) of the samples and λ's column of the cones."""
        self.curved, self.coupling, self.pinned = curved, cone[2], pinned
        self.own, self.v = np.zeros((2, len(self.differences), 0))
        if isinstance(self.cone, PairwiseCones):
            self.own, self.v = self.cone.stiffness()
        if self.diagonal:
            return self._build_diagonal()
        rate = 0.0 if self.every else self._rate()
        state = self.rows.pair(curved, self.rows.offsets)
        _, (grams, column) = self.rows.run(_gram, state, rate)
        grams *= self.scale
        grams *= self.scale[:, None]
        grams[:, self.kept, self.kept] += self.own
        for gram, v in zip(grams, self.v, strict=True):
            if v.any():
                gram[np.ix_(self.kept, self.kept)] += np.outer(v, v)
        (K, width), matrix = self.shape, self.matrix
        add_pairs(grams, matrix[:-1, :-1].reshape(K - 1, width, K - 1, width))
        border = self.coupling + self.unit * np.append(np.tile(self.scale, K), self.unit) * column
        matrix[-1] = np.append(border[: len(matrix) - 1], border[-1]) * (not pinned)
        factor = ShiftedCholesky(matrix)
        self.precondition, self.most_steps = factor.solve, SETTINGS.class_steps
        return not factor.failed

    def _build_diagonal(self) -> bool:
        """Set up from the diagonal alone."""
        along = np.append(np.zeros(self.shape[0] * self.shape[1]), 1.0)
        _, (diagonal, column) = self.rows.run(_diagonal, self.curved, along)
        diagonal *= self.scale**2
        diagonal[:, self.kept] += np.abs(self.differences[:, :-1]).T @ (self.own + self.v**2)
        corner = self.unit**2 * float(column[-1]) + float(self.coupling[-1])
        inverse = 1.0 / np.maximum(np.append(diagonal, corner), 1e-300)
        self.precondition, self.most_steps = partial(np.multiply, inverse), _MOST_STEPS
        return bool(np.isfinite(inverse).all())

    def _rate(self) -> float:
        """The factor of the traces t at which Σ min(1, rate t) rows are as many as needed."""
        traces = np.asarray(self.rows.gather(self.rows.run(_traces, self.curved)[0]))
        rate, certain = 0.0, -1
        while certain < (now := int(np.sum(rate * traces >= 1.0))) < self.wanted:
            others = float(traces[rate * traces < 1.0].sum())
            rate, certain = (self.wanted - now) / others if others > 0.0 else rate, now
        return rate

    def solve(self, rhs: FloatArray, rtol: float, *_: object) -> FloatArray:
        """(dx, dλ) for a right-hand side; ``rtol`` is in the norm of the preconditioner."""
        last = self.shape[1]
        right = np.append(rhs[: -1 - last], 0.0 if self.pinned else rhs[-1])
        found = conjugate_gradients(
            self._product, self.precondition, right, rtol=rtol, max_steps=self.most_steps
        )
        return np.concatenate([found[:-1], np.zeros(last), found[-1:]])

    def _product(self, v: FloatArray) -> FloatArray:
        """Sample by sample: what is stiff is a small difference, made first."""
        self.products += 1
        x = np.vstack([v[:-1].reshape(-1, self.shape[1]), np.zeros(self.shape[1])])
        coef = np.append((self.scale * x).ravel(), self.unit * v[-1])
        _, (data,) = self.rows.run(_weighted_product, self.curved, coef)
        image = self.scale * data[:-1].reshape(self.shape)
        steps = self.differences @ x[:, self.kept]
        push = self.own * steps + (self.v * steps).sum(axis=1, keepdims=True) * self.v
        image[:, self.kept] += self.differences.T @ push
        if self.pinned:
            return np.append(image[:-1].ravel(), v[-1])
        border = self.coupling[:-1]
        image += v[-1] * border.reshape(self.shape)
        corner = self.unit * data[-1] + border @ x.ravel() + self.coupling[-1] * v[-1]
        return np.append(image[:-1].ravel(), corner)


def add_pairs(grams: FloatArray, blocks: FloatArray) -> None:
    """A matrix for every pair of classes as that of all classes, or all but the last: lower half.

    ``blocks`` are (class, column, class, column).
    """
    G = len(blocks)
    for k in range(G):
        blocks[k, :, k] = 0.0
    for j, k, gram in zip(*pairs(G + 1), grams, strict=False):
        blocks[j, :, j] += gram
        if k < G:
            blocks[k, :, k] += gram
            np.negative(gram, out=blocks[k, :, j])


def _trace(block: Block, curved: FloatArray) -> FloatArray:
    """The traces of the samples' Laplacians, by weight."""
    p, D = curved
    one, total = np.ones(p.shape[1]), D @ np.ones(D.shape[1])
    inverse = np.divide((D * D) @ one, total, out=np.zeros_like(total), where=total > 0.0)
    return np.asarray(block.weights * (p @ one - (p * p) @ one + total - inverse))


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


def _diagonal(block: Block, curved: Curved, along: FloatArray) -> tuple[None, tuple[Sum, Sum]]:
    """The diagonal of the samples' matrix for each class but the last, and λ's column."""
    weights = class_weights(block, curved[0])[:-1]
    found = np.stack([block.squared_columns(weight) for weight in weights])
    return None, (Sum(found), Sum(curvature_product(block.compiled, *curved, along)))


def _traces(block: Block, curved: Curved) -> tuple[FloatArray, tuple[()]]:
    return _trace(block, curved[0]), ()


def _gram(block: Block, state: tuple[Curved, int], rate: float) -> tuple[None, tuple[Sum, Sum]]:
    """The matrices of pairs and λ's column, of rows drawn at a rate; or of all (rate 0)."""
    (curved, costs), offset = state
    rows = block.compiled
    if rate > 0.0:
        chance = np.minimum(rate * _trace(block, curved), 1.0)
        drawn = np.flatnonzero(places(offset + np.arange(chance.size)) < chance)
        X, weights = held(block.X[drawn]), block.weights[drawn] / chance[drawn]
        rows = Block(X, block.y[drawn], weights, block.intercept).compiled
        curved, costs = np.ascontiguousarray(curved[:, drawn]), costs[drawn]
    along = np.append(np.zeros(block.n_columns * costs.shape[1]), 1.0)
    column = curvature_product(rows, curved, costs, along)
    return None, (Sum(curvature_gram(rows, curved)), Sum(column))


def _weighted_product(block: Block, curved: Curved, v: FloatArray) -> tuple[Curved, tuple[Sum]]:
    return curved, (Sum(curvature_product(block.compiled, *curved, v)),)
