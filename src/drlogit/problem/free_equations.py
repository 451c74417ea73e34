"""What it costs to meet the free columns' equations exactly.

A dual point must satisfy ``Σ w_i (s_i - a_i) z_ij = 0`` for every free column j, and in floating
point it never quite does: a residual ρ is left.  It would multiply the free coefficients *of the
optimum*, which nobody knows and which nothing bounds where columns are nearly dependent.  So
nothing is charged against coefficients at all.  Instead a point that satisfies the equations
exactly is shown to exist, and its value bounded from below:

*Theorem.*  Let ``D_i ≥ 0``, ``M = Σ w_i D_i z_iF z_iFᵀ`` positive definite, ``Mc = ρ`` and
``q² = ρᵀM⁻¹ρ``.  If ``D_i |z_iF·c| ≤ ½ min(s_i, 1-s_i)`` for all i, then the point
``s'_i = s_i - D_i z_iF·c`` lies in [0, 1], satisfies the equations exactly, and

    Σ w_i H(s'_i) ≥ Σ w_i H(s_i) - A q - K q²,     A² = Σ w_i D_i log²(s_i/(1-s_i)),
                                                    K = max_i D_i / (s_i(1-s_i)).

*Proof.*  ``Σ w_i D_i (z_iF·c) z_iF = Mc = ρ``; with ``δ = s' - s``, ``Σ w_i δ_i²/D_i = cᵀMc = q²``.
On the way from s to s' both s and 1-s stay above half of what they are, one of them above all, so
``-H'' ≤ 2/(s(1-s))`` and ``H(s') ≥ H(s) + H'(s)δ - δ²/(s(1-s))``; sum, with Cauchy and Schwarz.  ∎

For a penalised column j the sum ``Σ w_i (s_i - a_i) z_ij`` moves by at most
``q √(Σ w_i D_i z_ij²) ≤ ½ q √(Σ w_i z_ij²)``.

Nothing in this is particular to free columns.  Where rounding of a penalised column's sum counts
beside ε, it is *held* to a target: an equation ``Σ w_i (s_i - a_i) z_ij = τ_j`` like the others,
whose residual is what the sum, as computed and with its rounding, is away from τ_j.  The exact
point then takes no more of ε than the targets do.  Penalised columns that depend on others are not
held, and need not be.

Free columns may depend on each other (all levels of a category, next to an intercept).  A column
that is an exact combination of others adds no equation; that it is one is verified on the data, in
arithmetic without rounding, or follows from counting: samples of only k different rows have no more
than k independent columns.  Columns that are only nearly dependent give no proof: in the direction
in which they differ, however little, the true optimum may be far away and far lower.

A column can be too *faint* for an equation: where all its entries among the samples with s or a
above zero are subnormal, squares of them are zero.  But coefficients are doubles, no larger than
``B = 2¹⁰²⁴``, and so ``β_j Σ w_i (s_i - a_i) z_ij`` is at most ``B Σ w_i |s_i - a_i| |z_ij|`` for
every model that there is.  This is what the bound is charged instead; for the exact point,
``|s'_i - a_i| ≤ 3/2 (s_i + a_i)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpstrf

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.interface import Rows, State
from ..rows.matrix import matvec, row_chunks
from ..rows.reductions import Max, Stack, Sum

#: Unit roundoff of double precision.
UNIT = 2.0**-53

#: A column counts as independent while this much of its square is left by the others; below,
#: rounding of the matrix itself would decide.
_INDEPENDENT = 1e-11

#: Squares below this have lost digits to underflow.
_UNDERFLOW = 1e-280

#: The least normal number, and a bound on all of them.
_NORMAL = 2.0**-1022
_LARGEST = np.finfo(np.float64).max

#: Whole numbers up to this size, times whole factors up to the next, add up without rounding.
_WHOLE = 2.0**31
_FACTOR = 2.0**10

#: Computed factors are this close to what they stand for.
_NEAR = 1e-4

#: Different rows up to which they are counted.
_COMPARED = 256


def rounding_of_pairwise_sum(n: int) -> float:
    """The same for a sum of n products that NumPy adds in pairs, over some blocks."""
    return UNIT * (64.0 + math.log2(n + 1.0))


def rounding_of_sum(n: int) -> float:
    """What rounding may make of a sum of n products, relative to the sum of their sizes.

    Rigorous for short sums.  For long ones, where errors do not conspire, sixteen times their root
    mean square (N. Higham and T. Mary, SIAM J. Sci. Comput. 41, 2019).
    """
    return UNIT * (n + 4.0 if n <= 256 else 16.0 * math.sqrt(n))


@dataclass(frozen=True, eq=False)
class FreeEquations:
    """The free columns, with what proves that their equations can be met.

    ``columns`` are the independent ones among them, ``inverse`` bounds ``|M⁻¹|`` entry by entry;
    ``faint`` are those that have no equation.
    """

    columns: IndexArray
    inverse: FloatArray
    faint: IndexArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def distance(self, residual: FloatArray) -> tuple[float, FloatArray]:
        """Bounds on q and on the entries of c, for residuals of at most these sizes."""
        r = residual[self.columns]
        c = np.zeros(residual.size)
        c[self.columns] = self.inverse @ r
        return math.sqrt(float(r @ c[self.columns])), c

    @classmethod
    def none(cls) -> FreeEquations:
        """No equation at all."""
        return cls(np.zeros(0, dtype=np.intp), np.zeros((0, 0)))


def intercept_equation(curvature: float, n_columns: int) -> FreeEquations | None:
    """The equation of the intercept alone; ``curvature`` is ``Σ w_i D_i``."""
    if not curvature > _UNDERFLOW:
        return None
    return FreeEquations(np.array([n_columns - 1]), np.array([[1.0 / curvature]]))


def free_equations(
    rows: Rows, free: IndexArray, matrix: FloatArray, active: State
) -> FreeEquations | None:
    """The equations of the columns ``free``, ``matrix`` being M; None if there is no proof.

    ``active`` says per sample whether s or a is anything but zero: others have no part.  Without an
    intercept, a column one past the last stands for the constant.
    """
    with np.errstate(all="ignore"):
        _, (largest, n_active) = rows.run(_largest_entries, active, free)
        largest = np.append(largest, 1.0)
        present = np.flatnonzero(largest[free] >= _NORMAL)
        faint = free[(largest[free] > 0.0) & (largest[free] < _NORMAL)]
        diagonal = np.diagonal(matrix)[present]
        if not (np.isfinite(matrix).all() and (diagonal > _UNDERFLOW).all()):
            return None
        size = 1.0 / np.sqrt(diagonal)
        scaled = size[:, None] * matrix[np.ix_(present, present)] * size
        chosen = _independent(scaled)
        inverse = _inverse(scaled[np.ix_(chosen, chosen)], rounding_of_sum(rows.n_samples))
        if inverse is None:
            return None
        others = np.setdiff1d(np.arange(present.size), chosen)
        # As many independent columns as samples span everything there is.
        if others.size and chosen.size < n_active:
            shares = np.linalg.solve(scaled[np.ix_(chosen, chosen)], scaled[np.ix_(chosen, others)])
            if not are_dependent(rows, active, free[present], chosen, others, shares, size):
                return None
    return FreeEquations(
        free[present[chosen]], size[chosen][:, None] * np.abs(inverse) * size[chosen], faint
    )


def with_held_columns(
    equations: FreeEquations, penalised: IndexArray, matrix: FloatArray, n_samples: int
) -> FreeEquations | None:
    """The equations, and those of penalised columns as far as columns are independent.

    ``matrix`` is M of all columns; None if there is no proof.
    """
    with np.errstate(all="ignore"):
        diagonal = np.diagonal(matrix)
        penalised = penalised[diagonal[penalised] > _UNDERFLOW]
        if not np.isfinite(matrix).all():
            return None
        size = np.where(diagonal > 0.0, 1.0 / np.sqrt(diagonal), 0.0)
        scaled = size[:, None] * matrix * size
        free = equations.columns
        across = scaled[np.ix_(free, penalised)]
        # What the free columns leave of the others.
        rest = scaled[np.ix_(penalised, penalised)] - across.T @ np.linalg.solve(
            scaled[np.ix_(free, free)], across
        )
        columns = np.sort(np.append(free, penalised[_independent(rest)]))
        inverse = _inverse(scaled[np.ix_(columns, columns)], rounding_of_sum(n_samples))
        if inverse is None:
            return None
    return FreeEquations(
        columns, size[columns][:, None] * np.abs(inverse) * size[columns], equations.faint
    )


def _independent(scaled: FloatArray) -> IndexArray:
    """Columns of which no one is nearly a combination of the others, by pivoted Cholesky."""
    if scaled.size == 0:
        return np.zeros(0, dtype=np.intp)
    _, pivots, rank, _ = dpstrf(scaled, tol=_INDEPENDENT, lower=1)
    return np.sort(pivots[:rank] - 1).astype(np.intp)


def _inverse(scaled: FloatArray, rounding: float) -> FloatArray | None:
    """An upper bound on the inverse; None where rounding leaves doubts about it."""
    p = scaled.shape[0]
    if p == 0:
        return scaled
    factor, failed = dpotrf(scaled, lower=1)
    if failed:
        return None
    lower, _ = dpotri(factor, lower=1)
    full = np.tril(lower) + np.tril(lower, -1).T
    # ‖error of the matrix‖ ‖inverse‖: entries are off by rounding, factors by p roundings each.
    size = float(np.linalg.norm(full))
    doubt = size * p * (rounding + 4.0 * p * UNIT)
    return None if doubt > 0.1 else np.asarray((np.abs(full) + doubt * size) / (1.0 - doubt))


def are_dependent(
    rows: Rows,
    active: State,
    columns: IndexArray,
    chosen: IndexArray,
    others: IndexArray,
    shares: NDArray[Any],
    size: FloatArray,
) -> bool:
    """Whether the ``others`` of some columns are exactly combinations of the ``chosen`` ones.

    ``shares`` are about their factors, for columns multiplied by ``size``.
    """
    with np.errstate(all="ignore"):
        factors = _plain_factors(shares, size[chosen], size[others])
    return _dependent(rows, active, columns, chosen, others, factors) or _few_different(
        rows, active, columns, chosen.size
    )


def _plain_factors(shares: NDArray[Any], chosen: FloatArray, others: FloatArray) -> FloatArray:
    """What computed factors of columns in units of their own stand for, in the units of all.

    That is powers of two or whole numbers.
    """
    # A copy is all of one column, and nothing but rounding of any other.
    factors = np.where(np.abs(shares) > _NEAR, shares, 0.0) * chosen[:, None] / others
    size = np.abs(factors)
    power = np.copysign(np.exp2(np.rint(np.log2(size))), factors)
    return np.where(np.abs(factors - power) <= _NEAR * size, power, np.rint(factors))


def _dependent(
    rows: Rows,
    active: State,
    columns: IndexArray,
    chosen: IndexArray,
    others: IndexArray,
    factors: FloatArray,
) -> bool:
    """Whether each of the ``others`` is exactly the combination of the ``chosen`` columns.

    A column times a power of two is so without rounding; of other combinations only those of whole
    numbers are.
    """
    largest = np.abs(factors).max(axis=0)
    copies = (np.count_nonzero(factors, axis=0) == 1) & (np.frexp(largest)[0] == 0.5)
    if (largest[~copies] > _FACTOR).any():
        return False
    combination = np.zeros((max(rows.n_columns, int(columns.max()) + 1), others.size))
    combination[columns[others], np.arange(others.size)] = 1.0
    combination[columns[chosen]] = -factors
    combination /= np.where(copies, np.minimum(largest, 1.0), 1.0)  # nothing may underflow
    involved = (combination != 0.0).any(axis=1)
    if rows.shift is not None and (rows.shift[involved[: rows.shift.size]] != 0.0).any():
        return False  # differences were rounded
    whole = (combination[:, ~copies] != 0.0).any(axis=1)
    _, (difference, broken) = rows.run(_combined, active, combination, whole)
    return bool(difference == 0.0 and broken == 0.0)


def _few_different(rows: Rows, active: State, columns: IndexArray, rank: int) -> bool:
    """Whether the active samples span no more than ``rank`` dimensions by being few and alike."""
    if rank > _COMPARED:
        return False
    _, (found,) = rows.run(_different, active, columns, rank + 1)
    found = np.unique(found, axis=0)
    # Where there is no constant, a row of zeros spans nothing.
    spanning = found.any(axis=1) | (found.shape[1] < columns.size)
    return int(spanning.sum()) <= rank


def _different(
    block: Block, active: BoolArray, columns: IndexArray, most: int
) -> tuple[BoolArray, tuple[Stack]]:
    """The different rows of a block, or ``most + 1`` of them."""
    features = columns[columns < block.X.shape[1]]
    found = np.zeros((0, features.size))
    for chunk in row_chunks(*block.X.shape):
        part = block.X[chunk.start : chunk.stop][:, features]
        part = part.toarray() if sp.issparse(part) else part
        # Zero has two signs, which are the same number.
        part = part[active[chunk]].astype(np.float64, copy=False) + 0.0
        found = np.unique(np.concatenate([found, part]), axis=0)[: most + 1]
    return active, (Stack(found),)


def _largest_entries(
    block: Block, active: BoolArray, free: IndexArray
) -> tuple[BoolArray, tuple[Max, Sum]]:
    """Largest entries of the columns among the active samples, and how many of these have any.

    A sample without an entry in the free columns has no part in their equations.
    """
    v = np.zeros(max(block.n_columns, int(free.max(initial=0)) + 1))
    v[free] = 1.0
    present = block.absolute_margins(v[: block.n_columns]) + v[block.n_columns :].sum() > 0.0
    return active, (Max(block.largest_entries(active)), Sum(int((active & present).sum())))


def _combined(
    block: Block, active: BoolArray, combination: FloatArray, whole: BoolArray
) -> tuple[BoolArray, tuple[Max, Max]]:
    """Largest value of a combination of columns, and whether those in ``whole`` may round."""
    n = block.X.shape[1]
    values = matvec(block.X, combination[:n])
    if combination.shape[0] > n:
        values = values + combination[-1]
    difference = np.max(np.abs(values[active]), initial=0.0)
    return active, (Max(difference), Max(float(not block.are_whole(whole[:n], _WHOLE))))


def charge_of_faint(block: Block, s: FloatArray, a: FloatArray, faint: IndexArray) -> float:
    """``3/2 B Σ w (s + a) |z|`` over the faint columns."""
    v = np.zeros(block.n_columns)
    v[faint] = _LARGEST
    active = (s > 0.0) | (a > 0.0)
    with np.errstate(over="ignore"):  # other samples may have any entries there
        size = block.absolute_margins(v)[active]
    return 1.6 * float((block.weights * (s + a))[active] @ size)


def charges(
    block: Block,
    s: FloatArray,
    curvature: FloatArray,
    move: FloatArray | None,
) -> tuple[Sum, Max, Max]:
    """``A²``, K and the largest ``D |z_F·c| / min(s, 1-s)`` of a block, D being ``curvature``.

    ``move`` bounds the entries of c; None stands for none at all.
    """
    inside = (s > 0.0) & (s < 1.0) & (curvature > 0.0)
    s, d, w = s[inside], curvature[inside], block.weights[inside]
    logit = np.log(s) - np.log1p(-s)
    reach = np.zeros(1)
    with np.errstate(over="ignore"):  # too far, then
        stiffness = float(np.max(d / (s * (1.0 - s)), initial=0.0))
        if move is not None:
            reach = d * block.absolute_margins(move)[inside] / np.minimum(s, 1.0 - s)
    # A sample that a correction would take out of [0, 1] has no room at all.
    stuck = np.any(~inside & (curvature > 0.0))
    furthest = math.inf if stuck else float(np.max(reach, initial=0.0))
    return Sum(float(w @ (d * np.square(logit)))), Max(stiffness), Max(furthest)
