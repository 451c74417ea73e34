"""The Newton system of several labels: a matrix, or conjugate gradients where it takes too long.

The matrix is ``Σ w L_i ⊗ x_i x_iᵀ``, with a Laplacian L_i between the labels of each sample, plus a
matrix of the cones with the same structure: one block for every pair of labels.  The first label's
coefficients are zero and have no rows.  A product takes two passes over the rows; forming the
matrix takes a weighted Gram matrix for every pair.

With many rows, the matrix of a sample of them is the preconditioner of conjugate gradients.  Rows
are drawn with probabilities π in proportion to the traces of their Laplacians, and get the weight
1/π.  With r rows for each column, the eigenvalues of the preconditioned matrix are about
``(1 ± √(1/r))²``.  If the matrix would be too large, the preconditioner is its diagonal.

Derivation: docs/algorithm.md, (18).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..dual.shifted_cholesky import ShiftedCholesky
from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.matrix import held
from ..rows.reductions import Sum
from ..starts.sample import places
from ._cones import Cone, PairwiseCones
from ._labels import LabelState, linearise_labels, matrices_length
from .conjugate_gradients import ConjugateGradients
from .settings import SETTINGS
from .truncated_samples import class_weights, curvature_product, pairs

#: Coefficients of all labels but one up to which a matrix is formed, of 512 MB then, and the steps
#: of conjugate gradients at most without one.
MOST_COEFFICIENTS, _MOST_STEPS = 8000, 300


class LabelSystem:
    """The system of several labels in scaled coordinates; ``scale`` is that of one label."""

    work, terms = 0.0, True
    curved: State | None

    def __init__(
        self,
        rows: Rows,
        scale: FloatArray,
        unit: float,
        n_labels: int,
        cone: Cone,
        kept: IndexArray,
    ) -> None:
        self.rows, self.scale, self.unit = rows, scale, unit
        self.n_labels, self.cone, self.kept = n_labels, cone, kept
        self.shape, self.products = (n_labels - 1, scale.size), 0
        size = self.shape[0] * self.shape[1]
        self.diagonal = size > MOST_COEFFICIENTS
        # As many rows as there are coefficients may be on kinks of the loss: none is to be missed.
        self.wanted = float((SETTINGS.class_rows + n_labels) * scale.size)
        few = rows.n_samples <= 2.0 * self.wanted or size <= SETTINGS.class_direct
        self.exact = few and not self.diagonal
        self.square = matrices_length(n_labels, scale.size) if self.exact else 0
        # Kept from step to step: new memory costs as much as a copy.
        self.matrix = np.zeros((0, 0) if self.diagonal else (size + 1, size + 1))
        one, other = pairs(n_labels)
        labels = np.eye(n_labels)[:, 1:]
        self.differences = labels[one] - labels[other]

    def build(
        self, known: tuple[State, FloatArray], matrices: FloatArray, cone: FloatArray, pinned: bool
    ) -> bool:
        """Set up from the samples at their coefficients and the parts of the cone's matrix."""
        (self.state, coef), self.curved = known, None
        self.coupling, self.pinned = cone[2], pinned
        self.own, self.v = np.zeros((2, len(self.differences), 0))
        if isinstance(self.cone, PairwiseCones):
            self.own, self.v = self.cone.stiffness()
        if self.diagonal:
            return self._build_diagonal()
        if not self.exact:
            both = self.rows.pair(self.state, self.rows.offsets)
            matrices = self.rows.run(_sampled, both, self._rate(), coef)[1][0]
        (C, width), Q = self.shape, len(self.differences)
        grams = matrices[: Q * (width + 1) ** 2].reshape(Q, width + 1, width + 1)
        grams = grams[:, :width, :width]
        grams *= self.scale
        grams *= self.scale[:, None]
        grams[:, self.kept, self.kept] += self.own
        for gram, v in zip(grams, self.v, strict=True):
            if v.any():
                gram[np.ix_(self.kept, self.kept)] += np.outer(v, v)
        add_pairs(grams, self.matrix[:-1, :-1].reshape(C, width, C, width))
        column = matrices[-1 - C * width :]
        border = self.coupling + self.unit * np.append(np.tile(self.scale, C), self.unit) * column
        self.matrix[-1] = border * (not pinned)
        factor = ShiftedCholesky(self.matrix)
        self.precondition, self.most_steps = factor.solve, SETTINGS.class_steps
        return not factor.failed

    def solve(self, rhs: FloatArray, rtol: float, *_: object) -> FloatArray:
        """(dx, dλ) for a right side; conjugate gradients end at ``rtol``, in the norm of their
        preconditioner.
        """
        right = np.append(rhs[:-1], 0.0 if self.pinned else rhs[-1])
        if self.exact and rtol > SETTINGS.class_correction:
            return self.precondition(right)
        solver = ConjugateGradients(self._product, self.precondition, right)
        while solver.rho > rtol**2 * solver.first and solver.steps < self.most_steps:
            if not solver.step():
                break
        return solver.x if rtol < 1.0 else solver.direction

    def _rate(self) -> float:
        """The factor of the traces t at which Σ min(1, rate t) rows are as many as needed."""
        traces = np.asarray(self.rows.gather(self.rows.run(_traces, self.state)[0]))
        rate, certain = 0.0, -1
        while certain < (now := int(np.sum(rate * traces >= 1.0))) < self.wanted:
            others = float(traces[rate * traces < 1.0].sum())
            rate, certain = (self.wanted - now) / others if others > 0.0 else rate, now
        return rate

    def _build_diagonal(self) -> bool:
        """Set up from the diagonal alone."""
        self.curved = self.rows.run(_curved, self.state)[0]
        along = np.append(np.zeros(self.n_labels * self.shape[1]), 1.0)
        _, (diagonal, column) = self.rows.run(_diagonal, self.curved, along)
        diagonal = diagonal[1:] * self.scale**2
        diagonal[:, self.kept] += np.abs(self.differences).T @ (self.own + self.v**2)
        corner = self.unit**2 * float(column[-1]) + float(self.coupling[-1])
        inverse = 1.0 / np.maximum(np.append(diagonal, corner), 1e-300)
        self.precondition, self.most_steps = partial(np.multiply, inverse), _MOST_STEPS
        return bool(np.isfinite(inverse).all())

    def _product(self, v: FloatArray) -> FloatArray:
        """Sample by sample: what is stiff is a small difference, made first."""
        self.products += 1
        if self.curved is None:
            self.curved = self.rows.run(_curved, self.state)[0]
        x = v[:-1].reshape(self.shape)
        coef = np.concatenate([np.zeros(self.shape[1]), (self.scale * x).ravel()])
        _, (data,) = self.rows.run(_product, self.curved, np.append(coef, self.unit * v[-1]))
        image = self.scale * data[:-1].reshape(self.n_labels, -1)[1:]
        steps = self.differences @ x[:, self.kept]
        push = self.own * steps + (self.v * steps).sum(axis=1, keepdims=True) * self.v
        image[:, self.kept] += self.differences.T @ push
        if self.pinned:
            return np.append(image.ravel(), v[-1])
        border = self.coupling[:-1]
        corner = self.unit * data[-1] + border @ v[:-1] + self.coupling[-1] * v[-1]
        return np.append(image.ravel() + v[-1] * border, corner)


