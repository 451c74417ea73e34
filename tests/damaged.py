"""Files with bits turned over or an end missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def damaged_copies(contents: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Copies with one to three bits wrong, every third or so cut off somewhere."""
    for _ in range(count):
        damaged = bytearray(contents)
        for _ in range(int(rng.integers(1, 4))):
            damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        yield bytes(damaged[: rng.integers(10, len(damaged))] if rng.random() < 0.3 else damaged)
