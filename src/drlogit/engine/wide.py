"""The Newton system of few samples with many columns, by an N×N matrix.

With the diagonal T of the cone's matrix, ``B = diag(√d) Z`` and d = w (h'' + ω), the system is

    (T + BᵀB) x = r + Bᵀq,        (I + B T⁻¹ Bᵀ) y = q - B T⁻¹ r,        x = T⁻¹ (r + Bᵀ y).

The samples' terms of a step are q, and y = q - B x is what the step leaves of them; r are the
residuals and the cone's terms.  ``r + Bᵀq`` is never formed: T is small where no bound is near, so
T⁻¹ would magnify the rounding of a difference.  For the same reason dual points are corrected by
``B x = q - y``, not by the margins of x.

λ, p = vᵀx of the cone's ``v vᵀ``, and the free columns (T = 0) are a border of the system, in this
order.  They are eliminated by its Schur complement.

Derivation: docs/algorithm.md, (19b).
"""

from __future__ import annotations

import numpy as np

from ..dual.shifted_cholesky import ShiftedCholesky
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.local import LocalRows
from ..rows.reductions import Sum
from ._labels import LabelState
from .protocols import Terms
from .truncated_samples import free_columns

#: Coefficients beyond which no n×n matrix is formed, and from which an N×N one is preferred.
DENSE_LIMIT = 4000
_OUTER_LIMIT = 300

#: Order up to which the smaller of both matrices is formed where no other method is chosen: 2 GB.
MATRIX_LIMIT = 16_384

#: The least h'' + ω of a sample as a share of s + a, so that its terms can be divided by √d.
_LEAST = 1e-16

#: Singular values of the border's matrix below this share of the largest count as zero.
_RANK = 1e-13


def is_wide(rows: Rows) -> bool:
    """Whether the n×n matrix is large, or larger than it has to be."""
    outer = rows.n_columns > _OUTER_LIMIT and 2 * rows.n_samples < rows.n_columns
    return rows.n_columns > DENSE_LIMIT or outer


def takes_outer(rows: Rows) -> bool:
    """Whether the interior point forms the N×N matrix."""
    return is_wide(rows) and rows.n_samples < rows.n_columns


def in_one_block(rows: Rows) -> Rows:
    """The rows, joined if the N×N matrix is formed of them."""
    if not takes_outer(rows) or rows.largest_block == rows.n_samples:
        return rows
    refuse_large(rows)
    return LocalRows([rows.together()], n_nonzeros=rows.n_nonzeros, shift=rows.shift)


def refuse_large(rows: Rows) -> None:
    """Refuse a matrix of an unreasonable size."""
    if min(rows.n_samples, rows.n_columns) > MATRIX_LIMIT:
        raise ValueError(
            f"X has {rows.n_samples} rows and {rows.n_columns} columns, and the interior point "
            f"forms a matrix of the smaller number, up to {MATRIX_LIMIT}: use norm='l1' or 'l2' "
            "and epsilon > 0"
        )


