"""The arithmetic of the certificate: sums over the samples, what is used and charged of them."""

import numpy as np
from numpy.typing import NDArray

from ..problem.norms import Norm
from ..rows._products import CompiledRows
from ..rows.arrays import FloatArray, IndexArray

#: The unit of rounding, and more than underflow can take from any sum.
ROUNDING: float
NOTHING: float

#: Kinds of coordinates; ``GROUP + g`` is a category of group g, ``-1 - g`` its highest one.
IN_NORM: int
FREE: int
GROUP: int

class Coordinates:
    """What the bound has to know of each coordinate of a model; λ is none of them.

    They are (β, b), or with domains (categories, high of each group, bounded, unbounded, b), where
    0 ≤ category ≤ high of its group.  All arrays have one entry per coordinate.

    Attributes
    ----------
    kind : int32 array
        ``IN_NORM``, ``FREE`` (immovable, bounded, intercept), ``GROUP + g``, or ``-1 - g``.
        At ε = 0 nothing is in the norm.
    costs : array
        Transport costs of those in the norm; others are not looked at.
    norm : Norm
        The transport norm.
    spread : array
        Standard deviations of free columns (root mean squares without an intercept), 1 for the
        intercept.  0 is for columns that are a multiple of the intercept's, or zero: no charge.
    mean : array
        Weighted means of the columns, 0 where they are centred, for categories, and without an
        intercept: the reference point at which the log-odds are admitted.
    size : array
        At least ``Σ |terms|`` of the sum behind each entry of the gradient: root mean squares do
        where a sample has one term (Cauchy and Schwarz).
    sizes : array
        What rounding errors of the gradient at the reference point are in proportion to.
    intercept : int or None
        The place of b.
    """

    kind: NDArray[np.int32]
    costs: FloatArray
    norm: Norm
    spread: FloatArray
    mean: FloatArray
    size: FloatArray
    sizes: FloatArray
    intercept: int | None

    def __init__(
        self,
        kind: NDArray[np.int32],
        costs: FloatArray,
        norm: Norm,
        spread: FloatArray,
        mean: FloatArray,
        size: FloatArray,
        intercept: int | None,
    ) -> None: ...
    @property
    def in_norm(self) -> IndexArray:
        """Places of the coordinates that the norm bounds."""

    def used(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """``‖c g‖``, at most, if the sums are right up to ``rounding`` of their terms."""

    def charge(self, gradient: FloatArray, rounding: float = 0.0) -> float:
        """The most that g·x can be over free coordinates of admitted models."""

    def admits(self, model: FloatArray) -> bool:
        """Whether the bound speaks of a model: what it proves says nothing of others."""

def column_sums(rows: CompiledRows, r: FloatArray) -> tuple[FloatArray, float]:
    """``r X``, a row for each of r, and the additions behind any entry.

    With the constant column, if there is one.  The panels' sums are added so that what each
    addition rounds off is kept.
    """

def pair_sums(
    rows: CompiledRows,
    coef: FloatArray,
    s: FloatArray | None,
    a: FloatArray | None,
    flip_multiples: FloatArray | None,
) -> tuple[FloatArray, FloatArray, float]:
    """Margins, s and a within [0, 1] (3, n); sums; additions behind any of them.

    Without s it is that of the coefficients, without a nothing flips.  The sums are
    ``Σ w (s - a) z``, then ``Σ w H(s)`` and what flips cost in units of κ.
    """

def factor_in_place(matrix: FloatArray, least: float = 1e-14) -> tuple[FloatArray, bool]:
    """Write the factor of a matrix into its upper half: its scaling, and whether there is one."""
