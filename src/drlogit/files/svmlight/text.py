"""Parsing svmlight (libsvm) text with scikit-learn, which believes what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import NDArray

from ...rows.arrays import Matrix
from ..limits import Allowance, TooLargeError, check_claim

#: Bytes for an entry of a sparse matrix, or for a row, while they are read.
_ENTRY = 32


class ZeroBasedError(ValueError):
    """Columns are numbered from 0 where they should be from 1."""


def parse_svmlight(
    lines: Iterable[bytes], source: str, *, zero_based: bool, n_features: int | None = None
) -> tuple[Matrix, NDArray[Any]]:
    """Features, sorted and without duplicates in a row, and labels; ``ValueError`` if not svmlight.

    scikit-learn is told whether columns count from 0: it would guess, differently for each file.
    """
    from sklearn.datasets import load_svmlight_file  # brings a tenth of a second of other imports

    try:
        X, labels = load_svmlight_file(
            _Lines(lines, source), n_features=n_features, zero_based=zero_based
        )
    except TooLargeError:
        raise
    except OverflowError:
        raise ValueError(f"{source} is not svmlight text: an index is 2^31 or more") from None
    except ValueError as error:
        if "Invalid index 0" in str(error):
            raise ZeroBasedError(
                f"{source} has the index 0, but indices were to begin with 1"
            ) from None
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{source} is not svmlight text (label index:value index:value …): {reason:.90}"
        ) from error
    check_claim(0, X.shape[1], source)
    return X, labels


class _Lines:
    """Lines as scikit-learn takes them, watched as they pass."""

    def __init__(self, lines: Iterable[bytes], source: str) -> None:
        self._lines, self._allowance = lines, Allowance(source)

    def read(self) -> bytes:
        """Never called, but a file must have it."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[bytes]:
        entries = 0
        for line in self._lines:
            if b"_" in line and b"_" in line.partition(b"#")[0]:  # 1_2 would be read as 12
                raise ValueError(f"found {line.partition(b'#')[0][:40]!r}")
            entries += 1 + line.count(b":")
            self._allowance.check(_ENTRY * entries)
            yield line