class WideSystem:
    """The system in scaled coordinates, of samples in one block."""

    margins: State  # the changes of margins along the last solution
    work: float  # qᵀB x
    square, products, terms = 0, 0, False

    def __init__(self, rows: Rows, scale: FloatArray) -> None:
        self.rows, self.block = rows, rows.together()
        self.scale, self.unit = scale[:-1], float(scale[-1])
        self.columns: FloatArray | None = None  # the free columns of the samples, scaled

    def build(
        self, known: tuple[State, FloatArray], _: FloatArray, cone: FloatArray, pinned: bool
    ) -> bool:
        """Set up from a linearised state and the parts of the cone's matrix (``System``)."""
        own, v, coupling = cone[:, :-1]
        if self.columns is None:
            self.free = np.flatnonzero((own == 0.0) & (self.scale > 0.0))
            self.columns = free_columns(self.block, self.free, self.scale[self.free])
        self.inverse = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)
        self.root, share, cost, excess = self._curvatures(known[0])
        matrix = self.block.outer_gram(self.root, self.scale * np.sqrt(self.inverse))
        np.einsum("ii->i", matrix)[:] += 1.0
        # Where entries are 1e16, any shift would be more than the 1.
        self.factor = ShiftedCholesky(matrix, least=0.0)
        # With a v, it is p that acts on x; λ's own column is that of v vᵀ.
        self.first, self.at = int(pinned), int(v.any())
        self.edge = v if self.at else coupling
        # λ acts on hinges: its column is Bᵀg with g = -κ ω w/√d.
        self.of_lam = -cost * share * self.root
        border = np.zeros((share.size, 2 + self.free.size))
        border[:, 0] = self.of_lam
        border[:, self.at] -= self.root * self.block.margins(self.scale * self.inverse * self.edge)
        border[:, 2:] = self.root[:, None] * self.columns
        self.border, self.solved = border, self.factor.solve(border)
        schur = border.T @ self.solved
        schur[0, 0] += excess + cone[0 if self.at else 2, -1]
        schur[:2, :2] += [[0.0, cone[1, -1]], [cone[1, -1], -1.0]]
        schur[self.at, self.at] -= self.edge @ (self.inverse * self.edge)
        schur = schur[self.first :, self.first :]
        if not np.isfinite(schur).all():
            return False
        size = np.abs(np.diagonal(schur))
        unit = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
        inverse = np.linalg.pinv(unit[:, None] * schur * unit, _RANK, hermitian=True)
        self.schur = unit[:, None] * inverse * unit
        return True

    def _curvatures(self, samples: State) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """√d, the hinges' share of d, flip costs; by what λ's diagonal exceeds gᵀg."""
        self.state, w = self._only(samples), self.block.weights
        state = self.state
        _, (s, other), _, shares = state.tables()
        a, hinge, cost = np.zeros_like(s), np.zeros_like(s), np.zeros_like(s)
        loss = s * other * (state.fixed.shape[0] == 0)
        if state.flips:
            a, (one, own) = shares[0], state.curved()[1]
            hinge, cost = one * own / (one + own), self.unit * np.asarray(state.kappa[0])
        d = np.maximum(loss + hinge, _LEAST * (s + a))
        share = np.divide(hinge, d, out=np.zeros_like(d), where=d > 0.0)
        return np.sqrt(w * d), share, cost, float(np.sum(w * cost**2 * hinge * (1.0 - share)))

    def _only(self, state: State) -> LabelState:
        """The state of the one block."""
        _, ((found,),) = self.rows.run(_listed, state)
        return found

    def solve(self, rhs: FloatArray, rtol: float, terms: Terms | None) -> FloatArray:
        """(dx, dλ) for a right side, r with λ's entry, and the samples' terms (``System``)."""
        r, q, block = rhs[:-1], np.zeros_like(self.root), self.block
        x = self.inverse * r
        if terms is not None:
            state = self.state if terms[0] is None else self._only(terms[0])
            q = self._over_root(block.weights * _terms(state, *terms[1:]))
        left = self.factor.solve(q - self.root * block.margins(self.scale * x))
        found = self.border.T @ left
        found[0] += rhs[-1] - self.of_lam @ q
        found[self.at] -= self.edge @ x
        found[2:] += r[self.free]
        y = np.zeros(found.size)
        y[self.first :] = self.schur @ found[self.first :]
        left -= self.solved @ y  # of q
        change = q - left - y[0] * self.of_lam
        self.margins, self.work = self.rows.scatter(self._over_root(change)), float(q @ change)
        image = self.scale * block.adjoint(self.root * left)
        x += self.inverse * (image - y[self.at] * self.edge)
        x[self.free] = y[2:]
        return np.append(x, y[0])

    def _over_root(self, values: FloatArray) -> FloatArray:
        """Values over √d; 0 for samples without weight."""
        return np.divide(values, self.root, out=np.zeros_like(values), where=self.root > 0.0)


def _listed(_: Block, state: LabelState) -> tuple[LabelState, tuple[Sum]]:
    return state, (Sum([state]),)


def _terms(state: LabelState, centre: float, share: float) -> FloatArray:
    """The samples' terms of the right side of (8), without weights."""
    if not state.flips:
        return np.zeros(state.tables()[0].shape[1])
    _, _, (r, t), (a, c) = state.tables()
    q = 1.0 / (c * r + a * t)
    total = a * (1.0 - t * q) - centre * (c - a) * q
    if state.second is not None:
        total -= share * (a * state.second[1] - c * state.second[0]) * q
    return np.asarray(total)