def add_pairs(grams: FloatArray, blocks: FloatArray) -> None:
    """The lower half of a matrix for every pair of labels as that of all labels but the first.

    ``blocks`` are (label, column, label, column).
    """
    for k in range(len(blocks)):
        blocks[k, :, k] = 0.0
    for j, k, gram in zip(*pairs(len(blocks) + 1), grams, strict=True):
        blocks[k - 1, :, k - 1] += gram
        if j > 0:
            blocks[j - 1, :, j - 1] += gram
            half = np.tril(gram)
            blocks[k - 1, :, j - 1] = -half - np.tril(half, -1).T


def _trace(block: Block, state: LabelState) -> FloatArray:
    """The traces of the samples' Laplacians, by weight."""
    p, D = state.curved()
    total = D.sum(axis=0)
    inverse = np.divide((D * D).sum(axis=0), total, out=np.zeros_like(total), where=total > 0.0)
    return np.asarray(block.weights * ((p * (1.0 - p)).sum(axis=0) + total - inverse))


def _traces(block: Block, state: LabelState) -> tuple[FloatArray, tuple[()]]:
    return _trace(block, state), ()


def _sampled(
    block: Block, both: tuple[LabelState, int], rate: float, coef: FloatArray
) -> tuple[None, tuple[Sum]]:
    """The matrices and λ's column, of rows drawn at a rate."""
    state, offset = both
    chance = np.minimum(rate * _trace(block, state), 1.0)
    drawn = np.flatnonzero(places(offset + np.arange(chance.size)) < chance)
    X, weights = held(block.X[drawn]), block.weights[drawn] / chance[drawn]
    rows = Block(X, block.y[drawn], weights, block.intercept).compiled
    _, sums = linearise_labels(rows, state.drawn(drawn, weights), coef, 0.0, 0.0, True, False)
    return None, (Sum(sums[: matrices_length(state.K, block.n_columns)]),)


def _curved(block: Block, state: LabelState) -> tuple[tuple[FloatArray, FloatArray], tuple[()]]:
    """(p, D) of the samples and their label costs, (samples, labels)."""
    both = np.ascontiguousarray(np.stack(state.curved()).transpose(0, 2, 1))
    costs = np.asarray(state.kappa)[: state.K].T if state.flips else 0.0 * both[0]
    return (both, np.ascontiguousarray(costs)), ()


def _diagonal(
    block: Block, known: tuple[FloatArray, FloatArray], along: FloatArray
) -> tuple[None, tuple[Sum, Sum]]:
    """The diagonal of the samples' matrix for each label, and λ's column."""
    weights = class_weights(block, known[0])
    found = np.stack([block.squared_columns(weight) for weight in weights])
    return None, (Sum(found), Sum(curvature_product(block, *known, along)))


def _product(
    block: Block, known: tuple[FloatArray, FloatArray], v: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], tuple[Sum]]:
    return known, (Sum(curvature_product(block, *known, v)),)
