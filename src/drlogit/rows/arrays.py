"""Names of the arrays that travel through the library."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]

#: A 2-D float array or a CSR matrix with sorted, unique indices.
Matrix: TypeAlias = Any
