"""The weighted Gram matrix of a sparse block, as a compiled loop over pairs of non-zeros.

Kept in a module of its own because importing numba takes longer than most fits: nothing on
the dense path may import this file.  Threads are ordinary Python threads (the loop releases
the interpreter lock), because numba's own pool must not be entered by two fits at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from .arrays import FloatArray, Matrix
from .threads import thread_count

#: Private accumulators of the threads together stay below this many bytes.
_ACCUMULATOR_BYTES = 1 << 28

#: Fewer pairs of non-zeros than this are not worth a second thread.
_PAIRS_PER_THREAD = 500_000


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _accumulate(data, indices, indptr, d, first, last, out):  # type: ignore[no-untyped-def]
    # Unsigned arithmetic: for signed indices the compiler guards against negative ones, and
    # the innermost loop, the whole cost, is no longer turned into vector instructions.
    n = np.uint64(out.shape[1])
    flat = out.reshape(-1)
    for i in range(first, last):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        di = d[i]
        if di == 0.0:
            continue
        for a in range(start, stop):
            row = np.uint64(indices[a]) * n
            scaled = di * data[a]
            for b in range(a, stop):
                flat[row + np.uint64(indices[b])] += scaled * data[b]


def sparse_weighted_gram(X: Matrix, d: FloatArray, width: int) -> FloatArray:
    """Upper triangle of ``Xᵀ diag(d) X`` for a CSR matrix with sorted indices.

    The result has ``width`` rows and columns, zero beyond those of X.

    Work is split over row ranges with equal numbers of pairs of non-zeros, each with its own
    accumulator, so the result does not depend on how threads are scheduled.
    """
    n = width
    # At least so many pairs: rows of unequal length have more.
    total = X.nnz * (X.nnz / max(X.shape[0], 1) + 1.0) / 2.0
    parts = int(min(total // _PAIRS_PER_THREAD, _ACCUMULATOR_BYTES // max(8 * n * n, 1)))
    if parts > 1:
        parts = min(parts, thread_count())
    if parts <= 1:
        single = np.zeros((n, n))
        _accumulate(X.data, X.indices, X.indptr, d, 0, X.shape[0], single)
        return single
    counts = np.diff(X.indptr).astype(np.float64)
    pairs = np.cumsum(counts * (counts + 1.0) / 2.0)
    total = pairs[-1]
    targets = total * np.arange(1, parts) / parts
    cuts = [0, *np.searchsorted(pairs, targets).tolist(), X.shape[0]]
    out = np.zeros((parts, n, n))
    with ThreadPoolExecutor(parts) as pool:
        jobs = [
            pool.submit(
                _accumulate, X.data, X.indices, X.indptr, d, cuts[part], cuts[part + 1], out[part]
            )
            for part in range(parts)
        ]
    for job in jobs:
        job.result()  # an exception in a thread is one here
    summed: FloatArray = out.sum(axis=0)
    return summed
