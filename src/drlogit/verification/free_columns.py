"""Equations of free columns that hold only up to rounding: a point that satisfies them is near.

The dual point must satisfy ``Σ ω_i (s_i - a_i) z_ij = 0`` for the intercept and for every feature
that cannot move (for every feature at ε = 0); what doubles leave of it, ρ, would multiply
coefficients that nothing bounds.

*Lemma.* Let ``D_i = ω_i s_i (1-s_i)``, ``M = Σ D_i z_iF z_iFᵀ``, ``M c = ρ``, ``Ω = Σ ω``, ``τ² =
ρ·c/Ω``, and let ``T ≥ |z_iF·c|`` for all i be at most 1/2. Then ``s'_i = s_i - s_i (1-s_i)
z_iF·c`` lies in [0, 1] and satisfies the equations exactly; ``Σ ω H(s')`` is smaller than ``Σ ω
H(s)`` by at most Ω times the lesser of ``T/2`` and ``0.67 τ + τ²``; and ``Σ ω |s - s'|`` is at
most Ω times the lesser of ``δT`` and ``√δ τ``, ``δ = Σ D/Ω ≤ 1/4``.

*Proof.* ``Σ ω_i (s_i - s'_i) z_iF = M c = ρ``. With ``t_i = z_iF·c``, s and 1-s both stay above
half of what they are, and one of the two above all of it, so ``-H'' ≤ 2/(s(1-s))`` on the way and
``H(s') ≥ H(s) - s(1-s)|log(s/(1-s))| |t| - s(1-s) t²``. The factor of ``|t|`` is at most ``max -x
log x = 1/e``, that of t² at most 1/4, and ``1/e + 1/8 < 1/2``. Or, by Cauchy and Schwarz and with
``Σ D t² = c·M c = Ω τ²``, the sum of what is lost is at most ``√(Σ D log²(s/(1-s))) √Ω τ + Ω τ²``,
and ``s(1-s) log²(s/(1-s)) < 0.44``. The last claim is about ``Σ D |t|``, in both ways. ∎

A sample may be several pieces with masses, doubts and labels of their own: nothing changes,
``D_i`` being the sum over its pieces.

Bounds on c come from a verified inverse: if ``‖I - Y M‖_∞ ≤ α < 1`` for an approximate inverse Y,
then M is regular and ``|c| ≤ |Y||ρ| + α/(1-α) max(|Y||ρ|)`` (Rump, Acta Numerica 19, 2010, §10). A
column that is exactly a combination of others adds no equation; that it is one is checked in whole
numbers, or follows from the number of different rows.  A column whose entries are subnormal, where
s or a is above zero, needs none either: coefficients are doubles, and what the largest of them
makes of it is subtracted from the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from ..rows.arrays import BoolArray, FloatArray, IndexArray
from .rounding import UP, gamma, two_product

#: Pivots below this share of the largest are left to the check of dependence.
_PIVOT = 1e-10

#: Whole numbers and factors up to these sizes, and so many of them, add up without rounding.
_WHOLE = 2.0**31
_FACTOR = 2.0**10
_DENOMINATOR = 64

#: An inverse must be verified to this accuracy.
ACCURACY = 0.25


@dataclass(frozen=True, eq=False)
class Chosen:
    """Columns that span the free ones, and a verified inverse of M for them.

    ``multiples`` of ``others`` should be combinations of them, with whole ``factors``.
    """

    columns: IndexArray
    powers: FloatArray  # by which columns were scaled
    inverse: FloatArray  # Y of the scaled matrix
    doubt: float  # α of the scaled matrix
    others: IndexArray
    factors: FloatArray
    multiples: FloatArray

    def solution(self, residual: FloatArray) -> FloatArray:
        """Bounds on ``|c|`` for residuals of at most these sizes."""
        first = np.abs(self.inverse) @ (self.powers * residual[self.columns])
        excess = self.doubt / (1.0 - self.doubt) * float(np.max(first, initial=0.0))
        return np.asarray(self.powers * (first + excess) * UP)

    def correction(self, residual: FloatArray) -> FloatArray:
        """About c itself; zero for columns that were not chosen."""
        c = np.zeros(residual.size)
        c[self.columns] = self.powers * (self.inverse @ (self.powers * residual[self.columns]))
        return c


def choose(matrix: FloatArray, occurring: BoolArray, terms: int) -> Chosen | None:
    """Independent columns of M, whose entries are sums of ``terms`` products; None without proof.

    Columns that do not occur have no equation.
    """
    present = np.flatnonzero(occurring)
    part = matrix[np.ix_(present, present)]
    diagonal = np.diagonal(part)
    if not (np.isfinite(part).all() and (diagonal > 1e-250).all()):
        return None
    _, exponents = np.frexp(np.sqrt(diagonal))
    powers = np.ldexp(1.0, -exponents)  # powers of two: scaling is exact
    scaled = powers[:, None] * part * powers
    if present.size:
        _, pivots, rank, _ = dpstrf(scaled, tol=_PIVOT, lower=1)
        kept = np.sort(pivots[:rank] - 1).astype(np.intp)
    else:
        kept = np.zeros(0, dtype=np.intp)
    B = scaled[np.ix_(kept, kept)]
    try:
        Y: FloatArray = np.linalg.inv(B).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    size = np.sqrt(np.diagonal(B))
    doubt = defect_of_inverse(Y, B, gamma(terms) * np.outer(size, size) * UP)
    if not doubt <= ACCURACY:
        return None
    others = np.setdiff1d(np.arange(present.size), kept)
    factors = (powers[kept][:, None] * Y) @ scaled[np.ix_(kept, others)] / powers[others]
    multiples = np.array([_denominator(column) for column in factors.T])
    return Chosen(
        present[kept], powers[kept], Y, doubt, present[others],
        np.rint(factors * multiples), multiples,
    )  # fmt: skip


def defect_of_inverse(inverse: FloatArray, matrix: FloatArray, wrong: FloatArray) -> float:
    """A bound on ``‖I - Y M‖_∞`` for a matrix whose entries are wrong by up to so much."""
    n, sizes = len(matrix), np.abs(inverse)
    defect = np.abs(np.eye(n) - inverse @ matrix) + gamma(n + 2) * (sizes @ np.abs(matrix))
    return float(np.max((defect + sizes @ wrong).sum(axis=1), initial=0.0)) * UP


def _denominator(factors: FloatArray) -> float:
    """The least whole number that makes these whole, about, or a power of two; 1 if none does."""
    largest = np.max(np.abs(factors), initial=0.0)
    power = np.exp2(-np.rint(np.log2(largest))) if largest > 0.0 else 1.0
    for multiple in (*range(1, _DENOMINATOR + 1), power):
        product = multiple * factors
        whole = np.rint(product)
        if whole.any() and np.max(np.abs(product - whole)) < 1e-4:
            return float(multiple)
    return 1.0


def are_combinations(Z: FloatArray, chosen: Chosen) -> bool:
    """Whether the other columns of these rows are combinations of the chosen ones, exactly."""
    if not chosen.others.size:
        return True
    factors = chosen.factors
    involved = chosen.columns[(factors != 0.0).any(axis=1)]
    used, wanted = Z[:, chosen.columns], Z[:, chosen.others]
    whole = Z[:, np.append(involved, chosen.others)]
    small = (np.abs(factors) <= _FACTOR).all() and (chosen.multiples <= _FACTOR).all()
    if small and (np.abs(whole) <= _WHOLE).all() and (whole == np.rint(whole)).all():
        return bool((used @ factors == wanted * chosen.multiples).all())
    if not (np.count_nonzero(factors, axis=0) == 1).all():
        return False
    # Copies, perhaps in other units: products of two, without rounding unless they underflow.
    scaled = (chosen.multiples != 1.0).any() or (np.abs(factors).max(axis=0) != 1.0).any()
    if scaled and (np.abs(whole[whole != 0.0]) < 1e-250).any():
        return False
    source = used[:, np.abs(factors).argmax(axis=0)]
    sides = two_product(source, factors.sum(axis=0)), two_product(wanted, chosen.multiples)
    return all(bool((one == other).all()) for one, other in zip(*sides, strict=True))
